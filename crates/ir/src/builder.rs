//! Building routines: [`Builder`] and its value handles, [`Val`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops;

use crate::arith;
use crate::dce;
use crate::fold::{self, Folded};
use crate::op::*;

/// Builds one [`Routine`], simplifying as it goes.
///
/// Values are [`Val`] handles with operators, so that semantics read like formulas:
///
/// ```
/// use kvrm_ir::{Builder, File, Type};
/// let x = File { id: 0, name: "x", len: 34, zero: Some(31), sink: Some(33) };
/// let b = Builder::new(None);
/// let word = b.word();
/// let (rn, rd) = (word.bits(5, 5), word.bits(0, 5));
/// b.write_reg(x, rd, b.read_reg(x, rn) + 1u64);
/// let routine = b.finish();
/// assert_eq!(routine.body.stmts.len(), 7);
///
/// // The same with the word known: field extraction has folded away.
/// let b = Builder::new(Some(0b00010_00001));
/// let word = b.word();
/// let (rn, rd) = (word.bits(5, 5), word.bits(0, 5));
/// b.write_reg(x, rd, b.read_reg(x, rn) + 1u64);
/// assert_eq!(b.finish().body.stmts.len(), 3);
/// ```
pub struct Builder {
    inner: RefCell<Inner>,
    /// Bits of the word that are known, and their values.
    known: (u32, u32),
}

struct Inner {
    values: Vec<ValueData>,
    constants: HashMap<(Type, u64), Value>,
    /// The block being filled is the last one; those before it are the `if`s around it.
    open: Vec<Vec<Stmt>>,
    /// The word, once read.
    word: Option<Value>,
}

/// A value of a routine under construction.
#[derive(Clone, Copy)]
pub struct Val<'b> {
    builder: &'b Builder,
    value: Value,
    ty: Type,
}

impl Builder {
    /// Starts a routine for an instruction word that is known (everything that depends on it folds)
    /// or not.
    pub fn new(word: Option<u32>) -> Builder {
        Builder::with_known_bits(word.map_or((0, 0), |word| (u32::MAX, word)))
    }

    /// Starts a routine for words of which some bits are known: a mask, and the values under it.
    pub fn with_known_bits(known: (u32, u32)) -> Builder {
        Builder {
            inner: RefCell::new(Inner {
                values: Vec::new(),
                constants: HashMap::new(),
                open: vec![Vec::new()],
                word: None,
            }),
            known,
        }
    }

    /// Ends the routine and removes what nothing needs.
    pub fn finish(self) -> Routine {
        let mut inner = self.inner.into_inner();
        let stmts = inner.open.pop().expect("the outermost block is open");
        assert!(inner.open.is_empty(), "an if is still open");
        let mut routine =
            Routine { body: Block { stmts, yields: Vec::new() }, values: inner.values };
        dce::remove_dead(&mut routine);
        routine
    }

