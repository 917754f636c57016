//! A lane's memory as the host sees it when it decodes code or executes an instruction.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use kvrm_ir::{Access, Order, Type};
use kvrm_mem::{GuestMemory, PAGE};

use crate::EngineError;
use crate::memory::DeviceMemory;

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

    /// Fails if the device has failed.
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
            let at = pc / PAGE * PAGE;
            let read = match self.lane {
                Some(lane) => self.memory.read(lane, at, &mut bytes[..]),
                None => self.memory.read_flat(at, &mut bytes[..]),
            };
            match read {
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

    /// Fails if the device has failed.
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
        self.note(self.memory.borrow().read(self.lane, addr, part));
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
