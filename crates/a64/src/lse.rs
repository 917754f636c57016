//! Atomic memory operations (C4.1.96, "Atomic memory operations"; FEAT_LSE).

use kvrm_ir::{Access, RmwOp, Type};

use crate::X;
use crate::context::Context;
use crate::exclusives::aligned_span;
use crate::row::Row;

/// The four sizes of one operation; acquire (`A`) and release (`R`) make no difference, because every
/// atomic operation is ordered.
macro_rules! atomics {
    ($($name:literal $bits:literal $op:ident;)*) => {
        &[$(atomics! { @sizes $name $bits $op: "B" "00" U8; "H" "01" U16; "_W" "10" U32; "_X" "11" U64; }),*]
    };
    (@sizes $name:literal $bits:literal $op:ident: $($suffix:literal $size:literal $ty:ident;)*) => {
        &[$(Row {
            name: concat!($name, $suffix),
            group: "Atomic memory operations",
            encoding: concat!($size, " 111 0 00 A:1 R:1 1 Rs:5 ", $bits, " 00 Rn:5 Rt:5"),
            allocated: None,
            semantics: |cx| atomic(cx, Type::$ty, RmwOp::$op),
        }),*]
    };
}

pub(crate) const ROWS: &[&[Row]] = atomics! {
    "LDADD"  "0 000" Add;
    "LDCLR"  "0 001" And;
    "LDEOR"  "0 010" Xor;
    "LDSET"  "0 011" Or;
    "LDSMAX" "0 100" SMax;
    "LDSMIN" "0 101" SMin;
    "LDUMAX" "0 110" UMax;
    "LDUMIN" "0 111" UMin;
    "SWP"    "1 000" Swap;
};

/// LDADD, LDCLR, LDEOR, LDSET, LDSMAX, LDSMIN, LDUMAX, LDUMIN, SWP.
fn atomic(cx: &Context<'_>, ty: Type, op: RmwOp) {
    let operand = cx.reg_of(X, "Rs");
    // LDCLR clears the bits that are set in the operand.
    let operand = if op == RmwOp::And { !operand } else { operand };
    let span = aligned_span(cx, Access::ReadWrite, ty.bytes());
    let old = cx.b.rmw(op, span.addr, operand.trunc(ty));
    cx.set_reg_of("Rt", old);
}
