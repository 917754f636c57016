//! Executes one instruction with the reference evaluator.

use std::cell::Cell;
use std::sync::{LazyLock, OnceLock};

use kvrm_a64::state::{CpuState, V, VectorState};
use kvrm_a64::{Instruction, decode, shaped_form, table};
use kvrm_ir::derive::Derivation;
use kvrm_ir::eval::{End, Inputs, Machine, eval, eval_deriving};
use kvrm_ir::{Access, File, Order, Routine, Type, Var};
use kvrm_mem::{GuestMemory, branch_target, untagged};

use crate::{FaultKind, Stop};

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The instruction completed.
    Done,
    /// It completed and stopped the lane.
    DoneAndStopped(Stop),
    /// It stopped the lane and did nothing else.
    Stopped(Stop),
}

/// Returns the word at `pc`, or why there is none.
pub fn fetch(memory: &impl GuestMemory, pc: u64) -> Result<u32, Stop> {
    if !pc.is_multiple_of(4) {
        return Err(Stop::Fault { kind: FaultKind::Unaligned, address: pc });
    }
    match memory.probe_fetch(pc) {
        Ok(()) => Ok(memory.load(Type::U32, Order::Plain, pc) as u32),
        Err(address) => Err(Stop::Fault { kind: FaultKind::Fetch, address }),
    }
}

/// Executes the instruction at PC. `count` is the number of instructions completed before it. Calls
/// `before_write` with address and length before each write to memory.
pub fn step(
    state: &mut CpuState,
    vectors: &mut VectorState,
    count: u64,
    memory: &impl GuestMemory,
    before_write: &mut dyn FnMut(u64, u32),
) -> Step {
    let eval = &mut |routine: &_, machine: &mut Stepping<'_, _>| eval(routine, machine);
    step_with(state, vectors, count, memory, before_write, eval)
}

/// The same in a run that a derivation follows: `at` is the number of instructions that this run had completed before.
pub fn step_deriving(
    state: &mut CpuState,
    vectors: &mut VectorState,
    count: u64,
    memory: &impl GuestMemory,
    at: u64,
    derivation: &mut Derivation,
) -> Step {
    let eval = &mut |routine: &_, machine: &mut Stepping<'_, _>| {
        eval_deriving(routine, machine, at, derivation)
    };
    step_with(state, vectors, count, memory, &mut |_, _| {}, eval)
}

