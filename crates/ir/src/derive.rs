//! What a run computes from bytes that are given to it, for other runs that are given others.
//!
//! Two runs that differ in some bytes of memory do the same until a branch, an address or something else that decides where they
//! go depends on these. Until then, their registers and memories differ only in what was computed from the bytes. A
//! [`Derivation`] follows a run: it knows which of its registers and bytes of memory hold such values, and writes down how each of
//! them was computed. Where the run decides something by one, it writes down a *check*: another run does the same only if it has
//! the same value there.
//!
//! So what another run has at a point is found without running it: all is computed anew from its own bytes, the checks must hold,
//! and the values are put where the derivation says. Everything else is as in the run that was followed.
//!
//! The run is compared with another from the beginning, the first for which this is to be of use, and is no longer followed where
//! these two would part. That also says what is worth a check: what both have in common, such as the length of a string,
//! becomes a constant if others may be expected to have it in common, too.

mod calc;

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use calc::{Arg, Calc, byte_of, evaluate};

use crate::eval::End;
use crate::op::*;

/// A value that was derived: a given byte, or the result of a calculation.
type Id = u32;

/// Calculations that are kept, at the most.
const MOST: usize = 1 << 20;
/// Instructions that are followed one by one, at the most.
const MOST_STEPS: u64 = 1 << 22;
/// Holders that are gone through in the time of one.
const HELD_IN_STEP: u64 = 64;

/// Something that holds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// A register slot: the number of its file, and its own.
    Register(u8, u32),
    /// A variable, by its number.
    Variable(u8),
    /// N, Z, C and V: the lowest bit is N's.
    Flags,
    /// A byte of memory.
    Memory(u64),
}

/// A holder has got a value, or has one no longer.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// Instructions that had been completed before.
    at: u64,
    holder: Holder,
    /// The value, and which of its bytes it is for memory.
    value: Option<(Id, u8)>,
}

/// A run does the same as the one that was followed only if it has the same value.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// Instructions that had been completed before the one that depends on it.
    at: u64,
    value: Id,
}

/// What is known of a value.
#[derive(Clone, Debug)]
struct Known {
    calc: Calc,
    bytes: u32,
    /// In the run that is followed, and in the one that it is compared with.
    own: u64,
    other: u64,
    /// It was checked, so whoever comes this far has the same.
    is_same: bool,
}

/// What a run computes from what it is given. See the [module](self).
#[derive(Debug, Default)]
pub struct Derivation {
    values: Vec<Known>,
    checks: Vec<Check>,
    changes: Vec<Change>,
    held: BTreeMap<Holder, (Id, u8)>,
    given: usize,
    /// Instructions that were followed.
    steps: u64,
    /// How many holders other than memory have a value that is not the same.
    in_registers: usize,
    /// Bytes of memory have been given values or lost them.
    memory_changed: bool,
    /// After so many instructions the runs part.
    end: Option<u64>,
}

impl Derivation {
    /// Gives the run a byte in memory, which the run that it is compared with has otherwise. Those are numbered from 0.
    pub fn give(&mut self, addr: u64, own: u8, other: u8) {
        let (own, other) = (own.into(), other.into());
        let calc = Calc::Given(self.given);
        self.given += 1;
        let id = self.values.len() as Id;
        self.values.push(Known { calc, bytes: 1, own, other, is_same: false });
        self.hold(0, Holder::Memory(addr), Some((id, 0)));
    }

    /// True if something other than memory holds a value: the run must be followed instruction by instruction.
    pub fn is_in_registers(&self) -> bool {
        self.in_registers > 0
    }

    /// True if a holder has such a value.
    pub fn has(&self, holder: Holder) -> bool {
        self.held_value(holder).is_some()
    }

    /// Bytes of memory that hold values, if these have changed since the last call.
    pub fn new_memory(&mut self) -> Option<Vec<Range<u64>>> {
        if !std::mem::take(&mut self.memory_changed) {
            return None;
        }
        // That takes time, too.
        self.steps += self.held.len() as u64 / HELD_IN_STEP;
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (holder, (id, _)) in &self.held {
            let Holder::Memory(addr) = *holder else { continue };
            if self.values[*id as usize].is_same {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end == addr => last.end += 1,
                _ => ranges.push(addr..addr + 1),
            }
        }
        Some(ranges)
    }

