//! Where the code and the data of a round's cases lie.
//!
//! ```text
//! 0x1000    slot of lane 0, 1, 2, …   the code, one slot a lane
//!           guard                     stops what runs past the last slot
//!           gap                       zero; as far as conditional branches reach
//! data      private memory: one range, of which every lane has its copy; shared: a range each
//! end
//! ```
//!
//! A slot ends with an SVC whose immediate is the lane's number. An engine that decodes ahead from lane 0 finds the
//! code of all lanes: lane 0 begins with a call to the guard, so that the extent is known at once; after an SVC,
//! execution continues in the next slot; and a slot begins with a call to its SVC, in case its instructions do not lead
//! there.

use std::ops::Range;

use kvrm::{MemoryModel, PAGE};

use crate::random::Random;
use crate::sequence::MAX_WORDS;

const CODE_START: u64 = PAGE;
const SLOT_WORDS: usize = MAX_WORDS + 1;
const SLOT_BYTES: u64 = 4 * SLOT_WORDS as u64;
/// Engines treat everything that they decode as code, and writing code is slow: branches must not lead into the data.
const GAP: u64 = 1 << 20;
/// Contains two page boundaries and ends with memory.
const PRIVATE_DATA: u64 = 3 * PAGE;
const SHARED_DATA: u64 = 256;

const NOP: u32 = 0xd503_201f;
const HLT: u32 = 0xd440_0000;
const BL: u32 = 0x9400_0000;
const SVC: u32 = 0xd400_0001;

/// Returns a BL to a place this many words further on.
fn call(words: u64) -> u32 {
    BL | words as u32
}

/// Where everything lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Lanes; the first has no case.
    pub(crate) lanes: usize,
    pub(crate) model: MemoryModel,
}

impl Layout {
    /// Returns where a lane's code is.
    pub(crate) fn slot(&self, lane: usize) -> Range<u64> {
        let start = CODE_START + lane as u64 * SLOT_BYTES;
        start..start + SLOT_BYTES
    }

    /// Returns the address of the SVC at the end of a lane's slot.
    pub(crate) fn last_word(&self, lane: usize) -> u64 {
        self.slot(lane).end - 4
    }

    /// Returns where lanes without a case start.
    pub(crate) fn entry(&self) -> u64 {
        CODE_START
    }

    /// Returns where all slots are.
    pub(crate) fn code(&self) -> Range<u64> {
        CODE_START..self.slot(self.lanes).start
    }

    /// Returns where the data of all lanes is, which reaches to the end of memory.
    pub(crate) fn all_data(&self) -> Range<u64> {
        let start = (self.slot(self.lanes).end + GAP).next_multiple_of(PAGE);
        let len = match self.model.is_one_for_all() {
            false => PRIVATE_DATA,
            true => self.lanes as u64 * SHARED_DATA,
        };
        start..(start + len).next_multiple_of(PAGE)
    }

    /// Returns where the data is that a lane may write.
    pub(crate) fn data(&self, lane: usize) -> Range<u64> {
        let all = self.all_data();
        if !self.model.is_one_for_all() {
            return all;
        }
        let start = all.start + lane as u64 * SHARED_DATA;
        start..start + SHARED_DATA
    }

    /// Returns the bytes of memory.
    pub(crate) fn memory_size(&self) -> u64 {
        self.all_data().end
    }

    /// Returns the words of a lane's slot, and the address of `code` in it.
    pub(crate) fn fill_slot(&self, lane: usize, code: &[u32]) -> ([u32; SLOT_WORDS], u64) {
        let last = SLOT_WORDS - 1;
        let mut words = [NOP; SLOT_WORDS];
        words[0] = call(last as u64);
        words[last] = SVC | (lane as u32 & 0xffff) << 5;
        let first = last - code.len();
        words[first..last].copy_from_slice(code);
        (words, self.slot(lane).start + 4 * first as u64)
    }

    /// Returns the code of all lanes: the slot of lane 0, the given slots, and the guard. If there are fewer slots than
    /// lanes, the rest is zero, to overwrite what an earlier round had there.
    pub(crate) fn code_image(&self, slots: impl Iterator<Item = [u32; SLOT_WORDS]>) -> Vec<u8> {
        let (mut first, _) = self.fill_slot(0, &[]);
        let mut words: Vec<u32> = slots.flatten().collect();
        first[0] = call((words.len() + SLOT_WORDS) as u64);
        words.splice(..0, first);
        words.extend([HLT; SLOT_WORDS]);
        words.resize((self.lanes + 1) * SLOT_WORDS, 0);
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Makes contents for the data of all lanes.
pub(crate) fn random_data(random: &mut Random, layout: &Layout) -> Vec<u8> {
    let all = layout.all_data();
    (all.start..all.end).step_by(8).flat_map(|_| random.hard_value().to_le_bytes()).collect()
}
