//! Reading and writing files.

use linux_raw_sys::general as raw;

use super::ancillary::Attached;
use super::{Call, MOST_BYTES};
use crate::Errno;
use crate::answer::{Answer, Refusal, Wait};
use crate::files::{FileId, Kind};
use crate::memory::Permissions;
use crate::vfs::Allocation;

impl Call<'_> {
    /// Waits instead, if there is nothing yet and the file is not opened otherwise.
    pub(super) fn wait_if_blocked<T>(&self, file: FileId, answer: Answer<T>) -> Answer<T> {
        match answer {
            Err(Refusal::Errno(Errno::AGAIN)) if !self.kernel.files.get(file).mode.nonblocking => {
                Err(Wait::for_ever())
            }
            answer => answer,
        }
    }

    /// Reads into buffers, until one is not filled.
    fn read_into(&mut self, file: FileId, mut at: Option<u64>, buffers: &[(u64, u64)]) -> Answer {
        if at.is_none() && self.is_socket(file) {
            // A look for nothing takes no message.
            return if buffers.is_empty() { Ok(0) } else { self.receive(file, buffers, 0) };
        }
        let mut total = 0;
        for (addr, len) in buffers {
            let most = (*len).min(MOST_BYTES - total);
            let len = self.memory().accessible(*addr, most, Permissions::WRITE);
            if len == 0 {
                return if total > 0 { Ok(total) } else { Err(Errno::FAULT.into()) };
            }
            let mut bytes = vec![0; len as usize];
            let answer = self.kernel.read_file(self.tid, file, at, &mut bytes);
            let read = match self.wait_if_blocked(file, answer) {
                Ok(read) => read,
                Err(_) if total > 0 => return Ok(total),
                Err(refusal) => return Err(refusal),
            };
            self.memory().write(*addr, &bytes[..read])?;
            total += read as u64;
            at = at.map(|at| at + read as u64);
            if (read as u64) < len {
                break;
            }
        }
        if buffers.is_empty() {
            self.kernel.read_file(self.tid, file, at, &mut [])?;
        }
        Ok(total)
    }

    /// Writes from buffers. A call that had to wait goes on where it was.
    fn write_from(&mut self, file: FileId, at: Option<u64>, buffers: &[(u64, u64)]) -> Answer {
        if at.is_none() && self.is_socket(file) {
            return self.send(file, buffers, 0, Attached::default());
        }
        let mut skip = self.thread().progress;
        for (addr, len) in buffers {
            if skip >= *len {
                skip -= len;
                continue;
            }
            let (mut addr, mut len) = (addr.wrapping_add(skip), len - skip);
            skip = 0;
            while len > 0 {
                let done = self.thread().progress;
                let written = self.write_some(file, at.map(|at| at + done), addr, len);
                let written = match written {
                    Ok(written) => written as u64,
                    Err(Refusal::Wait(wait)) => return Err(Refusal::Wait(wait)),
                    Err(_) if done > 0 => return Ok(done),
                    Err(refusal) => return Err(refusal),
                };
                self.thread().progress += written;
                (addr, len) = (addr + written, len - written);
                if written == 0 || self.thread().progress >= MOST_BYTES {
                    return Ok(self.thread().progress);
                }
            }
        }
        if buffers.is_empty() {
            self.kernel.write_file(self.tid, file, at, &[])?;
        }
        Ok(self.thread().progress)
    }

    fn write_some(&mut self, file: FileId, at: Option<u64>, addr: u64, len: u64) -> Answer<usize> {
        let mode = self.kernel.files.get(file).mode;
        if !mode.writes || mode.path_only {
            return Err(Errno::BADF.into());
        }
        let bytes = self.bytes(addr, len)?;
        let answer = self.kernel.write_file(self.tid, file, at, &bytes);
        match answer {
            // What was written is told rather than that there is no more room.
            Err(Refusal::Errno(Errno::AGAIN)) if mode.nonblocking => Err(Errno::AGAIN.into()),
            answer => self.wait_if_blocked(file, answer),
        }
    }

    fn one_buffer(&self) -> Vec<(u64, u64)> {
        let buffer = (self.args[1], self.args[2].min(i64::MAX as u64));
        if buffer.1 == 0 { Vec::new() } else { vec![buffer] }
    }

    /// An offset that was given.
    fn offset(&self, index: usize) -> Result<Option<u64>, Errno> {
        if (self.args[index] as i64) < 0 { Err(Errno::INVAL) } else { Ok(Some(self.args[index])) }
    }
}

