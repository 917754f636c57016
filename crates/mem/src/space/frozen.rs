//! What mapped spaces begin with that have much in common.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use memmap2::MmapMut;

use crate::sparse::SparseFile;
use crate::{PAGE, Permissions};

/// The contents and permissions of mapped memory at some moment, which do not change any more. Any number of spaces may
/// begin with it ([`Space::of`](crate::Space::of)); each takes memory only for what it writes.
pub struct Frozen {
    pub(super) contents: Arc<SparseFile>,
    pub(super) bytes: MmapMut,
    /// Pages that may hold something other than zeros.
    pub(super) filled: Runs,
    /// Pages that guests may use, and what they may do with them.
    pub(super) permissions: Vec<(Range<u32>, Permissions)>,
}

impl Frozen {
    pub(super) fn new(
        contents: Arc<SparseFile>,
        filled: Runs,
        permissions: Vec<(Range<u32>, Permissions)>,
    ) -> io::Result<Frozen> {
        let bytes = contents.map_shared()?;
        Ok(Frozen { contents, bytes, filled, permissions })
    }

    /// Returns the size of memory in bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the pages that may hold something other than zeros, in order.
    pub fn filled(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.filled.0.iter().cloned()
    }

    /// Returns the contents of a page.
    pub fn page(&self, page: u32) -> &[u8] {
        let start = page as usize * PAGE as usize;
        &self.bytes[start..start + PAGE as usize]
    }

    /// Returns what guests may do with pages, in order; pages that are not there have no permissions.
    pub fn permissions(&self) -> impl Iterator<Item = (Range<u32>, Permissions)> + '_ {
        self.permissions.iter().cloned()
    }
}

/// Runs of pages that follow one another, in order and with something between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs(Vec<Range<u32>>);

impl Runs {
    /// Of pages in order.
    pub(super) fn of(pages: impl Iterator<Item = u32>) -> Runs {
        let mut runs: Vec<Range<u32>> = Vec::new();
        for page in pages {
            match runs.last_mut() {
                Some(last) if last.end > page => {}
                Some(last) if last.end == page => last.end += 1,
                _ => runs.push(page..page + 1),
            }
        }
        Runs(runs)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.0.iter().cloned()
    }

    /// The same in bytes.
    pub(super) fn bytes(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let at = |page: u32| page as usize * PAGE as usize;
        self.iter().map(move |run| at(run.start)..at(run.end))
    }

    pub(super) fn contains(&self, page: u32) -> bool {
        let behind = self.0.partition_point(|run| run.start <= page);
        behind > 0 && page < self.0[behind - 1].end
    }

    /// The parts of them within a range.
    pub(super) fn within(&self, range: Range<u32>) -> impl Iterator<Item = Range<u32>> + '_ {
        let first = self.0.partition_point(|run| run.end <= range.start);
        let runs = self.0[first..].iter().take_while(move |run| run.start < range.end);
        runs.map(move |run| run.start.max(range.start)..run.end.min(range.end))
    }

    /// The parts of a range that are none of them.
    pub(super) fn between(&self, range: Range<u32>) -> Vec<Range<u32>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for run in self.within(range.clone()) {
            gaps.push(at..run.start);
            at = run.end;
        }
        gaps.push(at..range.end);
        gaps.retain(|gap| gap.start < gap.end);
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_what_is_between_them() {
        let runs = Runs::of([2, 3, 3, 4, 9].into_iter());
        assert_eq!(runs.iter().collect::<Vec<_>>(), [2..5, 9..10]);
        let has: Vec<u32> = (0..12).filter(|page| runs.contains(*page)).collect();
        assert_eq!(has, [2, 3, 4, 9]);
        assert_eq!(runs.within(3..10).collect::<Vec<_>>(), [3..5, 9..10]);
        assert_eq!(runs.between(3..11), [5..9, 10..11]);
        assert_eq!(runs.between(2..5), []);
    }
}
