//! The bytes that every lane starts with.

use std::io;
use std::sync::Arc;

use memmap2::MmapMut;

use crate::sparse::SparseFile;
use crate::{PAGE, RawMemory};

/// The initial contents of guest memory, in a file that lanes can map copy-on-write.
pub struct Image {
    pub(crate) file: Arc<SparseFile>,
    bytes: MmapMut,
}

impl Image {
    /// Makes a zeroed image of `size` bytes, a non-zero multiple of [`PAGE`].
    pub fn new(size: u64) -> io::Result<Image> {
        if size == 0 || !size.is_multiple_of(PAGE) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a whole number of pages"));
        }
        let file = Arc::new(SparseFile::new(size)?);
        let bytes = file.map_shared()?;
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
}
