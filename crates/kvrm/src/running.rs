//! Runs in the background: the machine's core moves to a thread, and comes back when it has stopped.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use kvrm_engine::{Activity, RunControl};

use crate::core::{Core, Limits};
use crate::{Error, Machine, Result, RunReport};

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// False once it has ended and registers and memory can be read.
    pub running: bool,
    /// Instructions completed so far, over all lanes; lags slightly behind.
    pub cycles: u64,
    /// Lanes that have stopped so far.
    pub stopped: u64,
    /// Time since the start, or the time it took.
    pub elapsed: Duration,
    /// What the run does instead of executing instructions, if anything.
    pub activity: Option<Activity>,
}

/// Where the core is.
pub(crate) enum Place {
    Here(Box<Core>),
    Running(Running),
    /// Lost with a thread that panicked.
    Lost,
}

type Outcome = (Box<Core>, Result<RunReport>);

/// A run on another thread. Dropping it ends the run.
pub(crate) struct Running {
    control: Arc<RunControl>,
    start: Instant,
    end: Receiver<Outcome>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.cancel();
        // Wait until the thread is done with the engine, which may be on a device.
        let _ = self.end.recv();
    }
}

/// The last run that was started, in case the caller asks for its result.
#[derive(Default)]
pub(crate) struct LastStart {
    control: Arc<RunControl>,
    elapsed: Duration,
    /// Taken by the first caller that waits for it.
    result: Option<Result<RunReport>>,
}

impl Running {
    fn progress(&self) -> Progress {
        Progress::of(&self.control, true, self.start.elapsed())
    }
}

impl Progress {
    /// Returns the progress that a control reports, after this time.
    pub fn of(control: &RunControl, running: bool, elapsed: Duration) -> Progress {
        Progress {
            running,
            cycles: control.executed(),
            stopped: control.stopped(),
            elapsed,
            activity: control.activity(),
        }
    }
}

