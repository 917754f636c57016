//! Guest memory on a device, as the host accesses it.
//!
//! Lanes with private memory start from an image, and are divided into groups. A group has a page table; an
//! entry has the number of a frame, and a bit for each lane that has its own copy of the page there. A frame
//! contains the 64-bit words of a page, each word for all lanes of the group side by side, so that lanes that
//! execute together access neighbouring words.
//!
//! [Mapped](PageMap) memory is private memory whose pages are stored in slots: page tables and the image have an entry
//! and a page for each slot instead of each page.

mod mapped;
mod page_map;
mod permission_map;

use std::ops::Range;

use kvrm_ir::Access;
use kvrm_mem::{Bounds, PAGE, Permissions};

pub use page_map::{LEAF_PAGES, PageMap, RIGHTS_BITS};

use crate::{EngineError, Stop};

/// An entry of a page table: the number of a frame, or 0, and the lanes of the group that have a copy there.
pub type Entry = [u32; 2];

/// Words of a frame, of all lanes in the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramePart {
    /// The frame.
    pub frame: u32,
    /// The words.
    pub words: Range<usize>,
}

/// Words in a page.
pub const PAGE_WORDS: usize = (PAGE / 8) as usize;
/// Parts of frames that are read together.
const PARTS_AT_ONCE: usize = 256;
/// Entries of page tables that are read together, unless one table has more.
const ENTRIES_AT_ONCE: usize = 1 << 20;

/// The memory of all lanes: one that they share, or an image and the pages that lanes have written.
///
/// The methods that a device must provide come first; the rest is the same for all devices.
pub trait DeviceMemory {
    /// Returns the size of guest memory in bytes.
    fn size(&self) -> u64;

    /// True if guests may not write.
    fn is_read_only(&self) -> bool;

    /// Returns which accesses flat memory allows.
    fn bounds(&self) -> Bounds {
        Bounds { size: self.size(), read_only: self.is_read_only() }
    }

    /// Returns the pages of mapped memory, which is that of one lane; `None` if memory is flat.
    fn map(&self) -> Option<&PageMap>;

    /// The same, to change it.
    fn map_mut(&mut self) -> Option<&mut PageMap>;

    /// Makes room for all slots of mapped memory; those that are new are zero.
    fn make_room(&mut self) -> Result<(), EngineError>;

    /// Returns the number of lanes.
    fn lanes(&self) -> usize;

    /// Returns the number of lanes in a group, at most 32; `None` if all lanes share one memory.
    fn group(&self) -> Option<usize>;

