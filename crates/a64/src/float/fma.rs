//! `FPMulAdd`.

use kvrm_ir::{Type, Val};

use super::Fp;
use super::round::Unrounded;
use super::unpack::Finite;

/// An exponent that is less than that of every product.
const NONE: i32 = -5000;

/// A sum, before rounding: as [`Unrounded`], but a sum of opposite numbers is zero.
struct Sum<'b> {
    zero: Val<'b>,
    number: Unrounded<'b>,
}

impl<'b> Fp<'b> {
    pub(super) fn mul_add(self, addend: Val<'b>, op1: Val<'b>, op2: Val<'b>) -> [Val<'b>; 2] {
        let b = self.b;
        let [a, x, y] = [addend, op1, op2].map(|v| self.normal(v));
        let [is_special, result, flags, ea, ma, ex, mx, ey, my] = b.if_else(
            self.any([a, x, y].map(|v| self.is_rare(v.exponent))),
            || {
                let (ops, denormal) = self.flush([addend, op1, op2]);
                let [zero_a, zero_x, zero_y] = ops.map(|v| self.is_zero(v));
                let [infinite_a, infinite_x, infinite_y] = ops.map(|v| self.is_infinite(v));
                let nan = self.any(ops.map(|v| self.is_nan(v)));
                // Of the product.
                let infinite = infinite_x | infinite_y;
                let zero = zero_x | zero_y;
                let is_special = nan | infinite_a | infinite | zero;
                let undefined = infinite & zero;
                let [result, flags] = b.if_else(
                    nan,
                    || {
                        let [picked, flags] = self.process_nans([addend, op1, op2]);
                        // A quiet addend does not hide that the product is undefined.
                        let [nan, ioc] = self.invalid();
                        let invalid = undefined & (addend & self.format.quiet()).ne(0u64);
                        [invalid.select(nan, picked), invalid.select(ioc, flags)]
                    },
                    || {
                        let [nan, ioc] = self.invalid();
                        let product = self.sign(op1 ^ op2);
                        let opposite = self.sign(product ^ addend).ne(0u64);
                        let invalid = undefined | (infinite & infinite_a & opposite);
                        let sum_of_zeros = opposite.select(self.sign_of_exact_zero(), product);
                        let finite = zero_a.select(sum_of_zeros, ops[0]);
                        let infinity = product | self.format.infinity();
                        let defined = infinite.select(infinity, finite);
                        [invalid.select(nan, defined), invalid.select(ioc, b.u32(0))]
                    },
                );
                let [a, x, y] = ops.map(|v| self.finite(v));
                let ea = zero_a.select(b.u32(NONE as u32), a.exponent);
                let ma = zero_a.select(self.k(0), a.significand);
                let flags = is_special.select(flags, b.u32(0)) | denormal;
                let ([ex, mx], [ey, my]) = (x.parts(), y.parts());
                [is_special, result, flags, ea, ma, ex, mx, ey, my]
            },
            || {
                let [[ea, ma], [ex, mx], [ey, my]] = [a, x, y].map(Finite::parts);
                [b.bool(false), self.k(0), b.u32(0), ea, ma, ex, mx, ey, my]
            },
        );
        b.if_else(
            is_special,
            || [result, flags],
            || {
                let a = Finite { exponent: ea, significand: ma };
                let x = Finite { exponent: ex, significand: mx };
                let y = Finite { exponent: ey, significand: my };
                let signs = [self.sign(addend), self.sign(op1 ^ op2)];
                let [result, more] = self.rounded_sum(signs, [a, x, y], false);
                [result, flags | more]
            },
        )
    }

