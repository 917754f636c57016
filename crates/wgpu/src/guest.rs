//! Guest memory on the device, as the host reaches it.

use std::cell::RefCell;
use std::ops::Range;

use kvrm_engine::memory::{DeviceMemory, pages};
use kvrm_engine::{Config, EngineError, MemoryModel};
use kvrm_mem::PAGE;

use crate::device::{Device, Part, WgpuError};
use crate::windows::Windows;

/// Frames to begin with.
const FIRST_FRAMES: u64 = 64;
/// Storage buffers that are not windows.
const FIXED_BINDINGS: u32 = 7;
/// The largest guest memory: kernels count its words of 64 bits in 32.
const LARGEST: u64 = 1 << 35;
/// More windows than this would only make kernels longer.
const MOST_WINDOWS: u32 = 64;
/// Pages that are read together; a page of one lane takes as much as one of all in its group.
const PAGES_AT_ONCE: usize = 256;
/// Bytes of the device's counters.
const POOL_BYTES: usize = 20;

/// The memory of all lanes.
///
/// A submission and the wait for its end take far longer than copying a page: what kernels never write, and what
/// they have not written since the host last looked, is kept here too.
pub struct Guest {
    pub(crate) device: Device,
    size: u64,
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
}

/// What private memory has beside the image.
pub(crate) struct Private {
    pub(crate) tables: wgpu::Buffer,
    /// A buffer for each window. Only the last may be smaller than a window.
    pub(crate) frames: Vec<wgpu::Buffer>,
    /// How many frames there are, with the first, which is not used.
    pub(crate) count: u64,
    groups: u64,
    /// The page table that was last looked at, and whose it is; none after a launch.
    table: RefCell<Option<(usize, Vec<Entry>)>>,
}

/// An entry of a group's page table: the frame, and a bit for each lane that has copied the page.
type Entry = [u32; 2];

/// What kernels have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) next: u32,
    pub(crate) stopped: u32,
    pub(crate) executed: u64,
}

