//! Load/store exclusive, ordered, and compare and swap (C4.1.96, "Load/store exclusive").

use kvrm_ir::{Access, Order, Type, Val};

use crate::context::{Context, Span};
use crate::row::{Row, rows};
use crate::state::{EXCLUSIVE_ADDR, EXCLUSIVE_HIGH, EXCLUSIVE_LEN, EXCLUSIVE_LOW};
use crate::{W, X};

const B: Type = Type::U8;
const H: Type = Type::U16;
const ORDERED: Order = Order::AcquireRelease;

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "Load/store exclusive register":
        "STXRB" "00 001000 0 0 0 Rs:5 o0:1 (11111) Rn:5 Rt:5" => store_exclusive(B);
        "LDXRB" "00 001000 0 1 0 (11111) o0:1 (11111) Rn:5 Rt:5" => load_exclusive(B);
        "STXRH" "01 001000 0 0 0 Rs:5 o0:1 (11111) Rn:5 Rt:5" => store_exclusive(H);
        "LDXRH" "01 001000 0 1 0 (11111) o0:1 (11111) Rn:5 Rt:5" => load_exclusive(H);
        "STXR_W" "10 001000 0 0 0 Rs:5 o0:1 (11111) Rn:5 Rt:5" => store_exclusive(W);
        "LDXR_W" "10 001000 0 1 0 (11111) o0:1 (11111) Rn:5 Rt:5" => load_exclusive(W);
        "STXR_X" "11 001000 0 0 0 Rs:5 o0:1 (11111) Rn:5 Rt:5" => store_exclusive(X);
        "LDXR_X" "11 001000 0 1 0 (11111) o0:1 (11111) Rn:5 Rt:5" => load_exclusive(X);
    },
    rows! { "Load/store exclusive pair":
        "STXP_W" "10 001000 0 0 1 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5" => store_exclusive_pair_w();
        "LDXP_W" "10 001000 0 1 1 (11111) o0:1 Rt2:5 Rn:5 Rt:5" => load_exclusive_pair_w();
        "STXP_X" "11 001000 0 0 1 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5" => store_exclusive_pair_x();
        "LDXP_X" "11 001000 0 1 1 (11111) o0:1 Rt2:5 Rn:5 Rt:5" => load_exclusive_pair_x();
    },
    rows! { "Load/store ordered":
        "STLRB" "00 001000 1 0 0 (11111) o0:1 (11111) Rn:5 Rt:5" => store_ordered(B);
        "LDARB" "00 001000 1 1 0 (11111) o0:1 (11111) Rn:5 Rt:5" => load_ordered(B);
        "STLRH" "01 001000 1 0 0 (11111) o0:1 (11111) Rn:5 Rt:5" => store_ordered(H);
        "LDARH" "01 001000 1 1 0 (11111) o0:1 (11111) Rn:5 Rt:5" => load_ordered(H);
        "STLR_W" "10 001000 1 0 0 (11111) o0:1 (11111) Rn:5 Rt:5" => store_ordered(W);
        "LDAR_W" "10 001000 1 1 0 (11111) o0:1 (11111) Rn:5 Rt:5" => load_ordered(W);
        "STLR_X" "11 001000 1 0 0 (11111) o0:1 (11111) Rn:5 Rt:5" => store_ordered(X);
        "LDAR_X" "11 001000 1 1 0 (11111) o0:1 (11111) Rn:5 Rt:5" => load_ordered(X);
        "LDAPRB" "00 111 0 00 1 0 1 (11111) 1 100 00 Rn:5 Rt:5" => load_ordered(B);
        "LDAPRH" "01 111 0 00 1 0 1 (11111) 1 100 00 Rn:5 Rt:5" => load_ordered(H);
        "LDAPR_W" "10 111 0 00 1 0 1 (11111) 1 100 00 Rn:5 Rt:5" => load_ordered(W);
        "LDAPR_X" "11 111 0 00 1 0 1 (11111) 1 100 00 Rn:5 Rt:5" => load_ordered(X);
    },
    rows! { "Compare and swap":
        "CASB"  "00 001000 1 L:1 1 Rs:5 o0:1 11111 Rn:5 Rt:5" => compare_and_swap(B);
        "CASH"  "01 001000 1 L:1 1 Rs:5 o0:1 11111 Rn:5 Rt:5" => compare_and_swap(H);
        "CAS_W" "10 001000 1 L:1 1 Rs:5 o0:1 11111 Rn:5 Rt:5" => compare_and_swap(W);
        "CAS_X" "11 001000 1 L:1 1 Rs:5 o0:1 11111 Rn:5 Rt:5" => compare_and_swap(X);
        "CASP_W" "00 001000 0 L:1 1 Rs:5 o0:1 11111 Rn:5 Rt:5", if pairs_are_even => compare_and_swap_pair_w();
        "CASP_X" "01 001000 0 L:1 1 Rs:5 o0:1 11111 Rn:5 Rt:5", if pairs_are_even => compare_and_swap_pair_x();
    },
];

