//! Static checks of a routine.

use crate::op::*;

/// Checks types, visibility of values and places, that accesses stay within their places, and that nothing
/// that can stop the lane follows a write. The error says which statement breaks which rule.
///
/// ```
/// use kvrm_ir::{Access, Builder, Order, Type, verify::verify};
/// let b = Builder::new(None);
/// let pair = b.probe(Access::Read, b.u64(8), Type::U32, 2);
/// b.write_var(kvrm_ir::Var { id: 0, name: "v", ty: Type::U32 }, pair.load(Order::Plain, 2));
/// let error = verify(&b.finish()).unwrap_err();
/// assert!(error.contains("beyond the place"));
/// ```
pub fn verify(routine: &Routine) -> Result<(), String> {
    let mut check = Check {
        routine,
        visible: routine.values.iter().map(|v| v.constant.is_some()).collect(),
        probed: vec![false; routine.places.len()],
        written: None,
    };
    check.block(&routine.body)?;
    check.end(&routine.end).map_err(|rule| format!("{rule}: {:?}", routine.end))
}

/// Bytes in a place at the most: an engine may rely on it that a place touches two blocks of so many bytes at
/// the most.
pub const MAX_PLACE: u32 = 64;

struct Check<'a> {
    routine: &'a Routine,
    visible: Vec<bool>,
    /// Places that a probe on every way here has made.
    probed: Vec<bool>,
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
                    hidden = Some(*v);
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
        let (visible, probed) = (self.visible.clone(), self.probed.clone());
        self.block(arm)?;
        if arm.yields.len() != results.len() {
            return Err("an arm yields another number of values than the if has results".into());
        }
        for (v, result) in arm.yields.iter().zip(results) {
            self.expect(*v, self.ty(*result))?;
        }
        (self.visible, self.probed) = (visible, probed);
        Ok(())
    }

    fn end(&self, end: &Terminator) -> Result<(), String> {
        match *end {
            Terminator::Next => Ok(()),
            Terminator::Jump { target, .. } | Terminator::Indirect { target, .. } => {
                self.expect(target, Type::U64)
            }
            Terminator::Branch { cond, target } => {
                self.expect(cond, Type::Bool)?;
                self.expect(target, Type::U64)
            }
            Terminator::Stop { exit, detail } => {
                self.expect(detail, Type::U64)?;
                self.may_stop(!exit.completes)
            }
        }
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

    fn types(&self, stmt: &Stmt) -> Result<(), String> {
        let result = stmt.results.first().copied();
        let is = |ty| result.map_or(Err("no result".to_string()), |r| self.expect_type(r, ty));
        match stmt.op {
            Op::Call(function, ref args) => {
                let (params, results) = (function.params, function.results);
                let calls = args.len() / params.len();
                let fits = args.len() == calls * params.len()
                    && stmt.results.len() == calls * results.len();
                if calls == 0 || !fits {
                    return Err(format!("another number of values than {} has", function.name));
                }
                let (params, results) = (params.iter().cycle(), results.iter().cycle());
                args.iter().zip(params).try_for_each(|(v, ty)| self.expect(*v, *ty))?;
                stmt.results.iter().zip(results).try_for_each(|(v, ty)| self.expect_type(*v, *ty))
            }
            Op::Float(op, ref args) => {
                let operands = match op {
                    FloatOp::MulAdd => 3,
                    FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Div => 2,
                    FloatOp::Equal | FloatOp::Less => 2,
                    _ => 1,
                };
                if args.len() != operands {
                    return Err(format!("{op:?} has {operands} operands"));
                }
                args.iter().try_for_each(|v| self.arithmetic(*v, false))?;
                args.iter().try_for_each(|v| self.expect(*v, self.ty(args[0])))?;
                match (op, stmt.results.first()) {
                    (_, None) => Err("no result".to_string()),
                    (FloatOp::Convert, Some(r)) if self.ty(*r) == self.ty(args[0]) => {
                        Err("a conversion changes the format".to_string())
                    }
                    (FloatOp::Convert, Some(r))
                    | (FloatOp::FromSigned | FloatOp::FromUnsigned, Some(r))
                    | (FloatOp::ToSigned | FloatOp::ToUnsigned, Some(r)) => {
                        self.arithmetic(*r, false)
                    }
                    (FloatOp::Equal | FloatOp::Less, _) => is(Type::Bool),
                    _ => is(self.ty(args[0])),
                }
            }
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
                is(self.ty(a))
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
            Op::Test(_) => is(Type::Bool),
            Op::SetFlags(flags) => match flags {
                Flags::Add(x, y) | Flags::Sub(x, y) => {
                    self.arithmetic(x, false)?;
                    self.expect(y, self.ty(x))
                }
                Flags::Logic(x) => self.arithmetic(x, false),
                Flags::Bits(bits) => bits.iter().try_for_each(|v| self.expect(*v, Type::Bool)),
            },
            Op::Exit { cond, detail, .. } => {
                self.expect(cond, Type::Bool)?;
                self.expect(detail, Type::U64)
            }
            Op::Probe { addr, .. } => self.expect(addr, Type::U64),
            Op::Load { place, .. } => is(self.routine.place(place).ty),
            Op::Store { place, value, .. } => self.expect(value, self.routine.place(place).ty),
            Op::Rmw { place, value, .. } => {
                let ty = self.routine.place(place).ty;
                self.expect(value, ty)?;
                is(ty)
            }
            Op::Cas { place, expected, new } => {
                let ty = self.routine.place(place).ty;
                [expected, new].iter().try_for_each(|v| self.expect(*v, ty))?;
                is(ty)
            }
            Op::Cas128 { place, expected, new } => {
                let operands = expected.iter().chain(&new);
                operands.into_iter().try_for_each(|v| self.expect(*v, Type::U64))?;
                match self.routine.place(place).ty {
                    Type::U64 => Ok(()),
                    ty => Err(format!("128 bits are two u64, not two {ty}")),
                }
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

    fn memory(&mut self, stmt: &Stmt) -> Result<(), String> {
        match stmt.op {
            Op::Probe { place, .. } => {
                let PlaceData { ty, count, .. } = self.routine.place(place);
                let fits = (1..=MAX_PLACE).contains(&self.routine.place(place).len());
                if !fits || ty == Type::Bool {
                    return Err(format!("no place is made of {count} {ty}"));
                }
                if std::mem::replace(&mut self.probed[place.0 as usize], true) {
                    return Err(format!("p{} is made twice", place.0));
                }
                Ok(())
            }
            Op::Load { place, index, .. } => self.within(Access::Read, place, index),
            Op::Store { place, index, .. } => self.within(Access::Write, place, index),
            Op::Rmw { place, .. } | Op::Cas { place, .. } => {
                self.within(Access::ReadWrite, place, 0)
            }
            Op::Cas128 { place, .. } => self.within(Access::ReadWrite, place, 1),
            _ => Ok(()),
        }
    }

    /// An access to an element of a place, and to those before it.
    fn within(&self, access: Access, place: Place, index: u32) -> Result<(), String> {
        let data = self.routine.place(place);
        if !self.probed[place.0 as usize] {
            Err(format!("p{} is used where no probe has made it", place.0))
        } else if !data.access.allows(access) {
            Err(format!("p{} was not checked for this access", place.0))
        } else if index >= data.count {
            Err(format!("an access beyond the place p{}", place.0))
        } else {
            Ok(())
        }
    }

    fn order(&mut self, stmt: &Stmt) -> Result<(), String> {
        self.may_stop(match stmt.op {
            Op::Probe { .. } => true,
            Op::Exit { exit, .. } => !exit.completes,
            _ => false,
        })?;
        if stmt.op.is_write() && self.written.is_none() {
            self.written = Some(format!("{:?}", stmt.op));
        }
        Ok(())
    }

    /// Nothing may have been written where the lane stops as if the instruction had not begun.
    fn may_stop(&self, stops: bool) -> Result<(), String> {
        match &self.written {
            Some(write) if stops => Err(format!("the lane may stop here, after {write}")),
            _ => Ok(()),
        }
    }
}
