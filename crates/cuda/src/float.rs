//! FPCR and FPSR.
//!
//! Kernels with vector registers keep both in `%fp`, a register: almost every instruction on floating-point numbers
//! reads them, and the states of a warp's lanes are far apart in memory. No bit of the one is a bit of the other, and
//! those that neither has are zero.

use std::fmt::Write;

use kvrm_a64::state::{FPCR, FPCR_MASK, FPSR, FPSR_MASK};
use kvrm_ir::Var;

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
}
