//! Load/store exclusive, ordered, and compare and swap (C4.1.96, "Load/store exclusive").

use kvrm_ir::{Access, Checked, Order, Type, Val};

use crate::context::Context;
use crate::row::{Row, rows};
use crate::state::{EXCLUSIVE_ADDR, EXCLUSIVE_HIGH, EXCLUSIVE_LEN, EXCLUSIVE_LOW};
use crate::{SIZE, W, X};

const ORDERED: Order = Order::AcquireRelease;

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "Load/store exclusive register" for (size in SIZE):
        "STXR{size}" "{size} 001000 0 0 0 Rs:5 o0:1 (11111) Rn:5 Rt:5" => store_exclusive(size);
        "LDXR{size}" "{size} 001000 0 1 0 (11111) o0:1 (11111) Rn:5 Rt:5" => load_exclusive(size);
    },
    rows! { "Load/store exclusive pair":
        "STXP_W" "10 001000 0 0 1 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5" => store_exclusive_pair_w();
        "LDXP_W" "10 001000 0 1 1 (11111) o0:1 Rt2:5 Rn:5 Rt:5" => load_exclusive_pair_w();
        "STXP_X" "11 001000 0 0 1 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5" => store_exclusive_pair_x();
        "LDXP_X" "11 001000 0 1 1 (11111) o0:1 Rt2:5 Rn:5 Rt:5" => load_exclusive_pair_x();
    },
    rows! { "Load/store ordered" for (size in SIZE):
        "STLR{size}"  "{size} 001000 1 0 0 (11111) o0:1 (11111) Rn:5 Rt:5" => store_ordered(size);
        "LDAR{size}"  "{size} 001000 1 1 0 (11111) o0:1 (11111) Rn:5 Rt:5" => load_ordered(size);
        "LDAPR{size}" "{size} 111 0 00 1 0 1 (11111) 1 100 00 Rn:5 Rt:5" => load_ordered(size);
    },
    rows! { "Compare and swap" for (size in SIZE):
        "CAS{size}" "{size} 001000 1 L:1 1 Rs:5 o0:1 11111 Rn:5 Rt:5" => compare_and_swap(size);
    },
    rows! { "Compare and swap":
        "CASP_W" "00 001000 0 L:1 1 Rs:5 o0:1 11111 Rn:5 Rt:5", if pairs_are_even => compare_and_swap_pair_w();
        "CASP_X" "01 001000 0 L:1 1 Rs:5 o0:1 11111 Rn:5 Rt:5", if pairs_are_even => compare_and_swap_pair_x();
    },
];

/// The aligned, checked memory at the base register, and its address.
pub(crate) fn aligned_probe<'b>(
    cx: &Context<'b>,
    access: Access,
    ty: Type,
    count: u32,
) -> (Checked<'b>, Val<'b>) {
    let addr = cx.reg_or_sp_of(X, "Rn");
    cx.check_aligned(addr, ty.bytes() * count);
    (cx.probe(access, addr, ty, count), addr)
}

/// Marks memory in the monitor, with what it holds.
fn mark_exclusive<'b>(cx: &Context<'b>, addr: Val<'b>, len: u32, low: Val<'b>, high: Val<'b>) {
    cx.b.write_var(EXCLUSIVE_ADDR, addr);
    cx.b.write_var(EXCLUSIVE_LEN, cx.b.u32(len));
    cx.b.write_var(EXCLUSIVE_LOW, low.zext(X));
    cx.b.write_var(EXCLUSIVE_HIGH, high.zext(X));
}

/// LDXR, LDAXR.
fn load_exclusive(cx: &Context<'_>, ty: Type) {
    let (place, addr) = aligned_probe(cx, Access::Read, ty, 1);
    let value = place.load(ORDERED, 0);
    mark_exclusive(cx, addr, ty.bytes(), value, cx.b.u64(0));
    cx.set_reg_of("Rt", value);
}

/// LDXP, LDAXP of two words: one 64-bit access.
fn load_exclusive_pair_w(cx: &Context<'_>) {
    let (place, addr) = aligned_probe(cx, Access::Read, X, 1);
    let both = place.load(ORDERED, 0);
    mark_exclusive(cx, addr, 8, both, cx.b.u64(0));
    cx.set_reg_of("Rt", both.trunc(W));
    cx.set_reg_of("Rt2", both >> 32);
}

