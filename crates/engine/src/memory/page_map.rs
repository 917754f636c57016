//! Mapped memory on a device: which pages it stores, where, and what lanes may do with them.
//!
//! Pages lie anywhere in a large range of addresses. A device stores those that were used one after the other, in *slots*.
//! Kernels find the slot of an address through a map of two levels, and what is not there they leave to the host: the first
//! access to a page [adds](super::DeviceMemory::admit) it, or is a fault.
//!
//! There is one map for all lanes: a page has a slot if any lane has used it. What may be done with a page is in the map
//! where that is the same for all lanes, and otherwise in a [column](super::varying) of its slot.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use kvrm_ir::Access;
use kvrm_mem::{PAGE, Permissions};

use super::permission_map::{PermissionMap, Rights};
use super::varying::{Masks, Varying, accesses};

/// Pages of a leaf of the map.
pub const LEAF_PAGES: usize = 512;
/// Bits of a leaf's entry below the number of the slot: whether the page may be read, and written, and [`VARIES`].
pub const RIGHTS_BITS: u32 = 3;
/// Set in an entry if lanes differ in what they may do with the page; its column says what.
pub const VARIES: u32 = 1 << 2;
/// Bytes of guest memory that a leaf is for.
const LEAF_BYTES: u64 = LEAF_PAGES as u64 * PAGE;
/// Words of the map that are brought to a device together.
const CHUNK: usize = LEAF_PAGES;

/// What a kernel lacks to make an access.
#[derive(Debug, PartialEq, Eq)]
pub enum Missing {
    /// Slots for pages: that of the address or the one after it, and some behind that which may be accessed in the same way.
    /// None, if others that wanted the same page have got it a slot.
    Slots(Vec<u64>),
    /// The lane's permission, at this address first.
    Permission(u64),
    /// Permission for the second page, if the access reaches it; nothing otherwise.
    Unclear,
}

/// The pages of mapped memory.
///
/// `words` are the map as kernels see it. First, for each part of memory that a leaf is for, comes the index of that leaf.
/// Then come the leaves, a word for each of their pages: the slot, and what may be done with the page; zero if it has no
/// slot. The first leaf is empty, and that of all parts without pages.
pub struct PageMap {
    /// Lanes have their own memory, which begins as an image. Otherwise there is one lane, and no image.
    is_private: bool,
    rights: Rights,
    varying: Varying,
    /// Pages that some lane may not execute though lanes begin with code there; perhaps more.
    not_executed: BTreeSet<u64>,
    slots: BTreeMap<u64, u32>,
    /// Slots with something of the image.
    image: BTreeSet<u32>,
    /// Slots of pages that are gone, which are zero.
    free: Vec<u32>,
    /// The page of each slot, of those that were free at least once, too.
    pages: Vec<u64>,
    words: Vec<u32>,
    /// Where the first leaf is, which is empty.
    empty: usize,
    /// Chunks of words that a device has not got yet.
    changed: BTreeSet<usize>,
}

impl PageMap {
    /// No pages, for a memory of so many bytes that one lane has.
    pub fn new(size: u64) -> PageMap {
        PageMap::of(size, 1, 1, false)
    }

    /// The same for lanes, so many in a group, that have a memory each.
    pub fn private(size: u64, lanes: usize, group: usize) -> PageMap {
        PageMap::of(size, lanes, group, true)
    }

    fn of(size: u64, lanes: usize, group: usize, is_private: bool) -> PageMap {
        let parts = (size.div_ceil(LEAF_BYTES) as usize).next_multiple_of(CHUNK);
        let mut words = vec![parts as u32; parts];
        words.resize(parts + LEAF_PAGES, 0);
        let changed = (0..words.len() / CHUNK).collect();
        PageMap {
            is_private,
            rights: Rights::new(lanes),
            varying: Varying::new(lanes, group),
            not_executed: BTreeSet::new(),
            slots: BTreeMap::new(),
            image: BTreeSet::new(),
            free: Vec::new(),
            pages: Vec::new(),
            words,
            empty: parts,
            changed,
        }
    }

