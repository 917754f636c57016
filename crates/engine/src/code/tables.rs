//! What records of code are kept in.

use std::ops::Range;

use kvrm_mem::{GRANULE, PAGE};

use crate::kernel::{NOT_DECODED, Record};

/// Records of a granule, and of a page.
pub const GRANULE_RECORDS: usize = (GRANULE / 4) as usize;
pub(super) const PAGE_RECORDS: usize = (PAGE / 4) as usize;
/// Granules of a page.
pub(super) const PAGE_GRANULES: usize = (PAGE / GRANULE) as usize;

/// A page of code.
pub(super) struct Page {
    /// The records of lanes that do not have their own.
    pub(super) records: Box<[Record]>,
    /// How many records of each granule are decoded, those that lanes have of their own included.
    pub(super) decoded: [u32; PAGE_GRANULES],
}

impl Page {
    pub(super) fn new() -> Page {
        let records = vec![Record::special(NOT_DECODED, 0); PAGE_RECORDS].into();
        Page { records, decoded: [0; PAGE_GRANULES] }
    }

    /// The granules with decoded words, a bit for each.
    pub(super) fn flags(&self) -> u64 {
        (0..).zip(&self.decoded).fold(0, |all, (i, count)| all | u64::from(*count != 0) << i)
    }
}

/// A granule of which some lanes have their own records.
pub(super) struct Diverted {
    /// Where the records of all others are.
    pub(super) slot: u32,
    /// How many lanes have their own.
    pub(super) owners: usize,
}

/// A lane's own records of a granule.
pub(super) struct Own {
    pub(super) slot: u32,
    pub(super) records: [Record; GRANULE_RECORDS],
}

/// Who has a slot.
pub(super) enum Holder {
    Nobody,
    /// All lanes that do not have their own records of a granule.
    Others(u64),
    /// A lane, for its own records of a granule.
    Lane(usize, u64),
}

/// Room for the records of diverted granules.
#[derive(Default)]
pub(super) struct Slots {
    pub(super) holders: Vec<Holder>,
    free: Vec<u32>,
}

impl Slots {
    pub(super) fn used(&self) -> usize {
        self.holders.len() - self.free.len()
    }

    pub(super) fn take(&mut self, holder: Holder) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.holders[slot as usize] = holder;
            return slot;
        }
        self.holders.push(holder);
        self.holders.len() as u32 - 1
    }

    pub(super) fn give_back(&mut self, slot: u32) {
        self.holders[slot as usize] = Holder::Nobody;
        self.free.push(slot);
    }
}

pub(super) fn is_decoded(record: &Record) -> bool {
    record.handler() != NOT_DECODED
}

pub(super) fn count_decoded(records: &[Record]) -> u32 {
    records.iter().filter(|record| is_decoded(record)).count() as u32
}

/// Puts a record in another's place. By how much that changes the number of those that are decoded.
pub(super) fn replace(place: &mut Record, record: Record) -> i32 {
    let old = std::mem::replace(place, record);
    i32::from(is_decoded(&record)) - i32::from(is_decoded(&old))
}

/// The page that a granule is in.
pub(super) fn page_of(granule: u64) -> u64 {
    granule * GRANULE / PAGE
}

pub(super) fn granule_of(records: &[Record]) -> [Record; GRANULE_RECORDS] {
    records.try_into().expect("as many as a granule has")
}

/// Where a granule is in its page, and where its records are among the page's.
pub(super) fn in_page(granule: u64) -> (usize, Range<usize>) {
    let index = granule as usize % PAGE_GRANULES;
    (index, index * GRANULE_RECORDS..(index + 1) * GRANULE_RECORDS)
}
