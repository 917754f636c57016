//! Decoded code, for engines that interpret on a device: records of what lanes have reached, and how the
//! host sees to lanes that reach more, or change it.

use std::collections::{BTreeSet, HashMap};

use kvrm_a64::state::CpuState;
use kvrm_mem::{GRANULE, PAGE};

use crate::flow::reachable;
use crate::kernel::{BREAKPOINT, Handlers, NOT_DECODED, Record};
use crate::lane_view::{LaneMemory, Words};
use crate::memory::DeviceMemory;
use crate::{EngineError, MemoryModel, Step, Stop, fetch, step};

/// Addresses of code may lie this far apart.
const SPAN: u64 = 256 << 20;

/// Records of the code that lanes have reached, for all addresses from the first page of it to the last.
#[derive(Default)]
pub struct Code {
    /// The handlers that records ask for.
    pub handlers: Handlers,
    breakpoints: Vec<u64>,
    start: u64,
    len: u64,
    common: Table,
    /// Records of lanes that have changed their code.
    own: HashMap<usize, Table>,
    changes: u64,
}

/// Records for all addresses of the code.
#[derive(Default)]
pub struct Table {
    records: Vec<Record>,
    changed: u64,
}

impl Table {
    /// The records.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What [`Code::changes`] was after the last change of this table.
    pub fn changed(&self) -> u64 {
        self.changed
    }
}

impl Code {
    /// No code.
    pub fn new() -> Code {
        Code::default()
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        (self.start, self.len) = (0, 0);
        self.changes += 1;
        self.common = Table { records: Vec::new(), changed: self.changes };
        self.own.clear();
    }

    /// Sets where lanes stop; in ascending order.
    pub fn set_breakpoints(&mut self, breakpoints: &[u64]) {
        if self.breakpoints != breakpoints {
            self.breakpoints = breakpoints.to_vec();
            self.clear();
        }
    }

    /// Where lanes stop.
    pub fn breakpoints(&self) -> &[u64] {
        &self.breakpoints
    }

    /// Address of the first record's instruction.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes of code that there are records for.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A number that grows whenever something changes.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The records of lanes that have not changed their code.
    pub fn common(&self) -> &Table {
        &self.common
    }

    /// The records of each lane that has its own.
    pub fn own(&self) -> &HashMap<usize, Table> {
        &self.own
    }

    /// All records: the common ones, then those of lanes that have their own, by lane. After each table is
    /// a record that is not decoded, for lanes that run beyond its end.
    pub fn tables(&self) -> (Vec<Record>, HashMap<usize, u32>) {
        let end = Record::special(NOT_DECODED, 0);
        let mut records = self.common.records.clone();
        records.push(end);
        let mut starts = HashMap::new();
        for (lane, own) in &self.own {
            starts.insert(*lane, records.len() as u32);
            records.extend_from_slice(&own.records);
            records.push(end);
        }
        (records, starts)
    }

    /// A bit for each granule from one before the code to two after it: whether it holds decoded words.
    pub fn granules(&self) -> Vec<u32> {
        let pack =
            |flags: &[u8]| (0..).zip(flags).fold(0, |all, (i, flag)| all | u32::from(*flag) << i);
        self.granule_bytes().chunks(32).map(pack).collect()
    }

    /// The same with a byte for each, 0 or 1. Stores may begin before the code and end after it.
    pub fn granule_bytes(&self) -> Vec<u8> {
        let mut map = vec![0; (self.len / GRANULE + 4) as usize];
        for table in self.own.values().chain([&self.common]) {
            for (index, record) in table.records.iter().enumerate() {
                if record.handler() != NOT_DECODED {
                    map[1 + index * 4 / GRANULE as usize] = 1;
                }
            }
        }
        map
    }

    /// Makes the lane use the common records again.
    pub fn join(&mut self, lane: usize) {
        if self.own.remove(&lane).is_some() {
            self.changes += 1;
        }
    }

    /// Gives a lane its own, empty records: its code is no longer that of others.
    fn part(&mut self, lane: usize) {
        let records = vec![Record::special(NOT_DECODED, 0); (self.len / 4) as usize];
        self.changes += 1;
        self.own.insert(lane, Table { records, changed: self.changes });
    }

    fn table(&self, lane: usize) -> &Table {
        self.own.get(&lane).unwrap_or(&self.common)
    }

    /// True if the records have the instruction at `at`.
    fn has(&self, table: &Table, at: u64) -> bool {
        let offset = at.wrapping_sub(self.start);
        let decoded = |record: &Record| record.handler() != NOT_DECODED;
        at.is_multiple_of(4)
            && offset < self.len
            && table.records.get((offset / 4) as usize).is_some_and(decoded)
    }

    /// Forgets what was decoded from memory that the host has written for a lane.
    pub fn written(&mut self, model: MemoryModel, lane: usize, addr: u64, len: u64) {
        let (first, last) = (addr.max(self.start), (addr + len).min(self.start + self.len));
        let table = self.table(lane);
        if first < last && (first / 4..=(last - 1) / 4).any(|word| self.has(table, 4 * word)) {
            match model {
                MemoryModel::Shared => self.clear(),
                MemoryModel::Private => self.part(lane),
            }
        }
    }

