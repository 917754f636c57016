//! Typed access to guest memory that other threads may be using.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use kvrm_ir::{Access, Order, Type};
use portable_atomic::AtomicU128;

use crate::Bounds;
use crate::pages::Pages;

/// A guest's memory as one instruction sees it. The specification of the IR defines the operations.
pub trait GuestMemory {
    /// Checks an access to `addr .. addr + len`; the error is the first address that may not be accessed.
    fn probe(&self, access: Access, addr: u64, len: u32) -> Result<(), u64>;
    /// Checks that the four bytes of an instruction may be fetched.
    fn probe_fetch(&self, addr: u64) -> Result<(), u64>;
    /// True if pages have permissions. Addresses may have [tags](crate::untagged) then: those of the other methods have none.
    fn is_mapped(&self) -> bool;
    /// Loads an unsigned value; no alignment is needed.
    fn load(&self, ty: Type, order: Order, addr: u64) -> u64;
    /// Stores the low bits of a value; no alignment is needed.
    fn store(&self, ty: Type, order: Order, addr: u64, value: u64);
    /// Compares and swaps atomically; returns the old contents. The address is aligned.
    fn cas(&self, ty: Type, addr: u64, expected: u64, new: u64) -> u64;
    /// Compares and swaps two consecutive `u64` atomically; returns the old contents. The address is aligned to
    /// 16 bytes.
    fn cas128(&self, addr: u64, expected: [u64; 2], new: [u64; 2]) -> [u64; 2];
}

/// A pointer to a guest's bytes, with bounds, for as long as they are borrowed.
///
/// Guest memory can be shared by lanes on several threads, so it is never a Rust reference.
#[derive(Clone, Copy)]
pub struct RawMemory<'m> {
    base: *mut u8,
    bounds: Bounds,
    /// If they have permissions.
    pages: Option<Pages<'m>>,
}

// SAFETY: the memory outlives its users (see `new`), and races on it are the guest's own.
unsafe impl Send for RawMemory<'_> {}
// SAFETY: as above.
unsafe impl Sync for RawMemory<'_> {}

impl<'m> RawMemory<'m> {
    /// Returns memory of `size` bytes at `base`.
    ///
    /// # Safety
    /// It must stay mapped for the lifetime of the result, and nobody may have a reference to its bytes.
    pub unsafe fn new(base: *mut u8, size: u64) -> RawMemory<'m> {
        let bounds = Bounds { size, read_only: false };
        RawMemory { base, bounds, pages: None }
    }

    /// Returns the same memory, which refuses every write.
    pub fn read_only(self) -> RawMemory<'m> {
        let bounds = Bounds { read_only: true, ..self.bounds };
        RawMemory { bounds, ..self }
    }

    /// Returns the same memory, whose pages have permissions.
    pub(crate) fn with_pages(self, pages: Option<Pages<'m>>) -> RawMemory<'m> {
        RawMemory { pages, ..self }
    }

    /// Lets accesses to the granules of the page with `addr` proceed, as far as mapped memory allows them. Those whose bit
    /// is set in `closed`, in that of the page or of the next, are not opened. One thread at a time may do so.
    pub fn admit(&self, addr: u64, closed: [u64; 2]) {
        self.pages.expect("memory is mapped").admit(addr, closed);
    }

    /// Notes that bytes of memory are written, if that is mapped.
    pub fn note_written(&self, addr: u64, len: u64) {
        if let Some(pages) = self.pages {
            pages.note_written(addr, len);
        }
    }

    /// Returns the numbers of watched ranges of mapped memory that some of these bytes are in.
    pub fn touched(&self, addr: u64, len: u64) -> impl Iterator<Item = usize> + 'm {
        self.pages.into_iter().flat_map(move |pages| pages.touched(addr, len))
    }

    /// Closes the granules of a page of mapped memory whose bit is set, for stores, while other threads may look at them.
    pub fn close(&self, page: u64, closed: u64) {
        self.pages.expect("memory is mapped").close(page, closed);
    }

    /// True if all granules of these bytes of mapped memory have a bit in their states.
    pub fn all_have(&self, bit: u8, addr: u64, len: u64) -> bool {
        self.pages.expect("memory is mapped").all_have(bit, addr, len)
    }

    /// Returns bytes in memory.
    ///
    /// # Safety
    /// Nobody may write them for the lifetime of the result.
    pub unsafe fn bytes(&self, range: Range<u64>) -> &'m [u8] {
        let len = range.end - range.start;
        assert!(range.end <= self.bounds.size, "{range:x?} is not in memory");
        // SAFETY: in bounds, as just checked, and mapped for as long; nobody writes, as was promised.
        unsafe { std::slice::from_raw_parts(self.base.add(range.start as usize), len as usize) }
    }

    fn at(&self, addr: u64, len: u32) -> *mut u8 {
        assert!(self.bounds.probe(Access::Read, addr, len).is_ok(), "unprobed access at {addr:#x}");
        // SAFETY: in bounds, as just checked.
        unsafe { self.base.add(addr as usize) }
    }
}

