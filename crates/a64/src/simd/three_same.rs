//! Three registers of the same arrangement: two operands and the result.

use kvrm_ir::{Type, Val};

use super::arrangement::{ALL, Arrangement, BHS, BYTES, HS, SCALAR, SCALAR_D, SCALAR_HS};
use super::elements::{
    Rounding, Saturation, accumulate_high, halving_add, halving_sub, multiply_high,
    polynomial_multiply, saturating_add, saturating_sub, shift_by_register,
};
use super::vector::Vector;
use crate::Sign;
use crate::context::Context;
use crate::data_register::AddSub::{self, Add, Sub};
use crate::row::{Choice, Row, rows};

/// Signed and unsigned, in the order of Advanced SIMD.
pub(crate) const SIGN: &[Choice<Sign>] = &[("S", "0", Sign::Signed), ("U", "1", Sign::Unsigned)];
/// Maximum and minimum.
const MAX_MIN: &[Choice<Extreme>] = &[("MAX", "0", Extreme::Max), ("MIN", "1", Extreme::Min)];
/// Rounding, by a bit.
const ROUNDING: &[Choice<Rounding>] = &[("", "0", Rounding::Down), ("R", "1", Rounding::Nearest)];
/// Saturation, by a bit.
const SATURATION: &[Choice<Saturation>] =
    &[("", "0", Saturation::Wraps), ("Q", "1", Saturation::Saturates)];
/// Addition and subtraction, by a bit.
const ADD_SUB: &[Choice<AddSub>] = &[("ADD", "0", Add), ("SUB", "1", Sub)];
const MLA_MLS: &[Choice<AddSub>] = &[("MLA", "0", Add), ("MLS", "1", Sub)];
/// Sums and differences with high products, by a bit.
const HIGH: &[Choice<AddSub>] = &[("SQRDMLAH", "0", Add), ("SQRDMLSH", "1", Sub)];
const LOGIC: &[Choice<Logic>] = &[
    ("AND", "0|00", Logic::And),
    ("BIC", "0|01", Logic::AndNot),
    ("ORR", "0|10", Logic::Or),
    ("ORN", "0|11", Logic::OrNot),
    ("EOR", "1|00", Logic::Xor),
    ("BSL", "1|01", Logic::SelectByTarget),
    ("BIT", "1|10", Logic::InsertIfTrue),
    ("BIF", "1|11", Logic::InsertIfFalse),
];
/// Comparisons, by U and part of the operation code.
const COMPARE: &[Choice<Comparison>] = &[
    ("GT", "0|00110", Comparison::Greater(Sign::Signed)),
    ("GE", "0|00111", Comparison::GreaterOrEqual(Sign::Signed)),
    ("HI", "1|00110", Comparison::Greater(Sign::Unsigned)),
    ("HS", "1|00111", Comparison::GreaterOrEqual(Sign::Unsigned)),
    ("TST", "0|10001", Comparison::Test),
    ("EQ", "1|10001", Comparison::Equal),
];

/// The larger or the smaller of two.
#[derive(Clone, Copy)]
enum Extreme {
    Max,
    Min,
}

/// Operations on bits.
#[derive(Clone, Copy)]
enum Logic {
    And,
    AndNot,
    Or,
    OrNot,
    Xor,
    /// Bits of the target choose between the operands.
    SelectByTarget,
    /// Bits of the second operand choose the first, or the target.
    InsertIfTrue,
    /// The other way round.
    InsertIfFalse,
}