    /// Notes that somebody else than the run has written a register, after so many instructions.
    pub fn overwrite(&mut self, at: u64, holder: Holder) {
        self.hold(at, holder, None);
    }

    /// The same of memory.
    pub fn overwrite_memory(&mut self, at: u64, bytes: Range<u64>) {
        let range = Holder::Memory(bytes.start)..Holder::Memory(bytes.end);
        let held: Vec<Holder> = self.held.range(range).map(|(holder, _)| *holder).collect();
        held.into_iter().for_each(|holder| self.hold(at, holder, None));
    }

    /// After how many instructions the two runs part, once they have.
    pub fn end(&self) -> Option<u64> {
        self.end
    }

    /// Follows the run no further than after so many instructions.
    pub fn finish(&mut self, at: u64) {
        let end = self.end.map_or(at, |end| end.min(at));
        self.end = Some(end);
        self.checks.retain(|check| check.at < end);
        self.changes.retain(|change| change.at < end);
    }

    /// How many values were computed.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if there is nothing to derive from.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Bytes that it takes, about.
    pub fn size(&self) -> usize {
        self.values.len() * size_of::<Known>()
            + self.changes.len() * size_of::<Change>()
            + self.checks.len() * size_of::<Check>()
    }

    // For other runs.

    /// What a run has that is given these bytes, and how far it is the same.
    pub fn values(&self, given: &[u8]) -> (Vec<u64>, u64) {
        let mut values = Vec::with_capacity(self.values.len());
        for known in &self.values {
            let value = evaluate(&known.calc, given, |id| values[id as usize]);
            values.push(value);
        }
        let differs =
            |check: &&Check| values[check.value as usize] != self.values[check.value as usize].own;
        let end = self.end.unwrap_or(0);
        let parts = self.checks.iter().find(differs).map_or(end, |check| check.at);
        (values, parts)
    }

    /// The first moment from then on at which a run may part.
    pub fn next_check(&self, from: u64) -> Option<u64> {
        let index = self.checks.partition_point(|check| check.at < from);
        self.checks.get(index).map(|check| check.at)
    }

    /// Who holds values after so many instructions.
    pub fn placements(&self, at: u64) -> Placements {
        // Since they were checked, nobody has looked who has them: those that do have what the run has that was followed.
        let checked = self.checks.iter().take_while(|check| check.at < at);
        let same: HashSet<Id> = checked.map(|check| check.value).collect();
        let mut held = BTreeMap::new();
        for change in self.changes.iter().take_while(|change| change.at < at) {
            match change.value {
                Some(value) => held.insert(change.holder, value),
                None => held.remove(&change.holder),
            };
        }
        let held = held.into_iter().filter(|(_, (id, _))| !same.contains(id));
        Placements(held.map(|(holder, (id, byte))| (holder, id, byte)).collect())
    }

    // Following.

    /// Notes what an instruction has done, which ended so: the values of its routine, and where its places are. `at` is the
    /// number of instructions before it.
    pub(crate) fn follow(
        &mut self,
        routine: &Routine,
        bits: &[u64],
        places: &[u64],
        at: u64,
        end: End,
    ) {
        let (checks, changes) = (self.checks.len(), self.changes.len());
        let ids = vec![None; bits.len()];
        let mut following = Following { derivation: self, routine, bits, places, at, ids };
        let followed = match end {
            End::Fault { .. } => Err(Parted),
            _ => following.routine(end),
        };
        self.steps += 1;
        if followed.is_err() || self.steps > MOST_STEPS {
            self.checks.truncate(checks);
            self.changes.truncate(changes);
            self.end = Some(at);
        }
    }

    /// The value of a holder that other runs may have otherwise.
    fn held_value(&self, holder: Holder) -> Option<(Id, u8)> {
        self.held.get(&holder).copied().filter(|(id, _)| !self.values[*id as usize].is_same)
    }

