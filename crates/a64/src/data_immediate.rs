//! Data processing, immediate (C4.1.93).

use kvrm_ir::{Flags, Type, Val};

use crate::context::Context;
use crate::data_register::{
    ADD_SUB, AddSub, FlagSetting, Inversion, LOGIC, Logic, SET_FLAGS, add_sub, logic,
};
use crate::row::{Row, rows};
use crate::{SF, Sign, X};

use FlagSetting::{KeepFlags, SetFlags};
use Inversion::{Not, Plain};

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "PC-relative addressing":
        "ADR"  "0 immlo:2 10000 immhi:19 Rd:5" => adr(false);
        "ADRP" "1 immlo:2 10000 immhi:19 Rd:5" => adr(true);
    },
    rows! { "Add/subtract (immediate)" for (sf in SF, op in ADD_SUB, s in SET_FLAGS):
        "{op}{s}_imm_{sf}" "{sf} {op} {s} 100010 sh:1 imm12:12 Rn:5 Rd:5" => add_sub_imm(sf, op, s);
    },
    rows! { "Logical (immediate)" for (sf in SF, op in LOGIC):
        "{op}_imm_{sf}" "{sf} {op} 100100 N:0+sf immr:6 imms:6 Rn:5 Rd:5", if bitmask_allocated => logical_imm(sf, op, KeepFlags);
    },
    rows! { "Logical (immediate)" for (sf in SF):
        "ANDS_imm_{sf}" "{sf} 11 100100 N:0+sf immr:6 imms:6 Rn:5 Rd:5", if bitmask_allocated => logical_imm(sf, Logic::And, SetFlags);
    },
    rows! { "Move wide (immediate)" for (sf in SF):
        "MOVN_{sf}" "{sf} 00 100101 hw:1+sf imm16:16 Rd:5" => move_wide(sf, Not);
        "MOVZ_{sf}" "{sf} 10 100101 hw:1+sf imm16:16 Rd:5" => move_wide(sf, Plain);
        "MOVK_{sf}" "{sf} 11 100101 hw#1+sf imm16:16 Rd:5" => move_keep(sf);
    },
    rows! { "Bitfield" for (sf in SF):
        "SBFM_{sf}" "{sf} 00 100110 {sf} immr:5+sf imms:5+sf Rn:5 Rd:5" => extract_bitfield(sf, Sign::Signed);
        "BFM_{sf}"  "{sf} 01 100110 {sf} immr:5+sf imms:5+sf Rn:5 Rd:5" => insert_bitfield(sf);
        "UBFM_{sf}" "{sf} 10 100110 {sf} immr:5+sf imms:5+sf Rn:5 Rd:5" => extract_bitfield(sf, Sign::Unsigned);
    },
    rows! { "Extract" for (sf in SF):
        "EXTR_{sf}" "{sf} 00 100111 {sf} 0 Rm:5 imms:5+sf Rn:5 Rd:5" => extr(sf);
    },
];

/// ADR, ADRP.
fn adr(cx: &Context<'_>, page: bool) {
    let imm = cx.signed_field("immhi", 4) | cx.field("immlo").zext(X);
    let target = if page { (cx.pc() & !0xfffu64) + (imm << 12) } else { cx.pc() + imm };
    cx.set_reg_of("Rd", target);
}

/// ADD, ADDS, SUB, SUBS (immediate).
fn add_sub_imm(cx: &Context<'_>, ty: Type, op: AddSub, set: FlagSetting) {
    let imm12 = cx.field("imm12").zext(ty);
    let imm = cx.flag("sh").select(imm12 << 12, imm12);
    let result = add_sub(cx, op, set, cx.reg_or_sp_of(ty, "Rn"), imm);
    set_result(cx, set, result);
}

/// AND, ORR, EOR, ANDS (immediate).
fn logical_imm(cx: &Context<'_>, ty: Type, op: Logic, set: FlagSetting) {
    let n = if ty == X { cx.field("N") } else { cx.b.u32(0) };
    let mask = decode_bit_mask(cx, n, cx.field("imms"), cx.field("immr")).trunc(ty);
    let result = logic(op, cx.reg_of(ty, "Rn"), mask);
    if set == SetFlags {
        cx.set_flags(Flags::Logic(result));
    }
    set_result(cx, set, result);
}

