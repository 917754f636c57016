//! Data processing, register (C4.1.95).

use kvrm_ir::{Type, Val};

use crate::context::{Context, Flags};
use crate::row::{Row, rows};
use crate::{W, X};

/// Bitwise operations.
#[derive(Clone, Copy)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

/// Shift types, as their two-bit field numbers them.
#[derive(Clone, Copy)]
enum Shift {
    Lsl,
    Lsr,
    Asr,
    Ror,
}

/// Conditional select: what happens to the second operand.
#[derive(Clone, Copy)]
enum Select {
    Plain,
    Increment,
    Invert,
    Negate,
}

/// The polynomials of CRC32 and CRC32C, bit-reversed.
const CRC32: u32 = 0xedb8_8320;
const CRC32C: u32 = 0x82f6_3b78;

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "Data-processing (2 source)":
        "UDIV_W" "0 0 0 11010110 Rm:5 00001 0 Rn:5 Rd:5" => div(W, false);
        "SDIV_W" "0 0 0 11010110 Rm:5 00001 1 Rn:5 Rd:5" => div(W, true);
        "UDIV_X" "1 0 0 11010110 Rm:5 00001 0 Rn:5 Rd:5" => div(X, false);
        "SDIV_X" "1 0 0 11010110 Rm:5 00001 1 Rn:5 Rd:5" => div(X, true);
        "LSLV_W" "0 0 0 11010110 Rm:5 0010 00 Rn:5 Rd:5" => shift_variable(W, Shift::Lsl);
        "LSRV_W" "0 0 0 11010110 Rm:5 0010 01 Rn:5 Rd:5" => shift_variable(W, Shift::Lsr);
        "ASRV_W" "0 0 0 11010110 Rm:5 0010 10 Rn:5 Rd:5" => shift_variable(W, Shift::Asr);
        "RORV_W" "0 0 0 11010110 Rm:5 0010 11 Rn:5 Rd:5" => shift_variable(W, Shift::Ror);
        "LSLV_X" "1 0 0 11010110 Rm:5 0010 00 Rn:5 Rd:5" => shift_variable(X, Shift::Lsl);
        "LSRV_X" "1 0 0 11010110 Rm:5 0010 01 Rn:5 Rd:5" => shift_variable(X, Shift::Lsr);
        "ASRV_X" "1 0 0 11010110 Rm:5 0010 10 Rn:5 Rd:5" => shift_variable(X, Shift::Asr);
        "RORV_X" "1 0 0 11010110 Rm:5 0010 11 Rn:5 Rd:5" => shift_variable(X, Shift::Ror);
        "CRC32B"  "0 0 0 11010110 Rm:5 010 0 00 Rn:5 Rd:5" => crc32(8, CRC32);
        "CRC32H"  "0 0 0 11010110 Rm:5 010 0 01 Rn:5 Rd:5" => crc32(16, CRC32);
        "CRC32W"  "0 0 0 11010110 Rm:5 010 0 10 Rn:5 Rd:5" => crc32(32, CRC32);
        "CRC32X"  "1 0 0 11010110 Rm:5 010 0 11 Rn:5 Rd:5" => crc32(64, CRC32);
        "CRC32CB" "0 0 0 11010110 Rm:5 010 1 00 Rn:5 Rd:5" => crc32(8, CRC32C);
        "CRC32CH" "0 0 0 11010110 Rm:5 010 1 01 Rn:5 Rd:5" => crc32(16, CRC32C);
        "CRC32CW" "0 0 0 11010110 Rm:5 010 1 10 Rn:5 Rd:5" => crc32(32, CRC32C);
        "CRC32CX" "1 0 0 11010110 Rm:5 010 1 11 Rn:5 Rd:5" => crc32(64, CRC32C);
    },
    rows! { "Data-processing (1 source)":
        "RBIT_W"  "0 1 0 11010110 00000 000000 Rn:5 Rd:5" => one_source(W, Val::rbit);
        "REV16_W" "0 1 0 11010110 00000 000001 Rn:5 Rd:5" => one_source(W, rev16);
        "REV_W"   "0 1 0 11010110 00000 000010 Rn:5 Rd:5" => one_source(W, Val::bswap);
        "CLZ_W"   "0 1 0 11010110 00000 000100 Rn:5 Rd:5" => one_source(W, Val::clz);
        "CLS_W"   "0 1 0 11010110 00000 000101 Rn:5 Rd:5" => one_source(W, cls);
        "RBIT_X"  "1 1 0 11010110 00000 000000 Rn:5 Rd:5" => one_source(X, Val::rbit);
        "REV16_X" "1 1 0 11010110 00000 000001 Rn:5 Rd:5" => one_source(X, rev16);
        "REV32_X" "1 1 0 11010110 00000 000010 Rn:5 Rd:5" => rev32();
        "REV_X"   "1 1 0 11010110 00000 000011 Rn:5 Rd:5" => one_source(X, Val::bswap);
        "CLZ_X"   "1 1 0 11010110 00000 000100 Rn:5 Rd:5" => one_source(X, Val::clz);
        "CLS_X"   "1 1 0 11010110 00000 000101 Rn:5 Rd:5" => one_source(X, cls);
    },
    rows! { "Logical (shifted register)":
        "AND_shift_W"  "0 00 01010 shift:2 0 Rm:5 0 imm6:5 Rn:5 Rd:5" => logical_shifted(W, Logic::And, false, false);
        "BIC_shift_W"  "0 00 01010 shift:2 1 Rm:5 0 imm6:5 Rn:5 Rd:5" => logical_shifted(W, Logic::And, true, false);
        "ORR_shift_W"  "0 01 01010 shift:2 0 Rm:5 0 imm6:5 Rn:5 Rd:5" => logical_shifted(W, Logic::Or, false, false);
        "ORN_shift_W"  "0 01 01010 shift:2 1 Rm:5 0 imm6:5 Rn:5 Rd:5" => logical_shifted(W, Logic::Or, true, false);
        "EOR_shift_W"  "0 10 01010 shift:2 0 Rm:5 0 imm6:5 Rn:5 Rd:5" => logical_shifted(W, Logic::Xor, false, false);
        "EON_shift_W"  "0 10 01010 shift:2 1 Rm:5 0 imm6:5 Rn:5 Rd:5" => logical_shifted(W, Logic::Xor, true, false);
        "ANDS_shift_W" "0 11 01010 shift:2 0 Rm:5 0 imm6:5 Rn:5 Rd:5" => logical_shifted(W, Logic::And, false, true);
        "BICS_shift_W" "0 11 01010 shift:2 1 Rm:5 0 imm6:5 Rn:5 Rd:5" => logical_shifted(W, Logic::And, true, true);
        "AND_shift_X"  "1 00 01010 shift:2 0 Rm:5 imm6:6 Rn:5 Rd:5" => logical_shifted(X, Logic::And, false, false);
        "BIC_shift_X"  "1 00 01010 shift:2 1 Rm:5 imm6:6 Rn:5 Rd:5" => logical_shifted(X, Logic::And, true, false);
        "ORR_shift_X"  "1 01 01010 shift:2 0 Rm:5 imm6:6 Rn:5 Rd:5" => logical_shifted(X, Logic::Or, false, false);
        "ORN_shift_X"  "1 01 01010 shift:2 1 Rm:5 imm6:6 Rn:5 Rd:5" => logical_shifted(X, Logic::Or, true, false);
        "EOR_shift_X"  "1 10 01010 shift:2 0 Rm:5 imm6:6 Rn:5 Rd:5" => logical_shifted(X, Logic::Xor, false, false);
        "EON_shift_X"  "1 10 01010 shift:2 1 Rm:5 imm6:6 Rn:5 Rd:5" => logical_shifted(X, Logic::Xor, true, false);
        "ANDS_shift_X" "1 11 01010 shift:2 0 Rm:5 imm6:6 Rn:5 Rd:5" => logical_shifted(X, Logic::And, false, true);
        "BICS_shift_X" "1 11 01010 shift:2 1 Rm:5 imm6:6 Rn:5 Rd:5" => logical_shifted(X, Logic::And, true, true);
    },
    rows! { "Add/subtract (shifted register)":
        "ADD_shift_W"  "0 0 0 01011 shift:2 0 Rm:5 0 imm6:5 Rn:5 Rd:5", if not_ror => add_sub_shifted(W, false, false);
        "ADDS_shift_W" "0 0 1 01011 shift:2 0 Rm:5 0 imm6:5 Rn:5 Rd:5", if not_ror => add_sub_shifted(W, false, true);
        "SUB_shift_W"  "0 1 0 01011 shift:2 0 Rm:5 0 imm6:5 Rn:5 Rd:5", if not_ror => add_sub_shifted(W, true, false);
        "SUBS_shift_W" "0 1 1 01011 shift:2 0 Rm:5 0 imm6:5 Rn:5 Rd:5", if not_ror => add_sub_shifted(W, true, true);
        "ADD_shift_X"  "1 0 0 01011 shift:2 0 Rm:5 imm6:6 Rn:5 Rd:5", if not_ror => add_sub_shifted(X, false, false);
        "ADDS_shift_X" "1 0 1 01011 shift:2 0 Rm:5 imm6:6 Rn:5 Rd:5", if not_ror => add_sub_shifted(X, false, true);
        "SUB_shift_X"  "1 1 0 01011 shift:2 0 Rm:5 imm6:6 Rn:5 Rd:5", if not_ror => add_sub_shifted(X, true, false);
        "SUBS_shift_X" "1 1 1 01011 shift:2 0 Rm:5 imm6:6 Rn:5 Rd:5", if not_ror => add_sub_shifted(X, true, true);
    },
    rows! { "Add/subtract (extended register)":
        "ADD_ext_W"  "0 0 0 01011 00 1 Rm:5 option:3 imm3:3 Rn:5 Rd:5", if extend_allocated => add_sub_extended(W, false, false);
        "ADDS_ext_W" "0 0 1 01011 00 1 Rm:5 option:3 imm3:3 Rn:5 Rd:5", if extend_allocated => add_sub_extended(W, false, true);
        "SUB_ext_W"  "0 1 0 01011 00 1 Rm:5 option:3 imm3:3 Rn:5 Rd:5", if extend_allocated => add_sub_extended(W, true, false);
        "SUBS_ext_W" "0 1 1 01011 00 1 Rm:5 option:3 imm3:3 Rn:5 Rd:5", if extend_allocated => add_sub_extended(W, true, true);
        "ADD_ext_X"  "1 0 0 01011 00 1 Rm:5 option:3 imm3:3 Rn:5 Rd:5", if extend_allocated => add_sub_extended(X, false, false);
        "ADDS_ext_X" "1 0 1 01011 00 1 Rm:5 option:3 imm3:3 Rn:5 Rd:5", if extend_allocated => add_sub_extended(X, false, true);
        "SUB_ext_X"  "1 1 0 01011 00 1 Rm:5 option:3 imm3:3 Rn:5 Rd:5", if extend_allocated => add_sub_extended(X, true, false);
        "SUBS_ext_X" "1 1 1 01011 00 1 Rm:5 option:3 imm3:3 Rn:5 Rd:5", if extend_allocated => add_sub_extended(X, true, true);
    },
    rows! { "Add/subtract (with carry)":
        "ADC_W"  "0 0 0 11010000 Rm:5 000000 Rn:5 Rd:5" => add_sub_carry(W, false, false);
        "ADCS_W" "0 0 1 11010000 Rm:5 000000 Rn:5 Rd:5" => add_sub_carry(W, false, true);
        "SBC_W"  "0 1 0 11010000 Rm:5 000000 Rn:5 Rd:5" => add_sub_carry(W, true, false);
        "SBCS_W" "0 1 1 11010000 Rm:5 000000 Rn:5 Rd:5" => add_sub_carry(W, true, true);
        "ADC_X"  "1 0 0 11010000 Rm:5 000000 Rn:5 Rd:5" => add_sub_carry(X, false, false);
        "ADCS_X" "1 0 1 11010000 Rm:5 000000 Rn:5 Rd:5" => add_sub_carry(X, false, true);
        "SBC_X"  "1 1 0 11010000 Rm:5 000000 Rn:5 Rd:5" => add_sub_carry(X, true, false);
        "SBCS_X" "1 1 1 11010000 Rm:5 000000 Rn:5 Rd:5" => add_sub_carry(X, true, true);
    },
    rows! { "Flag manipulation":
        "RMIF"  "1 0 1 11010000 imm6:6 00001 Rn:5 0 mask:4" => rmif();
        "SETF8"  "0 0 1 11010000 000000 0 0010 Rn:5 0 1101" => setf(8);
        "SETF16" "0 0 1 11010000 000000 1 0010 Rn:5 0 1101" => setf(16);
    },
    rows! { "Conditional compare":
        "CCMN_reg_W" "0 0 1 11010010 Rm:5 cond:4 0 0 Rn:5 0 nzcv:4" => cond_compare(W, false, false);
        "CCMP_reg_W" "0 1 1 11010010 Rm:5 cond:4 0 0 Rn:5 0 nzcv:4" => cond_compare(W, true, false);
        "CCMN_imm_W" "0 0 1 11010010 imm5:5 cond:4 1 0 Rn:5 0 nzcv:4" => cond_compare(W, false, true);
        "CCMP_imm_W" "0 1 1 11010010 imm5:5 cond:4 1 0 Rn:5 0 nzcv:4" => cond_compare(W, true, true);
        "CCMN_reg_X" "1 0 1 11010010 Rm:5 cond:4 0 0 Rn:5 0 nzcv:4" => cond_compare(X, false, false);
        "CCMP_reg_X" "1 1 1 11010010 Rm:5 cond:4 0 0 Rn:5 0 nzcv:4" => cond_compare(X, true, false);
        "CCMN_imm_X" "1 0 1 11010010 imm5:5 cond:4 1 0 Rn:5 0 nzcv:4" => cond_compare(X, false, true);
        "CCMP_imm_X" "1 1 1 11010010 imm5:5 cond:4 1 0 Rn:5 0 nzcv:4" => cond_compare(X, true, true);
    },
    rows! { "Conditional select":
        "CSEL_W"  "0 0 0 11010100 Rm:5 cond:4 0 0 Rn:5 Rd:5" => cond_select(W, Select::Plain);
        "CSINC_W" "0 0 0 11010100 Rm:5 cond:4 0 1 Rn:5 Rd:5" => cond_select(W, Select::Increment);
        "CSINV_W" "0 1 0 11010100 Rm:5 cond:4 0 0 Rn:5 Rd:5" => cond_select(W, Select::Invert);
        "CSNEG_W" "0 1 0 11010100 Rm:5 cond:4 0 1 Rn:5 Rd:5" => cond_select(W, Select::Negate);
        "CSEL_X"  "1 0 0 11010100 Rm:5 cond:4 0 0 Rn:5 Rd:5" => cond_select(X, Select::Plain);
        "CSINC_X" "1 0 0 11010100 Rm:5 cond:4 0 1 Rn:5 Rd:5" => cond_select(X, Select::Increment);
        "CSINV_X" "1 1 0 11010100 Rm:5 cond:4 0 0 Rn:5 Rd:5" => cond_select(X, Select::Invert);
        "CSNEG_X" "1 1 0 11010100 Rm:5 cond:4 0 1 Rn:5 Rd:5" => cond_select(X, Select::Negate);
    },
    rows! { "Data-processing (3 source)":
        "MADD_W" "0 00 11011 000 Rm:5 0 Ra:5 Rn:5 Rd:5" => mul_add(W, false);
        "MSUB_W" "0 00 11011 000 Rm:5 1 Ra:5 Rn:5 Rd:5" => mul_add(W, true);
        "MADD_X" "1 00 11011 000 Rm:5 0 Ra:5 Rn:5 Rd:5" => mul_add(X, false);
        "MSUB_X" "1 00 11011 000 Rm:5 1 Ra:5 Rn:5 Rd:5" => mul_add(X, true);
        "SMADDL" "1 00 11011 001 Rm:5 0 Ra:5 Rn:5 Rd:5" => mul_add_long(true, false);
        "SMSUBL" "1 00 11011 001 Rm:5 1 Ra:5 Rn:5 Rd:5" => mul_add_long(true, true);
        "UMADDL" "1 00 11011 101 Rm:5 0 Ra:5 Rn:5 Rd:5" => mul_add_long(false, false);
        "UMSUBL" "1 00 11011 101 Rm:5 1 Ra:5 Rn:5 Rd:5" => mul_add_long(false, true);
        "SMULH"  "1 00 11011 010 Rm:5 0 (11111) Rn:5 Rd:5" => mul_high(true);
        "UMULH"  "1 00 11011 110 Rm:5 0 (11111) Rn:5 Rd:5" => mul_high(false);
    },
];

