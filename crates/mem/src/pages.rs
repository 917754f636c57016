//! The pages of mapped memory as the accesses of guests see them.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use kvrm_ir::Access;

use crate::written::Written;
use crate::{
    FAR, GRANULE, HOLDS_READABLE, OPEN, OPEN_FAR, OPEN_NEAR, PAGE, Permissions, READABLE,
    READABLE_FAR,
};

/// Granules in a page.
const GRANULES: u64 = PAGE / GRANULE;
/// What stores need: an open granule may be read, too.
const READ_WRITE: Permissions = Permissions::READ.union(Permissions::WRITE);
/// Granules behind the first one that an access may reach.
const NEXT: u32 = 1;
/// The same for the longest.
const REACH: u32 = (FAR / GRANULE) as u32;

// What begins in a page ends in the next at the latest.
const _: () = assert!(FAR < PAGE);

/// The permissions of pages, and the state of granules, which follows from them. Threads may share it.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'m> {
    permissions: *const u8,
    granules: *mut u8,
    /// How many pages there are.
    count: u64,
    written: &'m Written,
    watched: &'m [(usize, Range<u64>)],
}

/// Ranges of bytes that are watched, with their numbers.
pub(crate) type Watched = Vec<(usize, Range<u64>)>;

/// The numbers of ranges that some of these bytes are in.
pub(crate) fn touched(
    watched: &[(usize, Range<u64>)],
    addr: u64,
    len: u64,
) -> impl Iterator<Item = usize> {
    let end = addr.saturating_add(len);
    let has = move |range: &Range<u64>| addr < range.end && range.start < end;
    watched.iter().filter(move |(_, range)| has(range)).map(|(number, _)| *number)
}

