//! Decoded code, for engines that interpret on a device: records of what lanes have reached, and how the
//! host sees to lanes that reach more, or change it.
//!
//! No more is decoded than what is near to where lanes are: a bounded number of instructions each time that a lane
//! meets code without records ([`DecodedCode::find`]). The records of all lanes are the same, except in granules where a
//! lane's words differ from those of others: such a lane has its own records of the granule, and no more.

mod ahead;
mod blocks;
mod sweep;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod translated;
mod upload;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_mem::{GRANULE, PAGE, Permissions};

pub use ahead::reachable;
pub use blocks::{BLOCK_PAGES, BLOCK_STRIDE};
pub use tables::GRANULE_RECORDS;
pub use upload::{
    CodeDevice, DIRECTORY_FACTORS, DIRECTORY_SHIFT, DirectoryEntry, Layout, NOBODY, directory_index,
};

use crate::kernel::{
    BREAKPOINT, FIRST_HANDLER, Handlers, NOT_DECODED, ON_HOST, Record, Selection, Wanted,
};
use crate::lane_view::{LaneMemory, Words};
use crate::memory::DeviceMemory;
use crate::translation::Translation;
use crate::{EngineError, Lacking, Step, Stop, fetch, step};
use blocks::Blocks;
use tables::{
    Diverted, Holder, Own, PAGE_GRANULES, PAGE_RECORDS, Page, Slots, count_decoded, granule_of,
    in_page, is_decoded, page_of, replace,
};
use upload::Changes;

/// Pages of code may lie this far apart: 256 MiB.
const SPAN: u64 = (256 << 20) / PAGE;
/// Instructions that are decoded before lanes get there, in one round of seeing to stopped lanes.
pub const AHEAD: usize = 1 << 16;
/// The same for one lane, when a round has used up its share.
const AHEAD_OF_EACH: usize = 64;
/// How far away from a lane code is decoded, in bytes, and how many pages are looked at.
const NEAR: u64 = 4 << 20;
const NEAR_PAGES: usize = 256;
/// Slots to begin with, and the most, whatever a device has room for: the host has all of them, too. They take a
/// gigabyte on the device.
const FIRST_SLOTS: u32 = 64;
const MOST_SLOTS: u32 = 1 << 22;
/// Lanes whose memory is compared together.
const LANES_AT_ONCE: usize = 256;

/// Records of the code that lanes have reached, for all addresses from the first page of it to the last; in mapped memory,
/// for all of the blocks that have some.
pub struct DecodedCode {
    /// The handlers that records ask for.
    pub handlers: Handlers,
    /// Where memory begins that only supervisors may access.
    program_end: u64,
    breakpoints: Vec<u64>,
    /// From the first page with records to the last, by number; nothing in mapped memory.
    span: Range<u64>,
    /// What mapped memory has instead.
    blocks: Option<Blocks>,
    pages: BTreeMap<u64, Page>,
    /// Granules of which some lanes have their own records, by number.
    diverted: BTreeMap<u64, Diverted>,
    /// The records of lanes that have their own, by lane and number of the granule.
    own: BTreeMap<(usize, u64), Own>,
    slots: Slots,
    layout: Layout,
    changes: Changes,
    decoded: u64,
    translation: Option<Arc<Translation>>,
    /// Granules whose words have changed since all records were forgotten: they are not worth a translation.
    unsettled: BTreeSet<u64>,
    /// How often all records were forgotten.
    forgotten: u64,
}

impl DecodedCode {
    /// No code of a flat memory.
    pub fn new() -> DecodedCode {
        DecodedCode {
            handlers: Handlers::by_choice(),
            program_end: u64::MAX,
            breakpoints: Vec::new(),
            span: 0..0,
            blocks: None,
            pages: BTreeMap::new(),
            diverted: BTreeMap::new(),
            own: BTreeMap::new(),
            slots: Slots::default(),
            layout: Layout::default(),
            // A device has nothing yet.
            changes: Changes { all: true, ..Changes::default() },
            decoded: 0,
            translation: None,
            unsettled: BTreeSet::new(),
            forgotten: 0,
        }
    }

    /// No code of a mapped memory of that size.
    pub fn of_mapped(size: u64) -> DecodedCode {
        DecodedCode { blocks: Some(Blocks::new(size)), ..DecodedCode::new() }
    }

