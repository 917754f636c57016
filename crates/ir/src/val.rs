//! What semantics hold in their hands while a routine is built: values with operators, and checked memory.

use std::ops;

use crate::builder::Builder;
use crate::fold;
use crate::op::*;

/// A value of a routine under construction.
#[derive(Clone, Copy)]
pub struct Val<'b> {
    pub(crate) builder: &'b Builder,
    pub(crate) value: Value,
    pub(crate) ty: Type,
}

/// A place of a routine under construction: guest memory that was checked.
#[derive(Clone, Copy)]
pub struct Checked<'b> {
    pub(crate) builder: &'b Builder,
    pub(crate) place: Place,
    pub(crate) ty: Type,
}

impl<'b> Checked<'b> {
    /// The elements' type.
    pub fn ty(self) -> Type {
        self.ty
    }

    /// Loads an element.
    pub fn load(self, order: Order, index: u32) -> Val<'b> {
        self.builder.define(Op::Load { order, place: self.place, index }, self.ty)
    }

    /// Stores an element.
    pub fn store(self, order: Order, index: u32, value: Val<'b>) {
        let op = Op::Store { order, place: self.place, index, value: value.value };
        self.builder.push(op, vec![]);
    }

    /// Atomic read-modify-write of the first element; the old contents.
    pub fn rmw(self, op: RmwOp, value: Val<'b>) -> Val<'b> {
        self.builder.define(Op::Rmw { op, place: self.place, value: value.value }, self.ty)
    }

    /// Atomic compare and swap of the first element; the old contents.
    pub fn cas(self, expected: Val<'b>, new: Val<'b>) -> Val<'b> {
        let op = Op::Cas { place: self.place, expected: expected.value, new: new.value };
        self.builder.define(op, self.ty)
    }

    /// Atomic compare and swap of the first two elements, each a `u64`; the old contents.
    pub fn cas128(self, expected: [Val<'b>; 2], new: [Val<'b>; 2]) -> [Val<'b>; 2] {
        let [low, high] = [(); 2].map(|()| self.builder.new_value(Type::U64));
        let op = Op::Cas128 {
            place: self.place,
            expected: expected.map(|v| v.value),
            new: new.map(|v| v.value),
        };
        self.builder.push(op, vec![low, high]);
        [low, high].map(|v| self.builder.handle(v, Type::U64))
    }
}

/// What an operator takes on its right: a [`Val`], or a number meant as a constant of the left
/// operand's type.
pub trait IntoVal<'b> {
    /// The value, typed `ty` if it is a number.
    fn into_val(self, builder: &'b Builder, ty: Type) -> Val<'b>;
}

impl<'b> IntoVal<'b> for Val<'b> {
    fn into_val(self, _: &'b Builder, _: Type) -> Val<'b> {
        self
    }
}

impl<'b> IntoVal<'b> for u64 {
    fn into_val(self, builder: &'b Builder, ty: Type) -> Val<'b> {
        builder.konst(ty, self)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<'b, R: IntoVal<'b>> ops::$trait<R> for Val<'b> {
            type Output = Val<'b>;
            fn $method(self, rhs: R) -> Val<'b> {
                self.with(BinOp::$op, rhs)
            }
        }
    )*};
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    BitAnd bitand And;
    BitOr bitor Or;
    BitXor bitxor Xor;
}

impl<'b> ops::Not for Val<'b> {
    type Output = Val<'b>;
    fn not(self) -> Val<'b> {
        self.builder.unary(UnOp::Not, self)
    }
}

impl<'b> ops::Neg for Val<'b> {
    type Output = Val<'b>;
    fn neg(self) -> Val<'b> {
        self.builder.unary(UnOp::Neg, self)
    }
}

impl<'b> ops::Shl<u32> for Val<'b> {
    type Output = Val<'b>;
    fn shl(self, amount: u32) -> Val<'b> {
        self.shl_by(self.builder.u32(amount))
    }
}

impl<'b> ops::Shr<u32> for Val<'b> {
    type Output = Val<'b>;
    fn shr(self, amount: u32) -> Val<'b> {
        self.shr_by(self.builder.u32(amount))
    }
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(self, rhs: impl IntoVal<'b>) -> Val<'b> {
            self.with(BinOp::$op, rhs)
        }
    )*};
}

