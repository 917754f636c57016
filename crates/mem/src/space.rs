//! The memory of one lane, or of all lanes.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions};

use crate::{CLOSED, GRANULE, Image, OPEN, PAGE, RawMemory};

mod frozen;
mod mapped;

pub use frozen::Frozen;
use mapped::Mapped;

/// Mappings that are kept free for everything else: an allocation or a thread that cannot get one ends the process.
/// Translated code takes some, too.
const SPARE: usize = 1024;
/// Up to this many lanes, the limit on mappings is too far away to be checked.
const FEW: usize = 4096;

/// Granules in a page.
const GRANULES: usize = (PAGE / GRANULE) as usize;

/// A guest's memory: its bytes and the state of their granules.
pub struct Space {
    bytes: Segment,
    granules: Segment,
    /// Pages written since the last reset; not used for shared memory, which has no reset.
    dirty: Vec<u32>,
    /// The same as a set.
    dirty_set: PageSet,
    /// Pages that have their own copy, dirty or not.
    own: PageSet,
    private: bool,
    /// True if guests may not write: all granules stay closed.
    read_only: bool,
    /// The permissions of pages, if they have any.
    mapped: Option<Box<Mapped>>,
}

impl Space {
    /// Makes a space of the image itself, for every lane. All granules start open.
    pub fn shared(image: &Image) -> io::Result<Space> {
        let mut space = Space::read_only(image)?;
        space.read_only = false;
        space.granules.fill(OPEN);
        Ok(space)
    }

    /// Makes a space of the image itself, for every lane, which only the host can write. All granules stay
    /// closed.
    pub fn read_only(image: &Image) -> io::Result<Space> {
        let [granules] = granules(image.size(), 1)?.try_into().ok().expect("one was asked for");
        let space = Space::over(image.file.map_shared()?, granules, false);
        Ok(Space { read_only: true, ..space })
    }

    /// Makes copy-on-write views of the image, one per lane. All granules start closed. Fails if there is no room for
    /// all of them with mappings to spare; the error has the number of the first lane that does not fit.
    pub fn private(image: &Image, lanes: usize) -> Result<Vec<Space>, (usize, io::Error)> {
        let granules = granules(image.size(), lanes).map_err(|e| (0, e))?;
        let mut spaces: Vec<Space> = Vec::new();
        spaces.try_reserve_exact(lanes).map_err(|_| (0, io::ErrorKind::OutOfMemory.into()))?;
        for (lane, granules) in granules.into_iter().enumerate() {
            let bytes = image.file.map_private().map_err(|e| (lane, e))?;
            spaces.push(Space::over(bytes, granules, true));
        }
        if lanes > FEW {
            let spare = (0..SPARE).map(|_| image.file.map_private());
            let spare: io::Result<Vec<MmapMut>> = spare.collect();
            drop(spare.map_err(|e| (lanes.saturating_sub(SPARE), e))?);
        }
        Ok(spaces)
    }

    fn over(bytes: MmapMut, granules: Segment, private: bool) -> Space {
        Space {
            bytes: Segment::whole(bytes),
            granules,
            dirty: Vec::new(),
            dirty_set: PageSet::default(),
            own: PageSet::default(),
            private,
            read_only: false,
            mapped: None,
        }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the contents. Lanes may be changing shared memory unless all of them are stopped.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the memory for typed access and for translated code. It cannot outlive the space:
    ///
    /// ```compile_fail,E0716
    /// use kvrm_mem::{GuestMemory, Image, PAGE, Space};
    /// let raw = Space::shared(&Image::new(PAGE)?)?.raw();
    /// assert_eq!(raw.probe(kvrm_ir::Access::Read, 0, 8), Ok(()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn raw(&mut self) -> RawMemory<'_> {
        let (base, size) = (self.bytes.as_mut_ptr(), self.size());
        // SAFETY: the space stays mapped while it is borrowed, and borrowed mutably nobody else refers to its bytes.
        let raw = unsafe { RawMemory::new(base, size) };
        if self.read_only {
            return raw.read_only();
        }
        raw.with_pages(self.pages())
    }

    /// Returns a view of the bytes that keeps them mapped.
    pub fn view(&self) -> View {
        View { bytes: self.bytes.clone() }
    }

