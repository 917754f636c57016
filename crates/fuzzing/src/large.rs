//! Programs larger than a region of translated code, with calls and loops between regions.
//!
//! A program is a long loop followed by functions. In the loop, branches go forward, or back at most a few times, so
//! that every run gets far; a few random instructions may do anything.

use crate::program::{Program, Setup};
use crate::words::{PART_BASE, calm, far_branch, is_calm, own_access};
use crate::{Habit, Source, word};

/// The most instructions in a region.
const REGION: u64 = 256;
/// The most instructions in the loop.
const WORDS: u64 = 4 * REGION;
/// The number of functions, and the most instructions in each.
const FUNCTIONS: u64 = 4;
const FUNCTION: u64 = 64;
/// The most instructions of a run.
const LONGEST: u64 = 4096;

/// Where instructions access memory, unless it is the program itself.
const DATA: u64 = 0x1000;

/// `subs x19, x19, #1`.
const COUNT_DOWN: u32 = 0xf100_0673;
/// `tbnz x19, #2`, which after [`COUNT_DOWN`] is taken at most four times in a row; the distance in words starts at bit
/// 5.
const AGAIN: u32 = 0x3710_0013;
/// `b` and `bl`; the distance in words is in the lowest bits.
const B: u32 = 0x1400_0000;
const BL: u32 = 0x9400_0000;
/// `adr x17` and `blr x17`; the distance in words starts at bit 5.
const ADR: u32 = 0x1000_0011;
const BLR: u32 = 0xd63f_0220;
const RET: u32 = 0xd65f_03c0;

/// Compares the CPU engine with the reference on the large program in `bytes`.
pub fn check(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let setup = Setup::from_source(&mut source);
    program(&mut source).check(|program| program.difference(setup));
}

/// Makes a large program from the remaining bytes.
pub fn program(source: &mut Source<'_>) -> Program {
    let within = source.one_in(8).then(|| 16 * source.below(WORDS / 4));
    let mut program = Program::around(source, LONGEST, words);
    let base = within.map_or(DATA, |offset| crate::program::CODE + offset);
    program.registers[usize::from(PART_BASE)] = base;
    program
}

fn words(source: &mut Source<'_>) -> Vec<u32> {
    let len = (REGION + 1 + source.below(WORDS - REGION)) as usize;
    let functions: Vec<usize> =
        (0..FUNCTIONS).map(|_| 1 + source.below(FUNCTION) as usize).collect();
    // After the loop, one after the other.
    let starts = functions.iter().scan(len + 1, |next, len| {
        let start = *next;
        *next += len + 1;
        Some(start)
    });
    let mut words = body(source, len, &starts.collect::<Vec<_>>());
    words.push(B | low_bits(-(len as i32), 26));
    for len in functions {
        words.extend((0..len).map(|_| calm(source)));
        words.push(RET);
    }
    words
}

/// Makes the loop, without the branch at its end.
fn body(source: &mut Source<'_>, len: usize, functions: &[usize]) -> Vec<u32> {
    let habit = Habit::from_source(source);
    let mut words: Vec<u32> = vec![COUNT_DOWN];
    while words.len() < len && !source.is_empty() {
        let here = words.len();
        let distance = |to: usize, from: usize| to as i32 - from as i32;
        match source.u8() % 32 {
            0..3 => {
                // Mostly near, or few instructions would be executed.
                let reach = if source.one_in(4) { len - here } else { (len - here).min(24) };
                let to = here + 1 + source.below(reach as u64) as usize;
                words.push(far_branch(source, distance(to, here)));
            }
            3 => {
                let to = source.below(here as u64 + 1) as usize;
                words.extend([COUNT_DOWN, AGAIN | low_bits(distance(to, here + 1), 14) << 5]);
            }
            4 => words.push(BL | low_bits(distance(one_of(source, functions), here), 26)),
            5 => {
                let distance = distance(one_of(source, functions), here);
                words.extend([ADR | low_bits(distance, 19) << 5, BLR]);
            }
            6 if source.one_in(2) => words.push(word(source, habit, here)),
            7 => {
                let (from, count) = (source.below(here as u64) as usize, source.below(64));
                let copy = words[from..].iter().copied().filter(is_calm).take(count as usize);
                words.extend(copy.collect::<Vec<_>>());
            }
            8..16 => words.push(own_access(source)),
            _ => words.push(calm(source)),
        }
    }
    // If there were too few bytes, repeat what there is.
    let calm: Vec<u32> = words.iter().copied().filter(is_calm).collect();
    words.extend(calm.into_iter().cycle().take(len.saturating_sub(words.len())));
    words.truncate(len);
    words
}

fn one_of(source: &mut Source<'_>, functions: &[usize]) -> usize {
    functions[usize::from(source.u8()) % functions.len()]
}

fn low_bits(number: i32, bits: u32) -> u32 {
    number as u32 & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_bytes;

    #[test]
    fn programs_are_larger_than_a_region() {
        for len in [0, 100, 1000, 4000] {
            let bytes = random_bytes(len as u64, len);
            let program = program(&mut Source::new(&bytes));
            assert!(program.words.len() as u64 > REGION, "{len} bytes");
        }
    }
}
