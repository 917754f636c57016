//! Extremes over all numbers of a register, and functions of the first two.

use super::across::{combined, set_element};
use super::arrangement::{Arrangement, Lane, Part};
use super::float_three_same::numbers;
use crate::Sign;
use crate::context::Context;
use crate::float::{fp_add, fp_max, fp_max_num, fp_min, fp_min_num};
use crate::fp::ByFormat;
use crate::row::{Choice, Row, rows};

/// Registers of four numbers or more, by Q and U.
const ACROSS: &[Choice<Arrangement>] = &[
    ("4H", "0|0", Arrangement { lane: Lane::H, part: Part::Half }),
    ("8H", "1|0", Arrangement { lane: Lane::H, part: Part::Whole }),
    ("4S", "1|1", Arrangement { lane: Lane::S, part: Part::Whole }),
];
/// Pairs, by U and `sz`.
const PAIR: &[Choice<Lane>] =
    &[("H", "0|0", Lane::H), ("S", "1|0", Lane::S), ("D", "1|1", Lane::D)];
/// By `a` and the operation code.
const EXTREMES: &[Choice<ByFormat>] = &[
    ("FMAXNM", "0|01100", fp_max_num),
    ("FMINNM", "1|01100", fp_min_num),
    ("FMAX", "0|01111", fp_max),
    ("FMIN", "1|01111", fp_min),
];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD across lanes" for (op in EXTREMES, t in ACROSS):
        "{op}V_{t}" "0 {t} {t} 01110 {op} 0 11000 {op} 10 Rn:5 Rd:5" => across(t, op);
    },
    rows! { "Advanced SIMD scalar pairwise" for (op in EXTREMES, t in PAIR):
        "{op}P_{t}" "01 {t} 11110 {op} {t} 11000 {op} 10 Rn:5 Rd:5" => of_pair(t, op);
    },
    rows! { "Advanced SIMD scalar pairwise" for (t in PAIR):
        "FADDP_{t}" "01 {t} 11110 0 {t} 11000 01101 10 Rn:5 Rd:5" => of_pair(t, fp_add);
    },
];

/// FMAXV, FMINV, FMAXNMV, FMINNMV.
fn across(cx: &Context<'_>, t: Arrangement, function: ByFormat) {
    let elements = numbers(cx, t, "Rn");
    let function = function(t.lane.format());
    let result = cx.floating(|fp| combined(&elements, &|a, b| fp.call(function, &[a, b])));
    set_element(cx, t.lane, result);
}

/// FADDP, FMAXP, FMINP, FMAXNMP, FMINNMP of the first two elements.
fn of_pair(cx: &Context<'_>, lane: Lane, function: ByFormat) {
    let n = cx.vector_of("Rn");
    let pair = [0, 1].map(|i| n.element(lane, i, Sign::Unsigned));
    set_element(cx, lane, cx.fp_call(function(lane.format()), &pair));
}
