//! Random programs do the same on two engines.
//!
//! A program is run in pieces of a few instructions. Where it stops for good (a fault, an undefined
//! word) the next instruction is made the current one, so that little of it stays unexecuted.

use std::fmt::{self, Display, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};

use kvrm::{EngineKind, Machine, MemoryModel, Reg, Stop};
use kvrm_a64::decode;

use crate::{Habit, Source};

/// Guest memory.
pub const MEMORY: u64 = 0x8000;
/// Where programs are.
pub const CODE: u64 = 0x3f80;
/// Instructions in a program at the most.
const WORDS: usize = 64;
/// Runs of a program at the most.
const RUNS: usize = 16;
const NOP: u32 = 0xd503_201f;

/// Words, the state they start in, and how they are run.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// From [`CODE`] on.
    pub words: Vec<u32>,
    /// X0 to X30, then SP.
    pub registers: [u64; 32],
    /// The flags.
    pub nzcv: u64,
    /// Limits of the runs.
    pub limits: Vec<u64>,
    /// Kind of memory.
    pub model: MemoryModel,
}

/// An engine, and how soon it translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The engine.
    pub engine: EngineKind,
    /// How often code is stepped through first.
    pub translate_after: u32,
}

impl Setup {
    /// What the others are compared with.
    pub const REFERENCE: Setup = Setup { engine: EngineKind::Eval, translate_after: 0 };
    /// The CPU engine, translating everything.
    pub const TRANSLATING: Setup = Setup { engine: EngineKind::Cpu, translate_after: 0 };
}

/// Compares the CPU engine with the reference on the program in `bytes`.
pub fn check(bytes: &[u8]) {
    check_with(bytes, Setup::TRANSLATING);
}

/// Compares an engine with the reference on the program in `bytes`.
pub fn check_with(bytes: &[u8], setup: Setup) {
    let program = Program::from_bytes(bytes);
    if let Some(difference) = program.difference(setup) {
        let reduced = program.reduced(|p| p.difference(setup).is_some());
        let again = reduced.difference(setup).unwrap_or_default();
        panic!("{difference}\nreduced: {again}\n{reduced}");
    }
}

impl Program {
    /// Makes a program of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Program {
        let mut source = Source::new(bytes);
        let model = if source.one_in(4) { MemoryModel::Shared } else { MemoryModel::Private };
        let nzcv = u64::from(source.u8() >> 4) << 28;
        let registers = std::array::from_fn(|_| register(&mut source));
        let longest = 1 + source.below(64);
        let limits = (0..RUNS).map(|_| source.below(longest)).collect();
        let mut words = Vec::new();
        let habit = Habit::from_source(&mut source);
        let len = 1 + source.below(WORDS as u64) as usize;
        while words.len() < len && !source.is_empty() {
            words.push(crate::word(&mut source, habit, words.len()));
        }
        Program { words, registers, nzcv, limits, model }
    }

    /// A machine about to run it.
    fn machine(&self, setup: Setup) -> kvrm::Result<Machine> {
        let builder = Machine::builder().engine(setup.engine).memory(MEMORY).model(self.model);
        let mut machine = builder.threads(1).translate_after(setup.translate_after).build()?;
        let code: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        machine.load(CODE, &code)?;
        machine.set_entry(CODE)?;
        for (n, value) in self.registers.into_iter().enumerate() {
            let reg = if n == 31 { Reg::Sp } else { Reg::X(n as u8) };
            machine.set_register(0, reg, value)?;
        }
        machine.set_register(0, Reg::Nzcv, self.nzcv)?;
        Ok(machine)
    }

    /// How the engine and the reference differ, if they do.
    pub fn difference(&self, setup: Setup) -> Option<String> {
        let compare = || self.compare(setup).unwrap_or_else(|e| Some(format!("error: {e}")));
        catch_unwind(AssertUnwindSafe(compare)).unwrap_or_else(|_| Some("panic".to_string()))
    }

    fn compare(&self, setup: Setup) -> kvrm::Result<Option<String>> {
        let mut machines = [self.machine(setup)?, self.machine(Setup::REFERENCE)?];
        for (run, limit) in self.limits.iter().enumerate() {
            for machine in &mut machines {
                machine.run(*limit)?;
            }
            if let Some(difference) = differ(&machines)? {
                return Ok(Some(format!("run {run} of {limit}: {difference}")));
            }
            for machine in &mut machines {
                self.go_on(machine)?;
            }
        }
        Ok(None)
    }

    /// Moves past what has stopped the lane for good.
    fn go_on(&self, machine: &mut Machine) -> kvrm::Result<()> {
        if matches!(machine.stop(0)?, Some(Stop::MaxCycles | Stop::Syscall { .. })) {
            return Ok(());
        }
        let end = CODE + 4 * self.words.len() as u64;
        let next = machine.pc(0)?.wrapping_add(4) & !3;
        let inside = (CODE..end).contains(&next);
        machine.set_pc(0, if inside { next } else { CODE + machine.total_cycles(0)? % 32 * 4 })
    }

    /// A smaller program that fails as well: fewer words, registers and runs.
    pub fn reduced(&self, fails: impl Fn(&Program) -> bool) -> Program {
        let mut best = self.clone();
        loop {
            let before = best.clone();
            for candidate in best.simpler() {
                // The steps are independent: each starts from the best so far.
                let merged = candidate(&best);
                if merged != best && fails(&merged) {
                    best = merged;
                }
            }
            if best == before {
                return best;
            }
        }
    }

    /// Ways to make a program smaller.
    fn simpler(&self) -> Vec<Simplification> {
        fn step(change: impl Fn(&mut Program) + 'static) -> Simplification {
            Box::new(move |program| {
                let mut program = program.clone();
                change(&mut program);
                program
            })
        }
        let mut steps = vec![step(|p| p.model = MemoryModel::Private), step(|p| p.nzcv = 0)];
        steps.extend((0..self.limits.len()).rev().map(|i| step(move |p| p.limits.truncate(i))));
        steps.push(step(|p| p.limits = vec![p.limits.iter().sum()]));
        let last = self.words.len().saturating_sub(1);
        steps.extend((0..=last).rev().map(|i| step(move |p| p.words.truncate(i))));
        steps.extend((0..=last).map(|i| step(move |p| p.replace(i, NOP))));
        steps.extend((0..32).map(|i| step(move |p| p.registers[i] = 0)));
        steps
    }

    fn replace(&mut self, index: usize, word: u32) {
        if let Some(old) = self.words.get_mut(index) {
            *old = word;
        }
    }
}