pub(super) fn read(call: &mut Call<'_>) -> Answer {
    let file = call.file(0)?;
    call.read_into(file, None, &call.one_buffer())
}

pub(super) fn write(call: &mut Call<'_>) -> Answer {
    let file = call.file(0)?;
    call.write_from(file, None, &call.one_buffer())
}

pub(super) fn pread64(call: &mut Call<'_>) -> Answer {
    let (file, at) = (call.file(0)?, call.offset(3)?);
    call.read_into(file, at, &call.one_buffer())
}

pub(super) fn pwrite64(call: &mut Call<'_>) -> Answer {
    let (file, at) = (call.file(0)?, call.offset(3)?);
    call.write_from(file, at, &call.one_buffer())
}

pub(super) fn readv(call: &mut Call<'_>) -> Answer {
    let file = call.file(0)?;
    let buffers = call.buffers(call.args[1], call.args[2])?;
    call.read_into(file, None, &buffers)
}

pub(super) fn writev(call: &mut Call<'_>) -> Answer {
    let file = call.file(0)?;
    let buffers = call.buffers(call.args[1], call.args[2])?;
    call.write_from(file, None, &buffers)
}

pub(super) fn preadv(call: &mut Call<'_>) -> Answer {
    let (file, at) = (call.file(0)?, call.offset(3)?);
    let buffers = call.buffers(call.args[1], call.args[2])?;
    call.read_into(file, at, &buffers)
}

pub(super) fn pwritev(call: &mut Call<'_>) -> Answer {
    let (file, at) = (call.file(0)?, call.offset(3)?);
    let buffers = call.buffers(call.args[1], call.args[2])?;
    call.write_from(file, at, &buffers)
}

/// With flags, none of which is needed here; the offset -1 means where the last call ended.
pub(super) fn preadv2(call: &mut Call<'_>) -> Answer {
    if call.args[3] == u64::MAX { readv(call) } else { preadv(call) }
}

pub(super) fn pwritev2(call: &mut Call<'_>) -> Answer {
    if call.args[3] == u64::MAX { writev(call) } else { pwritev(call) }
}

pub(super) fn lseek(call: &mut Call<'_>) -> Answer {
    let id = call.file(0)?;
    let file = call.kernel.files.get(id);
    let (offset, by) = (file.offset, call.args[1] as i64);
    let node = match file.kind {
        Kind::Node(node) => node,
        Kind::Device(..) => return Ok(0),
        Kind::Console(_) | Kind::Pipe { .. } | Kind::Socket(_) => {
            return Err(Errno::SPIPE.into());
        }
        Kind::Event { .. } | Kind::Epoll(_) | Kind::Timer { .. } => return Err(Errno::SPIPE.into()),
    };
    if file.mode.path_only {
        return Err(Errno::BADF.into());
    }
    let is_directory = call.kernel.is_directory(call.tid, node);
    let new = call.kernel.with_vfs(call.tid, |vfs, _| {
        let base = match call.args[2] as u32 {
            raw::SEEK_SET => 0,
            raw::SEEK_CUR => offset,
            raw::SEEK_END if is_directory => return Err(Errno::INVAL),
            raw::SEEK_END => vfs.stat(node)?.size,
            raw::SEEK_DATA | raw::SEEK_HOLE if by < 0 => return Err(Errno::NXIO),
            raw::SEEK_DATA => return vfs.seek_data(node, by as u64),
            raw::SEEK_HOLE => return vfs.seek_hole(node, by as u64),
            _ => return Err(Errno::INVAL),
        };
        let new = (base as i64).checked_add(by).ok_or(Errno::OVERFLOW)?;
        u64::try_from(new).map_err(|_| Errno::INVAL)
    })?;
    let file = call.kernel.files.get_mut(id);
    file.offset = new;
    if is_directory && new == 0 {
        file.listing = None;
    }
    Ok(new)
}