    /// True if lanes have their own memory, which begins as an image.
    pub fn is_private(&self) -> bool {
        self.is_private
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

    /// Returns the masks in a slot's column.
    pub fn column_height(&self) -> usize {
        self.varying.height()
    }

    /// Returns columns that have changed since the last time: the first slot, and the masks of its column and those of the
    /// slots behind it.
    pub fn take_changed_columns(&mut self) -> Vec<(u32, Vec<Masks>)> {
        self.varying.take_changes()
    }

    /// Makes a device get all columns again.
    pub fn change_all_columns(&mut self) {
        self.varying.change_all();
    }

    /// Returns how many slots a device needs room for.
    pub fn count(&self) -> usize {
        self.pages.len()
    }

    /// Returns where a page is stored; `None` if it is not, and zero.
    pub fn slot(&self, page: u64) -> Option<u32> {
        self.slots.get(&page).copied()
    }

    /// Returns the pages of a range that are stored, in ascending order, and where.
    pub fn stored(&self, pages: Range<u64>) -> Vec<(u64, u32)> {
        self.slots.range(pages).map(|(page, slot)| (*page, *slot)).collect()
    }

    /// Returns what a lane may do with a page.
    pub fn permissions(&self, lane: usize, page: u64) -> Permissions {
        self.rights.get(lane, page)
    }

    /// Returns what lanes begin with.
    pub fn common_permissions(&self, page: u64) -> Permissions {
        self.rights.common(page)
    }

    /// Returns the lanes that may not execute a page, though lanes begin with code there.
    pub fn without_code(&self, page: u64) -> Vec<usize> {
        if !self.not_executed.contains(&page) {
            return Vec::new();
        }
        let without = |(lane, rights): (usize, &PermissionMap)| {
            (!rights.get(page).contains(Permissions::EXECUTE)).then_some(lane)
        };
        self.rights.changed().filter_map(without).collect()
    }

    /// Checks an access of a lane; the error is the address of the first byte that may not be accessed.
    pub fn probe(&self, lane: usize, needed: Permissions, addr: u64, len: u32) -> Result<(), u64> {
        let last = addr.saturating_add(u64::from(len) - 1);
        let mut pages = addr / PAGE..=last / PAGE;
        let refused = pages.find(|page| !self.permissions(lane, *page).contains(needed));
        refused.map_or(Ok(()), |page| Err(addr.max(page * PAGE)))
    }

    /// Sets what a lane may do with pages.
    pub fn protect(&mut self, lane: usize, pages: Range<u64>, permissions: Permissions) {
        if !self.is_private {
            return self.protect_all(pages, permissions);
        }
        self.rights.set(lane, pages.clone(), permissions);
        for (page, slot) in self.stored(pages.clone()) {
            let common = self.rights.common(page);
            if self.varying.set(slot, common, lane, permissions) {
                self.set_entry(page, Some(slot));
            }
        }
        if !permissions.contains(Permissions::EXECUTE) {
            let code = self.rights.executed(pages);
            self.not_executed.extend(code);
        }
    }

    /// Sets what all lanes may do with pages, and begin with.
    pub fn protect_all(&mut self, pages: Range<u64>, permissions: Permissions) {
        self.rights.set_all(pages.clone(), permissions);
        for (page, slot) in self.stored(pages) {
            self.varying.remove(slot);
            self.set_entry(page, Some(slot));
        }
    }

    /// Makes a lane begin again.
    pub fn reset(&mut self, lane: usize) {
        self.rights.reset(lane);
        for slot in self.varying.reset(lane) {
            self.set_entry(self.pages[slot as usize], Some(slot));
        }
    }

    /// Finds out what is missing where a kernel could not make an access of a lane.
    pub fn look(&self, lane: usize, access: Access, addr: u64) -> Missing {
        /// Pages that get slots together: each time a lane stops costs more than a page does.
        const TOGETHER: u64 = 16;
        let needed = Permissions::needed(access);
        let first = addr / PAGE;
        for page in [first, first + 1] {
            if !self.permissions(lane, page).contains(needed) {
                // Another lane may have got the first page its slot, and this one not reach the second.
                return match self.is_private && page != first {
                    true => Missing::Unclear,
                    false => Missing::Permission(addr.max(page * PAGE)),
                };
            }
            if self.slot(page).is_some() {
                continue;
            }
            let is_wanted = |page: &u64| {
                self.slot(*page).is_none() && self.permissions(lane, *page).contains(needed)
            };
            return Missing::Slots((page..page + TOGETHER).take_while(is_wanted).collect());
        }
        Missing::Slots(Vec::new())
    }

    /// Returns how many slots a device needs room for before so many pages can be [added](Self::add).
    pub fn count_with(&self, pages: usize) -> usize {
        self.count() + pages.saturating_sub(self.free.len())
    }

    /// Gives pages slots that have none.
    pub fn add(&mut self, pages: &[u64]) {
        for page in pages {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.pages.push(0);
                self.pages.len() as u32 - 1
            });
            let before = self.slots.insert(*page, slot);
            assert!(before.is_none(), "the page has no slot");
            self.pages[slot as usize] = *page;
        }
        for (lane, rights) in self.rights.changed() {
            for page in pages {
                let (slot, common) = (self.slots[page], self.rights.common(*page));
                self.varying.set(slot, common, lane, rights.get(*page));
            }
        }
        pages.iter().for_each(|page| self.set_entry(*page, Some(self.slots[page])));
    }

    /// Notes that the image has something in a page, which has a slot.
    pub fn note_image(&mut self, page: u64) {
        self.image.insert(self.slots[&page]);
    }

    /// True if the image may have something in a slot.
    pub fn is_image(&self, slot: u32) -> bool {
        self.image.contains(&slot)
    }

    /// Takes the slot of a page away, which is zero for all lanes.
    pub fn remove(&mut self, page: u64) {
        if let Some(slot) = self.slots.remove(&page) {
            self.varying.remove(slot);
            self.free.push(slot);
            self.set_entry(page, None);
        }
    }

    /// Writes what kernels see of a page.
    fn set_entry(&mut self, page: u64, slot: Option<u32>) {
        let rights = match slot.is_some_and(|slot| self.varying.contains(slot)) {
            true => VARIES,
            false => u32::from(accesses(self.rights.common(page)).bits()),
        };
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
        (entry >> RIGHTS_BITS, entry & (VARIES | 3))
    }

    #[test]
    fn kernels_see_slots_and_rights() {
        let mut map = PageMap::new(SIZE);
        let last = SIZE / PAGE - 1;
        map.protect(0, 5..7, BOTH);
        map.protect(0, last..last + 1, READ);
        map.add(&[last, 5, 9, 6]);
        assert_eq!([last, 5, 9, 6].map(|page| found(&map, page)), [(0, 1), (1, 3), (2, 0), (3, 3)]);
        assert_eq!(found(&map, 8), (0, 0));
        map.protect(0, 6..8, READ);
        map.remove(5);
        assert_eq!([5, 6, 7].map(|page| found(&map, page)), [(0, 0), (3, 1), (0, 0)]);
        map.add(&[1000]);
        assert_eq!((map.slot(1000), map.count()), (Some(1), 4), "slots are used again");
    }

    #[test]
    fn what_may_be_accessed_gets_a_slot() {
        let mut map = PageMap::new(SIZE);
        map.protect(0, 10..20, BOTH);
        map.protect(0, 20..21, READ);
        let look = |map: &PageMap, access, addr| map.look(0, access, addr);
        assert_eq!(look(&map, Access::Read, 9 * PAGE + 5), Missing::Permission(9 * PAGE + 5));
        assert_eq!(look(&map, Access::Write, 18 * PAGE), Missing::Slots(vec![18, 19]));
        map.add(&[18, 19]);
        // It is the next page that is not there, or that may not be accessed.
        assert_eq!(look(&map, Access::Read, 20 * PAGE - 4), Missing::Slots(vec![20]));
        map.add(&[20]);
        assert_eq!(look(&map, Access::Write, 20 * PAGE - 4), Missing::Permission(20 * PAGE));
        assert_eq!(look(&map, Access::Read, u64::MAX), Missing::Permission(u64::MAX));
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
        for page in [3, 4, 70_000, 1 << 26] {
            map.add(&[page]);
            map.protect(0, page..page + 2, BOTH);
            copy(&mut device, &mut map);
            assert!(device == map.words());
        }
        assert_eq!(map.take_changes(), []);
    }

    #[test]
    fn kernels_see_where_lanes_differ() {
        let mut map = PageMap::private(SIZE, 40, 32);
        map.protect_all(0..10, READ | Permissions::EXECUTE);
        map.add(&[3, 4]);
        map.protect(33, 4..6, BOTH);
        map.add(&[5]);
        assert_eq!([3, 4, 5].map(|page| found(&map, page)), [(0, 1), (1, VARIES), (2, VARIES)]);
        let masks = vec![[u32::MAX, 0], [u32::MAX, 2]];
        assert_eq!(map.take_changed_columns(), [(1, [masks.clone(), masks].concat())]);
        assert_eq!((map.without_code(4), map.without_code(3)), (vec![33], vec![]));
        assert_eq!(map.probe(33, Permissions::WRITE, 6 * PAGE - 4, 8), Err(6 * PAGE));
        assert_eq!(map.probe(32, Permissions::WRITE, 5 * PAGE, 8), Err(5 * PAGE));
        // It ends in a page that has a slot, or goes on in one that this lane may not write.
        assert_eq!(map.look(33, Access::Write, 6 * PAGE - 4), Missing::Unclear);
        map.reset(33);
        assert_eq!([4, 5].map(|page| found(&map, page)), [(1, 1), (2, 1)]);
        assert_eq!(map.without_code(4), []);
        map.protect(0, 5..6, Permissions::NONE);
        map.protect_all(5..6, BOTH);
        assert_eq!((found(&map, 5), map.permissions(0, 5)), ((2, 3), BOTH));
    }
}
