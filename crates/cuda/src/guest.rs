//! Guest memory on the device, as the host reaches it.

use std::cell::RefCell;
use std::ops::Range;

use kvrm_engine::memory::{DeviceMemory, Entry, FramePart, Masked, Masks, PageCopy, PageMap, Run};
use kvrm_engine::{Config, EngineError, MemoryModel};
use kvrm_mem::PAGE;

use crate::driver::{Buffer, CudaError, Device};
use crate::frames::{Frames, PIECE};
use crate::kernel::Pool;
use crate::memory::{FRAME_BYTES, FRAME_LANES};
use crate::moves::Mover;

/// What to do where the device is too small.
pub(crate) const TOO_MUCH: &str = "use fewer lanes or a smaller memory";
/// Bytes of a word of all lanes in a frame.
const WORD_BYTES: u64 = 8 * FRAME_LANES;
/// Bytes of an entry of a page table.
const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;
/// Slots of mapped memory to begin with.
const FIRST_SLOTS: u64 = 1024;

/// The memory of all lanes.
pub struct Guest {
    size: u64,
    /// Guests may not write.
    read_only: bool,
    lanes: usize,
    /// Shared memory, or the image.
    pub(crate) flat: Buffer,
    pub(crate) pool_buffer: Buffer,
    /// What is in there; kernels change it.
    pool: Pool,
    pub(crate) private: Option<Private>,
    pub(crate) mapped: Option<Mapped>,
    pub(crate) mover: RefCell<Mover>,
    // Last: everything above is on it.
    pub(crate) device: Device,
}

/// What mapped memory has.
pub(crate) struct Mapped {
    map: PageMap,
    /// The map as kernels see it.
    pub(crate) words: Buffer,
    /// Columns of slots, as many as there is room for.
    pub(crate) columns: Buffer,
}

impl Mapped {
    fn new(device: &Device, map: PageMap) -> Result<Mapped, CudaError> {
        let words = words_buffer(device, &map)?;
        let columns = columns_buffer(device, &map, FIRST_SLOTS)?;
        Ok(Mapped { map, words, columns })
    }

    /// Bytes of a column.
    pub(crate) fn column_bytes(&self) -> u64 {
        column_bytes(&self.map)
    }

    /// Brings the device up to date.
    fn upload(&mut self, device: &Device) -> Result<(), CudaError> {
        let Mapped { map, words, columns } = self;
        if size_of_val(map.words()) as u64 > words.len {
            *words = words_buffer(device, map)?;
            map.change_all();
        }
        for part in map.take_changes() {
            words.write(4 * part.start as u64, &map.words()[part])?;
        }
        for (first, masks) in map.take_changed_columns() {
            columns.write(u64::from(first) * column_bytes(map), &masks)?;
        }
        Ok(())
    }
}

/// What private memory has beside the image.
pub(crate) struct Private {
    pub(crate) tables: Buffer,
    /// Bytes of one warp's page table.
    pub(crate) table_bytes: u64,
    pub(crate) frames: Frames,
}

impl Guest {
    pub(crate) fn new(device: Device, config: &Config) -> Result<Guest, EngineError> {
        let Config { lanes, memory_size: size, read_only, .. } = *config;
        let stored = if config.mapped { FIRST_SLOTS * PAGE } else { size };
        let flat = Buffer::new(&device, stored, |_| TOO_MUCH.into())?;
        let pool_buffer = Buffer::new(&device, size_of::<Pool>() as u64, |_| TOO_MUCH.into())?;
        let private = match memory_model(config) {
            MemoryModel::Shared => None,
            MemoryModel::Private => {
                let warps = (lanes as u64).div_ceil(FRAME_LANES);
                let table_bytes = stored / PAGE * ENTRY_BYTES;
                let tables = Buffer::new(&device, warps * table_bytes, |free| {
                    let fit = free / table_bytes * FRAME_LANES;
                    format!("{TOO_MUCH}; the tables of {fit} lanes would fit")
                })?;
                Some(Private { tables, table_bytes, frames: Frames::new(&device)? })
            }
        };
        let map = match config.model {
            _ if !config.mapped => None,
            MemoryModel::Shared => Some(PageMap::new(size)),
            MemoryModel::Private => Some(PageMap::private(size, lanes, FRAME_LANES as usize)),
        };
        let mapped = map.map(|map| Mapped::new(&device, map)).transpose()?;
        let pool = Pool::default();
        let mover = RefCell::default();
        let mut guest = Guest {
            size,
            read_only,
            lanes,
            flat,
            pool_buffer,
            pool,
            private,
            mapped,
            mover,
            device,
        };
        guest.drop_all_pages()?;
        Ok(guest)
    }

