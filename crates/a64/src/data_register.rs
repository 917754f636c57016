//! Data processing, register (C4.1.95).

use kvrm_ir::{Cond, Flags, Type, Val};

use crate::context::Context;
use crate::data_immediate::set_result;
use crate::row::{Choice, Row, rows};
use crate::{SF, SIGN, Sign, W, X};

/// Addition and subtraction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddSub {
    Add,
    Sub,
}

/// Whether an instruction sets the flags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagSetting {
    KeepFlags,
    SetFlags,
}

/// Whether an operand is inverted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inversion {
    Plain,
    Not,
}

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

/// The second operand of a conditional comparison.
#[derive(Clone, Copy)]
enum Compared {
    Register,
    Immediate,
}

use AddSub::{Add, Sub};
use FlagSetting::{KeepFlags, SetFlags};
use Inversion::{Not, Plain};

pub(crate) const ADD_SUB: &[Choice<AddSub>] = &[("ADD", "0", Add), ("SUB", "1", Sub)];
/// Addition and subtraction with carry.
const ADC_SBC: &[Choice<AddSub>] = &[("ADC", "0", Add), ("SBC", "1", Sub)];
/// Addition and subtraction in comparisons.
const CCMN_CCMP: &[Choice<AddSub>] = &[("CCMN", "0", Add), ("CCMP", "1", Sub)];
pub(crate) const SET_FLAGS: &[Choice<FlagSetting>] = &[("", "0", KeepFlags), ("S", "1", SetFlags)];
pub(crate) const LOGIC: &[Choice<Logic>] =
    &[("AND", "00", Logic::And), ("ORR", "01", Logic::Or), ("EOR", "10", Logic::Xor)];
/// The same with the second operand inverted.
const LOGIC_NOT: &[Choice<Logic>] =
    &[("BIC", "00", Logic::And), ("ORN", "01", Logic::Or), ("EON", "10", Logic::Xor)];
const SHIFT: &[Choice<Shift>] = &[
    ("LSL", "00", Shift::Lsl),
    ("LSR", "01", Shift::Lsr),
    ("ASR", "10", Shift::Asr),
    ("ROR", "11", Shift::Ror),
];
const COMPARED: &[Choice<Compared>] = &[
    ("reg_", "Rm:5 cond#4 0", Compared::Register),
    ("imm_", "imm5:5 cond#4 1", Compared::Immediate),
];
/// Signed and unsigned, in the order of multiplications.
const MUL_SIGN: &[Choice<Sign>] = &[("S", "0", Sign::Signed), ("U", "1", Sign::Unsigned)];