    /// Reads shared memory, or the image.
    fn read_flat(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError>;

    /// Writes shared memory, or the image but not its copies.
    fn write_flat(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError>;

    /// True if some lane may have its own copy of a page.
    fn has_copies(&self) -> bool;

    /// Reads page tables, group after group.
    fn entries(&self, groups: Range<usize>, pages: Range<u64>) -> Result<Vec<Entry>, EngineError>;

    /// Writes page tables.
    fn set_entries(
        &mut self,
        groups: Range<usize>,
        pages: Range<u64>,
        entries: &[Entry],
    ) -> Result<(), EngineError>;

    /// Takes unused frames, and allocates more if there are too few. Returns the first; the others follow it.
    fn take_frames(&mut self, count: usize) -> Result<u32, EngineError>;

    /// Reads parts of frames, one after the other.
    fn read_frames(&self, parts: &[FramePart]) -> Result<Vec<u8>, EngineError>;

    /// Writes a part of a frame.
    fn write_frame(&mut self, part: &FramePart, bytes: &[u8]) -> Result<(), EngineError>;

    /// Allocates more frames, for lanes that found none.
    fn grow(&mut self) -> Result<(), EngineError>;

    /// Returns how many bytes of records, with what belongs to them, there can be instead of the `there` that there are.
    fn most_records(&self, there: u64) -> Result<u64, EngineError>;

    /// Drops all lanes' copies of pages.
    fn drop_all_pages(&mut self) -> Result<(), EngineError>;

    /// Reads memory as a lane sees it.
    fn read(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.read_lanes(lane..lane + 1, addr, bytes)
    }

    /// Writes a lane's memory.
    fn write(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.write_lanes(lane..lane + 1, addr, bytes)
    }

    /// Checks an access; the error is the address of the first byte that may not be accessed.
    fn probe(&self, access: Access, addr: u64, len: u32) -> Result<(), u64> {
        match self.map() {
            Some(map) => map.probe(Permissions::needed(access), addr, len),
            None => self.bounds().probe(access, addr, len),
        }
    }

    /// Checks that the four bytes of an instruction may be fetched.
    fn probe_fetch(&self, addr: u64) -> Result<(), u64> {
        match self.map() {
            Some(map) => map.probe(Permissions::EXECUTE, addr, 4),
            None => self.bounds().probe(Access::Read, addr, 4),
        }
    }

    /// Lets an access to mapped memory proceed that a kernel could not make, or says why it may not.
    fn admit(&mut self, access: Access, addr: u64) -> Result<Option<Stop>, EngineError> {
        mapped::admit(self, access, addr)
    }

    /// Makes whole pages of mapped memory zero.
    fn discard(&mut self, addr: u64, len: u64) -> Result<(), EngineError> {
        mapped::discard(self, addr, len)
    }

    /// Gives a lane its own copies of the pages that it is about to write; in mapped memory, slots for them.
    fn own(&mut self, lane: usize, addr: u64, len: u64) -> Result<(), EngineError> {
        if self.map().is_some() {
            return mapped::add(self, addr, len as usize);
        }
        let Some(group) = self.group() else { return Ok(()) };
        for (page, ..) in pages(addr, len as usize) {
            copy_page(self, group, &(lane..lane + 1), page)?;
        }
        Ok(())
    }

    /// Reads memory as lanes see it, the same number of bytes from each, lane after lane.
    fn read_lanes(
        &self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &mut [u8],
    ) -> Result<(), EngineError> {
        match self.map() {
            Some(_) => mapped::read(self, addr, bytes),
            None => self.read_stored(lanes, addr, bytes),
        }
    }

    /// The same by where it is stored.
    fn read_stored(
        &self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &mut [u8],
    ) -> Result<(), EngineError> {
        let len = bytes.len() / lanes.len();
        if len == 0 {
            return Ok(());
        }
        let (first, others) = bytes.split_at_mut(len);
        self.read_flat(addr, first)?;
        others.chunks_exact_mut(len).for_each(|row| row.copy_from_slice(first));
        let Some(group) = self.group().filter(|_| self.has_copies()) else { return Ok(()) };
        let groups = lanes.start / group..lanes.end.div_ceil(group);
        let (first_page, end_page) = (addr / PAGE, (addr + len as u64).div_ceil(PAGE));
        let entries = self.entries(groups.clone(), first_page..end_page)?;
        let mut pieces = Vec::new();
        for (number, table) in groups.zip(entries.chunks_exact((end_page - first_page) as usize)) {
            for ((_, start, bytes), entry) in pages(addr, len).zip(table) {
                let copies = entry[1] & seats_of(&lanes, number, group);
                pieces.extend(Piece::new(number, [entry[0], copies], start, bytes));
            }
        }
        for pieces in pieces.chunks(PARTS_AT_ONCE) {
            for (piece, words) in pieces.iter().zip(read_pieces(self, group, pieces)?) {
                for seat in seats(piece.lanes) {
                    let row = (piece.group * group + seat - lanes.start) * len;
                    get(&words, group, seat, piece.skip, &mut bytes[row..][piece.bytes.clone()]);
                }
            }
        }
        Ok(())
    }

    /// Writes memory of lanes, the same number of bytes to each, given lane after lane.
    fn write_lanes(
        &mut self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        if self.map().is_some() {
            return mapped::write(self, addr, bytes);
        }
        let len = bytes.len() / lanes.len();
        let Some(group) = self.group() else {
            let mut rows = bytes.chunks_exact(len.max(1));
            return rows.try_for_each(|row| self.write_flat(addr, row));
        };
        let groups = lanes.start / group..lanes.end.div_ceil(group);
        for (page, start, range) in pages(addr, len) {
            let entries = copy_page(self, group, &lanes, page)?;
            let mut pieces = Vec::new();
            for (number, entry) in groups.clone().zip(entries) {
                let copies = entry[1] & seats_of(&lanes, number, group);
                pieces.extend(Piece::new(number, [entry[0], copies], start, range.clone()));
            }
            let row = |lane: usize| &bytes[(lane - lanes.start) * len..][range.clone()];
            change_copies(self, group, &pieces, row)?;
        }
        Ok(())
    }

    /// Changes the image, and the copies that lanes have of its pages.
    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        if self.map().is_some() {
            return mapped::write(self, addr, bytes);
        }
        self.write_flat(addr, bytes)?;
        let Some(group) = self.group().filter(|_| self.has_copies()) else { return Ok(()) };
        for (page, start, range) in pages(addr, bytes.len()) {
            let entries = self.entries(0..self.lanes().div_ceil(group), page..page + 1)?;
            let pieces = entries.iter().enumerate();
            let pieces: Vec<_> = pieces
                .filter_map(|(number, entry)| Piece::new(number, *entry, start, range.clone()))
                .collect();
            change_copies(self, group, &pieces, |_| &bytes[range.clone()])?;
        }
        Ok(())
    }

    /// Returns the lanes that have their own copy of a page.
    fn owners(&self, page: u64) -> Result<Vec<usize>, EngineError> {
        let Some(group) = self.group() else { return Ok(Vec::new()) };
        let entries = self.entries(0..self.lanes().div_ceil(group), page..page + 1)?;
        let owners = entries.iter().enumerate();
        let owners = owners
            .flat_map(|(number, entry)| seats(entry[1]).map(move |seat| number * group + seat));
        Ok(owners.collect())
    }

    /// Returns the pages of which lanes have their own copies, as lanes and page numbers.
    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        let Some(group) = self.group().filter(|_| self.has_copies()) else { return Ok(Vec::new()) };
        let (groups, table) = (self.lanes().div_ceil(group), self.size() / PAGE);
        let step = (ENTRIES_AT_ONCE / table as usize).max(1);
        let mut found = Vec::new();
        for first in (0..groups).step_by(step) {
            let entries = self.entries(first..groups.min(first + step), 0..table)?;
            for (number, table) in (first..).zip(entries.chunks_exact(table as usize)) {
                for (page, entry) in (0..).zip(table) {
                    found.extend(seats(entry[1]).map(|seat| (number * group + seat, page)));
                }
            }
        }
        Ok(found)
    }

