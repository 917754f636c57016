//! Watches and cancels a run from another thread.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What a run does while it executes no instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Compiling a kernel, which takes seconds if it is large.
    Compiling {
        /// Number of handlers.
        handlers: usize,
    },
}

/// A function that a run asks at intervals whether it should end.
type Interrupt = Box<dyn Fn() -> bool + Send + Sync>;
/// A function that does something that is given to it, and knows what that is.
type Around = Box<dyn Fn(Activity, &mut dyn FnMut()) + Send + Sync>;

/// The run has not been asked to end.
const GOES_ON: u8 = 0;
/// The run was cancelled.
const CANCELLED: u8 = 1;
/// The run's time was over.
const TIMED_OUT: u8 = 2;

/// Shared by a run and those who watch it.
#[derive(Default)]
pub struct RunControl {
    /// Whether and why it should end; the first reason counts.
    end: AtomicU8,
    deadline: OnceLock<Instant>,
    interrupt: Option<Interrupt>,
    /// The run that this is a part of.
    whole: Option<Arc<RunControl>>,
    executed: AtomicU64,
    stopped: AtomicU64,
    activity: Mutex<Option<Activity>>,
    around: Option<Around>,
}

impl RunControl {
    /// Makes a control for one run.
    pub fn new() -> RunControl {
        RunControl::default()
    }

    /// Makes a control for a part of a run. It ends when the whole does, and its instructions count for both.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use kvrm_engine::RunControl;
    /// let whole = Arc::new(RunControl::new());
    /// let [part, other] = [RunControl::part_of(&whole), RunControl::part_of(&whole)];
    /// part.report(7, 1);
    /// part.cancel();
    /// assert!(!other.is_cancelled() && whole.executed() == 7);
    /// whole.cancel();
    /// assert!(other.is_cancelled());
    /// ```
    pub fn part_of(whole: &Arc<RunControl>) -> RunControl {
        RunControl { whole: Some(whole.clone()), ..RunControl::default() }
    }

    /// Sets a time from now after which the run ends, as if it were cancelled then.
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
        // A deadline too far away to be represented is none.
        if let Some(deadline) = Instant::now().checked_add(timeout) {
            self.cancel_at(deadline);
        }
        self
    }

    /// Sets a deadline at which the run ends. Only the first call counts.
    ///
    /// ```
    /// let control = kvrm_engine::RunControl::new();
    /// control.cancel_at(std::time::Instant::now());
    /// assert!(control.is_cancelled());
    /// ```
    pub fn cancel_at(&self, deadline: Instant) {
        // An earlier deadline stays.
        let _ = self.deadline.set(deadline);
    }

    /// Cancels the run when `interrupt` returns true. The run calls it often, on any of its threads.
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

    /// Calls `around` with each [`Activity`] and the function that does it, which `around` must call once. It can show
    /// something in the meantime, and is done with that before the run goes on.
    ///
    /// ```
    /// use kvrm_engine::{Activity, RunControl};
    /// let control = RunControl::new().with_activities(|activity, work| {
    ///     println!("{activity:?} ...");
    ///     work();
    /// });
    /// assert_eq!(control.during(Activity::Compiling { handlers: 3 }, || 5), 5);
    /// ```
    pub fn with_activities(
        self,
        around: impl Fn(Activity, &mut dyn FnMut()) + Send + Sync + 'static,
    ) -> RunControl {
        RunControl { around: Some(Box::new(around)), ..self }
    }

    /// Asks the run to end soon; lanes stop between two instructions.
    pub fn cancel(&self) {
        self.end_for(CANCELLED);
    }

    /// True if the run should end; checks the deadline, the interrupt, and the run that it is a part of.
    pub fn is_cancelled(&self) -> bool {
        if self.was_cancelled() {
            return true;
        }
        if self.interrupt.as_ref().is_some_and(|interrupt| interrupt())
            || self.whole.as_ref().is_some_and(|whole| whole.is_cancelled())
        {
            self.cancel();
        // The clock is only read where there is a deadline.
        } else if self.deadline.get().is_some_and(|deadline| Instant::now() >= *deadline) {
            self.end_for(TIMED_OUT);
        }
        self.was_cancelled()
    }

    /// True if the run has been cancelled; does not check the deadline or the interrupt.
    pub fn was_cancelled(&self) -> bool {
        self.end.load(Ordering::Relaxed) != GOES_ON
    }

    /// True if the run should end because its time was over, and nobody had cancelled it before.
    pub fn timed_out(&self) -> bool {
        self.end.load(Ordering::Relaxed) == TIMED_OUT
    }

    fn end_for(&self, reason: u8) {
        // The first reason stays.
        let _ = self.end.compare_exchange(GOES_ON, reason, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns the instructions completed so far, over all lanes; lags slightly behind.
    pub fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }

    /// Returns the number of lanes that have stopped so far.
    pub fn stopped(&self) -> u64 {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns what the run does instead of executing instructions, if anything.
    pub fn activity(&self) -> Option<Activity> {
        *self.lock()
    }

    /// For engines: adds to the counts. Of a part's, only instructions count for the whole.
    pub fn report(&self, executed: u64, stopped: u64) {
        self.executed.fetch_add(executed, Ordering::Relaxed);
        self.stopped.fetch_add(stopped, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.report(executed, 0);
        }
    }

    /// Records that this many stopped lanes continue.
    pub fn go_on(&self, lanes: u64) {
        self.stopped.fetch_sub(lanes, Ordering::Relaxed);
    }

    /// For engines: does something that watchers should know about.
    pub fn during<T>(&self, activity: Activity, work: impl FnOnce() -> T) -> T {
        *self.lock() = Some(activity);
        let result = match &self.around {
            None => work(),
            Some(around) => {
                let (mut work, mut result) = (Some(work), None);
                around(activity, &mut || result = work.take().map(|work| work()));
                result.expect("the work was done")
            }
        };
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
