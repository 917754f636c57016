//! The reference implementation: walks a routine, value by value.

use crate::arith;
use crate::op::*;

/// The machine a routine works on.
///
/// Integers travel as `u64` with the bits above the type's width zero.
pub trait Machine {
    /// The instruction word.
    fn word(&self) -> u32;
    /// A parameter of a routine that was cut; only such routines ask for it.
    fn param(&self, index: u8) -> u64;
    /// Instructions completed so far.
    fn count(&self) -> u64;
    /// Reads a register slot.
    fn read_reg(&self, file: File, index: u32) -> u64;
    /// Writes a register slot.
    fn write_reg(&mut self, file: File, index: u32, value: u64);
    /// Reads a variable.
    fn read_var(&self, var: Var) -> u64;
    /// Writes a variable.
    fn write_var(&mut self, var: Var, value: u64);
    /// The first byte of `addr .. addr + len` that may not be accessed so, if there is one.
    fn probe(&mut self, access: Access, addr: u64, len: u32) -> Result<(), u64>;
    /// Loads from probed memory.
    fn load(&mut self, ty: Type, order: Order, addr: u64) -> u64;
    /// Stores to probed memory.
    fn store(&mut self, ty: Type, order: Order, addr: u64, value: u64);
    /// Compares and swaps atomically; the old contents.
    fn cas(&mut self, ty: Type, addr: u64, expected: u64, new: u64) -> u64;
    /// Compares and swaps two consecutive `u64`; the old contents.
    fn cas128(&mut self, addr: u64, expected: [u64; 2], new: [u64; 2]) -> [u64; 2];
    /// Orders all accesses.
    fn fence(&mut self);
}

/// How a routine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It ran to its end.
    Done,
    /// An `exit` was taken.
    Exit {
        /// Which.
        exit: Exit,
        /// Its operand.
        detail: u64,
    },
    /// A probe failed.
    Fault {
        /// What was asked for.
        access: Access,
        /// The first byte that may not be accessed so.
        addr: u64,
    },
}

/// Runs a routine once.
pub fn eval(routine: &Routine, machine: &mut impl Machine) -> End {
    let bits = routine.values.iter().map(|v| v.constant.unwrap_or(0)).collect();
    let mut walk = Walk { routine, machine, bits };
    walk.block(&routine.body).err().unwrap_or(End::Done)
}

/// Runs a routine that only computes; its results.
pub fn eval_results(routine: &Routine, machine: &mut impl Machine) -> Vec<u64> {
    let bits = routine.values.iter().map(|v| v.constant.unwrap_or(0)).collect();
    let mut walk = Walk { routine, machine, bits };
    walk.block(&routine.body).expect("a routine that only computes does not leave");
    routine.body.yields.iter().map(|v| walk.get(*v)).collect()
}

/// What an atomic read-modify-write stores.
pub fn rmw_result(op: RmwOp, ty: Type, old: u64, operand: u64) -> u64 {
    let less = |op| arith::compare(op, ty, old, operand);
    match op {
        RmwOp::Add => arith::binary(BinOp::Add, ty, old, operand),
        RmwOp::And => old & operand,
        RmwOp::Or => old | operand,
        RmwOp::Xor => old ^ operand,
        RmwOp::Swap => operand,
        RmwOp::SMax if less(CmpOp::Slt) => operand,
        RmwOp::SMin if !less(CmpOp::Slt) => operand,
        RmwOp::UMax if less(CmpOp::Ult) => operand,
        RmwOp::UMin if !less(CmpOp::Ult) => operand,
        RmwOp::SMax | RmwOp::SMin | RmwOp::UMax | RmwOp::UMin => old,
    }
}

struct Walk<'a, M> {
    routine: &'a Routine,
    machine: &'a mut M,
    bits: Vec<u64>,
}

