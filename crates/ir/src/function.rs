//! Pure functions that routines call.

use std::fmt;
use std::sync::OnceLock;

use crate::builder::Builder;
use crate::legalise::Lacks;
use crate::op::{Routine, Type};
use crate::val::Val;

/// Builds what a function does: its results, given its parameters.
pub type Body = for<'b> fn(&'b Builder, &[Val<'b>]) -> Vec<Val<'b>>;

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
        Function { name, params, results, build, shortcut: None, reference: OnceLock::new() }
    }

    /// The same with a shortcut, which is quicker where it does: it gives a `bool` before the results, and these only
    /// count if that is true.
    pub const fn with_shortcut(mut self, shortcut: Body) -> Function {
        self.shortcut = Some(shortcut);
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

    /// Builds its shortcut, for all sets of arguments: whether that does for all of them, so that there is one branch, and
    /// the results.
    pub(crate) fn shortcut<'b>(
        &self,
        b: &'b Builder,
        args: &[Val<'b>],
    ) -> Option<(Val<'b>, Vec<Val<'b>>)> {
        let shortcut = self.shortcut?;
        let mut does = b.bool(true);
        let mut results = Vec::new();
        for args in args.chunks(self.params.len()) {
            let taken = shortcut(b, args);
            does = does & taken[0];
            results.extend_from_slice(&taken[1..]);
        }
        Some((does, results))
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
