//! The few pieces of host code that every translation needs, and the settings they are compiled with.

use std::mem::offset_of;

use cranelift::codegen::isa::CallConv;
use cranelift::codegen::settings;
use cranelift::prelude::*;
use kvrm_engine::{Config, EngineError, MemoryModel};

use crate::arena::Arena;
use crate::code_memory::CodeMemory;
use crate::compiler::{Compiler, Compilers};
use crate::context::{ExitKind, LaneContext};
use crate::functions::Functions;
use crate::slow;
use crate::translate::{HostTarget, context_flags, function_signature, stub_signature};

/// Calls translated code: lane context, fuel, guest address, code.
pub(crate) type Enter = unsafe extern "C" fn(*mut LaneContext, u64, u64, *const u8);

/// Compiled once per machine; outlives every translation.
pub(crate) struct Stubs {
    pub(crate) target: HostTarget,
    pub(crate) enter: Enter,
    /// Slow path of probes, for the lane context.
    pub(crate) probe: *const u8,
    /// 128-bit compare and swap, for the lane context.
    pub(crate) cas: *const u8,
    /// What a guest address without a translation leads to.
    pub(crate) untranslated: *const u8,
    /// What translations call.
    pub(crate) functions: Functions,
    /// For translations.
    pub(crate) compilers: Compilers,
    /// For translations, too.
    pub(crate) memory: CodeMemory,
    /// How often code that lanes have in common is reached before it is translated.
    pub(crate) translate_after: u32,
    /// Keeps the code above.
    _arena: Arena,
}

// SAFETY: the code and the settings are not changed after they are built.
unsafe impl Send for Stubs {}
// SAFETY: as above; compilers and memory can be shared.
unsafe impl Sync for Stubs {}

fn host_flags(model: MemoryModel) -> settings::Flags {
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
    let alone = model == MemoryModel::Private;
    set("enable_alias_analysis", if alone { "true" } else { "false" });
    settings::Flags::new(flags)
}

impl Stubs {
    pub(crate) fn new(config: &Config) -> Result<Stubs, EngineError> {
        let &Config { memory_size, model, read_only, .. } = config;
        let unsupported = |e: &dyn std::fmt::Display| EngineError::Unsupported(e.to_string());
        let isa = cranelift_native::builder().map_err(|e| unsupported(&e))?;
        let isa = isa.finish(host_flags(model)).map_err(|e| unsupported(&e))?;
        let flags = isa.isa_flags();
        let has = |name| flags.iter().any(|flag| flag.name == name && flag.as_bool() == Some(true));
        let has_fma = !cfg!(target_arch = "x86_64") || has("has_fma");
        let has_pshufb = has("has_ssse3");
        let shared = model == MemoryModel::Shared;
        let target = HostTarget { isa, memory_size, shared, read_only, has_fma, has_pshufb };
        let compilers = Compilers::default();
        let mut arena = Arena::default();
        let mut define = |signature, fill: &dyn Fn(&mut FunctionBuilder<'_>, &[Value])| {
            compilers.with(|compiler| {
                let code = define(compiler, &target, signature, fill);
                let code = code.map_err(|e| unsupported(&e))?;
                arena.add(code).map_err(|e| unsupported(&e))
            })
        };
        let probe = define(stub_signature(), &|b, args| {
            call_host(b, slow::probe as *const u8, args);
        })?;
        let cas = define(stub_signature(), &|b, args| {
            call_host(b, slow::cas128 as *const u8, args);
        })?;
        let untranslated = define(function_signature(), &untranslated)?;
        let enter = define(enter_signature(), &enter)?;
        // SAFETY: `enter_signature` is the signature of `Enter`.
        let enter = unsafe { std::mem::transmute::<*const u8, Enter>(enter) };
        Ok(Stubs {
            target,
            enter,
            probe,
            cas,
            untranslated,
            functions: Functions::default(),
            compilers,
            memory: CodeMemory::new(config.code_memory),
            translate_after: config.translate_after,
            _arena: arena,
        })
    }
}

fn host_signature(params: usize) -> Signature {
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

fn enter_signature() -> Signature {
    host_signature(4)
}

/// Compiles one function of a single block; `fill` gets its arguments.
fn define<'c>(
    compiler: &'c mut Compiler,
    target: &HostTarget,
    signature: Signature,
    fill: &dyn Fn(&mut FunctionBuilder<'_>, &[Value]),
) -> Result<&'c [u8], String> {
    compiler.compile(target, signature, |function, scratch| {
        let mut b = FunctionBuilder::new(function, scratch);
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        b.seal_block(block);
        let args = b.block_params(block).to_vec();
        fill(&mut b, &args);
        b.ins().return_(&[]);
        b.finalize(target.isa.frontend_config());
    })
}

fn call_host(b: &mut FunctionBuilder<'_>, function: *const u8, args: &[Value]) {
    let signature = b.import_signature(host_signature(args.len()));
    let function = b.ins().iconst(types::I64, function as i64);
    b.ins().call_indirect(signature, function, args);
}

/// Returns to the engine, which will translate.
fn untranslated(b: &mut FunctionBuilder<'_>, args: &[Value]) {
    let &[context, fuel, pc] = args else { unreachable!("the signature has three parameters") };
    let kind = b.ins().iconst(types::I32, ExitKind::Chain as i64);
    for (value, offset) in [
        (pc, offset_of!(LaneContext, state.pc)),
        (fuel, offset_of!(LaneContext, fuel)),
        (kind, offset_of!(LaneContext, exit)),
    ] {
        b.ins().store(context_flags(), value, context, offset as i32);
    }
}

/// Calls translated code, whose calling convention Rust does not have.
fn enter(b: &mut FunctionBuilder<'_>, args: &[Value]) {
    let signature = b.import_signature(function_signature());
    b.ins().call_indirect(signature, args[3], &args[..3]);
}