pub(crate) fn logic<'b>(op: Logic, a: Val<'b>, b: Val<'b>) -> Val<'b> {
    match op {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

fn shift_by<'b>(kind: Shift, value: Val<'b>, amount: Val<'b>) -> Val<'b> {
    match kind {
        Shift::Lsl => value.shl_by(amount),
        Shift::Lsr => value.shr_by(amount),
        Shift::Asr => value.sar_by(amount),
        Shift::Ror => value.rotr_by(amount),
    }
}

/// `ShiftReg` with the shift type in a field.
fn shifted<'b>(cx: &Context<'b>, ty: Type) -> Val<'b> {
    let (value, kind, amount) = (cx.reg_of(ty, "Rm"), cx.field("shift"), cx.field("imm6"));
    let of = |shift| shift_by(shift, value, amount);
    let right =
        kind.eq(1u64).select(of(Shift::Lsr), kind.eq(2u64).select(of(Shift::Asr), of(Shift::Ror)));
    kind.eq(0u64).select(of(Shift::Lsl), right)
}

/// Additions have no rotated operand.
fn not_ror(word: u32) -> bool {
    word >> 22 & 3 != 3
}

/// Extended operands are shifted by at most four.
fn extend_allocated(word: u32) -> bool {
    word >> 10 & 7 <= 4
}

