//! A machine's part in a pool of translations.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use kvrm_ir::Access;
use kvrm_mem::{GuestMemory, PAGE, RawMemory};

use crate::code::Translations;
use crate::pool::{Pool, Pools};
use crate::record::{Links, Table};
use crate::segments::Executable;

/// How often a machine goes to another pool because it has other code than it had: after that, it has translations of its own.
const MOST_MOVES: u32 = 8;

/// What a machine that shares translations has to itself: the way to records of code that it has.
pub(crate) struct Sharing {
    links: Links,
    /// Segments that it has, first address and the one behind the last, as long as it does not change anything there.
    claimed: BTreeMap<u64, u64>,
    moves: u32,
}

impl Sharing {
    pub(crate) fn new(memory_size: u64) -> Sharing {
        Sharing { links: Links::new(memory_size, true), claimed: BTreeMap::new(), moves: 0 }
    }

    /// For a machine of the same pool that has the same memory but for these bytes.
    pub(crate) fn sibling(&self, memory_size: u64, differs: &[Range<u64>]) -> Sharing {
        let mut sibling = Sharing::new(memory_size);
        sibling.claimed = self.claimed.clone();
        differs.iter().for_each(|bytes| sibling.drop_claims(bytes));
        sibling
    }

    /// Where running code finds records.
    pub(crate) fn table(&self) -> &Arc<Table> {
        self.links.table()
    }

    /// True if the machine has the segment of an address.
    pub(crate) fn has(&self, pc: u64) -> bool {
        self.claimed.range(..=pc).next_back().is_some_and(|(_, end)| pc < *end)
    }

    /// Says that the machine has the segment of an address that it can execute; false if it has not.
    pub(crate) fn claim(
        &mut self,
        pc: u64,
        memory: &RawMemory<'_>,
        code: &mut Translations,
    ) -> bool {
        if self.has(pc) {
            return true;
        }
        let Some(range) = executable(memory, pc) else { return false };
        // SAFETY: the machine has one lane, which does not run now.
        let bytes = unsafe { memory.bytes(range.clone()) };
        let Some(segment) = code.agree(pc, &Executable { range, bytes }) else { return false };
        self.claimed.insert(segment.start, segment.end);
        true
    }

    /// Lets running code find the records around an address that it has.
    pub(crate) fn link(&mut self, pc: u64, code: &mut Translations) {
        self.links.add(pc, code.sheet(pc));
    }

    /// Notes that bytes change, or what may be done with them.
    pub(crate) fn drop_claims(&mut self, bytes: &Range<u64>) {
        let before = self.claimed.range(..bytes.start).next_back().map(|(start, _)| *start);
        let first = before.unwrap_or(bytes.start);
        let overlaps = |(start, end): (&u64, &u64)| (*end > bytes.start).then_some((*start, *end));
        let changed: Vec<_> =
            self.claimed.range(first..bytes.end.max(first)).filter_map(overlaps).collect();
        for (start, end) in changed {
            self.claimed.remove(&start);
            self.links.remove(start..end);
        }
    }

    /// The pool for a machine that does not have the segment at an address as its pool has it; true if it shares that one.
    pub(crate) fn part(
        &mut self,
        pools: &Pools,
        left: &Arc<Pool>,
        pc: u64,
        memory: &RawMemory<'_>,
    ) -> Result<(Arc<Pool>, bool), kvrm_engine::EngineError> {
        let own = self.claimed.keys().copied().chain([pc]);
        let ranges: Vec<_> = own.map_while(|addr| executable(memory, addr)).collect();
        // What can be written at any time nobody can agree on.
        let is_fixed = ranges.len() == self.claimed.len() + 1;
        self.drop_claims(&(0..u64::MAX));
        self.moves += 1;
        if !is_fixed || self.moves > MOST_MOVES {
            return Ok((pools.alone()?, false));
        }
        let agrees = |range: &Range<u64>, code: &Translations| {
            // SAFETY: as above.
            let bytes = unsafe { memory.bytes(range.clone()) };
            code.agrees(&Executable { range: range.clone(), bytes })
        };
        let fits = |code: &Translations| ranges.iter().all(|range| agrees(range, code));
        Ok((pools.fitting(Some(left), fits)?, true))
    }

    /// Begins anew in another pool, whose memory for code has room.
    pub(crate) fn move_on(&mut self) {
        self.drop_claims(&(0..u64::MAX));
    }

    /// The machine is what it was at the beginning.
    pub(crate) fn begin_again(&mut self) {
        self.moves = 0;
    }
}

/// The pages around an address that can be executed and cannot be written; `None` if its own is not one of them.
fn executable(memory: &RawMemory<'_>, addr: u64) -> Option<Range<u64>> {
    let is_one = |page: u64| {
        memory.probe_fetch(page).is_ok() && memory.probe(Access::Write, page, 1).is_err()
    };
    let page = addr - addr % PAGE;
    if !is_one(page) {
        return None;
    }
    let mut range = page..page + PAGE;
    while range.start > 0 && is_one(range.start - PAGE) {
        range.start -= PAGE;
    }
    while is_one(range.end) {
        range.end += PAGE;
    }
    Some(range)
}
