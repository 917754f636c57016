//! Each element of a vector with one element of another.

use kvrm_ir::Val;

use super::arrangement::{Arrangement, Lane, Part};
use super::copy::repeated;
use super::elements::{Rounding, accumulate_high, multiply_high};
use super::three_different::{accumulate, accumulate_doubled, long_vector};
use super::three_same::SIGN;
use super::two_misc::extended;
use super::vector::Vector;
use crate::Sign;
use crate::context::Context;
use crate::data_register::AddSub::{self, Add, Sub};
use crate::row::{Choice, Row, rows};

const fn t(lane: Lane, part: Part) -> Arrangement {
    Arrangement { lane, part }
}

/// Arrangements by Q, then `size`, L and M with the register, then H. Halfwords have an index of three bits and sixteen
/// registers to be in.
const INDEXED: &[Choice<Arrangement>] = &[
    ("4H", "0|01 L:1 M:1 Rm:4|H:1", t(Lane::H, Part::Half)),
    ("8H", "1|01 L:1 M:1 Rm:4|H:1", t(Lane::H, Part::Whole)),
    ("2S", "0|10 L:1 Rm:5|H:1", t(Lane::S, Part::Half)),
    ("4S", "1|10 L:1 Rm:5|H:1", t(Lane::S, Part::Whole)),
];
/// The same for single elements.
const INDEXED_SCALAR: &[Choice<Arrangement>] = &[
    ("H", "01 L:1 M:1 Rm:4|H:1", t(Lane::H, Part::Element)),
    ("S", "10 L:1 Rm:5|H:1", t(Lane::S, Part::Element)),
];
const ACCUMULATE: &[Choice<Option<AddSub>>] =
    &[("MLAL", "0010", Some(Add)), ("MLSL", "0110", Some(Sub)), ("MULL", "1010", None)];
const DOUBLED: &[Choice<Option<AddSub>>] =
    &[("MLAL", "0011", Some(Add)), ("MLSL", "0111", Some(Sub)), ("MULL", "1011", None)];
const HIGH: &[Choice<Rounding>] =
    &[("SQDMULH", "1100", Rounding::Down), ("SQRDMULH", "1101", Rounding::Nearest)];
const HIGH_ACCUMULATE: &[Choice<AddSub>] = &[("SQRDMLAH", "1101", Add), ("SQRDMLSH", "1111", Sub)];
const MLA_MLS: &[Choice<AddSub>] = &[("MLA", "0000", Add), ("MLS", "0100", Sub)];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD vector x indexed element" for (op in MLA_MLS, t in INDEXED):
        "{op}_elem_{t}" "0 {t} 1 01111 {t} {op} {t} 0 Rn:5 Rd:5" => multiply_accumulate(t, op);
    },
    rows! { "Advanced SIMD vector x indexed element" for (t in INDEXED):
        "MUL_elem_{t}" "0 {t} 0 01111 {t} 1000 {t} 0 Rn:5 Rd:5" => multiply(t);
    },
    rows! { "Advanced SIMD vector x indexed element" for (sign in SIGN, op in ACCUMULATE, t in INDEXED):
        "{sign}{op}_elem_{t}" "0 {t} {sign} 01111 {t} {op} {t} 0 Rn:5 Rd:5" => multiply_long(t, sign, op);
    },
    rows! { "Advanced SIMD vector x indexed element" for (op in DOUBLED, t in INDEXED):
        "SQD{op}_elem_{t}" "0 {t} 0 01111 {t} {op} {t} 0 Rn:5 Rd:5" => multiply_doubled(t, op);
    },
    rows! { "Advanced SIMD scalar x indexed element" for (op in DOUBLED, t in INDEXED_SCALAR):
        "SQD{op}_elem_{t}" "01 0 11111 {t} {op} {t} 0 Rn:5 Rd:5" => multiply_doubled(t, op);
    },
    rows! { "Advanced SIMD vector x indexed element" for (op in HIGH, t in INDEXED):
        "{op}_elem_{t}" "0 {t} 0 01111 {t} {op} {t} 0 Rn:5 Rd:5" => high_products(t, op);
    },
    rows! { "Advanced SIMD scalar x indexed element" for (op in HIGH, t in INDEXED_SCALAR):
        "{op}_elem_{t}" "01 0 11111 {t} {op} {t} 0 Rn:5 Rd:5" => high_products(t, op);
    },
    rows! { "Advanced SIMD vector x indexed element" for (op in HIGH_ACCUMULATE, t in INDEXED):
        "{op}_elem_{t}" "0 {t} 1 01111 {t} {op} {t} 0 Rn:5 Rd:5" => accumulate_high_products(t, op);
    },
    rows! { "Advanced SIMD scalar x indexed element" for (op in HIGH_ACCUMULATE, t in INDEXED_SCALAR):
        "{op}_elem_{t}" "01 1 11111 {t} {op} {t} 0 Rn:5 Rd:5" => accumulate_high_products(t, op);
    },
];

