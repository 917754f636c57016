//! Asking the host's program about system calls.

use crate::Errno;
use crate::answer::Answer;
use crate::calls;
use crate::kernel::Kernel;
use crate::memory::Memory;
use crate::process::Pid;
use crate::thread::Tid;

/// Called before every system call.
pub type Hook = Box<dyn FnMut(&mut Request<'_>) -> Decision + Send>;

/// A system call that is about to be served.
pub struct Request<'k> {
    /// The process that makes it.
    pub pid: Pid,
    /// Its number.
    pub number: u64,
    /// Its name, if kvrm knows it.
    pub name: Option<&'static str>,
    /// Its arguments.
    pub args: [u64; 6],
    memory: &'k mut Memory,
}

/// What becomes of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is served as usual.
    Serve,
    /// It gives this value.
    Answer(u64),
    /// It fails.
    Refuse(Errno),
}

impl Request<'_> {
    /// Reads the process's memory; `EFAULT` where it has none.
    pub fn read(&self, addr: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        self.memory.read(addr, bytes).map_err(|_| Errno::FAULT)
    }

    /// Reads a string that ends with a zero, of up to 4,095 bytes.
    pub fn read_string(&self, addr: u64) -> Result<Vec<u8>, Errno> {
        self.memory.read_string(addr, 4096).map_err(|_| Errno::FAULT)
    }

    /// Writes the process's memory; `EFAULT` where it may not write itself.
    pub fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.memory.write(addr, bytes).map_err(|_| Errno::FAULT)
    }
}

impl Kernel {
    /// Asks the host's program what becomes of a call; `None` if it is to be served.
    pub(crate) fn ask(&mut self, tid: Tid, number: u64, args: [u64; 6]) -> Option<Answer> {
        let mut hook = self.hook.take()?;
        let pid = self.thread(tid).pid;
        let name = calls::find(number).map(|entry| entry.name);
        let memory = &mut self.held_of(tid).memory;
        let decision = hook(&mut Request { pid, number, name, args, memory });
        self.hook = Some(hook);
        match decision {
            Decision::Serve => None,
            Decision::Answer(value) => Some(Ok(value)),
            Decision::Refuse(errno) => Some(Err(errno.into())),
        }
    }
}
