//! The outcome of a lane, and descriptions of differences.

use kvrm::{Machine, Registers, Stop};

use super::case::LaneCase;
use crate::describe::{before, instruction, registers};
use crate::ours::state;

/// A lane after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The registers.
    pub registers: Registers,
    /// Why it stopped.
    pub stop: Option<Stop>,
    /// Instructions completed in this run.
    pub cycles: u64,
    /// Instructions completed so far.
    pub total_cycles: u64,
}

impl Outcome {
    /// Returns the outcome of a lane.
    pub fn of(machine: &Machine, lane: usize) -> kvrm::Result<Outcome> {
        Ok(Outcome {
            registers: machine.registers(lane)?,
            stop: machine.stop(lane)?,
            cycles: machine.cycles(lane)?,
            total_cycles: machine.total_cycles(lane)?,
        })
    }
}

/// All that is compared of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// After the first run.
    pub after_first: Outcome,
    /// After the last.
    pub at_end: Outcome,
    /// The memory that the case says to compare.
    pub memory: Vec<u8>,
}

/// Describes a case and how it ended on two engines.
pub fn describe(case: &LaneCase, endings: [(&str, &Ending); 2]) -> String {
    let mut text = format!("{}, case {}:\n", case.subject.name(), case.number);
    for (at, word) in (case.slot.start..).step_by(4).zip(case.words) {
        let mark = if at == case.registers.pc { "  starts here" } else { "" };
        text += &format!("    {at:#x}: {}{mark}\n", instruction(word));
    }
    text += &format!("  before: {}\n", before(&state(&case.registers), &case.words));
    let [expected, found] = endings.map(|(_, ending)| ending);
    let same_at_first = expected.after_first == found.after_first;
    let run = if same_at_first { "last" } else { "first" };
    for (name, ending) in endings {
        let outcome = if same_at_first { &ending.at_end } else { &ending.after_first };
        text += &format!("  {name}, {run} run: {}\n", changes(case, outcome));
    }
    text + &memory_differences(case, endings)
}

fn changes(case: &LaneCase, outcome: &Outcome) -> String {
    let Outcome { registers: after, stop, cycles, total_cycles } = outcome;
    let stop = stop.map_or("no stop".to_string(), |stop| stop.to_string());
    let changed = registers(&state(after), &state(&case.registers));
    format!(
        "{stop}, {cycles} instructions, {total_cycles} in all, pc {:#x}; changed: {changed}",
        after.pc
    )
}

fn memory_differences(case: &LaneCase, endings: [(&str, &Ending); 2]) -> String {
    let [(first, a), (second, b)] = endings;
    let bytes = (case.watched.start..).zip(a.memory.iter().zip(&b.memory));
    let different: Vec<_> = bytes
        .filter(|(_, (a, b))| a != b)
        .map(|(at, (a, b))| format!("{at:#x}: {a:02x} and {b:02x}"))
        .collect();
    if different.is_empty() {
        return String::new();
    }
    format!("  memory, {first} and {second}: {}\n", different.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::case::Subject;
    use crate::sequence::row;

    fn case() -> LaneCase {
        LaneCase {
            subject: Subject::Row(row("EOR_shift_X")),
            number: 7,
            slot: 0x1010..0x1020,
            words: [0xd503_201f, 0xd503_201f, 0xf900_0041, 0xd400_0021],
            registers: Registers { pc: 0x1018, ..Registers::default() },
            watched: 0x8000..0x8008,
        }
    }

    fn ending() -> Ending {
        let registers = Registers { pc: 0x101c, ..Registers::default() };
        let stop = Some(Stop::MaxCycles);
        let after_first = Outcome { registers, stop, cycles: 1, total_cycles: 1 };
        Ending { after_first, at_end: after_first, memory: vec![0; 8] }
    }

    #[test]
    fn a_difference_in_anything_is_one_and_is_shown() {
        type Change = fn(&mut Ending);
        let changes: [(Change, &str); 12] = [
            (|e| e.after_first.registers.x[30] ^= 1 << 63, "x30=0x8000000000000000"),
            (|e| e.after_first.registers.sp = 16, "sp=0x10"),
            (|e| e.at_end.registers.nzcv = 1 << 31, "nzcv=0x80000000"),
            (|e| e.at_end.registers.tpidr_el0 = 1, "tpidr_el0=0x1"),
            (
                |e| e.after_first.registers.v[31] = 1 << 127,
                "v31=0x80000000000000000000000000000000",
            ),
            (|e| e.at_end.registers.fpcr = 1 << 22, "fpcr=0x400000"),
            (|e| e.at_end.registers.fpsr = 1, "fpsr=0x1"),
            (|e| e.at_end.registers.pc = 0x1234, "pc 0x1234"),
            (|e| e.at_end.stop = Some(Stop::Halt { imm: 3 }), "HALT #0x3"),
            (|e| e.at_end.cycles = 2, "2 instructions"),
            (|e| e.at_end.total_cycles = 9, "9 in all"),
            (|e| e.memory[6] = 0xab, "0x8006: 00 and ab"),
        ];
        for (change, shown) in changes {
            let (expected, mut found) = (ending(), ending());
            change(&mut found);
            assert_ne!(expected, found);
            let text = describe(&case(), [("eval", &expected), ("cuda", &found)]);
            assert!(text.contains(shown), "{shown} not in {text}");
        }
    }
}
