//! Which registers a region uses, and where they differ from the lane context.

use std::collections::HashMap;

use kvrm_a64::state::X_SLOTS;
use kvrm_engine::flow::Flow;
use kvrm_ir::{Op, Routine, Stmt};

use crate::flags::flag_index;
use crate::region::{Block, Body, Insn, Region};

/// What a region reads or writes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Uses {
    /// One bit per register slot.
    pub(crate) registers: u64,
    pub(crate) flags: bool,
}

/// Registers and flags that occur in a region.
pub(crate) fn uses(region: &Region) -> Uses {
    let mut uses = Uses::default();
    for insn in region.blocks.values().flat_map(|block| &block.insns) {
        if let Body::Routine(routine) = &insn.body {
            for_each_stmt(&routine.body.stmts, &mut |stmt| match stmt.op {
                Op::ReadReg(_, index) | Op::WriteReg(_, index, _) => {
                    uses.registers |= 1 << slot(routine, index);
                }
                Op::ReadVar(var) | Op::WriteVar(var, _) => {
                    uses.flags |= flag_index(var).is_some();
                }
                _ => {}
            });
        }
    }
    uses
}

fn for_each_stmt(stmts: &[Stmt], f: &mut impl FnMut(&Stmt)) {
    for stmt in stmts {
        if let Op::If { then, otherwise, .. } = &stmt.op {
            for_each_stmt(&then.stmts, f);
            for_each_stmt(&otherwise.stmts, f);
        }
        f(stmt);
    }
}

fn slot(routine: &Routine, index: kvrm_ir::Value) -> u64 {
    let slot = routine.constant(index).expect("register numbers are known");
    assert!(slot < X_SLOTS as u64);
    slot
}

/// For each point of a region, the registers written on some way from the entry to it.
pub(crate) struct Dirty {
    blocks: HashMap<u64, u64>,
    written: HashMap<u64, u64>,
}

impl Dirty {
    pub(crate) fn of(region: &Region) -> Dirty {
        let insns = region.blocks.values().flat_map(|block| &block.insns);
        let written = insns.map(|insn| (insn.pc, registers_written(insn))).collect();
        let mut dirty = Dirty { blocks: HashMap::new(), written };
        let mut pending = vec![(region.entry, 0)];
        while let Some((pc, incoming)) = pending.pop() {
            let Some(block) = region.blocks.get(&pc) else {
                continue;
            };
            let known = dirty.blocks.get(&pc).copied();
            let merged = known.unwrap_or(0) | incoming;
            if known == Some(merged) {
                continue;
            }
            dirty.blocks.insert(pc, merged);
            let outgoing = block.insns.iter().fold(merged, |set, i| set | dirty.written[&i.pc]);
            pending.extend(successors(region, block).into_iter().map(|next| (next, outgoing)));
        }
        dirty
    }

    /// At the start of a block.
    pub(crate) fn at_block(&self, pc: u64) -> u64 {
        self.blocks[&pc]
    }

    /// What one instruction adds.
    pub(crate) fn written_by(&self, pc: u64) -> u64 {
        self.written[&pc]
    }
}

fn registers_written(insn: &Insn) -> u64 {
    let Body::Routine(routine) = &insn.body else {
        return 0;
    };
    let mut written = 0;
    for_each_stmt(&routine.body.stmts, &mut |stmt| {
        if let Op::WriteReg(_, index, _) = stmt.op {
            written |= 1 << slot(routine, index);
        }
    });
    written
}

fn successors(region: &Region, block: &Block) -> Vec<u64> {
    match block.insns.last().map(|last| &last.flow) {
        Some(Flow::Jump(target)) => vec![*target],
        Some(Flow::Branch { taken, otherwise, .. }) => vec![*taken, *otherwise],
        Some(Flow::Indirect(_)) => region.return_sites.clone(),
        Some(Flow::Stop) => vec![],
        Some(Flow::Next) | None => vec![block.next],
    }
}
