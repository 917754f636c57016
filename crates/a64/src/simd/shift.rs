//! Shifts by a constant.
//!
//! The field that Arm calls `immh:immb` is one bit that says the size of the elements, and a number below that size,
//! the field `imm` here: a shift to the left by it, or to the right by the size less it.

use kvrm_ir::Val;

use super::arrangement::{Arrangement, Lane, Part};
use super::elements::{
    Rounding, saturated, saturated_unsigned, shift_left_saturating, shift_right,
};
use super::three_same::SIGN;
use super::two_misc::{long_elements, set_narrow_vector, set_narrowed};
use super::vector::{Vector, reached};
use crate::Sign;
use crate::context::Context;
use crate::row::{Choice, Row, rows};

const fn t(lane: Lane, part: Part) -> Arrangement {
    Arrangement { lane, part }
}

/// Arrangements by Q and `immh:immb`.
const SIZED: &[Choice<Arrangement>] = &[
    ("8B", "0|0001 imm:3", t(Lane::B, Part::Half)),
    ("16B", "1|0001 imm:3", t(Lane::B, Part::Whole)),
    ("4H", "0|001 imm:4", t(Lane::H, Part::Half)),
    ("8H", "1|001 imm:4", t(Lane::H, Part::Whole)),
    ("2S", "0|01 imm:5", t(Lane::S, Part::Half)),
    ("4S", "1|01 imm:5", t(Lane::S, Part::Whole)),
    ("2D", "1|1 imm:6", t(Lane::D, Part::Whole)),
];
/// The same for elements that are narrowed or lengthened.
const SIZED_NARROW: &[Choice<Arrangement>] = &[
    ("8B", "0|0001 imm:3", t(Lane::B, Part::Half)),
    ("16B", "1|0001 imm:3", t(Lane::B, Part::Whole)),
    ("4H", "0|001 imm:4", t(Lane::H, Part::Half)),
    ("8H", "1|001 imm:4", t(Lane::H, Part::Whole)),
    ("2S", "0|01 imm:5", t(Lane::S, Part::Half)),
    ("4S", "1|01 imm:5", t(Lane::S, Part::Whole)),
];
/// Single elements by `immh:immb`.
const SIZED_SCALAR: &[Choice<Arrangement>] = &[
    ("B", "0001 imm:3", t(Lane::B, Part::Element)),
    ("H", "001 imm:4", t(Lane::H, Part::Element)),
    ("S", "01 imm:5", t(Lane::S, Part::Element)),
    ("D", "1 imm:6", t(Lane::D, Part::Element)),
];
const SIZED_NARROW_SCALAR: &[Choice<Arrangement>] = &[
    ("B", "0001 imm:3", t(Lane::B, Part::Element)),
    ("H", "001 imm:4", t(Lane::H, Part::Element)),
    ("S", "01 imm:5", t(Lane::S, Part::Element)),
];
const SIZED_D: &[Choice<Arrangement>] = &[("D", "1 imm:6", t(Lane::D, Part::Element))];
/// Shifts to the right, by the operation code.
const RIGHT: &[Choice<Right>] = &[
    ("SHR", "00000", Right { rounding: Rounding::Down, accumulates: false }),
    ("SRA", "00010", Right { rounding: Rounding::Down, accumulates: true }),
    ("RSHR", "00100", Right { rounding: Rounding::Nearest, accumulates: false }),
    ("RSRA", "00110", Right { rounding: Rounding::Nearest, accumulates: true }),
];
/// Shifts to the right that narrow and saturate, by U and the operation code.
const NARROWING: &[Choice<Narrowing>] = &[
    ("SQSHRN", "0|10010", narrowing(Sign::Signed, Sign::Signed, Rounding::Down)),
    ("SQRSHRN", "0|10011", narrowing(Sign::Signed, Sign::Signed, Rounding::Nearest)),
    ("UQSHRN", "1|10010", narrowing(Sign::Unsigned, Sign::Unsigned, Rounding::Down)),
    ("UQRSHRN", "1|10011", narrowing(Sign::Unsigned, Sign::Unsigned, Rounding::Nearest)),
    ("SQSHRUN", "1|10000", narrowing(Sign::Signed, Sign::Unsigned, Rounding::Down)),
    ("SQRSHRUN", "1|10001", narrowing(Sign::Signed, Sign::Unsigned, Rounding::Nearest)),
];
/// Shifts to the left that saturate, by U and the operation code: how elements are read before and after.
const LEFT: &[Choice<(Sign, Sign)>] = &[
    ("SQSHL", "0|01110", (Sign::Signed, Sign::Signed)),
    ("UQSHL", "1|01110", (Sign::Unsigned, Sign::Unsigned)),
    ("SQSHLU", "1|01100", (Sign::Signed, Sign::Unsigned)),
];

#[derive(Clone, Copy)]
struct Right {
    rounding: Rounding,
    accumulates: bool,
}

