//! Makes cases from rows: words, registers and memory, with a bias towards hard values.
//!
//! A case may touch only the data window and addresses beyond the end of memory; a literal load may also read the rest
//! of memory, which is zero except for the code. Base registers are steered there: the case is evaluated, and the base
//! is moved by as much as the access missed its target. Cases that still touch something else are dropped and counted.

use std::ops::Range;

use kvrm_a64::{Instruction, decode};
use kvrm_oracles::{
    CODE_END, CODE_START, Case, MEMORY_END, MEMORY_START, State, WINDOW_LEN, WINDOW_START,
};

use crate::flat::{Flat, Touch};
use crate::random::Random;
use crate::sequence;
use crate::vectors::{self, Touches, touches};

/// A case made to test one instruction.
#[derive(Clone, Debug)]
pub struct Test {
    /// The row tested.
    pub row: &'static Instruction,
    /// Its word; the case may have others around it.
    pub word: u32,
    /// The case.
    pub case: Case,
    /// The memory that it touched when we evaluated it.
    pub touches: Vec<Touch>,
}

impl Test {
    /// Returns the value of one of the word's fields; 0 if it has none of that name.
    pub fn field(&self, name: &str) -> u32 {
        self.row.pattern.field(name).map_or(0, |f| f.get(self.word))
    }

    /// Returns the last memory touched.
    pub fn touch(&self) -> Option<Touch> {
        self.touches.last().copied()
    }
}

/// Bytes between the code of one case and the next: room for a sequence and the oracle's end marker.
const CODE_STRIDE: u64 = 4 * (sequence::MAX_WORDS as u64 + 1);
/// Words drawn for a row before its `allocated` condition is taken to be impossible.
const MAX_DRAWS: usize = 10_000;
/// Attempts at a case before its row is taken to be untestable.
const MAX_ATTEMPTS: usize = 1000;

/// Returns the number of states that a word of a row is tried with: several if it touches vectors, and more if it computes
/// with floating-point numbers. There is more to such contents than to the fields of the word, and translating it takes
/// longer than running it often.
fn states_per_word(row: &'static Instruction) -> u64 {
    match touches(row) {
        Touches { fpcr: true, .. } => 16,
        Touches { vectors: true, .. } => 8,
        _ => 1,
    }
}

/// Makes cases.
pub struct Generator {
    random: Random,
    flat: Flat,
    code_address: u64,
    /// Cases made but not used, because they touch memory that they must not touch.
    pub dropped: u64,
}

impl Generator {
    /// Makes a generator that uses these random numbers.
    pub fn new(random: Random) -> Generator {
        Generator { random, flat: Flat::default(), code_address: CODE_START, dropped: 0 }
    }

    /// Makes cases for a row.
    ///
    /// # Panics
    /// If the row has no words or no case keeps to the rules: a mistake in the table or here.
    pub fn tests(&mut self, row: &'static Instruction, count: u64) -> Vec<Test> {
        let states = states_per_word(row);
        let mut tests = Vec::with_capacity(count as usize);
        while (tests.len() as u64) < count {
            let first = self.test(row);
            let more = (states - 1).min(count - tests.len() as u64 - 1);
            let others: Vec<_> = (0..more).filter_map(|_| self.another(&first)).collect();
            self.dropped += more - others.len() as u64;
            tests.push(first);
            tests.extend(others);
        }
        tests
    }

    /// Makes cases for a row of vectors of halves, with every half there is: eight at a time.
    pub fn halves(&mut self, row: &'static Instruction) -> Vec<Test> {
        let word = random_word(&mut self.random, row);
        let address = self.code_address;
        let with_halves = |first: u16| {
            let mut test = self.with_code(row, word, vec![word], address)?;
            let bytes = (first..=first + 7).flat_map(u16::to_le_bytes).collect::<Vec<_>>();
            let halves = u128::from_le_bytes(bytes.try_into().expect("eight halves"));
            test.case.state.v[test.field("Rn") as usize] = halves;
            Some(test)
        };
        (0..=u16::MAX).step_by(8).filter_map(with_halves).collect()
    }

