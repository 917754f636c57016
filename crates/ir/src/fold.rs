//! What the builder simplifies while a routine is being built.
//!
//! Each function answers `None` (build the operation), a known constant, or an operand that is the
//! result already. Only identities that hold for every value are here.

use crate::arith;
use crate::op::{BinOp, CmpOp, Type, UnOp, Value, ValueData};

/// The outcome of a simplification.
pub(crate) enum Folded {
    /// A constant of the result's type.
    Const(u64),
    /// An existing value.
    Same(Value),
}

use Folded::{Const, Same};

pub(crate) fn unary(op: UnOp, a: ValueData) -> Option<Folded> {
    Some(Const(arith::unary(op, a.ty, a.constant?)))
}

pub(crate) fn binary(
    op: BinOp,
    (av, a): (Value, ValueData),
    (bv, b): (Value, ValueData),
) -> Option<Folded> {
    let ty = a.ty;
    if let (Some(x), Some(y)) = (a.constant, b.constant) {
        return Some(Const(arith::binary(op, ty, x, y)));
    }
    if let Some(y) = b.constant {
        return binary_by_constant(op, ty, av, y);
    }
    let x = a.constant?;
    match op {
        BinOp::Add | BinOp::Mul | BinOp::And | BinOp::Or | BinOp::Xor => {
            binary_by_constant(op, ty, bv, x)
        }
        BinOp::Shl | BinOp::Shr | BinOp::UDiv | BinOp::SDiv if x == 0 => Some(Const(0)),
        _ => None,
    }
}

/// `a op y` with `y` known.
fn binary_by_constant(op: BinOp, ty: Type, a: Value, y: u64) -> Option<Folded> {
    let ones = ty.mask();
    match op {
        BinOp::Mul | BinOp::UMulH | BinOp::SMulH | BinOp::UDiv | BinOp::SDiv | BinOp::And
            if y == 0 =>
        {
            Some(Const(0))
        }
        BinOp::Or if y == ones => Some(Const(ones)),
        BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor if y == 0 => Some(Same(a)),
        BinOp::Mul | BinOp::UDiv | BinOp::SDiv if y == 1 => Some(Same(a)),
        BinOp::And if y == ones => Some(Same(a)),
        BinOp::Shl | BinOp::Shr | BinOp::Sar | BinOp::Rotr
            if y.is_multiple_of(ty.bits().into()) =>
        {
            Some(Same(a))
        }
        _ => None,
    }
}

pub(crate) fn compare(
    op: CmpOp,
    (av, a): (Value, ValueData),
    (bv, b): (Value, ValueData),
) -> Option<Folded> {
    if let (Some(x), Some(y)) = (a.constant, b.constant) {
        return Some(Const(arith::compare(op, a.ty, x, y).into()));
    }
    if av == bv && op != CmpOp::SAddO {
        return Some(Const(matches!(op, CmpOp::Eq | CmpOp::Ule | CmpOp::Sle).into()));
    }
    match (op, b.constant) {
        (CmpOp::Ult | CmpOp::SAddO | CmpOp::SSubO, Some(0)) => Some(Const(0)),
        _ => None,
    }
}

pub(crate) fn select(c: ValueData, a: (Value, ValueData), b: (Value, ValueData)) -> Option<Folded> {
    match c.constant {
        Some(0) => Some(Same(b.0)),
        Some(_) => Some(Same(a.0)),
        None if a.0 == b.0 => Some(Same(a.0)),
        None if a.1.constant.is_some() && a.1 == b.1 => Some(Same(a.0)),
        None => None,
    }
}
