//! Runs machines while Python waits: other Python threads continue, and Ctrl-C ends the run.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kvrm::{Machine, RunControl};
use pyo3::prelude::*;

use crate::errors::{guarded, panicked};
use crate::result::{Outcome, describe};

/// How often a run asks Python for signals such as Ctrl-C.
const ASK: Duration = Duration::from_millis(20);
/// How often progress is shown.
const SHOW: Duration = Duration::from_millis(100);

/// The first exception that Python raised during a run, to be raised again after it.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// A question of a run to Python between two batches.
pub(crate) struct Question {
    outcome: Outcome,
    answer: Sender<ControlFlow<()>>,
}

/// How a run reaches the Python thread that waits for it.
pub(crate) enum Caller {
    /// It is on this thread.
    Here,
    /// It is on another thread, which answers.
    There(Sender<Question>),
}

/// The Python side of a run.
pub(crate) struct Watcher {
    /// Called between batches with the result so far.
    pub(crate) callback: Option<Py<PyAny>>,
    /// A progress bar.
    pub(crate) bar: Option<Py<PyAny>>,
    /// Time that the run may take.
    timeout: Option<Duration>,
    raised: Raised,
}

impl Watcher {
    pub(crate) fn new(timeout: Option<Duration>, bar: Option<Py<PyAny>>) -> Watcher {
        Watcher { callback: None, bar, timeout, raised: Arc::default() }
    }

    /// The same, with something to call between batches.
    pub(crate) fn with_callback(self, callback: Option<Py<PyAny>>) -> Watcher {
        Watcher { callback, ..self }
    }

    /// True if the run needs no thread of its own, because it asks for signals itself and shows nothing.
    fn stays_here(&self, machine: &Machine) -> bool {
        self.bar.is_none() && machine.runs_on_caller().unwrap_or(true)
    }

    /// Makes a control for a run that begins now. A run on this thread ends when Python has a signal for it.
    pub(crate) fn control(&self, machine: &Machine) -> RunControl {
        let control = control(self.timeout);
        if !self.stays_here(machine) {
            return control;
        }
        with_signals(control, self.raised.clone())
    }

    /// Runs `work` and watches it; on this thread if it can be interrupted there.
    pub(crate) fn watch<T: Send>(
        &self,
        py: Python<'_>,
        machine: &mut Machine,
        control: &RunControl,
        work: impl FnOnce(&mut Machine, &Caller) -> kvrm::Result<T> + Send,
    ) -> PyResult<T> {
        let here = self.stays_here(machine);
        let result = py.detach(|| match here {
            true => guarded(|| work(machine, &Caller::Here)),
            false => self.watch_thread(machine, control, work),
        });
        if let Some(bar) = &self.bar {
            bar.call_method1(py, "close", (control.executed(),))?;
        }
        match self.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => result,
        }
    }

    /// Runs `work` on its own thread and waits for it.
    fn watch_thread<T: Send>(
        &self,
        machine: &mut Machine,
        control: &RunControl,
        work: impl FnOnce(&mut Machine, &Caller) -> kvrm::Result<T> + Send,
    ) -> PyResult<T> {
        std::thread::scope(|scope| {
            let (ask, questions) = channel::<Question>();
            let spawned = std::thread::Builder::new()
                .name("kvrm run".to_string())
                .spawn_scoped(scope, move || guarded(|| work(machine, &Caller::There(ask))));
            let worker = match spawned {
                Ok(worker) => worker,
                Err(error) => return Err(crate::errors::exception(kvrm::Error::NoThread(error))),
            };
            let (mut looked, mut shown) = (Instant::now(), Instant::now());
            loop {
                match questions.recv_timeout(ASK) {
                    Ok(Question { outcome, answer }) => {
                        // If nobody waits for the answer, the run has ended.
                        let _ = answer.send(self.answer(outcome, control));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if looked.elapsed() >= ASK {
                    looked = Instant::now();
                    // Without an interpreter, which ends while other threads go on, nobody wants the result.
                    let look = |py: Python<'_>| self.look(py, control, &mut shown);
                    Python::try_attach(look).unwrap_or_else(|| control.cancel());
                }
            }
            worker.join().unwrap_or_else(|panic| Err(panicked(&*panic)))
        })
    }

    /// Checks for signals and shows progress, at intervals.
    fn look(&self, py: Python<'_>, control: &RunControl, shown: &mut Instant) {
        if note(&self.raised, py.check_signals()) {
            control.cancel();
        }
        if let Some(bar) = &self.bar
            && shown.elapsed() >= SHOW
        {
            *shown = Instant::now();
            let activity = control.activity().map(describe);
            let update = bar.call_method1(py, "update", (control.executed(), activity));
            if note(&self.raised, update.map(drop)) {
                control.cancel();
            }
        }
    }

    /// Calls the callback between two batches.
    pub(crate) fn between(
        &self,
        machine: &Machine,
        report: &kvrm::RunReport,
        control: &RunControl,
        caller: &Caller,
    ) -> ControlFlow<()> {
        if self.callback.is_none() {
            return ControlFlow::Continue(());
        }
        let Ok(outcome) = Outcome::of(machine, *report) else { return ControlFlow::Continue(()) };
        match caller {
            Caller::Here => self.answer(outcome, control),
            Caller::There(ask) => {
                let (answer, answered) = channel();
                // Whoever waits for the run listens until it ends.
                let _ = ask.send(Question { outcome, answer });
                answered.recv().unwrap_or(ControlFlow::Break(()))
            }
        }
    }

    fn answer(&self, outcome: Outcome, control: &RunControl) -> ControlFlow<()> {
        let Some(callback) = &self.callback else { return ControlFlow::Continue(()) };
        let answer = Python::try_attach(|py| -> PyResult<bool> {
            let result = crate::result::RunResult(Arc::new(outcome));
            let answer = callback.call1(py, (result,))?;
            py.check_signals()?;
            // NumPy has a False of its own; None goes on.
            Ok(answer.extract::<bool>(py).unwrap_or(true))
        });
        match answer.unwrap_or(Ok(false)) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(error) => {
                note(&self.raised, Err(error));
                control.cancel();
                ControlFlow::Break(())
            }
        }
    }
}

/// Makes a control for a run that begins now and may take this long.
pub(crate) fn control(timeout: Option<Duration>) -> RunControl {
    match timeout {
        Some(timeout) => RunControl::new().with_timeout(timeout),
        None => RunControl::new(),
    }
}

/// The control of a run on this thread: the run ends when Python has a signal for it.
pub(crate) fn with_signals(control: RunControl, raised: Raised) -> RunControl {
    let (start, next) = (Instant::now(), AtomicU64::new(0));
    next.store(ASK.as_millis() as u64, Ordering::Relaxed);
    control.with_interrupt(move || {
        let now = start.elapsed();
        let due = now.as_millis() as u64 >= next.load(Ordering::Relaxed);
        if due {
            next.store((now + ASK).as_millis() as u64, Ordering::Relaxed);
        }
        due && Python::try_attach(|py| note(&raised, py.check_signals())).unwrap_or(false)
    })
}

/// Keeps the first error; returns true if there was one.
pub(crate) fn note(raised: &Raised, result: PyResult<()>) -> bool {
    let failed = result.is_err();
    if let Err(error) = result {
        raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
    failed
}
