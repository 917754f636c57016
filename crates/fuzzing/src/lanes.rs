//! Lanes in shared memory that do not depend on one another.
//!
//! A lane reads and writes its own part of memory. What all lanes change, they change with atomic operations whose
//! order does not matter, and none of them reads it. They also write instructions: to their own parts, and `nop`s over
//! `nop`s of the program. So each lane does the same as if it ran alone, in whatever order they run, and the expected
//! memory can be computed from what each does alone.

use std::fmt::{self, Display, Formatter};
use std::time::Instant;

use kvrm::{Machine, MemoryModel, Reg};
use kvrm_a64::decode;

use crate::cancelling::{cancels_when_asked, ends_wrongly, follow};
use crate::compare::{bytes_differ, found, go_on, memory, registers_differ};
use crate::program::{CODE, NOP, REDUCING, Setup};
use crate::words::{PART_BASE, own_access, quiet};
use crate::{Habit, Source};

/// The parts of lanes, one after the other, in a page with instructions.
const PARTS: u64 = 0x4800;
/// Length of a part.
const PART: u64 = 256;
/// Where a lane writes instructions in its part, after all that [`own_access`] reaches.
const OWN_CODE: u64 = 192;
/// What all lanes change: eight bytes for each atomic operation.
const COMMON: u64 = 0x47c0;
const LANES: u64 = 6;
const WORDS: u64 = 400;
const RUNS: u64 = 6;

/// The number of registers that instructions use freely: X0 to X3.
const FREE: usize = 4;
/// Holds the address that the first atomic operation changes; the registers after it hold those of the others.
const COMMON_BASE: u8 = 8;
/// Holds the address of the program.
const CODE_BASE: u8 = 20;
/// Holds [`NOP`].
const NOP_WORD: u8 = 21;
/// Holds the address of the lane's own instructions.
const OWN_CODE_BASE: u8 = 22;
/// This register and the next hold instructions to be written.
const OWN_WORDS: u8 = 23;

const RET: u32 = 0xd65f_03c0;
/// `add x0, x0, #0`; the immediate starts at bit 10.
const ADD_X0: u32 = 0x9100_0000;
/// `str w0, [x0]`; the immediate, in words, starts at bit 10.
const STR_W: u32 = 0xb900_0000;
const BLR: u32 = 0xd63f_0000;
/// `ldaddb w0, wzr, [x0]`.
const ATOMIC: u32 = 0x3820_001f;

/// Lanes, and how they are run.
#[derive(Clone, Debug)]
struct Crew {
    words: Vec<u32>,
    /// What X0 to X3 are computed from.
    seeds: [u64; FREE],
    lanes: usize,
    threads: usize,
    setup: Setup,
    /// Logarithms of the sizes in bytes of what the atomic operations change, by operation.
    sizes: [u32; 8],
    /// The limit of each run, and how often the engine may ask before it is cancelled.
    runs: Vec<(u64, u64)>,
}

/// Runs lanes together and alone, and compares them.
pub fn check(bytes: &[u8]) {
    let crew = Crew::from_source(&mut Source::new(bytes));
    if let Some(difference) = crew.difference() {
        eprintln!("{difference}\nreducing the program");
        let reduced = crew.reduced();
        panic!("{difference}\nreduced: {:?}\n{reduced}", reduced.difference());
    }
}

impl Crew {
    fn from_source(source: &mut Source<'_>) -> Crew {
        let setup = if source.one_in(8) { Setup::REFERENCE } else { Setup::from_source(source) };
        let (lanes, threads) = (2 + source.below(LANES - 1), 1 + source.below(3));
        let sizes = source.u16();
        let sizes = std::array::from_fn(|op| u32::from(sizes) >> (2 * op) & 3);
        let seeds = std::array::from_fn(|_| source.u64());
        let writes_code = source.one_in(3);
        // Each write to code makes the engine translate everything again.
        let longest = if writes_code { 200 } else { 5000 };
        let run = |source: &mut Source<'_>| (source.below(longest), asked(source));
        let runs = (0..1 + source.below(RUNS)).map(|_| run(source)).collect();
        let words = words(source, writes_code, &sizes);
        let (lanes, threads) = (lanes as usize, threads as usize);
        Crew { words, seeds, lanes, threads, setup, sizes, runs }
    }

    /// Makes a machine with all lanes.
    fn together(&self) -> kvrm::Result<Machine> {
        let builder = self.setup.builder().model(MemoryModel::Shared);
        let mut machine = builder.lanes(self.lanes).threads(self.threads).build()?;
        self.load(&mut machine)?;
        (0..self.lanes).try_for_each(|lane| self.start(&mut machine, lane, lane))?;
        Ok(machine)
    }