impl Machine {
    /// Runs like [`run`](Self::run), without waiting for the end. Until it comes, registers, memory and
    /// everything else of the lanes is out of reach: asking for it is an [`Error::Running`].
    ///
    /// ```
    /// use kvrm::{Error, Machine, Reg};
    /// let mut machine = Machine::builder().build()?;
    /// machine.load(0, &0x1400_0000u32.to_le_bytes())?; // b .
    /// machine.start(u64::MAX)?;
    /// assert!(matches!(machine.register(0, Reg::X(0)), Err(Error::Running)));
    /// while machine.poll().cycles == 0 {
    ///     std::thread::yield_now();
    /// }
    /// let report = machine.cancel()?;
    /// assert!(report.cancelled && report.cycles > 0);
    /// // It can go on from there.
    /// machine.start(1_000)?;
    /// assert_eq!(machine.wait()?.cycles, 1_000);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn start(&mut self, max_cycles: u64) -> Result<()> {
        self.start_with(max_cycles, RunControl::new())
    }

    /// Like [`start`](Self::start), with a control that may have a timeout.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kvrm::{Machine, RunControl};
    /// let mut machine = Machine::builder().build()?;
    /// machine.load(0, &0x1400_0000u32.to_le_bytes())?; // b .
    /// machine.start_with(u64::MAX, RunControl::new().with_timeout(Duration::from_millis(100)))?;
    /// assert!(machine.wait()?.timed_out);
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn start_with(
        &mut self,
        max_cycles: u64,
        control: impl Into<Arc<RunControl>>,
    ) -> Result<()> {
        self.start_request(Limits { max_cycles, single_launch: false }, control.into())
    }

    /// Runs like [`run_mega`](Self::run_mega), without waiting for the end: see [`start`](Self::start).
    pub fn start_mega(&mut self, max_cycles: u64) -> Result<()> {
        self.start_mega_with(max_cycles, RunControl::new())
    }

    /// Like [`start_mega`](Self::start_mega), with a control that may have a timeout.
    pub fn start_mega_with(
        &mut self,
        max_cycles: u64,
        control: impl Into<Arc<RunControl>>,
    ) -> Result<()> {
        self.start_request(Limits { max_cycles, single_launch: true }, control.into())
    }

    fn start_request(&mut self, limits: Limits, control: Arc<RunControl>) -> Result<()> {
        self.core_mut()?;
        let (breakpoints, its_control) = (self.breakpoints.clone(), control.clone());
        let (give, take) = channel::<Box<Core>>();
        let (done, end) = channel();
        let work = move || {
            // There is none if the machine was dropped in the meantime.
            let Ok(mut core) = take.recv() else { return };
            let result = core.run(limits, &breakpoints, &its_control);
            let _ = done.send((core, result));
        };
        let builder = thread::Builder::new().name("kvrm run".to_string());
        builder.spawn(work).map_err(Error::NoThread)?;
        let running = Running { control, start: Instant::now(), end };
        if let Place::Here(core) = std::mem::replace(&mut self.place, Place::Running(running)) {
            give.send(core).expect("the thread waits for it");
        }
        self.last_start = LastStart::default();
        Ok(())
    }

    /// Returns the progress of the run that was started, or its final state. Once it reports that the run has
    /// ended, the machine can be used again.
    pub fn poll(&mut self) -> Progress {
        self.settle();
        match &self.place {
            Place::Running(running) => running.progress(),
            Place::Here(_) | Place::Lost => {
                Progress::of(&self.last_start.control, false, self.last_start.elapsed)
            }
        }
    }

    /// True while a run that was started is in progress.
    pub fn is_running(&mut self) -> bool {
        self.settle();
        matches!(self.place, Place::Running(_))
    }

    /// Returns the control that watches and cancels the run that was started, for use on other threads.
    pub fn control(&self) -> Option<Arc<RunControl>> {
        match &self.place {
            Place::Running(running) => Some(running.control.clone()),
            Place::Here(_) | Place::Lost => None,
        }
    }

    /// Waits for the end of the run that was started.
    pub fn wait(&mut self) -> Result<RunReport> {
        self.check_process()?;
        if let Place::Running(Running { end, .. }) = &self.place {
            let outcome = end.recv().ok();
            self.ended(outcome);
        }
        self.take_result()
    }

    /// Waits for the end of the run that was started, for a limited time; returns `None` if it is still
    /// running.
    pub fn wait_for(&mut self, timeout: Duration) -> Result<Option<RunReport>> {
        self.check_process()?;
        if let Place::Running(Running { end, .. }) = &self.place {
            match end.recv_timeout(timeout) {
                Ok(outcome) => self.ended(Some(outcome)),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => self.ended(None),
            }
        }
        self.take_result().map(Some)
    }

    /// Ends the run that was started and waits for its end: a few milliseconds on the `cpu`, `eval` and `cuda`
    /// engines, the rest of a launch on `wgpu`. Lanes without a stop can continue later. If the run has already
    /// ended, returns its report.
    pub fn cancel(&mut self) -> Result<RunReport> {
        if let Place::Running(running) = &self.place {
            running.control.cancel();
        }
        self.wait()
    }

    fn take_result(&mut self) -> Result<RunReport> {
        if matches!(self.place, Place::Lost) {
            return Err(Error::Lost);
        }
        self.last_start.result.take().unwrap_or(Err(Error::NotStarted))
    }

    /// Takes the core back if the run that was started has ended. Methods that take `&self` cannot do that;
    /// they return [`Error::Running`] until another method has done it.
    pub fn settle(&mut self) {
        if let Place::Running(Running { end, .. }) = &self.place {
            match end.try_recv() {
                Ok(outcome) => self.ended(Some(outcome)),
                Err(TryRecvError::Disconnected) => self.ended(None),
                Err(TryRecvError::Empty) => {}
            }
        }
    }

    /// Records that the thread has given the core back, or has panicked.
    fn ended(&mut self, outcome: Option<Outcome>) {
        let (place, result) = match outcome {
            Some((core, result)) => (Place::Here(core), Some(result)),
            None => (Place::Lost, None),
        };
        if let Place::Running(running) = std::mem::replace(&mut self.place, place) {
            let (control, elapsed) = (running.control.clone(), running.start.elapsed());
            self.last_start = LastStart { control, elapsed, result };
        }
    }
}
