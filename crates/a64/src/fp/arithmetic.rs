//! One, two or three operands and a result.

use kvrm_ir::Val;

use super::{ByFormat, FTYPE, FTYPE_SD, RoundingMode};
use crate::context::Context;
use crate::float::{
    fp_add, fp_convert, fp_convert_bf, fp_div, fp_max, fp_max_num, fp_min, fp_min_num, fp_mul,
    fp_mul_add, fp_round_int, fp_round_int_n, fp_sqrt, fp_sub,
};
use crate::row::{Choice, Row, rows};
use crate::simd::arrangement::Lane;

/// Conversions between formats, by `ftype` and the two bits of the operation code with the new format: to and from.
const FORMATS: &[Choice<(Lane, Lane)>] = &[
    ("D_S", "00|01", (Lane::D, Lane::S)),
    ("H_S", "00|11", (Lane::H, Lane::S)),
    ("S_D", "01|00", (Lane::S, Lane::D)),
    ("H_D", "01|11", (Lane::H, Lane::D)),
    ("S_H", "11|00", (Lane::S, Lane::H)),
    ("D_H", "11|01", (Lane::D, Lane::H)),
];
/// Rounding to integers: the mode, and whether inexact counts.
const TO_INTEGER: &[Choice<(RoundingMode, bool)>] = &[
    ("N", "000", (RoundingMode::TieEven, false)),
    ("P", "001", (RoundingMode::Up, false)),
    ("M", "010", (RoundingMode::Down, false)),
    ("Z", "011", (RoundingMode::Zero, false)),
    ("A", "100", (RoundingMode::TieAway, false)),
    ("X", "110", (RoundingMode::Fpcr, true)),
    ("I", "111", (RoundingMode::Fpcr, false)),
];
/// Rounding to integers of some width.
const TO_INTEGER_N: &[Choice<(u32, RoundingMode)>] = &[
    ("32Z", "00", (32, RoundingMode::Zero)),
    ("32X", "01", (32, RoundingMode::Fpcr)),
    ("64Z", "10", (64, RoundingMode::Zero)),
    ("64X", "11", (64, RoundingMode::Fpcr)),
];
/// Changes of the sign.
const SIGN_CHANGE: &[Choice<SignChange>] = &[
    ("FMOV", "00", SignChange::None),
    ("FABS", "01", SignChange::Absolute),
    ("FNEG", "10", SignChange::Negated),
];
const TWO_SOURCE: &[Choice<ByFormat>] = &[
    ("FMUL", "0000", fp_mul),
    ("FDIV", "0001", fp_div),
    ("FADD", "0010", fp_add),
    ("FSUB", "0011", fp_sub),
    ("FMAX", "0100", fp_max),
    ("FMIN", "0101", fp_min),
    ("FMAXNM", "0110", fp_max_num),
    ("FMINNM", "0111", fp_min_num),
];
/// Sums with products, by `o1` and `o0`.
const THREE_SOURCE: &[Choice<Negated>] = &[
    ("FMADD", "0|0", Negated { addend: false, factor: false }),
    ("FMSUB", "0|1", Negated { addend: false, factor: true }),
    ("FNMADD", "1|0", Negated { addend: true, factor: true }),
    ("FNMSUB", "1|1", Negated { addend: true, factor: false }),
];

#[derive(Clone, Copy)]
enum SignChange {
    None,
    Absolute,
    Negated,
}

