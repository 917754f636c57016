//! Lets one thread at a time use a machine; others can still watch and cancel its run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use kvrm::RunControl;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::{exception, guarded};
use crate::machine::Machine;
use crate::result::{Outcome, RunResult};
use crate::run::{Caller, Watcher};

/// How often a thread checks whether another is done with a machine.
pub(crate) const LOOK: Duration = Duration::from_micros(50);
/// How long `wait` waits before it checks for Ctrl-C.
const WAIT: Duration = Duration::from_millis(20);

/// A run in progress, for threads that cannot use the machine in the meantime.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) control: Arc<RunControl>,
    pub(crate) start: Instant,
    /// The thread that waits for it inside the machine; `None` if it runs in the background.
    inside: Option<ThreadId>,
}

impl Current {
    /// Returns a run in the background.
    pub(crate) fn started(control: Arc<RunControl>) -> Current {
        Current { control, start: Instant::now(), inside: None }
    }

    fn here(control: Arc<RunControl>) -> Current {
        Current { inside: Some(std::thread::current().id()), ..Current::started(control) }
    }
}

/// A run that has ended.
pub(crate) struct Ended {
    pub(crate) control: Arc<RunControl>,
    pub(crate) elapsed: Duration,
    /// It ran in the background, and its result has not been asked for yet.
    started: bool,
    /// Its result has been asked for.
    given: bool,
    result: PyResult<Arc<Outcome>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_running() -> PyErr {
    exception(kvrm::Error::Running)
}

fn not_started() -> PyErr {
    exception(kvrm::Error::NotStarted)
}

impl Machine {
    /// Returns the machine, if no thread is inside it, and updates what is known of its run.
    pub(crate) fn try_hold(
        &self,
        py: Python<'_>,
    ) -> PyResult<Option<MutexGuard<'_, Option<kvrm::Machine>>>> {
        if self.is_of_another_process() {
            return Err(exception(kvrm::Error::Forked));
        }
        let mut guard = match self.machine.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        let Some(machine) = guard.as_mut() else {
            return Err(PyRuntimeError::new_err("the machine is closed: make another"));
        };
        // Its result is of now, before anybody changes the machine.
        if lock(&self.current).is_some() && !machine.is_running() {
            self.collect(py, machine, Duration::ZERO);
        }
        Ok(Some(guard))
    }

