//! One register of numbers and the result: signs, roots, estimates, rounding to integers, comparisons with zero.

use kvrm_ir::{Function, Val};

use super::arrangement::{Arrangement, FLOAT_MISC_SCALAR, FLOATS_MISC, FLOATS_MISC_SD, WORDS};
use super::float_three_same::{masks, numbers};
use super::vector::Vector;
use crate::context::Context;
use crate::float::{
    fp_compare_eq, fp_compare_ge, fp_compare_gt, fp_recip_estimate, fp_recp_x, fp_round_int,
    fp_round_int_n, fp_rsqrt_estimate, fp_sqrt, unsigned_recip_estimate, unsigned_rsqrt_estimate,
};
use crate::fp::{ByFormat, RoundingMode, Unit};
use crate::row::{Choice, Row, rows};

/// Estimates, by U.
const ESTIMATES: &[Choice<ByFormat>] =
    &[("FRECPE", "0", fp_recip_estimate), ("FRSQRTE", "1", fp_rsqrt_estimate)];
/// Those of fractions without an exponent, by U.
const UNSIGNED_ESTIMATES: &[Choice<fn() -> &'static Function>] =
    &[("URECPE", "0", unsigned_recip_estimate), ("URSQRTE", "1", unsigned_rsqrt_estimate)];
/// Rounding to integers, by U, `a` and the operation code: the mode, and whether inexact counts.
const TO_INTEGER: &[Choice<(RoundingMode, bool)>] = &[
    ("N", "0|0|11000", (RoundingMode::TieEven, false)),
    ("P", "0|1|11000", (RoundingMode::Up, false)),
    ("M", "0|0|11001", (RoundingMode::Down, false)),
    ("Z", "0|1|11001", (RoundingMode::Zero, false)),
    ("A", "1|0|11000", (RoundingMode::TieAway, false)),
    ("X", "1|0|11001", (RoundingMode::Fpcr, true)),
    ("I", "1|1|11001", (RoundingMode::Fpcr, false)),
];
/// Rounding to integers of some width, by U and the operation code.
const TO_INTEGER_N: &[Choice<(u32, RoundingMode)>] = &[
    ("32Z", "0|11110", (32, RoundingMode::Zero)),
    ("32X", "1|11110", (32, RoundingMode::Fpcr)),
    ("64Z", "0|11111", (64, RoundingMode::Zero)),
    ("64X", "1|11111", (64, RoundingMode::Fpcr)),
];
/// Comparisons with zero, by U and the operation code: the relation, and whether zero is its first operand.
const ZERO: &[Choice<(ByFormat, bool)>] = &[
    ("GT", "0|01100", (fp_compare_gt, false)),
    ("GE", "1|01100", (fp_compare_ge, false)),
    ("EQ", "0|01101", (fp_compare_eq, false)),
    ("LE", "1|01101", (fp_compare_ge, true)),
    ("LT", "0|01110", (fp_compare_gt, true)),
];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD two-register miscellaneous" for (t in FLOATS_MISC):
        "FABS_{t}"  "0 {t} 0 01110 1 {t} 01111 10 Rn:5 Rd:5" => absolute(t);
        "FNEG_{t}"  "0 {t} 1 01110 1 {t} 01111 10 Rn:5 Rd:5" => negate(t);
        "FSQRT_{t}" "0 {t} 1 01110 1 {t} 11111 10 Rn:5 Rd:5" => function(t, fp_sqrt);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (op in ESTIMATES, t in FLOATS_MISC):
        "{op}_{t}" "0 {t} {op} 01110 1 {t} 11101 10 Rn:5 Rd:5" => function(t, op);
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (op in ESTIMATES, t in FLOAT_MISC_SCALAR):
        "{op}_{t}" "01 {op} 11110 1 {t} 11101 10 Rn:5 Rd:5" => function(t, op);
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (t in FLOAT_MISC_SCALAR):
        "FRECPX_{t}" "01 0 11110 1 {t} 11111 10 Rn:5 Rd:5" => function(t, fp_recp_x);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (op in UNSIGNED_ESTIMATES, t in WORDS):
        "{op}_{t}" "0 {t} {op} 01110 10 10000 11100 10 Rn:5 Rd:5" => unsigned_estimate(t, op);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (op in TO_INTEGER, t in FLOATS_MISC):
        "FRINT{op}_{t}" "0 {t} {op} 01110 {op} {t} {op} 10 Rn:5 Rd:5" => round_to_integer(t, op);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (op in TO_INTEGER_N, t in FLOATS_MISC_SD):
        "FRINT{op}_{t}" "0 {t} {op} 01110 0 {t} {op} 10 Rn:5 Rd:5" => round_to_sized_integer(t, op);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (op in ZERO, t in FLOATS_MISC):
        "FCM{op}_zero_{t}" "0 {t} {op} 01110 1 {t} {op} 10 Rn:5 Rd:5" => compare_zero(t, op);
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (op in ZERO, t in FLOAT_MISC_SCALAR):
        "FCM{op}_zero_{t}" "01 {op} 11110 1 {t} {op} 10 Rn:5 Rd:5" => compare_zero(t, op);
    },
];

