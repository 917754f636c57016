//! Who may use a machine when: one thread at a time, and others can still watch and cancel what it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use kvrm::RunControl;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::{exception, guarded};
use crate::machine::Machine;
use crate::result::{Outcome, RunResult};
use crate::run::{Caller, Watcher};

/// How often a thread looks whether another is done with a machine.
pub(crate) const LOOK: Duration = Duration::from_micros(50);
/// How long `wait` waits before it looks for Ctrl-C.
const WAIT: Duration = Duration::from_millis(20);

/// A run, for those who cannot have the machine meanwhile.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) control: Arc<RunControl>,
    pub(crate) start: Instant,
}

impl Current {
    pub(crate) fn new(control: Arc<RunControl>) -> Option<Current> {
        Some(Current { control, start: Instant::now() })
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_running() -> PyErr {
    exception(kvrm::Error::Running)
}

impl Machine {
    /// The machine, if no thread is inside it; what is known of its run is brought up to date.
    pub(crate) fn try_hold(&self) -> PyResult<Option<MutexGuard<'_, Option<kvrm::Machine>>>> {
        let mut guard = match self.machine.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        let Some(machine) = guard.as_mut() else {
            return Err(PyRuntimeError::new_err("the machine is closed: make another"));
        };
        if !machine.is_running() {
            *lock(&self.current) = None;
        }
        Ok(Some(guard))
    }

    /// The machine, if nobody runs it. Another thread that only looks at it is waited for.
    fn hold(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<kvrm::Machine>>> {
        loop {
            if let Some(guard) = self.try_hold()? {
                return Ok(guard);
            }
            if lock(&self.current).is_some() {
                return Err(is_running());
            }
            py.detach(|| std::thread::sleep(LOOK));
            py.check_signals()?;
        }
    }

    /// Does something quick with the machine.
    pub(crate) fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut kvrm::Machine) -> kvrm::Result<T> + Send,
    ) -> PyResult<T> {
        let mut guard = self.hold(py)?;
        let machine = guard.as_mut().expect("it is not closed");
        py.detach(|| guarded(|| work(machine)))
    }

    /// Runs the machine, with this thread waiting for it.
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
        *lock(&self.current) = Current::new(control.clone());
        let result = watcher.watch(py, machine, &control, |machine, caller| {
            let report = work(machine, &control, caller)?;
            Outcome::of(machine, report)
        });
        *lock(&self.current) = None;
        Ok(self.keep(result?))
    }

    /// Makes an outcome the last one; nothing is running any more.
    pub(crate) fn keep(&self, outcome: Outcome) -> RunResult {
        let outcome = Arc::new(outcome);
        *lock(&self.current) = None;
        *lock(&self.last) = Some(outcome.clone());
        RunResult(outcome)
    }

    /// Waits for a run that was started, until it ends or `deadline`; `None` if it goes on.
    pub(crate) fn wait_until(
        &self,
        py: Python<'_>,
        deadline: Option<Instant>,
    ) -> PyResult<Option<RunResult>> {
        let was_running = lock(&self.current).is_some();
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let wait = left.map_or(WAIT, |left| left.min(WAIT));
            match self.wait_for(py, wait) {
                Ok(None) => {}
                Ok(Some(outcome)) => return Ok(Some(self.keep(outcome))),
                // Somebody else, who cancelled it, has the result already.
                Err(error) if was_running => {
                    return lock(&self.last).clone().map(RunResult).map(Some).ok_or(error);
                }
                Err(error) => return Err(error),
            }
            if let Err(interrupt) = py.check_signals() {
                self.end_run(py)?;
                return Err(interrupt);
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
        }
    }

    /// Waits a while for a run that was started; `None` if it goes on, or another thread has the machine.
    fn wait_for(&self, py: Python<'_>, wait: Duration) -> PyResult<Option<Outcome>> {
        let Some(mut guard) = self.try_hold()? else {
            py.detach(|| std::thread::sleep(LOOK.min(wait)));
            return Ok(None);
        };
        let machine = guard.as_mut().expect("it is not closed");
        py.detach(|| {
            guarded(|| match machine.wait_for(wait)? {
                Some(report) => Outcome::of(machine, report).map(Some),
                None => Ok(None),
            })
        })
    }

    /// Cancels the run, whoever waits for it; what it did.
    pub(crate) fn end_run(&self, py: Python<'_>) -> PyResult<RunResult> {
        let current = lock(&self.current).clone();
        if let Some(Current { control, .. }) = &current {
            control.cancel();
        }
        let mut guard = loop {
            match self.try_hold()? {
                Some(guard) => break guard,
                None => py.detach(|| std::thread::sleep(LOOK)),
            }
        };
        let machine = guard.as_mut().expect("it is not closed");
        let result = py.detach(|| {
            guarded(|| {
                let report = machine.cancel()?;
                Outcome::of(machine, report)
            })
        });
        // Somebody else, who waited for it, has the result already.
        let last = current.and_then(|_| lock(&self.last).clone());
        match (result, last) {
            (Ok(outcome), _) => Ok(self.keep(outcome)),
            (Err(_), Some(last)) => Ok(RunResult(last)),
            (Err(error), None) => Err(error),
        }
    }
}
