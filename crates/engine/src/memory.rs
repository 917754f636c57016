//! Guest memory on a device, as the host reaches it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;

use kvrm_ir::{Access, Order, Type};
use kvrm_mem::{GuestMemory, PAGE};

use crate::EngineError;

/// The memory of all lanes: one that they share, or an image and the pages that lanes have written.
pub trait DeviceMemory {
    /// Bytes of guest memory.
    fn size(&self) -> u64;

    /// True if guests may not write.
    fn is_read_only(&self) -> bool;

    /// Reads as a lane sees it, or the image.
    fn read(&self, lane: Option<usize>, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError>;

    /// Writes a lane's memory.
    fn write(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError>;

    /// Changes the image, and the copies that lanes have of its pages.
    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError>;

    /// Makes room for more pages that lanes write.
    fn grow(&mut self) -> Result<(), EngineError>;

    /// True if some lane may have its own copy of a page.
    fn has_copies(&self) -> Result<bool, EngineError>;

    /// The lanes that have their own copy of a page.
    fn owners(&self, page: u64) -> Result<Vec<usize>, EngineError>;

    /// The pages that lanes have their own copies of, as lanes and page numbers.
    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError>;

    /// Forgets the copies that a lane has of pages.
    fn drop_pages(&mut self, lane: usize) -> Result<(), EngineError>;

    /// Forgets the copies that all lanes have.
    fn drop_all_pages(&mut self) -> Result<(), EngineError>;
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
pub(crate) struct Words<'a, M> {
    memory: &'a M,
    lane: Option<usize>,
    pages: RefCell<HashMap<u64, Option<Box<[u8; PAGE as usize]>>>>,
    /// The first failure of the device.
    error: Cell<Option<EngineError>>,
}

impl<'a, M: DeviceMemory> Words<'a, M> {
    pub(crate) fn new(memory: &'a M, lane: Option<usize>) -> Self {
        Words { memory, lane, pages: RefCell::default(), error: Cell::new(None) }
    }

    /// Fails if the device has.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        self.error.take().map_or(Ok(()), Err)
    }

    pub(crate) fn get(&self, pc: u64) -> Option<u32> {
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
pub(crate) struct LaneMemory<'a, M> {
    memory: RefCell<&'a mut M>,
    lane: usize,
    /// The first failure of the device.
    error: Cell<Option<EngineError>>,
}

impl<'a, M: DeviceMemory> LaneMemory<'a, M> {
    pub(crate) fn new(memory: &'a mut M, lane: usize) -> Self {
        LaneMemory { memory: RefCell::new(memory), lane, error: Cell::new(None) }
    }

    fn note(&self, result: Result<(), EngineError>) {
        if let Err(error) = result {
            self.error.set(self.error.take().or(Some(error)));
        }
    }

    /// Fails if the device has.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
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