    fn handle(&self, value: Value, ty: Type) -> Val<'_> {
        Val { builder: self, value, ty }
    }

    /// A constant.
    pub fn konst(&self, ty: Type, bits: u64) -> Val<'_> {
        let bits = bits & ty.mask();
        let inner = &mut *self.inner.borrow_mut();
        let value = *inner.constants.entry((ty, bits)).or_insert_with(|| {
            inner.values.push(ValueData { ty, constant: Some(bits) });
            Value(inner.values.len() as u32 - 1)
        });
        self.handle(value, ty)
    }

    /// A `bool` constant.
    pub fn bool(&self, value: bool) -> Val<'_> {
        self.konst(Type::Bool, value.into())
    }

    /// A `u32` constant.
    pub fn u32(&self, value: u32) -> Val<'_> {
        self.konst(Type::U32, value.into())
    }

    /// A `u64` constant.
    pub fn u64(&self, value: u64) -> Val<'_> {
        self.konst(Type::U64, value)
    }

    fn data(&self, v: Value) -> ValueData {
        self.inner.borrow().values[v.0 as usize]
    }

    fn new_value(&self, ty: Type) -> Value {
        let mut inner = self.inner.borrow_mut();
        inner.values.push(ValueData { ty, constant: None });
        Value(inner.values.len() as u32 - 1)
    }

    fn push(&self, op: Op, results: Vec<Value>) {
        let mut inner = self.inner.borrow_mut();
        inner.open.last_mut().expect("a block is open").push(Stmt { op, results });
    }

    fn define(&self, op: Op, ty: Type) -> Val<'_> {
        let value = self.new_value(ty);
        self.push(op, vec![value]);
        self.handle(value, ty)
    }

    fn fold_or(&self, folded: Option<Folded>, ty: Type, op: impl FnOnce() -> Op) -> Val<'_> {
        match folded {
            Some(Folded::Const(bits)) => self.konst(ty, bits),
            Some(Folded::Same(value)) => self.handle(value, ty),
            None => self.define(op(), ty),
        }
    }

    /// The instruction word.
    pub fn word(&self) -> Val<'_> {
        if let (u32::MAX, word) = self.known {
            return self.u32(word);
        }
        let known = self.inner.borrow().word;
        match known {
            Some(value) => self.handle(value, Type::U32),
            None => {
                let word = self.define(Op::Word, Type::U32);
                self.inner.borrow_mut().word = Some(word.value);
                word
            }
        }
    }

    /// The `len` bits of the word from `low` on: a constant, if they are known.
    pub fn word_bits(&self, low: u32, len: u32) -> Val<'_> {
        let (mask, value) = self.known;
        let field = u32::MAX >> (32 - len);
        match mask >> low & field == field {
            true => self.u32(value >> low & field),
            false => self.word().bits(low, len),
        }
    }

    /// Instructions the lane has completed before this one.
    pub fn count(&self) -> Val<'_> {
        self.define(Op::Count, Type::U64)
    }

    fn unary<'b>(&'b self, op: UnOp, a: Val<'b>) -> Val<'b> {
        self.fold_or(fold::unary(op, self.data(a.value)), a.ty, || Op::Unary(op, a.value))
    }

    fn binary<'b>(&'b self, op: BinOp, a: Val<'b>, b: Val<'b>) -> Val<'b> {
        let (da, db) = (self.data(a.value), self.data(b.value));
        self.fold_or(fold::binary(op, (a.value, da), (b.value, db)), a.ty, || {
            Op::Binary(op, a.value, b.value)
        })
    }

    fn compare<'b>(&'b self, op: CmpOp, a: Val<'b>, b: Val<'b>) -> Val<'b> {
        let (da, db) = (self.data(a.value), self.data(b.value));
        self.fold_or(fold::compare(op, (a.value, da), (b.value, db)), Type::Bool, || {
            Op::Compare(op, a.value, b.value)
        })
    }

    fn convert<'b>(&'b self, op: ConvOp, a: Val<'b>, to: Type) -> Val<'b> {
        if a.ty == to {
            return a;
        }
        match self.data(a.value).constant {
            Some(bits) => self.konst(to, arith::convert(op, a.ty, to, bits)),
            None => self.define(Op::Convert(op, a.value), to),
        }
    }

    /// Reads a slot of a register file.
    pub fn read_reg<'b>(&'b self, file: File, index: Val<'b>) -> Val<'b> {
        let slot = self.data(index.value).constant;
        if slot.is_some() && slot == file.zero.map(u64::from) {
            return self.u64(0);
        }
        self.define(Op::ReadReg(file, index.value), Type::U64)
    }

    /// Writes a slot of a register file.
    pub fn write_reg<'b>(&'b self, file: File, index: Val<'b>, value: Val<'b>) {
        let slot = self.data(index.value).constant;
        if slot.is_some() && slot == file.sink.map(u64::from) {
            return;
        }
        self.push(Op::WriteReg(file, index.value, value.value), vec![]);
    }

    /// Reads a variable.
    pub fn read_var(&self, var: Var) -> Val<'_> {
        self.define(Op::ReadVar(var), var.ty)
    }

    /// Writes a variable.
    pub fn write_var<'b>(&'b self, var: Var, value: Val<'b>) {
        self.push(Op::WriteVar(var, value.value), vec![]);
    }

    /// Ends the routine with a fault unless `len` bytes from `addr` on may be accessed so.
    pub fn probe<'b>(&'b self, access: Access, addr: Val<'b>, len: u32) {
        self.push(Op::Probe { access, addr: addr.value, len }, vec![]);
    }

    /// Loads a value of type `ty`.
    pub fn load<'b>(&'b self, ty: Type, order: Order, addr: Val<'b>) -> Val<'b> {
        self.define(Op::Load { order, addr: addr.value }, ty)
    }

    /// Stores a value.
    pub fn store<'b>(&'b self, order: Order, addr: Val<'b>, value: Val<'b>) {
        self.push(Op::Store { order, addr: addr.value, value: value.value }, vec![]);
    }

    /// Atomic read-modify-write; the old contents.
    pub fn rmw<'b>(&'b self, op: RmwOp, addr: Val<'b>, value: Val<'b>) -> Val<'b> {
        self.define(Op::Rmw { op, addr: addr.value, value: value.value }, value.ty)
    }

    /// Atomic compare and swap; the old contents.
    pub fn cas<'b>(&'b self, addr: Val<'b>, expected: Val<'b>, new: Val<'b>) -> Val<'b> {
        self.define(Op::Cas { addr: addr.value, expected: expected.value, new: new.value }, new.ty)
    }

    /// Atomic compare and swap of two consecutive `u64`; the old contents.
    pub fn cas128<'b>(
        &'b self,
        addr: Val<'b>,
        expected: [Val<'b>; 2],
        new: [Val<'b>; 2],
    ) -> [Val<'b>; 2] {
        let old = [self.new_value(Type::U64), self.new_value(Type::U64)];
        let op = Op::Cas128 {
            addr: addr.value,
            expected: expected.map(|v| v.value),
            new: new.map(|v| v.value),
        };
        self.push(op, old.to_vec());
        old.map(|v| self.handle(v, Type::U64))
    }

    /// Orders all of the lane's accesses.
    pub fn fence(&self) {
        self.push(Op::Fence, vec![]);
    }

    /// Stops the lane if `cond` holds.
    pub fn exit_if<'b>(&'b self, cond: Val<'b>, exit: Exit, detail: Val<'b>) {
        if self.data(cond.value).constant == Some(0) {
            return;
        }
        self.push(Op::Exit { exit, cond: cond.value, detail: detail.value }, vec![]);
    }

    /// Runs `then` if `cond` holds and `otherwise` if not; both give the same number of values.
    pub fn if_else<'b, const N: usize>(
        &'b self,
        cond: Val<'b>,
        then: impl FnOnce() -> [Val<'b>; N],
        otherwise: impl FnOnce() -> [Val<'b>; N],
    ) -> [Val<'b>; N] {
        match self.data(cond.value).constant {
            Some(0) => return otherwise(),
            Some(_) => return then(),
            None => {}
        }
        let (then, a) = self.nested(then);
        let (otherwise, b) = self.nested(otherwise);
        let results = std::array::from_fn(|i| {
            assert_eq!(a[i].ty, b[i].ty, "both arms of an if yield the same types");
            self.handle(self.new_value(a[i].ty), a[i].ty)
        });
        let op = Op::If { cond: cond.value, then, otherwise };
        self.push(op, results.iter().map(|v: &Val| v.value).collect());
        results
    }

    fn nested<'b, const N: usize>(
        &'b self,
        fill: impl FnOnce() -> [Val<'b>; N],
    ) -> (Block, [Val<'b>; N]) {
        // Read before the block opens, so that the one `word` value is visible everywhere.
        self.word();
        self.inner.borrow_mut().open.push(Vec::new());
        let yields = fill();
        let stmts = self.inner.borrow_mut().open.pop().expect("pushed above");
        (Block { stmts, yields: yields.iter().map(|v| v.value).collect() }, yields)
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