impl GuestMemory for RawMemory<'_> {
    fn probe(&self, access: Access, addr: u64, len: u32) -> Result<(), u64> {
        match self.pages {
            Some(pages) => pages.probe(access, addr, len),
            None => self.bounds.probe(access, addr, len),
        }
    }

    fn probe_fetch(&self, addr: u64) -> Result<(), u64> {
        match self.pages {
            Some(pages) => pages.probe_fetch(addr, 4),
            None => self.bounds.probe(Access::Read, addr, 4),
        }
    }

    fn is_mapped(&self) -> bool {
        self.pages.is_some()
    }

    fn load(&self, ty: Type, order: Order, addr: u64) -> u64 {
        let at = self.at(addr, ty.bytes());
        // SAFETY: `at` checked the bounds, and the reads need no alignment.
        let value = unsafe {
            match ty {
                Type::Bool | Type::U128 => unreachable!("accesses are of one to eight bytes"),
                Type::U8 => at.read().into(),
                Type::U16 => u16::from_le(at.cast::<u16>().read_unaligned()).into(),
                Type::U32 => u32::from_le(at.cast::<u32>().read_unaligned()).into(),
                Type::U64 => u64::from_le(at.cast::<u64>().read_unaligned()),
            }
        };
        if order == Order::AcquireRelease {
            fence(Ordering::SeqCst);
        }
        value
    }

    fn store(&self, ty: Type, order: Order, addr: u64, value: u64) {
        let at = self.at(addr, ty.bytes());
        if order == Order::AcquireRelease {
            fence(Ordering::SeqCst);
        }
        // SAFETY: `at` checked the bounds, and the writes need no alignment.
        unsafe {
            match ty {
                Type::Bool | Type::U128 => unreachable!("accesses are of one to eight bytes"),
                Type::U8 => at.write(value as u8),
                Type::U16 => at.cast::<u16>().write_unaligned((value as u16).to_le()),
                Type::U32 => at.cast::<u32>().write_unaligned((value as u32).to_le()),
                Type::U64 => at.cast::<u64>().write_unaligned(value.to_le()),
            }
        }
        if order == Order::AcquireRelease {
            fence(Ordering::SeqCst);
        }
    }

    fn cas(&self, ty: Type, addr: u64, expected: u64, new: u64) -> u64 {
        let at = self.at(addr, ty.bytes());
        macro_rules! exchange {
            ($atomic:ident, $int:ty) => {{
                // SAFETY: in bounds, as `at` checked, and aligned, as asserted before each use of this macro.
                let cell = unsafe { $atomic::from_ptr(at.cast()) };
                let (expected, new) = ((expected as $int).to_le(), (new as $int).to_le());
                let old = cell.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst);
                <$int>::from_le(old.unwrap_or_else(|old| old)).into()
            }};
        }
        assert!(addr.is_multiple_of(ty.bytes().into()), "unaligned atomic at {addr:#x}");
        match ty {
            Type::Bool | Type::U128 => unreachable!("accesses are of one to eight bytes"),
            Type::U8 => exchange!(AtomicU8, u8),
            Type::U16 => exchange!(AtomicU16, u16),
            Type::U32 => exchange!(AtomicU32, u32),
            Type::U64 => exchange!(AtomicU64, u64),
        }
    }

    fn cas128(&self, addr: u64, expected: [u64; 2], new: [u64; 2]) -> [u64; 2] {
        let at = self.at(addr, 16);
        assert!(addr.is_multiple_of(16), "unaligned atomic at {addr:#x}");
        let join = |[low, high]: [u64; 2]| (u128::from(high) << 64 | u128::from(low)).to_le();
        // SAFETY: in bounds and aligned, as just checked.
        let cell = unsafe { AtomicU128::from_ptr(at.cast()) };
        let old = cell
            .compare_exchange(join(expected), join(new), Ordering::SeqCst, Ordering::SeqCst)
            .unwrap_or_else(|old| old);
        let old = u128::from_le(old);
        [old as u64, (old >> 64) as u64]
    }
}
