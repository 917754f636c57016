//! Handlers that call functions.
//!
//! Compilers of this language write a function wherever it is called. With floating-point arithmetic in every handler
//! that wants some, they take so many registers that everything else runs at a third of its speed, too. So the
//! functions are in one arm of the interpreter's switch, `run_calls`, which all these handlers share:
//!
//! ```text
//!  run_calls:  loop { a piece of the handler: operands, which function, which piece is next
//!                     the function: results }
//! ```
//!
//! [Pieces](kvrm_ir::pieces) and functions have their operands, results and what is kept for later in a variable of
//! `run_calls`, a [`Layout`]. The arm is left when the instruction is complete: nothing outside it knows that
//! it was in pieces.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use kvrm_ir::legalise::{self, Lacks, legalise};
use kvrm_ir::pieces::{Piece, Slot, pieces};
use kvrm_ir::{Function, Op, Routine, Type};

use super::{Continuation, Emitted, Emitter, HELD, Params, any_stmt, continuation, name, narrowed};
use crate::LACKS;

/// Statements of functions that a handler may have written into itself, instead of going to the shared ones and back.
/// Comparisons of single numbers have fewer, all arithmetic has more.
const FEW: usize = 56;

/// The same target without calls.
const INLINING: Lacks = Lacks { calls: legalise::Calls::Inlined, ..LACKS };

/// A handler's routine as the language has it.
pub(crate) enum Legal {
    /// It calls nothing.
    Whole(Routine),
    /// It calls functions.
    Pieces(Routine, Vec<Piece>),
}

/// Writes a routine for the language. Calls stay if they would be much code, and if it can be taken apart and then
/// always goes on to the next instruction.
pub(crate) fn legal(routine: &Routine) -> Legal {
    let legal = legalise(routine, LACKS);
    let mut called = 0;
    legal.body.for_each_stmt(&mut |stmt| {
        if let Op::Call(function, _) = &stmt.op {
            called += statements(&function.routine(INLINING));
        }
    });
    let is_apart = called > FEW && continuation(&legal) == Continuation::Next;
    match pieces(&legal).filter(|_| is_apart) {
        Some(pieces) => Legal::Pieces(legal, pieces),
        None if called > 0 => Legal::Whole(legalise(routine, INLINING)),
        None => Legal::Whole(legal),
    }
}

/// True if a routine calls any function.
pub(crate) fn has_calls(routine: &Routine) -> bool {
    any_stmt(routine, |op| matches!(op, Op::Call(..)))
}

fn statements(routine: &Routine) -> usize {
    let mut count = 0;
    routine.body.for_each_stmt(&mut |_| count += 1);
    count
}

/// The variable that pieces and functions share.
#[derive(Default)]
pub(super) struct Layout {
    /// Types of operands and results; each is as wide as any function wants it.
    params: Vec<Type>,
    results: Vec<Type>,
    slots: BTreeSet<Slot>,
}

impl Layout {
    fn add(&mut self, piece: &Piece) {
        self.slots.extend(piece.saved.iter().map(|(_, slot)| *slot));
        if let Some((function, _)) = piece.call {
            widen(&mut self.params, function.params);
            widen(&mut self.results, function.results);
        }
    }

    fn declare(&self, out: &mut String) {
        out.push_str(
            "\n// A call: what comes next, operands, results, and what is kept for later.\n",
        );
        out.push_str("struct Call {\n  piece: u32,\n  function: u32,\n");
        for (field, types) in [("param", &self.params), ("result", &self.results)] {
            for (index, ty) in types.iter().enumerate() {
                let _ = writeln!(out, "  {field}{index}: {},", name(*ty));
            }
        }
        for slot in &self.slots {
            let _ = writeln!(out, "  {}: {},", field(*slot), name(slot.ty));
        }
        out.push_str("}\n");
    }

    /// An operand, as what a function takes it for.
    pub(super) fn param(&self, ty: Type, index: u8) -> String {
        taken(ty, self.params[usize::from(index)], &format!("(*call).param{index}"))
    }
}

/// Makes types as wide as others in the same places.
fn widen(types: &mut Vec<Type>, others: &[Type]) {
    types.resize(types.len().max(others.len()), Type::Bool);
    for (ty, other) in types.iter_mut().zip(others) {
        *ty = (*ty).max(*other);
    }
}

/// What is in a field that may be wider.
fn taken(ty: Type, held: Type, field: &str) -> String {
    if ty == held { field.to_string() } else { narrowed(ty, field) }
}

fn field(slot: Slot) -> String {
    format!("kept_{}_{}", slot.ty, slot.index)
}

/// All handlers of a kernel that call.
#[derive(Default)]
pub(crate) struct Calls {
    handlers: Vec<Caller>,
}

struct Caller {
    number: u32,
    name: &'static str,
    routine: Routine,
    pieces: Vec<Piece>,
}

impl Calls {
    pub(crate) fn add(
        &mut self,
        number: u32,
        name: &'static str,
        routine: Routine,
        pieces: Vec<Piece>,
    ) -> Emitted {
        self.handlers.push(Caller { number, name, routine, pieces });
        Emitted { then: Continuation::NextAfterCalls, has_unaligned: false }
    }

