//! Replacing operations that a target lacks, or gets wrong, by ones that it has.
//!
//! Shading languages lack much of what processors have: counting in 64 bits, upper halves of products,
//! byte order, rotation. Division traps or is undefined where the [IR's](crate) is not, and shifts by the
//! width or more mean something else on every target. A [`Builder`] that is [told](Builder::for_target) what
//! its target lacks builds other operations in their place, and [`legalise`] writes a whole routine anew, so
//! that an emitter has one short arm for each operation that is left.

use crate::builder::Builder;
use crate::op::*;
use crate::sink::sink;
use crate::val::{Checked, Val};

/// Operations that a target may do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lacks {
    /// `clz` and `rbit` of 64 bits.
    pub wide_bit_order: bool,
    /// `bswap`.
    pub byte_order: bool,
    /// `rotr`, of which width: of 64 bits, or any.
    pub rotation: Option<Width>,
    /// `umulh` and `smulh`.
    pub upper_products: bool,
    /// `udiv` and `sdiv` by zero, and `sdiv` of the least number by -1.
    pub total_division: bool,
    /// `sdiv` at all.
    pub signed_division: bool,
    /// `saddo` and `ssubo`.
    pub overflow: bool,
    /// Shifts by an amount that is not less than the width.
    pub wide_shifts: bool,
    /// `set flags` of anything but four bits, and `test` of more than one flag.
    pub flag_operands: bool,
    /// Whether packed elements are computed with in wholes, of type `u128`, which only some targets have: these lack
    /// nothing for it, but the evaluator does.
    pub wholes: bool,
    /// What becomes of `call`s.
    pub calls: Calls,
}

/// How functions are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// As they are.
    #[default]
    Plain,
    /// One for each set of arguments.
    Single,
    /// Only where a function's [shortcut](crate::Function::with_shortcut) does not do.
    Shortened,
    /// Not at all: what a function does is written where it is called.
    Inlined,
}

/// Which widths of an operation are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 64 bits alone.
    Wide,
    /// 32 and 64 bits.
    Any,
}

impl Lacks {
    /// A target that lacks all that can be replaced.
    pub const EVERYTHING: Lacks = Lacks {
        wide_bit_order: true,
        byte_order: true,
        rotation: Some(Width::Any),
        upper_products: true,
        total_division: true,
        signed_division: true,
        overflow: true,
        wide_shifts: true,
        flag_operands: true,
        wholes: false,
        calls: Calls::Inlined,
    };
}

/// The routine without the operations that the target lacks.
pub fn legalise(routine: &Routine, lacks: Lacks) -> Routine {
    let b = Builder::for_target(lacks);
    let results = {
        let mut writer = Writer {
            b: &b,
            routine,
            values: vec![None; routine.values.len()],
            places: vec![None; routine.places.len()],
        };
        let results = writer.block(&routine.body);
        writer.end();
        results.into_iter().map(Val::value).collect::<Vec<_>>()
    };
    let mut legal = b.finish_with(&results);
    if lacks.calls == Calls::Shortened {
        sink(&mut legal);
    }
    legal
}

/// Copies a routine, operation by operation.
struct Writer<'b, 'r> {
    b: &'b Builder,
    routine: &'r Routine,
    /// What has been written for a value of the routine.
    values: Vec<Option<Val<'b>>>,
    places: Vec<Option<Checked<'b>>>,
}

