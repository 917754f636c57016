//! `FPToFixed`, `FixedToFP`, `FPRoundInt`, `FPRoundIntN`.
//!
//! Here the rounding mode is an operand: 0 to 3 as RMode in FPCR, and 4 to nearest with ties away from zero.

use kvrm_ir::{Type, Val};

use super::round::Unrounded;
use super::{Fp, IOC, IXC};
use crate::Sign;

/// The rounding modes, as numbers.
const TIEEVEN: u64 = 0;
const POSINF: u32 = 1;
const NEGINF: u32 = 2;
const TIEAWAY: u64 = 4;

/// The type that holds integers of that width.
pub(super) const fn integer_type(bits: u32) -> Type {
    if bits == 64 { Type::U64 } else { Type::U32 }
}

/// How a number is rounded to an integer.
#[derive(Clone, Copy)]
pub(super) struct ToInteger<'b> {
    pub(super) rounding: Val<'b>,
    pub(super) negative: Val<'b>,
}

impl<'b> Fp<'b> {
    /// What to add to the fraction of a magnitude, so that it carries over where the integer is rounded up.
    /// `half` is the fraction's highest bit, `all` are its bits, and `odd` is the integer's lowest bit, as 0 or
    /// 1.
    fn integer_increment(
        self,
        ToInteger { rounding, negative }: ToInteger<'b>,
        [half, all, odd]: [Val<'b>; 3],
    ) -> Val<'b> {
        let b = self.b;
        let away = rounding.eq(negative.select(b.u32(NEGINF), b.u32(POSINF)));
        let directed = away.select(all, b.konst(half.ty(), 0));
        let nearest_away = rounding.eq(TIEAWAY).select(half, directed);
        rounding.eq(TIEEVEN).select(half - 1u64 + odd, nearest_away)
    }

