//! System calls: the table, and what their handlers have at hand.

mod ancillary;
mod descriptors;
mod flags;
mod identity;
mod locks;
mod memory;
mod metadata;
mod paths;
mod polling;
mod processes;
mod reading;
mod signals;
mod sockets;
mod sources;
mod table;
mod terminal;
mod threads;
mod time;

pub use table::{Argument, Entry, TABLE, find};

use bytemuck::Pod;
use kvrm_engine::EngineError;

use crate::Errno;
use crate::answer::{Answer, Interrupted, Refusal, Wait};
use crate::clock::Time;
use crate::files::FileId;
use crate::kernel::Kernel;
use crate::layout::{IoVec, TimeSpec};
use crate::memory::{Memory, Permissions};
use crate::process::Process;
use crate::resources::Limit;
use crate::thread::{Thread, Tid};

/// The longest path, with its zero.
const PATH_MAX: usize = 4096;
/// Entries of a vector of buffers, at the most.
const IOV_MAX: u64 = 1024;
/// Bytes that one call reads or writes, at the most; Linux has a higher limit, but callers must expect less.
const MOST_BYTES: u64 = 1 << 24;

/// A system call of a thread.
pub struct Call<'k> {
    pub(crate) kernel: &'k mut Kernel,
    pub(crate) tid: Tid,
    pub(crate) args: [u64; 6],
}

/// Makes the call in a thread's registers.
pub(crate) fn serve(kernel: &mut Kernel, tid: Tid) -> Answer {
    let (number, args) = kernel.thread(tid).call();
    let is_first = kernel.thread(tid).waiting.is_none();
    if is_first {
        kernel.report.count_call(number);
        kernel.trace_call(tid, number, &args);
    }
    kernel.sync_before_call(tid);
    let decided = if is_first { kernel.ask(tid, number, args) } else { None };
    let answer = match find(number) {
        _ if decided.is_some() => decided.expect("it was just looked at"),
        Some(entry) => (entry.handler)(&mut Call { kernel, tid, args }),
        None => {
            kernel.report.count_unknown(number);
            Err(Errno::NOSYS.into())
        }
    };
    if kernel.budget.was_hit() {
        kernel.report.hit(Limit::Memory);
    }
    kernel.trace_answer(tid, number, &args, &answer);
    answer
}

/// A call is interrupted that waits until then: a sleep tells how much is left.
pub(crate) fn interrupted(
    kernel: &mut Kernel,
    tid: Tid,
    until: Option<Time>,
) -> Result<(), EngineError> {
    const NANOSLEEP: u64 = 101;
    const CLOCK_NANOSLEEP: u64 = 115;
    // The first argument is gone, but it is not needed.
    let (number, args) = kernel.thread(tid).call();
    let rest = match number {
        NANOSLEEP => args[1],
        CLOCK_NANOSLEEP => args[3],
        _ => return Ok(()),
    };
    let Some(until) = until else { return Ok(()) };
    match time::write_rest(&mut Call { kernel, tid, args }, until, rest) {
        Err(Refusal::Host(error)) => Err(error),
        // Where it cannot be written, nobody asked for it.
        _ => Ok(()),
    }
}

