//! Copies of a run that go on separately.
//!
//! Everything that processes see is copied: their memory and their files copy-on-write, so that a copy costs what it changes.
//! A run that will be copied many times is [frozen](Kernel::freeze) first, so that copies begin with nothing of their own.

use std::sync::Arc;

use kvrm_engine::EngineError;

use crate::kernel::{Held, Kernel};

/// Why a run cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum CannotFork {
    /// It has the host's streams.
    #[error("a run that has the host's standard input or output cannot be copied")]
    HostStreams,
    /// It may write directories of the host.
    #[error("a run that may write directories of the host cannot be copied")]
    HostDirectories,
    /// It sees the host's time.
    #[error("a run that sees the host's time cannot be copied")]
    HostTime,
    /// The host failed.
    #[error(transparent)]
    Host(#[from] EngineError),
}

impl Kernel {
    /// Prepares for many copies: what processes have in memory now is in memory once for all of them.
    pub fn freeze(&mut self) -> Result<(), EngineError> {
        self.memories.values_mut().try_for_each(|held| held.memory.guest.freeze())
    }

    /// Copies the run as it is between two calls of [`run_until`](Kernel::run_until). The copy has this for standard input
    /// instead of what is left of the run's own. Who is asked about system calls, and where they are printed, is not copied.
    pub fn fork(&mut self, input: Vec<u8>) -> Result<Kernel, CannotFork> {
        if self.clock.is_real() {
            return Err(CannotFork::HostTime);
        }
        let console = self.console.fork(input.into()).ok_or(CannotFork::HostStreams)?;
        let vfs = self.vfs.fork().ok_or(CannotFork::HostDirectories)?;
        self.save_all_vectors()?;
        let budget = self.budget.anew();
        let held = self.memories.iter_mut().map(|(number, held)| {
            let memory = held.memory.fork_to(&budget)?;
            let Held { users, files, .. } = held;
            Ok((*number, Held { memory, users: *users, loaded: None, files: files.clone() }))
        });
        Ok(Kernel {
            memories: held.collect::<Result<_, EngineError>>()?,
            budget,
            vfs,
            console,
            make_guest: Arc::clone(&self.make_guest),
            make_first: self.make_first.clone(),
            processes: self.processes.clone(),
            threads: self.threads.clone(),
            segments: self.segments.clone(),
            files: self.files.clone(),
            locks: self.locks.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            limits: self.limits.clone(),
            report: self.report.clone(),
            strace: None,
            hook: None,
            happened: self.happened,
            numbers: self.numbers.clone(),
            first_status: self.first_status,
            foreground: self.foreground,
            turns: self.turns.clone(),
            strings: self.strings.clone(),
            uses: None,
        })
    }

    /// Brings all vector registers from machines to the threads that they belong to.
    pub(crate) fn save_all_vectors(&mut self) -> Result<(), EngineError> {
        for held in self.memories.values_mut() {
            let Some(owner) = held.loaded.take() else { continue };
            let vectors = held.memory.guest.vectors()?;
            if let Some(thread) = self.threads.get_mut(&owner) {
                thread.vectors = vectors;
            }
        }
        Ok(())
    }
}
