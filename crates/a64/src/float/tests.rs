//! The functions against the [model](model) with every setting of FPCR, and against [`rustc_apfloat`], which
//! knows nothing of Arm, where IEEE 754 leaves no choice.

mod arithmetic;
mod bfloat;
mod comparisons;
mod conversions;
mod estimates;
mod ieee;
mod model;
mod values;

use kvrm_ir::eval::{Inputs, eval_results};
use kvrm_ir::legalise::{Calls, Lacks};
use kvrm_ir::verify::verify;
use kvrm_ir::{Block, Function, Op, Type, Var};

use kvrm_random::Random;
use model::Model;

use super::*;
use crate::Sign;

const FORMATS: [Format; 3] = [HALF, SINGLE, DOUBLE];

/// The two results of a function.
fn eval(function: &Function, args: &[u64]) -> [u64; 2] {
    function.eval(args).try_into().expect("a number and flags")
}

/// What a function gives is as expected.
#[track_caller]
fn assert_same(function: &Function, args: &[u64], result: u64, model: &Model) {
    let got = eval(function, args);
    let expected = [result, model.fpsr.into()];
    let name = function.name;
    assert_eq!(got, expected, "{name} {args:x?} is {got:x?}, expected {expected:x?}");
}

/// Calls `test` with a source of numbers and an FPCR, many times.
fn many(part: u64, times: u32, mut test: impl FnMut(&mut Random, u32)) {
    let mut random = Random::part(3, part);
    for _ in 0..times {
        let fpcr = values::fpcr(&mut random);
        test(&mut random, fpcr);
    }
}

/// The functions of a family do what the model does, for hard operands and any FPCR.
fn check<const N: usize>(
    lookup: fn(Format) -> &'static Function,
    model: impl Fn(&mut Model, [u64; N]) -> u64,
) {
    for format in FORMATS {
        let function = lookup(format);
        let mut random = Random::part(1, u64::from(format.bits) * 8 + N as u64);
        for _ in 0..200_000 {
            let fpcr = values::fpcr(&mut random);
            let ops: [u64; N] = values::operands(&mut random, format);
            let mut expected = Model::new(format, fpcr);
            let result = model(&mut expected, ops);
            let args: Vec<u64> = ops.into_iter().chain([fpcr.into()]).collect();
            assert_same(function, &args, result, &expected);
        }
    }
}

/// Pairs of different formats.
fn pairs() -> impl Iterator<Item = (Format, Format)> {
    let pairs = FORMATS.into_iter().flat_map(|from| FORMATS.map(|to| (from, to)));
    pairs.filter(|(from, to)| from != to)
}

/// Formats with the widths and signs of integers that they are converted to and from.
fn integers() -> impl Iterator<Item = (Format, (u32, Sign))> {
    let ranges = [16, 32, 64]
        .into_iter()
        .flat_map(|bits| [Sign::Signed, Sign::Unsigned].map(|sign| (bits, sign)));
    let all = FORMATS.into_iter().flat_map(move |format| ranges.clone().map(move |r| (format, r)));
    all.filter(|(format, (bits, _))| format.bits == 16 || *bits != 16)
}

/// Every function, for what holds of all.
fn all() -> Vec<&'static Function> {
    let by_format = [
        fp_add,
        fp_sub,
        fp_mul,
        fp_mul_add,
        fp_div,
        fp_sqrt,
        fp_compare,
        fp_compare_signalling,
        fp_compare_eq,
        fp_compare_ge,
        fp_compare_gt,
        fp_max,
        fp_min,
        fp_max_num,
        fp_min_num,
        fp_round_int,
        fp_mul_x,
        fp_recip_estimate,
        fp_rsqrt_estimate,
        fp_recip_step_fused,
        fp_rsqrt_step_fused,
        fp_recp_x,
    ];
    let mut all: Vec<_> = by_format.iter().flat_map(|function| FORMATS.map(function)).collect();
    all.extend(pairs().map(|(from, to)| fp_convert(from, to)));
    for (format, (bits, sign)) in integers() {
        all.extend([fp_to_fixed(format, bits, sign), fixed_to_fp(format, bits, sign)]);
    }
    let sizes = [(SINGLE, 32), (SINGLE, 64), (DOUBLE, 32), (DOUBLE, 64)];
    all.extend(sizes.map(|(format, bits)| fp_round_int_n(format, bits)));
    all.extend([unsigned_recip_estimate(), unsigned_rsqrt_estimate(), fp_to_fixed_js()]);
    all.extend([fp_convert_odd(), fp_convert_bf(), fp_add_bf16(), bf_mul_h()]);
    all
}