impl Call<'_> {
    pub(crate) fn process(&mut self) -> &mut Process {
        self.kernel.process_of(self.tid)
    }

    pub(crate) fn thread(&mut self) -> &mut Thread {
        self.kernel.thread(self.tid)
    }

    pub(crate) fn memory(&mut self) -> &mut Memory {
        &mut self.kernel.held_of(self.tid).memory
    }

    pub(crate) fn pid(&mut self) -> u32 {
        self.thread().pid
    }

    /// An argument as C's `int`.
    pub(crate) fn int(&self, index: usize) -> i32 {
        self.args[index] as i32
    }

    /// The low 32 bits of an argument.
    pub(crate) fn bits(&self, index: usize) -> u32 {
        self.args[index] as u32
    }

    /// The file of a descriptor.
    pub(crate) fn file(&mut self, index: usize) -> Result<FileId, Errno> {
        let number = self.args[index] as u32;
        Ok(self.process().descriptors.get(number.into())?.file)
    }

    /// A path.
    pub(crate) fn path(&mut self, index: usize) -> Answer<Vec<u8>> {
        let at = self.args[index];
        self.memory().read_string(at, PATH_MAX)
    }

    /// Reads a structure.
    pub(crate) fn read<T: Pod>(&mut self, addr: u64) -> Answer<T> {
        let mut value = T::zeroed();
        self.memory().read(addr, bytemuck::bytes_of_mut(&mut value))?;
        Ok(value)
    }

    /// Reads a structure, unless its address is zero.
    pub(crate) fn read_optional<T: Pod>(&mut self, addr: u64) -> Answer<Option<T>> {
        if addr == 0 { Ok(None) } else { self.read(addr).map(Some) }
    }

    /// Writes a structure.
    pub(crate) fn write<T: Pod>(&mut self, addr: u64, value: &T) -> Answer<()> {
        self.memory().write(addr, bytemuck::bytes_of(value))
    }

    /// Writes a structure, unless its address is zero.
    pub(crate) fn write_optional<T: Pod>(&mut self, addr: u64, value: &T) -> Answer<()> {
        if addr == 0 { Ok(()) } else { self.write(addr, value) }
    }

    /// Writes bytes.
    pub(crate) fn write_bytes(&mut self, addr: u64, bytes: &[u8]) -> Answer<()> {
        self.memory().write(addr, bytes)
    }

    /// Checks that so many bytes can be written.
    pub(crate) fn will_write(&mut self, addr: u64, len: u64) -> Result<(), Errno> {
        self.memory().allows(addr, len, Permissions::WRITE)
    }

    /// Reads up to `len` bytes, which begin at `addr`; as many as there are, if not all can be read.
    pub(crate) fn bytes(&mut self, addr: u64, len: u64) -> Answer<Vec<u8>> {
        let len = len.min(MOST_BYTES);
        let there = self.memory().accessible(addr, len, Permissions::READ);
        if there == 0 && len > 0 {
            return Err(Errno::FAULT.into());
        }
        let mut bytes = vec![0; there as usize];
        self.memory().read(addr, &mut bytes)?;
        Ok(bytes)
    }

    /// Buffers of a vector, those without bytes left out, as address and length.
    pub(crate) fn buffers(&mut self, addr: u64, count: u64) -> Answer<Vec<(u64, u64)>> {
        if count > IOV_MAX {
            return Err(Errno::INVAL.into());
        }
        let mut buffers = Vec::new();
        let mut total: u64 = 0;
        for index in 0..count {
            let IoVec { base, len } = self.read(addr + index * 16)?;
            if len > i64::MAX as u64 {
                return Err(Errno::INVAL.into());
            }
            total = total.saturating_add(len);
            if len > 0 {
                buffers.push((base, len));
            }
        }
        if total > i64::MAX as u64 { Err(Errno::INVAL.into()) } else { Ok(buffers) }
    }

    /// A length of time from the guest, in nanoseconds; `None` if the address is zero.
    pub(crate) fn duration(&mut self, addr: u64) -> Answer<Option<u64>> {
        let time: Option<TimeSpec> = self.read_optional(addr)?;
        time.map(|time| time.nanoseconds().ok_or(Errno::INVAL.into())).transpose()
    }

    /// When the call gives up, if it waits for so many nanoseconds. The same each time the call is made again.
    pub(crate) fn deadline(&mut self, nanoseconds: Option<u64>) -> Option<Time> {
        let until = self.kernel.clock.now().after(nanoseconds?);
        Some(*self.thread().deadline.get_or_insert(until))
    }

    /// True if the moment has come.
    pub(crate) fn is_over(&self, until: Option<Time>) -> bool {
        until.is_some_and(|until| until <= self.kernel.clock.now())
    }

    /// Waits until then, and fails if a signal comes before.
    pub(crate) fn wait_until(&self, until: Option<Time>) -> Refusal {
        Refusal::Wait(Wait { until, interrupted: Interrupted::Fails })
    }
}
