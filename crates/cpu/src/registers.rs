//! Where the guest's registers are while a region runs.

use std::mem::offset_of;

use cranelift::prelude::*;
use kvrm_a64::state::{CpuState, X_SLOTS};
use kvrm_ir::{Op, Stmt};
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
    /// In the lane context, but for values that are soon overwritten.
    Stored {
        /// Values that are known here.
        known: Box<Known>,
        /// How often each will still be written in this block, outside of arms.
        writes_left: Box<[u16; SLOTS]>,
        /// Registers whose values in the lane context are out of date. They are known, and will be written again.
        dirty: Slots,
        /// How many arms of statements are around this place.
        arms: u32,
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
            writes_left: Box::new([0; SLOTS]),
            dirty: 0,
            arms: 0,
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
        let mut written = Vec::new();
        if matches!(self.registers, Registers::Stored { .. }) {
            let stmts = self.region.blocks[block].stmts();
            written.extend(stmts.filter_map(|stmt| self.slot_written(stmt)));
        }
        match &mut self.registers {
            Registers::Held { dirty, .. } => *dirty = out_of_date,
            Registers::Stored { known, known_after, before, writes_left, .. } => {
                let inherited = before[block].and_then(|before| known_after[before].as_deref());
                **known = inherited.copied().unwrap_or([None; SLOTS]);
                **writes_left = [0; SLOTS];
                written.into_iter().for_each(|slot| writes_left[slot] += 1);
            }
        }
    }

    /// The register that a statement writes, not counting those in its arms.
    fn slot_written(&self, stmt: &Stmt) -> Option<usize> {
        match stmt.op {
            Op::WriteReg(file, index, _) => Some(self.slot(file, index)),
            _ => None,
        }
    }

    /// Remembers what is known at the end of a block.
    pub(crate) fn end_registers(&mut self, block: usize) {
        if let Registers::Stored { known, known_after, .. } = &mut self.registers {
            known_after[block] = Some(known.clone());
        }
    }

    /// What is known before a statement with two arms, which may write registers.
    pub(crate) fn begin_arms(&mut self, write_registers: bool) -> Option<Box<Known>> {
        if write_registers && matches!(self.registers, Registers::Stored { .. }) {
            self.store_dirty_registers();
        }
        let Registers::Stored { known, dirty, arms, .. } = &mut self.registers else { return None };
        *arms += 1;
        if write_registers {
            *dirty = 0;
        }
        Some(known.clone())
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
        if let (Registers::Stored { known, arms, .. }, Some(after)) = (&mut self.registers, after) {
            *known = after;
            *arms -= 1;
        }
    }

    /// Brings registers in the lane context up to date, for whoever leaves here.
    pub(crate) fn store_dirty_registers(&mut self) {
        let (Registers::Held { dirty, .. } | Registers::Stored { dirty, .. }) = self.registers;
        for slot in (0..SLOTS).filter(|slot| dirty >> slot & 1 != 0) {
            let value = self.read_register(slot);
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
            Registers::Stored { known, writes_left, dirty, arms, .. } => {
                known[slot] = Some(value);
                if *arms == 0 {
                    writes_left[slot] -= 1;
                    if writes_left[slot] > 0 {
                        *dirty |= 1 << slot;
                        return;
                    }
                    *dirty &= !(1 << slot);
                }
                self.b.ins().store(context_flags(), value, self.context, slot_offset(slot));
            }
        }
    }
}
