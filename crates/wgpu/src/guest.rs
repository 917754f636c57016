//! Guest memory on the device, as the host reaches it.

use std::cell::RefCell;
use std::ops::Range;

use kvrm_engine::memory::{DeviceMemory, Entry, FramePart, Masks, PAGE_WORDS, PageMap};
use kvrm_engine::{Config, EngineError, MemoryModel};
use kvrm_mem::PAGE;

use crate::device::{Device, WgpuError, WordRange};
use crate::windows::Windows;

/// Frames to begin with.
const FIRST_FRAMES: u64 = 64;
/// Slots of mapped memory to begin with.
const FIRST_SLOTS: u64 = 256;
/// Storage buffers that are not windows.
const FIXED_BINDINGS: u32 = 11;
/// The largest memory that is stored: kernels count its words of 64 bits in 32.
const LARGEST: u64 = 1 << 35;
/// More windows than this would only make kernels longer.
const MOST_WINDOWS: u32 = 64;
/// Bytes of flat memory that are read or written together.
const AT_ONCE: usize = 16 << 20;
/// Bytes of the device's counters.
const POOL_BYTES: usize = 24;

/// What is used of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most bytes in a window, and the most windows.
    pub(crate) largest_window: u64,
    pub(crate) most_windows: u32,
    /// The most bytes of records.
    pub(crate) most_records: u64,
    /// Features that are not used.
    pub(crate) without: wgpu::Features,
}

impl Limits {
    /// All that there is.
    pub(crate) const NONE: Limits = Limits {
        largest_window: u64::MAX,
        most_windows: MOST_WINDOWS,
        most_records: u64::MAX,
        without: wgpu::Features::empty(),
    };
}

/// The memory of all lanes.
///
/// A submission and the wait for its end take far longer than copying a page: what kernels never write, and what
/// they have not written since the host last looked, is kept here too.
pub struct Guest {
    pub(crate) device: Device,
    limits: Limits,
    size: u64,
    /// Bytes of it that the device has room for: all, unless it is mapped.
    stored: u64,
    lanes: usize,
    /// Guests may not write.
    read_only: bool,
    /// Lanes that share a frame.
    pub(crate) group: u32,
    /// Bytes of a window of flat memory, and of one of frames.
    window: u64,
    frames_window: u64,
    /// Shared memory, or the image: a buffer for each window.
    pub(crate) flat: Vec<wgpu::Buffer>,
    /// What is in there, if kernels never write it.
    image: Option<Vec<u8>>,
    pub(crate) pool_buffer: wgpu::Buffer,
    pool: Pool,
    pub(crate) private: Option<Private>,
    pub(crate) mapped: Option<Mapped>,
}

/// What mapped memory has.
pub(crate) struct Mapped {
    map: PageMap,
    /// The map as kernels see it.
    pub(crate) words: wgpu::Buffer,
    /// Columns of slots, as many as there is room for.
    pub(crate) columns: wgpu::Buffer,
}

impl Mapped {
    fn new(device: &Device, map: PageMap) -> Result<Mapped, WgpuError> {
        let words = device.buffer("page map", 4 * map.words().len() as u64)?;
        let columns = columns_buffer(device, &map, FIRST_SLOTS)?;
        Ok(Mapped { map, words, columns })
    }

    /// Brings the device up to date.
    fn upload(&mut self, device: &Device) -> Result<(), WgpuError> {
        let Mapped { map, words, columns } = self;
        let bytes = 4 * map.words().len() as u64;
        if bytes > words.size() {
            *words = device.buffer("page map", 2 * bytes)?;
            map.change_all();
        }
        for part in map.take_changes() {
            let changed = bytemuck::cast_slice(&map.words()[part.clone()]);
            device.write(words, 4 * part.start as u64, changed)?;
        }
        for (first, masks) in map.take_changed_columns() {
            let offset = u64::from(first) * column_bytes(map);
            device.write(columns, offset, bytemuck::cast_slice(&masks))?;
        }
        Ok(())
    }
}

/// What private memory has beside the image.
pub(crate) struct Private {
    pub(crate) tables: wgpu::Buffer,
    /// A buffer for each window. Only the last may be smaller than a window.
    pub(crate) frames: Vec<wgpu::Buffer>,
    /// How many frames there are, with the first, which is not used.
    pub(crate) count: u64,
    /// The page table that was last looked at, and whose it is; none after a launch.
    table: RefCell<Option<(usize, Vec<Entry>)>>,
}

/// What kernels have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) next: u32,
    pub(crate) stopped: u32,
    pub(crate) executed: u64,
    /// Lanes that came to the end of a launch, in all launches; runs over.
    ended: u32,
}

