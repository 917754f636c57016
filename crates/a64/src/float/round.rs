//! `FPRound`.

use kvrm_ir::{Type, Val};

use super::{Fp, IOC, IXC, OFC, UFC};

/// FPCR: the bits of RMode.
const RMODE: u64 = 3 << 22;
/// RMode, in its place: to nearest, with ties to even.
const TIEEVEN: u64 = 0;
/// RMode, in its place: towards plus infinity.
const POSINF: u32 = 1 << 22;
/// RMode, in its place: towards minus infinity.
const NEGINF: u32 = 2 << 22;

/// How results are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// As RMode says.
    Fpcr,
    /// To the number whose last bit is one, unless the result is exact.
    Odd,
    /// The same, but what is larger than all numbers is infinite.
    OddOrInfinity,
}

/// A number that is not zero, before rounding.
#[derive(Clone, Copy)]
pub(super) struct Unrounded<'b> {
    /// In its place.
    pub(super) sign: Val<'b>,
    /// The biased exponent less one; may be out of range, as a signed number.
    pub(super) exponent: Val<'b>,
    /// With its leading one in the highest bit of the format's type. Bits that were lost are jammed into the
    /// lowest.
    pub(super) significand: Val<'b>,
}

impl<'b> Fp<'b> {
    /// The sign of a sum of opposite numbers.
    pub(super) fn sign_of_exact_zero(self) -> Val<'b> {
        let negative = (self.fpcr & RMODE).eq(u64::from(NEGINF));
        negative.select(self.k(self.format.sign()), self.k(0))
    }

    /// `x` shifted right by any amount, with what is lost jammed into the lowest bit.
    pub(super) fn shr_jam(self, x: Val<'b>, amount: Val<'b>) -> Val<'b> {
        let most = self.b.u32(x.ty().bits() - 1);
        let amount = amount.ult(most).select(amount, most);
        let shifted = x.shr_by(amount);
        shifted | shifted.shl_by(amount).ne(x).zext(x.ty())
    }

    /// The number and the flags.
    pub(super) fn round(self, number: Unrounded<'b>) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        let (ty, spare) = (format.ty(), format.spare());
        let Unrounded { sign, exponent, significand } = number;
        let [exponent, significand, flags] = b.if_else(
            b.u32(format.max_exponent()).ule(exponent),
            || self.out_of_range(exponent, significand),
            || [exponent, significand, b.u32(0)],
        );
        // All that decides about rounding fits 32 bits.
        let low = significand.trunc(Type::U32);
        let rest = low & ((1u64 << spare) - 1);
        let inexact = rest.ne(0u64);
        let whole = match self.rounding {
            Rounding::Fpcr => {
                let up = (rest + self.increment(sign, low, spare)) >> spare;
                (significand >> spare) + up.zext(ty)
            }
            Rounding::Odd | Rounding::OddOrInfinity => (significand >> spare) | inexact.zext(ty),
        };
        // The leading one of the significand makes up for the one that the exponent is less.
        let magnitude = (exponent.zext(ty) << format.fraction) + whole;
        let flags = flags | self.flag_if(inexact, IXC);
        let [magnitude, flags] = b.if_else(
            self.k(format.infinity()).ule(magnitude),
            || {
                let overflow = [self.overflow(sign), b.u32(OFC | IXC)];
                // The alternative format has numbers there.
                let beyond = self.k(format.sign()).ule(magnitude);
                let most = self.k(format.magnitude());
                let number = [beyond.select(most, magnitude), beyond.select(b.u32(IOC), flags)];
                let alternative = self.alternative();
                [0, 1].map(|i| alternative.select(number[i], overflow[i]))
            },
            || [magnitude, flags],
        );
        [sign | magnitude, flags]
    }

    /// What to add to a significand of which the lowest `spare` bits do not fit, so that they carry over where
    /// it is rounded up.
    pub(super) fn increment(self, sign: Val<'b>, low: Val<'b>, spare: u32) -> Val<'b> {
        let b = self.b;
        let mode = self.fpcr & RMODE;
        let to_even = low.bits(spare, 1) + ((1u64 << (spare - 1)) - 1);
        let all = b.u32((1 << spare) - 1);
        let directed = self.is_away(mode, sign).select(all, b.u32(0));
        mode.eq(TIEEVEN).select(to_even, directed)
    }

    /// Whether a rounding mode is the one towards the infinity of that sign.
    fn is_away(self, mode: Val<'b>, sign: Val<'b>) -> Val<'b> {
        mode.eq(sign.ne(0u64).select(self.b.u32(NEGINF), self.b.u32(POSINF)))
    }

    /// The magnitude of a number that is larger than all: infinity, or the largest one.
    pub(super) fn overflow(self, sign: Val<'b>) -> Val<'b> {
        let infinity = self.format.infinity();
        let mode = self.fpcr & RMODE;
        let to_infinity = match self.rounding {
            Rounding::Fpcr => mode.eq(TIEEVEN) | self.is_away(mode, sign),
            Rounding::Odd => self.b.bool(false),
            Rounding::OddOrInfinity => self.b.bool(true),
        };
        to_infinity.select(self.k(infinity), self.k(infinity - 1))
    }

    /// Exponent, significand and flags of a number that is less than the least normal one, or larger than all.
    fn out_of_range(self, exponent: Val<'b>, significand: Val<'b>) -> [Val<'b>; 3] {
        let (b, format) = (self.b, self.format);
        let tiny = exponent.sign();
        let flushed = tiny & self.flushes();
        let denormal = flushed.select(self.k(0), self.shr_jam(significand, -exponent));
        let inexact = (denormal & ((1u64 << format.spare()) - 1)).ne(0u64);
        [
            tiny.select(b.u32(0), b.u32(format.max_exponent() + 1)),
            tiny.select(denormal, significand),
            self.flag_if(flushed | (tiny & inexact), UFC),
        ]
    }
}
