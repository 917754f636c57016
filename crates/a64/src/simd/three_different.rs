//! Operands and results of different sizes: long, wide and narrow arithmetic.

use kvrm_ir::Val;

use super::arrangement::{Arrangement, Lane, NARROW, NARROW_HS, Part, SCALAR_HS};
use super::elements::{Rounding, polynomial_multiply, saturating_add, saturating_sub};
use super::three_same::{SIGN, absolute_differences};
use super::two_misc::{extended, set_narrow_vector};
use super::vector::Vector;
use crate::Sign;
use crate::context::Context;
use crate::data_register::AddSub::{self, Add, Sub};
use crate::row::{Choice, Row, rows};

const ADD_SUB: &[Choice<AddSub>] = &[("ADD", "0", Add), ("SUB", "1", Sub)];
/// What a product is added to or subtracted from, by the operation code.
const ACCUMULATE: &[Choice<Option<AddSub>>] =
    &[("MLAL", "1000", Some(Add)), ("MLSL", "1010", Some(Sub)), ("MULL", "1100", None)];
/// The same for doubled products.
const DOUBLED: &[Choice<Option<AddSub>>] =
    &[("MLAL", "1001", Some(Add)), ("MLSL", "1011", Some(Sub)), ("MULL", "1101", None)];
/// By U.
const ROUNDING: &[Choice<Rounding>] = &[("", "0", Rounding::Down), ("R", "1", Rounding::Nearest)];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD three different" for (sign in SIGN, op in ADD_SUB, t in NARROW):
        "{sign}{op}L_{t}" "0 {t} {sign} 01110 {t} 1 Rm:5 00{op}0 00 Rn:5 Rd:5" => add_sub_long(t, sign, op);
        "{sign}{op}W_{t}" "0 {t} {sign} 01110 {t} 1 Rm:5 00{op}1 00 Rn:5 Rd:5" => add_sub_wide(t, sign, op);
    },
    rows! { "Advanced SIMD three different" for (rounding in ROUNDING, op in ADD_SUB, t in NARROW):
        "{rounding}{op}HN_{t}" "0 {t} {rounding} 01110 {t} 1 Rm:5 01{op}0 00 Rn:5 Rd:5"
            => high_narrow(t, rounding, op);
    },
    rows! { "Advanced SIMD three different" for (sign in SIGN, t in NARROW):
        "{sign}ABAL_{t}" "0 {t} {sign} 01110 {t} 1 Rm:5 0101 00 Rn:5 Rd:5" => difference_long(t, sign, true);
        "{sign}ABDL_{t}" "0 {t} {sign} 01110 {t} 1 Rm:5 0111 00 Rn:5 Rd:5" => difference_long(t, sign, false);
    },
    rows! { "Advanced SIMD three different" for (sign in SIGN, op in ACCUMULATE, t in NARROW):
        "{sign}{op}_{t}" "0 {t} {sign} 01110 {t} 1 Rm:5 {op} 00 Rn:5 Rd:5" => multiply_long(t, sign, op);
    },
    rows! { "Advanced SIMD three different" for (op in DOUBLED, t in NARROW_HS):
        "SQD{op}_{t}" "0 {t} 0 01110 {t} 1 Rm:5 {op} 00 Rn:5 Rd:5" => multiply_doubled(t, op);
    },
    rows! { "Advanced SIMD scalar three different" for (op in DOUBLED, t in SCALAR_HS):
        "SQD{op}_{t}" "01 0 11110 {t} 1 Rm:5 {op} 00 Rn:5 Rd:5" => multiply_doubled(t, op);
    },
    rows! { "Advanced SIMD three different":
        "PMULL_8B"  "0 0 0 01110 00 1 Rm:5 1110 00 Rn:5 Rd:5" => polynomial_long(Part::Half);
        "PMULL_16B" "0 1 0 01110 00 1 Rm:5 1110 00 Rn:5 Rd:5" => polynomial_long(Part::Whole);
        "PMULL_1D"  "0 0 0 01110 11 1 Rm:5 1110 00 Rn:5 Rd:5" => polynomial_doublewords(0);
        "PMULL_2D"  "0 1 0 01110 11 1 Rm:5 1110 00 Rn:5 Rd:5" => polynomial_doublewords(1);
    },
];

/// The result's arrangement: twice the size; one element, or a whole register.
fn long(t: Arrangement) -> Arrangement {
    let part = if t.part == Part::Element { Part::Element } else { Part::Whole };
    Arrangement { lane: t.lane.doubled(), part }
}

/// The elements of the half that the arrangement means, each extended to twice the size.
fn long_operand<'b>(cx: &Context<'b>, t: Arrangement, sign: Sign, field: &str) -> Vec<Val<'b>> {
    let elements = cx.vector_of(field).half_elements(t, sign);
    elements.into_iter().map(|n| extended(t.lane.doubled(), sign, n)).collect()
}

fn add_or_sub<'b>(op: AddSub, lane: Lane, a: Vector<'b>, b: Vector<'b>) -> Vector<'b> {
    match op {
        Add => a.add(lane, b),
        Sub => a.sub(lane, b),
    }
}

/// The same as a vector.
pub(super) fn long_vector<'b>(
    cx: &Context<'b>,
    t: Arrangement,
    sign: Sign,
    field: &str,
) -> Vector<'b> {
    cx.vector_of(field).widened(t.lane, sign, t.part == Part::Whole)
}

