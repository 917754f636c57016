//! Against [`rustc_apfloat`]: all rounding modes, no flushing, no payloads of NaNs.

use kvrm_random::Random;
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round, Status, StatusAnd};

use super::values;
use super::*;

/// By RMode; and the one that only instructions have.
const ROUNDS: [Round; 5] = [
    Round::NearestTiesToEven,
    Round::TowardPositive,
    Round::TowardNegative,
    Round::TowardZero,
    Round::NearestTiesToAway,
];

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

/// What it says of exceptions: it knows no overflow to the largest finite number, and no underflow if rounding
/// makes the number normal.
fn without_what_it_does_not_know(format: Format, bits: u64, flags: u64) -> u64 {
    let magnitude = bits & format.magnitude();
    if magnitude == format.least_normal() {
        return flags & !u64::from(UFC);
    }
    if magnitude == format.infinity() - 1 { flags & !u64::from(OFC) } else { flags }
}

/// The function agrees; Arm has rules of its own for NaNs.
fn assert_agrees<T: Float>(
    format: Format,
    function: &Function,
    args: &[u64],
    expected: StatusAnd<T>,
) {
    let [bits, flags] = eval(function, args);
    let flags = without_what_it_does_not_know(format, bits, flags);
    let value = T::from_bits(bits.into());
    let same = match expected.value.is_nan() {
        true => value.is_nan(),
        false => u128::from(bits) == expected.value.to_bits(),
    };
    let said = format!("{} {args:x?}: {bits:x} {flags:x}", function.name);
    assert!(same, "{said}, not {:x}", expected.value.to_bits());
    assert_eq!(flags, fpsr(expected.status), "{said}, not {:?}", expected.status);
}

fn check<T: Float, const N: usize>(
    format: Format,
    function: &Function,
    operation: impl Fn([T; N], Round) -> StatusAnd<T>,
) {
    let mut random = Random::part(2, u64::from(format.bits) * 8 + N as u64);
    for _ in 0..100_000 {
        let ops: [u64; N] = values::operands(&mut random, format);
        let mode = random.below(4);
        let expected = operation(ops.map(|op| T::from_bits(op.into())), ROUNDS[mode as usize]);
        let args: Vec<u64> = ops.into_iter().chain([mode << 22]).collect();
        assert_agrees(format, function, &args, expected);
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

fn check_conversion<T: FloatConvert<U>, U: Float>(from: Format, to: Format) {
    let mut random = Random::part(4, u64::from(from.bits + to.bits));
    for _ in 0..100_000 {
        let op = values::near_format(&mut random, from, to);
        let mode = random.below(4);
        let op_value = T::from_bits(op.into());
        let expected = op_value.convert_r(ROUNDS[mode as usize], &mut false);
        assert_agrees(to, fp_convert(from, to), &[op, mode << 22], expected);
    }
}

#[test]
fn conversions_between_formats() {
    check_conversion::<Half, Single>(HALF, SINGLE);
    check_conversion::<Half, Double>(HALF, DOUBLE);
    check_conversion::<Single, Half>(SINGLE, HALF);
    check_conversion::<Single, Double>(SINGLE, DOUBLE);
    check_conversion::<Double, Half>(DOUBLE, HALF);
    check_conversion::<Double, Single>(DOUBLE, SINGLE);
}

fn check_integers<T: Float>(format: Format) {
    let mut random = Random::part(5, format.bits.into());
    for _ in 0..100_000 {
        let bits = random.pick(&[32, 64]);
        let sign = random.pick(&[Sign::Signed, Sign::Unsigned]);
        let width = bits as usize;
        let mask = u64::MAX >> (64 - bits);
        let mode = random.below(4);
        let op = values::integer(&mut random, format) & mask;
        let round = ROUNDS[mode as usize];
        let expected = match sign {
            Sign::Unsigned => T::from_u128_r(op.into(), round),
            Sign::Signed => {
                T::from_i128_r(((op << (64 - bits)) as i64 >> (64 - bits)).into(), round)
            }
        };
        assert_agrees(format, fixed_to_fp(format, bits, sign), &[op, 0, mode << 22], expected);

        let mode = random.below(5);
        let round = ROUNDS[mode as usize];
        let op = values::operand(&mut random, format);
        let value = T::from_bits(op.into());
        let StatusAnd { status, value: integer } = match sign {
            Sign::Unsigned => value.to_u128_r(width, round, &mut false).map(|v| v as u64),
            Sign::Signed => value.to_i128_r(width, round, &mut false).map(|v| v as u64),
        };
        let got = eval(fp_to_fixed(format, bits, sign), &[op, 0, mode, 0]);
        let expected = [integer & mask, fpsr(status)];
        assert_eq!(got, expected, "{op:x} to {bits} bits in mode {mode}");

        let expected = value.round_to_integral(round);
        assert_agrees(format, fp_round_int(format), &[op, mode, 1, 0], expected);
    }
}

#[test]
fn conversions_with_integers() {
    check_integers::<Half>(HALF);
    check_integers::<Single>(SINGLE);
    check_integers::<Double>(DOUBLE);
}
