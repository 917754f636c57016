//! Locks of files.

use linux_raw_sys::general as raw;

use super::Call;
use crate::Errno;
use crate::answer::{Answer, Refusal, Wait};
use crate::files::{FileId, Kind};
use crate::layout::FileLock;
use crate::locks::{Lock, Owner};
use crate::vfs::NodeId;

/// Which kind of lock `fcntl` is asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// It belongs to the open file, not to the process.
    pub(super) of_file: bool,
    pub(super) waits: bool,
}

fn lockable(call: &mut Call<'_>, id: FileId) -> Result<NodeId, Errno> {
    match call.kernel.files.get(id).kind {
        Kind::Node(node) | Kind::Device(_, node) => Ok(node),
        _ => Err(Errno::BADF),
    }
}

/// The part of a file that a guest means.
fn part(call: &mut Call<'_>, id: FileId, node: NodeId, lock: &FileLock) -> Answer<(u64, u64)> {
    let base = match lock.whence as u32 {
        raw::SEEK_SET => 0,
        raw::SEEK_CUR => call.kernel.files.get(id).offset as i64,
        raw::SEEK_END => call.kernel.vfs.stat(node)?.size as i64,
        _ => return Err(Errno::INVAL.into()),
    };
    let start = base.checked_add(lock.start).ok_or(Errno::OVERFLOW)?;
    let (start, end) = match lock.len {
        0 => (start, i64::MAX),
        len if len > 0 => (start, start.saturating_add(len)),
        len => (start.saturating_add(len), start),
    };
    match (u64::try_from(start), u64::try_from(end)) {
        (Ok(start), Ok(end)) => Ok((start, end)),
        _ => Err(Errno::INVAL.into()),
    }
}

fn wanted(call: &mut Call<'_>, asked: Asked, lock: &FileLock) -> Answer<Lock> {
    let id = call.file(0)?;
    let node = lockable(call, id)?;
    let (start, end) = part(call, id, node, lock)?;
    let owner = match asked.of_file {
        true => Owner::Record(id),
        false => Owner::Process(call.pid()),
    };
    Ok(Lock { node, owner, writes: lock.kind as u32 == raw::F_WRLCK, start, end })
}

pub(super) fn get(call: &mut Call<'_>, asked: Asked) -> Answer {
    let addr = call.args[2];
    let lock: FileLock = call.read(addr)?;
    let wanted = wanted(call, asked, &lock)?;
    let found = match call.kernel.locks.conflict(&wanted) {
        None => FileLock { kind: raw::F_UNLCK as i16, ..lock },
        Some(other) => FileLock {
            kind: if other.writes { raw::F_WRLCK } else { raw::F_RDLCK } as i16,
            whence: raw::SEEK_SET as i16,
            start: other.start as i64,
            len: if other.end == i64::MAX as u64 { 0 } else { (other.end - other.start) as i64 },
            pid: match other.owner {
                Owner::Process(pid) => pid as i32,
                Owner::Record(_) | Owner::Whole(_) => -1,
            },
            ..lock
        },
    };
    call.write(addr, &found)?;
    Ok(0)
}

pub(super) fn set(call: &mut Call<'_>, asked: Asked) -> Answer {
    let lock: FileLock = call.read(call.args[2])?;
    let id = call.file(0)?;
    let mode = call.kernel.files.get(id).mode;
    let wanted = wanted(call, asked, &lock)?;
    match lock.kind as u32 {
        raw::F_RDLCK if !mode.reads => return Err(Errno::BADF.into()),
        raw::F_WRLCK if !mode.writes => return Err(Errno::BADF.into()),
        raw::F_RDLCK | raw::F_WRLCK => {}
        raw::F_UNLCK => {
            call.kernel.locks.remove(&wanted);
            call.kernel.note();
            return Ok(0);
        }
        _ => return Err(Errno::INVAL.into()),
    }
    take(call, wanted, asked.waits)
}

fn take(call: &mut Call<'_>, lock: Lock, waits: bool) -> Answer {
    match call.kernel.locks.set(lock) {
        Ok(()) => {
            // A lock that was weakened may let others in.
            call.kernel.note();
            Ok(0)
        }
        Err(Errno::AGAIN) if waits => Err(Wait::for_ever()),
        Err(errno) => Err(Refusal::Errno(errno)),
    }
}

pub(super) fn flock(call: &mut Call<'_>) -> Answer {
    const SHARED: u32 = 1;
    const EXCLUSIVE: u32 = 2;
    const NONBLOCKING: u32 = 4;
    const UNLOCK: u32 = 8;
    let id = call.file(0)?;
    let node = lockable(call, id)?;
    let operation = call.bits(1);
    let lock = Lock {
        node,
        owner: Owner::Whole(id),
        writes: operation & EXCLUSIVE != 0,
        start: 0,
        end: u64::MAX,
    };
    match operation & !NONBLOCKING {
        UNLOCK => {
            call.kernel.locks.remove(&lock);
            call.kernel.note();
            Ok(0)
        }
        SHARED | EXCLUSIVE => take(call, lock, operation & NONBLOCKING == 0),
        _ => Err(Errno::INVAL.into()),
    }
}
