//! Scalar floating point (C4.1.97): instructions on single numbers, and conversions from and to general registers.
//!
//! Rows are named after the mnemonic and the register's letter (`FADD_D`); conversions between formats have the letter
//! of the destination first (`FCVT_S_D`), those with general registers the letter of the general register
//! (`FCVTZS_W_D`, `SCVTF_W_D`).
//!
//! Arithmetic is that of [`float`](crate::float): its functions take FPCR and say what FPSR gains. A [`Unit`] passes the
//! one and collects the other.

mod arithmetic;
mod compare;
mod convert;

use std::cell::Cell;

use kvrm_ir::{Builder, Function, Type, Val};

use crate::Sign;
use crate::context::Context;
use crate::float::{DOUBLE, Format, HALF, IXC, SINGLE};
use crate::row::{Choice, Row};
use crate::simd::arrangement::{Arrangement, Lane, Part};
use crate::state::{FPCR, FPSR};

pub(crate) const ROWS: &[&[&[Row]]] = &[arithmetic::ROWS, compare::ROWS, convert::ROWS];

/// Formats, by the bits that Arm calls `ftype`.
const FTYPE: &[Choice<Lane>] = &[("H", "11", Lane::H), ("S", "00", Lane::S), ("D", "01", Lane::D)];
/// The same without halves.
const FTYPE_SD: &[Choice<Lane>] = &[("S", "00", Lane::S), ("D", "01", Lane::D)];

/// The function for numbers of a format.
pub(crate) type ByFormat = fn(Format) -> &'static Function;

/// How a number is rounded to an integer. The first four are numbered as in FPCR.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundingMode {
    TieEven = 0,
    Up = 1,
    Down = 2,
    Zero = 3,
    TieAway = 4,
    /// As FPCR says.
    Fpcr,
}

impl Lane {
    /// The format of the numbers that have this size.
    pub(crate) const fn format(self) -> Format {
        match self {
            Lane::H => HALF,
            Lane::S => SINGLE,
            Lane::D => DOUBLE,
            Lane::B => unreachable!(),
        }
    }

    /// `FPNeg`.
    pub(crate) fn negated(self, number: Val<'_>) -> Val<'_> {
        number ^ self.format().sign()
    }

    /// `FPAbs`.
    pub(crate) fn absolute(self, number: Val<'_>) -> Val<'_> {
        number & self.format().magnitude()
    }
}

/// Calls floating-point functions with FPCR, and collects the bits that FPSR gains.
pub(crate) struct Unit<'b> {
    b: &'b Builder,
    /// With IXC of FPSR.
    fpcr: Val<'b>,
    gained: Cell<Option<Val<'b>>>,
}

impl<'b> Unit<'b> {
    /// The number that a function gives.
    pub(crate) fn call(&self, function: &'static Function, operands: &[Val<'b>]) -> Val<'b> {
        let [number, flags] = self.results(function, operands);
        self.gain(flags);
        number
    }

    /// The numbers that a function gives for several sets of operands.
    pub(crate) fn call_each<const N: usize>(
        &self,
        function: &'static Function,
        operands: impl IntoIterator<Item = [Val<'b>; N]>,
    ) -> Vec<Val<'b>> {
        let with_fpcr = |set: [Val<'b>; N]| set.into_iter().chain([self.fpcr]);
        let args: Vec<_> = operands.into_iter().flat_map(with_fpcr).collect();
        let results = self.b.call(function, &args);
        let (numbers, flags): (Vec<_>, Vec<_>) = results.chunks(2).map(|r| (r[0], r[1])).unzip();
        flags.into_iter().for_each(|flags| self.gain(flags));
        numbers
    }

    /// All that a function gives: the last is what FPSR is to [gain](Self::gain).
    pub(crate) fn results<const N: usize>(
        &self,
        function: &'static Function,
        operands: &[Val<'b>],
    ) -> [Val<'b>; N] {
        let results = self.b.call(function, &[operands, &[self.fpcr]].concat());
        assert_eq!(results.len(), N, "as many results as the function has");
        std::array::from_fn(|i| results[i])
    }

    /// Adds to the bits that FPSR gains.
    pub(crate) fn gain(&self, flags: Val<'b>) {
        let gained = self.gained.get().map_or(flags, |gained| gained | flags);
        self.gained.set(Some(gained));
    }

    /// A rounding mode, as functions take it.
    pub(crate) fn rounding(&self, mode: RoundingMode) -> Val<'b> {
        const RMODE: u32 = 22;
        match mode {
            RoundingMode::Fpcr => self.fpcr.bits(RMODE, 2),
            _ => self.b.u32(mode as u32),
        }
    }
}

impl<'b> Context<'b> {
    /// Does floating-point arithmetic; FPSR gains what that raises.
    pub(crate) fn floating<R>(&self, work: impl FnOnce(&Unit<'b>) -> R) -> R {
        let inexact = self.b.read_var(FPSR) & u64::from(IXC);
        let fpcr = (self.b.read_var(FPCR) | inexact).trunc(Type::U32);
        let unit = Unit { b: self.b, fpcr, gained: Cell::new(None) };
        let result = work(&unit);
        if let Some(gained) = unit.gained.get() {
            self.gain(gained);
        }
        result
    }

    /// Adds bits to FPSR, of which there are none as a rule.
    fn gain(&self, flags: Val<'b>) {
        let add = || {
            self.b.write_var(FPSR, self.b.read_var(FPSR) | flags.zext(Type::U64));
            []
        };
        self.b.if_else(flags.ne(0u64), add, || []);
    }

    /// The number that one function gives.
    pub(crate) fn fp_call(&self, function: &'static Function, operands: &[Val<'b>]) -> Val<'b> {
        self.floating(|fp| fp.call(function, operands))
    }

    /// The number in a register.
    fn number_of(&self, lane: Lane, field: &str) -> Val<'b> {
        self.vector_of(field).element(lane, 0, Sign::Unsigned)
    }

    /// Sets the register `Rd` to a number, and clears the rest of it.
    fn set_number(&self, lane: Lane, number: Val<'b>) {
        self.set_elements(Arrangement { lane, part: Part::Element }, &[number]);
    }
}
