//! The reference implementation: walks a routine, value by value.

use std::cell::Cell;

use crate::arith;
use crate::derive::Derivation;
use crate::function::Function;
use crate::op::*;

/// What a routine that only computes may ask for.
///
/// Integers travel as `u64` with the bits above the type's width zero.
pub trait Inputs {
    /// The instruction word.
    fn word(&self) -> u32;
    /// A parameter of a routine that was cut; only such routines ask for it.
    fn param(&self, index: u8) -> u64;
    /// Reads a variable.
    fn read_var(&self, var: Var) -> u64;
}

/// The machine a routine works on.
pub trait Machine: Inputs {
    /// Instructions completed so far.
    fn count(&self) -> u64;
    /// Reads a register slot.
    fn read_reg(&self, file: File, index: u32) -> u64;
    /// Writes a register slot.
    fn write_reg(&mut self, file: File, index: u32, value: u64);
    /// Writes a variable.
    fn write_var(&mut self, var: Var, value: u64);
    /// Reads N, Z, C and V.
    fn flags(&self) -> [bool; 4];
    /// Sets N, Z, C and V.
    fn set_flags(&mut self, flags: [bool; 4]);
    /// Where the memory at `addr .. addr + len` is, for the operations below, or the first byte of it
    /// that may not be accessed so.
    fn probe(&mut self, access: Access, addr: u64, len: u32) -> Result<u64, u64>;
    /// Loads from probed memory.
    fn load(&mut self, ty: Type, order: Order, at: u64) -> u64;
    /// Stores to probed memory.
    fn store(&mut self, ty: Type, order: Order, at: u64, value: u64);
    /// Compares and swaps atomically; the old contents.
    fn cas(&mut self, ty: Type, at: u64, expected: u64, new: u64) -> u64;
    /// Compares and swaps two consecutive `u64`; the old contents.
    fn cas128(&mut self, at: u64, expected: [u64; 2], new: [u64; 2]) -> [u64; 2];
    /// Orders all accesses.
    fn fence(&mut self);
}

/// How a routine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Control goes to the next instruction.
    Next,
    /// Control goes to an address.
    Jump(u64),
    /// An `exit` was taken, or the routine ends with one.
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
    let mut walk = Walk::new(routine, machine);
    walk.block(&routine.body).err().unwrap_or_else(|| walk.end(&routine.end))
}

/// Runs a routine once, and notes what follows from it. `at` is the number of instructions before it.
pub fn eval_deriving(
    routine: &Routine,
    machine: &mut impl Machine,
    at: u64,
    derivation: &mut Derivation,
) -> End {
    let mut walk = Walk::new(routine, machine);
    let end = walk.block(&routine.body).err().unwrap_or_else(|| walk.end(&routine.end));
    derivation.follow(routine, &walk.tables.bits, &walk.tables.places, at, end);
    end
}

/// Runs a routine that only computes; its results.
pub fn eval_results(routine: &Routine, inputs: &impl Inputs) -> Vec<u64> {
    let mut machine = Computing(inputs);
    let mut walk = Walk::new(routine, &mut machine);
    walk.block(&routine.body).expect("a routine that only computes does not leave");
    routine.body.yields.iter().map(|v| walk.get(*v)).collect()
}

/// The results of a function.
pub(crate) fn call(function: &Function, args: &[u64]) -> Vec<u64> {
    eval_results(function.reference(), &Arguments(args))
}

/// What a function sees.
struct Arguments<'a>(&'a [u64]);

impl Inputs for Arguments<'_> {
    fn word(&self) -> u32 {
        unreachable!("a function has parameters only")
    }

    fn param(&self, index: u8) -> u64 {
        self.0[usize::from(index)]
    }

    fn read_var(&self, _: Var) -> u64 {
        unreachable!("a function has parameters only")
    }
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

/// Whether a condition holds, by N, Z, C and V.
pub(crate) fn holds(cond: Cond, [n, z, c, v]: [bool; 4]) -> bool {
    match cond {
        Cond::Eq => z,
        Cond::Ne => !z,
        Cond::Cs => c,
        Cond::Cc => !c,
        Cond::Mi => n,
        Cond::Pl => !n,
        Cond::Vs => v,
        Cond::Vc => !v,
        Cond::Hi => c && !z,
        Cond::Ls => !c || z,
        Cond::Ge => n == v,
        Cond::Lt => n != v,
        Cond::Gt => n == v && !z,
        Cond::Le => n != v || z,
    }
}

