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

use kvrm_ir::{Builder, FloatOp, Function, PackedOp, Type, Val};

use crate::Sign;
use crate::context::Context;
use crate::float::native::{self, Right};
use crate::float::{DOUBLE, Format, HALF, IXC, SINGLE};
use crate::row::{Choice, Row};
use crate::simd::arrangement::{Arrangement, Lane, Part};
use crate::simd::vector::Vector;
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

/// Packed numbers by an operation of the host.
struct Packed<'b> {
    op: FloatOp,
    operands: Vec<Val<'b>>,
    numbers: Val<'b>,
    /// Ones where they are finite.
    finite: Val<'b>,
    /// Ones where they are [right](Right).
    right: Val<'b>,
    /// Whether all are, and results are rounded as the host does.
    does: Val<'b>,
}

impl<'b> Unit<'b> {
    /// The number that a function gives.
    pub(crate) fn call(&self, function: &'static Function, operands: &[Val<'b>]) -> Val<'b> {
        self.numbers(function, &[operands, &[self.fpcr]].concat())[0]
    }

    /// The numbers that a function gives for sets of arguments.
    fn numbers(&self, function: &'static Function, args: &[Val<'b>]) -> Vec<Val<'b>> {
        let gain = |results: &[Val<'b>]| results.chunks(2).for_each(|set| self.gain(set[1]));
        let results = match self.b.shortens_calls() {
            true => self.b.call_and(function, args, |results| add_flags(self.b, flags_of(results))),
            false => self.b.call_and(function, args, gain),
        };
        results.into_iter().step_by(2).collect()
    }

    /// The numbers that a function gives for several sets of operands.
    pub(crate) fn call_each<const N: usize>(
        &self,
        function: &'static Function,
        operands: impl IntoIterator<Item = [Val<'b>; N]>,
    ) -> Vec<Val<'b>> {
        let with_fpcr = |set: [Val<'b>; N]| set.into_iter().chain([self.fpcr]);
        let args: Vec<_> = operands.into_iter().flat_map(with_fpcr).collect();
        self.numbers(function, &args)
    }

    /// The numbers that a function gives for the elements of vectors.
    pub(crate) fn map<const N: usize>(
        &self,
        function: &'static Function,
        t: Arrangement,
        operands: [Vector<'b>; N],
    ) -> Vector<'b> {
        let elements = || operands.map(|vector| vector.elements(t, Sign::Unsigned));
        let sets = || {
            let elements = elements();
            (0..t.count()).map(move |i| std::array::from_fn(|operand| elements[operand][i]))
        };
        let packed =
            if t.part == Part::Element { None } else { self.packed(function, t, operands) };
        let Some(packed) = packed else {
            return Vector::from_elements(self.b, t.lane, &self.call_each::<N>(function, sets()));
        };
        let by_elements = || {
            let with_fpcr = |set: [Val<'b>; N]| set.into_iter().chain([self.fpcr]);
            let args: Vec<_> = sets().flat_map(with_fpcr).collect();
            let results = self.b.plain_call(function, &args);
            add_flags(self.b, flags_of(&results));
            let numbers: Vec<_> = results.into_iter().step_by(2).collect();
            let numbers = Vector::from_elements(self.b, t.lane, &numbers);
            [numbers.whole().expect("there are wholes")]
        };
        let second_look = || {
            let is_exact = self.is_exact(t.lane, &packed);
            self.b.if_else(is_exact, || [packed.numbers], by_elements)
        };
        let [numbers] = self.b.if_else(packed.does, || [packed.numbers], second_look);
        Vector::of_whole(self.b, numbers)
    }

    /// The same by an operation on packed numbers.
    fn packed<const N: usize>(
        &self,
        function: &Function,
        t: Arrangement,
        operands: [Vector<'b>; N],
    ) -> Option<Packed<'b>> {
        let (op, order, right) = native::packed(function, t.lane.format())?;
        let wholes = operands.map(|vector| match t.part {
            Part::Whole => vector.whole(),
            // So that there are no other numbers that may go wrong.
            Part::Element | Part::Half => Vector::both(vector.0[0]).whole(),
        });
        let operands = order.iter().map(|i| wholes[*i]).collect::<Option<Vec<_>>>()?;
        let packed = |op, args: &[Val<'b>]| self.b.packed(op, t.lane.ty(), args);
        let numbers = packed(PackedOp::Float(op), &operands);
        let constant = |bits| self.in_all(t.lane, bits);
        let format = t.lane.format();
        let magnitudes = numbers & constant(format.magnitude());
        let less = |a, b| packed(PackedOp::Float(FloatOp::Less), &[a, b]);
        let finite = less(magnitudes, constant(format.infinity()));
        let right = match right {
            Right::Finite => finite,
            Right::AboveLeastNormal => finite & less(constant(format.least_normal()), magnitudes),
        };
        let does = self.fpcr.eq(u64::from(IXC)) & packed(PackedOp::AllOnes, &[right]);
        Some(Packed { op, operands, numbers, finite, right, does })
    }

    /// Whether packed numbers that are not all as they should be are right nevertheless, because operands are zero.
    fn is_exact(&self, lane: Lane, packed: &Packed<'b>) -> Val<'b> {
        let compare = |op, args: &[Val<'b>]| self.b.packed(op, lane.ty(), args);
        let zero = self.in_all(lane, 0);
        let is_zero = |n: &Val<'b>| compare(PackedOp::Float(FloatOp::Equal), &[*n, zero]);
        let factors = &packed.operands[..native::exact_if_zero(packed.op)];
        let Some(any_zero) = factors.iter().map(is_zero).reduce(|a, b| a | b) else {
            return self.b.bool(false);
        };
        let right = packed.right | (packed.finite & any_zero);
        self.fpcr.eq(u64::from(IXC)) & compare(PackedOp::AllOnes, &[right])
    }

    /// The same bits in all elements of a whole.
    fn in_all(&self, lane: Lane, bits: u64) -> Val<'b> {
        let vector = Vector::both(self.b.u64(lane.repeated(bits)));
        vector.whole().expect("there are wholes")
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

/// The bits that FPSR gains by several calls.
fn flags_of<'b>(results: &[Val<'b>]) -> Val<'b> {
    let flags = results.chunks(2).map(|set| set[1]);
    flags.reduce(|a, b| a | b).expect("there are results")
}

/// Adds bits to FPSR.
fn add_flags<'b>(b: &'b Builder, flags: Val<'b>) {
    b.write_var(FPSR, b.read_var(FPSR) | flags.zext(Type::U64));
}

/// The number under which FPCR with IXC is noted.
pub(crate) const NOTED_FPCR: u8 = 0;

impl<'b> Context<'b> {
    /// FPCR with IXC of FPSR. Arithmetic sets IXC and nothing else of it: who finds it clear where it is set now takes
    /// the long way once more.
    fn fpcr(&self) -> Val<'b> {
        self.b.noted(NOTED_FPCR).unwrap_or_else(|| {
            let inexact = self.b.read_var(FPSR) & u64::from(IXC);
            let fpcr = (self.b.read_var(FPCR) | inexact).trunc(Type::U32);
            self.b.note(NOTED_FPCR, fpcr);
            fpcr
        })
    }

    /// Does floating-point arithmetic; FPSR gains what that raises.
    pub(crate) fn floating<R>(&self, work: impl FnOnce(&Unit<'b>) -> R) -> R {
        let fpcr = self.fpcr();
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
            add_flags(self.b, flags);
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