/// How elements are read before and after, and what becomes of lost bits.
#[derive(Clone, Copy)]
struct Narrowing {
    from: Sign,
    to: Sign,
    rounding: Rounding,
}

const fn narrowing(from: Sign, to: Sign, rounding: Rounding) -> Narrowing {
    Narrowing { from, to, rounding }
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD shift by immediate" for (sign in SIGN, op in RIGHT, t in SIZED):
        "{sign}{op}_{t}" "0 {t} {sign} 011110 {t} {op} 1 Rn:5 Rd:5" => right(t, sign, op);
    },
    rows! { "Advanced SIMD scalar shift by immediate" for (sign in SIGN, op in RIGHT, t in SIZED_D):
        "{sign}{op}_{t}" "01 {sign} 111110 {t} {op} 1 Rn:5 Rd:5" => right(t, sign, op);
    },
    rows! { "Advanced SIMD shift by immediate" for (t in SIZED):
        "SHL_{t}" "0 {t} 0 011110 {t} 01010 1 Rn:5 Rd:5" => left(t);
        "SLI_{t}" "0 {t} 1 011110 {t} 01010 1 Rn:5 Rd:5" => left_insert(t);
        "SRI_{t}" "0 {t} 1 011110 {t} 01000 1 Rn:5 Rd:5" => right_insert(t);
    },
    rows! { "Advanced SIMD scalar shift by immediate" for (t in SIZED_D):
        "SHL_{t}" "01 0 111110 {t} 01010 1 Rn:5 Rd:5" => left(t);
        "SLI_{t}" "01 1 111110 {t} 01010 1 Rn:5 Rd:5" => left_insert(t);
        "SRI_{t}" "01 1 111110 {t} 01000 1 Rn:5 Rd:5" => right_insert(t);
    },
    rows! { "Advanced SIMD shift by immediate" for (op in LEFT, t in SIZED):
        "{op}_imm_{t}" "0 {t} {op} 011110 {t} {op} 1 Rn:5 Rd:5" => left_saturating(t, op);
    },
    rows! { "Advanced SIMD scalar shift by immediate" for (op in LEFT, t in SIZED_SCALAR):
        "{op}_imm_{t}" "01 {op} 111110 {t} {op} 1 Rn:5 Rd:5" => left_saturating(t, op);
    },
    rows! { "Advanced SIMD shift by immediate" for (t in SIZED_NARROW):
        "SHRN_{t}"  "0 {t} 0 011110 {t} 10000 1 Rn:5 Rd:5" => right_narrow(t, Rounding::Down);
        "RSHRN_{t}" "0 {t} 0 011110 {t} 10001 1 Rn:5 Rd:5" => right_narrow(t, Rounding::Nearest);
    },
    rows! { "Advanced SIMD shift by immediate" for (op in NARROWING, t in SIZED_NARROW):
        "{op}_{t}" "0 {t} {op} 011110 {t} {op} 1 Rn:5 Rd:5" => right_narrow_saturating(t, op);
    },
    rows! { "Advanced SIMD scalar shift by immediate" for (op in NARROWING, t in SIZED_NARROW_SCALAR):
        "{op}_{t}" "01 {op} 111110 {t} {op} 1 Rn:5 Rd:5" => right_narrow_saturating(t, op);
    },
    rows! { "Advanced SIMD shift by immediate" for (sign in SIGN, t in SIZED_NARROW):
        "{sign}SHLL_{t}" "0 {t} {sign} 011110 {t} 10100 1 Rn:5 Rd:5" => left_long(t, sign);
    },
];

/// How far to shift to the right: 1 to the size of an element, less one.
fn right_less_one<'b>(cx: &Context<'b>, lane: Lane) -> Val<'b> {
    cx.b.u32(lane.bits() - 1) - cx.field("imm")
}

/// Adds what rounding to nearest adds to elements that were shifted right.
fn rounded<'b>(
    cx: &Context<'b>,
    t: Arrangement,
    n: Vector<'b>,
    shifted: Vector<'b>,
    less_one: Val<'b>,
) -> Vector<'b> {
    // The bit that was shifted out last.
    let last = n.bits(last_bit(cx, t.lane, less_one), |n, last| n & last);
    let none = Vector::both(cx.b.u64(0));
    // Ones are minus one.
    let ones = last.equal(t, none).inverted();
    shifted.sub(t.lane, ones)
}

/// The bit with that number of each element.
fn last_bit<'b>(cx: &Context<'b>, lane: Lane, number: Val<'b>) -> Vector<'b> {
    Vector::both(cx.b.u64(lane.repeated(1)).shl_by(number))
}

/// Shifts an extended element right, by one more than `less_one`, which is less than the width of its type.
fn shifted<'b>(sign: Sign, rounding: Rounding, n: Val<'b>, less_one: Val<'b>) -> Val<'b> {
    let rest = shift_right(sign, n, less_one);
    let shifted = shift_right(sign, rest, less_one.like(1));
    match rounding {
        Rounding::Down => shifted,
        Rounding::Nearest => shifted + (rest & 1u64),
    }
}