    /// The number times 2^fbits as an integer, saturated, and the flags.
    pub(super) fn to_fixed(
        self,
        op: Val<'b>,
        fbits: Val<'b>,
        rounding: Val<'b>,
        (bits, sign): (u32, Sign),
    ) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        let ty = format.ty().max(integer_type(bits));
        let top = ty.bits() - 1;
        let k = |bits: u64| b.konst(ty, bits);
        let negative = self.sign(op).ne(0u64);
        let field = self.exponent(op);
        let fraction =
            |op: Val<'b>| (op & format.fraction_mask()).zext(ty) << (top - format.fraction);
        let [significand, exponent, flags] = b.if_else(
            field.eq(0u64),
            || {
                let ([op], flags) = self.flush([op]);
                [fraction(op), b.u32(1), flags]
            },
            || [fraction(op) | (1u64 << top), field, b.u32(0)],
        );
        let exponent = exponent + fbits - u64::from(format.bias());
        let limit = match sign {
            Sign::Unsigned => negative.select(k(0), k(u64::MAX >> (64 - bits))),
            Sign::Signed => {
                let least = 1u64 << (bits - 1);
                negative.select(k(least), k(least - 1))
            }
        };
        let too_large = b.u32(top).slt(exponent) | self.is_max_exponent_of_half(field);
        let [result, more] = b.if_else(
            too_large,
            || [self.is_nan(op).select(k(0), limit), b.u32(IOC)],
            || {
                let shift = b.u32(top) - exponent;
                let below = b.u32(top).ult(shift);
                let integer = below.select(k(0), significand.shr_by(shift));
                // The fraction, its highest bit on top.
                let far = b.u32(top + 1).ult(shift);
                let little = far.select(significand.ne(0u64).zext(ty), significand);
                let rest = below.select(little, (significand << 1).shl_by(exponent));
                let parts = [k(1 << top), k(u64::MAX), integer & 1u64];
                let increment = self.integer_increment(ToInteger { rounding, negative }, parts);
                let integer = integer + (rest + increment).ult(rest).zext(ty);
                let overflow = limit.ult(integer);
                let signed = negative.select(-integer, integer);
                let inexact = self.flag_if(rest.ne(0u64), IXC);
                [overflow.select(limit, signed), overflow.select(b.u32(IOC), inexact)]
            },
        );
        let result = result.trunc(integer_type(bits));
        let result = if bits == 16 { result & 0xffffu64 } else { result };
        [result, flags | more]
    }

    /// Infinities and NaNs of other formats have exponents beyond those of all integers.
    fn is_max_exponent_of_half(self, exponent: Val<'b>) -> Val<'b> {
        match self.format.bits {
            16 => exponent.eq(u64::from(self.format.max_exponent())),
            _ => self.b.bool(false),
        }
    }

    /// An integer divided by 2^fbits, and the flags.
    pub(super) fn fixed_to_fp(
        self,
        op: Val<'b>,
        fbits: Val<'b>,
        (bits, sign): (u32, Sign),
    ) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        let sixteen = b.u32(16);
        let op = match (bits, sign) {
            (16, Sign::Signed) => op.shl_by(sixteen).sar_by(sixteen),
            _ => op,
        };
        let (negative, magnitude) = match sign {
            Sign::Unsigned => (b.bool(false), op),
            Sign::Signed => (op.sign(), op.sign().select(-op, op)),
        };
        b.if_else(
            magnitude.eq(0u64),
            || [self.k(0), b.u32(0)],
            || {
                let zeros = magnitude.clz().trunc(Type::U32);
                let one = b.u32(op.ty().bits() - 1 + format.bias() - 1);
                self.round(Unrounded {
                    sign: negative.select(self.k(format.sign()), self.k(0)),
                    exponent: one - zeros - fbits,
                    significand: self.fitted(magnitude.shl_by(zeros)),
                })
            },
        )
    }

    /// The number as an integer, and the flags; inexact counts if `exact` is 1.
    pub(super) fn round_int(self, op: Val<'b>, rounding: Val<'b>, exact: Val<'b>) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        let bias = format.bias();
        let exponent = self.exponent(op);
        let way = ToInteger { rounding, negative: self.sign(op).ne(0u64) };
        let inexact = |inexact: Val<'b>| (inexact.zext(Type::U32) & exact) << IXC.trailing_zeros();
        b.if_else(
            b.u32(bias + format.fraction).ule(exponent),
            || {
                let number = || [op, b.u32(0)];
                b.if_else(self.is_nan(op), || self.process_nans([op]), number)
            },
            || {
                b.if_else(
                    exponent.ult(u64::from(bias)),
                    || {
                        let ([op], flags) = self.flush([op]);
                        let [magnitude, fraction] = self.round_less_than_one(op, way);
                        [magnitude | self.sign(op), inexact(fraction) | flags]
                    },
                    || {
                        // The last bit of an integer; for one, that is the last bit of the exponent, which is odd.
                        let one = self.k(1).shl_by(b.u32(bias + format.fraction) - exponent);
                        let fraction = one - 1u64;
                        let odd = (op & one).ne(0u64).zext(format.ty());
                        let increment = self.integer_increment(way, [one >> 1, fraction, odd]);
                        [(op + increment) & !fraction, inexact((op & fraction).ne(0u64))]
                    },
                )
            },
        )
    }

    /// The magnitude of zero or one, and whether there was a fraction.
    fn round_less_than_one(self, op: Val<'b>, way: ToInteger<'b>) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        let half = (u64::from(format.bias()) - 1) << format.fraction;
        let one = u64::from(format.bias()) << format.fraction;
        let magnitude = self.magnitude(op);
        let away = way.rounding.eq(way.negative.select(b.u32(NEGINF), b.u32(POSINF)));
        let more_than = self.k(half).ult(magnitude) & way.rounding.eq(TIEEVEN);
        let at_least = self.k(half).ule(magnitude) & way.rounding.eq(TIEAWAY);
        let fraction = magnitude.ne(0u64);
        let up = more_than | at_least | (fraction & away);
        [up.select(self.k(one), self.k(0)), fraction]
    }

    /// The number as an integer that fits `bits` bits, signed, or the least such integer.
    pub(super) fn round_int_n(self, op: Val<'b>, rounding: Val<'b>, bits: u32) -> [Val<'b>; 2] {
        let b = self.b;
        let least = u64::from(self.format.bias() + bits - 1) << self.format.fraction;
        let [result, flags] = self.round_int(op, rounding, b.u32(1));
        let magnitude = self.magnitude(result);
        let beyond = self.k(least).ult(magnitude);
        let overflow = beyond | (magnitude.eq(least) & self.sign(op).eq(0u64));
        let least = self.k(least | self.format.sign());
        [overflow.select(least, result), overflow.select(b.u32(IOC), flags)]
    }

    /// Of a double: the integer modulo 2^32, whether that is exact as 0 or 1, and the flags.
    pub(super) fn to_fixed_js(self, op: Val<'b>) -> [Val<'b>; 3] {
        let (b, format) = (self.b, self.format);
        let ([flushed], denormal) = self.flush([op]);
        let negative = self.sign(op).ne(0u64);
        let exponent = self.exponent(op) - u64::from(format.bias());
        let significand = (op & format.fraction_mask()) | format.least_normal();
        let last = b.u32(format.fraction);
        // Without a fraction; all bits that count are gone 32 places further.
        let up = exponent - last;
        let shifted = up.ult(32u64).select(significand.shl_by(up), self.k(0));
        let down = last - exponent;
        let fits = exponent.slt(u64::from(format.fraction));
        let integer = fits.select(significand.shr_by(down), shifted);
        let integer = exponent.sign().select(self.k(0), integer);
        let whole = integer.trunc(Type::U32);
        let result = negative.select(-whole, whole);
        // Integers that are not modulo 2^32.
        let most = negative.select(self.k(1 << 31), self.k((1 << 31) - 1));
        let overflow = b.u32(31).slt(exponent) | most.ult(integer);
        let below_one = exponent.sign();
        let fraction = fits & significand.ne(significand.shr_by(down).shl_by(down));
        let inexact = below_one.select(!self.is_zero(flushed), fraction);
        let flags = overflow.select(b.u32(IOC), self.flag_if(inexact, IXC)) | denormal;
        let exact = !(overflow | inexact | denormal.ne(0u64) | op.eq(format.sign()));
        let is_special = self.k(format.infinity()).ule(self.magnitude(op));
        [is_special.select(b.u32(0), result), exact.zext(Type::U32), flags]
    }
}
