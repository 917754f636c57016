//! Watching and cancelling a run from another thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// What a run does while no instructions are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Compiling a kernel, which takes seconds if it is large.
    Compiling {
        /// Handlers it has.
        handlers: usize,
    },
}

/// Asked by a run now and then whether it should end.
type Interrupt = Box<dyn Fn() -> bool + Send + Sync>;

/// Shared between a run and whoever watches it.
#[derive(Default)]
pub struct RunControl {
    cancelled: AtomicBool,
    deadline: OnceLock<Instant>,
    interrupt: Option<Interrupt>,
    executed: AtomicU64,
    stopped: AtomicU64,
    activity: Mutex<Option<Activity>>,
}

impl RunControl {
    /// A control for one run.
    pub fn new() -> RunControl {
        RunControl::default()
    }

    /// Asks the run to end at a point in time. Only the first call counts.
    ///
    /// ```
    /// let control = kvrm_engine::RunControl::new();
    /// control.cancel_at(std::time::Instant::now());
    /// assert!(control.is_cancelled());
    /// ```
    pub fn cancel_at(&self, deadline: Instant) {
        // Somebody else's deadline stays.
        let _ = self.deadline.set(deadline);
    }

    /// Cancels the run when `interrupt` says so, which is asked often, on whatever threads the run has.
    ///
    /// ```
    /// let control = kvrm_engine::RunControl::new().with_interrupt(|| true);
    /// assert!(control.is_cancelled());
    /// ```
    pub fn with_interrupt(
        self,
        interrupt: impl Fn() -> bool + Send + Sync + 'static,
    ) -> RunControl {
        RunControl { interrupt: Some(Box::new(interrupt)), ..self }
    }

    /// Asks the run to end soon; the lanes are left between two instructions.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// True once the run should end.
    pub fn is_cancelled(&self) -> bool {
        if self.was_cancelled() {
            return true;
        }
        let late = self.deadline.get().is_some_and(|deadline| Instant::now() >= *deadline);
        let over = late || self.interrupt.as_ref().is_some_and(|interrupt| interrupt());
        if over {
            self.cancel();
        }
        over
    }

    /// True once somebody has found that the run should end; asks nobody.
    pub fn was_cancelled(&self) -> bool {
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

    /// What it does instead of executing instructions, if it does.
    pub fn activity(&self) -> Option<Activity> {
        *self.lock()
    }

    /// For engines: adds to the counts.
    pub fn report(&self, executed: u64, stopped: u64) {
        self.executed.fetch_add(executed, Ordering::Relaxed);
        self.stopped.fetch_add(stopped, Ordering::Relaxed);
    }

    /// Takes back that so many lanes have stopped: they go on.
    pub fn go_on(&self, lanes: u64) {
        self.stopped.fetch_sub(lanes, Ordering::Relaxed);
    }

    /// For engines: does something that watchers should know of.
    pub fn during<T>(&self, activity: Activity, work: impl FnOnce() -> T) -> T {
        *self.lock() = Some(activity);
        let result = work();
        *self.lock() = None;
        result
    }

    fn lock(&self) -> MutexGuard<'_, Option<Activity>> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchers_see_an_activity_while_it_lasts() {
        let control = RunControl::new();
        assert_eq!(control.activity(), None);
        let compiling = Activity::Compiling { handlers: 300 };
        let seen = control.during(compiling, || control.activity());
        assert_eq!(seen, Some(compiling));
        assert_eq!(control.activity(), None);
    }
}
