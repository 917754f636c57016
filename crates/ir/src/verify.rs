//! Static checks of a routine.

use crate::op::*;

/// Checks types, visibility of values, the cover of memory operations by probes, and that nothing
/// that can stop the lane follows a write. The error says which statement breaks which rule.
///
/// ```
/// use kvrm_ir::{Builder, Order, Type, verify::verify};
/// let b = Builder::new(None);
/// b.store(Order::Plain, b.u64(8), b.u64(1));
/// let error = verify(&b.finish()).unwrap_err();
/// assert!(error.contains("no probe covers"));
/// ```
pub fn verify(routine: &Routine) -> Result<(), String> {
    let mut check = Check {
        routine,
        visible: routine.values.iter().map(|v| v.constant.is_some()).collect(),
        sums: vec![None; routine.values.len()],
        probes: Vec::new(),
        written: None,
    };
    check.block(&routine.body)
}

struct Check<'a> {
    routine: &'a Routine,
    visible: Vec<bool>,
    /// `base + offset` for values that are such a sum.
    sums: Vec<Option<(Value, u64)>>,
    probes: Vec<(Access, Value, u32)>,
    /// The first statement that wrote something.
    written: Option<String>,
}

impl Check<'_> {
    fn ty(&self, v: Value) -> Type {
        self.routine.value(v).ty
    }

    fn block(&mut self, block: &Block) -> Result<(), String> {
        for stmt in &block.stmts {
            self.stmt(stmt).map_err(|rule| format!("{rule}: {:?}", stmt.op))?;
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), String> {
        if let Op::If { cond, then, otherwise } = &stmt.op {
            self.expect(*cond, Type::Bool)?;
            for arm in [then, otherwise] {
                self.arm(arm, &stmt.results)?;
            }
        } else {
            let mut hidden = None;
            stmt.op.for_each_operand(&mut |v| {
                if !self.visible[v.0 as usize] {
                    hidden = Some(v);
                }
            });
            if let Some(v) = hidden {
                return Err(format!("v{} is used where it is not visible", v.0));
            }
            self.types(stmt)?;
            self.memory(stmt)?;
            self.order(stmt)?;
        }
        stmt.results.iter().for_each(|v| self.visible[v.0 as usize] = true);
        Ok(())
    }

    /// A nested block: what it defines and probes is forgotten after it.
    fn arm(&mut self, arm: &Block, results: &[Value]) -> Result<(), String> {
        let (visible, probes) = (self.visible.clone(), self.probes.len());
        self.block(arm)?;
        if arm.yields.len() != results.len() {
            return Err("an arm yields another number of values than the if has results".into());
        }
        for (v, result) in arm.yields.iter().zip(results) {
            self.expect(*v, self.ty(*result))?;
        }
        self.visible = visible;
        self.probes.truncate(probes);
        Ok(())
    }

    fn expect(&self, v: Value, ty: Type) -> Result<(), String> {
        if !self.visible[v.0 as usize] {
            return Err(format!("v{} is used where it is not visible", v.0));
        }
        if self.ty(v) == ty { Ok(()) } else { Err(format!("v{} is {}, not {ty}", v.0, self.ty(v))) }
    }

    /// Arithmetic is for 32 and 64 bits, logic for booleans too.
    fn arithmetic(&self, v: Value, bool_too: bool) -> Result<(), String> {
        match self.ty(v) {
            Type::U32 | Type::U64 => Ok(()),
            Type::Bool if bool_too => Ok(()),
            ty => Err(format!("no such operation on {ty}")),
        }
    }

    fn types(&mut self, stmt: &Stmt) -> Result<(), String> {
        let result = stmt.results.first().copied();
        let is = |ty| result.map_or(Err("no result".to_string()), |r| self.expect_type(r, ty));
        match stmt.op {
            Op::Word => is(Type::U32),
            Op::Param(_) => Ok(()),
            Op::Count => is(Type::U64),
            Op::Unary(op, a) => {
                self.arithmetic(a, op == UnOp::Not)?;
                is(self.ty(a))
            }
            Op::Binary(op, a, b) => {
                self.arithmetic(a, matches!(op, BinOp::And | BinOp::Or | BinOp::Xor))?;
                self.expect(b, if op.is_shift() { Type::U32 } else { self.ty(a) })?;
                is(self.ty(a))?;
                self.remember_sum(op, a, b, stmt.results[0]);
                Ok(())
            }
            Op::Compare(_, a, b) => {
                self.arithmetic(a, true)?;
                self.expect(b, self.ty(a))?;
                is(Type::Bool)
            }
            Op::Select(c, a, b) => {
                self.expect(c, Type::Bool)?;
                self.expect(b, self.ty(a))?;
                is(self.ty(a))
            }
            Op::Convert(op, a) => {
                let (from, to) = (self.ty(a), self.ty(stmt.results[0]));
                match op {
                    ConvOp::Trunc if to < from && to != Type::Bool => Ok(()),
                    ConvOp::Zext if to > from => Ok(()),
                    ConvOp::Sext if to > from && from != Type::Bool => Ok(()),
                    _ => Err(format!("no conversion from {from} to {to}")),
                }
            }
            Op::ReadReg(file, index) => {
                self.register(file, index)?;
                is(Type::U64)
            }
            Op::WriteReg(file, index, value) => {
                self.register(file, index)?;
                if file.zero.map(u64::from) == self.routine.constant(index) && file.zero.is_some() {
                    return Err("the zero slot is written".into());
                }
                self.expect(value, Type::U64)
            }
            Op::ReadVar(var) => is(var.ty),
            Op::WriteVar(var, value) => self.expect(value, var.ty),
            Op::Exit { cond, detail, .. } => {
                self.expect(cond, Type::Bool)?;
                self.expect(detail, Type::U64)
            }
            Op::Cas { expected, new, .. } => {
                self.expect(expected, self.ty(new))?;
                is(self.ty(new))
            }
            Op::Rmw { value, .. } => is(self.ty(value)),
            Op::Cas128 { expected, new, .. } => {
                expected.iter().chain(&new).try_for_each(|v| self.expect(*v, Type::U64))
            }
            Op::Probe { addr, .. } | Op::Load { addr, .. } | Op::Store { addr, .. } => {
                self.expect(addr, Type::U64)
            }
            Op::Fence | Op::If { .. } => Ok(()),
        }
    }

    fn expect_type(&self, v: Value, ty: Type) -> Result<(), String> {
        if self.ty(v) == ty { Ok(()) } else { Err(format!("v{} should be {ty}", v.0)) }
    }

    fn register(&self, file: File, index: Value) -> Result<(), String> {
        self.expect(index, Type::U32)?;
        match self.routine.constant(index) {
            Some(i) if i >= u64::from(file.len) => Err(format!("{} has no slot {i}", file.name)),
            _ => Ok(()),
        }
    }

    fn remember_sum(&mut self, op: BinOp, a: Value, b: Value, result: Value) {
        if let (BinOp::Add, Some(offset)) = (op, self.routine.constant(b)) {
            self.sums[result.0 as usize] = Some((a, offset));
        }
    }

    fn memory(&mut self, stmt: &Stmt) -> Result<(), String> {
        let ty = |v: Value| self.ty(v).bytes();
        match stmt.op {
            Op::Probe { access, addr, len } => {
                self.probes.push((access, addr, len));
                Ok(())
            }
            Op::Load { addr, .. } => self.covered(Access::Read, addr, ty(stmt.results[0])),
            Op::Store { addr, value, .. } => self.covered(Access::Write, addr, ty(value)),
            Op::Rmw { addr, value, .. } => self.covered(Access::ReadWrite, addr, ty(value)),
            Op::Cas { addr, new, .. } => self.covered(Access::ReadWrite, addr, ty(new)),
            Op::Cas128 { addr, .. } => self.covered(Access::ReadWrite, addr, 16),
            _ => Ok(()),
        }
    }

    fn covered(&self, access: Access, addr: Value, len: u32) -> Result<(), String> {
        let (base, offset) = self.sums[addr.0 as usize].unwrap_or((addr, 0));
        let covers = |(allowed, probed, probed_len): &(Access, Value, u32)| {
            let direct = *probed == addr && len <= *probed_len;
            let by_sum = *probed == base && offset + u64::from(len) <= u64::from(*probed_len);
            // Sums of constants have been folded.
            let constants = self.routine.constant(*probed).zip(self.routine.constant(addr));
            let by_value = constants.is_some_and(|(start, addr)| {
                addr.checked_sub(start)
                    .is_some_and(|offset| offset + u64::from(len) <= u64::from(*probed_len))
            });
            allowed.allows(access) && (direct || by_sum || by_value)
        };
        if self.probes.iter().any(covers) {
            Ok(())
        } else {
            Err("no probe covers the access".into())
        }
    }

    fn order(&mut self, stmt: &Stmt) -> Result<(), String> {
        let stops = match stmt.op {
            Op::Probe { .. } => true,
            Op::Exit { exit, .. } => !exit.completes,
            _ => false,
        };
        match &self.written {
            Some(write) if stops => Err(format!("the lane may stop here, after {write}")),
            _ => {
                let writes = matches!(
                    stmt.op,
                    Op::WriteReg(..)
                        | Op::WriteVar(..)
                        | Op::Store { .. }
                        | Op::Rmw { .. }
                        | Op::Cas { .. }
                        | Op::Cas128 { .. }
                );
                if writes && self.written.is_none() {
                    self.written = Some(format!("{:?}", stmt.op));
                }
                Ok(())
            }
        }
    }
}
