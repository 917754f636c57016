//! Products of numbers that are half as long as what they are added to: halves, and numbers in the Brain format.

use kvrm_ir::Val;

use super::arrangement::{Arrangement, Lane, Part, WORDS};
use super::by_element::multiplier;
use super::float_three_same::{fused, numbers};
use crate::Sign;
use crate::context::Context;
use crate::data_register::AddSub::{self, Add, Sub};
use crate::float::{bf_mul_h, fp_add_bf16, fp_unpack_half};
use crate::fp::Unit;
use crate::row::{Choice, Row, rows};

/// Sums and differences with products of halves, by U, `a` and the operation code.
const LONG: &[Choice<Long>] = &[
    ("FMLAL", "0|0|11101", Long { op: Add, part: 0 }),
    ("FMLSL", "0|1|11101", Long { op: Sub, part: 0 }),
    ("FMLAL2", "1|0|11001", Long { op: Add, part: 1 }),
    ("FMLSL2", "1|1|11001", Long { op: Sub, part: 1 }),
];
/// The same by element, by U and the operation code.
const LONG_ELEMENT: &[Choice<Long>] = &[
    ("FMLAL", "0|0000", Long { op: Add, part: 0 }),
    ("FMLSL", "0|0100", Long { op: Sub, part: 0 }),
    ("FMLAL2", "1|1000", Long { op: Add, part: 1 }),
    ("FMLSL2", "1|1100", Long { op: Sub, part: 1 }),
];
/// Which number of each two counts, by Q.
const BOTTOM_TOP: &[Choice<usize>] = &[("B", "0", 0), ("T", "1", 1)];

const SINGLES: Arrangement = Arrangement { lane: Lane::S, part: Part::Whole };

#[derive(Clone, Copy)]
struct Long {
    op: AddSub,
    /// The first or the second half of the operands.
    part: usize,
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD three same" for (op in LONG, t in WORDS):
        "{op}_{t}" "0 {t} {op} 01110 {op} 01 Rm:5 {op} 1 Rn:5 Rd:5" => multiply_long(t, op);
    },
    rows! { "Advanced SIMD vector x indexed element" for (op in LONG_ELEMENT, t in WORDS):
        "{op}_elem_{t}" "0 {t} {op} 01111 10 L:1 M:1 Rm:4 {op} H:1 0 Rn:5 Rd:5" => multiply_long_by_element(t, op);
    },
    rows! { "Advanced SIMD three same extra" for (t in WORDS):
        "BFDOT_{t}" "0 {t} 1 01110 01 0 Rm:5 1 1111 1 Rn:5 Rd:5" => brain_dot(t);
    },
    rows! { "Advanced SIMD vector x indexed element" for (t in WORDS):
        "BFDOT_elem_{t}" "0 {t} 0 01111 01 L:1 Rm:5 1111 H:1 0 Rn:5 Rd:5" => brain_dot_by_element(t);
    },
    rows! { "Advanced SIMD three same extra":
        "BFMMLA" "0 1 1 01110 01 0 Rm:5 1 1101 1 Rn:5 Rd:5" => brain_multiply_matrices();
    },
    rows! { "Advanced SIMD three same extra" for (which in BOTTOM_TOP):
        "BFMLAL{which}" "0 {which} 1 01110 11 0 Rm:5 1 1111 1 Rn:5 Rd:5" => brain_long(which);
    },
    rows! { "Advanced SIMD vector x indexed element" for (which in BOTTOM_TOP):
        "BFMLAL{which}_elem" "0 {which} 0 01111 11 L:1 M:1 Rm:4 1111 H:1 0 Rn:5 Rd:5" => brain_long_by_element(which);
    },
];

fn halfwords<'b>(cx: &Context<'b>, t: Arrangement, field: &str) -> Vec<Val<'b>> {
    numbers(cx, Arrangement { lane: Lane::H, part: t.part }, field)
}

/// A half as a single, exactly.
fn single<'b>(fp: &Unit<'b>, half: Val<'b>) -> Val<'b> {
    let [single] = fp.results(fp_unpack_half(), &[half]);
    single
}

/// A number in the Brain format is the upper half of a single.
fn single_of_brain<'b>(_: &Unit<'b>, brain: Val<'b>) -> Val<'b> {
    brain << 16
}

