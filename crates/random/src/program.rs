//! Short random programs for very many lanes at a time.
//!
//! All lanes of a machine start from one image: data, then the *primer*, then a program for each lane except the first,
//! whose program is the primer. Programs are made from a *palette*, one shape of each row, so that one kernel runs them
//! all: engines that decode what an address can reach find every shape in the primer before anything is executed.
//! Another seed gives other shapes.
//!
//! Memory is accessed through registers that no other instruction writes and that point to the data, or outside memory.
//! So lanes hardly ever change code; other tests do that.

use kvrm_a64::state::{FPCR_MASK, FPSR_MASK, V_REGISTERS};
use kvrm_a64::{Instruction, table};

use crate::Random;
use crate::vectors::Element;

/// Words of a program.
pub const WORDS: u64 = 64;
/// Bytes of data, at the beginning of memory.
pub const DATA: u64 = 0x8000;
/// Enough for 3,900 lanes.
const LEAST_MEMORY: u64 = 1 << 20;

/// Registers that point to memory.
const BASES: std::ops::Range<u32> = 20..28;
/// Points to the last bytes of memory, or anywhere.
const OUTSIDE: u32 = 28;
/// A small number, to be added to a base.
const OFFSET: u32 = 29;
const LINK: u32 = 30;

/// `cbz x0, .+8`
const SKIP: u32 = 0xb400_0040;
/// `hlt #0`
const HALT: u32 = 0xd440_0000;

/// Words that differ in registers and immediates only.
struct Shape {
    row: &'static Instruction,
    /// One of them.
    word: u32,
    /// The bits in which all agree.
    mask: u32,
}

/// The programs of a machine's lanes.
pub struct Programs {
    seed: u64,
    lanes: usize,
    palette: Vec<Shape>,
}

/// The state that a lane starts in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Where its program begins.
    pub pc: u64,
    /// Bytes of the program.
    pub len: u64,
    /// X0 to X30.
    pub x: [u64; 31],
    /// The stack pointer.
    pub sp: u64,
    /// The flags, in bits 31 to 28.
    pub nzcv: u64,
    /// V0 to V31.
    pub v: [u128; V_REGISTERS],
    /// The floating-point control register.
    pub fpcr: u64,
    /// The floating-point status register.
    pub fpsr: u64,
}

impl Programs {
    /// Makes the programs of a seed for `lanes` lanes, from all rows or from `rows` rows chosen at random.
    ///
    /// ```
    /// use kvrm_random::program::Programs;
    /// let programs = Programs::new(1, 33, None);
    /// assert_eq!(programs.image(0), programs.image(0));
    /// assert_ne!(programs.image(0), programs.image(1));
    /// assert!(programs.start(0, 32).pc < programs.memory());
    /// ```
    pub fn new(seed: u64, lanes: usize, rows: Option<usize>) -> Programs {
        let mut random = Random::part(seed, u64::MAX);
        let mut palette: Vec<_> = table().iter().map(|row| Shape::new(&mut random, row)).collect();
        while palette.len() > rows.unwrap_or(palette.len()).max(1) {
            palette.swap_remove(random.below(palette.len() as u64) as usize);
        }
        palette.sort_by_key(|shape| shape.row.index);
        Programs { seed, lanes, palette }
    }

    fn primer_len(&self) -> u64 {
        8 * self.palette.len() as u64 + 4
    }

    fn program(&self, lane: usize) -> u64 {
        DATA + self.primer_len() + (lane as u64 - 1) * 4 * WORDS
    }

    /// Returns the bytes of memory, rounded up generously: kernels depend on the size, and should be the same for most
    /// numbers of lanes.
    pub fn memory(&self) -> u64 {
        self.program(self.lanes.max(1)).next_power_of_two().max(LEAST_MEMORY)
    }

    /// Returns the memory that all lanes start a round with.
    pub fn image(&self, round: u64) -> Vec<u8> {
        let mut random = Random::part(self.seed, round << 32);
        let mut image = Vec::with_capacity(self.memory() as usize);
        (0..DATA / 8).for_each(|_| image.extend(random.hard_value().to_le_bytes()));
        let primer = self.palette.iter().flat_map(|shape| [SKIP, shape.word]).chain([HALT]);
        image.extend(primer.flat_map(u32::to_le_bytes));
        for _ in 1..self.lanes {
            for position in 0..WORDS - 1 {
                let shape = &self.palette[random.below(self.palette.len() as u64) as usize];
                image.extend(shape.another(&mut random, position).to_le_bytes());
            }
            image.extend(HALT.to_le_bytes());
        }
        image
    }