/// The aligned, checked memory at the base register.
pub(crate) fn aligned_span<'b>(cx: &Context<'b>, access: Access, len: u32) -> Span<'b> {
    let addr = cx.reg_or_sp_of(X, "Rn");
    cx.check_aligned(addr, len);
    cx.span(access, addr, len)
}

/// Marks memory in the monitor, with what it holds.
fn mark_exclusive<'b>(cx: &Context<'b>, span: Span<'b>, len: u32, low: Val<'b>, high: Val<'b>) {
    cx.b.write_var(EXCLUSIVE_ADDR, span.addr);
    cx.b.write_var(EXCLUSIVE_LEN, cx.b.u32(len));
    cx.b.write_var(EXCLUSIVE_LOW, low.zext(X));
    cx.b.write_var(EXCLUSIVE_HIGH, high.zext(X));
}

/// LDXR, LDAXR.
fn load_exclusive(cx: &Context<'_>, ty: Type) {
    let span = aligned_span(cx, Access::Read, ty.bytes());
    let value = span.load(ty, ORDERED, 0);
    mark_exclusive(cx, span, ty.bytes(), value, cx.b.u64(0));
    cx.set_reg_of("Rt", value);
}

/// LDXP, LDAXP of two words: one 64-bit access.
fn load_exclusive_pair_w(cx: &Context<'_>) {
    let span = aligned_span(cx, Access::Read, 8);
    let both = span.load(X, ORDERED, 0);
    mark_exclusive(cx, span, 8, both, cx.b.u64(0));
    cx.set_reg_of("Rt", both.trunc(W));
    cx.set_reg_of("Rt2", both >> 32);
}

/// LDXP, LDAXP of two doublewords. The two loads may see different moments; then the store-exclusive
/// fails, which is all the architecture promises.
fn load_exclusive_pair_x(cx: &Context<'_>) {
    let span = aligned_span(cx, Access::Read, 16);
    let (low, high) = (span.load(X, ORDERED, 0), span.load(X, ORDERED, 8));
    mark_exclusive(cx, span, 16, low, high);
    cx.set_reg_of("Rt", low);
    cx.set_reg_of("Rt2", high);
}

/// `ExclusiveMonitorsPass`, then `store` if it does: `store` says whether memory still had what the
/// monitor saw. The status register becomes 0 if the store took place.
fn store_if_exclusive<'b>(cx: &Context<'b>, len: u32, store: impl FnOnce(Span<'b>) -> Val<'b>) {
    let addr = cx.reg_or_sp_of(X, "Rn");
    cx.check_aligned(addr, len);
    let marked =
        cx.b.read_var(EXCLUSIVE_ADDR).eq(addr) & cx.b.read_var(EXCLUSIVE_LEN).eq(u64::from(len));
    let [stored] = cx.b.if_else(
        marked,
        || [store(cx.span(Access::ReadWrite, addr, len))],
        || [cx.b.bool(false)],
    );
    cx.clear_exclusive();
    cx.set_reg_of("Rs", (!stored).zext(W));
}

