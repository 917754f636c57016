//! Where the guest's registers are while a region runs.

use std::mem::offset_of;

use cranelift::prelude::*;
use kvrm_a64::state::{CpuState, X_SLOTS};
use kvrm_ir::Op;
use kvrm_translate::{End, Goto, Region, SLOTS, Slots};

use crate::context::LaneContext;
use crate::translate::{Translator, context_flags};

/// Where registers are.
pub(crate) enum Registers {
    /// In variables of the function, which a small loop keeps in registers of the host: in a larger one there are too many
    /// values for those, and it takes long to find that out. Ways out store what has changed.
    Held {
        variables: Box<[Option<Variable>; SLOTS]>,
        /// Registers whose values in the lane context are out of date.
        dirty: Slots,
    },
    /// In the lane context, which is up to date after every instruction.
    Stored {
        /// Values that are known here.
        known: Box<Known>,
        /// What was known at the ends of blocks.
        known_after: Vec<Option<Box<Known>>>,
        /// The block before each, where there is only one.
        before: Vec<Option<usize>>,
    },
}

/// Values of registers, as far as they are known.
pub(crate) type Known = [Option<Value>; SLOTS];

impl Registers {
    pub(crate) fn of(region: &Region) -> Registers {
        if region.loops && region.is_small {
            return Registers::Held { variables: Box::new([None; SLOTS]), dirty: 0 };
        }
        Registers::Stored {
            known: Box::new([None; SLOTS]),
            known_after: vec![None; region.blocks.len()],
            before: only_blocks_before(region),
        }
    }
}

/// For every block the one that goes there, if it is the only one. The first is also entered from outside.
fn only_blocks_before(region: &Region) -> Vec<Option<usize>> {
    let mut ways = vec![0; region.blocks.len()];
    let mut before = vec![None; region.blocks.len()];
    if let Some(first) = ways.first_mut() {
        *first = 1;
    }
    let mut note = |from, to: &Goto| {
        if let Goto::Block(to) = *to {
            ways[to] += 1;
            before[to] = Some(from);
        }
    };
    for (number, block) in region.blocks.iter().enumerate() {
        match &block.end {
            End::Jump(way) => note(number, way),
            End::Branch { taken, otherwise, .. } => {
                note(number, taken);
                note(number, otherwise);
            }
            End::Indirect { sites, .. } => {
                sites.iter().for_each(|(_, site)| note(number, &Goto::Block(*site)));
            }
            End::Stop { .. } | End::Undefined(_) | End::Done(_) => {}
        }
    }
    let only = before.into_iter().zip(ways).map(|(before, ways)| before.filter(|_| ways == 1));
    only.collect()
}

/// Offset of a register slot in the lane context.
fn slot_offset(slot: usize) -> i32 {
    let offset = match slot.checked_sub(X_SLOTS) {
        None => offset_of!(LaneContext, state) + offset_of!(CpuState, x) + 8 * slot,
        Some(vector) => offset_of!(LaneContext, vectors) + 16 * vector,
    };
    offset as i32
}

/// The host's type of a register slot.
fn slot_type(slot: usize) -> Type {
    if slot < X_SLOTS { types::I64 } else { types::I8X16 }
}

impl Translator<'_> {
    /// Loads the registers that occur in the region, if it holds them.
    pub(crate) fn load_registers(&mut self) {
        if matches!(self.registers, Registers::Stored { .. }) {
            return;
        }
        let mut slots: Slots = 0;
        let region = self.region;
        region.for_each_stmt(&mut |stmt| {
            if let Op::ReadReg(file, index) | Op::WriteReg(file, index, _) = stmt.op {
                slots |= 1 << self.slot(file, index);
            }
        });
        let Registers::Held { variables, .. } = &mut self.registers else { return };
        for slot in (0..SLOTS).filter(|slot| slots >> slot & 1 != 0) {
            let variable = self.b.declare_var(slot_type(slot));
            let at = slot_offset(slot);
            let value = self.b.ins().load(slot_type(slot), context_flags(), self.context, at);
            self.b.def_var(variable, value);
            variables[slot] = Some(variable);
        }
    }

    /// Says what is known at the beginning of a block, and what is out of date in the lane context.
    pub(crate) fn begin_registers(&mut self, block: usize, out_of_date: Slots) {
        match &mut self.registers {
            Registers::Held { dirty, .. } => *dirty = out_of_date,
            Registers::Stored { known, known_after, before } => {
                let inherited = before[block].and_then(|before| known_after[before].as_deref());
                **known = inherited.copied().unwrap_or([None; SLOTS]);
            }
        }
    }

    /// Remembers what is known at the end of a block.
    pub(crate) fn end_registers(&mut self, block: usize) {
        if let Registers::Stored { known, known_after, .. } = &mut self.registers {
            known_after[block] = Some(known.clone());
        }
    }

    /// What is known before a statement with two arms.
    pub(crate) fn known_registers(&self) -> Option<Box<Known>> {
        match &self.registers {
            Registers::Held { .. } => None,
            Registers::Stored { known, .. } => Some(known.clone()),
        }
    }

    /// Goes back to what was known before an arm; what the arm has changed is also no longer known to `after`.
    pub(crate) fn end_arm(&mut self, before: Option<&Known>, after: &mut Option<Box<Known>>) {
        let (Registers::Stored { known, .. }, Some(before), Some(after)) =
            (&mut self.registers, before, after)
        else {
            return;
        };
        for slot in (0..SLOTS).filter(|slot| known[*slot] != before[*slot]) {
            after[slot] = None;
        }
        **known = *before;
    }

    /// Sets what is known after both arms.
    pub(crate) fn end_arms(&mut self, after: Option<Box<Known>>) {
        if let (Registers::Stored { known, .. }, Some(after)) = (&mut self.registers, after) {
            *known = after;
        }
    }

    /// Brings registers in the lane context up to date.
    pub(crate) fn store_dirty_registers(&mut self) {
        let Registers::Held { variables, dirty } = &self.registers else { return };
        for slot in (0..SLOTS).filter(|slot| dirty >> slot & 1 != 0) {
            let variable = variables[slot].expect("registers of the region are loaded");
            let value = self.b.use_var(variable);
            self.b.ins().store(context_flags(), value, self.context, slot_offset(slot));
        }
    }

    pub(crate) fn read_register(&mut self, slot: usize) -> Value {
        match &mut self.registers {
            Registers::Held { variables, .. } => {
                let variable = variables[slot].expect("registers of the region are loaded");
                self.b.use_var(variable)
            }
            Registers::Stored { known, .. } => *known[slot].get_or_insert_with(|| {
                let (ty, at) = (slot_type(slot), slot_offset(slot));
                self.b.ins().load(ty, context_flags(), self.context, at)
            }),
        }
    }

    pub(crate) fn write_register(&mut self, slot: usize, value: Value) {
        match &mut self.registers {
            Registers::Held { variables, dirty } => {
                let variable = variables[slot].expect("registers of the region are loaded");
                self.b.def_var(variable, value);
                *dirty |= 1 << slot;
            }
            Registers::Stored { known, .. } => {
                known[slot] = Some(value);
                self.b.ins().store(context_flags(), value, self.context, slot_offset(slot));
            }
        }
    }
}