    /// Drops a lane's copies of pages.
    fn drop_pages(&mut self, lane: usize) -> Result<(), EngineError> {
        let Some(group) = self.group().filter(|_| self.has_copies()) else { return Ok(()) };
        let (groups, pages) = (lane / group..lane / group + 1, 0..self.size() / PAGE);
        let mut entries = self.entries(groups.clone(), pages.clone())?;
        entries.iter_mut().for_each(|entry| entry[1] &= !(1 << (lane % group)));
        self.set_entries(groups, pages, &entries)
    }
}

/// Bytes of a page of which some lanes of a group have copies.
struct Piece {
    group: usize,
    /// A bit for each lane.
    lanes: u32,
    part: FramePart,
    /// Bytes of the first word before them.
    skip: usize,
    /// Their range in a lane's bytes.
    bytes: Range<usize>,
}

impl Piece {
    /// Returns the bytes from `start` on, if there are copies.
    fn new(group: usize, entry: Entry, start: usize, bytes: Range<usize>) -> Option<Piece> {
        let [frame, lanes] = entry;
        let words = start / 8..(start + bytes.len()).div_ceil(8);
        let part = FramePart { frame, words };
        (lanes != 0).then_some(Piece { group, lanes, part, skip: start % 8, bytes })
    }
}

