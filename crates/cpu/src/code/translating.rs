//! Translating: from a hot address to host code, made now or by an earlier run.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use kvrm_engine::EngineError;
use kvrm_mem::{GRANULE, PAGE};
use kvrm_translate::{GuestCode, Region, Way};

use super::{CloseGranules, Made, Translations};
use crate::compiler::{Reference, Target, fill_in};
use crate::index::Key;
use crate::kept::{Link, Unit};
use crate::library::callee;
use crate::record::{Record, UNCOUNTED};
use crate::translate::{LACKS, function_signature, translate};

/// How many times sooner code is translated that continues a translation.
const CUT_HASTE: u32 = 16;

/// Words in a function that may become part of its callers, at the most.
const SMALL: usize = 64;

/// How often code was at least interpreted whose translation is kept on disk: what is translated at once is rarely run
/// again.
pub(super) const WORTH_KEEPING: u32 = 2000;

/// What is kept about a translation, at the most, beside its records.
pub(super) const NOTES: u64 = 512;

impl Translations {
    /// Translates the region at `pc`, where there is a word; false if the memory for code is full.
    pub(super) fn translate(
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
        let region = Region::merged(&code, LACKS, self.stubs.target.limits());
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
                Link::Record(pc) => Some(self.link(unit.entry, *pc) as usize),
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
    pub(super) fn may_keep(&self, key: Key) -> bool {
        let is_common = !self.is_own && matches!(key, Key::Region(_));
        is_common && self.stubs.translate_after >= WORTH_KEEPING
    }

    /// A translation that was made before, of what is in memory now.
    pub(super) fn kept(
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
        let is_usable = |pc: u64| self.is_settled(pc) && self.joins(unit.entry, pc);
        let are_usable = unit.words.iter().all(|(pc, _)| is_usable(*pc));
        let is_there = |(_, link): &(u32, Link)| match link {
            Link::Record(_) => true,
            Link::Function(name) => {
                self.stubs.interpreter.function(name).is_ok_and(|f| f.is_some())
            }
        };
        are_usable
            && self.written_granules(&unit.words).iter().all(checked)
            && unit.links.iter().all(is_there)
    }

    /// Counts from now on how often the addresses are reached that a translation goes to.
    fn count_at(&mut self, unit: &Unit) {
        for (_, link) in &unit.links {
            let Link::Record(pc) = *link else { continue };
            // Its own instructions are left to their handlers where an access is slow, which is no way to go.
            if unit.words.binary_search_by_key(&pc, |(pc, _)| *pc).is_ok() {
                continue;
            }
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
                let may = self.may_translate(pc) && self.joins(key.entry(), pc);
                may.then(|| fetch(pc)).flatten()
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
    pub(super) fn may_translate(&self, pc: u64) -> bool {
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
}