impl Guest {
    pub(crate) fn new(
        device: Device,
        config: &Config,
        largest_window: u64,
    ) -> Result<Guest, WgpuError> {
        let Config { lanes, memory_size: size, read_only, model, .. } = *config;
        let group = device.group;
        let largest_window = device.limit.min(largest_window);
        let window = 1 << largest_window.ilog2();
        let frames_window = largest_window / frame_bytes(group) * frame_bytes(group);
        let windows = size.div_ceil(window) + u64::from(model == MemoryModel::Private);
        check_windows(&device, window, windows)?;
        if size > LARGEST {
            let name = device.name.to_string();
            let (what, wanted, limit) = ("guest memory", size, LARGEST);
            return Err(WgpuError::TooLarge { name, what, wanted, limit });
        }
        let flat = window_sizes(size, window)
            .map(|bytes| device.buffer("guest memory", bytes))
            .collect::<Result<Vec<_>, _>>()?;
        let pool_buffer = device.buffer("counters", 32)?;
        let private = match model {
            MemoryModel::Shared => None,
            MemoryModel::Private => {
                let groups = (lanes as u64).div_ceil(group.into());
                let count = FIRST_FRAMES.min(frames_window / frame_bytes(group));
                Some(Private {
                    tables: device.buffer("page tables", groups * (size / PAGE) * 8)?,
                    frames: vec![device.buffer("frames", count * frame_bytes(group))?],
                    count,
                    groups,
                    table: RefCell::default(),
                })
            }
        };
        let image = (private.is_some() || read_only).then(|| vec![0; size as usize]);
        let pool = Pool::default();
        let mut guest = Guest {
            device,
            size,
            read_only,
            group,
            window,
            frames_window,
            flat,
            image,
            pool_buffer,
            pool,
            private,
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
    pub(crate) fn pool_part(&self) -> Part<'_> {
        Part { buffer: &self.pool_buffer, offset: 0, len: POOL_BYTES as u64 }
    }

    /// Takes note of what a launch has counted, and starts a new list of stopped lanes.
    pub(crate) fn launched(&mut self, counted: &[u8]) -> Result<Pool, WgpuError> {
        let [next, stopped, _, low, high] = bytemuck::pod_read_unaligned::<[u32; 5]>(counted);
        let pool = Pool { next, stopped, executed: u64::from(low) | u64::from(high) << 32 };
        match stopped {
            0 => self.pool = pool,
            _ => self.set_pool(Pool { stopped: 0, ..pool })?,
        }
        self.forget_table();
        Ok(pool)
    }

    fn set_pool(&mut self, pool: Pool) -> Result<(), WgpuError> {
        let Pool { next, stopped, executed } = pool;
        let words = [next, stopped, 0, executed as u32, (executed >> 32) as u32];
        self.device.write(&self.pool_buffer, 0, bytemuck::bytes_of(&words))?;
        self.pool = pool;
        Ok(())
    }

    /// Counts anew after a launch that failed, as far as the device can tell.
    pub(crate) fn recount(&mut self) -> Result<(), WgpuError> {
        let mut counted = [0; POOL_BYTES];
        self.device.read(&self.pool_buffer, 0, &mut counted)?;
        self.launched(&counted)?;
        Ok(())
    }

    fn forget_table(&self) {
        if let Some(private) = &self.private {
            private.table.replace(None);
        }
    }

    /// About twice as many frames: the last window grows, or there is one more.
    fn add_frames(&mut self) -> Result<(), WgpuError> {
        let bytes = frame_bytes(self.group);
        let full = self.frames_window / bytes;
        let windows = self.private.as_ref().map_or(0, |private| private.frames.len());
        let private = self.private.as_mut().expect("only private memory has frames");
        let old = private.count;
        let in_last = old - (windows as u64 - 1) * full;
        if in_last < full {
            let count = (2 * in_last).min(full);
            let frames = self.device.buffer("what lanes have written", count * bytes)?;
            let last = private.frames.last_mut().expect("there is a first window");
            let mut encoder = self.device.encoder();
            encoder.copy_buffer_to_buffer(last, 0, &frames, 0, in_last * bytes);
            self.device.queue.submit([encoder.finish()]);
            *last = frames;
            private.count += count - in_last;
        } else {
            check_windows(&self.device, self.window, (self.flat.len() + windows + 1) as u64)?;
            let count = old.min(full);
            let frames = self.device.buffer("what lanes have written", count * bytes)?;
            let private = self.private.as_mut().expect("as above");
            private.frames.push(frames);
            private.count += count;
        }
        // Attempts that failed have counted on beyond the end.
        self.set_pool(Pool { next: self.pool.next.min(old as u32), ..self.pool })
    }

    /// Where an entry is in the page tables.
    fn entry_offset(&self, lane: usize, page: u64) -> u64 {
        (lane as u64 / u64::from(self.group) * (self.size / PAGE) + page) * 8
    }

    /// Looks at the page table of a lane's group.
    fn look<T>(
        &self,
        private: &Private,
        lane: usize,
        look: impl FnOnce(&[Entry]) -> T,
    ) -> Result<T, WgpuError> {
        let group = lane / self.group as usize;
        let mut there = private.table.borrow_mut();
        if there.as_ref().is_none_or(|(whose, _)| *whose != group) {
            let mut table = vec![[0; 2]; (self.size / PAGE) as usize];
            let bytes = bytemuck::cast_slice_mut(&mut table);
            self.device.read(&private.tables, self.entry_offset(lane, 0), bytes)?;
            *there = Some((group, table));
        }
        Ok(look(&there.as_ref().expect("just made").1))
    }

    fn lane_bit(&self, lane: usize) -> u32 {
        1 << (lane as u32 % self.group)
    }

    /// The frame that a lane's copy of a page is in, if it has one.
    fn frame_of(&self, lane: usize, page: u64) -> Result<Option<u32>, WgpuError> {
        let Some(private) = &self.private else { return Ok(None) };
        if self.pool.next == 1 {
            return Ok(None);
        }
        let [frame, lanes] = self.look(private, lane, |table| table[page as usize])?;
        Ok((lanes & self.lane_bit(lane) != 0 && frame != 0).then_some(frame))
    }

    /// All page tables.
    fn tables(&self, private: &Private) -> Result<Vec<Entry>, WgpuError> {
        let mut tables = vec![[0u32; 2]; (private.groups * (self.size / PAGE)) as usize];
        self.device.read(&private.tables, 0, bytemuck::cast_slice_mut(&mut tables))?;
        Ok(tables)
    }

    /// The lanes of an entry of a group's page table.
    fn lanes_of(&self, group: usize, entry: Entry) -> impl Iterator<Item = usize> + use<> {
        let first = group * self.group as usize;
        (0..self.group as usize).filter(move |bit| entry[1] >> bit & 1 != 0).map(move |b| first + b)
    }

    /// Words of a frame, of all lanes in the group.
    fn frame_part(&self, frame: u32, words: Range<usize>) -> Part<'_> {
        let private = self.private.as_ref().expect("private memory");
        let full = self.frames_window / frame_bytes(self.group);
        let (window, index) = (u64::from(frame) / full, u64::from(frame) % full);
        let word_bytes = 8 * u64::from(self.group);
        Part {
            buffer: &private.frames[window as usize],
            offset: index * frame_bytes(self.group) + words.start as u64 * word_bytes,
            len: words.len() as u64 * word_bytes,
        }
    }

