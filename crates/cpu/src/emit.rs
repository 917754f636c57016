//! From the operations of a routine to instructions of the host: one arm per operation.

use std::mem::offset_of;

use cranelift::codegen::ir::condcodes::CondCode;
use cranelift::prelude::*;
use kvrm_a64::state::PC;
use kvrm_ir::{
    BinOp, CmpOp, ConvOp, Op, Order, Routine, Stmt, Type as IrType, UnOp, Value as IrValue,
};

use crate::context::{ExitKind, LaneContext};
use crate::flags::{FlagKind, FlagState, FlagWrite, Known, Operand, flag_index};
use crate::memory::guest_flags;
use crate::translate::{Translator, context_flags, host_type, var_offset};

/// Host values of a routine's values, and what comparisons they stand for.
pub(crate) struct Values {
    values: Vec<Option<Value>>,
    conditions: Vec<Option<Condition>>,
}

/// What a value says about the operands of the kept flags of a subtraction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    /// `x cc y`.
    Compares(IntCC),
    /// The sign of `x - y`.
    Negative,
    /// The signed overflow of `x - y`.
    Overflow,
}

fn condition_code(op: CmpOp) -> Option<IntCC> {
    Some(match op {
        CmpOp::Eq => IntCC::Equal,
        CmpOp::Ne => IntCC::NotEqual,
        CmpOp::Ult => IntCC::UnsignedLessThan,
        CmpOp::Ule => IntCC::UnsignedLessThanOrEqual,
        CmpOp::Slt => IntCC::SignedLessThan,
        CmpOp::Sle => IntCC::SignedLessThanOrEqual,
        CmpOp::SAddO | CmpOp::SSubO => return None,
    })
}

