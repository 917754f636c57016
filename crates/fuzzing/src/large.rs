//! Programs larger than a region of translated code, with calls and loops from one region to another.

use crate::program::{Program, Setup};
use crate::words::far_branch;
use crate::{Habit, Source, word};

/// Instructions a region has at the most.
const REGION: u64 = 256;
/// Instructions in a program at the most: half of memory.
const WORDS: u64 = 4 * REGION;
/// Instructions of a run at the most.
const LONGEST: u64 = 4096;
/// Branches between regions meet at every so manieth instruction.
const TARGETS: u64 = 32;

/// `subs x19, x19, #1`, for which `b.ne` is the end of a loop.
const COUNT_DOWN: u32 = 0xf100_0673;
const B_NE: u32 = 0x5400_0001;
const RET: u32 = 0xd65f_03c0;

/// Compares the CPU engine with the reference on the large program in `bytes`.
pub fn check(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let setup = Setup::from_source(&mut source);
    program(&mut source).check(|program| program.difference(setup));
}

/// Makes a large program of the bytes that are left.
pub fn program(source: &mut Source<'_>) -> Program {
    Program::around(source, LONGEST, words)
}

/// Words of a few bytes each, until those are used up; from then on, copies of what there is already.
fn words(source: &mut Source<'_>) -> Vec<u32> {
    let len = (REGION + 1 + source.below(WORDS - REGION)) as usize;
    let habit = Habit::from_source(source);
    let mut words = Vec::with_capacity(len);
    while words.len() < len {
        match source.u8() % 16 {
            _ if source.is_empty() => words.push(copied(&words)),
            0 | 1 => {
                let distance = distance(source, words.len(), len);
                words.push(far_branch(source, distance));
            }
            2 => {
                let back = distance(source, words.len() + 1, len).min(-1);
                words.extend([COUNT_DOWN, B_NE | (back as u32 & 0x7_ffff) << 5]);
            }
            3 => words.push(RET),
            4 | 5 => {
                let again = source.below(2 * TARGETS) as usize;
                let from = source.below(words.len() as u64 + 1) as usize;
                let copy: Vec<u32> = words.iter().skip(from).take(again).copied().collect();
                words.extend(copy);
            }
            _ => words.push(word(source, habit, words.len())),
        }
    }
    words.truncate(len);
    words
}

/// The word that comes next if the words so far are repeated.
fn copied(words: &[u32]) -> u32 {
    // Not from the first on, or a program of no bytes would be one instruction.
    words.get(words.len() / 2).copied().unwrap_or(COUNT_DOWN)
}

/// From the instruction `from` to one where branches meet, in instructions.
fn distance(source: &mut Source<'_>, from: usize, len: usize) -> i32 {
    let target = source.below(len as u64) / TARGETS * TARGETS;
    target as i32 - from as i32
}
