//! The code of one view of memory: the image, the shared memory, or that of a lane that has changed its own code.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use kvrm_engine::EngineError;
use kvrm_engine::kernel;
use kvrm_mem::{GRANULE, PAGE, PageSet};
use kvrm_translate::{GuestCode, Region, Way};

use crate::index::{Index, Key, map_bytes};
use crate::interpreter::{Decoded, Ending};
use crate::library::callee;
use crate::record::{MOST_HEAT, Record, SHEET_BYTES, Sheets, Table};
use crate::stubs::Stubs;
use crate::translate::{LACKS, Outside, function_signature, translate};

/// How many times as often as usual code is interpreted that only one lane has, before it is translated: what the lane
/// has written it may well write again.
const OWN_PATIENCE: u32 = 16;

/// How often the patience with a word doubles when its translation is in vain.
const MOST_DOUBLINGS: u8 = 8;

/// How many times sooner code is translated that continues a translation.
const CUT_HASTE: u32 = 16;

/// Words in a function that may become part of its callers, at the most.
const SMALL: usize = 64;

/// What is kept about a translation, at the most, beside its records.
const NOTES: u64 = 512;

/// Records, translations and what they were made from.
pub(crate) struct Translations {
    stubs: Arc<Stubs>,
    sheets: Sheets,
    /// Translations by the address of their record.
    regions: HashMap<u64, Made>,
    /// Beginnings of blocks, by address and length, where nothing may be interpreted.
    tails: HashMap<(u64, u64), Made>,
    /// Addresses that translations go to directly. They are counted there.
    goals: HashSet<u64>,
    /// It is that of a lane which has changed its code.
    is_own: bool,
    /// Words that were written after they had been translated.
    unsettled: HashMap<u64, Unsettled>,
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

