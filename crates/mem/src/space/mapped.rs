//! Mapped memory: its pages have permissions, none at the start.

use std::io;
use std::sync::Arc;

use super::{GRANULES, Segment, Space};
use crate::pages::Pages;
use crate::sparse::SparseFile;
use crate::{CLOSED, FAR, GRANULE, Image, PAGE, Permissions};

/// Bytes up to which clearing them takes less time than giving them back.
const FEW: usize = 1 << 14;

/// Bytes from which on a system call takes less time than a fault of each page.
const MANY: usize = 1 << 14;

/// What mapped memory has beside its bytes and the state of granules. Everything is sparse: pages that nobody has used
/// take nothing.
pub(super) struct Mapped {
    contents: Arc<SparseFile>,
    /// Where the states of granules are.
    states: SparseFile,
    permissions_file: SparseFile,
    /// A byte for every page.
    permissions: Segment,
}

impl Space {
    /// Makes a space of the image itself, for every lane, whose pages have no permissions. All granules start closed, for
    /// reads, too. Only Linux has what this needs.
    pub fn mapped(image: &Image) -> io::Result<Space> {
        if !cfg!(target_os = "linux") {
            let message = "memory with permissions needs Linux";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let pages = image.size() / PAGE;
        let states = SparseFile::new(pages * GRANULES as u64)?;
        let permissions_file = SparseFile::new(pages)?;
        let permissions = Segment::whole(permissions_file.map_shared()?);
        let granules = Segment::whole(states.map_shared()?);
        let contents = Arc::clone(&image.file);
        let mapped = Mapped { contents, states, permissions_file, permissions };
        let space = Space::over(image.file.map_shared()?, granules, false);
        Ok(Space { mapped: Some(mapped), ..space })
    }

    /// Returns the pages as accesses see them, if they have permissions.
    pub(super) fn pages(&mut self) -> Option<Pages<'_>> {
        let mapped = self.mapped.as_ref()?;
        let (permissions, count) = (mapped.permissions.as_ptr(), mapped.permissions.len());
        // SAFETY: the space stays mapped while it is borrowed, and borrowed mutably nobody else uses it.
        Some(unsafe { Pages::new(permissions, self.granules.as_mut_ptr(), count as u64) })
    }

    /// Returns what guests may do with the page that holds `addr`, in mapped memory.
    pub fn permissions(&self, addr: u64) -> Permissions {
        let mapped = self.mapped.as_ref().expect("memory is mapped");
        Permissions::from_bits(mapped.permissions[(addr / PAGE) as usize])
    }

    /// Sets what guests may do with pages of mapped memory. Their granules are closed, for reads, too.
    pub fn protect(&mut self, addr: u64, len: u64, permissions: Permissions) -> io::Result<()> {
        let mapped = self.mapped.as_mut().expect("memory is mapped");
        let (first, end) = ((addr / PAGE) as usize, ((addr + len) / PAGE) as usize);
        match permissions {
            Permissions::NONE => {
                clear(&mut mapped.permissions, &mapped.permissions_file, first, end)?;
            }
            _ => mapped.permissions[first..end].fill(permissions.bits()),
        }
        // What begins before the first page may end in it.
        let before = (first * GRANULES).saturating_sub((FAR / GRANULE) as usize);
        clear(&mut self.granules, &mapped.states, before, end * GRANULES)
    }

    /// Writes very many bytes to mapped memory, as programs are; false if there are not so many, or it did not work.
    pub(super) fn write_many(&self, addr: u64, bytes: &[u8]) -> bool {
        let is_many = bytes.len() >= MANY;
        // A file would grow.
        let is_inside =
            self.size().checked_sub(addr).is_some_and(|left| bytes.len() as u64 <= left);
        is_many
            && is_inside
            && self.mapped.as_ref().is_some_and(|mapped| mapped.contents.write(addr, bytes))
    }

    /// Makes bytes of mapped memory zero again, and gives their memory back to the host.
    pub fn discard(&mut self, addr: u64, len: u64) -> io::Result<()> {
        let mapped = self.mapped.as_mut().expect("memory is mapped");
        mapped.contents.discard(addr..addr + len)
    }

    /// Makes mapped memory equal to another of the same size, permissions included. Takes time for what was written there,
    /// not for the whole size.
    pub fn copy_from(&mut self, other: &Space) -> io::Result<()> {
        assert_eq!(self.size(), other.size(), "memories differ in size");
        let [Some(to), Some(from)] = [&self.mapped, &other.mapped] else {
            panic!("memory is not mapped")
        };
        to.contents.copy_from(&from.contents, other.bytes())?;
        to.permissions_file.copy_from(&from.permissions_file, &from.permissions)?;
        to.states.discard(0..self.granules.len() as u64)
    }
}

