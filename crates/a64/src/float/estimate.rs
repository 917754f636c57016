//! `FPRecipEstimate`, `FPRSqrtEstimate` and the steps that refine them; `FPRecpX`.

use kvrm_ir::{Builder, Type, Val};

use super::unpack::Finite;
use super::{DZC, Fp, IXC, OFC, UFC};

/// `RecipEstimate`: 1/x in units of 2^-8, for x from 1/2 to 1 in units of 2^-9.
fn recip_estimate<'b>(b: &'b Builder, x: Val<'b>) -> Val<'b> {
    // In the middle of the unit; rounded to nearest.
    (b.u32(1 << 19).udiv((x << 1) + 1u64) + 1u64) >> 1
}

/// `RecipSqrtEstimate`: 1/√x in units of 2^-8, for x from 1/4 to 1 in units of 2^-9.
fn recip_sqrt_estimate<'b>(b: &'b Builder, x: Val<'b>) -> Val<'b> {
    // In the middle of the unit, which is twice as large from 1/2 on.
    let x = x.ult(256u64).select((x << 1) + 1u64, (x | 1u64) << 1);
    // The largest one that is less than 2^14/√x, bit by bit.
    let fits = |root: Val<'b>| (x * root * root).ult(1u64 << 28);
    let root = (0..9).rev().fold(b.u32(1 << 9), |root, bit| {
        let larger = root | (1u64 << bit);
        fits(larger).select(larger, root)
    });
    (root + 1u64) >> 1
}

/// `UnsignedRecipEstimate`.
pub(super) fn unsigned_recip_estimate<'b>(b: &'b Builder, op: Val<'b>) -> Val<'b> {
    let estimate = recip_estimate(b, op >> 23) << 23;
    op.sign().select(estimate, b.u32(u32::MAX))
}

/// `UnsignedRSqrtEstimate`.
pub(super) fn unsigned_rsqrt_estimate<'b>(b: &'b Builder, op: Val<'b>) -> Val<'b> {
    let estimate = recip_sqrt_estimate(b, op >> 23) << 23;
    op.ult(1u64 << 30).select(b.u32(u32::MAX), estimate)
}

/// What a step computes: `constant - op1 op2`, and half of that for square roots.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Recip,
    RSqrt,
}

impl<'b> Fp<'b> {
    pub(super) fn recip_estimate(self, op: Val<'b>) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        let ([op], denormal) = self.flush([op]);
        let (sign, magnitude) = (self.sign(op), self.magnitude(op));
        let zero = magnitude.eq(0u64);
        // The reciprocal is too large for the format, or less than its least normal number.
        let overflow = magnitude.ult(format.quiet() >> 1);
        let least_flushed = u64::from(format.max_exponent() - 2) << format.fraction;
        let flushed = self.flushes() & self.k(least_flushed).ule(magnitude);
        let special = overflow | flushed | self.k(format.infinity()).ule(magnitude);
        let [result, flags] = b.if_else(
            special,
            || {
                let [nan, invalid] = self.process_nans([op]);
                let is_nan = self.is_nan(op);
                let infinity = zero.select(self.k(format.infinity()), self.overflow(sign));
                let number = sign | overflow.select(infinity, self.k(0));
                let large = self.flag_if(!self.is_infinite(op), UFC);
                let small = zero.select(b.u32(DZC), b.u32(OFC | IXC));
                let flags = overflow.select(small, large);
                [is_nan.select(nan, number), is_nan.select(invalid, flags)]
            },
            || {
                let Finite { exponent, significand } = self.finite(op);
                let high = (significand >> (format.fraction - 8)).trunc(Type::U32);
                let estimate = recip_estimate(b, high).zext(format.ty()) << (format.fraction - 8);
                // Less one. There are two exponents for which the result is denormal.
                let exponent = b.u32(2 * format.bias() - 3) - exponent;
                let tiny = exponent.sign();
                let normal = (exponent.zext(format.ty()) << format.fraction) + estimate;
                let magnitude = tiny.select(estimate.shr_by(-exponent), normal);
                [sign | magnitude, b.u32(0)]
            },
        );
        [result, flags | denormal]
    }

    pub(super) fn rsqrt_estimate(self, op: Val<'b>) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        let ([op], denormal) = self.flush([op]);
        let zero = self.is_zero(op);
        let sign = self.sign(op);
        let infinite = op.eq(format.infinity());
        let [result, flags] = b.if_else(
            zero | sign.ne(0u64) | self.k(format.infinity()).ule(op),
            || {
                let is_nan = self.is_nan(op);
                let [picked, signals] = self.process_nans([op]);
                let [nan, ioc] = self.invalid();
                let number = infinite.select(self.k(0), nan);
                let number = zero.select(sign | format.infinity(), number);
                let flags = infinite.select(b.u32(0), ioc);
                let flags = zero.select(b.u32(DZC), flags);
                [is_nan.select(picked, number), is_nan.select(signals, flags)]
            },
            || {
                let Finite { exponent, significand } = self.finite(op);
                let high = (significand >> (format.fraction - 8)).trunc(Type::U32);
                // The exponent and the one that it is less.
                let odd = exponent.bit(0);
                let estimate = recip_sqrt_estimate(b, odd.select(high, high >> 1));
                let estimate = estimate.zext(format.ty()) << (format.fraction - 8);
                let exponent = (b.u32(3 * format.bias() - 2) - exponent) >> 1;
                let exponent = (exponent - 1u64).zext(format.ty());
                [(exponent << format.fraction) + estimate, b.u32(0)]
            },
        );
        [result, flags | denormal]
    }

    /// `FPRecipStepFused`, `FPRSqrtStepFused`.
    pub(super) fn step(self, op1: Val<'b>, op2: Val<'b>, step: Step) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        let one = format.least_normal();
        // 2, or 3: with its exponent less one. Half of 3 has the exponent of one.
        let (significand, exponent_of_result) = match step {
            Step::Recip => (one, format.bias() + 1),
            Step::RSqrt => (one | (one >> 1), format.bias()),
        };
        let constant = Finite { exponent: b.u32(format.bias()), significand: self.k(significand) };
        // The result if the product is zero, or of zero and infinity.
        let alone = u64::from(exponent_of_result) << format.fraction | (significand ^ one);
        self.of_two_factors(
            op1 ^ format.sign(),
            op2,
            |special| {
                let infinity = special.sign | format.infinity();
                let zero = special.zero[0] | special.zero[1];
                [zero.select(self.k(alone), infinity), b.u32(0)]
            },
            |sign, x, y| self.rounded_sum([self.k(0), sign], [constant, x, y], step == Step::RSqrt),
        )
    }

    pub(super) fn recp_x(self, op: Val<'b>) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        let max = format.max_exponent();
        let (_, denormal) = self.flush([op]);
        let exponent = self.exponent(op);
        let complement = exponent ^ u64::from(max);
        let exponent = exponent.eq(0u64).select(b.u32(max - 1), complement);
        let number = self.sign(op) | (exponent.zext(format.ty()) << format.fraction);
        let nan = || self.process_nans([op]);
        let [result, flags] = b.if_else(self.is_nan(op), nan, || [number, b.u32(0)]);
        [result, flags | denormal]
    }
}