fn step_with<M: GuestMemory>(
    state: &mut CpuState,
    vectors: &mut VectorState,
    count: u64,
    memory: &M,
    before_write: &mut dyn FnMut(u64, u32),
    eval: &mut impl FnMut(&Routine, &mut Stepping<'_, M>) -> End,
) -> Step {
    let end = step_inner(state, vectors, count, memory, before_write, eval);
    if let Step::Stopped(stop) | Step::DoneAndStopped(stop) = end
        && stop.is_exception()
    {
        state.take_exception();
    }
    end
}

fn step_inner<M: GuestMemory>(
    state: &mut CpuState,
    vectors: &mut VectorState,
    count: u64,
    memory: &M,
    before_write: &mut dyn FnMut(u64, u32),
    eval: &mut impl FnMut(&Routine, &mut Stepping<'_, M>) -> End,
) -> Step {
    let word = match fetch(memory, state.pc) {
        Ok(word) => word,
        Err(stop) => return Step::Stopped(stop),
    };
    let Some(routine) = recent_routine(word) else {
        return Step::Stopped(Stop::Undefined { word });
    };
    let next = state.pc.wrapping_add(4);
    let mut stepping = Stepping { state, vectors, count, word, memory, before_write };
    match eval(routine, &mut stepping) {
        End::Next => {
            state.pc = next;
            Step::Done
        }
        End::Jump(target) => {
            state.pc = if memory.is_mapped() { branch_target(target) } else { target };
            Step::Done
        }
        End::Exit { exit, detail } => {
            let stop = Stop::from_exit(exit.reason, detail);
            let stop = if memory.is_mapped() { stop.untagged() } else { stop };
            if !exit.completes {
                return Step::Stopped(stop);
            }
            state.pc = next;
            Step::DoneAndStopped(stop)
        }
        End::Fault { access, addr } => Step::Stopped(Stop::from_fault(access, addr)),
    }
}

/// Words whose routines a thread remembers, a power of two.
const RECENT: usize = 512;

/// What the word does; `None` if it is not an instruction.
fn recent_routine(word: u32) -> Option<&'static Routine> {
    type Known = (u32, Option<&'static Routine>);
    thread_local! {
        static RECENT_WORDS: [Cell<Option<Known>>; RECENT] =
            const { [const { Cell::new(None) }; RECENT] };
    }
    // The upper bits of the product depend on all bits of the word.
    let index = word.wrapping_mul(0x9e37_79b9) >> (32 - RECENT.ilog2());
    RECENT_WORDS.with(|recent| {
        let cell = &recent[index as usize];
        match cell.get() {
            Some((known, found)) if known == word => found,
            _ => {
                let found = decode(word).map(|row| routine(row, word));
                cell.set(Some((word, found)));
                found
            }
        }
    })
}

/// Returns the routine for the words of a shape, built on first use.
fn routine(row: &Instruction, word: u32) -> &'static Routine {
    static ROUTINES: LazyLock<Vec<Vec<OnceLock<Routine>>>> = LazyLock::new(|| {
        let shapes = |row: &Instruction| (0..row.shapes()).map(|_| OnceLock::new()).collect();
        table().iter().map(shapes).collect()
    });
    ROUTINES[row.index][row.shape(word)].get_or_init(|| shaped_form(row, word))
}

/// The machine a routine sees while one instruction executes.
struct Stepping<'a, M> {
    state: &'a mut CpuState,
    vectors: &'a mut VectorState,
    count: u64,
    word: u32,
    memory: &'a M,
    before_write: &'a mut dyn FnMut(u64, u32),
}

impl<M> Inputs for Stepping<'_, M> {
    fn word(&self) -> u32 {
        self.word
    }

    fn param(&self, _: u8) -> u64 {
        unreachable!("rows are not cut")
    }

    fn read_var(&self, var: Var) -> u64 {
        self.state.var(var)
    }
}

impl<M: GuestMemory> Machine for Stepping<'_, M> {
    fn count(&self) -> u64 {
        self.count
    }

    fn read_reg(&self, file: File, index: u32) -> u64 {
        match file {
            V => self.vectors.half(index),
            _ => self.state.x[index as usize],
        }
    }

    fn write_reg(&mut self, file: File, index: u32, value: u64) {
        match file {
            V => self.vectors.set_half(index, value),
            _ => self.state.x[index as usize] = value,
        }
    }

    fn write_var(&mut self, var: Var, value: u64) {
        self.state.set_var(var, value);
    }

    fn flags(&self) -> [bool; 4] {
        self.state.flags.map(|flag| flag != 0)
    }

    fn set_flags(&mut self, flags: [bool; 4]) {
        self.state.flags = flags.map(u8::from);
    }

    fn probe(&mut self, access: Access, addr: u64, len: u32) -> Result<u64, u64> {
        let addr = if self.memory.is_mapped() { untagged(addr) } else { addr };
        self.memory.probe(access, addr, len)?;
        if access != Access::Read {
            (self.before_write)(addr, len);
        }
        Ok(addr)
    }

    fn load(&mut self, ty: Type, order: Order, addr: u64) -> u64 {
        self.memory.load(ty, order, addr)
    }

    fn store(&mut self, ty: Type, order: Order, addr: u64, value: u64) {
        self.memory.store(ty, order, addr, value);
    }

    fn cas(&mut self, ty: Type, addr: u64, expected: u64, new: u64) -> u64 {
        self.memory.cas(ty, addr, expected, new)
    }

    fn cas128(&mut self, addr: u64, expected: [u64; 2], new: [u64; 2]) -> [u64; 2] {
        self.memory.cas128(addr, expected, new)
    }

    fn fence(&mut self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
}
