//! Descriptors.

use linux_raw_sys::general as raw;

use super::locks::{self, Asked};
use super::{Call, flags};
use crate::Errno;
use crate::answer::Answer;
use crate::descriptors::Descriptor;
use crate::files::Kind;
use crate::locks::Owner;
use crate::pipes::CAPACITY;
use crate::resources::Limit;

pub(super) fn close(call: &mut Call<'_>) -> Answer {
    let number = call.bits(0).into();
    let descriptor = call.process().descriptors.remove(number)?;
    release_locks(call, descriptor);
    call.kernel.close_file(descriptor.file);
    Ok(0)
}

/// A process loses its locks of a file with the first descriptor that it closes.
fn release_locks(call: &mut Call<'_>, descriptor: Descriptor) {
    if call.kernel.locks.is_empty() {
        return;
    }
    let pid = call.pid();
    if let Kind::Node(node) = call.kernel.files.get(descriptor.file).kind {
        call.kernel.locks.release(Owner::Process(pid), Some(node));
    }
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
        raw::F_GETLK => locks::get(call, Asked { of_file: false, waits: false }),
        raw::F_OFD_GETLK => locks::get(call, Asked { of_file: true, waits: false }),
        raw::F_SETLK => locks::set(call, Asked { of_file: false, waits: false }),
        raw::F_SETLKW => locks::set(call, Asked { of_file: false, waits: true }),
        raw::F_OFD_SETLK => locks::set(call, Asked { of_file: true, waits: false }),
        raw::F_OFD_SETLKW => locks::set(call, Asked { of_file: true, waits: true }),
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
