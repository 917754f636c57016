//! From the operations of a region to instructions of the host: one arm per operation.

use std::mem::offset_of;

use cranelift::codegen::ir::FuncRef;
use cranelift::prelude::*;
use kvrm_a64::state::PC;
use kvrm_ir::{
    BinOp, CmpOp, Cond, ConvOp, Flags, Op, Order, Stmt, Type as IrType, UnOp, Value as IrValue,
};

use crate::compiler::import;
use crate::context::LaneContext;
use crate::memory::guest_flags;
use crate::translate::{
    Translator, context_flags, flag_offset, function_value, host_type, stub_signature, var_offset,
};

/// True if a block calls a function, which is what rare cases do.
fn calls(block: &kvrm_ir::Block) -> bool {
    let mut calls = false;
    block.for_each_stmt(&mut |stmt| calls |= matches!(stmt.op, Op::Call(..)));
    calls
}

/// True if a block writes registers.
fn writes_registers(block: &kvrm_ir::Block) -> bool {
    let mut writes = false;
    block.for_each_stmt(&mut |stmt| writes |= matches!(stmt.op, Op::WriteReg(..)));
    writes
}

impl Translator<'_> {
    /// The host's value for one of the region.
    pub(crate) fn value(&mut self, v: IrValue) -> Value {
        let data = self.region.values[v.0 as usize];
        match data.constant {
            Some(bits) => self.b.ins().iconst(host_type(data.ty), bits as i64),
            None => self.values[v.0 as usize].expect("values are defined before they are used"),
        }
    }

    pub(crate) fn ty(&self, v: IrValue) -> IrType {
        self.region.values[v.0 as usize].ty
    }

    pub(crate) fn stmts(&mut self, stmts: &[Stmt]) {
        self.forms.note_wanted(stmts, self.region);
        for stmt in stmts {
            let results = self.stmt(stmt);
            for (result, value) in stmt.results.iter().zip(results) {
                self.values[result.0 as usize] = Some(value);
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Vec<Value> {
        let result = stmt.results.first().map(|r| host_type(self.ty(*r)));
        let result_type = || result.expect("the operation has a result");
        match &stmt.op {
            Op::Word => {
                let decoding = self.decoding.expect("the word is known in translated code");
                vec![self.b.ins().ireduce(types::I32, decoding.word)]
            }
            Op::Param(index) => vec![match self.step {
                Some(step) => self.parameter(step, *index, stmt.results[0]),
                None => {
                    let at = function_value(usize::from(*index)) as i32;
                    self.b.ins().load(result_type(), context_flags(), self.context, at)
                }
            }],
            Op::Call(function, args) => self.call(function, args, &stmt.results),
            Op::Float(op, args) => vec![self.float(*op, args, stmt.results[0])],
            Op::Packed(op, lane, args) => vec![self.packed(*op, *lane, args)],
            Op::Pair(low, high) => vec![self.pair(*low, *high)],
            Op::Half(whole, half) => vec![self.half(*whole, *half, stmt.results[0])],
            Op::Count => vec![self.count()],
            Op::Unary(op, a) => vec![self.unary(*op, *a)],
            Op::Binary(op, a, b) => {
                if *op == BinOp::And && self.ty(*a) == IrType::Bool {
                    self.forms.conjoined(stmt.results[0], [*a, *b]);
                }
                if *op == BinOp::Xor {
                    self.note_negated(*a, *b, stmt.results[0]);
                }
                vec![self.binary(*op, *a, *b)]
            }
            Op::Compare(op, a, b) => vec![self.compare(*op, *a, *b)],
            Op::Select(c, a, b) => {
                let [c, x, y] = [c, a, b].map(|v| self.value(*v));
                vec![self.b.ins().select(c, x, y)]
            }
            Op::Convert(op, a) => {
                self.forms.converted(*op, *a, stmt.results[0]);
                if let (ConvOp::Zext, types::I64, Some(number)) =
                    (*op, result_type(), self.forms.zero_extended(*a))
                {
                    return vec![number];
                }
                let a = self.value(*a);
                vec![self.convert(*op, a, result_type())]
            }
            Op::ReadReg(file, index) => vec![match self.step {
                Some(_) => self.load_register(*file, *index),
                None => self.read_register(self.slot(*file, *index)),
            }],
            Op::WriteReg(file, index, value) => {
                let value = self.value(*value);
                match self.step {
                    Some(_) => self.store_register(*file, *index, value),
                    None => self.write_register(self.slot(*file, *index), value),
                }
                vec![]
            }
            Op::ReadVar(PC) => vec![self.address()],
            Op::ReadVar(var) => vec![match self.operand_var(*var) {
                Some(operand) => self.b.use_var(operand),
                None => {
                    let (ty, offset) = (host_type(var.ty), var_offset(*var));
                    self.b.ins().load(ty, context_flags(), self.context, offset)
                }
            }],
            Op::WriteVar(var, value) => {
                let value = self.value(*value);
                match self.operand_var(*var) {
                    Some(operand) => self.b.def_var(operand, value),
                    None => self.store_context(var_offset(*var) as usize, value),
                }
                vec![]
            }
            Op::Test(cond) => {
                let index = Cond::FLAGS.iter().position(|flag| flag == cond);
                let index = index.expect("only single flags are tested");
                let at = flag_offset(index) as i32;
                vec![self.b.ins().load(types::I8, context_flags(), self.context, at)]
            }
            Op::SetFlags(flags) => {
                let Flags::Bits(bits) = flags else {
                    unreachable!("the operands of flags are known, or flags are bits")
                };
                for (index, bit) in bits.iter().enumerate() {
                    let bit = self.value(*bit);
                    self.store_context(flag_offset(index), bit);
                }
                let nothing = self.b.ins().iconst(types::I32, 0);
                self.store_context(offset_of!(LaneContext, flags.code), nothing);
                vec![]
            }
            Op::Probe { place, addr } => {
                let data = self.region.places[place.0 as usize];
                let addr = self.value(*addr);
                self.places[place.0 as usize] = Some(self.probe(*place, data, addr));
                vec![]
            }
            Op::Load { order, place, index } => {
                let (at, offset) = self.element(*place, *index);
                vec![match (order, self.target.kind.atomic) {
                    (Order::AcquireRelease, true) => {
                        let at = self.b.ins().iadd_imm_s(at, i64::from(offset));
                        self.b.ins().atomic_load(result_type(), guest_flags(), at)
                    }
                    (Order::AcquireRelease, false) | (Order::Plain, _) => {
                        self.load(stmt.results[0], at, offset)
                    }
                }]
            }
            Op::Store { order, place, index, value } => {
                let (at, offset) = self.element(*place, *index);
                match (order, self.target.kind.atomic) {
                    (Order::AcquireRelease, true) => {
                        let at = self.b.ins().iadd_imm_s(at, i64::from(offset));
                        let value = self.value(*value);
                        self.b.ins().atomic_store(guest_flags(), value, at)
                    }
                    (Order::AcquireRelease, false) | (Order::Plain, _) => {
                        let value = self.value_or_number(*value);
                        self.b.ins().store(guest_flags(), value, at, offset)
                    }
                };
                vec![]
            }
            Op::Rmw { op, place, value } => {
                let value = self.value(*value);
                let (at, _) = self.element(*place, 0);
                vec![self.rmw(*op, at, value)]
            }
            Op::Cas { place, expected, new } => {
                let [expected, new] = [expected, new].map(|v| self.value(*v));
                let (at, _) = self.element(*place, 0);
                vec![self.cas(at, expected, new)]
            }
            Op::Cas128 { place, expected, new } => {
                let operands = [expected, new].map(|pair| pair.map(|v| self.value(v)));
                let (at, _) = self.element(*place, 0);
                self.cas128(at, operands)
            }
            Op::Fence => {
                if self.target.kind.atomic {
                    self.b.ins().fence();
                }
                vec![]
            }
            Op::Exit { exit, cond, detail } => {
                let [cond, detail] = [cond, detail].map(|v| self.value(*v));
                self.leave_if(cond, |t| t.exit(*exit, detail));
                vec![]
            }
            Op::If { cond, then, otherwise } => {
                let [a, b, merge] = std::array::from_fn(|_| self.create_block());
                for (block, arm) in [(a, then), (b, otherwise)] {
                    if calls(arm) {
                        self.b.set_cold_block(block);
                    }
                }
                let before = self.begin_arms(writes_registers(then) || writes_registers(otherwise));
                self.branch_to(*cond, a, b);
                // A result that one arm has as a number stays one.
                let numbers: Vec<_> =
                    then.yields.iter().map(|v| self.forms.number(*v).is_some()).collect();
                let mut after = before.clone();
                for (block, arm) in [(a, then), (b, otherwise)] {
                    self.b.switch_to_block(block);
                    self.b.seal_block(block);
                    self.stmts(&arm.stmts);
                    self.end_arm(before.as_deref(), &mut after);
                    let yields = arm.yields.iter().zip(&numbers);
                    let yields: Vec<_> =
                        yields.map(|(v, number)| self.yielded(*v, *number).into()).collect();
                    self.b.ins().jump(merge, &yields);
                }
                self.end_arms(after);
                self.b.switch_to_block(merge);
                self.b.seal_block(merge);
                self.merged(merge, &stmt.results, &numbers)
            }
        }
    }

    /// A block that is as rarely reached as the current one.
    pub(crate) fn create_block(&mut self) -> Block {
        let block = self.b.create_block();
        if self.b.current_block().is_some_and(|current| self.b.func.layout.is_cold(current)) {
            self.b.set_cold_block(block);
        }
        block
    }

    /// Goes to one of two blocks. A condition that is two is tested in two steps, so that each is a comparison and a branch.
    fn branch_to(&mut self, cond: IrValue, then: Block, otherwise: Block) {
        let Some([first, second]) = self.forms.conjunction(cond) else {
            let cond = self.value(cond);
            self.b.ins().brif(cond, then, &[], otherwise, &[]);
            return;
        };
        let next = self.create_block();
        self.branch_to(first, next, otherwise);
        self.b.switch_to_block(next);
        self.b.seal_block(next);
        self.branch_to(second, then, otherwise);
    }

    // Pure operations.

    /// Calls a function, once for each set of arguments.
    fn call(
        &mut self,
        function: &kvrm_ir::Function,
        args: &[IrValue],
        results: &[IrValue],
    ) -> Vec<Value> {
        let code = self.host_function(self.functions[function.name]);
        let mut values = Vec::with_capacity(results.len());
        let sets = args.chunks(function.params.len());
        for (args, results) in sets.zip(results.chunks(function.results.len())) {
            for (index, arg) in args.iter().enumerate() {
                let arg = self.value(*arg);
                self.store_context(function_value(index), arg);
            }
            self.b.ins().call(code, &[self.context]);
            for (index, result) in results.iter().enumerate() {
                let (ty, at) = (host_type(self.ty(*result)), function_value(index) as i32);
                values.push(self.b.ins().load(ty, context_flags(), self.context, at));
            }
        }
        values
    }

    /// A function at an address of the host, with the signature of stubs.
    fn host_function(&mut self, address: usize) -> FuncRef {
        let signature = self.b.import_signature(stub_signature());
        import(&mut self.b, address, signature)
    }

    fn unary(&mut self, op: UnOp, a: IrValue) -> Value {
        let (ty, a) = (self.ty(a), self.value(a));
        match op {
            UnOp::Not if ty == IrType::Bool => self.b.ins().bxor_imm_u(a, 1),
            UnOp::Not => self.b.ins().bnot(a),
            UnOp::Neg => self.b.ins().ineg(a),
            UnOp::Clz => self.b.ins().clz(a),
            UnOp::Rbit => self.b.ins().bitrev(a),
            UnOp::Bswap => self.b.ins().bswap(a),
        }
    }

    fn binary(&mut self, op: BinOp, a: IrValue, b: IrValue) -> Value {
        let [a, b] = [a, b].map(|v| self.value(v));
        let ins = self.b.ins();
        match op {
            BinOp::Add => ins.iadd(a, b),
            BinOp::Sub => ins.isub(a, b),
            BinOp::Mul => ins.imul(a, b),
            BinOp::UMulH => ins.umulhi(a, b),
            BinOp::SMulH => ins.smulhi(a, b),
            BinOp::UDiv => ins.udiv(a, b),
            BinOp::SDiv => ins.sdiv(a, b),
            BinOp::And => ins.band(a, b),
            BinOp::Or => ins.bor(a, b),
            BinOp::Xor => ins.bxor(a, b),
            BinOp::Shl => ins.ishl(a, b),
            BinOp::Shr => ins.ushr(a, b),
            BinOp::Sar => ins.sshr(a, b),
            BinOp::Rotr => ins.rotr(a, b),
        }
    }

    fn compare(&mut self, op: CmpOp, a: IrValue, b: IrValue) -> Value {
        let [a, b] = [a, b].map(|v| self.value(v));
        let code = match op {
            CmpOp::Eq => IntCC::Equal,
            CmpOp::Ne => IntCC::NotEqual,
            CmpOp::Ult => IntCC::UnsignedLessThan,
            CmpOp::Ule => IntCC::UnsignedLessThanOrEqual,
            CmpOp::Slt => IntCC::SignedLessThan,
            CmpOp::Sle => IntCC::SignedLessThanOrEqual,
            CmpOp::SAddO | CmpOp::SSubO => unreachable!("not legal"),
        };
        self.b.ins().icmp(code, a, b)
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
}