/// Makes a smaller program of one.
type Simplification = Box<dyn Fn(&Program) -> Program>;

/// A value for a register: a number, or an address where something is.
fn register(source: &mut Source<'_>) -> u64 {
    let kind = source.u8() % 8;
    let offset = source.below(MEMORY);
    match kind {
        0 => source.u64(),
        1 => u64::from(source.u32()),
        2 => offset % 64,
        3 => (offset % 64).wrapping_neg(),
        4 => CODE + offset % 256,
        5 => MEMORY - offset % 32,
        _ => offset & !15,
    }
}

/// What differs between two machines.
fn differ(machines: &[Machine; 2]) -> kvrm::Result<Option<String>> {
    let [a, b] = machines;
    let (stops, counts) = ([a.stop(0)?, b.stop(0)?], [a.total_cycles(0)?, b.total_cycles(0)?]);
    if stops[0] != stops[1] || counts[0] != counts[1] {
        return Ok(Some(format!("stops {stops:?} after {counts:?} instructions")));
    }
    for reg in Reg::all() {
        let (x, y) = (a.register(0, reg)?, b.register(0, reg)?);
        if x != y {
            return Ok(Some(format!("{reg} is {x:#x}, not {y:#x}")));
        }
    }
    let mut memories = [vec![0; MEMORY as usize], vec![0; MEMORY as usize]];
    a.read_memory(0, 0, &mut memories[0])?;
    b.read_memory(0, 0, &mut memories[1])?;
    if memories[0] == memories[1] {
        return Ok(None);
    }
    let different = memories[0].iter().zip(&memories[1]).position(|(x, y)| x != y);
    Ok(different.map(|at| {
        format!("byte {at:#x} is {:#04x}, not {:#04x}", memories[0][at], memories[1][at])
    }))
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "memory: {:?}, limits: {:?}, nzcv: {:#x}", self.model, self.limits, self.nzcv)?;
        for (n, value) in self.registers.iter().enumerate().filter(|(_, value)| **value != 0) {
            let reg = if n == 31 { Reg::Sp } else { Reg::X(n as u8) };
            writeln!(f, "{reg} = {value:#x}")?;
        }
        for (i, word) in self.words.iter().enumerate() {
            let name = decode(*word).map_or("(undefined)", |row| row.name);
            writeln!(f, "{:#x}: {word:08x} {name}", CODE + 4 * i as u64)?;
        }
        Ok(())
    }
}