/// SADDL, UADDL, SSUBL, USUBL.
fn add_sub_long(cx: &Context<'_>, t: Arrangement, sign: Sign, op: AddSub) {
    let [n, m] = ["Rn", "Rm"].map(|field| long_vector(cx, t, sign, field));
    cx.set_result(long(t), add_or_sub(op, t.lane.doubled(), n, m));
}

/// SADDW, UADDW, SSUBW, USUBW.
fn add_sub_wide(cx: &Context<'_>, t: Arrangement, sign: Sign, op: AddSub) {
    let (n, m) = (cx.vector_of("Rn"), long_vector(cx, t, sign, "Rm"));
    cx.set_result(long(t), add_or_sub(op, t.lane.doubled(), n, m));
}

/// ADDHN, RADDHN, SUBHN, RSUBHN: the upper halves of sums or differences.
fn high_narrow<'b>(cx: &Context<'b>, t: Arrangement, rounding: Rounding, op: AddSub) {
    let lane = t.lane.doubled();
    let sum = add_or_sub(op, lane, cx.vector_of("Rn"), cx.vector_of("Rm"));
    let rounded = match rounding {
        Rounding::Down => sum,
        Rounding::Nearest => {
            let half = lane.repeated(1 << (t.lane.bits() - 1));
            sum.add(lane, Vector::both(cx.b.u64(half)))
        }
    };
    let less_one = cx.b.u32(t.lane.bits() - 1);
    set_narrow_vector(cx, t, rounded.shr(long(t), Sign::Unsigned, less_one).narrowed(t.lane));
}

/// SABAL, UABAL, SABDL, UABDL.
fn difference_long(cx: &Context<'_>, t: Arrangement, sign: Sign, accumulate: bool) {
    let [n, m] = ["Rn", "Rm"].map(|field| cx.vector_of(field));
    // Before they are made longer: there are no larger and lesser doublewords to be had.
    let differences = absolute_differences(t, sign, n, m);
    let differences = differences.widened(t.lane, Sign::Unsigned, t.part == Part::Whole);
    let result = match accumulate {
        true => cx.vector_of("Rd").add(t.lane.doubled(), differences),
        false => differences,
    };
    cx.set_result(long(t), result);
}

/// SMULL, UMULL, SMLAL, UMLAL, SMLSL, UMLSL.
fn multiply_long(cx: &Context<'_>, t: Arrangement, sign: Sign, op: Option<AddSub>) {
    let [n, m] = ["Rn", "Rm"].map(|field| long_vector(cx, t, sign, field));
    accumulate(cx, t, n.mul(long(t), m), op);
}

/// Sets the result to long products, or adds or subtracts them.
pub(super) fn accumulate<'b>(
    cx: &Context<'b>,
    t: Arrangement,
    products: Vector<'b>,
    op: Option<AddSub>,
) {
    let lane = t.lane.doubled();
    let result = match op {
        None => products,
        Some(op) => add_or_sub(op, lane, cx.vector_of("Rd"), products),
    };
    cx.set_result(long(t), result);
}

/// SQDMULL, SQDMLAL, SQDMLSL.
fn multiply_doubled(cx: &Context<'_>, t: Arrangement, op: Option<AddSub>) {
    let [n, m] = ["Rn", "Rm"].map(|field| long_operand(cx, t, Sign::Signed, field));
    let products: Vec<_> = n.into_iter().zip(m).map(|(n, m)| n * m).collect();
    accumulate_doubled(cx, t, &products, op);
}

/// Doubles long products, which may saturate, and adds or subtracts them, which may saturate as well.
pub(super) fn accumulate_doubled<'b>(
    cx: &Context<'b>,
    t: Arrangement,
    products: &[Val<'b>],
    op: Option<AddSub>,
) {
    let to = long(t);
    let old = cx.vector_of("Rd").elements(to, Sign::Signed);
    let results = products.iter().zip(old).map(|(product, old)| {
        let (doubled, saturates) = saturating_add(to.lane, Sign::Signed, *product, *product);
        let (result, again) = match op {
            None => return (doubled, saturates),
            Some(Add) => saturating_add(to.lane, Sign::Signed, old, doubled),
            Some(Sub) => saturating_sub(to.lane, Sign::Signed, old, doubled),
        };
        (result, saturates | again)
    });
    let (elements, saturation): (Vec<_>, Vec<_>) = results.unzip();
    cx.set_elements(to, &elements);
    cx.set_saturation(saturation);
}

/// PMULL, PMULL2 of bytes.
fn polynomial_long(cx: &Context<'_>, part: Part) {
    let t = Arrangement { lane: Lane::B, part };
    let [n, m] = ["Rn", "Rm"].map(|field| cx.vector_of(field).half_elements(t, Sign::Unsigned));
    let products: Vec<_> =
        n.into_iter().zip(m).map(|(n, m)| polynomial_multiply(Lane::B, n, m)).collect();
    cx.set_elements(long(t), &products);
}

/// PMULL, PMULL2 of doublewords.
fn polynomial_doublewords(cx: &Context<'_>, half: usize) {
    let [n, m] = ["Rn", "Rm"].map(|field| cx.vector_of(field).0[half]);
    let zero = cx.b.u64(0);
    let term = |i: u32| {
        let ones = -m.bits(i, 1);
        let high = if i == 0 { zero } else { n >> (64 - i) };
        [ones & (n << i), ones & high]
    };
    let sum = (0..64).map(term).reduce(|a, b| [a[0] ^ b[0], a[1] ^ b[1]]);
    cx.set_vector_of("Rd", Vector::of(sum.expect("64 terms")));
}
