//! Sums and extremes over all elements of a register.

use kvrm_ir::Val;

use super::arrangement::{ACROSS, Arrangement, Lane, Part};
use super::elements::{max, min};
use super::three_same::SIGN;
use super::two_misc::extended;
use crate::Sign;
use crate::context::Context;
use crate::row::{Row, rows};

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD across lanes" for (sign in SIGN, t in ACROSS):
        "{sign}ADDLV_{t}" "0 {t} {sign} 01110 {t} 11000 00011 10 Rn:5 Rd:5" => add_long(t, sign);
        "{sign}MAXV_{t}"  "0 {t} {sign} 01110 {t} 11000 01010 10 Rn:5 Rd:5" => extreme(t, sign, max);
        "{sign}MINV_{t}"  "0 {t} {sign} 01110 {t} 11000 11010 10 Rn:5 Rd:5" => extreme(t, sign, min);
    },
    rows! { "Advanced SIMD across lanes" for (t in ACROSS):
        "ADDV_{t}" "0 {t} 0 01110 {t} 11000 11011 10 Rn:5 Rd:5" => add(t);
    },
    rows! { "Advanced SIMD scalar pairwise":
        "ADDP_D" "01 0 11110 11 11000 11011 10 Rn:5 Rd:5" => add_pair();
    },
];

/// One operation on elements.
type Combine = for<'b> fn(Sign, Val<'b>, Val<'b>) -> Val<'b>;

/// Combines all elements, those side by side first.
pub(super) fn combined<'b>(
    elements: &[Val<'b>],
    f: &impl Fn(Val<'b>, Val<'b>) -> Val<'b>,
) -> Val<'b> {
    match elements {
        [one] => *one,
        _ => {
            let pairs: Vec<_> = elements.chunks(2).map(|pair| f(pair[0], pair[1])).collect();
            combined(&pairs, f)
        }
    }
}

/// Sets the result to one element.
pub(super) fn set_element<'b>(cx: &Context<'b>, lane: Lane, element: Val<'b>) {
    cx.set_elements(Arrangement { lane, part: Part::Element }, &[element]);
}

fn add(cx: &Context<'_>, t: Arrangement) {
    let elements = cx.vector_of("Rn").elements(t, Sign::Unsigned);
    set_element(cx, t.lane, combined(&elements, &|a, b| a + b));
}

/// SADDLV, UADDLV.
fn add_long(cx: &Context<'_>, t: Arrangement, sign: Sign) {
    let elements = cx.vector_of("Rn").elements(t, sign);
    let to = t.lane.doubled();
    let elements: Vec<_> = elements.into_iter().map(|n| extended(to, sign, n)).collect();
    set_element(cx, to, combined(&elements, &|a, b| a + b));
}

/// SMAXV, UMAXV, SMINV, UMINV.
fn extreme(cx: &Context<'_>, t: Arrangement, sign: Sign, f: Combine) {
    let elements = cx.vector_of("Rn").elements(t, sign);
    set_element(cx, t.lane, combined(&elements, &|a, b| f(sign, a, b)));
}

fn add_pair(cx: &Context<'_>) {
    let [low, high] = cx.vector_of("Rn").0;
    set_element(cx, Lane::D, low + high);
}