#[test]
fn functions_are_sound_and_have_different_names() {
    let mut names: Vec<_> = all().iter().map(|function| function.name).collect();
    names.sort();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    for function in all() {
        let routine = function.routine(Lacks::default());
        assert_eq!(verify(&routine), Ok(()), "{}", function.name);
        let types: Vec<_> = routine.body.yields.iter().map(|v| routine.value(*v).ty).collect();
        assert_eq!(types, function.results, "{}", function.name);
    }
}

/// Arguments of any kind.
struct Arguments(Vec<u64>);

impl Inputs for Arguments {
    fn word(&self) -> u32 {
        unreachable!("a function has parameters only")
    }

    fn param(&self, index: u8) -> u64 {
        self.0[usize::from(index)]
    }

    fn read_var(&self, _: Var) -> u64 {
        unreachable!("a function has parameters only")
    }
}

#[test]
fn poor_targets_get_the_same_results() {
    let mut random = Random::new(12);
    for function in all() {
        let routine = function.routine(Lacks::EVERYTHING);
        assert_eq!(verify(&routine), Ok(()), "{}", function.name);
        for _ in 0..1000 {
            let fpcr = u64::from(values::fpcr(&mut random));
            let arg = |ty: &Type| match (ty, random.below(4)) {
                (Type::U64, 0) => random.hard_value(),
                (Type::U64, _) => values::operand(&mut random, DOUBLE),
                (_, 0) => values::operand(&mut random, HALF),
                (_, _) => values::operand(&mut random, SINGLE),
            };
            let mut args: Vec<u64> = function.params.iter().map(arg).collect();
            if random.once_in(2) {
                *args.last_mut().expect("all functions have parameters") = fpcr;
            }
            let expected = function.eval(&args);
            let said = format!("{} {args:x?}", function.name);
            assert_eq!(eval_results(&routine, &Arguments(args)), expected, "{said}");
        }
    }
}

#[test]
fn shortcuts_lead_to_the_same_results() {
    let lacks = Lacks { calls: Calls::Shortened, ..Lacks::default() };
    let mut random = Random::new(13);
    for function in all().into_iter().filter(|function| function.params.len() > 1) {
        let routine = function.call_routine(lacks);
        assert_eq!(verify(&routine), Ok(()), "{}", function.name);
        let formats = FORMATS.into_iter().filter(|format| format.ty() == function.params[0]);
        for format in formats {
            for _ in 0..20_000 {
                let fpcr = if random.once_in(4) { values::fpcr(&mut random) } else { 0 };
                let ixc = if random.once_in(8) { 0 } else { IXC };
                let operands: [u64; 3] = values::operands(&mut random, format);
                let mut args = operands[..function.params.len() - 1].to_vec();
                // The operands of some functions after the first choose what they do.
                let choices = function.params.len() > 2 && function.params[1] != function.params[0];
                if choices || random.once_in(4) {
                    args[1..].iter_mut().for_each(|arg| *arg = random.below(5));
                }
                args.push((fpcr | ixc).into());
                let said = format!("{} {args:x?}", function.name);
                let mut expected = function.eval(&args);
                let mut got = eval_results(&routine, &Arguments(args));
                // What FPSR has already makes no difference.
                for results in [&mut expected, &mut got] {
                    *results.last_mut().expect("functions have results") |= u64::from(ixc);
                }
                assert_eq!(got, expected, "{said}");
            }
        }
    }
}

/// Statements that are executed if none of the rare cases occurs, which are the first arms.
fn ordinary(block: &Block) -> usize {
    let statements = block.stmts.iter().map(|stmt| match &stmt.op {
        Op::If { otherwise, .. } => 1 + ordinary(otherwise),
        _ => 1,
    });
    statements.sum()
}

/// All statements.
fn total(block: &Block) -> usize {
    let statements = block.stmts.iter().map(|stmt| match &stmt.op {
        Op::If { then, otherwise, .. } => 1 + total(then) + total(otherwise),
        _ => 1,
    });
    statements.sum()
}

#[test]
fn ordinary_numbers_take_few_statements() {
    let limits = [
        (fp_add(SINGLE), 70, 160),
        (fp_add(DOUBLE), 76, 165),
        (fp_mul(SINGLE), 60, 185),
        (fp_mul(DOUBLE), 65, 195),
        (fp_mul_add(SINGLE), 105, 285),
        (fp_mul_add(DOUBLE), 145, 335),
        (fp_div(SINGLE), 83, 210),
        (fp_div(DOUBLE), 99, 230),
        (fp_sqrt(SINGLE), 76, 155),
        (fp_sqrt(DOUBLE), 90, 170),
    ];
    for (function, most_ordinary, most) in limits {
        let body = function.routine(Lacks::default()).body;
        let counts = (ordinary(&body), total(&body));
        let (name, limit) = (function.name, (most_ordinary, most));
        println!("{name}: {counts:?}");
        assert!(counts.0 <= limit.0 && counts.1 <= limit.1, "{name}: {counts:?}, not {limit:?}");
    }
}
