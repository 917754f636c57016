//! Estimates and the steps that refine them, against the manual's pseudocode with its loops.

use super::model::{Class, Mode, Real};
use super::*;

/// `RecipEstimate`.
fn recip(a: u64) -> u64 {
    assert!((256..512).contains(&a));
    let a = a * 2 + 1;
    let b = (1 << 19) / a;
    let r = b.div_ceil(2);
    assert!((256..512).contains(&r));
    r
}

/// `RecipSqrtEstimate`.
fn recip_sqrt(mut a: u64) -> u64 {
    assert!((128..512).contains(&a));
    if a < 256 {
        a = a * 2 + 1;
    } else {
        a = (a >> 1) << 1;
        a = (a + 1) * 2;
    }
    let mut b = 512;
    while a * (b + 1) * (b + 1) < 1 << 28 {
        b += 1;
    }
    let r = b.div_ceil(2);
    assert!((256..512).contains(&r));
    r
}

/// The fraction as one of 52 bits, and the exponent.
fn parts(format: Format, op: u64) -> (u64, i32) {
    let fraction = (op & ((1 << format.fraction) - 1)) << (52 - format.fraction);
    (fraction, (op >> format.fraction) as i32 & format.max_exponent() as i32)
}

const FRACTION: u64 = (1 << 52) - 1;

fn number(format: Format, sign: bool, exponent: i32, fraction: u64) -> u64 {
    assert!((0..format.max_exponent() as i32).contains(&exponent));
    u64::from(sign) << (format.bits - 1)
        | (exponent as u64) << format.fraction
        | fraction >> (52 - format.fraction)
}

fn recip_estimate(model: &mut Model, bits: u64) -> u64 {
    let format = model.format;
    let bias = format.bias() as i32;
    let op = model.unpack(bits);
    // Whether a magnitude is less than a power of two.
    let less = |value: Real, exponent| {
        value.is_zero() || value.exponent + (value.magnitude.ilog2() as i32) < exponent
    };
    match op.class {
        Class::Quiet | Class::Signalling => model.process_nan(op),
        Class::Infinity => model.zero(op.sign),
        Class::Zero => {
            model.raise(DZC);
            model.infinity(op.sign)
        }
        Class::Finite if less(op.value, -bias - 1) => {
            let overflow_to_inf = match model.mode() {
                Mode::TieEven => true,
                Mode::PosInf => !op.sign,
                Mode::NegInf => op.sign,
                _ => false,
            };
            model.raise(OFC | IXC);
            model.infinity(op.sign) - u64::from(!overflow_to_inf)
        }
        Class::Finite if model.flushes() && !less(op.value, bias - 1) => {
            model.raise(UFC);
            model.zero(op.sign)
        }
        Class::Finite => {
            let (mut fraction, mut exponent) = parts(format, bits);
            if exponent == 0 {
                if fraction >> 51 == 0 {
                    exponent = -1;
                    fraction = fraction << 2 & FRACTION;
                } else {
                    fraction = fraction << 1 & FRACTION;
                }
            }
            let estimate = recip(1 << 8 | fraction >> 44);
            let mut result_exp = 2 * bias - 1 - exponent;
            let mut fraction = (estimate & 0xff) << 44;
            if result_exp == 0 {
                fraction = 1 << 51 | fraction >> 1;
            } else if result_exp == -1 {
                fraction = 1 << 50 | fraction >> 2;
                result_exp = 0;
            }
            number(format, op.sign, result_exp, fraction)
        }
    }
}

fn rsqrt_estimate(model: &mut Model, bits: u64) -> u64 {
    let format = model.format;
    let op = model.unpack(bits);
    match op.class {
        Class::Quiet | Class::Signalling => model.process_nan(op),
        Class::Zero => {
            model.raise(DZC);
            model.infinity(op.sign)
        }
        _ if op.sign => {
            model.raise(IOC);
            model.default_nan()
        }
        Class::Infinity => model.zero(false),
        Class::Finite => {
            let (mut fraction, mut exponent) = parts(format, bits);
            if exponent == 0 {
                while fraction >> 51 == 0 {
                    fraction = fraction << 1 & FRACTION;
                    exponent -= 1;
                }
                fraction = fraction << 1 & FRACTION;
            }
            let scaled = match exponent & 1 {
                0 => 1 << 8 | fraction >> 44,
                _ => 1 << 7 | fraction >> 45,
            };
            let result_exp = match format.bits {
                16 => 44 - exponent,
                32 => 380 - exponent,
                _ => 3068 - exponent,
            };
            number(format, false, result_exp / 2, (recip_sqrt(scaled) & 0xff) << 44)
        }
    }
}

/// Operands with each of the upper bits of the fraction, and exponents of all kinds.
fn all_estimates(format: Format) -> impl Iterator<Item = u64> {
    let max = format.max_exponent().into();
    let bias = u64::from(format.bias());
    let exponents = [0, 1, 2, bias - 1, bias, max - 3, max - 2, max - 1, max];
    let fractions = (0..1 << 10).map(move |high| high << (format.fraction - 10));
    let signs = [0, 1 << (format.bits - 1)];
    let magnitudes = fractions
        .flat_map(move |fraction| exponents.map(|exponent| exponent << format.fraction | fraction));
    magnitudes.flat_map(move |magnitude| signs.map(|sign| sign | magnitude))
}

fn check_estimates(
    lookup: fn(Format) -> &'static Function,
    model: impl Fn(&mut Model, u64) -> u64,
) {
    check(lookup, |settings, [x]| model(settings, x));
    for format in FORMATS {
        for (op, fpcr) in
            all_estimates(format).flat_map(|op| [0, 1 << FZ | 1 << FZ16].map(|f| (op, f)))
        {
            let mut settings = Model::new(format, fpcr);
            let result = model(&mut settings, op);
            assert_same(lookup(format), &[op, fpcr.into()], result, &settings);
        }
    }
}

#[test]
fn reciprocals() {
    check_estimates(fp_recip_estimate, recip_estimate);
}

#[test]
fn reciprocals_of_roots() {
    check_estimates(fp_rsqrt_estimate, rsqrt_estimate);
}

#[test]
fn unsigned_estimates() {
    let mut random = Random::new(6);
    for high in 0..1 << 12 {
        let op = high << 20 | random.below(1 << 20);
        let expected = if op >> 31 == 0 { 0xffff_ffff } else { recip(op >> 23) << 23 };
        assert_eq!(unsigned_recip_estimate().eval(&[op]), [expected], "{op:x}");
        let expected = if op >> 30 == 0 { 0xffff_ffff } else { recip_sqrt(op >> 23) << 23 };
        assert_eq!(unsigned_rsqrt_estimate().eval(&[op]), [expected], "{op:x}");
    }
}

#[test]
fn steps() {
    check(fp_recip_step_fused, |model, [x, y]| model.step(x, y, 2, 0));
    check(fp_rsqrt_step_fused, |model, [x, y]| model.step(x, y, 3, 1));
}

#[test]
fn exponents_of_reciprocals() {
    check(fp_recp_x, |model, [x]| {
        let op = model.unpack(x);
        if op.is_nan() {
            return model.process_nan(op);
        }
        let format = model.format;
        let max = u64::from(format.max_exponent());
        let exponent = match x >> format.fraction & max {
            0 => max - 1,
            exponent => !exponent & max,
        };
        model.zero(op.sign) | exponent << format.fraction
    });
}

#[test]
fn products_of_zero_and_infinity() {
    check(fp_mul_x, |model, [x, y]| model.mul_x(x, y));
}
