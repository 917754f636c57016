//! Which handlers a kernel has, if not all that the code wants.
//!
//! A large program wants hundreds of handlers, most of them for a few instructions, and a kernel with one more has to be
//! compiled anew, for seconds. So kernels for such programs have the handlers that were worth it so far, in the order in
//! which they were chosen. What wants another is executed by the host; its handler is *met*, and chosen the next time.

use std::collections::{BTreeSet, HashMap};

/// Handlers of a kernel, by their numbers among all.
#[derive(Default)]
pub(super) struct Chosen {
    /// By their numbers in the kernel.
    handlers: Vec<u32>,
    /// Their numbers in the kernel.
    numbers: HashMap<u32, u32>,
    /// Those that lanes wanted and the kernel lacks.
    met: BTreeSet<u32>,
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
            self.met.insert(handler);
        }
    }

    /// True if lanes wanted handlers that the kernel lacks.
    pub(super) fn has_met(&self) -> bool {
        !self.met.is_empty()
    }

    /// Chooses the handlers that were met.
    pub(super) fn choose(&mut self) {
        for handler in std::mem::take(&mut self.met) {
            self.numbers.insert(handler, self.handlers.len() as u32);
            self.handlers.push(handler);
        }
    }
}
