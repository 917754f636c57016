//! Removing what a block does for nobody: values without a use, and writes of registers or flags that are
//! overtaken before anything can see them.

use kvrm_ir::{File, Flags, Op, Place, Stmt, Value, ValueData, remove_dead_stmts};

use crate::{Block, Check, End, Slots, slot_number};

/// Trims a block.
pub(crate) fn trim(block: &mut Block, values: &[ValueData], checks: &[Check]) {
    drop_overtaken_writes(block, values, checks);
    drop_unused_values(block, values.len(), checks);
}

fn drop_unused_values(block: &mut Block, values: usize, checks: &[Check]) {
    let mut live = vec![false; values];
    let mut mark = |v: Value| live[v.0 as usize] = true;
    match &block.end {
        End::Jump(_) | End::Undefined(_) | End::Done(_) => {}
        End::Branch { cond, .. } => mark(*cond),
        End::Indirect { target, .. } => mark(*target),
        End::Stop { detail, .. } => mark(*detail),
    }
    block.flags_after.for_each_value(&mut mark);
    remove_dead_stmts(&mut block.tail, &mut live);
    let ends_here = matches!(block.end, End::Stop { .. } | End::Undefined(_));
    let last = block.insns.len().wrapping_sub(1);
    for (i, insn) in block.insns.iter_mut().enumerate().rev() {
        if insn.stmts.iter().any(|stmt| may_leave(stmt, checks)) || ends_here && i == last {
            insn.flags.for_each_value(&mut |v| live[v.0 as usize] = true);
        }
        remove_dead_stmts(&mut insn.stmts, &mut live);
    }
    // Entering may end for want of fuel.
    if let Some(first) = block.insns.first() {
        first.flags.for_each_value(&mut |v| live[v.0 as usize] = true);
    }
    remove_dead_stmts(&mut block.head, &mut live);
}

fn may_leave(stmt: &Stmt, checks: &[Check]) -> bool {
    match &stmt.op {
        Op::Probe { place, .. } => !is_covered(*place, checks),
        Op::Exit { .. } => true,
        Op::If { then, otherwise, .. } => {
            then.stmts.iter().chain(&otherwise.stmts).any(|stmt| may_leave(stmt, checks))
        }
        _ => false,
    }
}

fn is_covered(place: Place, checks: &[Check]) -> bool {
    checks.get(place.0 as usize) == Some(&Check::Covered)
}

/// What is written again before it can be seen, going backwards through a block.
#[derive(Default)]
struct Overtaken {
    slots: Slots,
    flags: bool,
}

fn drop_overtaken_writes(block: &mut Block, values: &[ValueData], checks: &[Check]) {
    let mut overtaken = Overtaken::default();
    for insn in block.insns.iter_mut().rev() {
        let mut kept = Vec::with_capacity(insn.stmts.len());
        for stmt in std::mem::take(&mut insn.stmts).into_iter().rev() {
            if !overtaken.covers(&stmt, values, checks) {
                kept.push(stmt);
            }
        }
        kept.reverse();
        insn.stmts = kept;
    }
}

impl Overtaken {
    /// True if a statement is a write that nobody sees. Otherwise notes what it writes or sees.
    fn covers(&mut self, stmt: &Stmt, values: &[ValueData], checks: &[Check]) -> bool {
        let slot = |file: &File, index: &Value| -> Slots {
            let slot = values[index.0 as usize].constant.expect("slots are known");
            1 << slot_number(*file, slot)
        };
        match &stmt.op {
            Op::WriteReg(file, index, _) => {
                let seen = self.slots & slot(file, index) == 0;
                self.slots |= slot(file, index);
                !seen
            }
            Op::SetFlags(Flags::Bits(_)) => std::mem::replace(&mut self.flags, true),
            Op::ReadReg(file, index) => {
                self.slots &= !slot(file, index);
                false
            }
            Op::Test(_) => {
                self.flags = false;
                false
            }
            Op::Probe { place, .. } if is_covered(*place, checks) => false,
            Op::Probe { .. } | Op::Exit { .. } | Op::If { .. } => {
                *self = Overtaken::default();
                false
            }
            _ => false,
        }
    }
}
