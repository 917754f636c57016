//! Arithmetic on single elements, as values of the type that an element is [computed](Lane::value_type) with. Operands
//! are extended; of results, only the low bits count.

use kvrm_ir::{Type, Val};

use super::arrangement::Lane;
use crate::Sign;
use crate::data_register::AddSub::{self, Add, Sub};

/// What becomes of bits that are shifted out to the right.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Down,
    /// To nearest, ties up.
    Nearest,
}

/// What becomes of results that do not fit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saturation {
    Wraps,
    Saturates,
}

/// All ones if the condition holds, or zero.
pub(super) fn mask(lane: Lane, holds: Val<'_>) -> Val<'_> {
    -holds.zext(lane.value_type())
}

pub(super) fn less<'b>(sign: Sign, n: Val<'b>, m: Val<'b>) -> Val<'b> {
    match sign {
        Sign::Signed => n.slt(m),
        Sign::Unsigned => n.ult(m),
    }
}

pub(super) fn max<'b>(sign: Sign, n: Val<'b>, m: Val<'b>) -> Val<'b> {
    less(sign, n, m).select(m, n)
}

pub(super) fn min<'b>(sign: Sign, n: Val<'b>, m: Val<'b>) -> Val<'b> {
    less(sign, n, m).select(n, m)
}

/// Shifts right by a number that is less than the width of the type.
pub(super) fn shift_right<'b>(sign: Sign, n: Val<'b>, amount: Val<'b>) -> Val<'b> {
    match sign {
        Sign::Signed => n.sar_by(amount),
        Sign::Unsigned => n.shr_by(amount),
    }
}

/// Rotates right by 1 to one less than the width of the type.
pub(super) fn rotated_right(n: Val<'_>, amount: u32) -> Val<'_> {
    (n >> amount) | (n << (n.ty().bits() - amount))
}

fn half(sign: Sign, n: Val<'_>) -> Val<'_> {
    match sign {
        Sign::Signed => n.sar(1),
        Sign::Unsigned => n >> 1,
    }
}

/// Half the sum, without the carry being lost.
pub(super) fn halving_add<'b>(sign: Sign, rounding: Rounding, n: Val<'b>, m: Val<'b>) -> Val<'b> {
    match rounding {
        Rounding::Down => (n & m) + half(sign, n ^ m),
        Rounding::Nearest => (n | m) - half(sign, n ^ m),
    }
}

/// Half the difference, without the borrow being lost.
pub(super) fn halving_sub<'b>(sign: Sign, n: Val<'b>, m: Val<'b>) -> Val<'b> {
    half(sign, n ^ m) - (!n & m)
}

/// The least and the largest element.
fn limits(lane: Lane, sign: Sign) -> (u64, u64) {
    let sign_bit = 1u64 << (lane.bits() - 1);
    match sign {
        Sign::Signed => (sign_bit.wrapping_neg(), sign_bit - 1),
        Sign::Unsigned => (0, lane.mask()),
    }
}

/// A value that is wide enough for the sum of two elements, and signed.
fn wide(sign: Sign, lane: Lane, n: Val<'_>) -> Val<'_> {
    match (lane, sign) {
        (Lane::B | Lane::H, _) => n,
        (_, Sign::Signed) => n.sext(Type::U64),
        (_, Sign::Unsigned) => n.zext(Type::U64),
    }
}

/// A signed value brought into the range of an element, and whether that changed it.
pub(super) fn saturated<'b>(lane: Lane, sign: Sign, n: Val<'b>) -> (Val<'b>, Val<'b>) {
    let (least, largest) = limits(lane, sign);
    let [least, largest] = [least, largest].map(|bits| n.like(bits));
    let clamped = n.slt(least).select(least, largest.slt(n).select(largest, n));
    (narrowed(lane, clamped), clamped.ne(n))
}

/// An unsigned value brought into the range of an element, and whether that changed it.
pub(super) fn saturated_unsigned<'b>(lane: Lane, n: Val<'b>) -> (Val<'b>, Val<'b>) {
    let largest = n.like(lane.mask());
    let over = largest.ult(n);
    (narrowed(lane, over.select(largest, n)), over)
}

/// Back to the type of an element.
fn narrowed(lane: Lane, n: Val<'_>) -> Val<'_> {
    n.trunc(lane.value_type())
}

/// The sum, or what it saturates to, and whether it does.
pub(super) fn saturating_add<'b>(
    lane: Lane,
    sign: Sign,
    n: Val<'b>,
    m: Val<'b>,
) -> (Val<'b>, Val<'b>) {
    if lane < Lane::D {
        return saturated(lane, sign, wide(sign, lane, n) + wide(sign, lane, m));
    }
    let sum = n + m;
    match sign {
        Sign::Signed => instead_of_overflow(sum, n, n.saddo(m)),
        Sign::Unsigned => {
            let carry = sum.ult(n);
            (carry.select(n.like(u64::MAX), sum), carry)
        }
    }
}

/// The difference, or what it saturates to, and whether it does.
pub(super) fn saturating_sub<'b>(
    lane: Lane,
    sign: Sign,
    n: Val<'b>,
    m: Val<'b>,
) -> (Val<'b>, Val<'b>) {
    if lane < Lane::D {
        return saturated(lane, sign, wide(sign, lane, n) - wide(sign, lane, m));
    }
    let difference = n - m;
    match sign {
        Sign::Signed => instead_of_overflow(difference, n, n.ssubo(m)),
        Sign::Unsigned => {
            let borrow = n.ult(m);
            (borrow.select(n.like(0), difference), borrow)
        }
    }
}

/// A signed result of 64 bits, or if it overflows the limit on the side of the first operand.
fn instead_of_overflow<'b>(
    result: Val<'b>,
    first: Val<'b>,
    overflows: Val<'b>,
) -> (Val<'b>, Val<'b>) {
    let limit = first.sar(63) ^ (u64::MAX >> 1);
    (overflows.select(limit, result), overflows)
}

