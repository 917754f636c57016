//! Moving statements into the arm of an `if` that they are for.
//!
//! A call with a shortcut is an `if`: one arm has the shortcut's results, the other calls. Where the shortcut does, flags
//! are zero, and what is done if they are not follows the `if`. It belongs into the arm that calls, so that the other one
//! has nothing to do with flags.

use std::collections::HashSet;

use crate::op::*;

/// Moves statements that do nothing if the condition of the `if` before them holds.
pub(crate) fn sink(routine: &mut Routine) {
    let mut at = 0;
    while at < routine.body.stmts.len() {
        let idle = idle_after(routine, at);
        let moved: Vec<Stmt> = routine.body.stmts.drain(at + 1..at + 1 + idle).collect();
        let stmt = &mut routine.body.stmts[at];
        if let Op::If { otherwise, .. } = &mut stmt.op {
            let results = &stmt.results;
            for mut stmt in moved {
                stmt.op.for_each_operand_mut(&mut |v| {
                    if let Some(index) = results.iter().position(|result| result == v) {
                        *v = otherwise.yields[index];
                    }
                });
                otherwise.stmts.push(stmt);
            }
        }
        at += 1;
    }
}

/// How many statements after an `if` do nothing if its condition holds, and have results that nothing else needs.
fn idle_after(routine: &Routine, at: usize) -> usize {
    let stmts = &routine.body.stmts;
    let Op::If { then, .. } = &stmts[at].op else { return 0 };
    let yields = stmts[at].results.iter().zip(&then.yields);
    let is_zero = |v: &Value| routine.constant(*v) == Some(0);
    let mut zeros: HashSet<Value> =
        yields.filter(|(_, v)| is_zero(v)).map(|(result, _)| *result).collect();
    let mut idle = 0;
    for (index, stmt) in stmts[at + 1..].iter().enumerate() {
        let zero = |v: &Value| is_zero(v) || zeros.contains(v);
        match &stmt.op {
            Op::Binary(BinOp::Or, x, y) | Op::Compare(CmpOp::Ne, x, y) if zero(x) && zero(y) => {
                zeros.insert(stmt.results[0]);
            }
            Op::If { cond, otherwise, .. }
                if zero(cond) && otherwise.stmts.is_empty() && stmt.results.is_empty() =>
            {
                idle = index + 1;
            }
            _ => break,
        }
    }
    let (moved, rest) = stmts[at + 1..].split_at(idle);
    let results: HashSet<Value> =
        moved.iter().flat_map(|stmt| stmt.results.iter().copied()).collect();
    let mut is_needed = false;
    let mut check = |v: &Value| is_needed |= results.contains(v);
    rest.iter().for_each(|stmt| stmt.op.for_each_operand(&mut check));
    routine.body.yields.iter().for_each(&mut check);
    routine.end.for_each_operand(&mut check);
    if is_needed { 0 } else { idle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::legalise::{Calls, Lacks, legalise};
    use crate::{Builder, Function};

    static HALF: Function =
        Function::new("Half", &[Type::U32], &[Type::U32; 2], |_, x| vec![x[0] >> 1, x[0] & 1u64])
            .with_shortcut(|b, x| vec![(x[0] & 1u64).eq(0u64), x[0] >> 1, b.u32(0)]);

    const X: Var = Var { id: 0, name: "x", ty: Type::U32 };
    const ODD: Var = Var { id: 1, name: "odd", ty: Type::U32 };

    /// Halves `x` and notes if it was odd; how many `if`s that is, one after the other. `also` is given the condition.
    fn ifs(also: impl FnOnce(&Builder, Value)) -> usize {
        let b = Builder::new(None);
        let results = b.call(&HALF, &[b.read_var(X)]);
        let note = || {
            b.write_var(ODD, b.read_var(ODD) | results[1]);
            []
        };
        let is_odd = results[1].ne(0u64);
        b.if_else(is_odd, note, || []);
        b.write_var(X, results[0]);
        also(&b, is_odd.value());
        let lacks = Lacks { calls: Calls::Shortened, ..Lacks::default() };
        let legal = legalise(&b.finish(), lacks);
        assert_eq!(crate::verify::verify(&legal), Ok(()), "{legal}");
        legal.body.stmts.iter().filter(|stmt| matches!(stmt.op, Op::If { .. })).count()
    }

    #[test]
    fn what_is_idle_goes_where_it_is_not() {
        assert_eq!(ifs(|_, _| {}), 1);
    }

    #[test]
    fn what_is_needed_elsewhere_stays() {
        assert_eq!(ifs(|b, is_odd| b.write_var(ODD, b.val(is_odd).zext(Type::U32))), 2);
    }
}
