//! Data processing, immediate (C4.1.93).

use kvrm_ir::{Type, Val};

use crate::context::Context;
use crate::data_register::{Logic, logic};
use crate::row::{Row, rows};
use crate::{W, X};

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "PC-relative addressing":
        "ADR"  "0 immlo:2 10000 immhi:19 Rd:5" => adr(false);
        "ADRP" "1 immlo:2 10000 immhi:19 Rd:5" => adr(true);
    },
    rows! { "Add/subtract (immediate)":
        "ADD_imm_W"  "0 0 0 100010 sh:1 imm12:12 Rn:5 Rd:5" => add_sub_imm(W, false, false);
        "ADDS_imm_W" "0 0 1 100010 sh:1 imm12:12 Rn:5 Rd:5" => add_sub_imm(W, false, true);
        "SUB_imm_W"  "0 1 0 100010 sh:1 imm12:12 Rn:5 Rd:5" => add_sub_imm(W, true, false);
        "SUBS_imm_W" "0 1 1 100010 sh:1 imm12:12 Rn:5 Rd:5" => add_sub_imm(W, true, true);
        "ADD_imm_X"  "1 0 0 100010 sh:1 imm12:12 Rn:5 Rd:5" => add_sub_imm(X, false, false);
        "ADDS_imm_X" "1 0 1 100010 sh:1 imm12:12 Rn:5 Rd:5" => add_sub_imm(X, false, true);
        "SUB_imm_X"  "1 1 0 100010 sh:1 imm12:12 Rn:5 Rd:5" => add_sub_imm(X, true, false);
        "SUBS_imm_X" "1 1 1 100010 sh:1 imm12:12 Rn:5 Rd:5" => add_sub_imm(X, true, true);
    },
    rows! { "Logical (immediate)":
        "AND_imm_W"  "0 00 100100 0 immr:6 imms:6 Rn:5 Rd:5", if bitmask_allocated => logical_imm(W, Logic::And, false);
        "ORR_imm_W"  "0 01 100100 0 immr:6 imms:6 Rn:5 Rd:5", if bitmask_allocated => logical_imm(W, Logic::Or, false);
        "EOR_imm_W"  "0 10 100100 0 immr:6 imms:6 Rn:5 Rd:5", if bitmask_allocated => logical_imm(W, Logic::Xor, false);
        "ANDS_imm_W" "0 11 100100 0 immr:6 imms:6 Rn:5 Rd:5", if bitmask_allocated => logical_imm(W, Logic::And, true);
        "AND_imm_X"  "1 00 100100 N:1 immr:6 imms:6 Rn:5 Rd:5", if bitmask_allocated => logical_imm(X, Logic::And, false);
        "ORR_imm_X"  "1 01 100100 N:1 immr:6 imms:6 Rn:5 Rd:5", if bitmask_allocated => logical_imm(X, Logic::Or, false);
        "EOR_imm_X"  "1 10 100100 N:1 immr:6 imms:6 Rn:5 Rd:5", if bitmask_allocated => logical_imm(X, Logic::Xor, false);
        "ANDS_imm_X" "1 11 100100 N:1 immr:6 imms:6 Rn:5 Rd:5", if bitmask_allocated => logical_imm(X, Logic::And, true);
    },
    rows! { "Move wide (immediate)":
        "MOVN_W" "0 00 100101 0 hw:1 imm16:16 Rd:5" => move_wide(W, Move::Not);
        "MOVZ_W" "0 10 100101 0 hw:1 imm16:16 Rd:5" => move_wide(W, Move::Zero);
        "MOVK_W" "0 11 100101 0 hw:1 imm16:16 Rd:5" => move_wide(W, Move::Keep);
        "MOVN_X" "1 00 100101 hw:2 imm16:16 Rd:5" => move_wide(X, Move::Not);
        "MOVZ_X" "1 10 100101 hw:2 imm16:16 Rd:5" => move_wide(X, Move::Zero);
        "MOVK_X" "1 11 100101 hw:2 imm16:16 Rd:5" => move_wide(X, Move::Keep);
    },
    rows! { "Bitfield":
        "SBFM_W" "0 00 100110 0 0 immr:5 0 imms:5 Rn:5 Rd:5" => extract_bitfield(W, true);
        "BFM_W"  "0 01 100110 0 0 immr:5 0 imms:5 Rn:5 Rd:5" => insert_bitfield(W);
        "UBFM_W" "0 10 100110 0 0 immr:5 0 imms:5 Rn:5 Rd:5" => extract_bitfield(W, false);
        "SBFM_X" "1 00 100110 1 immr:6 imms:6 Rn:5 Rd:5" => extract_bitfield(X, true);
        "BFM_X"  "1 01 100110 1 immr:6 imms:6 Rn:5 Rd:5" => insert_bitfield(X);
        "UBFM_X" "1 10 100110 1 immr:6 imms:6 Rn:5 Rd:5" => extract_bitfield(X, false);
    },
    rows! { "Extract":
        "EXTR_W" "0 00 100111 0 0 Rm:5 0 imms:5 Rn:5 Rd:5" => extr(W);
        "EXTR_X" "1 00 100111 1 0 Rm:5 imms:6 Rn:5 Rd:5" => extr(X);
    },
];

