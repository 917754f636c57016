//! The Brain format.

use super::model::{Class, Mode, Operand, Real};
use super::*;

/// The format, as IEEE 754 would have it.
const BRAIN: Format = Format { bits: 16, exponent: 8, fraction: 7 };

#[test]
fn conversions() {
    many(9, 200_000, |random, fpcr| {
        let op = match random.once_in(2) {
            true => values::operand(random, SINGLE),
            false => values::near_format(random, SINGLE, BRAIN),
        };
        let mut model = Model::new(SINGLE, fpcr);
        let operand = model.unpack(op);
        let result = match operand.class {
            Class::Quiet | Class::Signalling => model.process_nan(operand) >> 16,
            Class::Infinity => model.infinity(operand.sign) >> 16,
            Class::Zero => model.zero(operand.sign) >> 16,
            Class::Finite => {
                // It is flushed as singles are.
                let fpcr = fpcr & !(1 << FZ16) | (fpcr >> FZ & 1) << FZ16;
                let mut rounding = Model::new(BRAIN, fpcr);
                let result = rounding.round(operand.value);
                model.raise(rounding.fpsr);
                result
            }
        };
        assert_same(fp_convert_bf(), &[op, fpcr.into()], result, &model);
    });
}

/// `BFUnpack` of a single.
fn unpack(bits: u64) -> Operand {
    Model::new(SINGLE, 1 << FZ).unpack(bits)
}

/// `BFRound`.
fn round(value: Real) -> u64 {
    let mut model = Model::new(SINGLE, 1 << FZ);
    let result = model.round_as(value, Mode::Odd);
    if model.fpsr & OFC != 0 { model.infinity(value.negative) } else { result }
}

const DEFAULT_NAN: u64 = 0x7fc0_0000;

fn add(op1: u64, op2: u64) -> u64 {
    let model = Model::new(SINGLE, 0);
    let ops @ [x, y] = [op1, op2].map(unpack);
    let infinite = |sign| ops.iter().any(|op| op.class == Class::Infinity && op.sign == sign);
    if x.is_nan() || y.is_nan() || infinite(false) && infinite(true) {
        return DEFAULT_NAN;
    }
    if infinite(false) || infinite(true) {
        return model.infinity(infinite(true));
    }
    if x.class == Class::Zero && y.class == Class::Zero && x.sign == y.sign {
        return model.zero(x.sign);
    }
    let sum = x.value.sum(y.value);
    if sum.is_zero() { 0 } else { round(sum) }
}

fn mul(op1: u64, op2: u64) -> u64 {
    let model = Model::new(SINGLE, 0);
    let ops @ [x, y] = [op1 << 16, op2 << 16].map(unpack);
    let any = |class| ops.iter().any(|op| op.class == class);
    let sign = x.sign != y.sign;
    match (any(Class::Infinity), any(Class::Zero)) {
        _ if x.is_nan() || y.is_nan() => DEFAULT_NAN,
        (true, true) => DEFAULT_NAN,
        (true, false) => model.infinity(sign),
        (false, true) => model.zero(sign),
        (false, false) => round(x.value.product(y.value)),
    }
}

#[test]
fn sums() {
    many(10, 100_000, |random, _| {
        let ops @ [x, y] = values::operands(random, SINGLE);
        let got = fp_add_bf16().eval(&ops);
        assert_eq!(got, [add(x, y)], "{ops:x?}: {got:x?}, expected {:x}", add(x, y));
    });
}

#[test]
fn products() {
    many(11, 100_000, |random, _| {
        let ops @ [x, y] = values::operands(random, BRAIN);
        let got = bf_mul_h().eval(&ops);
        assert_eq!(got, [mul(x, y)], "{ops:x?}: {got:x?}, expected {:x}", mul(x, y));
    });
}