/// The file to be changed by its descriptor.
fn writable_node(call: &mut Call<'_>) -> Answer<crate::vfs::NodeId> {
    let id = call.file(0)?;
    let file = call.kernel.files.get(id);
    match file.kind {
        Kind::Node(node) if file.mode.writes && !file.mode.path_only => Ok(node),
        Kind::Node(_) if file.mode.path_only => Err(Errno::BADF.into()),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(super) fn ftruncate(call: &mut Call<'_>) -> Answer {
    let node = writable_node(call)?;
    truncate_to(call, node, call.args[1] as i64)
}

pub(super) fn truncate(call: &mut Call<'_>) -> Answer {
    let path = call.path(0)?;
    let base = call.process().directory;
    let node = call.kernel.find(call.tid, base, &path, true)?;
    if call.kernel.is_directory(call.tid, node) {
        return Err(Errno::ISDIR.into());
    }
    truncate_to(call, node, call.args[1] as i64)
}

fn truncate_to(call: &mut Call<'_>, node: crate::vfs::NodeId, len: i64) -> Answer {
    let len = u64::try_from(len).map_err(|_| Errno::INVAL)?;
    if len > call.process().resources.file_size() {
        return Err(Errno::FBIG.into());
    }
    call.kernel.with_vfs(call.tid, |vfs, _| vfs.truncate(node, len))?;
    call.kernel.file_shortened(node)?;
    Ok(0)
}

pub(super) fn fallocate(call: &mut Call<'_>) -> Answer {
    const KEEP_SIZE: u32 = 1;
    const PUNCH_HOLE: u32 = 2;
    let [offset, len] = [call.args[2], call.args[3]].map(|number| number as i64);
    let id = call.file(0)?;
    let file = call.kernel.files.get(id);
    let Kind::Node(node) = file.kind else { return Err(Errno::SPIPE.into()) };
    if !file.mode.writes {
        return Err(Errno::BADF.into());
    }
    if offset < 0 || len <= 0 {
        return Err(Errno::INVAL.into());
    }
    let how = match call.bits(1) {
        0 => Allocation::Extend,
        KEEP_SIZE => Allocation::KeepSize,
        mode if mode == KEEP_SIZE | PUNCH_HOLE => Allocation::PunchHole,
        _ => return Err(Errno::OPNOTSUPP.into()),
    };
    let done =
        call.kernel.with_vfs(call.tid, |vfs, _| vfs.allocate(node, how, offset as u64, len as u64));
    if done == Err(Errno::NOSPC) {
        call.kernel.note_file_limit();
    }
    done?;
    Ok(0)
}

/// Nothing is ever unwritten.
pub(super) fn fsync(call: &mut Call<'_>) -> Answer {
    let id = call.file(0)?;
    match call.kernel.files.get(id).kind {
        Kind::Node(_) | Kind::Device(..) => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(super) fn sync(_: &mut Call<'_>) -> Answer {
    Ok(0)
}

pub(super) fn fadvise64(call: &mut Call<'_>) -> Answer {
    let id = call.file(0)?;
    match call.kernel.files.get(id).kind {
        Kind::Pipe { .. } => Err(Errno::SPIPE.into()),
        _ if call.args[3] > 5 => Err(Errno::INVAL.into()),
        _ => Ok(0),
    }
}

pub(super) fn sendfile(call: &mut Call<'_>) -> Answer {
    let (to, from) = (call.file(0)?, call.file(1)?);
    let at: Option<u64> = call.read_optional(call.args[2])?;
    check_place(at)?;
    let (moved, end) = copy(call, [from, to], [at, None], call.args[3])?;
    if at.is_some() {
        call.write(call.args[2], &end[0])?;
    }
    Ok(moved)
}

pub(super) fn copy_file_range(call: &mut Call<'_>) -> Answer {
    let (from, to) = (call.file(0)?, call.file(2)?);
    let is_node = |file: FileId| matches!(call.kernel.files.get(file).kind, Kind::Node(_));
    if !is_node(from) || !is_node(to) || call.args[5] != 0 {
        return Err(Errno::INVAL.into());
    }
    let places = [call.read_optional(call.args[1])?, call.read_optional(call.args[3])?];
    places.into_iter().try_for_each(check_place)?;
    let (moved, end) = copy(call, [from, to], places, call.args[4])?;
    for (index, place) in [(1, places[0]), (3, places[1])] {
        if place.is_some() {
            call.write(call.args[index], &end[usize::from(index == 3)])?;
        }
    }
    Ok(moved)
}

/// Copies between files of which one is a pipe.
pub(super) fn splice(call: &mut Call<'_>) -> Answer {
    let (from, to) = (call.file(0)?, call.file(2)?);
    let is_pipe = |file: FileId| matches!(call.kernel.files.get(file).kind, Kind::Pipe { .. });
    let ends = [is_pipe(from), is_pipe(to)];
    if !ends.contains(&true) {
        return Err(Errno::INVAL.into());
    }
    let places = [call.read_optional(call.args[1])?, call.read_optional(call.args[3])?];
    if ends
        .iter()
        .zip(places)
        .any(|(is_pipe, place): (&bool, Option<u64>)| *is_pipe && place.is_some())
    {
        return Err(Errno::SPIPE.into());
    }
    let most = match ends[1] {
        true => call.args[4].min(crate::pipes::CAPACITY as u64),
        false => call.args[4],
    };
    let (moved, end) = copy(call, [from, to], places, most)?;
    for (argument, place, end) in [(1, places[0], end[0]), (3, places[1], end[1])] {
        if place.is_some() {
            call.write(call.args[argument], &end)?;
        }
    }
    Ok(moved)
}

/// Offsets are positive.
fn check_place(at: Option<u64>) -> Result<(), Errno> {
    if at.is_some_and(|at| at > i64::MAX as u64) { Err(Errno::INVAL) } else { Ok(()) }
}

/// Copies from one file to another; how many bytes, and the offsets after that.
fn copy(
    call: &mut Call<'_>,
    [from, to]: [FileId; 2],
    [at, at_to]: [Option<u64>; 2],
    len: u64,
) -> Answer<(u64, [u64; 2])> {
    const PIECE: u64 = 1 << 16;
    let len = len.min(MOST_BYTES);
    let mut moved = 0;
    while moved < len {
        let place = at.map(|at| at + moved);
        let room = match call.kernel.files.get(to).kind {
            Kind::Pipe { pipe } => call.kernel.files.pipes.get(pipe).room() as u64,
            _ => PIECE,
        };
        if room == 0 && moved > 0 {
            break;
        }
        // A pipe that is full is written to, all the same, because that may have to wait or fail.
        let mut bytes = vec![0; (len - moved).min(PIECE).min(room.max(1)) as usize];
        let answer = call.kernel.read_file(call.tid, from, place, &mut bytes);
        let read = match call.wait_if_blocked(from, answer) {
            Ok(read) => read,
            Err(_) if moved > 0 => break,
            Err(refusal) => return Err(refusal),
        };
        if read == 0 {
            break;
        }
        let answer =
            call.kernel.write_file(call.tid, to, at_to.map(|at| at + moved), &bytes[..read]);
        let written = match call.wait_if_blocked(to, answer) {
            Ok(written) => written,
            Err(refusal) => {
                give_back(call, from, at, &bytes[..read]);
                return if moved > 0 { Ok((moved, ends(at, at_to, moved))) } else { Err(refusal) };
            }
        };
        moved += written as u64;
        if written < read {
            give_back(call, from, at, &bytes[written..read]);
            break;
        }
    }
    Ok((moved, ends(at, at_to, moved)))
}

fn ends(at: Option<u64>, at_to: Option<u64>, moved: u64) -> [u64; 2] {
    [at, at_to].map(|at| at.unwrap_or(0) + moved)
}

/// What was read and could not be written is still to be read.
fn give_back(call: &mut Call<'_>, from: FileId, at: Option<u64>, bytes: &[u8]) {
    let file = call.kernel.files.get_mut(from);
    match file.kind {
        Kind::Node(_) if at.is_none() => file.offset -= bytes.len() as u64,
        Kind::Pipe { pipe } => {
            let pipe = call.kernel.files.pipes.get(pipe);
            bytes.iter().rev().for_each(|byte| pipe.bytes.push_front(*byte));
        }
        _ => {}
    }
}
