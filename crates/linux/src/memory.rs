//! The memory of a process: which pages are mapped, and what of them.
//!
//! Everything lies low and close together, so that page tables stay small: the program at [`PROGRAM`] unless it insists
//! on its own addresses, the heap behind it, the stack below [`MAPPINGS`], and from there upwards what is mapped.
//! Addresses have 39 bits, as in a kernel with three levels of page tables.

mod areas;
mod charged;
mod saved;
mod space;
mod written;

pub use areas::{Area, Areas, Backing, Label};
pub use charged::Budget;
pub use kvrm_mem::Permissions;
pub(crate) use saved::Saved;
pub(crate) use space::out_of_memory;
pub use space::{Memory, Placement, Remap};

/// Bytes in a page.
pub const PAGE: u64 = 4096;
/// The end of all addresses.
pub const TOP: u64 = 1 << 39;
/// The lowest address that can be mapped.
pub const BOTTOM: u64 = 0x1_0000;
/// Where a program is loaded that can be anywhere.
pub const PROGRAM: u64 = 0x40_0000;
/// Where mappings begin whose address the kernel chooses.
pub const MAPPINGS: u64 = 0x2000_0000;
/// Bytes of the first thread's stack.
pub const STACK: u64 = 8 << 20;

/// Rounds up to whole pages; `None` if that is beyond all addresses.
pub fn page_up(addr: u64) -> Option<u64> {
    addr.checked_next_multiple_of(PAGE).filter(|addr| *addr <= TOP)
}

/// Rounds down to a whole page.
pub fn page_down(addr: u64) -> u64 {
    addr - addr % PAGE
}
