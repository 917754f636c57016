//! Which of a lane's registers translated code keeps at hand.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use kvrm_a64::state::V;
use kvrm_ir::{File, Op};

use super::Translation;

/// How many registers a device has room for.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// General registers, of which those are kept that occur most often.
    pub general: usize,
    /// Halves of vector registers; if there are more, all stay in memory.
    pub halves: usize,
}

/// Registers of the lane that translated code keeps in registers of the device: slots of both files.
#[derive(Default)]
pub struct Kept {
    /// General registers.
    pub general: BTreeSet<u64>,
    /// Halves of vector registers.
    pub halves: BTreeSet<u64>,
}

impl Kept {
    /// Those of a translation.
    pub fn of(translation: &Translation, room: Room) -> Kept {
        let (mut general, mut halves) = (BTreeMap::new(), BTreeMap::new());
        for region in translation.regions() {
            region.for_each_stmt(&mut |stmt| {
                let (Op::ReadReg(file, index) | Op::WriteReg(file, index, _)) = &stmt.op else {
                    return;
                };
                let slot = region.values[index.0 as usize].constant.expect("slots are known");
                let uses = if *file == V { &mut halves } else { &mut general };
                *uses.entry(slot).or_insert(0) += 1;
            });
        }
        if halves.len() > room.halves {
            halves.clear();
        }
        let mut by_use: Vec<(Reverse<u32>, u64)> =
            general.into_iter().map(|(slot, uses)| (Reverse(uses), slot)).collect();
        by_use.sort_unstable();
        by_use.truncate(room.general);
        let general = by_use.into_iter().map(|(_, slot)| slot).collect();
        Kept { general, halves: halves.into_keys().collect() }
    }

    /// True if a slot of a file is among them.
    pub fn has(&self, file: File, slot: u64) -> bool {
        if file == V { self.halves.contains(&slot) } else { self.general.contains(&slot) }
    }
}