    fn hold(&mut self, at: u64, holder: Holder, value: Option<(Id, u8)>) {
        let had = match value {
            Some(value) => self.held.insert(holder, value),
            None => self.held.remove(&holder),
        };
        if had.is_none() && value.is_none() {
            return;
        }
        self.changes.push(Change { at, holder, value });
        match holder {
            Holder::Memory(_) => self.memory_changed = true,
            _ => {
                let differs = |value: Option<(Id, u8)>| {
                    usize::from(value.is_some_and(|(id, _)| !self.values[id as usize].is_same))
                };
                self.in_registers = self.in_registers + differs(value) - differs(had);
            }
        }
    }

    /// Computes a value for both runs.
    fn calculate(&mut self, calc: Calc, bytes: u32) -> Result<Id, Parted> {
        if self.values.len() >= MOST {
            return Err(Parted);
        }
        let own = evaluate(&calc, &[], |id| self.values[id as usize].own);
        let other = evaluate(&calc, &[], |id| self.values[id as usize].other);
        self.values.push(Known { calc, bytes, own, other, is_same: false });
        Ok((self.values.len() - 1) as Id)
    }

    /// Demands that a value is the same in all runs.
    fn check(&mut self, at: u64, id: Id) -> Result<(), Parted> {
        let known = &mut self.values[id as usize];
        if known.is_same {
            return Ok(());
        }
        if known.own != known.other {
            return Err(Parted);
        }
        known.is_same = true;
        self.checks.push(Check { at, value: id });
        let registers = self.held.range(..Holder::Memory(0));
        self.in_registers -= registers.filter(|(_, (value, _))| *value == id).count();
        self.memory_changed = true;
        Ok(())
    }
}

/// Who holds values at some point.
#[derive(Debug)]
pub struct Placements(Vec<(Holder, Id, u8)>);

impl Placements {
    /// Calls `put` with what each of them holds: a byte in memory, 64 bits elsewhere.
    pub fn for_each(&self, values: &[u64], mut put: impl FnMut(Holder, u64)) {
        for (holder, id, byte) in &self.0 {
            let value = values[*id as usize];
            match holder {
                Holder::Memory(_) => put(*holder, byte_of(value, *byte).into()),
                _ => put(*holder, value),
            }
        }
    }
}

/// The two runs do not go on in the same way.
struct Parted;

/// One instruction.
struct Following<'a> {
    derivation: &'a mut Derivation,
    routine: &'a Routine,
    bits: &'a [u64],
    places: &'a [u64],
    at: u64,
    /// Values of the routine that were derived.
    ids: Vec<Option<Id>>,
}

