//! Operands of the kinds that mistakes are made with.

use kvrm_random::Random;

use crate::float::*;

/// FPCR with random settings, each of them off more often than not.
pub(super) fn fpcr(random: &mut Random) -> u32 {
    let off = |random: &mut Random, bit: u32| u32::from(random.once_in(3)) << bit;
    let bits = [FZ16, FZ, DN, AHP].map(|bit| off(random, bit)).into_iter().sum::<u32>();
    bits | (random.below(4) as u32) << 22
}

/// Few ones, few zeros, or anything.
fn fraction(random: &mut Random, format: Format) -> u64 {
    let width = u64::from(format.fraction);
    let mask = (1 << width) - 1;
    let bit = 1u64 << random.below(width);
    let other = 1u64 << random.below(width);
    mask & match random.below(10) {
        0 => 0,
        1 => mask,
        2 => bit,
        3 => bit - 1,
        4 => !bit,
        5 => !(bit - 1),
        6 => bit | other,
        7 => bit.wrapping_sub(other),
        _ => random.next(),
    }
}

/// At the ends, in the middle, where integers end, or any.
fn exponent(random: &mut Random, format: Format) -> u64 {
    let (bias, max) = (u64::from(format.bias()), u64::from(format.max_exponent()));
    match random.below(12) {
        0 => 0,
        1 => random.below(4),
        2 => max,
        3 => max - random.below(4),
        4 | 5 => bias - 3 + random.below(6),
        6 => (bias + u64::from(format.fraction) - 2 + random.below(4)).min(max),
        7 => (bias - 4 + random.below(70)).min(max),
        _ => random.below(max + 1),
    }
}

fn number(format: Format, negative: bool, exponent: u64, fraction: u64) -> u64 {
    u64::from(negative) << (format.bits - 1) | exponent << format.fraction | fraction
}

/// Any number.
pub(super) fn operand(random: &mut Random, format: Format) -> u64 {
    if random.once_in(6) {
        return near_half(random, format);
    }
    let (exponent, fraction) = (exponent(random, format), fraction(random, format));
    number(format, random.once_in(2), exponent, fraction)
}

/// An integer and a half, or a number next to it.
fn near_half(random: &mut Random, format: Format) -> u64 {
    let width = u64::from(format.fraction);
    let integer_bits = random.below(width);
    let half = 1 << (width - integer_bits - 1);
    let fraction = random.next() & ((1 << width) - 1) & !(half - 1) | half;
    let exponent = u64::from(format.bias()) + integer_bits;
    let near = number(format, random.once_in(2), exponent, fraction);
    near.wrapping_add_signed(random.pick(&[-1, 0, 0, 1]))
}

/// A number of a format that another one lacks, or has: with few bits more, and an exponent that is at an end
/// of its range.
pub(super) fn near_format(random: &mut Random, from: Format, to: Format) -> u64 {
    if from.bits < to.bits {
        return operand(random, from);
    }
    let rebias = u64::from(from.bias() - to.bias());
    let width = u64::from(to.fraction);
    let exponent = match random.below(4) {
        0 => rebias + random.below(3),
        1 => rebias + u64::from(to.max_exponent()) - 2 + random.below(3),
        2 => rebias.saturating_sub(random.below(width + 4)),
        _ => rebias + random.below(u64::from(to.max_exponent())),
    };
    let place = random.below(4) + u64::from(from.fraction) - width - 2;
    let fraction = match random.below(3) {
        0 => u64::MAX << place,
        1 => random.next() << place,
        _ => (random.next() << place).wrapping_sub(1),
    };
    let fraction = fraction & ((1 << from.fraction) - 1);
    number(from, random.once_in(2), exponent, fraction)
}

/// An integer whose bits end where the format's significands do, or a little later, or any.
pub(super) fn integer(random: &mut Random, format: Format) -> u64 {
    if random.once_in(2) {
        return random.hard_value();
    }
    let width = u64::from(format.fraction) + random.below(4);
    let bits = (1 << width | random.next() & ((1 << width) - 1)) ^ random.pick(&[0, 1, 3]);
    let shifted = bits << random.below(64 - width);
    let shifted = shifted.wrapping_add_signed(random.pick(&[-1, 0, 0, 1]));
    if random.once_in(2) { shifted.wrapping_neg() } else { shifted }
}

/// A number that has to do with another one: near it, near its negative or its reciprocal, or with a product or
/// a quotient at the ends of the range.
fn related(random: &mut Random, format: Format, to: u64) -> u64 {
    let max = i64::from(format.max_exponent());
    let e = (to >> format.fraction) as i64 & max;
    let small = random.below(5) as i64 - 2;
    let width = i64::from(format.fraction) + 4;
    let mask = (1u64 << (format.bits - 1)) - 1;
    let exponent = match random.below(8) {
        0 => return to ^ u64::from(random.once_in(2)) << (format.bits - 1),
        1 => {
            let neighbour = (to & mask).wrapping_add_signed(small) & mask;
            return neighbour | u64::from(random.once_in(2)) << (format.bits - 1);
        }
        2 => e + small,
        3 => e + random.below(2 * width as u64) as i64 - width,
        4 => max - 1 - e + small,
        5 => i64::from(format.bias()) - e + small - random.below(width as u64) as i64,
        6 => i64::from(format.bias()) + max - e + small,
        _ => e - i64::from(format.bias()) + small + random.below(width as u64) as i64,
    };
    let exponent = exponent.clamp(0, max) as u64;
    number(format, random.once_in(2), exponent, fraction(random, format))
}

/// Operands, related to each other or not.
pub(super) fn operands<const N: usize>(random: &mut Random, format: Format) -> [u64; N] {
    let mut ops = [0; N];
    for i in 0..N {
        ops[i] = match i > 0 && random.once_in(2) {
            true => {
                let to = ops[random.below(i as u64) as usize];
                related(random, format, to)
            }
            false => operand(random, format),
        };
    }
    if N == 3 && random.once_in(2) {
        // An addend near the negative of the product.
        let max = i64::from(format.max_exponent());
        let e = |x: u64| (x >> format.fraction) as i64 & max;
        let near = random.below(2 * u64::from(format.fraction) + 6) as i64;
        let sign = random.pick(&[-1, 1]);
        let product = e(ops[1]) + e(ops[2]) - i64::from(format.bias());
        let exponent = (product + sign * random.pick(&[0, 1, near])).clamp(0, max) as u64;
        ops[0] = number(format, random.once_in(2), exponent, fraction(random, format));
    }
    ops
}
