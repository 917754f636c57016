//! `FPAdd`, `FPSub`.

use kvrm_ir::{Type, Val};

use super::Fp;
use super::round::Unrounded;

impl<'b> Fp<'b> {
    pub(super) fn add(self, op1: Val<'b>, op2: Val<'b>) -> [Val<'b>; 2] {
        self.sum(op1, op2, op2)
    }

    pub(super) fn sub(self, op1: Val<'b>, op2: Val<'b>) -> [Val<'b>; 2] {
        self.sum(op1, op2 ^ self.format.sign(), op2)
    }

    /// The sum of `op1` and `op2`, which was `nan` if that is a NaN.
    fn sum(self, op1: Val<'b>, op2: Val<'b>, nan: Val<'b>) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        // A significand has its leading one in the highest bit but one, so that the sum fits.
        let place = format.spare() - 1;
        let fraction = |v: Val<'b>| (v & format.fraction_mask()) << place;
        let hidden = format.least_normal() << place;

        // The magnitude of `x` is not less than that of `y`.
        let swapped = self.magnitude(op1).ult(self.magnitude(op2));
        let (x, y) = (swapped.select(op2, op1), swapped.select(op1, op2));
        let (ex, ey) = (self.exponent(x), self.exponent(y));
        let (mx, my) = (fraction(x) | hidden, fraction(y) | hidden);
        let opposite = self.sign(x ^ y).ne(0u64);
        let special = ex.eq(u64::from(format.max_exponent()));

        let [is_special, result, flags, mx, my, ex, distance] = b.if_else(
            special | ey.eq(0u64),
            || {
                let ([x, y], denormal) = self.flush([x, y]);
                let [result, flags] = b.if_else(
                    special,
                    || self.special_sum(op1, nan, x, y),
                    || [self.k(0), b.u32(0)],
                );
                // Denormals have the exponent of the least normal number, without its one.
                let both = ex.eq(0u64);
                let ex = both.select(b.u32(1), ex);
                let mx = both.select(fraction(x), mx);
                [special, result, flags | denormal, mx, fraction(y), ex, ex - 1u64]
            },
            || [b.bool(false), self.k(0), b.u32(0), mx, my, ex, ex - ey],
        );
        b.if_else(
            is_special,
            || [result, flags],
            || {
                let my = self.shr_jam(my, distance);
                let sum = opposite.select(mx - my, mx + my);
                let [result, more] = b.if_else(
                    sum.eq(0u64),
                    || [opposite.select(self.sign_of_exact_zero(), self.sign(x)), b.u32(0)],
                    || {
                        let zeros = sum.clz().trunc(Type::U32);
                        self.round(Unrounded {
                            sign: self.sign(x),
                            exponent: ex - zeros,
                            significand: sum.shl_by(zeros),
                        })
                    },
                );
                [result, flags | more]
            },
        )
    }

    /// The sum if one of the operands is infinite or a NaN: `x` is, unless `y` is a NaN, too.
    fn special_sum(self, op1: Val<'b>, op2: Val<'b>, x: Val<'b>, y: Val<'b>) -> [Val<'b>; 2] {
        self.b.if_else(
            self.is_nan(x) | self.is_nan(y),
            || self.process_nans([op1, op2]),
            || {
                let [nan, ioc] = self.invalid();
                let invalid = (x ^ y).eq(self.format.sign());
                [invalid.select(nan, x), invalid.select(ioc, self.b.u32(0))]
            },
        )
    }
}
