//! Cutting a routine between what can be computed beforehand and what cannot.
//!
//! Much of an instruction depends on its word and address alone: field extraction, immediates, branch
//! targets. [`cut`] moves that into a routine of its own, whose results are the *parameters* of
//! what is left. An interpreter that decodes once and executes often then reads a small record instead
//! of computing, say, a bit mask from six fields on every step.
//!
//! A record holds up to [`SMALL_PARAMS`] parameters of a byte each (register numbers, shift amounts,
//! booleans) and one of 64 bits, or eight more bytes in its place. Where an instruction would want
//! more, values are computed at run time again from ones that fit. The address that a direct branch goes
//! to is always the parameter of 64 bits.

use std::collections::HashMap;

use crate::op::*;

/// Parameters of one byte in a record.
pub const SMALL_PARAMS: usize = 6;
/// Number of the 64-bit parameter.
pub const WIDE_PARAM: u8 = u8::MAX;

/// A routine in two parts.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Computes the parameters from `word` and the variables that are known beforehand: the small
    /// ones in order, and the wide one last if there is one.
    pub before: Routine,
    /// How many of the results are small.
    pub small: usize,
    /// What is left; it reads the results as `param`s.
    pub after: Routine,
}

/// Cuts a routine. `known` are the variables whose values are known beforehand; reading them at run
/// time is possible too, and cheap. `None` if it does not fit a record.
pub fn cut(routine: &Routine, known: &[Var]) -> Option<Cut> {
    let analysis = Analysis::of(routine, known);
    let frontier = analysis.frontier();
    let choices = match routine.end {
        Terminator::Jump { target, .. } | Terminator::Branch { target, .. } => {
            vec![Some(analysis.canonical(target))]
        }
        Terminator::Next | Terminator::Indirect { .. } | Terminator::Stop { .. } => {
            let wide = frontier.iter().copied().filter(|v| !analysis.is_small(*v));
            std::iter::once(None).chain(wide.map(Some)).collect()
        }
    };
    choices
        .into_iter()
        .find_map(|choice| analysis.plan(&frontier, choice))
        .map(|plan| plan.cut(&analysis))
}

/// What is known of a routine's values.
struct Analysis<'a> {
    routine: &'a Routine,
    /// The statement that defines a value computed beforehand.
    early: HashMap<Value, &'a Stmt>,
    /// The value that stands for all that are computed alike.
    same_as: HashMap<Value, Value>,
    /// Values that are used otherwise than as shift amounts.
    used_whole: Vec<bool>,
    known: Vec<u8>,
}

impl<'a> Analysis<'a> {
    fn of(routine: &'a Routine, known: &[Var]) -> Self {
        let mut analysis = Analysis {
            routine,
            early: HashMap::new(),
            same_as: HashMap::new(),
            used_whole: vec![false; routine.values.len()],
            known: known.iter().map(|var| var.id).collect(),
        };
        let mut numbers = HashMap::new();
        analysis.find_early(&routine.body, &mut numbers);
        analysis.find_whole_uses(&routine.body);
        routine.end.for_each_operand(&mut |v| analysis.used_whole(*v));
        analysis
    }

    fn is_const(&self, v: Value) -> bool {
        self.routine.constant(v).is_some()
    }

    fn canonical(&self, v: Value) -> Value {
        self.same_as.get(&v).copied().unwrap_or(v)
    }

    fn make_canonical(&self, op: &mut Op) {
        op.for_each_operand_mut(&mut |v| *v = self.canonical(*v));
    }

    fn find_early(&mut self, block: &'a Block, numbers: &mut HashMap<String, Value>) {
        for stmt in &block.stmts {
            if let Op::If { then, otherwise, .. } = &stmt.op {
                self.find_early(then, numbers);
                self.find_early(otherwise, numbers);
                continue;
            }
            let inputs_are_early = match &stmt.op {
                Op::Word => true,
                Op::ReadVar(var) => self.known.contains(&var.id),
                Op::Unary(..)
                | Op::Binary(..)
                | Op::Compare(..)
                | Op::Select(..)
                | Op::Convert(..) => {
                    let mut all = true;
                    stmt.op.for_each_operand(&mut |v| {
                        all &= self.is_const(*v) || self.early.contains_key(v);
                    });
                    all
                }
                _ => false,
            };
            if inputs_are_early {
                let result = stmt.results[0];
                self.early.insert(result, stmt);
                let key = self.key(stmt);
                let first = *numbers.entry(key).or_insert(result);
                self.same_as.insert(result, first);
            }
        }
    }

