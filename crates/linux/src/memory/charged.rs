//! Which pages count towards the limit of memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Errno;

/// How much memory the processes of a run may have, and how much they have.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Count>);

#[derive(Debug)]
struct Count {
    used: AtomicU64,
    limit: u64,
    hit: AtomicBool,
}

impl Budget {
    /// So many bytes for all processes.
    pub fn new(limit: u64) -> Budget {
        Budget(Arc::new(Count { used: AtomicU64::new(0), limit, hit: AtomicBool::new(false) }))
    }

    /// Bytes that they have.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// True if somebody asked for more than there was.
    pub fn was_hit(&self) -> bool {
        self.0.hit.load(Ordering::Relaxed)
    }

    /// Says that somebody asked for more, or not.
    pub(crate) fn set_hit(&self, hit: bool) {
        self.0.hit.store(hit, Ordering::Relaxed);
    }

    /// The same limit for another run, of which nothing is used.
    pub(crate) fn anew(&self) -> Budget {
        let hit = AtomicBool::new(self.was_hit());
        Budget(Arc::new(Count { used: AtomicU64::new(0), limit: self.0.limit, hit }))
    }

    /// Fails if there are not so many bytes left.
    fn check(&self, bytes: u64) -> Result<(), Errno> {
        let fits = self.used().checked_add(bytes).is_some_and(|used| used <= self.0.limit);
        self.0.hit.fetch_or(!fits, Ordering::Relaxed);
        if fits { Ok(()) } else { Err(Errno::NOMEM) }
    }

    fn take(&self, bytes: u64) -> Result<(), Errno> {
        self.check(bytes)?;
        self.0.used.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn give(&self, bytes: u64) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Pages of a process that may hold something: those that could be accessed at any time since they were mapped. What
/// cannot be accessed any more still takes the host's memory.
#[derive(Debug)]
pub(super) struct Charged {
    /// First addresses, and those behind the last.
    ranges: BTreeMap<u64, u64>,
    bytes: u64,
    budget: Budget,
}

impl Charged {
    pub(super) fn new(budget: &Budget) -> Charged {
        Charged { ranges: BTreeMap::new(), bytes: 0, budget: budget.clone() }
    }

    /// These, which are in order and apart.
    pub(super) fn of(ranges: &[Range<u64>], budget: &Budget) -> Result<Charged, Errno> {
        let bytes = ranges.iter().map(|part| part.end - part.start).sum();
        budget.take(bytes)?;
        let ranges = ranges.iter().map(|part| (part.start, part.end)).collect();
        Ok(Charged { ranges, bytes, budget: budget.clone() })
    }

    /// The same for a copy of the process.
    pub(super) fn fork(&self) -> Result<Charged, Errno> {
        self.copy(&self.budget)
    }

    /// The same, charged to a budget.
    pub(super) fn copy(&self, budget: &Budget) -> Result<Charged, Errno> {
        budget.take(self.bytes)?;
        Ok(Charged { ranges: self.ranges.clone(), bytes: self.bytes, budget: budget.clone() })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fails if so many more bytes are too many.
    pub(super) fn check(&self, more: u64) -> Result<(), Errno> {
        self.budget.check(more)
    }

    /// The parts of a range that are charged, in order.
    pub(super) fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let before = self.ranges.range(..range.start).next_back();
        let first = before.map_or(range.start, |(start, _)| *start);
        let all = self.ranges.range(first..range.end.max(first));
        let parts = all.map(move |(start, end)| (*start).max(range.start)..(*end).min(range.end));
        parts.filter(|part| part.start < part.end)
    }

    /// Charges what of a range is not charged yet.
    pub(super) fn add(&mut self, range: Range<u64>) -> Result<(), Errno> {
        let old: u64 = self.within(range.clone()).map(|part| part.end - part.start).sum();
        let more = range.end - range.start - old;
        if more == 0 {
            return Ok(());
        }
        self.budget.take(more)?;
        self.bytes += more;
        let Range { mut start, mut end } = range;
        while let Some((first, last)) = self.touching(start, end) {
            (start, end) = (start.min(first), end.max(last));
            self.ranges.remove(&first);
        }
        self.ranges.insert(start, end);
        Ok(())
    }

    /// A range that overlaps another or is next to it.
    fn touching(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (first, last) = self.ranges.range(..=end).next_back()?;
        (*last >= start).then_some((*first, *last))
    }

    /// Gives back what of a range is charged.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        let parts: Vec<Range<u64>> = self.within(range).collect();
        for part in parts {
            let (start, end) = self.ranges.range(..=part.start).next_back().expect("it has a part");
            let (start, end) = (*start, *end);
            self.ranges.remove(&start);
            for (start, end) in [(start, part.start), (part.end, end)] {
                if start < end {
                    self.ranges.insert(start, end);
                }
            }
            self.bytes -= part.end - part.start;
            self.budget.give(part.end - part.start);
        }
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use kvrm_random::Random;

    use super::*;

    #[test]
    fn random_changes_equal_those_of_a_table() {
        let budget = Budget::new(40);
        let mut charged = Charged::new(&budget);
        let mut model = [false; 64];
        let mut random = Random::new(1);
        for step in 0..2000 {
            let start = random.below(63);
            let end = start + 1 + random.below(64 - start);
            let pages = start as usize..end as usize;
            if random.once_in(2) {
                charged.remove(start..end);
                model[pages].fill(false);
            } else if charged.add(start..end).is_ok() {
                model[pages].fill(true);
            }
            let mut found = [false; 64];
            charged.within(0..64).for_each(|p| found[p.start as usize..p.end as usize].fill(true));
            assert_eq!(found, model, "step {step}");
            let count = model.iter().filter(|page| **page).count() as u64;
            assert_eq!((charged.bytes(), budget.used()), (count, count), "step {step}");
        }
        let fork = charged.fork();
        assert_eq!(fork.is_ok(), charged.bytes() <= 20);
        drop((charged, fork));
        assert!(budget.was_hit() && budget.used() == 0);
    }
}