    /// Returns the address of the bytes.
    pub fn base(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    /// Returns the address of the granules' state bytes.
    pub fn granule_base(&mut self) -> *mut u8 {
        self.granules.as_mut_ptr()
    }

    /// Opens or closes the granule that holds `addr`.
    pub fn set_granule(&mut self, addr: u64, state: u8) {
        self.granules[(addr / GRANULE) as usize] = state;
    }

    /// Returns the state of the granule that holds `addr`.
    pub fn granule(&self, addr: u64) -> u8 {
        self.granules[(addr / GRANULE) as usize]
    }

    /// True if the page that holds `addr` has been written since the last reset.
    pub fn is_dirty(&self, addr: u64) -> bool {
        self.dirty_set.contains((addr / PAGE) as usize)
    }

    /// Records that the page with `addr` is about to be written for the first time, and opens its granules
    /// except those whose bit is set in `keep_closed`.
    pub fn begin_writing(&mut self, addr: u64, keep_closed: u64) {
        let page = (addr / PAGE) as usize;
        self.dirty.push(page as u32);
        self.dirty_set.insert(page);
        self.own.insert(page);
        self.set_page_granules(addr, keep_closed);
    }

    /// Opens the granules of the page with `addr`, except those whose bit is set, which it closes. In mapped memory, it
    /// closes all of them, for reads, too.
    pub fn set_page_granules(&mut self, addr: u64, closed: u64) {
        if self.read_only {
            return;
        }
        let first = (addr / PAGE) as usize * GRANULES;
        let granules = &mut self.granules[first..first + GRANULES];
        if self.mapped.is_some() {
            granules.fill(CLOSED);
            return;
        }
        granules.fill(OPEN);
        ones(closed).for_each(|index| granules[index] = CLOSED);
    }

    /// Opens the granules of the page with `addr`, except those whose bit is set, which stay as they are.
    pub fn open_page_granules(&mut self, addr: u64, unchanged: u64) {
        let first = (addr / PAGE) as usize * GRANULES;
        ones(!unchanged).for_each(|index| self.granules[first + index] = OPEN);
    }

    /// Records a write of `len` bytes at `addr`, for engines that keep no translated code.
    pub fn touch(&mut self, addr: u64, len: u64) {
        self.note_written(addr, len);
        if !self.private || len == 0 {
            return;
        }
        for page in addr / PAGE..=(addr + len - 1) / PAGE {
            if !self.is_dirty(page * PAGE) {
                self.begin_writing(page * PAGE, 0);
            }
        }
    }

    /// Returns the pages written since the last reset.
    pub fn dirty_pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.dirty.iter().map(|page| u64::from(*page))
    }

    /// Restores the image's contents in the pages written since the last reset.
    ///
    /// The pages stay allocated: writing them again costs no page fault.
    pub fn reset(&mut self, image: &Image) {
        for page in self.dirty.drain(..) {
            self.dirty_set.remove(page as usize);
            let bytes = page as usize * PAGE as usize..(page as usize + 1) * PAGE as usize;
            self.bytes[bytes.clone()].copy_from_slice(&image.bytes()[bytes]);
            self.granules[page as usize * GRANULES..(page as usize + 1) * GRANULES].fill(CLOSED);
        }
    }

    /// Repeats a change of the image in the pages that have their own copy.
    pub fn image_changed(&mut self, image: &Image, addr: u64, len: u64) {
        if !self.private || len == 0 {
            return;
        }
        for page in (addr / PAGE) as usize..=((addr + len - 1) / PAGE) as usize {
            if self.own.contains(page) {
                let start = (page as u64 * PAGE).max(addr) as usize;
                let end = ((page as u64 + 1) * PAGE).min(addr + len) as usize;
                self.bytes[start..end].copy_from_slice(&image.bytes()[start..end]);
            }
        }
    }

    /// Writes bytes from the host; [`begin_writing`](Self::begin_writing) must have been called for the pages.
    pub fn write(&mut self, addr: u64, bytes: &[u8]) {
        self.note_written(addr, bytes.len() as u64);
        if self.write_many(addr, bytes) {
            return;
        }
        self.bytes[addr as usize..addr as usize + bytes.len()].copy_from_slice(bytes);
    }
}

/// A space's bytes, which stay mapped as long as this lives. Guests may change them at any time.
///
/// ```
/// use kvrm_mem::{Image, PAGE, Space};
/// let mut image = Image::new(PAGE)?;
/// let view = Space::shared(&image)?.view();
/// image.bytes_mut()[3] = 7;
/// // SAFETY: the address is within the view.
/// assert_eq!((unsafe { view.as_ptr().add(3).read() }, view.size()), (7, 4096));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct View {
    bytes: Segment,
}

impl View {
    /// Returns the address of the bytes.
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes.start
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> usize {
        self.bytes.len
    }
}

/// Allocates the state bytes of `count` spaces of `size` bytes, all closed. They are parts of one mapping,
/// because the operating system limits the number of mappings, not their size.
fn granules(size: u64, count: usize) -> io::Result<Vec<Segment>> {
    let len = (size / GRANULE) as usize;
    let too_large = || io::Error::new(io::ErrorKind::OutOfMemory, "address space exhausted");
    let total = len.checked_mul(count).ok_or_else(too_large)?;
    let arena = MmapOptions::new().len(total).no_reserve_swap().map_anon()?;
    let Segment { start, mapping, .. } = Segment::whole(arena);
    let mut parts = Vec::new();
    parts.try_reserve_exact(count).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let part =
        |i: usize| Segment { start: start.wrapping_add(i * len), len, mapping: mapping.clone() };
    parts.extend((0..count).map(part));
    Ok(parts)
}