    /// The same for statements that compute the same.
    fn key(&self, stmt: &Stmt) -> String {
        let mut op = stmt.op.clone();
        self.make_canonical(&mut op);
        format!("{op:?} {:?}", self.routine.value(stmt.results[0]).ty)
    }

    fn find_whole_uses(&mut self, block: &Block) {
        for stmt in &block.stmts {
            let is_early = stmt.results.first().is_some_and(|r| self.early.contains_key(r));
            match &stmt.op {
                _ if is_early => {}
                Op::If { cond, then, otherwise } => {
                    self.used_whole(*cond);
                    self.find_whole_uses(then);
                    self.find_whole_uses(otherwise);
                    then.yields.iter().chain(&otherwise.yields).for_each(|v| self.used_whole(*v));
                }
                Op::Binary(op, a, _) if op.is_shift() => self.used_whole(*a),
                op => op.for_each_operand(&mut |v| self.used_whole(*v)),
            }
        }
    }

    fn used_whole(&mut self, v: Value) {
        let v = self.canonical(v);
        self.used_whole[v.0 as usize] = true;
    }

    /// Early values that what comes later uses, in order of use.
    fn frontier(&self) -> Vec<Value> {
        let mut frontier = Vec::new();
        self.late_uses(&self.routine.body, &mut frontier);
        self.routine.end.for_each_operand(&mut |v| self.late_use(*v, &mut frontier));
        frontier
    }

    fn late_use(&self, v: Value, uses: &mut Vec<Value>) {
        let v = self.canonical(v);
        if self.early.contains_key(&v) && !uses.contains(&v) {
            uses.push(v);
        }
    }

    fn late_uses(&self, block: &Block, uses: &mut Vec<Value>) {
        for stmt in &block.stmts {
            let is_early = stmt.results.first().is_some_and(|r| self.early.contains_key(r));
            if is_early {
                continue;
            }
            stmt.op.for_each_operand(&mut |v| self.late_use(*v, uses));
        }
    }

    /// True if a byte holds the value, or what matters of it.
    fn is_small(&self, v: Value) -> bool {
        self.bound(v) < 256 || !self.used_whole[v.0 as usize]
    }

    /// An upper bound of an early value.
    fn bound(&self, v: Value) -> u64 {
        let data = self.routine.value(v);
        if let Some(bits) = data.constant {
            return bits;
        }
        let mask = data.ty.mask();
        let Some(stmt) = self.early.get(&v) else { return mask };
        let constant = |v: &Value| self.routine.constant(*v);
        let ones = |x: u64| u64::MAX.checked_shr(x.leading_zeros()).unwrap_or(0);
        match &stmt.op {
            Op::Binary(BinOp::And, a, b) => self.bound(*a).min(self.bound(*b)),
            Op::Binary(BinOp::Or | BinOp::Xor, a, b) => ones(self.bound(*a) | self.bound(*b)),
            Op::Binary(BinOp::Shr, a, b) => match constant(b) {
                Some(amount) => self.bound(*a) >> (amount % u64::from(data.ty.bits())),
                None => self.bound(*a),
            },
            Op::Binary(BinOp::Add, a, b) => {
                self.bound(*a).checked_add(self.bound(*b)).filter(|s| *s <= mask).unwrap_or(mask)
            }
            Op::Binary(BinOp::Sub, a, b) => match constant(a) {
                Some(a) if self.bound(*b) <= a => a,
                _ => mask,
            },
            Op::Select(_, a, b) => self.bound(*a).max(self.bound(*b)),
            Op::Convert(ConvOp::Trunc | ConvOp::Zext, a) => self.bound(*a).min(mask),
            Op::Compare(..) => 1,
            Op::Unary(UnOp::Clz, a) => self.routine.value(*a).ty.bits().into(),
            _ => mask,
        }
    }

    /// Distributes the frontier over a record, the wide parameter being `wide`.
    fn plan(&self, frontier: &[Value], wide: Option<Value>) -> Option<Plan> {
        let mut plan = Plan { small: Vec::new(), wide, again: Vec::new() };
        frontier.iter().all(|v| self.place(&mut plan, *v, self.is_small(*v))).then_some(plan)
    }