impl<'m> Pages<'m> {
    /// Pages with a byte of permissions each, and a byte of state for each of their granules; those that are written, and
    /// watched bytes.
    ///
    /// # Safety
    /// Both must stay mapped for the lifetime of the result. Meanwhile nobody writes permissions, and all use the states as
    /// atomic numbers.
    pub(crate) unsafe fn new(
        permissions: *const u8,
        granules: *mut u8,
        count: u64,
        written: &'m Written,
        watched: &'m [(usize, Range<u64>)],
    ) -> Pages<'m> {
        Pages { permissions, granules, count, written, watched }
    }

    /// Notes that bytes in memory are written.
    pub(crate) fn note_written(self, addr: u64, len: u64) {
        let last = addr.saturating_add(len - 1) / PAGE;
        (addr / PAGE..=last.min(self.count - 1)).for_each(|page| self.written.add(page));
    }

    /// The numbers of watched ranges that some of these bytes are in.
    pub(crate) fn touched(self, addr: u64, len: u64) -> impl Iterator<Item = usize> + 'm {
        touched(self.watched, addr, len)
    }

    /// The granules of a page and the next with watched bytes, a bit each.
    fn watched_granules(self, page: u64) -> u128 {
        let first = page * GRANULES;
        let granules = |range: &Range<u64>| {
            let end = range.end.div_ceil(GRANULE).min(first + 2 * GRANULES);
            (range.start / GRANULE).max(first)..end
        };
        let all = self.watched.iter().flat_map(|(_, range)| granules(range));
        all.fold(0, |bits, granule| bits | 1 << (granule - first))
    }

    /// What guests may do with a page: nothing with one that is not there.
    fn permissions(self, page: u64) -> Permissions {
        if page >= self.count {
            return Permissions::NONE;
        }
        // SAFETY: there is a byte for each page, as `new` was promised.
        Permissions::from_bits(unsafe { self.permissions.add(page as usize).read() })
    }

    /// Checks an access to bytes in memory; the error is the address of the first byte that may not be accessed.
    pub(crate) fn probe(self, access: Access, addr: u64, len: u32) -> Result<(), u64> {
        self.check(Permissions::needed(access), addr, len)
    }

    /// Checks that an instruction may be fetched.
    pub(crate) fn probe_fetch(self, addr: u64, len: u32) -> Result<(), u64> {
        self.check(Permissions::EXECUTE, addr, len)
    }

    fn check(self, needed: Permissions, addr: u64, len: u32) -> Result<(), u64> {
        let last = addr.saturating_add(u64::from(len) - 1);
        let refused =
            (addr / PAGE..=last / PAGE).find(|page| !self.permissions(*page).contains(needed));
        refused.map_or(Ok(()), |page| Err(addr.max(page * PAGE)))
    }

    /// True if all granules of these bytes have a bit in their states.
    pub(crate) fn all_have(self, bit: u8, addr: u64, len: u64) -> bool {
        let granules = addr / GRANULE..=addr.saturating_add(len - 1) / GRANULE;
        let is_inside = *granules.end() < self.count * GRANULES;
        is_inside
            && granules
                .into_iter()
                .all(|granule| self.state(granule).load(Ordering::Relaxed) & bit != 0)
    }

    /// Lets accesses to the granules of the page with `addr` proceed, as far as it allows them; stores only if it was noted
    /// as written. Those whose bit is set in `closed`, in that of the page or of the next, are not opened.
    pub(crate) fn admit(self, addr: u64, closed: [u64; 2]) {
        let page = addr / PAGE;
        if page >= self.count {
            return;
        }
        let watched = self.watched_granules(page);
        let pages = [page, page + 1];
        // A bit for each granule of the two pages.
        let where_all = |are: [bool; 2]| both(are.map(|is| if is { u64::MAX } else { 0 }));
        let [readable, writable] = [Permissions::READ, READ_WRITE].map(|needed| {
            where_all(pages.map(|page| self.permissions(page).contains(needed))) & !watched
        });
        let writable = writable & where_all(self.written.has(pages));
        let open = writable & !both(closed);
        let bits = [
            (readable, HOLDS_READABLE),
            (through(readable, NEXT), READABLE),
            (through(readable, REACH), READABLE_FAR),
            (open, OPEN),
            (through(open, NEXT), OPEN_NEAR),
            (through(open, REACH), OPEN_FAR),
        ];
        for index in 0..GRANULES {
            let bit =
                |(granules, bit): &(u128, u8)| if granules >> index & 1 != 0 { *bit } else { 0 };
            let state = bits.iter().map(bit).fold(0, |state, bit| state | bit);
            self.state(page * GRANULES + index).store(state, Ordering::Relaxed);
        }
    }

    /// Closes the granules of a page whose bit is set, for stores, and those before them for stores that reach them.
    pub(crate) fn close(self, page: u64, closed: u64) {
        // Nothing says that stores to it may proceed.
        if !self.permissions(page).contains(READ_WRITE) {
            return;
        }
        let closed = both([0, closed]);
        let reaching = |reach: u32| (0..=reach).fold(0, |all, by| all | closed >> by);
        let bits = [(closed, OPEN), (reaching(NEXT), OPEN_NEAR), (reaching(REACH), OPEN_FAR)];
        // Those of the page before it come first.
        for index in GRANULES - u64::from(REACH)..2 * GRANULES {
            let bit =
                |(granules, bit): &(u128, u8)| if granules >> index & 1 != 0 { *bit } else { 0 };
            let lost = bits.iter().map(bit).fold(0, |lost, bit| lost | bit);
            let Some(granule) = (page * GRANULES + index).checked_sub(GRANULES) else { continue };
            let state = self.state(granule);
            if state.load(Ordering::Relaxed) & lost != 0 {
                state.fetch_and(!lost, Ordering::SeqCst);
            }
        }
    }

    fn state(&self, granule: u64) -> &AtomicU8 {
        assert!(granule < self.count * GRANULES, "there is no granule {granule}");
        // SAFETY: there is a byte for each granule, as `new` was promised.
        unsafe { AtomicU8::from_ptr(self.granules.add(granule as usize)) }
    }
}

/// The bits of a page's granules and of the next page's.
fn both([first, second]: [u64; 2]) -> u128 {
    u128::from(second) << GRANULES | u128::from(first)
}

/// The granules whose bit is set, with those of so many behind them.
fn through(granules: u128, reach: u32) -> u128 {
    (0..=reach).fold(granules, |all, by| all & granules >> by)
}