    fn new(stubs: &Arc<Stubs>, is_own: bool) -> Translations {
        Translations {
            stubs: Arc::clone(stubs),
            sheets: Sheets::new(stubs.target.memory_size, stubs.interpreter.empty()),
            regions: HashMap::new(),
            tails: HashMap::new(),
            goals: HashSet::new(),
            is_own,
            unsettled: HashMap::new(),
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
            self.at(pc).set_heat(MOST_HEAT);
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
        while !self.at(pc).is_decoded() && fetch(pc).is_some() {
            self.note(pc, close);
            // Once more, now that nobody changes it.
            let Some(word) = fetch(pc) else { break };
            let Decoded { parameters, ending } = interpreter.decode(pc, word)?;
            self.fill(pc, parameters, ending);
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
            parameters = parameters.with_wide(self.sheets.record(target) as u64);
        }
        let heat = self.patience(pc);
        let record = self.at(pc);
        record.fill(parameters);
        record.set_heat(heat);
        self.let_run(pc);
    }

    /// Makes the last record of a sheet lead to the next.
    fn lead_on(&mut self, pc: u64) {
        let next = self.sheets.record(pc.wrapping_add(4));
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

    // Translating.

    /// Translates the region at `pc`, where there is a word; false if the memory for code is full.
    fn translate(
        &mut self,
        pc: u64,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<bool, EngineError> {
        let Some(code) = self.compile(Key::Region(pc), fetch, close)? else {
            return Ok(false);
        };
        self.regions.insert(pc, code);
        self.let_run(pc);
        self.at(pc).set_heat(MOST_HEAT);
        self.account();
        Ok(true)
    }

    /// Code for the first `len` instructions of the block at `pc`, for who may not interpret them; `None` if the memory for
    /// code is full.
    pub(crate) fn tail(
        &mut self,
        pc: u64,
        len: u64,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<Option<*const u8>, EngineError> {
        if let Some(made) = self.tails.get(&(pc, len)) {
            return Ok(Some(made.code));
        }
        let Some(code) = self.compile(Key::Tail(pc, len), fetch, close)? else {
            return Ok(None);
        };
        self.tails.insert((pc, len), code);
        self.account();
        Ok(Some(code.code))
    }

    fn compile(
        &mut self,
        key: Key,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<Option<Made>, EngineError> {
        let start = Instant::now();
        let code = self.find_unchanging(key, fetch, close);
        let region = Region::new(&code, LACKS);
        let stale = self.written_granules(&code);
        let stubs = Arc::clone(&self.stubs);
        let (target, entry) = (&stubs.target, code.entry);
        let failed = |message| EngineError::Translation { pc: entry, message };
        let mut called = Vec::new();
        region.for_each_stmt(&mut |stmt| called.extend(callee(stmt)));
        let functions = stubs.interpreter.functions(&called)?;
        let mut goals = Vec::new();
        let mut record = |pc| {
            goals.push(pc);
            self.sheets.record(pc).cast_const()
        };
        let placed = stubs.compilers.with(|compiler| {
            let host_code =
                compiler.compile(target, function_signature(), |function, scratch| {
                    let outside = Outside { functions: &functions, record: &mut record };
                    translate(function, scratch, target, entry, &region, &stale, outside);
                })?;
            let placed = stubs.memory.place(host_code, NOTES).map_err(|error| error.to_string())?;
            Ok(placed.map(|place| (place, host_code.len())))
        });
        let placed = placed.map_err(failed)?;
        if let Some((_, host_bytes)) = placed {
            let words = self.index.add(key, code.words().map(|(pc, _)| pc));
            stubs.memory.count_words(words, host_bytes);
            self.count_at(goals);
            self.expect_at(&code.cuts);
        }
        stubs.memory.count_time(start.elapsed());
        let words = code.words().count();
        Ok(placed.map(|(code, _)| Made { code, words }))
    }

    /// Counts from now on how often these addresses are reached.
    fn count_at(&mut self, goals: Vec<u64>) {
        for pc in goals {
            if self.goals.insert(pc) && !self.regions.contains_key(&pc) {
                self.let_run(pc);
            }
        }
    }

    /// Code that was left out only for its length is about as hot as what leads to it.
    fn expect_at(&mut self, cuts: &[u64]) {
        for pc in cuts {
            let patience = self.patience(*pc) / CUT_HASTE;
            let record = self.at(*pc);
            record.set_heat(patience.min(record.heat()));
        }
    }

    /// Finds code and closes its granules, until what was found is what is there after they were closed: in
    /// shared memory another lane may have changed words before that.
    fn find_unchanging(
        &mut self,
        key: Key,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> GuestCode {
        loop {
            let word = |pc| self.may_translate(pc).then(|| fetch(pc)).flatten();
            let code = match key {
                Key::Region(pc) => GuestCode::find(pc, word, |way, pc| self.follows(way, pc)),
                Key::Tail(pc, len) => GuestCode::straight(pc, len as usize, word),
            };
            code.words().for_each(|(pc, _)| self.note(pc, close));
            if code.words().all(|(pc, word)| fetch(pc) == Some(word)) {
                return code;
            }
        }
    }

    /// True if a region goes on at an address instead of ending there. It ends where another begins, so that words are
    /// translated about once; but small functions become part of their callers as long as that is little in all.
    fn follows(&self, way: Way, pc: u64) -> bool {
        let Some(region) = self.regions.get(&pc) else { return true };
        way == Way::Call && region.words <= SMALL && self.index.is_little_repeated()
    }

    /// True for words that do not keep changing, and that some lane has executed: translations go no further.
    fn may_translate(&self, pc: u64) -> bool {
        // SAFETY: as in `at`.
        let decoded = |record: *mut Record| unsafe { (*record).is_decoded() };
        let is_decoded = || self.table().get(pc).is_some_and(decoded);
        self.is_settled(pc) && (self.stubs.translate_after == 0 || is_decoded())
    }

    /// The granules to check on entry, because some lane has written to their page.
    fn written_granules(&self, code: &GuestCode) -> Vec<u64> {
        let written =
            code.words().filter(|(pc, _)| self.written_pages.contains((pc / PAGE) as usize));
        let mut granules: Vec<u64> = written.map(|(pc, _)| pc / GRANULE * GRANULE).collect();
        granules.dedup();
        granules
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
        for pc in (addr / 4..=(addr + len - 1) / 4).map(|word| 4 * word) {
            if !self.index.overlaps(pc, 4) {
                continue;
            }
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
            + map_bytes::<u64, ()>(self.goals.len())
            + map_bytes::<u64, Unsettled>(self.unsettled.len())
            + self.index.bytes();
        match now.checked_sub(self.charged) {
            Some(more) => self.stubs.memory.charge(more),
            None => self.stubs.memory.release(self.charged - now),
        }
        self.charged = now;
    }
}

#[cfg(test)]
mod tests {
    use kvrm_engine::{Config, MemoryModel};

    use super::*;

    fn stubs(translate_after: u32) -> Arc<Stubs> {
        let config = Config {
            lanes: 1,
            memory_size: 1 << 20,
            model: MemoryModel::Private,
            read_only: false,
            threads: 1,
            translate_after,
            code_memory: 16 << 20,
        };
        Arc::new(Stubs::new(&config).unwrap())
    }

    /// b .+8
    fn hops(pc: u64) -> Option<u32> {
        (pc < 1 << 20).then_some(0x1400_0002)
    }

    /// Only the word at an address.
    fn only(at: u64) -> impl Fn(u64) -> Option<u32> {
        move |pc| hops(pc).filter(|_| pc == at)
    }

    #[test]
    fn little_is_kept_about_a_translation() {
        let stubs = stubs(0);
        let mut code = Translations::common(&stubs);
        // Every one ends at once, and leads to another that is not translated.
        for n in 0..1000 {
            assert!(code.translate(8 * n, only(8 * n), &mut |_, _| {}).unwrap());
        }
        assert!(code.charged / 1000 <= NOTES, "{} bytes", code.charged / 1000);
        code.clear();
        assert_eq!(code.charged, 0);
        drop(code);
        // SAFETY: nothing runs in it.
        unsafe { stubs.memory.clear() };
        assert_eq!(stubs.memory.code_use().bytes, 0);
    }

    #[test]
    fn only_what_was_made_from_a_word_is_forgotten() {
        let stubs = stubs(0);
        let mut code = Translations::common(&stubs);
        for pc in [0, 8, 16] {
            assert!(code.translate(pc, only(pc), &mut |_, _| {}).unwrap());
        }
        assert_eq!(code.at(8).code(), code.regions[&8].code);
        assert!(code.forget(12, 4, true).is_empty());
        assert_eq!(code.forget(11, 2, true), BTreeSet::from([0]));
        assert!(!code.is_translated(8) && code.is_translated(0) && code.is_translated(16));
        assert_eq!(code.at(8).code(), stubs.interpreter.empty());
        assert_eq!(code.granules_of_page(0), 1, "other words are still translated");
    }

    #[test]
    fn decoded_words_are_forgotten_one_by_one() {
        let stubs = stubs(100);
        let mut code = Translations::common(&stubs);
        // nop, and a branch to itself.
        let words = |pc: u64| Some(if pc < 8 { 0xd503_201f } else { 0x1400_0000 });
        let mut closed = Vec::new();
        code.decode(0, words, &mut |page, granules| closed.push((page, granules))).unwrap();
        assert_eq!(closed, [(0, 1)]);
        assert!([0, 4, 8].into_iter().all(|pc| code.at(pc).is_decoded()));
        assert!(!code.at(12).is_decoded(), "nobody has come there");
        assert_eq!(code.forget(5, 1, true), BTreeSet::from([0]));
        assert!(code.at(0).is_decoded() && !code.at(4).is_decoded());
        assert!(code.unsettled.is_empty(), "it was not translated");
    }

    #[test]
    fn a_word_that_was_written_is_not_translated_before_it_is_decoded() {
        let stubs = stubs(3);
        let mut code = Translations::common(&stubs);
        code.decode(8, hops, &mut |_, _| {}).unwrap();
        code.forget(8, 4, true);
        assert!(code.heated(8, hops, &mut |_, _| {}).unwrap());
        assert!(!code.is_translated(8));
        assert_eq!(code.at(8).code(), stubs.interpreter.empty());
    }

    #[test]
    fn words_that_change_need_longer_to_settle() {
        let stubs = stubs(3);
        let mut code = Translations::common(&stubs);
        let translate = |code: &mut Translations| {
            code.decode(8, hops, &mut |_, _| {}).unwrap();
            assert!(code.heated(8, hops, &mut |_, _| {}).unwrap());
            assert!(code.is_translated(8));
        };
        translate(&mut code);
        for expected in [6, 12, 24] {
            code.forget(8, 4, true);
            assert_eq!((code.patience(8), code.may_translate(8)), (expected, false));
            translate(&mut code);
        }
        // The host changes code once.
        code.forget(8, 4, false);
        assert!(code.is_settled(8));
    }
}
