//! System instructions (C4.1.94): exceptions, hints, barriers, system registers, cache maintenance.
//!
//! System registers have one row each, so that a register user space may not touch is UNDEFINED like
//! any other unallocated word. The ID registers read as Linux shows them to programs: features that
//! are not implemented read as absent, and unassigned registers of their space as zero.

use kvrm_ir::{Access, Exit, Flags, Hint, Order, Val, Var};

use crate::context::Context;
use crate::fp::NOTED_FPCR;
use crate::row::{Row, rows};
use crate::state::{
    CALLED_AT, CALLER, CALLER_X16, CALLER_X17, COUNTER, DIT, FPCR, FPCR_MASK, FPSR, FPSR_MASK,
    PSTATE, SSBS, SUPERVISOR, TPIDR_EL0, TPIDRRO_EL0,
};
use crate::{W, X, stop};

/// Cache lines and DC ZVA blocks are 64 bytes, as a power of two of 4-byte words.
const LOG_LINE_WORDS: u64 = 4;
/// Bytes DC ZVA clears.
const ZVA_BYTES: u32 = 4 << LOG_LINE_WORDS;

/// CTR_EL0: caches are coherent for instruction fetch (DIC, IDC), lines of 64 bytes.
const CTR_VALUE: u64 = 1 << 31
    | 1 << 29
    | 1 << 28
    | LOG_LINE_WORDS << 24
    | LOG_LINE_WORDS << 20
    | LOG_LINE_WORDS << 16
    | 0b11 << 14
    | LOG_LINE_WORDS;
/// MIDR_EL1: implementer 0 (reserved for software use), architecture by ID registers.
const MIDR_VALUE: u64 = 0x000f_0000;
/// MPIDR_EL1 as Linux shows it: a uniprocessor in an affinity of zero.
const MPIDR_VALUE: u64 = 1 << 31;
/// The virtual counter counts instructions, nominally one a nanosecond.
const COUNTER_HZ: u64 = 1_000_000_000;