impl Guest {
    pub(crate) fn new(device: Device, config: &Config, limits: Limits) -> Result<Guest, WgpuError> {
        let Config { lanes, memory_size: size, read_only, .. } = *config;
        let model = memory_model(config);
        let stored = if config.mapped { FIRST_SLOTS * PAGE } else { size };
        // A lane that is alone needs no room for others.
        let group = if config.mapped && lanes == 1 { 1 } else { device.group };
        let largest_window = device.limit.min(limits.largest_window);
        let window = 1 << largest_window.ilog2();
        let frames_window = largest_window / frame_bytes(group) * frame_bytes(group);
        let windows = stored.div_ceil(window) + u64::from(model == MemoryModel::Private);
        check_windows(&device, limits, window, windows)?;
        check_stored(&device, stored)?;
        let flat = window_sizes(stored, window)
            .map(|bytes| device.buffer("guest memory", bytes))
            .collect::<Result<Vec<_>, _>>()?;
        let pool_buffer = device.buffer("counters", 32)?;
        let private = match model {
            MemoryModel::Shared => None,
            MemoryModel::Private => {
                let groups = (lanes as u64).div_ceil(group.into());
                let count = FIRST_FRAMES.min(frames_window / frame_bytes(group));
                Some(Private {
                    tables: device.buffer("page tables", groups * (stored / PAGE) * 8)?,
                    frames: vec![device.buffer("frames", count * frame_bytes(group))?],
                    count,
                    table: RefCell::default(),
                })
            }
        };
        let keeps_image = private.is_some() || read_only;
        let image = keeps_image.then(|| host_copy(stored)).transpose()?;
        let map = match config.model {
            _ if !config.mapped => None,
            MemoryModel::Shared => Some(PageMap::new(size)),
            MemoryModel::Private => Some(PageMap::private(size, lanes, group as usize)),
        };
        let mapped = map.map(|map| Mapped::new(&device, map)).transpose()?;
        let pool = Pool::default();
        let mut guest = Guest {
            device,
            limits,
            size,
            stored,
            lanes,
            read_only,
            group,
            window,
            frames_window,
            flat,
            image,
            pool_buffer,
            pool,
            private,
            mapped,
        };
        guest.set_pool(Pool { next: 1, ..pool })?;
        Ok(guest)
    }

    /// How memory is spread over bindings now.
    pub(crate) fn windows(&self) -> Windows {
        let frames = self.private.as_ref().map_or(0, |private| private.frames.len() as u32);
        let frames_each = (self.frames_window / frame_bytes(self.group)) as u32;
        Windows { bytes: self.window, flat: self.flat.len() as u32, frames_each, frames }
    }

