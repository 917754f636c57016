//! From the operations of a routine to PTX: one arm per operation.
//!
//! A value is a register of its own: `%p7`, `%r7` or `%d7` for a boolean, up to 32 and 64 bits. `u8` and
//! `u16` live in 32-bit registers whose upper bits are zero. Lane state has fixed names, which the
//! kernel around the handlers declares: `%x_base` (address of the register file), `%at` (PC, as the
//! address of the record after the instruction's), `%target` (where to branch), `%fn` `%fz` `%fc` `%fv`
//! (flags) and `%w0` to `%w3` (the record). Where there are vectors, `%v_base` is the address of their registers, and
//! `%fp` has [FPCR and FPSR](crate::float).

use std::fmt::Write;

use kvrm_a64::state::{CpuState, PC, V, VARS};
use kvrm_engine::kernel::{small_param_position, stop};
use kvrm_ir::cut::WIDE_PARAM;
use kvrm_ir::legalise::{Calls, Lacks, Width};
use kvrm_ir::{
    BinOp, Block, CmpOp, Cond, ConvOp, Exit, File, Flags, Op, Routine, Stmt, Terminator, Type,
    UnOp, Value, Var,
};

use crate::kernel::RECORD;
use crate::memory::{MemorySpec, PlaceRegisters};
use crate::region::Position;

/// Packed elements are halves here.
const NO_WHOLES: &str = "there are no wholes";

/// What PTX lacks: it has no test for overflow, rotates 32 bits only, clamps shift amounts, and leaves division
/// by zero undefined. Kernels keep the flags as four predicates.
pub(crate) const LACKS: Lacks = Lacks {
    rotation: Some(Width::Wide),
    total_division: true,
    overflow: true,
    wide_shifts: true,
    wholes: false,
    calls: Calls::Shortened,
    flag_operands: true,
    wide_bit_order: false,
    byte_order: false,
    upper_products: false,
    signed_division: false,
};

/// The registers of N, Z, C and V.
pub(crate) const FLAGS: [&str; 4] = ["%fn", "%fz", "%fc", "%fv"];

/// What the text of a handler depends on, beside its routine.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) memory: MemorySpec,
    /// The kernel has vector registers.
    pub(crate) vectors: bool,
}

/// Writes the PTX of handlers.
pub(crate) struct Emitter<'a> {
    pub(crate) out: &'a mut String,
    pub(crate) memory: &'a MemorySpec,
    pub(crate) vectors: bool,
    pub(crate) routine: &'a Routine,
    /// Number of the handler, for labels; none in a function.
    handler: Option<u32>,
    /// What the names of values, temporaries and labels have in addition, where all code of a kernel sees them.
    pub(crate) tag: String,
    /// The instruction, in translated code.
    pub(crate) position: Option<Position<'a>>,
    /// Labels and temporaries made so far in the handler.
    pub(crate) fresh: u32,
    /// What is seldom executed, to follow the rest.
    pub(crate) cold: String,
    /// Registers of the places that were made.
    pub(crate) places: Vec<Option<PlaceRegisters>>,
}

/// Byte offset of a variable in the lane's state.
pub(crate) fn var_offset(var: Var) -> usize {
    VARS[usize::from(var.id)].1
}

macro_rules! ptx {
    ($emitter:expr, $($text:tt)*) => {{
        let line = format!($($text)*);
        let _ = writeln!($emitter.out, "\t{line}");
    }};
}
pub(crate) use ptx;

