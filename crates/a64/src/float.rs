//! Floating-point arithmetic, bit by bit: the functions of the Arm manual's "shared/functions/float".
//!
//! Each is a pure [`Function`](kvrm_ir::Function) of the IR, once for each format, with the name it has in the
//! manual and the width of its operands: `FPAdd_32`. The functions here give the one for a [`Format`].
//!
//! - A number is its bit pattern: a half and a single are a `u32` (the upper bits of a half are zero), a double is
//!   a `u64`.
//! - `fpcr` is the control register; of it, AHP, DN, FZ, RMode and FZ16 count. Its bit IXC, which the register does
//!   not have, is that of FPSR, for [`native`].
//! - Results are the number and the bits that FPSR gains.
//!
//! There is no FEAT_AFP: the bits AH, FIZ and NEP of FPCR are zero. Exceptions never trap.
//!
//! # Formats
//!
//! Arithmetic of halves looks at FZ16, that of singles and doubles at FZ. A denormal operand that is flushed
//! counts as an input denormal (IDC) unless it is a half. A result that is less than the least normal number
//! *before* rounding is flushed, which is underflow (UFC) but not inexact. Conversions to and from halves do
//! not flush halves.
//!
//! # How it is done
//!
//! Engines interpret these on GPUs, so what happens with ordinary numbers is short and has few branches: one
//! `if` for operands that are zero, denormal, infinite or not a number, one for results at the ends of the
//! range, one for overflow. Whatever bits get lost on the way to a result are kept as one bit that says so
//! ("jammed" into the last place).

mod add;
mod bfloat;
mod compare;
mod convert;
mod div;
mod estimate;
mod fixed;
mod fma;
mod functions;
mod mul;
mod native;
mod round;
mod sqrt;
#[cfg(test)]
mod tests;
mod unpack;

use kvrm_ir::{Builder, Type, Val};

pub(crate) use functions::*;
use round::Rounding;

/// An IEEE 754 format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Width of a number.
    pub(crate) bits: u32,
    /// Width of the exponent.
    pub(crate) exponent: u32,
    /// Width of the fraction.
    pub(crate) fraction: u32,
}

/// Half precision.
pub(crate) const HALF: Format = Format { bits: 16, exponent: 5, fraction: 10 };
/// Single precision.
pub(crate) const SINGLE: Format = Format { bits: 32, exponent: 8, fraction: 23 };
/// Double precision.
pub(crate) const DOUBLE: Format = Format { bits: 64, exponent: 11, fraction: 52 };

impl Format {
    /// The type that holds a number.
    pub(crate) const fn ty(self) -> Type {
        if self.bits == 64 { Type::U64 } else { Type::U32 }
    }

    /// Where its functions are in a list by format.
    const fn index(self) -> usize {
        match self.bits {
            16 => 0,
            32 => 1,
            _ => 2,
        }
    }

    /// The sign bit.
    pub(crate) const fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    /// All bits but the sign.
    pub(crate) const fn magnitude(self) -> u64 {
        self.sign() - 1
    }

    /// The bits of the fraction.
    const fn fraction_mask(self) -> u64 {
        self.least_normal() - 1
    }

    /// The least normal number; its one bit is where normal numbers have a one that is not written down.
    const fn least_normal(self) -> u64 {
        1 << self.fraction
    }

    /// The bits of the exponent, in the lowest places: the exponent of infinities and NaNs.
    const fn max_exponent(self) -> u32 {
        (1 << self.exponent) - 1
    }

    /// The exponent of one.
    const fn bias(self) -> u32 {
        self.max_exponent() >> 1
    }

    /// Infinity.
    const fn infinity(self) -> u64 {
        (self.max_exponent() as u64) << self.fraction
    }

    /// What tells a quiet NaN from a signalling one.
    const fn quiet(self) -> u64 {
        1 << (self.fraction - 1)
    }

    /// `FPDefaultNaN`.
    const fn default_nan(self) -> u64 {
        self.infinity() | self.quiet()
    }

    /// Bits that the type has for a significand beyond those that the format has.
    const fn spare(self) -> u32 {
        self.ty().bits() - 1 - self.fraction
    }

    /// True if an operand that is flushed to zero is counted.
    const fn counts_flushed_operands(self) -> bool {
        self.bits != 16
    }
}

/// FPSR: invalid operation.
const IOC: u32 = 1 << 0;
/// FPSR: division by zero.
const DZC: u32 = 1 << 1;
/// FPSR: overflow.
const OFC: u32 = 1 << 2;
/// FPSR: underflow.
const UFC: u32 = 1 << 3;
/// FPSR: inexact.
pub(crate) const IXC: u32 = 1 << 4;
/// FPSR: input denormal.
const IDC: u32 = 1 << 7;

/// FPCR: halves are flushed to zero.
const FZ16: u32 = 19;
/// FPCR: singles and doubles are flushed to zero.
const FZ: u32 = 24;
/// FPCR: NaNs are the default NaN.
const DN: u32 = 25;

/// FPCR: halves are in the alternative format.
const AHP: u32 = 26;

/// Builds operations on numbers of one format.
#[derive(Clone, Copy)]
struct Fp<'b> {
    b: &'b Builder,
    format: Format,
    fpcr: Val<'b>,
    rounding: Rounding,
    /// `FPUnpackCV` and `FPRoundCV` rather than `FPUnpack` and `FPRound`: halves are not flushed, and may be in
    /// the alternative format.
    converts: bool,
}

impl<'b> Fp<'b> {
    /// Arithmetic as FPCR says.
    fn new(b: &'b Builder, format: Format, fpcr: Val<'b>) -> Fp<'b> {
        Fp { b, format, fpcr, rounding: Rounding::Fpcr, converts: false }
    }

    /// A constant of the format's type.
    fn k(self, bits: u64) -> Val<'b> {
        self.b.konst(self.format.ty(), bits)
    }

    /// The bits of FPSR, if the condition holds.
    fn flag_if(self, condition: Val<'b>, flag: u32) -> Val<'b> {
        condition.select(self.b.u32(flag), self.b.u32(0))
    }
}