impl Translator<'_> {
    /// Emits a routine; its values, for the branch that may follow.
    pub(crate) fn routine(&mut self, routine: &Routine) -> Values {
        let mut values = Values {
            values: vec![None; routine.values.len()],
            conditions: vec![None; routine.values.len()],
        };
        let flag_write = FlagWrite::of(routine);
        self.flags_overtaken = flag_write.is_some();
        self.stmts(routine, &mut values, &routine.body.stmts, flag_write.is_some());
        if let Some(write) = flag_write {
            self.keep_flags(routine, &values, write);
        }
        values
    }

    /// The host's value for a routine's.
    pub(crate) fn value(&mut self, routine: &Routine, values: &Values, v: IrValue) -> Value {
        let data = routine.value(v);
        match data.constant {
            Some(bits) => self.b.ins().iconst(host_type(data.ty), bits as i64),
            None => values.values[v.0 as usize].expect("values are defined before they are used"),
        }
    }

    fn stmts(&mut self, routine: &Routine, values: &mut Values, stmts: &[Stmt], flags_kept: bool) {
        for stmt in stmts {
            if let [result] = stmt.results[..] {
                values.conditions[result.0 as usize] = self.condition(values, &stmt.op);
            }
            let results = self.stmt(routine, values, stmt, flags_kept);
            for (result, value) in stmt.results.iter().zip(results) {
                values.values[result.0 as usize] = Some(value);
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm per operation")]
    fn stmt(
        &mut self,
        routine: &Routine,
        values: &mut Values,
        stmt: &Stmt,
        flags_kept: bool,
    ) -> Vec<Value> {
        macro_rules! get {
            ($v:expr) => {
                self.value(routine, values, *$v)
            };
        }
        let result_type = stmt.results.first().map(|r| host_type(routine.value(*r).ty));
        let ty = |v: &IrValue| routine.value(*v).ty;
        if let [result] = stmt.results[..]
            && let Some(Condition::Compares(cc)) = values.conditions[result.0 as usize]
        {
            return vec![self.compare_operands(cc)];
        }
        match &stmt.op {
            Op::Word | Op::Param(_) => unreachable!("the word is known in translated code"),
            Op::Count => vec![self.count()],
            Op::Unary(op, a) => {
                let x = get!(a);
                vec![self.unary(*op, ty(a), x)]
            }
            Op::Binary(op, a, b) => {
                let (x, y) = (get!(a), get!(b));
                let divisor = routine.constant(*b);
                vec![self.binary(*op, ty(a), x, y, divisor)]
            }
            Op::Compare(op, a, b) => {
                let (x, y) = (get!(a), get!(b));
                vec![self.compare(*op, x, y)]
            }
            Op::Select(c, a, b) => {
                let (c, x, y) = (get!(c), get!(a), get!(b));
                vec![self.b.ins().select(c, x, y)]
            }
            Op::Convert(op, a) => {
                let to = result_type.expect("conversions have a result");
                let a = get!(a);
                vec![self.convert(*op, a, to)]
            }
            Op::ReadReg(_, index) => vec![self.read_register(slot(routine, *index))],
            Op::WriteReg(_, index, value) => {
                let value = get!(value);
                self.write_register(slot(routine, *index), value);
                vec![]
            }
            Op::ReadVar(var) => match flag_index(*var) {
                Some(index) => vec![self.read_flag(index)],
                None => {
                    let (ty, offset) = (host_type(var.ty), var_offset(*var));
                    vec![self.b.ins().load(ty, context_flags(), self.context, offset)]
                }
            },
            // Where control goes is the region's knowledge.
            Op::WriteVar(var, _) if var.id == PC.id => vec![],
            Op::WriteVar(var, value) => {
                match flag_index(*var) {
                    Some(_) if flags_kept => {}
                    Some(index) => {
                        let value = get!(value);
                        self.write_flag(index, value);
                    }
                    None => {
                        let value = get!(value);
                        self.store_context(var_offset(*var) as usize, value);
                    }
                }
                vec![]
            }
            Op::Probe { access, addr, len } => {
                let addr = get!(addr);
                self.probe(*access, addr, *len);
                vec![]
            }
            Op::Load { order, addr } => {
                let addr = get!(addr);
                let at = self.guest_address(addr);
                let ty = result_type.expect("loads have a result");
                vec![match (order, self.target.shared) {
                    (Order::AcquireRelease, true) => {
                        self.b.ins().atomic_load(ty, guest_flags(), at)
                    }
                    _ => self.b.ins().load(ty, guest_flags(), at, 0),
                }]
            }
            Op::Store { order, addr, value } => {
                let value = get!(value);
                let addr = get!(addr);
                let at = self.guest_address(addr);
                match (order, self.target.shared) {
                    (Order::AcquireRelease, true) => {
                        self.b.ins().atomic_store(guest_flags(), value, at)
                    }
                    _ => self.b.ins().store(guest_flags(), value, at, 0),
                };
                vec![]
            }
            Op::Rmw { op, addr, value } => {
                let value = get!(value);
                let addr = get!(addr);
                let at = self.guest_address(addr);
                vec![self.rmw(*op, at, value)]
            }
            Op::Cas { addr, expected, new } => {
                let (expected, new) = (get!(expected), get!(new));
                let addr = get!(addr);
                let at = self.guest_address(addr);
                vec![self.cas(at, expected, new)]
            }
            Op::Cas128 { addr, expected, new } => {
                let operands = [addr, &expected[0], &expected[1], &new[0], &new[1]];
                let operands = operands.map(|v| get!(v));
                self.cas128(operands)
            }
            Op::Fence => {
                if self.target.shared {
                    self.b.ins().fence();
                }
                vec![]
            }
            Op::Exit { exit, cond, detail } => {
                let detail = get!(detail);
                let leave = |t: &mut Self| {
                    let reason = t.b.ins().iconst(types::I32, i64::from(exit.reason));
                    t.store_context(offset_of!(LaneContext, reason), reason);
                    t.store_context(offset_of!(LaneContext, detail), detail);
                    let done = i64::from(exit.completes);
                    let pc = t.pc.wrapping_add(4 * done as u64);
                    t.leave(ExitKind::Exit, pc, t.unexecuted - done);
                };
                match routine.constant(*cond) {
                    Some(_) => leave(self),
                    None => {
                        let cond = get!(cond);
                        self.leave_if(cond, leave);
                    }
                }
                vec![]
            }
            Op::If { cond, then, otherwise } => {
                let cond = get!(cond);
                let [a, b, merge] = std::array::from_fn(|_| self.b.create_block());
                let results: Vec<Value> = stmt
                    .results
                    .iter()
                    .map(|r| self.b.append_block_param(merge, host_type(routine.value(*r).ty)))
                    .collect();
                self.b.ins().brif(cond, a, &[], b, &[]);
                for (block, arm) in [(a, then), (b, otherwise)] {
                    self.b.switch_to_block(block);
                    self.b.seal_block(block);
                    self.stmts(routine, values, &arm.stmts, flags_kept);
                    let yields: Vec<_> = arm.yields.iter().map(|v| get!(v).into()).collect();
                    self.b.ins().jump(merge, &yields);
                }
                self.b.switch_to_block(merge);
                self.b.seal_block(merge);
                results
            }
        }
    }

    // Pure operations.

    fn unary(&mut self, op: UnOp, ty: IrType, a: Value) -> Value {
        match op {
            UnOp::Not if ty == IrType::Bool => self.b.ins().bxor_imm_u(a, 1),
            UnOp::Not => self.b.ins().bnot(a),
            UnOp::Neg => self.b.ins().ineg(a),
            UnOp::Clz => self.b.ins().clz(a),
            UnOp::Rbit => self.b.ins().bitrev(a),
            UnOp::Bswap => self.b.ins().bswap(a),
        }
    }

    fn binary(&mut self, op: BinOp, ty: IrType, a: Value, b: Value, known: Option<u64>) -> Value {
        let ins = self.b.ins();
        match op {
            BinOp::Add => ins.iadd(a, b),
            BinOp::Sub => ins.isub(a, b),
            BinOp::Mul => ins.imul(a, b),
            BinOp::UMulH => ins.umulhi(a, b),
            BinOp::SMulH => ins.smulhi(a, b),
            BinOp::UDiv | BinOp::SDiv => self.divide(op == BinOp::SDiv, ty, a, b, known),
            BinOp::And => ins.band(a, b),
            BinOp::Or => ins.bor(a, b),
            BinOp::Xor => ins.bxor(a, b),
            BinOp::Shl => ins.ishl(a, b),
            BinOp::Shr => ins.ushr(a, b),
            BinOp::Sar => ins.sshr(a, b),
            BinOp::Rotr => ins.rotr(a, b),
        }
    }

    /// Division with the edges of the IR: the host would trap on them.
    fn divide(
        &mut self,
        signed: bool,
        ty: IrType,
        a: Value,
        b: Value,
        known: Option<u64>,
    ) -> Value {
        let host = host_type(ty);
        if known.is_some_and(|d| d != 0 && d != ty.mask()) {
            return if signed { self.b.ins().sdiv(a, b) } else { self.b.ins().udiv(a, b) };
        }
        let zero = self.b.ins().iconst(host, 0);
        let one = self.b.ins().iconst(host, 1);
        let by_zero = self.b.ins().icmp(IntCC::Equal, b, zero);
        if !signed {
            let divisor = self.b.ins().select(by_zero, one, b);
            let quotient = self.b.ins().udiv(a, divisor);
            return self.b.ins().select(by_zero, zero, quotient);
        }
        // Dividing by -1 is negation, which has no overflow.
        let minus_one = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let special = self.b.ins().bor(by_zero, minus_one);
        let divisor = self.b.ins().select(special, one, b);
        let quotient = self.b.ins().sdiv(a, divisor);
        let negated = self.b.ins().ineg(a);
        let quotient = self.b.ins().select(minus_one, negated, quotient);
        self.b.ins().select(by_zero, zero, quotient)
    }

    fn compare(&mut self, op: CmpOp, a: Value, b: Value) -> Value {
        match (condition_code(op), op) {
            (Some(cc), _) => self.b.ins().icmp(cc, a, b),
            (None, CmpOp::SAddO) => self.add_overflow(a, b),
            (None, _) => self.sub_overflow(a, b),
        }
    }

    /// The operands agree in sign, and the sum does not.
    fn add_overflow(&mut self, a: Value, b: Value) -> Value {
        let sum = self.b.ins().iadd(a, b);
        let (x, y) = (self.b.ins().bxor(a, sum), self.b.ins().bxor(b, sum));
        let both = self.b.ins().band(x, y);
        self.b.ins().icmp_imm_s(IntCC::SignedLessThan, both, 0)
    }

    /// The operands differ in sign, and so do the first and the difference.
    fn sub_overflow(&mut self, a: Value, b: Value) -> Value {
        let difference = self.b.ins().isub(a, b);
        let (x, y) = (self.b.ins().bxor(a, b), self.b.ins().bxor(a, difference));
        let both = self.b.ins().band(x, y);
        self.b.ins().icmp_imm_s(IntCC::SignedLessThan, both, 0)
    }

    fn convert(&mut self, op: ConvOp, a: Value, to: Type) -> Value {
        // A `bool` is a byte already.
        if self.b.func.dfg.value_type(a) == to {
            return a;
        }
        match op {
            ConvOp::Trunc => self.b.ins().ireduce(to, a),
            ConvOp::Zext => self.b.ins().uextend(to, a),
            ConvOp::Sext => self.b.ins().sextend(to, a),
        }
    }

    // Flags.

    /// Remembers the operands of an operation instead of its flags.
    fn keep_flags(&mut self, routine: &Routine, values: &Values, write: FlagWrite) {
        let known = write.known(routine);
        for (i, value) in [Some(write.x), write.y].into_iter().enumerate() {
            if let (Operand::Kept, Some(value)) = (known.operands[i], value) {
                let value = self.value(routine, values, value);
                self.keep_operand(known.ty, i, value);
            }
        }
        self.flags = FlagState::Known(known);
    }

    /// Puts an operand of the flags into the variable for it.
    pub(crate) fn keep_operand(&mut self, ty: IrType, index: usize, value: Value) {
        let var = self.operand_vars[usize::from(ty == IrType::U64)][index];
        self.b.def_var(var, value);
    }

    /// An operand of the flags, wherever it is.
    pub(crate) fn operand(&mut self, known: Known, index: usize) -> Value {
        match known.operands[index] {
            Operand::Kept => {
                let var = self.operand_vars[usize::from(known.ty == IrType::U64)][index];
                self.b.use_var(var)
            }
            Operand::Const(bits) => self.b.ins().iconst(host_type(known.ty), bits as i64),
            Operand::Reg(slot, plus) => {
                let value = self.read_register(slot);
                let value = self.convert(ConvOp::Trunc, value, host_type(known.ty));
                match plus {
                    0 => value,
                    plus => {
                        let plus = self.b.ins().iconst(host_type(known.ty), plus as i64);
                        self.b.ins().iadd(value, plus)
                    }
                }
            }
        }
    }

    fn operands(&mut self) -> [Value; 2] {
        let FlagState::Known(known) = self.flags else { unreachable!("the flags are stored") };
        [self.operand(known, 0), self.operand(known, 1)]
    }

    /// Compares the operands of kept flags of a subtraction.
    fn compare_operands(&mut self, cc: IntCC) -> Value {
        let FlagState::Known(known) = self.flags else { unreachable!("the flags are stored") };
        // Equality can be seen from the difference, if a register holds it: the minuend, which would
        // have to be kept for longer, is not needed.
        if let [Operand::Reg(slot, plus), Operand::Const(y)] = known.operands
            && plus == y
            && matches!(cc, IntCC::Equal | IntCC::NotEqual)
        {
            let difference = self.read_register(slot);
            let difference = self.convert(ConvOp::Trunc, difference, host_type(known.ty));
            return self.b.ins().icmp_imm_u(cc, difference, 0);
        }
        let [x, y] = self.operands();
        self.b.ins().icmp(cc, x, y)
    }

    /// Reads N, Z, C or V.
    pub(crate) fn read_flag(&mut self, index: usize) -> Value {
        let FlagState::Known(Known { kind, .. }) = self.flags else {
            return self.b.use_var(self.flag_vars[index]);
        };
        let [x, y] = self.operands();
        match (kind, index) {
            (FlagKind::Logic, 0) => self.b.ins().icmp_imm_s(IntCC::SignedLessThan, x, 0),
            (FlagKind::Logic, 1) => self.b.ins().icmp_imm_s(IntCC::Equal, x, 0),
            (FlagKind::Logic, _) => self.b.ins().iconst(types::I8, 0),
            (FlagKind::Sub, 0) => {
                let difference = self.b.ins().isub(x, y);
                self.b.ins().icmp_imm_s(IntCC::SignedLessThan, difference, 0)
            }
            (FlagKind::Sub, 1) => self.compare_operands(IntCC::Equal),
            (FlagKind::Sub, 2) => self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, x, y),
            (FlagKind::Sub, _) => self.sub_overflow(x, y),
            (FlagKind::Add, 3) => self.add_overflow(x, y),
            (FlagKind::Add, _) => {
                let sum = self.b.ins().iadd(x, y);
                match index {
                    0 => self.b.ins().icmp_imm_s(IntCC::SignedLessThan, sum, 0),
                    1 => self.b.ins().icmp_imm_s(IntCC::Equal, sum, 0),
                    _ => self.b.ins().icmp(IntCC::UnsignedLessThan, sum, x),
                }
            }
        }
    }

    /// Writes one flag; the others stay, so they must be in variables first.
    fn write_flag(&mut self, index: usize, value: Value) {
        if self.flags != FlagState::Stored {
            self.store_flags_in_variables();
        }
        self.b.def_var(self.flag_vars[index], value);
    }

    /// What an operation says about the operands of kept flags, so that a condition becomes the one
    /// comparison it stands for.
    fn condition(&self, values: &Values, op: &Op) -> Option<Condition> {
        use Condition::{Compares, Negative, Overflow};
        let FlagState::Known(Known { kind: FlagKind::Sub, .. }) = self.flags else {
            return None;
        };
        let of = |v: &IrValue| values.conditions[v.0 as usize];
        match op {
            Op::ReadVar(var) => match flag_index(*var)? {
                0 => Some(Negative),
                1 => Some(Compares(IntCC::Equal)),
                2 => Some(Compares(IntCC::UnsignedGreaterThanOrEqual)),
                _ => Some(Overflow),
            },
            Op::Unary(UnOp::Not, a) => match of(a)? {
                Compares(cc) => Some(Compares(cc.complement())),
                Negative | Overflow => None,
            },
            Op::Compare(CmpOp::Eq, a, b) => match (of(a)?, of(b)?) {
                (Negative, Overflow) => Some(Compares(IntCC::SignedGreaterThanOrEqual)),
                _ => None,
            },
            Op::Binary(BinOp::And, a, b) => match (of(a)?, of(b)?) {
                (Compares(cc), Compares(IntCC::NotEqual)) if cc != cc.without_equal() => {
                    Some(Compares(cc.without_equal()))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

fn slot(routine: &Routine, index: IrValue) -> u64 {
    routine.constant(index).expect("register numbers are known in translated code")
}
