//! Pages of mapped memory that some lanes may read or write and others not.
//!
//! For a slot of such a page, kernels look at a *column*: for each group of lanes, a bit for each that may read it, and for
//! each that may write it. Columns of other slots are not looked at.

use std::collections::{BTreeMap, BTreeSet};

use kvrm_mem::Permissions;

/// The lanes of a group that may read a page, and those that may write it.
pub type Masks = [u32; 2];

/// The columns of slots whose pages vary.
pub(super) struct Varying {
    lanes: usize,
    group: usize,
    columns: BTreeMap<u32, Column>,
    /// Those that a device has not got yet.
    changed: BTreeSet<u32>,
}

struct Column {
    /// What lanes begin with.
    common: Permissions,
    /// How many lanes have something else.
    differing: usize,
    masks: Vec<Masks>,
}

impl Varying {
    /// No columns, for so many lanes, so many in a group.
    pub(super) fn new(lanes: usize, group: usize) -> Varying {
        Varying { lanes, group, columns: BTreeMap::new(), changed: BTreeSet::new() }
    }

    /// Masks of a column: one for each group.
    pub(super) fn height(&self) -> usize {
        self.lanes.div_ceil(self.group)
    }

    /// True if the page in a slot varies.
    pub(super) fn contains(&self, slot: u32) -> bool {
        self.columns.contains_key(&slot)
    }

    /// Sets what a lane may do with the page in a slot, with which lanes begin as `common` says. True if it begins to vary by
    /// that, or ceases to.
    pub(super) fn set(
        &mut self,
        slot: u32,
        common: Permissions,
        lane: usize,
        permissions: Permissions,
    ) -> bool {
        let (common, permissions) = (accesses(common), accesses(permissions));
        let before = self.columns.contains_key(&slot);
        if !before && permissions == common {
            return false;
        }
        let height = self.height();
        let column = self.columns.entry(slot).or_insert_with(|| {
            let all = [Permissions::READ, Permissions::WRITE]
                .map(|right| if common.contains(right) { u32::MAX } else { 0 });
            Column { common, differing: 0, masks: vec![all; height] }
        });
        if column.set(lane / self.group, lane % self.group, permissions) {
            self.changed.insert(slot);
        }
        if column.differing == 0 {
            self.remove(slot);
        }
        before != self.contains(slot)
    }

    /// Makes a lane begin again; the slots of pages that cease to vary by that.
    pub(super) fn reset(&mut self, lane: usize) -> Vec<u32> {
        let (group, seat) = (lane / self.group, lane % self.group);
        let mut same = Vec::new();
        for (slot, column) in &mut self.columns {
            if column.set(group, seat, column.common) {
                self.changed.insert(*slot);
            }
            if column.differing == 0 {
                same.push(*slot);
            }
        }
        same.iter().for_each(|slot| self.remove(*slot));
        same
    }

    /// Forgets a column.
    pub(super) fn remove(&mut self, slot: u32) {
        self.columns.remove(&slot);
        self.changed.remove(&slot);
    }

    /// Makes a device get all columns again.
    pub(super) fn change_all(&mut self) {
        self.changed.extend(self.columns.keys());
    }

    /// Returns the columns that have changed since the last time, those of slots that follow each other together: the first
    /// slot, and the masks.
    pub(super) fn take_changes(&mut self) -> Vec<(u32, Vec<Masks>)> {
        let mut parts: Vec<(u32, Vec<Masks>)> = Vec::new();
        let height = self.height();
        for slot in std::mem::take(&mut self.changed) {
            let masks = &self.columns[&slot].masks;
            match parts.last_mut() {
                Some((first, all)) if *first as usize + all.len() / height == slot as usize => {
                    all.extend(masks);
                }
                _ => parts.push((slot, masks.clone())),
            }
        }
        parts
    }
}

impl Column {
    /// Sets what a lane may do; true if that is a change.
    fn set(&mut self, group: usize, seat: usize, permissions: Permissions) -> bool {
        let masks = &mut self.masks[group];
        let rights = [Permissions::READ, Permissions::WRITE];
        let wanted = rights.map(|right| u32::from(permissions.contains(right)) << seat);
        let bit = 1 << seat;
        let before = masks.map(|mask| mask & bit);
        if before == wanted {
            return false;
        }
        let common = rights.map(|right| u32::from(self.common.contains(right)) << seat);
        self.differing += usize::from(wanted != common);
        self.differing -= usize::from(before != common);
        for (mask, wanted) in masks.iter_mut().zip(wanted) {
            *mask = *mask & !bit | wanted;
        }
        true
    }
}

/// What kernels look at: code is the host's business.
pub(super) fn accesses(permissions: Permissions) -> Permissions {
    permissions & (Permissions::READ | Permissions::WRITE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Permissions = Permissions::READ;
    const BOTH: Permissions = Permissions::READ.union(Permissions::WRITE);

    #[test]
    fn columns_are_there_while_lanes_differ() {
        let mut varying = Varying::new(70, 32);
        assert!(!varying.set(3, READ, 40, READ | Permissions::EXECUTE));
        assert!(varying.set(3, READ, 40, BOTH));
        assert!(!varying.set(3, READ, 69, Permissions::NONE));
        assert!(varying.set(4, Permissions::NONE, 0, Permissions::WRITE));
        let all = [u32::MAX, 0];
        let third = vec![all, [u32::MAX, 1 << 8], [!(1 << 5), 0]];
        let fourth = vec![[0, 1], [0, 0], [0, 0]];
        assert_eq!(varying.take_changes(), [(3, [third, fourth].concat())]);
        assert_eq!(varying.take_changes(), []);
        assert!(!varying.set(3, READ, 69, READ));
        assert_eq!(varying.take_changes(), [(3, vec![all, [u32::MAX, 1 << 8], all])]);
        assert_eq!(varying.reset(40), [3]);
        assert_eq!(varying.reset(5), []);
        assert_eq!((varying.contains(3), varying.contains(4)), (false, true));
        varying.change_all();
        assert_eq!(varying.take_changes().len(), 1);
        assert!(varying.set(4, Permissions::NONE, 0, Permissions::NONE));
    }
}
