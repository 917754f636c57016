//! The bytes that every lane starts with.

use std::fs::File;
use std::io;

use memmap2::{MmapMut, MmapOptions};

use crate::{PAGE, RawMemory};

/// The initial contents of guest memory, in a file that lanes can map copy-on-write.
pub struct Image {
    file: File,
    bytes: MmapMut,
}

impl Image {
    /// Makes a zeroed image of `size` bytes, a non-zero multiple of [`PAGE`].
    pub fn new(size: u64) -> io::Result<Image> {
        if size == 0 || !size.is_multiple_of(PAGE) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a whole number of pages"));
        }
        let file = anonymous_file()?;
        file.set_len(size)?;
        // SAFETY: nobody else has the file, and it is never truncated.
        let bytes = unsafe { MmapOptions::new().no_reserve_swap().map_mut(&file)? };
        Ok(Image { file, bytes })
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the contents.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the contents, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Returns the contents as guests see them.
    pub fn raw(&mut self) -> RawMemory<'_> {
        let (base, size) = (self.bytes.as_mut_ptr(), self.size());
        // SAFETY: the image stays mapped while it is borrowed, and borrowed mutably nobody else refers to its bytes.
        unsafe { RawMemory::new(base, size) }
    }

    /// Maps the same bytes a second time: a change in one mapping is visible in the other.
    pub(crate) fn map_shared(&self) -> io::Result<MmapMut> {
        // SAFETY: as in `new`; both mappings are handed out by this crate, which documents the aliasing.
        unsafe { MmapOptions::new().no_reserve_swap().map_mut(&self.file) }
    }

    /// Maps a copy-on-write view: it starts as the image and keeps its own changes.
    pub(crate) fn map_private(&self) -> io::Result<MmapMut> {
        // SAFETY: as in `new`.
        unsafe { MmapOptions::new().no_reserve_swap().map_copy(&self.file) }
    }
}

#[cfg(target_os = "linux")]
fn anonymous_file() -> io::Result<File> {
    let fd = rustix::fs::memfd_create("kvrm-image", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(fd.into())
}

#[cfg(not(target_os = "linux"))]
fn anonymous_file() -> io::Result<File> {
    tempfile::tempfile()
}
