//! Mapped memory on a device: which pages it stores, where, and what the lane may do with them.
//!
//! Pages lie anywhere in a large range of addresses. A device stores those that were used one after the other, in *slots*.
//! Kernels find the slot of an address through a map of two levels, and what is not there they leave to the host: the first
//! access to a page [adds](super::DeviceMemory::admit) it, or is a fault.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use kvrm_ir::Access;
use kvrm_mem::{PAGE, Permissions};

use super::permission_map::PermissionMap;

/// Pages of a leaf of the map.
pub const LEAF_PAGES: usize = 512;
/// Bits of a leaf's entry below the number of the slot: whether the page may be read, and written.
pub const RIGHTS_BITS: u32 = 2;
/// Bytes of guest memory that a leaf is for.
const LEAF_BYTES: u64 = LEAF_PAGES as u64 * PAGE;
/// Words of the map that are brought to a device together.
const CHUNK: usize = LEAF_PAGES;

/// The pages of mapped memory.
///
/// `words` are the map as kernels see it. First, for each part of memory that a leaf is for, comes the index of that leaf.
/// Then come the leaves, a word for each of their pages: the slot, and what may be done with the page; zero if it has no
/// slot. The first leaf is empty, and that of all parts without pages.
pub struct PageMap {
    permissions: PermissionMap,
    slots: BTreeMap<u64, u32>,
    /// Slots of pages that are gone, which are zero.
    free: Vec<u32>,
    /// How many slots there are, free ones included.
    count: u32,
    words: Vec<u32>,
    /// Where the first leaf is, which is empty.
    empty: usize,
    /// Chunks of words that a device has not got yet.
    changed: BTreeSet<usize>,
}

impl PageMap {
    /// No pages, for a memory of so many bytes.
    pub fn new(size: u64) -> PageMap {
        let parts = (size.div_ceil(LEAF_BYTES) as usize).next_multiple_of(CHUNK);
        let mut words = vec![parts as u32; parts];
        words.resize(parts + LEAF_PAGES, 0);
        let changed = (0..words.len() / CHUNK).collect();
        PageMap {
            permissions: PermissionMap::default(),
            slots: BTreeMap::new(),
            free: Vec::new(),
            count: 0,
            words,
            empty: parts,
            changed,
        }
    }

