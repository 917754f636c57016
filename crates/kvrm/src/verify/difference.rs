//! Describes how two machines differ.

use kvrm_engine::Stop;
use kvrm_mem::PAGE;

use crate::{Machine, Reg, Registers, Result};

/// Limit of memory words that a difference lists.
const SHOWN: usize = 16;

/// A lane that differs between two machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The first lane that differs.
    pub lane: usize,
    /// Number of lanes that differ.
    pub lanes: usize,
    /// Address and word of the instruction before which they agree and after which they differ; `None` if there
    /// is no word, if they differ before the first instruction, or if the search was cancelled.
    pub instruction: Option<(u64, u32)>,
    /// Instructions that the lane completed before it.
    pub count: u64,
    /// The lane on both machines, after that instruction.
    pub sides: [Side; 2],
    /// Addresses of the first words of memory that differ, with their 8 bytes as numbers on both machines.
    pub memory: Vec<(u64, [u64; 2])>,
    /// Number of such words.
    pub words: usize,
    /// False if the difference did not happen again in a second run.
    pub repeats: bool,
}

/// A lane on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Number of the machine.
    pub machine: usize,
    /// Why the lane stopped.
    pub stop: Option<Stop>,
    /// Instructions it has completed.
    pub count: u64,
    /// All registers.
    pub registers: Registers,
}

impl Side {
    fn of(number: usize, machine: &Machine, lane: usize) -> Result<Side> {
        Ok(Side {
            machine: number,
            stop: machine.stop(lane)?,
            count: machine.total_cycles(lane)?,
            registers: machine.registers(lane)?,
        })
    }
}

impl Difference {
    /// Describes the difference of a lane between the first machine and another; `lanes` differ.
    pub(super) fn new(
        machines: &[Machine],
        other: usize,
        lane: usize,
        lanes: usize,
    ) -> Result<Difference> {
        let pair = [&machines[0], &machines[other]];
        let mut memory = Vec::new();
        for (_, page) in super::written_pages(pair)?.into_iter().filter(|(of, _)| *of == lane) {
            let pages = [read_page(pair[0], lane, page)?, read_page(pair[1], lane, page)?];
            let words = |side: usize| {
                let words = pages[side].chunks_exact(8);
                words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            };
            let both = words(0).zip(words(1)).map(|(a, b)| [a, b]);
            let addresses = (page * PAGE..).step_by(8);
            memory.extend(addresses.zip(both).filter(|(_, [a, b])| a != b));
        }
        let words = memory.len();
        memory.truncate(SHOWN);
        let sides = [Side::of(0, pair[0], lane)?, Side::of(other, pair[1], lane)?];
        let count = sides[0].count.min(sides[1].count);
        let (instruction, repeats) = (None, true);
        Ok(Difference { lane, lanes, instruction, count, sides, memory, words, repeats })
    }

    /// Adds the instruction that the lane is about to execute, from a machine that has run up to there.
    pub(super) fn add_instruction(&mut self, machine: &Machine) -> Result<()> {
        let (pc, mut word) = (machine.pc(self.lane)?, [0; 4]);
        self.count = machine.total_cycles(self.lane)?;
        // If there is no word, the lane stops because of that.
        let exists = pc.checked_add(4).is_some_and(|end| end <= machine.memory_size());
        if exists {
            machine.read_memory(self.lane, pc, &mut word)?;
        }
        self.instruction = exists.then_some((pc, u32::from_le_bytes(word)));
        Ok(())
    }

    /// Returns the registers that differ, with their values on both machines.
    pub fn registers(&self) -> Vec<(Reg, [u128; 2])> {
        let value = |side: usize, reg: Reg| self.sides[side].registers.get(reg);
        let both = Reg::all().map(|reg| (reg, [value(0, reg), value(1, reg)]));
        both.filter(|(_, [a, b])| a != b).collect()
    }
}

/// True if stops, counts or registers of a lane differ.
pub(super) fn registers_differ(pair: [&Machine; 2], lane: usize) -> Result<bool> {
    let [a, b] = pair;
    Ok(a.stop(lane)? != b.stop(lane)?
        || a.total_cycles(lane)? != b.total_cycles(lane)?
        || a.registers(lane)? != b.registers(lane)?)
}

/// True if a page of a lane's memory differs.
pub(super) fn page_differs(pair: [&Machine; 2], lane: usize, page: u64) -> Result<bool> {
    Ok(read_page(pair[0], lane, page)? != read_page(pair[1], lane, page)?)
}

fn read_page(machine: &Machine, lane: usize, page: u64) -> Result<Box<[u8]>> {
    let mut bytes = vec![0; PAGE as usize].into_boxed_slice();
    machine.read_memory(lane, page * PAGE, &mut bytes)?;
    Ok(bytes)
}
