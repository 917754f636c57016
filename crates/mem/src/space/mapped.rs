//! Mapped memory: its pages have permissions, none at the start.
//!
//! A space has its bytes to itself until it is [frozen](Space::freeze). From then on it is a copy-on-write view of what it was,
//! as are the spaces that [begin](Space::of) with that: each has the pages that it has *written*, and goes back to the beginning
//! by restoring these. So stores proceed only where the page was noted as written ([`Pages::admit`]).

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::frozen::{Frozen, Runs};
use super::{GRANULES, Segment, Space};
use crate::pages::{Pages, Watched, touched};
use crate::sparse::SparseFile;
use crate::written::Written;
use crate::{CLOSED, FAR, GRANULE, HOLDS_READABLE, PAGE, Permissions, READABLE, READABLE_FAR};

/// Bytes up to which clearing them takes less time than giving them back.
const FEW: usize = 1 << 14;

/// Bytes from which on a system call takes less time than a fault of each page.
const MANY: usize = 1 << 14;

/// Written pages from which on it takes less time to give them back than to restore them.
const MANY_PAGES: usize = 1 << 12;

/// Changes of permissions that are noted one by one before those are joined that overlap.
const MANY_CHANGES: usize = 1 << 10;

/// Granules before a page where an access may begin that ends in it.
const BEFORE: usize = (FAR / GRANULE) as usize;

/// The states of granules that say nothing of stores.
const READS: u8 = READABLE | HOLDS_READABLE | READABLE_FAR;

/// What mapped memory has beside its bytes and the state of granules. Everything is sparse: pages that nobody has used
/// take nothing.
pub(super) struct Mapped {
    /// The space's own, unless it begins with what is frozen.
    contents: Option<Arc<SparseFile>>,
    frozen: Option<Arc<Frozen>>,
    /// Where the states of granules are.
    states: SparseFile,
    permissions_file: SparseFile,
    /// A byte for every page.
    permissions: Segment,
    written: Written,
    /// Pages whose permissions were set since the beginning, if it is frozen.
    changed: Vec<Range<u32>>,
    /// So many changes are noted before they are joined.
    most_changes: usize,
    watched: Watched,
}

impl Mapped {
    fn new(size: u64) -> io::Result<(Mapped, Segment)> {
        if !cfg!(target_os = "linux") {
            let message = "memory with permissions needs Linux";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        if size == 0 || !size.is_multiple_of(PAGE) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a whole number of pages"));
        }
        let pages = size / PAGE;
        let states = SparseFile::new(pages * GRANULES as u64)?;
        let permissions_file = SparseFile::new(pages)?;
        let permissions = Segment::whole(permissions_file.map_shared()?);
        let granules = Segment::whole(states.map_shared()?);
        let mapped = Mapped {
            contents: None,
            frozen: None,
            states,
            permissions_file,
            permissions,
            written: Written::new(pages)?,
            changed: Vec::new(),
            most_changes: MANY_CHANGES,
            watched: Vec::new(),
        };
        Ok((mapped, granules))
    }

    /// Notes that the permissions of pages are about to be set.
    fn note_changed(&mut self, pages: Range<u32>) {
        if self.frozen.is_none() {
            return;
        }
        self.changed.push(pages);
        if self.changed.len() > self.most_changes {
            join(&mut self.changed);
            self.most_changes = (2 * self.changed.len()).max(MANY_CHANGES);
        }
    }

    /// Sets permissions, and closes granules for all accesses that may reach the pages.
    fn set(
        &mut self,
        granules: &mut Segment,
        pages: Range<usize>,
        permissions: Permissions,
    ) -> io::Result<()> {
        match permissions {
            Permissions::NONE => {
                clear(&mut self.permissions, &self.permissions_file, pages.clone())?;
            }
            _ => self.permissions[pages.clone()].fill(permissions.bits()),
        }
        let before = (pages.start * GRANULES).saturating_sub(BEFORE);
        clear(granules, &self.states, before..pages.end * GRANULES)
    }