impl Following<'_> {
    fn routine(&mut self, end: End) -> Result<(), Parted> {
        let routine = self.routine;
        if self.block(&routine.body)? {
            return Ok(());
        }
        match (&routine.end, end) {
            (Terminator::Branch { cond: deciding, .. }, _)
            | (Terminator::Indirect { target: deciding, .. }, _)
            | (Terminator::Stop { detail: deciding, .. }, _) => self.same(*deciding),
            (Terminator::Next | Terminator::Jump { .. }, _) => Ok(()),
        }
    }

    /// Follows a block; true if the instruction ended in it.
    fn block(&mut self, block: &Block) -> Result<bool, Parted> {
        for stmt in &block.stmts {
            match &stmt.op {
                Op::Exit { cond, detail, .. } => {
                    self.same(*cond)?;
                    if self.bit(*cond) {
                        self.same(*detail)?;
                        return Ok(true);
                    }
                }
                Op::If { cond, then, otherwise } => {
                    self.same(*cond)?;
                    let arm = if self.bit(*cond) { then } else { otherwise };
                    if self.block(arm)? {
                        return Ok(true);
                    }
                    for (result, value) in stmt.results.iter().zip(&arm.yields) {
                        self.ids[result.0 as usize] = self.ids[value.0 as usize];
                    }
                }
                _ => self.stmt(stmt)?,
            }
        }
        Ok(false)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Parted> {
        match &stmt.op {
            Op::ReadReg(file, index) => {
                self.held(stmt, Holder::Register(file.id, self.own(*index) as u32));
            }
            Op::ReadVar(var) => self.held(stmt, Holder::Variable(var.id)),
            Op::WriteReg(file, index, value) => {
                let holder = Holder::Register(file.id, self.own(*index) as u32);
                // Nobody reads what is put there.
                let is_sink = file.sink == Some(self.own(*index) as u32);
                self.put(holder, self.id(*value).filter(|_| !is_sink));
            }
            Op::WriteVar(var, value) => {
                self.likely_same(*value)?;
                self.put(Holder::Variable(var.id), self.id(*value));
            }
            Op::SetFlags(flags) => {
                let mut is_derived = false;
                flags.for_each_operand(&mut |v| is_derived |= self.id(*v).is_some());
                let mut ty = Type::Bool;
                flags.for_each_operand(&mut |v| ty = self.ty(*v));
                let id = match is_derived {
                    true => {
                        let calc = Calc::Flags(ty, flags.map(|v| self.arg(v)));
                        Some(self.derivation.calculate(calc, 1)?)
                    }
                    false => None,
                };
                self.put(Holder::Flags, id);
            }
            Op::Test(cond) => {
                if let Some((flags, _)) = self.derivation.held_value(Holder::Flags) {
                    self.calculated(stmt, Calc::Test(*cond, Arg::Derived(flags)))?;
                    self.likely_same(stmt.results[0])?;
                }
            }
            Op::Probe { addr, .. } => self.same(*addr)?,
            Op::Load { place, index, .. } => self.load(stmt, self.address(*place, *index))?,
            Op::Store { place, index, value, .. } => {
                let (addr, bytes) = (self.address(*place, *index), self.ty(*value).bytes());
                let id = self.id(*value);
                for byte in 0..bytes {
                    let value = id.map(|id| (id, byte as u8));
                    self.derivation.hold(self.at, Holder::Memory(addr + u64::from(byte)), value);
                }
            }
            Op::Rmw { place, .. } | Op::Cas { place, .. } | Op::Cas128 { place, .. } => {
                self.atomic(stmt, *place)?;
            }
            op => self.calculation(stmt, op)?,
        }
        Ok(())
    }

    /// What only computes.
    fn calculation(&mut self, stmt: &Stmt, op: &Op) -> Result<(), Parted> {
        let mut is_derived = false;
        op.for_each_operand(&mut |v| is_derived |= self.id(*v).is_some());
        if !is_derived {
            return Ok(());
        }
        let to = || self.ty(stmt.results[0]);
        let calc = match op {
            Op::Unary(op, a) => Calc::Unary(*op, self.ty(*a), self.arg(*a)),
            Op::Binary(op, a, b) => Calc::Binary(*op, self.ty(*a), [*a, *b].map(|v| self.arg(v))),
            Op::Compare(op, a, b) => Calc::Compare(*op, self.ty(*a), [*a, *b].map(|v| self.arg(v))),
            Op::Select(c, a, b) if self.id(*c).is_none() => {
                let chosen = if self.bit(*c) { *a } else { *b };
                self.ids[stmt.results[0].0 as usize] = self.id(chosen);
                return Ok(());
            }
            Op::Select(c, a, b) => Calc::Select([*c, *a, *b].map(|v| self.arg(v))),
            Op::Convert(op, a) => Calc::Convert(*op, self.ty(*a), to(), self.arg(*a)),
            Op::Float(op, args) => {
                let from = self.ty(args[0]);
                Calc::Float(*op, from, to(), args.iter().map(|v| self.arg(*v)).collect())
            }
            Op::Call(function, args) => {
                let args: Vec<Arg> = args.iter().map(|v| self.arg(*v)).collect();
                for (index, result) in stmt.results.iter().enumerate() {
                    let bytes = self.ty(*result).bytes();
                    let calc = Calc::Call(function, args.clone(), index);
                    self.ids[result.0 as usize] = Some(self.derivation.calculate(calc, bytes)?);
                }
                return Ok(());
            }
            other => unreachable!("{other:?} was dealt with, or the evaluator has none"),
        };
        self.calculated(stmt, calc)?;
        match op {
            Op::Compare(..) | Op::Unary(UnOp::Clz, _) => self.likely_same(stmt.results[0]),
            _ => Ok(()),
        }
    }

    fn calculated(&mut self, stmt: &Stmt, calc: Calc) -> Result<(), Parted> {
        let result = stmt.results[0];
        let id = self.derivation.calculate(calc, self.ty(result).bytes())?;
        self.ids[result.0 as usize] = Some(id);
        Ok(())
    }

    fn load(&mut self, stmt: &Stmt, addr: u64) -> Result<(), Parted> {
        let result = stmt.results[0];
        let bytes = self.ty(result).bytes();
        let parts = self.memory(addr, bytes);
        let Some((_, first, _)) = parts.first().copied() else { return Ok(()) };
        let is_whole = |(at, id, byte): &(u8, Id, u8)| *id == first && at == byte;
        let is_whole = parts.len() == bytes as usize
            && parts.iter().all(is_whole)
            && self.derivation.values[first as usize].bytes == bytes;
        if is_whole {
            self.ids[result.0 as usize] = Some(first);
            return Ok(());
        }
        self.calculated(stmt, Calc::Bytes(self.own(result), parts))
    }

    /// An atomic operation: all that it depends on must be the same.
    fn atomic(&mut self, stmt: &Stmt, place: Place) -> Result<(), Parted> {
        let mut operands = Vec::new();
        stmt.op.for_each_operand(&mut |v| operands.push(*v));
        operands.into_iter().try_for_each(|v| self.same(v))?;
        let (addr, len) = (self.places[place.0 as usize], self.routine.place(place).len());
        for (_, id, _) in self.memory(addr, len) {
            self.derivation.check(self.at, id)?;
        }
        Ok(())
    }

    /// Bytes of memory that hold values, each with its place, the value and its place there.
    fn memory(&self, addr: u64, bytes: u32) -> Vec<(u8, Id, u8)> {
        let held = |byte: u32| {
            let holder = Holder::Memory(addr + u64::from(byte));
            self.derivation.held_value(holder).map(|(id, of)| (byte as u8, id, of))
        };
        (0..bytes).filter_map(held).collect()
    }

    fn held(&mut self, stmt: &Stmt, holder: Holder) {
        let held = self.derivation.held_value(holder);
        self.ids[stmt.results[0].0 as usize] = held.map(|(id, _)| id);
    }

    fn put(&mut self, holder: Holder, id: Option<Id>) {
        self.derivation.hold(self.at, holder, id.map(|id| (id, 0)));
    }

    /// The run depends on it.
    fn same(&mut self, v: Value) -> Result<(), Parted> {
        match self.id(v) {
            Some(id) => self.derivation.check(self.at, id),
            None => Ok(()),
        }
    }

    /// If both runs have the same, so have others.
    fn likely_same(&mut self, v: Value) -> Result<(), Parted> {
        let Some(id) = self.id(v) else { return Ok(()) };
        let Known { own, other, .. } = self.derivation.values[id as usize];
        if own == other { self.derivation.check(self.at, id) } else { Ok(()) }
    }

    fn id(&self, v: Value) -> Option<Id> {
        self.ids[v.0 as usize].filter(|id| !self.derivation.values[*id as usize].is_same)
    }

    fn arg(&self, v: Value) -> Arg {
        self.id(v).map_or(Arg::Same(self.own(v)), Arg::Derived)
    }

    fn own(&self, v: Value) -> u64 {
        self.bits[v.0 as usize]
    }

    fn bit(&self, v: Value) -> bool {
        self.own(v) != 0
    }

    fn ty(&self, v: Value) -> Type {
        self.routine.value(v).ty
    }

    fn address(&self, place: Place, index: u32) -> u64 {
        let size = self.routine.place(place).ty.bytes();
        self.places[place.0 as usize].wrapping_add((index * size).into())
    }
}
