//! Descriptors.

use linux_raw_sys::general as raw;

use super::{Call, flags};
use crate::Errno;
use crate::answer::Answer;
use crate::descriptors::Descriptor;
use crate::files::Kind;
use crate::layout::FileLock;
use crate::pipes::CAPACITY;
use crate::resources::Limit;

pub(super) fn close(call: &mut Call<'_>) -> Answer {
    let number = call.bits(0).into();
    let descriptor = call.process().descriptors.remove(number)?;
    call.kernel.close_file(descriptor.file);
    Ok(0)
}

pub(super) fn close_range(call: &mut Call<'_>) -> Answer {
    const UNSHARE: u32 = 2;
    const CLOSES_ON_EXEC: u32 = 4;
    let (first, last, how) = (call.bits(0), call.bits(1), call.bits(2));
    if first > last || how & !(UNSHARE | CLOSES_ON_EXEC) != 0 {
        return Err(Errno::INVAL.into());
    }
    for number in call.process().descriptors.within(first, last) {
        if how & CLOSES_ON_EXEC != 0 {
            call.process().descriptors.set_closes_on_exec(number.into(), true)?;
        } else {
            let descriptor = call.process().descriptors.remove(number.into())?;
            call.kernel.close_file(descriptor.file);
        }
    }
    Ok(0)
}

pub(super) fn dup(call: &mut Call<'_>) -> Answer {
    duplicate(call, 0, false)
}

/// The same file with the lowest free number from `least` on.
fn duplicate(call: &mut Call<'_>, least: u32, closes_on_exec: bool) -> Answer {
    let file = call.file(0)?;
    let limit = call.process().resources.open_files();
    if u64::from(least) >= limit {
        return Err(Errno::INVAL.into());
    }
    match call.process().descriptors.add(least, limit, Descriptor { file, closes_on_exec }) {
        Ok(number) => {
            call.kernel.files.share(file);
            Ok(number.into())
        }
        Err(errno) => {
            call.kernel.report.hit(Limit::OpenFiles);
            Err(errno.into())
        }
    }
}

pub(super) fn dup3(call: &mut Call<'_>) -> Answer {
    let (from, to, flags) = (call.bits(0), call.bits(1), call.bits(2));
    if flags & !flags::CLOEXEC != 0 || from == to {
        return Err(Errno::INVAL.into());
    }
    let file = call.file(0)?;
    if u64::from(to) >= call.process().resources.open_files() {
        return Err(Errno::BADF.into());
    }
    call.kernel.files.share(file);
    let descriptor = Descriptor { file, closes_on_exec: flags & flags::CLOEXEC != 0 };
    if let Some(old) = call.process().descriptors.set(to, descriptor) {
        call.kernel.close_file(old.file);
    }
    Ok(to.into())
}

pub(super) fn fcntl(call: &mut Call<'_>) -> Answer {
    // Linux has these two in another header.
    const SETPIPE_SIZE: u32 = 1031;
    const GETPIPE_SIZE: u32 = 1032;
    let (number, argument) = (call.bits(0), call.args[2]);
    let id = call.file(0)?;
    match call.bits(1) {
        raw::F_DUPFD => duplicate(call, argument as u32, false),
        raw::F_DUPFD_CLOEXEC => duplicate(call, argument as u32, true),
        raw::F_GETFD => Ok(call.process().descriptors.get(number.into())?.closes_on_exec.into()),
        raw::F_SETFD => {
            let closes = argument as u32 & raw::FD_CLOEXEC != 0;
            call.process().descriptors.set_closes_on_exec(number.into(), closes)?;
            Ok(0)
        }
        raw::F_GETFL => Ok(call.kernel.files.get(id).mode.bits().into()),
        raw::F_SETFL => {
            call.kernel.files.get_mut(id).mode.set_bits(argument as u32);
            Ok(0)
        }
        raw::F_GETLK | raw::F_OFD_GETLK => {
            let lock: FileLock = call.read(argument)?;
            call.write(argument, &FileLock { kind: raw::F_UNLCK as i16, ..lock })?;
            Ok(0)
        }
        raw::F_SETLK | raw::F_SETLKW | raw::F_OFD_SETLK | raw::F_OFD_SETLKW => lock(call, argument),
        raw::F_GETOWN | raw::F_SETOWN | raw::F_GETSIG | raw::F_SETSIG => Ok(0),
        GETPIPE_SIZE | SETPIPE_SIZE => {
            let Kind::Pipe { pipe } = call.kernel.files.get(id).kind else {
                return Err(Errno::BADF.into());
            };
            let number = pipe;
            let pipe = call.kernel.files.pipes.get(number);
            if call.args[1] as u32 == SETPIPE_SIZE {
                let size = (argument as u32 as usize).next_power_of_two().max(4096);
                if size > 16 * CAPACITY {
                    return Err(Errno::PERM.into());
                }
                if size < pipe.bytes.len() {
                    return Err(Errno::BUSY.into());
                }
                let more = size.saturating_sub(pipe.capacity);
                if more > 0 && !call.kernel.files.pipes.has_room(more) {
                    return Err(Errno::PERM.into());
                }
                call.kernel.files.pipes.get(number).capacity = size;
            }
            Ok(call.kernel.files.pipes.get(number).capacity as u64)
        }
        _ => Err(Errno::INVAL.into()),
    }
}

/// Locks of records: processes of a run never get in each other's way.
fn lock(call: &mut Call<'_>, addr: u64) -> Answer {
    let lock: FileLock = call.read(addr)?;
    let id = call.file(0)?;
    let mode = call.kernel.files.get(id).mode;
    match lock.kind as u32 {
        raw::F_RDLCK if !mode.reads => Err(Errno::BADF.into()),
        raw::F_WRLCK if !mode.writes => Err(Errno::BADF.into()),
        raw::F_RDLCK | raw::F_WRLCK | raw::F_UNLCK => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(super) fn flock(call: &mut Call<'_>) -> Answer {
    const NONBLOCKING: u32 = 4;
    call.file(0)?;
    match call.bits(1) & !NONBLOCKING {
        1 | 2 | 8 => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}
