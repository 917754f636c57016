//! LD1 to LD4 and ST1 to ST4: structures of up to four elements, whose members are in registers of their own.

use kvrm_ir::{Access, Type, Val};

use super::arrangement::{ALL, Arrangement, Lane, Part};
use super::copy::repeated;
use super::vector::Vector;
use crate::context::Context;
use crate::loads_stores::PLAIN;
use crate::row::{Choice, Row, rows};
use crate::{Sign, X};

/// The direction, by the bit that Arm calls `L`.
const DIRECTION: &[Choice<Direction>] =
    &[("ST", "0", Direction::Store), ("LD", "1", Direction::Load)];
/// Members of a structure, by the operation code.
const MEMBERS: &[Choice<u64>] = &[("4", "0000", 4), ("3", "0100", 3), ("2", "1000", 2)];
/// Registers that are moved one after the other, by the operation code.
const REGISTERS: &[Choice<u64>] =
    &[("1", "0111", 1), ("2", "1010", 2), ("3", "0110", 3), ("4", "0010", 4)];
/// Arrangements that are moved as they are.
const MOVED: &[Choice<Arrangement>] = &[
    ("8B", "0|00", t(Lane::B, Part::Half)),
    ("16B", "1|00", t(Lane::B, Part::Whole)),
    ("4H", "0|01", t(Lane::H, Part::Half)),
    ("8H", "1|01", t(Lane::H, Part::Whole)),
    ("2S", "0|10", t(Lane::S, Part::Half)),
    ("4S", "1|10", t(Lane::S, Part::Whole)),
    ("1D", "0|11", t(Lane::D, Part::Half)),
    ("2D", "1|11", t(Lane::D, Part::Whole)),
];
/// Members of a single structure, by R and the last bit of the operation code.
const SINGLE: &[Choice<u64>] =
    &[("1", "0|0", 1), ("2", "1|0", 2), ("3", "0|1", 3), ("4", "1|1", 4)];
/// Elements of one, by Q, the rest of the operation code, and S with `size`.
const ELEMENT: &[Choice<Lane>] = &[
    ("B", "Q:1|00|S:1 size:2", Lane::B),
    ("H", "Q:1|01|S:1 size:1 0", Lane::H),
    ("S", "Q:1|10|S:1 00", Lane::S),
    ("D", "Q:1|10|0 01", Lane::D),
];
/// Whether the base register changes, by two groups of bits.
const BASE: &[Choice<Base>] = &[("", "0|00000", Base::Kept), ("post_", "1|Rm:5", Base::Moved)];

const fn t(lane: Lane, part: Part) -> Arrangement {
    Arrangement { lane, part }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Store,
    Load,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Kept,
    /// By a register, or if that is register 31 by what was moved.
    Moved,
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD load/store multiple structures"
        for (direction in DIRECTION, members in MEMBERS, base in BASE, t in ALL):
        "{direction}{members}_{base}{t}" "0 {t} 001100 {base} {direction} 0 {base} {members} {t} Rn:5 Rt:5"
            => interleaved(direction, members, base, t);
    },
    rows! { "Advanced SIMD load/store multiple structures"
        for (direction in DIRECTION, registers in REGISTERS, base in BASE, t in MOVED):
        "{direction}1_{registers}_{base}{t}" "0 {t} 001100 {base} {direction} 0 {base} {registers} {t} Rn:5 Rt:5"
            => consecutive(direction, registers, base, t);
    },
    rows! { "Advanced SIMD load/store single structure"
        for (direction in DIRECTION, members in SINGLE, base in BASE, lane in ELEMENT):
        "{direction}{members}_elem_{base}{lane}"
            "0 {lane} 001101 {base} {direction} {members} {base} {lane} {members} {lane} Rn:5 Rt:5"
            => single(direction, members, base, lane);
    },
    rows! { "Advanced SIMD load/store single structure" for (members in SINGLE, base in BASE, t in MOVED):
        "LD{members}R_{base}{t}" "0 {t} 001101 {base} 1 {members} {base} 11{members} 0 {t} Rn:5 Rt:5"
            => replicated(members, base, t);
    },
];

/// The register with that number from `Rt` on; V0 follows V31.
fn register<'b>(cx: &Context<'b>, number: u64) -> Val<'b> {
    (cx.field("Rt") + number) & 31u64
}

/// Changes the base register after `bytes` bytes were moved.
fn write_back<'b>(cx: &Context<'b>, mode: Base, base: Val<'b>, bytes: u64) {
    if mode == Base::Moved {
        let register = cx.field("Rm");
        let offset = register.eq(31u64).select(cx.b.u64(bytes), cx.reg(X, register));
        cx.set_reg_or_sp_of("Rn", base + offset);
    }
}

/// The elements of several vectors, the first of each first.
fn in_turn<'b>(vectors: &[Vector<'b>], t: Arrangement) -> Vec<Val<'b>> {
    let elements: Vec<_> = vectors.iter().map(|v| v.elements(t, Sign::Unsigned)).collect();
    (0..t.count()).flat_map(|i| elements.iter().map(move |own| own[i])).collect()
}

