//! Threads.

use kvrm_a64::state::{CpuState, VectorState};
use serde::{Deserialize, Serialize};

use crate::answer::Wait;
use crate::clock::Time;
use crate::files::FileId;
use crate::process::Pid;
use crate::signals::{Pending, SignalStack, Signals};
use crate::vfs::NodeId;

/// The number of a thread. The first thread of a process has the process's number.
pub(crate) type Tid = u32;

/// A thread.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Thread {
    /// Its process.
    pub pid: Pid,
    /// Its registers, while it does not run.
    #[serde(with = "crate::snapshot::plain")]
    pub registers: CpuState,
    /// Its vector registers, while those of the machine are another thread's.
    #[serde(with = "crate::snapshot::plain")]
    pub vectors: VectorState,
    /// Signals that are not delivered to it.
    pub mask: Signals,
    /// The mask that is to be restored once a signal was delivered.
    pub old_mask: Option<Signals>,
    /// Signals that were sent to it rather than to its process.
    pub pending: Pending,
    /// The stack of its handlers.
    pub stack: SignalStack,
    /// What its system call waits for; the call is in its registers.
    pub waiting: Option<Waiting>,
    /// When its system call gives up, if that has been computed.
    pub deadline: Option<Time>,
    /// Bytes that its system call has moved before it had to wait.
    pub progress: u64,
    /// The process that it waits for until that has left its memory.
    pub vfork_child: Option<Pid>,
    /// The FIFO that it opens, and how often the other side had been opened.
    pub fifo: Option<(FileId, u64)>,
    /// What it waits for in a call of `futex`.
    pub futex: Option<FutexWait>,
    /// Where a zero is written when it ends, and a futex is woken.
    pub clear_tid: u64,
    /// The list of its robust futexes.
    pub robust_list: u64,
    /// Its name, which programs can set.
    pub name: [u8; 16],
    /// How nice it is, from -20 to 19; no thread has less time for that.
    pub nice: i8,
}

/// A system call that waits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// For what.
    pub wait: Wait,
    /// How often something had happened when it was last made.
    pub seen: u64,
}

/// A thread in a queue of a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FutexWait {
    /// Which.
    pub key: FutexKey,
    /// Its address in the memory of the thread.
    pub addr: u64,
    /// Who may wake it.
    pub bits: u32,
    /// It waits for the futex to be its own (`FUTEX_LOCK_PI`).
    pub locks: bool,
    /// The futex that it waits for after this one, to be its own (`FUTEX_WAIT_REQUEUE_PI`).
    pub then: Option<FutexKey>,
    /// Its place in the queue.
    pub ticket: u64,
    /// It was woken.
    pub woken: bool,
}

/// What a futex is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FutexKey {
    /// In the memory with that number, at that address.
    Private(u32, u64),
    /// In memory that processes share: a segment, and the offset in it.
    Shared(u64, u64),
    /// In memory that shows a file: the file, and the offset in it.
    File(NodeId, u64),
}

impl Thread {
    /// A thread that begins with these registers.
    pub(crate) fn new(
        pid: Pid,
        registers: CpuState,
        vectors: VectorState,
        name: [u8; 16],
    ) -> Thread {
        Thread {
            pid,
            registers,
            vectors,
            mask: Signals::NONE,
            old_mask: None,
            pending: Pending::default(),
            stack: SignalStack::default(),
            waiting: None,
            deadline: None,
            progress: 0,
            vfork_child: None,
            fifo: None,
            futex: None,
            clear_tid: 0,
            robust_list: 0,
            name,
            nice: 0,
        }
    }

    /// The number of the system call in its registers, and the arguments.
    pub(crate) fn call(&self) -> (u64, [u64; 6]) {
        let x = &self.registers.x;
        (x[8], [x[0], x[1], x[2], x[3], x[4], x[5]])
    }
}