/// Makes a part of a file zero.
fn clear(bytes: &mut Segment, file: &SparseFile, start: usize, end: usize) -> io::Result<()> {
    if end - start > FEW {
        return file.discard(start as u64..end as u64);
    }
    bytes[start..end].fill(CLOSED);
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::{Duration, Instant};

    use kvrm_ir::Access;

    use super::*;
    use crate::{GuestMemory, HOLDS_READABLE, OPEN, OPEN_FAR, OPEN_NEAR, READABLE, READABLE_FAR};

    const READ: Permissions = Permissions::READ;
    const WRITE: Permissions = Permissions::WRITE;

    fn mapped(size: u64) -> Space {
        Space::mapped(&Image::new(size).unwrap()).unwrap()
    }

    #[test]
    fn accesses_need_permissions_of_all_their_pages() {
        let mut space = mapped(4 * PAGE);
        space.protect(PAGE, PAGE, READ | WRITE).unwrap();
        space.protect(2 * PAGE, PAGE, READ | Permissions::EXECUTE).unwrap();
        let raw = space.raw();
        let probe = |access, addr| raw.probe(access, addr, 8);
        assert_eq!(probe(Access::Read, PAGE - 4), Err(PAGE - 4));
        assert_eq!(probe(Access::Read, 2 * PAGE - 4), Ok(()));
        assert_eq!(probe(Access::Write, 2 * PAGE - 4), Err(2 * PAGE));
        assert_eq!(probe(Access::ReadWrite, 2 * PAGE - 8), Ok(()));
        assert_eq!(probe(Access::Read, 3 * PAGE - 1), Err(3 * PAGE));
        assert_eq!(probe(Access::Read, 4 * PAGE), Err(4 * PAGE));
        assert_eq!(probe(Access::Read, u64::MAX - 1), Err(u64::MAX - 1));
        assert_eq!(raw.probe_fetch(2 * PAGE), Ok(()));
        assert_eq!(raw.probe_fetch(PAGE), Err(PAGE));
    }

    #[test]
    fn what_may_only_be_written_is_not_read() {
        let mut space = mapped(PAGE);
        space.protect(0, PAGE, WRITE).unwrap();
        let raw = space.raw();
        assert_eq!(raw.probe(Access::Write, 8, 8), Ok(()));
        assert_eq!(raw.probe(Access::ReadWrite, 8, 8), Err(8));
        raw.admit(8, [0, 0]);
        assert_eq!(space.granule(8), CLOSED, "an open granule may be read, too");
    }

    const ALL: u8 = HOLDS_READABLE | READABLE | READABLE_FAR | OPEN | OPEN_NEAR | OPEN_FAR;

    #[test]
    fn states_tell_of_all_accesses_that_begin_in_a_granule() {
        let mut space = mapped(4 * PAGE);
        space.protect(0, 2 * PAGE, READ | WRITE).unwrap();
        // Words of the second granule and of the first of the next page are decoded.
        space.raw().admit(0, [0b10, 1]);
        space.raw().admit(PAGE, [1, 0]);
        let states = [0, 64, 128, PAGE - 1, PAGE, 2 * PAGE - 513, 2 * PAGE - 512, 2 * PAGE - 1];
        let states = states.map(|addr| space.granule(addr));
        let reads = ALL - OPEN - OPEN_NEAR - OPEN_FAR;
        let end = ALL - READABLE_FAR - OPEN_FAR;
        let last = HOLDS_READABLE | OPEN;
        assert_eq!(states, [reads | OPEN, reads, ALL, reads | OPEN, reads, ALL, end, last]);
        space.protect(PAGE, PAGE, READ).unwrap();
        let states = [PAGE - 513, PAGE - 512, PAGE - 1, PAGE].map(|addr| space.granule(addr));
        assert_eq!(states, [ALL, 0, 0, 0]);
    }

    #[test]
    fn closing_granules_refuses_stores_that_reach_them() {
        let mut space = mapped(4 * PAGE);
        space.protect(0, 3 * PAGE, READ | WRITE).unwrap();
        let raw = space.raw();
        (0..3).for_each(|page| raw.admit(page * PAGE, [0, 0]));
        raw.close(0, 1);
        raw.close(1, 1 << 63 | 1);
        let states = [0, 64, PAGE - 513, PAGE - 512, PAGE - 64, PAGE, PAGE + 64, 2 * PAGE];
        let states = states.map(|addr| space.granule(addr));
        let near = ALL - OPEN_FAR;
        let before = near - OPEN_NEAR;
        assert_eq!(states, [before - OPEN, ALL, ALL, near, before, before - OPEN, ALL, ALL]);
        assert!(space.raw().all_have(OPEN, PAGE + 64, PAGE - 128));
        assert!(!space.raw().all_have(OPEN, PAGE + 64, PAGE - 127));
        assert!(
            !space.raw().all_have(OPEN, 4 * PAGE, 1) && !space.raw().all_have(OPEN, u64::MAX, 8)
        );
    }

    #[test]
    fn closing_granules_of_a_page_makes_it_be_asked_again() {
        let mut space = mapped(2 * PAGE);
        space.protect(0, PAGE, READ | WRITE).unwrap();
        space.raw().admit(0, [0, 0]);
        space.set_page_granules(0, 0);
        assert_eq!((space.granule(0), space.granule(64)), (CLOSED, CLOSED));
    }

    #[test]
    fn many_bytes_are_written_as_few_are() {
        let mut space = mapped(8 * PAGE);
        for len in [MANY - 1, MANY, MANY + 3] {
            let bytes: Vec<u8> = (0..len).map(|i| (i + len) as u8).collect();
            space.write(PAGE + 5, &bytes);
            assert_eq!(space.bytes()[PAGE as usize + 5..][..len], bytes);
        }
        assert!(
            !space.write_many(8 * PAGE - 1, &[1; MANY]) && !space.write_many(u64::MAX, &[1; MANY])
        );
        assert_eq!(
            space.mapped.as_ref().unwrap().contents.map_shared().unwrap().len(),
            8 * PAGE as usize
        );
    }

    #[test]
    fn huge_memory_costs_what_is_used() {
        let start = Instant::now();
        let size = 1 << 39;
        let mut space = mapped(size);
        space.protect(0, size, Permissions::NONE).unwrap();
        space.protect(size - PAGE, PAGE, READ).unwrap();
        space.write(size - 8, &[1]);
        let mut copy = mapped(size);
        copy.copy_from(&space).unwrap();
        assert_eq!(copy.bytes()[size as usize - 8], 1);
        assert_eq!(copy.permissions(size - 8), READ);
        space.discard(0, size).unwrap();
        assert_eq!((space.bytes()[size as usize - 8], copy.bytes()[size as usize - 8]), (0, 1));
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
}
