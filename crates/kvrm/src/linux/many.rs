//! One program many times, each time with something else to do.
//!
//! ```text
//!  rows ──► Rows ──► worker ─┐
//!             ├────► worker ─┼──► channel ──► Runs, the caller's iterator
//!             └────► worker ─┘
//! ```
//!
//! Workers take a row when they have room for one, so rows may be endless, and wait when nobody takes their results. What a
//! lane does depends on its row alone: not on other lanes, on their order or on the number of threads. With the engine `auto`,
//! workers are those of `cpu`, and a GPU may take rows [beside them](super::auto).

use std::any::Any;
use std::panic;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kvrm_engine::RunControl;
use kvrm_linux::{Ending, Input};

use super::auto::{self, Auto, Placement, Policy};
use super::lanes::{self, Device, Times};
use super::outcome::Outcome;
use super::process::Process;
use super::rows::{IntoRow, Row, Rows};
use super::runner::Runner;
use super::trails::PATIENCE;
use crate::{EngineKind, Error, Result};

/// Results that wait for the caller, at the most.
const MOST_WAITING: usize = 64;
const MOST_WAITING_ON_GPU: usize = 1 << 16;
/// How often somebody who waits for a result looks whether the run was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// One program, to be run many times with different arguments, variables, input or files.
///
/// Each lane is a run of its own: it does what [`Process::run`] would do with the same arguments, and can do nothing to
/// other lanes. The process's [limits](Process::limits) are those of every lane.
///
/// ```
/// use kvrm::linux::{Many, Process, Row};
///
/// # std::env::set_current_dir("../..").expect("the folder of the repository");
/// let rows = (1..=100).map(|start: u32| Row::new().args([start.to_string(), "1".to_string()]));
/// let mut steps = vec![0; 100];
/// for ran in Many::new(Process::new("guests/linux/collatz")).run(rows)? {
///     let ran = ran?;
///     let text = String::from_utf8(ran.result?.stdout).expect("digits");
///     steps[ran.lane as usize] = u32::from_str_radix(text.trim(), 16).expect("a number");
/// }
/// assert_eq!(steps[26], 111); // of 27
/// # Ok::<(), kvrm::Error>(())
/// ```
pub struct Many {
    process: Process,
    lanes: usize,
    threads: usize,
    timeout: Option<Duration>,
    /// What `auto` goes by, and the GPU that it may use, if those are not the usual ones.
    policy: Policy,
    device: Option<Device>,
    patience: u64,
}

impl Many {
    /// Runs of this program. Its output is captured. What lanes cannot have in common is refused when they
    /// [run](Many::run): the host's standard input, calls of the host's functions at system calls, files that lanes would
    /// write on the host.
    pub fn new(process: Process) -> Many {
        let (policy, device) = (Policy::default(), None);
        let (lanes, threads, timeout) = (usize::MAX, 0, None);
        Many { process, lanes, threads, timeout, policy, device, patience: PATIENCE }
    }

    /// How many lanes may be under way at a time; as many as the engine can do something for by default. There may be more
    /// rows: a lane that ends makes room for the next one.
    pub fn lanes(mut self, lanes: usize) -> Many {
        self.lanes = lanes;
        self
    }

    /// Threads of the host to run on; 0, the default, means one per core.
    pub fn threads(mut self, threads: usize) -> Many {
        self.threads = threads;
        self
    }

    /// The real time that a lane may take. Then it ends, with [`Ending::Cancelled`], and others go on.
    pub fn timeout(mut self, timeout: Duration) -> Many {
        self.timeout = Some(timeout);
        self
    }

    /// Makes the engine `auto` go by another policy, and use this GPU when it wants one, for tests.
    #[doc(hidden)]
    pub fn deciding(mut self, policy: Policy, device: Device) -> Many {
        (self.policy, self.device) = (policy, Some(device));
        self
    }

    /// After how many instructions that lanes have executed from some point on it is found out how far they go together from
    /// there, for tests.
    #[doc(hidden)]
    pub fn exploring_after(mut self, instructions: u64) -> Many {
        self.patience = instructions;
        self
    }

    /// Runs the program with each of these rows. Results come as lanes end, in any order. Rows are read when there is room
    /// for them, on threads of the run.
    pub fn run<R>(self, rows: R) -> Result<Runs>
    where
        R: IntoIterator<Item: IntoRow + 'static, IntoIter: Send + 'static>,
    {
        self.run_with(rows, Arc::new(RunControl::new()))
    }

