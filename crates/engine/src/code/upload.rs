//! How records get to a device, and how they lie there.

use std::collections::BTreeSet;
use std::ops::Range;

use kvrm_mem::{GRANULE, PAGE};

use super::DecodedCode;
use super::tables::{GRANULE_RECORDS, Holder, PAGE_GRANULES, PAGE_RECORDS};
use crate::EngineError;
use crate::kernel::Record;

/// What there is room for on a device.
///
/// The **table** has the records of all words from the first page to the last, and records that are not decoded behind
/// them, for lanes that run beyond the end. It is for all lanes: a kernel finds a record by arithmetic. In mapped memory, it
/// has parts, one for each *block* of memory with code, and kernels look up which.
///
/// Granules that a lane has changed are *diverted*: their records in the table are
/// [`DIVERTED`](crate::kernel::DIVERTED), with the number of the granule (`DecodedCode::granule`) and the place where the
/// records of lanes are that have not changed it. The **slots** have those, and each lane's own, of a granule each. The **directory** says which lanes have their own: it is a hash table of lane, granule and
/// place. An entry is searched from [`directory_index`] on, up to one that is [free](NOBODY).
///
/// The **map** has a flag for each granule, from a page before the table to one after it: whether it holds decoded words
/// in any lane. (Stores may begin before the code and end behind it.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Pages of the table, by number.
    pub pages: Range<u64>,
    /// Slots there can be.
    pub slots: u32,
}

/// An entry of the directory: lane, granule, and the place in two halves.
pub type DirectoryEntry = [u32; 4];

/// The lane of an entry that is free.
pub const NOBODY: u32 = u32::MAX;

/// What lane and granule are multiplied with to find an entry of the directory.
pub const DIRECTORY_FACTORS: [u32; 2] = [0x9e37_79b1, 0x85eb_ca6b];
/// By how much the product is shifted, to be mixed with itself.
pub const DIRECTORY_SHIFT: u32 = 15;

/// Where to start searching in a directory; only the lower bits count, as many as its length has.
pub fn directory_index(lane: u32, granule: u32) -> u32 {
    let [first, second] = DIRECTORY_FACTORS;
    let product = lane.wrapping_mul(first).wrapping_add(granule).wrapping_mul(second);
    product ^ product >> DIRECTORY_SHIFT
}

impl Layout {
    /// Records of the table, with those behind its end.
    pub fn table_records(&self) -> usize {
        (self.pages.end - self.pages.start) as usize * PAGE_RECORDS + GRANULE_RECORDS
    }

    /// Records of all slots.
    pub fn slot_records(&self) -> usize {
        self.slots as usize * GRANULE_RECORDS
    }

    /// Entries of the directory: a power of two, and at least half of them are free.
    pub fn directory_len(&self) -> usize {
        (2 * self.slots as usize).next_power_of_two()
    }

    /// Flags of the map.
    pub fn map_len(&self) -> usize {
        (self.pages.end - self.pages.start + 2) as usize * PAGE_GRANULES
    }

    /// Bytes of table, slots and directory.
    pub fn bytes(&self) -> u64 {
        let records = self.table_records() + self.slot_records();
        (records * size_of::<Record>() + self.directory_len() * size_of::<DirectoryEntry>()) as u64
    }
}

/// Where a device keeps records.
pub trait CodeDevice {
    /// Makes room, all of it zero: records that are not decoded, granules without code. Nothing is left of what was
    /// there before.
    fn make_room(&mut self, layout: &Layout) -> Result<(), EngineError>;

    /// Where a slot is, for [`Record::diverted`] and the directory.
    fn place(&self, slot: u32) -> u64;

    /// Writes records of the table, from a page of it on, and flags of the map, a bit for each granule of a page.
    fn write_pages(
        &mut self,
        first: u64,
        records: &[Record],
        flags: &[u64],
    ) -> Result<(), EngineError>;

    /// Writes slots from that one on.
    fn write_slots(&mut self, first: u32, records: &[Record]) -> Result<(), EngineError>;

    /// Writes the directory.
    fn write_directory(&mut self, entries: &[DirectoryEntry]) -> Result<(), EngineError>;

    /// Writes which part of the table each block of mapped memory has, counted from one; zero if it has none.
    fn write_blocks(&mut self, parts: &[u32]) -> Result<(), EngineError>;
}

/// What a device has not got yet.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) all: bool,
    pub(super) pages: BTreeSet<u64>,
    pub(super) slots: BTreeSet<u32>,
    pub(super) directory: bool,
    pub(super) blocks: bool,
}

impl Changes {
    fn is_empty(&self) -> bool {
        let flags = [self.all, self.directory, self.blocks];
        flags == [false; 3] && self.pages.is_empty() && self.slots.is_empty()
    }
}

