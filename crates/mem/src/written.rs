//! Which pages of mapped memory were written.

use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::{MmapMut, MmapOptions};

/// The pages that were written since memory began, or was last as it began. Lanes that share memory may add to it.
pub(crate) struct Written(Mutex<Pages>);

struct Pages {
    /// A bit for every page. Takes memory only where there are any.
    bits: MmapMut,
    /// The same, in the order in which they were written.
    numbers: Vec<u32>,
}

impl Written {
    /// None of so many pages.
    pub(crate) fn new(pages: u64) -> std::io::Result<Written> {
        let len = pages.div_ceil(8) as usize;
        let bits = MmapOptions::new().len(len).no_reserve_swap().map_anon()?;
        Ok(Written(Mutex::new(Pages { bits, numbers: Vec::new() })))
    }

    /// Adds a page.
    pub(crate) fn add(&self, page: u64) {
        let mut pages = self.lock();
        let (byte, bit) = ((page / 8) as usize, 1 << (page % 8));
        if pages.bits[byte] & bit == 0 {
            pages.bits[byte] |= bit;
            pages.numbers.push(page as u32);
        }
    }

    /// Which of these pages are among them.
    pub(crate) fn has<const N: usize>(&self, pages: [u64; N]) -> [bool; N] {
        let own = self.lock();
        let byte = |page: u64| own.bits.get((page / 8) as usize).copied().unwrap_or_default();
        pages.map(|page| byte(page) >> (page % 8) & 1 != 0)
    }

    /// All of them, in order.
    pub(crate) fn sorted(&self) -> Vec<u32> {
        let mut numbers = self.lock().numbers.clone();
        numbers.sort_unstable();
        numbers
    }

    /// Calls `f` with all of them, in any order.
    pub(crate) fn for_each(&self, f: impl FnMut(u32)) {
        self.lock().numbers.iter().copied().for_each(f);
    }

    /// Takes all of them out.
    pub(crate) fn take(&mut self) -> Vec<u32> {
        let Pages { bits, numbers } = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        numbers.iter().for_each(|page| bits[*page as usize / 8] = 0);
        std::mem::take(numbers)
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
