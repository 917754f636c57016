//! Atomic memory operations (C4.1.96, "Atomic memory operations"; FEAT_LSE).

use kvrm_ir::{Access, RmwOp, Type};

use crate::context::Context;
use crate::exclusives::aligned_probe;
use crate::row::{Choice, Row, rows};
use crate::{SIZE, X};

/// Mnemonic and bits `o3` and `opc` of each operation. LDCLR is an AND with the complement.
const OP: &[Choice<RmwOp>] = &[
    ("LDADD", "0 000", RmwOp::Add),
    ("LDCLR", "0 001", RmwOp::And),
    ("LDEOR", "0 010", RmwOp::Xor),
    ("LDSET", "0 011", RmwOp::Or),
    ("LDSMAX", "0 100", RmwOp::SMax),
    ("LDSMIN", "0 101", RmwOp::SMin),
    ("LDUMAX", "0 110", RmwOp::UMax),
    ("LDUMIN", "0 111", RmwOp::UMin),
    ("SWP", "1 000", RmwOp::Swap),
];

// Acquire (`A`) and release (`R`) make no difference, because every atomic operation is ordered.
pub(crate) const ROWS: &[&[Row]] =
    &[rows! { "Atomic memory operations" for (op in OP, size in SIZE):
        "{op}{size}" "{size} 111 0 00 A:1 R:1 1 Rs:5 {op} 00 Rn:5 Rt:5" => atomic(size, op);
    }];

/// LDADD, LDCLR, LDEOR, LDSET, LDSMAX, LDSMIN, LDUMAX, LDUMIN, SWP.
fn atomic(cx: &Context<'_>, ty: Type, op: RmwOp) {
    let operand = cx.reg_of(X, "Rs");
    // LDCLR clears the bits that are set in the operand.
    let operand = if op == RmwOp::And { !operand } else { operand };
    let (place, _) = aligned_probe(cx, Access::ReadWrite, ty, 1);
    cx.set_reg_of("Rt", place.rmw(op, operand.trunc(ty)));
}
