//! Records: what the code of a guest address is, for every address that lanes have reached.
//!
//! A record has the host code to run and, for code that is interpreted, the instruction's parameters. All host code is
//! entered with a record, finds the next one beside it, in its parameters or in the table of sheets, and goes on there.
//! So the record of an address is also what links to it: where its code changes, all ways there change.

use std::collections::HashMap;
use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use kvrm_engine::kernel;
use kvrm_mem::sparse_zeros;
use memmap2::MmapMut;

/// Instructions in a sheet. Interpreted code looks at its fuel where it branches or a sheet ends, so this bounds by how
/// much it can overrun.
pub(crate) const SHEET: usize = 128;
/// Bytes of guest code in a sheet.
pub(crate) const SHEET_BYTES: u64 = 4 * SHEET as u64;
/// Instructions that interpreted code may execute between two looks at its fuel: it is entered with as many at least.
pub(crate) const SLACK: u64 = SHEET as u64 + 1;

/// Logarithm of a record's size.
pub(crate) const LOG_RECORD: i64 = 5;
const _: () = assert!(size_of::<Record>() == 1 << LOG_RECORD);

/// How often code can be counted before the engine has a look.
pub(crate) const MOST_HEAT: u32 = u16::MAX as u32;
/// The heat of code that translations need not count.
pub(crate) const UNCOUNTED: u32 = 0;
/// The upper bits of [`Record::place`] that are not the address. That is extended by its sign: direct branches at the
/// beginning of memory go below zero.
pub(crate) const HEAT_BITS: i64 = 16;
/// The other bits.
const ADDRESS: u64 = u64::MAX >> HEAT_BITS;

/// What is known of the instruction at an address.
///
/// Other threads may run the record while it is filled: its code is written last. Parameters are written once, unless
/// nobody runs.
#[repr(C, align(32))]
pub(crate) struct Record {
    /// Handler and parameters. The wide parameter of a direct branch is the record that it goes to.
    parameters: kernel::Record,
    /// Gets the lane context, this record, the end of the fuel and the guest's memory.
    code: AtomicPtr<u8>,
    /// The address, and above it how often the record may still be reached before the engine has a look.
    place: AtomicU64,
}

// SAFETY: records point to code and records that outlive them; whoever writes one has its translations locked.
unsafe impl Send for Record {}

/// Offset of the code in a record.
pub(crate) const CODE: i32 = offset_of!(Record, code) as i32;
/// Offset of the handler's number.
pub(crate) const NUMBER: i32 = offset_of!(Record, parameters) as i32;
/// Offset of the first small parameter.
pub(crate) const SMALL: i32 = NUMBER + 2;
/// Offset of the wide parameter.
pub(crate) const WIDE: i32 = NUMBER + 8;
/// Offset of the address.
pub(crate) const PLACE: i32 = offset_of!(Record, place) as i32;
/// Offset of the count above the address.
pub(crate) const HEAT: i32 = PLACE + 6;

impl Record {
    fn new(pc: u64, code: *const u8) -> Record {
        let parameters = kernel::Record::default();
        let place = AtomicU64::new(pc & ADDRESS | u64::from(MOST_HEAT) << 48);
        Record { code: AtomicPtr::new(code.cast_mut()), parameters, place }
    }

    /// What to run.
    pub(crate) fn code(&self) -> *const u8 {
        self.code.load(Ordering::Acquire)
    }

    /// Changes what to run.
    pub(crate) fn set_code(&self, code: *const u8) {
        self.code.store(code.cast_mut(), Ordering::Release);
    }

    /// Handler and parameters.
    pub(crate) fn parameters(&self) -> kernel::Record {
        self.parameters
    }

    /// The address.
    pub(crate) fn pc(&self) -> u64 {
        let place = self.place.load(Ordering::Relaxed) << HEAT_BITS;
        (place as i64 >> HEAT_BITS) as u64
    }

    /// True if it was filled in.
    pub(crate) fn is_decoded(&self) -> bool {
        self.parameters.handler() != kernel::NOT_DECODED
    }

    /// How often it may be reached before the engine has a look.
    pub(crate) fn heat(&self) -> u32 {
        (self.place.load(Ordering::Relaxed) >> 48) as u32
    }

    /// Sets how often it may be reached before the engine has a look.
    pub(crate) fn set_heat(&self, heat: u32) {
        let heat = u64::from(heat.min(MOST_HEAT));
        self.place.store(self.pc() & ADDRESS | heat << 48, Ordering::Relaxed);
    }

