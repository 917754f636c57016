//! Watching and cancelling a run from another thread.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

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

/// Nobody has asked the run to end.
const GOES_ON: u8 = 0;
/// Somebody has.
const CANCELLED: u8 = 1;
/// Its time was over.
const TIMED_OUT: u8 = 2;

/// Shared between a run and whoever watches it.
#[derive(Default)]
pub struct RunControl {
    /// Whether and why it should end; the first reason counts.
    end: AtomicU8,
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

    /// Asks the run to end when so much time has passed from now on, as if it were cancelled then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kvrm_engine::RunControl;
    /// let control = RunControl::new().with_timeout(Duration::ZERO);
    /// assert!(control.is_cancelled() && control.timed_out());
    /// let control = RunControl::new().with_timeout(Duration::MAX);
    /// control.cancel();
    /// assert!(control.is_cancelled() && !control.timed_out());
    /// ```
    pub fn with_timeout(self, timeout: Duration) -> RunControl {
        // One that is too far away to be told is none.
        if let Some(deadline) = Instant::now().checked_add(timeout) {
            self.cancel_at(deadline);
        }
        self
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
        self.end_for(CANCELLED);
    }

    /// True once the run should end.
    pub fn is_cancelled(&self) -> bool {
        if self.was_cancelled() {
            return true;
        }
        if self.interrupt.as_ref().is_some_and(|interrupt| interrupt()) {
            self.cancel();
        // The clock is only read where there is a deadline.
        } else if self.deadline.get().is_some_and(|deadline| Instant::now() >= *deadline) {
            self.end_for(TIMED_OUT);
        }
        self.was_cancelled()
    }

    /// True once somebody has found that the run should end; asks nobody.
    pub fn was_cancelled(&self) -> bool {
        self.end.load(Ordering::Relaxed) != GOES_ON
    }

    /// True if the run should end because its time was over, and nobody had cancelled it before.
    pub fn timed_out(&self) -> bool {
        self.end.load(Ordering::Relaxed) == TIMED_OUT
    }

    fn end_for(&self, reason: u8) {
        // Whatever was first stays.
        let _ = self.end.compare_exchange(GOES_ON, reason, Ordering::Relaxed, Ordering::Relaxed);
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
    fn the_first_reason_to_end_counts() {
        let control = RunControl::new();
        control.cancel_at(Instant::now());
        assert!(!control.was_cancelled(), "nobody has looked at the clock");
        assert!(control.is_cancelled() && control.timed_out());
        control.cancel();
        assert!(control.timed_out());
        let control = RunControl::new().with_interrupt(|| true).with_timeout(Duration::ZERO);
        assert!(control.is_cancelled() && !control.timed_out());
    }

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
