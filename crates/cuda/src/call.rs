//! Functions that handlers call: a kernel has each of them once, as a `.func`.
//!
//! Their parameters and results are integers. Results are returned together, as one array, because a `.func` with several
//! results is not one that the assembler's calling convention has. Lanes of a warp need not be together where a handler
//! calls a function, so no call is marked as uniform.

use std::collections::HashSet;
use std::fmt::Write;

use kvrm_ir::{Block, Function, Op, Routine, Type, Value};

use crate::emit::{Emitter, LACKS, Setting, move_type, ptx};

/// Bytes that a result has in the array.
const RESULT: usize = 8;

/// Writes the functions that routines call, each after those that it calls itself.
pub(crate) fn functions(out: &mut String, setting: &Setting, routines: &[Routine]) {
    let mut written = HashSet::new();
    routines.iter().for_each(|routine| callees(out, setting, routine, &mut written));
}

fn callees(
    out: &mut String,
    setting: &Setting,
    routine: &Routine,
    written: &mut HashSet<&'static str>,
) {
    routine.body.for_each_stmt(&mut |stmt| {
        let Op::Call(function, _) = stmt.op else { return };
        if written.insert(function.name) {
            let routine = function.routine(LACKS);
            callees(out, setting, &routine, written);
            write_function(out, setting, function, &routine);
        }
    });
}

fn write_function(out: &mut String, setting: &Setting, function: &Function, routine: &Routine) {
    let declared = |(index, ty): (usize, &Type)| format!(".param .{} arg{index}", move_type(*ty));
    let params: Vec<String> = function.params.iter().enumerate().map(declared).collect();
    let body = Emitter::block(setting, None, routine, |e| e.function(&routine.body));
    let _ = write!(
        out,
        ".func (.param .align {RESULT} .b8 results[{}]) {}({})\n{{\n{body}}}\n",
        RESULT * function.results.len(),
        function.name,
        params.join(", ")
    );
}

impl Emitter<'_> {
    fn function(&mut self, body: &Block) {
        self.stmts(&body.stmts);
        for (index, v) in body.yields.iter().enumerate() {
            let (ty, v) = (move_type(self.ty(*v)), self.get(*v));
            ptx!(self, "st.param.{ty} [results+{}], {v};", RESULT * index);
        }
        ptx!(self, "ret;");
    }

    /// Reads a parameter of the function.
    pub(crate) fn argument(&mut self, d: &str, ty: Type, index: u8) {
        ptx!(self, "ld.param.{} {d}, [arg{index}];", move_type(ty));
    }

    /// Calls a function, once for each set of arguments.
    pub(crate) fn calls(&mut self, function: &Function, args: &[Value], results: &[Value]) {
        let args = args.chunks(function.params.len());
        for (args, results) in args.zip(results.chunks(function.results.len())) {
            self.call(function, args, results);
        }
    }

    /// What is passed and returned has names that differ from those of a caller that is a function.
    fn call(&mut self, function: &Function, args: &[Value], results: &[Value]) {
        ptx!(self, "{{");
        ptx!(self, ".param .align {RESULT} .b8 returned[{}];", RESULT * results.len());
        for (index, v) in args.iter().enumerate() {
            let (ty, v) = (move_type(self.ty(*v)), self.get(*v));
            ptx!(self, ".param .{ty} passed{index};");
            ptx!(self, "st.param.{ty} [passed{index}], {v};");
        }
        let names: Vec<String> = (0..args.len()).map(|index| format!("passed{index}")).collect();
        ptx!(self, "call (returned), {}, ({});", function.name, names.join(", "));
        for (index, v) in results.iter().enumerate() {
            let (d, ty) = (self.result(*v), move_type(self.ty(*v)));
            ptx!(self, "ld.param.{ty} {d}, [returned+{}];", RESULT * index);
        }
        ptx!(self, "}}");
    }
}
