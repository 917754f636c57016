//! `FPMul`, and what products and quotients have in common.

use kvrm_ir::{Type, Val};

use super::Fp;
use super::round::Unrounded;
use super::unpack::Finite;

/// Two operands of which one is zero or infinite and none is a NaN.
pub(super) struct Special<'b> {
    /// The sign of product and quotient, in its place.
    pub(super) sign: Val<'b>,
    /// Which operands are zero.
    pub(super) zero: [Val<'b>; 2],
    /// Which operands are infinite.
    pub(super) infinite: [Val<'b>; 2],
}

impl<'b> Fp<'b> {
    pub(super) fn mul(self, op1: Val<'b>, op2: Val<'b>) -> [Val<'b>; 2] {
        self.product(op1, op2, |_| self.invalid())
    }

    /// `FPMulX`: the product of zero and infinity is two.
    pub(super) fn mul_x(self, op1: Val<'b>, op2: Val<'b>) -> [Val<'b>; 2] {
        let two = u64::from(self.format.bias() + 1) << self.format.fraction;
        self.product(op1, op2, |sign| [sign | two, self.b.u32(0)])
    }

    /// The product; that of zero and infinity, which has a sign, is given.
    fn product(
        self,
        op1: Val<'b>,
        op2: Val<'b>,
        zero_by_infinity: impl FnOnce(Val<'b>) -> [Val<'b>; 2],
    ) -> [Val<'b>; 2] {
        let special = |Special { sign, zero: [z1, z2], infinite: [i1, i2] }: Special<'b>| {
            let infinite = i1 | i2;
            let undefined = infinite & (z1 | z2);
            let [value, flags] = zero_by_infinity(sign);
            let defined = sign | infinite.select(self.k(self.format.infinity()), self.k(0));
            [undefined.select(value, defined), undefined.select(flags, self.b.u32(0))]
        };
        self.of_two_factors(op1, op2, special, |sign, x, y| {
            self.round(self.finite_product(sign, x, y))
        })
    }

    fn finite_product(self, sign: Val<'b>, x: Finite<'b>, y: Finite<'b>) -> Unrounded<'b> {
        let format = self.format;
        let (ty, spare) = (format.ty(), format.spare());
        // The leading one is in the highest bit or the one after it.
        let product = if 2 * (format.fraction + 1) <= ty.bits() {
            x.significand * (y.significand << (ty.bits() - 2 * (format.fraction + 1)))
        } else {
            let (mx, my) = (x.significand << spare, y.significand << spare);
            mx.umulh(my) | (mx * my).ne(0u64).zext(ty)
        };
        let high = product.sign();
        let exponent = x.exponent + y.exponent - u64::from(format.bias() - 1);
        Unrounded {
            sign,
            exponent: exponent + high.zext(Type::U32),
            significand: high.select(product, product << 1),
        }
    }

    /// An operation whose result has the sign of a product.
    pub(super) fn of_two_factors(
        self,
        op1: Val<'b>,
        op2: Val<'b>,
        special: impl FnOnce(Special<'b>) -> [Val<'b>; 2],
        finite: impl FnOnce(Val<'b>, Finite<'b>, Finite<'b>) -> [Val<'b>; 2],
    ) -> [Val<'b>; 2] {
        let b = self.b;
        let sign = self.sign(op1 ^ op2);
        let (x, y) = (self.normal(op1), self.normal(op2));
        let [is_special, result, flags, ex, mx, ey, my] = b.if_else(
            self.is_rare(x.exponent) | self.is_rare(y.exponent),
            || {
                let (ops, denormal) = self.flush([op1, op2]);
                let zero = ops.map(|v| self.is_zero(v));
                let infinite = ops.map(|v| self.is_infinite(v));
                let nan = self.is_nan(op1) | self.is_nan(op2);
                let is_special = nan | self.any(zero) | self.any(infinite);
                let [result, flags] = b.if_else(
                    nan,
                    || self.process_nans([op1, op2]),
                    || special(Special { sign, zero, infinite }),
                );
                let [x, y] = ops.map(|v| self.finite(v));
                let flags = is_special.select(flags, b.u32(0)) | denormal;
                let ([ex, mx], [ey, my]) = (x.parts(), y.parts());
                [is_special, result, flags, ex, mx, ey, my]
            },
            || {
                let ([ex, mx], [ey, my]) = (x.parts(), y.parts());
                [b.bool(false), self.k(0), b.u32(0), ex, mx, ey, my]
            },
        );
        b.if_else(
            is_special,
            || [result, flags],
            || {
                let x = Finite { exponent: ex, significand: mx };
                let y = Finite { exponent: ey, significand: my };
                let [result, more] = finite(sign, x, y);
                [result, flags | more]
            },
        )
    }
}
