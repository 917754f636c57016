//! Dead-code removal.

use crate::op::{Block, Op, Routine, Value};

/// Removes statements whose results nobody uses and which have no effect of their own.
pub(crate) fn remove_dead(routine: &mut Routine) {
    let mut live = vec![false; routine.values.len()];
    sweep(&mut routine.body, &mut live);
}

/// Walks backwards: by the time a statement is reached, its uses are known.
fn sweep(block: &mut Block, live: &mut [bool]) {
    let is_live = |live: &[bool], v: &Value| live[v.0 as usize];
    block.yields.iter().for_each(|v| live[v.0 as usize] = true);
    let mut kept = Vec::with_capacity(block.stmts.len());
    for mut stmt in std::mem::take(&mut block.stmts).into_iter().rev() {
        if stmt.op.is_removable() && !stmt.results.iter().any(|v| is_live(live, v)) {
            continue;
        }
        if let Op::If { then, otherwise, .. } = &mut stmt.op {
            sweep(then, live);
            sweep(otherwise, live);
        }
        stmt.op.for_each_operand(&mut |v| live[v.0 as usize] = true);
        kept.push(stmt);
    }
    kept.reverse();
    block.stmts = kept;
}