/// The polynomials of CRC32 and CRC32C, bit-reversed.
const CRC: &[Choice<u32>] = &[("", "0", 0xedb8_8320), ("C", "1", 0x82f6_3b78)];
/// How much a checksum is of.
const CRC_SIZE: &[Choice<u32>] = &[("B", "00", 8), ("H", "01", 16), ("W", "10", 32)];

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "Data-processing (2 source)" for (sf in SF, sign in SIGN):
        "{sign}DIV_{sf}" "{sf} 0 0 11010110 Rm:5 00001 {sign} Rn:5 Rd:5" => div(sf, sign);
    },
    rows! { "Data-processing (2 source)" for (sf in SF, shift in SHIFT):
        "{shift}V_{sf}" "{sf} 0 0 11010110 Rm:5 0010 {shift} Rn:5 Rd:5" => shift_variable(sf, shift);
    },
    rows! { "Data-processing (2 source)" for (crc in CRC, size in CRC_SIZE):
        "CRC32{crc}{size}" "0 0 0 11010110 Rm:5 010 {crc} {size} Rn:5 Rd:5" => crc32(size, crc);
    },
    rows! { "Data-processing (2 source)" for (crc in CRC):
        "CRC32{crc}X" "1 0 0 11010110 Rm:5 010 {crc} 11 Rn:5 Rd:5" => crc32(64, crc);
    },
    rows! { "Data-processing (1 source)" for (sf in SF):
        "RBIT_{sf}"  "{sf} 1 0 11010110 00000 000000 Rn:5 Rd:5" => one_source(sf, Val::rbit);
        "REV16_{sf}" "{sf} 1 0 11010110 00000 000001 Rn:5 Rd:5" => one_source(sf, rev16);
        "REV_{sf}"   "{sf} 1 0 11010110 00000 00001 {sf} Rn:5 Rd:5" => one_source(sf, Val::bswap);
        "CLZ_{sf}"   "{sf} 1 0 11010110 00000 000100 Rn:5 Rd:5" => one_source(sf, Val::clz);
        "CLS_{sf}"   "{sf} 1 0 11010110 00000 000101 Rn:5 Rd:5" => one_source(sf, cls);
    },
    rows! { "Data-processing (1 source)":
        "REV32_X" "1 1 0 11010110 00000 000010 Rn:5 Rd:5" => rev32();
    },
    rows! { "Logical (shifted register)" for (sf in SF, op in LOGIC):
        "{op}_shift_{sf}" "{sf} {op} 01010 shift#2 0 Rm:5 imm6:5+sf Rn:5 Rd:5" => logical_shifted(sf, op, Plain, KeepFlags);
    },
    rows! { "Logical (shifted register)" for (sf in SF, op in LOGIC_NOT):
        "{op}_shift_{sf}" "{sf} {op} 01010 shift#2 1 Rm:5 imm6:5+sf Rn:5 Rd:5" => logical_shifted(sf, op, Not, KeepFlags);
    },
    rows! { "Logical (shifted register)" for (sf in SF):
        "ANDS_shift_{sf}" "{sf} 11 01010 shift#2 0 Rm:5 imm6:5+sf Rn:5 Rd:5" => logical_shifted(sf, Logic::And, Plain, SetFlags);
        "BICS_shift_{sf}" "{sf} 11 01010 shift#2 1 Rm:5 imm6:5+sf Rn:5 Rd:5" => logical_shifted(sf, Logic::And, Not, SetFlags);
    },
    rows! { "Add/subtract (shifted register)" for (sf in SF, op in ADD_SUB, s in SET_FLAGS):
        "{op}{s}_shift_{sf}" "{sf} {op} {s} 01011 shift#2 0 Rm:5 imm6:5+sf Rn:5 Rd:5", if not_ror => add_sub_shifted(sf, op, s);
    },
    rows! { "Add/subtract (extended register)" for (sf in SF, op in ADD_SUB, s in SET_FLAGS):
        "{op}{s}_ext_{sf}" "{sf} {op} {s} 01011 00 1 Rm:5 option#3 imm3:3 Rn:5 Rd:5", if extend_allocated => add_sub_extended(sf, op, s);
    },
    rows! { "Add/subtract (with carry)" for (sf in SF, op in ADC_SBC, s in SET_FLAGS):
        "{op}{s}_{sf}" "{sf} {op} {s} 11010000 Rm:5 000000 Rn:5 Rd:5" => add_sub_carry(sf, op, s);
    },
    rows! { "Flag manipulation":
        "RMIF"  "1 0 1 11010000 imm6:6 00001 Rn:5 0 mask:4" => rmif();
        "SETF8"  "0 0 1 11010000 000000 0 0010 Rn:5 0 1101" => setf(8);
        "SETF16" "0 0 1 11010000 000000 1 0010 Rn:5 0 1101" => setf(16);
    },
    rows! { "Conditional compare" for (sf in SF, with in COMPARED, op in CCMN_CCMP):
        "{op}_{with}{sf}" "{sf} {op} 1 11010010 {with} 0 Rn:5 0 nzcv:4" => cond_compare(sf, op, with);
    },
    rows! { "Conditional select" for (sf in SF):
        "CSEL_{sf}"  "{sf} 0 0 11010100 Rm:5 cond#4 0 0 Rn:5 Rd:5" => cond_select(sf, Select::Plain);
        "CSINC_{sf}" "{sf} 0 0 11010100 Rm:5 cond#4 0 1 Rn:5 Rd:5" => cond_select(sf, Select::Increment);
        "CSINV_{sf}" "{sf} 1 0 11010100 Rm:5 cond#4 0 0 Rn:5 Rd:5" => cond_select(sf, Select::Invert);
        "CSNEG_{sf}" "{sf} 1 0 11010100 Rm:5 cond#4 0 1 Rn:5 Rd:5" => cond_select(sf, Select::Negate);
    },
    rows! { "Data-processing (3 source)" for (sf in SF, op in ADD_SUB):
        "M{op}_{sf}" "{sf} 00 11011 000 Rm:5 {op} Ra:5 Rn:5 Rd:5" => mul_add(sf, op);
    },
    rows! { "Data-processing (3 source)" for (sign in MUL_SIGN, op in ADD_SUB):
        "{sign}M{op}L" "1 00 11011 {sign} 01 Rm:5 {op} Ra:5 Rn:5 Rd:5" => mul_add_long(sign, op);
    },
    rows! { "Data-processing (3 source)" for (sign in MUL_SIGN):
        "{sign}MULH" "1 00 11011 {sign} 10 Rm:5 0 (11111) Rn:5 Rd:5" => mul_high(sign);
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
    let (_, _, kind) = SHIFT[cx.shape("shift") as usize];
    shift_by(kind, cx.reg_of(ty, "Rm"), cx.field("imm6"))
}

