//! Constants from eight bits of the instruction.

use kvrm_ir::{Type, Val};

use super::arrangement::{Arrangement, Lane, Part};
use super::vector::Vector;
use crate::context::Context;
use crate::row::{Choice, Row, rows};

/// Q.
const WORDS: &[Choice<Part>] = &[("2S", "0", Part::Half), ("4S", "1", Part::Whole)];
const HALFWORDS: &[Choice<Part>] = &[("4H", "0", Part::Half), ("8H", "1", Part::Whole)];
const BYTES: &[Choice<Part>] = &[("8B", "0", Part::Half), ("16B", "1", Part::Whole)];
const DOUBLEWORDS: &[Choice<Part>] = &[("D", "0", Part::Half), ("2D", "1", Part::Whole)];
/// What is done with the constant, by the bit that Arm calls `op`.
const MOVE: &[Choice<Use>] = &[("MOVI", "0", Use::Move), ("MVNI", "1", Use::MoveNot)];
const CHANGE: &[Choice<Use>] = &[("ORR", "0", Use::Or), ("BIC", "1", Use::AndNot)];

#[derive(Clone, Copy)]
enum Use {
    Move,
    MoveNot,
    Or,
    AndNot,
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD modified immediate" for (op in MOVE, q in WORDS):
        "{op}_{q}"     "0 {q} {op} 0111100000 abc:3 0 shift:2 0 0 1 defgh:5 Rd:5" => shifted(Lane::S, q, op);
        "{op}_msl_{q}" "0 {q} {op} 0111100000 abc:3 110 shift:1 0 1 defgh:5 Rd:5" => shifted_ones(q, op);
    },
    rows! { "Advanced SIMD modified immediate" for (op in MOVE, q in HALFWORDS):
        "{op}_{q}" "0 {q} {op} 0111100000 abc:3 10 shift:1 0 0 1 defgh:5 Rd:5" => shifted(Lane::H, q, op);
    },
    rows! { "Advanced SIMD modified immediate" for (op in CHANGE, q in WORDS):
        "{op}_imm_{q}" "0 {q} {op} 0111100000 abc:3 0 shift:2 1 0 1 defgh:5 Rd:5" => shifted(Lane::S, q, op);
    },
    rows! { "Advanced SIMD modified immediate" for (op in CHANGE, q in HALFWORDS):
        "{op}_imm_{q}" "0 {q} {op} 0111100000 abc:3 10 shift:1 1 0 1 defgh:5 Rd:5" => shifted(Lane::H, q, op);
    },
    rows! { "Advanced SIMD modified immediate" for (q in BYTES):
        "MOVI_{q}" "0 {q} 0 0111100000 abc:3 1110 0 1 defgh:5 Rd:5" => bytes(q);
    },
    rows! { "Advanced SIMD modified immediate" for (q in DOUBLEWORDS):
        "MOVI_{q}" "0 {q} 1 0111100000 abc:3 1110 0 1 defgh:5 Rd:5" => masks(q);
    },
    rows! { "Advanced SIMD modified immediate" for (q in WORDS):
        "FMOV_imm_{q}" "0 {q} 0 0111100000 abc:3 1111 0 1 defgh:5 Rd:5" => float(Lane::S, q);
    },
    rows! { "Advanced SIMD modified immediate" for (q in HALFWORDS):
        "FMOV_imm_{q}" "0 {q} 0 0111100000 abc:3 1111 1 1 defgh:5 Rd:5" => float(Lane::H, q);
    },
    rows! { "Advanced SIMD modified immediate":
        "FMOV_imm_2D" "0 1 1 0111100000 abc:3 1111 0 1 defgh:5 Rd:5" => float(Lane::D, Part::Whole);
    },
];

/// The eight bits, as a `u64`.
fn imm8<'b>(cx: &Context<'b>) -> Val<'b> {
    ((cx.field("abc") << 5) | cx.field("defgh")).zext(Type::U64)
}

/// Uses an element in every place.
fn apply<'b>(cx: &Context<'b>, lane: Lane, part: Part, element: Val<'b>, op: Use) {
    let pattern = if lane == Lane::D { element } else { element * lane.repeated(1) };
    let t = Arrangement { lane, part };
    let (old, pattern) = (cx.vector_of("Rd"), Vector::both(pattern));
    let result = match op {
        Use::Move => pattern,
        Use::MoveNot => pattern.inverted(),
        Use::Or => old.bits(pattern, |old, pattern| old | pattern),
        Use::AndNot => old.bits(pattern.inverted(), |old, pattern| old & pattern),
    };
    cx.set_result(t, result);
}

/// Eight bits, shifted by whole bytes.
fn shifted(cx: &Context<'_>, lane: Lane, part: Part, op: Use) {
    apply(cx, lane, part, imm8(cx).shl_by(cx.field("shift") << 3), op);
}

/// Eight bits, shifted by one or two bytes of ones.
fn shifted_ones(cx: &Context<'_>, part: Part, op: Use) {
    let bits = (cx.field("shift") << 3) + 8u64;
    let ones = cx.b.u64(1).shl_by(bits) - 1u64;
    apply(cx, Lane::S, part, imm8(cx).shl_by(bits) | ones, op);
}

fn bytes(cx: &Context<'_>, part: Part) {
    apply(cx, Lane::B, part, imm8(cx), Use::Move);
}

/// Each bit becomes a byte.
fn masks(cx: &Context<'_>, part: Part) {
    let imm = imm8(cx);
    let byte = |i: u32| (-imm.bits(i, 1) & 0xff) << (8 * i);
    let element = (0..8).map(byte).reduce(|a, b| a | b).expect("eight bytes");
    apply(cx, Lane::D, part, element, Use::Move);
}

/// `VFPExpandImm`: sign, three bits of the exponent and four of the fraction.
pub(crate) fn expanded<'b>(lane: Lane, imm8: Val<'b>) -> Val<'b> {
    let (exponent, fraction) = match lane {
        Lane::H => (5, 10),
        Lane::S => (8, 23),
        Lane::B | Lane::D => (11, 52),
    };
    let (sign, flag) = (imm8.bits(7, 1), imm8.bits(6, 1));
    let repeated = (-flag & (u64::MAX >> (64 - (exponent - 3)))) << 2;
    let exponent_bits = ((flag ^ 1u64) << (exponent - 1)) | repeated | imm8.bits(4, 2);
    (sign << (lane.bits() - 1)) | (exponent_bits << fraction) | (imm8.bits(0, 4) << (fraction - 4))
}

fn float(cx: &Context<'_>, lane: Lane, part: Part) {
    apply(cx, lane, part, expanded(lane, imm8(cx)), Use::Move);
}
