//! The pages of mapped memory as the accesses of guests see them.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

use kvrm_ir::Access;

use crate::{GRANULE, HOLDS_READABLE, OPEN, PAGE, Permissions, READABLE};

/// Granules in a page.
const GRANULES: u64 = PAGE / GRANULE;

/// The permissions of pages, and the state of granules, which follows from them. Threads may share it.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'m> {
    permissions: *const u8,
    granules: *mut u8,
    /// How many pages there are.
    count: u64,
    memory: PhantomData<&'m ()>,
}

impl<'m> Pages<'m> {
    /// Pages with a byte of permissions each, and a byte of state for each of their granules.
    ///
    /// # Safety
    /// Both must stay mapped for the lifetime of the result. Meanwhile nobody writes permissions, and all use the states as
    /// atomic numbers.
    pub(crate) unsafe fn new(permissions: *const u8, granules: *mut u8, count: u64) -> Pages<'m> {
        Pages { permissions, granules, count, memory: PhantomData }
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

    /// Lets accesses to the granules of the page with `addr` proceed, as far as it allows them. Those whose bit is set in
    /// `closed` are not opened.
    pub(crate) fn admit(self, addr: u64, closed: u64) {
        let page = addr / PAGE;
        let allows = |page, needed| self.permissions(page).contains(needed);
        let reads = allows(page, Permissions::READ);
        let writes = allows(page, Permissions::READ | Permissions::WRITE);
        for index in 0..if page < self.count { GRANULES } else { 0 } {
            // What begins in the last granule may end in the next page.
            let ends_here = index < GRANULES - 1;
            let readable = reads && (ends_here || allows(page + 1, Permissions::READ));
            let open = writes && closed >> index & 1 == 0;
            let bits = [(reads, HOLDS_READABLE), (readable, READABLE), (open, OPEN)];
            let state =
                bits.iter().fold(0, |state, (set, bit)| state | if *set { *bit } else { 0 });
            let granule = page * GRANULES + index;
            // SAFETY: there is a byte for each granule, as `new` was promised.
            let byte = unsafe { AtomicU8::from_ptr(self.granules.add(granule as usize)) };
            byte.store(state, Ordering::Relaxed);
        }
    }
}