/// The element that the others are multiplied with.
pub(super) fn multiplier<'b>(cx: &Context<'b>, lane: Lane, sign: Sign) -> Val<'b> {
    let bits: &[&str] = match lane {
        Lane::B | Lane::H => &["H", "L", "M"],
        Lane::S => &["H", "L"],
        Lane::D => &["H"],
    };
    let index = bits.iter().map(|bit| cx.field(bit)).reduce(|index, bit| (index << 1) | bit);
    cx.element_at("Rm", lane, index.expect("an index has bits"), sign)
}

fn products<'b>(cx: &Context<'b>, t: Arrangement) -> Vector<'b> {
    cx.vector_of("Rn").mul(t, repeated(cx, t, multiplier(cx, t.lane, Sign::Unsigned)))
}

fn multiply(cx: &Context<'_>, t: Arrangement) {
    cx.set_result(t, products(cx, t));
}

/// MLA, MLS.
fn multiply_accumulate(cx: &Context<'_>, t: Arrangement, op: AddSub) {
    let (d, products) = (cx.vector_of("Rd"), products(cx, t));
    let sum = match op {
        Add => d.add(t.lane, products),
        Sub => d.sub(t.lane, products),
    };
    cx.set_result(t, sum);
}

fn long_products<'b>(cx: &Context<'b>, t: Arrangement, sign: Sign) -> Vec<Val<'b>> {
    let to = t.lane.doubled();
    let m = extended(to, sign, multiplier(cx, t.lane, sign));
    let n = cx.vector_of("Rn").half_elements(t, sign);
    n.into_iter().map(|n| extended(to, sign, n) * m).collect()
}

/// SMULL, UMULL, SMLAL, UMLAL, SMLSL, UMLSL.
fn multiply_long(cx: &Context<'_>, t: Arrangement, sign: Sign, op: Option<AddSub>) {
    let to = Arrangement { lane: t.lane.doubled(), part: Part::Whole };
    let m = repeated(cx, to, extended(to.lane, sign, multiplier(cx, t.lane, sign)));
    accumulate(cx, t, long_vector(cx, t, sign, "Rn").mul(to, m), op);
}

/// SQDMULL, SQDMLAL, SQDMLSL.
fn multiply_doubled(cx: &Context<'_>, t: Arrangement, op: Option<AddSub>) {
    accumulate_doubled(cx, t, &long_products(cx, t, Sign::Signed), op);
}

/// SQDMULH, SQRDMULH.
fn high_products(cx: &Context<'_>, t: Arrangement, rounding: Rounding) {
    let m = multiplier(cx, t.lane, Sign::Signed);
    let n = cx.vector_of("Rn").elements(t, Sign::Signed);
    let results = n.into_iter().map(|n| multiply_high(t.lane, rounding, n, m));
    let (elements, saturation): (Vec<_>, Vec<_>) = results.unzip();
    cx.set_elements(t, &elements);
    cx.set_saturation(saturation);
}

/// SQRDMLAH, SQRDMLSH.
fn accumulate_high_products(cx: &Context<'_>, t: Arrangement, op: AddSub) {
    let m = multiplier(cx, t.lane, Sign::Signed);
    let [d, n] = ["Rd", "Rn"].map(|field| cx.vector_of(field).elements(t, Sign::Signed));
    let results = d.into_iter().zip(n).map(|(d, n)| accumulate_high(t.lane, op, d, n, m));
    let (elements, saturation): (Vec<_>, Vec<_>) = results.unzip();
    cx.set_elements(t, &elements);
    cx.set_saturation(saturation);
}
