//! Dead-code removal.

use crate::op::{Block, Op, Routine, Stmt, Value};

/// Removes statements whose results nobody uses and which have no effect of their own.
pub(crate) fn remove_dead(routine: &mut Routine) {
    let mut live = vec![false; routine.values.len()];
    let mut mark = |v: &Value| live[v.0 as usize] = true;
    routine.end.for_each_operand(&mut mark);
    routine.body.yields.iter().for_each(mark);
    remove_dead_stmts(&mut routine.body.stmts, &mut live);
}

/// Removes such statements from a list. `live` are the values that what follows the list uses, and then
/// also those that the list uses.
pub fn remove_dead_stmts(stmts: &mut Vec<Stmt>, live: &mut [bool]) {
    // Backwards: by the time a statement is reached, its uses are known.
    let mut kept = Vec::with_capacity(stmts.len());
    for mut stmt in std::mem::take(stmts).into_iter().rev() {
        let is_live = stmt.results.iter().any(|v| live[v.0 as usize]);
        if stmt.op.is_removable() && !is_live {
            continue;
        }
        if let Op::If { then, otherwise, .. } = &mut stmt.op {
            drop_dead_results(&mut stmt.results, [then, otherwise], live);
            for Block { stmts, yields } in [then, otherwise] {
                yields.iter().for_each(|v| live[v.0 as usize] = true);
                remove_dead_stmts(stmts, live);
            }
        }
        stmt.op.for_each_operand(&mut |v| live[v.0 as usize] = true);
        kept.push(stmt);
    }
    kept.reverse();
    *stmts = kept;
}

/// Removes the results of an `if` that nobody uses.
fn drop_dead_results(results: &mut Vec<Value>, arms: [&mut Block; 2], live: &[bool]) {
    let used: Vec<bool> = results.iter().map(|v| live[v.0 as usize]).collect();
    for values in arms.map(|arm| &mut arm.yields).into_iter().chain([results]) {
        let mut used = used.iter();
        values.retain(|_| *used.next().expect("each arm yields what the `if` results in"));
    }
}
