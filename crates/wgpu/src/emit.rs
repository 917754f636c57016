//! From the operations of a routine to WGSL: one arm per operation.
//!
//! A handler is a function of the record, `w`; where it may stop the lane, it says whether the lane goes on.
//! A value is a `let` of its own; `u8` and `u16` are `u32` whose upper bits are zero. The lane's state is in
//! variables that the kernel around the handlers declares: `x` (the register file), `at` (PC, as the number
//! of the record after the instruction's), `flag_n` and so on.
//!
//! A handler that calls functions is written in [pieces](calls).

macro_rules! wgsl {
    ($emitter:expr, $($text:tt)*) => {{
        let line = format!($($text)*);
        let indent = "  ".repeat($emitter.depth);
        let _ = writeln!($emitter.out, "{indent}{line}");
    }};
}
pub(crate) use wgsl;

pub(crate) mod calls;

use std::fmt::Write;

use kvrm_a64::state::{FPCR, FPSR, PC};
use kvrm_engine::kernel::{small_param_position, stop};
use kvrm_engine::translation::Kept;
use kvrm_ir::cut::WIDE_PARAM;
use kvrm_ir::{
    Access, BinOp, Block, CmpOp, Cond, ConvOp, Exit, File, Flags, Op, Place, PlaceData, RmwOp,
    Routine, Stmt, Terminator, Type, UnOp, Value, Var,
};

use self::calls::Layout;
use crate::kernel::word_of;

/// The variables of N, Z, C and V.
const FLAGS: [&str; 4] = ["flag_n", "flag_z", "flag_c", "flag_v"];

/// Variables that kernels with floating-point arithmetic keep at hand, as 32 bits: the others are zero. In the states of
/// neighbouring lanes, they are far apart.
pub(crate) const HELD: &[Var] = &[FPCR, FPSR];

/// How deep statements of translated code are.
pub(crate) const BLOCK_DEPTH: usize = 9;

/// What comes after a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// The instruction that follows.
    Next,
    /// That, or the lane has stopped or wants a page.
    MayLeave,
    /// Something else: it is a branch, or stops.
    Leaves,
    /// The instruction that follows; the handler is in [pieces](calls).
    NextAfterCalls,
}

/// What the kernel has to know of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Emitted {
    pub(crate) then: Continuation,
    /// There is one for addresses that are not aligned.
    pub(crate) has_unaligned: bool,
}

/// Where the parameters of a routine are.
#[derive(Clone, Copy)]
enum Params<'a> {
    /// In the record, `w`.
    Record,
    /// In a call: the routine is that of a function.
    Call(&'a Layout),
}

/// Writes the WGSL of a handler, or of translated code.
pub(crate) struct Emitter<'a> {
    pub(crate) out: &'a mut String,
    routine: &'a Routine,
    params: Params<'a>,
    pub(crate) depth: usize,
    /// What an instruction that cannot be completed does in the end.
    leave: &'a str,
    /// Where in translated code it is.
    position: Option<Position<'a>>,
    places: Places,
    /// Variables of the lane that are variables of the kernel.
    held: &'a [Var],
    /// Addresses have tags, and pages have permissions.
    mapped: bool,
}

/// Where an instruction of [translated code](crate::region) is.
#[derive(Clone, Copy)]
pub(crate) struct Position<'a> {
    /// Instructions of its block from this one on.
    pub(crate) rest: u32,
    /// Registers that are variables.
    pub(crate) kept: &'a Kept,
}

/// Which places a function of the kernel can access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    /// Single bytes, and what atomics make sure is aligned.
    Aligned,
    /// The others are left to another function.
    Usual,
    /// Any.
    Any,
}

