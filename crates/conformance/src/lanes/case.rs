//! Makes the cases that lanes run.
//!
//! Like those for the oracles ([`crate::generate`]), they have a bias towards hard values, and base registers are
//! steered to targets. But they may touch more memory, and its contents are the same for all lanes of a round.

use std::ops::Range;

use kvrm::{PAGE, Registers};
use kvrm_a64::{Instruction, decode};
use kvrm_oracles::{Case, State, WINDOW_LEN};

use super::layout::Layout;
use crate::flat::{Flat, Touch};
use crate::generate::{
    Test, aim_branch, aim_literal, base_register, get_base, is_literal, random_state, random_word,
    steer,
};
use crate::invalid::draw;
use crate::ours;
use crate::random::Random;
use crate::sequence;
use crate::vectors::{self, touches};

/// Attempts at a case before its row is taken to be untestable.
const MAX_ATTEMPTS: usize = 1000;
/// One lane in this many has all its data compared, not just what its case writes.
const ALL_COMPARED: usize = 64;
/// Bytes compared around those that a case writes.
const AROUND: u64 = 16;

/// What a case tests.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// An instruction of this row.
    Row(&'static Instruction),
    /// A word that belongs to no row.
    Unallocated,
}

impl Subject {
    /// Returns the row's name.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Row(row) => row.name,
            Subject::Unallocated => "(unallocated)",
        }
    }

    /// Returns the row's section of the manual.
    pub fn group(self) -> &'static str {
        match self {
            Subject::Row(row) => row.group,
            Subject::Unallocated => "(unallocated)",
        }
    }

    /// Returns a number that no other subject has.
    fn index(self) -> u64 {
        match self {
            Subject::Row(row) => row.index as u64,
            Subject::Unallocated => u64::from(u16::MAX),
        }
    }
}

/// What one lane runs.
#[derive(Clone, Debug)]
pub struct LaneCase {
    /// What it tests.
    pub subject: Subject,
    /// Its number among the cases of its subject.
    pub number: u64,
    /// Where its code is.
    pub slot: Range<u64>,
    /// The code.
    pub words: [u32; sequence::MAX_WORDS + 1],
    /// The registers it starts with.
    pub registers: Registers,
    /// The memory to compare when it has ended.
    pub watched: Range<u64>,
}

impl LaneCase {
    /// Returns where to continue, if not at `pc`: outside its slot, a lane could run the code of another, and write
    /// memory that is not compared.
    pub(crate) fn parking(&self, pc: u64, memory_size: u64) -> Option<u64> {
        let goes_on = self.slot.contains(&pc) || pc >= memory_size || !pc.is_multiple_of(4);
        (!goes_on).then_some(self.slot.end - 4)
    }
}

/// Makes cases of one round, on one thread.
pub(crate) struct Maker<'a> {
    pub(crate) layout: Layout,
    pub(crate) seed: u64,
    /// Contents of the data of all lanes.
    pub(crate) data: &'a [u8],
    /// Whether single instructions begin with a NOP.
    pub(crate) padded: bool,
    flat: Flat,
}