/// `ExtendReg`: the low 8, 16, 32 or 64 bits, zero- or sign-extended to `ty`.
pub(crate) fn extended<'b>(ty: Type, value: Val<'b>, option: Val<'b>) -> Val<'b> {
    let signed = option.bit(2);
    let part = |from: Type| {
        let low = value.trunc(from);
        signed.select(low.sext(ty), low.zext(ty))
    };
    let size = option & 3u64;
    let narrow = size.eq(0u64).select(part(Type::U8), part(Type::U16));
    let wide = size.eq(2u64).select(part(Type::U32), value);
    size.ult(2u64).select(narrow, wide)
}

fn div(cx: &Context<'_>, ty: Type, signed: bool) {
    let (n, m) = (cx.reg_of(ty, "Rn"), cx.reg_of(ty, "Rm"));
    cx.set_reg_of("Rd", if signed { n.sdiv(m) } else { n.udiv(m) });
}

/// LSLV, LSRV, ASRV, RORV: the amount is taken modulo the width.
fn shift_variable(cx: &Context<'_>, ty: Type, kind: Shift) {
    let amount = cx.reg_of(W, "Rm");
    cx.set_reg_of("Rd", shift_by(kind, cx.reg_of(ty, "Rn"), amount));
}

/// CRC32, CRC32C. A checksum is linear in its input: each set bit of (accumulator XOR data)
/// contributes a constant, the checksum of that bit alone.
fn crc32(cx: &Context<'_>, bits: u32, polynomial: u32) {
    let acc = cx.reg_of(W, "Rn").zext(X);
    let input = cx.reg_of(X, "Rm") & (u64::MAX >> (64 - bits));
    let mixed = acc ^ input;
    // The part of the accumulator the data does not reach is only shifted.
    let rest = if bits < 32 { acc >> bits } else { cx.b.u64(0) };
    let result = (0..bits).fold(rest, |sum, i| {
        let ones = -mixed.bits(i, 1);
        sum ^ (ones & u64::from(crc_of_bit(bits - i, polynomial)))
    });
    cx.set_reg_of("Rd", result);
}

