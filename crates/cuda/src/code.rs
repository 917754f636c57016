//! Decoded code on the device.

use std::collections::HashMap;

use kvrm_engine::flow::reachable;
use kvrm_engine::kernel::{BREAKPOINT, Handlers, NOT_DECODED, Record};
use kvrm_mem::{GRANULE, PAGE};

use crate::driver::{Buffer, CudaError, Device};
use crate::guest::TOO_MUCH;

/// Records of the code that lanes have reached, for all addresses from the first page of it to the last.
pub(crate) struct Code {
    start: u64,
    len: u64,
    shared: Table,
    /// Records of lanes that have changed their code.
    own: HashMap<usize, Table>,
    /// Where kernels take lanes' own records to be.
    announced: HashMap<usize, u64>,
    map: Option<Buffer>,
}

#[derive(Default)]
struct Table {
    records: Vec<Record>,
    copy: Option<DeviceTable>,
    changed: bool,
}

/// Records on the device. All have the same upper half of their addresses, so that a kernel can count in
/// the lower one, and one that is not decoded follows the last.
struct DeviceTable {
    buffer: Buffer,
    /// Where in the buffer they start.
    offset: u64,
}

/// Addresses of code may lie this far apart.
const SPAN: u64 = 256 << 20;

impl Code {
    pub(crate) fn new() -> Code {
        Code {
            start: 0,
            len: 0,
            shared: Table::default(),
            own: HashMap::new(),
            announced: HashMap::new(),
            map: None,
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Code { announced: std::mem::take(&mut self.announced), ..Code::new() };
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// True if the lane has its own records.
    pub(crate) fn is_own(&self, lane: usize) -> bool {
        self.own.contains_key(&lane)
    }

    /// True if the common records have the instruction at `pc`.
    pub(crate) fn is_decoded(&self, pc: u64) -> bool {
        self.table_has(&self.shared, pc)
    }

    /// Gives a lane its own, empty records: its code is no longer that of others.
    pub(crate) fn part(&mut self, lane: usize) {
        let records = vec![Record::special(NOT_DECODED, 0); (self.len / 4) as usize];
        self.own.insert(lane, Table { records, copy: None, changed: true });
    }

    /// Makes the lane use the common records again.
    pub(crate) fn join(&mut self, lane: usize) {
        self.own.remove(&lane);
    }

    /// The words that are reached from `pc` and not decoded for the lane.
    pub(crate) fn reachable(
        &self,
        lane: usize,
        pc: u64,
        fetch: impl Fn(u64) -> Option<u32>,
    ) -> Vec<(u64, u32)> {
        reachable(pc, |at| if at != pc && self.has(lane, at) { None } else { fetch(at) })
    }

    /// True if the lane's records have the instruction at `at`.
    fn has(&self, lane: usize, at: u64) -> bool {
        self.table_has(self.own.get(&lane).unwrap_or(&self.shared), at)
    }

    fn table_has(&self, table: &Table, at: u64) -> bool {
        let offset = at.wrapping_sub(self.start);
        let decoded = |record: &Record| record.handler() != NOT_DECODED;
        at.is_multiple_of(4)
            && offset < self.len
            && table.records.get((offset / 4) as usize).is_some_and(decoded)
    }

    /// True if some of the bytes are words that are decoded for the lane.
    pub(crate) fn overlaps(&self, lane: usize, addr: u64, len: u64) -> bool {
        let (first, last) = (addr.max(self.start), (addr + len).min(self.start + self.len));
        first < last && (first / 4..=(last - 1) / 4).any(|word| self.has(lane, 4 * word))
    }

    /// Adds records to the lane's.
    pub(crate) fn add(
        &mut self,
        lane: usize,
        code: &[(u64, u32)],
        handlers: &mut Handlers,
        breakpoints: &[u64],
    ) -> Result<(), CudaError> {
        for page in code.iter().map(|(at, _)| at / PAGE) {
            self.include(page)?;
        }
        for (at, word) in code {
            let record = match breakpoints.binary_search(at) {
                Ok(_) => Record::special(BREAKPOINT, 0),
                Err(_) => handlers.record(*at, *word),
            };
            let index = ((at - self.start) / 4) as usize;
            let table = self.own.get_mut(&lane).unwrap_or(&mut self.shared);
            table.records[index] = record;
            table.changed = true;
        }
        Ok(())
    }

    /// Extends the range to a page, if it is not too far away.
    fn include(&mut self, page: u64) -> Result<(), CudaError> {
        let at = page * PAGE;
        if self.len > 0 && at >= self.start && at < self.start + self.len {
            return Ok(());
        }
        let start = if self.len == 0 { at } else { self.start.min(at) };
        let end = (self.start + self.len).max(at + PAGE);
        let end = if self.len == 0 { at + PAGE } else { end };
        if end - start > SPAN {
            return Err(CudaError::CodeTooFarApart { start, end });
        }
        let (before, total) =
            (((self.start.max(start) - start) / 4) as usize, ((end - start) / 4) as usize);
        let before = if self.len == 0 { 0 } else { before };
        for table in self.own.values_mut().chain([&mut self.shared]) {
            let mut records = vec![Record::special(NOT_DECODED, 0); total];
            records[before..before + table.records.len()].copy_from_slice(&table.records);
            *table = Table { records, copy: None, changed: true };
        }
        (self.start, self.len, self.map) = (start, end - start, None);
        Ok(())
    }

    /// Brings the device up to date: addresses of the common records and of the map of granules.
    pub(crate) fn upload(&mut self, device: &Device) -> Result<(u64, u64), CudaError> {
        let changed = self.shared.changed
            || self.own.values().any(|table| table.changed)
            || self.map.is_none();
        for table in self.own.values_mut().chain([&mut self.shared]) {
            table.upload(device)?;
        }
        if changed {
            self.upload_map(device)?;
        }
        Ok((self.shared.address(), self.map.as_ref().map_or(0, |map| map.address)))
    }

    /// Lanes whose own records are elsewhere than at the last call, with the address or 0.
    pub(crate) fn changed_own_records(&mut self) -> Vec<(usize, u64)> {
        let now: HashMap<usize, u64> =
            self.own.iter().map(|(lane, table)| (*lane, table.address())).collect();
        let before = std::mem::replace(&mut self.announced, now.clone());
        let gone = before.keys().filter(|lane| !now.contains_key(lane)).map(|lane| (*lane, 0));
        let changed = now.iter().filter(|(lane, at)| before.get(lane) != Some(at));
        gone.chain(changed.map(|(lane, at)| (*lane, *at))).collect()
    }

    fn upload_map(&mut self, device: &Device) -> Result<(), CudaError> {
        // One granule before the code and two after it, for stores that begin or end there.
        let mut map = vec![0u8; (self.len / GRANULE + 4) as usize];
        for table in self.own.values().chain([&self.shared]) {
            for (index, record) in table.records.iter().enumerate() {
                if record.handler() != NOT_DECODED {
                    map[1 + index * 4 / GRANULE as usize] = 1;
                }
            }
        }
        if self.map.is_none() {
            self.map = Some(Buffer::new(device, map.len() as u64, |_| TOO_MUCH.into())?);
        }
        self.map.as_ref().expect("just made").write(0, &map)
    }
}

impl Table {
    /// Where the records are on the device; 0 if they are not there.
    fn address(&self) -> u64 {
        self.copy.as_ref().map_or(0, |copy| copy.buffer.address + copy.offset)
    }

    fn upload(&mut self, device: &Device) -> Result<(), CudaError> {
        if !self.changed && self.copy.is_some() {
            return Ok(());
        }
        if self.copy.is_none() {
            let len = size_of_val(&self.records[..]) + size_of::<Record>();
            self.copy = Some(DeviceTable::new(device, len as u64)?);
        }
        self.changed = false;
        let copy = self.copy.as_ref().expect("just made");
        copy.buffer.write(copy.offset, &self.records)
    }
}

impl DeviceTable {
    /// Room for that many bytes, all zero: records that are not decoded.
    fn new(device: &Device, len: u64) -> Result<DeviceTable, CudaError> {
        let fewer = |_| TOO_MUCH.to_string();
        let buffer = Buffer::new(device, len, fewer)?;
        if seam(buffer.address, len).is_none() {
            return Ok(DeviceTable { buffer, offset: 0 });
        }
        let buffer = Buffer::new(device, 2 * len, fewer)?;
        let offset = seam(buffer.address, len).map_or(0, |seam| seam - buffer.address);
        Ok(DeviceTable { buffer, offset })
    }
}

/// The address among `len` from `start` on at which the upper half changes, if there is one.
fn seam(start: u64, len: u64) -> Option<u64> {
    let seam = (start + len - 1) >> 32 << 32;
    (seam > start).then_some(seam)
}

#[cfg(test)]
mod tests {
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
