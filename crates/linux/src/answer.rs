//! What becomes of a system call.

use kvrm_engine::EngineError;
use serde::{Deserialize, Serialize};

use crate::Errno;
use crate::clock::Time;

/// What a call gives, or why it gives nothing.
pub type Answer<T = u64> = Result<T, Refusal>;

/// Why a call gives no value.
#[derive(Debug)]
pub enum Refusal {
    /// It failed.
    Errno(Errno),
    /// It has to wait, and is made again when something has happened.
    Wait(Wait),
    /// There is nobody to answer: the thread has ended, or goes on elsewhere with other registers.
    Gone,
    /// The host failed.
    Host(EngineError),
}

/// What a thread waits for, beside whatever its call looks at when it is made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The time when it is made again in any case.
    pub until: Option<Time>,
    /// What the call gives if a handler of a signal runs meanwhile.
    pub interrupted: Interrupted,
}

/// What a call gives that a signal interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interrupted {
    /// `EINTR`, or it is made again if the handler has `SA_RESTART`.
    #[default]
    Restarts,
    /// Always `EINTR`.
    Fails,
    /// It is always made again.
    Repeats,
    /// Nothing: signals have to wait.
    Never,
}

impl Wait {
    /// For something to happen, for ever.
    pub fn for_ever() -> Refusal {
        Refusal::Wait(Wait::default())
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Refusal {
        Refusal::Errno(errno)
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Refusal {
        Refusal::Host(error)
    }
}
