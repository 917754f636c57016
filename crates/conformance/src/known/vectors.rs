//! Differences of floating-point and vector instructions.
//!
//! The reason of an entry is what the Arm manual says (a section, a function of its pseudocode) and what the oracle does
//! instead. NaNs, signs of zero and FPSR are prescribed bit by bit: a difference there is a mistake, of one or the other.

use kvrm_a64::Instruction;
use kvrm_a64::state::{FPCR_MASK, FPSR_MASK};
use kvrm_oracles::{Outcome, OutcomeKind};

use super::{BOTH, Known, UNICORN, same_but_for};
use crate::compare::Seen;
use crate::flat::Touch;
use crate::generate::Test;
use crate::oracle::Which;
use crate::ours::Ran;
use crate::vectors::touches;

/// Known differences.
pub(super) const KNOWN: &[Known] = &[
    Known {
        oracles: BOTH,
        rows: |row| matches!(row.name, "MSR_FPCR" | "MSR_FPSR"),
        reason: "MSR FPCR, FPSR: bits are RES0 without the feature that they belong to; the oracles' processors have \
            AArch32 (FPCR.Len and Stride, FPSR.N to V)",
        explains: |s| {
            let (ours, theirs) = (s.ours.outcome.state, s.theirs.state);
            let more = [theirs.fpcr & !ours.fpcr, theirs.fpsr & !ours.fpsr];
            more[0] & !(LEN | STRIDE) == 0
                && more[1] & !FPSR_FLAGS == 0
                && same_but_for(s, |o| {
                    o.state.fpcr |= more[0];
                    o.state.fpsr |= more[1];
                })
        },
    },
    Known {
        oracles: UNICORN,
        rows: |row| lacks(Which::Unicorn, row),
        reason: "FEAT_BF16, FEAT_I8MM: UNDEFINED without them; Unicorn is made from QEMU 5.0, which has neither",
        explains: |s| s.theirs.kind == OutcomeKind::Undefined,
    },
    Known {
        oracles: BOTH,
        rows: |row| row.name == "FCVTZS_fixed_H",
        reason: "FCVTZS (vector, fixed-point), scalar, of a half: the result has 16 bits, and the rest of the register \
            is zero (Operation of the instruction, V[d]); the oracles extend the sign to 32 bits",
        explains: |s| {
            let v = s.ours.outcome.state.v[s.test.field("Rd") as usize];
            let extended = u128::from(v as u16 as i16 as i32 as u32);
            same_but_for(s, |ours| ours.state.v[s.test.field("Rd") as usize] = extended)
        },
    },
    Known {
        oracles: BOTH,
        rows: |row| row.name == "FJCVTZS",
        reason: "FJCVTZS of a denormal that FPCR.FZ makes zero: FPToFixedJS clears Z, because the result is not exact; \
            the oracles set it (QEMU issue 2375, mended in 9.1)",
        explains: |s| {
            const FZ: u64 = 1 << 24;
            let double = s.test.case.state.v[s.test.field("Rn") as usize] as u64;
            let is_denormal = double != 0 && double >> 52 == 0;
            s.test.case.state.fpcr & FZ != 0
                && is_denormal
                && same_but_for(s, |ours| ours.state.nzcv = 1 << 30)
        },
    },
    Known {
        oracles: UNICORN,
        rows: |row| row.name.starts_with("FCMLA"),
        reason: "FCMLA by element, of four halves: only these are computed; Unicorn computes eight, and FPSR has the \
            exceptions of all",
        explains: |s| {
            const BY_ELEMENT_4H: (u32, u32) = (0xffc0_9400, 0x2f40_1000);
            let more = s.theirs.state.fpsr & !s.ours.outcome.state.fpsr;
            s.test.word & BY_ELEMENT_4H.0 == BY_ELEMENT_4H.1
                && same_but_for(s, |ours| ours.state.fpsr |= more)
        },
    },
    // Faults in the middle of an access.
    Known {
        oracles: BOTH,
        rows: |row| touches(row).vectors && touches(row).more_than_registers,
        reason: "a store of vector registers across the end of memory: a write for each element or each half, of which \
            those before the fault may be seen (the definition of a precise exception leaves the memory UNKNOWN); \
            ours does all or nothing",
        explains: |s| {
            faults_on(s, |touch| touch.write)
                && same_but_for(s, |ours| ours.window = s.theirs.window)
        },
    },
    Known {
        oracles: BOTH,
        rows: |row| touches(row).vectors && touches(row).more_than_registers,
        reason: "a load of several vector registers across the end of memory: a read for each element, after which the \
            registers are UNKNOWN; ours leaves them, the oracles have loaded those before the fault",
        explains: |s| {
            faults_on(s, |touch| !touch.write)
                && same_but_for(s, |ours| ours.state.v = s.theirs.state.v)
        },
    },
];

/// True if both have a fault of an access of this kind.
fn faults_on(seen: &Seen<'_>, kind: fn(&Touch) -> bool) -> bool {
    let is_fault = |outcome: &Outcome| outcome.kind == OutcomeKind::MemoryFault;
    is_fault(&seen.ours.outcome) && is_fault(seen.theirs) && seen.test.touches.iter().any(kind)
}

const LEN: u64 = 7 << 16;
const STRIDE: u64 = 3 << 20;
const FPSR_FLAGS: u64 = 0xf << 28;

/// True if an oracle does not have a row's instructions.
pub(super) fn lacks(oracle: Which, row: &Instruction) -> bool {
    let mnemonic = row.name.split('_').next().unwrap_or(row.name);
    let is_bfloat = mnemonic.starts_with("BF") && mnemonic != "BFM";
    let is_i8mm = matches!(mnemonic, "USDOT" | "SUDOT" | "SMMLA" | "UMMLA" | "USMMLA");
    match oracle {
        Which::Unicorn => is_bfloat || is_i8mm,
        Which::Qemu => false,
    }
}

/// True if MSR wrote the bits that exist.
pub(super) fn writes_what_exists(test: &Test, ran: &Ran) -> bool {
    let written = test.case.state.x.get(test.field("Rt") as usize).copied().unwrap_or(0);
    let state = &ran.outcome.state;
    let (value, exist) = match test.row.name {
        "MSR_FPCR" => (state.fpcr, FPCR_MASK),
        _ => (state.fpsr, FPSR_MASK),
    };
    value == written & exist
}
