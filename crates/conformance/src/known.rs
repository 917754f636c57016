//! Differences from the oracles that have an explanation.
//!
//! An entry says which difference, not just which instruction: everything else about the case must agree.
//! A run of enough cases fails if an entry was never needed, so that none outlives its reason; but one about rows that
//! the table does not have waits for them. Those of floating point and vectors are in `known/vectors.rs`.

mod vectors;

use kvrm::Stop;
use kvrm_a64::Instruction;
use kvrm_oracles::{Outcome, OutcomeKind, WINDOW_LEN};

use crate::compare::Seen;
use crate::generate::{Test, has_preferred_bits};
use crate::oracle::Which;
use crate::ours::Ran;
use crate::vectors::touches;

/// A difference and its explanation.
pub struct Known {
    /// The oracles that differ in this way.
    pub oracles: &'static [Which],
    /// The rows that may differ in this way.
    pub rows: fn(&'static Instruction) -> bool,
    /// Which instructions, and why the difference is right.
    pub reason: &'static str,
    /// True if this is the difference.
    pub explains: fn(&Seen<'_>) -> bool,
}

/// Rows that no oracle can judge fully, and what we expect of them ourselves.
pub struct Own {
    /// Names of the rows.
    pub rows: &'static [&'static str],
    /// What is special about them.
    pub reason: &'static str,
    /// True if the result is as expected.
    pub expected: fn(&Test, &Ran) -> bool,
}

/// For entries that name their instructions in `explains`, or none.
const ANY: fn(&'static Instruction) -> bool = |_| true;
const BOTH: &[Which] = &[Which::Unicorn, Which::Qemu];
const UNICORN: &[Which] = &[Which::Unicorn];
const QEMU: &[Which] = &[Which::Qemu];

/// Returns all known differences.
pub fn known() -> impl Iterator<Item = &'static Known> {
    INTEGER.iter().chain(vectors::KNOWN)
}

/// Differences of integer instructions, and of all that access memory.
const INTEGER: &[Known] = &[
    // Words whose meaning the manual leaves open.
    Known {
        oracles: BOTH,
        rows: ANY,
        reason: "CFINV, XAFLAG, AXFLAG, SB, LDAPR with other values in bits drawn as (0) or (1): \
            CONSTRAINED UNPREDICTABLE; we act as if the bits were right, the oracles say UNDEFINED",
        explains: |s| {
            let name = s.test.row.name;
            let named = ["CFINV", "XAFLAG", "AXFLAG", "SB"].contains(&name);
            (named || name.starts_with("LDAPR"))
                && !has_preferred_bits(s.test.row, s.test.word)
                && s.theirs.kind == OutcomeKind::Undefined
        },
    },
    Known {
        oracles: BOTH,
        rows: ANY,
        reason: "LDP, LDNP, LDPSW into one register twice: CONSTRAINED UNPREDICTABLE, the register \
            may become UNKNOWN; we write the second value last, the oracles the first",
        explains: |s| {
            is_load_pair(s)
                && s.test.field("Rt") == s.test.field("Rt2")
                && differs_in_register(s, "Rt")
        },
    },
    // Exclusives.
    Known {
        oracles: BOTH,
        rows: ANY,
        reason: "a store-exclusive of another size than the load-exclusive: CONSTRAINED UNPREDICTABLE \
            whether it passes; ours fails, the oracles compare memory alone and may let it pass",
        explains: |s| sizes_differ(&s.test.case.code) && passes_for_them(s),
    },
    Known {
        oracles: BOTH,
        rows: ANY,
        reason: "a store-exclusive to a misaligned address without a monitor: ExclusiveMonitorsPass \
            checks alignment before the monitor; the oracles just fail the store",
        explains: |s| {
            let last = 4 * (s.test.case.code.len() as u64 - 1);
            is_exclusive(s)
                && ours_is(s, OutcomeKind::AlignmentFault)
                && s.ours.outcome.pc == s.test.case.code_address + last
                && fails_the_store(s)
        },
    },
    // Alignment of ordered accesses.
    Known {
        oracles: UNICORN,
        rows: ANY,
        reason: "LDAR, LDLAR, STLR, STLLR, LDAPR, LDAPUR, STLUR: without FEAT_LSE2 an address that is not \
            a multiple of the size is an Alignment fault; Unicorn does not check",
        explains: |s| is_ordered(s) && unchecked_alignment(s),
    },
    Known {
        oracles: QEMU,
        rows: ANY,
        reason: "LDAPR: the same check, which QEMU makes for the others but not for this one",
        explains: |s| s.test.row.name.starts_with("LDAPR") && unchecked_alignment(s),
    },
    // Faults in the middle of a store.
    Known {
        oracles: UNICORN,
        rows: |row| !touches(row).vectors,
        reason: "a store across the end of memory: the manual lets the part before the fault be written or \
            not; ours does all or nothing, Unicorn writes the first bytes",
        explains: |s| !is_store_pair(s) && stores_half(s),
    },
    Known {
        oracles: BOTH,
        rows: ANY,
        reason: "STP, STNP across the end of memory: two accesses, of which the oracles complete the first; \
            ours does all or nothing",
        explains: |s| is_store_pair(s) && stores_half(s),
    },
    // Mistakes of an oracle.
    Known {
        oracles: UNICORN,
        rows: ANY,
        reason: "LDSMAX, LDSMIN of 8, 16 and 32 bits: the memory operand is to be read as signed; \
            Unicorn compares it unextended",
        explains: |s| {
            is_signed_atomic(s.test.row)
                && !s.test.row.name.ends_with("_X")
                && same_but_for(s, |o| o.window = s.theirs.window)
        },
    },
    Known {
        oracles: QEMU,
        rows: ANY,
        reason: "BLR X30 to itself: the oracle's process executes it more than once",
        explains: |s| {
            s.test.row.name == "BLR"
                && s.test.field("Rn") == 30
                && s.test.case.state.x[30] == s.test.case.code_address
                && same_but_for(s, |o| o.pc += 4)
        },
    },
    Known {
        oracles: QEMU,
        rows: ANY,
        reason: "CASP of X30 and the register after it, which is XZR: writing it has no effect; QEMU takes \
            register 31 for the stack pointer",
        explains: |s| {
            let named = [s.test.field("Rs"), s.test.field("Rt")];
            s.test.row.name == "CASP_X"
                && named.contains(&30)
                && same_but_for(s, |o| {
                    o.state.sp = s.theirs.state.sp;
                    o.state.x[30] = s.theirs.state.x[30];
                    o.window = s.theirs.window;
                })
        },
    },
    Known {
        oracles: UNICORN,
        rows: ANY,
        reason: "DC ZVA that faults: Unicorn does not set the PC back to the instruction",
        explains: |s| zva_faults(s) && same_but_for(s, |o| o.pc += 4),
    },
    Known {
        oracles: QEMU,
        rows: ANY,
        reason: "DC ZVA that faults: FAR is the address in the register; our stop tells the first byte of \
            the block that cannot be accessed",
        explains: |s| zva_faults(s) && same_but_for(s, |_| ()),
    },
    // What the oracles' systems choose differently.
    Known {
        oracles: BOTH,
        rows: ANY,
        reason: "BR, BLR, RET to an address with a tag: BranchAddr drops it if the top byte is ignored \
            (TCR_EL1.TBI0), as Linux has it; our machine does not ignore the top byte",
        explains: |s| {
            let target = s.ours.outcome.pc;
            s.test.row.group == "Unconditional branch (register)"
                && target >> 56 != 0
                && same_but_for(s, |o| o.pc = (target << 8) as i64 as u64 >> 8)
        },
    },
    Known {
        oracles: BOTH,
        rows: ANY,
        reason: "HLT, UDF #0: a program's way to halt here; UNDEFINED without a debugger",
        explains: |s| {
            matches!(s.ours.stop, Some(Stop::Halt { .. } | Stop::ZeroWord))
                && same_but_for(s, |o| o.kind = OutcomeKind::Undefined)
        },
    },
    Known {
        oracles: QEMU,
        rows: ANY,
        reason: "SVC: it would be a system call of QEMU's own process, so the oracle does not run it",
        explains: |s| s.test.row.name == "SVC" && s.theirs.kind == OutcomeKind::Other,
    },
    Known {
        oracles: QEMU,
        rows: ANY,
        reason: "DC ZVA: the block is 64 bytes here (DCZID_EL0.BS) and 512, the whole window, on QEMU",
        explains: |s| {
            s.test.row.name == "DC_ZVA"
                && s.theirs.window == [0; WINDOW_LEN]
                && same_but_for(s, |o| o.window = s.theirs.window)
        },
    },
    Known {
        oracles: BOTH,
        rows: ANY,
        reason: "CTR_EL0, CNTFRQ_EL0, CNTVCT_EL0: this machine's own caches and clock",
        explains: |s| {
            matches!(s.test.row.name, "MRS_CTR_EL0" | "MRS_CNTFRQ_EL0" | "MRS_CNTVCT_EL0")
                && differs_in_register(s, "Rt")
        },
    },
    Known {
        oracles: QEMU,
        rows: ANY,
        reason: "DCZID_EL0, MIDR_EL1: the block size of DC ZVA; the processor's maker",
        explains: |s| {
            matches!(s.test.row.name, "MRS_DCZID_EL0" | "MRS_MIDR_EL1")
                && differs_in_register(s, "Rt")
        },
    },
    Known {
        oracles: QEMU,
        rows: ANY,
        reason: "ID registers: the features of another processor",
        explains: |s| s.test.row.name == "MRS_ID" && differs_in_register(s, "Rt"),
    },
    Known {
        oracles: UNICORN,
        rows: ANY,
        reason: "MIDR_EL1, MPIDR_EL1, REVIDR_EL1 and the ID registers: EL0 has no access to them (UNDEFINED), \
            but Linux reads them for programs; Unicorn is the bare processor",
        explains: |s| {
            let row = s.test.row;
            (row.name == "MRS_ID" || row.name.ends_with("_EL1"))
                && s.theirs.kind == OutcomeKind::Undefined
        },
    },
    Known {
        oracles: UNICORN,
        rows: is_of_pstate_bit,
        reason: "FEAT_DIT, FEAT_SSBS: UNDEFINED without them; Unicorn is made from QEMU 5.0, which has neither",
        explains: |s| s.theirs.kind == OutcomeKind::Undefined,
    },
    Known {
        oracles: QEMU,
        rows: ANY,
        reason: "ID registers that are not assigned, or describe AArch32: Linux shows the whole space to \
            programs, as zero where it knows nothing better; QEMU only a part",
        explains: |s| s.test.row.name == "MRS_ID" && s.theirs.kind == OutcomeKind::Undefined,
    },
];

/// True for MRS and MSR of DIT and SSBS.
fn is_of_pstate_bit(row: &Instruction) -> bool {
    row.name.contains("_DIT") || row.name.contains("_SSBS")
}

/// All rows that we judge ourselves.
pub const OWN: &[Own] = &[
    Own {
        rows: &["HLT"],
        reason: "both oracles say UNDEFINED",
        expected: |test, ran| {
            ran.stop == Some(Stop::Halt { imm: test.field("imm16") as u16 })
                && unchanged(test, &ran.outcome, 0)
        },
    },
    Own {
        rows: &["MRS_CTR_EL0"],
        reason: "coherent caches (DIC, IDC) with lines of 64 bytes",
        expected: |test, ran| reads(test, ran, 0xb444_c004),
    },
    Own {
        rows: &["MRS_MIDR_EL1"],
        reason: "no implementer; architecture by ID registers",
        expected: |test, ran| reads(test, ran, 0x000f_0000),
    },
    Own {
        rows: &["MRS_CNTFRQ_EL0"],
        reason: "a counter of 1 GHz",
        expected: |test, ran| reads(test, ran, 1_000_000_000),
    },
    Own {
        rows: &["MRS_CNTVCT_EL0"],
        reason: "the counter counts instructions: none has completed",
        expected: |test, ran| reads(test, ran, 0),
    },
    Own {
        rows: &["MRS_ID"],
        reason: "AArch64 alone; floating point and SIMD with halves; all extensions that have rows, and no others",
        expected: |test, ran| {
            let value = match (test.field("CRm"), test.field("op2")) {
                // DIT, FP and AdvSIMD.
                (4, 0) => 1 << 48 | 0x11_0011,
                // SSBS.
                (4, 1) => 2 << 4,
                // FlagM2, FHM, DotProd, SM4, SM3, SHA3; RDM, LSE, CRC32, SHA512, SHA1, PMULL.
                (6, 0) => 2 << 52 | 0x1_1111 << 32 | 1 << 28 | 2 << 20 | 1 << 16 | 0x2120,
                // I8MM, BF16, SB, FRINTTS; LRCPC2, FCMA, JSCVT.
                (6, 1) => 1 << 52 | 1 << 44 | 0x11 << 32 | 0x21_1000,
                _ => 0,
            };
            reads(test, ran, value)
        },
    },
    Own {
        rows: &["MSR_FPCR", "MSR_FPSR"],
        reason: "every case writes bits that some processor lacks",
        expected: vectors::writes_what_exists,
    },
];

/// True if an oracle lacks a row's instructions, or gets some of them wrong. Programs that it is asked about are made
/// without them: there, nobody could tell which instruction a difference comes from.
pub fn is_unreliable(oracle: Which, row: &Instruction) -> bool {
    let is_wrong = match oracle {
        Which::Unicorn => is_signed_atomic(row),
        Which::Qemu => false,
    };
    is_wrong || vectors::lacks(oracle, row) || oracle == Which::Unicorn && is_of_pstate_bit(row)
}

fn is_signed_atomic(row: &Instruction) -> bool {
    row.name.starts_with("LDSMAX") || row.name.starts_with("LDSMIN")
}

fn ours_is(seen: &Seen<'_>, kind: OutcomeKind) -> bool {
    seen.ours.outcome.kind == kind
}

/// True if the outcomes agree once ours is changed in one respect (the detail aside).
fn same_but_for(seen: &Seen<'_>, change: impl FnOnce(&mut Outcome)) -> bool {
    let mut ours = seen.ours.outcome.clone();
    change(&mut ours);
    ours.detail = seen.theirs.detail;
    ours == *seen.theirs
}

impl Known {
    /// True if this is why an oracle differs.
    pub fn is_reason(&self, oracle: Which, seen: &Seen<'_>) -> bool {
        self.oracles.contains(&oracle) && (self.rows)(seen.test.row) && (self.explains)(seen)
    }
}

/// True if only the register that a field names differs.
fn differs_in_register(seen: &Seen<'_>, field: &str) -> bool {
    let register = seen.test.field(field) as usize;
    same_but_for(seen, |ours| {
        if let Some(value) = ours.state.x.get_mut(register) {
            *value = seen.theirs.state.x[register];
        }
    })
}

fn is_load_pair(seen: &Seen<'_>) -> bool {
    let name = seen.test.row.name;
    name.starts_with("LDP") || name.starts_with("LDNP")
}

fn is_store_pair(seen: &Seen<'_>) -> bool {
    let name = seen.test.row.name;
    name.starts_with("STP_") || name.starts_with("STNP_")
}

fn is_exclusive(seen: &Seen<'_>) -> bool {
    seen.test.row.group.starts_with("Load/store exclusive")
}

/// True if two exclusives, a load and a store, have different sizes: bits 31 and 30, and 21 for pairs.
fn sizes_differ(code: &[u32]) -> bool {
    const SIZE: u32 = 3 << 30 | 1 << 21;
    matches!(code, [load, store] if (load ^ store) & SIZE != 0)
}

/// True if a case ends in a store-exclusive.
fn ends_in_store(test: &Test) -> bool {
    const LOAD: u32 = 1 << 22;
    test.case.code.last().is_some_and(|word| word & LOAD == 0)
}

/// Returns the status of a case's store-exclusive, its last instruction; `None` if it goes to the zero register.
fn status(test: &Test, outcome: &Outcome) -> Option<u64> {
    let register = test.case.code.last()? >> 16 & 31;
    outcome.state.x.get(register as usize).copied()
}

/// True if a store-exclusive fails on the oracle. The status may go to the zero register.
fn fails_the_store(seen: &Seen<'_>) -> bool {
    seen.theirs.kind == OutcomeKind::Done
        && ends_in_store(seen.test)
        && status(seen.test, seen.theirs).is_none_or(|status| status == 1)
}

/// True if a store-exclusive fails here and writes memory on the oracle, whatever status that reports.
fn passes_for_them(seen: &Seen<'_>) -> bool {
    let register = (seen.test.case.code[1] >> 16 & 31) as usize;
    let fails = status(seen.test, &seen.ours.outcome).is_none_or(|status| status == 1);
    is_exclusive(seen)
        && fails
        && same_but_for(seen, |ours| {
            ours.window = seen.theirs.window;
            if let Some(status) = ours.state.x.get_mut(register) {
                *status = seen.theirs.state.x[register];
            }
        })
}

fn is_ordered(seen: &Seen<'_>) -> bool {
    matches!(seen.test.row.group, "Load/store ordered" | "LDAPR/STLR (unscaled immediate)")
}

/// True if we have an alignment fault where the oracle went on to access memory.
fn unchecked_alignment(seen: &Seen<'_>) -> bool {
    ours_is(seen, OutcomeKind::AlignmentFault)
        && matches!(seen.theirs.kind, OutcomeKind::Done | OutcomeKind::MemoryFault)
}

/// True if a store faults at the end of memory, and the oracle wrote the part before it.
fn stores_half(seen: &Seen<'_>) -> bool {
    ours_is(seen, OutcomeKind::MemoryFault)
        && seen.test.touch().is_some_and(|touch| touch.write && touch.straddles_end())
        && same_but_for(seen, |ours| ours.window = seen.theirs.window)
}

fn zva_faults(seen: &Seen<'_>) -> bool {
    seen.test.row.name == "DC_ZVA" && ours_is(seen, OutcomeKind::MemoryFault)
}

/// True if a case changed nothing except the PC, which is `words` further on.
fn unchanged(test: &Test, outcome: &Outcome, words: u64) -> bool {
    outcome.state == test.case.state
        && outcome.window == test.case.window
        && outcome.pc == test.case.code_address + 4 * words
}

/// True if a read of a system register gave `value` and did nothing else.
fn reads(test: &Test, ran: &Ran, value: u64) -> bool {
    let mut expected = test.case.state;
    if let Some(register) = expected.x.get_mut(test.field("Rt") as usize) {
        *register = value;
    }
    let done = Outcome { state: test.case.state, ..ran.outcome.clone() };
    ran.stop.is_none() && ran.outcome.state == expected && unchanged(test, &done, 1)
}
