//! Loads and stores (C4.1.96), but for exclusives and atomics.

use kvrm_ir::{Access, Order, Type, Val};

use crate::context::Context;
use crate::data_register::extended;
use crate::row::{Choice, Row, rows};
use crate::{SIZE, W, X};

/// How the address comes about.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// Base plus `imm12` times the size.
    Unsigned,
    /// Base plus `imm9`.
    Unscaled,
    /// The base, which then grows by `imm9`.
    Post,
    /// The base after it has grown by `imm9`.
    Pre,
    /// Base plus an extended register.
    Register,
}

/// How the address of a pair comes about.
#[derive(Clone, Copy)]
pub(crate) enum PairMode {
    /// The base, which then grows by the offset.
    Post,
    /// The base after it has grown by the offset.
    Pre,
    /// Base plus offset.
    Offset,
}

/// What is moved.
#[derive(Clone, Copy)]
enum Transfer {
    Store(Type),
    /// Loaded, and zero-extended.
    Load(Type),
    /// Loaded, and sign-extended to the second type.
    LoadSigned(Type, Type),
}

use Transfer::{Load, LoadSigned, Store};

impl Transfer {
    const fn memory_type(self) -> Type {
        match self {
            Store(ty) | Load(ty) | LoadSigned(ty, _) => ty,
        }
    }
}

/// Sizes that are sign-extended to either width of register.
const NARROW: &[Choice<Type>] = &[("B", "00", Type::U8), ("H", "01", Type::U16)];
/// The width that a load sign-extends to, by the second bit of `opc`.
const TO: &[Choice<Type>] = &[("X", "0", X), ("W", "1", W)];
/// The sizes of the registers of a pair, by the bits that Arm calls `opc`.
const OPC: &[Choice<Type>] = &[("_W", "00", W), ("_X", "10", X)];
/// Addressing modes of pairs.
pub(crate) const PAIR_MODE: &[Choice<PairMode>] = &[
    ("post", "001", PairMode::Post),
    ("off", "010", PairMode::Offset),
    ("pre", "011", PairMode::Pre),
];

/// The transfers of the general registers in one addressing mode. Names are `ST` or `LD`, `$infix`, a size
/// and `$suffix`; encodings are `size`, `$bits`, `opc`, `$rest`.
macro_rules! transfers {
    ($group:literal, $infix:literal, $suffix:literal, $bits:literal, $rest:literal => $mode:expr, $order:expr) => {
        transfers! { $group, $mode, $order;
            (size in SIZE) concat!("ST", $infix, "{size}", $suffix),
                concat!("{size} ", $bits, " 00 ", $rest), Store(size);
            (size in SIZE) concat!("LD", $infix, "{size}", $suffix),
                concat!("{size} ", $bits, " 01 ", $rest), Load(size);
            (size in NARROW, to in TO) concat!("LD", $infix, "S{size}_{to}", $suffix),
                concat!("{size} ", $bits, " 1{to} ", $rest), LoadSigned(size, to);
            () concat!("LD", $infix, "SW", $suffix),
                concat!("10 ", $bits, " 10 ", $rest), LoadSigned(W, X);
        }
    };
    ($group:literal, $mode:expr, $order:expr; $($axes:tt $name:expr, $encoding:expr, $transfer:expr;)*) => {
        &[$(rows!(@row $axes $group, $name, $encoding, [], load_store($mode, $transfer, $order))),*]
    };
}