/// Reads the contents of the frames for each of the pieces.
fn read_pieces<M: DeviceMemory + ?Sized>(
    memory: &M,
    group: usize,
    pieces: &[Piece],
) -> Result<Vec<Vec<u8>>, EngineError> {
    let parts: Vec<_> = pieces.iter().map(|piece| piece.part.clone()).collect();
    let data = memory.read_frames(&parts)?;
    let mut rest = &data[..];
    let each = |part: FramePart| {
        let (words, after) = rest.split_at(8 * group * part.words.len());
        rest = after;
        words.to_vec()
    };
    Ok(parts.into_iter().map(each).collect())
}

/// Changes copies of a page: each lane's to its bytes.
fn change_copies<'a, M: DeviceMemory + ?Sized>(
    memory: &mut M,
    group: usize,
    pieces: &[Piece],
    bytes: impl Fn(usize) -> &'a [u8],
) -> Result<(), EngineError> {
    for pieces in pieces.chunks(PARTS_AT_ONCE) {
        for (piece, mut words) in pieces.iter().zip(read_pieces(memory, group, pieces)?) {
            for seat in seats(piece.lanes) {
                put(&mut words, group, seat, piece.skip, bytes(piece.group * group + seat));
            }
            memory.write_frame(&piece.part, &words)?;
        }
    }
    Ok(())
}

/// Gives lanes their own copies of a page; returns the entries of their groups' page tables for it.
fn copy_page<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    group: usize,
    lanes: &Range<usize>,
    page: u64,
) -> Result<Vec<Entry>, EngineError> {
    let groups = lanes.start / group..lanes.end.div_ceil(group);
    let mut entries = memory.entries(groups.clone(), page..page + 1)?;
    let missing = |number: usize, entry: &Entry| seats_of(lanes, number, group) & !entry[1];
    if groups.clone().zip(&entries).all(|(number, entry)| missing(number, entry) == 0) {
        return Ok(entries);
    }
    let mut image = vec![0; PAGE as usize];
    memory.read_flat(page * PAGE, &mut image)?;
    // In the layout of a frame, for all lanes.
    let spread: Vec<u8> = image.chunks_exact(8).flat_map(|word| word.repeat(group)).collect();
    let new = entries.iter().filter(|entry| entry[0] == 0).count();
    let mut frames = if new > 0 { memory.take_frames(new)?.. } else { 0.. };
    for (number, entry) in groups.clone().zip(&mut entries) {
        let copied = missing(number, entry);
        if entry[0] == 0 {
            entry[0] = frames.next().expect("taken above");
            let part = FramePart { frame: entry[0], words: 0..PAGE_WORDS };
            memory.write_frame(&part, &spread)?;
        } else if copied != 0 {
            let part = FramePart { frame: entry[0], words: 0..PAGE_WORDS };
            let mut words = memory.read_frames(std::slice::from_ref(&part))?;
            seats(copied).for_each(|seat| put(&mut words, group, seat, 0, &image));
            memory.write_frame(&part, &words)?;
        }
        entry[1] |= copied;
    }
    memory.set_entries(groups, page..page + 1, &entries)?;
    Ok(entries)
}

/// Returns the seats of a range's lanes in a group, as bits.
fn seats_of(lanes: &Range<usize>, number: usize, group: usize) -> u32 {
    let first = number * group;
    let start = lanes.start.max(first) - first;
    let end = lanes.end.min(first + group) - first;
    (start..end).fold(0, |bits, seat| bits | 1 << seat)
}

/// Returns the seats whose bits are set.
fn seats(bits: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |seat| bits >> seat & 1 != 0)
}

/// Writes a lane's bytes into the words of its group; the first comes after `skip` other bytes of the lane.
fn put(words: &mut [u8], group: usize, seat: usize, skip: usize, bytes: &[u8]) {
    let mut done = 0;
    while done < bytes.len() {
        let (at, count) = place(group, seat, skip + done, bytes.len() - done);
        words[at..at + count].copy_from_slice(&bytes[done..done + count]);
        done += count;
    }
}