/// Writes one handler, a function `hN`, and where it loads or stores also `unaligned_N`, which the instruction
/// is left to if an address is not a multiple of the access's size. That takes far more code, and is rare:
/// apart from the rest, it does not get in its way in the caches. The routine must be [legal](crate::LACKS). `held` are
/// the variables that the kernel keeps at hand; memory may be `mapped`.
pub(crate) fn handler(
    out: &mut String,
    number: u32,
    routine: &Routine,
    held: &[Var],
    mapped: bool,
) -> Emitted {
    let then = continuation(routine);
    // (Atomics are always aligned.)
    let has_unaligned = any_stmt(routine, |op| match op {
        Op::Load { place, .. } | Op::Store { place, .. } => routine.place(*place).len() > 1,
        _ => false,
    });
    let places = if has_unaligned { Places::Usual } else { Places::Aligned };
    let usual = Emitter { places, mapped, ..Emitter::new(out, routine, held) };
    usual.function(&format!("h{number}"), then);
    if has_unaligned {
        let any = Emitter { places: Places::Any, mapped, ..Emitter::new(out, routine, held) };
        any.function(&format!("unaligned_{number}"), then);
    }
    Emitted { then, has_unaligned }
}

/// True if the first of some statements is the last that stores to its place.
fn is_last_store(stmts: &[Stmt]) -> bool {
    let place = |stmt: &Stmt| match stmt.op {
        Op::Store { place, .. } => Some(place),
        _ => None,
    };
    let mut places = stmts.iter().map(place);
    places.next().flatten().is_some_and(|first| !places.any(|other| other == Some(first)))
}

fn any_stmt(routine: &Routine, is: impl Fn(&Op) -> bool) -> bool {
    let mut any = false;
    routine.body.for_each_stmt(&mut |stmt| any |= is(&stmt.op));
    any
}

fn continuation(routine: &Routine) -> Continuation {
    match routine.end {
        Terminator::Jump { .. }
        | Terminator::Branch { .. }
        | Terminator::Indirect { .. }
        | Terminator::Stop { .. } => Continuation::Leaves,
        Terminator::Next
            if any_stmt(routine, |op| matches!(op, Op::Probe { .. } | Op::Exit { .. })) =>
        {
            Continuation::MayLeave
        }
        Terminator::Next => Continuation::Next,
    }
}

/// The WGSL type that holds a value.
fn name(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 | Type::U16 | Type::U32 => "u32",
        Type::U64 => "u64",
        Type::U128 => unreachable!("packed elements are halves here"),
    }
}

fn literal(ty: Type, bits: u64) -> String {
    match ty {
        Type::Bool => (bits != 0).to_string(),
        Type::U64 => format!("0x{bits:x}lu"),
        _ => format!("0x{bits:x}u"),
    }
}

impl<'a> Emitter<'a> {
    fn new(out: &'a mut String, routine: &'a Routine, held: &'a [Var]) -> Self {
        let (params, leave, places) = (Params::Record, "return;", Places::Aligned);
        let (position, mapped) = (None, false);
        Emitter { out, routine, params, depth: 1, leave, position, places, held, mapped }
    }

    /// What writes an instruction of a block of translated code, which executes `leave` to leave the block.
    pub(crate) fn in_block(
        out: &'a mut String,
        routine: &'a Routine,
        held: &'a [Var],
        leave: &'a str,
        position: Position<'a>,
    ) -> Self {
        let (depth, places, position) = (BLOCK_DEPTH, Places::Usual, Some(position));
        Emitter { depth, leave, places, position, ..Emitter::new(out, routine, held) }
    }

    /// Writes the function of a handler.
    fn function(mut self, name: &str, then: Continuation) {
        let (result, leave, end) = match then {
            Continuation::Next => ("", "return;", ""),
            Continuation::MayLeave => (" -> bool", "return false;", "  return true;\n"),
            Continuation::Leaves => ("", "return;", ""),
            Continuation::NextAfterCalls => unreachable!("not in pieces"),
        };
        let _ = writeln!(self.out, "fn {name}(w: vec4<u32>){result} {{");
        self.leave = leave;
        self.block(&self.routine.body);
        self.end();
        self.out.push_str(end);
        self.out.push_str("}\n");
    }

    fn ty(&self, v: Value) -> Type {
        self.routine.value(v).ty
    }

    /// A value as an operand.
    pub(crate) fn get(&self, v: Value) -> String {
        match self.routine.constant(v) {
            Some(bits) => literal(self.ty(v), bits),
            None => format!("v{}", v.0),
        }
    }