/// What a set bit contributes that the shift register moves `steps` times.
fn crc_of_bit(steps: u32, polynomial: u32) -> u32 {
    (1..steps).fold(polynomial, |crc, _| (crc >> 1) ^ (polynomial & (crc & 1).wrapping_neg()))
}

fn one_source<'b>(cx: &Context<'b>, ty: Type, op: impl Fn(Val<'b>) -> Val<'b>) {
    cx.set_reg_of("Rd", op(cx.reg_of(ty, "Rn")));
}

fn rev16(value: Val<'_>) -> Val<'_> {
    const LOW_BYTES: u64 = 0x00ff_00ff_00ff_00ff;
    ((value & LOW_BYTES) << 8) | ((value >> 8) & LOW_BYTES)
}

fn rev32(cx: &Context<'_>) {
    cx.set_reg_of("Rd", cx.reg_of(X, "Rn").bswap().rotr_by(cx.b.u32(32)));
}

/// CLS: bits after the sign bit that equal it.
fn cls(value: Val<'_>) -> Val<'_> {
    ((value ^ (value << 1)) >> 1).clz() - 1u64
}

/// AND, BIC, ORR, ORN, EOR, EON, ANDS, BICS (shifted register).
fn logical_shifted(cx: &Context<'_>, ty: Type, op: Logic, invert: bool, set_flags: bool) {
    let operand = shifted(cx, ty);
    let operand = if invert { !operand } else { operand };
    let result = logic(op, cx.reg_of(ty, "Rn"), operand);
    if set_flags {
        cx.set_flags(cx.logical_flags(result));
    }
    cx.set_reg_of("Rd", result);
}

/// ADD, ADDS, SUB, SUBS (shifted register).
fn add_sub_shifted(cx: &Context<'_>, ty: Type, sub: bool, set_flags: bool) {
    let (n, m) = (cx.reg_of(ty, "Rn"), shifted(cx, ty));
    let (result, flags) = if sub { cx.sub(n, m) } else { cx.add(n, m) };
    if set_flags {
        cx.set_flags(flags);
    }
    cx.set_reg_of("Rd", result);
}

/// ADD, ADDS, SUB, SUBS (extended register).
fn add_sub_extended(cx: &Context<'_>, ty: Type, sub: bool, set_flags: bool) {
    let n = cx.reg_or_sp_of(ty, "Rn");
    let m = extended(ty, cx.reg_of(ty, "Rm"), cx.field("option")).shl_by(cx.field("imm3"));
    let (result, flags) = if sub { cx.sub(n, m) } else { cx.add(n, m) };
    if set_flags {
        cx.set_flags(flags);
        cx.set_reg_of("Rd", result);
    } else {
        cx.set_reg_or_sp_of("Rd", result);
    }
}

/// ADC, ADCS, SBC, SBCS.
fn add_sub_carry(cx: &Context<'_>, ty: Type, sub: bool, set_flags: bool) {
    let (n, m) = (cx.reg_of(ty, "Rn"), cx.reg_of(ty, "Rm"));
    let (result, flags) = cx.add_with_carry(n, if sub { !m } else { m }, cx.flags().c);
    if set_flags {
        cx.set_flags(flags);
    }
    cx.set_reg_of("Rd", result);
}

/// RMIF: flags chosen by the mask are set from a rotated register.
fn rmif(cx: &Context<'_>) {
    let rotated = cx.reg_of(X, "Rn").rotr_by(cx.field("imm6")).trunc(W);
    let (old, new, mask) = (cx.flags(), cx.flags_from_bits(rotated), cx.field("mask"));
    cx.set_flags(Flags {
        n: mask.bit(3).select(new.n, old.n),
        z: mask.bit(2).select(new.z, old.z),
        c: mask.bit(1).select(new.c, old.c),
        v: mask.bit(0).select(new.v, old.v),
    });
}

/// SETF8, SETF16: the flags an 8- or 16-bit addition would have left, but for the carry.
fn setf(cx: &Context<'_>, bits: u32) {
    let value = cx.reg_of(W, "Rn");
    let n = value.bit(bits - 1);
    let z = (value & (u64::MAX >> (64 - bits))).eq(0u64);
    cx.set_flags(Flags { n, z, c: cx.flags().c, v: value.bit(bits) ^ n });
}

/// CCMP, CCMN (immediate and register).
fn cond_compare(cx: &Context<'_>, ty: Type, sub: bool, immediate: bool) {
    let n = cx.reg_of(ty, "Rn");
    let m = if immediate { cx.field("imm5").zext(ty) } else { cx.reg_of(ty, "Rm") };
    let holds = cx.condition_holds(cx.field("cond"));
    let (_, new) = if sub { cx.sub(n, m) } else { cx.add(n, m) };
    let given = cx.flags_from_bits(cx.field("nzcv"));
    cx.set_flags(Flags {
        n: holds.select(new.n, given.n),
        z: holds.select(new.z, given.z),
        c: holds.select(new.c, given.c),
        v: holds.select(new.v, given.v),
    });
}

/// CSEL, CSINC, CSINV, CSNEG.
fn cond_select(cx: &Context<'_>, ty: Type, kind: Select) {
    let (n, m) = (cx.reg_of(ty, "Rn"), cx.reg_of(ty, "Rm"));
    let otherwise = match kind {
        Select::Plain => m,
        Select::Increment => m + 1u64,
        Select::Invert => !m,
        Select::Negate => -m,
    };
    cx.set_reg_of("Rd", cx.condition_holds(cx.field("cond")).select(n, otherwise));
}

/// MADD, MSUB.
fn mul_add(cx: &Context<'_>, ty: Type, sub: bool) {
    let product = cx.reg_of(ty, "Rn") * cx.reg_of(ty, "Rm");
    let addend = cx.reg_of(ty, "Ra");
    cx.set_reg_of("Rd", if sub { addend - product } else { addend + product });
}

/// SMADDL, SMSUBL, UMADDL, UMSUBL.
fn mul_add_long(cx: &Context<'_>, signed: bool, sub: bool) {
    let wide = |field| {
        let value = cx.reg_of(W, field);
        if signed { value.sext(X) } else { value.zext(X) }
    };
    let product = wide("Rn") * wide("Rm");
    let addend = cx.reg_of(X, "Ra");
    cx.set_reg_of("Rd", if sub { addend - product } else { addend + product });
}

/// SMULH, UMULH.
fn mul_high(cx: &Context<'_>, signed: bool) {
    let (n, m) = (cx.reg_of(X, "Rn"), cx.reg_of(X, "Rm"));
    cx.set_reg_of("Rd", if signed { n.smulh(m) } else { n.umulh(m) });
}
