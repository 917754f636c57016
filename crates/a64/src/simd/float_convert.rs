//! Between numbers and integers, and between formats.

use kvrm_ir::{Function, Val};

use super::arrangement::{
    Arrangement, FLOAT_MISC_SCALAR, FLOATS_MISC, FLOATS_NARROW, HALFWORDS, Lane, Part, WORDS,
};
use super::float_two_misc::each;
use super::three_same::SIGN;
use super::two_misc::{long_elements, set_narrowed};
use crate::Sign;
use crate::context::Context;
use crate::float::{fixed_to_fp, fp_convert, fp_convert_bf, fp_convert_odd, fp_to_fixed};
use crate::fp::RoundingMode;
use crate::row::{Choice, Row, rows};

const fn t(lane: Lane, part: Part) -> Arrangement {
    Arrangement { lane, part }
}

/// Arrangements by Q and `immh:immb`, as in shifts by a constant: `imm` is the size of an element less the number of
/// fraction bits.
const SIZED: &[Choice<Arrangement>] = &[
    ("4H", "0|001 imm:4", t(Lane::H, Part::Half)),
    ("8H", "1|001 imm:4", t(Lane::H, Part::Whole)),
    ("2S", "0|01 imm:5", t(Lane::S, Part::Half)),
    ("4S", "1|01 imm:5", t(Lane::S, Part::Whole)),
    ("2D", "1|1 imm:6", t(Lane::D, Part::Whole)),
];
/// Single elements by `immh:immb`.
const SIZED_SCALAR: &[Choice<Arrangement>] = &[
    ("H", "001 imm:4", t(Lane::H, Part::Element)),
    ("S", "01 imm:5", t(Lane::S, Part::Element)),
    ("D", "1 imm:6", t(Lane::D, Part::Element)),
];
/// The result of a conversion that only single elements of 64 bits have.
const SCALAR_S: &[Choice<Arrangement>] = &[("S", "", t(Lane::S, Part::Element))];
/// How numbers are rounded, by `a` and the operation code.
const ROUNDING: &[Choice<RoundingMode>] = &[
    ("N", "0|11010", RoundingMode::TieEven),
    ("P", "1|11010", RoundingMode::Up),
    ("M", "0|11011", RoundingMode::Down),
    ("Z", "1|11011", RoundingMode::Zero),
    ("A", "0|11100", RoundingMode::TieAway),
];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD two-register miscellaneous" for (mode in ROUNDING, sign in SIGN, t in FLOATS_MISC):
        "FCVT{mode}{sign}_{t}" "0 {t} {sign} 01110 {mode} {t} {mode} 10 Rn:5 Rd:5" => to_integer(t, sign, mode);
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (mode in ROUNDING, sign in SIGN, t in FLOAT_MISC_SCALAR):
        "FCVT{mode}{sign}_{t}" "01 {sign} 11110 {mode} {t} {mode} 10 Rn:5 Rd:5" => to_integer(t, sign, mode);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (sign in SIGN, t in FLOATS_MISC):
        "{sign}CVTF_{t}" "0 {t} {sign} 01110 0 {t} 11101 10 Rn:5 Rd:5" => from_integer(t, sign);
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (sign in SIGN, t in FLOAT_MISC_SCALAR):
        "{sign}CVTF_{t}" "01 {sign} 11110 0 {t} 11101 10 Rn:5 Rd:5" => from_integer(t, sign);
    },
    rows! { "Advanced SIMD shift by immediate" for (sign in SIGN, t in SIZED):
        "{sign}CVTF_fixed_{t}"  "0 {t} {sign} 011110 {t} 11100 1 Rn:5 Rd:5" => from_fixed(t, sign);
        "FCVTZ{sign}_fixed_{t}" "0 {t} {sign} 011110 {t} 11111 1 Rn:5 Rd:5" => to_fixed(t, sign);
    },
    rows! { "Advanced SIMD scalar shift by immediate" for (sign in SIGN, t in SIZED_SCALAR):
        "{sign}CVTF_fixed_{t}"  "01 {sign} 111110 {t} 11100 1 Rn:5 Rd:5" => from_fixed(t, sign);
        "FCVTZ{sign}_fixed_{t}" "01 {sign} 111110 {t} 11111 1 Rn:5 Rd:5" => to_fixed(t, sign);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (t in FLOATS_NARROW):
        "FCVTN_{t}" "0 {t} 0 01110 0 {t} 10000 10110 10 Rn:5 Rd:5" => narrow(t);
        "FCVTL_{t}" "0 {t} 0 01110 0 {t} 10000 10111 10 Rn:5 Rd:5" => lengthen(t);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (t in WORDS):
        "FCVTXN_{t}" "0 {t} 1 01110 01 10000 10110 10 Rn:5 Rd:5" => narrow_with(t, fp_convert_odd());
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (t in SCALAR_S):
        "FCVTXN_{t}" "01 1 11110 01 10000 10110 10 Rn:5 Rd:5" => narrow_with(t, fp_convert_odd());
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (t in HALFWORDS):
        "BFCVTN_{t}" "0 {t} 0 01110 10 10000 10110 10 Rn:5 Rd:5" => narrow_with(t, fp_convert_bf());
    },
];