    /// Runs it until all rows are done, or until the control says so. Lanes that were under way then have no result.
    pub fn run_with<R>(self, rows: R, control: Arc<RunControl>) -> Result<Runs>
    where
        R: IntoIterator<Item: IntoRow + 'static, IntoIter: Send + 'static>,
    {
        let stdin = self.check()?;
        let control = Arc::new(RunControl::part_of(&control));
        let Many { process, lanes, timeout, policy, device, patience, .. } = self;
        let threads = threads(self.threads);
        let auto = (process.plan.engine == EngineKind::Auto).then(|| {
            let find = move || device.clone().or_else(Device::find);
            let find = (!process.plan.realtime).then(|| Box::new(find) as auto::Find);
            let workers = lanes.min(threads).max(1);
            let lanes = (lanes < usize::MAX).then_some(lanes);
            Auto::new(auto::Setup { policy, find, workers, lanes, timeout }, &control)
        });
        let shared = Arc::new(Shared {
            runner: Runner::new(process.plan, stdin, patience)?,
            keep: process.keep,
            timeout,
            rows: Rows::new(rows),
            control,
            auto,
            taken: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            results: [AtomicU64::new(0), AtomicU64::new(0)],
            times: Times::default(),
            failure: Mutex::new(None),
            panicked: Mutex::new(None),
        });
        Runs::start(shared, lanes, threads)
    }

    /// Refuses what lanes cannot share; their standard input.
    fn check(&self) -> Result<Vec<u8>> {
        let Process { plan, strace, hook, input, .. } = &self.process;
        let refused = [
            (strace.is_some(), "system calls cannot be printed"),
            (hook.is_some(), "system calls cannot be decided about"),
            (plan.binds.iter().any(|bind| bind.writable), "no folder of the host can be written"),
        ];
        if let Some((_, what)) = refused.iter().find(|(is_asked, _)| *is_asked) {
            return Err(Error::NotOfMany(what));
        }
        if plan.engine.is_gpu() && plan.realtime {
            return Err(Error::NotOfMany("programs on a GPU have no real time"));
        }
        match input {
            Input::Bytes(bytes) => Ok(bytes.iter().copied().collect()),
            Input::Host(_) => Err(Error::NotOfMany("no lane can have the host's standard input")),
        }
    }
}