/// What a comparison asks.
#[derive(Clone, Copy)]
enum Comparison {
    Greater(Sign),
    GreaterOrEqual(Sign),
    /// Whether the operands have a bit in common.
    Test,
    Equal,
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD three same" for (sign in SIGN, t in BHS):
        "{sign}HADD_{t}"  "0 {t} {sign} 01110 {t} 1 Rm:5 00000 1 Rn:5 Rd:5" => halve(t, sign, Add, Rounding::Down);
        "{sign}RHADD_{t}" "0 {t} {sign} 01110 {t} 1 Rm:5 00010 1 Rn:5 Rd:5" => halve(t, sign, Add, Rounding::Nearest);
        "{sign}HSUB_{t}"  "0 {t} {sign} 01110 {t} 1 Rm:5 00100 1 Rn:5 Rd:5" => halve(t, sign, Sub, Rounding::Down);
        "{sign}ABD_{t}"   "0 {t} {sign} 01110 {t} 1 Rm:5 01110 1 Rn:5 Rd:5" => difference(t, sign);
        "{sign}ABA_{t}"   "0 {t} {sign} 01110 {t} 1 Rm:5 01111 1 Rn:5 Rd:5" => accumulate_difference(t, sign);
    },
    rows! { "Advanced SIMD three same" for (sign in SIGN, t in ALL):
        "{sign}QADD_{t}" "0 {t} {sign} 01110 {t} 1 Rm:5 00001 1 Rn:5 Rd:5" => saturate(t, sign, Add);
        "{sign}QSUB_{t}" "0 {t} {sign} 01110 {t} 1 Rm:5 00101 1 Rn:5 Rd:5" => saturate(t, sign, Sub);
    },
    rows! { "Advanced SIMD scalar three same" for (sign in SIGN, t in SCALAR):
        "{sign}QADD_{t}" "01 {sign} 11110 {t} 1 Rm:5 00001 1 Rn:5 Rd:5" => saturate(t, sign, Add);
        "{sign}QSUB_{t}" "01 {sign} 11110 {t} 1 Rm:5 00101 1 Rn:5 Rd:5" => saturate(t, sign, Sub);
    },
    rows! { "Advanced SIMD three same" for (op in COMPARE, t in ALL):
        "CM{op}_{t}" "0 {t} {op} 01110 {t} 1 Rm:5 {op} 1 Rn:5 Rd:5" => compare(t, op);
    },
    rows! { "Advanced SIMD scalar three same" for (op in COMPARE, t in SCALAR_D):
        "CM{op}_{t}" "01 {op} 11110 {t} 1 Rm:5 {op} 1 Rn:5 Rd:5" => compare(t, op);
    },
    rows! { "Advanced SIMD three same" for (sign in SIGN, saturation in SATURATION, rounding in ROUNDING, t in ALL):
        "{sign}{saturation}{rounding}SHL_{t}" "0 {t} {sign} 01110 {t} 1 Rm:5 010{rounding}{saturation} 1 Rn:5 Rd:5"
            => shift(t, sign, rounding, saturation);
    },
    rows! { "Advanced SIMD scalar three same" for (sign in SIGN, rounding in ROUNDING, t in SCALAR_D):
        "{sign}{rounding}SHL_{t}" "01 {sign} 11110 {t} 1 Rm:5 010{rounding}0 1 Rn:5 Rd:5"
            => shift(t, sign, rounding, Saturation::Wraps);
    },
    rows! { "Advanced SIMD scalar three same" for (sign in SIGN, rounding in ROUNDING, t in SCALAR):
        "{sign}Q{rounding}SHL_{t}" "01 {sign} 11110 {t} 1 Rm:5 010{rounding}1 1 Rn:5 Rd:5"
            => shift(t, sign, rounding, Saturation::Saturates);
    },
    rows! { "Advanced SIMD three same" for (sign in SIGN, op in MAX_MIN, t in BHS):
        "{sign}{op}_{t}"  "0 {t} {sign} 01110 {t} 1 Rm:5 0110{op} 1 Rn:5 Rd:5" => extreme(t, sign, op);
        "{sign}{op}P_{t}" "0 {t} {sign} 01110 {t} 1 Rm:5 1010{op} 1 Rn:5 Rd:5" => extreme_of_pairs(t, sign, op);
    },
    rows! { "Advanced SIMD three same" for (op in ADD_SUB, t in ALL):
        "{op}_{t}" "0 {t} {op} 01110 {t} 1 Rm:5 10000 1 Rn:5 Rd:5" => add_sub(t, op);
    },
    rows! { "Advanced SIMD scalar three same" for (op in ADD_SUB, t in SCALAR_D):
        "{op}_{t}" "01 {op} 11110 {t} 1 Rm:5 10000 1 Rn:5 Rd:5" => add_sub(t, op);
    },
    rows! { "Advanced SIMD three same" for (op in MLA_MLS, t in BHS):
        "{op}_{t}" "0 {t} {op} 01110 {t} 1 Rm:5 10010 1 Rn:5 Rd:5" => multiply_accumulate(t, op);
    },
    rows! { "Advanced SIMD three same" for (t in BHS):
        "MUL_{t}" "0 {t} 0 01110 {t} 1 Rm:5 10011 1 Rn:5 Rd:5" => multiply(t);
    },
    rows! { "Advanced SIMD three same" for (t in BYTES):
        "PMUL_{t}" "0 {t} 1 01110 00 1 Rm:5 10011 1 Rn:5 Rd:5" => polynomial(t);
    },
    rows! { "Advanced SIMD three same" for (t in ALL):
        "ADDP_{t}" "0 {t} 0 01110 {t} 1 Rm:5 10111 1 Rn:5 Rd:5" => add_pairs(t);
    },
    rows! { "Advanced SIMD three same" for (t in HS):
        "SQDMULH_{t}"  "0 {t} 0 01110 {t} 1 Rm:5 10110 1 Rn:5 Rd:5" => high_products(t, Rounding::Down);
        "SQRDMULH_{t}" "0 {t} 1 01110 {t} 1 Rm:5 10110 1 Rn:5 Rd:5" => high_products(t, Rounding::Nearest);
    },
    rows! { "Advanced SIMD scalar three same" for (t in SCALAR_HS):
        "SQDMULH_{t}"  "01 0 11110 {t} 1 Rm:5 10110 1 Rn:5 Rd:5" => high_products(t, Rounding::Down);
        "SQRDMULH_{t}" "01 1 11110 {t} 1 Rm:5 10110 1 Rn:5 Rd:5" => high_products(t, Rounding::Nearest);
    },
    rows! { "Advanced SIMD three same extra" for (op in HIGH, t in HS):
        "{op}_{t}" "0 {t} 1 01110 {t} 0 Rm:5 1 000{op} 1 Rn:5 Rd:5" => accumulate_high_products(t, op);
    },
    rows! { "Advanced SIMD scalar three same extra" for (op in HIGH, t in SCALAR_HS):
        "{op}_{t}" "01 1 11110 {t} 0 Rm:5 1 000{op} 1 Rn:5 Rd:5" => accumulate_high_products(t, op);
    },
    rows! { "Advanced SIMD three same" for (op in LOGIC, t in BYTES):
        "{op}_{t}" "0 {t} {op} 01110 {op} 1 Rm:5 00011 1 Rn:5 Rd:5" => logic(t, op);
    },
];