impl<'b> Writer<'b, '_> {
    fn get(&self, v: Value) -> Val<'b> {
        let ValueData { ty, constant } = self.routine.value(v);
        match constant {
            Some(bits) => self.b.konst(ty, bits),
            None => self.values[v.0 as usize].expect("values are defined before they are used"),
        }
    }

    fn place(&self, place: Place) -> Checked<'b> {
        self.places[place.0 as usize].expect("places are made before they are used")
    }

    fn block(&mut self, block: &Block) -> Vec<Val<'b>> {
        for stmt in &block.stmts {
            let results = self.stmt(stmt);
            for (v, result) in stmt.results.iter().zip(results) {
                self.values[v.0 as usize] = Some(result);
            }
        }
        block.yields.iter().map(|v| self.get(*v)).collect()
    }

    fn end(&self) {
        let mut end = self.routine.end;
        end.for_each_operand_mut(&mut |v| *v = self.get(*v).value());
        self.b.end(end);
    }

    fn stmt(&mut self, stmt: &Stmt) -> Vec<Val<'b>> {
        let b = self.b;
        let ty = stmt.results.first().map(|v| self.routine.value(*v).ty);
        let ty = || ty.expect("it has a result");
        let result = match &stmt.op {
            Op::Word => b.word(),
            Op::Param(index) => b.param(ty(), *index),
            Op::Count => b.count(),
            Op::Unary(op, a) => b.unary(*op, self.get(*a)),
            Op::Binary(op, x, y) => b.binary(*op, self.get(*x), self.get(*y)),
            Op::Compare(op, x, y) => b.compare(*op, self.get(*x), self.get(*y)),
            Op::Select(c, x, y) => self.get(*c).select(self.get(*x), self.get(*y)),
            Op::Convert(op, a) => b.convert(*op, self.get(*a), ty()),
            Op::ReadReg(file, index) => b.read_reg(*file, self.get(*index)),
            Op::ReadVar(var) => b.read_var(*var),
            Op::Test(cond) => b.test(*cond),
            Op::Load { order, place, index } => self.place(*place).load(*order, *index),
            Op::Rmw { op, place, value } => self.place(*place).rmw(*op, self.get(*value)),
            Op::Cas { place, expected, new } => {
                self.place(*place).cas(self.get(*expected), self.get(*new))
            }
            Op::Float(op, args) => {
                let args: Vec<_> = args.iter().map(|v| self.get(*v)).collect();
                b.float(*op, &args, ty())
            }
            Op::Packed(..) | Op::Pair(..) | Op::Half(..) => {
                unreachable!("only who builds for a target has wholes")
            }
            Op::Call(..)
            | Op::WriteReg(..)
            | Op::WriteVar(..)
            | Op::SetFlags(_)
            | Op::Probe { .. }
            | Op::Store { .. }
            | Op::Cas128 { .. }
            | Op::Fence
            | Op::Exit { .. }
            | Op::If { .. } => return self.effect(&stmt.op),
        };
        vec![result]
    }

    /// Operations that do something, or have not just one result.
    fn effect(&mut self, op: &Op) -> Vec<Val<'b>> {
        let b = self.b;
        match op {
            Op::Call(function, args) => {
                let args: Vec<_> = args.iter().map(|v| self.get(*v)).collect();
                return b.call(function, &args);
            }
            Op::WriteReg(file, index, value) => {
                b.write_reg(*file, self.get(*index), self.get(*value));
            }
            Op::WriteVar(var, value) => b.write_var(*var, self.get(*value)),
            Op::SetFlags(flags) => b.set_flags(flags.map(|v| self.get(v))),
            Op::Probe { place, addr } => {
                let PlaceData { access, ty, count } = self.routine.place(*place);
                let checked = b.probe(access, self.get(*addr), ty, count);
                self.places[place.0 as usize] = Some(checked);
            }
            Op::Store { order, place, index, value } => {
                self.place(*place).store(*order, *index, self.get(*value));
            }
            Op::Cas128 { place, expected, new } => {
                let [expected, new] = [expected, new].map(|pair| pair.map(|v| self.get(v)));
                return self.place(*place).cas128(expected, new).to_vec();
            }
            Op::Fence => b.fence(),
            Op::Exit { exit, cond, detail } => {
                b.exit_if(self.get(*cond), *exit, self.get(*detail));
            }
            Op::If { cond, then, otherwise } => {
                let this = std::cell::RefCell::new(&mut *self);
                let cond = this.borrow().get(*cond);
                return b.choose(
                    cond,
                    || this.borrow_mut().block(then),
                    || this.borrow_mut().block(otherwise),
                );
            }
            _ => unreachable!("it has a result"),
        }
        Vec::new()
    }
}

/// What gives the result of an operation instead, if the target lacks it.
pub(crate) fn unary<'b>(lacks: &Lacks, op: UnOp, a: Val<'b>) -> Option<Val<'b>> {
    let wide = a.ty() == Type::U64;
    match op {
        UnOp::Clz if wide && lacks.wide_bit_order => Some(wide_clz(a)),
        UnOp::Rbit if wide && lacks.wide_bit_order => Some(halves_swapped(a, Val::rbit)),
        UnOp::Bswap if wide && lacks.byte_order => Some(halves_swapped(a, swapped_bytes)),
        UnOp::Bswap if lacks.byte_order => Some(swapped_bytes(a)),
        UnOp::Not | UnOp::Neg | UnOp::Clz | UnOp::Rbit | UnOp::Bswap => None,
    }
}

