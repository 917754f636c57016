//! The code of one view of memory: the image, the shared memory, or that of a lane that has changed its own code.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use kvrm_a64::{Flow, flow};
use kvrm_engine::EngineError;
use kvrm_engine::kernel;
use kvrm_mem::{GRANULE, PAGE, PageSet};
use kvrm_translate::{GuestCode, Region, Way};

use crate::compiler::{Reference, Target, fill_in};
use crate::index::{Index, Key, map_bytes};
use crate::interpreter::{Decoded, Ending};
use crate::kept::{Link, Unit};
use crate::library::callee;
use crate::record::{Record, SHEET_BYTES, Sheets, Table, UNCOUNTED};
use crate::stubs::Stubs;
use crate::translate::{LACKS, function_signature, translate};

/// How many times as often as usual code is interpreted that only one lane has, before it is translated: what the lane
/// has written it may well write again.
const OWN_PATIENCE: u32 = 16;

/// How often the patience with a word doubles when its translation is in vain.
const MOST_DOUBLINGS: u8 = 8;

/// How many times sooner code is translated that continues a translation.
const CUT_HASTE: u32 = 16;

/// Words in a function that may become part of its callers, at the most.
const SMALL: usize = 64;

/// Words that find out where to go on, and may become part of what goes there, at the most.
const SHORT: usize = 16;

/// How often code was at least interpreted whose translation is kept on disk: what is translated at once is rarely run
/// again.
const WORTH_KEEPING: u32 = 2000;

