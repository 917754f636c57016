//! Guest memory on the device, as the host reaches it.

use kvrm_engine::memory::{DeviceMemory, pages};
use kvrm_engine::{Config, EngineError, MemoryModel};
use kvrm_mem::PAGE;

use crate::driver::{Buffer, CudaError, Device};
use crate::frames::Frames;
use crate::kernel::Pool;
use crate::memory::{FRAME_BYTES, FRAME_LANES};
use crate::stream::Stream;

/// What to do where the device is too small.
pub(crate) const TOO_MUCH: &str = "use fewer lanes or a smaller memory";
/// Words in a page.
const PAGE_WORDS: u64 = PAGE / 8;
/// Bytes between neighbouring words of a lane in a frame.
const FRAME_PITCH: u64 = 8 * FRAME_LANES;

/// The memory of all lanes.
pub struct Guest {
    size: u64,
    /// Guests may not write.
    read_only: bool,
    lanes: usize,
    /// Shared memory, or the image.
    pub(crate) flat: Buffer,
    pub(crate) pool: Buffer,
    pub(crate) private: Option<Private>,
    // Last: everything above is on it.
    pub(crate) device: Device,
}

/// What private memory has beside the image.
pub(crate) struct Private {
    pub(crate) tables: Buffer,
    /// Bytes of one warp's page table.
    pub(crate) table_bytes: u64,
    pub(crate) frames: Frames,
}

impl Guest {
    pub(crate) fn new(device: Device, config: &Config) -> Result<Guest, CudaError> {
        let Config { lanes, memory_size: size, read_only, model, .. } = *config;
        let flat = Buffer::new(&device, size, |_| TOO_MUCH.into())?;
        let pool = Buffer::new(&device, size_of::<Pool>() as u64, |_| TOO_MUCH.into())?;
        let private = match model {
            MemoryModel::Shared => None,
            MemoryModel::Private => {
                let (warps, table_bytes) = ((lanes as u64).div_ceil(FRAME_LANES), size / PAGE * 8);
                let tables = Buffer::new(&device, warps * table_bytes, |free| {
                    let fit = free / table_bytes * FRAME_LANES;
                    format!("{TOO_MUCH}; the tables of {fit} lanes would fit")
                })?;
                Some(Private { tables, table_bytes, frames: Frames::new(&device)? })
            }
        };
        let guest = Guest { size, read_only, lanes, flat, pool, private, device };
        guest.clear_tables()?;
        Ok(guest)
    }

    /// What kernels have counted.
    pub(crate) fn counters(&self) -> Result<Pool, CudaError> {
        let mut pool = [Pool::default()];
        self.pool.read(0, &mut pool)?;
        Ok(pool[0])
    }

    pub(crate) fn set_counters(&self, pool: Pool) -> Result<(), CudaError> {
        self.pool.write(0, &[pool])
    }

    /// Forgets all private pages.
    fn clear_tables(&self) -> Result<(), CudaError> {
        let frames = self.private.as_ref().map_or(0, |private| private.frames.count());
        if let Some(private) = &self.private {
            private.tables.fill(0, private.tables.len, 0)?;
        }
        // The first frame is not used: its number means "none".
        self.set_counters(Pool { next: 1, size: frames as u32, ..self.counters()? })
    }

    /// Makes more frames.
    fn add_frames(&mut self) -> Result<(), CudaError> {
        let pool = self.counters()?;
        let private = self.private.as_mut().expect("only private memory has frames");
        // Attempts that failed have counted on beyond the end.
        let failed = pool.next.saturating_sub(pool.size).max(1);
        private.frames.grow(&self.device, failed.into(), self.lanes)?;
        let size = private.frames.count() as u32;
        self.set_counters(Pool { next: pool.next.min(pool.size).max(1), size, ..pool })
    }

    /// Where a lane's copy of a page starts on the device, if it has one.
    fn own_copy(&self, lane: usize, page: u64) -> Result<Option<u64>, CudaError> {
        let Some(private) = &self.private else { return Ok(None) };
        let mut entry = [0u32; 2];
        private.tables.read(entry_offset(private, lane, page), &mut entry)?;
        let owned = entry[1] >> (lane as u64 % FRAME_LANES) & 1 != 0;
        Ok(owned.then(|| frame_address(private, lane, entry[0])))
    }

    /// Gives a lane its own copy of a page; where it starts.
    fn make_copy(&mut self, lane: usize, page: u64) -> Result<u64, CudaError> {
        if let Some(address) = self.own_copy(lane, page)? {
            return Ok(address);
        }
        let offset = entry_offset(self.private.as_ref().expect("private memory"), lane, page);
        let mut entry = [0u32; 2];
        self.private.as_ref().expect("private memory").tables.read(offset, &mut entry)?;
        if entry[0] == 0 {
            if self.counters()?.next >= self.counters()?.size {
                self.add_frames()?;
            }
            let pool = self.counters()?;
            entry[0] = pool.next;
            self.set_counters(Pool { next: pool.next + 1, ..pool })?;
        }
        entry[1] |= 1 << (lane as u64 % FRAME_LANES);
        let private = self.private.as_ref().expect("private memory");
        private.tables.write(offset, &entry)?;
        let to = frame_address(private, lane, entry[0]);
        self.flat.stream.copy_words(
            self.flat.address + page * PAGE,
            8,
            to,
            FRAME_PITCH,
            PAGE_WORDS,
        )?;
        Ok(to)
    }
}

