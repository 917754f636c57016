//! `FPConvertBF`, and the arithmetic of BFDOT and BFMMLA on a processor without FEAT_EBF16: `FPAdd_BF16`,
//! `BFMulH`.
//!
//! A number in the Brain format is the upper half of a single.

use kvrm_ir::{Builder, Val};

use super::round::Rounding;
use super::{DN, FZ, Fp, IXC, OFC, SINGLE, UFC};

/// Bits of a single that the format lacks.
const DROPPED: u32 = 16;

impl<'b> Fp<'b> {
    /// Sums and products of singles as BFDOT has them: denormals are zero, NaNs are the default NaN, results
    /// are rounded to odd. The flags are to be ignored.
    pub(super) fn bfloat(b: &'b Builder) -> Fp<'b> {
        let fpcr = b.u32(1 << FZ | 1 << DN);
        Fp { rounding: Rounding::OddOrInfinity, ..Fp::new(b, SINGLE, fpcr) }
    }

    /// The product of the numbers in the low halves, as a single.
    pub(super) fn bf_mul_h(self, op1: Val<'b>, op2: Val<'b>) -> Val<'b> {
        self.mul(op1 << DROPPED, op2 << DROPPED)[0]
    }

    /// A single in the Brain format, and the flags. The formats have the same exponents, so this rounds the bits.
    pub(super) fn convert_bf(self, op: Val<'b>) -> [Val<'b>; 2] {
        let (b, format) = (self.b, self.format);
        let [op, denormal] = b.if_else(
            self.exponent(op).eq(0u64),
            || {
                let ([op], flags) = self.flush([op]);
                [op, flags]
            },
            || [op, b.u32(0)],
        );
        let [result, flags] = b.if_else(
            self.is_nan(op),
            || self.process_nans([op]),
            || {
                let dropped = (1u64 << DROPPED) - 1;
                let rounded = op + self.increment(self.sign(op), op, DROPPED);
                let inexact = (op & dropped).ne(0u64);
                let tiny = self.magnitude(op).ult(format.least_normal());
                let over = self.k(format.infinity()).ule(self.magnitude(rounded));
                let ends = self.flag_if(tiny, UFC) | self.flag_if(over, OFC);
                [rounded, inexact.select(ends | u64::from(IXC), b.u32(0))]
            },
        );
        [result >> DROPPED, flags | denormal]
    }
}