    fn test(&mut self, row: &'static Instruction) -> Test {
        for _ in 0..MAX_ATTEMPTS {
            if let Some(test) = self.attempt(row) {
                self.code_address = next_code_address(self.code_address);
                return test;
            }
            self.dropped += 1;
        }
        panic!("no case for {}", row.name);
    }

    fn attempt(&mut self, row: &'static Instruction) -> Option<Test> {
        let random = &mut self.random;
        let mut word = random_word(random, row);
        if is_literal(row) {
            let target = random_literal(random, self.code_address);
            word = aim_literal(row, word, self.code_address, target);
        }
        let code = sequence::around(random, row, word);
        self.with_code(row, word, code, self.code_address)
    }

    /// Makes a case with the code of another.
    fn another(&mut self, test: &Test) -> Option<Test> {
        self.with_code(test.row, test.word, test.case.code.clone(), test.case.code_address)
    }

    fn with_code(
        &mut self,
        row: &'static Instruction,
        word: u32,
        code: Vec<u32>,
        code_address: u64,
    ) -> Option<Test> {
        let random = &mut self.random;
        let mut case = Case {
            max_instructions: if code.len() == 1 { 1 } else { 1000 },
            code,
            code_address,
            state: random_state(random),
            vectors: touches(row).vectors,
            window: random_window(random),
        };
        if case.vectors {
            vectors::fill(random, row, word, &mut case.state);
        }
        let mut test = Test { row, word, case, touches: Vec::new() };
        aim_branch(random, &mut test, MEMORY_START..MEMORY_END);
        if let Some(base) = base_register(&test) {
            steer(&mut self.flat, &mut test, base, random_target(&mut self.random));
        }
        if row.group == "Compare and swap" && self.random.once_in(2) {
            expect_what_is_there(&mut test);
        }
        test.touches = self.flat.run(&test.case).1.to_vec();
        test.touches.iter().all(|t| is_allowed(&test, *t)).then_some(test)
    }
}

/// Moves the base register so that the access hits a target.
pub(crate) fn steer(flat: &mut Flat, test: &mut Test, base: u32, target: u64) {
    set_base(&mut test.case.state, base, target);
    for _ in 0..3 {
        let Some(touch) = flat.run(&test.case).1.first().copied() else {
            return;
        };
        // DC ZVA touches the whole block that the address lies in.
        let missed = target.wrapping_sub(touch.addr);
        if missed == 0 || touch.len == 64 {
            return;
        }
        let share = missed as i64 / base_weight(test);
        let moved = get_base(&test.case.state, base).wrapping_add_signed(share);
        set_base(&mut test.case.state, base, moved);
    }
}

/// Returns the code address of the next case. It rises from case to case, then starts over: oracles discard their
/// translations whenever it does not rise.
fn next_code_address(address: u64) -> u64 {
    let next = address + CODE_STRIDE;
    if next + CODE_STRIDE > CODE_END { CODE_START } else { next }
}

fn is_register(field: &str) -> bool {
    matches!(field, "Rd" | "Rn" | "Rm" | "Ra" | "Rt" | "Rt2" | "Rs")
}

/// Draws a word of the row.
pub fn random_word(random: &mut Random, row: &'static Instruction) -> u32 {
    for _ in 0..MAX_DRAWS {
        let word = draw_word(random, row);
        if decode(word).is_some_and(|found| found.index == row.index) {
            return word;
        }
    }
    panic!("no word found for {}", row.name);
}

/// True if the bits that the manual draws as (0) or (1) have these values.
pub fn has_preferred_bits(row: &Instruction, word: u32) -> bool {
    let fields = row.pattern.fields.iter().fold(0, |bits, f| f.set(bits, u32::MAX));
    word & !(row.pattern.mask | fields) == row.pattern.preferred
}

fn draw_word(random: &mut Random, row: &'static Instruction) -> u32 {
    let pattern = &row.pattern;
    let mut word = pattern.value | pattern.preferred;
    if random.once_in(16) {
        // Random values for the bits that the manual draws as (0) or (1), too.
        word = pattern.value | random.next() as u32 & !pattern.mask;
    }
    let mut last_register = random.below(32) as u32;
    for field in &pattern.fields {
        let value = if is_register(field.name) {
            last_register = match random.below(8) {
                0 => 31,
                1 | 2 => last_register,
                _ => random.below(32) as u32,
            };
            last_register
        } else {
            random_immediate(random, field.len)
        };
        word = field.set(word, value);
    }
    word
}