    /// What kernels have counted, up to the last launch.
    pub(crate) fn pool(&self) -> Pool {
        self.pool
    }

    /// Takes note of what a launch has counted.
    pub(crate) fn launched(&mut self) -> Result<Pool, CudaError> {
        let mut pool = [Pool::default()];
        self.pool_buffer.read(0, &mut pool)?;
        self.pool = pool[0];
        Ok(self.pool)
    }

    pub(crate) fn set_pool(&mut self, pool: Pool) -> Result<(), CudaError> {
        self.pool_buffer.write(0, &[pool])?;
        self.pool = pool;
        Ok(())
    }

    /// Brings the map of mapped memory on the device up to date.
    pub(crate) fn upload_map(&mut self) -> Result<(), CudaError> {
        self.mapped.as_mut().map_or(Ok(()), |mapped| mapped.upload(&self.device))
    }

    /// Makes room for so many slots of mapped memory.
    fn store_more(&mut self, slots: u64) -> Result<(), CudaError> {
        let device = &self.device;
        let more = |bytes| Buffer::new(device, bytes, |_| TOO_MUCH.into());
        let private = self.private.as_mut().expect("mapped memory is private");
        let mapped = self.mapped.as_mut().expect("only mapped memory has slots");
        let (groups, table_bytes) = (private.tables.len / private.table_bytes, slots * ENTRY_BYTES);
        let (flat, tables) = (more(slots * PAGE)?, more(groups * table_bytes)?);
        let columns = columns_buffer(device, &mapped.map, slots)?;
        flat.copy_from(&self.flat)?;
        device.stream.copy_rows(
            [tables.address, private.tables.address],
            [table_bytes, private.table_bytes],
            groups,
        )?;
        // The old buffers may go when nothing is copied from them any more.
        device.stream.wait()?;
        private.table_bytes = table_bytes;
        (self.flat, private.tables, mapped.columns) = (flat, tables, columns);
        mapped.map.change_all_columns();
        Ok(())
    }

    /// What private memory has; nobody asks where there is none.
    fn private(&self) -> &Private {
        self.private.as_ref().expect("only private memory has frames")
    }

    /// Where frames are on the device.
    pub(crate) fn frames_base(&self) -> u64 {
        self.private().frames.base()
    }

    /// The first frame that nobody has.
    fn first_free(&self) -> u32 {
        // Attempts that failed have counted on beyond the end. The first frame is not used: its number means "none".
        self.pool.next.min(self.pool.size).max(1)
    }

    /// Makes at least one frame, and so many if they fit. `next` is the first that nobody has.
    fn add_frames(&mut self, next: u32, count: u64) -> Result<(), CudaError> {
        let private = self.private.as_mut().expect("only private memory has frames");
        private.frames.grow(&self.device, count, self.lanes)?;
        let size = private.frames.count() as u32;
        self.set_pool(Pool { next, size, ..self.pool })
    }

    /// Where a part of a frame is on the device.
    fn address(&self, part: &FramePart) -> u64 {
        let frame = self.private().frames.base() + u64::from(part.frame) * FRAME_BYTES;
        frame + part.words.start as u64 * WORD_BYTES
    }

    /// Where the first of some entries is on the device, and the bytes from one group's to the next's.
    fn entries_at(&self, groups: &Range<usize>, pages: &Range<u64>) -> (u64, u64) {
        let private = self.private();
        let offset = groups.start as u64 * private.table_bytes + pages.start * ENTRY_BYTES;
        (private.tables.address + offset, private.table_bytes)
    }
}