macro_rules! shift_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(self, amount: Val<'b>) -> Val<'b> {
            self.builder.binary(BinOp::$op, self, amount)
        }
    )*};
}

macro_rules! compare_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(self, rhs: impl IntoVal<'b>) -> Val<'b> {
            let rhs = rhs.into_val(self.builder, self.ty);
            self.builder.compare(CmpOp::$op, self, rhs)
        }
    )*};
}

impl<'b> Val<'b> {
    /// The value's type.
    pub fn ty(self) -> Type {
        self.ty
    }

    /// What builds the routine.
    pub fn builder(self) -> &'b Builder {
        self.builder
    }

    /// The value in the routine's table.
    pub fn value(self) -> Value {
        self.value
    }

    /// A constant of the same type.
    pub fn like(self, bits: u64) -> Val<'b> {
        self.builder.konst(self.ty, bits)
    }

    /// The bits, if they are known already.
    pub fn constant(self) -> Option<u64> {
        self.builder.data(self.value).constant
    }

    fn with(self, op: BinOp, rhs: impl IntoVal<'b>) -> Val<'b> {
        self.builder.binary(op, self, rhs.into_val(self.builder, self.ty))
    }

    binary_methods! {
        /// Upper half of the unsigned product.
        umulh UMulH;
        /// Upper half of the signed product.
        smulh SMulH;
        /// Unsigned quotient; zero if the divisor is.
        udiv UDiv;
        /// Signed quotient; zero if the divisor is.
        sdiv SDiv;
    }

    shift_methods! {
        /// Shift left by a `u32` amount modulo the width.
        shl_by Shl;
        /// Logical shift right by a `u32` amount modulo the width.
        shr_by Shr;
        /// Arithmetic shift right by a `u32` amount modulo the width.
        sar_by Sar;
        /// Rotate right by a `u32` amount modulo the width.
        rotr_by Rotr;
    }

    compare_methods! {
        /// Equal.
        eq Eq;
        /// Not equal.
        ne Ne;
        /// Unsigned less.
        ult Ult;
        /// Unsigned less or equal.
        ule Ule;
        /// Signed less.
        slt Slt;
        /// Signed less or equal.
        sle Sle;
        /// Signed overflow of the sum.
        saddo SAddO;
        /// Signed overflow of the difference.
        ssubo SSubO;
    }

    /// Arithmetic shift right.
    pub fn sar(self, amount: u32) -> Val<'b> {
        self.sar_by(self.builder.u32(amount))
    }

    /// Leading zero bits.
    pub fn clz(self) -> Val<'b> {
        self.builder.unary(UnOp::Clz, self)
    }

    /// Bits in reverse order.
    pub fn rbit(self) -> Val<'b> {
        self.builder.unary(UnOp::Rbit, self)
    }

    /// Bytes in reverse order.
    pub fn bswap(self) -> Val<'b> {
        self.builder.unary(UnOp::Bswap, self)
    }

    /// The low bits, as the narrower (or same) type `to`.
    pub fn trunc(self, to: Type) -> Val<'b> {
        self.builder.convert(ConvOp::Trunc, self, to)
    }

    /// Widened (or the same) with zeros.
    pub fn zext(self, to: Type) -> Val<'b> {
        self.builder.convert(ConvOp::Zext, self, to)
    }

    /// Widened (or the same) with copies of the sign bit.
    pub fn sext(self, to: Type) -> Val<'b> {
        self.builder.convert(ConvOp::Sext, self, to)
    }

    /// Bit `index`, as a `bool`.
    pub fn bit(self, index: u32) -> Val<'b> {
        (self & (1u64 << index)).ne(0u64)
    }

    /// The `len` bits from `low` on, of the same type.
    pub fn bits(self, low: u32, len: u32) -> Val<'b> {
        (self >> low) & (u64::MAX >> (64 - len))
    }

    /// The sign bit.
    pub fn sign(self) -> Val<'b> {
        self.slt(0u64)
    }

    /// `a` if this `bool` is true, else `b`.
    pub fn select(self, a: Val<'b>, b: Val<'b>) -> Val<'b> {
        let builder = self.builder;
        let (da, db) = (builder.data(a.value), builder.data(b.value));
        let folded = fold::select(builder.data(self.value), (a.value, da), (b.value, db));
        builder.fold_or(folded, a.ty, || Op::Select(self.value, a.value, b.value))
    }
}