/// STXR, STLXR.
fn store_exclusive(cx: &Context<'_>, ty: Type) {
    let seen = cx.b.read_var(EXCLUSIVE_LOW);
    let new = cx.reg_of(X, "Rt").trunc(ty);
    store_if_exclusive(cx, ty.bytes(), |span| {
        cx.b.cas(span.addr, seen.trunc(ty), new).zext(X).eq(seen)
    });
}

/// STXP, STLXP of two words.
fn store_exclusive_pair_w(cx: &Context<'_>) {
    let seen = cx.b.read_var(EXCLUSIVE_LOW);
    let new = cx.reg_of(W, "Rt").zext(X) | (cx.reg_of(X, "Rt2") << 32);
    store_if_exclusive(cx, 8, |span| cx.b.cas(span.addr, seen, new).eq(seen));
}

/// STXP, STLXP of two doublewords.
fn store_exclusive_pair_x(cx: &Context<'_>) {
    let seen = [cx.b.read_var(EXCLUSIVE_LOW), cx.b.read_var(EXCLUSIVE_HIGH)];
    let new = [cx.reg_of(X, "Rt"), cx.reg_of(X, "Rt2")];
    store_if_exclusive(cx, 16, |span| {
        let old = cx.b.cas128(span.addr, seen, new);
        old[0].eq(seen[0]) & old[1].eq(seen[1])
    });
}

/// LDAR, LDLAR, LDAPR.
fn load_ordered(cx: &Context<'_>, ty: Type) {
    let value = aligned_span(cx, Access::Read, ty.bytes()).load(ty, ORDERED, 0);
    cx.set_reg_of("Rt", value);
}

/// STLR, STLLR.
fn store_ordered(cx: &Context<'_>, ty: Type) {
    let value = cx.reg_of(X, "Rt").trunc(ty);
    aligned_span(cx, Access::Write, ty.bytes()).store(ORDERED, 0, value);
}

/// CAS, CASA, CASL, CASAL: always ordered, which the weaker ones allow.
fn compare_and_swap(cx: &Context<'_>, ty: Type) {
    let (expected, new) = (cx.reg_of(X, "Rs").trunc(ty), cx.reg_of(X, "Rt").trunc(ty));
    let span = aligned_span(cx, Access::ReadWrite, ty.bytes());
    cx.set_reg_of("Rs", cx.b.cas(span.addr, expected, new));
}

/// Pairs of registers start at an even one.
fn pairs_are_even(word: u32) -> bool {
    word & 1 == 0 && word >> 16 & 1 == 0
}

/// The register after the one a field names.
fn second<'b>(cx: &Context<'b>, field: &str) -> Val<'b> {
    cx.field(field) | 1u64
}

/// CASP of two words: one 64-bit access.
fn compare_and_swap_pair_w(cx: &Context<'_>) {
    let joined = |field| cx.reg_of(W, field).zext(X) | (cx.reg(X, second(cx, field)) << 32);
    let (expected, new) = (joined("Rs"), joined("Rt"));
    let span = aligned_span(cx, Access::ReadWrite, 8);
    let old = cx.b.cas(span.addr, expected, new);
    cx.set_reg_of("Rs", old.trunc(W));
    cx.set_reg(second(cx, "Rs"), old >> 32);
}

/// CASP of two doublewords.
fn compare_and_swap_pair_x(cx: &Context<'_>) {
    let both = |field| [cx.reg_of(X, field), cx.reg(X, second(cx, field))];
    let (expected, new) = (both("Rs"), both("Rt"));
    let span = aligned_span(cx, Access::ReadWrite, 16);
    let old = cx.b.cas128(span.addr, expected, new);
    cx.set_reg_of("Rs", old[0]);
    cx.set_reg(second(cx, "Rs"), old[1]);
}
