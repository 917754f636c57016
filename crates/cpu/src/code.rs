//! The code of one view of memory: the image, the shared memory, or that of a lane that has changed its own code.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use kvrm_a64::{Flow, flow};
use kvrm_engine::EngineError;
use kvrm_engine::kernel;
use kvrm_mem::{PAGE, PageSet};

use crate::hashing::{NumberMap, NumberSet};
use crate::index::{Index, Key, map_bytes};
use crate::interpreter::{Decoded, Ending};
use crate::kept::Unit;
use crate::record::{Record, SHEET_BYTES, Sheet, Sheets, Table, UNCOUNTED};
use crate::segments::{Executable, Segments};
use crate::stubs::Stubs;
use crate::translate::HostTarget;

#[cfg(test)]
mod tests;
mod translating;

/// How many times as often as usual code is interpreted that only one lane has, before it is translated: what the lane
/// has written it may well write again.
const OWN_PATIENCE: u32 = 16;

/// How often the patience with a word doubles when its translation is in vain.
const MOST_DOUBLINGS: u8 = 8;

/// Words that find out where to go on, and may become part of what goes there, at the most.
const SHORT: usize = 16;

/// How often code is reached before its translation is taken from disk.
const KEPT_PATIENCE: u32 = 64;

/// Records, translations and what they were made from.
pub(crate) struct Translations {
    stubs: Arc<Stubs>,
    sheets: Sheets,
    /// Translations by the address of their record.
    regions: NumberMap<u64, Made>,
    /// Beginnings of blocks, by address and length, where nothing may be interpreted.
    tails: NumberMap<(u64, u64), Made>,
    /// Addresses that translations go to directly. They are counted there.
    goals: NumberSet<u64>,
    /// It is that of a lane which has changed its code.
    is_own: bool,
    /// What machines agree on, if several share it.
    segments: Option<Segments>,
    /// Addresses of translations that are on disk, and were not looked at yet.
    expected: NumberSet<u64>,
    /// Words that were written after they had been translated.
    unsettled: NumberMap<u64, Unsettled>,
    /// What is decoded and translated.
    index: Index,
    /// Pages that some lane has written: whether the lane has the image's code in them is checked. Survives clearing.
    written_pages: PageSet,
    /// Bytes that are charged for all this.
    charged: u64,
}

/// A translation.
#[derive(Clone, Copy)]
struct Made {
    code: *const u8,
    /// How many words it was made from.
    words: usize,
    /// It goes to a computed address after a few instructions.
    leads_off: bool,
}

impl Made {
    fn new(code: *const u8, unit: &Unit) -> Made {
        let words = unit.words.len();
        let is_computed = |(pc, word): &(u64, u32)| matches!(flow(*word, *pc), Flow::Indirect(_));
        let leads_off = words <= SHORT && unit.words.iter().any(is_computed);
        Made { code, words, leads_off }
    }
}

/// Called with a page and its granules that hold decoded words, which must be closed.
pub(crate) type CloseGranules<'a> = dyn FnMut(u64, u64) + 'a;

/// A word that keeps changing.
#[derive(Default)]
struct Unsettled {
    /// Translations of it that were in vain.
    writes: u8,
    /// It was reached often since.
    settled: bool,
}

// SAFETY: the pointers are to code that the machine owns, and to records that `self` owns.
unsafe impl Send for Translations {}

impl Drop for Translations {
    fn drop(&mut self) {
        self.stubs.memory.release(self.charged);
    }
}

impl Translations {
    /// Of memory that all lanes begin with or share.
    pub(crate) fn common(stubs: &Arc<Stubs>) -> Translations {
        Translations::new(stubs, false)
    }

    /// Of a lane that has changed its code.
    pub(crate) fn own(stubs: &Arc<Stubs>) -> Translations {
        Translations::new(stubs, true)
    }

    /// Of machines that agree on their code.
    pub(crate) fn shared(stubs: &Arc<Stubs>) -> Translations {
        let mut code = Translations::new(stubs, false);
        code.segments = Some(Segments::default());
        code
    }

    fn new(stubs: &Arc<Stubs>, is_own: bool) -> Translations {
        let HostTarget { memory_size, kind, .. } = stubs.target;
        Translations {
            stubs: Arc::clone(stubs),
            sheets: Sheets::new(memory_size, kind.mapped, stubs.interpreter.empty()),
            regions: NumberMap::default(),
            tails: NumberMap::default(),
            goals: NumberSet::default(),
            is_own,
            segments: None,
            expected: NumberSet::default(),
            unsettled: NumberMap::default(),
            index: Index::default(),
            written_pages: PageSet::default(),
            charged: 0,
        }
    }

    /// Forgets all code. No lane may be running in it.
    pub(crate) fn clear(&mut self) {
        let mut empty = Translations::new(&self.stubs, self.is_own);
        empty.written_pages = std::mem::take(&mut self.written_pages);
        *self = empty;
    }

    /// Where running code finds records, until these are cleared.
    pub(crate) fn table(&self) -> &Arc<Table> {
        self.sheets.table()
    }