/// ADR, ADRP.
fn adr(cx: &Context<'_>, page: bool) {
    let imm = cx.signed_field("immhi", 4) | cx.field("immlo").zext(X);
    let target = if page { (cx.pc() & !0xfffu64) + (imm << 12) } else { cx.pc() + imm };
    cx.set_reg_of("Rd", target);
}

/// ADD, ADDS, SUB, SUBS (immediate).
fn add_sub_imm(cx: &Context<'_>, ty: Type, sub: bool, set_flags: bool) {
    let imm12 = cx.field("imm12").zext(ty);
    let imm = cx.flag("sh").select(imm12 << 12, imm12);
    let operand = cx.reg_or_sp_of(ty, "Rn");
    let (result, flags) = if sub { cx.sub(operand, imm) } else { cx.add(operand, imm) };
    if set_flags {
        cx.set_flags(flags);
        cx.set_reg_of("Rd", result);
    } else {
        cx.set_reg_or_sp_of("Rd", result);
    }
}

/// AND, ORR, EOR, ANDS (immediate).
fn logical_imm(cx: &Context<'_>, ty: Type, op: Logic, set_flags: bool) {
    let n = if ty == X { cx.field("N") } else { cx.b.u32(0) };
    let mask = decode_bit_mask(cx, n, cx.field("imms"), cx.field("immr")).trunc(ty);
    let result = logic(op, cx.reg_of(ty, "Rn"), mask);
    if set_flags {
        cx.set_flags(cx.logical_flags(result));
        cx.set_reg_of("Rd", result);
    } else {
        cx.set_reg_or_sp_of("Rd", result);
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

/// The three move-wide instructions.
enum Move {
    Not,
    Zero,
    Keep,
}

/// MOVN, MOVZ, MOVK.
fn move_wide(cx: &Context<'_>, ty: Type, kind: Move) {
    let position = cx.field("hw") << 4;
    let imm = cx.field("imm16").zext(ty).shl_by(position);
    let result = match kind {
        Move::Not => !imm,
        Move::Zero => imm,
        Move::Keep => {
            let hole = cx.b.konst(ty, 0xffff).shl_by(position);
            (cx.reg_of(ty, "Rd") & !hole) | imm
        }
    };
    cx.set_reg_of("Rd", result);
}

/// SBFM, UBFM: bits `R` to `S` moved to the bottom, or, if `S < R`, bits `S` to 0 moved up. Both are a
/// shift that puts bit `S` on top and one back by an amount taken modulo the width.
fn extract_bitfield(cx: &Context<'_>, ty: Type, signed: bool) {
    let (r, s) = (cx.field("immr"), cx.field("imms"));
    let up = cx.b.u32(ty.bits() - 1) - s;
    let top = cx.reg_of(ty, "Rn").shl_by(up);
    let down = up + r;
    let result = if signed { top.sar_by(down) } else { top.shr_by(down) };
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
