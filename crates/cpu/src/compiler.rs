//! The code generator, and the memory it works in, which is kept for the next function.

use std::sync::{Mutex, PoisonError};

use cranelift::codegen::binemit::Reloc;
use cranelift::codegen::control::ControlPlane;
use cranelift::codegen::ir::{
    ExtFuncData, ExternalName, FuncRef, Function, GlobalValueData, SigRef, UserExternalName, Value,
    types,
};
use cranelift::codegen::{Context, FinalizedMachReloc, FinalizedRelocTarget};
use cranelift::prelude::{FunctionBuilder, FunctionBuilderContext, InstBuilder, Signature};

use crate::translate::HostTarget;

/// Compiles one function after the other.
pub(crate) struct Compiler {
    context: Context,
    scratch: FunctionBuilderContext,
    code: Vec<u8>,
    references: Vec<Reference>,
}

/// What code refers to. A name in code, instead of a constant, can be given another address when the code is kept; and
/// constants would be held in registers where calls are rare and code is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A function of the host, by its address.
    Function(usize),
    /// The record of a guest address.
    Record(u64),
}

/// A place in code for the address of something.
#[derive(Clone, Copy)]
pub(crate) struct Reference {
    pub(crate) offset: u32,
    pub(crate) target: Target,
}

/// Tells names of records from those of functions.
const IS_RECORD: u32 = 1 << 31;

impl Target {
    fn name(self) -> UserExternalName {
        let name = |address: u64| UserExternalName::new((address >> 32) as u32, address as u32);
        match self {
            Target::Function(address) => name(address as u64),
            Target::Record(pc) => {
                let UserExternalName { namespace, index } = name(pc);
                UserExternalName::new(namespace & u32::from(u16::MAX) | IS_RECORD, index)
            }
        }
    }

    fn named(name: &UserExternalName) -> Target {
        let address = u64::from(name.namespace) << 32 | u64::from(name.index);
        match name.namespace & IS_RECORD {
            0 => Target::Function(address as usize),
            // Guest addresses have 48 bits, and are extended by their sign.
            _ => Target::Record(((address << 16) as i64 >> 16) as u64),
        }
    }
}

/// A function of the host, to be called.
pub(crate) fn import(b: &mut FunctionBuilder<'_>, address: usize, signature: SigRef) -> FuncRef {
    let name = b.func.declare_imported_user_function(Target::Function(address).name());
    let name = ExternalName::user(name);
    b.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
}

/// The address of a record.
pub(crate) fn record_at(b: &mut FunctionBuilder<'_>, pc: u64) -> Value {
    let name = b.func.declare_imported_user_function(Target::Record(pc).name());
    let name = ExternalName::user(name);
    let symbol = GlobalValueData::Symbol { name, offset: 0.into(), colocated: false, tls: false };
    let symbol = b.create_global_value(symbol);
    b.ins().symbol_value(types::I64, symbol)
}

/// Fills in an address that code refers to; `None` if the code has no such place.
#[must_use]
pub(crate) fn fill_in(code: &mut [u8], offset: u32, address: u64) -> Option<()> {
    *code.get_mut(offset as usize..)?.first_chunk_mut()? = address.to_le_bytes();
    Some(())
}

impl Compiler {
    pub(crate) fn new() -> Compiler {
        let (context, scratch) = (Context::new(), FunctionBuilderContext::new());
        Compiler { context, scratch, code: Vec::new(), references: Vec::new() }
    }

    /// Compiles what `fill` builds to host code, which can be run from any address once what it refers to is filled in.
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
        self.references.clear();
        for reloc in compiled.buffer.relocs() {
            let target = self.target(reloc)?;
            self.references.push(Reference { offset: reloc.offset, target });
        }
        Ok(&self.code)
    }

    /// What the code that was compiled last refers to.
    pub(crate) fn references(&self) -> &[Reference] {
        &self.references
    }

    /// What code refers to; no operation needs a library.
    fn target(&self, reloc: &FinalizedMachReloc) -> Result<Target, String> {
        match (reloc.kind, &reloc.target) {
            (Reloc::Abs8, FinalizedRelocTarget::ExternalName(ExternalName::User(name))) => {
                Ok(Target::named(&self.context.func.params.user_named_funcs()[*name]))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_from_their_names() {
        let records = [0, 0x1_2345_6780, 0x7fff_ffff_fffc, -4_i64 as u64, -0x0800_0000_i64 as u64];
        let functions = [0x1000, 0x7fff_1234_5678].map(Target::Function);
        for target in records.map(Target::Record).into_iter().chain(functions) {
            assert_eq!(Target::named(&target.name()), target);
        }
    }
}