    /// Returns the state that a lane starts a round in.
    pub fn start(&self, round: u64, lane: usize) -> Start {
        let mut random = Random::part(self.seed, (round << 32) + 1 + lane as u64);
        let mut x = std::array::from_fn(|_| random.hard_value());
        for base in BASES {
            let unaligned = if random.once_in(8) { random.below(16) } else { 0 };
            x[base as usize] = DATA / 4 + 16 * random.below(DATA / 32) + unaligned;
        }
        let outside = self.memory() - random.below(32);
        x[OUTSIDE as usize] = if random.once_in(2) { outside } else { random.next() };
        x[OFFSET as usize] = random.below(64);
        let (pc, len) = match lane {
            0 => (DATA, self.primer_len()),
            lane => (self.program(lane), 4 * WORDS),
        };
        x[LINK as usize] = pc + 4 * random.below(len / 4);
        if lane == 0 {
            // So that it branches around every shape, to the primer's end.
            x[0] = 0;
        }
        let (sp, nzcv) = (DATA / 2 + 16 * random.below(64), random.below(16) << 28);
        let v = std::array::from_fn(|_| {
            let element = random.pick(&Element::ALL);
            random.hard_vector(element)
        });
        // Most programs leave the rounding mode and the others as they are.
        let fpcr = random.hard_fpcr() & FPCR_MASK;
        let fpsr = if random.once_in(2) { random.next() & FPSR_MASK } else { 0 };
        Start { pc, len, x, sp, nzcv, v, fpcr, fpsr }
    }
}

impl Shape {
    /// Picks a shape of a row.
    fn new(random: &mut Random, row: &'static Instruction) -> Shape {
        let word = loop {
            let word = random.next() as u32 & !row.pattern.mask | row.pattern.value;
            if row.matches(word) {
                break word;
            }
        };
        Shape { row, word: tamed(random, row, word, 0), mask: row.shape_bits() }
    }

    /// Picks another word of the shape, for a position in a program.
    fn another(&self, random: &mut Random, position: u64) -> u32 {
        let word = random.next() as u32 & !self.mask | self.word & self.mask;
        match self.row.matches(word) {
            true => tamed(random, self.row, word, position),
            // Some values of its fields are unallocated.
            false => self.word,
        }
    }
}

fn loads_or_stores(row: &Instruction) -> bool {
    row.group.starts_with("Load/store") || row.group.starts_with("Advanced SIMD load/store")
}

fn accesses_memory(row: &Instruction) -> bool {
    let others = ["Atomic memory", "Compare and swap", "LDAPR", "Prefetch"];
    loads_or_stores(row) || others.iter().any(|group| row.group.starts_with(group))
}

/// Changes registers and offsets of a word so that its accesses reach the data and its branches stay in the program,
/// where it has this position. Returns it unchanged if the result would be unallocated.
fn tamed(random: &mut Random, row: &Instruction, word: u32, position: u64) -> u32 {
    let reserved = BASES.start..LINK;
    let mut tame = word;
    for field in &row.pattern.fields {
        let number = field.get(tame);
        tame = match field.name {
            "Rd" | "Rt" | "Rt2" | "Rs" if reserved.contains(&number) => {
                field.set(tame, number - BASES.start)
            }
            "Rn" if accesses_memory(row) => field.set(tame, base(random)),
            "Rm" if loads_or_stores(row) => field.set(tame, OFFSET),
            "Rn" if matches!(row.name, "BR" | "BLR" | "RET") => field.set(tame, LINK),
            "imm26" | "imm19" | "imm14" => {
                let offset = random.below(WORDS).wrapping_sub(position);
                field.set(tame, offset as u32)
            }
            _ => tame,
        };
    }
    if row.matches(tame) { tame } else { word }
}

/// Picks a base register for an access: mostly one that points to data.
fn base(random: &mut Random) -> u32 {
    match random.below(16) {
        0 => OUTSIDE,
        1 => 31,
        _ => BASES.start + random.below(u64::from(BASES.end - BASES.start)) as u32,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use kvrm_a64::decode;

    use super::*;

    fn words(image: &[u8], start: u64) -> Vec<u32> {
        let words = image[start as usize..].chunks_exact(4);
        words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn programs_have_only_shapes_of_the_primer() {
        let programs = Programs::new(7, 257, None);
        let image = programs.image(3);
        let shape = |word: &u32| {
            let row = decode(*word).expect("all words are instructions");
            (row.index, word & row.shape_bits())
        };
        let (primer, rest) = {
            let words = words(&image, DATA);
            let (primer, rest) = words.split_at((programs.primer_len() / 4) as usize);
            (primer.to_vec(), rest.to_vec())
        };
        assert_eq!(rest.len() as u64, 256 * WORDS);
        let shapes: HashSet<_> = primer.iter().map(shape).collect();
        assert!(rest.iter().all(|word| *word == HALT || shapes.contains(&shape(word))));
        let rows: HashSet<_> = rest.iter().map(|word| shape(word).0).collect();
        assert!(rows.len() > table().len() * 9 / 10, "{} rows", rows.len());
    }

    #[test]
    fn fewer_rows_on_request() {
        let programs = Programs::new(7, 2, Some(10));
        assert_eq!(programs.palette.len(), 10);
        assert_eq!(programs.start(0, 0).pc, DATA);
        assert_eq!(programs.image(0).len() as u64, DATA + 84 + 4 * WORDS);
    }
}
