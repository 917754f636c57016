//! The code generator, and the memory it works in, which is kept for the next function.

use std::sync::{Mutex, PoisonError};

use cranelift::codegen::Context;
use cranelift::codegen::control::ControlPlane;
use cranelift::codegen::ir::Function;
use cranelift::prelude::{FunctionBuilderContext, Signature};

use crate::translate::HostTarget;

/// Compiles one function after the other.
pub(crate) struct Compiler {
    context: Context,
    scratch: FunctionBuilderContext,
}

impl Compiler {
    fn new() -> Compiler {
        Compiler { context: Context::new(), scratch: FunctionBuilderContext::new() }
    }

    /// Compiles what `fill` builds to host code, which can be run from any address.
    pub(crate) fn compile(
        &mut self,
        target: &HostTarget,
        signature: Signature,
        fill: impl FnOnce(&mut Function, &mut FunctionBuilderContext),
    ) -> Result<&[u8], String> {
        self.context.clear();
        self.context.func.signature = signature;
        fill(&mut self.context.func, &mut self.scratch);
        let compiled = self.context.compile(&*target.isa, &mut ControlPlane::default());
        let compiled = compiled.map_err(|error| error.inner.to_string())?;
        // Host functions are called through constants, and no operation needs a library.
        match compiled.buffer.relocs() {
            [] => Ok(compiled.code_buffer()),
            [first, ..] => Err(format!("the code generator refers to {:?}", first.target)),
        }
    }
}

/// As many compilers as are used at a time.
#[derive(Default)]
pub(crate) struct Compilers(Mutex<Vec<Compiler>>);

impl Compilers {
    /// Runs `f` with a compiler that nobody else uses meanwhile.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Compiler) -> T) -> T {
        let idle = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut compiler = idle().pop().unwrap_or_else(Compiler::new);
        let result = f(&mut compiler);
        idle().push(compiler);
        result
    }
}