    /// Fills in everything but the code.
    pub(crate) fn fill(&mut self, parameters: kernel::Record) {
        self.parameters = parameters;
    }

    /// A record that leads to an address by other code than what runs there. Nobody counts how often it is reached.
    pub(crate) fn gate(pc: u64, code: *const u8) -> Record {
        let gate = Record::new(pc, code);
        gate.set_heat(UNCOUNTED);
        gate
    }

    /// A copy that runs other code.
    pub(crate) fn with_code(&self, code: *const u8) -> Record {
        let code = AtomicPtr::new(code.cast_mut());
        let place = AtomicU64::new(self.place.load(Ordering::Relaxed));
        Record { code, parameters: self.parameters, place }
    }
}

/// Records of neighbouring instructions, and one more that leads to the next sheet.
pub(crate) struct Sheet([Record; SHEET + 1]);

/// Logarithm of the number of sheets in a folder.
pub(crate) const LOG_FOLDER: u32 = 6;

/// Neighbouring sheets, or null.
pub(crate) struct Folder([AtomicPtr<Sheet>; 1 << LOG_FOLDER]);

/// Where records are found: a pointer for every folder that memory has room for, or null. Any thread may look.
pub(crate) enum Table {
    Allocated(Box<[AtomicPtr<Folder>]>),
    /// For memory of which little is used: the system need not have room for all of it.
    Sparse(MmapMut),
}

impl Table {
    fn new(memory_size: u64, is_sparse: bool) -> Table {
        let count = memory_size.div_ceil(SHEET_BYTES << LOG_FOLDER) as usize;
        let bytes = (count * size_of::<AtomicPtr<Folder>>()) as u64;
        if let Some(mapping) = is_sparse.then(|| sparse_zeros(bytes).ok()).flatten() {
            return Table::Sparse(mapping);
        }
        // SAFETY: all bits zero are a null pointer. Large tables take no memory where nobody looks.
        Table::Allocated(unsafe { Box::new_zeroed_slice(count).assume_init() })
    }

    fn folders(&self) -> &[AtomicPtr<Folder>] {
        match self {
            Table::Allocated(folders) => folders,
            Table::Sparse(mapping) => {
                let count = mapping.len() / size_of::<AtomicPtr<Folder>>();
                // SAFETY: it is as long, aligned to a page, and started as null pointers.
                unsafe { std::slice::from_raw_parts(mapping.as_ptr().cast(), count) }
            }
        }
    }

    /// As running code sees it.
    pub(crate) fn as_ptr(&self) -> *const AtomicPtr<Folder> {
        self.folders().as_ptr()
    }

    /// The record of an address in memory, if it is there.
    pub(crate) fn get(&self, pc: u64) -> Option<*mut Record> {
        let sheet = self.sheet(pc / SHEET_BYTES)?;
        // SAFETY: sheets stay as long as their folder points to them, and the index is that of a record.
        Some(unsafe { &raw mut (*sheet).0[(pc % SHEET_BYTES / 4) as usize] })
    }

    fn sheet(&self, number: u64) -> Option<*mut Sheet> {
        let folder = self.folders().get((number >> LOG_FOLDER) as usize)?.load(Ordering::Acquire);
        // SAFETY: folders stay as long as the table points to them.
        let folder = unsafe { folder.as_ref() }?;
        let sheet = folder.0[number as usize % folder.0.len()].load(Ordering::Acquire);
        (!sheet.is_null()).then_some(sheet)
    }
}

/// A table, and the folders in it. Whose the sheets are is another question.
pub(crate) struct Links {
    table: Arc<Table>,
    /// What was made, to be freed.
    made: Vec<*mut Folder>,
}

// SAFETY: the pointers are to what the links own, and to sheets that live as long as their users.
unsafe impl Send for Links {}

