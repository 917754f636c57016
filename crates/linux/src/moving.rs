//! Moving a program to another machine.
//!
//! A run may begin on a machine that is for one thread of one process. A program that makes another of either, or needs more
//! memory than such a machine has, goes on where there can be many.

use std::fmt::{self, Display, Formatter};

use kvrm_engine::EngineError;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Refusal};
use crate::guest::Guest;
use crate::kernel::Kernel;
use crate::memory::out_of_memory;
use crate::thread::Tid;

/// That a program was moved to another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Instructions that it had executed.
    pub instructions: u64,
    /// Why.
    pub reason: Reason,
}

/// Why a program was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// It made a second thread or process.
    Second,
    /// The machine had no more room for its memory or its code.
    Room,
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Second => "it made a second thread or process",
            Reason::Room => "the device had no more room for it",
        })
    }
}

impl Kernel {
    /// Makes a machine for a program that is about to be loaded.
    pub(crate) fn make_machine(&self) -> Result<Box<dyn Guest>, EngineError> {
        self.make_first.as_ref().unwrap_or(&self.make_guest)()
    }

    /// True if the program is on a machine that is for one thread alone.
    pub(crate) fn can_move(&self) -> bool {
        self.make_first.is_some()
    }

    /// True if the program has one thread, on a machine that is for one alone.
    pub fn is_movable(&self) -> bool {
        self.can_move() && self.threads.len() == 1 && self.memories.len() == 1
    }

    /// Brings the program to another machine, whose memory is empty; false, and nothing is done, unless it has one thread and
    /// is on a machine that is for one alone.
    pub fn change_machine(&mut self, guest: Box<dyn Guest>) -> Result<bool, EngineError> {
        let Some(tid) = self.threads.keys().next().copied().filter(|_| self.is_movable()) else {
            return Ok(false);
        };
        self.save_vectors(tid)?;
        match self.held_of(tid).memory.change_guest(guest) {
            Ok(()) => Ok(true),
            Err(Refusal::Host(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Moves the program, whose only thread this is, to a machine that can have many, unless it is there.
    pub(crate) fn move_machine(&mut self, tid: Tid, reason: Reason) -> Answer<()> {
        if !self.can_move() {
            return Ok(());
        }
        let guest = (self.make_guest)().map_err(out_of_memory)?;
        self.save_vectors(tid)?;
        self.held_of(tid).memory.change_guest(guest)?;
        self.make_first = None;
        let instructions = self.report.instructions;
        self.report.moved = Some(Move { instructions, reason });
        Ok(())
    }
}
