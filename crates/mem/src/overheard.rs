//! Memory whose accesses somebody hears of.

use kvrm_ir::{Access, Order, Type};

use crate::{GuestMemory, RawMemory};

/// Memory that tells of every access that it allows, before the access is made. Whoever hears of it may refuse, with the first
/// address that may not be accessed.
pub struct Overheard<'m, F> {
    memory: RawMemory<'m>,
    hear: F,
}

impl<'m, F: Fn(Access, u64, u32) -> Result<(), u64>> Overheard<'m, F> {
    /// Returns the same memory, which calls `hear` with the kind, the address and the length of each access.
    pub fn new(memory: RawMemory<'m>, hear: F) -> Overheard<'m, F> {
        Overheard { memory, hear }
    }
}

impl<F: Fn(Access, u64, u32) -> Result<(), u64>> GuestMemory for Overheard<'_, F> {
    fn probe(&self, access: Access, addr: u64, len: u32) -> Result<(), u64> {
        self.memory.probe(access, addr, len)?;
        (self.hear)(access, addr, len)
    }

    fn probe_fetch(&self, addr: u64) -> Result<(), u64> {
        self.memory.probe_fetch(addr)
    }

    fn is_mapped(&self) -> bool {
        self.memory.is_mapped()
    }

    fn load(&self, ty: Type, order: Order, addr: u64) -> u64 {
        self.memory.load(ty, order, addr)
    }

    fn store(&self, ty: Type, order: Order, addr: u64, value: u64) {
        self.memory.store(ty, order, addr, value);
    }

    fn cas(&self, ty: Type, addr: u64, expected: u64, new: u64) -> u64 {
        self.memory.cas(ty, addr, expected, new)
    }

    fn cas128(&self, addr: u64, expected: [u64; 2], new: [u64; 2]) -> [u64; 2] {
        self.memory.cas128(addr, expected, new)
    }
}