impl DeviceMemory for Guest {
    fn size(&self) -> u64 {
        self.size
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn map(&self) -> Option<&PageMap> {
        self.mapped.as_ref().map(|mapped| &mapped.map)
    }

    fn map_mut(&mut self) -> Option<&mut PageMap> {
        self.mapped.as_mut().map(|mapped| &mut mapped.map)
    }

    fn room(&self) -> usize {
        (self.flat.len / PAGE) as usize
    }

    fn make_room(&mut self, slots: usize) -> Result<(), EngineError> {
        if slots <= self.room() {
            return Ok(());
        }
        let needed = slots as u64;
        // Twice as much each time, so that all is not copied often.
        match self.store_more(needed.next_power_of_two()) {
            Err(CudaError::Full { .. }) => Ok(self.store_more(needed)?),
            made => Ok(made?),
        }
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn group(&self) -> Option<usize> {
        self.private.as_ref().map(|_| FRAME_LANES as usize)
    }

    fn read_flat(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        Ok(self.flat.read(addr, bytes)?)
    }

    fn write_flat(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        Ok(self.flat.write(addr, bytes)?)
    }

    fn has_copies(&self) -> bool {
        self.pool.next > 1
    }

    fn entries(&self, groups: Range<usize>, pages: Range<u64>) -> Result<Vec<Entry>, EngineError> {
        let (from, pitch) = self.entries_at(&groups, &pages);
        let width = (pages.end - pages.start) as usize;
        let mut entries = vec![[0; 2]; groups.len() * width];
        self.device.stream.read_rows(from, pitch, width, &mut entries)?;
        Ok(entries)
    }

    fn set_entries(
        &mut self,
        groups: Range<usize>,
        pages: Range<u64>,
        entries: &[Entry],
    ) -> Result<(), EngineError> {
        let (to, pitch) = self.entries_at(&groups, &pages);
        let width = (pages.end - pages.start) as usize;
        Ok(self.device.stream.write_rows(to, pitch, width, entries)?)
    }

    fn take_frames(&mut self, count: usize) -> Result<u32, EngineError> {
        let first = self.first_free();
        let next = first + count as u32;
        while next > self.pool.size {
            self.add_frames(first, (next - self.pool.size).into())?;
        }
        self.set_pool(Pool { next, ..self.pool })?;
        Ok(first)
    }

    fn read_frames(&self, parts: &[FramePart]) -> Result<Vec<u8>, EngineError> {
        let len = |part: &FramePart| part.words.len() * WORD_BYTES as usize;
        let mut bytes = vec![0; parts.iter().map(len).sum()];
        let mut rest = &mut bytes[..];
        for part in parts {
            let (words, after) = rest.split_at_mut(len(part));
            self.device.stream.read(self.address(part), words)?;
            rest = after;
        }
        Ok(bytes)
    }

    fn write_frame(&mut self, part: &FramePart, bytes: &[u8]) -> Result<(), EngineError> {
        Ok(self.device.stream.write(self.address(part), bytes)?)
    }

    fn gather(&self, runs: &[Run]) -> Result<Vec<u64>, EngineError> {
        self.gather_words(runs)
    }

    fn scatter(&mut self, runs: &[Run], words: &[Masked]) -> Result<(), EngineError> {
        self.scatter_words(runs, words)
    }

    fn copy_pages(&mut self, copies: &[PageCopy]) -> Result<(), EngineError> {
        self.copy_to_lanes(copies)
    }

    fn grow(&mut self) -> Result<(), EngineError> {
        let (next, failed) = (self.first_free(), self.pool.next.saturating_sub(self.pool.size));
        // Where there is no room for more, those that found none have still counted beyond the end.
        self.set_pool(Pool { next, ..self.pool })?;
        Ok(self.add_frames(next, failed.max(1).into())?)
    }

    fn most_records(&self, there: u64) -> Result<u64, EngineError> {
        let (free, _) = self.device.memory()?;
        // Half of what frames leave: where lanes have filled the device, they still find some code.
        Ok(there + free.saturating_sub(PIECE / 2))
    }

    fn drop_all_pages(&mut self) -> Result<(), EngineError> {
        if let Some(private) = &self.private {
            private.tables.fill(0, private.tables.len, 0)?;
        }
        let size = self.private.as_ref().map_or(0, |private| private.frames.count()) as u32;
        Ok(self.set_pool(Pool { next: 1, size, ..self.pool })?)
    }
}

/// Who sees which memory, as kernels have it: mapped memory is private.
pub(crate) fn memory_model(config: &Config) -> MemoryModel {
    if config.mapped { MemoryModel::Private } else { config.model }
}

/// Bytes of a column of a map.
fn column_bytes(map: &PageMap) -> u64 {
    (map.column_height() * size_of::<Masks>()) as u64
}

/// A buffer for columns of so many slots; those of memory that lanes do not have each are never looked at.
fn columns_buffer(device: &Device, map: &PageMap, slots: u64) -> Result<Buffer, CudaError> {
    let slots = if map.is_private() { slots } else { 1 };
    Buffer::new(device, slots * column_bytes(map), |_| TOO_MUCH.into())
}

/// A buffer for a map of pages, with room to grow.
fn words_buffer(device: &Device, map: &PageMap) -> Result<Buffer, CudaError> {
    Buffer::new(device, 2 * size_of_val(map.words()) as u64, |_| TOO_MUCH.into())
}