    /// Makes a machine of the reference with one lane, which does what `lane` does.
    fn alone(&self, lane: usize) -> kvrm::Result<Machine> {
        let mut machine = Setup::REFERENCE.builder().build()?;
        self.load(&mut machine)?;
        self.start(&mut machine, 0, lane)?;
        Ok(machine)
    }

    fn load(&self, machine: &mut Machine) -> kvrm::Result<()> {
        let bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        machine.load(CODE, &bytes)?;
        machine.set_entry(CODE)?;
        machine.load(COMMON, &self.seeds.map(u64::to_le_bytes).concat())?;
        for lane in 0..self.lanes as u64 {
            let own = [own_word(lane, 0), RET].map(u32::to_le_bytes).concat();
            machine.load(PARTS + PART * lane + OWN_CODE, &own)?;
        }
        Ok(())
    }

    /// Gives a lane of the machine the registers of a lane of the crew.
    fn start(&self, machine: &mut Machine, at: usize, lane: usize) -> kvrm::Result<()> {
        let lane = lane as u64;
        let part = PARTS + PART * lane;
        let mut set = |number: u8, value| machine.set_register(at, Reg::X(number), value);
        for (number, seed) in (0..).zip(self.seeds) {
            set(number, seed.wrapping_mul(2 * lane + 1))?;
        }
        for op in 0..8 {
            set(COMMON_BASE + op, COMMON + 8 * u64::from(op))?;
        }
        set(CODE_BASE, CODE)?;
        set(NOP_WORD, NOP.into())?;
        set(OWN_CODE_BASE, part + OWN_CODE)?;
        set(OWN_WORDS, own_word(lane, 1).into())?;
        set(OWN_WORDS + 1, own_word(lane, 2).into())?;
        set(PART_BASE, part)?;
        set(30, CODE)
    }

    fn difference(&self) -> Option<String> {
        found(|| self.compare())
    }

    fn compare(&self) -> kvrm::Result<Option<String>> {
        let mut machine = self.together()?;
        let alone = (0..self.lanes).map(|lane| self.alone(lane));
        let mut alone = alone.collect::<kvrm::Result<Vec<_>>>()?;
        let before = memory(&machine, 0)?;
        for (run, (limit, asked)) in self.runs.iter().enumerate() {
            let report = machine.run_with(*limit, &cancels_when_asked(*asked))?;
            for (lane, reference) in alone.iter_mut().enumerate() {
                follow(&machine, lane, reference, *limit)?;
                let ends = ends_wrongly(&machine, lane, reference, report)?;
                let registers = registers_differ(&machine, lane, reference)?;
                if let Some(difference) = ends.or(registers) {
                    return Ok(Some(format!("run {run}, lane {lane}: {difference}")));
                }
                go_on(&mut machine, lane, self.words.len())?;
                go_on(reference, 0, self.words.len())?;
            }
            let expected = self.combined(&before, &alone)?;
            if let Some(difference) = bytes_differ(&memory(&machine, 0)?, &expected) {
                return Ok(Some(format!("run {run}: {difference}")));
            }
        }
        Ok(None)
    }

    /// Returns what memory should be after lanes have done together what they did alone.
    fn combined(&self, before: &[u8], alone: &[Machine]) -> kvrm::Result<Vec<u8>> {
        let mut combined = before.to_vec();
        for (lane, machine) in alone.iter().enumerate() {
            let own = memory(machine, 0)?;
            let part = (PARTS + PART * lane as u64) as usize;
            combined[part..part + PART as usize].copy_from_slice(&own[part..part + PART as usize]);
            for (op, size) in self.sizes.into_iter().enumerate() {
                let at = COMMON as usize + 8 * op;
                let number = |bytes: &[u8]| {
                    let mut number = [0; 8];
                    number[..1 << size].copy_from_slice(&bytes[at..at + (1 << size)]);
                    u64::from_le_bytes(number)
                };
                let both = both(op, size, number(before), [number(&combined), number(&own)]);
                combined[at..at + (1 << size)].copy_from_slice(&both.to_le_bytes()[..1 << size]);
            }
        }
        Ok(combined)
    }

    /// Returns the same with a `nop` for every word that is not needed to fail. Failures that depend on timing may need
    /// all words.
    fn reduced(&self) -> Crew {
        let mut best = self.clone();
        let start = Instant::now();
        for index in 0..best.words.len() {
            let mut candidate = best.clone();
            candidate.words[index] = NOP;
            if start.elapsed() < REDUCING && (0..3).any(|_| candidate.difference().is_some()) {
                best = candidate;
            }
        }
        best
    }
}