    /// `a + x y`, given the signs of addend and product, or half of that; and the flags.
    pub(super) fn rounded_sum(
        self,
        signs: [Val<'b>; 2],
        [a, x, y]: [Finite<'b>; 3],
        halve: bool,
    ) -> [Val<'b>; 2] {
        let Sum { zero, number } = match self.format.bits {
            16 => self.sum_in(Type::U32, signs, a, x, y),
            32 => self.sum_in(Type::U64, signs, a, x, y),
            _ => self.wide_sum(signs, a, x, y),
        };
        let exponent = number.exponent - u64::from(halve);
        self.b.if_else(
            zero,
            || [self.sign_of_exact_zero(), self.b.u32(0)],
            || self.round(Unrounded { exponent, ..number }),
        )
    }

    /// With a product that fits a type.
    fn sum_in(
        self,
        ty: Type,
        [sign_a, sign_p]: [Val<'b>; 2],
        a: Finite<'b>,
        x: Finite<'b>,
        y: Finite<'b>,
    ) -> Sum<'b> {
        let (b, format) = (self.b, self.format);
        // Leading ones are in the highest bit but one, so that the sum fits.
        let top = ty.bits() - 2;
        let place = top - 1 - 2 * format.fraction;
        let product =
            (x.significand << (place / 2)).zext(ty) * (y.significand << place.div_ceil(2)).zext(ty);
        let high = b.konst(ty, 1 << top).ule(product);
        let product = high.select(product, product << 1);
        let exponent = x.exponent + y.exponent - u64::from(format.bias() - 1);
        let exponent = exponent + high.zext(Type::U32);
        let addend = a.significand.zext(ty) << (top - format.fraction);

        let product_first =
            a.exponent.slt(exponent) | (a.exponent.eq(exponent) & addend.ule(product));
        let choose =
            |p: Val<'b>, q: Val<'b>| (product_first.select(p, q), product_first.select(q, p));
        let (first_exponent, second_exponent) = choose(exponent, a.exponent);
        let (first, second) = choose(product, addend);
        let second = self.shr_jam(second, first_exponent - second_exponent);
        let sum = sign_a.ne(sign_p).select(first - second, first + second);
        let zeros = sum.clz().trunc(Type::U32);
        let sum = sum.shl_by(zeros);
        Sum {
            zero: sum.eq(0u64),
            number: Unrounded {
                sign: product_first.select(sign_p, sign_a),
                exponent: first_exponent + 1u64 - zeros,
                significand: self.narrow(sum),
            },
        }
    }

    /// With a product of 128 bits, as two halves.
    fn wide_sum(
        self,
        [sign_a, sign_p]: [Val<'b>; 2],
        a: Finite<'b>,
        x: Finite<'b>,
        y: Finite<'b>,
    ) -> Sum<'b> {
        let (b, format, ty) = (self.b, self.format, self.format.ty());
        let zero = self.k(0);
        // Leading ones are in the highest bit but one, so that the sum fits.
        let (mx, my) = (x.significand << (format.spare() - 1), y.significand << format.spare());
        let (upper, lower) = (mx.umulh(my), mx * my);
        let high = self.k(1 << 62).ule(upper);
        let upper = high.select(upper, (upper << 1) | (lower >> 63));
        let lower = high.select(lower, lower << 1);
        let exponent = x.exponent + y.exponent - u64::from(format.bias() - 1);
        let exponent = exponent + high.zext(Type::U32);
        let addend = a.significand << (format.spare() - 1);

        let product_first =
            a.exponent.slt(exponent) | (a.exponent.eq(exponent) & addend.ule(upper));
        let choose =
            |p: Val<'b>, q: Val<'b>| (product_first.select(p, q), product_first.select(q, p));
        let (first_exponent, second_exponent) = choose(exponent, a.exponent);
        let (first_upper, second_upper) = choose(upper, addend);
        let (first_lower, second_lower) = choose(lower, zero);

        // The second is shifted right: by whole words, then by bits.
        let distance = first_exponent - second_exponent;
        let far = b.u32(64).ule(distance);
        let lost = far.select(second_lower, zero);
        let second_lower = far.select(second_upper, second_lower);
        let second_upper = far.select(zero, second_upper);
        let distance = far.select(distance - 64u64, distance);
        let most = b.u32(63);
        let distance = distance.ult(most).select(distance, most);
        let down = second_lower.shr_by(distance);
        let lost = lost | (down.shl_by(distance) ^ second_lower);
        let from_upper = (second_upper << 1).shl_by(most - distance);
        let second_lower = down | from_upper | lost.ne(0u64).zext(ty);
        let second_upper = second_upper.shr_by(distance);

        let sum_lower = first_lower + second_lower;
        let carry = sum_lower.ult(first_lower).zext(ty);
        let borrow = first_lower.ult(second_lower).zext(ty);
        let opposite = sign_a.ne(sign_p);
        let upper = opposite
            .select(first_upper - second_upper - borrow, first_upper + second_upper + carry);
        let lower = opposite.select(first_lower - second_lower, sum_lower);

        // The leading one comes up: by a word, then by bits.
        let cancelled = upper.eq(0u64);
        let upper_word = cancelled.select(lower, upper);
        let lower_word = cancelled.select(zero, lower);
        let zeros = upper_word.clz().trunc(Type::U32);
        let from_lower = (lower_word >> 1).shr_by(most - zeros);
        let upper = upper_word.shl_by(zeros) | from_lower;
        let rest = lower_word.shl_by(zeros).ne(0u64).zext(ty);
        let word = cancelled.select(b.u32(64), b.u32(0));
        Sum {
            zero: upper_word.eq(0u64),
            number: Unrounded {
                sign: product_first.select(sign_p, sign_a),
                exponent: first_exponent + 1u64 - zeros - word,
                significand: upper | rest,
            },
        }
    }
}
