//! Pipes, events and timers as files.

use linux_raw_sys::general as raw;

use super::time::{alarm_left, new_alarm};
use super::{Call, flags};
use crate::Errno;
use crate::answer::Answer;
use crate::files::{Kind, Mode, OpenFile};
use crate::layout::IntervalSpec;
use crate::vfs::{At, OpenFlags};

pub(super) fn pipe2(call: &mut Call<'_>) -> Answer {
    let bits = call.bits(1);
    if bits & !(flags::CLOEXEC | flags::NONBLOCK | flags::DIRECT) != 0 {
        return Err(Errno::INVAL.into());
    }
    call.will_write(call.args[0], 8)?;
    let pipe = call.kernel.files.pipes.add(None);
    let (nonblocking, closes) = (bits & flags::NONBLOCK != 0, bits & flags::CLOEXEC != 0);
    let reads = Mode { reads: true, nonblocking, ..Mode::default() };
    let writes = Mode { writes: true, nonblocking, ..Mode::default() };
    let first =
        call.kernel.add_file(call.tid, OpenFile::new(Kind::Pipe { pipe }, reads), closes)?;
    let second = call.kernel.add_file(call.tid, OpenFile::new(Kind::Pipe { pipe }, writes), closes);
    let second = match second {
        Ok(second) => second,
        Err(refusal) => {
            let descriptor = call.process().descriptors.remove(first)?;
            call.kernel.close_file(descriptor.file);
            return Err(refusal);
        }
    };
    call.write(call.args[0], &[first as u32, second as u32])?;
    Ok(0)
}

/// Opens something that has no name, to be read and written.
fn open(call: &mut Call<'_>, kind: Kind, bits: u32) -> Answer {
    let mode = Mode::from_bits(flags::RDWR | bits & flags::NONBLOCK);
    call.kernel.add_file(call.tid, OpenFile::new(kind, mode), bits & flags::CLOEXEC != 0)
}

pub(super) fn eventfd2(call: &mut Call<'_>) -> Answer {
    let bits = call.bits(1);
    if bits & !(raw::EFD_SEMAPHORE | flags::CLOEXEC | flags::NONBLOCK) != 0 {
        return Err(Errno::INVAL.into());
    }
    let semaphore = bits & raw::EFD_SEMAPHORE != 0;
    let kind = Kind::Event { count: call.bits(0).into(), semaphore };
    open(call, kind, bits)
}

pub(super) fn timerfd_create(call: &mut Call<'_>) -> Answer {
    let bits = call.bits(1);
    let since_1970 = match call.bits(0) {
        raw::CLOCK_REALTIME | raw::CLOCK_REALTIME_ALARM => true,
        raw::CLOCK_MONOTONIC | raw::CLOCK_BOOTTIME | raw::CLOCK_BOOTTIME_ALARM => false,
        _ => return Err(Errno::INVAL.into()),
    };
    if bits & !(flags::CLOEXEC | flags::NONBLOCK) != 0 {
        return Err(Errno::INVAL.into());
    }
    let kind = Kind::Timer { alarm: None, since_1970 };
    open(call, kind, bits)
}

pub(super) fn timerfd_settime(call: &mut Call<'_>) -> Answer {
    const ABSOLUTE: u32 = 1;
    const CANCEL_ON_SET: u32 = 2;
    let id = call.file(0)?;
    let Kind::Timer { alarm: old, since_1970 } = call.kernel.files.get(id).kind else {
        return Err(Errno::INVAL.into());
    };
    if call.bits(1) & !(ABSOLUTE | CANCEL_ON_SET) != 0 {
        return Err(Errno::INVAL.into());
    }
    let new: IntervalSpec = call.read(call.args[2])?;
    let alarm = new_alarm(call, &new, call.bits(1) & ABSOLUTE != 0, since_1970)?;
    let left = alarm_left(call, old);
    call.write_optional(call.args[3], &left)?;
    call.kernel.files.get_mut(id).kind = Kind::Timer { alarm, since_1970 };
    call.kernel.note();
    Ok(0)
}

pub(super) fn timerfd_gettime(call: &mut Call<'_>) -> Answer {
    let id = call.file(0)?;
    let Kind::Timer { alarm, .. } = call.kernel.files.get(id).kind else {
        return Err(Errno::INVAL.into());
    };
    let left = alarm_left(call, alarm);
    call.write(call.args[1], &left)?;
    Ok(0)
}

pub(super) fn memfd_create(call: &mut Call<'_>) -> Answer {
    const CLOSES_ON_EXEC: u32 = 1;
    const ALLOWS_SEALING: u32 = 2;
    const EXECUTABLE: u32 = 0x10;
    const LONGEST_NAME: usize = 249;
    let bits = call.bits(1);
    if call.path(0)?.len() > LONGEST_NAME
        || bits & !(CLOSES_ON_EXEC | ALLOWS_SEALING | EXECUTABLE) != 0
    {
        return Err(Errno::INVAL.into());
    }
    let base = call.kernel.vfs.root();
    let flags = OpenFlags {
        read: true,
        write: true,
        exclusive: true,
        temporary: true,
        directory: true,
        ..OpenFlags::default()
    };
    let found = call.kernel.with_vfs(call.tid, |vfs, processes| {
        vfs.open(At { processes, base, path: b"/dev/shm" }, flags, 0o777)
    })?;
    let mode = Mode { reads: true, writes: true, ..Mode::default() };
    let file = OpenFile::new(Kind::Node(found.node()?), mode);
    call.kernel.add_file(call.tid, file, bits & CLOSES_ON_EXEC != 0)
}