pub(crate) const PLAIN: Order = Order::Plain;
const ORDERED: Order = Order::AcquireRelease;

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "Load register (literal)":
        "LDR_lit_W" "00 011 0 00 imm19:19 Rt:5" => load_literal(Load(W));
        "LDR_lit_X" "01 011 0 00 imm19:19 Rt:5" => load_literal(Load(X));
        "LDRSW_lit" "10 011 0 00 imm19:19 Rt:5" => load_literal(LoadSigned(W, X));
        "PRFM_lit"  "11 011 0 00 imm19:19 Rt:5" => prefetch();
    },
    transfers! { "Load/store register (unsigned immediate)", "R", "_uimm",
    "111 0 01", "imm12:12 Rn:5 Rt:5" => Mode::Unsigned, PLAIN },
    transfers! { "Load/store register (unscaled immediate)", "UR", "",
    "111 0 00", "0 imm9:9 00 Rn:5 Rt:5" => Mode::Unscaled, PLAIN },
    transfers! { "Load/store register (immediate post-indexed)", "R", "_post",
    "111 0 00", "0 imm9:9 01 Rn:5 Rt:5" => Mode::Post, PLAIN },
    transfers! { "Load/store register (unprivileged)", "TR", "",
    "111 0 00", "0 imm9:9 10 Rn:5 Rt:5" => Mode::Unscaled, PLAIN },
    transfers! { "Load/store register (immediate pre-indexed)", "R", "_pre",
    "111 0 00", "0 imm9:9 11 Rn:5 Rt:5" => Mode::Pre, PLAIN },
    // Bit 1 of `option` is clear in the extensions from 8 and 16 bits, which are not allocated here.
    transfers! { "Load/store register (register offset)", "R", "_reg",
    "111 0 00", "1 Rm:5 option#1 1 size#1 S#1 10 Rn:5 Rt:5" => Mode::Register, PLAIN },
    rows! { "LDAPR/STLR (unscaled immediate)" for (size in SIZE):
        "STLUR{size}"  "{size} 011 0 01 00 0 imm9:9 00 Rn:5 Rt:5" => load_store(Mode::Unscaled, Store(size), ORDERED);
        "LDAPUR{size}" "{size} 011 0 01 01 0 imm9:9 00 Rn:5 Rt:5" => load_store(Mode::Unscaled, Load(size), ORDERED);
    },
    rows! { "LDAPR/STLR (unscaled immediate)" for (size in NARROW, to in TO):
        "LDAPURS{size}_{to}" "{size} 011 0 01 1{to} 0 imm9:9 00 Rn:5 Rt:5" => load_store(Mode::Unscaled, LoadSigned(size, to), ORDERED);
    },
    rows! { "LDAPR/STLR (unscaled immediate)":
        "LDAPURSW" "10 011 0 01 10 0 imm9:9 00 Rn:5 Rt:5" => load_store(Mode::Unscaled, LoadSigned(W, X), ORDERED);
    },
    rows! { "Prefetch":
        "PRFM_uimm" "11 111 0 01 10 imm12:12 Rn:5 Rt:5" => prefetch();
        "PRFUM"     "11 111 0 00 10 0 imm9:9 00 Rn:5 Rt:5" => prefetch();
        "PRFM_reg"  "11 111 0 00 10 1 Rm:5 option:1 1 size:1 S:1 10 Rn:5 Rt:5" => prefetch();
    },
    rows! { "Load/store no-allocate pair (offset)" for (opc in OPC):
        "STNP{opc}" "{opc} 101 0 000 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, Store(opc));
        "LDNP{opc}" "{opc} 101 0 000 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, Load(opc));
    },
    rows! { "Load/store register pair" for (mode in PAIR_MODE, opc in OPC):
        "STP{opc}_{mode}" "{opc} 101 0 {mode} 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(mode, Store(opc));
        "LDP{opc}_{mode}" "{opc} 101 0 {mode} 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(mode, Load(opc));
    },
    rows! { "Load/store register pair" for (mode in PAIR_MODE):
        "LDPSW_{mode}" "01 101 0 {mode} 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(mode, LoadSigned(W, X));
    },
];

