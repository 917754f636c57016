//! Which handlers a kernel has, if not all that the code wants.
//!
//! A large program wants hundreds of handlers, most of them for a few instructions, and a kernel with one more has to be
//! compiled anew, for seconds. So kernels for such programs have the handlers that were worth it so far, in the order in
//! which they were chosen. What wants another is executed by the host; its handler is *met*, and chosen the next time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Handlers of a kernel, by their numbers among all.
#[derive(Default)]
pub(super) struct Chosen {
    /// By their numbers in the kernel.
    handlers: Vec<u32>,
    /// Their numbers in the kernel.
    numbers: HashMap<u32, u32>,
    /// Those that lanes wanted and the kernel lacks, and how often.
    met: BTreeMap<u32, u64>,
}

impl Chosen {
    /// The handlers in the kernel.
    pub(super) fn handlers(&self) -> &[u32] {
        &self.handlers
    }

    /// The number of a handler in the kernel; `None` if it is not there.
    pub(super) fn number(&self, handler: u32) -> Option<u32> {
        self.numbers.get(&handler).copied()
    }

    /// Notes that a lane wanted a handler.
    pub(super) fn meet(&mut self, handler: u32) {
        if !self.numbers.contains_key(&handler) {
            *self.met.entry(handler).or_default() += 1;
        }
    }

    /// True if lanes wanted handlers that the kernel lacks.
    pub(super) fn has_met(&self) -> bool {
        !self.met.is_empty()
    }

    /// Chooses handlers that were met, the most frequent first, as long as there are no more than `most` in the kernel.
    pub(super) fn choose(&mut self, most: usize) {
        let mut met: Vec<(u32, u64)> = std::mem::take(&mut self.met).into_iter().collect();
        met.sort_by_key(|(_, times)| Reverse(*times));
        met.truncate(most.saturating_sub(self.handlers.len()));
        met.into_iter().for_each(|(handler, _)| self.add(handler));
    }

    /// Adds a handler, unless it is there.
    pub(super) fn add(&mut self, handler: u32) {
        if !self.numbers.contains_key(&handler) {
            self.numbers.insert(handler, self.handlers.len() as u32);
            self.handlers.push(handler);
            self.met.remove(&handler);
        }
    }
}