/// Words of memory as halves of vectors.
fn as_vectors<'b>(cx: &Context<'b>, words: &[Val<'b>], t: Arrangement) -> Vec<Vector<'b>> {
    match t.part {
        Part::Whole => words.chunks(2).map(|pair| Vector::of([pair[0], pair[1]])).collect(),
        Part::Half | Part::Element => {
            words.iter().map(|word| Vector::of([*word, cx.b.u64(0)])).collect()
        }
    }
}

/// Loads the words of some registers, or stores what `stored` gives.
fn move_words<'b>(
    cx: &Context<'b>,
    base: Val<'b>,
    words: u64,
    stored: Option<Vec<Val<'b>>>,
) -> Vec<Val<'b>> {
    let access = if stored.is_some() { Access::Write } else { Access::Read };
    let place = cx.probe(access, base, Type::U64, words as u32);
    match stored {
        Some(stored) => {
            (0..).zip(stored).for_each(|(index, word)| place.store(PLAIN, index, word));
            Vec::new()
        }
        None => (0..words as u32).map(|index| place.load(PLAIN, index)).collect(),
    }
}

/// Words that one register takes.
const fn words_of(t: Arrangement) -> u64 {
    match t.part {
        Part::Whole => 2,
        Part::Half | Part::Element => 1,
    }
}

/// LD1, ST1 of whole registers.
fn consecutive(cx: &Context<'_>, direction: Direction, registers: u64, mode: Base, t: Arrangement) {
    let base = cx.reg_or_sp_of(X, "Rn");
    let words = registers * words_of(t);
    let stored = (direction == Direction::Store).then(|| {
        let own = |i| cx.vector(register(cx, i)).0.into_iter().take(words_of(t) as usize);
        (0..registers).flat_map(own).collect()
    });
    let loaded = move_words(cx, base, words, stored);
    for (i, vector) in (0..).zip(as_vectors(cx, &loaded, t)) {
        cx.set_vector(register(cx, i), vector);
    }
    write_back(cx, mode, base, 8 * words);
}

/// LD2, LD3, LD4, ST2, ST3, ST4.
fn interleaved<'b>(
    cx: &Context<'b>,
    direction: Direction,
    members: u64,
    mode: Base,
    t: Arrangement,
) {
    let base = cx.reg_or_sp_of(X, "Rn");
    let words = members * words_of(t);
    let stored = (direction == Direction::Store).then(|| {
        let vectors: Vec<_> = (0..members).map(|i| cx.vector(register(cx, i))).collect();
        let elements = in_turn(&vectors, t);
        let per_word = 64 / t.lane.bits() as usize;
        let word = |own: &[Val<'b>]| Vector::from_elements(cx.b, t.lane, own).0[0];
        elements.chunks(per_word).map(word).collect()
    });
    let loaded = move_words(cx, base, words, stored);
    let half = Arrangement { part: Part::Half, ..t };
    let elements: Vec<_> = loaded
        .iter()
        .flat_map(|word| Vector::of([*word, cx.b.u64(0)]).elements(half, Sign::Unsigned))
        .collect();
    if direction == Direction::Load {
        for i in 0..members {
            let own: Vec<_> =
                elements.iter().skip(i as usize).step_by(members as usize).copied().collect();
            cx.set_vector(register(cx, i), Vector::from_elements(cx.b, t.lane, &own));
        }
    }
    write_back(cx, mode, base, 8 * words);
}

/// Which element of the registers a single structure is in.
fn element_index<'b>(cx: &Context<'b>, lane: Lane) -> Val<'b> {
    let q = cx.field("Q");
    match lane {
        Lane::B => (q << 3) | (cx.field("S") << 2) | cx.field("size"),
        Lane::H => (q << 2) | (cx.field("S") << 1) | cx.field("size"),
        Lane::S => (q << 1) | cx.field("S"),
        Lane::D => q,
    }
}

/// One structure, in the same element of each register.
fn single(cx: &Context<'_>, direction: Direction, members: u64, mode: Base, lane: Lane) {
    let base = cx.reg_or_sp_of(X, "Rn");
    let index = element_index(cx, lane);
    let (ty, count) = (lane.ty(), members as u32);
    match direction {
        Direction::Store => {
            let element = |i| cx.element_of(register(cx, i), lane, index, Sign::Unsigned);
            let elements: Vec<_> = (0..members).map(element).collect();
            let place = cx.probe(Access::Write, base, ty, count);
            for (i, element) in (0..).zip(elements) {
                place.store(PLAIN, i, element.trunc(ty));
            }
        }
        Direction::Load => {
            let place = cx.probe(Access::Read, base, ty, count);
            let loaded: Vec<_> = (0..count).map(|i| place.load(PLAIN, i).zext(X)).collect();
            for (i, element) in (0..).zip(loaded) {
                cx.set_element_of(register(cx, i), lane, index, element);
            }
        }
    }
    write_back(cx, mode, base, members * u64::from(ty.bytes()));
}

/// LD1R to LD4R: one structure, in every element of each register.
fn replicated(cx: &Context<'_>, members: u64, mode: Base, t: Arrangement) {
    let base = cx.reg_or_sp_of(X, "Rn");
    let ty = t.lane.ty();
    let place = cx.probe(Access::Read, base, ty, members as u32);
    let loaded: Vec<_> = (0..members as u32).map(|i| place.load(PLAIN, i).zext(X)).collect();
    for (i, element) in (0..).zip(loaded) {
        cx.set_vector(register(cx, i), repeated(cx, t, element));
    }
    write_back(cx, mode, base, members * u64::from(ty.bytes()));
}