/// ID registers that are not zero, by `CRm` and `op2`.
pub(crate) const ID_REGISTERS: &[(u64, u64, u64)] = &[
    // ID_AA64PFR0_EL1: AArch64 at EL0 and EL1; floating point and SIMD with halves; DIT.
    (4, 0, 0x0001_0000_0011_0011),
    // ID_AA64PFR1_EL1: SSBS with MRS and MSR.
    (4, 1, 0x0000_0000_0000_0020),
    // ID_AA64ISAR0_EL1: FlagM2 (TS = 2), FHM, DotProd, SM4, SM3, SHA3, RDM, LSE (Atomic = 2), CRC32, SHA512 and SHA256
    // (SHA2 = 2), SHA1, PMULL and AES (AES = 2).
    (6, 0, 0x0021_1111_1021_2120),
    // ID_AA64ISAR1_EL1: I8MM, BF16, SB, FRINTTS, LRCPC2 (LRCPC = 2), FCMA, JSCVT.
    (6, 1, 0x0010_1011_0021_1000),
];

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "Exception generation":
        "UDF" "0000000000000000 imm16:16" => exception(stop::UDF, false);
        "SVC" "11010100 000 imm16:16 000 01" => exception(stop::SVC, true);
        "BRK" "11010100 001 imm16:16 000 00" => exception(stop::BRK, false);
        "HLT" "11010100 010 imm16:16 000 00" => exception(stop::HLT, false);
    },
    rows! { "Hints":
        "HINT" "11010101000000110010 CRm:4 op2:3 11111" => no_op();
    },
    rows! { "Barriers":
        "CLREX" "11010101000000110011 CRm:4 010 11111" => clrex();
        "DSB"   "11010101000000110011 CRm:4 100 11111" => barrier();
        "DMB"   "11010101000000110011 CRm:4 101 11111" => barrier();
        "ISB"   "11010101000000110011 CRm:4 110 11111" => no_op();
        "SB"    "11010101000000110011 (0000) 111 11111" => no_op();
    },
    rows! { "PSTATE":
        "CFINV"  "1101010100000 000 0100 (0000) 000 11111" => cfinv();
        "XAFLAG" "1101010100000 000 0100 (0000) 001 11111" => xaflag();
        "AXFLAG" "1101010100000 000 0100 (0000) 010 11111" => axflag();
        "MSR_SSBS_imm" "1101010100000 011 0100 (000) imm:1 001 11111" => msr_bit_imm(SSBS);
        "MSR_DIT_imm"  "1101010100000 011 0100 (000) imm:1 010 11111" => msr_bit_imm(DIT);
    },
    rows! { "System register read":
        "MRS_NZCV"        "1101010100 1 1 1 011 0100 0010 000 Rt:5" => mrs_nzcv();
        "MRS_DIT"         "1101010100 1 1 1 011 0100 0010 101 Rt:5" => mrs_bit(DIT);
        "MRS_SSBS"        "1101010100 1 1 1 011 0100 0010 110 Rt:5" => mrs_bit(SSBS);
        "MRS_FPCR"        "1101010100 1 1 1 011 0100 0100 000 Rt:5" => mrs_var(FPCR);
        "MRS_FPSR"        "1101010100 1 1 1 011 0100 0100 001 Rt:5" => mrs_var(FPSR);
        "MRS_TPIDR_EL0"   "1101010100 1 1 1 011 1101 0000 010 Rt:5" => mrs_var(TPIDR_EL0);
        "MRS_TPIDRRO_EL0" "1101010100 1 1 1 011 1101 0000 011 Rt:5" => mrs_var(TPIDRRO_EL0);
        "MRS_CTR_EL0"     "1101010100 1 1 1 011 0000 0000 001 Rt:5" => mrs_constant(CTR_VALUE);
        "MRS_DCZID_EL0"   "1101010100 1 1 1 011 0000 0000 111 Rt:5" => mrs_constant(LOG_LINE_WORDS);
        "MRS_CNTFRQ_EL0"  "1101010100 1 1 1 011 1110 0000 000 Rt:5" => mrs_constant(COUNTER_HZ);
        "MRS_CNTVCT_EL0"  "1101010100 1 1 1 011 1110 0000 010 Rt:5" => mrs_counter();
        "MRS_MIDR_EL1"    "1101010100 1 1 1 000 0000 0000 000 Rt:5" => mrs_constant(MIDR_VALUE);
        "MRS_MPIDR_EL1"   "1101010100 1 1 1 000 0000 0000 101 Rt:5" => mrs_constant(MPIDR_VALUE);
        "MRS_REVIDR_EL1"  "1101010100 1 1 1 000 0000 0000 110 Rt:5" => mrs_constant(0);
        "MRS_ID"          "1101010100 1 1 1 000 0000 0 CRm:3 op2:3 Rt:5", if id_register => mrs_id();
    },
    rows! { "System register write":
        "MSR_NZCV"      "1101010100 0 1 1 011 0100 0010 000 Rt:5" => msr_nzcv();
        "MSR_DIT"       "1101010100 0 1 1 011 0100 0010 101 Rt:5" => msr_bit(DIT);
        "MSR_SSBS"      "1101010100 0 1 1 011 0100 0010 110 Rt:5" => msr_bit(SSBS);
        "MSR_FPCR"      "1101010100 0 1 1 011 0100 0100 000 Rt:5" => msr_var(FPCR, FPCR_MASK);
        "MSR_FPSR"      "1101010100 0 1 1 011 0100 0100 001 Rt:5" => msr_var(FPSR, FPSR_MASK);
        "MSR_TPIDR_EL0" "1101010100 0 1 1 011 1101 0000 010 Rt:5" => msr_var(TPIDR_EL0, u64::MAX);
    },
    rows! { "Cache maintenance":
        "IC_IVAU"  "1101010100 0 01 011 0111 0101 001 Rt:5" => no_op();
        "DC_ZVA"   "1101010100 0 01 011 0111 0100 001 Rt:5" => dc_zva();
        "DC_CVAC"  "1101010100 0 01 011 0111 1010 001 Rt:5" => no_op();
        "DC_CVAU"  "1101010100 0 01 011 0111 1011 001 Rt:5" => no_op();
        "DC_CIVAC" "1101010100 0 01 011 0111 1110 001 Rt:5" => no_op();
    },
];

/// HLT, BRK, UDF, SVC: the lane stops at the instruction, or after it.
fn exception(cx: &Context<'_>, reason: u8, completes: bool) {
    cx.b.stop(Exit { reason, completes }, cx.field("imm16").zext(X));
}

/// The immediate of SVC with which a supervisor goes back to the program.
pub const RETURN: u64 = 1;

/// SVC where a supervisor may serve calls: the program's goes to it, and [`RETURN`] back. Any other stops the lane, the
/// supervisor's, too.
///
/// The supervisor has the program's registers, apart from X17, which is the counter after the call. It gives them back as it
/// found them; X16 and X17 are restored here. What it executes is not counted: the counter goes on from where it was.
pub(crate) fn supervised_call(cx: &Context<'_>) {
    let (supervisor, caller) = (cx.b.read_var(SUPERVISOR), cx.b.read_var(CALLER));
    let imm = cx.field("imm16").zext(X);
    let calls = caller.eq(0u64) & supervisor.ne(0u64);
    let returns = caller.ne(0u64) & imm.eq(RETURN);
    cx.b.exit_if(!(calls | returns), Exit { reason: stop::SVC, completes: true }, imm);
    let [x16, x17] = [16u64, 17].map(|r| cx.reg(X, cx.b.u32(r as u32)));
    let [caller_x16, caller_x17] = [CALLER_X16, CALLER_X17].map(|var| cx.b.read_var(var));
    let (executed, offset) = (cx.b.count() + 1u64, cx.b.read_var(COUNTER));
    let (called_at, now) = (cx.b.read_var(CALLED_AT), executed + offset);
    cx.set_reg(cx.b.u32(16), returns.select(caller_x16, x16));
    cx.set_reg(cx.b.u32(17), returns.select(caller_x17, now));
    cx.b.write_var(CALLER_X16, x16);
    cx.b.write_var(CALLER_X17, x17);
    cx.b.write_var(COUNTER, returns.select(called_at - executed, offset));
    cx.b.write_var(CALLED_AT, now);
    cx.b.write_var(CALLER, returns.select(cx.b.u64(0), cx.next_pc()));
    cx.clear_exclusive();
    cx.branch_to(returns.select(caller, supervisor), Hint::Jump);
}

