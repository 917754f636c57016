//! What translations may take, over all views of a machine's memory.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kvrm_engine::CodeUse;

use crate::arena::Arena;
use crate::index::Words;

/// Host code and what is kept about it, counted against a budget.
///
/// Once something does not fit, the memory is full: lanes leave their code, and the engine forgets all translations.
pub(crate) struct CodeMemory {
    budget: u64,
    used: AtomicU64,
    most: AtomicU64,
    full: AtomicBool,
    evictions: AtomicU64,
    arena: Mutex<Arena>,
    work: Mutex<Work>,
}

/// What was done for it.
#[derive(Clone, Copy, Default)]
struct Work {
    words: Words,
    kept: u64,
    executed: Option<u64>,
    host_bytes: u64,
    time: Duration,
}

impl CodeMemory {
    pub(crate) fn new(budget: u64) -> CodeMemory {
        CodeMemory {
            budget,
            used: AtomicU64::new(0),
            most: AtomicU64::new(0),
            full: AtomicBool::new(false),
            evictions: AtomicU64::new(0),
            arena: Mutex::default(),
            work: Mutex::default(),
        }
    }

    /// Counts words that were translated to so many bytes of host code, now or by another process.
    pub(crate) fn count_words(&self, words: Words, host_bytes: usize, is_kept: bool) {
        let mut work = self.work();
        work.words.distinct += words.distinct;
        work.words.translated += words.translated;
        work.kept += if is_kept { words.translated } else { 0 };
        work.host_bytes += host_bytes as u64;
    }

    /// Counts instructions that were executed in translations.
    pub(crate) fn count_executed(&self, instructions: u64) {
        *self.work().executed.get_or_insert(0) += instructions;
    }

    /// Counts time that was spent on making code.
    pub(crate) fn count_time(&self, time: Duration) {
        self.work().time += time;
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts code into memory, for which `notes` bytes will be kept beside it; `None` if the memory is full. There is always
    /// room for the first, or nothing could run.
    pub(crate) fn place(&self, code: &[u8], notes: u64) -> io::Result<Option<*const u8>> {
        let mut arena = self.arena();
        let size = Arena::size_of(code) as u64 + notes;
        if arena.used() > 0 && self.used.load(Ordering::Relaxed) + size > self.budget {
            self.full.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        let before = arena.used();
        let place = arena.add(code)?;
        let added = (arena.used() - before) as u64;
        drop(arena);
        self.add(added);
        Ok(Some(place))
    }

    /// Counts bytes that are kept about code.
    pub(crate) fn charge(&self, bytes: u64) {
        if self.add(bytes) > self.budget {
            self.full.store(true, Ordering::Relaxed);
        }
    }

    fn add(&self, bytes: u64) -> u64 {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(used, Ordering::Relaxed);
        used
    }

    /// Counts bytes no longer.
    pub(crate) fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// True if translations have to be forgotten before there can be others.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Gives the host code back.
    ///
    /// # Safety
    /// All translations must have been forgotten, and no lane may be running in them.
    pub(crate) unsafe fn clear(&self) {
        let mut arena = self.arena();
        self.release(arena.used() as u64);
        // SAFETY: nobody runs in it, as was promised, and nobody knows where it was.
        unsafe { arena.clear() };
        if self.full.swap(false, Ordering::Relaxed) {
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn code_use(&self) -> CodeUse {
        let Work { words, kept, executed, host_bytes, time } = *self.work();
        CodeUse {
            distinct: words.distinct,
            translated: words.translated,
            kept,
            executed,
            host_bytes,
            time,
            bytes: self.used.load(Ordering::Relaxed),
            most: self.most.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }

    fn arena(&self) -> MutexGuard<'_, Arena> {
        self.arena.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_makes_it_full() {
        let memory = CodeMemory::new(1000);
        assert!(memory.place(&[0; 2000], 0).unwrap().is_some(), "the first always fits");
        assert!(!memory.is_full());
        assert!(memory.place(&[0; 16], 0).unwrap().is_none());
        assert!(memory.is_full());
        // SAFETY: nothing runs in it.
        unsafe { memory.clear() };
        let CodeUse { bytes, most, evictions, .. } = memory.code_use();
        assert_eq!((bytes, most, evictions), (0, 2000, 1));
        assert!(!memory.is_full());
    }

    #[test]
    fn notes_count_too() {
        let memory = CodeMemory::new(1000);
        memory.charge(900);
        assert!(!memory.is_full());
        assert!(memory.place(&[0; 16], 0).unwrap().is_some());
        assert!(memory.place(&[0; 16], 100).unwrap().is_none());
        memory.release(900);
        memory.charge(985);
        assert!(memory.is_full());
    }
}
