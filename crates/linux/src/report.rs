//! What happened in a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::calls;
use crate::moving::Move;
use crate::resources::Limit;
use crate::signals::Signal;

/// What happened in a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Instructions of all threads.
    pub instructions: u64,
    /// How often each system call was made, by number.
    pub calls: BTreeMap<u64, u64>,
    /// The same of those that kvrm does not have.
    pub unknown: BTreeMap<u64, u64>,
    /// Limits that were hit.
    pub limits: BTreeSet<Limit>,
    /// What the first process died of.
    pub crash: Option<Crash>,
    /// That the program was moved to another machine.
    pub moved: Option<Move>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All processes have ended, or the first one has and the others had their time.
    Finished,
    /// A limit was hit that ends the run.
    Limited(Limit),
    /// Every thread waits for something that nobody can do.
    Deadlock,
    /// It was cancelled.
    Cancelled,
}

/// What a process died of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// The signal.
    pub signal: Signal,
    /// Where it was.
    pub pc: u64,
    /// The address that it could not access.
    pub address: Option<u64>,
    /// The function that it was in, and how far from its beginning.
    pub symbol: Option<(String, u64)>,
}

impl Display for Crash {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "SIG{} at {:#x}", self.signal.name(), self.pc)?;
        if let Some((name, offset)) = &self.symbol {
            write!(f, " in {name}+{offset:#x}")?;
        }
        match self.address.filter(|address| *address != self.pc) {
            Some(address) => write!(f, ", accessing {address:#x}"),
            None => Ok(()),
        }
    }
}

impl Report {
    /// Counts a system call.
    pub(crate) fn count_call(&mut self, number: u64) {
        self.count_calls(number, 1);
    }

    /// Counts a system call that was made so many times.
    pub(crate) fn count_calls(&mut self, number: u64, times: u64) {
        const MOST: usize = 1024;
        if times > 0 && (self.calls.len() < MOST || self.calls.contains_key(&number)) {
            *self.calls.entry(number).or_default() += times;
        }
    }

    /// Counts a system call that is not there. Few of them are told apart, whatever numbers a guest tries.
    pub(crate) fn count_unknown(&mut self, number: u64) {
        const MOST: usize = 1024;
        if self.unknown.len() < MOST || self.unknown.contains_key(&number) {
            *self.unknown.entry(number).or_default() += 1;
        }
    }

    /// Notes that a limit was hit.
    pub(crate) fn hit(&mut self, limit: Limit) {
        self.limits.insert(limit);
    }

    /// True if it was.
    pub fn has_hit(&self, limit: Limit) -> bool {
        self.limits.contains(&limit)
    }

    /// System calls in all.
    pub fn total_calls(&self) -> u64 {
        self.calls.values().sum()
    }

    /// Names of system calls and how often they were made, the most frequent first.
    pub fn calls_by_name(&self) -> Vec<(String, u64)> {
        let name = |number: u64| match calls::find(number) {
            Some(entry) => entry.name.to_owned(),
            None => format!("syscall_{number}"),
        };
        let mut calls: Vec<_> =
            self.calls.iter().map(|(number, count)| (name(*number), *count)).collect();
        calls.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        calls
    }
}
