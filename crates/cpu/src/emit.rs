//! From the operations of a region to instructions of the host: one arm per operation.

use cranelift::codegen::ir::MemFlagsData;
use cranelift::prelude::*;
use kvrm_ir::{
    BinOp, CmpOp, Cond, ConvOp, Flags, FloatOp, Op, Order, Stmt, Type as IrType, UnOp,
    Value as IrValue,
};

use crate::memory::guest_flags;
use crate::translate::{
    Translator, context_flags, function_value, host_type, stub_signature, var_offset,
};

/// For changes of the type that are not by memory.
const NO_FLAGS: MemFlagsData = MemFlagsData::new();

/// The host's type of numbers whose bit patterns have a type of the IR.
fn float_type(ty: IrType) -> Type {
    if ty == IrType::U32 { types::F32 } else { types::F64 }
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

    fn ty(&self, v: IrValue) -> IrType {
        self.region.values[v.0 as usize].ty
    }

    pub(crate) fn stmts(&mut self, stmts: &[Stmt]) {
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
            Op::Word => unreachable!("the word is known in translated code"),
            Op::Param(index) => {
                let at = function_value(usize::from(*index)) as i32;
                vec![self.b.ins().load(result_type(), context_flags(), self.context, at)]
            }
            Op::Call(function, args) => self.call(function, args, &stmt.results),
            Op::Float(op, args) => vec![self.float(*op, args, result_type())],
            Op::Count => vec![self.count()],
            Op::Unary(op, a) => vec![self.unary(*op, *a)],
            Op::Binary(op, a, b) => vec![self.binary(*op, *a, *b)],
            Op::Compare(op, a, b) => vec![self.compare(*op, *a, *b)],
            Op::Select(c, a, b) => {
                let [c, x, y] = [c, a, b].map(|v| self.value(*v));
                vec![self.b.ins().select(c, x, y)]
            }
            Op::Convert(op, a) => {
                let a = self.value(*a);
                vec![self.convert(*op, a, result_type())]
            }
            Op::ReadReg(file, index) => vec![self.read_register(self.slot(*file, *index))],
            Op::WriteReg(file, index, value) => {
                let value = self.value(*value);
                self.write_register(self.slot(*file, *index), value);
                vec![]
            }
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
                vec![self.b.use_var(self.flag_vars[index.expect("regions test single flags")])]
            }
            Op::SetFlags(flags) => {
                let Flags::Bits(bits) = flags else {
                    unreachable!("regions know the operands of flags")
                };
                for (var, bit) in self.flag_vars.into_iter().zip(bits) {
                    let bit = self.value(*bit);
                    self.b.def_var(var, bit);
                }
                vec![]
            }
            Op::Probe { place, addr } => {
                let data = self.region.places[place.0 as usize];
                let addr = self.value(*addr);
                self.places[place.0 as usize] = Some(self.probe(data, addr));
                vec![]
            }
            Op::Load { order, place, index } => {
                let (at, offset) = self.element(*place, *index);
                vec![match (order, self.target.shared) {
                    (Order::AcquireRelease, true) => {
                        let at = self.b.ins().iadd_imm_s(at, i64::from(offset));
                        self.b.ins().atomic_load(result_type(), guest_flags(), at)
                    }
                    (Order::AcquireRelease, false) | (Order::Plain, _) => {
                        self.b.ins().load(result_type(), guest_flags(), at, offset)
                    }
                }]
            }
            Op::Store { order, place, index, value } => {
                let value = self.value(*value);
                let (at, offset) = self.element(*place, *index);
                match (order, self.target.shared) {
                    (Order::AcquireRelease, true) => {
                        let at = self.b.ins().iadd_imm_s(at, i64::from(offset));
                        self.b.ins().atomic_store(guest_flags(), value, at)
                    }
                    (Order::AcquireRelease, false) | (Order::Plain, _) => {
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
                if self.target.shared {
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
                let cond = self.value(*cond);
                let [a, b, merge] = std::array::from_fn(|_| self.b.create_block());
                for (block, arm) in [(a, then), (b, otherwise)] {
                    if arm.stmts.iter().any(|stmt| matches!(stmt.op, Op::Call(..))) {
                        self.b.set_cold_block(block);
                    }
                }
                let types: Vec<_> = stmt.results.iter().map(|r| host_type(self.ty(*r))).collect();
                let results =
                    types.into_iter().map(|ty| self.b.append_block_param(merge, ty)).collect();
                self.b.ins().brif(cond, a, &[], b, &[]);
                for (block, arm) in [(a, then), (b, otherwise)] {
                    self.b.switch_to_block(block);
                    self.b.seal_block(block);
                    self.stmts(&arm.stmts);
                    let yields: Vec<_> = arm.yields.iter().map(|v| self.value(*v).into()).collect();
                    self.b.ins().jump(merge, &yields);
                }
                self.b.switch_to_block(merge);
                self.b.seal_block(merge);
                results
            }
        }
    }

    // Pure operations.

    /// Calls a function, once for each set of arguments.
    fn call(
        &mut self,
        function: &kvrm_ir::Function,
        args: &[IrValue],
        results: &[IrValue],
    ) -> Vec<Value> {
        let address = self.outside.functions[function.name];
        let mut values = Vec::with_capacity(results.len());
        let sets = args.chunks(function.params.len());
        for (args, results) in sets.zip(results.chunks(function.results.len())) {
            for (index, arg) in args.iter().enumerate() {
                let arg = self.value(*arg);
                self.store_context(function_value(index), arg);
            }
            let signature = self.b.import_signature(stub_signature());
            let code = self.b.ins().iconst(types::I64, address as i64);
            self.b.ins().call_indirect(signature, code, &[self.context]);
            for (index, result) in results.iter().enumerate() {
                let (ty, at) = (host_type(self.ty(*result)), function_value(index) as i32);
                values.push(self.b.ins().load(ty, context_flags(), self.context, at));
            }
        }
        values
    }

    fn float(&mut self, op: FloatOp, args: &[IrValue], result: Type) -> Value {
        let from_integer = matches!(op, FloatOp::FromSigned | FloatOp::FromUnsigned);
        let args: Vec<Value> = args
            .iter()
            .map(|arg| {
                let (ty, arg) = (self.ty(*arg), self.value(*arg));
                if from_integer { arg } else { self.b.ins().bitcast(float_type(ty), NO_FLAGS, arg) }
            })
            .collect();
        let to = if result == types::I32 { types::F32 } else { types::F64 };
        let ins = self.b.ins();
        let number = match op {
            FloatOp::Add => ins.fadd(args[0], args[1]),
            FloatOp::Sub => ins.fsub(args[0], args[1]),
            FloatOp::Mul => ins.fmul(args[0], args[1]),
            FloatOp::Div => ins.fdiv(args[0], args[1]),
            FloatOp::Sqrt => ins.sqrt(args[0]),
            FloatOp::MulAdd if self.target.has_fma => ins.fma(args[0], args[1], args[2]),
            // Not a number, which no shortcut is content with.
            FloatOp::MulAdd => return ins.iconst(result, -1),
            FloatOp::Convert if result == types::I32 => ins.fdemote(to, args[0]),
            FloatOp::Convert => ins.fpromote(to, args[0]),
            FloatOp::FromSigned => ins.fcvt_from_sint(to, args[0]),
            FloatOp::FromUnsigned => ins.fcvt_from_uint(to, args[0]),
            FloatOp::ToSigned => return ins.fcvt_to_sint_sat(result, args[0]),
            FloatOp::ToUnsigned => return ins.fcvt_to_uint_sat(result, args[0]),
            FloatOp::Equal => return ins.fcmp(FloatCC::Equal, args[0], args[1]),
            FloatOp::Less => return ins.fcmp(FloatCC::LessThan, args[0], args[1]),
        };
        self.b.ins().bitcast(result, NO_FLAGS, number)
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
