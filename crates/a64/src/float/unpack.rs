//! `FPUnpack` and `FPProcessNaNs`: what operands are.

use kvrm_ir::{Type, Val};

use super::{AHP, DN, FZ, FZ16, Fp, IDC, IOC};

/// A finite number other than zero: the biased exponent less one, and the significand with its leading one where
/// the format's fraction ends.
#[derive(Clone, Copy)]
pub(super) struct Finite<'b> {
    pub(super) exponent: Val<'b>,
    pub(super) significand: Val<'b>,
}

impl<'b> Finite<'b> {
    pub(super) fn parts(self) -> [Val<'b>; 2] {
        [self.exponent, self.significand]
    }
}

impl<'b> Fp<'b> {
    /// The bits of the exponent, as a `u32`.
    pub(super) fn exponent(self, x: Val<'b>) -> Val<'b> {
        (x >> self.format.fraction).trunc(Type::U32) & u64::from(self.format.max_exponent())
    }

    /// The sign, in its place.
    pub(super) fn sign(self, x: Val<'b>) -> Val<'b> {
        x & self.format.sign()
    }

    pub(super) fn magnitude(self, x: Val<'b>) -> Val<'b> {
        x & self.format.magnitude()
    }

    pub(super) fn is_zero(self, x: Val<'b>) -> Val<'b> {
        self.magnitude(x).eq(0u64)
    }

    pub(super) fn is_infinite(self, x: Val<'b>) -> Val<'b> {
        self.magnitude(x).eq(self.format.infinity())
    }

    pub(super) fn is_nan(self, x: Val<'b>) -> Val<'b> {
        self.k(self.format.infinity()).ult(self.magnitude(x))
    }

    /// The parts of a normal number; nothing in particular for others.
    pub(super) fn normal(self, x: Val<'b>) -> Finite<'b> {
        let format = self.format;
        Finite {
            exponent: self.exponent(x) - 1u64,
            significand: (x & format.fraction_mask()) | format.least_normal(),
        }
    }

    /// The parts of a finite number other than zero.
    pub(super) fn finite(self, x: Val<'b>) -> Finite<'b> {
        let format = self.format;
        let fraction = x & format.fraction_mask();
        let shift = fraction.clz().trunc(Type::U32) - u64::from(format.spare());
        let denormal = self.exponent(x).eq(0u64);
        let Finite { exponent, significand } = self.normal(x);
        Finite {
            exponent: denormal.select(-shift, exponent),
            significand: denormal.select(fraction.shl_by(shift), significand),
        }
    }

    /// True unless the number is normal, given its exponent less one.
    pub(super) fn is_rare(self, exponent: Val<'b>) -> Val<'b> {
        self.b.u32(self.format.max_exponent() - 1).ule(exponent)
    }

    /// Whether denormals are flushed to zero.
    pub(super) fn flushes(self) -> Val<'b> {
        match self.format.bits {
            16 if self.converts => self.b.bool(false),
            16 => self.fpcr.bit(FZ16),
            _ => self.fpcr.bit(FZ),
        }
    }

    /// Whether numbers are in the alternative half-precision format, which has neither infinities nor NaNs.
    pub(super) fn alternative(self) -> Val<'b> {
        match self.format.bits {
            16 if self.converts => self.fpcr.bit(AHP),
            _ => self.b.bool(false),
        }
    }

    /// The operands with denormals flushed to zero if FPCR says so, and the flags of that.
    pub(super) fn flush<const N: usize>(self, ops: [Val<'b>; N]) -> ([Val<'b>; N], Val<'b>) {
        let (b, format) = (self.b, self.format);
        let flushes = self.flushes();
        let flushed = ops.map(|x| {
            let denormal = (self.magnitude(x) - 1u64).ult(format.fraction_mask()) & flushes;
            (denormal, denormal.select(self.sign(x), x))
        });
        let flags = match format.counts_flushed_operands() {
            true => self.flag_if(self.any(flushed.map(|(denormal, _)| denormal)), IDC),
            false => b.u32(0),
        };
        (flushed.map(|(_, x)| x), flags)
    }

    /// `FPProcessNaNs` if one of the operands is a NaN: the first signalling one, or the first.
    pub(super) fn process_nans<const N: usize>(self, ops: [Val<'b>; N]) -> [Val<'b>; 2] {
        let quiet = self.format.quiet();
        let nans = ops.map(|x| (x, self.is_nan(x)));
        let signalling = nans.map(|(x, nan)| (x, nan & (x & quiet).eq(0u64)));
        let in_order = signalling.into_iter().chain(nans);
        let picked = in_order.rev().fold(ops[N - 1], |later, (x, picks)| picks.select(x, later));
        let invalid = self.any(signalling.map(|(_, signals)| signals));
        let default = self.k(self.format.default_nan());
        [self.fpcr.bit(DN).select(default, picked | quiet), self.flag_if(invalid, IOC)]
    }

    /// Whether one of the conditions holds.
    pub(super) fn any<const N: usize>(self, conditions: [Val<'b>; N]) -> Val<'b> {
        conditions.into_iter().fold(self.b.bool(false), |any, condition| any | condition)
    }

    /// The default NaN of an invalid operation.
    pub(super) fn invalid(self) -> [Val<'b>; 2] {
        [self.k(self.format.default_nan()), self.b.u32(IOC)]
    }
}
