//! Which handlers a kernel has.
//!
//! A kernel with one more handler has to be compiled anew, for seconds. So kernels have handlers that were chosen, in an
//! order of their own, and perhaps more than the code at hand wants, because there was such a kernel. What wants a handler that
//! the kernel lacks stops its lane; the handler is *met*, and chosen the next time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The handlers of a kernel, by their numbers among all.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// By their numbers in the kernel.
    handlers: Vec<u32>,
    /// Their numbers in the kernel.
    numbers: HashMap<u32, u32>,
}

impl Selection {
    /// Those handlers, in this order. One that occurs again is there once.
    pub fn new(handlers: impl IntoIterator<Item = u32>) -> Selection {
        let mut selection = Selection::default();
        for handler in handlers {
            if !selection.has(handler) {
                selection.numbers.insert(handler, selection.handlers.len() as u32);
                selection.handlers.push(handler);
            }
        }
        selection
    }

    /// The handlers in the kernel.
    pub fn handlers(&self) -> &[u32] {
        &self.handlers
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.handlers.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }

    /// The number of a handler in the kernel; `None` if it is not there.
    pub fn number(&self, handler: u32) -> Option<u32> {
        self.numbers.get(&handler).copied()
    }

    /// True if a handler is there.
    pub fn has(&self, handler: u32) -> bool {
        self.numbers.contains_key(&handler)
    }
}

/// Handlers that code wants, by their numbers among all, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted(BTreeMap<u32, u64>);

impl Wanted {
    /// Notes that a handler is wanted so many times more.
    pub fn add(&mut self, handler: u32, times: u64) {
        *self.0.entry(handler).or_default() += times;
    }

    /// Notes that others are wanted, too.
    pub fn add_all(&mut self, others: &Wanted) {
        others.iter().for_each(|(handler, times)| self.add(handler, times));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if none is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The handlers, the most frequent first, and then as they were first asked for.
    pub fn by_frequency(&self) -> Vec<u32> {
        let mut handlers: Vec<(u32, u64)> = self.iter().collect();
        handlers.sort_by_key(|(handler, times)| (Reverse(*times), *handler));
        handlers.into_iter().map(|(handler, _)| handler).collect()
    }

    /// The handlers, and how often they are wanted.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        self.0.iter().map(|(handler, times)| (*handler, *times))
    }

    /// True if a kernel has all of them.
    pub fn are_in(&self, selection: &Selection) -> bool {
        self.0.keys().all(|handler| selection.has(*handler))
    }

    /// How much of what is wanted a kernel has, from 0 to 1.
    pub fn covered_by(&self, selection: &Selection) -> f64 {
        let there: u64 =
            self.iter().filter(|(handler, _)| selection.has(*handler)).map(|it| it.1).sum();
        let all: u64 = self.0.values().sum();
        if all == 0 { 1.0 } else { there as f64 / all as f64 }
    }

    /// Leaves those that a kernel has.
    pub fn only(mut self, selection: &Selection) -> Wanted {
        self.0.retain(|handler, _| selection.has(*handler));
        self
    }

    /// Leaves those that a kernel lacks.
    pub fn without(mut self, selection: &Selection) -> Wanted {
        self.0.retain(|handler, _| !selection.has(*handler));
        self
    }
}
