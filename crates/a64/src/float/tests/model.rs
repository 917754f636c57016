//! The manual's pseudocode, line by line, on exact numbers.

mod conversions;

use std::cmp::Ordering;

use crate::float::*;

/// `FPRounding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    TieEven,
    PosInf,
    NegInf,
    Zero,
    TieAway,
    Odd,
}

impl Mode {
    /// By the number that instructions have for it.
    pub(super) const ALL: [Mode; 5] =
        [Mode::TieEven, Mode::PosInf, Mode::NegInf, Mode::Zero, Mode::TieAway];
}

/// `FPType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Zero,
    Finite,
    Infinity,
    Quiet,
    Signalling,
}

/// A number: `magnitude × 2^exponent`, and a little `more` (less than 2^exponent) if so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Real {
    pub(super) negative: bool,
    pub(super) magnitude: u128,
    pub(super) exponent: i32,
    pub(super) more: bool,
}

impl Real {
    fn new(negative: bool, magnitude: u128, exponent: i32) -> Real {
        Real { negative, magnitude, exponent, more: false }
    }

    pub(super) fn is_zero(self) -> bool {
        self.magnitude == 0 && !self.more
    }

    /// The exponent of the leading bit.
    fn leading(self) -> i32 {
        self.exponent + self.magnitude.ilog2() as i32
    }

    /// With another exponent.
    fn scaled(self, exponent: i32) -> Real {
        match exponent - self.exponent {
            up @ 128.. => {
                assert!(up > 0);
                Real { magnitude: 0, exponent, more: !self.is_zero(), ..self }
            }
            up @ 0.. => {
                let more = self.more || self.magnitude & ((1 << up) - 1) != 0;
                Real { magnitude: self.magnitude >> up, exponent, more, ..self }
            }
            down => Real { magnitude: self.magnitude << -down, exponent, ..self },
        }
    }

    pub(super) fn product(self, other: Real) -> Real {
        let sign = self.negative != other.negative;
        Real::new(sign, self.magnitude * other.magnitude, self.exponent + other.exponent)
    }

    fn quotient(self, other: Real) -> Real {
        let shift = self.magnitude.leading_zeros();
        let dividend = self.magnitude << shift;
        Real {
            negative: self.negative != other.negative,
            magnitude: dividend / other.magnitude,
            exponent: self.exponent - shift as i32 - other.exponent,
            more: !dividend.is_multiple_of(other.magnitude),
        }
    }

    pub(super) fn sum(self, other: Real) -> Real {
        if self.is_zero() || other.is_zero() {
            return if self.is_zero() { other } else { self };
        }
        let exponent = self.leading().max(other.leading()) - 120;
        let (x, y) = (self.scaled(exponent), other.scaled(exponent));
        let (x, y) = if x.magnitude < y.magnitude { (y, x) } else { (x, y) };
        assert!(!x.more, "the larger number fits");
        let magnitude = match x.negative == y.negative {
            true => x.magnitude + y.magnitude,
            false => x.magnitude - y.magnitude - u128::from(y.more),
        };
        Real { magnitude, more: y.more, ..x }
    }

    fn root(self) -> Real {
        let shift = self.magnitude.leading_zeros() as i32;
        let shift = shift - (self.exponent - shift).rem_euclid(2);
        let square = self.magnitude << shift;
        let root = square.isqrt();
        Real {
            negative: false,
            magnitude: root,
            exponent: (self.exponent - shift) / 2,
            more: root * root != square,
        }
    }
}

/// An operand.
#[derive(Clone, Copy)]
pub(super) struct Operand {
    pub(super) bits: u64,
    pub(super) class: Class,
    pub(super) sign: bool,
    pub(super) value: Real,
}

impl Operand {
    pub(super) fn is_nan(self) -> bool {
        matches!(self.class, Class::Quiet | Class::Signalling)
    }

    fn is(self, class: Class) -> bool {
        self.class == class
    }
}

/// A processor with these settings, working on numbers of this format.
pub(super) struct Model {
    pub(super) format: Format,
    pub(super) fpcr: u32,
    pub(super) fpsr: u32,
    /// `FPUnpackCV` and `FPRoundCV` rather than `FPUnpack` and `FPRound`.
    pub(super) converts: bool,
}

impl Model {
    pub(super) fn new(format: Format, fpcr: u32) -> Model {
        Model { format, fpcr, fpsr: 0, converts: false }
    }