fn convert_to<'b>(
    cx: &Context<'b>,
    t: Arrangement,
    sign: Sign,
    mode: RoundingMode,
    fbits: Val<'b>,
) {
    let function = fp_to_fixed(t.lane.format(), t.lane.bits(), sign);
    each(cx, t, function, |fp, n| [n, fbits, fp.rounding(mode)]);
}

fn convert_from<'b>(cx: &Context<'b>, t: Arrangement, sign: Sign, fbits: Val<'b>) {
    let function = fixed_to_fp(t.lane.format(), t.lane.bits(), sign);
    each(cx, t, function, |_, n| [n, fbits]);
}

/// FCVTNS, FCVTNU, FCVTPS and so on.
fn to_integer(cx: &Context<'_>, t: Arrangement, sign: Sign, mode: RoundingMode) {
    convert_to(cx, t, sign, mode, cx.b.u32(0));
}

/// SCVTF, UCVTF.
fn from_integer(cx: &Context<'_>, t: Arrangement, sign: Sign) {
    convert_from(cx, t, sign, cx.b.u32(0));
}

/// The number of fraction bits.
fn fbits<'b>(cx: &Context<'b>, lane: Lane) -> Val<'b> {
    cx.b.u32(lane.bits()) - cx.field("imm")
}

/// FCVTZS, FCVTZU (fixed-point).
fn to_fixed(cx: &Context<'_>, t: Arrangement, sign: Sign) {
    convert_to(cx, t, sign, RoundingMode::Zero, fbits(cx, t.lane));
}

/// SCVTF, UCVTF (fixed-point).
fn from_fixed(cx: &Context<'_>, t: Arrangement, sign: Sign) {
    convert_from(cx, t, sign, fbits(cx, t.lane));
}

/// FCVTN, FCVTN2.
fn narrow(cx: &Context<'_>, t: Arrangement) {
    narrow_with(cx, t, fp_convert(t.lane.doubled().format(), t.lane.format()));
}

/// FCVTN, FCVTXN, BFCVTN and their upper forms.
fn narrow_with(cx: &Context<'_>, t: Arrangement, function: &'static Function) {
    let n = long_elements(cx, t, Sign::Unsigned);
    let elements = cx.floating(|fp| fp.call_each(function, n.into_iter().map(|n| [n])));
    set_narrowed(cx, t, &elements);
}

/// FCVTL, FCVTL2.
fn lengthen(cx: &Context<'_>, t: Arrangement) {
    let n = cx.vector_of("Rn").half_elements(t, Sign::Unsigned);
    let to = t.lane.doubled();
    let function = fp_convert(t.lane.format(), to.format());
    let elements = cx.floating(|fp| fp.call_each(function, n.into_iter().map(|n| [n])));
    cx.set_elements(Arrangement { lane: to, part: Part::Whole }, &elements);
}
