//! Loads and stores (C4.1.96), but for exclusives and atomics.

use kvrm_ir::{Access, Order, Type, Val};

use crate::context::Context;
use crate::data_register::extended;
use crate::row::{Row, rows};
use crate::{W, X};

/// How the address comes about.
#[derive(Clone, Copy)]
enum Mode {
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
enum PairMode {
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

const B: Type = Type::U8;
const H: Type = Type::U16;

/// The transfers of the general registers in one addressing mode. The names are the store's and the
/// load's, a size and `suffix`; the encoding is `size`, `$bits`, `opc`, `$rest`.
macro_rules! transfers {
    ($group:literal, $st:literal, $ld:literal, $suffix:literal, $bits:literal, $rest:literal => $mode:expr, $order:expr) => {
        transfers! { @rows $group, $suffix, $bits, $rest => $mode, $order;
            $st "B"  "00" "00" Store(B);
            $ld "B"  "00" "01" Load(B);
            $ld "SB_X" "00" "10" LoadSigned(B, X);
            $ld "SB_W" "00" "11" LoadSigned(B, W);
            $st "H"  "01" "00" Store(H);
            $ld "H"  "01" "01" Load(H);
            $ld "SH_X" "01" "10" LoadSigned(H, X);
            $ld "SH_W" "01" "11" LoadSigned(H, W);
            $st "_W" "10" "00" Store(W);
            $ld "_W" "10" "01" Load(W);
            $ld "SW" "10" "10" LoadSigned(W, X);
            $st "_X" "11" "00" Store(X);
            $ld "_X" "11" "01" Load(X);
        }
    };
    (@rows $group:literal, $suffix:literal, $bits:literal, $rest:literal => $mode:expr, $order:expr;
        $($name:literal $size_name:literal $size:literal $opc:literal $transfer:expr;)*) => {
        &[$(Row {
            name: concat!($name, $size_name, $suffix),
            group: $group,
            encoding: concat!($size, " ", $bits, " ", $opc, " ", $rest),
            allocated: None,
            semantics: |cx| load_store(cx, $mode, $transfer, $order),
        }),*]
    };
}

const PLAIN: Order = Order::Plain;
const ORDERED: Order = Order::AcquireRelease;

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "Load register (literal)":
        "LDR_lit_W" "00 011 0 00 imm19:19 Rt:5" => load_literal(Load(W));
        "LDR_lit_X" "01 011 0 00 imm19:19 Rt:5" => load_literal(Load(X));
        "LDRSW_lit" "10 011 0 00 imm19:19 Rt:5" => load_literal(LoadSigned(W, X));
        "PRFM_lit"  "11 011 0 00 imm19:19 Rt:5" => prefetch();
    },
    transfers! { "Load/store register (unsigned immediate)", "STR", "LDR", "_uimm",
    "111 0 01", "imm12:12 Rn:5 Rt:5" => Mode::Unsigned, PLAIN },
    transfers! { "Load/store register (unscaled immediate)", "STUR", "LDUR", "",
    "111 0 00", "0 imm9:9 00 Rn:5 Rt:5" => Mode::Unscaled, PLAIN },
    transfers! { "Load/store register (immediate post-indexed)", "STR", "LDR", "_post",
    "111 0 00", "0 imm9:9 01 Rn:5 Rt:5" => Mode::Post, PLAIN },
    transfers! { "Load/store register (unprivileged)", "STTR", "LDTR", "",
    "111 0 00", "0 imm9:9 10 Rn:5 Rt:5" => Mode::Unscaled, PLAIN },
    transfers! { "Load/store register (immediate pre-indexed)", "STR", "LDR", "_pre",
    "111 0 00", "0 imm9:9 11 Rn:5 Rt:5" => Mode::Pre, PLAIN },
    // Bit 1 of `option` is clear in the extensions from 8 and 16 bits, which are not allocated here.
    transfers! { "Load/store register (register offset)", "STR", "LDR", "_reg",
    "111 0 00", "1 Rm:5 option:1 1 size:1 S:1 10 Rn:5 Rt:5" => Mode::Register, PLAIN },
    transfers! { "LDAPR/STLR (unscaled immediate)", "STLUR", "LDAPUR", "",
    "011 0 01", "0 imm9:9 00 Rn:5 Rt:5" => Mode::Unscaled, ORDERED },
    rows! { "Prefetch":
        "PRFM_uimm" "11 111 0 01 10 imm12:12 Rn:5 Rt:5" => prefetch();
        "PRFUM"     "11 111 0 00 10 0 imm9:9 00 Rn:5 Rt:5" => prefetch();
        "PRFM_reg"  "11 111 0 00 10 1 Rm:5 option:1 1 size:1 S:1 10 Rn:5 Rt:5" => prefetch();
    },
    rows! { "Load/store no-allocate pair (offset)":
        "STNP_W" "00 101 0 000 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, Store(W));
        "LDNP_W" "00 101 0 000 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, Load(W));
        "STNP_X" "10 101 0 000 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, Store(X));
        "LDNP_X" "10 101 0 000 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, Load(X));
    },
    rows! { "Load/store register pair":
        "STP_W_post" "00 101 0 001 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Post, Store(W));
        "LDP_W_post" "00 101 0 001 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Post, Load(W));
        "LDPSW_post" "01 101 0 001 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Post, LoadSigned(W, X));
        "STP_X_post" "10 101 0 001 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Post, Store(X));
        "LDP_X_post" "10 101 0 001 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Post, Load(X));
        "STP_W_off"  "00 101 0 010 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, Store(W));
        "LDP_W_off"  "00 101 0 010 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, Load(W));
        "LDPSW_off"  "01 101 0 010 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, LoadSigned(W, X));
        "STP_X_off"  "10 101 0 010 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, Store(X));
        "LDP_X_off"  "10 101 0 010 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Offset, Load(X));
        "STP_W_pre"  "00 101 0 011 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Pre, Store(W));
        "LDP_W_pre"  "00 101 0 011 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Pre, Load(W));
        "LDPSW_pre"  "01 101 0 011 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Pre, LoadSigned(W, X));
        "STP_X_pre"  "10 101 0 011 0 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Pre, Store(X));
        "LDP_X_pre"  "10 101 0 011 1 imm7:7 Rt2:5 Rn:5 Rt:5" => pair(PairMode::Pre, Load(X));
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
    let loaded = cx.span(Access::Read, addr, ty.bytes()).load(ty, PLAIN, 0);
    cx.set_reg_of("Rt", widened(transfer, loaded));
}

/// PRFM: a hint that never faults.
fn prefetch(_: &Context<'_>) {}

/// LDR, STR and their siblings.
fn load_store(cx: &Context<'_>, mode: Mode, transfer: Transfer, order: Order) {
    let ty = transfer.memory_type();
    let base = cx.reg_or_sp_of(X, "Rn");
    let offset = match mode {
        Mode::Unsigned => cx.field("imm12").zext(X) << ty.bytes().trailing_zeros(),
        Mode::Unscaled | Mode::Post | Mode::Pre => cx.signed_field("imm9", 1),
        Mode::Register => register_offset(cx, ty),
    };
    let moved = base + offset;
    let addr = if matches!(mode, Mode::Post) { base } else { moved };
    if order == ORDERED {
        cx.check_aligned(addr, ty.bytes());
    }
    match transfer {
        Store(_) => {
            let value = cx.reg_of(X, "Rt").trunc(ty);
            cx.span(Access::Write, addr, ty.bytes()).store(order, 0, value);
        }
        Load(_) | LoadSigned(..) => {
            let loaded = cx.span(Access::Read, addr, ty.bytes()).load(ty, order, 0);
            cx.set_reg_of("Rt", widened(transfer, loaded));
        }
    }
    if matches!(mode, Mode::Post | Mode::Pre) {
        cx.set_reg_or_sp_of("Rn", moved);
    }
}

/// The offset register, extended from 32 bits or not, and scaled by the access size or not.
fn register_offset<'b>(cx: &Context<'b>, ty: Type) -> Val<'b> {
    let option = (cx.field("option") << 2) | cx.field("size") | 2u64;
    let offset = extended(X, cx.reg_of(X, "Rm"), option);
    cx.flag("S").select(offset << ty.bytes().trailing_zeros(), offset)
}

/// LDP, STP and their siblings.
fn pair(cx: &Context<'_>, mode: PairMode, transfer: Transfer) {
    let ty = transfer.memory_type();
    let size = ty.bytes();
    let base = cx.reg_or_sp_of(X, "Rn");
    let moved = base + cx.signed_field("imm7", size);
    let addr = if matches!(mode, PairMode::Post) { base } else { moved };
    match transfer {
        Store(_) => {
            let values = ["Rt", "Rt2"].map(|field| cx.reg_of(ty, field));
            let span = cx.span(Access::Write, addr, 2 * size);
            span.store(PLAIN, 0, values[0]);
            span.store(PLAIN, size.into(), values[1]);
        }
        Load(_) | LoadSigned(..) => {
            let span = cx.span(Access::Read, addr, 2 * size);
            let first = span.load(ty, PLAIN, 0);
            let second = span.load(ty, PLAIN, size.into());
            cx.set_reg_of("Rt", widened(transfer, first));
            cx.set_reg_of("Rt2", widened(transfer, second));
        }
    }
    if matches!(mode, PairMode::Post | PairMode::Pre) {
        cx.set_reg_or_sp_of("Rn", moved);
    }
}
