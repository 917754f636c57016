//! Taking a routine apart at its calls.
//!
//! A target without real calls (a shader's compiler writes a function wherever it is called) can still have each
//! function in one place, if control comes by there: a routine says which function it wants, with which operands,
//! and goes on later. [`pieces`] makes of a routine what is before, between and after its calls.
//!
//! What depends on no call is computed in every piece that uses it: it is little, such as taking an element out of a
//! register. What depends on a call is computed as soon as it can be, so that as few values as possible have
//! to be kept from one piece to the next. The last piece does everything that has an effect.

use std::collections::{BTreeMap, BTreeSet};

use crate::dce::remove_dead_stmts;
use crate::function::Function;
use crate::op::*;

/// A part of a routine that ends with a call, or with the routine's end.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Values of earlier pieces that it uses, and where they are kept.
    pub restored: Vec<(Value, Slot)>,
    /// Those results of the call before it that it uses, with their numbers.
    pub results: Vec<(usize, Value)>,
    /// What it does.
    pub stmts: Vec<Stmt>,
    /// Values that later pieces use, and where to keep them. What it restores is read before.
    pub saved: Vec<(Value, Slot)>,
    /// The call and its operands; none in the last piece.
    pub call: Option<(&'static Function, Vec<Value>)>,
}

/// A place for a value from one piece to another: one of several for its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Type of the value.
    pub ty: Type,
    /// Which of those for the type.
    pub index: u32,
}

/// The pieces of a routine, in order. `None` if there is no call, if one is within an `if`, or if anything before the last
/// one has an effect.
///
/// ```
/// use kvrm_ir::{Builder, Function, Type, pieces::pieces};
/// static TWICE: Function = Function::new("twice", &[Type::U64], &[Type::U64], |_, args| vec![args[0] + args[0]]);
/// let b = Builder::new(None);
/// let twice = b.call(&TWICE, &[b.count()])[0];
/// b.write_var(kvrm_ir::Var { id: 0, name: "v", ty: Type::U64 }, twice);
/// let pieces = pieces(&b.finish()).unwrap();
/// assert_eq!(pieces.len(), 2);
/// assert!(pieces[0].call.is_some() && pieces[1].call.is_none());
/// ```
pub fn pieces(routine: &Routine) -> Option<Vec<Piece>> {
    let stmts = &routine.body.stmts;
    let is_call = |stmt: &Stmt| matches!(stmt.op, Op::Call(..));
    let last = stmts.iter().rposition(is_call)?;
    let mut calls = 0;
    routine.body.for_each_stmt(&mut |stmt| calls += usize::from(is_call(stmt)));
    let all_are_outside = calls == stmts.iter().filter(|stmt| is_call(stmt)).count();
    let has_effect = stmts[..last].iter().any(|stmt| !stmt.op.is_removable());
    (all_are_outside && !has_effect).then(|| Splitter::new(routine, calls).split())
}

struct Splitter<'a> {
    routine: &'a Routine,
    /// How many calls must have been made before a value can be computed.
    after: Vec<usize>,
    calls: Vec<&'a Stmt>,
    /// Statements other than calls, each with the piece it belongs to, or 0 if it can be in any.
    stmts: Vec<(usize, &'a Stmt)>,
}

impl<'a> Splitter<'a> {
    fn new(routine: &'a Routine, calls: usize) -> Self {
        let after = vec![0; routine.values.len()];
        let mut splitter = Splitter { routine, after, calls: Vec::new(), stmts: Vec::new() };
        let mut written = false;
        for stmt in &routine.body.stmts {
            let mut after = 0;
            stmt.op.for_each_operand(&mut |v| after = after.max(splitter.after[v.0 as usize]));
            if matches!(stmt.op, Op::Call(..)) {
                splitter.calls.push(stmt);
                after = splitter.calls.len();
            } else {
                let has_effect = !stmt.op.is_removable();
                if has_effect || written && reads_state(stmt) {
                    after = calls;
                }
                written |= has_effect;
                splitter.stmts.push((after, stmt));
            }
            for v in &stmt.results {
                splitter.after[v.0 as usize] = after;
            }
        }
        splitter
    }

    fn split(&self) -> Vec<Piece> {
        // Backwards: by the time a piece is reached, it is known what later ones need.
        let mut needed = BTreeSet::new();
        let mut last_uses = BTreeMap::new();
        let mut pieces: Vec<Piece> = (0..=self.calls.len())
            .rev()
            .map(|number| self.piece(number, &mut needed, &mut last_uses))
            .collect();
        pieces.reverse();
        give_slots(self.routine, &mut pieces, &last_uses);
        pieces
    }

