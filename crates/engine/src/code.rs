//! Decoded code, for engines that interpret on a device: records of what lanes have reached, and how the
//! host sees to lanes that reach more, or change it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use kvrm_a64::state::CpuState;
use kvrm_ir::{Access, Order, Type};
use kvrm_mem::{GRANULE, GuestMemory, PAGE};

use crate::flow::reachable;
use crate::kernel::{BREAKPOINT, Handlers, NOT_DECODED, Record};
use crate::{EngineError, MemoryModel, Step, Stop, fetch, step};

/// Guest memory on a device, as the host reaches it.
pub trait DeviceMemory {
    /// Bytes of guest memory.
    fn size(&self) -> u64;

    /// True if guests may not write.
    fn is_read_only(&self) -> bool;

    /// Reads as a lane sees it, or the image.
    fn read(&self, lane: Option<usize>, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError>;

    /// Writes a lane's memory.
    fn write(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError>;

    /// True if some lane may have its own copy of a page.
    fn has_copies(&self) -> Result<bool, EngineError>;

    /// The lanes that have their own copy of a page.
    fn owners(&self, page: u64) -> Result<Vec<usize>, EngineError>;
}

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
        if !self.own.contains_key(&lane) && memory.has_copies()? {
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
        view.check()?;
        for (addr, len) in written {
            self.written(model, lane, addr, len);
        }
        Ok(match end {
            Step::Done => (1, None),
            Step::DoneAndStopped(stop) => (1, Some(stop)),
            Step::Stopped(stop) => (0, Some(stop)),
        })
    }
}

/// Splits a range of addresses by page: page, offset in it, and range of the bytes.
pub fn pages(addr: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = addr + done as u64;
        let (page, start) = (at / PAGE, (at % PAGE) as usize);
        let part = (len - done).min(PAGE as usize - start);
        done += part;
        (part > 0).then(|| (page, start, done - part..done))
    })
}

/// Words of a lane's memory or of the image, fetched from the device a page at a time.
struct Words<'a, M> {
    memory: &'a M,
    lane: Option<usize>,
    pages: RefCell<HashMap<u64, Option<Box<[u8; PAGE as usize]>>>>,
    /// The first failure of the device.
    error: Cell<Option<EngineError>>,
}

impl<'a, M: DeviceMemory> Words<'a, M> {
    fn new(memory: &'a M, lane: Option<usize>) -> Self {
        Words { memory, lane, pages: RefCell::default(), error: Cell::new(None) }
    }

    /// Fails if the device has.
    fn check(&self) -> Result<(), EngineError> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn get(&self, pc: u64) -> Option<u32> {
        if !pc.is_multiple_of(4) || pc.checked_add(4)? > self.memory.size() {
            return None;
        }
        let mut pages = self.pages.borrow_mut();
        let page = pages.entry(pc / PAGE).or_insert_with(|| {
            let mut bytes = Box::new([0; PAGE as usize]);
            match self.memory.read(self.lane, pc / PAGE * PAGE, &mut bytes[..]) {
                Ok(()) => Some(bytes),
                Err(error) => {
                    self.error.set(self.error.take().or(Some(error)));
                    None
                }
            }
        });
        let at = (pc % PAGE) as usize;
        let bytes = page.as_ref()?[at..at + 4].try_into().expect("four bytes");
        Some(u32::from_le_bytes(bytes))
    }
}

/// A lane's memory, for executing single instructions on the host.
struct LaneMemory<'a, M> {
    memory: RefCell<&'a mut M>,
    lane: usize,
    /// The first failure of the device.
    error: Cell<Option<EngineError>>,
}

impl<'a, M: DeviceMemory> LaneMemory<'a, M> {
    fn new(memory: &'a mut M, lane: usize) -> Self {
        LaneMemory { memory: RefCell::new(memory), lane, error: Cell::new(None) }
    }

    fn note(&self, result: Result<(), EngineError>) {
        if let Err(error) = result {
            self.error.set(self.error.take().or(Some(error)));
        }
    }

    /// Fails if the device has.
    fn check(&self) -> Result<(), EngineError> {
        self.error.take().map_or(Ok(()), Err)
    }
}

impl<M: DeviceMemory> GuestMemory for LaneMemory<'_, M> {
    fn probe(&self, access: Access, addr: u64, len: u32) -> Result<(), u64> {
        let memory = self.memory.borrow();
        if access != Access::Read && memory.is_read_only() {
            return Err(addr);
        }
        let size = memory.size();
        match addr.checked_add(len.into()) {
            Some(end) if end <= size => Ok(()),
            _ => Err(addr.max(size)),
        }
    }

    fn load(&self, ty: Type, _: Order, addr: u64) -> u64 {
        let mut bytes = [0; 8];
        let part = &mut bytes[..ty.bytes() as usize];
        self.note(self.memory.borrow().read(Some(self.lane), addr, part));
        u64::from_le_bytes(bytes)
    }

    fn store(&self, ty: Type, _: Order, addr: u64, value: u64) {
        let bytes = value.to_le_bytes();
        let part = &bytes[..ty.bytes() as usize];
        self.note(self.memory.borrow_mut().write(self.lane, addr, part));
    }

    fn cas(&self, ty: Type, addr: u64, expected: u64, new: u64) -> u64 {
        let old = self.load(ty, Order::Plain, addr);
        if old == expected {
            self.store(ty, Order::Plain, addr, new);
        }
        old
    }

    fn cas128(&self, addr: u64, expected: [u64; 2], new: [u64; 2]) -> [u64; 2] {
        let old = [addr, addr + 8].map(|at| self.load(Type::U64, Order::Plain, at));
        if old == expected {
            self.store(Type::U64, Order::Plain, addr, new[0]);
            self.store(Type::U64, Order::Plain, addr + 8, new[1]);
        }
        old
    }
}