impl<M: Machine> Walk<'_, M> {
    fn get(&self, v: Value) -> u64 {
        self.bits[v.0 as usize]
    }

    fn ty(&self, v: Value) -> Type {
        self.routine.value(v).ty
    }

    fn block(&mut self, block: &Block) -> Result<(), End> {
        block.stmts.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    /// Executes a statement and keeps its results.
    fn stmt(&mut self, stmt: &Stmt) -> Result<(), End> {
        let ty = stmt.results.first().map(|v| self.ty(*v));
        let one = |bits: u64| [Some(bits), None];
        let results = match &stmt.op {
            Op::Word => one(self.machine.word().into()),
            Op::Param(index) => one(self.machine.param(*index)),
            Op::Count => one(self.machine.count()),
            Op::Unary(op, a) => one(arith::unary(*op, self.ty(*a), self.get(*a))),
            Op::Binary(op, a, b) => {
                one(arith::binary(*op, self.ty(*a), self.get(*a), self.get(*b)))
            }
            Op::Compare(op, a, b) => {
                one(arith::compare(*op, self.ty(*a), self.get(*a), self.get(*b)).into())
            }
            Op::Select(c, a, b) => one(self.get(if self.get(*c) != 0 { *a } else { *b })),
            Op::Convert(op, a) => {
                let to = ty.expect("a conversion has a result");
                one(arith::convert(*op, self.ty(*a), to, self.get(*a)))
            }
            Op::ReadReg(file, index) => one(self.machine.read_reg(*file, self.get(*index) as u32)),
            Op::WriteReg(file, index, value) => {
                self.machine.write_reg(*file, self.get(*index) as u32, self.get(*value));
                [None; 2]
            }
            Op::ReadVar(var) => one(self.machine.read_var(*var)),
            Op::WriteVar(var, value) => {
                self.machine.write_var(*var, self.get(*value));
                [None; 2]
            }
            Op::Probe { access, addr, len } => {
                let fault = |addr| End::Fault { access: *access, addr };
                self.machine.probe(*access, self.get(*addr), *len).map_err(fault)?;
                [None; 2]
            }
            Op::Load { order, addr } => {
                let ty = ty.expect("a load has a result");
                one(self.machine.load(ty, *order, self.get(*addr)))
            }
            Op::Store { order, addr, value } => {
                let ty = self.ty(*value);
                self.machine.store(ty, *order, self.get(*addr), self.get(*value));
                [None; 2]
            }
            Op::Rmw { op, addr, value } => {
                let ty = self.ty(*value);
                one(self.rmw(*op, ty, self.get(*addr), self.get(*value)))
            }
            Op::Cas { addr, expected, new } => {
                let ty = self.ty(*new);
                let (expected, new) = (self.get(*expected), self.get(*new));
                one(self.machine.cas(ty, self.get(*addr), expected, new))
            }
            Op::Cas128 { addr, expected, new } => {
                let expected = expected.map(|v| self.get(v));
                let new = new.map(|v| self.get(v));
                self.machine.cas128(self.get(*addr), expected, new).map(Some)
            }
            Op::Fence => {
                self.machine.fence();
                [None; 2]
            }
            Op::Exit { exit, cond, detail } => {
                if self.get(*cond) != 0 {
                    return Err(End::Exit { exit: *exit, detail: self.get(*detail) });
                }
                [None; 2]
            }
            Op::If { cond, then, otherwise } => {
                let arm = if self.get(*cond) != 0 { then } else { otherwise };
                self.block(arm)?;
                for (result, v) in stmt.results.iter().zip(&arm.yields) {
                    self.bits[result.0 as usize] = self.get(*v);
                }
                [None; 2]
            }
        };
        for (result, bits) in stmt.results.iter().zip(results.into_iter().flatten()) {
            self.bits[result.0 as usize] = bits;
        }
        Ok(())
    }

    fn rmw(&mut self, op: RmwOp, ty: Type, addr: u64, operand: u64) -> u64 {
        let mut old = self.machine.load(ty, Order::AcquireRelease, addr);
        loop {
            let seen = self.machine.cas(ty, addr, old, rmw_result(op, ty, old, operand));
            if seen == old {
                return old;
            }
            old = seen;
        }
    }
}
