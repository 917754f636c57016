//! Pure functions that routines call.

use std::fmt;
use std::sync::OnceLock;

use crate::builder::Builder;
use crate::legalise::Lacks;
use crate::op::{Routine, Type};
use crate::val::Val;

/// Builds what a function does: its results, given its parameters.
pub type Body = for<'b> fn(&'b Builder, &[Val<'b>]) -> Vec<Val<'b>>;

/// What a shortcut gives.
pub(crate) struct Shortcut<'b> {
    /// Whether all results count, so that there is one branch.
    pub(crate) does: Val<'b>,
    /// Whether those for each set of arguments do.
    each: Vec<Val<'b>>,
    /// All results.
    pub(crate) results: Vec<Val<'b>>,
}

/// A function from values to values, without effects. Routines [call](crate::Op::Call) it where the same work in each of
/// them would be too much code. An engine writes it once, in the way that suits its target.
///
/// ```
/// use kvrm_ir::{Builder, Function, Type, legalise::Lacks};
/// static AVERAGE: Function = Function::new("average", &[Type::U64; 2], &[Type::U64], |_, args| {
///     let [x, y] = [args[0], args[1]];
///     vec![(x & y) + ((x ^ y) >> 1)]
/// });
/// assert_eq!(AVERAGE.eval(&[6, 10]), [8]);
/// let routine = AVERAGE.routine(Lacks::default());
/// assert_eq!(routine.body.yields.len(), 1);
/// ```
pub struct Function {
    /// Unique among all functions, and an identifier in every language.
    pub name: &'static str,
    /// Types of the parameters.
    pub params: &'static [Type],
    /// Types of the results.
    pub results: &'static [Type],
    build: Body,
    shortcut: Option<Body>,
    detour: Option<Body>,
    /// For the evaluator.
    reference: OnceLock<Routine>,
}

impl Function {
    /// Declares a function.
    pub const fn new(
        name: &'static str,
        params: &'static [Type],
        results: &'static [Type],
        build: Body,
    ) -> Function {
        let (shortcut, detour) = (None, None);
        Function { name, params, results, build, shortcut, detour, reference: OnceLock::new() }
    }

    /// The same with a shortcut, which is quicker where it does: it gives a `bool` before the results, and these only
    /// count if that is true.
    pub const fn with_shortcut(mut self, shortcut: Body) -> Function {
        self.shortcut = Some(shortcut);
        self
    }

    /// The same with a second look at the shortcut's results where these do not count: given the arguments and the results,
    /// it says whether they are right nevertheless.
    pub const fn with_detour(mut self, detour: Body) -> Function {
        self.detour = Some(detour);
        self
    }

    /// What it does, as a routine for a target: it reads `param`s, and its body yields the results.
    pub fn routine(&self, lacks: Lacks) -> Routine {
        let b = Builder::for_target(lacks);
        let results = self.build(&b);
        b.finish_with(&results)
    }

    fn build(&self, b: &Builder) -> Vec<crate::op::Value> {
        (self.build)(b, &self.params_in(b)).into_iter().map(Val::value).collect()
    }

    fn params_in<'b>(&self, b: &'b Builder) -> Vec<Val<'b>> {
        let params = self.params.iter().enumerate();
        params.map(|(i, ty)| b.param(*ty, i as u8)).collect()
    }

    /// A call of it as a routine for a target, with the routine's `param`s as arguments.
    pub fn call_routine(&'static self, lacks: Lacks) -> Routine {
        let b = Builder::for_target(lacks);
        let results = b.call(self, &self.params_in(&b));
        let results: Vec<_> = results.into_iter().map(Val::value).collect();
        b.finish_with(&results)
    }

    /// Builds what it does, for these arguments.
    pub(crate) fn inlined<'b>(&self, b: &'b Builder, args: &[Val<'b>]) -> Vec<Val<'b>> {
        (self.build)(b, args)
    }

    /// Builds its shortcut, for all sets of arguments, unless it never does for these.
    pub(crate) fn shortcut<'b>(&self, b: &'b Builder, args: &[Val<'b>]) -> Option<Shortcut<'b>> {
        let shortcut = self.shortcut?;
        let mut each = Vec::new();
        let mut results = Vec::new();
        for args in args.chunks(self.params.len()) {
            let taken = shortcut(b, args);
            each.push(taken[0]);
            results.extend_from_slice(&taken[1..]);
        }
        let does = each.iter().fold(b.bool(true), |all, does| all & *does);
        (does.constant() != Some(0)).then_some(Shortcut { does, each, results })
    }

    /// Builds a second look at the results of its shortcut, after some of them did not count: whether all are right.
    pub(crate) fn detour<'b>(
        &self,
        b: &'b Builder,
        args: &[Val<'b>],
        taken: &Shortcut<'b>,
    ) -> Val<'b> {
        let Some(detour) = self.detour else { return b.bool(false) };
        let results = taken.results.chunks(self.results.len());
        let sets = args.chunks(self.params.len()).zip(results);
        let right = sets.map(|(args, results)| detour(b, &[args, results].concat())[0]);
        let each: Vec<_> = match taken.each.as_slice() {
            // It is known that it does not.
            [_] => right.collect(),
            many => right.zip(many).map(|(right, does)| right | *does).collect(),
        };
        each.into_iter().fold(b.bool(true), |all, right| all & right)
    }

    /// What it does with all operations allowed.
    pub(crate) fn reference(&self) -> &Routine {
        self.reference.get_or_init(|| self.routine(Lacks::default()))
    }

    /// The results for these arguments, by the evaluator.
    pub fn eval(&self, args: &[u64]) -> Vec<u64> {
        crate::eval::call(self, args)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Inputs, eval_results};
    use crate::legalise::Calls;
    use crate::op::Var;

    /// Half of a number and the rest. The shortcut is for even numbers; a second look takes seven for one, so that a
    /// wrong result shows where it counts.
    static HALF: Function =
        Function::new("Half", &[Type::U32], &[Type::U32; 2], |_, x| vec![x[0] >> 1, x[0] & 1u64])
            .with_shortcut(|b, x| vec![(x[0] & 1u64).eq(0u64), x[0] >> 1, b.u32(0)])
            .with_detour(|_, x| vec![x[0].eq(7u64) & x[1].eq(3u64) & x[2].eq(0u64)]);

    struct Params([u64; 2]);

    impl Inputs for Params {
        fn word(&self) -> u32 {
            unreachable!("functions have no word")
        }

        fn param(&self, index: u8) -> u64 {
            self.0[usize::from(index)]
        }

        fn read_var(&self, _: Var) -> u64 {
            unreachable!("functions read no state")
        }
    }

    /// Calls the function for two numbers at once.
    fn halves(numbers: [u64; 2]) -> Vec<u64> {
        let b = Builder::for_target(Lacks { calls: Calls::Shortened, ..Lacks::default() });
        let args = [0, 1].map(|i| b.param(Type::U32, i));
        let results: Vec<_> = b.call(&HALF, &args).into_iter().map(Val::value).collect();
        eval_results(&b.finish_with(&results), &Params(numbers))
    }

    #[test]
    fn a_shortcut_gets_a_second_look() {
        assert_eq!(halves([4, 6]), [2, 0, 3, 0]);
        assert_eq!(halves([7, 6]), [3, 0, 3, 0]);
        assert_eq!(halves([7, 7]), [3, 0, 3, 0]);
    }

    #[test]
    fn one_call_that_needs_the_function_takes_all_there() {
        assert_eq!(halves([5, 6]), [2, 1, 3, 0]);
        assert_eq!(halves([7, 5]), [3, 1, 2, 1]);
    }
}