/// A part of a mapping that only one space writes.
#[derive(Clone)]
struct Segment {
    start: *mut u8,
    len: usize,
    /// Keeps it mapped.
    mapping: Arc<MmapMut>,
}

// SAFETY: no two spaces have the same part of a mapping.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    fn whole(mut mapping: MmapMut) -> Segment {
        let (start, len) = (mapping.as_mut_ptr(), mapping.len());
        Segment { start, len, mapping: Arc::new(mapping) }
    }
}

impl Deref for Segment {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the part of the mapping that is this space's alone.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl DerefMut for Segment {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

/// The numbers of the bits that are set.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = (bits != 0).then(|| bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        index
    })
}

/// A set of page numbers, one bit each.
///
/// ```
/// let mut pages = kvrm_mem::PageSet::default();
/// pages.insert(70);
/// assert!(pages.contains(70) && !pages.contains(6));
/// ```
#[derive(Default)]
pub struct PageSet(Vec<u64>);

impl PageSet {
    /// True if the page is in the set.
    pub fn contains(&self, page: usize) -> bool {
        self.0.get(page / 64).is_some_and(|bits| bits >> (page % 64) & 1 != 0)
    }

    /// Adds a page.
    pub fn insert(&mut self, page: usize) {
        if self.0.len() <= page / 64 {
            self.0.resize(page / 64 + 1, 0);
        }
        self.0[page / 64] |= 1 << (page % 64);
    }

    fn remove(&mut self, page: usize) {
        self.0[page / 64] &= !(1 << (page % 64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GuestMemory;

    #[test]
    fn private_spaces_keep_their_changes_to_themselves() {
        let mut image = Image::new(4 * PAGE).unwrap();
        image.bytes_mut()[5000] = 7;
        let mut spaces = Space::private(&image, 2).unwrap();
        spaces[0].begin_writing(5000, 0);
        spaces[0].write(5000, &[9]);
        assert_eq!((spaces[0].bytes()[5000], spaces[1].bytes()[5000]), (9, 7));
        assert_eq!((spaces[0].granule(5000), spaces[0].granule(0)), (OPEN, CLOSED));
        spaces[0].reset(&image);
        assert_eq!((spaces[0].bytes()[5000], spaces[0].granule(5000)), (7, CLOSED));
    }

    #[test]
    fn a_changed_image_reaches_pages_already_copied() {
        let mut image = Image::new(4 * PAGE).unwrap();
        let mut space = Space::private(&image, 1).unwrap().remove(0);
        space.begin_writing(0, 0);
        space.write(0, &[1]);
        image.bytes_mut()[8..12].fill(5);
        image.bytes_mut()[2 * PAGE as usize] = 6;
        space.image_changed(&image, 8, 4);
        space.image_changed(&image, 2 * PAGE, 1);
        assert_eq!((space.bytes()[0], space.bytes()[8]), (1, 5));
        assert_eq!(space.bytes()[2 * PAGE as usize], 6);
    }

    #[test]
    fn shared_space_is_the_image() {
        let mut image = Image::new(PAGE).unwrap();
        let space = Space::shared(&image).unwrap();
        image.bytes_mut()[1] = 3;
        assert_eq!(space.bytes()[1], 3);
    }

    #[test]
    fn read_only_memory_refuses_writes_and_stays_closed() {
        let image = Image::new(PAGE).unwrap();
        let mut space = Space::read_only(&image).unwrap();
        space.write(8, &[1]);
        space.set_page_granules(0, 0);
        assert_eq!((space.bytes()[8], space.granule(0)), (1, CLOSED));
        let raw = space.raw();
        let probe = |access, addr| raw.probe(access, addr, 8);
        assert_eq!(probe(kvrm_ir::Access::Read, 16), Ok(()));
        assert_eq!(probe(kvrm_ir::Access::Write, 16), Err(16));
        assert_eq!(probe(kvrm_ir::Access::ReadWrite, PAGE - 4), Err(PAGE - 4));
    }

    #[test]
    fn raw_memory_knows_its_bounds() {
        let image = Image::new(PAGE).unwrap();
        let mut space = Space::shared(&image).unwrap();
        let raw = space.raw();
        let probe = |addr, len| raw.probe(kvrm_ir::Access::Read, addr, len);
        assert_eq!(probe(PAGE - 8, 8), Ok(()));
        assert_eq!(probe(PAGE - 4, 8), Err(PAGE));
        assert_eq!(probe(u64::MAX - 2, 8), Err(u64::MAX - 2));
    }
}