/// Register 31 is the stack pointer, but not where flags are set.
pub(crate) fn set_result<'b>(cx: &Context<'b>, set: FlagSetting, result: Val<'b>) {
    match set {
        SetFlags => cx.set_reg_of("Rd", result),
        KeepFlags => cx.set_reg_or_sp_of("Rd", result),
    }
}

/// `DecodeBitMasks`, the part logical immediates use: a run of `S + 1` ones in an element of 2 to 64
/// bits, rotated right by `R` and repeated.
fn decode_bit_mask<'b>(cx: &Context<'b>, n: Val<'b>, imms: Val<'b>, immr: Val<'b>) -> Val<'b> {
    // The highest set bit of N:NOT(imms) is the logarithm of the element size.
    let size_bits = (n << 6) | (imms ^ 0x3fu64);
    let log_size = cx.b.u32(31) - size_bits.clz();
    let size = cx.b.u32(1).shl_by(log_size);
    let (s, r) = (imms & (size - 1u64), immr & (size - 1u64));
    let all = cx.b.u64(u64::MAX);
    let run = all.shr_by(cx.b.u32(63) - s);
    // Rotate within the element, whose upper part is zero.
    let element = all.shr_by(cx.b.u32(64) - size);
    let rotated = run.shr_by(r) | (run.shl_by(size - r) & element);
    let rotated = r.eq(0u64).select(run, rotated);
    [2u32, 4, 8, 16, 32].into_iter().fold(rotated, |mask, width| {
        size.ule(u64::from(width)).select(mask | (mask << width), mask)
    })
}

/// Whether N, immr and imms describe a mask: not for an element of one bit, nor one all of ones.
fn bitmask_allocated(word: u32) -> bool {
    let (n, imms) = (word >> 22 & 1, word >> 10 & 0x3f);
    let size_bits = n << 6 | (imms ^ 0x3f);
    if size_bits < 2 {
        return false;
    }
    let levels = (1 << size_bits.ilog2()) - 1;
    imms & levels != levels
}

/// MOVN, MOVZ.
fn move_wide(cx: &Context<'_>, ty: Type, inversion: Inversion) {
    let imm = cx.field("imm16").zext(ty).shl_by(cx.field("hw") << 4);
    cx.set_reg_of("Rd", if inversion == Not { !imm } else { imm });
}

/// MOVK: replaces 16 bits of the register.
fn move_keep(cx: &Context<'_>, ty: Type) {
    let position = cx.shape("hw") << 4;
    let imm = cx.field("imm16").zext(ty) << position;
    cx.set_reg_of("Rd", (cx.reg_of(ty, "Rd") & !(0xffff << position)) | imm);
}

/// SBFM, UBFM: bits `R` to `S` moved to the bottom, or, if `S < R`, bits `S` to 0 moved up. Both are a
/// shift that puts bit `S` on top and one back by an amount taken modulo the width.
fn extract_bitfield(cx: &Context<'_>, ty: Type, sign: Sign) {
    let (r, s) = (cx.field("immr"), cx.field("imms"));
    let up = cx.b.u32(ty.bits() - 1) - s;
    let top = cx.reg_of(ty, "Rn").shl_by(up);
    let down = up + r;
    let result = match sign {
        Sign::Signed => top.sar_by(down),
        Sign::Unsigned => top.shr_by(down),
    };
    cx.set_reg_of("Rd", result);
}

/// BFM: the field that UBFM would extract replaces those bits of the destination.
fn insert_bitfield(cx: &Context<'_>, ty: Type) {
    let (r, s) = (cx.field("immr"), cx.field("imms"));
    let up = cx.b.u32(ty.bits() - 1) - s;
    let down = up + r;
    let field = cx.reg_of(ty, "Rn").shl_by(up).shr_by(down);
    let mask = cx.b.konst(ty, ty.mask()).shl_by(up).shr_by(down);
    cx.set_reg_of("Rd", (cx.reg_of(ty, "Rd") & !mask) | field);
}

/// EXTR: the `width` bits from bit `imms` on of the two registers side by side.
fn extr(cx: &Context<'_>, ty: Type) {
    let (high, low, lsb) = (cx.reg_of(ty, "Rn"), cx.reg_of(ty, "Rm"), cx.field("imms"));
    let joined = low.shr_by(lsb) | high.shl_by(cx.b.u32(ty.bits()) - lsb);
    cx.set_reg_of("Rd", lsb.eq(0u64).select(low, joined));
}