    /// Returns the machine, if it is not running. Waits for another thread that only reads it.
    fn hold(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<kvrm::Machine>>> {
        loop {
            if let Some(guard) = self.try_hold(py)? {
                return Ok(guard);
            }
            if lock(&self.current).is_some() {
                return Err(is_running());
            }
            py.detach(|| std::thread::sleep(LOOK));
            py.check_signals()?;
        }
    }

    /// Does something short with the machine.
    pub(crate) fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut kvrm::Machine) -> kvrm::Result<T> + Send,
    ) -> PyResult<T> {
        let mut guard = self.hold(py)?;
        let machine = guard.as_mut().expect("it is not closed");
        py.detach(|| guarded(|| work(machine)))
    }

    /// Runs the machine and waits for it on this thread.
    pub(crate) fn run_watched(
        &self,
        py: Python<'_>,
        watcher: &Watcher,
        work: impl FnOnce(&mut kvrm::Machine, &RunControl, &Caller) -> kvrm::Result<kvrm::RunReport>
        + Send,
    ) -> PyResult<RunResult> {
        let mut guard = self.hold(py)?;
        let machine = guard.as_mut().expect("it is not closed");
        if machine.is_running() {
            return Err(is_running());
        }
        let control = Arc::new(watcher.control(machine));
        *lock(&self.current) = Some(Current::here(control.clone()));
        let result = watcher.watch(py, machine, &control, |machine, caller| {
            let report = work(machine, &control, caller)?;
            Outcome::of(machine, report)
        });
        self.end(py, result.map(Arc::new)).map(RunResult)
    }

    /// Records how the run has ended.
    fn end(&self, py: Python<'_>, result: PyResult<Arc<Outcome>>) -> PyResult<Arc<Outcome>> {
        let Some(Current { control, start, inside }) = lock(&self.current).take() else {
            return result;
        };
        let started = inside.is_none();
        // It may have ended long before anybody looked.
        let elapsed = result.as_ref().map_or_else(|_| start.elapsed(), |it| it.report.elapsed);
        let copy = copied(py, &result);
        let mut ended = lock(&self.ended);
        // Results in the background wait for somebody who asks.
        if started || ended.as_ref().is_none_or(|ended| !ended.started || ended.given) {
            let new = Ended { control, elapsed, started, given: !started, result };
            let old = ended.replace(new);
            // An exception that goes may call Python, and that the machine.
            drop(ended);
            drop(old);
        }
        copy
    }

    /// Waits a while for the run in the background, and records how it has ended.
    fn collect(&self, py: Python<'_>, machine: &mut kvrm::Machine, wait: Duration) {
        let result = py.detach(|| {
            guarded(|| match machine.wait_for(wait)? {
                Some(report) => Outcome::of(machine, report).map(Some),
                None => Ok(None),
            })
        });
        if let Some(result) = result.transpose() {
            let _ = self.end(py, result.map(Arc::new));
        }
    }

    /// Returns the run in progress, or the last one in the background.
    fn expected(&self) -> Option<Arc<RunControl>> {
        let current = lock(&self.current).as_ref().map(|current| current.control.clone());
        current.or_else(|| {
            let ended = lock(&self.ended);
            ended.as_ref().filter(|ended| ended.started).map(|ended| ended.control.clone())
        })
    }

    /// Returns how a run has ended; `None` if it has not.
    fn result_of(&self, py: Python<'_>, run: &Arc<RunControl>) -> Option<PyResult<RunResult>> {
        let mut ended = lock(&self.ended);
        let ended = ended.as_mut().filter(|ended| Arc::ptr_eq(&ended.control, run))?;
        ended.given = true;
        Some(copied(py, &ended.result).map(RunResult))
    }

    /// Waits for the end of the run until `deadline`; returns `None` if it is still running. Ctrl-C cancels it.
    pub(crate) fn wait_until(
        &self,
        py: Python<'_>,
        deadline: Option<Instant>,
    ) -> PyResult<Option<RunResult>> {
        self.check_outside()?;
        // Fails if the machine is closed.
        drop(self.try_hold(py)?);
        let run = self.expected().ok_or_else(not_started)?;
        let mut interrupt = None;
        loop {
            if let Some(result) = self.result_of(py, &run) {
                return interrupt.map_or(result.map(Some), Err);
            }
            let left = match interrupt {
                Some(_) => None,
                None => deadline.map(|end| end.saturating_duration_since(Instant::now())),
            };
            self.wait_for(py, left.map_or(WAIT, |left| left.min(WAIT)))?;
            if !self.expected().is_some_and(|expected| Arc::ptr_eq(&expected, &run))
                && self.result_of(py, &run).is_none()
            {
                // Somebody else has the result, and has started another run since.
                return Err(interrupt.unwrap_or_else(not_started));
            }
            if let Err(error) = py.check_signals() {
                run.cancel();
                interrupt.get_or_insert(error);
            }
            if interrupt.is_none() && left.is_some_and(|left| left.is_zero()) {
                return self.result_of(py, &run).transpose();
            }
        }
    }

    /// Waits a while for a run in the background, or for another thread that holds the machine.
    fn wait_for(&self, py: Python<'_>, wait: Duration) -> PyResult<()> {
        match self.try_hold(py)? {
            Some(mut guard) if lock(&self.current).is_some() => {
                self.collect(py, guard.as_mut().expect("it is not closed"), wait);
            }
            Some(_) => {}
            None => py.detach(|| std::thread::sleep(LOOK.min(wait))),
        }
        Ok(())
    }

    /// Cancels the run, no matter which thread waits for it, and returns its result.
    pub(crate) fn end_run(&self, py: Python<'_>) -> PyResult<RunResult> {
        self.check_outside()?;
        if let Some(Current { control, .. }) = &*lock(&self.current) {
            control.cancel();
        }
        let result = self.wait_until(py, None)?;
        Ok(result.expect("there is no deadline"))
    }

    /// Fails in a callback of a run, or in a signal handler during one: waiting there for its end would take
    /// for ever.
    pub(crate) fn check_outside(&self) -> PyResult<()> {
        let inside = lock(&self.current).as_ref().and_then(|current| current.inside);
        match inside == Some(std::thread::current().id()) {
            true => Err(PyRuntimeError::new_err(
                "this is called from within the run, which goes on when it returns: to end the run, return False from a callback, or raise an exception",
            )),
            false => Ok(()),
        }
    }
}

/// Copies a result for another caller.
fn copied(py: Python<'_>, result: &PyResult<Arc<Outcome>>) -> PyResult<Arc<Outcome>> {
    match result {
        Ok(outcome) => Ok(outcome.clone()),
        Err(error) => Err(error.clone_ref(py)),
    }
}
