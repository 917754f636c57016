//! Decoded code on the device.

use std::collections::HashMap;

use kvrm_engine::code::{Code, Table};
use kvrm_engine::kernel::Record;

use crate::driver::{Buffer, CudaError, Device};
use crate::guest::TOO_MUCH;

/// The tables of [`Code`] on the device.
#[derive(Default)]
pub(crate) struct DeviceCode {
    /// What [`Code::changes`] was when all was brought up to date.
    changes: Option<u64>,
    common: Option<DeviceTable>,
    own: HashMap<usize, DeviceTable>,
    map: Option<Buffer>,
}

/// Records on the device. All have the same upper half of their addresses, so that a kernel can count in
/// the lower one, and one that is not decoded follows the last.
struct DeviceTable {
    buffer: Buffer,
    /// Where in the buffer they start.
    offset: u64,
    /// How many there are.
    len: usize,
    /// What [`Table::changed`] said of what is there.
    changed: Option<u64>,
}

impl DeviceCode {
    /// Brings the device up to date. Where the records of lanes are that have their own.
    pub(crate) fn upload(
        &mut self,
        device: &Device,
        code: &Code,
    ) -> Result<HashMap<usize, u64>, CudaError> {
        if self.changes != Some(code.changes()) {
            self.own.retain(|lane, _| code.own().contains_key(lane));
            for (lane, table) in code.own() {
                let copy = DeviceTable::of(self.own.remove(lane), device, table)?;
                self.own.insert(*lane, copy);
            }
            self.common = Some(DeviceTable::of(self.common.take(), device, code.common())?);
            self.upload_map(device, &code.granule_bytes())?;
            self.changes = Some(code.changes());
        }
        Ok(self.own.iter().map(|(lane, table)| (*lane, table.address())).collect())
    }

    /// Where the common records are.
    pub(crate) fn records(&self) -> u64 {
        self.common.as_ref().map_or(0, DeviceTable::address)
    }

    /// Where the map of granules is.
    pub(crate) fn map(&self) -> u64 {
        self.map.as_ref().map_or(0, |map| map.address)
    }

    fn upload_map(&mut self, device: &Device, map: &[u8]) -> Result<(), CudaError> {
        if self.map.as_ref().is_none_or(|buffer| buffer.len != map.len() as u64) {
            self.map = None;
            self.map = Some(Buffer::new(device, map.len() as u64, |_| TOO_MUCH.into())?);
        }
        self.map.as_ref().expect("just made").write(0, map)
    }
}

impl DeviceTable {
    /// The table on the device, where it is already if it has the same length.
    fn of(
        old: Option<DeviceTable>,
        device: &Device,
        table: &Table,
    ) -> Result<DeviceTable, CudaError> {
        let len = table.records().len();
        let mut copy = match old.filter(|old| old.len == len) {
            Some(copy) => copy,
            None => DeviceTable::new(device, len)?,
        };
        if copy.changed != Some(table.changed()) {
            copy.buffer.write(copy.offset, table.records())?;
            copy.changed = Some(table.changed());
        }
        Ok(copy)
    }

    /// Room for that many records and one more, all zero: not decoded.
    fn new(device: &Device, len: usize) -> Result<DeviceTable, CudaError> {
        let fewer = |_| TOO_MUCH.to_string();
        let bytes = ((len + 1) * size_of::<Record>()) as u64;
        let mut buffer = Buffer::new(device, bytes, fewer)?;
        let mut offset = 0;
        if seam(buffer.address, bytes).is_some() {
            buffer = Buffer::new(device, 2 * bytes, fewer)?;
            offset = seam(buffer.address, bytes).map_or(0, |seam| seam - buffer.address);
        }
        Ok(DeviceTable { buffer, offset, len, changed: None })
    }

    /// Where the records are.
    fn address(&self) -> u64 {
        self.buffer.address + self.offset
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
