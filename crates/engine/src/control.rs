//! Watching and cancelling a run from another thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between a run and whoever watches it.
#[derive(Debug, Default)]
pub struct RunControl {
    cancelled: AtomicBool,
    executed: AtomicU64,
    stopped: AtomicU64,
}

impl RunControl {
    /// A control for one run.
    pub fn new() -> RunControl {
        RunControl::default()
    }

    /// Asks the run to end soon; the lanes are left between two instructions.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// True once [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Instructions completed so far, over all lanes; it lags a little behind.
    pub fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }

    /// Lanes that have stopped so far.
    pub fn stopped(&self) -> u64 {
        self.stopped.load(Ordering::Relaxed)
    }

    /// For engines: adds to the counts.
    pub fn report(&self, executed: u64, stopped: u64) {
        self.executed.fetch_add(executed, Ordering::Relaxed);
        self.stopped.fetch_add(stopped, Ordering::Relaxed);
    }
}
