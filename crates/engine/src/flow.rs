//! Where control goes after an instruction, read off its routine.

use kvrm_a64::state::PC;
use kvrm_ir::{Op, Routine, Stmt, Value};

/// How control leaves an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To a known address.
    Jump(u64),
    /// To one of two known addresses.
    Branch {
        /// A `bool` of the routine.
        cond: Value,
        /// Where to if it is true.
        taken: u64,
        /// Where to if not.
        otherwise: u64,
    },
    /// To an address computed at run time.
    Indirect(Value),
    /// The lane always stops.
    Stop,
}

impl Flow {
    /// The addresses that are known to follow an instruction at `pc`.
    pub fn successors(&self, pc: u64) -> Vec<u64> {
        match *self {
            Flow::Next => vec![pc.wrapping_add(4)],
            Flow::Jump(target) => vec![target],
            Flow::Branch { taken, otherwise, .. } => vec![otherwise, taken],
            Flow::Indirect(_) | Flow::Stop => vec![],
        }
    }
}

/// Reads off a routine where control goes.
pub fn flow(routine: &Routine) -> Flow {
    let stmts = &routine.body.stmts;
    let always = |s: &Stmt| match s.op {
        Op::Exit { cond, .. } => routine.constant(cond).is_some(),
        _ => false,
    };
    if stmts.iter().any(always) {
        return Flow::Stop;
    }
    let target = stmts.iter().rev().find_map(|s| match s.op {
        Op::WriteVar(var, value) if var.id == PC.id => Some(value),
        _ => None,
    });
    let Some(target) = target else {
        assert!(!routine.writes_var(PC), "branches are not nested in ifs");
        return Flow::Next;
    };
    if let Some(pc) = routine.constant(target) {
        return Flow::Jump(pc);
    }
    let definition = stmts.iter().find(|s| s.results.contains(&target));
    if let Some(Stmt { op: Op::Select(cond, a, b), .. }) = definition
        && let (Some(taken), Some(otherwise)) = (routine.constant(*a), routine.constant(*b))
    {
        return Flow::Branch { cond: *cond, taken, otherwise };
    }
    Flow::Indirect(target)
}

/// True for a branch at `pc` that also writes its return address to a register.
pub fn is_call(routine: &Routine, flow: &Flow, pc: u64) -> bool {
    let return_address = pc.wrapping_add(4);
    *flow != Flow::Next
        && routine.body.stmts.iter().any(|s| match s.op {
            Op::WriteReg(_, _, value) => routine.constant(value) == Some(return_address),
            _ => false,
        })
}
