//! Files in memory of which only what was written takes memory.

use std::fs::File;
use std::io;
use std::ops::Range;

use memmap2::{MmapMut, MmapOptions};

/// A file without a name, zero at the start. Only the parts that were written take memory, also where the system promises
/// no more memory than it has.
pub(crate) struct SparseFile(File);

impl SparseFile {
    /// Makes a file of so many bytes, all zero.
    pub(crate) fn new(size: u64) -> io::Result<SparseFile> {
        let file = anonymous_file()?;
        file.set_len(size)?;
        Ok(SparseFile(file))
    }

    /// Maps the bytes: a change in one mapping is visible in all others.
    pub(crate) fn map_shared(&self) -> io::Result<MmapMut> {
        // SAFETY: nobody else has the file, and it is never truncated. All mappings are handed out by this crate, which
        // documents the aliasing.
        unsafe { MmapOptions::new().no_reserve_swap().map_mut(&self.0) }
    }

    /// Maps a copy-on-write view: it starts as the file and keeps its own changes.
    pub(crate) fn map_private(&self) -> io::Result<MmapMut> {
        // SAFETY: as in `map_shared`.
        unsafe { MmapOptions::new().no_reserve_swap().map_copy(&self.0) }
    }
}

/// Maps `len` bytes, at least one, all zero, of which only what is written takes memory, also where the system promises
/// no more memory than it has.
///
/// ```
/// let mut bytes = kvrm_mem::sparse_zeros(1 << 30)?;
/// bytes[1 << 20] = 7;
/// assert_eq!((bytes[0], bytes[1 << 20]), (0, 7));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn sparse_zeros(len: u64) -> io::Result<MmapMut> {
    SparseFile::new(len)?.map_shared()
}

#[cfg(target_os = "linux")]
impl SparseFile {
    /// Makes bytes zero again and gives their memory back.
    pub(crate) fn discard(&self, bytes: Range<u64>) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        if bytes.is_empty() {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(&self.0, flags, bytes.start, bytes.end - bytes.start)?)
    }

    /// Writes bytes; false if that did not work. Takes less time than writing to a mapping whose pages are not there yet.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> bool {
        use std::os::unix::fs::FileExt;
        self.0.write_all_at(bytes, at).is_ok()
    }

    /// Writes parts of `bytes` where they are in there.
    pub(crate) fn write_parts(
        &self,
        parts: impl Iterator<Item = Range<usize>>,
        bytes: &[u8],
    ) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        parts
            .into_iter()
            .try_for_each(|part| self.0.write_all_at(&bytes[part.clone()], part.start as u64))
    }

    /// The first part, at `start` or behind it, that was written.
    pub(crate) fn written_after(&self, start: u64) -> io::Result<Option<Range<u64>>> {
        use rustix::fs::{SeekFrom, seek};
        let start = match seek(&self.0, SeekFrom::Data(start)) {
            Err(rustix::io::Errno::NXIO) => return Ok(None),
            start => start?,
        };
        Ok(Some(start..seek(&self.0, SeekFrom::Hole(start))?))
    }
}

#[cfg(target_os = "linux")]
fn anonymous_file() -> io::Result<File> {
    let fd = rustix::fs::memfd_create("kvrm-image", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(fd.into())
}

#[cfg(not(target_os = "linux"))]
impl SparseFile {
    pub(crate) fn discard(&self, _: Range<u64>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn write(&self, _: u64, _: &[u8]) -> bool {
        false
    }

    pub(crate) fn write_parts(
        &self,
        _: impl Iterator<Item = Range<usize>>,
        _: &[u8],
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn written_after(&self, _: u64) -> io::Result<Option<Range<u64>>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(not(target_os = "linux"))]
fn anonymous_file() -> io::Result<File> {
    tempfile::tempfile()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn only_what_was_written_takes_memory() {
        let file = SparseFile::new(1 << 39).unwrap();
        let mut bytes = file.map_shared().unwrap();
        bytes[0x1234] = 1;
        bytes[(1 << 38) + 5] = 2;
        let taken = || file.0.metadata().unwrap().blocks();
        let both = taken();
        assert!(both > 0);
        file.discard(1 << 38..1 << 39).unwrap();
        assert_eq!((taken(), bytes[0x1234], bytes[(1 << 38) + 5]), (both / 2, 1, 0));
        file.discard(0x1235..0x1300).unwrap();
        assert_eq!(bytes[0x1234], 1, "only these bytes become zero");
    }

    #[test]
    fn parts_that_were_written_are_found() {
        let file = SparseFile::new(1 << 39).unwrap();
        let mut bytes = file.map_shared().unwrap();
        let last = (1 << 39) - 1;
        (bytes[0x5000], bytes[last]) = (5, 6);
        assert_eq!(file.written_after(0).unwrap(), Some(0x5000..0x6000));
        assert_eq!(file.written_after(0x6000).unwrap(), Some(last as u64 + 1 - 0x1000..1 << 39));
        let copy = SparseFile::new(1 << 39).unwrap();
        copy.write_parts([0x5000..0x5002, last..last + 1].into_iter(), &bytes).unwrap();
        let copy = copy.map_shared().unwrap();
        assert_eq!([copy[0x5000], copy[last], copy[0x5002]], [5, 6, 0]);
    }
}