/// Extends what was loaded to the register's width.
fn widened(transfer: Transfer, loaded: Val<'_>) -> Val<'_> {
    match transfer {
        LoadSigned(_, to) => loaded.sext(to),
        Store(_) | Load(_) => loaded.zext(X),
    }
}

/// LDR (literal), LDRSW (literal).
fn load_literal(cx: &Context<'_>, transfer: Transfer) {
    let ty = transfer.memory_type();
    let addr = cx.pc() + cx.signed_field("imm19", 4);
    cx.set_reg_of("Rt", widened(transfer, cx.load(ty, PLAIN, addr)));
}

/// PRFM: a hint that never faults.
fn prefetch(_: &Context<'_>) {}

/// The address of an access, and what the base register becomes if it changes.
pub(crate) struct Address<'b> {
    pub(crate) addr: Val<'b>,
    moved: Option<Val<'b>>,
}

impl<'b> Address<'b> {
    /// Of an access of `bytes` bytes.
    pub(crate) fn new(cx: &Context<'b>, mode: Mode, bytes: u32) -> Self {
        let base = cx.reg_or_sp_of(X, "Rn");
        let offset = match mode {
            Mode::Unsigned => cx.field("imm12").zext(X) << bytes.trailing_zeros(),
            Mode::Unscaled | Mode::Post | Mode::Pre => cx.signed_field("imm9", 1),
            Mode::Register => register_offset(cx, bytes),
        };
        let moved = base + offset;
        match mode {
            Mode::Post => Address { addr: base, moved: Some(moved) },
            Mode::Pre => Address { addr: moved, moved: Some(moved) },
            Mode::Unsigned | Mode::Unscaled | Mode::Register => {
                Address { addr: moved, moved: None }
            }
        }
    }

    /// Of two accesses of `bytes` bytes each.
    pub(crate) fn of_pair(cx: &Context<'b>, mode: PairMode, bytes: u32) -> Self {
        let base = cx.reg_or_sp_of(X, "Rn");
        let moved = base + cx.signed_field("imm7", bytes);
        match mode {
            PairMode::Post => Address { addr: base, moved: Some(moved) },
            PairMode::Pre => Address { addr: moved, moved: Some(moved) },
            PairMode::Offset => Address { addr: moved, moved: None },
        }
    }

    /// Changes the base register, after the access.
    pub(crate) fn write_back(&self, cx: &Context<'b>) {
        if let Some(moved) = self.moved {
            cx.set_reg_or_sp_of("Rn", moved);
        }
    }
}

/// LDR, STR and their siblings.
fn load_store(cx: &Context<'_>, mode: Mode, transfer: Transfer, order: Order) {
    let ty = transfer.memory_type();
    let address = Address::new(cx, mode, ty.bytes());
    if order == ORDERED {
        cx.check_aligned(address.addr, ty.bytes());
    }
    match transfer {
        Store(_) => {
            cx.store(order, address.addr, cx.reg_of(X, "Rt").trunc(ty));
        }
        Load(_) | LoadSigned(..) => {
            cx.set_reg_of("Rt", widened(transfer, cx.load(ty, order, address.addr)));
        }
    }
    address.write_back(cx);
}

/// The offset register, extended from 32 bits or not, and scaled by the access size or not.
fn register_offset<'b>(cx: &Context<'b>, bytes: u32) -> Val<'b> {
    let option = cx.shape("option") << 2 | cx.shape("size") | 2;
    let offset = extended(X, cx.reg_of(X, "Rm"), option);
    if cx.shape("S") == 1 { offset << bytes.trailing_zeros() } else { offset }
}

/// LDP, STP and their siblings.
fn pair(cx: &Context<'_>, mode: PairMode, transfer: Transfer) {
    let ty = transfer.memory_type();
    let address = Address::of_pair(cx, mode, ty.bytes());
    match transfer {
        Store(_) => {
            let values = ["Rt", "Rt2"].map(|field| cx.reg_of(ty, field));
            let place = cx.probe(Access::Write, address.addr, ty, 2);
            place.store(PLAIN, 0, values[0]);
            place.store(PLAIN, 1, values[1]);
        }
        Load(_) | LoadSigned(..) => {
            let place = cx.probe(Access::Read, address.addr, ty, 2);
            let (first, second) = (place.load(PLAIN, 0), place.load(PLAIN, 1));
            cx.set_reg_of("Rt", widened(transfer, first));
            cx.set_reg_of("Rt2", widened(transfer, second));
        }
    }
    address.write_back(cx);
}