    // Sharing.

    /// The segment at an address, if a machine that can execute these addresses has it.
    pub(crate) fn agree(&mut self, pc: u64, own: &Executable<'_>) -> Option<Range<u64>> {
        self.segments.as_mut().expect("machines share it").agree(pc, own)
    }

    /// True if a machine that can execute these addresses has all segments that are there.
    pub(crate) fn agrees(&self, own: &Executable<'_>) -> bool {
        self.segments.as_ref().expect("machines share it").agrees(own)
    }

    /// The records around an address in memory.
    pub(crate) fn sheet(&mut self, pc: u64) -> *mut Sheet {
        self.sheets.sheet(pc)
    }

    /// True if all machines that have the code at one address have that at the other.
    fn joins(&self, one: u64, other: u64) -> bool {
        self.segments.as_ref().is_none_or(|segments| segments.joins(one, other))
    }

    /// The record where code goes on that leads from one address to another.
    fn link(&mut self, from: u64, to: u64) -> *mut Record {
        if self.joins(from, to) {
            return self.sheets.record(to);
        }
        let empty = self.stubs.interpreter.empty();
        self.segments.as_mut().expect("machines share it").gate(to, empty)
    }

    // Arriving.

    /// The record of an address that a lane has come to, decoded, or translated if nothing may be interpreted; `None` if
    /// the memory for code is full. `fetch` gives words, and `None` where code must end.
    pub(crate) fn arrive(
        &mut self,
        pc: u64,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<Option<*const Record>, EngineError> {
        let translates = self.stubs.translate_after == 0 && self.is_settled(pc);
        if translates && !self.regions.contains_key(&pc) && !self.translate(pc, &fetch, close)? {
            return Ok(None);
        }
        if !translates {
            self.decode(pc, fetch, close)?;
        }
        Ok(Some(self.sheets.record(pc)))
    }

    /// The record of an address.
    pub(crate) fn record(&mut self, pc: u64) -> *const Record {
        self.sheets.record(pc)
    }

    /// Copies of the records of up to so many instructions that were decoded and follow one another, each to be
    /// interpreted.
    pub(crate) fn copies(&mut self, pc: u64, len: u64) -> impl Iterator<Item = Record> {
        let in_sheet = (SHEET_BYTES - pc % SHEET_BYTES) / 4;
        let first = self.sheets.record(pc);
        // SAFETY: as in `at`; the sheet has as many.
        let records = (0..len.min(in_sheet)).map(move |i| unsafe { &*first.add(i as usize) });
        let decoded = records.take_while(|record| record.is_decoded());
        decoded.map(|record| {
            let checks = self.is_checked(record.pc());
            record.with_code(self.stubs.interpreter.code(record.parameters(), checks, false))
        })
    }

    /// True if lanes enter a translation there.
    pub(crate) fn is_translated(&self, pc: u64) -> bool {
        self.regions.contains_key(&pc)
    }

    /// The code at `pc` was reached often: translates it. False if the memory for code is full.
    pub(crate) fn heated(
        &mut self,
        pc: u64,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<bool, EngineError> {
        if let Some(word) = self.unsettled.get_mut(&pc) {
            word.settled = true;
        }
        let never = self.stubs.translate_after == u32::MAX;
        // Its word may have been written since it was counted.
        let is_there = self.may_translate(pc) && fetch(pc).is_some();
        if never || !is_there || self.is_translated(pc) {
            self.at(pc).set_heat(UNCOUNTED);
            return Ok(true);
        }
        if self.expected.remove(&pc) && self.kept(Key::Region(pc), &fetch, close).is_none() {
            let patience = self.patience(pc);
            self.at(pc).set_heat(patience);
            return Ok(true);
        }
        self.translate(pc, fetch, close)
    }

    fn at(&mut self, pc: u64) -> &mut Record {
        // SAFETY: records live as long as the sheets. Other threads read of this one what is atomic, and the rest once
        // its code says that it is there.
        unsafe { &mut *self.sheets.record(pc) }
    }

    /// How often code is reached before it is translated.
    fn patience(&self, pc: u64) -> u32 {
        let times = if self.is_own { OWN_PATIENCE } else { 1 };
        let doublings = self.unsettled.get(&pc).map_or(0, |word| word.writes.min(MOST_DOUBLINGS));
        self.stubs.translate_after.saturating_mul(times).saturating_mul(1 << doublings)
    }

    /// False for words that keep changing: translations end before them.
    fn is_settled(&self, pc: u64) -> bool {
        self.unsettled.get(&pc).is_none_or(|word| word.settled)
    }

    // Decoding.

    /// Fills in records from `pc` on, until control branches or their sheet ends.
    pub(crate) fn decode(
        &mut self,
        mut pc: u64,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<(), EngineError> {
        let start = Instant::now();
        let interpreter = self.stubs.interpreter;
        // Others may change words until their granule is closed.
        let is_alone = !self.stubs.target.kind.atomic;
        while !self.at(pc).is_decoded()
            && let Some(word) = fetch(pc)
        {
            self.note(pc, close);
            let Some(word) = (if is_alone { Some(word) } else { fetch(pc) }) else { break };
            let Decoded { parameters, ending } = interpreter.decode(pc, word)?;
            self.fill(pc, parameters, ending);
            if self.may_keep(Key::Region(pc)) && self.stubs.kept().has(pc, &fetch) {
                self.expected.insert(pc);
                self.at(pc).set_heat(KEPT_PATIENCE);
            }
            let next = pc.wrapping_add(4);
            let is_last = next.is_multiple_of(SHEET_BYTES);
            if is_last && ending != Ending::Other {
                self.lead_on(pc);
            }
            if is_last || ending != Ending::Next {
                break;
            }
            pc = next;
        }
        self.account();
        self.stubs.memory.count_time(start.elapsed());
        Ok(())
    }

    /// Closes the granule of a word, if it is not.
    fn note(&mut self, pc: u64, close: &mut CloseGranules<'_>) {
        if self.index.note(pc) {
            close(pc / PAGE, self.granules_of_page(pc / PAGE));
        }
    }

    fn fill(&mut self, pc: u64, mut parameters: kernel::Record, ending: Ending) {
        if ending == Ending::Direct {
            let target = parameters.wide();
            parameters = parameters.with_wide(self.link(pc, target) as u64);
        }
        let heat = self.patience(pc);
        let record = self.at(pc);
        record.fill(parameters);
        record.set_heat(heat);
        self.let_run(pc);
    }

    /// Makes the last record of a sheet lead to the next.
    fn lead_on(&mut self, pc: u64) {
        let next = self.link(pc, pc.wrapping_add(4));
        let code = self.stubs.interpreter.next_sheet;
        // SAFETY: as in `at`.
        let last = unsafe { &mut *self.sheets.last(pc) };
        last.fill(kernel::Record::special(kernel::NOT_DECODED, next as u64));
        last.set_code(code);
    }

    /// Sets what the record of an address runs: its translation, its handler, or something before that.
    fn let_run(&mut self, pc: u64) {
        let checks = self.is_checked(pc);
        let counts = self.goals.contains(&pc);
        let interpreter = self.stubs.interpreter;
        let translation = self.regions.get(&pc).copied();
        let record = self.at(pc);
        let code = match translation {
            Some(made) => made.code,
            None if !record.is_decoded() => interpreter.empty(),
            None => interpreter.code(record.parameters(), checks, counts),
        };
        record.set_code(code);
    }

    /// True if some lane may have other words there than the image.
    fn is_checked(&self, pc: u64) -> bool {
        !self.is_own && self.written_pages.contains((pc / PAGE) as usize)
    }

    // Forgetting.

    /// Forgets what was made from any of these bytes, which are about to change or just have. No lane may be running in
    /// it. Words that a guest writes will be given more time to settle. The pages that they had words in, whose
    /// granules may be opened.
    pub(crate) fn forget(&mut self, addr: u64, len: u64, by_guest: bool) -> BTreeSet<u64> {
        if !self.index.overlaps(addr, len) {
            return BTreeSet::new();
        }
        let (keys, mut pages) = self.index.take(addr, len);
        for pc in self.index.noted(addr, len) {
            if by_guest && !keys.is_empty() {
                let word = self.unsettled.entry(pc).or_default();
                (word.writes, word.settled) = (word.writes.saturating_add(1), false);
            }
            self.at(pc).fill(kernel::Record::default());
            self.let_run(pc);
            pages.insert(pc / PAGE);
        }
        self.index.remove(addr, len);
        for key in keys {
            match key {
                Key::Region(pc) => {
                    self.regions.remove(&pc);
                    self.let_run(pc);
                }
                Key::Tail(pc, len) => {
                    self.tails.remove(&(pc, len));
                }
            }
        }
        self.account();
        pages
    }

    /// The granules of a page that hold decoded or translated words, a bit each.
    pub(crate) fn granules_of_page(&self, page: u64) -> u64 {
        self.index.granules_of_page(page)
    }

    /// Every page with such words.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.index.pages()
    }

    /// Notes that a lane writes to a page.
    pub(crate) fn note_written(&mut self, page: u64) {
        self.written_pages.insert(page as usize);
    }

    /// True if some of the bytes are decoded or translated words.
    pub(crate) fn overlaps(&self, addr: u64, len: u64) -> bool {
        self.index.overlaps(addr, len)
    }

    /// Charges for what there is now.
    fn account(&mut self) {
        let now = self.sheets.bytes()
            + map_bytes::<u64, Made>(self.regions.len())
            + map_bytes::<(u64, u64), Made>(self.tails.len())
            + map_bytes::<u64, ()>(self.goals.len() + self.expected.len())
            + map_bytes::<u64, Unsettled>(self.unsettled.len())
            + map_bytes::<u64, [Record; 2]>(self.segments.as_ref().map_or(0, Segments::gates))
            + self.index.bytes();
        match now.checked_sub(self.charged) {
            Some(more) => self.stubs.memory.charge(more),
            None => self.stubs.memory.release(self.charged - now),
        }
        self.charged = now;
    }
}