/// The upper half of the doubled signed product.
pub(super) fn multiply_high<'b>(
    lane: Lane,
    rounding: Rounding,
    n: Val<'b>,
    m: Val<'b>,
) -> (Val<'b>, Val<'b>) {
    let product = wide(Sign::Signed, lane, n) * wide(Sign::Signed, lane, m);
    let rounded = match rounding {
        Rounding::Down => product,
        Rounding::Nearest => product + (1u64 << (lane.bits() - 2)),
    };
    saturated(lane, Sign::Signed, rounded.sar(lane.bits() - 1))
}

/// The upper half of an element with zeros below it and the doubled signed product, added or subtracted and rounded.
/// All is computed at half the size, which nothing is too large for.
pub(super) fn accumulate_high<'b>(
    lane: Lane,
    op: AddSub,
    d: Val<'b>,
    n: Val<'b>,
    m: Val<'b>,
) -> (Val<'b>, Val<'b>) {
    let [d, n, m] = [d, n, m].map(|x| wide(Sign::Signed, lane, x));
    let old = (d << (lane.bits() - 1)) + (1u64 << (lane.bits() - 2));
    let sum = match op {
        Add => old + n * m,
        Sub => old - n * m,
    };
    saturated(lane, Sign::Signed, sum.sar(lane.bits() - 1))
}

/// The product of polynomials over {0, 1}.
pub(super) fn polynomial_multiply<'b>(lane: Lane, n: Val<'b>, m: Val<'b>) -> Val<'b> {
    let term = |i: u32| -m.bits(i, 1) & (n << i);
    (0..lane.bits()).map(term).reduce(|a, b| a ^ b).expect("an element has bits")
}

/// An element shifted by -128 to 127 bits, to the right if that is negative; and whether it saturates.
pub(super) fn shift_by_register<'b>(
    lane: Lane,
    sign: Sign,
    rounding: Rounding,
    saturation: Saturation,
    n: Val<'b>,
    amount: Val<'b>,
) -> (Val<'b>, Val<'b>) {
    let n = as_doubleword(sign, n);
    let right = amount.sign();
    let shifted = shifted_right(sign, rounding, n, -amount);
    let (left, saturates) = match saturation {
        Saturation::Wraps => {
            let far = amount.like(63).ult(amount);
            (far.select(n.like(0), n.shl_by(amount)), right.like(0))
        }
        Saturation::Saturates => shifted_left_saturating(lane, sign, n, amount),
    };
    (narrowed(lane, right.select(shifted, left)), !right & saturates)
}

fn as_doubleword(sign: Sign, n: Val<'_>) -> Val<'_> {
    match sign {
        Sign::Signed => n.sext(Type::U64),
        Sign::Unsigned => n.zext(Type::U64),
    }
}

/// An element shifted left by less than its size, or its limit, and whether it is that.
pub(super) fn shift_left_saturating<'b>(
    lane: Lane,
    sign: Sign,
    n: Val<'b>,
    amount: Val<'b>,
) -> (Val<'b>, Val<'b>) {
    let (shifted, saturates) = shifted_left_saturating(lane, sign, as_doubleword(sign, n), amount);
    (narrowed(lane, shifted), saturates)
}

/// A value of 64 bits shifted right by 1 to 128 bits.
fn shifted_right<'b>(sign: Sign, rounding: Rounding, n: Val<'b>, amount: Val<'b>) -> Val<'b> {
    let last = amount - 1u64;
    let all_but_one = last.ult(63u64).select(last, amount.like(63));
    let rest = shift_right(sign, n, all_but_one);
    let shifted = half(sign, rest);
    match (rounding, sign) {
        (Rounding::Down, _) => shifted,
        // Beyond the last bit there are copies of the sign.
        (Rounding::Nearest, Sign::Signed) => shifted + (rest & 1u64),
        (Rounding::Nearest, Sign::Unsigned) => {
            let beyond = last.like(63).ult(last);
            shifted + beyond.select(n.like(0), rest & 1u64)
        }
    }
}

/// An extended element shifted left by 0 to 127 bits, or its limit, and whether it is that.
fn shifted_left_saturating<'b>(
    lane: Lane,
    sign: Sign,
    n: Val<'b>,
    amount: Val<'b>,
) -> (Val<'b>, Val<'b>) {
    let most = lane.bits().min(63);
    let clamped = amount.ult(u64::from(most)).select(amount, amount.like(most.into()));
    let shifted = n.shl_by(clamped);
    let (least, largest) = limits(lane, sign);
    let back = shift_right(sign, shifted, clamped);
    let [least, largest] = [least, largest].map(|bits| n.like(bits));
    let outside = match (lane, sign) {
        (Lane::D, _) => back.ne(n) | (amount.like(63).ult(amount) & n.ne(0u64)),
        (_, Sign::Signed) => shifted.slt(least) | largest.slt(shifted),
        (_, Sign::Unsigned) => largest.ult(shifted),
    };
    let limit = match sign {
        Sign::Signed => n.sign().select(least, largest),
        Sign::Unsigned => largest,
    };
    (outside.select(limit, shifted), outside)
}
