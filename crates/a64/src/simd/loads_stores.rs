//! Loads and stores of vector registers, whole or in part.

use kvrm_ir::{Access, Type, Val};

use super::vector::Vector;
use crate::X;
use crate::context::Context;
use crate::loads_stores::{Address, Mode, PAIR_MODE, PLAIN, PairMode};
use crate::row::{Choice, Row, rows};

/// How much of a register is moved, by `size` and the upper bit of `opc`.
const SIZE: &[Choice<Size>] = &[
    ("B", "00|0", Size::Part(Type::U8)),
    ("H", "01|0", Size::Part(Type::U16)),
    ("S", "10|0", Size::Part(Type::U32)),
    ("D", "11|0", Size::Part(Type::U64)),
    ("Q", "00|1", Size::Whole),
];
/// The same for pairs and literals, by `opc`.
const OPC: &[Choice<Size>] = &[
    ("S", "00", Size::Part(Type::U32)),
    ("D", "01", Size::Part(Type::U64)),
    ("Q", "10", Size::Whole),
];

#[derive(Clone, Copy)]
enum Size {
    /// The low bits; the others become zero.
    Part(Type),
    Whole,
}

impl Size {
    const fn bytes(self) -> u32 {
        match self {
            Size::Part(ty) => ty.bytes(),
            Size::Whole => 16,
        }
    }

    /// The elements that a place for it has.
    const fn elements(self) -> (Type, u32) {
        match self {
            Size::Part(ty) => (ty, 1),
            Size::Whole => (Type::U64, 2),
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Store,
    Load,
}

use Direction::{Load, Store};

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Load/store SIMD&FP register" for (size in SIZE):
        "STR_{size}_uimm" "{size} 111 1 01 {size} 0 imm12:12 Rn:5 Rt:5" => transfer(Mode::Unsigned, size, Store);
        "LDR_{size}_uimm" "{size} 111 1 01 {size} 1 imm12:12 Rn:5 Rt:5" => transfer(Mode::Unsigned, size, Load);
        "STUR_{size}"     "{size} 111 1 00 {size} 0 0 imm9:9 00 Rn:5 Rt:5" => transfer(Mode::Unscaled, size, Store);
        "LDUR_{size}"     "{size} 111 1 00 {size} 1 0 imm9:9 00 Rn:5 Rt:5" => transfer(Mode::Unscaled, size, Load);
        "STR_{size}_post" "{size} 111 1 00 {size} 0 0 imm9:9 01 Rn:5 Rt:5" => transfer(Mode::Post, size, Store);
        "LDR_{size}_post" "{size} 111 1 00 {size} 1 0 imm9:9 01 Rn:5 Rt:5" => transfer(Mode::Post, size, Load);
        "STR_{size}_pre"  "{size} 111 1 00 {size} 0 0 imm9:9 11 Rn:5 Rt:5" => transfer(Mode::Pre, size, Store);
        "LDR_{size}_pre"  "{size} 111 1 00 {size} 1 0 imm9:9 11 Rn:5 Rt:5" => transfer(Mode::Pre, size, Load);
        "STR_{size}_reg"  "{size} 111 1 00 {size} 0 1 Rm:5 option#1 1 size#1 S#1 10 Rn:5 Rt:5"
            => transfer(Mode::Register, size, Store);
        "LDR_{size}_reg"  "{size} 111 1 00 {size} 1 1 Rm:5 option#1 1 size#1 S#1 10 Rn:5 Rt:5"
            => transfer(Mode::Register, size, Load);
    },
    rows! { "Load register (literal), SIMD&FP" for (size in OPC):
        "LDR_lit_{size}" "{size} 011 1 00 imm19:19 Rt:5" => load_literal(size);
    },
    rows! { "Load/store SIMD&FP register pair" for (size in OPC):
        "STNP_{size}" "{size} 101 1 000 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, size, Store);
        "LDNP_{size}" "{size} 101 1 000 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, size, Load);
    },
    rows! { "Load/store SIMD&FP register pair" for (mode in PAIR_MODE, size in OPC):
        "STP_{size}_{mode}" "{size} 101 1 {mode} 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(mode, size, Store);
        "LDP_{size}_{mode}" "{size} 101 1 {mode} 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(mode, size, Load);
    },
];

fn transfer(cx: &Context<'_>, mode: Mode, size: Size, direction: Direction) {
    let address = Address::new(cx, mode, size.bytes());
    access(cx, &["Rt"], size, direction, address.addr);
    address.write_back(cx);
}

fn pair(cx: &Context<'_>, mode: PairMode, size: Size, direction: Direction) {
    let address = Address::of_pair(cx, mode, size.bytes());
    access(cx, &["Rt", "Rt2"], size, direction, address.addr);
    address.write_back(cx);
}

fn load_literal(cx: &Context<'_>, size: Size) {
    access(cx, &["Rt"], size, Load, cx.pc() + cx.signed_field("imm19", 4));
}

/// Loads or stores registers, one after the other.
fn access<'b>(cx: &Context<'b>, fields: &[&str], size: Size, direction: Direction, addr: Val<'b>) {
    let (ty, each) = size.elements();
    if each == 2 && cx.b.has_wholes() {
        return access_wholes(cx, fields, direction, addr);
    }
    let count = each * fields.len() as u32;
    match direction {
        Store => {
            let halves: Vec<_> = fields
                .iter()
                .flat_map(|field| cx.vector_of(field).0[..each as usize].to_vec())
                .collect();
            let place = cx.probe(Access::Write, addr, ty, count);
            for (index, half) in (0..).zip(halves) {
                place.store(PLAIN, index, half.trunc(ty));
            }
        }
        Load => {
            let place = cx.probe(Access::Read, addr, ty, count);
            let loaded: Vec<_> = (0..count).map(|i| place.load(PLAIN, i).zext(X)).collect();
            for (field, halves) in fields.iter().zip(loaded.chunks(each as usize)) {
                let high = halves.get(1).copied().unwrap_or_else(|| cx.b.u64(0));
                cx.set_vector_of(field, Vector::of([halves[0], high]));
            }
        }
    }
}

/// The same for registers of 16 bytes as wholes.
fn access_wholes<'b>(cx: &Context<'b>, fields: &[&str], direction: Direction, addr: Val<'b>) {
    let count = fields.len() as u32;
    match direction {
        Store => {
            let wholes: Vec<_> =
                fields.iter().filter_map(|field| cx.vector_of(field).whole()).collect();
            let place = cx.probe(Access::Write, addr, Type::U128, count);
            (0..).zip(wholes).for_each(|(index, whole)| place.store(PLAIN, index, whole));
        }
        Load => {
            let place = cx.probe(Access::Read, addr, Type::U128, count);
            let loaded: Vec<_> = (0..count).map(|i| place.load(PLAIN, i)).collect();
            for (field, whole) in fields.iter().zip(loaded) {
                cx.set_vector_of(field, Vector::of_whole(cx.b, whole));
            }
        }
    }
}
