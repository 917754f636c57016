//! What is in files.

use std::sync::Arc;

use cap_std::fs::{File, FileExt};

use super::Vfs;
use super::contents::Contents;
use super::node::{Id, Inner, Kind, NodeId, Source};
use super::proc::Processes;
use super::stat::FileType;
use crate::{Errno, Result};

/// The largest size of a file.
const LARGEST: u64 = i64::MAX as u64;
/// Bytes that are copied at once.
const COPY: usize = 1 << 16;

/// What `fallocate` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Allocates, and makes the file longer.
    Extend,
    /// Allocates, also behind the end of the file (`FALLOC_FL_KEEP_SIZE`).
    KeepSize,
    /// Makes a hole (`FALLOC_FL_PUNCH_HOLE`).
    PunchHole,
}

/// Where the bytes of a file are.
enum Bytes {
    Memory,
    /// On the host; the length is at most this.
    Host(Arc<File>, u64),
}

impl Vfs {
    /// Reads what there is at `offset`: nothing at the end. Files of `/proc` are made anew for each call.
    pub fn read(
        &mut self,
        processes: &dyn Processes,
        node: NodeId,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize> {
        match node.0 {
            Inner::Stored(id) => self.read_stored(id, offset, buffer),
            Inner::Generated(generated) => {
                let contents = self.generated_contents(processes, generated)?;
                let rest = contents.get(offset.min(LARGEST) as usize..).unwrap_or_default();
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }

    /// Reads a file that is not in `/proc`.
    pub(super) fn read_stored(&mut self, id: Id, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match self.bytes(id, false)? {
            Bytes::Memory => Ok(self.contents(id)?.read(offset, buffer)),
            Bytes::Host(file, len) => {
                let count = len.saturating_sub(offset).min(buffer.len() as u64) as usize;
                read_host(&file, offset, &mut buffer[..count])
            }
        }
    }

    /// Writes as much as the limits allow, and returns how much that was; an error only if it was nothing.
    pub fn write(&mut self, node: NodeId, offset: u64, bytes: &[u8]) -> Result<usize> {
        let id = node.id()?;
        self.contents(id)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let room = LARGEST.checked_sub(offset).filter(|room| *room > 0).ok_or(Errno::FBIG)?;
        let bytes = &bytes[..bytes.len().min(room as usize)];
        self.copy_up(id, LARGEST)?;
        let written = match self.bytes(id, true)? {
            Bytes::Memory => {
                let Kind::File(contents) = &mut self.nodes.get_mut(id)?.kind else {
                    return Err(Errno::INVAL);
                };
                contents.write(&mut self.usage, offset, bytes)?
            }
            Bytes::Host(file, _) => file.write_at(bytes, offset)?,
        };
        self.written(id)?;
        Ok(written)
    }

    /// Makes a file as long as this.
    pub fn truncate(&mut self, node: NodeId, len: u64) -> Result<()> {
        match self.type_of(node)? {
            FileType::Directory => return Err(Errno::ISDIR),
            FileType::Regular => {}
            _ => return Err(Errno::INVAL),
        }
        let id = node.id()?;
        if len > LARGEST {
            return Err(Errno::INVAL);
        }
        self.copy_up(id, len)?;
        match self.bytes(id, true)? {
            Bytes::Memory => {
                if let Kind::File(contents) = &mut self.nodes.get_mut(id)?.kind {
                    contents.truncate(&mut self.usage, len);
                }
            }
            Bytes::Host(file, _) => file.set_len(len)?,
        }
        self.written(id)
    }

    /// Allocates or makes a hole from `offset`, `len` bytes long.
    pub fn allocate(&mut self, node: NodeId, how: Allocation, offset: u64, len: u64) -> Result<()> {
        match self.type_of(node)? {
            FileType::Regular => {}
            FileType::Fifo => return Err(Errno::SPIPE),
            _ => return Err(Errno::NODEV),
        }
        if len == 0 || offset > LARGEST || len > LARGEST {
            return Err(Errno::INVAL);
        }
        let end = offset.checked_add(len).filter(|end| *end <= LARGEST).ok_or(Errno::FBIG)?;
        let id = node.id()?;
        self.copy_up(id, LARGEST)?;
        match self.bytes(id, true)? {
            Bytes::Memory => self.allocate_memory(id, how, offset, end)?,
            Bytes::Host(file, _) => allocate_host(&file, how, offset, end)?,
        }
        self.written(id)
    }

    fn allocate_memory(&mut self, id: Id, how: Allocation, offset: u64, end: u64) -> Result<()> {
        let Kind::File(contents) = &mut self.nodes.get_mut(id)?.kind else {
            return Err(Errno::INVAL);
        };
        match how {
            Allocation::PunchHole => contents.clear(&mut self.usage, offset, end),
            Allocation::KeepSize => contents.allocate(&mut self.usage, offset, end)?,
            Allocation::Extend => {
                contents.allocate(&mut self.usage, offset, end)?;
                let len = contents.len().max(end);
                contents.truncate(&mut self.usage, len);
            }
        }
        Ok(())
    }

    /// Returns the next place from `offset` with data (`SEEK_DATA`). On the host, everything counts as data.
    pub fn seek_data(&mut self, node: NodeId, offset: u64) -> Result<u64> {
        self.seek(node, offset, |contents| contents.data_from(offset).ok_or(Errno::NXIO), offset)
    }

    /// Returns the next place from `offset` that is a hole, or the end (`SEEK_HOLE`).
    pub fn seek_hole(&mut self, node: NodeId, offset: u64) -> Result<u64> {
        let len = self.stat(node)?.size;
        self.seek(node, offset, |contents| Ok(contents.hole_from(offset)), len)
    }

    fn seek(
        &mut self,
        node: NodeId,
        offset: u64,
        in_memory: impl FnOnce(&Contents) -> Result<u64>,
        on_host: u64,
    ) -> Result<u64> {
        if offset >= self.stat(node)?.size {
            return Err(Errno::NXIO);
        }
        let id = node.id().map_err(|_| Errno::INVAL)?;
        match self.bytes(id, false)? {
            Bytes::Memory => in_memory(self.contents(id)?),
            Bytes::Host(..) => Ok(on_host),
        }
    }

    fn contents(&self, id: Id) -> Result<&Contents> {
        match &self.nodes.get(id)?.kind {
            Kind::File(contents) => Ok(contents),
            Kind::Directory(_) => Err(Errno::ISDIR),
            Kind::Symlink(_) | Kind::Fifo | Kind::Device(_) | Kind::Special(_) => Err(Errno::INVAL),
        }
    }

    fn bytes(&mut self, id: Id, write: bool) -> Result<Bytes> {
        let len = self.contents(id)?.len();
        match &self.nodes.get(id)?.source {
            Source::Memory => Ok(Bytes::Memory),
            Source::Below(place) => {
                let place = place.clone();
                Ok(Bytes::Host(self.host.file(&place, false, None)?, len))
            }
            Source::Through(place, key) => {
                let (place, key) = (place.clone(), *key);
                // Who may write a file that others may not read has it open for both.
                let file = self.host.file(&place, write, Some(key));
                let file = file.or_else(|_| self.host.file(&place, true, Some(key)))?;
                Ok(Bytes::Host(file, LARGEST))
            }
            Source::Nameless(file) => Ok(Bytes::Host(file.clone(), LARGEST)),
        }
    }

    /// Before a host's file is changed that must stay as it is: copies it to memory, but not more than `most` bytes.
    fn copy_up(&mut self, id: Id, most: u64) -> Result<()> {
        let node = self.nodes.get(id)?;
        let (Source::Below(_), Kind::File(contents)) = (&node.source, &node.kind) else {
            return Ok(());
        };
        let len = contents.len().min(most);
        let mut copy = Contents::default();
        let copied = match len {
            0 => Ok(()),
            _ => self.copy_host(id, len, &mut copy),
        };
        if let Err(error) = copied {
            copy.drop_all(&mut self.usage);
            return Err(error);
        }
        copy.truncate(&mut self.usage, len);
        let node = self.nodes.get_mut(id)?;
        node.kind = Kind::File(copy);
        node.source = Source::Memory;
        Ok(())
    }

    fn copy_host(&mut self, id: Id, len: u64, copy: &mut Contents) -> Result<()> {
        let Bytes::Host(file, _) = self.bytes(id, false)? else { return Ok(()) };
        let mut buffer = vec![0; COPY];
        let mut at = 0;
        while at < len {
            let count = (len - at).min(COPY as u64) as usize;
            let count = read_host(&file, at, &mut buffer[..count])?;
            if count == 0 {
                break;
            }
            let bytes = &buffer[..count];
            let is_hole = bytes.iter().all(|byte| *byte == 0);
            if !is_hole && copy.write(&mut self.usage, at, bytes)? < count {
                return Err(Errno::NOSPC);
            }
            at += count as u64;
        }
        Ok(())
    }

    fn written(&mut self, id: Id) -> Result<()> {
        let now = self.now;
        let node = self.nodes.get_mut(id)?;
        node.changed = true;
        (node.attributes.mtime, node.attributes.ctime) = (now, now);
        Ok(())
    }
}

/// Reads until the buffer is full or the file ends.
fn read_host(file: &File, offset: u64, buffer: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if done == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(done)
}

#[cfg(target_os = "linux")]
fn allocate_host(file: &File, how: Allocation, offset: u64, end: u64) -> Result<()> {
    use rustix::fs::FallocateFlags;
    let flags = match how {
        Allocation::Extend => FallocateFlags::empty(),
        Allocation::KeepSize => FallocateFlags::KEEP_SIZE,
        Allocation::PunchHole => FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE,
    };
    let allocated = rustix::fs::fallocate(file, flags, offset, end - offset);
    Ok(allocated.map_err(std::io::Error::from)?)
}

#[cfg(not(target_os = "linux"))]
fn allocate_host(_: &File, _: Allocation, _: u64, _: u64) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}
