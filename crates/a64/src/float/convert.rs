//! `FPConvert`: between formats.

use kvrm_ir::{Type, Val};

use super::round::{Rounding, Unrounded};
use super::unpack::Finite;
use super::{DN, Format, Fp, HALF, IOC, SINGLE};

impl<'b> Fp<'b> {
    /// The number in another format, and the flags.
    pub(super) fn convert(self, op: Val<'b>, to: Format, rounding: Rounding) -> [Val<'b>; 2] {
        let [from, to] =
            [self.format, to].map(|format| Fp { format, rounding, converts: true, ..self });
        match from.format.bits < to.format.bits {
            true => from.widen(op, to),
            false => from.narrow_to(op, to),
        }
    }

    /// The sign, in its place in another format.
    fn sign_in(self, op: Val<'b>, to: Fp<'b>) -> Val<'b> {
        let (from, to) = (self.format, to.format);
        let sign = self.sign(op);
        match from.bits < to.bits {
            true => sign.zext(to.ty()) << (to.bits - from.bits),
            false => (sign >> (from.bits - to.bits)).trunc(to.ty()),
        }
    }

    /// `FPConvertNaN`, or the default NaN.
    fn convert_nan(self, op: Val<'b>, to: Fp<'b>) -> Val<'b> {
        let (from, default) = (self.format, to.k(to.format.default_nan()));
        let fraction = op & from.fraction_mask();
        let payload = match from.bits < to.format.bits {
            true => fraction.zext(to.format.ty()) << (to.format.fraction - from.fraction),
            false => (fraction >> (from.fraction - to.format.fraction)).trunc(to.format.ty()),
        };
        self.fpcr.bit(DN).select(default, self.sign_in(op, to) | payload | to.format.default_nan())
    }

    fn is_signalling(self, op: Val<'b>) -> Val<'b> {
        self.is_nan(op) & (op & self.format.quiet()).eq(0u64)
    }

    /// To a format that has all numbers of this one.
    fn widen(self, op: Val<'b>, to: Fp<'b>) -> [Val<'b>; 2] {
        let (b, from, ty) = (self.b, self.format, to.format.ty());
        let place = to.format.fraction - from.fraction;
        let rebias = to.format.bias() - from.bias();
        let sign = self.sign_in(op, to);
        let exponent = self.exponent(op);
        b.if_else(
            self.is_rare(exponent - 1u64),
            || {
                let ([op], flags) = self.flush([op]);
                let special = exponent.eq(u64::from(from.max_exponent())) & !self.alternative();
                let (zero, nan) = (self.is_zero(op), special & self.is_nan(op));
                let Finite { exponent, significand } = self.finite(op);
                let exponent = (exponent + u64::from(rebias)).zext(ty);
                // The leading one of the significand makes up for the one that the exponent is less.
                let finite = (exponent << to.format.fraction) + (significand.zext(ty) << place);
                let finite = zero.select(to.k(0), finite);
                let number = sign | special.select(to.k(to.format.infinity()), finite);
                let invalid = self.flag_if(special & self.is_signalling(op), IOC);
                [nan.select(self.convert_nan(op, to), number), flags | invalid]
            },
            || {
                let magnitude = self.magnitude(op).zext(ty) << place;
                [sign | (magnitude + (u64::from(rebias) << to.format.fraction)), b.u32(0)]
            },
        )
    }

    /// A half as a single, flushed if FZ16 says so. A NaN stays quiet or signalling.
    pub(super) fn half_as_single(self, op: Val<'b>) -> [Val<'b>; 1] {
        let to = Fp { format: SINGLE, ..self };
        let place = SINGLE.fraction - HALF.fraction;
        let ([op], _) = self.flush([op]);
        let special = self.exponent(op).eq(u64::from(HALF.max_exponent()));
        let Finite { exponent, significand } = self.finite(op);
        let exponent = exponent + u64::from(SINGLE.bias() - HALF.bias());
        let finite = (exponent << SINGLE.fraction) + (significand << place);
        let finite = self.is_zero(op).select(to.k(0), finite);
        let infinite = ((op & HALF.fraction_mask()) << place) | SINGLE.infinity();
        [self.sign_in(op, to) | special.select(infinite, finite)]
    }

    /// To a format that lacks some numbers of this one. All its denormals are less than half the least number
    /// there.
    fn narrow_to(self, op: Val<'b>, to: Fp<'b>) -> [Val<'b>; 2] {
        let (b, from) = (self.b, self.format);
        let sign = self.sign_in(op, to);
        let Finite { exponent, significand } = self.normal(op);
        let [is_special, result, flags] = b.if_else(
            self.is_rare(exponent),
            || {
                let ([op], flags) = self.flush([op]);
                let (zero, nan) = (self.is_zero(op), self.is_nan(op));
                let special = exponent.eq(u64::from(from.max_exponent() - 1));
                let alternative = to.alternative();
                let infinity =
                    alternative.select(to.k(to.format.magnitude()), to.k(to.format.infinity()));
                let number = sign | special.select(infinity, to.k(0));
                let nan = nan.select(alternative.select(sign, self.convert_nan(op, to)), number);
                let invalid = self.is_signalling(op) | (special & alternative);
                [special | zero, nan, flags | self.flag_if(invalid, IOC)]
            },
            || [b.bool(false), to.k(0), b.u32(0)],
        );
        b.if_else(
            is_special,
            || [result, flags],
            || {
                let [result, more] = to.round(Unrounded {
                    sign,
                    exponent: exponent - u64::from(from.bias() - to.format.bias()),
                    significand: to.narrow(significand << from.spare()),
                });
                [result, flags | more]
            },
        )
    }

    /// The upper bits of a significand that is wider than the format's type.
    pub(super) fn narrow(self, significand: Val<'b>) -> Val<'b> {
        let ty = self.format.ty();
        if significand.ty() == ty {
            return significand;
        }
        (significand >> 32).trunc(ty) | significand.trunc(ty).ne(0u64).zext(ty)
    }

    /// A significand in the highest bits of the format's type.
    pub(super) fn fitted(self, significand: Val<'b>) -> Val<'b> {
        match (significand.ty(), self.format.ty()) {
            (Type::U32, Type::U64) => significand.zext(Type::U64) << 32,
            _ => self.narrow(significand),
        }
    }
}
