//! Guest memory on a device, as the host accesses it.
//!
//! Lanes with private memory start from an image, and are divided into groups. A group has a page table; an
//! entry has the number of a frame, and a bit for each lane that has its own copy of the page there. A frame
//! contains the 64-bit words of a page, each word for all lanes of the group side by side, so that lanes that
//! execute together access neighbouring words.
//!
//! [Mapped](PageMap) memory is private memory whose pages are stored in slots: page tables and the image have an entry
//! and a page for each slot instead of each page.

mod bulk;
mod copies;
mod mapped;
mod page_map;
mod permission_map;
mod varying;

use std::ops::Range;

use kvrm_ir::Access;
use kvrm_mem::{Bounds, PAGE, Permissions};

pub use bulk::{Masked, PageCopy, Run};
pub use page_map::{LEAF_PAGES, Missing, PageMap, RIGHTS_BITS, VARIES};
pub use varying::Masks;

use copies::{change_all_copies, copy_page, pages, read_copies, seats, write_copies};

use crate::{EngineError, MemoryChange, Piece};

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

    /// Returns the pages of mapped memory; `None` if memory is flat.
    fn map(&self) -> Option<&PageMap>;

    /// The same, to change it.
    fn map_mut(&mut self) -> Option<&mut PageMap>;

    /// Returns for how many slots of mapped memory there is room.
    fn room(&self) -> usize;

    /// Makes room for so many slots of mapped memory; those that are new are zero, and no lane has a copy of them.
    fn make_room(&mut self, slots: usize) -> Result<(), EngineError>;

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

    /// Reads words of the image and of lanes' copies, run after run.
    fn gather(&self, runs: &[Run]) -> Result<Vec<u64>, EngineError> {
        bulk::gather(self, runs)
    }

    /// Changes words of lanes' copies, run after run; no two have the same word.
    fn scatter(&mut self, runs: &[Run], words: &[Masked]) -> Result<(), EngineError> {
        bulk::scatter(self, runs, words)
    }

    /// Copies pages of the image into lanes' parts of frames.
    fn copy_pages(&mut self, copies: &[PageCopy]) -> Result<(), EngineError> {
        bulk::copy_pages(self, copies)
    }

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

    /// Checks an access of a lane; the error is the address of the first byte that may not be accessed.
    fn probe(&self, lane: usize, access: Access, addr: u64, len: u32) -> Result<(), u64> {
        match self.map() {
            Some(map) => map.probe(lane, Permissions::needed(access), addr, len),
            None => self.bounds().probe(access, addr, len),
        }
    }

    /// Checks that a lane may fetch the four bytes of an instruction.
    fn probe_fetch(&self, lane: usize, addr: u64) -> Result<(), u64> {
        match self.map() {
            Some(map) => map.probe(lane, Permissions::EXECUTE, addr, 4),
            None => self.bounds().probe(Access::Read, addr, 4),
        }
    }

    /// True if a lane may have memory of its own, which begins as an image.
    fn is_private(&self) -> bool {
        self.map().map_or(self.group().is_some(), PageMap::is_private)
    }

    /// True if lanes have a mapped memory each.
    fn is_of_each(&self) -> bool {
        self.map().is_some_and(PageMap::is_private)
    }

    /// Gives pages of mapped memory slots, those of a range that have none.
    fn add_slots(&mut self, pages: &[u64]) -> Result<(), EngineError> {
        mapped::add(self, pages)
    }

    /// Makes whole pages of a lane's mapped memory zero.
    fn discard(&mut self, lane: usize, addr: u64, len: u64) -> Result<(), EngineError> {
        mapped::discard(self, lane, addr, len)
    }

    /// Gives a lane its own copies of the pages that it is about to write; in mapped memory, slots for them.
    fn own(&mut self, lane: usize, addr: u64, len: u64) -> Result<(), EngineError> {
        if self.map().is_some() {
            return mapped::own(self, lane, addr, len);
        }
        let Some(group) = self.group() else { return Ok(()) };
        for (page, ..) in pages(addr, len as usize) {
            copy_page(self, group, &(lane..lane + 1), page)?;
        }
        Ok(())
    }

    /// Reads a page of the image.
    fn read_image_page(&self, page: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        match self.map().map(|map| map.slot(page)) {
            None => self.read_flat(page * PAGE, bytes),
            Some(Some(slot)) => self.read_flat(u64::from(slot) * PAGE, bytes),
            Some(None) => {
                bytes.fill(0);
                Ok(())
            }
        }
    }

    /// Reads a page as lanes have it in common: in the image, if they begin with one.
    fn read_common_page(&self, page: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        match self.map().is_some() && !self.is_private() {
            true => self.read(0, page * PAGE, bytes),
            false => self.read_image_page(page, bytes),
        }
    }

    /// Reads pieces of lanes' memory, where each has its own that is mapped.
    fn read_pieces(&self, pieces: &[Piece]) -> Result<Vec<Vec<u8>>, EngineError> {
        bulk::read(self, pieces)
    }

    /// Makes changes in the memory of lanes that have a mapped one each, apart from permissions. False if there is no room
    /// for all of them, and nothing was changed.
    fn change(&mut self, changes: &[(usize, Vec<MemoryChange>)]) -> Result<bool, EngineError> {
        bulk::change(self, changes)
    }

    /// Reads memory as lanes see it, the same number of bytes from each, lane after lane.
    fn read_lanes(
        &self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &mut [u8],
    ) -> Result<(), EngineError> {
        match self.map() {
            Some(_) => mapped::read(self, lanes, addr, bytes),
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
        read_copies(self, &lanes, addr, bytes)
    }

    /// Writes memory of lanes, the same number of bytes to each, given lane after lane.
    fn write_lanes(
        &mut self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        if self.map().is_some() {
            return mapped::write(self, lanes, addr, bytes);
        }
        let len = bytes.len() / lanes.len();
        if self.group().is_none() {
            let mut rows = bytes.chunks_exact(len.max(1));
            return rows.try_for_each(|row| self.write_flat(addr, row));
        }
        for (page, start, range) in pages(addr, len) {
            let rows: Vec<_> = bytes.chunks_exact(len).map(|row| &row[range.clone()]).collect();
            write_copies(self, &lanes, page, start, &rows)?;
        }
        Ok(())
    }

    /// Changes the image, and the copies that lanes have of its pages.
    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        if self.map().is_some() {
            return mapped::write_image(self, addr, bytes);
        }
        self.write_flat(addr, bytes)?;
        for (page, start, range) in pages(addr, bytes.len()) {
            change_all_copies(self, page, start, &bytes[range])?;
        }
        Ok(())
    }

    /// Returns the lanes that have their own copy of a page.
    fn owners(&self, page: u64) -> Result<Vec<usize>, EngineError> {
        let stored = self.map().map_or(Some(page), |map| map.slot(page).map(u64::from));
        let Some((group, page)) = self.group().zip(stored) else { return Ok(Vec::new()) };
        let entries = self.entries(0..self.lanes().div_ceil(group), page..page + 1)?;
        let owners = entries.iter().enumerate();
        let owners = owners
            .flat_map(|(number, entry)| seats(entry[1]).map(move |seat| number * group + seat));
        Ok(owners.collect())
    }

    /// Returns the pages of flat memory of which lanes have their own copies, as lanes and page numbers.
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

    /// Returns how many pages page tables have: those of memory, or slots that are used.
    fn table_len(&self) -> u64 {
        self.map().map_or(self.size() / PAGE, |map| map.count() as u64)
    }

    /// Makes the memory of all lanes that of the image again.
    fn reset_all(&mut self) -> Result<(), EngineError> {
        self.drop_all_pages()?;
        let lanes = self.lanes();
        if let Some(map) = self.map_mut() {
            (0..lanes).for_each(|lane| map.reset(lane));
        }
        Ok(())
    }

    /// Makes the memory of lanes, in ascending order, that of the image again.
    fn reset_each(&mut self, lanes: &[usize]) -> Result<(), EngineError> {
        self.drop_pages(lanes)?;
        if let Some(map) = self.map_mut() {
            lanes.iter().for_each(|lane| map.reset(*lane));
        }
        Ok(())
    }

    /// Drops copies of pages that lanes have, of those in groups next to each other together.
    fn drop_pages(&mut self, lanes: &[usize]) -> Result<(), EngineError> {
        let Some(group) = self.group().filter(|_| self.has_copies()) else { return Ok(()) };
        let table = self.table_len() as usize;
        if table == 0 {
            return Ok(());
        }
        let step = (ENTRIES_AT_ONCE / table).max(1);
        for run in lanes.chunk_by(|a, b| b / group - a / group <= 1) {
            let (first, last) = (run[0] / group, run[run.len() - 1] / group);
            for start in (first..=last).step_by(step) {
                let groups = start..(start + step).min(last + 1);
                let mut entries = self.entries(groups.clone(), 0..table as u64)?;
                let mut tables: Vec<_> = entries.chunks_exact_mut(table).collect();
                for lane in run.iter().filter(|lane| groups.contains(&(*lane / group))) {
                    let entries = tables[lane / group - start].iter_mut();
                    entries.for_each(|entry| entry[1] &= !(1 << (lane % group)));
                }
                self.set_entries(groups, 0..table as u64, &entries)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