    /// Pages that guests may use, and what they may do with them.
    fn permissions_by_run(&self) -> io::Result<Vec<(Range<u32>, Permissions)>> {
        let mut runs: Vec<(Range<u32>, Permissions)> = Vec::new();
        let mut at = 0;
        while let Some(part) = self.permissions_file.written_after(at)? {
            for page in part.clone() {
                let permissions = Permissions::from_bits(self.permissions[page as usize]);
                let page = page as u32;
                match runs.last_mut() {
                    Some((run, same)) if run.end == page && *same == permissions => run.end += 1,
                    _ => runs.push((page..page + 1, permissions)),
                }
            }
            at = part.end;
        }
        runs.retain(|(_, permissions)| *permissions != Permissions::NONE);
        Ok(runs)
    }
}

/// Joins ranges that overlap or continue one another.
fn join(ranges: &mut Vec<Range<u32>>) {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    ranges.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        last.end = if joins { last.end.max(next.end) } else { last.end };
        joins
    });
}

/// Makes a part of a file zero.
fn clear(bytes: &mut Segment, file: &SparseFile, part: Range<usize>) -> io::Result<()> {
    if part.len() > FEW {
        return file.discard(part.start as u64..part.end as u64);
    }
    bytes[part].fill(CLOSED);
    Ok(())
}

/// The bytes of a page.
fn bytes_of(page: u32) -> Range<usize> {
    let start = page as usize * PAGE as usize;
    start..start + PAGE as usize
}

impl Space {
    /// Makes a space of so many bytes, all zero, whose pages have no permissions. All granules start closed, for reads,
    /// too. Only Linux has what this needs.
    pub fn mapped(size: u64) -> io::Result<Space> {
        let (mut mapped, granules) = Mapped::new(size)?;
        let contents = Arc::new(SparseFile::new(size)?);
        let bytes = contents.map_shared()?;
        mapped.contents = Some(contents);
        Ok(Space { mapped: Some(Box::new(mapped)), ..Space::over(bytes, granules, false) })
    }

