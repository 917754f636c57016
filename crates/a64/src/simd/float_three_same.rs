//! Three registers of numbers: two operands and the result.

use kvrm_ir::Val;

use super::arrangement::{Arrangement, FLOAT_SCALAR, FLOATS, Lane};
use super::elements::mask;
use crate::Sign;
use crate::context::Context;
use crate::data_register::AddSub::{self, Add, Sub};
use crate::float::{
    fp_add, fp_compare_eq, fp_compare_ge, fp_compare_gt, fp_div, fp_max, fp_max_num, fp_min,
    fp_min_num, fp_mul, fp_mul_add, fp_mul_x, fp_recip_step_fused, fp_rsqrt_step_fused, fp_sub,
};
use crate::fp::{ByFormat, Unit};
use crate::row::{Choice, Row, rows};

/// Functions of two operands, by U, `a` and the last three bits of the operation code.
const FUNCTIONS: &[Choice<ByFormat>] = &[
    ("FMAXNM", "0|0|000", fp_max_num),
    ("FMINNM", "0|1|000", fp_min_num),
    ("FADD", "0|0|010", fp_add),
    ("FSUB", "0|1|010", fp_sub),
    ("FMUL", "1|0|011", fp_mul),
    ("FMAX", "0|0|110", fp_max),
    ("FMIN", "0|1|110", fp_min),
    ("FDIV", "1|0|111", fp_div),
];
/// Those that single elements have, too.
const FUNCTIONS_ALSO_SCALAR: &[Choice<ByFormat>] = &[
    ("FMULX", "0|0|011", fp_mul_x),
    ("FRECPS", "0|0|111", fp_recip_step_fused),
    ("FRSQRTS", "0|1|111", fp_rsqrt_step_fused),
];
/// Functions of two elements that are side by side.
const PAIRWISE: &[Choice<ByFormat>] = &[
    ("FMAXNMP", "1|0|000", fp_max_num),
    ("FMINNMP", "1|1|000", fp_min_num),
    ("FADDP", "1|0|010", fp_add),
    ("FMAXP", "1|0|110", fp_max),
    ("FMINP", "1|1|110", fp_min),
];
/// Sums and differences with products, by `a`.
const MLA_MLS: &[Choice<AddSub>] = &[("FMLA", "0", Add), ("FMLS", "1", Sub)];
const COMPARE: &[Choice<Comparison>] = &[
    ("FCMEQ", "0|0|100", Comparison { of: Compared::Numbers, relation: fp_compare_eq }),
    ("FCMGE", "1|0|100", Comparison { of: Compared::Numbers, relation: fp_compare_ge }),
    ("FCMGT", "1|1|100", Comparison { of: Compared::Numbers, relation: fp_compare_gt }),
    ("FACGE", "1|0|101", Comparison { of: Compared::Magnitudes, relation: fp_compare_ge }),
    ("FACGT", "1|1|101", Comparison { of: Compared::Magnitudes, relation: fp_compare_gt }),
];

#[derive(Clone, Copy)]
struct Comparison {
    of: Compared,
    relation: ByFormat,
}

/// What is compared.
#[derive(Clone, Copy)]
enum Compared {
    Numbers,
    Magnitudes,
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD three same" for (op in FUNCTIONS, t in FLOATS):
        "{op}_{t}" "0 {t} {op} 01110 {op} {t} Rm:5 {t} {op} 1 Rn:5 Rd:5" => function(t, op);
    },
    rows! { "Advanced SIMD three same" for (op in FUNCTIONS_ALSO_SCALAR, t in FLOATS):
        "{op}_{t}" "0 {t} {op} 01110 {op} {t} Rm:5 {t} {op} 1 Rn:5 Rd:5" => function(t, op);
    },
    rows! { "Advanced SIMD scalar three same" for (op in FUNCTIONS_ALSO_SCALAR, t in FLOAT_SCALAR):
        "{op}_{t}" "01 {op} 11110 {op} {t} Rm:5 {t} {op} 1 Rn:5 Rd:5" => function(t, op);
    },
    rows! { "Advanced SIMD three same" for (op in PAIRWISE, t in FLOATS):
        "{op}_{t}" "0 {t} {op} 01110 {op} {t} Rm:5 {t} {op} 1 Rn:5 Rd:5" => of_pairs(t, op);
    },
    rows! { "Advanced SIMD three same" for (op in MLA_MLS, t in FLOATS):
        "{op}_{t}" "0 {t} 0 01110 {op} {t} Rm:5 {t} 001 1 Rn:5 Rd:5" => multiply_accumulate(t, op);
    },
    rows! { "Advanced SIMD three same" for (t in FLOATS):
        "FABD_{t}" "0 {t} 1 01110 1 {t} Rm:5 {t} 010 1 Rn:5 Rd:5" => difference(t);
    },
    rows! { "Advanced SIMD scalar three same" for (t in FLOAT_SCALAR):
        "FABD_{t}" "01 1 11110 1 {t} Rm:5 {t} 010 1 Rn:5 Rd:5" => difference(t);
    },
    rows! { "Advanced SIMD three same" for (op in COMPARE, t in FLOATS):
        "{op}_{t}" "0 {t} {op} 01110 {op} {t} Rm:5 {t} {op} 1 Rn:5 Rd:5" => compare(t, op);
    },
    rows! { "Advanced SIMD scalar three same" for (op in COMPARE, t in FLOAT_SCALAR):
        "{op}_{t}" "01 {op} 11110 {op} {t} Rm:5 {t} {op} 1 Rn:5 Rd:5" => compare(t, op);
    },
];