/// What gives the result of an operation instead, if the target lacks it. `raw` builds operations as they are.
pub(crate) fn binary<'b>(
    lacks: &Lacks,
    op: BinOp,
    x: Val<'b>,
    y: Val<'b>,
    raw: &dyn Fn(BinOp, Val<'b>, Val<'b>) -> Val<'b>,
) -> Option<Val<'b>> {
    match op {
        BinOp::UMulH if lacks.upper_products => Some(unsigned_upper(x, y)),
        BinOp::SMulH if lacks.upper_products => Some(signed_upper(x, y)),
        BinOp::UDiv if lacks.total_division => Some(unsigned_quotient(x, y, raw)),
        BinOp::SDiv if lacks.signed_division => Some(quotient_of_magnitudes(x, y)),
        BinOp::SDiv if lacks.total_division => Some(signed_quotient(x, y, raw)),
        BinOp::Shl | BinOp::Shr | BinOp::Sar if lacks.wide_shifts => {
            Some(raw(op, x, y & u64::from(x.ty().bits() - 1)))
        }
        BinOp::Rotr if lacks.rotation == Some(Width::Any) => Some(rotated(x, y)),
        BinOp::Rotr if lacks.rotation.is_some() && x.ty() == Type::U64 => Some(rotated(x, y)),
        BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::And | BinOp::Or | BinOp::Xor => None,
        BinOp::UMulH | BinOp::SMulH | BinOp::UDiv | BinOp::SDiv => None,
        BinOp::Shl | BinOp::Shr | BinOp::Sar | BinOp::Rotr => None,
    }
}

/// What gives the result of a comparison instead, if the target lacks it.
pub(crate) fn compare<'b>(lacks: &Lacks, op: CmpOp, x: Val<'b>, y: Val<'b>) -> Option<Val<'b>> {
    match op {
        CmpOp::SAddO if lacks.overflow => Some(((x ^ (x + y)) & (y ^ (x + y))).sign()),
        CmpOp::SSubO if lacks.overflow => Some(((x ^ y) & (x ^ (x - y))).sign()),
        CmpOp::Eq | CmpOp::Ne | CmpOp::Ult | CmpOp::Ule | CmpOp::Slt | CmpOp::Sle => None,
        CmpOp::SAddO | CmpOp::SSubO => None,
    }
}

/// Where the amount is zero, so is its complement, modulo the width: both shifts give the value.
fn rotated<'b>(x: Val<'b>, amount: Val<'b>) -> Val<'b> {
    // The width is zero, modulo the width.
    x.shl_by(-amount) | x.shr_by(amount)
}

fn unsigned_quotient<'b>(
    x: Val<'b>,
    y: Val<'b>,
    raw: &dyn Fn(BinOp, Val<'b>, Val<'b>) -> Val<'b>,
) -> Val<'b> {
    let (zero, one) = (x.like(0), x.like(1));
    let by_zero = y.eq(zero);
    by_zero.select(zero, raw(BinOp::UDiv, x, by_zero.select(one, y)))
}

/// Dividing by -1 is negation, which has no overflow.
fn signed_quotient<'b>(
    x: Val<'b>,
    y: Val<'b>,
    raw: &dyn Fn(BinOp, Val<'b>, Val<'b>) -> Val<'b>,
) -> Val<'b> {
    let (zero, one) = (x.like(0), x.like(1));
    let (by_zero, by_minus_one) = (y.eq(zero), y.eq(u64::MAX));
    let quotient = raw(BinOp::SDiv, x, (by_zero | by_minus_one).select(one, y));
    by_zero.select(zero, by_minus_one.select(-x, quotient))
}

/// By magnitudes: that of the least number is itself, so dividing it by -1 gives it back.
fn quotient_of_magnitudes<'b>(x: Val<'b>, y: Val<'b>) -> Val<'b> {
    let magnitude = |v: Val<'b>| v.sign().select(-v, v);
    let quotient = magnitude(x).udiv(magnitude(y));
    (x.sign() ^ y.sign()).select(-quotient, quotient)
}

/// The lower and the upper half, as `u32`.
fn halves(a: Val<'_>) -> [Val<'_>; 2] {
    [a, a >> 32].map(|v| v.trunc(Type::U32))
}

fn wide_clz(a: Val<'_>) -> Val<'_> {
    let [lower, upper] = halves(a);
    upper.eq(0u64).select(lower.clz() + 32u64, upper.clz()).zext(Type::U64)
}

/// Both halves through an operation of 32 bits, and then one in the place of the other.
fn halves_swapped<'b>(a: Val<'b>, op: impl Fn(Val<'b>) -> Val<'b>) -> Val<'b> {
    let [lower, upper] = halves(a).map(|half| op(half).zext(Type::U64));
    (lower << 32) | upper
}

