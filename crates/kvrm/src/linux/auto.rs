//! Rows that run where they are done soonest: on the `cpu` engine from the start, and on a GPU beside it, if that is worth it.
//!
//! ```text
//!  Rows ──► workers of cpu ──────────────► results
//!    └────► Side: lanes of a GPU ────────►
//!             │ Loans: rows that it has ──► workers without anything else to do; all of them, if it fails
//! ```
//!
//! A thread watches what the workers do, and looks for a GPU when the [`Policy`] says that one would be of use. From then on
//! the GPU takes rows when it has room, as many as it may.

mod loans;
mod policy;
mod story;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kvrm_engine::RunControl;

use super::lanes::{self, Device, Side, lock};
use super::many::{LaneOutcome, Shared};
use super::outcome::Outcome;
use super::rows::Row;
use crate::{EngineKind, Error, Result};
use loans::Loans;
use policy::{Chance, OnCpu, OnGpu};
use story::Story;

pub use policy::Policy;
pub use story::Placement;

/// How often somebody looks whether a GPU would be of use.
const TICK: Duration = Duration::from_millis(100);
/// Calls after which a program is no longer in a lane of a GPU.
const LEAVING: [&str; 4] = ["clone", "clone3", "execve", "execveat"];

/// How a GPU is found, if there is one.
pub(super) type Find = Box<dyn Fn() -> Option<Device> + Send + Sync>;

/// What is asked for.
pub(super) struct Setup {
    pub(super) policy: Policy,
    /// None, if rows have to stay on `cpu`.
    pub(super) find: Option<Find>,
    /// Threads that run rows.
    pub(super) workers: usize,
    /// Lanes that may be under way at a time, if somebody said.
    pub(super) lanes: Option<usize>,
    pub(super) timeout: Option<Duration>,
}

/// What is known and decided while rows run.
pub(super) struct Auto {
    setup: Setup,
    began: Instant,
    workers: Mutex<Workers>,
    /// Workers have gone.
    gone: Condvar,
    pub(super) loans: Loans,
    /// Ends what the GPU does.
    control: Arc<RunControl>,
    /// Nanoseconds that lanes of the GPU have waited for kernels, each half of them.
    compiling: Arc<AtomicU64>,
    gpu: Mutex<Gpu>,
    story: Mutex<Story>,
}

/// What workers of `cpu` have done.
#[derive(Default)]
struct Workers {
    there: usize,
    ended: u64,
    leavers: u64,
    /// Time for those that have ended.
    busy: f64,
    running: u64,
    /// The times at which those began that run.
    starts: f64,
}

/// What is known of the GPU.
#[derive(Default)]
struct Gpu {
    /// When its lanes began, and ended.
    since: Option<Instant>,
    until: Option<Instant>,
    /// Lanes that it may have.
    most: usize,
    /// It takes no more rows.
    has_enough: bool,
    /// Instructions a second of `cpu` without it.
    before: f64,
    /// When the trial began.
    mark: Mark,
    /// What it did in the last one.
    trial: Option<OnGpu>,
    ended: u64,
    /// Rows that were not done in its lanes.
    left: u64,
}

/// How far all were at some time.
#[derive(Clone, Copy, Default)]
struct Mark {
    elapsed: f64,
    on_cpu: f64,
    ran: f64,
    on_gpu: f64,
}

impl Auto {
    pub(super) fn new(setup: Setup, control: &Arc<RunControl>) -> Auto {
        let compiling = Arc::new(AtomicU64::new(0));
        let waited = compiling.clone();
        let control = RunControl::part_of(control).with_activities(move |_, work| {
            let start = Instant::now();
            work();
            waited.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        });
        let story = match setup.find {
            Some(_) => Story::Watched(Chance::Short),
            None => Story::RealTime,
        };
        let workers = Workers { there: setup.workers, ..Workers::default() };
        Auto {
            setup,
            began: Instant::now(),
            workers: Mutex::new(workers),
            gone: Condvar::new(),
            loans: Loans::default(),
            control: Arc::new(control),
            compiling,
            gpu: Mutex::default(),
            story: Mutex::new(story),
        }
    }