/// Hints, and maintenance of caches that nobody can observe.
fn no_op(_: &Context<'_>) {}

fn clrex(cx: &Context<'_>) {
    cx.clear_exclusive();
}

fn barrier(cx: &Context<'_>) {
    cx.b.fence();
}

fn cfinv(cx: &Context<'_>) {
    let [n, z, c, v] = cx.flags();
    cx.set_flags(Flags::Bits([n, z, !c, v]));
}

/// XAFLAG: flags of a floating-point comparison from the alternative to the Arm format.
fn xaflag(cx: &Context<'_>) {
    let [_, z, c, _] = cx.flags();
    cx.set_flags(Flags::Bits([!c & !z, z & c, c | z, !c & z]));
}

/// AXFLAG: flags of a floating-point comparison from the Arm to the alternative format.
fn axflag(cx: &Context<'_>) {
    let [_, z, c, v] = cx.flags();
    let no = cx.b.bool(false);
    cx.set_flags(Flags::Bits([no, z | v, c & !v, no]));
}

fn mrs_nzcv(cx: &Context<'_>) {
    let bits = cx.flags().into_iter().fold(cx.b.u64(0), |bits, f| (bits << 1) | f.zext(X));
    cx.set_reg_of("Rt", bits << 28);
}

fn msr_nzcv(cx: &Context<'_>) {
    cx.set_flags(Flags::Bits(cx.flags_from_bits(cx.reg_of(W, "Rt") >> 28)));
}

/// The bit of PSTATE with that number, in its place.
fn mrs_bit(cx: &Context<'_>, bit: u32) {
    cx.set_reg_of("Rt", cx.b.read_var(PSTATE) & (1u64 << bit));
}

fn set_bit<'b>(cx: &Context<'b>, bit: u32, value: Val<'b>) {
    let mask = 1u64 << bit;
    cx.b.write_var(PSTATE, (cx.b.read_var(PSTATE) & !mask) | (value & mask));
}

fn msr_bit(cx: &Context<'_>, bit: u32) {
    set_bit(cx, bit, cx.reg_of(X, "Rt"));
}

fn msr_bit_imm(cx: &Context<'_>, bit: u32) {
    set_bit(cx, bit, cx.field("imm").zext(X) << bit);
}

fn mrs_var(cx: &Context<'_>, var: Var) {
    cx.set_reg_of("Rt", cx.b.read_var(var));
}

fn msr_var(cx: &Context<'_>, var: Var, mask: u64) {
    cx.b.write_var(var, cx.reg_of(X, "Rt") & mask);
    cx.b.forget_note(NOTED_FPCR);
}

fn mrs_constant(cx: &Context<'_>, value: u64) {
    cx.set_reg_of("Rt", cx.b.u64(value));
}

fn mrs_counter(cx: &Context<'_>) {
    cx.set_reg_of("Rt", cx.b.count() + cx.b.read_var(COUNTER));
}

/// The ID register space that Linux emulates for user space, beside the three registers above.
fn id_register(word: u32) -> bool {
    word >> 8 & 7 >= 2
}

fn mrs_id(cx: &Context<'_>) {
    let number = (cx.field("CRm") << 3) | cx.field("op2");
    let value = ID_REGISTERS.iter().fold(cx.b.u64(0), |rest: Val<'_>, &(crm, op2, value)| {
        number.eq(crm << 3 | op2).select(cx.b.u64(value), rest)
    });
    cx.set_reg_of("Rt", value);
}

/// DC ZVA: clears the aligned block that holds the address.
fn dc_zva(cx: &Context<'_>) {
    let block = cx.reg_of(X, "Rt") & !u64::from(ZVA_BYTES - 1);
    let place = cx.probe(Access::Write, block, X, ZVA_BYTES / X.bytes());
    for index in 0..ZVA_BYTES / X.bytes() {
        place.store(Order::Plain, index, cx.b.u64(0));
    }
}