    /// A value as an operand of 64 bits. (Constants are not converted: naga cannot.)
    fn wide(&self, v: Value) -> String {
        match self.routine.constant(v) {
            Some(bits) => literal(Type::U64, bits),
            None => format!("u64(v{})", v.0),
        }
    }

    /// A value as an operand of a type that may be wider than its own.
    fn converted(&self, v: Value, to: Type) -> String {
        match self.routine.constant(v) {
            Some(bits) => literal(to, bits),
            None if self.ty(v) == to => self.get(v),
            None => self.convert(ConvOp::Zext, v, to),
        }
    }

    /// What the names of functions for loads and stores end with.
    fn suffix(&self) -> &'static str {
        if self.places == Places::Any { "_unaligned" } else { "" }
    }

    /// Defines a value.
    fn set(&mut self, v: Value, expression: &str) {
        wgsl!(self, "let v{}: {} = {expression};", v.0, name(self.ty(v)));
    }

    fn block(&mut self, block: &Block) {
        for (index, stmt) in block.stmts.iter().enumerate() {
            self.stmt(stmt);
            if self.places == Places::Any && is_last_store(&block.stmts[index..]) {
                self.end_unaligned(&stmt.op);
            }
        }
    }

    pub(crate) fn stmts(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let result = stmt.results.first().copied();
        let to = result.map(|v| self.ty(v));
        let expression = match &stmt.op {
            Op::Word => unreachable!("decoded before the kernel runs"),
            Op::Call(..) => unreachable!("between pieces"),
            Op::Float(..) | Op::Packed(..) | Op::Pair(..) | Op::Half(..) => {
                unreachable!("not legal")
            }
            Op::Param(index) => match self.params {
                Params::Record => param(to.expect("a result"), *index),
                Params::Call(layout) => layout.param(to.expect("a result"), *index),
            },
            Op::Count => match self.position {
                None => "completed()".to_string(),
                Some(Position { rest, .. }) => format!("count - u64(fuel) - {rest}lu"),
            },
            Op::Unary(op, a) => self.unary(*op, *a),
            Op::Binary(op, a, b) => self.binary(*op, *a, *b),
            Op::Compare(op, a, b) => self.compare(*op, *a, *b),
            Op::Select(c, a, b) => {
                format!("select({}, {}, {})", self.get(*b), self.get(*a), self.get(*c))
            }
            Op::Convert(op, a) => self.convert(*op, *a, to.expect("a result")),
            Op::ReadReg(file, index) => self.register(*file, *index),
            Op::ReadVar(var) if self.held.contains(var) => format!("u64({})", var.name),
            Op::ReadVar(var) => read_var(*var),
            Op::Test(cond) => {
                let index = Cond::FLAGS.iter().position(|flag| flag == cond);
                FLAGS[index.expect("single flags are legal")].to_string()
            }
            Op::Load { place, index, .. } => {
                let (ty, element) = (self.routine.place(*place).ty, self.element(*place, *index));
                narrowed(ty, &format!("load{}({element})", self.suffix()))
            }
            Op::Rmw { op, place, value } => self.rmw(*op, *place, *value),
            Op::Cas { place, expected, new } => {
                let ty = self.ty(*new);
                let [expected, new] = [expected, new].map(|v| self.get(*v));
                let place = place_name(*place);
                let call = format!("cas({place}, {}u, u64({expected}), u64({new}))", ty.bits());
                narrowed(ty, &call)
            }
            op => return self.effect(op, &stmt.results),
        };
        self.set(result.expect("it has a result"), &expression);
    }

    /// Operations that do something, or have not just one result.
    fn effect(&mut self, op: &Op, results: &[Value]) {
        match op {
            Op::WriteReg(file, index, value) => {
                wgsl!(self, "{} = {};", self.register(*file, *index), self.get(*value));
            }
            Op::WriteVar(var, value) => self.write_var(*var, *value),
            Op::SetFlags(flags) => {
                let Flags::Bits(bits) = flags else { unreachable!("not legal") };
                for (flag, bit) in FLAGS.into_iter().zip(bits) {
                    wgsl!(self, "{flag} = {};", self.get(*bit));
                }
            }
            Op::Probe { place, addr } => self.probe(*place, *addr),
            Op::Store { place, index, value, .. } => {
                let (element, value) = (self.element(*place, *index), self.wide(*value));
                wgsl!(self, "store{}({element}, {value});", self.suffix());
            }
            Op::Cas128 { place, expected, new } => {
                let [e, n] = [expected, new].map(|pair| pair.map(|v| self.get(v)).join(", "));
                let pair = format!("pair{}", results[0].0);
                wgsl!(self, "let {pair} = cas_pair({}, {e}, {n});", place_name(*place));
                self.set(results[0], &format!("{pair}.low"));
                self.set(results[1], &format!("{pair}.high"));
            }
            // The language's barriers are for whole workgroups in step; accesses are in order as they are.
            Op::Fence => {}
            Op::Exit { cond, .. } if self.position.is_some() => {
                wgsl!(self, "if ({}) {{ {} }}", self.get(*cond), self.leave);
            }
            Op::Exit { exit, cond, detail } => {
                let (cond, stop, leave) = (self.get(*cond), self.stop(*exit, *detail), self.leave);
                wgsl!(self, "if ({cond}) {{ {stop} {leave} }}");
            }
            Op::If { cond, then, otherwise } => self.choice(*cond, [then, otherwise], results),
            _ => unreachable!("it has a result"),
        }
    }

    /// A register of a file.
    fn register(&self, file: File, index: Value) -> String {
        let is_kept = |position: &Position<'_>| {
            let slot = self.routine.constant(index).expect("slots are known in translated code");
            position.kept.has(file, slot).then(|| kept_name(slot))
        };
        let kept = self.position.as_ref().and_then(is_kept);
        kept.unwrap_or_else(|| format!("{}[{}]", file.name, self.get(index)))
    }

    /// Values do not leave their block, so results are variables.
    fn choice(&mut self, cond: Value, arms: [&Block; 2], results: &[Value]) {
        for v in results {
            wgsl!(self, "var v{}: {};", v.0, name(self.ty(*v)));
        }
        wgsl!(self, "if ({}) {{", self.get(cond));
        for (index, arm) in arms.into_iter().enumerate() {
            self.depth += 1;
            self.block(arm);
            for (result, v) in results.iter().zip(&arm.yields) {
                wgsl!(self, "v{} = {};", result.0, self.get(*v));
            }
            self.depth -= 1;
            wgsl!(self, "{}", if index == 0 { "} else {" } else { "}" });
        }
    }

    fn write_var(&mut self, var: Var, value: Value) {
        let (word, value) = (word_of(var), self.get(value));
        if self.held.contains(&var) {
            wgsl!(self, "{} = u32({value});", var.name);
        } else if var.ty == Type::U64 {
            wgsl!(self, "set_wide({word}u, {value});");
        } else {
            wgsl!(self, "states[state + {word}u] = {value};");
        }
    }

    /// Goes where the routine says. Only computed addresses can be anywhere: others are in the record, and near
    /// enough for 32 bits.
    fn end(&mut self) {
        match self.routine.end {
            Terminator::Next => {}
            Terminator::Jump { .. } => wgsl!(self, "branch_near(w.z);"),
            Terminator::Branch { cond, .. } => {
                wgsl!(self, "if ({}) {{ branch_near(w.z); }}", self.get(cond));
            }
            Terminator::Indirect { target, .. } => {
                wgsl!(self, "branch_far({});", self.get(target));
            }
            Terminator::Stop { exit, detail } => wgsl!(self, "{}", self.stop(exit, detail)),
        }
    }

    /// Stops the lane after the instruction or before it.
    fn stop(&self, exit: Exit, detail: Value) -> String {
        let (reason, detail) = (stop::exit(exit.reason), self.get(detail));
        match exit.completes {
            true => format!("stop = {reason}u; detail = {detail};"),
            false => format!("stop_before({reason}u, {detail});"),
        }
    }

    // Memory.

    fn probe(&mut self, place: Place, addr: Value) {
        let PlaceData { access, ty, count } = self.routine.place(place);
        let (name, mut addr, leave) = (place_name(place), self.get(addr), self.leave);
        let (size, len) = (ty.bytes(), self.routine.place(place).len());
        if self.position.is_some() {
            let check = if access == Access::Read { "can_read" } else { "can_write" };
            wgsl!(self, "if (!{check}({addr}, {size}u, {len}u)) {{ {leave} }}");
            wgsl!(self, "let {name} = place_at({addr});");
            if access != Access::Read {
                wgsl!(self, "if (!is_own({name})) {{ {leave} }}");
            }
            return;
        }
        let refused = if self.mapped { stop::no_page(access) } else { stop::fault(access) };
        if self.mapped {
            wgsl!(self, "let {name}_at = untagged({addr});");
            addr = format!("{name}_at");
        }
        if self.places == Places::Usual && len > 1 {
            wgsl!(self, "if (!is_usual({addr}, {size}u, {len}u)) {{ {leave} }}");
        }
        let check = match access {
            Access::Read => "is_within",
            _ if self.places != Places::Any && count == 1 => "may_write_within",
            Access::Write | Access::ReadWrite => "may_write",
        };
        wgsl!(self, "if (!{check}({addr}, {len}u, {refused}u)) {{ {leave} }}");
        match self.mapped && self.places == Places::Any {
            true => wgsl!(self, "let {name} = place_across({addr}, {len}u);"),
            false => wgsl!(self, "let {name} = place_at({addr});"),
        }
        if access != Access::Read {
            wgsl!(self, "if (!own({name})) {{ {leave} }}");
            if self.places == Places::Any && len > 1 {
                // It may reach into the next page.
                wgsl!(self, "if (!own(place_at({addr} + {}lu))) {{ {leave} }}", len - 1);
            }
        }
        if self.places == Places::Any {
            self.begin_unaligned(place, len);
        }
    }

    /// Prepares for accesses to a place at any address.
    fn begin_unaligned(&mut self, place: Place, len: u32) {
        let prepare = match self.routine.place(place).access {
            Access::Read => "gather",
            Access::Write => "collect",
            Access::ReadWrite => unreachable!("atomics are aligned"),
        };
        wgsl!(self, "{prepare}({}, {len}u);", place_name(place));
    }

    /// Carries out stores to a place, after the last.
    fn end_unaligned(&mut self, last: &Op) {
        if let Op::Store { place, .. } = last {
            let len = self.routine.place(*place).len();
            wgsl!(self, "scatter({}, {len}u);", place_name(*place));
        }
    }

    /// An element of a place, as functions are given it: the place, the offset in bytes, the size in bits.
    fn element(&self, place: Place, index: u32) -> String {
        let ty = self.routine.place(place).ty;
        format!("{}, {}u, {}u", place_name(place), index * ty.bytes(), ty.bits())
    }

    // Pure operations.

    fn unary(&self, op: UnOp, a: Value) -> String {
        let ty = self.ty(a);
        let a = self.get(a);
        match op {
            UnOp::Not if ty == Type::Bool => format!("!{a}"),
            UnOp::Not => format!("~{a}"),
            UnOp::Neg => format!("{} - {a}", literal(ty, 0)),
            UnOp::Clz => format!("countLeadingZeros({a})"),
            UnOp::Rbit => format!("reverseBits({a})"),
            UnOp::Bswap => unreachable!("not legal"),
        }
    }

    fn binary(&self, op: BinOp, a: Value, b: Value) -> String {
        let ty = self.ty(a);
        let (x, y) = (self.get(a), self.get(b));
        let sign = if ty == Type::U64 { "i64" } else { "i32" };
        match (op, ty) {
            (BinOp::Xor, Type::Bool) => format!("{x} != {y}"),
            (BinOp::Add, _) => format!("{x} + {y}"),
            (BinOp::Sub, _) => format!("{x} - {y}"),
            (BinOp::Mul, _) => format!("{x} * {y}"),
            (BinOp::UDiv, _) => format!("{x} / {y}"),
            (BinOp::And, _) => format!("{x} & {y}"),
            (BinOp::Or, _) => format!("{x} | {y}"),
            (BinOp::Xor, _) => format!("{x} ^ {y}"),
            (BinOp::Shl, _) => format!("{x} << {y}"),
            (BinOp::Shr, _) => format!("{x} >> {y}"),
            (BinOp::Sar, _) => {
                format!("bitcast<{}>(bitcast<{sign}>({x}) >> {y})", name(ty))
            }
            (BinOp::UMulH | BinOp::SMulH | BinOp::SDiv | BinOp::Rotr, _) => {
                unreachable!("not legal")
            }
        }
    }

    fn compare(&self, op: CmpOp, a: Value, b: Value) -> String {
        let sign = if self.ty(a) == Type::U64 { "i64" } else { "i32" };
        let (a, b) = (self.get(a), self.get(b));
        match op {
            CmpOp::Eq => format!("{a} == {b}"),
            CmpOp::Ne => format!("{a} != {b}"),
            CmpOp::Ult => format!("{a} < {b}"),
            CmpOp::Ule => format!("{a} <= {b}"),
            CmpOp::Slt => format!("bitcast<{sign}>({a}) < bitcast<{sign}>({b})"),
            CmpOp::Sle => format!("bitcast<{sign}>({a}) <= bitcast<{sign}>({b})"),
            CmpOp::SAddO | CmpOp::SSubO => unreachable!("not legal"),
        }
    }

    fn convert(&self, op: ConvOp, a: Value, to: Type) -> String {
        let from = self.ty(a);
        let a = self.get(a);
        match (op, from, to) {
            (ConvOp::Zext, Type::Bool, _) => {
                format!("select({}, {}, {a})", literal(to, 0), literal(to, 1))
            }
            (ConvOp::Zext, ..) => format!("{}({a})", name(to)),
            (ConvOp::Trunc, ..) => narrowed(to, &a),
            (ConvOp::Sext, Type::U32, _) => format!("u64(i64(bitcast<i32>({a})))"),
            (ConvOp::Sext, ..) => {
                let shift = 32 - from.bits();
                let wide = format!("(bitcast<i32>({a} << {shift}u) >> {shift}u)");
                match to {
                    Type::U64 => format!("u64(i64{wide})"),
                    Type::U16 => format!("bitcast<u32>{wide} & 0xffffu"),
                    _ => format!("bitcast<u32>{wide}"),
                }
            }
        }
    }

    fn rmw(&self, op: RmwOp, place: Place, value: Value) -> String {
        let (ty, value) = (self.ty(value), self.wide(value));
        let (number, place) = (op as u32, place_name(place));
        narrowed(ty, &format!("rmw({number}u, {place}, {}u, {value})", ty.bits()))
    }
}