impl Links {
    /// No sheets of a memory of that size, of which little may be used.
    pub(crate) fn new(memory_size: u64, is_sparse: bool) -> Links {
        Links { table: Arc::new(Table::new(memory_size, is_sparse)), made: Vec::new() }
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Adds the sheet with an address in memory.
    pub(crate) fn add(&mut self, pc: u64, sheet: *mut Sheet) {
        let number = pc / SHEET_BYTES;
        let slot = &self.table.folders()[(number >> LOG_FOLDER) as usize];
        if slot.load(Ordering::Relaxed).is_null() {
            let folder = Folder(std::array::from_fn(|_| AtomicPtr::default()));
            let folder = Box::into_raw(Box::new(folder));
            slot.store(folder, Ordering::Release);
            self.made.push(folder);
        }
        // SAFETY: as in `Table::sheet`.
        let folder = unsafe { &*slot.load(Ordering::Relaxed) };
        folder.0[number as usize % folder.0.len()].store(sheet, Ordering::Release);
    }

    /// Takes out the sheets of a range of addresses, which begin and end with sheets.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        for number in range.start / SHEET_BYTES..range.end / SHEET_BYTES {
            let folders = self.table.folders();
            let folder = folders[(number >> LOG_FOLDER) as usize].load(Ordering::Relaxed);
            // SAFETY: as in `Table::sheet`.
            if let Some(folder) = unsafe { folder.as_ref() } {
                let sheet = &folder.0[number as usize % folder.0.len()];
                sheet.store(std::ptr::null_mut(), Ordering::Relaxed);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.made.len() * size_of::<Folder>()
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        // SAFETY: `add` made them, and nobody runs with the table any more.
        self.made.drain(..).for_each(|folder| drop(unsafe { Box::from_raw(folder) }));
    }
}

/// All records of one view of memory.
pub(crate) struct Sheets {
    links: Links,
    /// What was made, to be freed.
    made: Vec<*mut Sheet>,
    /// Records of addresses outside memory that branches go to.
    outside: HashMap<u64, Box<Record>>,
    /// What a record runs that is not filled in.
    empty: *const u8,
}

impl Sheets {
    /// No records of a memory of that size, of which little may be used; `empty` is what new ones run.
    pub(crate) fn new(memory_size: u64, is_sparse: bool, empty: *const u8) -> Sheets {
        let links = Links::new(memory_size, is_sparse);
        Sheets { links, made: Vec::new(), outside: HashMap::new(), empty }
    }

    /// Where records are found, as long as the sheets are not cleared.
    pub(crate) fn table(&self) -> &Arc<Table> {
        self.links.table()
    }

    /// The sheet of an address in memory, which is made if there is none.
    pub(crate) fn sheet(&mut self, pc: u64) -> *mut Sheet {
        self.record(pc);
        self.table().sheet(pc / SHEET_BYTES).expect("it was made")
    }

    /// The record of an address, which is made if there is none.
    pub(crate) fn record(&mut self, pc: u64) -> *mut Record {
        let number = pc / SHEET_BYTES;
        let is_inside =
            pc.is_multiple_of(4) && number >> LOG_FOLDER < self.table().folders().len() as u64;
        if !is_inside {
            let made = || Box::new(Record::new(pc, self.empty));
            return &raw mut **self.outside.entry(pc).or_insert_with(made);
        }
        if self.table().sheet(number).is_none() {
            self.make(number);
        }
        self.table().get(pc).expect("it was made")
    }

    fn make(&mut self, number: u64) {
        let first = number * SHEET_BYTES;
        let record = |i| Record::new(first + 4 * i as u64, self.empty);
        let sheet = Box::into_raw(Box::new(Sheet(std::array::from_fn(record))));
        self.links.add(first, sheet);
        self.made.push(sheet);
    }

    /// The last record of the sheet with an address, which leads to the next sheet.
    pub(crate) fn last(&mut self, pc: u64) -> *mut Record {
        self.record(pc - pc % SHEET_BYTES).wrapping_add(SHEET)
    }

    /// What they take of memory, about.
    pub(crate) fn bytes(&self) -> u64 {
        let sheets = self.made.len() * size_of::<Sheet>();
        (sheets + self.links.bytes() + self.outside.len() * 2 * size_of::<Record>()) as u64
    }
}

impl Drop for Sheets {
    fn drop(&mut self) {
        // SAFETY: `make` made them, and nobody runs in them any more.
        self.made.drain(..).for_each(|sheet| drop(unsafe { Box::from_raw(sheet) }));
    }
}

/// Room for the records of instructions of which exactly so many are executed.
pub(crate) struct Scratch(Box<[Record]>);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch((0..=SHEET).map(|_| Record::new(0, std::ptr::null())).collect())
    }

    /// Puts copies of records there, which follow one another, and behind them one that runs `stop`; the first.
    pub(crate) fn copy(
        &mut self,
        copies: impl Iterator<Item = Record>,
        stop: *const u8,
    ) -> *const Record {
        let (mut count, mut next) = (0, 0);
        for copy in copies {
            next = copy.pc() + 4;
            self.0[count] = copy;
            count += 1;
        }
        self.0[count] = Record::new(next, stop);
        self.0.as_ptr()
    }
}
