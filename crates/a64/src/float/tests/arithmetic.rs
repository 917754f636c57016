//! Sums, products, quotients and roots.

use kvrm_random::Random;

use super::model::Model;
use super::values;
use super::*;

/// The function does what the model does.
fn check<const N: usize>(
    name: &str,
    lookup: fn(Format) -> &'static Function,
    model: impl Fn(&mut Model, [u64; N]) -> u64,
) {
    for format in FORMATS {
        let mut random = Random::part(1, u64::from(format.bits) * 8 + N as u64);
        for _ in 0..100_000 {
            let fpcr = values::fpcr(&mut random);
            let ops: [u64; N] = values::operands(&mut random, format);
            let mut expected = Model::new(format, fpcr);
            let result = model(&mut expected, ops);
            let mut args = ops.to_vec();
            args.push(fpcr.into());
            let got = eval(lookup(format), &args);
            let expected = [result, expected.fpsr.into()];
            assert_eq!(got, expected, "{name} {format:?} {ops:x?} with FPCR {fpcr:#x}: {got:x?}");
        }
    }
}

#[test]
fn sums() {
    check("add", fp_add, |model, [x, y]| model.add(x, y));
    check("sub", fp_sub, |model, [x, y]| model.sub(x, y));
}

#[test]
fn products() {
    check("mul", fp_mul, |model, [x, y]| model.mul(x, y));
}

#[test]
fn fused_sums() {
    check("fma", fp_mul_add, |model, [a, x, y]| model.mul_add(a, x, y));
}

#[test]
fn quotients() {
    check("div", fp_div, |model, [x, y]| model.div(x, y));
}

#[test]
fn roots() {
    check("sqrt", fp_sqrt, |model, [x]| model.sqrt(x));
}
