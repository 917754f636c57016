//! Floating-point numbers: arithmetic, and FPCR and FPSR.
//!
//! The device's instructions follow IEEE 754, with denormal numbers (there is no `.ftz`), and round to nearest where they
//! say `.rn`. Numbers are in the registers of integers, which have no type.
//!
//! Kernels with vector registers keep both in `%fp`, a register: almost every instruction on floating-point numbers
//! reads them, and the states of a warp's lanes are far apart in memory. No bit of the one is a bit of the other, and
//! those that neither has are zero.

use std::fmt::Write;

use kvrm_a64::state::{FPCR, FPCR_MASK, FPSR, FPSR_MASK};
use kvrm_ir::{FloatOp, Type, Value, Var};

use crate::emit::{Emitter, ptx, var_offset};

const _: () = assert!(FPCR_MASK & FPSR_MASK == 0 && (FPCR_MASK | FPSR_MASK) >> 32 == 0);

/// The bits of a variable in `%fp`, if it is there.
fn mask(var: Var) -> Option<u64> {
    match var {
        FPCR => Some(FPCR_MASK),
        FPSR => Some(FPSR_MASK),
        _ => None,
    }
}

/// Declares and loads `%fp`.
pub(crate) fn load(out: &mut String) {
    let _ = write!(
        out,
        "\t.reg .b32 %fp;
\tld.global.b32 %fp, [%state+{}];
\tld.global.b32 %s8, [%state+{}];
\tor.b32 %fp, %fp, %s8;
",
        var_offset(FPCR),
        var_offset(FPSR)
    );
}

/// Stores what is in it.
pub(crate) fn save(out: &mut String) {
    for (var, mask) in [(FPCR, FPCR_MASK), (FPSR, FPSR_MASK)] {
        let _ = write!(
            out,
            "\tand.b32 %s8, %fp, {mask:#x};\n\tst.global.b32 [%state+{}], %s8;\n",
            var_offset(var)
        );
    }
}

impl Emitter<'_> {
    /// Reads a variable that is in `%fp`; false if it is not there.
    pub(crate) fn read_fp(&mut self, var: Var, d: &str) -> bool {
        let Some(mask) = mask(var).filter(|_| self.vectors) else { return false };
        let t = self.temp_r();
        ptx!(self, "and.b32 {t}, %fp, {mask:#x};");
        ptx!(self, "cvt.u64.u32 {d}, {t};");
        true
    }

    /// Writes a variable that is in `%fp`; false if it is not there.
    pub(crate) fn write_fp(&mut self, var: Var, value: &str) -> bool {
        let Some(mask) = mask(var).filter(|_| self.vectors) else { return false };
        let t = self.temp_r();
        ptx!(self, "cvt.u32.u64 {t}, {value};");
        ptx!(self, "and.b32 %fp, %fp, {:#x};", (FPCR_MASK | FPSR_MASK) & !mask);
        ptx!(self, "or.b32 %fp, %fp, {t};");
        true
    }

    pub(crate) fn float(&mut self, op: FloatOp, d: &str, to: Type, args: &[Value]) {
        let (from, to) = (self.ty(args[0]).bits(), to.bits());
        let from_integer = matches!(op, FloatOp::FromSigned | FloatOp::FromUnsigned);
        let operand = |v: &Value| if from_integer { self.get(*v) } else { self.number(*v) };
        let args = args.iter().map(operand).collect::<Vec<_>>().join(", ");
        match op {
            FloatOp::Add => ptx!(self, "add.rn.f{to} {d}, {args};"),
            FloatOp::Sub => ptx!(self, "sub.rn.f{to} {d}, {args};"),
            FloatOp::Mul => ptx!(self, "mul.rn.f{to} {d}, {args};"),
            FloatOp::Div => ptx!(self, "div.rn.f{to} {d}, {args};"),
            FloatOp::Sqrt => ptx!(self, "sqrt.rn.f{to} {d}, {args};"),
            FloatOp::MulAdd => ptx!(self, "fma.rn.f{to} {d}, {args};"),
            FloatOp::Equal => ptx!(self, "setp.eq.f{from} {d}, {args};"),
            FloatOp::Less => ptx!(self, "setp.lt.f{from} {d}, {args};"),
            FloatOp::Convert if to < from => ptx!(self, "cvt.rn.f{to}.f{from} {d}, {args};"),
            FloatOp::Convert => ptx!(self, "cvt.f{to}.f{from} {d}, {args};"),
            FloatOp::FromSigned => ptx!(self, "cvt.rn.f{to}.s{from} {d}, {args};"),
            FloatOp::FromUnsigned => ptx!(self, "cvt.rn.f{to}.u{from} {d}, {args};"),
            FloatOp::ToSigned => ptx!(self, "cvt.rzi.s{to}.f{from} {d}, {args};"),
            FloatOp::ToUnsigned => ptx!(self, "cvt.rzi.u{to}.f{from} {d}, {args};"),
        }
    }

    /// A number as an operand. Constants are marked as such.
    fn number(&mut self, v: Value) -> String {
        match (self.ty(v), self.routine.constant(v)) {
            (Type::U64, Some(bits)) => format!("0d{bits:016x}"),
            (_, Some(bits)) => format!("0f{bits:08x}"),
            (_, None) => self.result(v),
        }
    }
}
