//! Guest address spaces on the host.
//!
//! A guest sees one flat memory from address 0 to its size. The bytes that every lane starts with are the
//! [`Image`]. A [`Space`] is the memory of a lane: either the image itself (shared memory), or a copy-on-write
//! view of it (private memory), which the operating system provides, so that a lane costs the pages it has
//! written.
//!
//! Besides its bytes, a space has one state byte per 64-byte *granule*. If the granule is [`OPEN`], a store may
//! proceed. If it is [`CLOSED`], the engine must check first, because the page has not been written since the
//! last reset, or because code was translated from the granule.

mod bounds;
mod host;
mod image;
mod process;
mod raw;
mod space;

pub use bounds::Bounds;
pub use host::may_have;
pub use image::Image;
pub use process::ProcessMark;
pub use raw::{GuestMemory, RawMemory};
pub use space::{PageSet, Space, View};

/// Bytes in a page: the unit of copy-on-write and reset.
pub const PAGE: u64 = 4096;
/// Bytes in a granule: the unit in which stores are allowed.
pub const GRANULE: u64 = 64;
/// The engine must check a store to this granule first.
pub const CLOSED: u8 = 0;
/// A store to this granule may proceed.
pub const OPEN: u8 = 1;