    /// Writes them, and `run_calls`. Pieces that no handler starts with are numbered from `next` on.
    pub(crate) fn write(&self, out: &mut String, next: u32) {
        if self.handlers.is_empty() {
            return;
        }
        let mut writer = Writer { next, ..Writer::default() };
        for piece in self.handlers.iter().flat_map(|handler| &handler.pieces) {
            writer.layout.add(piece);
        }
        writer.layout.declare(out);
        for handler in &self.handlers {
            writer.handler(out, handler);
        }
        for function in writer.functions.values() {
            writer.function(out, function.0);
        }
        writer.run_calls(out);
    }
}

#[derive(Default)]
struct Writer {
    layout: Layout,
    /// By name, with their numbers.
    functions: BTreeMap<&'static str, (&'static Function, u32)>,
    /// Numbers of pieces, in the order of writing.
    pieces: Vec<u32>,
    /// Numbers of pieces by what they do, written out: the ends of many handlers are the same.
    ends: HashMap<String, u32>,
    next: u32,
}

impl Writer {
    /// Writes the pieces of a handler, the last one first: each says which comes after it.
    fn handler(&mut self, out: &mut String, handler: &Caller) {
        let _ = writeln!(out, "\n// {}", handler.name);
        let mut after = None;
        for (index, piece) in handler.pieces.iter().enumerate().rev() {
            let text = self.piece(&handler.routine, piece, after);
            after = Some(match index {
                0 => self.define(out, handler.number, &text),
                _ => self.end(out, text),
            });
        }
    }

    /// The number of a piece that no handler starts with. Writes it if it is new.
    fn end(&mut self, out: &mut String, text: String) -> u32 {
        if let Some(number) = self.ends.get(&text) {
            return *number;
        }
        let number = self.define(out, self.next, &text);
        self.next += 1;
        self.ends.insert(text, number);
        number
    }

    fn define(&mut self, out: &mut String, number: u32, text: &str) -> u32 {
        let _ = write!(
            out,
            "fn piece_{number}(w: vec4<u32>, call: ptr<function, Call>) {{\n{text}}}\n"
        );
        self.pieces.push(number);
        number
    }

    fn piece(&mut self, routine: &Routine, piece: &Piece, after: Option<u32>) -> String {
        let mut text = String::new();
        let function = piece.call.as_ref().map(|(function, _)| self.number_of(function));
        let mut emitter = Emitter::new(&mut text, routine, HELD);
        emitter.piece(&self.layout, piece);
        wgsl!(emitter, "(*call).piece = {}u;", after.unwrap_or(0));
        if let Some(function) = function {
            wgsl!(emitter, "(*call).function = {function}u;");
        }
        text
    }

    fn number_of(&mut self, function: &'static Function) -> u32 {
        let next = self.functions.len() as u32;
        self.functions.entry(function.name).or_insert((function, next)).1
    }

    fn function(&self, out: &mut String, function: &Function) {
        let routine = function.routine(INLINING);
        let _ = writeln!(out, "\nfn {}(call: ptr<function, Call>) {{", function.name);
        let params = Params::Call(&self.layout);
        let mut emitter = Emitter { params, ..Emitter::new(out, &routine, HELD) };
        emitter.block(&routine.body);
        for (index, v) in routine.body.yields.iter().enumerate() {
            let value = emitter.converted(*v, self.layout.results[index]);
            wgsl!(emitter, "(*call).result{index} = {value};");
        }
        out.push_str("}\n");
    }

    fn run_calls(&self, out: &mut String) {
        out.push_str(
            "\nfn run_calls(w: vec4<u32>) {
  var call: Call;
  call.piece = w.x & 0xffffu;
  loop {
    switch (call.piece) {
",
        );
        for number in &self.pieces {
            let _ = writeln!(out, "      case {number}u: {{ piece_{number}(w, &call); }}");
        }
        out.push_str(
            "      default: {}
    }
    if (call.piece == 0u) {
      break;
    }
    switch (call.function) {
",
        );
        for (name, (_, number)) in &self.functions {
            let _ = writeln!(out, "      case {number}u: {{ {name}(&call); }}");
        }
        out.push_str("      default: {}\n    }\n  }\n}\n");
    }
}

impl Emitter<'_> {
    fn piece(&mut self, layout: &Layout, piece: &Piece) {
        for (v, slot) in &piece.restored {
            self.set(*v, &format!("(*call).{}", field(*slot)));
        }
        for (index, v) in &piece.results {
            let result = format!("(*call).result{index}");
            self.set(*v, &taken(self.ty(*v), layout.results[*index], &result));
        }
        for stmt in &piece.stmts {
            self.stmt(stmt);
        }
        for (v, slot) in &piece.saved {
            let value = self.get(*v);
            wgsl!(self, "(*call).{} = {value};", field(*slot));
        }
        let Some((_, args)) = &piece.call else { return };
        for (index, v) in args.iter().enumerate() {
            let value = self.converted(*v, layout.params[index]);
            wgsl!(self, "(*call).param{index} = {value};");
        }
    }
}
