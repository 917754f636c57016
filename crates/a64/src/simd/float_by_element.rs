//! Each number of a vector with one number of another.

use super::arrangement::{Arrangement, Lane, Part};
use super::by_element::multiplier;
use super::float_three_same::{fused, numbers};
use crate::Sign;
use crate::context::Context;
use crate::data_register::AddSub::{self, Add, Sub};
use crate::float::{fp_mul, fp_mul_x};
use crate::fp::ByFormat;
use crate::row::{Choice, Row, rows};

const fn t(lane: Lane, part: Part) -> Arrangement {
    Arrangement { lane, part }
}

/// Arrangements by Q, then `size`, L and M with the register, then H.
const INDEXED: &[Choice<Arrangement>] = &[
    ("4H", "0|00 L:1 M:1 Rm:4|H:1", t(Lane::H, Part::Half)),
    ("8H", "1|00 L:1 M:1 Rm:4|H:1", t(Lane::H, Part::Whole)),
    ("2S", "0|10 L:1 Rm:5|H:1", t(Lane::S, Part::Half)),
    ("4S", "1|10 L:1 Rm:5|H:1", t(Lane::S, Part::Whole)),
    ("2D", "1|11 0 Rm:5|H:1", t(Lane::D, Part::Whole)),
];
/// The same for single numbers.
const INDEXED_SCALAR: &[Choice<Arrangement>] = &[
    ("H", "00 L:1 M:1 Rm:4|H:1", t(Lane::H, Part::Element)),
    ("S", "10 L:1 Rm:5|H:1", t(Lane::S, Part::Element)),
    ("D", "11 0 Rm:5|H:1", t(Lane::D, Part::Element)),
];
const MLA_MLS: &[Choice<AddSub>] = &[("FMLA", "0001", Add), ("FMLS", "0101", Sub)];
/// By U.
const MULTIPLY: &[Choice<ByFormat>] = &[("FMUL", "0", fp_mul), ("FMULX", "1", fp_mul_x)];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD vector x indexed element" for (op in MLA_MLS, t in INDEXED):
        "{op}_elem_{t}" "0 {t} 0 01111 {t} {op} {t} 0 Rn:5 Rd:5" => multiply_accumulate(t, op);
    },
    rows! { "Advanced SIMD scalar x indexed element" for (op in MLA_MLS, t in INDEXED_SCALAR):
        "{op}_elem_{t}" "01 0 11111 {t} {op} {t} 0 Rn:5 Rd:5" => multiply_accumulate(t, op);
    },
    rows! { "Advanced SIMD vector x indexed element" for (op in MULTIPLY, t in INDEXED):
        "{op}_elem_{t}" "0 {t} {op} 01111 {t} 1001 {t} 0 Rn:5 Rd:5" => multiply(t, op);
    },
    rows! { "Advanced SIMD scalar x indexed element" for (op in MULTIPLY, t in INDEXED_SCALAR):
        "{op}_elem_{t}" "01 {op} 11111 {t} 1001 {t} 0 Rn:5 Rd:5" => multiply(t, op);
    },
];

/// FMLA, FMLS.
fn multiply_accumulate(cx: &Context<'_>, t: Arrangement, op: AddSub) {
    let m = multiplier(cx, t.lane, Sign::Unsigned);
    let [d, n] = ["Rd", "Rn"].map(|field| numbers(cx, t, field));
    let operands = d.into_iter().zip(n).map(|(d, n)| [d, n, m]);
    let elements = cx.floating(|fp| fused(fp, t.lane, op, operands));
    cx.set_elements(t, &elements);
}

/// FMUL, FMULX.
fn multiply(cx: &Context<'_>, t: Arrangement, function: ByFormat) {
    let m = multiplier(cx, t.lane, Sign::Unsigned);
    let pairs = numbers(cx, t, "Rn").into_iter().map(|n| [n, m]);
    let elements = cx.floating(|fp| fp.call_each(function(t.lane.format()), pairs));
    cx.set_elements(t, &elements);
}