fn swapped_bytes(a: Val<'_>) -> Val<'_> {
    let ends = (a >> 24) | (a << 24);
    let middle = ((a >> 8) & 0xff00u64) | ((a << 8) & 0xff_0000u64);
    ends | middle
}

/// By the products of 32-bit halves; for 32 bits, by that of 64.
fn unsigned_upper<'b>(x: Val<'b>, y: Val<'b>) -> Val<'b> {
    if x.ty() == Type::U32 {
        return ((x.zext(Type::U64) * y.zext(Type::U64)) >> 32).trunc(Type::U32);
    }
    let low = |v: Val<'b>| v & 0xffff_ffffu64;
    let (one, other) = (low(x) * (y >> 32), (x >> 32) * low(y));
    let carried = ((low(x) * low(y)) >> 32) + low(one) + low(other);
    (x >> 32) * (y >> 32) + (one >> 32) + (other >> 32) + (carried >> 32)
}

/// The unsigned one, less each factor where the other is negative.
fn signed_upper<'b>(x: Val<'b>, y: Val<'b>) -> Val<'b> {
    if x.ty() == Type::U32 {
        return ((x.sext(Type::U64) * y.sext(Type::U64)) >> 32).trunc(Type::U32);
    }
    let zero = x.like(0);
    unsigned_upper(x, y) - x.sign().select(y, zero) - y.sign().select(x, zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Inputs, eval_results};

    /// Two parameters, and nothing else.
    struct Two([u64; 2]);

    impl Inputs for Two {
        fn word(&self) -> u32 {
            unreachable!()
        }

        fn param(&self, index: u8) -> u64 {
            self.0[usize::from(index)]
        }

        fn read_var(&self, _: Var) -> u64 {
            unreachable!()
        }
    }

    /// A routine with one operation on two parameters.
    fn routine<'b>(
        b: &'b Builder,
        op: impl FnOnce(Val<'b>, Val<'b>) -> Val<'b>,
        types: [Type; 2],
    ) -> Value {
        op(b.param(types[0], 0), b.param(types[1], 1)).value()
    }

    /// The legal routine has none of what it should lack, and gives the same results.
    fn check(name: &str, ty: Type, op: impl for<'b> Fn(Val<'b>, Val<'b>) -> Val<'b>, second: Type) {
        let b = Builder::new(None);
        let result = routine(&b, op, [ty, second]);
        let routine = b.finish_with(&[result]);
        let partial = Lacks { total_division: true, ..Lacks::default() };
        for lacks in [Lacks::EVERYTHING, partial] {
            let legal = legalise(&routine, lacks);
            let copy = legalise(&legal, Lacks::default());
            assert_eq!(copy.to_string(), legal.to_string(), "{name}");
            let edges = [0, 1, 2, 3, 31, 32, 33, 63, 64, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
            let wide = [0x0123_4567_89ab_cdef, i64::MAX as u64, i64::MIN as u64, u64::MAX];
            let all: Vec<u64> = edges.into_iter().chain(wide).collect();
            for (x, y) in all.iter().flat_map(|x| all.iter().map(move |y| (*x, *y))) {
                let inputs = Two([x & ty.mask(), y & second.mask()]);
                let [before, after] = [&routine, &legal].map(|r| eval_results(r, &inputs));
                assert_eq!(before, after, "{name} of {x:#x} and {y:#x}");
            }
        }
    }

    #[test]
    fn replacements_give_the_same_results() {
        for ty in [Type::U32, Type::U64] {
            check("rotr", ty, |x, y| x.rotr_by(y), Type::U32);
            check("shl", ty, |x, y| x.shl_by(y), Type::U32);
            check("sar", ty, |x, y| x.sar_by(y), Type::U32);
            check("umulh", ty, |x, y| x.umulh(y), ty);
            check("smulh", ty, |x, y| x.smulh(y), ty);
            check("udiv", ty, |x, y| x.udiv(y), ty);
            check("sdiv", ty, |x, y| x.sdiv(y), ty);
            check("saddo", ty, |x, y| x.saddo(y), ty);
            check("ssubo", ty, |x, y| x.ssubo(y), ty);
            check("clz", ty, |x, _| x.clz(), ty);
            check("rbit", ty, |x, _| x.rbit(), ty);
            check("bswap", ty, |x, _| x.bswap(), ty);
        }
    }

    #[test]
    fn what_a_target_has_stays() {
        let b = Builder::new(None);
        let result = routine(&b, |x, y| x.rotr_by(y), [Type::U64, Type::U32]);
        let routine = b.finish_with(&[result]);
        assert_eq!(legalise(&routine, Lacks::default()), routine);
        let wide = Lacks { rotation: Some(Width::Wide), ..Lacks::default() };
        assert_ne!(legalise(&routine, wide), routine);
    }

    #[test]
    fn flags_become_bits() {
        let b = Builder::new(None);
        b.set_flags(Flags::Sub(b.param(Type::U32, 0), b.param(Type::U32, 1)));
        let legal = legalise(&b.finish(), Lacks::EVERYTHING);
        let last = &legal.body.stmts.last().unwrap().op;
        assert!(matches!(last, Op::SetFlags(Flags::Bits(_))), "{legal}");
        assert!(!legal.to_string().contains("ssubo"), "{legal}");
    }
}