/// Picks how often the engine may ask before the run is cancelled: mostly as often as it likes.
fn asked(source: &mut Source<'_>) -> u64 {
    if source.one_in(3) { source.below(20) } else { u64::MAX }
}

/// Returns one of the instructions that a lane writes; they differ from lane to lane.
fn own_word(lane: u64, number: u64) -> u32 {
    ADD_X0 | ((16 * lane + number + 1) as u32) << 10
}

/// Returns the result of two lanes' atomic operations with this encoding, where each alone turns `before` into `alone`.
fn both(op: usize, size: u32, before: u64, alone: [u64; 2]) -> u64 {
    let [a, b] = alone;
    let signed = |x: u64| (x << (64 - (8 << size))) as i64;
    match op {
        0 => a.wrapping_add(b).wrapping_sub(before),
        1 => a & b,
        2 => a ^ b ^ before,
        3 => a | b,
        4 => std::cmp::max_by_key(a, b, |x| signed(*x)),
        5 => std::cmp::min_by_key(a, b, |x| signed(*x)),
        6 => a.max(b),
        7 => a.min(b),
        _ => unreachable!("there are eight operations"),
    }
}

fn words(source: &mut Source<'_>, writes_code: bool, sizes: &[u32; 8]) -> Vec<u32> {
    let mut words = Vec::new();
    let habit = if source.one_in(2) { Habit::Flags } else { Habit::FewRegisters };
    let len = 1 + source.below(WORDS) as usize;
    while words.len() < len && !source.is_empty() {
        let word = match source.u8() % 16 {
            0..4 => own_access(source),
            4..6 => atomic(source, sizes),
            6 if writes_code => write_own_code(source),
            7 if writes_code => write_nop(source, &words),
            8 => BLR | u32::from(OWN_CODE_BASE) << 5,
            9 => NOP,
            _ => quiet(source, habit, words.len()),
        };
        words.push(word);
    }
    words
}

/// Returns an atomic operation on what all lanes change.
fn atomic(source: &mut Source<'_>, sizes: &[u32; 8]) -> u32 {
    let (op, bits) = (source.u8() % 8, u32::from(source.u8()));
    let base = u32::from(COMMON_BASE + op);
    let (order, operand) = (bits >> 2 & 3, bits % FREE as u32);
    let kind = sizes[usize::from(op)] << 30 | order << 22 | u32::from(op) << 12;
    ATOMIC | kind | operand << 16 | base << 5
}

/// Returns a store of one of a lane's own instructions to its part.
fn write_own_code(source: &mut Source<'_>) -> u32 {
    let word = u32::from(OWN_WORDS + source.u8() % 2);
    STR_W | u32::from(OWN_CODE_BASE) << 5 | word
}

/// Returns a store of a `nop` over another; a `nop` if there is none so far.
fn write_nop(source: &mut Source<'_>, words: &[u32]) -> u32 {
    let nops: Vec<usize> = (0..words.len()).filter(|index| words[*index] == NOP).collect();
    let Some(choice) = usize::from(source.u8()).checked_rem(nops.len()) else { return NOP };
    STR_W | (nops[choice] as u32) << 10 | u32::from(CODE_BASE) << 5 | u32::from(NOP_WORD)
}

impl Display for Crew {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Crew { words, seeds, lanes, threads, setup, sizes, runs } = self;
        writeln!(f, "{lanes} lanes, {threads} threads, {setup:?}")?;
        writeln!(f, "seeds {seeds:x?}, sizes {sizes:?}, runs {runs:?}")?;
        for (i, word) in words.iter().enumerate() {
            let name = decode(*word).map_or("(undefined)", |row| row.name);
            writeln!(f, "{:#x}: {word:08x} {name}", CODE + 4 * i as u64)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_lanes_do_to_a_byte() {
        let results = [14, 0b0001, 0b0011, 0b0111, 5, 3, 5, 3];
        for (op, result) in results.into_iter().enumerate() {
            let alone = if op == 0 { [8, 8] } else { [3, 5] };
            let before = if op == 2 { 5 } else { 2 };
            assert_eq!(both(op, 0, before, alone), result, "operation {op}");
        }
        assert_eq!(both(4, 0, 0, [0x80, 0x7f]), 0x7f);
        assert_eq!(both(5, 0, 0, [0x80, 0x7f]), 0x80);
    }
}