/// Pages that are written together, and slots.
const PAGES_AT_ONCE: u64 = 64;
const SLOTS_AT_ONCE: u64 = PAGES_AT_ONCE * PAGE_GRANULES as u64;

impl DecodedCode {
    /// Brings a device up to date: writes what has changed since the last time.
    pub fn upload(&mut self, device: &mut impl CodeDevice) -> Result<(), EngineError> {
        let changes = std::mem::take(&mut self.changes);
        if changes.is_empty() {
            return Ok(());
        }
        let written = self.write_changes(&changes, device);
        // Where it failed, nobody knows what is there.
        self.changes.all = written.is_err();
        written
    }

    fn write_changes(
        &self,
        changes: &Changes,
        device: &mut impl CodeDevice,
    ) -> Result<(), EngineError> {
        if !changes.all {
            self.write_pages(device, changes.pages.iter().copied())?;
            self.write_slots(device, changes.slots.iter().copied())?;
        } else {
            device.make_room(&self.layout)?;
            self.write_pages(device, self.pages.keys().copied())?;
            self.write_slots(device, 0..self.slots.holders.len() as u32)?;
        }
        if (changes.all || changes.directory) && self.layout.slots > 0 {
            device.write_directory(&self.directory(device))?;
        }
        match &self.blocks {
            Some(blocks) if changes.all || changes.blocks => device.write_blocks(&blocks.table()),
            _ => Ok(()),
        }
    }

    fn write_pages(
        &self,
        device: &mut impl CodeDevice,
        pages: impl Iterator<Item = u64>,
    ) -> Result<(), EngineError> {
        let pages = pages.filter(|page| self.pages.contains_key(page));
        let place =
            |page: u64| self.page_of_table(page).expect("there is room for pages with code");
        let follows = |page: u64, next: u64| place(page) + 1 == place(next);
        for run in runs(pages, PAGES_AT_ONCE, follows) {
            let first = place(run.start);
            let pages = || run.clone().map(|page| &self.pages[&page]);
            let records = pages().flat_map(|page| page.records.iter());
            let mut records: Vec<Record> =
                records.map(|record| self.handlers.in_kernel(*record)).collect();
            let flags: Vec<u64> = pages().map(|page| page.flags()).collect();
            let granules = run.start * PAGE / GRANULE..run.end * PAGE / GRANULE;
            for (granule, diverted) in self.diverted.range(granules.clone()) {
                let at = (granule - granules.start) as usize * GRANULE_RECORDS;
                let record =
                    Record::diverted(DecodedCode::granule(*granule), device.place(diverted.slot));
                records[at..at + GRANULE_RECORDS].fill(record);
            }
            self.mark_blocks(run.start * PAGE, &mut records);
            device.write_pages(first, &records, &flags)?;
        }
        Ok(())
    }

    fn write_slots(
        &self,
        device: &mut impl CodeDevice,
        slots: impl Iterator<Item = u32>,
    ) -> Result<(), EngineError> {
        for run in runs(slots.map(u64::from), SLOTS_AT_ONCE, |_, _| true) {
            let slots = run.start as usize..run.end as usize;
            let records = self.slots.holders[slots].iter().flat_map(|holder| match holder {
                Holder::Nobody => [Record::default(); GRANULE_RECORDS],
                Holder::Others(granule) => self.common(*granule),
                Holder::Lane(lane, granule) => self.own[&(*lane, *granule)].records,
            });
            let records: Vec<Record> =
                records.map(|record| self.handlers.in_kernel(record)).collect();
            device.write_slots(run.start as u32, &records)?;
        }
        Ok(())
    }

    fn directory(&self, device: &impl CodeDevice) -> Vec<DirectoryEntry> {
        let mut entries = vec![[NOBODY, 0, 0, 0]; self.layout.directory_len()];
        let mask = entries.len() - 1;
        for ((lane, granule), own) in &self.own {
            let (lane, granule) = (*lane as u32, DecodedCode::granule(*granule));
            let mut at = directory_index(lane, granule) as usize & mask;
            while entries[at][0] != NOBODY {
                at = (at + 1) & mask;
            }
            let place = device.place(own.slot);
            entries[at] = [lane, granule, place as u32, (place >> 32) as u32];
        }
        entries
    }
}

/// Puts ascending numbers together that follow each other, up to so many, and what they stand for does, too.
fn runs(
    numbers: impl Iterator<Item = u64>,
    most: u64,
    follows: impl Fn(u64, u64) -> bool,
) -> impl Iterator<Item = Range<u64>> {
    let mut numbers = numbers.peekable();
    std::iter::from_fn(move || {
        let start = numbers.next()?;
        let mut end = start + 1;
        let is_next = |end: u64, next: &u64| *next == end && follows(end - 1, end);
        while end - start < most && numbers.next_if(|next| is_next(end, next)).is_some() {
            end += 1;
        }
        Some(start..end)
    })
}
