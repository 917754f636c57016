//! `FPDiv`.
//!
//! An estimate of the divisor's reciprocal, good to about 30 bits, gives a quotient that is wrong by less than
//! one in its last place; the sign of the remainder says on which side of it the exact quotient is. Products
//! that are known to fit are taken modulo the width.

use kvrm_ir::{Type, Val};

use super::mul::Special;
use super::round::Unrounded;
use super::unpack::Finite;
use super::{DZC, Fp};

/// 48/17 and 32/17, modulo 2, in units of 2^-31: the line that is nearest to 1/x from 1/2 to 1.
const LINE: [u32; 2] = [0x6969_6969, 0xf0f0_f0f0];

impl<'b> Fp<'b> {
    pub(super) fn div(self, op1: Val<'b>, op2: Val<'b>) -> [Val<'b>; 2] {
        let special = |Special { sign, zero: [z1, z2], infinite: [i1, i2] }: Special<'b>| {
            let undefined = (i1 & i2) | (z1 & z2);
            let infinite = i1 | z2;
            let [nan, ioc] = self.invalid();
            let defined = sign | infinite.select(self.k(self.format.infinity()), self.k(0));
            let flags = self.flag_if(z2 & !i1, DZC);
            [undefined.select(nan, defined), undefined.select(ioc, flags)]
        };
        self.of_two_factors(op1, op2, special, |sign, x, y| {
            self.round(self.finite_quotient(sign, x, y))
        })
    }

    fn finite_quotient(self, sign: Val<'b>, x: Finite<'b>, y: Finite<'b>) -> Unrounded<'b> {
        let less = x.significand.ult(y.significand);
        // From 1/2 to less than 1.
        let dividend = less.select(x.significand << 1, x.significand);
        let divisor = y.significand << 1;
        let exponent = x.exponent - y.exponent + u64::from(self.format.bias() - 1);
        Unrounded {
            sign,
            exponent: exponent - less.zext(Type::U32),
            significand: match self.format.ty() {
                Type::U64 => self.wide_quotient(dividend, divisor),
                _ => self.quotient(dividend, divisor),
            },
        }
    }

    /// In units of 2^-32.
    fn quotient(self, dividend: Val<'b>, divisor: Val<'b>) -> Val<'b> {
        let place = self.format.spare() - 1;
        let estimate = (dividend << place).umulh(self.reciprocal(divisor << place));
        // In units of 2^-27, from those of 2^-31.
        let quotient = (estimate + 8u64) >> 4;
        let remainder = (dividend << 27) - quotient * divisor;
        (quotient << 5) + self.signum(remainder)
    }

    /// In units of 2^-64.
    fn wide_quotient(self, dividend: Val<'b>, divisor: Val<'b>) -> Val<'b> {
        let high = |v: Val<'b>| (v >> (self.format.fraction + 2 - 32)).trunc(Type::U32);
        let reciprocal = self.reciprocal(high(divisor));
        // In units of 2^-31, wrong by less than eight.
        let estimate = high(dividend).umulh(reciprocal).zext(Type::U64);
        let remainder = (dividend << 31) - estimate * divisor;
        // The rest, in units of 2^-54.
        let rest = remainder.sar_by(self.b.u32(26)) * reciprocal.zext(Type::U64) + (1u64 << 35);
        let quotient = (estimate << 23) + rest.sar_by(self.b.u32(36));
        let remainder = (dividend << 54) - quotient * divisor;
        (quotient << 10) + self.signum(remainder)
    }

    /// 1/x in units of 2^-31, for x from 1/2 to 1 in units of 2^-32: by Newton's method, wrong by less than three.
    fn reciprocal(self, x: Val<'b>) -> Val<'b> {
        let [offset, slope] = LINE.map(|k| self.b.u32(k));
        // y (2 - x y), where 2 is nothing: it does not fit.
        (0..3).fold(offset - x.umulh(slope), |y, _| y.umulh(-x.umulh(y)) << 1)
    }

    /// -1, 0 or 1, modulo 2^width.
    pub(super) fn signum(self, x: Val<'b>) -> Val<'b> {
        x.sar_by(self.b.u32(x.ty().bits() - 1)) | x.ne(0u64).zext(x.ty())
    }
}