impl<'a> Maker<'a> {
    pub(crate) fn new(layout: Layout, seed: u64, data: &'a [u8], padded: bool) -> Maker<'a> {
        Maker { layout, seed, data, padded, flat: Flat::new(layout.memory_size()) }
    }

    /// Makes the case with this number for a lane. Its random numbers depend on the seed, the subject and the number
    /// alone.
    ///
    /// # Panics
    /// If no case of the row keeps to the rules: a mistake in the table or here.
    pub(crate) fn case(&mut self, lane: usize, subject: Subject, number: u64) -> LaneCase {
        // The lower parts are those of the suite.
        let mut random = Random::part(self.seed, (3 + subject.index()) << 32 | number);
        let row = match subject {
            Subject::Row(row) => row,
            Subject::Unallocated => return self.unallocated(&mut random, lane, number),
        };
        for attempt in 0..MAX_ATTEMPTS {
            // If the first attempt breaks the rules, any shape will do.
            let shape = if attempt == 0 { number } else { u64::MAX };
            let test = self.attempt(&mut random, row, lane, shape);
            if test.touches.iter().all(|touch| self.is_allowed(lane, *touch)) {
                let watched = self.watched(lane, &test.touches);
                return self.finish(
                    lane,
                    subject,
                    number,
                    &test.case.code,
                    &test.case.state,
                    watched,
                );
            }
        }
        panic!("no case for {}", row.name);
    }

    fn unallocated(&self, random: &mut Random, lane: usize, number: u64) -> LaneCase {
        let mut word = draw(random);
        while decode(word).is_some() {
            word = draw(random);
        }
        let (state, watched) = (random_state(random), self.watched(lane, &[]));
        self.finish(lane, Subject::Unallocated, number, &[word], &state, watched)
    }

    fn finish(
        &self,
        lane: usize,
        subject: Subject,
        number: u64,
        code: &[u32],
        state: &State,
        watched: Range<u64>,
    ) -> LaneCase {
        let (words, start) = self.layout.fill_slot(lane, code);
        let pc = if self.padded && code.len() == 1 { start - 4 } else { start };
        let registers = ours::registers(state, pc);
        LaneCase { subject, number, slot: self.layout.slot(lane), words, registers, watched }
    }

    fn attempt(
        &mut self,
        random: &mut Random,
        row: &'static Instruction,
        lane: usize,
        shape: u64,
    ) -> Test {
        let mut word = shaped_word(random, row, shape);
        if is_literal(row) {
            let pc = self.layout.last_word(lane) - 4;
            word = aim_literal(row, word, pc, self.random_literal(random, pc));
        }
        let code = sequence::around(random, row, word);
        let mut case = Case {
            max_instructions: if code.len() == 1 { 1 } else { 1000 },
            code_address: self.layout.last_word(lane) - 4 * code.len() as u64,
            code,
            state: random_state(random),
            vectors: touches(row).vectors,
            window: [0; WINDOW_LEN],
        };
        if case.vectors {
            vectors::fill(random, row, word, &mut case.state);
        }
        let mut test = Test { row, word, case, touches: Vec::new() };
        aim_branch(random, &mut test, self.layout.code());
        if let Some(base) = base_register(&test) {
            let target = self.random_target(random, lane);
            steer(&mut self.flat, &mut test, base, target);
            if row.group == "Compare and swap" && random.once_in(2) {
                self.expect_what_is_there(&mut test, base);
            }
        }
        test.touches = self.flat.run(&test.case).1.to_vec();
        test
    }

    /// Picks an address to access: mostly in the lane's data, at any alignment; else near the end of a page, of memory
    /// or of the address space; or anywhere.
    fn random_target(&self, random: &mut Random, lane: usize) -> u64 {
        let data = self.layout.data(lane);
        let len = data.end - data.start;
        let inside = data.start + random.below(len);
        let page_end = data.start + PAGE * (1 + random.below(2));
        match random.below(16) {
            0 => random.next() >> random.pick(&[0, 8, 24]),
            1 => random.below(64).wrapping_neg(),
            2 | 3 => self.layout.memory_size() - 16 + random.below(32),
            4 | 5 if page_end < data.end => page_end - 16 + random.below(32),
            6..=10 => inside & !15,
            11 | 12 => inside & !(random.pick(&[1, 3, 7])),
            _ => inside,
        }
    }

    /// Picks what a literal load reads: itself, other code, or whatever its offset reaches.
    fn random_literal(&self, random: &mut Random, pc: u64) -> u64 {
        let code = self.layout.code();
        match random.below(4) {
            0 => pc,
            1 => code.start + random.below(code.end - code.start),
            _ => pc.wrapping_add(random.next()),
        }
    }

    /// Makes a compare and swap succeed, by comparing with what is in memory.
    fn expect_what_is_there(&self, test: &mut Test, base: u32) {
        let addr = get_base(&test.case.state, base);
        let offset = addr.wrapping_sub(self.layout.all_data().start) as usize;
        let place = self.data.get(offset..).and_then(|data| data.first_chunk::<16>());
        let rs = test.field("Rs");
        let (Some(place), true) = (place, rs != base && rs | 1 != base) else {
            return;
        };
        let both = u128::from_le_bytes(*place);
        let (low, high) = match test.row.name {
            "CASP_W" => (both as u64 & 0xffff_ffff, both as u64 >> 32),
            _ => (both as u64, (both >> 64) as u64),
        };
        let pair = test.row.name.starts_with("CASP");
        let values = [(rs, low), (rs | 1, high)];
        for (register, value) in values.into_iter().take(if pair { 2 } else { 1 }) {
            if let Some(x) = test.case.state.x.get_mut(register as usize) {
                *x = value;
            }
        }
    }

    /// True if a case may touch this: its lane's data, addresses outside memory, and for reading, what no lane writes.
    fn is_allowed(&self, lane: usize, touch: Touch) -> bool {
        let (all, own) = (self.layout.all_data(), self.layout.data(lane));
        let is_refused = touch.len == 0 || touch.end() > all.end || touch.end() < touch.addr;
        let is_own = own.contains(&touch.addr) && touch.end() <= own.end;
        is_refused || is_own || (!touch.write && touch.end() <= all.start)
    }

    /// Returns the memory to compare after a case with these touches.
    fn watched(&self, lane: usize, touches: &[Touch]) -> Range<u64> {
        let own = self.layout.data(lane);
        if lane.is_multiple_of(ALL_COMPARED) {
            return own;
        }
        let writes = touches.iter().filter(|t| t.write && t.len > 0 && own.contains(&t.addr));
        let start = writes.clone().map(|t| t.addr - AROUND).min();
        let end = writes.map(|t| t.end() + AROUND).max();
        let (Some(start), Some(end)) = (start, end) else {
            return own.start..own.start;
        };
        start.max(own.start)..end.min(own.end)
    }
}

/// Draws a word of the row. The first cases of a row go through its shapes (see [`Instruction::shape_bits`]), so that
/// an engine that has code for each meets all of them in the first round.
fn shaped_word(random: &mut Random, row: &'static Instruction, number: u64) -> u32 {
    let word = random_word(random, row);
    let choices = row.shape_bits() & !row.pattern.mask;
    if number >> choices.count_ones() > 0 {
        return word;
    }
    let shaped = word & !choices | spread(number as u32, choices);
    let is_same_row = decode(shaped).is_some_and(|found| found.index == row.index);
    if is_same_row { shaped } else { word }
}

/// Moves the low bits of a number to where the mask has ones.
fn spread(number: u32, mask: u32) -> u32 {
    let places = (0..32).filter(|bit| mask >> bit & 1 == 1);
    (0..).zip(places).fold(0, |bits, (from, to)| bits | (number >> from & 1) << to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_spread_over_a_mask() {
        assert_eq!(spread(0b101, 0b1101_0000), 0b1001_0000);
        assert_eq!(spread(u32::MAX, 0x8000_0001), 0x8000_0001);
        assert_eq!(spread(7, 0), 0);
    }

    #[test]
    fn the_first_cases_of_a_row_have_all_its_shapes() {
        let row = sequence::row("CSEL_X");
        let condition = row.pattern.field("cond").unwrap();
        let mut random = Random::new(1);
        let found = (0..16).map(|n| condition.get(shaped_word(&mut random, row, n)));
        assert!(found.eq(0..16));
    }
}
