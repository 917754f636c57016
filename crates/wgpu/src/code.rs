//! Decoded code on the device.

use kvrm_engine::EngineError;
use kvrm_engine::code::{CodeDevice, DirectoryEntry, GRANULE_RECORDS, Layout};
use kvrm_engine::kernel::Record;

use crate::device::{Device, WgpuError};

/// Records and the map of granules on the device.
pub(crate) struct DeviceCode {
    device: Device,
    layout: Layout,
    buffers: Option<Buffers>,
    /// The parts that blocks of mapped memory have.
    blocks: Option<wgpu::Buffer>,
}

/// The buffers that kernels see.
pub(crate) struct Buffers {
    /// The table, the directory and the slots.
    pub(crate) records: wgpu::Buffer,
    /// A bit for each granule.
    pub(crate) map: wgpu::Buffer,
}

impl DeviceCode {
    pub(crate) fn new(device: &Device) -> DeviceCode {
        DeviceCode {
            device: device.clone(),
            layout: Layout::default(),
            buffers: None,
            blocks: None,
        }
    }

    /// What kernels are bound to, after an upload.
    pub(crate) fn buffers(&self) -> &Buffers {
        self.buffers.as_ref().expect("uploaded before a launch")
    }

    /// The parts of blocks, after an upload of code in mapped memory.
    pub(crate) fn blocks(&self) -> &wgpu::Buffer {
        self.blocks.as_ref().expect("uploaded before a launch")
    }

    /// Where the directory starts, as the number of a record.
    pub(crate) fn directory(&self) -> u32 {
        self.layout.table_records() as u32
    }

    /// Writes records from that number on.
    fn write_records<T: bytemuck::Pod>(&self, first: u64, records: &[T]) -> Result<(), WgpuError> {
        let offset = first * size_of::<Record>() as u64;
        self.device.write(&self.buffers().records, offset, bytemuck::cast_slice(records))
    }
}

impl CodeDevice for DeviceCode {
    fn make_room(&mut self, layout: &Layout) -> Result<(), EngineError> {
        // First of all it gives back what there was.
        self.buffers = None;
        self.buffers = Some(Buffers {
            records: self.device.buffer("records", layout.bytes())?,
            map: self.device.buffer("map of code", layout.map_len().div_ceil(8) as u64)?,
        });
        self.layout = layout.clone();
        Ok(())
    }

    fn place(&self, slot: u32) -> u64 {
        let before = self.layout.table_records() + self.layout.directory_len();
        before as u64 + u64::from(slot) * GRANULE_RECORDS as u64
    }

    fn write_pages(
        &mut self,
        first: u64,
        records: &[Record],
        flags: &[u64],
    ) -> Result<(), EngineError> {
        let each = (records.len() / flags.len()) as u64;
        self.write_records(first * each, records)?;
        let offset = (first + 1) * size_of::<u64>() as u64;
        let words: Vec<[u32; 2]> =
            flags.iter().map(|flags| [*flags as u32, (flags >> 32) as u32]).collect();
        Ok(self.device.write(&self.buffers().map, offset, bytemuck::cast_slice(&words))?)
    }

    fn write_slots(&mut self, first: u32, records: &[Record]) -> Result<(), EngineError> {
        Ok(self.write_records(self.place(first), records)?)
    }

    fn write_directory(&mut self, entries: &[DirectoryEntry]) -> Result<(), EngineError> {
        Ok(self.write_records(self.directory().into(), entries)?)
    }

    fn write_blocks(&mut self, parts: &[u32]) -> Result<(), EngineError> {
        if self.blocks.is_none() {
            self.blocks = Some(self.device.buffer("blocks of code", 4 * parts.len() as u64)?);
        }
        Ok(self.device.write(self.blocks(), 0, bytemuck::cast_slice(parts))?)
    }
}