/// LDXP, LDAXP of two doublewords. The two loads may see different moments; then the store-exclusive
/// fails, which is all the architecture promises.
fn load_exclusive_pair_x(cx: &Context<'_>) {
    let (place, addr) = aligned_probe(cx, Access::Read, X, 2);
    let (low, high) = (place.load(ORDERED, 0), place.load(ORDERED, 1));
    mark_exclusive(cx, addr, 16, low, high);
    cx.set_reg_of("Rt", low);
    cx.set_reg_of("Rt2", high);
}

/// `ExclusiveMonitorsPass`, then `store` if it does: `store` says whether memory still had what the
/// monitor saw. The status register becomes 0 if the store took place.
fn store_if_exclusive<'b>(
    cx: &Context<'b>,
    ty: Type,
    count: u32,
    store: impl FnOnce(Checked<'b>) -> Val<'b>,
) {
    let len = ty.bytes() * count;
    let addr = cx.reg_or_sp_of(X, "Rn");
    cx.check_aligned(addr, len);
    let marked =
        cx.b.read_var(EXCLUSIVE_ADDR).eq(addr) & cx.b.read_var(EXCLUSIVE_LEN).eq(u64::from(len));
    let [stored] = cx.b.if_else(
        marked,
        || [store(cx.probe(Access::ReadWrite, addr, ty, count))],
        || [cx.b.bool(false)],
    );
    cx.clear_exclusive();
    cx.set_reg_of("Rs", (!stored).zext(W));
}

/// STXR, STLXR.
fn store_exclusive(cx: &Context<'_>, ty: Type) {
    let seen = cx.b.read_var(EXCLUSIVE_LOW);
    let new = cx.reg_of(X, "Rt").trunc(ty);
    store_if_exclusive(cx, ty, 1, |place| place.cas(seen.trunc(ty), new).zext(X).eq(seen));
}

/// STXP, STLXP of two words.
fn store_exclusive_pair_w(cx: &Context<'_>) {
    let seen = cx.b.read_var(EXCLUSIVE_LOW);
    let new = cx.reg_of(W, "Rt").zext(X) | (cx.reg_of(X, "Rt2") << 32);
    store_if_exclusive(cx, X, 1, |place| place.cas(seen, new).eq(seen));
}

/// STXP, STLXP of two doublewords.
fn store_exclusive_pair_x(cx: &Context<'_>) {
    let seen = [cx.b.read_var(EXCLUSIVE_LOW), cx.b.read_var(EXCLUSIVE_HIGH)];
    let new = [cx.reg_of(X, "Rt"), cx.reg_of(X, "Rt2")];
    store_if_exclusive(cx, X, 2, |place| {
        let old = place.cas128(seen, new);
        old[0].eq(seen[0]) & old[1].eq(seen[1])
    });
}

/// LDAR, LDLAR, LDAPR.
fn load_ordered(cx: &Context<'_>, ty: Type) {
    let (place, _) = aligned_probe(cx, Access::Read, ty, 1);
    cx.set_reg_of("Rt", place.load(ORDERED, 0));
}

/// STLR, STLLR.
fn store_ordered(cx: &Context<'_>, ty: Type) {
    let value = cx.reg_of(X, "Rt").trunc(ty);
    let (place, _) = aligned_probe(cx, Access::Write, ty, 1);
    place.store(ORDERED, 0, value);
}

/// CAS, CASA, CASL, CASAL: always ordered, which the weaker ones allow.
fn compare_and_swap(cx: &Context<'_>, ty: Type) {
    let (expected, new) = (cx.reg_of(X, "Rs").trunc(ty), cx.reg_of(X, "Rt").trunc(ty));
    let (place, _) = aligned_probe(cx, Access::ReadWrite, ty, 1);
    cx.set_reg_of("Rs", place.cas(expected, new));
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
    let (place, _) = aligned_probe(cx, Access::ReadWrite, X, 1);
    let old = place.cas(expected, new);
    cx.set_reg_of("Rs", old.trunc(W));
    cx.set_reg(second(cx, "Rs"), old >> 32);
}

/// CASP of two doublewords.
fn compare_and_swap_pair_x(cx: &Context<'_>) {
    let both = |field| [cx.reg_of(X, field), cx.reg(X, second(cx, field))];
    let (expected, new) = (both("Rs"), both("Rt"));
    let (place, _) = aligned_probe(cx, Access::ReadWrite, X, 2);
    let old = place.cas128(expected, new);
    cx.set_reg_of("Rs", old[0]);
    cx.set_reg(second(cx, "Rs"), old[1]);
}