    /// Where rows were, and why.
    pub(super) fn placement(
        &self,
        [on_cpu, on_gpu]: [u64; 2],
    ) -> (Vec<(EngineKind, u64)>, Option<String>) {
        let story = lock(&self.story).clone();
        let kind = match story {
            Story::Used(kind)
            | Story::NotWorthIt(kind, _)
            | Story::Left(kind)
            | Story::Failed(kind, _) => Some(kind),
            Story::RealTime | Story::Watched(_) | Story::NoDevice | Story::Opened(_) => None,
        };
        let gpu = kind.filter(|_| on_gpu > 0).map(|kind| (kind, on_gpu));
        let cpu = Some((EngineKind::Cpu, on_cpu)).filter(|_| on_cpu > 0 || gpu.is_none());
        let row = |rows: u64, seconds: f64| (rows > 0).then(|| seconds / rows as f64);
        let workers = lock(&self.workers);
        let on_core = row(workers.ended, workers.busy);
        drop(workers);
        let on_lanes = row(on_gpu, self.ran(&lock(&self.gpu)));
        let lanes = gpu.into_iter().chain(cpu).collect();
        (lanes, Some(story.why([on_core, on_lanes])))
    }

    // Workers of `cpu`.

    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Notes that a worker begins with a row; when.
    pub(super) fn begin(&self) -> f64 {
        let (now, mut workers) = (self.now(), lock(&self.workers));
        workers.running += 1;
        workers.starts += now;
        now
    }

    /// Notes that it is done with it.
    pub(super) fn end(&self, began: f64, outcome: Option<&Outcome>) {
        let (now, mut workers) = (self.now(), lock(&self.workers));
        workers.running -= 1;
        workers.starts -= began;
        workers.busy += now - began;
        workers.ended += 1;
        let leaves = |outcome: &Outcome| {
            outcome.system_calls.iter().any(|(name, _)| LEAVING.contains(&&name[..]))
        };
        workers.leavers += u64::from(outcome.is_some_and(leaves));
    }

    /// Notes that a worker has gone.
    pub(super) fn leave(&self) {
        lock(&self.workers).there -= 1;
        self.gone.notify_all();
    }

    fn on_cpu(&self, shared: &Shared) -> OnCpu {
        // In this order, so that it is never below zero.
        let on_gpu = self.control.executed();
        let instructions = shared.control.executed().saturating_sub(on_gpu);
        let (now, workers) = (self.now(), lock(&self.workers));
        OnCpu {
            workers: self.setup.workers as f64,
            elapsed: now,
            ended: workers.ended as f64,
            leavers: workers.leavers as f64,
            running: workers.running as f64,
            busy: workers.busy + workers.running as f64 * now - workers.starts,
            instructions: instructions as f64,
        }
    }

    fn left(&self, shared: &Shared) -> f64 {
        let total = Some(shared.rows.most()).filter(|most| *most < usize::MAX);
        let taken = shared.taken.load(Ordering::Relaxed);
        let asked = self.setup.lanes.unwrap_or(0) as u64;
        Policy::left(total.map(|total| total as u64), taken, asked)
    }

    /// A row that a worker can take when there are no others: one that the GPU has, and would end later.
    pub(super) fn take_over(&self, shared: &Shared) -> Option<(u64, Row)> {
        let cpu = self.on_cpu(shared);
        let trial = lock(&self.gpu).trial;
        let seconds = self.setup.policy.lane_seconds(&cpu, trial.as_ref());
        let is_sooner =
            |age: Duration| self.setup.policy.is_sooner_on_cpu(&cpu, age.as_secs_f64(), seconds);
        let taken = self.loans.take_when(is_sooner, || shared.control.is_cancelled());
        self.end_if_done(shared);
        taken
    }

    // The GPU.

    /// Ends what the GPU does if there is nothing more for it: lanes may go on with rows that others have taken.
    pub(super) fn end_if_done(&self, shared: &Shared) {
        if shared.rows.have_ended() && self.loans.len() == 0 {
            self.control.cancel();
        }
    }

