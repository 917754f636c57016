//! The code generator, and the memory it works in, which is kept for the next function.

use std::sync::{Mutex, PoisonError};

use cranelift::codegen::binemit::Reloc;
use cranelift::codegen::control::ControlPlane;
use cranelift::codegen::ir::{
    ExtFuncData, ExternalName, FuncRef, Function, SigRef, UserExternalName,
};
use cranelift::codegen::{Context, FinalizedMachReloc, FinalizedRelocTarget};
use cranelift::prelude::{FunctionBuilder, FunctionBuilderContext, Signature};

use crate::translate::HostTarget;

/// Compiles one function after the other.
pub(crate) struct Compiler {
    context: Context,
    scratch: FunctionBuilderContext,
    code: Vec<u8>,
    calls: Vec<Call>,
}

/// A place in code with the address of a function that it calls.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) offset: u32,
    pub(crate) address: usize,
}

/// The name that code calls a function of the host by: its address. An address that is a constant would be kept in
/// registers where calls are rare and code is not.
fn name_of(address: usize) -> UserExternalName {
    let address = address as u64;
    UserExternalName::new((address >> 32) as u32, address as u32)
}

/// A function of the host, to be called.
pub(crate) fn import(b: &mut FunctionBuilder<'_>, address: usize, signature: SigRef) -> FuncRef {
    let name = b.func.declare_imported_user_function(name_of(address));
    let name = ExternalName::user(name);
    b.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
}

impl Compiler {
    pub(crate) fn new() -> Compiler {
        let (context, scratch) = (Context::new(), FunctionBuilderContext::new());
        Compiler { context, scratch, code: Vec::new(), calls: Vec::new() }
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
        compiled.map_err(|error| error.inner.to_string())?;
        let compiled = self.context.compiled_code().expect("it was just compiled");
        self.code.clear();
        self.code.extend_from_slice(compiled.code_buffer());
        self.calls.clear();
        for reloc in compiled.buffer.relocs() {
            let address = self.called(reloc)?;
            let place = reloc.offset as usize;
            self.code[place..place + 8].copy_from_slice(&address.to_le_bytes());
            self.calls.push(Call { offset: reloc.offset, address: address as usize });
        }
        Ok(&self.code)
    }

    /// What the code that was compiled last calls.
    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The address of the function that code refers to; no operation needs a library.
    fn called(&self, reloc: &FinalizedMachReloc) -> Result<u64, String> {
        match (reloc.kind, &reloc.target) {
            (Reloc::Abs8, FinalizedRelocTarget::ExternalName(ExternalName::User(name))) => {
                let name = &self.context.func.params.user_named_funcs()[*name];
                Ok(u64::from(name.namespace) << 32 | u64::from(name.index))
            }
            _ => Err(format!("the code generator refers to {:?}", reloc.target)),
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