impl DeviceMemory for Guest {
    fn size(&self) -> u64 {
        self.size
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn read(&self, lane: Option<usize>, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        for (page, start, range) in pages(addr, bytes.len()) {
            let part = &mut bytes[range];
            match lane.map_or(Ok(None), |lane| self.own_copy(lane, page))? {
                None => self.flat.read(page * PAGE + start as u64, part)?,
                Some(copy) => {
                    let (first, mut words) = covering(start, part.len());
                    self.flat.stream.read_words(
                        copy + first * FRAME_PITCH,
                        FRAME_PITCH,
                        &mut words,
                    )?;
                    let all: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
                    let skip = start - first as usize * 8;
                    part.copy_from_slice(&all[skip..skip + part.len()]);
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        if self.private.is_none() {
            return Ok(self.flat.write(addr, bytes)?);
        }
        for (page, start, range) in pages(addr, bytes.len()) {
            let part = &bytes[range];
            let copy = self.make_copy(lane, page)?;
            overwrite(self.flat.stream, copy, start, part)?;
        }
        Ok(())
    }

    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.flat.write(addr, bytes)?;
        // Looking for copies takes a call of the driver for each page of each warp.
        if !self.has_copies()? {
            return Ok(());
        }
        let Some(private) = &self.private else { return Ok(()) };
        for (page, start, range) in pages(addr, bytes.len()) {
            for warp in 0..private.tables.len / private.table_bytes {
                let mut entry = [0u32; 2];
                private.tables.read(warp * private.table_bytes + page * 8, &mut entry)?;
                for lane in (0..FRAME_LANES).filter(|lane| entry[1] >> lane & 1 != 0) {
                    let lane = (warp * FRAME_LANES + lane) as usize;
                    let copy = frame_address(private, lane, entry[0]);
                    overwrite(self.flat.stream, copy, start, &bytes[range.clone()])?;
                }
            }
        }
        Ok(())
    }

    fn grow(&mut self) -> Result<(), EngineError> {
        Ok(self.add_frames()?)
    }

    fn has_copies(&self) -> Result<bool, EngineError> {
        Ok(self.private.is_some() && self.counters()?.next > 1)
    }

    fn owners(&self, page: u64) -> Result<Vec<usize>, EngineError> {
        let Some(private) = &self.private else { return Ok(Vec::new()) };
        let mut entries = vec![0u64; (private.tables.len / private.table_bytes) as usize];
        self.flat.stream.read_words(
            private.tables.address + page * 8,
            private.table_bytes,
            &mut entries,
        )?;
        let lanes = (0..FRAME_LANES as usize).flat_map(|lane| {
            entries.iter().enumerate().map(move |(warp, entry)| (warp, lane, *entry))
        });
        Ok(lanes
            .filter(|(_, lane, entry)| entry >> (32 + lane) & 1 != 0)
            .map(|(warp, lane, _)| warp * FRAME_LANES as usize + lane)
            .collect())
    }

    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        let Some(private) = &self.private else { return Ok(Vec::new()) };
        let mut pages = Vec::new();
        if self.has_copies()? {
            // One warp's after the other, as all together may be large.
            let mut table = vec![0u64; (private.table_bytes / 8) as usize];
            for warp in 0..private.tables.len / private.table_bytes {
                private.tables.read(warp * private.table_bytes, &mut table)?;
                for (page, entry) in (0..).zip(&table) {
                    let lanes = (0..FRAME_LANES).filter(|lane| entry >> (32 + lane) & 1 != 0);
                    pages.extend(lanes.map(|lane| ((warp * FRAME_LANES + lane) as usize, page)));
                }
            }
        }
        Ok(pages)
    }

    fn drop_pages(&mut self, lane: usize) -> Result<(), EngineError> {
        let Some(private) = &self.private else { return Ok(()) };
        let offset = lane as u64 / FRAME_LANES * private.table_bytes;
        let mut table = vec![0u64; (private.table_bytes / 8) as usize];
        private.tables.read(offset, &mut table)?;
        let bit = 1u64 << (32 + lane as u64 % FRAME_LANES);
        table.iter_mut().for_each(|entry| *entry &= !bit);
        Ok(private.tables.write(offset, &table)?)
    }

    fn drop_all_pages(&mut self) -> Result<(), EngineError> {
        Ok(self.clear_tables()?)
    }
}

/// Changes bytes of a lane's copy of a page, which starts at `copy`.
fn overwrite(stream: Stream, copy: u64, start: usize, bytes: &[u8]) -> Result<(), CudaError> {
    let (first, mut words) = covering(start, bytes.len());
    stream.read_words(copy + first * FRAME_PITCH, FRAME_PITCH, &mut words)?;
    let mut all: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let skip = start - first as usize * 8;
    all[skip..skip + bytes.len()].copy_from_slice(bytes);
    for (word, bytes) in words.iter_mut().zip(all.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    stream.write_words(copy + first * FRAME_PITCH, FRAME_PITCH, &words)
}

fn entry_offset(private: &Private, lane: usize, page: u64) -> u64 {
    lane as u64 / FRAME_LANES * private.table_bytes + page * 8
}

fn frame_address(private: &Private, lane: usize, frame: u32) -> u64 {
    private.frames.base() + u64::from(frame) * FRAME_BYTES + lane as u64 % FRAME_LANES * 8
}

/// The first word and room for all words that hold `len` bytes of a page from `start` on.
fn covering(start: usize, len: usize) -> (u64, Vec<u64>) {
    let (first, end) = (start / 8, (start + len).div_ceil(8));
    (first as u64, vec![0; end - first])
}