    pub(super) fn fpcr_bit(&self, bit: u32) -> bool {
        self.fpcr >> bit & 1 != 0
    }

    pub(super) fn mode(&self) -> Mode {
        Mode::ALL[(self.fpcr >> 22 & 3) as usize]
    }

    pub(super) fn flushes(&self) -> bool {
        match self.format.bits {
            16 => self.fpcr_bit(FZ16) && !self.converts,
            _ => self.fpcr_bit(FZ),
        }
    }

    pub(super) fn is_alternative(&self) -> bool {
        self.format.bits == 16 && self.converts && self.fpcr_bit(AHP)
    }

    pub(super) fn raise(&mut self, exception: u32) {
        self.fpsr |= exception;
    }

    pub(super) fn unpack(&mut self, bits: u64) -> Operand {
        let f = self.format;
        let sign = bits >> (f.bits - 1) & 1 != 0;
        let exponent = (bits >> f.fraction) as u32 & f.max_exponent();
        let fraction = bits & ((1 << f.fraction) - 1);
        let scale = exponent.max(1) as i32 - f.bias() as i32 - f.fraction as i32;
        let zero = Real::new(sign, 0, 0);
        let (class, value) = if exponent == 0 {
            if fraction == 0 {
                (Class::Zero, zero)
            } else if self.flushes() {
                if f.bits != 16 {
                    self.raise(IDC);
                }
                (Class::Zero, zero)
            } else {
                (Class::Finite, Real::new(sign, fraction.into(), scale))
            }
        } else if exponent == f.max_exponent() && !self.is_alternative() {
            let quiet = fraction >> (f.fraction - 1) != 0;
            match (fraction, quiet) {
                (0, _) => (Class::Infinity, Real::new(sign, 1, 1_000_000)),
                (_, true) => (Class::Quiet, zero),
                (_, false) => (Class::Signalling, zero),
            }
        } else {
            let significand = fraction | 1 << f.fraction;
            (Class::Finite, Real::new(sign, significand.into(), scale))
        };
        Operand { bits, class, sign, value }
    }

    pub(super) fn zero(&self, sign: bool) -> u64 {
        u64::from(sign) << (self.format.bits - 1)
    }

    pub(super) fn infinity(&self, sign: bool) -> u64 {
        self.zero(sign) | u64::from(self.format.max_exponent()) << self.format.fraction
    }

    pub(super) fn default_nan(&self) -> u64 {
        self.infinity(false) | 1 << (self.format.fraction - 1)
    }

    pub(super) fn process_nan(&mut self, op: Operand) -> u64 {
        if op.is(Class::Signalling) {
            self.raise(IOC);
        }
        match self.fpcr_bit(DN) {
            true => self.default_nan(),
            false => op.bits | 1 << (self.format.fraction - 1),
        }
    }

    pub(super) fn process_nans(&mut self, ops: &[Operand]) -> Option<u64> {
        let mut by_kind = [Class::Signalling, Class::Quiet].into_iter();
        let first = by_kind.find_map(|class| ops.iter().find(|op| op.class == class))?;
        Some(self.process_nan(*first))
    }

    fn invalid(&mut self) -> u64 {
        self.raise(IOC);
        self.default_nan()
    }

    pub(super) fn round(&mut self, value: Real) -> u64 {
        self.round_as(value, self.mode())
    }

