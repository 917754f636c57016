//! Against [`rustc_apfloat`]: all rounding modes, no flushing, no payloads of NaNs.

use kvrm_random::Random;
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, Round, Status, StatusAnd};

use super::values;
use super::*;

/// By RMode.
const ROUNDS: [Round; 4] =
    [Round::NearestTiesToEven, Round::TowardPositive, Round::TowardNegative, Round::TowardZero];

/// The exceptions as bits of FPSR.
fn fpsr(status: Status) -> u64 {
    let bits = [
        (Status::INVALID_OP, IOC),
        (Status::DIV_BY_ZERO, DZC),
        (Status::OVERFLOW, OFC),
        (Status::UNDERFLOW, UFC),
        (Status::INEXACT, IXC),
    ];
    bits.into_iter().filter(|(s, _)| status.contains(*s)).map(|(_, bit)| u64::from(bit)).sum()
}

/// What it says of exceptions: it knows no overflow to the largest finite number, and no underflow if rounding makes the number
/// normal.
fn without_what_it_does_not_know(format: Format, bits: u64, flags: u64) -> u64 {
    let magnitude = bits & format.magnitude();
    if magnitude == format.least_normal() {
        return flags & !u64::from(UFC);
    }
    if magnitude == format.infinity() - 1 { flags & !u64::from(OFC) } else { flags }
}

/// The function agrees; Arm has rules of its own for NaNs.
fn check<T: Float, const N: usize>(
    format: Format,
    function: &Function,
    operation: impl Fn([T; N], Round) -> StatusAnd<T>,
) {
    let mut random = Random::part(2, u64::from(format.bits) * 8 + N as u64);
    for _ in 0..60_000 {
        let ops: [u64; N] = values::operands(&mut random, format);
        let mode = random.below(4);
        let expected = operation(ops.map(|op| T::from_bits(op.into())), ROUNDS[mode as usize]);
        let mut args = ops.to_vec();
        args.push(mode << 22);
        let [bits, flags] = eval(function, &args);
        let flags = without_what_it_does_not_know(format, bits, flags);
        let value = T::from_bits(bits.into());
        let same = match expected.value.is_nan() {
            true => value.is_nan(),
            false => u128::from(bits) == expected.value.to_bits(),
        };
        let said = format!("{} {ops:x?} mode {mode}: {bits:x} {flags:x}", function.name);
        assert!(same, "{said}, not {:x}", expected.value.to_bits());
        assert_eq!(flags, fpsr(expected.status), "{said}, not {:?}", expected.status);
    }
}

fn check_all<T: Float>(format: Format) {
    check(format, fp_add(format), |[x, y]: [T; 2], round| x.add_r(y, round));
    check(format, fp_sub(format), |[x, y]: [T; 2], round| x.sub_r(y, round));
    check(format, fp_mul(format), |[x, y]: [T; 2], round| x.mul_r(y, round));
    check(format, fp_div(format), |[x, y]: [T; 2], round| x.div_r(y, round));
    check(format, fp_mul_add(format), |[a, x, y]: [T; 3], round| x.mul_add_r(y, a, round));
}

#[test]
fn arithmetic_of_halves() {
    check_all::<Half>(HALF);
}

#[test]
fn arithmetic_of_singles() {
    check_all::<Single>(SINGLE);
}

#[test]
fn arithmetic_of_doubles() {
    check_all::<Double>(DOUBLE);
}