fn random_immediate(random: &mut Random, bits: u32) -> u32 {
    let max = u32::MAX >> (32 - bits);
    match random.below(16) {
        0 => 0,
        1 => max,
        2 => 1 << (bits - 1),
        3 => max >> 1,
        4 => 1,
        5 => random.below(16) as u32,
        _ => random.next() as u32,
    }
}

/// Makes registers with hard values, some of them related to each other; the vectors are zero.
pub fn random_state(random: &mut Random) -> State {
    let mut state = State {
        x: std::array::from_fn(|_| random.hard_value()),
        sp: random.hard_value(),
        nzcv: random.next() & 0xf000_0000,
        tpidr_el0: random.hard_value(),
        ..State::default()
    };
    for _ in 0..4 {
        let value = state.x[random.below(31) as usize];
        let related = [value, value.wrapping_neg(), !value, value.wrapping_add(1), value << 32];
        state.x[random.below(31) as usize] = random.pick(&related);
    }
    state
}

/// Makes contents for the data window.
pub fn random_window(random: &mut Random) -> [u8; WINDOW_LEN] {
    let mut window = [0; WINDOW_LEN];
    for bytes in window.as_chunks_mut::<8>().0 {
        *bytes = random.hard_value().to_le_bytes();
    }
    window
}

/// Picks an address to access: mostly in the window, at any alignment; else near the end of memory, or far outside.
fn random_target(random: &mut Random) -> u64 {
    let inside = WINDOW_START + random.below(WINDOW_LEN as u64);
    match random.below(16) {
        0 => (1 << 40) + random.below((1 << 46) - (1 << 40)),
        // Beyond what any system gives to a program; without a tag in bits 63 to 56.
        1 => ((1 << 52) + random.below(1 << 52)) & !(random.pick(&[0, 7, 15])),
        2 | 3 => MEMORY_END - 16 + random.below(32),
        4..=9 => inside & !15,
        10 | 11 => inside & !(random.pick(&[1, 3, 7])),
        _ => inside,
    }
}

/// Returns the base register of an access; 31 is the stack pointer.
pub(crate) fn base_register(test: &Test) -> Option<u32> {
    if test.row.name == "DC_ZVA" {
        return Some(test.field("Rt")).filter(|r| *r != 31);
    }
    let accesses = test.row.group.contains("oad")
        || test.row.group.contains("wap")
        || test.row.group.contains("tomic")
        || test.row.group == "LDAPR/STLR (unscaled immediate)";
    if test.row.name == "CLREX" {
        return Some(sequence::CLREX_BASE);
    }
    (accesses && test.row.pattern.field("Rn").is_some()).then(|| test.field("Rn"))
}

/// Returns by how much the address moves when the base moves by one: more than one if the base is also the offset.
fn base_weight(test: &Test) -> i64 {
    let is_offset = test.row.pattern.field("Rm").is_some() && test.field("Rm") == test.field("Rn");
    if !is_offset || test.field("Rn") == 31 {
        return 1;
    }
    // The size of vector registers has a third bit.
    let is_quad = test.word >> 26 & 1 == 1 && test.word >> 23 & 1 == 1;
    let size = if is_quad { 4 } else { test.word >> 30 };
    let scale = if test.field("S") == 1 { size } else { 0 };
    1 + (1 << scale)
}

pub(crate) fn get_base(state: &State, register: u32) -> u64 {
    if register == 31 { state.sp } else { state.x[register as usize] }
}

fn set_base(state: &mut State, register: u32, value: u64) {
    match register {
        31 => state.sp = value,
        _ => state.x[register as usize] = value,
    }
}

pub(crate) fn is_literal(row: &Instruction) -> bool {
    row.group.starts_with("Load register (literal)")
}

/// Picks what a literal load reads: the window, the end of memory, zero memory or the code itself.
fn random_literal(random: &mut Random, pc: u64) -> u64 {
    match random.below(8) {
        0 => pc,
        1 => MEMORY_START + random.below(MEMORY_END - MEMORY_START),
        2 => MEMORY_END - 16 + random.below(32),
        3 => MEMORY_END + random.below(0x80000),
        _ => WINDOW_START + random.below(WINDOW_LEN as u64),
    }
}

