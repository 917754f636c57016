//! Replacing operations that a target lacks, or gets wrong, by ones that it has.
//!
//! Shading languages lack much of what processors have: counting in 64 bits, upper halves of products,
//! byte order, rotation. Their division is undefined where the [IR's](crate) is not. [`legalise`] writes a
//! routine anew without such operations, so that an emitter has one short arm for each that is left.

use crate::op::*;

/// Operations that a target may do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lacks {
    /// `clz` and `rbit` of 64 bits.
    pub wide_bit_order: bool,
    /// `bswap`.
    pub byte_order: bool,
    /// `rotr`.
    pub rotation: bool,
    /// `umulh` and `smulh`.
    pub upper_products: bool,
    /// `sdiv` at all, and `udiv` by zero.
    pub total_division: bool,
    /// `saddo` and `ssubo`.
    pub overflow: bool,
}

impl Lacks {
    /// A target that lacks all that can be replaced.
    pub const EVERYTHING: Lacks = Lacks {
        wide_bit_order: true,
        byte_order: true,
        rotation: true,
        upper_products: true,
        total_division: true,
        overflow: true,
    };
}

/// The routine without the operations that the target lacks.
pub fn legalise(routine: &Routine, lacks: Lacks) -> Routine {
    let mut writer = Writer { lacks, values: routine.values.clone(), stmts: Vec::new() };
    let body = writer.block(&routine.body);
    let mut legal = Routine { body, values: writer.values };
    crate::dce::remove_dead(&mut legal);
    legal
}

struct Writer {
    lacks: Lacks,
    values: Vec<ValueData>,
    /// Of the block that is being written.
    stmts: Vec<Stmt>,
}

impl Writer {
    fn block(&mut self, block: &Block) -> Block {
        let outer = std::mem::take(&mut self.stmts);
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
        Block { stmts: std::mem::replace(&mut self.stmts, outer), yields: block.yields.clone() }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let op = match &stmt.op {
            Op::If { cond, then, otherwise } => {
                Op::If { cond: *cond, then: self.block(then), otherwise: self.block(otherwise) }
            }
            op => self.replacement(op).unwrap_or_else(|| op.clone()),
        };
        self.stmts.push(Stmt { op, results: stmt.results.clone() });
    }

    /// What gives the result instead, after what has been written to compute its operands.
    fn replacement(&mut self, op: &Op) -> Option<Op> {
        let lacks = self.lacks;
        match *op {
            Op::Unary(op, a) => {
                let wide = self.ty(a) == Type::U64;
                match op {
                    UnOp::Clz if wide && lacks.wide_bit_order => Some(self.wide_clz(a)),
                    UnOp::Rbit if wide && lacks.wide_bit_order => {
                        Some(self.halves_swapped(a, UnOp::Rbit))
                    }
                    UnOp::Bswap if wide && lacks.byte_order => {
                        Some(self.halves_swapped(a, UnOp::Bswap))
                    }
                    UnOp::Bswap if lacks.byte_order => Some(self.swapped_bytes(a)),
                    _ => None,
                }
            }
            Op::Binary(op, a, b) => match op {
                BinOp::Rotr if lacks.rotation => Some(self.rotated(a, b)),
                BinOp::UMulH if lacks.upper_products => Some(self.unsigned_upper(a, b)),
                BinOp::SMulH if lacks.upper_products => Some(self.signed_upper(a, b)),
                BinOp::UDiv if lacks.total_division => Some(self.unsigned_quotient(a, b)),
                BinOp::SDiv if lacks.total_division => Some(self.signed_quotient(a, b)),
                _ => None,
            },
            Op::Compare(op @ (CmpOp::SAddO | CmpOp::SSubO), a, b) if lacks.overflow => {
                Some(self.overflow(op, a, b))
            }
            _ => None,
        }
    }

    // Writing.

    fn ty(&self, v: Value) -> Type {
        self.values[v.0 as usize].ty
    }

    fn value(&mut self, ty: Type, constant: Option<u64>) -> Value {
        self.values.push(ValueData { ty, constant });
        Value(self.values.len() as u32 - 1)
    }

    fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.value(ty, Some(bits & ty.mask()))
    }

    fn write(&mut self, op: Op, ty: Type) -> Value {
        let result = self.value(ty, None);
        self.stmts.push(Stmt { op, results: vec![result] });
        result
    }

    fn unary(&mut self, op: UnOp, a: Value) -> Value {
        self.write(Op::Unary(op, a), self.ty(a))
    }

    fn binary(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        self.write(Op::Binary(op, a, b), self.ty(a))
    }

    fn with_constant(&mut self, op: BinOp, a: Value, bits: u64) -> Value {
        let ty = if op.is_shift() { Type::U32 } else { self.ty(a) };
        let b = self.constant(ty, bits);
        self.binary(op, a, b)
    }

    fn compare(&mut self, op: CmpOp, a: Value, b: Value) -> Value {
        self.write(Op::Compare(op, a, b), Type::Bool)
    }

    fn is_zero(&mut self, a: Value) -> Value {
        let zero = self.constant(self.ty(a), 0);
        self.compare(CmpOp::Eq, a, zero)
    }

    fn is_negative(&mut self, a: Value) -> Value {
        let zero = self.constant(self.ty(a), 0);
        self.compare(CmpOp::Slt, a, zero)
    }

    fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        self.write(Op::Select(cond, a, b), self.ty(a))
    }

    fn convert(&mut self, op: ConvOp, a: Value, to: Type) -> Value {
        self.write(Op::Convert(op, a), to)
    }

    /// The lower and the upper half, as `u32`.
    fn halves(&mut self, a: Value) -> [Value; 2] {
        let upper = self.with_constant(BinOp::Shr, a, 32);
        [a, upper].map(|v| self.convert(ConvOp::Trunc, v, Type::U32))
    }

    /// A `u64` of two halves.
    fn joined(&mut self, lower: Value, upper: Value) -> Op {
        let [lower, upper] = [lower, upper].map(|v| self.convert(ConvOp::Zext, v, Type::U64));
        let upper = self.with_constant(BinOp::Shl, upper, 32);
        Op::Binary(BinOp::Or, upper, lower)
    }

    // Replacements.

    fn wide_clz(&mut self, a: Value) -> Op {
        let [lower, upper] = self.halves(a);
        let [in_lower, in_upper] = [lower, upper].map(|v| self.unary(UnOp::Clz, v));
        let in_lower = self.with_constant(BinOp::Add, in_lower, 32);
        let empty = self.is_zero(upper);
        let count = self.select(empty, in_lower, in_upper);
        Op::Convert(ConvOp::Zext, count)
    }

    /// Both halves through an operation of 32 bits, and then one in the place of the other.
    fn halves_swapped(&mut self, a: Value, op: UnOp) -> Op {
        let [lower, upper] = self.halves(a);
        let [lower, upper] = [lower, upper].map(|v| match op {
            UnOp::Bswap => {
                let swapped = self.swapped_bytes(v);
                self.write(swapped, Type::U32)
            }
            op => self.unary(op, v),
        });
        self.joined(upper, lower)
    }

    fn swapped_bytes(&mut self, a: Value) -> Op {
        let outer = |w: &mut Self, op| w.with_constant(op, a, 24);
        let inner = |w: &mut Self, op, mask| {
            let shifted = w.with_constant(op, a, 8);
            w.with_constant(BinOp::And, shifted, mask)
        };
        let ends = [outer(self, BinOp::Shr), outer(self, BinOp::Shl)];
        let middle = [inner(self, BinOp::Shr, 0xff00), inner(self, BinOp::Shl, 0xff_0000)];
        let [ends, middle] = [ends, middle].map(|[x, y]| self.binary(BinOp::Or, x, y));
        Op::Binary(BinOp::Or, ends, middle)
    }

    /// Where the amount is zero, so is its complement, modulo the width: both shifts give the value.
    fn rotated(&mut self, a: Value, amount: Value) -> Op {
        let width = self.constant(Type::U32, self.ty(a).bits().into());
        let back = self.binary(BinOp::Sub, width, amount);
        let right = self.binary(BinOp::Shr, a, amount);
        let left = self.binary(BinOp::Shl, a, back);
        Op::Binary(BinOp::Or, left, right)
    }

    /// By the products of 32-bit halves; for 32 bits, by that of 64.
    fn unsigned_upper(&mut self, a: Value, b: Value) -> Op {
        if self.ty(a) == Type::U32 {
            return self.upper_of_wide(ConvOp::Zext, a, b);
        }
        let low = |w: &mut Self, v| w.with_constant(BinOp::And, v, 0xffff_ffff);
        let high = |w: &mut Self, v| w.with_constant(BinOp::Shr, v, 32);
        let (a_low, a_high) = (low(self, a), high(self, a));
        let (b_low, b_high) = (low(self, b), high(self, b));
        let lowest = self.binary(BinOp::Mul, a_low, b_low);
        let one = self.binary(BinOp::Mul, a_low, b_high);
        let other = self.binary(BinOp::Mul, a_high, b_low);
        let highest = self.binary(BinOp::Mul, a_high, b_high);
        let carried = [high(self, lowest), low(self, one), low(self, other)];
        let carried = self.sum(carried);
        let upper = [highest, high(self, one), high(self, other)];
        let upper = self.sum(upper);
        Op::Binary(BinOp::Add, upper, high(self, carried))
    }

    fn sum(&mut self, [a, b, c]: [Value; 3]) -> Value {
        let sum = self.binary(BinOp::Add, a, b);
        self.binary(BinOp::Add, sum, c)
    }

    fn upper_of_wide(&mut self, widen: ConvOp, a: Value, b: Value) -> Op {
        let [a, b] = [a, b].map(|v| self.convert(widen, v, Type::U64));
        let product = self.binary(BinOp::Mul, a, b);
        Op::Convert(ConvOp::Trunc, self.with_constant(BinOp::Shr, product, 32))
    }

    /// The unsigned one, less each factor where the other is negative.
    fn signed_upper(&mut self, a: Value, b: Value) -> Op {
        if self.ty(a) == Type::U32 {
            return self.upper_of_wide(ConvOp::Sext, a, b);
        }
        let zero = self.constant(Type::U64, 0);
        let upper = self.unsigned_upper(a, b);
        let upper = self.write(upper, Type::U64);
        let [negative_a, negative_b] = [a, b].map(|v| self.is_negative(v));
        let less = [self.select(negative_a, b, zero), self.select(negative_b, a, zero)];
        let upper = self.binary(BinOp::Sub, upper, less[0]);
        Op::Binary(BinOp::Sub, upper, less[1])
    }

    fn unsigned_quotient(&mut self, a: Value, b: Value) -> Op {
        let (zero, one) = (self.constant(self.ty(a), 0), self.constant(self.ty(a), 1));
        let by_zero = self.is_zero(b);
        let divisor = self.select(by_zero, one, b);
        let quotient = self.binary(BinOp::UDiv, a, divisor);
        Op::Select(by_zero, zero, quotient)
    }

    /// By magnitudes: that of the least number is itself, so dividing it by -1 gives it back.
    fn signed_quotient(&mut self, a: Value, b: Value) -> Op {
        let [negative_a, negative_b] = [a, b].map(|v| self.is_negative(v));
        let [a, b] = [(a, negative_a), (b, negative_b)].map(|(v, negative)| {
            let negated = self.unary(UnOp::Neg, v);
            self.select(negative, negated, v)
        });
        let quotient = self.unsigned_quotient(a, b);
        let quotient = self.write(quotient, self.ty(a));
        let negative = self.binary(BinOp::Xor, negative_a, negative_b);
        let negated = self.unary(UnOp::Neg, quotient);
        Op::Select(negative, negated, quotient)
    }

    /// The sign of `(a ^ r) & (b ^ r)` for a sum `r`, of `(a ^ b) & (a ^ r)` for a difference.
    fn overflow(&mut self, op: CmpOp, a: Value, b: Value) -> Op {
        let (operation, other) = match op {
            CmpOp::SAddO => (BinOp::Add, None),
            _ => (BinOp::Sub, Some(a)),
        };
        let result = self.binary(operation, a, b);
        let first = self.binary(BinOp::Xor, a, result);
        let second = self.binary(BinOp::Xor, b, other.unwrap_or(result));
        let both = self.binary(BinOp::And, first, second);
        let zero = self.constant(self.ty(a), 0);
        Op::Compare(CmpOp::Slt, both, zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Machine, eval_results};

    /// Two parameters, and nothing else.
    struct Inputs([u64; 2]);

    impl Machine for Inputs {
        fn param(&self, index: u8) -> u64 {
            self.0[usize::from(index)]
        }

        fn word(&self) -> u32 {
            unreachable!()
        }

        fn count(&self) -> u64 {
            unreachable!()
        }

        fn read_reg(&self, _: File, _: u32) -> u64 {
            unreachable!()
        }

        fn write_reg(&mut self, _: File, _: u32, _: u64) {
            unreachable!()
        }

        fn read_var(&self, _: Var) -> u64 {
            unreachable!()
        }

        fn write_var(&mut self, _: Var, _: u64) {
            unreachable!()
        }

        fn probe(&mut self, _: Access, _: u64, _: u32) -> Result<(), u64> {
            unreachable!()
        }

        fn load(&mut self, _: Type, _: Order, _: u64) -> u64 {
            unreachable!()
        }

        fn store(&mut self, _: Type, _: Order, _: u64, _: u64) {
            unreachable!()
        }

        fn cas(&mut self, _: Type, _: u64, _: u64, _: u64) -> u64 {
            unreachable!()
        }

        fn cas128(&mut self, _: u64, _: [u64; 2], _: [u64; 2]) -> [u64; 2] {
            unreachable!()
        }

        fn fence(&mut self) {
            unreachable!()
        }
    }

    /// A routine that gives the result of one operation of two parameters.
    fn routine(op: impl Fn(Value, Value) -> Op, types: [Type; 3]) -> Routine {
        let values = types.map(|ty| ValueData { ty, constant: None }).to_vec();
        let [a, b, result] = [0, 1, 2].map(Value);
        let stmt = |op, v| Stmt { op, results: vec![v] };
        let stmts = vec![stmt(Op::Param(0), a), stmt(Op::Param(1), b), stmt(op(a, b), result)];
        Routine { body: Block { stmts, yields: vec![result] }, values }
    }

    /// Numbers at which something happens, and others.
    fn numbers(ty: Type) -> Vec<u64> {
        let mut numbers = vec![0, 1, 2, 7, 8, 31, 32, 33, 63, 64, 0x8000_0000, 0xffff_ffff];
        let mut random = 1u64;
        for _ in 0..40 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            numbers.extend([random, random >> 40, random.wrapping_neg()]);
        }
        numbers.extend([u64::MAX, 1 << 63, u64::MAX >> 1, (1 << 32) - 1]);
        numbers.iter().map(|number| number & ty.mask()).collect()
    }

    fn operations(routine: &Routine) -> Vec<&Op> {
        routine.body.stmts.iter().map(|stmt| &stmt.op).collect()
    }

    fn check(name: &str, routine: &Routine) {
        let legal = legalise(routine, Lacks::EVERYTHING);
        assert!(operations(&legal).len() > 3, "{name} was not replaced");
        for op in operations(&legal) {
            let lacking = match op {
                Op::Unary(op, a) => {
                    *op == UnOp::Bswap
                        || matches!(op, UnOp::Clz | UnOp::Rbit) && legal.value(*a).ty == Type::U64
                }
                Op::Binary(op, ..) => {
                    matches!(op, BinOp::Rotr | BinOp::UMulH | BinOp::SMulH | BinOp::SDiv)
                }
                Op::Compare(op, ..) => matches!(op, CmpOp::SAddO | CmpOp::SSubO),
                _ => false,
            };
            assert!(!lacking, "{name} became {op:?}");
        }
        let [a, b] = [0, 1].map(|v| numbers(routine.values[v].ty));
        for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b))) {
            let [before, after] =
                [routine, &legal].map(|routine| eval_results(routine, &mut Inputs([a, b])));
            assert_eq!(before, after, "{name} of {a:#x} and {b:#x}");
        }
    }

    #[test]
    fn replacements_give_the_same_results() {
        for ty in [Type::U32, Type::U64] {
            for op in [BinOp::Rotr, BinOp::UMulH, BinOp::SMulH, BinOp::UDiv, BinOp::SDiv] {
                let second = if op.is_shift() { Type::U32 } else { ty };
                let routine = routine(|a, b| Op::Binary(op, a, b), [ty, second, ty]);
                check(&format!("{op:?} {ty:?}"), &routine);
            }
            for op in [CmpOp::SAddO, CmpOp::SSubO] {
                let routine = routine(|a, b| Op::Compare(op, a, b), [ty, ty, Type::Bool]);
                check(&format!("{op:?} {ty:?}"), &routine);
            }
        }
        for (op, ty) in [
            (UnOp::Clz, Type::U64),
            (UnOp::Rbit, Type::U64),
            (UnOp::Bswap, Type::U64),
            (UnOp::Bswap, Type::U32),
        ] {
            check(&format!("{op:?} {ty:?}"), &routine(|a, _| Op::Unary(op, a), [ty, ty, ty]));
        }
    }

    #[test]
    fn what_a_target_has_stays() {
        let nothing = Lacks {
            wide_bit_order: false,
            byte_order: false,
            rotation: false,
            upper_products: false,
            total_division: false,
            overflow: false,
        };
        let types = [Type::U64, Type::U32, Type::U64];
        let routine = routine(|a, b| Op::Binary(BinOp::Rotr, a, b), types);
        assert_eq!(legalise(&routine, nothing), routine);
    }
}
