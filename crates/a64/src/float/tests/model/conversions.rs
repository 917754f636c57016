//! Conversions.

use super::*;
use crate::Sign;

impl Model {
    /// `FPConvert` to another format, whose numbers are like this model's from then on.
    pub(in crate::float::tests) fn convert(
        &mut self,
        op: u64,
        to: Format,
        rounding: Option<Mode>,
    ) -> u64 {
        self.converts = true;
        let from = self.format;
        let op = self.unpack(op);
        self.format = to;
        let alternative = self.is_alternative();
        match op.class {
            Class::Quiet | Class::Signalling => {
                if alternative || op.is(Class::Signalling) {
                    self.raise(IOC);
                }
                if alternative {
                    return self.zero(op.sign);
                }
                if self.fpcr_bit(DN) {
                    return self.default_nan();
                }
                // The fraction's bits but the first, as those of a double.
                let fraction = op.bits << (64 - from.fraction) << 1 >> 13;
                let fraction = fraction >> (52 - to.fraction);
                self.infinity(op.sign) | 1 << (to.fraction - 1) | fraction
            }
            Class::Infinity if alternative => {
                self.raise(IOC);
                self.zero(op.sign) | 0x7fff
            }
            Class::Infinity => self.infinity(op.sign),
            Class::Zero => self.zero(op.sign),
            Class::Finite => self.round_as(op.value, rounding.unwrap_or(self.mode())),
        }
    }

    /// The number as an integer, and whether it is not exact. Numbers that are too large for every purpose
    /// become other such numbers.
    pub(in crate::float::tests) fn integer(value: Real, mode: Mode) -> (i128, bool) {
        /// Bits of the fraction.
        const POINT: i32 = 56;
        let sign = if value.negative { -1 } else { 1 };
        if value.is_zero() {
            return (0, false);
        }
        if value.leading() > 69 {
            return (sign << 69, false);
        }
        let fixed = value.scaled(-POINT);
        let fixed = sign * (fixed.magnitude | u128::from(fixed.more)) as i128;
        // Towards minus infinity.
        let int_result = fixed >> POINT;
        let error = fixed & ((1 << POINT) - 1);
        let half = error.cmp(&(1 << (POINT - 1)));
        let round_up = match mode {
            Mode::TieEven => half.is_gt() || half.is_eq() && int_result & 1 != 0,
            Mode::PosInf => error != 0,
            Mode::NegInf => false,
            Mode::Zero => error != 0 && int_result < 0,
            Mode::TieAway => half.is_gt() || half.is_eq() && int_result >= 0,
            Mode::Odd => unreachable!("not for integers"),
        };
        (int_result + i128::from(round_up), error != 0)
    }

    pub(in crate::float::tests) fn fp_to_fixed(
        &mut self,
        op: u64,
        fbits: u32,
        mode: Mode,
        range: (u32, Sign),
    ) -> u64 {
        let op = self.unpack(op);
        if op.is_nan() {
            self.raise(IOC);
        }
        let exponent = op.value.exponent + fbits as i32;
        let (integer, inexact) = Model::integer(Real { exponent, ..op.value }, mode);
        let (bits, sign) = range;
        let (least, most) = match sign {
            Sign::Unsigned => (0, (1 << bits) - 1),
            Sign::Signed => (-1 << (bits - 1), (1 << (bits - 1)) - 1),
        };
        let saturated = integer.clamp(least, most);
        if saturated != integer {
            self.raise(IOC);
        } else if inexact {
            self.raise(IXC);
        }
        saturated as u64 & (u64::MAX >> (64 - bits))
    }

    pub(in crate::float::tests) fn fixed_to_fp(
        &mut self,
        op: u64,
        fbits: u32,
        (bits, sign): (u32, Sign),
    ) -> u64 {
        let up = 64 - bits;
        let integer = match sign {
            Sign::Unsigned => i128::from(op << up >> up),
            Sign::Signed => i128::from((op << up) as i64 >> up),
        };
        match integer {
            0 => self.zero(false),
            _ => self.round(Real::new(integer < 0, integer.unsigned_abs(), -(fbits as i32))),
        }
    }

    pub(in crate::float::tests) fn round_int(&mut self, op: u64, mode: Mode, exact: bool) -> u64 {
        let op = self.unpack(op);
        match op.class {
            Class::Quiet | Class::Signalling => self.process_nan(op),
            Class::Infinity => self.infinity(op.sign),
            Class::Zero => self.zero(op.sign),
            // Integers already.
            Class::Finite if op.value.exponent >= 0 => op.bits,
            Class::Finite => {
                let (integer, inexact) = Model::integer(op.value, mode);
                if inexact && exact {
                    self.raise(IXC);
                }
                self.integral(op.sign, integer)
            }
        }
    }

    /// An integer that the format has, with the sign that zero gets.
    pub(super) fn integral(&mut self, sign: bool, integer: i128) -> u64 {
        match integer {
            0 => self.zero(sign),
            _ => {
                let value = Real::new(integer < 0, integer.unsigned_abs(), 0);
                self.round_as(value, Mode::Zero)
            }
        }
    }

    pub(in crate::float::tests) fn round_int_n(&mut self, op: u64, mode: Mode, bits: u32) -> u64 {
        let op = self.unpack(op);
        let (integer, inexact) = Model::integer(op.value, mode);
        let least = -1i128 << (bits - 1);
        if op.is_nan() || op.is(Class::Infinity) || integer < least || integer > -1 - least {
            self.raise(IOC);
            return self.integral(true, least);
        }
        if inexact {
            self.raise(IXC);
        }
        self.integral(op.sign, integer)
    }

    /// `FPToFixedJS`: the result, and Z.
    pub(in crate::float::tests) fn fp_to_fixed_js(&mut self, bits: u64) -> (u64, bool) {
        let op = self.unpack(bits);
        if op.is_nan() || op.is(Class::Infinity) {
            self.raise(IOC);
            return (0, false);
        }
        let mut z = true;
        let (int_result, inexact) = match op.value {
            // More than 128 bits.
            Real { exponent: 64.., .. } => (1 << 64, false),
            // Integers already.
            Real { exponent: exponent @ 0.., magnitude, negative, .. } => {
                let integer = (magnitude << exponent) as i128;
                (if negative { -integer } else { integer }, false)
            }
            value => Model::integer(value, Mode::Zero),
        };
        if i32::try_from(int_result).is_err() {
            self.raise(IOC);
            z = false;
        } else if inexact {
            self.raise(IXC);
            z = false;
        } else if op.value.is_zero() && bits != 0 {
            z = false;
        }
        (int_result as u64 & 0xffff_ffff, z)
    }
}