/// Points a literal load at a target.
pub(crate) fn aim_literal(row: &Instruction, word: u32, pc: u64, target: u64) -> u32 {
    let field = row.pattern.field("imm19").expect("a literal load has an offset");
    field.set(word, (target.wrapping_sub(pc) >> 2) as u32)
}

/// Gives a branch to a register a useful target: some near, some in `memory`, most far away, few with a tag.
pub(crate) fn aim_branch(random: &mut Random, test: &mut Test, memory: Range<u64>) {
    if test.row.group != "Unconditional branch (register)" {
        return;
    }
    let pc = test.case.code_address;
    if test.row.name == "BLR" && random.once_in(64) {
        // The target must be read before the link register is written.
        test.word = sequence::with(test.row, test.word, &[("Rn", 30)]);
        test.case.code = vec![test.word];
        test.case.state.x[30] = pc;
        return;
    }
    let rn = test.field("Rn") as usize;
    if rn == 31 {
        return;
    }
    let far = random.next() >> random.pick(&[8, 16, 24, 32]);
    test.case.state.x[rn] = match random.below(32) {
        0 => pc,
        1 => pc + 4,
        2 => random.next(),
        3 => test.case.state.x[rn],
        4..=7 => memory.start + random.below(memory.end - memory.start),
        8..=10 => far,
        _ => far & !3,
    };
}

/// Makes a compare and swap succeed, by putting what it compares with into memory.
fn expect_what_is_there(test: &mut Test) {
    let Some(base) = base_register(test) else {
        return;
    };
    let addr = get_base(&test.case.state, base);
    let offset = addr.wrapping_sub(WINDOW_START) as usize;
    let Some(place) = test.case.window.get_mut(offset..).and_then(|w| w.first_chunk_mut::<16>())
    else {
        return;
    };
    let value = |r: usize| test.case.state.x.get(r).copied().unwrap_or(0);
    let rs = test.row.pattern.field("Rs").map_or(0, |f| f.get(test.word)) as usize;
    let (low, high) = (value(rs), value(rs | 1));
    match test.row.name {
        "CASP_W" => place[..8].copy_from_slice(&(low & 0xffff_ffff | high << 32).to_le_bytes()),
        "CASP_X" => *place = (u128::from(high) << 64 | u128::from(low)).to_le_bytes(),
        _ => place[..8].copy_from_slice(&low.to_le_bytes()),
    }
}

/// True if a case may touch this.
fn is_allowed(test: &Test, touch: Touch) -> bool {
    let Touch { addr, len, write } = touch;
    // Not with a tag in the top byte, which the oracles treat differently, and not below the oracles' memory.
    if !(MEMORY_START..1 << 56).contains(&addr) {
        return false;
    }
    if addr >= WINDOW_START {
        return true;
    }
    // The oracle's end marker follows the code.
    let marker = crate::ours::end_of(&test.case);
    let sees_marker = addr < marker + 4 && addr + u64::from(len) > marker;
    !write && is_literal(test.row) && !sees_marker
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::row;

    #[test]
    fn words_with_vectors_are_tried_in_several_states() {
        let tests = Generator::new(Random::new(1)).tests(row("MRS_FPSR"), 20);
        let code = |test: &Test| (test.case.code_address, test.case.code.clone());
        let codes: Vec<_> = tests.chunk_by(|a, b| code(a) == code(b)).map(<[_]>::len).collect();
        assert_eq!(codes, [8, 8, 4]);
        assert!(tests.iter().all(|test| test.case.vectors));
        let states: Vec<_> = tests.iter().map(|test| test.case.state.v).collect();
        assert!((1..20).all(|i| !states[..i].contains(&states[i])));
    }

    #[test]
    fn other_words_are_tried_once() {
        let tests = Generator::new(Random::new(1)).tests(row("ADD_shift_X"), 20);
        assert!(tests.windows(2).all(|pair| pair[0].case.code != pair[1].case.code));
        assert!(
            tests.iter().all(|t| !t.case.vectors && t.case.state == t.case.state.without_vectors())
        );
    }
}
