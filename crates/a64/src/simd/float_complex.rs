//! Complex numbers: each is two elements, the real part first.

use kvrm_ir::Val;

use super::arrangement::{Arrangement, Lane, Part};
use super::float_three_same::numbers;
use crate::Sign;
use crate::context::Context;
use crate::float::{fp_add, fp_mul_add};
use crate::row::{Choice, Row, rows};

const fn t(lane: Lane, part: Part) -> Arrangement {
    Arrangement { lane, part }
}

/// Arrangements by Q and `size`.
const COMPLEX: &[Choice<Arrangement>] = &[
    ("4H", "0|01", t(Lane::H, Part::Half)),
    ("8H", "1|01", t(Lane::H, Part::Whole)),
    ("2S", "0|10", t(Lane::S, Part::Half)),
    ("4S", "1|10", t(Lane::S, Part::Whole)),
    ("2D", "1|11", t(Lane::D, Part::Whole)),
];
/// Arrangements by Q, then `size`, then L with the register, then H: an index counts complex numbers.
const INDEXED: &[Choice<Arrangement>] = &[
    ("4H", "0|01 index:1 Rm:5|0", t(Lane::H, Part::Half)),
    ("8H", "1|01 L:1 Rm:5|H:1", t(Lane::H, Part::Whole)),
    ("4S", "1|10 0 Rm:5|index:1", t(Lane::S, Part::Whole)),
];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD three same extra" for (t in COMPLEX):
        "FCADD_{t}" "0 {t} 1 01110 {t} 0 Rm:5 1 11 rot#1 0 1 Rn:5 Rd:5" => add(t);
        "FCMLA_{t}" "0 {t} 1 01110 {t} 0 Rm:5 1 10 rot#2 1 Rn:5 Rd:5" => multiply_accumulate(t);
    },
    rows! { "Advanced SIMD vector x indexed element" for (t in INDEXED):
        "FCMLA_elem_{t}" "0 {t} 1 01111 {t} 0 rot#2 1 {t} 0 Rn:5 Rd:5" => multiply_accumulate_by_element(t);
    },
];

/// FCADD: the second operand is rotated by 90 or 270 degrees first.
fn add(cx: &Context<'_>, t: Arrangement) {
    let negate = |x| t.lane.negated(x);
    let upwards = cx.shape("rot") == 0;
    let [n, m] = ["Rn", "Rm"].map(|field| numbers(cx, t, field));
    let function = fp_add(t.lane.format());
    let pairs = n.chunks(2).zip(m.chunks(2)).flat_map(|(n, m)| {
        let rotated = if upwards { [negate(m[1]), m[0]] } else { [m[1], negate(m[0])] };
        [0, 1].map(|i| [n[i], rotated[i]])
    });
    let elements = cx.floating(|fp| fp.call_each(function, pairs));
    cx.set_elements(t, &elements);
}

/// FCMLA.
fn multiply_accumulate(cx: &Context<'_>, t: Arrangement) {
    let m = numbers(cx, t, "Rm");
    accumulate(cx, t, &m);
}

/// FCMLA (by element).
fn multiply_accumulate_by_element(cx: &Context<'_>, t: Arrangement) {
    let index = match (t.lane, t.part) {
        (Lane::H, Part::Whole) => (cx.field("H") << 1) | cx.field("L"),
        _ => cx.field("index"),
    };
    let part = |i: u64| cx.element_at("Rm", t.lane, (index << 1) + i, Sign::Unsigned);
    let number = [part(0), part(1)];
    accumulate(cx, t, &number.repeat(t.count() / 2));
}

/// Adds the products of one part of each number in `Rn` with both parts of the other, which is rotated: two
/// instructions make a product of complex numbers.
fn accumulate<'b>(cx: &Context<'b>, t: Arrangement, m: &[Val<'b>]) {
    let negate = |x| t.lane.negated(x);
    let rot = cx.shape("rot");
    let [d, n] = ["Rd", "Rn"].map(|field| numbers(cx, t, field));
    let function = fp_mul_add(t.lane.format());
    let numbers = d.chunks(2).zip(n.chunks(2)).zip(m.chunks(2));
    let operands = numbers.flat_map(|((d, n), m)| {
        let (factor, rotated) = match rot {
            0 => (n[0], [m[0], m[1]]),
            1 => (n[1], [negate(m[1]), m[0]]),
            2 => (n[0], [negate(m[0]), negate(m[1])]),
            _ => (n[1], [m[1], negate(m[0])]),
        };
        [0, 1].map(|i| [d[i], factor, rotated[i]])
    });
    let elements = cx.floating(|fp| fp.call_each(function, operands));
    cx.set_elements(t, &elements);
}