    pub(super) fn control_of_gpu(&self) -> &Arc<RunControl> {
        &self.control
    }

    /// How long lanes have run.
    fn ran(&self, gpu: &Gpu) -> f64 {
        let Some(since) = gpu.since else { return 0.0 };
        let until = gpu.until.unwrap_or_else(Instant::now);
        let waited = Duration::from_nanos(self.compiling.load(Ordering::Relaxed));
        ((until - since).as_secs_f64() - waited.as_secs_f64() / lanes::ENGINES as f64).max(0.0)
    }

    fn mark(&self, gpu: &Gpu, cpu: &OnCpu) -> Mark {
        let (on_cpu, on_gpu) = (cpu.instructions, self.control.executed() as f64);
        Mark { elapsed: cpu.elapsed, on_cpu, ran: self.ran(gpu), on_gpu }
    }

    /// Lanes of a GPU that a run could have.
    fn most_lanes(&self) -> usize {
        self.setup.lanes.map_or(usize::MAX, |lanes| lanes.saturating_sub(self.setup.workers))
    }

    /// Notes that lanes of the GPU are there, so many.
    pub(super) fn lanes_begin(&self, shared: &Shared, lanes: usize) {
        let cpu = self.on_cpu(shared);
        let mut gpu = lock(&self.gpu);
        let Mark { elapsed, on_cpu, .. } = match cpu.elapsed - gpu.mark.elapsed {
            time if time < self.setup.policy.trial => Mark::default(),
            _ => gpu.mark,
        };
        gpu.before = (cpu.instructions - on_cpu) / (cpu.elapsed - elapsed);
        gpu.since = Some(Instant::now());
        // Kernels that were compiled before have not kept them waiting.
        self.compiling.store(0, Ordering::Relaxed);
        gpu.most = lanes.min(self.setup.policy.first_lot.max(1));
        gpu.mark = self.mark(&gpu, &cpu);
        let told = &mut *lock(&self.story);
        if let Story::Opened(kind) = *told {
            *told = Story::Used(kind);
        }
    }

    /// How many more rows a half of the GPU may take that has room for `free`, of so many lanes, and runs `used`. None, if it
    /// will never be more.
    pub(super) fn allowance(
        &self,
        shared: &Shared,
        lanes: usize,
        [free, used]: [usize; 2],
    ) -> Option<usize> {
        if shared.rows.have_ended() || self.control.is_cancelled() {
            return None;
        }
        let cpu = self.on_cpu(shared);
        let mut gpu = lock(&self.gpu);
        self.judge(&mut gpu, &cpu, lanes * lanes::ENGINES);
        if gpu.has_enough {
            return None;
        }
        let running = self.loans.len();
        let part = gpu.most.div_ceil(lanes::ENGINES).saturating_sub(used);
        let room = free.min(part).min(gpu.most.saturating_sub(running));
        let policy = &self.setup.policy;
        let seconds = policy.lane_seconds(&cpu, gpu.trial.as_ref());
        let left = self.left(shared);
        Some(policy.lot(&cpu, left, [running, room], seconds, self.setup.timeout))
    }

    /// Ends a trial when it was long enough: then the GPU may have more lanes, or no more rows.
    fn judge(&self, gpu: &mut Gpu, cpu: &OnCpu, lanes: usize) {
        let policy = &self.setup.policy;
        if policy.is_left(gpu.ended, gpu.left) {
            return self.stop(gpu, Story::Left);
        }
        let (now, mark) = (self.mark(gpu, cpu), gpu.mark);
        let running = self.loans.len();
        if now.ran - mark.ran < policy.trial || running == 0 {
            return;
        }
        let (time, ran) = (now.elapsed - mark.elapsed, now.ran - mark.ran);
        let (on_cpu, instructions) = ((now.on_cpu - mark.on_cpu) / time, now.on_gpu - mark.on_gpu);
        let trial = OnGpu { ran, instructions, running: running as f64 };
        (gpu.trial, gpu.mark) = (Some(trial), now);
        let (on_gpu, may_grow) = (instructions / ran, gpu.most < lanes);
        if !policy.is_worth_it(gpu.before, on_cpu, on_gpu, may_grow) {
            let rates = [on_cpu + on_gpu, gpu.before];
            return self.stop(gpu, |kind| Story::NotWorthIt(kind, rates));
        }
        gpu.most = gpu.most.saturating_mul(2).min(lanes);
    }