    /// A piece, without slots. `needed` are the values that later pieces need, and then those that it needs from earlier
    /// ones.
    fn piece(
        &self,
        number: usize,
        needed: &mut BTreeSet<Value>,
        last_uses: &mut BTreeMap<Value, usize>,
    ) -> Piece {
        let saved: Vec<Value> =
            needed.iter().copied().filter(|v| self.after[v.0 as usize] == number).collect();
        needed.retain(|v| self.after[v.0 as usize] < number);
        let call = self.calls.get(number).map(|stmt| match &stmt.op {
            Op::Call(function, args) => (*function, args.clone()),
            _ => unreachable!("collected as calls"),
        });

        let mut live = vec![false; self.routine.values.len()];
        let mut mark = |v: &Value| live[v.0 as usize] = true;
        saved.iter().for_each(&mut mark);
        match &call {
            Some((_, args)) => args.iter().for_each(mark),
            None => {
                self.routine.body.yields.iter().for_each(&mut mark);
                self.routine.end.for_each_operand(&mut mark);
            }
        }
        let here = self.stmts.iter().filter(|(after, _)| *after == 0 || *after == number);
        let mut stmts: Vec<Stmt> = here.map(|(_, stmt)| (*stmt).clone()).collect();
        remove_dead_stmts(&mut stmts, &mut live);

        let from_before = |v: &Value| (1..number).contains(&self.after[v.0 as usize]);
        let used = (0..live.len()).filter(|i| live[*i]).map(|i| Value(i as u32));
        let restored: Vec<Value> = used.filter(from_before).collect();
        for v in &restored {
            last_uses.entry(*v).or_insert(number);
        }
        needed.extend(&restored);

        let results = number.checked_sub(1).map_or(&[][..], |before| &self.calls[before].results);
        let results = results.iter().copied().enumerate();
        let unplaced = |v: Value| (v, Slot { ty: self.routine.value(v).ty, index: 0 });
        Piece {
            restored: restored.into_iter().map(unplaced).collect(),
            results: results.filter(|(_, v)| live[v.0 as usize]).collect(),
            stmts,
            saved: saved.into_iter().map(unplaced).collect(),
            call,
        }
    }
}

/// True if what it computes depends on what was written before.
fn reads_state(stmt: &Stmt) -> bool {
    match &stmt.op {
        Op::ReadReg(..) | Op::ReadVar(_) | Op::Test(_) | Op::Load { .. } => true,
        Op::If { then, otherwise, .. } => {
            then.stmts.iter().chain(&otherwise.stmts).any(reads_state)
        }
        _ => false,
    }
}

