//! The interpreter: the handlers that were needed so far, for all machines of the process.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cranelift::prelude::Signature;
use kvrm_a64::Instruction;
use kvrm_engine::EngineError;
use kvrm_engine::cache::KernelCache;
use kvrm_engine::kernel::{FIRST_HANDLER, HANDLER_MASK, NOT_DECODED, Record, UNDEFINED, cut_shape};
use kvrm_ir::cut::Cut;
use kvrm_ir::{Function, Terminator};
use kvrm_mem::ProcessMark;

use crate::context::{EXIT_KINDS, ExitKind, Tables};
use crate::handlers::{
    Maker, handler_routine, translate_detour, translate_exit, translate_handler, translate_maker,
    translate_next_sheet, translate_slow,
};
use crate::hashing::NumberMap;
use crate::library::{Addresses, Library, Piece, callee};
use crate::slow;
use crate::stubs::{Enter, fill_enter, fill_stub, host_signature};
use crate::translate::{HostTarget, MemoryKind, function_signature, stub_signature};

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

impl Ending {
    fn of(end: &Terminator) -> Ending {
        match end {
            Terminator::Next => Ending::Next,
            Terminator::Jump { .. } | Terminator::Branch { .. } => Ending::Direct,
            Terminator::Indirect { .. } | Terminator::Stop { .. } => Ending::Other,
        }
    }

    fn from_number(number: u8) -> Ending {
        [Ending::Next, Ending::Direct, Ending::Other][usize::from(number)]
    }
}

/// An instruction as interpreted code wants it.
pub(crate) struct Decoded {
    pub(crate) parameters: Record,
    pub(crate) ending: Ending,
}

/// Handlers, what else records run, and what calls all that.
pub(crate) struct Interpreter {
    /// For lane contexts.
    pub(crate) tables: Tables,
    /// What the last record of a sheet runs.
    pub(crate) next_sheet: *const u8,
    pub(crate) enter: Enter,
    /// Slow path of probes, for the lane context.
    pub(crate) probe: *const u8,
    /// 128-bit compare and swap, for the lane context.
    pub(crate) cas: *const u8,
    /// What computes flags, for the lane context.
    pub(crate) settle: *const u8,
    /// What records run where `[checks][counts]`.
    detours: [[*const u8; 2]; 2],
    /// Code by the number of a handler; `tables` point there.
    codes: &'static [AtomicPtr<u8>],
    made: Mutex<Made>,
}

struct Made {
    /// By row and shape.
    shapes: NumberMap<(usize, usize), Shape>,
    library: Library,
}

/// Instructions with the same handler.
#[derive(Clone, Copy)]
struct Shape {
    /// Of the handler.
    number: u32,
    maker: Maker,
    ending: Ending,
}

/// The interpreter of a process. One that is forked makes its own: a thread that it does not have may hold a lock.
struct OfProcess {
    mark: ProcessMark,
    made: Mutex<Option<&'static Interpreter>>,
}

impl OfProcess {
    /// That of this process, which is put in its place if it is not there.
    fn here(place: &'static AtomicPtr<OfProcess>) -> &'static OfProcess {
        let current = place.load(Ordering::Acquire);
        // SAFETY: what is in the place is never freed.
        if let Some(there) = unsafe { current.as_ref() }
            && there.mark.is_here()
        {
            return there;
        }
        let new = OfProcess { mark: ProcessMark::here(), made: Mutex::new(None) };
        let new = Box::into_raw(Box::new(new));
        match place.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it is in the place now.
            Ok(_) => unsafe { &*new },
            Err(there) => {
                // SAFETY: nobody has seen it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: another thread of this process has put it there.
                unsafe { &*there }
            }
        }
    }
}

// SAFETY: the pointers are to code that is never freed.
unsafe impl Send for Interpreter {}
// SAFETY: as above; what changes is behind a lock, or atomic.
unsafe impl Sync for Interpreter {}