    /// Words of a page of flat memory.
    fn flat_part(&self, page: u64, words: Range<usize>) -> Part<'_> {
        let at = page * PAGE + 8 * words.start as u64;
        let buffer = &self.flat[(at / self.window) as usize];
        Part { buffer, offset: at % self.window, len: 8 * words.len() as u64 }
    }

    /// Reads parts of pages: page, offset in it, and which of the bytes.
    fn read_pages(
        &self,
        lane: Option<usize>,
        pages: &[(u64, usize, Range<usize>)],
        bytes: &mut [u8],
    ) -> Result<(), WgpuError> {
        let (mut parts, mut places) = (Vec::new(), Vec::new());
        for (page, start, range) in pages {
            let words = covering(*start, range.len());
            let frame = lane.map_or(Ok(None), |lane| self.frame_of(lane, *page))?;
            match (frame, &self.image) {
                (Some(frame), _) => parts.push(self.frame_part(frame, words)),
                (None, None) => parts.push(self.flat_part(*page, words)),
                (None, Some(image)) => {
                    let at = *page as usize * PAGE as usize + start;
                    bytes[range.clone()].copy_from_slice(&image[at..at + range.len()]);
                    continue;
                }
            }
            places.push((frame.and(lane), start % 8, range.clone()));
        }
        if parts.is_empty() {
            return Ok(());
        }
        let all = self.device.read_all(self.device.encoder(), &parts)?;
        let mut rest = &all[..];
        for (part, (lane, skip, range)) in parts.iter().zip(places) {
            let (data, after) = rest.split_at(part.len as usize);
            let len = range.len();
            match lane {
                Some(lane) => {
                    let words = data.chunks_exact(8).skip(lane % self.group as usize);
                    let own: Vec<u8> =
                        words.step_by(self.group as usize).flatten().copied().collect();
                    bytes[range].copy_from_slice(&own[skip..skip + len]);
                }
                None => bytes[range].copy_from_slice(&data[skip..skip + len]),
            }
            rest = after;
        }
        Ok(())
    }

    /// Changes a lane's copy of a page.
    fn change_copy(
        &self,
        lane: usize,
        frame: u32,
        start: usize,
        bytes: &[u8],
    ) -> Result<(), WgpuError> {
        let part = self.frame_part(frame, covering(start, bytes.len()));
        let mut data = vec![0; part.len as usize];
        self.device.read(part.buffer, part.offset, &mut data)?;
        self.interleave(lane, &mut data, start % 8, bytes);
        self.device.write(part.buffer, part.offset, &data)
    }

    /// Puts bytes among the words of all lanes in the group.
    fn interleave(&self, lane: usize, data: &mut [u8], skip: usize, bytes: &[u8]) {
        let (lane, group) = (lane % self.group as usize, self.group as usize);
        for (index, byte) in (skip..).zip(bytes) {
            data[(index / 8 * group + lane) * 8 + index % 8] = *byte;
        }
    }

    /// Gives a lane its own copy of a page, with some bytes changed.
    fn copy_page(
        &mut self,
        lane: usize,
        page: u64,
        start: usize,
        bytes: &[u8],
    ) -> Result<(), WgpuError> {
        let private = self.private.as_ref().expect("private memory");
        let [mut frame, lanes] = self.look(private, lane, |table| table[page as usize])?;
        let mut data = vec![0; frame_bytes(self.group) as usize];
        if frame == 0 {
            frame = self.new_frame()?;
        } else {
            let part = self.frame_part(frame, 0..PAGE_WORDS);
            self.device.read(part.buffer, part.offset, &mut data)?;
        }
        let image = self.image.as_ref().expect("private memory has one");
        let at = (page * PAGE) as usize;
        self.interleave(lane, &mut data, 0, &image[at..at + PAGE as usize]);
        self.interleave(lane, &mut data[start / 8 * 8 * self.group as usize..], start % 8, bytes);
        let part = self.frame_part(frame, 0..PAGE_WORDS);
        self.device.write(part.buffer, part.offset, &data)?;
        let private = self.private.as_ref().expect("private memory");
        let entry = [frame, lanes | self.lane_bit(lane)];
        let offset = self.entry_offset(lane, page);
        self.device.write(&private.tables, offset, bytemuck::bytes_of(&entry))?;
        if let Some((_, table)) = private.table.borrow_mut().as_mut() {
            table[page as usize] = entry;
        }
        Ok(())
    }

    /// A frame that nobody has.
    fn new_frame(&mut self) -> Result<u32, WgpuError> {
        if u64::from(self.pool.next) >= self.private.as_ref().expect("private memory").count {
            self.add_frames()?;
        }
        let frame = self.pool.next;
        self.set_pool(Pool { next: frame + 1, ..self.pool })?;
        Ok(frame)
    }

    /// Changes flat memory.
    fn write_flat(&mut self, addr: u64, bytes: &[u8]) -> Result<(), WgpuError> {
        for (page, start, range) in pages(addr, bytes.len()) {
            let part = &bytes[range];
            let data = self.changed(page, start, part)?;
            let there = self.flat_part(page, covering(start, part.len()));
            self.device.write(there.buffer, there.offset, &data)?;
        }
        Ok(())
    }

    /// The words of a page of flat memory that have some bytes changed.
    fn changed(&mut self, page: u64, start: usize, bytes: &[u8]) -> Result<Vec<u8>, WgpuError> {
        let words = covering(start, bytes.len());
        if let Some(image) = &mut self.image {
            let page = &mut image[(page * PAGE) as usize..][..PAGE as usize];
            page[start..start + bytes.len()].copy_from_slice(bytes);
            return Ok(page[8 * words.start..8 * words.end].to_vec());
        }
        let there = self.flat_part(page, words);
        let mut data = vec![0; there.len as usize];
        if bytes.len() < data.len() {
            self.device.read(there.buffer, there.offset, &mut data)?;
        }
        data[start % 8..start % 8 + bytes.len()].copy_from_slice(bytes);
        Ok(data)
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
        let pages: Vec<_> = pages(addr, bytes.len()).collect();
        for pages in pages.chunks(PAGES_AT_ONCE) {
            self.read_pages(lane, pages, bytes)?;
        }
        Ok(())
    }

    fn write(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        if self.private.is_none() {
            return Ok(self.write_flat(addr, bytes)?);
        }
        for (page, start, range) in pages(addr, bytes.len()) {
            let part = &bytes[range];
            match self.frame_of(lane, page)? {
                Some(frame) => self.change_copy(lane, frame, start, part)?,
                None => self.copy_page(lane, page, start, part)?,
            }
        }
        Ok(())
    }

    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.write_flat(addr, bytes)?;
        if self.has_copies()? {
            for (page, start, range) in pages(addr, bytes.len()) {
                for lane in self.owners(page)? {
                    self.write(lane, page * PAGE + start as u64, &bytes[range.clone()])?;
                }
            }
        }
        Ok(())
    }

    fn grow(&mut self) -> Result<(), EngineError> {
        Ok(self.add_frames()?)
    }

    fn has_copies(&self) -> Result<bool, EngineError> {
        Ok(self.private.is_some() && self.pool.next > 1)
    }

    fn owners(&self, page: u64) -> Result<Vec<usize>, EngineError> {
        let Some(private) = &self.private else { return Ok(Vec::new()) };
        let tables = self.tables(private)?;
        let column = tables.iter().skip(page as usize).step_by((self.size / PAGE) as usize);
        let owners = column.enumerate().flat_map(|(group, entry)| self.lanes_of(group, *entry));
        Ok(owners.collect())
    }

    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        let Some(private) = &self.private else { return Ok(Vec::new()) };
        let tables = self.tables(private)?;
        let mut pages = Vec::new();
        for (group, table) in tables.chunks_exact((self.size / PAGE) as usize).enumerate() {
            for (page, entry) in (0..).zip(table) {
                pages.extend(self.lanes_of(group, *entry).map(|lane| (lane, page)));
            }
        }
        Ok(pages)
    }

    fn drop_pages(&mut self, lane: usize) -> Result<(), EngineError> {
        let Some(private) = &self.private else { return Ok(()) };
        if self.pool.next == 1 {
            return Ok(());
        }
        let mut table = self.look(private, lane, <[Entry]>::to_vec)?;
        table.iter_mut().for_each(|entry| entry[1] &= !self.lane_bit(lane));
        let offset = self.entry_offset(lane, 0);
        self.device.write(&private.tables, offset, bytemuck::cast_slice(&table))?;
        private.table.replace(Some((lane / self.group as usize, table)));
        Ok(())
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

/// Makes sure that there can be so many windows of that size.
fn check_windows(device: &Device, window: u64, count: u64) -> Result<(), WgpuError> {
    let most = u64::from(device.bindings.saturating_sub(FIXED_BINDINGS).min(MOST_WINDOWS));
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

/// Bytes of a frame.
fn frame_bytes(group: u32) -> u64 {
    PAGE * u64::from(group)
}

/// How large the windows of a memory are.
fn window_sizes(size: u64, window: u64) -> impl Iterator<Item = u64> {
    (0..size.div_ceil(window)).map(move |index| (size - index * window).min(window))
}

/// The words of a page that hold `len` bytes from `start` on.
fn covering(start: usize, len: usize) -> Range<usize> {
    start / 8..(start + len).div_ceil(8)
}

/// Words in a page.
const PAGE_WORDS: usize = (PAGE / 8) as usize;

const _: () = assert!(PAGE_WORDS == 512, "the kernel counts on it");