/// `FPMulAddH`, `BFMulAddH`: adds products to each single of `Rd`, given what is multiplied and how that becomes a single.
fn accumulate<'b>(
    cx: &Context<'b>,
    t: Arrangement,
    op: AddSub,
    factors: [&[Val<'b>]; 2],
    single: impl Fn(&Unit<'b>, Val<'b>) -> Val<'b>,
) {
    let d = numbers(cx, t, "Rd");
    let elements = cx.floating(|fp| {
        let [n, m] = factors.map(|factors| factors.iter().map(|x| single(fp, *x)));
        let operands = d.into_iter().zip(n).zip(m).map(|((d, n), m)| [d, n, m]);
        fused(fp, Lane::S, op, operands)
    });
    cx.set_elements(t, &elements);
}

/// FMLAL, FMLSL, FMLAL2, FMLSL2.
fn multiply_long(cx: &Context<'_>, t: Arrangement, Long { op, part }: Long) {
    let [n, m] = ["Rn", "Rm"].map(|field| halfwords(cx, t, field).split_off(part * t.count()));
    accumulate(cx, t, op, [&n, &m], single);
}

fn multiply_long_by_element(cx: &Context<'_>, t: Arrangement, Long { op, part }: Long) {
    let n = halfwords(cx, t, "Rn").split_off(part * t.count());
    let m = vec![multiplier(cx, Lane::H, Sign::Unsigned); t.count()];
    accumulate(cx, t, op, [&n, &m], single);
}

/// `BFDotAdd`: adds the sum of two products. FPCR and FPSR do not matter.
fn brain_dot_add<'b>(cx: &Context<'b>, sum: Val<'b>, n: &[Val<'b>], m: &[Val<'b>]) -> Val<'b> {
    let product = |i: usize| cx.b.call(bf_mul_h(), &[n[i], m[i]])[0];
    let products = cx.b.call(fp_add_bf16(), &[product(0), product(1)])[0];
    cx.b.call(fp_add_bf16(), &[sum, products])[0]
}

fn brain_dot_with<'b>(cx: &Context<'b>, t: Arrangement, m: &[Val<'b>]) {
    let (d, n) = (numbers(cx, t, "Rd"), halfwords(cx, t, "Rn"));
    let pairs = n.chunks(2).zip(m.chunks(2)).zip(d);
    let elements: Vec<_> = pairs.map(|((n, m), d)| brain_dot_add(cx, d, n, m)).collect();
    cx.set_elements(t, &elements);
}

/// BFDOT.
fn brain_dot(cx: &Context<'_>, t: Arrangement) {
    brain_dot_with(cx, t, &halfwords(cx, t, "Rm"));
}

/// BFDOT (by element): the element is a pair.
fn brain_dot_by_element(cx: &Context<'_>, t: Arrangement) {
    let first = ((cx.field("H") << 1) | cx.field("L")) << 1;
    let pair = [0, 1].map(|i: u64| cx.element_at("Rm", Lane::H, first + i, Sign::Unsigned));
    brain_dot_with(cx, t, &pair.repeat(t.count()));
}

/// BFMMLA: two rows of four numbers with two columns, which are the halves of the second operand.
fn brain_multiply_matrices(cx: &Context<'_>) {
    let [n, m] = ["Rn", "Rm"].map(|field| halfwords(cx, SINGLES, field));
    let d = numbers(cx, SINGLES, "Rd");
    let products = n.chunks(4).flat_map(|row| m.chunks(4).map(move |column| (row, column)));
    let sums = products.zip(d).map(|((row, column), d)| {
        let first = brain_dot_add(cx, d, &row[..2], &column[..2]);
        brain_dot_add(cx, first, &row[2..], &column[2..])
    });
    let elements: Vec<_> = sums.collect();
    cx.set_elements(SINGLES, &elements);
}

/// Every second number of a register.
fn every_second<'b>(cx: &Context<'b>, field: &str, which: usize) -> Vec<Val<'b>> {
    halfwords(cx, SINGLES, field).into_iter().skip(which).step_by(2).collect()
}

/// BFMLALB, BFMLALT.
fn brain_long(cx: &Context<'_>, which: usize) {
    let [n, m] = ["Rn", "Rm"].map(|field| every_second(cx, field, which));
    accumulate(cx, SINGLES, Add, [&n, &m], single_of_brain);
}

/// BFMLALB, BFMLALT (by element).
fn brain_long_by_element(cx: &Context<'_>, which: usize) {
    let m = vec![multiplier(cx, Lane::H, Sign::Unsigned); SINGLES.count()];
    accumulate(cx, SINGLES, Add, [&every_second(cx, "Rn", which), &m], single_of_brain);
}
