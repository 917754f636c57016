//! Guest memory on the device, as the host reaches it.

use std::ops::Range;

use kvrm_engine::code::{DeviceMemory, pages};
use kvrm_engine::{Config, EngineError, MemoryModel};
use kvrm_mem::PAGE;

use crate::device::{Device, Part, WgpuError};
use crate::windows::Windows;

/// Frames to begin with.
const FIRST_FRAMES: u64 = 64;
/// Bindings that are not windows.
const FIXED_BINDINGS: u32 = 8;
/// More windows than this would only make kernels longer.
const MOST_WINDOWS: u32 = 64;
/// Pages that are read together; a page of one lane takes as much as one of all in its group.
const PAGES_AT_ONCE: u64 = 256;

/// The memory of all lanes.
pub(crate) struct Guest {
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
    pub(crate) pool: wgpu::Buffer,
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
}

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
        let flat = window_sizes(size, window)
            .map(|bytes| device.buffer("guest memory", bytes))
            .collect::<Result<Vec<_>, _>>()?;
        let pool = device.buffer("counters", 32)?;
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
                })
            }
        };
        let guest =
            Guest { device, size, read_only, group, window, frames_window, flat, pool, private };
        guest.check_windows(guest.flat.len() + 1)?;
        guest.set_pool(Pool { next: 1, ..Pool::default() });
        Ok(guest)
    }

    /// How memory is spread over bindings now.
    pub(crate) fn windows(&self) -> Windows {
        let frames = self.private.as_ref().map_or(0, |private| private.frames.len() as u32);
        let frames_each = (self.frames_window / frame_bytes(self.group)) as u32;
        Windows { bytes: self.window, flat: self.flat.len() as u32, frames_each, frames }
    }

    /// Makes sure that there can be so many windows.
    fn check_windows(&self, count: usize) -> Result<(), WgpuError> {
        let most = self.device.bindings.saturating_sub(FIXED_BINDINGS).min(MOST_WINDOWS);
        match count as u64 <= u64::from(most) {
            true => Ok(()),
            false => Err(WgpuError::TooLarge {
                name: self.device.name.to_string(),
                what: "guest memory with what lanes have written",
                wanted: count as u64 * self.window,
                limit: u64::from(most) * self.window,
            }),
        }
    }

    pub(crate) fn pool(&self) -> Result<Pool, WgpuError> {
        self.pool_after(self.device.encoder())
    }

    /// Does what the encoder has, and reads the pool then.
    pub(crate) fn pool_after(&self, encoder: wgpu::CommandEncoder) -> Result<Pool, WgpuError> {
        let part = Part { buffer: &self.pool, offset: 0, len: 20 };
        let bytes = self.device.read_all(encoder, &[part])?;
        let [next, stopped, _, low, high] = bytemuck::pod_read_unaligned::<[u32; 5]>(&bytes);
        Ok(Pool { next, stopped, executed: u64::from(low) | u64::from(high) << 32 })
    }

    pub(crate) fn set_pool(&self, pool: Pool) {
        let Pool { next, stopped, executed } = pool;
        let words = [next, stopped, 0, executed as u32, (executed >> 32) as u32];
        self.device.write(&self.pool, 0, bytemuck::bytes_of(&words));
    }

    /// Forgets all private pages.
    pub(crate) fn drop_frames(&self) -> Result<(), WgpuError> {
        if let Some(private) = &self.private {
            let mut encoder = self.device.encoder();
            encoder.clear_buffer(&private.tables, 0, None);
            self.device.queue.submit([encoder.finish()]);
            self.set_pool(Pool { next: 1, ..self.pool()? });
        }
        Ok(())
    }

    /// Forgets the private pages of one lane.
    pub(crate) fn drop_pages(&self, lane: usize) -> Result<(), WgpuError> {
        let Some(private) = &self.private else { return Ok(()) };
        let bytes = self.size / PAGE * 8;
        let offset = lane as u64 / u64::from(self.group) * bytes;
        let mut table = vec![0; bytes as usize];
        self.device.read(&private.tables, offset, &mut table)?;
        let bit = lane as u32 % self.group;
        for entry in table.chunks_exact_mut(8) {
            entry[4 + bit as usize / 8] &= !(1 << (bit % 8));
        }
        self.device.write(&private.tables, offset, &table);
        Ok(())
    }

    /// About twice as many frames: the last window grows, or there is one more.
    pub(crate) fn grow(&mut self) -> Result<(), WgpuError> {
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
            self.check_windows(self.flat.len() + windows + 1)?;
            let count = old.min(full);
            let frames = self.device.buffer("what lanes have written", count * bytes)?;
            let private = self.private.as_mut().expect("as above");
            private.frames.push(frames);
            private.count += count;
        }
        let pool = self.pool()?;
        // Attempts that failed have counted on beyond the end.
        self.set_pool(Pool { next: pool.next.min(old as u32), ..pool });
        Ok(())
    }

    fn entry_offset(&self, lane: usize, page: u64) -> u64 {
        (lane as u64 / u64::from(self.group) * (self.size / PAGE) + page) * 8
    }

    /// The frame and the lanes of a page table's entry.
    fn entry(&self, lane: usize, page: u64) -> Result<[u32; 2], WgpuError> {
        let private = self.private.as_ref().expect("private memory");
        let mut entry = [0; 2];
        let offset = self.entry_offset(lane, page);
        self.device.read(&private.tables, offset, bytemuck::bytes_of_mut(&mut entry))?;
        Ok(entry)
    }

    fn lane_bit(&self, lane: usize) -> u32 {
        1 << (lane as u32 % self.group)
    }

    /// The window that a frame is in, and where.
    fn frame_at(&self, frame: u32) -> (&wgpu::Buffer, u64) {
        let private = self.private.as_ref().expect("private memory");
        let full = self.frames_window / frame_bytes(self.group);
        let (window, index) = (u64::from(frame) / full, u64::from(frame) % full);
        (&private.frames[window as usize], index * frame_bytes(self.group))
    }

    /// All page tables: for each group and page the frame, and a bit per lane that has copied the page.
    fn tables(&self, private: &Private) -> Result<Vec<[u32; 2]>, WgpuError> {
        let mut tables = vec![[0u32; 2]; (private.groups * (self.size / PAGE)) as usize];
        self.device.read(&private.tables, 0, bytemuck::cast_slice_mut(&mut tables))?;
        Ok(tables)
    }

    /// The lanes of an entry of a group's page table.
    fn lanes_of(&self, group: usize, entry: [u32; 2]) -> impl Iterator<Item = usize> + use<> {
        let first = group * self.group as usize;
        (0..self.group as usize).filter(move |bit| entry[1] >> bit & 1 != 0).map(move |b| first + b)
    }

    /// The pages that lanes have their own copies of, as lanes and page numbers.
    pub(crate) fn private_pages(&self) -> Result<Vec<(usize, u64)>, WgpuError> {
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

    /// A whole frame.
    fn frame(&self, frame: u32) -> Result<Vec<u8>, WgpuError> {
        let (window, offset) = self.frame_at(frame);
        let mut words = vec![0; frame_bytes(self.group) as usize];
        self.device.read(window, offset, &mut words)?;
        Ok(words)
    }

    /// The frames of pages that a lane has copied; `None` where it has not.
    fn frames_of(&self, lane: usize, pages: Range<u64>) -> Result<Vec<Option<u32>>, WgpuError> {
        let Some(private) = &self.private else { return Ok(vec![None; pages.count()]) };
        let mut entries = vec![[0u32; 2]; (pages.end - pages.start) as usize];
        let offset = self.entry_offset(lane, pages.start);
        self.device.read(&private.tables, offset, bytemuck::cast_slice_mut(&mut entries))?;
        let own = |[frame, lanes]: &[u32; 2]| lanes & self.lane_bit(lane) != 0 && *frame != 0;
        Ok(entries.iter().map(|entry| own(entry).then_some(entry[0])).collect())
    }

    /// Pages as a lane sees them, or of the image.
    fn pages(&self, lane: Option<usize>, pages: Range<u64>) -> Result<Vec<u8>, WgpuError> {
        let frames = match lane {
            Some(lane) => self.frames_of(lane, pages.clone())?,
            None => vec![None; (pages.end - pages.start) as usize],
        };
        let part = |(page, frame): (u64, &Option<u32>)| match frame {
            Some(frame) => {
                let (buffer, offset) = self.frame_at(*frame);
                Part { buffer, offset, len: frame_bytes(self.group) }
            }
            None => {
                let (buffer, offset) = self.flat_at(page);
                Part { buffer, offset, len: PAGE }
            }
        };
        let parts: Vec<Part<'_>> = pages.zip(&frames).map(part).collect();
        let all = self.device.read_all(self.device.encoder(), &parts)?;
        let mut bytes = Vec::with_capacity(frames.len() * PAGE as usize);
        let mut rest = &all[..];
        for (part, frame) in parts.iter().zip(&frames) {
            let (page, after) = rest.split_at(part.len as usize);
            match (frame, lane) {
                (Some(_), Some(lane)) => {
                    let words = (0..PAGE as usize / 8).map(|word| self.in_frame(lane, word));
                    words.for_each(|at| bytes.extend_from_slice(&page[at..at + 8]));
                }
                _ => bytes.extend_from_slice(page),
            }
            rest = after;
        }
        Ok(bytes)
    }

    fn page(&self, lane: Option<usize>, page: u64) -> Result<Vec<u8>, WgpuError> {
        self.pages(lane, page..page + 1)
    }

    /// A page with some of its bytes changed.
    fn changed_page(
        &self,
        lane: Option<usize>,
        page: u64,
        start: usize,
        part: &[u8],
    ) -> Result<Vec<u8>, WgpuError> {
        if part.len() == PAGE as usize {
            return Ok(part.to_vec());
        }
        let mut whole = self.page(lane, page)?;
        whole[start..start + part.len()].copy_from_slice(part);
        Ok(whole)
    }

    /// The window that a page of flat memory is in, and where.
    fn flat_at(&self, page: u64) -> (&wgpu::Buffer, u64) {
        let at = page * PAGE;
        (&self.flat[(at / self.window) as usize], at % self.window)
    }

    /// Where a lane's word is in a frame, in bytes.
    fn in_frame(&self, lane: usize, word: usize) -> usize {
        (word * self.group as usize + lane % self.group as usize) * 8
    }

    /// Changes a page of a lane's.
    fn set_page(&mut self, lane: usize, page: u64, bytes: &[u8]) -> Result<(), WgpuError> {
        if self.private.is_none() {
            let (window, offset) = self.flat_at(page);
            self.device.write(window, offset, bytes);
            return Ok(());
        }
        let [mut number, lanes] = self.entry(lane, page)?;
        if number == 0 {
            let mut pool = self.pool()?;
            if u64::from(pool.next) >= self.private.as_ref().expect("private memory").count {
                self.grow()?;
                pool = self.pool()?;
            }
            number = pool.next;
            self.set_pool(Pool { next: pool.next + 1, ..pool });
        }
        let mut frame = self.frame(number)?;
        for (word, bytes) in bytes.chunks_exact(8).enumerate() {
            let at = self.in_frame(lane, word);
            frame[at..at + 8].copy_from_slice(bytes);
        }
        let (window, offset) = self.frame_at(number);
        self.device.write(window, offset, &frame);
        let private = self.private.as_ref().expect("private memory");
        let entry = [number, lanes | self.lane_bit(lane)];
        let offset = self.entry_offset(lane, page);
        self.device.write(&private.tables, offset, bytemuck::bytes_of(&entry));
        Ok(())
    }

    /// Changes the image, and the copies that lanes have of its pages.
    pub(crate) fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        let has_copies = self.has_copies()?;
        for (page, start, range) in pages(addr, bytes.len()) {
            let part = &bytes[range];
            let whole = self.changed_page(None, page, start, part)?;
            let (window, offset) = self.flat_at(page);
            self.device.write(window, offset, &whole);
            if has_copies {
                for lane in self.owners(page)? {
                    self.write(lane, page * PAGE + start as u64, part)?;
                }
            }
        }
        Ok(())
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

impl DeviceMemory for Guest {
    fn size(&self) -> u64 {
        self.size
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn read(&self, lane: Option<usize>, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        let mut done = 0;
        while done < bytes.len() {
            let at = addr + done as u64;
            let end = addr + bytes.len() as u64;
            let pages = at / PAGE..end.div_ceil(PAGE).min(at / PAGE + PAGES_AT_ONCE);
            let data = self.pages(lane, pages)?;
            let data = &data[(at % PAGE) as usize..];
            let len = data.len().min(bytes.len() - done);
            bytes[done..done + len].copy_from_slice(&data[..len]);
            done += len;
        }
        Ok(())
    }

    fn write(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        for (page, start, range) in pages(addr, bytes.len()) {
            let part = &bytes[range];
            let whole = self.changed_page(Some(lane), page, start, part)?;
            self.set_page(lane, page, &whole)?;
        }
        Ok(())
    }

    fn has_copies(&self) -> Result<bool, EngineError> {
        Ok(self.private.is_some() && self.pool()?.next > 1)
    }

    fn owners(&self, page: u64) -> Result<Vec<usize>, EngineError> {
        let Some(private) = &self.private else { return Ok(Vec::new()) };
        let tables = self.tables(private)?;
        let column = tables.iter().skip(page as usize).step_by((self.size / PAGE) as usize);
        let owners = column.enumerate().flat_map(|(group, entry)| self.lanes_of(group, *entry));
        Ok(owners.collect())
    }
}

const _: () = assert!(PAGE / 8 == 512, "the kernel counts on it");
