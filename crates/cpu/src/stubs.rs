//! The few pieces of host code that every translation needs, and the settings they are compiled with.

use cranelift::codegen::isa::CallConv;
use cranelift::codegen::settings;
use cranelift::prelude::*;
use kvrm_engine::{Config, EngineError, MemoryModel};

use crate::arena::Arena;
use crate::code_memory::CodeMemory;
use crate::compiler::{Compiler, Compilers};
use crate::context::LaneContext;
use crate::functions::Functions;
use crate::interpreter::Interpreter;
use crate::record::Record;
use crate::slow;
use crate::translate::{HostTarget, function_signature, stub_signature};

/// Calls the code of a record: lane context, record, end of the fuel, guest memory, code.
pub(crate) type Enter =
    unsafe extern "C" fn(*mut LaneContext, *const Record, u64, *mut u8, *const u8);

/// Compiled once per machine; outlives every translation.
pub(crate) struct Stubs {
    pub(crate) target: HostTarget,
    pub(crate) enter: Enter,
    /// Slow path of probes, for the lane context.
    pub(crate) probe: *const u8,
    /// 128-bit compare and swap, for the lane context.
    pub(crate) cas: *const u8,
    /// What computes flags, for the lane context.
    pub(crate) settle: *const u8,
    /// What runs code that is not translated.
    pub(crate) interpreter: &'static Interpreter,
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

fn host_flags(shared: bool) -> settings::Flags {
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
    set("enable_alias_analysis", if shared { "false" } else { "true" });
    settings::Flags::new(flags)
}

fn unsupported(error: &dyn std::fmt::Display) -> EngineError {
    EngineError::Unsupported(error.to_string())
}

impl HostTarget {
    pub(crate) fn new(
        memory_size: u64,
        shared: bool,
        read_only: bool,
    ) -> Result<HostTarget, EngineError> {
        let isa = cranelift_native::builder().map_err(|e| unsupported(&e))?;
        let isa = isa.finish(host_flags(shared)).map_err(|e| unsupported(&e))?;
        let flags = isa.isa_flags();
        let has = |name| flags.iter().any(|flag| flag.name == name && flag.as_bool() == Some(true));
        let has_fma = !cfg!(target_arch = "x86_64") || has("has_fma");
        let has_pshufb = has("has_ssse3");
        Ok(HostTarget { isa, memory_size, shared, read_only, has_fma, has_pshufb })
    }
}

impl Stubs {
    pub(crate) fn new(config: &Config) -> Result<Stubs, EngineError> {
        let &Config { memory_size, model, read_only, .. } = config;
        let shared = model == MemoryModel::Shared;
        let target = HostTarget::new(memory_size, shared, read_only)?;
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
        let settle = define(stub_signature(), &|b, args| {
            call_host(b, slow::settle as *const u8, args);
        })?;
        let enter = define(enter_signature(), &enter)?;
        // SAFETY: `enter_signature` is the signature of `Enter`.
        let enter = unsafe { std::mem::transmute::<*const u8, Enter>(enter) };
        Ok(Stubs {
            target,
            enter,
            probe,
            cas,
            settle,
            interpreter: Interpreter::get(shared)?,
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
    host_signature(5)
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

/// Calls translated code, whose calling convention Rust does not have.
fn enter(b: &mut FunctionBuilder<'_>, args: &[Value]) {
    let signature = b.import_signature(function_signature());
    b.ins().call_indirect(signature, args[4], &args[..4]);
}