impl Emitter<'_> {
    /// Writes one handler: the label, the work, and the jump to the next instruction. The routine must be
    /// [legal](LACKS).
    pub(crate) fn handler(out: &mut String, setting: &Setting, handler: u32, routine: &Routine) {
        let body = Emitter::block(setting, Some(handler), routine, |e| e.body(&routine.body.stmts));
        let _ = write!(out, "H{handler}:\n{body}");
    }

    /// What `write` writes, in a block with the registers of a routine.
    pub(crate) fn block(
        setting: &Setting,
        handler: Option<u32>,
        routine: &Routine,
        write: impl FnOnce(&mut Emitter<'_>),
    ) -> String {
        let mut body = String::new();
        let mut e = Emitter::new(&mut body, setting, routine);
        e.handler = handler;
        write(&mut e);
        let cold = std::mem::take(&mut e.cold);
        e.out.push_str(&cold);
        let registers = e.registers();
        format!("\t{{\n{registers}{body}\t}}\n")
    }

    /// An emitter of code that has a routine's values and places.
    pub(crate) fn new<'a>(
        out: &'a mut String,
        setting: &'a Setting,
        routine: &'a Routine,
    ) -> Emitter<'a> {
        Emitter {
            out,
            memory: &setting.memory,
            vectors: setting.vectors,
            routine,
            handler: None,
            tag: String::new(),
            position: None,
            fresh: 0,
            cold: String::new(),
            places: vec![None; routine.places.len()],
        }
    }

    /// Declares the registers of values and of the temporaries made so far.
    pub(crate) fn registers(&self) -> String {
        let (values, temps, tag) = (self.routine.values.len(), self.fresh + 1, &self.tag);
        format!(
            "\t.reg .pred %p{tag}<{values}>, %tp{tag}<{temps}>;
\t.reg .b32 %r{tag}<{values}>, %tr{tag}<{temps}>;
\t.reg .b64 %d{tag}<{values}>, %td{tag}<{temps}>;\n"
        )
    }

    pub(crate) fn ty(&self, v: Value) -> Type {
        self.routine.value(v).ty
    }

    /// A label of the handler.
    pub(crate) fn label(&mut self) -> String {
        self.fresh += 1;
        match self.handler {
            Some(handler) => format!("L{handler}_{}", self.fresh),
            None => format!("L{}F{}", self.tag, self.fresh),
        }
    }

    /// A temporary predicate.
    pub(crate) fn temp_p(&mut self) -> String {
        self.fresh += 1;
        format!("%tp{}{}", self.tag, self.fresh)
    }

    /// A temporary of 32 bits.
    pub(crate) fn temp_r(&mut self) -> String {
        self.fresh += 1;
        format!("%tr{}{}", self.tag, self.fresh)
    }

    /// A temporary of 64 bits.
    pub(crate) fn temp_d(&mut self) -> String {
        self.fresh += 1;
        format!("%td{}{}", self.tag, self.fresh)
    }

    /// A value as an operand: its register, or a number.
    pub(crate) fn get(&mut self, v: Value) -> String {
        let data = self.routine.value(v);
        match (data.ty, data.constant) {
            (Type::Bool, Some(bits)) => {
                let p = self.temp_p();
                ptx!(self, "setp.eq.u32 {p}, 1, {bits};");
                p
            }
            (_, Some(bits)) => format!("0x{bits:x}"),
            (_, None) => self.result(v),
        }
    }

    /// The register of a value.
    pub(crate) fn result(&self, v: Value) -> String {
        let class = match self.ty(v) {
            Type::Bool => 'p',
            Type::U8 | Type::U16 | Type::U32 => 'r',
            Type::U64 => 'd',
            Type::U128 => unreachable!("{NO_WHOLES}"),
        };
        format!("%{class}{}{}", self.tag, v.0)
    }

    /// Writes the rest of a handler. What follows a place is written twice: once more behind the handler, for where
    /// the place is not aligned or crosses a page.
    fn body(&mut self, stmts: &[Stmt]) {
        for (index, stmt) in stmts.iter().enumerate() {
            match stmt.op {
                Op::Probe { place, addr } if self.may_be_slow(place) => {
                    let addr = self.get(addr);
                    self.probe_or_leave(place, &addr, |e| e.body(&stmts[index + 1..]));
                }
                _ => self.stmt(stmt),
            }
        }
        self.end();
    }

    pub(crate) fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let d = stmt.results.first().map(|v| self.result(*v)).unwrap_or_default();
        let to = stmt.results.first().map(|v| self.ty(*v));
        match &stmt.op {
            Op::Word => unreachable!("decoded before the kernel runs"),
            Op::Packed(..) | Op::Pair(..) | Op::Half(..) => unreachable!("{NO_WHOLES}"),
            Op::Param(_) if self.position.is_some() => unreachable!("words are known"),
            Op::Param(index) if self.handler.is_none() => {
                self.argument(&d, to.expect("a result"), *index)
            }
            Op::Param(index) => self.param(&d, to.expect("a result"), *index),
            Op::Count if self.position.is_some() => self.count_in_block(&d),
            Op::Count => {
                let (left, t) = (self.temp_r(), self.temp_d());
                ptx!(self, "sub.u32 {left}, %limit, %at;");
                ptx!(self, "shr.u32 {left}, {left}, {};", RECORD.ilog2());
                ptx!(self, "cvt.u64.u32 {t}, {left};");
                ptx!(self, "sub.u64 {d}, %count_base, {t};");
                ptx!(self, "sub.u64 {d}, {d}, 1;");
            }
            Op::Unary(op, a) => {
                let (ty, a) = (self.ty(*a), self.get(*a));
                self.unary(*op, ty, &d, &a);
            }
            Op::Binary(op, a, b) => {
                let (ty, a, b) = (self.ty(*a), self.get(*a), self.get(*b));
                self.binary(*op, ty, &d, &a, &b);
            }
            Op::Compare(op, a, b) => {
                let (ty, a, b) = (self.ty(*a), self.get(*a), self.get(*b));
                self.compare(*op, ty, &d, &a, &b);
            }
            Op::Select(c, a, b) => {
                let ty = self.ty(*a);
                let (c, a, b) = (self.get(*c), self.get(*a), self.get(*b));
                self.select(ty, &d, &c, &a, &b);
            }
            Op::Convert(op, a) => {
                let (from, a) = (self.ty(*a), self.get(*a));
                self.convert(*op, from, to.expect("a result"), &d, &a);
            }
            Op::Float(op, args) => self.float(*op, &d, to.expect("a result"), args),
            Op::Call(function, args) => self.calls(function, args, &stmt.results),
            Op::ReadReg(file, index) if self.is_kept(*file, *index) => {
                let kept = self.kept(*file, *index);
                ptx!(self, "mov.b64 {d}, {kept};");
            }
            Op::WriteReg(file, index, value) if self.is_kept(*file, *index) => {
                let (kept, value) = (self.kept(*file, *index), self.get(*value));
                let whole = self.temp_d();
                ptx!(self, "mov.b64 {whole}, {value};");
                ptx!(self, "mov.b64 {kept}, {whole};");
            }
            Op::ReadReg(file, index) => {
                let at = self.slot(*file, *index);
                ptx!(self, "ld.local.b64 {d}, {at};");
            }
            Op::WriteReg(file, index, value) => {
                let (at, value) = (self.slot(*file, *index), self.get(*value));
                ptx!(self, "st.local.b64 {at}, {value};");
            }
            Op::ReadVar(var) => self.read_var(*var, &d),
            Op::WriteVar(var, value) => {
                let value = self.get(*value);
                self.write_var(*var, &value);
            }
            Op::Test(cond) => {
                let index = Cond::FLAGS.iter().position(|flag| flag == cond);
                ptx!(self, "mov.pred {d}, {};", FLAGS[index.expect("single flags are legal")]);
            }
            Op::SetFlags(flags) => {
                let Flags::Bits(bits) = flags else { unreachable!("not legal") };
                for (flag, bit) in FLAGS.into_iter().zip(bits) {
                    let bit = self.get(*bit);
                    ptx!(self, "mov.pred {flag}, {bit};");
                }
            }
            Op::Probe { place, addr } if self.position.is_some() && self.may_be_slow(*place) => {
                let addr = self.get(*addr);
                self.probe_or_leave(*place, &addr, |_| ());
            }
            Op::Probe { place, addr } => {
                assert!(!self.may_be_slow(*place), "such places are made in the outermost block");
                let addr = self.get(*addr);
                self.probe(*place, &addr);
            }
            Op::Load { order, place, index } => self.load(*order, *place, *index, &d),
            Op::Store { order, place, index, value } => {
                let value = self.get(*value);
                self.store(*order, *place, *index, &value);
            }
            Op::Rmw { op, place, value } => {
                let value = self.get(*value);
                self.rmw(*op, *place, &d, &value);
            }
            Op::Cas { place, expected, new } => {
                let (expected, new) = (self.get(*expected), self.get(*new));
                self.cas(*place, &d, &expected, &new);
            }
            Op::Cas128 { place, expected, new } => {
                let expected = expected.map(|v| self.get(v));
                let new = new.map(|v| self.get(v));
                let old = [self.result(stmt.results[0]), self.result(stmt.results[1])];
                self.cas128(*place, &old, &expected, &new);
            }
            Op::Fence => self.fence(),
            Op::Exit { cond, .. } if self.position.is_some() => {
                let (cond, label) = (self.get(*cond), self.leave());
                ptx!(self, "@{cond} bra {label};");
            }
            Op::Exit { exit, cond, detail } => {
                let (cond, detail, skip) = (self.get(*cond), self.get(*detail), self.label());
                ptx!(self, "@!{cond} bra {skip};");
                self.stop(*exit, &detail);
                let _ = writeln!(self.out, "{skip}:");
            }
            Op::If { cond, then, otherwise } => {
                let cond = self.get(*cond);
                self.choose(&cond, then, otherwise, &stmt.results);
            }
        }
    }

    fn choose(&mut self, cond: &str, then: &Block, otherwise: &Block, results: &[Value]) {
        let (other, end) = (self.label(), self.label());
        ptx!(self, "@!{cond} bra {other};");
        self.arm(then, results);
        ptx!(self, "bra {end};");
        let _ = writeln!(self.out, "{other}:");
        self.arm(otherwise, results);
        let _ = writeln!(self.out, "{end}:");
    }

    fn arm(&mut self, arm: &Block, results: &[Value]) {
        self.stmts(&arm.stmts);
        for (result, v) in results.iter().zip(&arm.yields) {
            let (d, ty) = (self.result(*result), self.ty(*v));
            let v = self.get(*v);
            ptx!(self, "mov.{} {d}, {v};", move_type(ty));
        }
    }

    // Control.

    /// Goes where the routine says. Only computed addresses can be anywhere: others are in the record, and near
    /// enough for 32 bits.
    fn end(&mut self) {
        match self.routine.end {
            Terminator::Next => ptx!(self, "bra NEXT;"),
            Terminator::Jump { .. } => self.branch(None),
            Terminator::Branch { cond, .. } => self.branch(Some(cond)),
            Terminator::Indirect { target, .. } => {
                let target = self.get(target);
                ptx!(self, "mov.b64 %target, {target};");
                ptx!(self, "bra BRANCH;");
            }
            Terminator::Stop { exit, detail } => {
                let detail = self.get(detail);
                self.stop(exit, &detail);
            }
        }
    }

    /// Continues at the address in the record, if a condition holds.
    fn branch(&mut self, cond: Option<Value>) {
        let (to, distance) = (self.temp_r(), self.temp_r());
        ptx!(self, "mad.lo.u32 {to}, %w2, 4, %bias;");
        if let Some(cond) = cond {
            let cond = self.get(cond);
            ptx!(self, "selp.b32 {to}, {to}, %at, {cond};");
        }
        ptx!(self, "sub.u32 {distance}, {to}, %at;");
        ptx!(self, "add.u32 %limit, %limit, {distance};");
        ptx!(self, "mov.b32 %at, {to};");
        ptx!(self, "bra BRANCHED;");
    }

    fn stop(&mut self, exit: Exit, detail: &str) {
        ptx!(self, "mov.b64 %detail, {detail};");
        ptx!(self, "mov.b32 %stop, {};", stop::exit(exit.reason));
        ptx!(self, "bra {};", if exit.completes { "STOP_HERE" } else { "STOP" });
    }

    // Inputs and state.

    fn param(&mut self, d: &str, ty: Type, index: u8) {
        if index == WIDE_PARAM {
            match ty {
                Type::U64 => ptx!(self, "mov.b64 {d}, {{%w2, %w3}};"),
                _ => ptx!(self, "mov.b32 {d}, %w2;"),
            }
            return;
        }
        let (word, shift) = small_param_position(index);
        match ty {
            Type::Bool => {
                let t = self.temp_r();
                ptx!(self, "and.b32 {t}, %w{word}, 0x{:x};", 1u32 << shift);
                ptx!(self, "setp.ne.u32 {d}, {t}, 0;");
            }
            Type::U64 => {
                let t = self.temp_r();
                ptx!(self, "bfe.u32 {t}, %w{word}, {shift}, 8;");
                ptx!(self, "cvt.u64.u32 {d}, {t};");
            }
            _ => ptx!(self, "bfe.u32 {d}, %w{word}, {shift}, 8;"),
        }
    }

    /// The address of a register slot, for a load or store.
    fn slot(&mut self, file: File, index: Value) -> String {
        match (file, self.routine.constant(index)) {
            (V, Some(slot)) => format!("[vregs+{}]", 8 * slot),
            (_, Some(slot)) => format!("[regs+{}]", 8 * slot),
            (V, None) => {
                // A shift, unlike a product, shows the assembler that registers start at multiples of 16, so that it
                // makes one access of two.
                let (index, t) = (self.get(index), self.temp_r());
                ptx!(self, "shl.b32 {t}, {index}, 3;");
                ptx!(self, "add.u32 {t}, {t}, %v_base;");
                format!("[{t}]")
            }
            (_, None) => {
                let (index, t) = (self.get(index), self.temp_r());
                ptx!(self, "mad.lo.u32 {t}, {index}, 8, %x_base;");
                format!("[{t}]")
            }
        }
    }

    fn read_var(&mut self, var: Var, d: &str) {
        if var.id == PC.id {
            let (low, t) = (self.temp_r(), self.temp_d());
            ptx!(self, "sub.u32 {low}, %at, %records_low;");
            ptx!(self, "shr.s32 {low}, {low}, 2;");
            ptx!(self, "cvt.s64.s32 {t}, {low};");
            ptx!(self, "add.u64 {d}, {t}, %code_start;");
            ptx!(self, "sub.u64 {d}, {d}, 4;");
        } else if !self.read_fp(var, d) {
            let ty = move_type(var.ty);
            ptx!(self, "ld.global.{ty} {d}, [%state+{}];", var_offset(var));
        }
    }

    fn write_var(&mut self, var: Var, value: &str) {
        if !self.write_fp(var, value) {
            let ty = move_type(var.ty);
            ptx!(self, "st.global.{ty} [%state+{}], {value};", var_offset(var));
        }
    }

    // Pure operations.

    fn unary(&mut self, op: UnOp, ty: Type, d: &str, a: &str) {
        let bits = ty.bits();
        match op {
            UnOp::Not if ty == Type::Bool => ptx!(self, "not.pred {d}, {a};"),
            UnOp::Not => ptx!(self, "not.b{bits} {d}, {a};"),
            UnOp::Neg => ptx!(self, "neg.s{bits} {d}, {a};"),
            UnOp::Clz if ty == Type::U64 => {
                let t = self.temp_r();
                ptx!(self, "clz.b64 {t}, {a};");
                ptx!(self, "cvt.u64.u32 {d}, {t};");
            }
            UnOp::Clz => ptx!(self, "clz.b32 {d}, {a};"),
            UnOp::Rbit => ptx!(self, "brev.b{bits} {d}, {a};"),
            UnOp::Bswap if ty == Type::U64 => {
                let (lo, hi) = (self.temp_r(), self.temp_r());
                ptx!(self, "mov.b64 {{{lo}, {hi}}}, {a};");
                ptx!(self, "prmt.b32 {lo}, {lo}, 0, 0x0123;");
                ptx!(self, "prmt.b32 {hi}, {hi}, 0, 0x0123;");
                ptx!(self, "mov.b64 {d}, {{{hi}, {lo}}};");
            }
            UnOp::Bswap => ptx!(self, "prmt.b32 {d}, {a}, 0, 0x0123;"),
        }
    }

    fn binary(&mut self, op: BinOp, ty: Type, d: &str, a: &str, b: &str) {
        let bits = ty.bits();
        let logic = if ty == Type::Bool { "pred".into() } else { format!("b{bits}") };
        match op {
            BinOp::Add => ptx!(self, "add.u{bits} {d}, {a}, {b};"),
            BinOp::Sub => ptx!(self, "sub.u{bits} {d}, {a}, {b};"),
            BinOp::Mul => ptx!(self, "mul.lo.u{bits} {d}, {a}, {b};"),
            BinOp::UMulH => ptx!(self, "mul.hi.u{bits} {d}, {a}, {b};"),
            BinOp::SMulH => ptx!(self, "mul.hi.s{bits} {d}, {a}, {b};"),
            BinOp::UDiv => ptx!(self, "div.u{bits} {d}, {a}, {b};"),
            BinOp::SDiv => ptx!(self, "div.s{bits} {d}, {a}, {b};"),
            BinOp::And => ptx!(self, "and.{logic} {d}, {a}, {b};"),
            BinOp::Or => ptx!(self, "or.{logic} {d}, {a}, {b};"),
            BinOp::Xor => ptx!(self, "xor.{logic} {d}, {a}, {b};"),
            BinOp::Shl => ptx!(self, "shl.b{bits} {d}, {a}, {b};"),
            BinOp::Shr => ptx!(self, "shr.u{bits} {d}, {a}, {b};"),
            BinOp::Sar => ptx!(self, "shr.s{bits} {d}, {a}, {b};"),
            BinOp::Rotr => ptx!(self, "shf.r.wrap.b{bits} {d}, {a}, {a}, {b};"),
        }
    }

    /// A temporary for an integer of that type.
    pub(crate) fn temp(&mut self, ty: Type) -> String {
        if ty == Type::U64 { self.temp_d() } else { self.temp_r() }
    }

    fn compare(&mut self, op: CmpOp, ty: Type, d: &str, a: &str, b: &str) {
        let bits = ty.bits();
        match (op, ty) {
            (CmpOp::Ne, Type::Bool) => ptx!(self, "xor.pred {d}, {a}, {b};"),
            (_, Type::Bool) => {
                ptx!(self, "xor.pred {d}, {a}, {b};");
                ptx!(self, "not.pred {d}, {d};");
            }
            (CmpOp::Eq, _) => ptx!(self, "setp.eq.u{bits} {d}, {a}, {b};"),
            (CmpOp::Ne, _) => ptx!(self, "setp.ne.u{bits} {d}, {a}, {b};"),
            (CmpOp::Ult, _) => ptx!(self, "setp.lt.u{bits} {d}, {a}, {b};"),
            (CmpOp::Ule, _) => ptx!(self, "setp.le.u{bits} {d}, {a}, {b};"),
            (CmpOp::Slt, _) => ptx!(self, "setp.lt.s{bits} {d}, {a}, {b};"),
            (CmpOp::Sle, _) => ptx!(self, "setp.le.s{bits} {d}, {a}, {b};"),
            (CmpOp::SAddO | CmpOp::SSubO, _) => unreachable!("not legal"),
        }
    }

    fn select(&mut self, ty: Type, d: &str, c: &str, a: &str, b: &str) {
        if ty != Type::Bool {
            let bits = ty.bits().max(32);
            ptx!(self, "selp.b{bits} {d}, {a}, {b}, {c};");
            return;
        }
        let (x, y) = (self.temp_p(), self.temp_p());
        ptx!(self, "and.pred {x}, {c}, {a};");
        ptx!(self, "not.pred {y}, {c};");
        ptx!(self, "and.pred {y}, {y}, {b};");
        ptx!(self, "or.pred {d}, {x}, {y};");
    }

    fn convert(&mut self, op: ConvOp, from: Type, to: Type, d: &str, a: &str) {
        let wide = to == Type::U64;
        match (op, from) {
            (ConvOp::Zext, Type::Bool) if wide => ptx!(self, "selp.b64 {d}, 1, 0, {a};"),
            (ConvOp::Zext, Type::Bool) => ptx!(self, "selp.b32 {d}, 1, 0, {a};"),
            (ConvOp::Zext, _) if wide => ptx!(self, "cvt.u64.u32 {d}, {a};"),
            (ConvOp::Zext, _) => ptx!(self, "mov.b32 {d}, {a};"),
            (ConvOp::Sext, Type::U32) => ptx!(self, "cvt.s64.s32 {d}, {a};"),
            (ConvOp::Sext, _) => {
                let narrow = if wide { self.temp_r() } else { d.to_string() };
                ptx!(self, "bfe.s32 {narrow}, {a}, 0, {};", from.bits());
                match to {
                    Type::U64 => ptx!(self, "cvt.s64.s32 {d}, {narrow};"),
                    Type::U16 => ptx!(self, "and.b32 {d}, {d}, 0xffff;"),
                    _ => {}
                }
            }
            (ConvOp::Trunc, _) => {
                let low = if from == Type::U64 { self.temp_r() } else { a.to_string() };
                if from == Type::U64 {
                    ptx!(self, "cvt.u32.u64 {low}, {a};");
                }
                match to {
                    Type::U8 | Type::U16 => ptx!(self, "and.b32 {d}, {low}, 0x{:x};", to.mask()),
                    _ => ptx!(self, "mov.b32 {d}, {low};"),
                }
            }
        }
    }

    /// Code to be placed after the handler, at a label of its own.
    pub(crate) fn cold(&mut self, write: impl FnOnce(&mut Self)) -> String {
        let label = self.label();
        let hot = std::mem::take(self.out);
        let _ = writeln!(self.out, "{label}:");
        write(self);
        let text = std::mem::replace(self.out, hot);
        self.cold.push_str(&text);
        label
    }
}

/// The suffix of moves, loads and stores of a type in its register.
pub(crate) fn move_type(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "pred",
        Type::U8 | Type::U16 | Type::U32 => "b32",
        Type::U64 => "b64",
        Type::U128 => unreachable!("{NO_WHOLES}"),
    }
}

/// The lane's registers start its state.
const _: () = assert!(std::mem::offset_of!(CpuState, x) == 0);
