//! Comparisons, selection and constants.

use kvrm_ir::{Flags, Type, Val};

use super::{ByFormat, FTYPE};
use crate::context::Context;
use crate::float::{fp_compare, fp_compare_signalling};
use crate::row::{Choice, Row, rows};
use crate::simd::arrangement::Lane;
use crate::simd::immediate::expanded;

/// Which NaNs are invalid, by a bit: signalling ones, or all.
const COMPARE: &[Choice<ByFormat>] = &[("", "0", fp_compare), ("E", "1", fp_compare_signalling)];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Floating-point compare" for (op in COMPARE, t in FTYPE):
        "FCMP{op}_{t}"      "0 0 0 11110 {t} 1 Rm:5 00 1000 Rn:5 {op} 0 000" => compare(t, op);
        "FCMP{op}_zero_{t}" "0 0 0 11110 {t} 1 (00000) 00 1000 Rn:5 {op} 1 000" => compare_zero(t, op);
    },
    rows! { "Floating-point conditional compare" for (op in COMPARE, t in FTYPE):
        "FCCMP{op}_{t}" "0 0 0 11110 {t} 1 Rm:5 cond#4 01 Rn:5 {op} nzcv:4" => conditional_compare(t, op);
    },
    rows! { "Floating-point conditional select" for (t in FTYPE):
        "FCSEL_{t}" "0 0 0 11110 {t} 1 Rm:5 cond#4 11 Rn:5 Rd:5" => conditional_select(t);
    },
    rows! { "Floating-point immediate" for (t in FTYPE):
        "FMOV_imm_{t}" "0 0 0 11110 {t} 1 imm8:8 100 00000 Rd:5" => move_immediate(t);
    },
];

fn set_nzcv<'b>(cx: &Context<'b>, nzcv: Val<'b>) {
    cx.set_flags(Flags::Bits(cx.flags_from_bits(nzcv)));
}

/// FCMP, FCMPE.
fn compare(cx: &Context<'_>, lane: Lane, function: ByFormat) {
    let operands = ["Rn", "Rm"].map(|field| cx.number_of(lane, field));
    set_nzcv(cx, cx.fp_call(function(lane.format()), &operands));
}

/// FCMP, FCMPE with zero.
fn compare_zero(cx: &Context<'_>, lane: Lane, function: ByFormat) {
    let n = cx.number_of(lane, "Rn");
    set_nzcv(cx, cx.fp_call(function(lane.format()), &[n, n.like(0)]));
}

/// FCCMP, FCCMPE: without a comparison, FPSR gains nothing.
fn conditional_compare(cx: &Context<'_>, lane: Lane, function: ByFormat) {
    let operands = ["Rn", "Rm"].map(|field| cx.number_of(lane, field));
    let given = cx.field("nzcv");
    let holds = cx.condition_holds();
    let nzcv = cx.floating(|fp| {
        let compare = || fp.results(function(lane.format()), &operands);
        let [nzcv, flags] = cx.b.if_else(holds, compare, || [given, cx.b.u32(0)]);
        fp.gain(flags);
        nzcv
    });
    set_nzcv(cx, nzcv);
}

fn conditional_select(cx: &Context<'_>, lane: Lane) {
    let [n, m] = ["Rn", "Rm"].map(|field| cx.number_of(lane, field));
    cx.set_number(lane, cx.condition_holds().select(n, m));
}

/// FMOV (scalar, immediate).
fn move_immediate(cx: &Context<'_>, lane: Lane) {
    cx.set_number(lane, expanded(lane, cx.field("imm8").zext(Type::U64)));
}