/// The same operation on each pair of elements at the same place.
fn each<'b>(
    cx: &Context<'b>,
    t: Arrangement,
    sign: Sign,
    f: impl Fn(Val<'b>, Val<'b>) -> Val<'b>,
) -> Vec<Val<'b>> {
    let [n, m] = ["Rn", "Rm"].map(|field| cx.vector_of(field).elements(t, sign));
    n.into_iter().zip(m).map(|(n, m)| f(n, m)).collect()
}

/// The same for operations that may saturate.
fn each_saturating<'b>(
    cx: &Context<'b>,
    t: Arrangement,
    sign: Sign,
    f: impl Fn(Val<'b>, Val<'b>) -> (Val<'b>, Val<'b>),
) {
    let [n, m] = ["Rn", "Rm"].map(|field| cx.vector_of(field).elements(t, sign));
    let results = n.into_iter().zip(m).map(|(n, m)| f(n, m));
    let (elements, saturated): (Vec<_>, Vec<_>) = results.unzip();
    cx.set_elements(t, &elements);
    cx.set_saturation(saturated);
}

/// The first and the second of each two elements that are side by side: those of the first operand, then of the second.
pub(super) fn paired<'b>(cx: &Context<'b>, t: Arrangement) -> [Vector<'b>; 2] {
    let (n, m) = (cx.vector_of("Rn"), cx.vector_of("Rm"));
    [0, 1].map(|which| n.permuted(t, m, |i| 2 * i + which))
}

fn add_sub(cx: &Context<'_>, t: Arrangement, op: AddSub) {
    let (n, m) = (cx.vector_of("Rn"), cx.vector_of("Rm"));
    let sum = match op {
        Add => n.add(t.lane, m),
        Sub => n.sub(t.lane, m),
    };
    cx.set_result(t, sum);
}

/// SHADD, UHADD, SRHADD, URHADD, SHSUB, UHSUB.
fn halve(cx: &Context<'_>, t: Arrangement, sign: Sign, op: AddSub, rounding: Rounding) {
    let elements = each(cx, t, sign, |n, m| match op {
        Add => halving_add(sign, rounding, n, m),
        Sub => halving_sub(sign, n, m),
    });
    cx.set_elements(t, &elements);
}

/// Differences of the larger and the lesser elements.
pub(super) fn absolute_differences<'b>(
    t: Arrangement,
    sign: Sign,
    n: Vector<'b>,
    m: Vector<'b>,
) -> Vector<'b> {
    n.max(t, sign, m).sub(t.lane, n.min(t, sign, m))
}

/// SABD, UABD.
fn difference(cx: &Context<'_>, t: Arrangement, sign: Sign) {
    let (n, m) = (cx.vector_of("Rn"), cx.vector_of("Rm"));
    cx.set_result(t, absolute_differences(t, sign, n, m));
}

/// SABA, UABA.
fn accumulate_difference(cx: &Context<'_>, t: Arrangement, sign: Sign) {
    let (n, m) = (cx.vector_of("Rn"), cx.vector_of("Rm"));
    let differences = absolute_differences(t, sign, n, m);
    cx.set_result(t, cx.vector_of("Rd").add(t.lane, differences));
}

