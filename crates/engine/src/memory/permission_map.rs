//! What may be done with pages, as ranges: it takes nothing for pages that nobody uses; and by which lane.

use std::collections::BTreeMap;
use std::ops::Range;

use kvrm_mem::Permissions;

/// Permissions by page; there are none at first.
#[derive(Clone, Default)]
pub(super) struct PermissionMap {
    /// Ranges by their first page: the page behind the last, and what may be done. Only those where something may be.
    ranges: BTreeMap<u64, (u64, Permissions)>,
}

impl PermissionMap {
    /// Returns what may be done with a page.
    pub(super) fn get(&self, page: u64) -> Permissions {
        match self.ranges.range(..=page).next_back() {
            Some((_, (end, permissions))) if page < *end => *permissions,
            _ => Permissions::NONE,
        }
    }

    /// Sets what may be done with pages.
    pub(super) fn set(&mut self, pages: Range<u64>, permissions: Permissions) {
        if pages.is_empty() {
            return;
        }
        self.cut(pages.start);
        self.cut(pages.end);
        let inside: Vec<u64> = self.ranges.range(pages.clone()).map(|(start, _)| *start).collect();
        for start in inside {
            self.ranges.remove(&start);
        }
        if permissions != Permissions::NONE {
            self.ranges.insert(pages.start, (pages.end, permissions));
        }
    }

    /// Returns the pages of a range with which that may be done.
    fn with(&self, needed: Permissions, pages: Range<u64>) -> Vec<u64> {
        let before = self.ranges.range(..pages.start).next_back();
        let ranges = before.into_iter().chain(self.ranges.range(pages.clone()));
        let ranges = ranges.filter(|(_, (_, permissions))| permissions.contains(needed));
        ranges
            .flat_map(|(start, (end, _))| *start.max(&pages.start)..*end.min(&pages.end))
            .collect()
    }

    /// Makes a range begin at a page, if one goes on there.
    fn cut(&mut self, page: u64) {
        if let Some((_, range)) = self.ranges.range_mut(..page).next_back()
            && page < range.0
        {
            let rest = *range;
            range.0 = page;
            self.ranges.insert(page, rest);
        }
    }
}

/// Permissions of lanes: what all begin with, and what those have that changed it.
pub(super) struct Rights {
    common: PermissionMap,
    own: Vec<Option<Box<PermissionMap>>>,
}

impl Rights {
    /// None, for so many lanes.
    pub(super) fn new(lanes: usize) -> Rights {
        Rights { common: PermissionMap::default(), own: vec![None; lanes] }
    }

    /// Returns what a lane may do with a page.
    pub(super) fn get(&self, lane: usize, page: u64) -> Permissions {
        self.own[lane].as_deref().unwrap_or(&self.common).get(page)
    }

    /// Returns what lanes begin with.
    pub(super) fn common(&self, page: u64) -> Permissions {
        self.common.get(page)
    }

    /// Sets what a lane may do with pages.
    pub(super) fn set(&mut self, lane: usize, pages: Range<u64>, permissions: Permissions) {
        let own = self.own[lane].get_or_insert_with(|| Box::new(self.common.clone()));
        own.set(pages, permissions);
    }

    /// Returns the pages of a range that lanes begin with permission to execute.
    pub(super) fn executed(&self, pages: Range<u64>) -> Vec<u64> {
        self.common.with(Permissions::EXECUTE, pages)
    }

    /// Sets what all lanes may do with pages, also those that begin later.
    pub(super) fn set_all(&mut self, pages: Range<u64>, permissions: Permissions) {
        for map in self.own.iter_mut().flatten() {
            map.set(pages.clone(), permissions);
        }
        self.common.set(pages, permissions);
    }

    /// Makes a lane begin again.
    pub(super) fn reset(&mut self, lane: usize) {
        self.own[lane] = None;
    }

    /// Returns the lanes that have changed what they may do with some page, which need not be this one.
    pub(super) fn changed(&self) -> impl Iterator<Item = (usize, &PermissionMap)> {
        self.own.iter().enumerate().filter_map(|(lane, own)| Some((lane, own.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_as_good_as_pages() {
        const ALL: [Permissions; 3] = [Permissions::NONE, Permissions::READ, Permissions::EXECUTE];
        let (mut map, mut pages) = (PermissionMap::default(), [Permissions::NONE; 64]);
        let mut random = 1u64;
        for _ in 0..2000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let start = (random >> 33) as usize % 64;
            let end = (start + (random >> 41) as usize % 20).min(64);
            let permissions = ALL[(random >> 50) as usize % 3];
            map.set(start as u64..end as u64, permissions);
            pages[start..end].fill(permissions);
            let seen: Vec<_> = (0..64).map(|page| map.get(page)).collect();
            assert_eq!(seen, pages);
        }
        assert_eq!(map.get(u64::MAX), Permissions::NONE);
    }

    #[test]
    fn lanes_have_rights_of_their_own_until_they_begin_again() {
        let mut rights = Rights::new(3);
        rights.set_all(2..6, Permissions::READ);
        rights.set(1, 4..8, Permissions::WRITE);
        rights.set_all(5..6, Permissions::EXECUTE);
        let seen = |rights: &Rights, lane| [3, 4, 5, 7].map(|page| rights.get(lane, page).bits());
        assert_eq!((seen(&rights, 0), seen(&rights, 1)), ([1, 1, 4, 0], [1, 2, 4, 2]));
        assert_eq!(rights.changed().map(|(lane, _)| lane).collect::<Vec<_>>(), [1]);
        rights.reset(1);
        assert_eq!(seen(&rights, 1), seen(&rights, 2));
    }
}
