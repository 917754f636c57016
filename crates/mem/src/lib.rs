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
//!
//! The pages of *mapped* memory ([`Space::mapped`]) have [`Permissions`]. A read may proceed there if its granule is
//! [`READABLE`], and the engine must ask the page if it is not.

mod bounds;
mod host;
mod image;
mod overheard;
mod pages;
mod permissions;
mod process;
mod raw;
mod space;
mod sparse;
mod tags;
mod written;

pub use bounds::Bounds;
pub use host::may_have;
pub use image::Image;
pub use overheard::Overheard;
pub use permissions::Permissions;
pub use process::ProcessMark;
pub use raw::{GuestMemory, RawMemory};
pub use space::{Frozen, PageSet, Space, View};
pub use sparse::sparse_zeros;
pub use tags::{branch_target, untagged};

/// Bytes in a page: the unit of copy-on-write and reset.
pub const PAGE: u64 = 4096;
/// Bytes in a granule: the unit in which stores are allowed.
pub const GRANULE: u64 = 64;
/// The engine must check accesses to this granule first.
pub const CLOSED: u8 = 0;
/// A store to this granule may proceed.
pub const OPEN: u8 = 1;
/// A read of up to [`GRANULE`] bytes that begins in this granule of mapped memory may proceed.
pub const READABLE: u8 = 2;
/// The bytes of this granule of mapped memory may be read. The last granules of a page may be so without being
/// [`READABLE`].
pub const HOLDS_READABLE: u8 = 4;
/// A read of up to [`FAR`] bytes that begins in this granule of mapped memory may proceed.
pub const READABLE_FAR: u8 = 8;
/// A store of up to [`GRANULE`] bytes that begins in this granule of mapped memory may proceed.
pub const OPEN_NEAR: u8 = 16;
/// A store of up to [`FAR`] bytes that begins in this granule of mapped memory may proceed.
pub const OPEN_FAR: u8 = 32;
/// Bytes of the longest access that the state of its first granule can tell of.
pub const FAR: u64 = 512;