    /// Decodes what can be reached from where a lane is. The stop, if there is no code.
    pub fn find(
        &mut self,
        memory: &mut impl DeviceMemory,
        lanes: usize,
        lane: usize,
        pc: u64,
    ) -> Result<Option<Stop>, EngineError> {
        // Lanes whose code differs from that of others have their own records.
        if !self.own.contains_key(&lane) && self.has(&self.common, pc) {
            return Ok(None);
        }
        let view = LaneMemory::new(memory, lane);
        let fetched = fetch(&view, pc);
        view.check()?;
        if let Err(stop) = fetched {
            return Ok(Some(stop));
        }
        let words = Words::new(memory, Some(lane));
        let table = self.table(lane);
        let wanted = |at| if at != pc && self.has(table, at) { None } else { words.get(at) };
        let code = reachable(pc, wanted);
        words.check()?;
        if !self.own.contains_key(&lane) && memory.has_copies() {
            let image = Words::new(memory, None);
            let differs = code.iter().any(|(at, word)| image.get(*at) != Some(*word));
            image.check()?;
            if differs {
                self.part(lane);
                return self.find(memory, lanes, lane, pc);
            }
            self.part_changed_lanes(memory, lanes, &code)?;
        }
        self.add(lane, &code)?;
        Ok(None)
    }

    /// New common records: lanes whose own copies of those words differ part from them.
    fn part_changed_lanes(
        &mut self,
        memory: &impl DeviceMemory,
        lanes: usize,
        code: &[(u64, u32)],
    ) -> Result<(), EngineError> {
        let pages: BTreeSet<u64> = code.iter().map(|(at, _)| at / PAGE).collect();
        for page in pages {
            for lane in memory.owners(page)? {
                if self.own.contains_key(&lane) || lane >= lanes {
                    continue;
                }
                let words = Words::new(memory, Some(lane));
                let mut on_page = code.iter().filter(|(at, _)| at / PAGE == page);
                let differs = on_page.any(|(at, word)| words.get(*at) != Some(*word));
                words.check()?;
                if differs {
                    self.part(lane);
                }
            }
        }
        Ok(())
    }

    /// Adds records to the lane's.
    fn add(&mut self, lane: usize, code: &[(u64, u32)]) -> Result<(), EngineError> {
        for page in code.iter().map(|(at, _)| at / PAGE) {
            self.include(page)?;
        }
        self.changes += 1;
        let table = self.own.get_mut(&lane).unwrap_or(&mut self.common);
        table.changed = self.changes;
        for (at, word) in code {
            let record = match self.breakpoints.binary_search(at) {
                Ok(_) => Record::special(BREAKPOINT, 0),
                Err(_) => self.handlers.record(*at, *word),
            };
            table.records[((at - self.start) / 4) as usize] = record;
        }
        Ok(())
    }

    /// Extends the range to a page, if it is not too far away.
    fn include(&mut self, page: u64) -> Result<(), EngineError> {
        let at = page * PAGE;
        let (start, end) = match self.len {
            0 => (at, at + PAGE),
            len => (self.start.min(at), (self.start + len).max(at + PAGE)),
        };
        if (start, end - start) == (self.start, self.len) {
            return Ok(());
        }
        if end - start > SPAN {
            return Err(EngineError::Device(format!(
                "code from {start:#x} to {end:#x} spans more than the 256 MiB that GPU engines take; use the cpu engine"
            )));
        }
        let before = if self.len == 0 { 0 } else { ((self.start - start) / 4) as usize };
        let total = ((end - start) / 4) as usize;
        self.changes += 1;
        for table in self.own.values_mut().chain([&mut self.common]) {
            let mut records = vec![Record::special(NOT_DECODED, 0); total];
            records[before..before + table.records.len()].copy_from_slice(&table.records);
            *table = Table { records, changed: self.changes };
        }
        (self.start, self.len) = (start, end - start);
        Ok(())
    }

    /// Executes one instruction of a lane on the host: instructions completed (0 or 1), and the stop.
    pub fn step(
        &mut self,
        memory: &mut impl DeviceMemory,
        model: MemoryModel,
        lane: usize,
        state: &mut CpuState,
        count: u64,
    ) -> Result<(u64, Option<Stop>), EngineError> {
        let view = LaneMemory::new(memory, lane);
        let mut written = Vec::new();
        let end = step(state, count, &view, &mut |addr, len| written.push((addr, u64::from(len))));
        // Where the device failed, some of it may have been written.
        for (addr, len) in written {
            self.written(model, lane, addr, len);
        }
        view.check()?;
        Ok(match end {
            Step::Done => (1, None),
            Step::DoneAndStopped(stop) => (1, Some(stop)),
            Step::Stopped(stop) => (0, Some(stop)),
        })
    }
}
