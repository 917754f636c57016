//! Code that kernels have translated, beside the handlers with which they interpret all other.

mod kept;
mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use kvrm_ir::legalise::Lacks;
use kvrm_mem::GRANULE;
use kvrm_translate::Region;

use crate::kernel::Record;

pub use kept::{Kept, Room};
pub use ways::{ShortBranch, Way};

/// What kernels of a device can have translated.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// What operations may not be.
    pub lacks: Lacks,
    /// Instructions that call functions.
    pub calls: bool,
    /// Instructions, at the most. More would not stay in a GPU's instruction cache, and compiling takes more than twice as
    /// long for twice as many.
    pub most: usize,
}

/// Code that a kernel has translated.
#[derive(Clone, Copy)]
pub struct Translated<'a> {
    /// Which.
    pub translation: &'a Translation,
    /// The records of its instructions, where they are interpreted.
    pub record: &'a dyn Fn(u64) -> Record,
}

/// Regions of a program's code. Their blocks are numbered; where one begins, the record of the instruction says
/// [which](crate::kernel::Record::block).
///
/// It is right for all lanes whose words are those that it was made from. It goes when one of them changes in any lane,
/// and lanes that have words of their own there never come to it.
pub struct Translation {
    number: u64,
    regions: Vec<Region>,
    /// For every block its region, and its number there.
    places: Vec<(usize, usize)>,
    /// Numbers of blocks by the address of their first instruction.
    numbers: BTreeMap<u64, u32>,
    /// Granules with words of it.
    granules: BTreeSet<u64>,
    instructions: usize,
}

impl Translation {
    /// A translation of some regions, which have flags as four bits only.
    pub fn new(regions: Vec<Region>) -> Translation {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut translation = Translation {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            regions,
            places: Vec::new(),
            numbers: BTreeMap::new(),
            granules: BTreeSet::new(),
            instructions: 0,
        };
        for (number, region) in translation.regions.iter().enumerate() {
            for (in_region, block) in region.blocks.iter().enumerate() {
                assert!(
                    !block.insns.is_empty(),
                    "flags have one form, so that no detours are needed"
                );
                translation.numbers.insert(block.pc, translation.places.len() as u32);
                translation.places.push((number, in_region));
                translation.instructions += block.insns.len();
                let granules = block.insns.iter().map(|insn| insn.pc / GRANULE);
                translation.granules.extend(granules);
            }
        }
        translation
    }

    /// A number that no other translation of this process has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What it consists of.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.places.len()
    }

    /// The blocks of a region: their numbers, and their numbers in the region.
    pub fn blocks_of(&self, region: usize) -> impl Iterator<Item = (u32, usize)> {
        let numbered = (0..).zip(&self.places);
        numbered.filter_map(move |(number, place)| (place.0 == region).then_some((number, place.1)))
    }

    /// The block that begins at an address.
    pub fn block_at(&self, pc: u64) -> Option<u32> {
        self.numbers.get(&pc).copied()
    }

    /// Where blocks begin, in ascending order, and their numbers.
    pub fn heads(&self) -> impl Iterator<Item = (u64, u32)> {
        self.numbers.iter().map(|(pc, number)| (*pc, *number))
    }

    /// The same from an address on.
    pub(crate) fn heads_from(&self, start: u64) -> impl Iterator<Item = (u64, u32)> {
        self.numbers.range(start..).map(|(pc, number)| (*pc, *number))
    }

    /// True if it has words of a granule.
    pub fn covers(&self, granule: u64) -> bool {
        self.granules.contains(&granule)
    }

    /// Instructions that were translated.
    pub fn instructions(&self) -> usize {
        self.instructions
    }
}