fn threads(wanted: usize) -> usize {
    match wanted {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

/// What a lane did.
#[derive(Debug)]
pub struct LaneOutcome {
    /// Its number: that of its row.
    pub lane: u64,
    /// The engine that it ran on, or began on, if it was [moved](Outcome::moved).
    pub engine: EngineKind,
    /// What it did, or why it could not begin: [`Error::Program`] or [`Error::Sandbox`], because of its row. Failures of
    /// the host end the run instead.
    pub result: Result<Outcome>,
}

/// Results as they come. Ends when all rows are done or the run was cancelled. If a row cannot be made or the host fails, that
/// is the last that it gives. Dropping it cancels the run.
pub struct Runs {
    shared: Arc<Shared>,
    results: Receiver<LaneOutcome>,
    workers: Vec<JoinHandle<()>>,
}

/// Watches a run from another thread.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

/// What workers have in common.
pub(super) struct Shared {
    pub(super) runner: Runner,
    keep: Option<PathBuf>,
    timeout: Option<Duration>,
    pub(super) rows: Rows,
    /// Ends the run: the caller has cancelled it, or has dropped it, or it has failed.
    pub(super) control: Arc<RunControl>,
    /// With the engine `auto`.
    pub(super) auto: Option<Auto>,
    /// Lanes that have begun.
    pub(super) taken: AtomicU64,
    /// Those whose results were handed over, or that have none.
    pub(super) ended: AtomicU64,
    /// Results of lanes that began on the engine of the run, and on a GPU beside it.
    results: [AtomicU64; 2],
    /// What lanes on a GPU spend their time on.
    pub(super) times: Times,
    /// Why there are no more results than there are.
    failure: Mutex<Option<Error>>,
    /// What making a row has panicked with, where nobody waits for who made it.
    panicked: Mutex<Option<Panic>>,
}

/// What somebody has panicked with.
pub(super) type Panic = Box<dyn Any + Send>;

impl Watch {
    /// Lanes that have begun and not ended.
    pub fn running(&self) -> u64 {
        self.0.running()
    }

    /// Lanes that have ended.
    pub fn ended(&self) -> u64 {
        self.0.ended.load(Ordering::Relaxed)
    }

    /// Instructions that were executed so far; lags slightly behind. What lanes have in common is executed once.
    pub fn instructions(&self) -> u64 {
        self.0.control.executed()
    }

    /// Where the lanes are that have ended, and why there.
    pub fn placement(&self) -> Placement {
        self.0.placement()
    }
}

impl Runs {
    fn start(shared: Arc<Shared>, lanes: usize, threads: usize) -> Result<Runs> {
        let is_on_gpu = shared.runner.engine().is_gpu();
        // There, very many end at a time, and those that run have more of the host's memory than results.
        let (sender, results) =
            sync_channel(if is_on_gpu { MOST_WAITING_ON_GPU } else { MOST_WAITING });
        if is_on_gpu {
            let workers = vec![lanes::start(&shared, &sender, lanes, threads)?];
            return Ok(Runs { shared, results, workers });
        }
        let (mut workers, wanted) = (Vec::new(), lanes.min(threads).max(1));
        for _ in 0..wanted {
            let working = Working { shared: shared.clone(), results: sender.clone() };
            let builder = thread::Builder::new().name("kvrm lanes".to_string());
            match builder.spawn(move || working.work()) {
                Ok(worker) => workers.push(worker),
                // Fewer do as well.
                Err(error) if workers.is_empty() => return Err(Error::NoThread(error)),
                Err(_) => {}
            }
        }
        if shared.auto.is_some() {
            // Without it, lanes stay on the CPU.
            workers.extend(auto::start(&shared, &sender, threads).ok());
        }
        Ok(Runs { shared, results, workers })
    }

    /// The engine that lanes begin on. With `auto`, that is `cpu`, and [`placement`](Runs::placement) says where they were.
    pub fn engine(&self) -> EngineKind {
        self.shared.runner.engine()
    }

    /// Where the lanes are that have ended, and why there.
    pub fn placement(&self) -> Placement {
        self.shared.placement()
    }

    /// Watches the run while somebody else takes its results.
    pub fn watch(&self) -> Watch {
        Watch(self.shared.clone())
    }

    /// The next result, if it comes within this time.
    pub fn next_within(&mut self, time: Duration) -> Poll<Option<Result<LaneOutcome>>> {
        let mut left = time;
        loop {
            match self.results.recv_timeout(left.min(LOOK)) {
                Ok(ran) => return Poll::Ready(Some(Ok(ran))),
                Err(RecvTimeoutError::Disconnected) => {
                    self.join();
                    break;
                }
                // A worker may be waiting for a row that never comes.
                Err(RecvTimeoutError::Timeout) if self.shared.is_over() => break,
                Err(RecvTimeoutError::Timeout) => left = left.saturating_sub(LOOK),
            }
            if left.is_zero() {
                return Poll::Pending;
            }
        }
        if let Some(panicked) = self.shared.panicked().take() {
            panic::resume_unwind(panicked);
        }
        Poll::Ready(self.shared.failure().take().map(Err))
    }

    /// Waits for workers that are about to end. A panic of theirs goes on here.
    fn join(&mut self) {
        for worker in self.workers.drain(..) {
            if let Err(panicked) = worker.join() {
                panic::resume_unwind(panicked);
            }
        }
    }
}

impl Iterator for Runs {
    type Item = Result<LaneOutcome>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Poll::Ready(result) = self.next_within(Duration::MAX) {
                return result;
            }
        }
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.shared.control.cancel();
        // Workers that run a lane end soon; one that waits for a row ends when it has come.
        while !self.shared.is_over() {
            if let Err(RecvTimeoutError::Disconnected) = self.results.recv_timeout(LOOK) {
                break;
            }
        }
    }
}

/// A worker of the engine of the run.
struct Working {
    shared: Arc<Shared>,
    results: SyncSender<LaneOutcome>,
}