    /// Where kernels count.
    pub(crate) fn pool_part(&self) -> WordRange<'_> {
        WordRange { buffer: &self.pool_buffer, offset: 0, len: POOL_BYTES as u64 }
    }

    /// Takes note of what a launch has counted, which all lanes have come to the end of.
    pub(crate) fn launched(&mut self, counted: &[u8]) -> Result<Pool, WgpuError> {
        let ended = self.pool.ended.wrapping_add(self.lanes as u32);
        let pool = self.count(counted)?;
        match pool.ended == ended {
            true => Ok(pool),
            // Where an operating system ends a kernel that takes too long, not every driver says so.
            false => Err(self.device.lose("it did not execute a kernel to the end")),
        }
    }

    /// Takes note of what kernels have counted, and starts a new list of stopped lanes.
    fn count(&mut self, counted: &[u8]) -> Result<Pool, WgpuError> {
        let [next, stopped, _, low, high, ended] =
            bytemuck::pod_read_unaligned::<[u32; 6]>(counted);
        let pool = Pool { next, stopped, executed: u64::from(low) | u64::from(high) << 32, ended };
        // Whatever happens next, this is what the device has.
        self.pool = pool;
        self.forget_table();
        if stopped != 0 {
            self.set_pool(Pool { stopped: 0, ..pool })?;
        }
        Ok(pool)
    }

    fn set_pool(&mut self, pool: Pool) -> Result<(), WgpuError> {
        let Pool { next, stopped, executed, ended } = pool;
        let words = [next, stopped, 0, executed as u32, (executed >> 32) as u32, ended];
        self.device.write(&self.pool_buffer, 0, bytemuck::bytes_of(&words))?;
        self.pool = pool;
        Ok(())
    }

    /// Counts anew after a launch that failed, as far as the device can tell.
    pub(crate) fn recount(&mut self) -> Result<(), WgpuError> {
        let mut counted = [0; POOL_BYTES];
        self.device.read(&self.pool_buffer, 0, &mut counted)?;
        self.count(&counted)?;
        Ok(())
    }

    fn forget_table(&self) {
        if let Some(private) = &self.private {
            private.table.replace(None);
        }
    }

    /// Where an entry is in the page tables.
    fn entry_offset(&self, group: usize, page: u64) -> u64 {
        (group as u64 * (self.stored / PAGE) + page) * 8
    }

    /// Looks at a group's page table.
    fn look<T>(&self, group: usize, look: impl FnOnce(&[Entry]) -> T) -> Result<T, WgpuError> {
        let private = self.private();
        let mut there = private.table.borrow_mut();
        if there.as_ref().is_none_or(|(whose, _)| *whose != group) {
            let mut table = vec![[0; 2]; (self.stored / PAGE) as usize];
            let bytes = bytemuck::cast_slice_mut(&mut table);
            self.device.read(&private.tables, self.entry_offset(group, 0), bytes)?;
            *there = Some((group, table));
        }
        Ok(look(&there.as_ref().expect("just made").1))
    }

    /// Where a part of a frame is.
    fn frame_part(&self, part: &FramePart) -> WordRange<'_> {
        let full = self.frames_window / frame_bytes(self.group);
        let (window, index) = (u64::from(part.frame) / full, u64::from(part.frame) % full);
        let word_bytes = 8 * u64::from(self.group);
        WordRange {
            buffer: &self.private().frames[window as usize],
            offset: index * frame_bytes(self.group) + part.words.start as u64 * word_bytes,
            len: part.words.len() as u64 * word_bytes,
        }
    }

    /// Where addresses are in flat memory: a part of each window that has some.
    fn flat_parts(&self, addresses: Range<u64>) -> Vec<WordRange<'_>> {
        let windows = addresses.start / self.window..addresses.end.div_ceil(self.window);
        let part = |window: u64| {
            let start = addresses.start.max(window * self.window);
            let end = addresses.end.min((window + 1) * self.window);
            let buffer = &self.flat[window as usize];
            WordRange { buffer, offset: start % self.window, len: end - start }
        };
        windows.map(part).collect()
    }

    /// Changes flat memory, by the whole words that the bytes are in.
    fn write_piece(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        let words = words_around(addr, bytes.len());
        let (before, after) = (addr - words.start, words.end - addr - bytes.len() as u64);
        let mut data = vec![0; (words.end - words.start) as usize];
        // What is beside the bytes, in the first word and in the last.
        if before != 0 {
            self.read_flat(words.start, &mut data[..8])?;
        }
        if after != 0 {
            let last = data.len() - 8;
            self.read_flat(words.end - 8, &mut data[last..])?;
        }
        data[before as usize..][..bytes.len()].copy_from_slice(bytes);
        if let Some(image) = &mut self.image {
            image[words.start as usize..words.end as usize].copy_from_slice(&data);
        }
        let mut rest = &data[..];
        for part in self.flat_parts(words) {
            let (data, after) = rest.split_at(part.len as usize);
            self.device.write(part.buffer, part.offset, data)?;
            rest = after;
        }
        Ok(())
    }

    /// Makes more frames: the last window grows, or there is one more.
    fn add_frames(&mut self) -> Result<(), WgpuError> {
        let bytes = frame_bytes(self.group);
        let full = self.frames_window / bytes;
        let windows = self.private().frames.len();
        let private = self.private.as_mut().expect("only private memory has frames");
        let in_last = private.count - (windows as u64 - 1) * full;
        if in_last < full {
            let (frames, count) =
                room_for_frames(&self.device, in_last, in_last.min(full - in_last), bytes)?;
            let last = private.frames.last_mut().expect("there is a first window");
            let mut encoder = self.device.encoder();
            encoder.copy_buffer_to_buffer(last, 0, &frames, 0, in_last * bytes);
            self.device.queue.submit([encoder.finish()]);
            *last = frames;
            private.count += count;
        } else {
            let windows = self.flat.len() + windows + 1;
            check_windows(&self.device, self.limits, self.window, windows as u64)?;
            let (frames, count) = room_for_frames(&self.device, 0, private.count.min(full), bytes)?;
            private.frames.push(frames);
            private.count += count;
        }
        Ok(())
    }

    /// Brings the map of mapped memory on the device up to date.
    pub(crate) fn upload_map(&mut self) -> Result<(), WgpuError> {
        self.mapped.as_mut().map_or(Ok(()), |mapped| mapped.upload(&self.device))
    }

    /// Makes room for so many bytes of mapped memory.
    fn store_more(&mut self, stored: u64) -> Result<(), WgpuError> {
        check_stored(&self.device, stored)?;
        let private = self.private.as_mut().expect("mapped memory is private");
        let windows = stored.div_ceil(self.window) + private.frames.len() as u64;
        check_windows(&self.device, self.limits, self.window, windows)?;
        let mapped = self.mapped.as_mut().expect("only mapped memory has slots");
        let columns = columns_buffer(&self.device, &mapped.map, stored / PAGE)?;
        let [before, after] = [self.stored, stored].map(|stored| stored / PAGE * 8);
        let groups = private.tables.size() / before;
        let tables = self.device.buffer("page tables", groups * after)?;
        let more: Vec<_> = window_sizes(stored, self.window)
            .skip(self.flat.len() - 1)
            .map(|bytes| self.device.buffer("guest memory", bytes))
            .collect::<Result<_, _>>()?;
        let mut encoder = self.device.encoder();
        for group in 0..groups {
            let (from, to) = (group * before, group * after);
            encoder.copy_buffer_to_buffer(&private.tables, from, &tables, to, before);
        }
        let last = self.flat.pop().expect("there is a first window");
        encoder.copy_buffer_to_buffer(&last, 0, &more[0], 0, last.size());
        self.device.queue.submit([encoder.finish()]);
        (private.tables, mapped.columns) = (tables, columns);
        mapped.map.change_all_columns();
        self.flat.extend(more);
        self.image.as_mut().expect("kernels do not write it").resize(stored as usize, 0);
        self.stored = stored;
        self.forget_table();
        Ok(())
    }

    /// What private memory has; nobody asks where there is none.
    fn private(&self) -> &Private {
        self.private.as_ref().expect("only private memory has frames")
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
        (self.stored / PAGE) as usize
    }

    fn make_room(&mut self, slots: usize) -> Result<(), EngineError> {
        let needed = slots as u64 * PAGE;
        if needed <= self.stored {
            return Ok(());
        }
        // Twice as much each time, so that all is not copied often.
        match self.store_more(needed.next_power_of_two()) {
            Err(WgpuError::Full { .. } | WgpuError::TooLarge { .. }) => {
                Ok(self.store_more(needed)?)
            }
            made => Ok(made?),
        }
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn group(&self) -> Option<usize> {
        self.private.as_ref().map(|_| self.group as usize)
    }

    fn read_flat(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        if let Some(image) = &self.image {
            bytes.copy_from_slice(&image[addr as usize..addr as usize + bytes.len()]);
            return Ok(());
        }
        for (at, piece) in (addr..).step_by(AT_ONCE).zip(bytes.chunks_mut(AT_ONCE)) {
            let parts = self.flat_parts(words_around(at, piece.len()));
            let words = self.device.read_all(self.device.encoder(), &parts)?;
            piece.copy_from_slice(&words[(at % 8) as usize..][..piece.len()]);
        }
        Ok(())
    }

    fn write_flat(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        for (at, piece) in (addr..).step_by(AT_ONCE).zip(bytes.chunks(AT_ONCE)) {
            self.write_piece(at, piece)?;
        }
        Ok(())
    }

    fn has_copies(&self) -> bool {
        self.pool.next > 1
    }

    fn entries(&self, groups: Range<usize>, pages: Range<u64>) -> Result<Vec<Entry>, EngineError> {
        let pages_of = pages.start as usize..pages.end as usize;
        if groups.len() == 1 {
            return Ok(self.look(groups.start, |table| table[pages_of].to_vec())?);
        }
        let buffer = &self.private().tables;
        let parts: Vec<_> = groups
            .map(|group| WordRange {
                buffer,
                offset: self.entry_offset(group, pages.start),
                len: 8 * pages_of.len() as u64,
            })
            .collect();
        let bytes = self.device.read_all(self.device.encoder(), &parts)?;
        Ok(bytemuck::pod_collect_to_vec(&bytes))
    }

    fn set_entries(
        &mut self,
        groups: Range<usize>,
        pages: Range<u64>,
        entries: &[Entry],
    ) -> Result<(), EngineError> {
        let pages_of = pages.start as usize..pages.end as usize;
        for (group, entries) in groups.zip(entries.chunks_exact(pages_of.len())) {
            let (private, offset) = (self.private(), self.entry_offset(group, pages.start));
            self.device.write(&private.tables, offset, bytemuck::cast_slice(entries))?;
            match &mut *private.table.borrow_mut() {
                Some((whose, table)) if *whose == group => {
                    table[pages_of.clone()].copy_from_slice(entries);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn take_frames(&mut self, count: usize) -> Result<u32, EngineError> {
        while u64::from(self.pool.next) + count as u64 > self.private().count {
            self.grow()?;
        }
        let first = self.pool.next;
        self.set_pool(Pool { next: first + count as u32, ..self.pool })?;
        Ok(first)
    }

    fn read_frames(&self, parts: &[FramePart]) -> Result<Vec<u8>, EngineError> {
        let parts: Vec<_> = parts.iter().map(|part| self.frame_part(part)).collect();
        Ok(self.device.read_all(self.device.encoder(), &parts)?)
    }

    fn write_frame(&mut self, part: &FramePart, bytes: &[u8]) -> Result<(), EngineError> {
        let part = self.frame_part(part);
        Ok(self.device.write(part.buffer, part.offset, bytes)?)
    }

    /// About twice as many frames, or as many as there is room for.
    fn grow(&mut self) -> Result<(), EngineError> {
        let old = self.private().count;
        let grown = self.add_frames();
        // Attempts that failed have counted on beyond the end.
        self.set_pool(Pool { next: self.pool.next.min(old as u32), ..self.pool })?;
        Ok(grown?)
    }

    fn most_records(&self, _: u64) -> Result<u64, EngineError> {
        Ok(self.device.limit.min(self.limits.most_records))
    }

    fn drop_all_pages(&mut self) -> Result<(), EngineError> {
        if let Some(private) = &self.private {
            let mut encoder = self.device.encoder();
            encoder.clear_buffer(&private.tables, 0, None);
            self.device.queue.submit([encoder.finish()]);
            self.forget_table();
            self.set_pool(Pool { next: 1, ..self.pool })?;
        }
        Ok(())
    }
}

/// A buffer for some frames and `more`, or fewer if these do not fit. How many more there are.
fn room_for_frames(
    device: &Device,
    frames: u64,
    mut more: u64,
    bytes: u64,
) -> Result<(wgpu::Buffer, u64), WgpuError> {
    loop {
        match device.buffer("what lanes have written", (frames + more) * bytes) {
            Err(WgpuError::Full { .. }) if more > 1 => more /= 2,
            buffer => return Ok((buffer?, more)),
        }
    }
}

/// Makes sure that there can be so many windows of that size.
fn check_windows(
    device: &Device,
    limits: Limits,
    window: u64,
    count: u64,
) -> Result<(), WgpuError> {
    let most = u64::from(device.bindings.saturating_sub(FIXED_BINDINGS).min(limits.most_windows));
    match count <= most {
        true => Ok(()),
        false => Err(WgpuError::TooLarge {
            name: device.name.to_string(),
            what: "guest memory with what lanes have written",
            wanted: count * window,
            limit: most * window,
        }),
    }
}

/// Makes sure that kernels can count the words of what is stored.
fn check_stored(device: &Device, stored: u64) -> Result<(), WgpuError> {
    match stored <= LARGEST {
        true => Ok(()),
        false => Err(WgpuError::TooLarge {
            name: device.name.to_string(),
            what: "guest memory",
            wanted: stored,
            limit: LARGEST,
        }),
    }
}

/// Who sees which memory, as kernels have it: mapped memory is private.
pub(crate) fn memory_model(config: &Config) -> MemoryModel {
    if config.mapped { MemoryModel::Private } else { config.model }
}

/// Zeroed memory of the host.
fn host_copy(size: u64) -> Result<Vec<u8>, WgpuError> {
    bytemuck::try_zeroed_vec(size as usize).map_err(|()| WgpuError::Full {
        name: "the host".to_string(),
        what: "its copy of guest memory",
        wanted: size,
    })
}

/// Bytes of a frame.
fn frame_bytes(group: u32) -> u64 {
    PAGE * u64::from(group)
}

/// Bytes of a column of a map.
fn column_bytes(map: &PageMap) -> u64 {
    (map.column_height() * size_of::<Masks>()) as u64
}

/// A buffer for columns of so many slots; those of memory that lanes do not have each are never looked at.
fn columns_buffer(device: &Device, map: &PageMap, slots: u64) -> Result<wgpu::Buffer, WgpuError> {
    let slots = if map.is_private() { slots } else { 1 };
    device.buffer("what lanes may do", slots * column_bytes(map))
}

/// How large the windows of a memory are.
fn window_sizes(size: u64, window: u64) -> impl Iterator<Item = u64> {
    (0..size.div_ceil(window)).map(move |index| (size - index * window).min(window))
}

/// The addresses of the words that hold `len` bytes.
fn words_around(addr: u64, len: usize) -> Range<u64> {
    addr / 8 * 8..(addr + len as u64).next_multiple_of(8)
}

const _: () = assert!(PAGE_WORDS == 512, "the kernel counts on it");