/// N, Z, C and V of an operation on operands of a type.
pub(crate) fn flags_of(ty: Type, flags: Flags<u64>) -> [bool; 4] {
    let is_negative = |bits| arith::compare(CmpOp::Slt, ty, bits, 0);
    let sums = |op, overflow, x, y| {
        let result = arith::binary(op, ty, x, y);
        let carry = match op {
            BinOp::Add => arith::compare(CmpOp::Ult, ty, result, x),
            _ => arith::compare(CmpOp::Ule, ty, y, x),
        };
        [is_negative(result), result == 0, carry, arith::compare(overflow, ty, x, y)]
    };
    match flags {
        Flags::Add(x, y) => sums(BinOp::Add, CmpOp::SAddO, x, y),
        Flags::Sub(x, y) => sums(BinOp::Sub, CmpOp::SSubO, x, y),
        Flags::Logic(x) => [is_negative(x), x == 0, false, false],
        Flags::Bits(bits) => bits.map(|bit| bit != 0),
    }
}

struct Walk<'a, M> {
    routine: &'a Routine,
    machine: &'a mut M,
    tables: Tables,
}

/// What is known while a routine runs.
#[derive(Default)]
struct Tables {
    /// The values.
    bits: Vec<u64>,
    /// Where the places are.
    places: Vec<u64>,
}

thread_local! {
    /// Tables of a routine that ran before: allocating them anew takes longer than a routine does.
    static TABLES: Cell<Tables> = Cell::default();
}

impl<M> Drop for Walk<'_, M> {
    fn drop(&mut self) {
        TABLES.set(std::mem::take(&mut self.tables));
    }
}

impl<'a, M: Machine> Walk<'a, M> {
    fn new(routine: &'a Routine, machine: &'a mut M) -> Self {
        let mut tables = TABLES.take();
        tables.bits.clear();
        tables.bits.extend(routine.values.iter().map(|v| v.constant.unwrap_or(0)));
        tables.places.clear();
        tables.places.resize(routine.places.len(), 0);
        Walk { routine, machine, tables }
    }

    /// Where an element of a place is.
    fn at(&self, place: Place, index: u32) -> u64 {
        let size = self.routine.place(place).ty.bytes();
        self.tables.places[place.0 as usize].wrapping_add((index * size).into())
    }

    fn end(&self, end: &Terminator) -> End {
        match *end {
            Terminator::Next => End::Next,
            Terminator::Jump { target, .. } | Terminator::Indirect { target, .. } => {
                End::Jump(self.get(target))
            }
            Terminator::Branch { cond, target } => match self.get(cond) {
                0 => End::Next,
                _ => End::Jump(self.get(target)),
            },
            Terminator::Stop { exit, detail } => End::Exit { exit, detail: self.get(detail) },
        }
    }

    fn get(&self, v: Value) -> u64 {
        self.tables.bits[v.0 as usize]
    }

    fn set(&mut self, v: Value, bits: u64) {
        self.tables.bits[v.0 as usize] = bits;
    }

    fn ty(&self, v: Value) -> Type {
        self.routine.value(v).ty
    }

