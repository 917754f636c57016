//! What machines that share translations agree on: the code that they have at which addresses.
//!
//! Code is divided into *segments*: pages that follow one another, can be executed, and cannot be written. A machine that
//! reaches code says which pages it has there ([`Segments::agree`]). Either these make up a new segment, or the machine must have
//! the segment that is there as it is, from its first to its last byte. So within a segment, code goes from one record to the
//! other without asking anybody. Where it leaves a segment, it goes to a *gate*, a record that leads back to the engine,
//! because the machine that arrives there may have something else, or nothing.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::record::Record;

/// The segments of all machines that share translations.
#[derive(Default)]
pub(crate) struct Segments {
    /// The bytes of each, by its first address.
    segments: BTreeMap<u64, Box<[u8]>>,
    gates: HashMap<u64, Box<Record>>,
}

/// Addresses that a machine can execute and cannot write, and what it has there.
pub(crate) struct Executable<'m> {
    pub(crate) range: Range<u64>,
    pub(crate) bytes: &'m [u8],
}

impl Executable<'_> {
    /// True if the machine has all of a segment.
    fn has(&self, start: u64, bytes: &[u8]) -> bool {
        let end = start + bytes.len() as u64;
        let is_within = self.range.start <= start && end <= self.range.end;
        is_within && {
            let at = (start - self.range.start) as usize;
            self.bytes[at..at + bytes.len()] == *bytes
        }
    }
}

impl Segments {
    /// The segment with an address.
    pub(crate) fn find(&self, addr: u64) -> Option<Range<u64>> {
        let (start, bytes) = self.segments.range(..=addr).next_back()?;
        let range = *start..start + bytes.len() as u64;
        range.contains(&addr).then_some(range)
    }

    /// True if two addresses are in the same segment.
    pub(crate) fn joins(&self, one: u64, other: u64) -> bool {
        self.find(one).is_some_and(|segment| segment.contains(&other))
    }

    /// The segment that holds an address among those that a machine can execute; `None` if the machine does not have it as it
    /// is. What was in no segment becomes one.
    pub(crate) fn agree(&mut self, addr: u64, own: &Executable<'_>) -> Option<Range<u64>> {
        if let Some(segment) = self.find(addr) {
            return own.has(segment.start, &self.segments[&segment.start]).then_some(segment);
        }
        let before = self.segments.range(..addr).next_back();
        let start = before.map_or(0, |(start, bytes)| start + bytes.len() as u64);
        let end = self.segments.range(addr..).next().map_or(u64::MAX, |(start, _)| *start);
        let segment = start.max(own.range.start)..end.min(own.range.end);
        let [first, last] = [segment.start, segment.end].map(|at| (at - own.range.start) as usize);
        self.segments.insert(segment.start, own.bytes[first..last].into());
        Some(segment)
    }

    /// True if a machine has all segments that have any of the addresses that it can execute.
    pub(crate) fn agrees(&self, own: &Executable<'_>) -> bool {
        let first = self.find(own.range.start).map_or(own.range.start, |segment| segment.start);
        self.segments.range(first..own.range.end).all(|(start, bytes)| own.has(*start, bytes))
    }

    /// The gate to an address, whose record leads to the engine by `empty`.
    pub(crate) fn gate(&mut self, pc: u64, empty: *const u8) -> *mut Record {
        let gate = self.gates.entry(pc).or_insert_with(|| Box::new(Record::gate(pc, empty)));
        &raw mut **gate
    }

    /// How many gates there are.
    pub(crate) fn gates(&self) -> usize {
        self.gates.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(start: u64, bytes: &[u8]) -> Executable<'_> {
        Executable { range: start..start + bytes.len() as u64, bytes }
    }

    #[test]
    fn machines_have_segments_as_a_whole_or_not_at_all() {
        let mut segments = Segments::default();
        assert_eq!(segments.agree(12, &own(10, b"abcd")), Some(10..14));
        assert_eq!(segments.agree(13, &own(8, b"..abcdef")), Some(10..14));
        assert_eq!(segments.agree(10, &own(10, b"abc")), None, "not all of it");
        assert_eq!(segments.agree(10, &own(10, b"abcx")), None, "another");
        // What is beside it is another segment.
        assert_eq!(segments.agree(15, &own(8, b"..abcdef")), Some(14..16));
        assert_eq!(segments.agree(8, &own(8, b"..abcdef")), Some(8..10));
        assert!(segments.joins(10, 13) && !segments.joins(13, 14) && !segments.joins(7, 7));
        assert_eq!(segments.find(16), None);
    }

    #[test]
    fn all_that_overlaps_must_agree() {
        let mut segments = Segments::default();
        segments.agree(10, &own(10, b"abcd"));
        segments.agree(20, &own(20, b"efgh"));
        assert!(segments.agrees(&own(10, b"abcd")) && segments.agrees(&own(14, b"......efgh")));
        assert!(segments.agrees(&own(24, b"other")));
        assert!(!segments.agrees(&own(12, b"cd")) && !segments.agrees(&own(14, b"......efg")));
        assert!(!segments.agrees(&own(8, b"..abcd......efgx")));
    }

    #[test]
    fn there_is_one_gate_to_an_address() {
        let mut segments = Segments::default();
        let empty = std::ptr::null();
        let gates = [8, 12, 8].map(|pc| segments.gate(pc, empty));
        assert_eq!((gates[0], segments.gates()), (gates[2], 2));
        // SAFETY: the segments have it.
        assert_eq!(unsafe { (*gates[1]).pc() }, 12);
    }
}
