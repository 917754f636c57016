//! Random programs do the same on two engines.
//!
//! A program is run in pieces of a few instructions. Where it stops for good (a fault, an undefined word), the PC is
//! moved to the next instruction, so that most of it is executed.

use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

use kvrm::{EngineKind, Machine, MachineBuilder, MemoryModel, Reg};
use kvrm_a64::decode;

use crate::compare::{found, go_on, lanes_differ, stops_differ};
use crate::{Habit, Source};

/// Guest memory.
pub const MEMORY: u64 = 0x8000;
/// Where programs are.
pub const CODE: u64 = 0x3f80;
/// The most instructions in a program.
const WORDS: usize = 64;
/// The most runs of a program.
const RUNS: usize = 16;
/// How long to look for a smaller program that fails.
pub(crate) const REDUCING: Duration = Duration::from_secs(30);
pub(crate) const NOP: u32 = 0xd503_201f;
/// `b`; the distance in words is in the lowest bits.
const B: u32 = 0x1400_0000;

/// Words, the state they start in, and how they are run.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The words, from [`CODE`] on.
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
    /// How often code is interpreted before it is translated.
    pub translate_after: u32,
}

impl Setup {
    /// What the others are compared with.
    pub const REFERENCE: Setup = Setup { engine: EngineKind::Eval, translate_after: 0 };
    /// The CPU engine, translating everything.
    pub const TRANSLATING: Setup = Setup { engine: EngineKind::Cpu, translate_after: 0 };

    /// Picks how soon the CPU engine translates.
    pub fn from_source(source: &mut Source<'_>) -> Setup {
        let translate_after = [0, 0, 1, 3, 1000, u32::MAX][source.below(6) as usize];
        Setup { translate_after, ..Setup::TRANSLATING }
    }

    /// Starts building a machine for programs.
    pub(crate) fn builder(self) -> MachineBuilder {
        let builder = Machine::builder().engine(self.engine).memory(MEMORY);
        builder.translate_after(self.translate_after)
    }
}

/// Compares the CPU engine with the reference on the program in `bytes`.
pub fn check(bytes: &[u8]) {
    check_with(bytes, Setup::TRANSLATING);
}

/// Compares an engine with the reference on the program in `bytes`.
pub fn check_with(bytes: &[u8], setup: Setup) {
    Program::from_bytes(bytes).check(|program| program.difference(setup));
}

impl Program {
    /// Makes a program from bytes.
    pub fn from_bytes(bytes: &[u8]) -> Program {
        Program::from_source(&mut Source::new(bytes))
    }

    /// Makes a short program from the remaining bytes.
    pub fn from_source(source: &mut Source<'_>) -> Program {
        Program::around(source, 64, |source| {
            let mut words = Vec::new();
            let habit = Habit::from_source(source);
            let len = 1 + source.below(WORDS as u64) as usize;
            while words.len() < len && !source.is_empty() {
                words.push(crate::word(source, habit, words.len()));
            }
            words
        })
    }

    /// Makes a program of these words, with a state to start in and limits below `longest` from the source.
    pub(crate) fn around(
        source: &mut Source<'_>,
        longest: u64,
        words: impl FnOnce(&mut Source<'_>) -> Vec<u32>,
    ) -> Program {
        let model = if source.one_in(4) { MemoryModel::Shared } else { MemoryModel::Private };
        let nzcv = u64::from(source.u8() >> 4) << 28;
        let registers = std::array::from_fn(|_| register(source));
        let longest = 1 + source.below(longest);
        let limits = (0..RUNS).map(|_| source.below(longest)).collect();
        Program { words: words(source), registers, nzcv, limits, model }
    }

    /// Adds a branch from the program's end to its beginning.
    pub(crate) fn endless(mut self) -> Program {
        let back = (self.words.len() as u32).wrapping_neg() & 0x3ff_ffff;
        self.words.push(B | back);
        self
    }

    /// Makes a machine with one lane that is ready to run the program.
    pub(crate) fn machine(&self, setup: Setup) -> kvrm::Result<Machine> {
        self.start(setup.builder().model(self.model).threads(1).build()?)
    }

    /// Makes every lane of a machine ready to run the program, from [a state of its own](Self::of_lane).
    pub(crate) fn start(&self, mut machine: Machine) -> kvrm::Result<Machine> {
        let code: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        machine.load(CODE, &code)?;
        machine.set_entry(CODE)?;
        for lane in 0..machine.lanes() {
            let program = self.of_lane(lane);
            for (n, value) in program.registers.into_iter().enumerate() {
                let reg = if n == 31 { Reg::Sp } else { Reg::X(n as u8) };
                machine.set_register(lane, reg, value)?;
            }
            machine.set_register(lane, Reg::Nzcv, program.nzcv)?;
        }
        Ok(machine)
    }

    /// Returns the program as a lane starts it: unchanged in lane 0, with some values in other registers in the others.
    pub(crate) fn of_lane(&self, lane: usize) -> Program {
        let mut program = self.clone();
        program.registers[..16].rotate_left(lane % 16);
        program
    }

    /// Returns how the engine and the reference differ, if they do.
    pub fn difference(&self, setup: Setup) -> Option<String> {
        found(|| self.compare(setup))
    }

    /// Panics if there is a difference, with a smaller program that has one too.
    pub(crate) fn check(&self, difference: impl Fn(&Program) -> Option<String>) {
        if let Some(found) = difference(self) {
            eprintln!("{found}\nreducing the program");
            let reduced = self.reduced(|program| difference(program).is_some());
            let again = difference(&reduced).unwrap_or_default();
            panic!("{found}\nreduced: {again}\n{reduced}");
        }
    }

    fn compare(&self, setup: Setup) -> kvrm::Result<Option<String>> {
        let mut machines = [self.machine(setup)?, self.machine(Setup::REFERENCE)?];
        for (run, limit) in self.limits.iter().enumerate() {
            for machine in &mut machines {
                machine.run(*limit)?;
            }
            let [a, b] = &machines;
            let difference = [stops_differ(a, 0, b)?, lanes_differ(a, 0, b)?];
            if let Some(difference) = difference.into_iter().flatten().next() {
                return Ok(Some(format!("run {run} of {limit}: {difference}")));
            }
            for machine in &mut machines {
                go_on(machine, 0, self.words.len())?;
            }
        }
        Ok(None)
    }

    /// Returns a smaller program that fails as well, with fewer words, registers and runs: the best found in half a
    /// minute.
    pub fn reduced(&self, fails: impl Fn(&Program) -> bool) -> Program {
        let mut best = self.clone();
        let start = Instant::now();
        loop {
            let before = best.clone();
            for candidate in best.simpler() {
                // The steps are independent: each starts from the best so far.
                let merged = candidate(&best);
                if start.elapsed() < REDUCING && merged != best && fails(&merged) {
                    best = merged;
                }
            }
            if best == before {
                return best;
            }
        }
    }

    /// Returns ways to make a program smaller.
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
        // Many at once first: a program may have a thousand words.
        for part in
            [2, 4, 8, 16].map(|parts| self.words.len() / parts).into_iter().filter(|n| *n > 8)
        {
            let starts = (0..=last).step_by(part);
            steps.extend(
                starts.map(|i| step(move |p| (i..i + part).for_each(|i| p.replace(i, NOP)))),
            );
        }
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

/// Makes a program smaller.
type Simplification = Box<dyn Fn(&Program) -> Program>;

/// Picks a value for a register: a number, or an address where something is.
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
