//! What may be done with pages, as ranges: it takes nothing for pages that nobody uses.

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
}