    fn stop(&self, gpu: &mut Gpu, story: impl FnOnce(EngineKind) -> Story) {
        gpu.has_enough = true;
        let told = &mut *lock(&self.story);
        if let Story::Used(kind) = *told {
            *told = story(kind);
        }
    }

    /// Counts a row that has ended in a lane of the GPU, or was not done there.
    pub(super) fn count(&self, was_done: bool) {
        let mut gpu = lock(&self.gpu);
        match was_done {
            true => gpu.ended += 1,
            false => gpu.left += 1,
        }
    }

    /// Notes that the GPU cannot go on, and ends what it does.
    pub(super) fn fail(&self, error: &Error) {
        let told = &mut *lock(&self.story);
        match *told {
            Story::Opened(kind)
            | Story::Used(kind)
            | Story::NotWorthIt(kind, _)
            | Story::Left(kind) => *told = Story::Failed(kind, error.to_string()),
            // What follows from a failure is no news.
            Story::Failed(..) | Story::RealTime | Story::Watched(_) | Story::NoDevice => {}
        }
        self.control.cancel();
    }

    /// Waits until a GPU would be of use. False, if it never was before the workers had gone.
    fn wait(&self, shared: &Shared) -> bool {
        let (policy, mut warm) = (&self.setup.policy, None);
        loop {
            let workers = lock(&self.workers);
            if workers.there == 0 || shared.control.is_cancelled() || shared.rows.have_ended() {
                return false;
            }
            let waited = self.gone.wait_timeout(workers, TICK);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            let cpu = self.on_cpu(shared);
            let chance = policy.chance(&cpu, self.left(shared));
            *lock(&self.story) = Story::Watched(chance);
            if cpu.elapsed >= policy.watched {
                let mut gpu = lock(&self.gpu);
                // By now, most code is translated.
                gpu.mark = *warm.get_or_insert(self.mark(&gpu, &cpu));
            }
            if chance == Chance::Good {
                return true;
            }
        }
    }
}

/// Starts a thread that brings in a GPU if one is of use.
pub(super) fn start(
    shared: &Arc<Shared>,
    results: &SyncSender<LaneOutcome>,
    threads: usize,
) -> Result<JoinHandle<()>> {
    let (shared, results) = (shared.clone(), results.clone());
    let builder = thread::Builder::new().name("kvrm auto".to_string());
    builder.spawn(move || run(&shared, &results, threads)).map_err(Error::NoThread)
}

/// Lends nothing more when it is dropped: rows must not wait for a GPU that is not there.
struct Closing<'a>(&'a Loans);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn run(shared: &Arc<Shared>, results: &SyncSender<LaneOutcome>, threads: usize) {
    let Some(auto) = &shared.auto else { return };
    let _closing = Closing(&auto.loans);
    let Some(find) = &auto.setup.find else { return };
    if auto.most_lanes() == 0 || !auto.wait(shared) {
        return;
    }
    let Some(device) = find() else {
        *lock(&auto.story) = Story::NoDevice;
        return;
    };
    *lock(&auto.story) = Story::Opened(device.kind());
    let side = Arc::new(Side::beside(shared, auto, device.kind()));
    if let Err(error) = lanes::run_beside(&side, results, &device, auto.most_lanes(), threads) {
        side.fail(error);
    }
    lock(&auto.gpu).until = Some(Instant::now());
    // Rows that it has not done are for workers, and for others if these wait for rows.
    auto.loans.close();
    let work = || {
        while let Some((lane, row)) = auto.loans.take() {
            shared.run_one(lane, row, results);
        }
    };
    if !shared.control.is_cancelled() {
        thread::scope(|scope| {
            for _ in 0..threads.min(auto.loans.len()) {
                scope.spawn(work);
            }
        });
    }
    shared.ended.fetch_add(auto.loans.forget() as u64, Ordering::Release);
}