    /// Returns the map as kernels see it.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the parts of the words that have changed since the last time.
    pub fn take_changes(&mut self) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        for chunk in std::mem::take(&mut self.changed) {
            let (start, end) = (chunk * CHUNK, (chunk + 1) * CHUNK);
            match parts.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => parts.push(start..end),
            }
        }
        parts
    }

    /// Makes a device get all words again.
    pub fn change_all(&mut self) {
        self.changed = (0..self.words.len() / CHUNK).collect();
    }

    /// Returns how many slots a device needs room for.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns where a page is stored; `None` if it is not, and zero.
    pub fn slot(&self, page: u64) -> Option<u32> {
        self.slots.get(&page).copied()
    }

    /// Returns the pages of a range that are stored, in ascending order, and where.
    pub fn stored(&self, pages: Range<u64>) -> Vec<(u64, u32)> {
        self.slots.range(pages).map(|(page, slot)| (*page, *slot)).collect()
    }

    /// Returns what may be done with a page.
    pub fn permissions(&self, page: u64) -> Permissions {
        self.permissions.get(page)
    }

    /// Checks an access; the error is the address of the first byte that may not be accessed.
    pub fn probe(&self, needed: Permissions, addr: u64, len: u32) -> Result<(), u64> {
        let last = addr.saturating_add(u64::from(len) - 1);
        let mut pages = addr / PAGE..=last / PAGE;
        let refused = pages.find(|page| !self.permissions(*page).contains(needed));
        refused.map_or(Ok(()), |page| Err(addr.max(page * PAGE)))
    }

    /// Sets what may be done with pages.
    pub fn protect(&mut self, pages: Range<u64>, permissions: Permissions) {
        self.permissions.set(pages.clone(), permissions);
        self.stored(pages).into_iter().for_each(|(page, slot)| self.set_entry(page, Some(slot)));
    }

    /// Gives pages slots of which an access, which a kernel could not make, needs one: the page of the address, or the one
    /// after it, and some behind that which may be accessed in the same way. The error is the first address that may not be
    /// accessed.
    pub fn admit(&mut self, access: Access, addr: u64) -> Result<(), u64> {
        /// Pages that get slots together: each time a lane stops costs more than a page does.
        const TOGETHER: u64 = 16;
        let needed = Permissions::needed(access);
        let first = addr / PAGE;
        for page in [first, first + 1] {
            if !self.permissions(page).contains(needed) {
                return Err(addr.max(page * PAGE));
            }
            if self.slot(page).is_some() {
                continue;
            }
            let is_wanted =
                |page: &u64| self.slot(*page).is_none() && self.permissions(*page).contains(needed);
            let pages: Vec<u64> = (page..page + TOGETHER).take_while(is_wanted).collect();
            pages.into_iter().for_each(|page| self.add(page));
            return Ok(());
        }
        unreachable!("a kernel can make the access at {addr:#x}")
    }

    /// Gives a page a slot, if it has none.
    pub fn add(&mut self, page: u64) {
        if self.slots.contains_key(&page) {
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.slots.insert(page, slot);
        self.set_entry(page, Some(slot));
    }

    /// Takes the slot of a page away, which has been made zero.
    pub fn remove(&mut self, page: u64) {
        if let Some(slot) = self.slots.remove(&page) {
            self.free.push(slot);
            self.set_entry(page, None);
        }
    }

    /// Writes what kernels see of a page.
    fn set_entry(&mut self, page: u64, slot: Option<u32>) {
        let rights = u32::from(self.permissions(page).bits()) & ((1 << RIGHTS_BITS) - 1);
        let at = self.leaf(page / LEAF_PAGES as u64) + (page % LEAF_PAGES as u64) as usize;
        self.words[at] = slot.map_or(0, |slot| slot << RIGHTS_BITS | rights);
        self.changed.insert(at / CHUNK);
    }

    /// Returns where the leaf of a part begins, which is made if there is none.
    fn leaf(&mut self, part: u64) -> usize {
        let part = part as usize;
        assert!(part < self.empty, "pages are within memory");
        if self.words[part] as usize == self.empty {
            self.words[part] = self.words.len() as u32;
            self.words.resize(self.words.len() + LEAF_PAGES, 0);
            self.changed.extend([part / CHUNK, self.words.len() / CHUNK - 1]);
        }
        self.words[part] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Permissions = Permissions::READ;
    const BOTH: Permissions = Permissions::READ.union(Permissions::WRITE);
    const SIZE: u64 = 1 << 39;

    /// What a kernel finds for a page: its slot, and its rights.
    fn found(map: &PageMap, page: u64) -> (u32, u32) {
        let leaf = map.words()[(page / LEAF_PAGES as u64) as usize];
        let entry = map.words()[leaf as usize + (page % LEAF_PAGES as u64) as usize];
        (entry >> RIGHTS_BITS, entry & 3)
    }

    #[test]
    fn kernels_see_slots_and_rights() {
        let mut map = PageMap::new(SIZE);
        let last = SIZE / PAGE - 1;
        map.protect(5..7, BOTH);
        map.protect(last..last + 1, READ);
        [last, 5, 9, 6].into_iter().for_each(|page| map.add(page));
        assert_eq!([last, 5, 9, 6].map(|page| found(&map, page)), [(0, 1), (1, 3), (2, 0), (3, 3)]);
        assert_eq!(found(&map, 8), (0, 0));
        map.protect(6..8, READ);
        map.remove(5);
        assert_eq!([5, 6, 7].map(|page| found(&map, page)), [(0, 0), (3, 1), (0, 0)]);
        map.add(1000);
        assert_eq!((map.slot(1000), map.count()), (Some(1), 4), "slots are used again");
    }

    #[test]
    fn what_may_be_accessed_gets_a_slot() {
        let mut map = PageMap::new(SIZE);
        map.protect(10..20, BOTH);
        map.protect(20..21, READ);
        assert_eq!(map.admit(Access::Read, 9 * PAGE + 5), Err(9 * PAGE + 5));
        assert_eq!(map.admit(Access::Write, 18 * PAGE), Ok(()));
        assert_eq!(map.stored(0..100).iter().map(|(page, _)| *page).collect::<Vec<_>>(), [18, 19]);
        // It is the next page that is not there, or that may not be accessed.
        assert_eq!(map.admit(Access::Read, 20 * PAGE - 4), Ok(()));
        assert_eq!(map.slot(20), Some(2));
        assert_eq!(map.admit(Access::Write, 20 * PAGE - 4), Err(20 * PAGE));
        assert_eq!(map.admit(Access::Read, u64::MAX), Err(u64::MAX));
    }

    #[test]
    fn a_device_gets_what_has_changed() {
        let mut map = PageMap::new(SIZE);
        let copy = |device: &mut Vec<u32>, map: &mut PageMap| {
            for part in map.take_changes() {
                device.resize(map.words().len(), 0);
                device[part.clone()].copy_from_slice(&map.words()[part]);
            }
        };
        let mut device = Vec::new();
        for page in [3, 4, 70_000, 1 << 26, 4] {
            map.add(page);
            map.protect(page..page + 2, BOTH);
            copy(&mut device, &mut map);
            assert!(device == map.words());
        }
        assert_eq!(map.take_changes(), []);
    }
}