impl Interpreter {
    /// That for a kind of memory.
    pub(crate) fn get(kind: MemoryKind) -> Result<&'static Interpreter, EngineError> {
        static ALL: [[AtomicPtr<OfProcess>; 2]; 2] =
            [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; 2] }; 2];
        let place = &ALL[usize::from(kind.mapped)][usize::from(kind.atomic)];
        let mut made = OfProcess::here(place).made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interpreter) = *made {
            return Ok(interpreter);
        }
        let interpreter = Box::leak(Box::new(Interpreter::new(kind, KernelCache::open())?));
        *made = Some(interpreter);
        Ok(interpreter)
    }

    fn new(kind: MemoryKind, cache: KernelCache) -> Result<Interpreter, EngineError> {
        let mut library = Library::open(HostTarget::new(kind)?, cache);
        let mut exits = [std::ptr::null(); EXIT_KINDS.len()];
        for kind in EXIT_KINDS {
            let name = format!("exit {kind:?}");
            exits[kind as usize] =
                library.get(&name, function_signature(), |f, scratch, target| match kind {
                    ExitKind::Slow => translate_slow(f, scratch, target),
                    ExitKind::Chain
                    | ExitKind::Fuel
                    | ExitKind::Probe
                    | ExitKind::Exit
                    | ExitKind::Undefined
                    | ExitKind::Stale
                    | ExitKind::Hot => translate_exit(f, scratch, target, kind),
                })?;
        }
        let next_sheet = library.get("next sheet", function_signature(), translate_next_sheet)?;
        let mut detours = [[std::ptr::null(); 2]; 2];
        for (checks, counts) in [(false, true), (true, false), (true, true)] {
            let name = format!("detour, checks {checks}, counts {counts}");
            let detour = library.get(&name, function_signature(), |f, scratch, target| {
                translate_detour(f, scratch, target, checks, counts);
            })?;
            detours[usize::from(checks)][usize::from(counts)] = detour;
        }
        let mut stub = |name, called| {
            library.get(name, stub_signature(), |f, scratch, target| {
                fill_stub(f, scratch, target, called);
            })
        };
        let probe = stub("probe", slow::probe as *const () as usize)?;
        let cas = stub("cas128", slow::cas128 as *const () as usize)?;
        let settle = stub("settle", slow::settle as *const () as usize)?;
        let enter = library.get("enter", host_signature(5), fill_enter)?;
        // SAFETY: all bits zero are a null pointer. What nobody needs takes no memory.
        let codes = unsafe { Box::new_zeroed_slice(HANDLER_MASK as usize + 1).assume_init() };
        let codes: &'static [AtomicPtr<u8>] = Box::leak(codes);
        for (number, kind) in [(NOT_DECODED, ExitKind::Chain), (UNDEFINED, ExitKind::Undefined)] {
            codes[number as usize].store(exits[kind as usize].cast_mut(), Ordering::Relaxed);
        }
        Ok(Interpreter {
            tables: Tables { exits, handlers: codes.as_ptr() },
            next_sheet,
            // SAFETY: it has the signature of `Enter`.
            enter: unsafe { std::mem::transmute::<*const u8, Enter>(enter) },
            probe,
            cas,
            settle,
            detours,
            codes,
            made: Mutex::new(Made { shapes: NumberMap::default(), library }),
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

    /// Where functions are that translations call.
    pub(crate) fn functions(&self, called: &[&'static Function]) -> Result<Addresses, EngineError> {
        match called.is_empty() {
            true => Ok(Addresses::new()),
            false => self.made().library.functions(called),
        }
    }

    /// Where a function is that was made before.
    pub(crate) fn function(&self, name: &str) -> Result<Option<usize>, EngineError> {
        self.made().library.function(name)
    }

    /// Keeps what was compiled for other processes.
    pub(crate) fn keep(&self) {
        self.made().library.keep();
    }

    /// Decodes a word; its handler is there then.
    pub(crate) fn decode(&self, pc: u64, word: u32) -> Result<Decoded, EngineError> {
        let Some(row) = kvrm_a64::decode(word) else {
            let parameters = Record::special(UNDEFINED, word.into());
            return Ok(Decoded { parameters, ending: Ending::Other });
        };
        let mut made = self.made();
        let key = (row.index, row.shape(word));
        let shape = match made.shapes.get(&key) {
            Some(shape) => *shape,
            None => self.add_shape(key, row, word, &mut made)?,
        };
        let mut parameters = Record::special(shape.number, 0);
        // SAFETY: that is what makers get.
        unsafe { (shape.maker)(&mut parameters, pc, word.into()) };
        Ok(Decoded { parameters, ending: shape.ending })
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_shape(
        &self,
        key: (usize, usize),
        row: &'static Instruction,
        word: u32,
        made: &mut Made,
    ) -> Result<Shape, EngineError> {
        let number = FIRST_HANDLER + made.shapes.len() as u32;
        let (handler, maker) = pieces_of(key, row, word, &mut made.library)?;
        self.codes[number as usize].store(handler.code.cast_mut(), Ordering::Release);
        // SAFETY: it was made with the signature of makers.
        let maker = unsafe { std::mem::transmute::<*const u8, Maker>(maker.code) };
        let shape = Shape { number, maker, ending: Ending::from_number(handler.tag) };
        made.shapes.insert(key, shape);
        Ok(shape)
    }
}

/// The handler of a shape, and what makes its records.
fn pieces_of(
    (index, shape): (usize, usize),
    row: &'static Instruction,
    word: u32,
    library: &mut Library,
) -> Result<(Piece, Piece), EngineError> {
    let names = ["handler", "maker"].map(|kind| format!("{kind} {index} {shape}"));
    let [handler, maker] = names.each_ref().map(|name| library.find(name));
    if let (Some(handler), Some(maker)) = (handler?, maker?) {
        return Ok((handler, maker));
    }
    let Cut { before, small, after } = cut_shape(row, word);
    let routine = handler_routine(&after);
    let mut called = Vec::new();
    routine.body.for_each_stmt(&mut |stmt| called.extend(callee(stmt)));
    let functions = library.functions(&called)?;
    let [handler, maker] = names;
    let ending = Ending::of(&routine.end) as u8;
    let signature: Signature = function_signature();
    let handler = library.add(&handler, ending, signature, |function, scratch, target| {
        translate_handler(function, scratch, target, routine, &functions);
    })?;
    let maker = library.add(&maker, 0, host_signature(3), |function, scratch, target| {
        translate_maker(function, scratch, target, &before, small);
    })?;
    Ok((handler, maker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_enough_numbers_for_all_shapes() {
        let shapes: usize = kvrm_a64::table().iter().map(Instruction::shapes).sum();
        assert!(FIRST_HANDLER as usize + shapes <= HANDLER_MASK as usize);
    }

    #[test]
    fn records_are_those_of_the_kernels() {
        let interpreter = Interpreter::get(MemoryKind::default()).unwrap();
        let mut handlers = kvrm_engine::kernel::Handlers::new();
        for row in kvrm_a64::table() {
            let word = row.pattern.value | row.pattern.preferred;
            let (pc, word) = (0xffff_1234_5678, word ^ (0x0155_5555 & !row.pattern.mask));
            if kvrm_a64::decode(word).is_none_or(|decoded| decoded.index != row.index) {
                continue;
            }
            let expected = handlers.record(pc, word);
            let Record(words) = interpreter.decode(pc, word).unwrap().parameters;
            assert_eq!(words[1..], expected.0[1..], "{}", row.name);
            assert_eq!(words[0] >> 16, expected.0[0] >> 16, "{}", row.name);
        }
    }
}
