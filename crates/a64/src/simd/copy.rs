//! Copying single elements, from and to vector and general registers.

use kvrm_ir::{PackedOp, Type, Val};

use super::arrangement::{Arrangement, Lane, Part};
use super::vector::Vector;
use crate::Sign;
use crate::context::Context;
use crate::row::{Choice, Row, rows};
use crate::{W, X};

/// Elements by the field that Arm calls `imm5`, which has their size and the index.
const INDEXED: &[Choice<Lane>] = &[
    ("B", "index:4 1", Lane::B),
    ("H", "index:3 10", Lane::H),
    ("S", "index:2 100", Lane::S),
    ("D", "index:1 1000", Lane::D),
];
/// The same, and `imm4` with the index of another element.
const INDEXED_TWICE: &[Choice<Lane>] = &[
    ("B", "index:4 1|index2:4", Lane::B),
    ("H", "index:3 10|index2:3 (0)", Lane::H),
    ("S", "index:2 100|index2:2 (00)", Lane::S),
    ("D", "index:1 1000|index2:1 (000)", Lane::D),
];
/// Arrangements by Q and `imm5` with an index.
const DUP_ELEMENT: &[Choice<Arrangement>] = &[
    ("8B", "0|index:4 1", Arrangement { lane: Lane::B, part: Part::Half }),
    ("16B", "1|index:4 1", Arrangement { lane: Lane::B, part: Part::Whole }),
    ("4H", "0|index:3 10", Arrangement { lane: Lane::H, part: Part::Half }),
    ("8H", "1|index:3 10", Arrangement { lane: Lane::H, part: Part::Whole }),
    ("2S", "0|index:2 100", Arrangement { lane: Lane::S, part: Part::Half }),
    ("4S", "1|index:2 100", Arrangement { lane: Lane::S, part: Part::Whole }),
    ("2D", "1|index:1 1000", Arrangement { lane: Lane::D, part: Part::Whole }),
];
/// Arrangements by Q and `imm5` without one.
const DUP_GENERAL: &[Choice<Arrangement>] = &[
    ("8B", "0|(0000) 1", Arrangement { lane: Lane::B, part: Part::Half }),
    ("16B", "1|(0000) 1", Arrangement { lane: Lane::B, part: Part::Whole }),
    ("4H", "0|(000) 10", Arrangement { lane: Lane::H, part: Part::Half }),
    ("8H", "1|(000) 10", Arrangement { lane: Lane::H, part: Part::Whole }),
    ("2S", "0|(00) 100", Arrangement { lane: Lane::S, part: Part::Half }),
    ("4S", "1|(00) 100", Arrangement { lane: Lane::S, part: Part::Whole }),
    ("2D", "1|(0) 1000", Arrangement { lane: Lane::D, part: Part::Whole }),
];
/// Elements that UMOV moves, by Q and `imm5`.
const UMOV: &[Choice<Lane>] = &[
    ("B", "0|index:4 1", Lane::B),
    ("H", "0|index:3 10", Lane::H),
    ("S", "0|index:2 100", Lane::S),
    ("D", "1|index:1 1000", Lane::D),
];
/// Elements that SMOV moves, by Q and `imm5`, and where to.
const SMOV: &[Choice<(Lane, Type)>] = &[
    ("W_B", "0|index:4 1", (Lane::B, W)),
    ("W_H", "0|index:3 10", (Lane::H, W)),
    ("X_B", "1|index:4 1", (Lane::B, X)),
    ("X_H", "1|index:3 10", (Lane::H, X)),
    ("X_S", "1|index:2 100", (Lane::S, X)),
];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD copy" for (t in DUP_ELEMENT):
        "DUP_elem_{t}" "0 {t} 0 01110000 {t} 0 0000 1 Rn:5 Rd:5" => duplicate_element(t);
    },
    rows! { "Advanced SIMD scalar copy" for (lane in INDEXED):
        "DUP_scalar_{lane}" "01 0 11110000 {lane} 0 0000 1 Rn:5 Rd:5" => single_element(lane);
    },
    rows! { "Advanced SIMD copy" for (t in DUP_GENERAL):
        "DUP_gen_{t}" "0 {t} 0 01110000 {t} 0 0001 1 Rn:5 Rd:5" => duplicate_register(t);
    },
    rows! { "Advanced SIMD copy" for (lane in INDEXED):
        "INS_gen_{lane}" "0 1 0 01110000 {lane} 0 0011 1 Rn:5 Rd:5" => insert_register(lane);
    },
    rows! { "Advanced SIMD copy" for (lane in INDEXED_TWICE):
        "INS_elem_{lane}" "0 1 1 01110000 {lane} 0 {lane} 1 Rn:5 Rd:5" => insert_element(lane);
    },
    rows! { "Advanced SIMD copy" for (lane in UMOV):
        "UMOV_{lane}" "0 {lane} 0 01110000 {lane} 0 0111 1 Rn:5 Rd:5" => move_unsigned(lane);
    },
    rows! { "Advanced SIMD copy" for (to in SMOV):
        "SMOV_{to}" "0 {to} 0 01110000 {to} 0 0101 1 Rn:5 Rd:5" => move_signed(to);
    },
];

/// A value in every element.
pub(super) fn repeated<'b>(cx: &Context<'b>, t: Arrangement, element: Val<'b>) -> Vector<'b> {
    if cx.b.has_wholes() && t.part == Part::Whole {
        let element = element.trunc(t.lane.value_type());
        let whole = cx.b.packed(PackedOp::Splat, t.lane.ty(), &[element]);
        return Vector::of_whole(cx.b, whole);
    }
    let element = element.zext(Type::U64);
    let half = match t.lane {
        Lane::D => element,
        lane => (element & lane.mask()) * lane.repeated(1),
    };
    match t.part {
        Part::Whole => Vector::both(half),
        Part::Half | Part::Element => Vector::of([half, cx.b.u64(0)]),
    }
}

/// DUP (element).
fn duplicate_element(cx: &Context<'_>, t: Arrangement) {
    let element = cx.element_at("Rn", t.lane, cx.field("index"), Sign::Unsigned);
    cx.set_vector_of("Rd", repeated(cx, t, element));
}

/// DUP (element) to a scalar register.
fn single_element(cx: &Context<'_>, lane: Lane) {
    let element = cx.element_at("Rn", lane, cx.field("index"), Sign::Unsigned);
    cx.set_elements(Arrangement { lane, part: Part::Element }, &[element]);
}

/// DUP (general).
fn duplicate_register(cx: &Context<'_>, t: Arrangement) {
    let element = cx.reg_of(X, "Rn");
    cx.set_vector_of("Rd", repeated(cx, t, element));
}

/// INS (general).
fn insert_register(cx: &Context<'_>, lane: Lane) {
    cx.set_element_of(cx.field("Rd"), lane, cx.field("index"), cx.reg_of(X, "Rn"));
}

/// INS (element).
fn insert_element(cx: &Context<'_>, lane: Lane) {
    let element = cx.element_at("Rn", lane, cx.field("index2"), Sign::Unsigned);
    cx.set_element_of(cx.field("Rd"), lane, cx.field("index"), element.zext(X));
}

fn move_unsigned(cx: &Context<'_>, lane: Lane) {
    cx.set_reg_of("Rd", cx.element_at("Rn", lane, cx.field("index"), Sign::Unsigned));
}

fn move_signed(cx: &Context<'_>, (lane, to): (Lane, Type)) {
    let element = cx.element_at("Rn", lane, cx.field("index"), Sign::Signed);
    cx.set_reg_of("Rd", element.sext(to));
}
