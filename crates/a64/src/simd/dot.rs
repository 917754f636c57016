//! Sums of products of bytes: dot products and products of matrices.

use kvrm_ir::Val;

use super::arrangement::{Arrangement, Lane, Part, WORDS};
use super::vector::Vector;
use crate::Sign::{self, Signed, Unsigned};
use crate::context::Context;
use crate::row::{Choice, Row, rows};

/// How the bytes of the first and of the second operand are read.
type Signs = (Sign, Sign);

/// Dot products, by U and the operation code.
const DOT: &[Choice<Signs>] = &[
    ("SDOT", "0|0010", (Signed, Signed)),
    ("UDOT", "1|0010", (Unsigned, Unsigned)),
    ("USDOT", "0|0011", (Unsigned, Signed)),
];
/// The same by element: U, `size` and the operation code.
const DOT_ELEMENT: &[Choice<Signs>] = &[
    ("SDOT", "0|10|1110", (Signed, Signed)),
    ("UDOT", "1|10|1110", (Unsigned, Unsigned)),
    ("USDOT", "0|10|1111", (Unsigned, Signed)),
    ("SUDOT", "0|00|1111", (Signed, Unsigned)),
];
/// Products of matrices, by U and the operation code.
const MATRIX: &[Choice<Signs>] = &[
    ("SMMLA", "0|0100", (Signed, Signed)),
    ("UMMLA", "1|0100", (Unsigned, Unsigned)),
    ("USMMLA", "0|0101", (Unsigned, Signed)),
];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD three same extra" for (op in DOT, t in WORDS):
        "{op}_{t}" "0 {t} {op} 01110 10 0 Rm:5 1 {op} 1 Rn:5 Rd:5" => dot(t, op);
    },
    rows! { "Advanced SIMD vector x indexed element" for (op in DOT_ELEMENT, t in WORDS):
        "{op}_elem_{t}" "0 {t} {op} 01111 {op} L:1 Rm:5 {op} H:1 0 Rn:5 Rd:5" => dot_by_element(t, op);
    },
    rows! { "Advanced SIMD three same extra" for (op in MATRIX):
        "{op}" "0 1 {op} 01110 10 0 Rm:5 1 {op} 1 Rn:5 Rd:5" => multiply_matrices(op);
    },
];

fn bytes<'b>(vector: Vector<'b>, part: Part, sign: Sign) -> Vec<Val<'b>> {
    vector.elements(Arrangement { lane: Lane::B, part }, sign)
}

/// A sum and the products of elements at the same place.
fn sum_of_products<'b>(sum: Val<'b>, n: &[Val<'b>], m: &[Val<'b>]) -> Val<'b> {
    n.iter().zip(m).fold(sum, |sum, (n, m)| sum + *n * *m)
}

fn dot_products<'b>(cx: &Context<'b>, t: Arrangement, n: &[Val<'b>], m: &[Val<'b>]) {
    let d = cx.vector_of("Rd").elements(t, Unsigned);
    let groups = n.chunks(4).zip(m.chunks(4)).zip(d);
    let elements: Vec<_> = groups.map(|((n, m), d)| sum_of_products(d, n, m)).collect();
    cx.set_elements(t, &elements);
}

/// SDOT, UDOT, USDOT.
fn dot(cx: &Context<'_>, t: Arrangement, (of_n, of_m): Signs) {
    let n = bytes(cx.vector_of("Rn"), t.part, of_n);
    let m = bytes(cx.vector_of("Rm"), t.part, of_m);
    dot_products(cx, t, &n, &m);
}

/// The same with the four bytes of one element.
fn dot_by_element(cx: &Context<'_>, t: Arrangement, (of_n, of_m): Signs) {
    let index = (cx.field("H") << 1) | cx.field("L");
    let first = index << 2;
    let m = [0, 1, 2, 3].map(|i: u64| cx.element_at("Rm", Lane::B, first + i, of_m));
    let n = bytes(cx.vector_of("Rn"), t.part, of_n);
    dot_products(cx, t, &n, &m.repeat(t.count()));
}

/// SMMLA, UMMLA, USMMLA: two rows of eight bytes with two columns, which are the halves of the second operand.
fn multiply_matrices(cx: &Context<'_>, (of_n, of_m): Signs) {
    let t = Arrangement { lane: Lane::S, part: Part::Whole };
    let n = bytes(cx.vector_of("Rn"), Part::Whole, of_n);
    let m = bytes(cx.vector_of("Rm"), Part::Whole, of_m);
    let d = cx.vector_of("Rd").elements(t, Unsigned);
    let products = n.chunks(8).flat_map(|row| m.chunks(8).map(move |column| (row, column)));
    let elements: Vec<_> =
        products.zip(d).map(|((row, column), d)| sum_of_products(d, row, column)).collect();
    cx.set_elements(t, &elements);
}
