//! Processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::Time;
use crate::descriptors::Descriptors;
use crate::resources::Resources;
use crate::signals::{Actions, Info, Pending, Signal};
use crate::thread::Tid;
use crate::vfs::NodeId;

/// The number of a process.
pub(crate) type Pid = u32;

/// A process.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Process {
    /// Who is told when it ends; 1 is nobody.
    pub parent: Pid,
    /// Its process group.
    pub group: Pid,
    /// Its session.
    pub session: Pid,
    /// The number of its memory.
    pub memory: u32,
    /// Its open files.
    pub descriptors: Descriptors,
    /// Where relative paths begin.
    pub directory: NodeId,
    /// Permissions that new files do not have.
    pub umask: u32,
    /// What it does about signals.
    pub actions: Actions,
    /// Signals that any of its threads may get.
    pub pending: Pending,
    /// Its threads.
    pub threads: Vec<Tid>,
    /// Whether it runs.
    pub state: State,
    /// The signal that its parent gets when it ends.
    pub exit_signal: Option<Signal>,
    /// The thread that waits until it has ended or runs another program.
    pub vfork: Option<Tid>,
    /// What it runs.
    pub program: Arc<Program>,
    /// `setitimer(ITIMER_REAL)`.
    pub alarm: Option<Alarm>,
    /// `setitimer(ITIMER_VIRTUAL)` and `setitimer(ITIMER_PROF)`, in instructions of the process.
    pub busy_alarms: [Option<Alarm>; 2],
    /// The signal that it gets when its parent ends, which only is remembered.
    pub parent_death_signal: u32,
    /// Its descendants become its children when they have no parent any more.
    pub is_subreaper: bool,
    /// `PR_SET_NO_NEW_PRIVS`.
    pub no_new_privileges: bool,
    /// Timers of `timer_create`.
    pub timers: BTreeMap<u32, Timer>,
    /// The groups that its user is in.
    pub groups: Vec<u32>,
    /// Its limits.
    pub resources: Resources,
    /// Instructions that it has executed, and its ended children.
    pub executed: Executed,
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    /// It does.
    Running {
        /// It was stopped before, and its parent has not heard of that.
        continued: bool,
    },
    /// A signal stopped it.
    Stopped {
        /// Which.
        signal: Signal,
        /// Its parent has heard of it.
        reported: bool,
    },
    /// It has ended, and its parent has not asked yet.
    Ended(Status),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// By itself, with this exit code.
    Exited(u8),
    /// By a signal.
    Killed(Signal),
}

impl Status {
    /// As `wait4` gives it.
    pub fn wait_status(self) -> u32 {
        const DUMPED: u32 = 0x80;
        match self {
            Status::Exited(code) => u32::from(code) << 8,
            Status::Killed(signal) => {
                let dumps = signal.by_default() == crate::signals::ByDefault::Dump;
                u32::from(signal.number()) | if dumps { DUMPED } else { 0 }
            }
        }
    }
}

/// The program of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Its file.
    pub node: NodeId,
    /// What it was started with.
    pub args: Vec<Vec<u8>>,
    /// Its environment at the start.
    pub env: Vec<Vec<u8>>,
    /// Its auxiliary vector.
    pub auxv: Vec<u8>,
    /// What handlers of signals return to.
    pub signal_return: u64,
    /// Its interpreter, which must be kept open.
    pub interpreter: Option<NodeId>,
}

/// A timer that sends a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alarm {
    /// When next.
    pub at: Time,
    /// Nanoseconds between two, or 0.
    pub interval: u64,
}

/// A timer of `timer_create`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Timer {
    /// When it goes off, if it is set.
    pub alarm: Option<Alarm>,
    /// It counts from 1970 rather than from the machine's start.
    pub since_1970: bool,
    /// The signal that it sends.
    pub signal: Option<Signal>,
    /// To this thread rather than to the process.
    pub thread: Option<Tid>,
    /// The value that comes with the signal.
    pub value: u64,
    /// How often it went off since the last signal.
    pub overrun: u32,
}

/// Instructions that were executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Executed {
    /// By the process.
    pub own: u64,
    /// By children that have ended.
    pub children: u64,
}

impl Process {
    /// True if an alarm that counts its instructions is due.
    pub(crate) fn is_busy_alarm_due(&self) -> bool {
        self.busy_alarms.iter().flatten().any(|alarm| alarm.at.0 <= self.executed.own)
    }

    /// The signals of such alarms, which are set anew.
    pub(crate) fn busy_signals(&mut self) -> Vec<(Option<Tid>, Info)> {
        let now = Time(self.executed.own);
        let mut sent = Vec::new();
        for (alarm, signal) in self.busy_alarms.iter_mut().zip([Signal::VTALRM, Signal::PROF]) {
            if let Some(due) = alarm.filter(|alarm| alarm.at <= now) {
                *alarm = due.next(now).0;
                sent.push((None, Info::kernel(signal)));
            }
        }
        sent
    }
}