/// Which operands are negated before the operation: the addend, and the first factor.
#[derive(Clone, Copy)]
struct Negated {
    addend: bool,
    factor: bool,
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Floating-point data-processing (1 source)" for (op in SIGN_CHANGE, t in FTYPE):
        "{op}_{t}" "0 0 0 11110 {t} 1 0000{op} 10000 Rn:5 Rd:5" => change_sign(t, op);
    },
    rows! { "Floating-point data-processing (1 source)" for (t in FTYPE):
        "FSQRT_{t}" "0 0 0 11110 {t} 1 000011 10000 Rn:5 Rd:5" => square_root(t);
    },
    rows! { "Floating-point data-processing (1 source)" for (t in FORMATS):
        "FCVT_{t}" "0 0 0 11110 {t} 1 0001{t} 10000 Rn:5 Rd:5" => convert(t);
    },
    rows! { "Floating-point data-processing (1 source)":
        "BFCVT" "0 0 0 11110 01 1 000110 10000 Rn:5 Rd:5" => convert_brain();
    },
    rows! { "Floating-point data-processing (1 source)" for (op in TO_INTEGER, t in FTYPE):
        "FRINT{op}_{t}" "0 0 0 11110 {t} 1 001{op} 10000 Rn:5 Rd:5" => round_to_integer(t, op);
    },
    rows! { "Floating-point data-processing (1 source)" for (op in TO_INTEGER_N, t in FTYPE_SD):
        "FRINT{op}_{t}" "0 0 0 11110 {t} 1 0100{op} 10000 Rn:5 Rd:5" => round_to_sized_integer(t, op);
    },
    rows! { "Floating-point data-processing (2 source)" for (op in TWO_SOURCE, t in FTYPE):
        "{op}_{t}" "0 0 0 11110 {t} 1 Rm:5 {op} 10 Rn:5 Rd:5" => two_source(t, op);
    },
    rows! { "Floating-point data-processing (2 source)" for (t in FTYPE):
        "FNMUL_{t}" "0 0 0 11110 {t} 1 Rm:5 1000 10 Rn:5 Rd:5" => multiply_negate(t);
    },
    rows! { "Floating-point data-processing (3 source)" for (op in THREE_SOURCE, t in FTYPE):
        "{op}_{t}" "0 0 0 11111 {t} {op} Rm:5 {op} Ra:5 Rn:5 Rd:5" => multiply_add(t, op);
    },
];

/// FMOV (register), FABS, FNEG.
fn change_sign(cx: &Context<'_>, lane: Lane, op: SignChange) {
    let n = cx.number_of(lane, "Rn");
    let changed = match op {
        SignChange::None => n,
        SignChange::Absolute => lane.absolute(n),
        SignChange::Negated => lane.negated(n),
    };
    cx.set_number(lane, changed);
}

fn square_root(cx: &Context<'_>, lane: Lane) {
    cx.set_number(lane, cx.fp_call(fp_sqrt(lane.format()), &[cx.number_of(lane, "Rn")]));
}

fn convert(cx: &Context<'_>, (to, from): (Lane, Lane)) {
    let function = fp_convert(from.format(), to.format());
    cx.set_number(to, cx.fp_call(function, &[cx.number_of(from, "Rn")]));
}

fn convert_brain(cx: &Context<'_>) {
    cx.set_number(Lane::H, cx.fp_call(fp_convert_bf(), &[cx.number_of(Lane::S, "Rn")]));
}

/// FRINTN, FRINTP, FRINTM, FRINTZ, FRINTA, FRINTX, FRINTI.
fn round_to_integer(cx: &Context<'_>, lane: Lane, (mode, exact): (RoundingMode, bool)) {
    let n = cx.number_of(lane, "Rn");
    let number = cx.floating(|fp| {
        let operands = [n, fp.rounding(mode), cx.b.u32(exact.into())];
        fp.call(fp_round_int(lane.format()), &operands)
    });
    cx.set_number(lane, number);
}

/// FRINT32Z, FRINT32X, FRINT64Z, FRINT64X.
fn round_to_sized_integer(cx: &Context<'_>, lane: Lane, (bits, mode): (u32, RoundingMode)) {
    let n = cx.number_of(lane, "Rn");
    let function = fp_round_int_n(lane.format(), bits);
    cx.set_number(lane, cx.floating(|fp| fp.call(function, &[n, fp.rounding(mode)])));
}

fn of_two<'b>(cx: &Context<'b>, lane: Lane, function: ByFormat) -> Val<'b> {
    let operands = ["Rn", "Rm"].map(|field| cx.number_of(lane, field));
    cx.fp_call(function(lane.format()), &operands)
}

/// FMUL, FDIV, FADD, FSUB, FMAX, FMIN, FMAXNM, FMINNM.
fn two_source(cx: &Context<'_>, lane: Lane, function: ByFormat) {
    cx.set_number(lane, of_two(cx, lane, function));
}

/// FNMUL: a NaN is negated, too.
fn multiply_negate(cx: &Context<'_>, lane: Lane) {
    cx.set_number(lane, lane.negated(of_two(cx, lane, fp_mul)));
}

/// FMADD, FMSUB, FNMADD, FNMSUB.
fn multiply_add(cx: &Context<'_>, lane: Lane, negated: Negated) {
    let [a, n, m] = ["Ra", "Rn", "Rm"].map(|field| cx.number_of(lane, field));
    let a = if negated.addend { lane.negated(a) } else { a };
    let n = if negated.factor { lane.negated(n) } else { n };
    cx.set_number(lane, cx.fp_call(fp_mul_add(lane.format()), &[a, n, m]));
}
