//! Guest memory on the device, as the host reaches it.

use kvrm_engine::code::DeviceMemory;
use kvrm_engine::{EngineError, MemoryModel};
use kvrm_mem::PAGE;

use crate::device::{Device, WgpuError};

/// Frames to begin with.
const FIRST_FRAMES: u64 = 64;

/// The memory of all lanes.
pub(crate) struct Guest {
    pub(crate) device: Device,
    size: u64,
    /// Guests may not write.
    pub(crate) read_only: bool,
    /// Lanes that share a frame.
    pub(crate) group: u32,
    /// Shared memory, or the image.
    pub(crate) flat: wgpu::Buffer,
    pub(crate) pool: wgpu::Buffer,
    pub(crate) private: Option<Private>,
}

/// What private memory has beside the image.
pub(crate) struct Private {
    pub(crate) tables: wgpu::Buffer,
    pub(crate) frames: wgpu::Buffer,
    /// How many frames there are, with the first, which is not used.
    pub(crate) count: u64,
    groups: u64,
    /// The image, which only the host changes.
    image: Vec<u8>,
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
        model: MemoryModel,
        size: u64,
        lanes: usize,
    ) -> Result<Guest, WgpuError> {
        let group = device.subgroup;
        let flat = device.buffer("guest memory", size)?;
        let pool = device.buffer("counters", 32)?;
        let private = match model {
            MemoryModel::Shared => None,
            MemoryModel::Private => {
                let groups = (lanes as u64).div_ceil(group.into());
                Some(Private {
                    tables: device.buffer("page tables", groups * (size / PAGE) * 8)?,
                    frames: device.buffer("frames", FIRST_FRAMES * frame_bytes(group))?,
                    count: FIRST_FRAMES,
                    groups,
                    image: vec![0; size as usize],
                })
            }
        };
        let guest = Guest { device, size, read_only: false, group, flat, pool, private };
        guest.set_pool(Pool { next: 1, ..Pool::default() });
        Ok(guest)
    }

    pub(crate) fn pool(&self) -> Result<Pool, WgpuError> {
        let mut bytes = [0; 20];
        self.device.read(&self.pool, 0, &mut bytes)?;
        let word = |i: usize| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().expect("four"));
        let executed = u64::from(word(3)) | u64::from(word(4)) << 32;
        Ok(Pool { next: word(0), stopped: word(1), executed })
    }

    pub(crate) fn set_pool(&self, pool: Pool) {
        let Pool { next, stopped, executed } = pool;
        let words = [next, stopped, 0, executed as u32, (executed >> 32) as u32];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.device.write(&self.pool, 0, &bytes);
    }

    /// Forgets all private pages.
    pub(crate) fn drop_frames(&self) -> Result<(), WgpuError> {
        if let Some(private) = &self.private {
            let mut encoder = self.device.device.create_command_encoder(&Default::default());
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

    /// Twice as many frames.
    pub(crate) fn grow(&mut self) -> Result<(), WgpuError> {
        let bytes = frame_bytes(self.group);
        let private = self.private.as_mut().expect("only private memory has frames");
        let count = (2 * private.count).min(self.device.limit / bytes);
        if count <= private.count {
            let (name, limit) = (self.device.name.clone(), self.device.limit);
            let wanted = 2 * private.count * bytes;
            return Err(WgpuError::TooLarge {
                name,
                what: "what lanes have written",
                wanted,
                limit,
            });
        }
        let frames = self.device.buffer("frames", count * bytes)?;
        let mut encoder = self.device.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&private.frames, 0, &frames, 0, private.count * bytes);
        self.device.queue.submit([encoder.finish()]);
        let old = std::mem::replace(&mut private.count, count);
        private.frames = frames;
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
        let mut bytes = [0; 8];
        self.device.read(&private.tables, self.entry_offset(lane, page), &mut bytes)?;
        let entry = u64::from_le_bytes(bytes);
        Ok([entry as u32, (entry >> 32) as u32])
    }

    fn lane_bit(&self, lane: usize) -> u32 {
        1 << (lane as u32 % self.group)
    }

    /// A whole frame.
    fn frame(&self, frame: u32) -> Result<Vec<u8>, WgpuError> {
        let private = self.private.as_ref().expect("private memory");
        let bytes = frame_bytes(self.group);
        let mut words = vec![0; bytes as usize];
        self.device.read(&private.frames, u64::from(frame) * bytes, &mut words)?;
        Ok(words)
    }

    /// A page as a lane sees it, or of the image.
    fn page(&self, lane: Option<usize>, page: u64) -> Result<Vec<u8>, WgpuError> {
        let mut bytes = vec![0; PAGE as usize];
        match (&self.private, lane) {
            (Some(private), lane) => {
                let entry = lane.map(|lane| self.entry(lane, page)).transpose()?;
                match (lane, entry) {
                    (Some(lane), Some([frame, lanes])) if lanes & self.lane_bit(lane) != 0 => {
                        let frame = self.frame(frame)?;
                        for (word, bytes) in bytes.chunks_exact_mut(8).enumerate() {
                            bytes.copy_from_slice(&frame[self.in_frame(lane, word)..][..8]);
                        }
                    }
                    _ => bytes
                        .copy_from_slice(&private.image[(page * PAGE) as usize..][..PAGE as usize]),
                }
            }
            (None, _) => self.device.read(&self.flat, page * PAGE, &mut bytes)?,
        }
        Ok(bytes)
    }

    /// Where a lane's word is in a frame, in bytes.
    fn in_frame(&self, lane: usize, word: usize) -> usize {
        (word * self.group as usize + lane % self.group as usize) * 8
    }

    /// Changes a page of a lane's.
    fn set_page(&mut self, lane: usize, page: u64, bytes: &[u8]) -> Result<(), WgpuError> {
        if self.private.is_none() {
            self.device.write(&self.flat, page * PAGE, bytes);
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
        let private = self.private.as_ref().expect("private memory");
        let offset = u64::from(number) * frame_bytes(self.group);
        self.device.write(&private.frames, offset, &frame);
        let entry = u64::from(number) | u64::from(lanes | self.lane_bit(lane)) << 32;
        let offset = self.entry_offset(lane, page);
        self.device.write(&private.tables, offset, &entry.to_le_bytes());
        Ok(())
    }

    /// Changes the image, and the copies that lanes have of its pages.
    pub(crate) fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        let has_copies = self.has_copies()?;
        for (page, start, range) in pages(addr, bytes.len()) {
            let part = &bytes[range];
            let mut whole = self.page(None, page)?;
            whole[start..start + part.len()].copy_from_slice(part);
            self.device.write(&self.flat, page * PAGE, &whole);
            if let Some(private) = &mut self.private {
                private.image[(page * PAGE) as usize..][..whole.len()].copy_from_slice(&whole);
            }
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

/// Splits a range of addresses by page: page, offset in it, and range of the bytes.
fn pages(addr: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = addr + done as u64;
        let (page, start) = (at / PAGE, (at % PAGE) as usize);
        let part = (len - done).min(PAGE as usize - start);
        done += part;
        (part > 0).then(|| (page, start, done - part..done))
    })
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
            part.copy_from_slice(&self.page(lane, page)?[start..][..part.len()]);
        }
        Ok(())
    }

    fn write(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        for (page, start, range) in pages(addr, bytes.len()) {
            let part = &bytes[range];
            let mut whole = self.page(Some(lane), page)?;
            whole[start..start + part.len()].copy_from_slice(part);
            self.set_page(lane, page, &whole)?;
        }
        Ok(())
    }

    fn has_copies(&self) -> Result<bool, EngineError> {
        Ok(self.private.is_some() && self.pool()?.next > 1)
    }

    fn owners(&self, page: u64) -> Result<Vec<usize>, EngineError> {
        let Some(private) = &self.private else { return Ok(Vec::new()) };
        let mut owners = Vec::new();
        for group in 0..private.groups {
            let first = (group * u64::from(self.group)) as usize;
            let [_, lanes] = self.entry(first, page)?;
            let bits = (0..self.group as usize).filter(|bit| lanes >> bit & 1 != 0);
            owners.extend(bits.map(|bit| first + bit));
        }
        Ok(owners)
    }
}

const _: () = assert!(PAGE / 8 == 512, "the kernel counts on it");
