//! The interpreter: the handlers that were needed so far, for all machines of the process.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use cranelift::codegen::ir::Function;
use cranelift::prelude::FunctionBuilderContext;
use kvrm_engine::EngineError;
use kvrm_engine::kernel::{FIRST_HANDLER, HANDLER_MASK, Handlers, NOT_DECODED, Record, UNDEFINED};
use kvrm_ir::Terminator;

use crate::arena::Arena;
use crate::compiler::{Compiler, Compilers};
use crate::context::{EXIT_KINDS, ExitKind, Tables};
use crate::functions::Functions;
use crate::handlers::{
    handler_routine, translate_detour, translate_exit, translate_handler, translate_next_sheet,
};
use crate::translate::{HostTarget, function_signature};

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// To the next one.
    Next,
    /// To a known address, which is the wide parameter, or to the next one.
    Direct,
    /// Elsewhere.
    Other,
}

/// An instruction as interpreted code wants it.
pub(crate) struct Decoded {
    pub(crate) parameters: Record,
    pub(crate) ending: Ending,
}

/// Handlers and what else records run.
pub(crate) struct Interpreter {
    /// For lane contexts.
    pub(crate) tables: Tables,
    /// What the last record of a sheet runs.
    pub(crate) next_sheet: *const u8,
    /// What records run where `[checks][counts]`.
    detours: [[*const u8; 2]; 2],
    /// Code by the number of a handler; `tables` point there.
    codes: &'static [AtomicPtr<u8>],
    made: Mutex<Made>,
    /// What handlers call.
    functions: Functions,
    compilers: Compilers,
    target: HostTarget,
}

struct Made {
    handlers: Handlers,
    /// By number, from [`FIRST_HANDLER`] on.
    endings: Vec<Ending>,
    code: Code,
}

// SAFETY: the pointers are to code that is never freed.
unsafe impl Send for Interpreter {}
// SAFETY: as above; what changes is behind a lock, or atomic.
unsafe impl Sync for Interpreter {}

impl Interpreter {
    /// That for memory which lanes share, or for memory of their own.
    pub(crate) fn get(shared: bool) -> Result<&'static Interpreter, EngineError> {
        static ALL: [Mutex<Option<&Interpreter>>; 2] = [const { Mutex::new(None) }; 2];
        let mut made = ALL[usize::from(shared)].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interpreter) = *made {
            return Ok(interpreter);
        }
        let interpreter = Box::leak(Box::new(Interpreter::new(shared)?));
        *made = Some(interpreter);
        Ok(interpreter)
    }

    fn new(shared: bool) -> Result<Interpreter, EngineError> {
        let target = HostTarget::new(0, shared, false)?;
        let mut code = Code { compiler: Compiler::new(), arena: Arena::default() };
        let mut exits = [std::ptr::null(); EXIT_KINDS.len()];
        for kind in EXIT_KINDS {
            exits[kind as usize] = code.add(&target, |function, scratch| {
                translate_exit(function, scratch, &target, kind);
            })?;
        }
        let next_sheet = code.add(&target, |function, scratch| {
            translate_next_sheet(function, scratch, &target);
        })?;
        let mut detours = [[std::ptr::null(); 2]; 2];
        for (checks, counts) in [(false, true), (true, false), (true, true)] {
            let detour = code.add(&target, |function, scratch| {
                translate_detour(function, scratch, &target, checks, counts);
            })?;
            detours[usize::from(checks)][usize::from(counts)] = detour;
        }
        // SAFETY: all bits zero are a null pointer. What nobody needs takes no memory.
        let codes = unsafe { Box::new_zeroed_slice(HANDLER_MASK as usize + 1).assume_init() };
        let codes: &'static [AtomicPtr<u8>] = Box::leak(codes);
        for (number, kind) in [(NOT_DECODED, ExitKind::Chain), (UNDEFINED, ExitKind::Undefined)] {
            codes[number as usize].store(exits[kind as usize].cast_mut(), Ordering::Relaxed);
        }
        let tables = Tables { exits, handlers: codes.as_ptr() };
        let made = Made { handlers: Handlers::new(), endings: Vec::new(), code };
        Ok(Interpreter {
            tables,
            next_sheet,
            detours,
            codes,
            made: Mutex::new(made),
            functions: Functions::default(),
            compilers: Compilers::default(),
            target,
        })
    }

    /// What a record runs that is not decoded.
    pub(crate) fn empty(&self) -> *const u8 {
        self.exit(ExitKind::Chain)
    }

    /// Code that leaves.
    pub(crate) fn exit(&self, kind: ExitKind) -> *const u8 {
        self.tables.exits[kind as usize]
    }

    /// The handler of a record.
    pub(crate) fn handler(&self, parameters: Record) -> *const u8 {
        self.codes[parameters.handler() as usize].load(Ordering::Acquire)
    }

    /// What a record runs that is interpreted: its handler, or something before it.
    pub(crate) fn code(&self, parameters: Record, checks: bool, counts: bool) -> *const u8 {
        match checks || counts {
            true => self.detours[usize::from(checks)][usize::from(counts)],
            false => self.handler(parameters),
        }
    }

    /// Decodes a word, and compiles its handler if nobody has needed that before.
    pub(crate) fn decode(&self, pc: u64, word: u32) -> Result<Decoded, EngineError> {
        let made = &mut *self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let parameters = made.handlers.record(pc, word);
        if parameters.handler() == UNDEFINED {
            return Ok(Decoded { parameters, ending: Ending::Other });
        }
        let index = (parameters.handler() - FIRST_HANDLER) as usize;
        for new in made.endings.len()..made.handlers.len() {
            let ending = self.compile(new, made)?;
            made.endings.push(ending);
        }
        Ok(Decoded { parameters, ending: made.endings[index] })
    }

    fn compile(&self, index: usize, made: &mut Made) -> Result<Ending, EngineError> {
        let handler = made.handlers.iter().nth(index).expect("it was made");
        let routine = handler_routine(&handler.routine);
        let (target, end) = (&self.target, routine.end);
        let functions = self.functions.of_routine(&routine, target, &self.compilers);
        let functions = functions.map_err(EngineError::Unsupported)?;
        let code = made.code.add(target, |function, scratch| {
            translate_handler(function, scratch, target, routine, &functions);
        })?;
        self.codes[FIRST_HANDLER as usize + index].store(code.cast_mut(), Ordering::Release);
        Ok(match end {
            Terminator::Next => Ending::Next,
            Terminator::Jump { .. } | Terminator::Branch { .. } => Ending::Direct,
            Terminator::Indirect { .. } | Terminator::Stop { .. } => Ending::Other,
        })
    }
}

/// Host code that is never given back.
struct Code {
    compiler: Compiler,
    arena: Arena,
}

impl Code {
    fn add(
        &mut self,
        target: &HostTarget,
        fill: impl FnOnce(&mut Function, &mut FunctionBuilderContext),
    ) -> Result<*const u8, EngineError> {
        let code = self.compiler.compile(target, function_signature(), fill);
        let code = code.map_err(EngineError::Unsupported)?;
        self.arena.add(code).map_err(|error| EngineError::Unsupported(error.to_string()))
    }
}