/// The numbers of a register.
pub(super) fn numbers<'b>(cx: &Context<'b>, t: Arrangement, field: &str) -> Vec<Val<'b>> {
    cx.vector_of(field).elements(t, Sign::Unsigned)
}

/// A function of each pair of numbers at the same place.
fn each<'b>(
    cx: &Context<'b>,
    t: Arrangement,
    function: ByFormat,
    change: impl Fn(Val<'b>) -> Val<'b>,
) -> Vec<Val<'b>> {
    let [n, m] = ["Rn", "Rm"].map(|field| numbers(cx, t, field));
    let pairs = n.into_iter().zip(m).map(|(n, m)| [n, m].map(&change));
    cx.floating(|fp| fp.call_each(function(t.lane.format()), pairs))
}

fn function(cx: &Context<'_>, t: Arrangement, function: ByFormat) {
    cx.set_elements(t, &each(cx, t, function, |n| n));
}

/// FADDP, FMAXP, FMINP, FMAXNMP, FMINNMP: pairs of the first operand, then of the second.
fn of_pairs(cx: &Context<'_>, t: Arrangement, function: ByFormat) {
    let operands = ["Rn", "Rm"].map(|field| numbers(cx, t, field)).concat();
    let pairs = operands.chunks(2).map(|pair| [pair[0], pair[1]]);
    let elements = cx.floating(|fp| fp.call_each(function(t.lane.format()), pairs));
    cx.set_elements(t, &elements);
}

/// Sums of an addend and a product, rounded once; for differences, the first factor is negated.
pub(super) fn fused<'b>(
    fp: &Unit<'b>,
    lane: Lane,
    op: AddSub,
    operands: impl IntoIterator<Item = [Val<'b>; 3]>,
) -> Vec<Val<'b>> {
    let signed = |[addend, n, m]: [Val<'b>; 3]| match op {
        Add => [addend, n, m],
        Sub => [addend, lane.negated(n), m],
    };
    fp.call_each(fp_mul_add(lane.format()), operands.into_iter().map(signed))
}

/// FMLA, FMLS.
fn multiply_accumulate(cx: &Context<'_>, t: Arrangement, op: AddSub) {
    let [d, n, m] = ["Rd", "Rn", "Rm"].map(|field| numbers(cx, t, field));
    let operands = (0..t.count()).map(|i| [d[i], n[i], m[i]]);
    let elements = cx.floating(|fp| fused(fp, t.lane, op, operands));
    cx.set_elements(t, &elements);
}

/// FABD.
fn difference(cx: &Context<'_>, t: Arrangement) {
    let differences = each(cx, t, fp_sub, |n| n);
    let elements: Vec<_> = differences.into_iter().map(|n| t.lane.absolute(n)).collect();
    cx.set_elements(t, &elements);
}

/// All ones for comparisons that hold, and zero for others.
pub(super) fn masks(lane: Lane, holds: Vec<Val<'_>>) -> Vec<Val<'_>> {
    holds.into_iter().map(|holds| mask(lane, holds.ne(0u64))).collect()
}

/// FCMEQ, FCMGE, FCMGT, FACGE, FACGT.
fn compare(cx: &Context<'_>, t: Arrangement, Comparison { of, relation }: Comparison) {
    let holds = each(cx, t, relation, |n| match of {
        Compared::Numbers => n,
        Compared::Magnitudes => t.lane.absolute(n),
    });
    cx.set_elements(t, &masks(t.lane, holds));
}