/// The sum or difference; sets the flags if asked to.
pub(crate) fn add_sub<'b>(
    cx: &Context<'b>,
    op: AddSub,
    set: FlagSetting,
    x: Val<'b>,
    y: Val<'b>,
) -> Val<'b> {
    let (result, flags) = match op {
        Add => (x + y, Flags::Add(x, y)),
        Sub => (x - y, Flags::Sub(x, y)),
    };
    if set == SetFlags {
        cx.set_flags(flags);
    }
    result
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
pub(crate) fn extended(ty: Type, value: Val<'_>, option: u32) -> Val<'_> {
    let from = Type::from_bytes(1 << (option & 3)).min(ty);
    let low = value.trunc(from);
    if option & 4 != 0 { low.sext(ty) } else { low.zext(ty) }
}

fn div(cx: &Context<'_>, ty: Type, sign: Sign) {
    let (n, m) = (cx.reg_of(ty, "Rn"), cx.reg_of(ty, "Rm"));
    cx.set_reg_of(
        "Rd",
        match sign {
            Sign::Signed => n.sdiv(m),
            Sign::Unsigned => n.udiv(m),
        },
    );
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
fn logical_shifted(cx: &Context<'_>, ty: Type, op: Logic, inversion: Inversion, set: FlagSetting) {
    let operand = shifted(cx, ty);
    let operand = if inversion == Not { !operand } else { operand };
    let result = logic(op, cx.reg_of(ty, "Rn"), operand);
    if set == SetFlags {
        cx.set_flags(Flags::Logic(result));
    }
    cx.set_reg_of("Rd", result);
}

/// ADD, ADDS, SUB, SUBS (shifted register).
fn add_sub_shifted(cx: &Context<'_>, ty: Type, op: AddSub, set: FlagSetting) {
    let result = add_sub(cx, op, set, cx.reg_of(ty, "Rn"), shifted(cx, ty));
    cx.set_reg_of("Rd", result);
}

/// ADD, ADDS, SUB, SUBS (extended register).
fn add_sub_extended(cx: &Context<'_>, ty: Type, op: AddSub, set: FlagSetting) {
    let m = extended(ty, cx.reg_of(ty, "Rm"), cx.shape("option")).shl_by(cx.field("imm3"));
    let result = add_sub(cx, op, set, cx.reg_or_sp_of(ty, "Rn"), m);
    set_result(cx, set, result);
}

/// ADC, ADCS, SBC, SBCS.
fn add_sub_carry(cx: &Context<'_>, ty: Type, op: AddSub, set: FlagSetting) {
    let (n, m) = (cx.reg_of(ty, "Rn"), cx.reg_of(ty, "Rm"));
    let m = if op == Sub { !m } else { m };
    let (result, flags) = cx.add_with_carry(n, m, cx.b.test(Cond::Cs));
    if set == SetFlags {
        cx.set_flags(flags);
    }
    cx.set_reg_of("Rd", result);
}

/// RMIF: flags chosen by the mask are set from a rotated register.
fn rmif(cx: &Context<'_>) {
    let rotated = cx.reg_of(X, "Rn").rotr_by(cx.field("imm6")).trunc(W);
    let (old, new) = (cx.flags(), cx.flags_from_bits(rotated));
    let mask = cx.flags_from_bits(cx.field("mask"));
    cx.set_flags(Flags::Bits(std::array::from_fn(|i| mask[i].select(new[i], old[i]))));
}

/// SETF8, SETF16: the flags an 8- or 16-bit addition would have left, but for the carry.
fn setf(cx: &Context<'_>, bits: u32) {
    let value = cx.reg_of(W, "Rn");
    let n = value.bit(bits - 1);
    let z = (value & (u64::MAX >> (64 - bits))).eq(0u64);
    cx.set_flags(Flags::Bits([n, z, cx.b.test(Cond::Cs), value.bit(bits) ^ n]));
}

/// CCMP, CCMN (immediate and register).
fn cond_compare(cx: &Context<'_>, ty: Type, op: AddSub, with: Compared) {
    let n = cx.reg_of(ty, "Rn");
    let m = match with {
        Compared::Register => cx.reg_of(ty, "Rm"),
        Compared::Immediate => cx.field("imm5").zext(ty),
    };
    let holds = cx.condition_holds();
    let new = cx.b.flag_bits(match op {
        Add => Flags::Add(n, m),
        Sub => Flags::Sub(n, m),
    });
    let given = cx.flags_from_bits(cx.field("nzcv"));
    cx.set_flags(Flags::Bits(std::array::from_fn(|i| holds.select(new[i], given[i]))));
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
    cx.set_reg_of("Rd", cx.condition_holds().select(n, otherwise));
}

/// MADD, MSUB.
fn mul_add(cx: &Context<'_>, ty: Type, op: AddSub) {
    let product = cx.reg_of(ty, "Rn") * cx.reg_of(ty, "Rm");
    cx.set_reg_of("Rd", add_sub(cx, op, KeepFlags, cx.reg_of(ty, "Ra"), product));
}

/// SMADDL, SMSUBL, UMADDL, UMSUBL.
fn mul_add_long(cx: &Context<'_>, sign: Sign, op: AddSub) {
    let wide = |field| match sign {
        Sign::Signed => cx.reg_of(W, field).sext(X),
        Sign::Unsigned => cx.reg_of(W, field).zext(X),
    };
    let product = wide("Rn") * wide("Rm");
    cx.set_reg_of("Rd", add_sub(cx, op, KeepFlags, cx.reg_of(X, "Ra"), product));
}

/// SMULH, UMULH.
fn mul_high(cx: &Context<'_>, sign: Sign) {
    let (n, m) = (cx.reg_of(X, "Rn"), cx.reg_of(X, "Rm"));
    cx.set_reg_of(
        "Rd",
        match sign {
            Sign::Signed => n.smulh(m),
            Sign::Unsigned => n.umulh(m),
        },
    );
}