/// SQADD, UQADD, SQSUB, UQSUB.
fn saturate(cx: &Context<'_>, t: Arrangement, sign: Sign, op: AddSub) {
    each_saturating(cx, t, sign, |n, m| match op {
        Add => saturating_add(t.lane, sign, n, m),
        Sub => saturating_sub(t.lane, sign, n, m),
    });
}

/// CMGT, CMGE, CMHI, CMHS, CMTST, CMEQ.
fn compare(cx: &Context<'_>, t: Arrangement, comparison: Comparison) {
    let (n, m) = (cx.vector_of("Rn"), cx.vector_of("Rm"));
    let holds = match comparison {
        Comparison::Greater(sign) => n.greater(t, sign, m),
        Comparison::GreaterOrEqual(sign) => m.greater(t, sign, n).inverted(),
        Comparison::Test => {
            let zero = Vector::both(cx.b.u64(0));
            n.bits(m, |n, m| n & m).equal(t, zero).inverted()
        }
        Comparison::Equal => n.equal(t, m),
    };
    cx.set_result(t, holds);
}

/// SSHL and its relatives: the shift is in the low byte of an element, to the right if it is negative.
fn shift(cx: &Context<'_>, t: Arrangement, sign: Sign, rounding: Rounding, saturation: Saturation) {
    let n = cx.vector_of("Rn").elements(t, sign);
    let m = cx.vector_of("Rm").elements(t, Sign::Unsigned);
    let results = n.into_iter().zip(m).map(|(n, m)| {
        let amount = m.trunc(Type::U8).sext(Type::U32);
        shift_by_register(t.lane, sign, rounding, saturation, n, amount)
    });
    let (elements, saturated): (Vec<_>, Vec<_>) = results.unzip();
    cx.set_elements(t, &elements);
    if saturation == Saturation::Saturates {
        cx.set_saturation(saturated);
    }
}

fn chosen<'b>(t: Arrangement, sign: Sign, op: Extreme, [n, m]: [Vector<'b>; 2]) -> Vector<'b> {
    match op {
        Extreme::Max => n.max(t, sign, m),
        Extreme::Min => n.min(t, sign, m),
    }
}

/// SMAX, UMAX, SMIN, UMIN.
fn extreme(cx: &Context<'_>, t: Arrangement, sign: Sign, op: Extreme) {
    let operands = ["Rn", "Rm"].map(|field| cx.vector_of(field));
    cx.set_result(t, chosen(t, sign, op, operands));
}

/// SMAXP, UMAXP, SMINP, UMINP.
fn extreme_of_pairs(cx: &Context<'_>, t: Arrangement, sign: Sign, op: Extreme) {
    cx.set_result(t, chosen(t, sign, op, paired(cx, t)));
}

fn add_pairs(cx: &Context<'_>, t: Arrangement) {
    let [n, m] = paired(cx, t);
    cx.set_result(t, n.add(t.lane, m));
}

fn products<'b>(cx: &Context<'b>, t: Arrangement) -> Vector<'b> {
    cx.vector_of("Rn").mul(t, cx.vector_of("Rm"))
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

fn polynomial(cx: &Context<'_>, t: Arrangement) {
    let elements = each(cx, t, Sign::Unsigned, |n, m| polynomial_multiply(t.lane, n, m));
    cx.set_elements(t, &elements);
}

/// SQDMULH, SQRDMULH.
fn high_products(cx: &Context<'_>, t: Arrangement, rounding: Rounding) {
    each_saturating(cx, t, Sign::Signed, |n, m| multiply_high(t.lane, rounding, n, m));
}

/// SQRDMLAH, SQRDMLSH.
fn accumulate_high_products(cx: &Context<'_>, t: Arrangement, op: AddSub) {
    let [d, n, m] = ["Rd", "Rn", "Rm"].map(|field| cx.vector_of(field).elements(t, Sign::Signed));
    let results = (0..t.count()).map(|i| accumulate_high(t.lane, op, d[i], n[i], m[i]));
    let (elements, saturation): (Vec<_>, Vec<_>) = results.unzip();
    cx.set_elements(t, &elements);
    cx.set_saturation(saturation);
}

fn logic(cx: &Context<'_>, t: Arrangement, op: Logic) {
    let [d, n, m] = ["Rd", "Rn", "Rm"].map(|field| cx.vector_of(field));
    let result = match op {
        Logic::And => n.bits(m, |n, m| n & m),
        Logic::AndNot => n.bits(m, |n, m| n & !m),
        Logic::Or => n.bits(m, |n, m| n | m),
        Logic::OrNot => n.bits(m, |n, m| n | !m),
        Logic::Xor => n.bits(m, |n, m| n ^ m),
        Logic::SelectByTarget => d.choose(n, m),
        Logic::InsertIfTrue => m.choose(n, d),
        Logic::InsertIfFalse => m.choose(d, n),
    };
    cx.set_result(t, result);
}