    /// Finds room for a value; `small` says whether a byte of it is enough.
    fn place(&self, plan: &mut Plan, v: Value, small: bool) -> bool {
        let v = self.canonical(v);
        if self.is_const(v)
            || plan.wide == Some(v)
            || plan.small.contains(&v)
            || plan.again.contains(&v)
        {
            return true;
        }
        let stmt = self.early[&v];
        if self.is_cheap(stmt) || !small {
            // Compute it at run time, from operands that are there.
            if matches!(stmt.op, Op::Word) {
                return false;
            }
            let mut fits = true;
            stmt.op.for_each_operand(&mut |operand| {
                let small = self.bound(self.canonical(*operand)) < 256;
                fits = fits && self.place(plan, *operand, small);
            });
            plan.again.push(v);
            return fits;
        }
        plan.small.push(v);
        let more = if plan.wide.is_none() { 8 } else { 0 };
        plan.small.len() <= SMALL_PARAMS + more
    }

    /// Reading a known variable, or adding a constant to it, needs no parameter.
    fn is_cheap(&self, stmt: &Stmt) -> bool {
        match &stmt.op {
            Op::ReadVar(_) => true,
            Op::Binary(BinOp::Add, a, b) => {
                let a = self.canonical(*a);
                self.is_const(*b)
                    && self.early.get(&a).is_some_and(|s| matches!(s.op, Op::ReadVar(_)))
            }
            _ => false,
        }
    }
}

/// Where each early value that is needed later comes from.
struct Plan {
    small: Vec<Value>,
    wide: Option<Value>,
    /// Computed at run time, operands first.
    again: Vec<Value>,
}

impl Plan {
    fn cut(self, analysis: &Analysis<'_>) -> Cut {
        let routine = analysis.routine;
        let params: Vec<Value> = self.small.iter().copied().chain(self.wide).collect();
        let mut before = Routine { values: routine.values.clone(), ..Routine::default() };
        collect_early(analysis, &routine.body, &mut before.body.stmts);
        before.body.yields = params.clone();
        crate::dce::remove_dead(&mut before);

        let mut after = Routine { body: Block::default(), ..routine.clone() };
        after.end.for_each_operand_mut(&mut |v| *v = analysis.canonical(*v));
        for (index, v) in self.small.iter().enumerate() {
            let op = Op::Param(index as u8);
            after.body.stmts.push(Stmt { op, results: vec![*v] });
        }
        if let Some(v) = self.wide {
            after.body.stmts.push(Stmt { op: Op::Param(WIDE_PARAM), results: vec![v] });
        }
        for v in &self.again {
            let mut stmt = analysis.early[v].clone();
            analysis.make_canonical(&mut stmt.op);
            after.body.stmts.push(stmt);
        }
        copy_late(analysis, &routine.body, &mut after.body);
        crate::dce::remove_dead(&mut after);
        Cut { before, small: self.small.len(), after }
    }
}

/// Copies the early statements, wherever they stand.
fn collect_early(analysis: &Analysis<'_>, block: &Block, into: &mut Vec<Stmt>) {
    for stmt in &block.stmts {
        if let Op::If { then, otherwise, .. } = &stmt.op {
            collect_early(analysis, then, into);
            collect_early(analysis, otherwise, into);
        } else if stmt.results.first().is_some_and(|r| analysis.early.contains_key(r)) {
            into.push(stmt.clone());
        }
    }
}

/// Copies all other statements.
fn copy_late(analysis: &Analysis<'_>, block: &Block, into: &mut Block) {
    for stmt in &block.stmts {
        if stmt.results.first().is_some_and(|r| analysis.early.contains_key(r)) {
            continue;
        }
        let mut stmt = stmt.clone();
        if let Op::If { then, otherwise, .. } = &mut stmt.op {
            for arm in [then, otherwise] {
                let mut copy = Block { stmts: Vec::new(), yields: arm.yields.clone() };
                copy_late(analysis, arm, &mut copy);
                *arm = copy;
            }
        }
        analysis.make_canonical(&mut stmt.op);
        into.stmts.push(stmt);
    }
}
