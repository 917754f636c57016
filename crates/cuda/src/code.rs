//! Decoded code on the device.

use kvrm_engine::EngineError;
use kvrm_engine::code::{CodeDevice, DirectoryEntry, GRANULE_RECORDS, Layout};
use kvrm_engine::kernel::Record;

use crate::driver::{Buffer, CudaError, Device};
use crate::guest::TOO_MUCH;

/// Records and the map of granules on the device.
#[derive(Default)]
pub(crate) struct DeviceCode {
    buffers: Option<Buffers>,
    /// The parts that blocks of mapped memory have.
    blocks: Option<Buffer>,
}

struct Buffers {
    table: Table,
    slots: Buffer,
    directory: Buffer,
    /// A byte for each granule.
    map: Buffer,
}

/// The table of records. All have the same upper half of their addresses, so that a kernel can count in the
/// lower one.
struct Table {
    buffer: Buffer,
    /// Where in the buffer they start.
    offset: u64,
}

impl DeviceCode {
    /// With the device, to bring it up to date.
    pub(crate) fn on<'a>(&'a mut self, device: &'a Device) -> Uploading<'a> {
        Uploading { device, code: self }
    }

    fn buffers(&self) -> &Buffers {
        self.buffers.as_ref().expect("there was an upload")
    }

    /// Where a record of the table is.
    pub(crate) fn record(&self, index: u64) -> u64 {
        let Table { buffer, offset } = &self.buffers().table;
        buffer.address + offset + index * size_of::<Record>() as u64
    }

    /// Where a flag of the map is.
    pub(crate) fn flag(&self, index: u64) -> u64 {
        self.buffers().map.address + index
    }

    /// Where the parts of blocks are; there are none in flat memory.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.as_ref().map_or(0, |blocks| blocks.address)
    }

    /// Where the directory is.
    pub(crate) fn directory(&self) -> u64 {
        self.buffers().directory.address
    }
}

/// The device that code is brought to.
pub(crate) struct Uploading<'a> {
    device: &'a Device,
    code: &'a mut DeviceCode,
}

impl Uploading<'_> {
    fn buffer(&self, bytes: usize) -> Result<Buffer, CudaError> {
        Buffer::new(self.device, bytes as u64, |_| TOO_MUCH.into())
    }

    fn table(&self, records: usize) -> Result<Table, CudaError> {
        let bytes = records * size_of::<Record>();
        let mut buffer = self.buffer(bytes)?;
        let mut offset = 0;
        if seam(buffer.address, bytes as u64).is_some() {
            buffer = self.buffer(2 * bytes)?;
            let seam = seam(buffer.address, bytes as u64);
            offset = seam.map_or(0, |seam| seam - buffer.address);
        }
        Ok(Table { buffer, offset })
    }
}

impl CodeDevice for Uploading<'_> {
    fn make_room(&mut self, layout: &Layout) -> Result<(), EngineError> {
        // First of all it gives back what there was.
        self.code.buffers = None;
        self.code.buffers = Some(Buffers {
            table: self.table(layout.table_records())?,
            slots: self.buffer(layout.slot_records() * size_of::<Record>())?,
            directory: self.buffer(layout.directory_len() * size_of::<DirectoryEntry>())?,
            map: self.buffer(layout.map_len())?,
        });
        Ok(())
    }

    fn place(&self, slot: u32) -> u64 {
        let bytes = GRANULE_RECORDS * size_of::<Record>();
        self.code.buffers().slots.address + u64::from(slot) * bytes as u64
    }

    fn write_pages(
        &mut self,
        first: u64,
        records: &[Record],
        flags: &[u64],
    ) -> Result<(), EngineError> {
        let Buffers { table, map, .. } = self.code.buffers();
        let page = size_of_val(records) / flags.len();
        table.buffer.write(table.offset + first * page as u64, records)?;
        let bits = |flags: &u64| (0..u64::BITS).map(|bit| (flags >> bit & 1) as u8).collect();
        let bytes: Vec<u8> = flags.iter().flat_map::<Vec<u8>, _>(bits).collect();
        Ok(map.write((first + 1) * u64::from(u64::BITS), &bytes)?)
    }

    fn write_slots(&mut self, first: u32, records: &[Record]) -> Result<(), EngineError> {
        let slots = &self.code.buffers().slots;
        Ok(slots.write(self.place(first) - slots.address, records)?)
    }

    fn write_directory(&mut self, entries: &[DirectoryEntry]) -> Result<(), EngineError> {
        Ok(self.code.buffers().directory.write(0, entries)?)
    }

    fn write_blocks(&mut self, parts: &[u32]) -> Result<(), EngineError> {
        let blocks = match self.code.blocks.take() {
            Some(blocks) => blocks,
            None => self.buffer(size_of_val(parts))?,
        };
        blocks.write(0, parts)?;
        self.code.blocks = Some(blocks);
        Ok(())
    }
}

/// The address among `len` from `start` on at which the upper half changes, if there is one.
fn seam(start: u64, len: u64) -> Option<u64> {
    let seam = (start + len - 1) >> 32 << 32;
    (seam > start).then_some(seam)
}

#[cfg(test)]
mod tests {
    use kvrm_engine::kernel::NOT_DECODED;

    use super::*;

    #[test]
    fn seams() {
        assert_eq!(seam(0xffff_ff00, 0x100), None);
        assert_eq!(seam(0xffff_ff00, 0x101), Some(0x1_0000_0000));
        assert_eq!(seam(0x1_0000_0000, 0x1000), None);
        assert_eq!(seam(0x2_ffff_fff0, 0x20), Some(0x3_0000_0000));
    }

    #[test]
    fn zero_bytes_are_a_record_that_is_not_decoded() {
        assert_eq!(Record::special(NOT_DECODED, 0), Record([0; 4]));
    }
}