    /// Makes a space that begins with what is frozen, permissions included.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use kvrm_mem::{PAGE, Permissions, Space};
    /// let mut first = Space::mapped(1 << 30)?;
    /// first.protect(PAGE, PAGE, Permissions::READ)?;
    /// first.write(PAGE, b"text");
    /// let mut second = Space::of(&first.freeze()?)?;
    /// second.write(PAGE, b"n");
    /// assert_eq!(second.permissions(PAGE), Permissions::READ);
    /// assert_eq!((&first.bytes()[4096..4100], &second.bytes()[4096..4100]), (&b"text"[..], &b"next"[..]));
    /// second.restore()?;
    /// assert_eq!(&second.bytes()[4096..4100], b"text");
    /// # }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn of(frozen: &Arc<Frozen>) -> io::Result<Space> {
        let (mut mapped, granules) = Mapped::new(frozen.size())?;
        for (pages, permissions) in frozen.permissions() {
            let pages = pages.start as usize..pages.end as usize;
            mapped.permissions[pages].fill(permissions.bits());
        }
        mapped.frozen = Some(Arc::clone(frozen));
        let bytes = frozen.contents.map_private()?;
        Ok(Space { mapped: Some(Box::new(mapped)), ..Space::over(bytes, granules, false) })
    }

    fn mapping(&self) -> &Mapped {
        self.mapped.as_ref().expect("memory is mapped")
    }

    fn mapping_mut(&mut self) -> &mut Mapped {
        self.mapped.as_mut().expect("memory is mapped")
    }

    /// Returns the pages as accesses see them, if they have permissions.
    pub(super) fn pages(&mut self) -> Option<Pages<'_>> {
        let mapped = self.mapped.as_deref()?;
        let (permissions, count) = (mapped.permissions.as_ptr(), mapped.permissions.len());
        let (granules, written) = (self.granules.as_mut_ptr(), &mapped.written);
        // SAFETY: the space stays mapped while it is borrowed, and borrowed mutably nobody else uses it.
        Some(unsafe { Pages::new(permissions, granules, count as u64, written, &mapped.watched) })
    }

    /// Returns what guests may do with the page that holds `addr`, in mapped memory: nothing beyond its end.
    pub fn permissions(&self, addr: u64) -> Permissions {
        let bits = self.mapping().permissions.get((addr / PAGE) as usize);
        bits.map_or(Permissions::NONE, |bits| Permissions::from_bits(*bits))
    }

    /// Sets what guests may do with pages of mapped memory. Their granules are closed, for reads, too.
    pub fn protect(&mut self, addr: u64, len: u64, permissions: Permissions) -> io::Result<()> {
        let Space { mapped, granules, .. } = self;
        let mapped = mapped.as_mut().expect("memory is mapped");
        let (first, end) = (addr / PAGE, (addr + len) / PAGE);
        mapped.note_changed(first as u32..end as u32);
        mapped.set(granules, first as usize..end as usize, permissions)
    }

    /// Notes that bytes of mapped memory are written.
    pub(super) fn note_written(&self, addr: u64, len: u64) {
        let Some(mapped) = self.mapped.as_ref().filter(|_| len > 0) else { return };
        (addr / PAGE..=(addr + len - 1) / PAGE).for_each(|page| mapped.written.add(page));
    }

    /// Writes very many bytes to mapped memory, as programs are; false if there are not so many, or it did not work.
    pub(super) fn write_many(&self, addr: u64, bytes: &[u8]) -> bool {
        let is_many = bytes.len() >= MANY;
        // A file would grow.
        let is_inside =
            self.size().checked_sub(addr).is_some_and(|left| bytes.len() as u64 <= left);
        let contents = self.mapped.as_ref().and_then(|mapped| mapped.contents.as_ref());
        is_many && is_inside && contents.is_some_and(|contents| contents.write(addr, bytes))
    }

    /// Makes pages of mapped memory zero again, and gives their memory back to the host.
    pub fn discard(&mut self, addr: u64, len: u64) -> io::Result<()> {
        let mapped = self.mapping();
        if let Some(contents) = &mapped.contents {
            return contents.discard(addr..addr + len);
        }
        let frozen = Arc::clone(mapped.frozen.as_ref().expect("it has contents, or is frozen"));
        let pages = (addr / PAGE) as u32..((addr + len) / PAGE) as u32;
        for page in frozen.filled.within(pages.clone()).flatten() {
            self.mapping().written.add(page.into());
            self.bytes[bytes_of(page)].fill(0);
        }
        for gap in frozen.filled.between(pages) {
            // What is not written is zero there.
            self.give_back(gap)?;
        }
        Ok(())
    }

    /// Makes written pages zero where nothing is frozen.
    fn give_back(&mut self, pages: Range<u32>) -> io::Result<()> {
        let mut written = Vec::new();
        self.mapping().written.for_each(|page| {
            if pages.contains(&page) {
                written.push(page);
            }
        });
        if written.len() * PAGE as usize > FEW {
            return self.drop_copies(pages);
        }
        written.into_iter().for_each(|page| self.bytes[bytes_of(page)].fill(0));
        Ok(())
    }

    /// Forgets copies of pages, which are again what is frozen.
    #[cfg(target_os = "linux")]
    fn drop_copies(&mut self, pages: Range<u32>) -> io::Result<()> {
        let bytes = bytes_of(pages.start).start..bytes_of(pages.end).start;
        let bytes = &mut self.bytes[bytes];
        // SAFETY: the bytes are a part of a private mapping that is borrowed mutably; they become those of its file.
        unsafe {
            rustix::mm::madvise(
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                rustix::mm::Advice::LinuxDontNeed,
            )?;
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn drop_copies(&mut self, _: Range<u32>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns what the space begins with, if that is frozen.
    pub fn frozen(&self) -> Option<&Arc<Frozen>> {
        self.mapped.as_ref()?.frozen.as_ref()
    }

    /// Freezes mapped memory as it is, for other spaces to begin with. From now on, this is what the space itself begins with.
    /// The first time, that takes time for the number of pages alone; later, the pages are copied, unless none was written.
    pub fn freeze(&mut self) -> io::Result<Arc<Frozen>> {
        let written = self.mapping().written.sorted();
        if let Some(frozen) = self.frozen().filter(|_| written.is_empty())
            && self.mapping().changed.is_empty()
        {
            return Ok(Arc::clone(frozen));
        }
        let permissions = self.mapping().permissions_by_run()?;
        let (contents, filled) = match &self.mapping().contents {
            Some(contents) => (Arc::clone(contents), Runs::of(written.iter().copied())),
            None => {
                let filled = Runs::of(self.filled().into_iter());
                let contents = SparseFile::new(self.size())?;
                contents.write_parts(filled.bytes(), &self.bytes)?;
                (Arc::new(contents), filled)
            }
        };
        let frozen = Arc::new(Frozen::new(contents, filled, permissions)?);
        self.bytes = Segment::whole(frozen.contents.map_private()?);
        self.forget_written();
        let mapped = self.mapping_mut();
        (mapped.contents, mapped.frozen) = (None, Some(Arc::clone(&frozen)));
        mapped.changed.clear();
        Ok(frozen)
    }

    /// Pages that may hold something other than zeros, in order.
    fn filled(&self) -> Vec<u32> {
        let mut filled = self.mapping().written.sorted();
        if let Some(frozen) = self.frozen() {
            filled.extend(frozen.filled.iter().flatten());
            filled.sort_unstable();
        }
        filled
    }

    /// Says of all pages that they were not written, and closes their granules for stores.
    fn forget_written(&mut self) -> Vec<u32> {
        let written = self.mapping_mut().written.take();
        for page in &written {
            let first = *page as usize * GRANULES;
            let granules = first.saturating_sub(BEFORE)..first + GRANULES;
            self.granules[granules].iter_mut().for_each(|state| *state &= READS);
        }
        written
    }

    /// Makes memory what it began with, which must be [frozen](Space::freeze). Takes time for the pages that were written,
    /// and those whose permissions were changed.
    pub fn restore(&mut self) -> io::Result<()> {
        self.watch(Vec::new())?;
        let frozen = Arc::clone(self.frozen().expect("memory began with something frozen"));
        let written = self.forget_written();
        if written.len() > MANY_PAGES {
            self.drop_copies(0..(self.size() / PAGE) as u32)?;
        } else {
            for page in written {
                let bytes = &mut self.bytes[bytes_of(page)];
                match frozen.filled.contains(page) {
                    true => bytes.copy_from_slice(frozen.page(page)),
                    false => bytes.fill(0),
                }
            }
        }
        let Space { mapped, granules, .. } = self;
        let mapped = mapped.as_mut().expect("it is frozen");
        let mut changed = std::mem::take(&mut mapped.changed);
        join(&mut changed);
        for pages in &changed {
            mapped.set(granules, pages.start as usize..pages.end as usize, Permissions::NONE)?;
            let first = frozen.permissions.partition_point(|(run, _)| run.end <= pages.start);
            let runs = frozen.permissions[first..].iter();
            for (run, permissions) in runs.take_while(|(run, _)| run.start < pages.end) {
                let part = run.start.max(pages.start) as usize..run.end.min(pages.end) as usize;
                mapped.permissions[part].fill(permissions.bits());
            }
        }
        Ok(())
    }

    /// Returns the pages whose contents or permissions may differ from what is frozen.
    pub fn differs(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        let mapped = self.mapping();
        let written = mapped.written.sorted().into_iter().map(|page| page..page + 1);
        written.chain(mapped.changed.iter().cloned())
    }

    /// Makes mapped memory equal to another of the same size, permissions included. If both began with the same, that takes
    /// time for what was written to either of them since; otherwise for all that was ever written.
    pub fn copy_from(&mut self, other: &Space) -> io::Result<()> {
        assert_eq!(self.size(), other.size(), "memories differ in size");
        let same = |own: &Arc<Frozen>| other.frozen().is_some_and(|other| Arc::ptr_eq(own, other));
        let from = other.mapping();
        if self.frozen().is_some_and(same) {
            self.restore()?;
            from.written.for_each(|page| {
                self.mapping().written.add(page.into());
                self.bytes[bytes_of(page)].copy_from_slice(&other.bytes[bytes_of(page)]);
            });
            for pages in &from.changed {
                let bytes = pages.start as usize..pages.end as usize;
                self.mapping_mut().note_changed(pages.clone());
                let Space { mapped, granules, .. } = self;
                let mapped = mapped.as_mut().expect("it is frozen");
                mapped.set(granules, bytes.clone(), Permissions::NONE)?;
                mapped.permissions[bytes.clone()].copy_from_slice(&from.permissions[bytes]);
            }
            return Ok(());
        }
        *self = Space::mapped(self.size())?;
        let filled = other.filled();
        let contents = self.mapping().contents.as_ref().expect("it is new");
        contents.write_parts(Runs::of(filled.iter().copied()).bytes(), &other.bytes)?;
        filled.into_iter().for_each(|page| self.mapping().written.add(page.into()));
        for (pages, permissions) in from.permissions_by_run()? {
            let pages = pages.start as usize..pages.end as usize;
            self.mapping_mut().permissions[pages].fill(permissions.bits());
        }
        Ok(())
    }

    /// Watches ranges of bytes, each known by its number in the list, instead of those that were watched before. Accesses of
    /// guests do not proceed by themselves there: the engine must note them ([`RawMemory::touched`](crate::RawMemory::touched)).
    pub fn watch(&mut self, ranges: Vec<Range<u64>>) -> io::Result<()> {
        let Space { mapped, granules, .. } = self;
        let mapped = mapped.as_mut().expect("memory is mapped");
        let new: Watched = ranges.into_iter().enumerate().filter(|(_, r)| !r.is_empty()).collect();
        for (_, range) in mapped.watched.iter().chain(&new) {
            let first = (range.start / GRANULE) as usize;
            let end = range.end.div_ceil(GRANULE) as usize;
            clear(granules, &mapped.states, first.saturating_sub(BEFORE)..end)?;
        }
        mapped.watched = new;
        Ok(())
    }

    /// Watches a range no longer.
    pub fn unwatch(&mut self, number: usize) {
        self.mapping_mut().watched.retain(|(other, _)| *other != number);
    }

    /// Returns the numbers of watched ranges that some of these bytes are in.
    pub fn watched(&self, addr: u64, len: u64) -> Vec<usize> {
        touched(&self.mapping().watched, addr, len).collect()
    }
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
        Space::mapped(size).unwrap()
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
        admit(&mut space, 8, [0, 0]);
        assert_eq!(space.granule(8), CLOSED, "an open granule may be read, too");
    }

    fn admit(space: &mut Space, addr: u64, closed: [u64; 2]) {
        space.raw().note_written(addr, 1);
        space.raw().admit(addr, closed);
    }

    const ALL: u8 = HOLDS_READABLE | READABLE | READABLE_FAR | OPEN | OPEN_NEAR | OPEN_FAR;

    #[test]
    fn states_tell_of_all_accesses_that_begin_in_a_granule() {
        let mut space = mapped(4 * PAGE);
        space.protect(0, 2 * PAGE, READ | WRITE).unwrap();
        // Words of the second granule and of the first of the next page are decoded.
        space.note_written(0, 2 * PAGE);
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
        space.note_written(0, 3 * PAGE);
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
            space.mapping().contents.as_ref().unwrap().map_shared().unwrap().len(),
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

    #[test]
    fn stores_proceed_only_where_pages_were_noted_as_written() {
        let mut space = mapped(2 * PAGE);
        space.protect(0, 2 * PAGE, READ | WRITE).unwrap();
        space.raw().admit(0, [0, 0]);
        assert_eq!(space.granule(0), ALL - OPEN - OPEN_NEAR - OPEN_FAR);
        admit(&mut space, 0, [0, 0]);
        let last = HOLDS_READABLE | READABLE | READABLE_FAR | OPEN;
        assert_eq!((space.granule(0), space.granule(PAGE - 1)), (ALL, last));
    }

    fn text(space: &Space, addr: u64) -> &[u8] {
        &space.bytes()[addr as usize..][..4]
    }

    #[test]
    fn spaces_that_begin_with_the_same_keep_their_changes_to_themselves() {
        let mut first = mapped(1 << 39);
        first.protect(0, 4 * PAGE, READ | WRITE).unwrap();
        first.protect(1 << 38, PAGE, READ).unwrap();
        first.write(PAGE, b"text");
        admit(&mut first, 0, [0, 0]);
        let frozen = first.freeze().unwrap();
        assert!(Arc::ptr_eq(&frozen, &first.freeze().unwrap()), "nothing was written");
        assert_eq!(first.granule(0) & (OPEN | OPEN_NEAR | OPEN_FAR), 0, "it is to be noted again");
        let mut second = Space::of(&frozen).unwrap();
        second.write(PAGE, b"more");
        second.write(1 << 38, b"high");
        first.write(PAGE, b"less");
        let texts = [&first, &second].map(|space| text(space, PAGE).to_vec());
        assert_eq!(texts, [b"less", b"more"]);
        assert_eq!(frozen.page(1)[..4], *b"text");
        assert_eq!(
            (second.permissions(1 << 38), second.permissions(5 * PAGE)),
            (READ, Permissions::NONE)
        );
        let again = second.freeze().unwrap();
        assert_eq!(again.filled().collect::<Vec<_>>(), [0..2, 1 << 26..(1 << 26) + 1]);
        let third = Space::of(&again).unwrap();
        assert_eq!((text(&third, PAGE), text(&third, 1 << 38)), (&b"more"[..], &b"high"[..]));
    }

    #[test]
    fn restoring_undoes_writes_permissions_and_discards() {
        let mut space = mapped(1 << 39);
        space.protect(PAGE, 3 * PAGE, READ | WRITE).unwrap();
        (1..3).for_each(|page| space.write(page * PAGE, b"text"));
        let frozen = space.freeze().unwrap();
        let check = |space: &Space| {
            assert_eq!((text(space, PAGE), text(space, 2 * PAGE)), (&b"text"[..], &b"text"[..]));
            assert_eq!((text(space, 3 * PAGE), text(space, 9 * PAGE)), (&[0; 4][..], &[0; 4][..]));
            let permissions = [0, 1, 3, 4, 1 << 20].map(|page| space.permissions(page * PAGE));
            let none = Permissions::NONE;
            assert_eq!(permissions, [none, READ | WRITE, READ | WRITE, none, none]);
            assert_eq!(space.differs().next(), None);
        };
        for pages in [1, MANY_PAGES as u64 + 1] {
            let mut space = Space::of(&frozen).unwrap();
            space.protect(2 * PAGE, PAGE, READ).unwrap();
            space.protect(4 * PAGE, 6 * PAGE, READ | WRITE).unwrap();
            space.protect(1 << 32, pages * PAGE, READ | WRITE).unwrap();
            (0..pages).for_each(|page| space.write((1 << 32) + page * PAGE, b"new"));
            space.write(9 * PAGE, b"more");
            admit(&mut space, 9 * PAGE, [0, 0]);
            space.discard(PAGE, 2 * PAGE).unwrap();
            space.discard(1 << 32, pages * PAGE).unwrap();
            assert_eq!((text(&space, PAGE), text(&space, 1 << 32)), (&[0; 4][..], &[0; 4][..]));
            let mut copy = Space::of(&frozen).unwrap();
            copy.write(3 * PAGE, b"gone");
            for mut copy in [copy, mapped(1 << 39)] {
                copy.copy_from(&space).unwrap();
                assert_eq!((text(&copy, PAGE), text(&copy, 3 * PAGE)), (&[0; 4][..], &[0; 4][..]));
                assert_eq!((text(&copy, 9 * PAGE), copy.granule(9 * PAGE)), (&b"more"[..], CLOSED));
                let permissions = [2, 4, 11].map(|page| copy.permissions(page * PAGE));
                assert_eq!(permissions, [READ, READ | WRITE, Permissions::NONE]);
            }
            space.restore().unwrap();
            check(&space);
            assert_eq!(space.granule(9 * PAGE), CLOSED);
        }
        check(&Space::of(&frozen).unwrap());
    }

    #[test]
    fn accesses_to_granules_with_watched_bytes_do_not_proceed() {
        let mut space = mapped(2 * PAGE);
        space.protect(0, 2 * PAGE, READ | WRITE).unwrap();
        admit(&mut space, 0, [0, 0]);
        space.watch(vec![0..0, 700..710, PAGE..PAGE + 1]).unwrap();
        space.raw().admit(0, [0, 0]);
        let states = [0, 2, 9, 10, 11, 12, 63].map(|granule| space.granule(granule * GRANULE));
        let (far, last) = (READABLE_FAR | OPEN_FAR, HOLDS_READABLE | OPEN);
        assert_eq!(states, [ALL, ALL - far, last, CLOSED, CLOSED, ALL, last]);
        let touched = |addr, len| space.watched(addr, len);
        assert_eq!(
            (touched(690, 10), touched(690, 11), touched(709, PAGE)),
            (vec![], vec![1], vec![1, 2])
        );
        space.unwatch(1);
        assert_eq!(space.watched(0, PAGE), []);
    }
}