/// The variable of translated code that has a general register.
pub(crate) fn kept_name(slot: u64) -> String {
    format!("g{slot}")
}

/// A parameter of the record.
fn param(ty: Type, index: u8) -> String {
    if index == WIDE_PARAM {
        return match ty {
            Type::U64 => "u64(w.z) | (u64(w.w) << 32u)".to_string(),
            _ => "w.z".to_string(),
        };
    }
    let (word, shift) = small_param_position(index);
    let word = ["x", "y", "z", "w"][word];
    match ty {
        Type::Bool => format!("(w.{word} & 0x{:x}u) != 0u", 1u32 << shift),
        Type::U64 => format!("u64((w.{word} >> {shift}u) & 0xffu)"),
        _ => format!("(w.{word} >> {shift}u) & 0xffu"),
    }
}

fn place_name(place: Place) -> String {
    format!("p{}", place.0)
}

fn read_var(var: Var) -> String {
    let word = word_of(var);
    match var.ty {
        _ if var.id == PC.id => "pc()".to_string(),
        Type::U64 => {
            format!("u64(states[state + {word}u]) | (u64(states[state + {}u]) << 32u)", word + 1)
        }
        _ => format!("states[state + {word}u]"),
    }
}

/// A `u64` as a narrower type, or as it is.
fn narrowed(ty: Type, wide: &str) -> String {
    match ty {
        Type::Bool => format!("(u32({wide}) & 1u) != 0u"),
        Type::U8 | Type::U16 => format!("u32({wide}) & 0x{:x}u", ty.mask()),
        Type::U32 => format!("u32({wide})"),
        Type::U64 => wide.to_string(),
        Type::U128 => unreachable!("parameters have 64 bits at the most"),
    }
}