/// Sets the result to a function of each number, which is one of its operands.
pub(super) fn each<'b, const N: usize>(
    cx: &Context<'b>,
    t: Arrangement,
    function: &'static Function,
    operands: impl Fn(&Unit<'b>, Val<'b>) -> [Val<'b>; N],
) {
    let n = numbers(cx, t, "Rn").into_iter();
    let elements = cx.floating(|fp| fp.call_each(function, n.map(|n| operands(fp, n))));
    cx.set_elements(t, &elements);
}

fn absolute(cx: &Context<'_>, t: Arrangement) {
    let magnitude = t.lane.repeated(t.lane.format().magnitude());
    cx.set_result(t, Vector(cx.vector_of("Rn").0.map(|n| n & magnitude)));
}

fn negate(cx: &Context<'_>, t: Arrangement) {
    let sign = t.lane.repeated(t.lane.format().sign());
    cx.set_result(t, Vector(cx.vector_of("Rn").0.map(|n| n ^ sign)));
}

/// FSQRT, FRECPE, FRSQRTE, FRECPX.
fn function(cx: &Context<'_>, t: Arrangement, function: ByFormat) {
    each(cx, t, function(t.lane.format()), |_, n| [n]);
}

/// URECPE, URSQRTE.
fn unsigned_estimate(cx: &Context<'_>, t: Arrangement, function: fn() -> &'static Function) {
    let n = numbers(cx, t, "Rn");
    let elements = cx.b.call(function(), &n);
    cx.set_elements(t, &elements);
}

/// FRINTN, FRINTP, FRINTM, FRINTZ, FRINTA, FRINTX, FRINTI.
fn round_to_integer(cx: &Context<'_>, t: Arrangement, (mode, exact): (RoundingMode, bool)) {
    let function = fp_round_int(t.lane.format());
    each(cx, t, function, |fp, n| [n, fp.rounding(mode), cx.b.u32(exact.into())]);
}

/// FRINT32Z, FRINT32X, FRINT64Z, FRINT64X.
fn round_to_sized_integer(cx: &Context<'_>, t: Arrangement, (bits, mode): (u32, RoundingMode)) {
    let function = fp_round_int_n(t.lane.format(), bits);
    each(cx, t, function, |fp, n| [n, fp.rounding(mode)]);
}

/// FCMGT, FCMGE, FCMEQ, FCMLE, FCMLT with zero.
fn compare_zero(cx: &Context<'_>, t: Arrangement, (relation, zero_first): (ByFormat, bool)) {
    let pairs = numbers(cx, t, "Rn").into_iter().map(|n| {
        let zero = n.like(0);
        if zero_first { [zero, n] } else { [n, zero] }
    });
    let holds = cx.floating(|fp| fp.call_each(relation(t.lane.format()), pairs));
    cx.set_elements(t, &masks(t.lane, holds));
}