    /// The same where lanes may have [supervisors](kvrm_a64::supervised_form), which have the memory that begins there.
    pub fn supervised(self, program_end: u64) -> DecodedCode {
        DecodedCode { handlers: self.handlers.supervised(), program_end, ..self }
    }

    /// Notes that a lane has got to an instruction. False if the kernel has no handler for it, or it is not decoded.
    pub(crate) fn meet(&mut self, lane: usize, at: u64) -> bool {
        if !at.is_multiple_of(4) || !self.has(lane, at) {
            return false;
        }
        let index = (at % PAGE / 4) as usize;
        let record = match self.own.get(&(lane, at / GRANULE)) {
            Some(own) => own.records[index % GRANULE_RECORDS],
            None => self.pages[&(at / PAGE)].records[index],
        };
        self.handlers.meet(record);
        self.handlers.in_kernel(record).handler() != ON_HOST
    }

    /// The handlers that all decoded instructions want.
    pub(crate) fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::default();
        let common = self.pages.values().flat_map(|page| &page.records);
        let own = self.own.values().flat_map(|own| &own.records);
        let numbers =
            common.chain(own).filter_map(|record| record.handler().checked_sub(FIRST_HANDLER));
        numbers.for_each(|handler| wanted.add(handler, 1));
        wanted
    }

    /// Notes that lanes are going to want all that is decoded from an address on.
    pub(crate) fn meet_from(&mut self, addr: u64) {
        let records = self.pages.range(addr / PAGE..).flat_map(|(_, page)| &page.records);
        records.for_each(|record| self.handlers.meet(*record));
    }

    /// Makes the next launch's kernel have some handlers.
    pub(crate) fn choose(&mut self, selection: Arc<Selection>) {
        if *selection != *self.handlers.selection() {
            self.handlers.choose(selection);
            self.changes.all = true;
        }
    }

    /// Does something, such as writing a kernel's text, as if other handlers were chosen.
    pub(crate) fn with_choice<T>(
        &mut self,
        selection: &Arc<Selection>,
        work: impl FnOnce(&DecodedCode) -> T,
    ) -> T {
        let before = self.handlers.replace_choice(selection.clone());
        let result = work(self);
        self.handlers.replace_choice(before);
        result
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        self.span = 0..0;
        if let Some(blocks) = &mut self.blocks {
            blocks.clear();
        }
        self.pages.clear();
        self.diverted.clear();
        self.own.clear();
        self.slots = Slots::default();
        self.layout = Layout::default();
        self.changes = Changes { all: true, ..Changes::default() };
        self.translation = None;
        self.unsettled.clear();
        self.forgotten += 1;
    }

    /// Sets where lanes stop; in ascending order.
    pub fn set_breakpoints(&mut self, breakpoints: &[u64]) {
        if self.breakpoints != breakpoints {
            self.breakpoints = breakpoints.to_vec();
            self.clear();
        }
    }

    /// Where lanes stop.
    pub fn breakpoints(&self) -> &[u64] {
        &self.breakpoints
    }

    /// Address of the first record's instruction.
    pub fn start(&self) -> u64 {
        self.span.start * PAGE
    }

    /// Bytes of code that there are records for; in mapped memory, those of a block.
    pub fn len(&self) -> u64 {
        match self.blocks {
            Some(_) => BLOCK_PAGES * PAGE,
            None => (self.span.end - self.span.start) * PAGE,
        }
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Where the records of a page are, in pages of the table; `None` if there is no room for them.
    fn page_of_table(&self, page: u64) -> Option<u64> {
        match &self.blocks {
            Some(blocks) => blocks.page_of_table(page),
            None => self.span.contains(&page).then(|| page - self.layout.pages.start),
        }
    }

    /// What there is on a device, after an [upload](DecodedCode::upload).
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Which of the table's records is that of the first instruction.
    pub fn first_record(&self) -> u64 {
        (self.span.start - self.layout.pages.start) * PAGE_RECORDS as u64
    }

    /// Which flag of the map is that of the granule before the code; in mapped memory, the first of all.
    pub fn first_flag(&self) -> u64 {
        match self.blocks {
            Some(_) => 0,
            None => (self.span.start - self.layout.pages.start + 1) * PAGE_GRANULES as u64 - 1,
        }
    }

    /// How kernels call a granule. Those of one program are closer together than these numbers can tell apart.
    fn granule(number: u64) -> u32 {
        number as u32
    }

    /// Instructions decoded so far, those that have been forgotten included.
    pub fn decoded(&self) -> u64 {
        self.decoded
    }

    /// The records of lanes that do not have their own.
    fn common(&self, granule: u64) -> [Record; GRANULE_RECORDS] {
        granule_of(&self.pages[&page_of(granule)].records[in_page(granule).1])
    }

    /// True if the lane has its own records of the granule.
    fn has_own(&self, lane: usize, granule: u64) -> bool {
        !self.own.is_empty() && self.own.contains_key(&(lane, granule))
    }

    /// True if the lane's records have the instruction at `at`, which is a multiple of 4.
    fn has(&self, lane: usize, at: u64) -> bool {
        let Some(page) = self.pages.get(&(at / PAGE)) else { return false };
        let index = (at % PAGE / 4) as usize;
        match self.own.get(&(lane, at / GRANULE)) {
            Some(own) => is_decoded(&own.records[index % GRANULE_RECORDS]),
            None => is_decoded(&page.records[index]),
        }
    }

    /// Makes the lane use the records that others have.
    pub fn join(&mut self, lane: usize) {
        let granules =
            self.own.range((lane, 0)..=(lane, u64::MAX)).map(|((_, granule), _)| *granule);
        for granule in granules.collect::<Vec<_>>() {
            let own = self.own.remove(&(lane, granule)).expect("found above");
            self.slots.give_back(own.slot);
            let page = self.pages.get_mut(&page_of(granule)).expect("a page with records");
            page.decoded[in_page(granule).0] -= count_decoded(&own.records);
            let diverted = self.diverted.get_mut(&granule).expect("it has an owner");
            diverted.owners -= 1;
            if diverted.owners == 0 {
                self.slots.give_back(diverted.slot);
                self.diverted.remove(&granule);
            }
            self.changes.pages.insert(page_of(granule));
            self.changes.directory = true;
        }
    }

    /// Gives a lane its own records of a granule, for now those of all others. False if there is no room for them.
    fn divert(
        &mut self,
        memory: &impl DeviceMemory,
        lane: usize,
        granule: u64,
    ) -> Result<bool, EngineError> {
        let is_first = !self.diverted.contains_key(&granule);
        if !self.reserve_slots(memory, 1 + usize::from(is_first))? {
            return Ok(false);
        }
        self.handlers.note_diversion();
        self.unsettle(granule);
        let slots = &mut self.slots;
        let diverted = self
            .diverted
            .entry(granule)
            .or_insert_with(|| Diverted { slot: slots.take(Holder::Others(granule)), owners: 0 });
        diverted.owners += 1;
        let slot = self.slots.take(Holder::Lane(lane, granule));
        self.changes.slots.extend([diverted.slot, slot]);
        let page = self.pages.entry(page_of(granule)).or_insert_with(Page::new);
        let (index, range) = in_page(granule);
        let records = granule_of(&page.records[range]);
        page.decoded[index] += count_decoded(&records);
        self.own.insert((lane, granule), Own { slot, records });
        self.changes.pages.insert(page_of(granule));
        self.changes.directory = true;
        Ok(true)
    }

    /// Makes sure that so many more slots can be taken, if there is room.
    fn reserve_slots(
        &mut self,
        memory: &impl DeviceMemory,
        more: usize,
    ) -> Result<bool, EngineError> {
        let needed = (self.slots.used() + more) as u32;
        if needed <= self.layout.slots {
            return Ok(true);
        }
        if needed > MOST_SLOTS {
            return Ok(false);
        }
        // Twice as many each time, so that all is not copied often.
        let many = needed.max(2 * self.layout.slots).clamp(FIRST_SLOTS, MOST_SLOTS);
        let pages = self.layout.pages.clone();
        Ok(self.lay_out(memory, Layout { pages, slots: many })?
            || self.lay_out(memory, Layout { pages: self.span.clone(), slots: needed })?)
    }

    /// Changes what a device has to have room for, if it has.
    fn lay_out(&mut self, memory: &impl DeviceMemory, layout: Layout) -> Result<bool, EngineError> {
        let fits = layout.bytes() <= memory.most_records(self.layout.bytes())?;
        if fits {
            self.layout = layout;
            self.changes.all = true;
        }
        Ok(fits)
    }

    /// Makes room for the records of a page in mapped memory. False if there is none.
    fn include_block(
        &mut self,
        memory: &impl DeviceMemory,
        page: u64,
    ) -> Result<bool, EngineError> {
        let Some(blocks) = &self.blocks else { return Ok(false) };
        if blocks.page_of_table(page).is_some() {
            return Ok(true);
        }
        let (needed, slots) = (blocks.len() + 1, self.layout.slots);
        let layout = |blocks| Layout { pages: 0..blocks * BLOCK_STRIDE, slots };
        if layout(needed).pages.end > self.layout.pages.end {
            // Twice as many each time, so that all is not copied often.
            let fits = self.lay_out(memory, layout((2 * needed).next_power_of_two()))?
                || self.lay_out(memory, layout(needed))?;
            if !fits {
                return Ok(false);
            }
        }
        self.blocks.as_mut().expect("found above").add(page);
        self.changes.blocks = true;
        Ok(true)
    }

    /// Makes room for the records of words, in ascending order, of which those of `page` are needed. False if there is no
    /// room for these.
    fn include_words(
        &mut self,
        memory: &impl DeviceMemory,
        page: u64,
        words: &[(u64, u32)],
    ) -> Result<bool, EngineError> {
        let ends = words.first().zip(words.last());
        let ((first, _), (last, _)) = ends.expect("there is code where the lane is");
        if self.blocks.is_none() {
            return Ok(self.include(memory, first / PAGE..last / PAGE + 1)?
                || self.include(memory, page..page + 1)?);
        }
        if !self.include_block(memory, page)? {
            // What was decoded before may not be needed any more.
            self.clear();
            return self.include_block(memory, page);
        }
        for words in words.chunk_by(|a, b| a.0 / PAGE == b.0 / PAGE) {
            self.include_block(memory, words[0].0 / PAGE)?;
        }
        Ok(true)
    }

    /// Extends the range to some pages. False if they are too far away, or there is no room.
    fn include(
        &mut self,
        memory: &impl DeviceMemory,
        pages: Range<u64>,
    ) -> Result<bool, EngineError> {
        let span = match self.span.is_empty() {
            true => pages,
            false => self.span.start.min(pages.start)..self.span.end.max(pages.end),
        };
        if span.end - span.start > SPAN {
            return Ok(false);
        }
        let there = &self.layout.pages;
        if span.start < there.start || span.end > there.end {
            let (roomy, slots) = (self.with_room(&span, memory.size() / PAGE), self.layout.slots);
            let fits = self.lay_out(memory, Layout { pages: roomy, slots })?
                || self.lay_out(memory, Layout { pages: span.clone(), slots })?;
            if !fits {
                return Ok(false);
            }
        }
        self.span = span;
        Ok(true)
    }

    /// Pages that a table should have when it has to grow: where it does, as many again, so that all is not copied
    /// often. The first table is no larger than it must be.
    fn with_room(&self, span: &Range<u64>, end: u64) -> Range<u64> {
        let there = &self.layout.pages;
        if there.is_empty() {
            return span.clone();
        }
        let (len, most) = (there.end - there.start, SPAN - (span.end - span.start));
        let above = match span.end > there.end {
            true => len.min(end - span.end),
            false => there.end - span.end,
        };
        let below = match span.start < there.start {
            true => len.min(span.start),
            false => span.start - there.start,
        };
        let above = above.min(most);
        span.start - below.min(most - above)..span.end + above
    }

    /// Prepares for memory of a lane to be written: what was decoded from it is forgotten, for all lanes that have
    /// it. False if there is no room for what the lane needs then.
    pub fn before_write(
        &mut self,
        memory: &impl DeviceMemory,
        lanes: Range<usize>,
        addr: u64,
        len: u64,
    ) -> Result<bool, EngineError> {
        let end = addr + len;
        let pages = self.pages.range(addr / PAGE..end.div_ceil(PAGE));
        let mut written = Vec::new();
        for (page, code) in pages.filter(|_| len > 0) {
            let first = page * PAGE / GRANULE;
            let granules = (first..).zip(&code.decoded).filter(|(_, decoded)| **decoded != 0);
            written.extend(
                granules
                    .map(|(granule, _)| granule)
                    .filter(|granule| granule * GRANULE < end && (granule + 1) * GRANULE > addr),
            );
        }
        for (lane, granule) in lanes.flat_map(|lane| written.iter().map(move |it| (lane, *it))) {
            let start = addr.max(granule * GRANULE);
            let words = start / 4..end.min((granule + 1) * GRANULE).div_ceil(4);
            if !words.clone().any(|word| self.has(lane, 4 * word)) {
                continue;
            }
            let is_private = memory.is_private();
            if is_private && !self.has_own(lane, granule) && !self.divert(memory, lane, granule)? {
                return Ok(false);
            }
            words.for_each(|word| self.set(lane, 4 * word, Record::special(NOT_DECODED, 0)));
        }
        Ok(true)
    }

    /// Changes a record of a lane, or of all that do not have their own.
    fn set(&mut self, lane: usize, at: u64, record: Record) {
        let (granule, index) = (at / GRANULE, (at % PAGE / 4) as usize);
        let page = self.pages.entry(at / PAGE).or_insert_with(Page::new);
        let own = match self.own.is_empty() {
            true => None,
            false => self.own.get_mut(&(lane, granule)),
        };
        let (slot, place) = match own {
            Some(own) => (Some(own.slot), &mut own.records[index % GRANULE_RECORDS]),
            None => {
                let diverted = self.diverted.get(&granule);
                (diverted.map(|diverted| diverted.slot), &mut page.records[index])
            }
        };
        let decoded = &mut page.decoded[in_page(granule).0];
        let (before, forgets) = (*decoded, !is_decoded(&record) && is_decoded(place));
        *decoded = before.checked_add_signed(replace(place, record)).expect("it counts them");
        self.changes.slots.extend(slot);
        // The table has what is in no slot, and with a page of it comes the map.
        if slot.is_none() || (before == 0) != (*decoded == 0) {
            self.changes.pages.insert(at / PAGE);
        }
        if forgets {
            self.unsettle(granule);
        }
    }

    /// Decodes what can be reached from where a lane is. The stop, if there is no code, or no room for it.
    /// `ahead` is how many instructions may still be decoded beyond what lanes need now.
    pub fn find(
        &mut self,
        memory: &mut impl DeviceMemory,
        lane: usize,
        pc: u64,
        ahead: &mut usize,
    ) -> Result<Option<Stop>, EngineError> {
        if pc.is_multiple_of(4) && self.has(lane, pc) {
            return Ok(None);
        }
        let view = LaneMemory::new(memory, lane, None);
        let fetched = fetch(&view, pc);
        view.check()?;
        if let Err(stop) = fetched {
            return Ok(Some(stop));
        }
        let words = Words::new(memory, lane, NEAR_PAGES);
        let wanted = |at: u64| match at.abs_diff(pc) <= NEAR && !self.has(lane, at) {
            true => words.get(at),
            false => None,
        };
        let mut code = reachable([pc], AHEAD_OF_EACH.max(*ahead), wanted);
        words.check()?;
        *ahead = ahead.saturating_sub(code.len());
        code.sort_unstable_by_key(|(at, _)| *at);
        let page = pc / PAGE;
        if !self.include_words(memory, page, &code)? {
            return Ok(Some(Stop::OutOfMemory { lacking: Lacking::Code }));
        }
        for words in code.chunk_by(|a, b| a.0 / PAGE == b.0 / PAGE) {
            let number = words[0].0 / PAGE;
            let fits = self.page_of_table(number).is_some();
            let added = fits && self.add(memory, lane, number, words)?;
            if !added && number == page {
                return Ok(Some(Stop::OutOfMemory { lacking: Lacking::Code }));
            }
        }
        Ok(None)
    }

    /// Adds words of a page to the lane's records, and to those of all lanes that have the same words. False if there
    /// is no room for those that have others.
    fn add(
        &mut self,
        memory: &impl DeviceMemory,
        lane: usize,
        page: u64,
        words: &[(u64, u32)],
    ) -> Result<bool, EngineError> {
        let may_differ = memory.is_private() && (memory.has_copies() || memory.map().is_some());
        if may_differ && !self.divert_changed(memory, lane, page, words)? {
            return Ok(false);
        }
        for (at, word) in words {
            let record = match self.breakpoints.binary_search(at) {
                Ok(_) => Record::special(BREAKPOINT, 0),
                Err(_) => self.handlers.record(*at, *word),
            };
            self.set(lane, *at, record);
        }
        self.decoded += words.len() as u64;
        Ok(true)
    }

    /// Sees to it that lanes with different words have records of their own: this one, if its words are not the
    /// image's; otherwise those whose copies of the page have others than this one, and those that may not execute them.
    /// False if there is no room.
    fn divert_changed(
        &mut self,
        memory: &impl DeviceMemory,
        lane: usize,
        page: u64,
        words: &[(u64, u32)],
    ) -> Result<bool, EngineError> {
        let mut image = vec![0; PAGE as usize];
        memory.read_image_page(page, &mut image)?;
        let is_common = memory
            .map()
            .is_none_or(|map| map.common_permissions(page).contains(Permissions::EXECUTE));
        let own = match is_common {
            true => differing(words, page * PAGE, &image),
            false => granules(words),
        };
        for granule in own {
            if !self.has_own(lane, granule) && !self.divert(memory, lane, granule)? {
                return Ok(false);
            }
        }
        let is_common = |(at, _): &&(u64, u32)| !self.has_own(lane, at / GRANULE);
        let words: Vec<_> = words.iter().filter(is_common).copied().collect();
        let (Some((first, _)), Some((last, _))) = (words.first(), words.last()) else {
            return Ok(true);
        };
        for other in memory.map().map_or(Vec::new(), |map| map.without_code(page)) {
            for granule in granules(&words) {
                if !self.has_own(other, granule) && !self.divert(memory, other, granule)? {
                    return Ok(false);
                }
            }
        }
        let mut others = memory.owners(page)?;
        others.retain(|other| *other != lane && *other < memory.lanes());
        let next_to = |a: &usize, b: &usize| a + 1 == *b;
        let runs = others.chunk_by(next_to).flat_map(|run| run.chunks(LANES_AT_ONCE));
        for run in runs {
            let len = (last + 4 - first) as usize;
            let mut rows = vec![0; run.len() * len];
            memory.read_lanes(run[0]..run[0] + run.len(), *first, &mut rows)?;
            for (other, row) in run.iter().zip(rows.chunks_exact(len)) {
                for granule in differing(&words, *first, row) {
                    if !self.has_own(*other, granule) && !self.divert(memory, *other, granule)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Executes one instruction of a lane on the host: instructions completed (0 or 1), and the stop.
    pub fn step(
        &mut self,
        memory: &mut impl DeviceMemory,
        lane: usize,
        state: &mut CpuState,
        vectors: &mut VectorState,
        count: u64,
    ) -> Result<(u64, Option<Stop>), EngineError> {
        let before = *state;
        let program_end = self.program_end;
        let mut view = LaneMemory::new(memory, lane, Some(self));
        if state.caller != 0 {
            view = view.of_supervisor(program_end);
        }
        let end = step(state, vectors, count, &view, &mut |_, _| ());
        let lacking = view.lacking();
        view.check()?;
        if let Some(lacking) = lacking {
            // It was told that it may not write, and has done nothing.
            *state = before;
            return Ok((0, Some(Stop::OutOfMemory { lacking })));
        }
        Ok(match end {
            Step::Done => (1, None),
            Step::DoneAndStopped(stop) => (1, Some(stop)),
            Step::Stopped(stop) => (0, Some(stop)),
        })
    }
}

impl Default for DecodedCode {
    fn default() -> DecodedCode {
        DecodedCode::new()
    }
}

/// The granules that words are in.
fn granules(words: &[(u64, u32)]) -> Vec<u64> {
    let mut granules: Vec<u64> = words.iter().map(|(at, _)| at / GRANULE).collect();
    granules.dedup();
    granules
}

/// The granules in which words differ from those that `bytes` have, which start at an address.
fn differing(words: &[(u64, u32)], start: u64, bytes: &[u8]) -> Vec<u64> {
    let differs = |(at, word): &&(u64, u32)| {
        let at = (at - start) as usize;
        bytes[at..at + 4] != word.to_le_bytes()
    };
    let mut granules: Vec<u64> = words.iter().filter(differs).map(|(at, _)| at / GRANULE).collect();
    granules.dedup();
    granules
}