    fn block(&mut self, block: &Block) -> Result<(), End> {
        block.stmts.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    /// Executes a statement and keeps its results.
    fn stmt(&mut self, stmt: &Stmt) -> Result<(), End> {
        let bits = match &stmt.op {
            Op::Word => self.machine.word().into(),
            Op::Param(index) => self.machine.param(*index),
            Op::Count => self.machine.count(),
            Op::Unary(op, a) => arith::unary(*op, self.ty(*a), self.get(*a)),
            Op::Binary(op, a, b) => arith::binary(*op, self.ty(*a), self.get(*a), self.get(*b)),
            Op::Compare(op, a, b) => {
                arith::compare(*op, self.ty(*a), self.get(*a), self.get(*b)).into()
            }
            Op::Select(c, a, b) => self.get(if self.get(*c) != 0 { *a } else { *b }),
            Op::Convert(op, a) => {
                let to = self.ty(stmt.results[0]);
                arith::convert(*op, self.ty(*a), to, self.get(*a))
            }
            Op::Call(function, args) => {
                let args: Vec<u64> = args.iter().map(|v| self.get(*v)).collect();
                let calls = args.chunks(function.params.len());
                let results = calls.flat_map(|args| call(function, args));
                stmt.results.iter().zip(results).for_each(|(v, bits)| self.set(*v, bits));
                return Ok(());
            }
            Op::Packed(..) | Op::Pair(..) | Op::Half(..) => unreachable!("{NO_WHOLES}"),
            Op::Float(op, args) => {
                let (from, to) = (self.ty(args[0]), self.ty(stmt.results[0]));
                let args: Vec<u64> = args.iter().map(|v| self.get(*v)).collect();
                arith::float(*op, from, to, &args)
            }
            Op::ReadReg(file, index) => self.machine.read_reg(*file, self.get(*index) as u32),
            Op::WriteReg(file, index, value) => {
                self.machine.write_reg(*file, self.get(*index) as u32, self.get(*value));
                return Ok(());
            }
            Op::ReadVar(var) => self.machine.read_var(*var),
            Op::WriteVar(var, value) => {
                self.machine.write_var(*var, self.get(*value));
                return Ok(());
            }
            Op::Test(cond) => holds(*cond, self.machine.flags()).into(),
            Op::SetFlags(flags) => {
                let flags = self.flags(*flags);
                self.machine.set_flags(flags);
                return Ok(());
            }
            Op::Probe { place, addr } => {
                let data = self.routine.place(*place);
                let fault = |addr| End::Fault { access: data.access, addr };
                let at = self.machine.probe(data.access, self.get(*addr), data.len());
                self.tables.places[place.0 as usize] = at.map_err(fault)?;
                return Ok(());
            }
            Op::Load { order, place, index } => {
                let ty = self.ty(stmt.results[0]);
                self.machine.load(ty, *order, self.at(*place, *index))
            }
            Op::Store { order, place, index, value } => {
                let ty = self.ty(*value);
                self.machine.store(ty, *order, self.at(*place, *index), self.get(*value));
                return Ok(());
            }
            Op::Rmw { op, place, value } => {
                let ty = self.ty(*value);
                self.rmw(*op, ty, self.at(*place, 0), self.get(*value))
            }
            Op::Cas { place, expected, new } => {
                let ty = self.ty(*new);
                let (expected, new) = (self.get(*expected), self.get(*new));
                self.machine.cas(ty, self.at(*place, 0), expected, new)
            }
            Op::Cas128 { place, expected, new } => {
                let expected = expected.map(|v| self.get(v));
                let new = new.map(|v| self.get(v));
                let old = self.machine.cas128(self.at(*place, 0), expected, new);
                stmt.results.iter().zip(old).for_each(|(v, bits)| self.set(*v, bits));
                return Ok(());
            }
            Op::Fence => {
                self.machine.fence();
                return Ok(());
            }
            Op::Exit { exit, cond, detail } => {
                if self.get(*cond) != 0 {
                    return Err(End::Exit { exit: *exit, detail: self.get(*detail) });
                }
                return Ok(());
            }
            Op::If { cond, then, otherwise } => {
                let arm = if self.get(*cond) != 0 { then } else { otherwise };
                self.block(arm)?;
                for (result, v) in stmt.results.iter().zip(&arm.yields) {
                    self.set(*result, self.get(*v));
                }
                return Ok(());
            }
        };
        self.set(stmt.results[0], bits);
        Ok(())
    }

    /// N, Z, C and V of an operation.
    fn flags(&self, flags: Flags) -> [bool; 4] {
        let mut ty = Type::Bool;
        flags.for_each_operand(&mut |v| ty = self.ty(*v));
        flags_of(ty, flags.map(|v| self.get(v)))
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

/// Packed elements are halves here.
const NO_WHOLES: &str = "the evaluator has no wholes";

/// A machine with inputs and nothing else.
struct Computing<'a, I>(&'a I);

impl<I: Inputs> Inputs for Computing<'_, I> {
    fn word(&self) -> u32 {
        self.0.word()
    }

    fn param(&self, index: u8) -> u64 {
        self.0.param(index)
    }

    fn read_var(&self, var: Var) -> u64 {
        self.0.read_var(var)
    }
}

/// What a routine that only computes does not do.
const ONLY_COMPUTES: &str = "the routine only computes";

impl<I: Inputs> Machine for Computing<'_, I> {
    fn count(&self) -> u64 {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn read_reg(&self, _: File, _: u32) -> u64 {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn write_reg(&mut self, _: File, _: u32, _: u64) {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn write_var(&mut self, _: Var, _: u64) {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn flags(&self) -> [bool; 4] {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn set_flags(&mut self, _: [bool; 4]) {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn probe(&mut self, _: Access, _: u64, _: u32) -> Result<u64, u64> {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn load(&mut self, _: Type, _: Order, _: u64) -> u64 {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn store(&mut self, _: Type, _: Order, _: u64, _: u64) {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn cas(&mut self, _: Type, _: u64, _: u64, _: u64) -> u64 {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn cas128(&mut self, _: u64, _: [u64; 2], _: [u64; 2]) -> [u64; 2] {
        unreachable!("{ONLY_COMPUTES}")
    }

    fn fence(&mut self) {
        unreachable!("{ONLY_COMPUTES}")
    }
}