/// Reads a lane's bytes from the words of its group.
fn get(words: &[u8], group: usize, seat: usize, skip: usize, bytes: &mut [u8]) {
    let mut done = 0;
    while done < bytes.len() {
        let (at, count) = place(group, seat, skip + done, bytes.len() - done);
        bytes[done..done + count].copy_from_slice(&words[at..at + count]);
        done += count;
    }
}

/// Returns where a lane's byte is, and how many of the following bytes, up to `len`, are adjacent.
fn place(group: usize, seat: usize, byte: usize, len: usize) -> (usize, usize) {
    let (word, offset) = (byte / 8, byte % 8);
    ((word * group + seat) * 8 + offset, len.min(8 - offset))
}

/// Splits a range of addresses by page: page, offset in it, and range of the bytes.
fn pages(addr: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = addr + done as u64;
        let (page, start) = (at / PAGE, (at % PAGE) as usize);
        let part = (len - done).min(PAGE as usize - start);
        done += part;
        (part > 0).then(|| (page, start, done - part..done))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const LANES: usize = 21;
    const GROUP: usize = 8;
    const PAGES: u64 = 4;

    /// A device of which everything is in vectors.
    pub(crate) struct Fake {
        shared: bool,
        lanes: usize,
        pub(crate) flat: Vec<u8>,
        tables: Vec<Entry>,
        frames: Vec<Vec<u8>>,
        /// How many frames there can be, with the first, which is not used; and bytes of records.
        pub(crate) most_frames: usize,
        pub(crate) most_records: u64,
        map: Option<PageMap>,
    }

    impl Fake {
        fn new(shared: bool) -> Fake {
            Fake::with(shared, LANES, (0..PAGES * PAGE).map(|at| (at * 7 / 3) as u8).collect())
        }

        /// A device with an image.
        pub(crate) fn with(shared: bool, lanes: usize, flat: Vec<u8>) -> Fake {
            let tables = vec![[0; 2]; lanes.div_ceil(GROUP) * flat.len() / PAGE as usize];
            let frames = vec![Vec::new()];
            let (most_frames, most_records) = (usize::MAX, u64::MAX);
            Fake { shared, lanes, flat, tables, frames, most_frames, most_records, map: None }
        }

        /// A device with mapped memory, for one lane.
        pub(crate) fn mapped() -> Fake {
            Fake { map: Some(PageMap::new(1 << 39)), ..Fake::with(false, 1, Vec::new()) }
        }

        /// Where a group's page table starts.
        fn table_at(&self, group: usize) -> usize {
            group * self.flat.len() / PAGE as usize
        }

        /// What a lane sees.
        fn seen(&self, lane: usize) -> Vec<u8> {
            let mut bytes = vec![0; self.flat.len()];
            self.read(lane, 0, &mut bytes).unwrap();
            bytes
        }
    }

    impl DeviceMemory for Fake {
        fn size(&self) -> u64 {
            if self.map.is_some() { 1 << 39 } else { self.flat.len() as u64 }
        }

        fn is_read_only(&self) -> bool {
            false
        }

        fn map(&self) -> Option<&PageMap> {
            self.map.as_ref()
        }

        fn map_mut(&mut self) -> Option<&mut PageMap> {
            self.map.as_mut()
        }

        fn make_room(&mut self) -> Result<(), EngineError> {
            let slots = self.map.as_ref().expect("asked of mapped memory alone").count();
            self.flat.resize(slots * PAGE as usize, 0);
            self.tables.resize(slots, [0; 2]);
            Ok(())
        }

        fn lanes(&self) -> usize {
            self.lanes
        }

        fn group(&self) -> Option<usize> {
            (!self.shared).then_some(GROUP)
        }

        fn read_flat(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
            bytes.copy_from_slice(&self.flat[addr as usize..][..bytes.len()]);
            Ok(())
        }

        fn write_flat(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
            self.flat[addr as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }

        fn has_copies(&self) -> bool {
            self.frames.len() > 1
        }

        fn entries(
            &self,
            groups: Range<usize>,
            pages: Range<u64>,
        ) -> Result<Vec<Entry>, EngineError> {
            let pages = pages.start as usize..pages.end as usize;
            let table = |group| &self.tables[self.table_at(group)..][pages.clone()];
            Ok(groups.flat_map(table).copied().collect())
        }

        fn set_entries(
            &mut self,
            groups: Range<usize>,
            pages: Range<u64>,
            entries: &[Entry],
        ) -> Result<(), EngineError> {
            let pages = pages.start as usize..pages.end as usize;
            for (group, entries) in groups.zip(entries.chunks_exact(pages.len())) {
                let start = self.table_at(group);
                let table = &mut self.tables[start..];
                table[pages.clone()].copy_from_slice(entries);
            }
            Ok(())
        }

        fn take_frames(&mut self, count: usize) -> Result<u32, EngineError> {
            let first = self.frames.len();
            if first + count > self.most_frames {
                return Err(EngineError::DeviceFull("no frames".to_string()));
            }
            // Nobody clears frames that were used before.
            self.frames.resize(first + count, vec![0xee; GROUP * PAGE as usize]);
            Ok(first as u32)
        }

        fn read_frames(&self, parts: &[FramePart]) -> Result<Vec<u8>, EngineError> {
            let part = |FramePart { frame, words }: &FramePart| {
                self.frames[*frame as usize][8 * GROUP * words.start..8 * GROUP * words.end]
                    .to_vec()
            };
            Ok(parts.iter().flat_map(part).collect())
        }

        fn write_frame(&mut self, part: &FramePart, bytes: &[u8]) -> Result<(), EngineError> {
            let words = 8 * GROUP * part.words.start..8 * GROUP * part.words.end;
            self.frames[part.frame as usize][words].copy_from_slice(bytes);
            Ok(())
        }

        fn grow(&mut self) -> Result<(), EngineError> {
            Ok(())
        }

        fn most_records(&self, _: u64) -> Result<u64, EngineError> {
            Ok(self.most_records)
        }

        fn drop_all_pages(&mut self) -> Result<(), EngineError> {
            self.tables.fill([0; 2]);
            Ok(())
        }
    }

    /// Some ranges of lanes: one, some of a group, some of several, all.
    const RANGES: [Range<usize>; 6] = [0..1, 20..21, 2..5, 7..9, 3..20, 0..LANES];
    /// Addresses and lengths within words and pages, and across them.
    const PLACES: [(u64, usize); 8] =
        [(0, 1), (13, 3), (8, 16), (4090, 5), (4093, 6), (4091, 4111), (3, 12000), (12288, 4096)];

    /// Bytes that tell lanes and places apart.
    fn sample(seed: usize, len: usize) -> Vec<u8> {
        (0..len).map(|index| (seed * 31 + index * 13) as u8).collect()
    }

    #[test]
    fn lanes_read_what_they_were_given() {
        let mut fake = Fake::new(false);
        let mut wanted: Vec<Vec<u8>> = vec![fake.flat.clone(); LANES];
        for (round, lanes) in RANGES.into_iter().enumerate() {
            for (addr, len) in PLACES {
                let rows = sample(round, lanes.len() * len);
                fake.write_lanes(lanes.clone(), addr, &rows).unwrap();
                for (lane, row) in lanes.clone().zip(rows.chunks_exact(len)) {
                    wanted[lane][addr as usize..][..len].copy_from_slice(row);
                }
                let image = sample(addr as usize, len / 2);
                fake.write_image(addr, &image).unwrap();
                for memory in &mut wanted {
                    memory[addr as usize..][..image.len()].copy_from_slice(&image);
                }
            }
            for (lane, memory) in wanted.iter().enumerate() {
                assert!(fake.seen(lane) == *memory, "lane {lane} after {lanes:?}");
            }
        }
        for lanes in RANGES {
            for (addr, len) in PLACES {
                let mut rows = vec![0; lanes.len() * len];
                fake.read_lanes(lanes.clone(), addr, &mut rows).unwrap();
                for (lane, row) in lanes.clone().zip(rows.chunks_exact(len)) {
                    assert!(*row == wanted[lane][addr as usize..][..len]);
                }
            }
        }
    }

    #[test]
    fn pages_have_owners_until_they_are_dropped() {
        let mut fake = Fake::new(false);
        assert_eq!(fake.private_pages().unwrap(), []);
        fake.write(9, PAGE - 1, &[1, 2]).unwrap();
        fake.write(10, PAGE, &[3]).unwrap();
        assert_eq!(fake.owners(1).unwrap(), [9, 10]);
        assert_eq!(fake.private_pages().unwrap(), [(9, 0), (9, 1), (10, 1)]);
        fake.drop_pages(9).unwrap();
        assert_eq!(fake.private_pages().unwrap(), [(10, 1)]);
        assert!(fake.seen(9) == fake.flat);
        // Once more from the image, in the frame that the other lane is in.
        fake.write(9, PAGE + 1, &[4]).unwrap();
        assert_eq!(fake.seen(9)[PAGE as usize..][..2], [fake.flat[PAGE as usize], 4]);
        assert_eq!(fake.seen(10)[PAGE as usize..][..2], [3, fake.flat[PAGE as usize + 1]]);
        fake.drop_all_pages().unwrap();
        assert_eq!(fake.private_pages().unwrap(), []);
    }

    #[test]
    fn shared_memory_has_no_copies() {
        let mut fake = Fake::new(true);
        fake.write_lanes(3..5, 10, b"onetwo").unwrap();
        let mut rows = [0; 9];
        fake.read_lanes(0..3, 10, &mut rows).unwrap();
        assert_eq!(&rows, b"twotwotwo");
        fake.write_image(11, b"o").unwrap();
        assert_eq!(fake.seen(20)[10..13], *b"too");
        assert_eq!((fake.owners(0).unwrap(), fake.private_pages().unwrap()), (vec![], vec![]));
    }

    #[test]
    fn mapped_memory_is_zero_where_nothing_was_written() {
        let mut fake = Fake::mapped();
        let map = fake.map_mut().unwrap();
        map.protect(0..4, Permissions::READ | Permissions::WRITE);
        let read = |fake: &Fake, addr, len| {
            let mut bytes = vec![1; len];
            fake.read(0, addr, &mut bytes).unwrap();
            bytes
        };
        let far = (1 << 38) - 2;
        fake.write(0, far, &[1, 2, 3, 4]).unwrap();
        fake.write(0, PAGE - 2, &[5, 6, 7, 8]).unwrap();
        assert_eq!(read(&fake, far - 2, 8), [0, 0, 1, 2, 3, 4, 0, 0]);
        assert_eq!(read(&fake, PAGE - 3, 6), [0, 5, 6, 7, 8, 0]);
        assert_eq!(read(&fake, 7 * PAGE, 2), [0, 0]);
        // The lane has its own copy of a page.
        fake.entries(0..1, 2..3).unwrap();
        let slot = u64::from(fake.map.as_ref().unwrap().slot(1).unwrap());
        copy_page(&mut fake, GROUP, &(0..1), slot).unwrap();
        fake.write(0, PAGE + 1, &[9]).unwrap();
        assert_eq!(read(&fake, PAGE - 2, 5), [5, 6, 7, 9, 0]);
        assert_eq!(fake.flat[(slot * PAGE) as usize + 1], 8, "the image is another thing");
        fake.discard(0, 4 * PAGE).unwrap();
        assert_eq!(read(&fake, PAGE - 2, 4), [0; 4]);
        fake.discard(far - far % PAGE, 2 * PAGE).unwrap();
        let slots = fake.map.as_ref().unwrap().stored(0..1 << 27);
        assert_eq!(slots.len(), 2, "pages that may be accessed keep their slots");
        assert_eq!(fake.admit(Access::Read, 3 * PAGE).unwrap(), None);
        assert_eq!(read(&fake, 3 * PAGE, 4), [0; 4]);
        let fault = Stop::from_fault(Access::Write, 4 * PAGE);
        assert_eq!(fake.admit(Access::Write, 4 * PAGE - 1).unwrap(), Some(fault));
    }
}
