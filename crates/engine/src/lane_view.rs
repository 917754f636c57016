//! A lane's memory as the host sees it when it decodes code or executes an instruction.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use kvrm_ir::{Access, Order, Type};
use kvrm_mem::{GuestMemory, PAGE};

use crate::code::DecodedCode;
use crate::memory::DeviceMemory;
use crate::{EngineError, Lacking};

/// Words of a lane's memory, fetched from the device a page at a time.
pub(crate) struct Words<'a, M> {
    memory: &'a M,
    lane: usize,
    /// Pages that are fetched at most.
    most: usize,
    pages: RefCell<HashMap<u64, Option<Box<[u8; PAGE as usize]>>>>,
    /// The first failure of the device.
    error: Cell<Option<EngineError>>,
}

impl<'a, M: DeviceMemory> Words<'a, M> {
    pub(crate) fn new(memory: &'a M, lane: usize, most: usize) -> Self {
        Words { memory, lane, most, pages: RefCell::default(), error: Cell::new(None) }
    }

    /// Fails if the device has failed.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// The word at an address; `None` if there is none, or enough pages have been fetched.
    pub(crate) fn get(&self, pc: u64) -> Option<u32> {
        if !pc.is_multiple_of(4) || self.memory.probe_fetch(self.lane, pc).is_err() {
            return None;
        }
        let mut pages = self.pages.borrow_mut();
        if pages.len() >= self.most && !pages.contains_key(&(pc / PAGE)) {
            return None;
        }
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
    /// Where memory begins that its supervisor may access, while that runs.
    supervisors: Option<u64>,
    /// What has to know of writes before they happen. Without, nothing is written.
    code: Option<RefCell<&'a mut DecodedCode>>,
    /// The first failure of the device.
    error: Cell<Option<EngineError>>,
    lacking: Cell<Option<Lacking>>,
}

impl<'a, M: DeviceMemory> LaneMemory<'a, M> {
    pub(crate) fn new(memory: &'a mut M, lane: usize, code: Option<&'a mut DecodedCode>) -> Self {
        LaneMemory {
            memory: RefCell::new(memory),
            lane,
            supervisors: None,
            code: code.map(RefCell::new),
            error: Cell::new(None),
            lacking: Cell::new(None),
        }
    }

    /// The memory as the lane's supervisor sees it, to which what begins there belongs.
    pub(crate) fn of_supervisor(self, start: u64) -> Self {
        LaneMemory { supervisors: Some(start), ..self }
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

    /// What there was no room for, so that the lane was not allowed to write.
    pub(crate) fn lacking(&self) -> Option<Lacking> {
        self.lacking.get()
    }

    /// Gets all that the lane needs to write. What there is no room for.
    fn prepare(&self, addr: u64, len: u64) -> Result<Option<Lacking>, EngineError> {
        let mut memory = self.memory.borrow_mut();
        if let Some(code) = &self.code
            && !code.borrow_mut().before_write(&**memory, self.lane..self.lane + 1, addr, len)?
        {
            return Ok(Some(Lacking::Code));
        }
        match memory.own(self.lane, addr, len) {
            Err(EngineError::DeviceFull(_)) => Ok(Some(Lacking::Pages)),
            owned => owned.map(|()| None),
        }
    }
}

impl<M: DeviceMemory> GuestMemory for LaneMemory<'_, M> {
    fn probe(&self, access: Access, addr: u64, len: u32) -> Result<(), u64> {
        if self.supervisors.is_none_or(|start| addr < start) {
            self.memory.borrow().probe(self.lane, access, addr, len)?;
        }
        if access == Access::Read {
            return Ok(());
        }
        match self.prepare(addr, len.into()) {
            Ok(None) => Ok(()),
            Ok(lacking) => {
                self.lacking.set(lacking);
                Err(addr)
            }
            Err(error) => {
                self.note(Err(error));
                Err(addr)
            }
        }
    }

    fn probe_fetch(&self, addr: u64) -> Result<(), u64> {
        self.memory.borrow().probe_fetch(self.lane, addr)
    }

    fn is_mapped(&self) -> bool {
        self.memory.borrow().map().is_some()
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