impl Working {
    /// Runs row after row.
    fn work(&self) {
        let shared = &self.shared;
        while !shared.control.is_cancelled() {
            let (lane, row) = match shared.rows.next() {
                Some(Ok(row)) => {
                    shared.taken.fetch_add(1, Ordering::Release);
                    row
                }
                // Lanes that have begun end as they would without it.
                Some(Err(error)) => {
                    shared.fail(error);
                    continue;
                }
                None => match shared.auto.as_ref().and_then(|auto| auto.take_over(shared)) {
                    Some(row) => row,
                    None => return,
                },
            };
            shared.run_one(lane, row, &self.results);
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if let Some(auto) = &self.shared.auto {
            auto.leave();
        }
    }
}

impl Shared {
    /// Runs the program with a row that was taken, and hands the result over.
    pub(super) fn run_one(&self, lane: u64, row: Row, results: &SyncSender<LaneOutcome>) {
        match self.run_row(lane, row) {
            // Nobody takes it if the run was dropped, which has cancelled it.
            Ok(Some(ran)) => drop(results.send(ran)),
            Ok(None) => {}
            Err(error) => {
                self.fail(error);
                self.control.cancel();
            }
        }
        self.ended.fetch_add(1, Ordering::Release);
    }

    /// Notes why the run ends early. The first reason counts.
    pub(super) fn fail(&self, error: Error) {
        self.failure().get_or_insert(error);
    }

    fn failure(&self) -> MutexGuard<'_, Option<Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that making a row has panicked, which ends the run.
    pub(super) fn panic(&self, panicked: Panic) {
        self.panicked().get_or_insert(panicked);
        self.control.cancel();
    }

    fn panicked(&self) -> MutexGuard<'_, Option<Panic>> {
        self.panicked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the program with a row; `None` if the run was cancelled before its end.
    fn run_row(&self, lane: u64, row: Row) -> Result<Option<LaneOutcome>> {
        let control = self.control_of_lane(&self.control);
        let began = self.auto.as_ref().map(Auto::begin);
        let result = self.runner.run(row, self.keep_of(lane), &control);
        if let (Some(auto), Some(began)) = (&self.auto, began) {
            auto.end(began, result.as_ref().ok());
        }
        self.ran(lane, self.runner.engine(), &control, result)
    }

    /// Where the files go that a lane writes, if they are kept.
    pub(super) fn keep_of(&self, lane: u64) -> Option<PathBuf> {
        self.keep.as_ref().map(|directory| directory.join(lane.to_string()))
    }

    /// A control for a lane that is about to begin, as a part of this one.
    pub(super) fn control_of_lane(&self, whole: &Arc<RunControl>) -> RunControl {
        let control = RunControl::part_of(whole);
        match self.timeout {
            Some(timeout) => control.with_timeout(timeout),
            None => control,
        }
    }

    /// What the caller gets of a lane; `None` if the run was cancelled before its end. Failures of the host are errors.
    pub(super) fn ran(
        &self,
        lane: u64,
        engine: EngineKind,
        control: &RunControl,
        result: Result<Outcome>,
    ) -> Result<Option<LaneOutcome>> {
        let result = match result {
            Ok(outcome) if outcome.ending == Ending::Cancelled && !control.timed_out() => {
                return Ok(None);
            }
            Ok(outcome) => Ok(outcome),
            Err(error @ (Error::Program(_) | Error::Sandbox(_))) => Err(error),
            Err(host) => return Err(host),
        };
        let is_beside = engine != self.runner.engine();
        self.results[usize::from(is_beside)].fetch_add(1, Ordering::Relaxed);
        Ok(Some(LaneOutcome { lane, engine, result }))
    }

    fn placement(&self) -> Placement {
        let results = self.results.each_ref().map(|count| count.load(Ordering::Relaxed));
        let (lanes, why) = match &self.auto {
            Some(auto) => auto.placement(results),
            None => (vec![(self.runner.engine(), results[0])], None),
        };
        Placement { lanes, why, gpu: self.times.so_far() }
    }

    fn running(&self) -> u64 {
        // In this order, so that it is never below zero.
        let ended = self.ended.load(Ordering::Acquire);
        self.taken.load(Ordering::Acquire).saturating_sub(ended)
    }

    /// True if the run was cancelled and no lane is under way any more.
    fn is_over(&self) -> bool {
        self.control.is_cancelled() && self.running() == 0
    }
}
