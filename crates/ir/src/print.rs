//! The textual form, for people and golden files.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use crate::op::*;

/// One name per enum constant: the lower-case form of its Rust name.
struct Lower<T>(T);

impl<T: fmt::Debug> Display for Lower<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{:?}", self.0).to_lowercase())
    }
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Lower(*self).fmt(f)
    }
}

impl Display for Routine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut numbers = HashMap::new();
        number(&self.body, &mut numbers);
        let printer = Printer { routine: self, numbers };
        printer.block(f, &self.body, 0)?;
        printer.end(f)
    }
}

/// Numbers values in the order of their definition, so that removed ones leave no gaps.
fn number(block: &Block, numbers: &mut HashMap<Value, usize>) {
    for stmt in &block.stmts {
        if let Op::If { then, otherwise, .. } = &stmt.op {
            number(then, numbers);
            number(otherwise, numbers);
        }
        for result in &stmt.results {
            numbers.insert(*result, numbers.len());
        }
    }
}

struct Printer<'a> {
    routine: &'a Routine,
    numbers: HashMap<Value, usize>,
}

impl Printer<'_> {
    fn name(&self, v: Value) -> String {
        match self.routine.value(v) {
            ValueData { ty: Type::Bool, constant: Some(bits) } => (bits != 0).to_string(),
            ValueData { ty, constant: Some(bits) } if bits < 10 => format!("{bits}_{ty}"),
            ValueData { ty, constant: Some(bits) } => format!("{bits:#x}_{ty}"),
            ValueData { constant: None, .. } => format!("v{}", self.numbers[&v]),
        }
    }

    fn names(&self, values: &[Value]) -> String {
        values.iter().map(|v| self.name(*v)).collect::<Vec<_>>().join(", ")
    }

    fn block(&self, f: &mut Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
        for stmt in &block.stmts {
            write!(f, "{:1$}", "", depth * 4)?;
            if !stmt.results.is_empty() {
                let typed: Vec<_> = stmt
                    .results
                    .iter()
                    .map(|v| format!("{}: {}", self.name(*v), self.routine.value(*v).ty))
                    .collect();
                write!(f, "{} = ", typed.join(", "))?;
            }
            self.op(f, &stmt.op, depth)?;
            writeln!(f)?;
        }
        if !block.yields.is_empty() {
            writeln!(f, "{:2$}yield {}", "", self.names(&block.yields), depth * 4)?;
        }
        Ok(())
    }

    /// Where control goes, unless it is to the next instruction.
    fn end(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.routine.end {
            Terminator::Next => Ok(()),
            Terminator::Jump { target, call } => {
                writeln!(f, "{} {}", if *call { "call" } else { "jump" }, self.name(*target))
            }
            Terminator::Branch { cond, target } => {
                writeln!(f, "jump {} if {}", self.name(*target), self.name(*cond))
            }
            Terminator::Indirect { target, hint } => {
                writeln!(f, "indirect {} {}", Lower(hint), self.name(*target))
            }
            Terminator::Stop { exit, detail } => {
                let completes = if exit.completes { " completing" } else { "" };
                writeln!(f, "stop {}{completes}, {}", exit.reason, self.name(*detail))
            }
        }
    }

    fn flags(&self, f: &mut Formatter<'_>, flags: &Flags) -> fmt::Result {
        match flags {
            Flags::Add(x, y) => write!(f, "flags := {} + {}", self.name(*x), self.name(*y)),
            Flags::Sub(x, y) => write!(f, "flags := {} - {}", self.name(*x), self.name(*y)),
            Flags::Logic(x) => write!(f, "flags := logic {}", self.name(*x)),
            Flags::Bits(bits) => write!(f, "flags := {}", self.names(bits)),
        }
    }

    fn op(&self, f: &mut Formatter<'_>, op: &Op, depth: usize) -> fmt::Result {
        let n = |v: &Value| self.name(*v);
        match op {
            Op::Word => write!(f, "word"),
            Op::Param(index) => write!(f, "param {index}"),
            Op::Count => write!(f, "count"),
            Op::Unary(op, a) => write!(f, "{} {}", Lower(op), n(a)),
            Op::Binary(op, a, b) => write!(f, "{} {}, {}", Lower(op), n(a), n(b)),
            Op::Compare(op, a, b) => write!(f, "{} {}, {}", Lower(op), n(a), n(b)),
            Op::Select(c, a, b) => write!(f, "select {}, {}, {}", n(c), n(a), n(b)),
            Op::Convert(op, a) => write!(f, "{} {}", Lower(op), n(a)),
            Op::Float(op, args) => write!(f, "float {} {}", Lower(op), self.names(args)),
            Op::Call(function, args) => write!(f, "{}({})", function.name, self.names(args)),
            Op::ReadReg(file, index) => write!(f, "{}[{}]", file.name, n(index)),
            Op::WriteReg(file, index, value) => {
                write!(f, "{}[{}] := {}", file.name, n(index), n(value))
            }
            Op::ReadVar(var) => write!(f, "{}", var.name),
            Op::WriteVar(var, value) => write!(f, "{} := {}", var.name, n(value)),
            Op::Test(cond) => write!(f, "test {}", Lower(cond)),
            Op::SetFlags(flags) => self.flags(f, flags),
            Op::Probe { place, addr } => {
                let PlaceData { access, ty, count } = self.routine.place(*place);
                write!(f, "p{} = probe {} {}, {count} {ty}", place.0, Lower(access), n(addr))
            }
            Op::Load { order, place, index } => {
                write!(f, "load{} p{}[{index}]", suffix(*order), place.0)
            }
            Op::Store { order, place, index, value } => {
                write!(f, "store{} p{}[{index}], {}", suffix(*order), place.0, n(value))
            }
            Op::Rmw { op, place, value } => {
                write!(f, "rmw {} p{}, {}", Lower(op), place.0, n(value))
            }
            Op::Cas { place, expected, new } => {
                write!(f, "cas p{}, {}, {}", place.0, n(expected), n(new))
            }
            Op::Cas128 { place, expected, new } => {
                write!(f, "cas128 p{}, {}, {}", place.0, self.names(expected), self.names(new))
            }
            Op::Fence => write!(f, "fence"),
            Op::Exit { exit, cond, detail } => {
                let completes = if exit.completes { " completing" } else { "" };
                write!(f, "exit {}{completes} if {}, {}", exit.reason, n(cond), n(detail))
            }
            Op::If { cond, then, otherwise } => {
                writeln!(f, "if {} {{", n(cond))?;
                self.block(f, then, depth + 1)?;
                writeln!(f, "{:1$}}} else {{", "", depth * 4)?;
                self.block(f, otherwise, depth + 1)?;
                write!(f, "{:1$}}}", "", depth * 4)
            }
        }
    }
}

fn suffix(order: Order) -> &'static str {
    match order {
        Order::Plain => "",
        Order::AcquireRelease => ".ordered",
    }
}
