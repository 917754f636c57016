//! The functions against the [model](model) with every setting of FPCR, and against [`rustc_apfloat`], which knows nothing of
//! Arm, where IEEE 754 leaves no choice.

mod arithmetic;
mod bfloat;
mod comparisons;
mod conversions;
mod estimates;
mod ieee;
mod model;
mod values;

use kvrm_ir::Function;
use kvrm_ir::legalise::Lacks;
use kvrm_ir::verify::verify;

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
        for _ in 0..100_000 {
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
    all.extend([fp_convert_odd(), fp_convert_bf(), bf_add(), bf_mul()]);
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

#[test]
#[ignore]
fn counts() {
    use kvrm_ir::{Block, Op};
    fn total(block: &Block) -> usize {
        block
            .stmts
            .iter()
            .map(|s| {
                1 + match &s.op {
                    Op::If { then, otherwise, .. } => total(then) + total(otherwise),
                    _ => 0,
                }
            })
            .sum()
    }
    // rare arms are the first ones, except where both are large
    fn common(block: &Block) -> usize {
        block
            .stmts
            .iter()
            .map(|s| {
                1 + match &s.op {
                    Op::If { otherwise, .. } => common(otherwise),
                    _ => 0,
                }
            })
            .sum()
    }
    for f in all() {
        let r = f.routine(Lacks::default());
        println!("{:20} {} {}", f.name, total(&r.body), common(&r.body));
    }
}