/// SSHR, USHR, SSRA, USRA, SRSHR, URSHR, SRSRA, URSRA.
fn right(cx: &Context<'_>, t: Arrangement, sign: Sign, op: Right) {
    let less_one = right_less_one(cx, t.lane);
    let n = cx.vector_of("Rn");
    let shifted = n.shr(t, sign, less_one);
    let result = match op.rounding {
        Rounding::Down => shifted,
        Rounding::Nearest => rounded(cx, t, n, shifted, less_one),
    };
    cx.set_result(
        t,
        match op.accumulates {
            true => cx.vector_of("Rd").add(t.lane, result),
            false => result,
        },
    );
}

fn left(cx: &Context<'_>, t: Arrangement) {
    cx.set_result(t, cx.vector_of("Rn").shl(t.lane, cx.field("imm")));
}

fn left_insert(cx: &Context<'_>, t: Arrangement) {
    let amount = cx.field("imm");
    let shifted = cx.vector_of("Rn").shl(t.lane, amount);
    let untouched = Vector::both(!reached(cx.b, t.lane, amount));
    let kept = cx.vector_of("Rd").bits(untouched, |d, untouched| d & untouched);
    cx.set_result(t, kept.bits(shifted, |kept, shifted| kept | shifted));
}

fn right_insert(cx: &Context<'_>, t: Arrangement) {
    let less_one = right_less_one(cx, t.lane);
    // What a shift to the right leaves untouched.
    let untouched = match t.lane {
        Lane::D => !(cx.b.u64(u64::MAX).shr_by(less_one) >> 1),
        lane => {
            let reached = cx.b.u64(lane.mask()).shr_by(less_one) >> 1;
            !(reached * lane.repeated(1))
        }
    };
    let (n, d) = (cx.vector_of("Rn"), cx.vector_of("Rd"));
    let result = n.by_halves(d, |n, d| {
        let shifted = n.shr_by(less_one) >> 1;
        (d & untouched) | (shifted & !untouched)
    });
    cx.set_result(t, result);
}

/// SQSHL, UQSHL, SQSHLU (immediate).
fn left_saturating(cx: &Context<'_>, t: Arrangement, (from, to): (Sign, Sign)) {
    let amount = cx.field("imm");
    let results = cx.vector_of("Rn").elements(t, from).into_iter().map(|n| {
        let shift = |n| shift_left_saturating(t.lane, to, n, amount);
        match (from, to) {
            (Sign::Signed, Sign::Unsigned) => {
                let (shifted, saturates) = shift(n & t.lane.mask());
                (n.sign().select(n.like(0), shifted), n.sign() | saturates)
            }
            _ => shift(n),
        }
    });
    let (elements, saturation): (Vec<_>, Vec<_>) = results.unzip();
    cx.set_elements(t, &elements);
    cx.set_saturation(saturation);
}

/// The elements of twice the size, shifted to the right.
fn long_shifted<'b>(
    cx: &Context<'b>,
    t: Arrangement,
    sign: Sign,
    rounding: Rounding,
) -> Vec<Val<'b>> {
    let less_one = right_less_one(cx, t.lane);
    let elements = long_elements(cx, t, sign);
    elements.into_iter().map(|n| shifted(sign, rounding, n, less_one)).collect()
}

/// SHRN, RSHRN and their upper forms.
fn right_narrow(cx: &Context<'_>, t: Arrangement, rounding: Rounding) {
    let to = Arrangement { lane: t.lane.doubled(), part: Part::Whole };
    let less_one = right_less_one(cx, t.lane);
    let n = cx.vector_of("Rn");
    let shifted = n.shr(to, Sign::Unsigned, less_one);
    let result = match rounding {
        Rounding::Down => shifted,
        Rounding::Nearest => rounded(cx, to, n, shifted, less_one),
    };
    set_narrow_vector(cx, t, result.narrowed(t.lane));
}

/// SQSHRN, UQSHRN, SQSHRUN, those that round, and their upper forms.
fn right_narrow_saturating(cx: &Context<'_>, t: Arrangement, op: Narrowing) {
    let narrowed = long_shifted(cx, t, op.from, op.rounding).into_iter().map(|n| match op.from {
        Sign::Signed => saturated(t.lane, op.to, n),
        Sign::Unsigned => saturated_unsigned(t.lane, n),
    });
    let (elements, saturation): (Vec<_>, Vec<_>) = narrowed.unzip();
    set_narrowed(cx, t, &elements);
    cx.set_saturation(saturation);
}

/// SSHLL, USHLL.
fn left_long(cx: &Context<'_>, t: Arrangement, sign: Sign) {
    let to = t.lane.doubled();
    let long = cx.vector_of("Rn").widened(t.lane, sign, t.part == Part::Whole);
    cx.set_vector_of("Rd", long.shl(to, cx.field("imm")));
}