/// Gives each value that is kept a slot that no other one needs at the same time.
fn give_slots(routine: &Routine, pieces: &mut [Piece], last_uses: &BTreeMap<Value, usize>) {
    let mut slots: BTreeMap<Value, Slot> = BTreeMap::new();
    for (number, piece) in pieces.iter_mut().enumerate() {
        for (v, slot) in &mut piece.restored {
            *slot = slots[v];
        }
        slots.retain(|v, _| last_uses[v] > number);
        for (v, slot) in &mut piece.saved {
            let ty = routine.value(*v).ty;
            let taken: BTreeSet<Slot> = slots.values().copied().collect();
            let mut all = (0..).map(|index| Slot { ty, index });
            *slot = all.find(|slot| !taken.contains(slot)).expect("there is always one more");
            slots.insert(*v, *slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Builder;
    use crate::eval::{Inputs, eval_results};
    use crate::val::Val;

    /// The sum, and whether it wrapped.
    static SUM: Function =
        Function::new("sum", &[Type::U64; 2], &[Type::U64, Type::U32], |_, args| {
            let sum = args[0] + args[1];
            vec![sum, sum.ult(args[0]).zext(Type::U32)]
        });

    const VAR: Var = Var { id: 0, name: "v", ty: Type::U64 };

    struct Variable(u64);

    impl Inputs for Variable {
        fn word(&self) -> u32 {
            unreachable!("not asked for")
        }

        fn param(&self, _: u8) -> u64 {
            unreachable!("not asked for")
        }

        fn read_var(&self, _: Var) -> u64 {
            self.0
        }
    }

    /// The results of a routine that is run piece by piece, with the contents of slots kept in between.
    fn run(routine: &Routine, inputs: &Variable) -> Vec<u64> {
        let mut slots: BTreeMap<Slot, u64> = BTreeMap::new();
        let mut results = Vec::new();
        for piece in pieces(routine).unwrap() {
            let mut part = routine.clone();
            let mut set = |v: Value, bits| part.values[v.0 as usize].constant = Some(bits);
            piece.restored.iter().for_each(|(v, slot)| set(*v, slots[slot]));
            piece.results.iter().for_each(|(i, v)| set(*v, results[*i]));
            part.body.stmts = piece.stmts;
            let (kept, keep): (Vec<Value>, Vec<Slot>) = piece.saved.into_iter().unzip();
            let wanted = piece.call.as_ref().map_or(&routine.body.yields, |(_, args)| args);
            part.body.yields = [&kept[..], wanted].concat();
            let mut values = eval_results(&part, inputs);
            let wanted = values.split_off(kept.len());
            slots.extend(keep.into_iter().zip(values));
            results = match piece.call {
                Some((function, _)) => function.eval(&wanted),
                None => wanted,
            };
        }
        results
    }

    fn built(build: impl for<'b> Fn(&'b Builder) -> Vec<Val<'b>>) -> Routine {
        let b = Builder::new(None);
        let results: Vec<Value> = build(&b).into_iter().map(Val::value).collect();
        b.finish_with(&results)
    }

    /// As instructions on vectors do it: each element by itself, all flags together.
    fn each_element(b: &Builder) -> Vec<Val<'_>> {
        let input = b.read_var(VAR);
        let sums = (0..4u32).map(|i| b.call(&SUM, &[input << (i * 8), input]));
        let sums: Vec<_> = sums.collect();
        let flags = sums.iter().map(|sum| sum[1]).reduce(|all, one| all | one);
        let packed = sums.iter().map(|sum| sum[0]).reduce(|all, one| (all << 8) ^ one);
        vec![packed.unwrap(), flags.unwrap()]
    }

    /// Operands that are earlier results, used once more at the end.
    fn chain(b: &Builder) -> Vec<Val<'_>> {
        let first = b.call(&SUM, &[b.read_var(VAR), b.u64(3)]);
        let second = b.call(&SUM, &[first[0], first[0] >> 7]);
        let third = b.call(&SUM, &[second[0], first[1].zext(Type::U64)]);
        vec![first[0] ^ third[0], second[1] | third[1]]
    }

    #[test]
    fn pieces_do_what_the_routine_does() {
        for build in [each_element, chain] {
            let routine = built(build);
            for input in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
                let input = Variable(input);
                assert_eq!(run(&routine, &input), eval_results(&routine, &input));
            }
        }
    }

    #[test]
    fn little_is_kept() {
        let pieces = pieces(&built(each_element)).unwrap();
        let kept: BTreeSet<Slot> =
            pieces.iter().flat_map(|piece| &piece.saved).map(|(_, slot)| *slot).collect();
        let slot = |ty| Slot { ty, index: 0 };
        assert_eq!(kept, BTreeSet::from([slot(Type::U32), slot(Type::U64)]));
    }

    /// A variable that is read after it was written has the new value, so the reading must not move.
    #[test]
    fn what_is_read_after_a_write_is_in_the_last_piece() {
        let b = Builder::new(None);
        let first = b.call(&SUM, &[b.read_var(VAR), b.u64(3)])[0];
        let second = b.call(&SUM, &[first, first])[0];
        b.write_var(VAR, second);
        b.write_var(VAR, first + b.read_var(VAR));
        let pieces = pieces(&b.finish()).unwrap();
        let reads = |piece: &Piece| piece.stmts.iter().filter(|stmt| reads_state(stmt)).count();
        assert_eq!(pieces.iter().map(reads).collect::<Vec<_>>(), [1, 0, 1]);
    }

    #[test]
    fn some_routines_stay_whole() {
        assert!(pieces(&built(|b| vec![b.read_var(VAR)])).is_none());
        let within = built(|b| {
            let input = b.read_var(VAR);
            b.choose(input.eq(0u64), || vec![b.call(&SUM, &[input, input])[0]], || vec![input])
        });
        assert!(pieces(&within).is_none());
        let b = Builder::new(None);
        b.write_var(VAR, b.u64(1));
        b.write_var(VAR, b.call(&SUM, &[b.u64(1), b.count()])[0]);
        assert!(pieces(&b.finish()).is_none());
    }
}
