//! What every translation needs: settings, and the few pieces of host code between them and the engine.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cranelift::codegen::isa::CallConv;
use cranelift::codegen::{ir, settings};
use cranelift::prelude::*;
use kvrm_engine::cache::KernelCache;
use kvrm_engine::{Config, EngineError, MemoryModel};

use crate::code_memory::CodeMemory;
use crate::compiler::{Compilers, import};
use crate::context::LaneContext;
use crate::interpreter::Interpreter;
use crate::kept::Kept;
use crate::record::Record;
use crate::translate::{HostTarget, MemoryKind, function_signature};

/// Calls the code of a record: lane context, record, end of the fuel, guest memory, code.
pub(crate) type Enter =
    unsafe extern "C" fn(*mut LaneContext, *const Record, u64, *mut u8, *const u8);

/// What all translations of a machine have in common; outlives every one.
pub(crate) struct Stubs {
    pub(crate) target: HostTarget,
    /// What runs code that is not translated, and what translations call.
    pub(crate) interpreter: &'static Interpreter,
    /// For translations.
    pub(crate) compilers: Compilers,
    /// For translations, too.
    pub(crate) memory: CodeMemory,
    /// How often code that lanes have in common is reached before it is translated.
    pub(crate) translate_after: u32,
    kept: Mutex<Kept>,
}

impl Drop for Stubs {
    fn drop(&mut self) {
        self.interpreter.keep();
    }
}

fn host_flags(atomic: bool) -> settings::Flags {
    let mut flags = settings::builder();
    let mut set = |name, value| flags.set(name, value).expect("the setting exists");
    set("opt_level", "speed");
    set("is_pic", "false");
    set("use_colocated_libcalls", "false");
    set("unwind_info", "false");
    set("enable_probestack", "false");
    // Tail calls need them.
    set("preserve_frame_pointers", "true");
    set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" });
    // Redundant loads of memory that other lanes write are not redundant.
    set("enable_alias_analysis", if atomic { "false" } else { "true" });
    settings::Flags::new(flags)
}

fn unsupported(error: &dyn std::fmt::Display) -> EngineError {
    EngineError::Unsupported(error.to_string())
}

impl HostTarget {
    /// For code that all machines with such memory use.
    pub(crate) fn new(kind: MemoryKind) -> Result<HostTarget, EngineError> {
        let isa = cranelift_native::builder().map_err(|e| unsupported(&e))?;
        let isa = isa.finish(host_flags(kind.atomic)).map_err(|e| unsupported(&e))?;
        let flags = isa.isa_flags();
        let has = |name| flags.iter().any(|flag| flag.name == name && flag.as_bool() == Some(true));
        let has_fma = !cfg!(target_arch = "x86_64") || has("has_fma");
        let has_pshufb = has("has_ssse3");
        Ok(HostTarget {
            isa,
            kind,
            memory_size: 0,
            shared: false,
            read_only: false,
            profile: false,
            has_fma,
            has_pshufb,
        })
    }

    /// For a machine.
    fn of(config: &Config) -> Result<HostTarget, EngineError> {
        let &Config { lanes, memory_size, model, read_only, mapped, profile, .. } = config;
        let shared = model == MemoryModel::Shared;
        // One lane has memory for itself.
        let kind = MemoryKind { atomic: shared && lanes > 1, mapped };
        let target = HostTarget::new(kind)?;
        Ok(HostTarget { memory_size, shared, read_only, profile, ..target })
    }
}

impl Stubs {
    pub(crate) fn new(config: &Config, cache: KernelCache) -> Result<Stubs, EngineError> {
        let target = HostTarget::of(config)?;
        let kept = Kept::new(&target, cache);
        Ok(Stubs {
            interpreter: Interpreter::get(target.kind)?,
            target,
            compilers: Compilers::default(),
            memory: CodeMemory::new(config.code_memory),
            translate_after: config.translate_after,
            kept: Mutex::new(kept),
        })
    }

    /// Translations that are on disk, or will be.
    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The signature of code that Rust calls.
pub(crate) fn host_signature(params: usize) -> Signature {
    let host = if cfg!(windows) { CallConv::WindowsFastcall } else { CallConv::SystemV };
    let host = if cfg!(all(target_vendor = "apple", target_arch = "aarch64")) {
        CallConv::AppleAarch64
    } else {
        host
    };
    let mut signature = Signature::new(host);
    signature.params.extend(vec![AbiParam::new(types::I64); params]);
    signature
}

/// Fills `function` with code that calls that of a record, whose calling convention Rust does not have: [`Enter`].
pub(crate) fn fill_enter(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
) {
    fill(function, scratch, target, |b, args| {
        let signature = b.import_signature(function_signature());
        b.ins().call_indirect(signature, args[4], &args[..4]);
    });
}

/// Fills `function` with a call of a function of the engine, which gets the same arguments.
pub(crate) fn fill_stub(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
    called: usize,
) {
    fill(function, scratch, target, |b, args| {
        let signature = b.import_signature(host_signature(args.len()));
        let called = import(b, called, signature);
        b.ins().call(called, args);
    });
}

/// A function of one block; `body` gets its arguments.
fn fill(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
    body: impl FnOnce(&mut FunctionBuilder<'_>, &[Value]),
) {
    let mut b = FunctionBuilder::new(function, scratch);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    b.seal_block(block);
    let args = b.block_params(block).to_vec();
    body(&mut b, &args);
    b.ins().return_(&[]);
    b.finalize(target.isa.frontend_config());
}