/// How often code is reached before its translation is taken from disk.
const KEPT_PATIENCE: u32 = 64;

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
    /// Addresses of translations that are on disk, and were not looked at yet.
    expected: HashSet<u64>,
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

    fn new(stubs: &Arc<Stubs>, is_own: bool) -> Translations {
        Translations {
            stubs: Arc::clone(stubs),
            sheets: Sheets::new(stubs.target.memory_size, stubs.interpreter.empty()),
            regions: HashMap::new(),
            tails: HashMap::new(),
            goals: HashSet::new(),
            is_own,
            expected: HashSet::new(),
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
        while !self.at(pc).is_decoded() && fetch(pc).is_some() {
            self.note(pc, close);
            // Once more, now that nobody changes it.
            let Some(word) = fetch(pc) else { break };
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
        self.at(pc).set_heat(UNCOUNTED);
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
        let (unit, is_kept) = match self.kept(key, &fetch, close) {
            Some(unit) => (unit, true),
            None => (Arc::new(self.make(key, &fetch, close)?), false),
        };
        let made = self.place(key, &unit, is_kept)?;
        if made.is_some() && !is_kept && self.may_keep(key) {
            self.stubs.kept().add(unit, &fetch);
        }
        self.stubs.memory.count_time(start.elapsed());
        Ok(made)
    }

    /// Translates.
    fn make(
        &mut self,
        key: Key,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<Unit, EngineError> {
        let code = self.find_unchanging(key, fetch, close);
        let region = Region::new(&code, LACKS);
        let words: Vec<_> = code.words().collect();
        let checked = self.written_granules(&words);
        let stubs = &self.stubs;
        let entry = code.entry;
        let mut called = Vec::new();
        region.for_each_stmt(&mut |stmt| called.extend(callee(stmt)));
        let functions = stubs.interpreter.functions(&called)?;
        let name = |address| {
            let function = functions.iter().find(|(_, other)| **other == address);
            function.expect("it was just looked up").0.to_string()
        };
        let link = |reference: &Reference| match reference.target {
            Target::Record(pc) => (reference.offset, Link::Record(pc)),
            Target::Function(address) => (reference.offset, Link::Function(name(address))),
        };
        let compiled = stubs.compilers.with(|compiler| {
            let fill = |function: &mut _, scratch: &mut _| {
                translate(function, scratch, &stubs.target, entry, &region, &checked, &functions);
            };
            let code = compiler.compile(&stubs.target, function_signature(), fill)?.to_vec();
            Ok((code, compiler.references().iter().map(link).collect()))
        });
        let failed = |message| EngineError::Translation { pc: entry, message };
        let (host_code, links) = compiled.map_err(failed)?;
        Ok(Unit { entry, words, checked, cuts: code.cuts, code: host_code, links })
    }

    /// Gives a translation its place in memory; `None` if that is full.
    fn place(&mut self, key: Key, unit: &Unit, is_kept: bool) -> Result<Option<Made>, EngineError> {
        let failed = |message| EngineError::Translation { pc: unit.entry, message };
        let code = self.linked(unit)?.ok_or_else(|| failed("a link is missing".to_string()))?;
        let placed = self.stubs.memory.place(&code, NOTES);
        let Some(place) = placed.map_err(|error| failed(error.to_string()))? else {
            return Ok(None);
        };
        let words = self.index.add(key, unit.words.iter().map(|(pc, _)| *pc));
        self.stubs.memory.count_words(words, code.len(), is_kept);
        self.count_at(unit);
        self.expect_at(&unit.cuts);
        Ok(Some(Made::new(place, unit)))
    }

    /// The host code of a translation with all addresses; `None` if what it refers to is not there.
    fn linked(&mut self, unit: &Unit) -> Result<Option<Vec<u8>>, EngineError> {
        let mut code = unit.code.clone();
        for (offset, link) in &unit.links {
            let address = match link {
                Link::Record(pc) => Some(self.sheets.record(*pc) as usize),
                Link::Function(name) => self.stubs.interpreter.function(name)?,
            };
            let filled = address.and_then(|address| fill_in(&mut code, *offset, address as u64));
            if filled.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(code))
    }

    // Keeping.

    /// True if others who run the same program may want it.
    fn may_keep(&self, key: Key) -> bool {
        let is_common = !self.is_own && matches!(key, Key::Region(_));
        is_common && self.stubs.translate_after >= WORTH_KEEPING
    }

    /// A translation that was made before, of what is in memory now.
    fn kept(
        &mut self,
        key: Key,
        fetch: &impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Option<Arc<Unit>> {
        let Key::Region(pc) = key else { return None };
        if !self.may_keep(key) {
            return None;
        }
        let is_there = |unit: &Unit| unit.words.iter().all(|(pc, word)| fetch(*pc) == Some(*word));
        let stubs = Arc::clone(&self.stubs);
        let mut kept = stubs.kept();
        let mut units = kept.at(pc, fetch).iter().rev();
        let unit = units.find(|unit| is_there(unit) && self.can_use(unit))?;
        unit.words.iter().for_each(|(pc, _)| self.note(*pc, close));
        // Once more, now that nobody changes them.
        is_there(unit).then(|| Arc::clone(unit))
    }

    fn can_use(&self, unit: &Unit) -> bool {
        let checked = |granule: &u64| unit.checked.contains(granule);
        let are_settled = unit.words.iter().all(|(pc, _)| self.is_settled(*pc));
        let is_there = |(_, link): &(u32, Link)| match link {
            Link::Record(_) => true,
            Link::Function(name) => {
                self.stubs.interpreter.function(name).is_ok_and(|f| f.is_some())
            }
        };
        are_settled
            && self.written_granules(&unit.words).iter().all(checked)
            && unit.links.iter().all(is_there)
    }

    /// Counts from now on how often the addresses are reached that a translation goes to.
    fn count_at(&mut self, unit: &Unit) {
        for (_, link) in &unit.links {
            let Link::Record(pc) = *link else { continue };
            if self.goals.insert(pc) && !self.regions.contains_key(&pc) {
                self.let_run(pc);
                if self.index.is_translated(pc) {
                    self.expect_at(&[pc]);
                }
            }
        }
    }

    /// Code that was left out only for its length is about as hot as what leads to it.
    fn expect_at(&mut self, cuts: &[u64]) {
        for pc in cuts {
            let patience = (self.patience(*pc) / CUT_HASTE).max(1);
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
            // Words that are translated elsewhere, too.
            let repeated = Cell::new(0);
            let word = |pc| {
                repeated.set(repeated.get() + u64::from(self.index.is_translated(pc)));
                self.may_translate(pc).then(|| fetch(pc)).flatten()
            };
            let follows = |way, pc| self.follows(way, pc, repeated.get());
            let code = match key {
                Key::Region(pc) => GuestCode::find(pc, word, follows),
                Key::Tail(pc, len) => GuestCode::straight(pc, len as usize, word),
            };
            code.words().for_each(|(pc, _)| self.note(pc, close));
            if code.words().all(|(pc, word)| fetch(pc) == Some(word)) {
                return code;
            }
        }
    }

    /// True if a region, which repeats so many words, goes on at an address instead of ending there. It ends where another
    /// begins or has a block, so that words are translated about once. But a few may be translated again: small
    /// functions become part of their callers, and what finds out where to go on becomes part of what leads there, as
    /// for every case of an interpreter.
    fn follows(&self, way: Way, pc: u64, repeated: u64) -> bool {
        let repeats = match self.regions.get(&pc) {
            Some(region) if region.leads_off => true,
            Some(region) if way == Way::Call && region.words <= SMALL => true,
            Some(_) => return false,
            None => way != Way::On && self.index.is_translated(pc),
        };
        !repeats || self.index.may_repeat(repeated)
    }

    /// True for words that do not keep changing, and that some lane has executed: translations go no further.
    fn may_translate(&self, pc: u64) -> bool {
        // SAFETY: as in `at`.
        let decoded = |record: *mut Record| unsafe { (*record).is_decoded() };
        let is_decoded = || self.table().get(pc).is_some_and(decoded);
        self.is_settled(pc) && (self.stubs.translate_after == 0 || is_decoded())
    }

    /// The granules to check on entry, because some lane has written to their page.
    fn written_granules(&self, words: &[(u64, u32)]) -> Vec<u64> {
        let is_written = |(pc, _): &&(u64, u32)| self.written_pages.contains((pc / PAGE) as usize);
        let written = words.iter().filter(is_written);
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
            + map_bytes::<u64, ()>(self.goals.len() + self.expected.len())
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
    use kvrm_engine::cache::KernelCache;
    use kvrm_engine::{Config, MemoryModel};

    use super::*;

    fn stubs(translate_after: u32) -> Arc<Stubs> {
        stubs_with(translate_after, KernelCache::nowhere())
    }

    fn stubs_with(translate_after: u32, cache: KernelCache) -> Arc<Stubs> {
        let config = Config {
            lanes: 1,
            memory_size: 1 << 20,
            model: MemoryModel::Private,
            read_only: false,
            threads: 1,
            translate_after,
            code_memory: 16 << 20,
            profile: false,
        };
        Arc::new(Stubs::new(&config, cache).unwrap())
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
    /// Translations of a branch to itself, after a run with such a cache.
    fn run_before(cache: &KernelCache) -> Translations {
        let stubs = stubs_with(WORTH_KEEPING, cache.clone());
        let mut code = Translations::common(&stubs);
        code.decode(8, itself, &mut |_, _| {}).unwrap();
        code
    }

    /// A branch to itself.
    fn itself(pc: u64) -> Option<u32> {
        (pc == 8).then_some(0x1400_0000)
    }

    #[test]
    fn what_was_translated_before_is_soon_taken_from_disk() {
        let folder = tempfile::tempdir().unwrap();
        let cache = KernelCache::at(folder.path());
        let mut code = run_before(&cache);
        assert_eq!(code.at(8).heat(), WORTH_KEEPING);
        assert!(code.heated(8, itself, &mut |_, _| {}).unwrap());
        assert_eq!(code.stubs.memory.code_use().kept, 0);
        drop(code);
        let mut code = run_before(&cache);
        assert_eq!(code.at(8).heat(), KEPT_PATIENCE);
        assert!(code.heated(8, itself, &mut |_, _| {}).unwrap());
        assert!(code.is_translated(8));
        assert_eq!(code.stubs.memory.code_use().kept, 1);
    }

    #[test]
    fn what_cannot_be_used_is_translated_when_it_is_hot() {
        let folder = tempfile::tempdir().unwrap();
        let cache = KernelCache::at(folder.path());
        run_before(&cache).heated(8, itself, &mut |_, _| {}).unwrap();
        let mut code = run_before(&cache);
        // b .+8
        let changed = |pc| itself(pc).map(|_| 0x1400_0002);
        assert!(code.heated(8, changed, &mut |_, _| {}).unwrap());
        assert_eq!((code.is_translated(8), code.at(8).heat()), (false, WORTH_KEEPING));
        assert!(code.heated(8, changed, &mut |_, _| {}).unwrap());
        assert!(code.is_translated(8));
        assert_eq!(code.stubs.memory.code_use().kept, 0);
    }

    #[test]
    fn words_that_keep_changing_are_not_taken_from_disk() {
        let folder = tempfile::tempdir().unwrap();
        let cache = KernelCache::at(folder.path());
        run_before(&cache).heated(8, itself, &mut |_, _| {}).unwrap();
        let mut code = run_before(&cache);
        assert!(code.kept(Key::Region(8), &itself, &mut |_, _| {}).is_some());
        code.unsettled.insert(8, Unsettled { writes: 1, settled: false });
        assert!(code.kept(Key::Region(8), &itself, &mut |_, _| {}).is_none());
    }
}