    pub(super) fn round_as(&mut self, value: Real, mode: Mode) -> u64 {
        let f = self.format;
        let minimum_exp = 1 - f.bias() as i32;
        let exponent = value.leading();
        let sign = value.negative;
        if self.flushes() && exponent < minimum_exp {
            self.raise(UFC);
            return self.zero(sign);
        }
        let mut biased_exp = (exponent - minimum_exp + 1).max(0);
        let last_place = exponent.max(minimum_exp) - f.fraction as i32;
        let drop = last_place - value.exponent;
        assert!(!value.more || drop >= 2, "too few bits to round");
        let Real { magnitude: int_mant, more: inexact, .. } = value.scaled(last_place);
        let half = match drop {
            ..=0 => Ordering::Less,
            129.. => Ordering::Less,
            _ => {
                let half = 1 << (drop - 1);
                let rest = value.magnitude & (half | (half - 1));
                let more = if value.more { Ordering::Greater } else { Ordering::Equal };
                rest.cmp(&half).then(more)
            }
        };
        let mut int_mant = int_mant as u64;
        if biased_exp == 0 && inexact {
            self.raise(UFC);
        }
        let (round_up, overflow_to_inf) = match mode {
            Mode::TieEven => (half.is_gt() || half.is_eq() && int_mant & 1 != 0, true),
            Mode::PosInf => (inexact && !sign, !sign),
            Mode::NegInf => (inexact && sign, sign),
            Mode::Zero | Mode::Odd => (false, false),
            Mode::TieAway => unreachable!("not for results"),
        };
        if round_up {
            int_mant += 1;
            if int_mant == 1 << f.fraction {
                biased_exp = 1;
            }
            if int_mant == 1 << (f.fraction + 1) {
                biased_exp += 1;
                int_mant /= 2;
            }
        }
        if inexact && mode == Mode::Odd {
            int_mant |= 1;
        }
        let fraction = int_mant & ((1 << f.fraction) - 1);
        let finite = self.zero(sign) | (biased_exp as u64) << f.fraction | fraction;
        if self.is_alternative() {
            if biased_exp >= 32 {
                self.raise(IOC);
                return self.zero(sign) | 0x7fff;
            }
        } else if biased_exp >= f.max_exponent() as i32 {
            self.raise(OFC | IXC);
            return self.infinity(sign) - u64::from(!overflow_to_inf);
        }
        if inexact {
            self.raise(IXC);
        }
        finite
    }

    /// A sum that may be zero.
    fn round_sum(&mut self, value: Real) -> u64 {
        match value.is_zero() {
            true => self.zero(self.mode() == Mode::NegInf),
            false => self.round(value),
        }
    }

    pub(super) fn add(&mut self, op1: u64, op2: u64) -> u64 {
        let ops = [op1, op2].map(|op| self.unpack(op));
        self.process_nans(&ops).unwrap_or_else(|| self.sum(ops))
    }

    pub(super) fn sub(&mut self, op1: u64, op2: u64) -> u64 {
        let [x, mut y] = [op1, op2].map(|op| self.unpack(op));
        self.process_nans(&[x, y]).unwrap_or_else(|| {
            y.sign = !y.sign;
            y.value.negative = y.sign;
            self.sum([x, y])
        })
    }

    fn sum(&mut self, [x, y]: [Operand; 2]) -> u64 {
        let infinite = |sign| [x, y].iter().any(|op| op.is(Class::Infinity) && op.sign == sign);
        match (infinite(false), infinite(true)) {
            (true, true) => self.invalid(),
            (true, false) => self.infinity(false),
            (false, true) => self.infinity(true),
            _ if x.is(Class::Zero) && y.is(Class::Zero) && x.sign == y.sign => self.zero(x.sign),
            _ => self.round_sum(x.value.sum(y.value)),
        }
    }

    pub(super) fn mul(&mut self, op1: u64, op2: u64) -> u64 {
        self.product(op1, op2, Model::invalid)
    }

    pub(super) fn product(
        &mut self,
        op1: u64,
        op2: u64,
        zero_by_infinity: impl FnOnce(&mut Model) -> u64,
    ) -> u64 {
        let ops @ [x, y] = [op1, op2].map(|op| self.unpack(op));
        if let Some(nan) = self.process_nans(&ops) {
            return nan;
        }
        let any = |class| ops.iter().any(|op| op.is(class));
        let sign = x.sign != y.sign;
        match (any(Class::Infinity), any(Class::Zero)) {
            (true, true) => zero_by_infinity(self),
            (true, false) => self.infinity(sign),
            (false, true) => self.zero(sign),
            (false, false) => self.round(x.value.product(y.value)),
        }
    }

    pub(super) fn mul_add(&mut self, addend: u64, op1: u64, op2: u64) -> u64 {
        let ops @ [a, x, y] = [addend, op1, op2].map(|op| self.unpack(op));
        let any = |class| x.is(class) || y.is(class);
        let undefined = any(Class::Infinity) && any(Class::Zero);
        let nan = self.process_nans(&ops);
        if a.is(Class::Quiet) && undefined {
            return self.invalid();
        }
        if let Some(nan) = nan {
            return nan;
        }
        let sign = x.sign != y.sign;
        let infinite = |sign_of| {
            a.is(Class::Infinity) && a.sign == sign_of || any(Class::Infinity) && sign == sign_of
        };
        match (infinite(false), infinite(true)) {
            _ if undefined => self.invalid(),
            (true, true) => self.invalid(),
            (true, false) => self.infinity(false),
            (false, true) => self.infinity(true),
            _ if a.is(Class::Zero) && any(Class::Zero) && a.sign == sign => self.zero(sign),
            _ => self.round_sum(a.value.sum(x.value.product(y.value))),
        }
    }

