//! Where the records of mapped memory's code are: code may lie anywhere there, far apart.
//!
//! Memory is divided into *blocks*. Those with code have a part of the table each, in the order in which they were met, and
//! kernels look up which. Behind the records of a block are some that are never decoded, for lanes that run beyond its end.

use std::collections::BTreeMap;

use kvrm_mem::PAGE;

/// Pages of a block.
pub const BLOCK_PAGES: u64 = 256;
/// Pages of the table that a block takes, with the one behind it.
pub const BLOCK_STRIDE: u64 = BLOCK_PAGES + 1;

/// The blocks with code.
pub(super) struct Blocks {
    /// Blocks that there are in memory.
    all: u64,
    /// Which part of the table a block has.
    parts: BTreeMap<u64, u32>,
}

impl Blocks {
    /// None yet, of a memory of that size.
    pub(super) fn new(size: u64) -> Blocks {
        Blocks { all: size.div_ceil(BLOCK_PAGES * PAGE), parts: BTreeMap::new() }
    }

    pub(super) fn clear(&mut self) {
        self.parts.clear();
    }

    /// How many have code.
    pub(super) fn len(&self) -> u64 {
        self.parts.len() as u64
    }

    /// Gives the block of a page a part of the table, which it has not got.
    pub(super) fn add(&mut self, page: u64) {
        let part = self.parts.len() as u32;
        let before = self.parts.insert(page / BLOCK_PAGES, part);
        assert!(before.is_none(), "it has a part");
    }

    /// Where the records of a page are, in pages of the table; `None` if its block has no part.
    pub(super) fn page_of_table(&self, page: u64) -> Option<u64> {
        let part = self.parts.get(&(page / BLOCK_PAGES))?;
        Some(u64::from(*part) * BLOCK_STRIDE + page % BLOCK_PAGES)
    }

    /// What kernels look up: for each block its part, counted from one, or zero.
    pub(super) fn table(&self) -> Vec<u32> {
        let mut table = vec![0; self.all as usize];
        self.parts.iter().for_each(|(block, part)| table[*block as usize] = part + 1);
        table
    }
}
