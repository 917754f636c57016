//! `FPSqrt`.
//!
//! As [division](super::div): from an estimate of the reciprocal of the root comes a root that is wrong by less
//! than one in its last place, and the remainder says where the exact one is.

use kvrm_ir::{Type, Val};

use super::Fp;
use super::round::Unrounded;
use super::unpack::Finite;

/// The parabola `a - x (b - c x)` that is nearest to 1/√x from 1 to 4: a modulo 1, 2b and 8c, in units of
/// 2^-32. It is wrong by at most 2.5 %.
const PARABOLA: [u32; 3] = [0x55dd_f43c, 0xd243_5696, 0x68de_2ac3];

impl<'b> Fp<'b> {
    pub(super) fn sqrt(self, op: Val<'b>) -> [Val<'b>; 2] {
        let b = self.b;
        let negative = self.sign(op).ne(0u64);
        let Finite { exponent, significand } = self.normal(op);
        let [is_special, result, flags, exponent, significand] = b.if_else(
            self.is_rare(exponent) | negative,
            || {
                let ([op], denormal) = self.flush([op]);
                let [zero, nan] = [self.is_zero(op), self.is_nan(op)];
                let infinite = op.eq(self.format.infinity());
                let [result, flags] = b.if_else(
                    nan,
                    || self.process_nans([op]),
                    || {
                        let [nan, ioc] = self.invalid();
                        let invalid = negative & !zero;
                        [invalid.select(nan, op), invalid.select(ioc, b.u32(0))]
                    },
                );
                let Finite { exponent, significand } = self.finite(op);
                let is_special = negative | zero | nan | infinite;
                [is_special, result, flags | denormal, exponent, significand]
            },
            || [b.bool(false), self.k(0), b.u32(0), exponent, significand],
        );
        b.if_else(
            is_special,
            || [result, flags],
            || {
                // Twice the exponent of the root: the bias is odd.
                let exponent = exponent + u64::from(self.format.bias() - 1);
                // From 1 to less than 4.
                let square = exponent.bit(0).select(significand << 1, significand);
                let [result, more] = self.round(Unrounded {
                    sign: self.k(0),
                    exponent: exponent >> 1,
                    significand: match self.format.ty() {
                        Type::U64 => self.wide_root(square),
                        _ => self.root(square),
                    },
                });
                [result, flags | more]
            },
        )
    }

    /// In units of 2^-31.
    fn root(self, square: Val<'b>) -> Val<'b> {
        let fraction = self.format.fraction;
        let shifted = square << (self.format.spare() - 1);
        // In units of 2^-30, and then of 2^-unit.
        let estimate = shifted.umulh(self.reciprocal_root(shifted));
        let unit = fraction + 3;
        let root = (estimate + (1u64 << (29 - unit))) >> (30 - unit);
        let remainder = (square << (2 * unit - fraction)) - root * root;
        (root << (31 - unit)) + self.signum(remainder)
    }

    /// In units of 2^-63.
    fn wide_root(self, square: Val<'b>) -> Val<'b> {
        let high = (square >> 22).trunc(Type::U32);
        let reciprocal = self.reciprocal_root(high);
        // In units of 2^-30, less than the root by less than six.
        let estimate = high.umulh(reciprocal).zext(Type::U64);
        let remainder = (square << 8) - estimate * estimate;
        // Half the remainder by the root, in units of 2^-53.
        let rest = (remainder >> 5) * reciprocal.zext(Type::U64) + (1u64 << 34);
        let root = (estimate << 23) + (rest >> 35);
        let remainder = (square << 54) - root * root;
        (root << 10) + self.signum(remainder)
    }

    /// 1/√x in units of 2^-32, for x from 1 to 4 in units of 2^-30: by Newton's method, less by up to six.
    fn reciprocal_root(self, x: Val<'b>) -> Val<'b> {
        let [a, b, c] = PARABOLA.map(|k| self.b.u32(k));
        let estimate = a - (x.umulh(b - x.umulh(c)) << 1);
        // 3, and less than that by what rounding may add to it: y must not reach 1.
        let three = self.b.u32((3 << 30) - 2);
        (0..3).fold(estimate, |y, _| y.umulh(three - x.umulh(y.umulh(y))) << 1)
    }
}