    pub(super) fn div(&mut self, op1: u64, op2: u64) -> u64 {
        let ops @ [x, y] = [op1, op2].map(|op| self.unpack(op));
        if let Some(nan) = self.process_nans(&ops) {
            return nan;
        }
        let sign = x.sign != y.sign;
        match (x.class, y.class) {
            (Class::Infinity, Class::Infinity) | (Class::Zero, Class::Zero) => self.invalid(),
            (Class::Infinity, _) => self.infinity(sign),
            (_, Class::Zero) => {
                self.raise(DZC);
                self.infinity(sign)
            }
            (Class::Zero, _) | (_, Class::Infinity) => self.zero(sign),
            _ => self.round(x.value.quotient(y.value)),
        }
    }

    pub(super) fn sqrt(&mut self, op: u64) -> u64 {
        let op = self.unpack(op);
        match op.class {
            Class::Quiet | Class::Signalling => self.process_nan(op),
            Class::Zero => self.zero(op.sign),
            Class::Infinity if !op.sign => self.infinity(false),
            _ if op.sign => self.invalid(),
            _ => self.round(op.value.root()),
        }
    }

    fn ordering(x: Operand, y: Operand) -> Ordering {
        let [x, y] = [x, y].map(|op| op.value);
        let difference = x.sum(Real { negative: !y.negative, ..y });
        match (difference.is_zero(), difference.negative) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Less,
            (false, false) => Ordering::Greater,
        }
    }

    /// The order of two operands, if they have one.
    pub(super) fn compare(&mut self, op1: u64, op2: u64, signal_nans: bool) -> Option<Ordering> {
        let ops @ [x, y] = [op1, op2].map(|op| self.unpack(op));
        if x.is_nan() || y.is_nan() {
            if signal_nans || ops.iter().any(|op| op.is(Class::Signalling)) {
                self.raise(IOC);
            }
            return None;
        }
        Some(Model::ordering(x, y))
    }

    /// `FPMax` and `FPMin`: the operand that is `wanted`, compared with the other.
    pub(super) fn extreme(&mut self, op1: u64, op2: u64, wanted: Ordering) -> u64 {
        let ops @ [x, y] = [op1, op2].map(|op| self.unpack(op));
        if let Some(nan) = self.process_nans(&ops) {
            return nan;
        }
        let picked = if Model::ordering(x, y) == wanted { x } else { y };
        match picked.class {
            Class::Infinity => self.infinity(picked.sign),
            Class::Zero if wanted.is_gt() => self.zero(x.sign && y.sign),
            Class::Zero => self.zero(x.sign || y.sign),
            _ => self.round(picked.value),
        }
    }

    /// `FPMaxNum` and `FPMinNum`.
    pub(super) fn extreme_number(&mut self, op1: u64, op2: u64, wanted: Ordering) -> u64 {
        let [x, y] = [op1, op2].map(|op| self.unpack(op).class == Class::Quiet);
        let least = self.infinity(wanted.is_gt());
        match (x, y) {
            (true, false) => self.extreme(least, op2, wanted),
            (false, true) => self.extreme(op1, least, wanted),
            _ => self.extreme(op1, op2, wanted),
        }
    }

    pub(super) fn mul_x(&mut self, op1: u64, op2: u64) -> u64 {
        let negative = (op1 ^ op2) >> (self.format.bits - 1) & 1 != 0;
        self.product(op1, op2, |model| model.integral(negative, if negative { -2 } else { 2 }))
    }

    /// `(constant - op1 op2) / 2^halvings`, with the product of zero and infinity being zero.
    pub(super) fn step(&mut self, op1: u64, op2: u64, constant: u128, halvings: i32) -> u64 {
        let ops @ [x, y] = [op1 ^ self.zero(true), op2].map(|op| self.unpack(op));
        if let Some(nan) = self.process_nans(&ops) {
            return nan;
        }
        let any = |class| ops.iter().any(|op| op.is(class));
        let product = match (any(Class::Infinity), any(Class::Zero)) {
            (true, true) => Real::new(false, 0, 0),
            (true, false) => return self.infinity(x.sign != y.sign),
            _ => x.value.product(y.value),
        };
        let sum = Real::new(false, constant, 0).sum(product);
        self.round_sum(Real { exponent: sum.exponent - halvings, ..sum })
    }
}
