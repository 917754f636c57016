//! Lanes of an engine, each with the program of a row, from the first row to the last.
//!
//! A station lets its lanes run until some have stopped. It serves these on all threads of the host, gives lanes that are free
//! the next rows, and lets all go on. There are two on a device, so that one serves while lanes of the other run.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kvrm_engine::{Lacking, MemoryChange, Piece, RunControl, Stop};
use kvrm_linux::supervisor::{self, Given};
use kvrm_linux::{Kernel, Next};

use super::super::many::LaneOutcome;
use super::super::rows::Row;
use super::super::runner::ended;
use super::arguments::{self, Known};
use super::base::Base;
use super::feed::Feed;
use super::guest::{SharedEngine, SharedLane, lock};
use super::side::{Fate, Side, Taken};
use super::supervising::{self, Calls, Served};
use crate::Result;

/// How long somebody without anything to do waits before looking again.
const PATIENCE: Duration = Duration::from_millis(20);

/// A program that runs in a lane, or has left it.
pub(super) struct Program {
    row: Taken,
    kernel: Kernel,
    control: RunControl,
    lane: SharedLane,
    /// What the lane's counter was when it last went on, and the instructions it was given then.
    counter: u64,
    instructions: u64,
    /// What its supervisor was given, if it serves calls.
    given: Option<Given>,
}

/// Lanes of an engine.
pub(super) struct Station {
    server: Server,
    feed: Feed,
    /// What runs in each lane of the engine.
    programs: Vec<Option<Box<Program>>>,
    /// A row that was taken before.
    first: Option<(Taken, Row)>,
}

/// What serves lanes that have stopped, on many threads.
pub(super) struct Server {
    pub(super) side: Arc<Side>,
    pub(super) results: SyncSender<LaneOutcome>,
    /// Where programs go that do not stay in their lane.
    pub(super) leaving: Sender<Leaving>,
    pub(super) engine: Arc<SharedEngine>,
    pub(super) base: Arc<Base>,
    /// Threads that serve.
    pub(super) threads: usize,
    /// Whether supervisors are worth it.
    pub(super) calls: Calls,
}

/// What is to be done elsewhere.
pub(super) enum Leaving {
    /// A program goes on.
    Program(Box<Program>),
    /// A row is run again from the beginning.
    Again(Taken),
}

/// What is to do for a lane.
enum Task {
    /// Its next program.
    Begin(Taken, Row),
    /// What stopped it, how many instructions it has completed, and what its supervisor has done.
    Stopped(Box<Program>, Option<Stop>, u64, Option<Served>),
    /// Its supervisor has to finish what it does; how many instructions the program has completed.
    Interrupted(Box<Program>, u64),
}

/// A program that goes on for so many instructions; none, if the lane is free.
type Then = Option<(Box<Program>, u64)>;

impl Station {
    /// Lanes without programs.
    pub(super) fn new(server: Server, feed: Feed) -> Station {
        let lanes = lock(&server.engine).config().lanes;
        Station { server, feed, programs: (0..lanes).map(|_| None).collect(), first: None }
    }

    /// Has a row that was taken before.
    pub(super) fn begin_with(&mut self, first: (Taken, Row)) {
        self.first = Some(first);
    }

    /// Runs rows until there are no more, or the run is cancelled.
    pub(super) fn run(mut self) {
        if let Err(error) = self.run_all() {
            self.server.side.fail(error);
        }
        let kernels = lock(&self.server.engine).start_times().kernels;
        let waited = kernels.iter().map(|kernel| kernel.time).sum();
        self.server.side.shared.times.compiled(waited);
        self.server.side.abandon(self.programs.iter().flatten().count());
    }

    fn run_all(&mut self) -> Result<()> {
        let mut stopped = Vec::new();
        while !self.server.side.control.is_cancelled() {
            let side = self.server.side.clone();
            let times = &side.shared.times;
            let mut tasks = times.move_state(|| self.look(&stopped))?;
            let may_have_more = self.begin(&mut tasks);
            let is_idle = tasks.is_empty() && self.programs.iter().all(Option::is_none);
            if is_idle && !may_have_more {
                return Ok(());
            }
            let served = times.serve(|| self.server.serve(tasks))?;
            times.move_state(|| self.go_on(served))?;
            stopped = times.run(|| lock(&self.server.engine).advance(&side.control))?;
        }
        Ok(())
    }

    /// Finds out what lanes have stopped for, and brings along what their kernels are going to read.
    fn look(&mut self, stopped: &[usize]) -> Result<Vec<(usize, Task)>> {
        let engine = lock(&self.server.engine);
        let programs =
            stopped.iter().map(|lane| self.programs[*lane].take().expect("it was running"));
        let programs: Vec<_> = programs.collect();
        let given = programs.iter().map(|program| program.given.as_ref());
        let given: Vec<_> = stopped.iter().copied().zip(given).collect();
        let heads = supervising::heads(&**engine, &given)?;
        let (mut tasks, mut states, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
        for ((&lane, program), head) in stopped.iter().zip(programs).zip(heads) {
            let (mut state, status) = (engine.state(lane)?, engine.status(lane)?);
            let (stop, counter) = supervising::go_back(&mut state, status, head.as_ref());
            let executed = counter.wrapping_sub(program.counter);
            if stop == Some(Stop::MaxCycles) && state.caller != 0 {
                tasks.push((lane, Task::Interrupted(program, executed)));
            } else {
                if matches!(stop, Some(Stop::Syscall { .. })) {
                    pieces.extend(arguments::pieces(lane, &state.x, &program.kernel));
                }
                pieces.extend(head.iter().flat_map(|head| supervising::outputs(lane, head)));
                let served = head.map(Served::new);
                tasks.push((lane, Task::Stopped(program, stop, executed, served)));
            }
            states.push((state, status.count));
        }
        let mut known = Known::read(&**engine, &pieces)?;
        let x = |index: usize| &states[index].0.x;
        let buffers = tasks.iter().enumerate().flat_map(|(index, (lane, _))| {
            arguments::buffers(*lane, x(index), |addr| known.find(*lane, addr))
        });
        let buffers: Vec<Piece> = buffers.collect();
        known.add(Known::read(&**engine, &buffers)?);
        for ((lane, task), (state, executed)) in tasks.iter_mut().zip(states) {
            let program = match task {
                Task::Begin(..) => continue,
                Task::Interrupted(program, _) => program,
                Task::Stopped(program, _, _, served) => {
                    let output = |addr| known.find(*lane, addr).unwrap_or_default();
                    served.iter_mut().for_each(|served| served.take_outputs(output));
                    program
                }
            };
            lock(&program.lane).stopped(state, executed, known.take(*lane));
        }
        Ok(tasks)
    }

    /// Takes rows for lanes that are free. False if there will never be more.
    fn begin(&mut self, tasks: &mut Vec<(usize, Task)>) -> bool {
        let mut free = vec![true; self.programs.len()];
        tasks.iter().for_each(|(lane, _)| free[*lane] = false);
        let is_free = |lane: &usize| free[*lane] && self.programs[*lane].is_none();
        let free: Vec<usize> = (0..self.programs.len()).filter(is_free).collect();
        let is_idle = tasks.is_empty() && free.len() == self.programs.len();
        let patience = if is_idle && self.first.is_none() { PATIENCE } else { Duration::ZERO };
        let most = free.len().saturating_sub(usize::from(self.first.is_some()));
        let lanes = self.programs.len();
        let allowed = self.server.side.allowance(lanes, [most, lanes - free.len()]);
        let wanted = allowed.unwrap_or(0).min(most);
        let mut rows = self.feed.take(most, wanted, patience);
        self.server.side.begin(rows.len());
        if !free.is_empty() {
            rows.extend(self.first.take());
        }
        tasks.extend(
            free.into_iter().zip(rows).map(|(lane, (row, of))| (lane, Task::Begin(row, of))),
        );
        !self.feed.has_ended() && (allowed.is_some() || self.feed.is_waiting())
    }

    /// Brings the engine up to date, and lets lanes go on.
    fn go_on(&mut self, served: Vec<(usize, Then)>) -> Result<()> {
        let (mut changes, mut free) = (Vec::new(), Vec::new());
        let mut engine = lock(&self.server.engine);
        for (lane, then) in &served {
            match then {
                None => free.push(*lane),
                Some((program, _)) => {
                    let mut host = lock(&program.lane);
                    engine.set_state(*lane, &host.state)?;
                    if let Some(vectors) = host.take_vectors() {
                        engine.set_vectors(*lane, &vectors)?;
                    }
                    changes.push((*lane, host.take_changes()));
                }
            }
        }
        free.sort_unstable();
        engine.reset_each(&free)?;
        let refused = engine.change_memory(&changes)?;
        drop(engine);
        let mut given = Vec::new();
        for (lane, then) in served {
            let Some((mut program, instructions)) = then else { continue };
            if refused.contains(&lane) {
                let at = changes.iter().position(|(other, _)| *other == lane);
                let (_, changes) = changes.swap_remove(at.expect("it had changes"));
                match self.server.refuse(lane, program, changes)? {
                    ControlFlow::Break(()) => continue,
                    ControlFlow::Continue(again) => program = again,
                }
            }
            let (count, state) =
                (lock(&self.server.engine).status(lane)?.count, lock(&program.lane).state);
            if state.caller == 0 {
                program.counter = count.wrapping_add(state.counter);
            }
            self.programs[lane] = Some(program);
            given.push((lane, instructions));
        }
        Ok(lock(&self.server.engine).give(&given)?)
    }
}

impl Server {
    /// Does what is to do, on all threads.
    fn serve(&self, tasks: Vec<(usize, Task)>) -> Result<Vec<(usize, Then)>> {
        /// Tasks that a thread takes together.
        const CHUNK: usize = 16;
        let tasks: Vec<Mutex<Option<(usize, Task)>>> =
            tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<(usize, Then)>> {
            let mut served = Vec::new();
            loop {
                let first = next.fetch_add(CHUNK, Ordering::Relaxed);
                if first >= tasks.len() {
                    return Ok(served);
                }
                for task in &tasks[first..tasks.len().min(first + CHUNK)] {
                    let (lane, task) = lock(task).take().expect("one thread gets it");
                    served.push((lane, self.serve_one(lane, task)?));
                }
            }
        };
        let threads = self.threads.min(tasks.len().div_ceil(CHUNK)).max(1);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut all = work()?;
            for other in others {
                match other.join() {
                    Ok(served) => all.extend(served?),
                    Err(panicked) => std::panic::resume_unwind(panicked),
                }
            }
            Ok(all)
        })
    }

    fn serve_one(&self, lane: usize, task: Task) -> Result<Then> {
        let program = match task {
            Task::Begin(row, of) => match self.load(lane, row, of)? {
                Some(program) => program,
                None => return Ok(None),
            },
            Task::Stopped(program, ..) | Task::Interrupted(program, _)
                if !self.side.has(program.row) =>
            {
                return Ok(None);
            }
            Task::Interrupted(program, executed) => {
                // One at a time is enough for the supervisor, and never too many for the program.
                let left = program.instructions.saturating_sub(executed).max(1);
                return Ok(Some((program, left)));
            }
            Task::Stopped(mut program, stop, executed, served) => {
                let times = &self.side.shared.times;
                if let Some(served) = served {
                    times.called_in_lane(served.tell(&mut program.kernel)?);
                }
                if matches!(stop, Some(Stop::Syscall { .. })) {
                    times.called_host();
                    self.calls.made(&program.kernel, &lock(&program.lane).state);
                }
                program.kernel.stopped(stop, executed)?;
                program
            }
        };
        self.prepare(program)
    }

    /// Loads the program of a row; none, if it cannot be loaded, or somebody else has the row.
    fn load(&self, lane: usize, row: Taken, of: Row) -> Result<Option<Box<Program>>> {
        if !self.side.has(row) {
            return Ok(None);
        }
        let control = self.side.control_of_lane();
        let (kernel, host) = match self.base.begin(&self.side.shared.runner, of, lane) {
            Ok(begun) => begun,
            Err(error) => {
                if let ControlFlow::Continue(refused) = self.side.refused(row, error)? {
                    self.send(Some(refused));
                }
                return Ok(None);
            }
        };
        lock(&host).settle(&self.engine, lane);
        self.calls.begun();
        let (counter, instructions, given, lane) = (0, 0, None, host);
        Ok(Some(Box::new(Program { row, kernel, control, lane, counter, instructions, given })))
    }

    /// Finds out how a program goes on: here, elsewhere, or not at all.
    fn prepare(&self, mut program: Box<Program>) -> Result<Then> {
        if program.has_left() {
            self.side.leave();
            // If nobody is there to take it, the run has been cancelled.
            drop(self.leaving.send(Leaving::Program(program)));
            return Ok(None);
        }
        match program.kernel.next(u64::MAX, &program.control)? {
            Next::Run { instructions } => {
                program.instructions = instructions;
                if self.calls.are_worth_supervising() {
                    program.supervise();
                }
                Ok(Some((program, instructions)))
            }
            Next::End(ending) => {
                let Program { row, kernel, control, .. } = &mut *program;
                match self.side.fate(*row, ending, control, true) {
                    Fate::Result => {
                        let outcome = ended(kernel, ending, self.side.shared.keep_of(row.lane));
                        self.send(self.side.ran(*row, control, outcome)?);
                    }
                    Fate::Again => {
                        self.side.leave();
                        drop(self.leaving.send(Leaving::Again(*row)));
                    }
                    Fate::Nothing => {}
                }
                Ok(None)
            }
            Next::Pause => unreachable!("there is nothing to pause for"),
        }
    }

    /// Hands a result over, if there is one.
    fn send(&self, ran: Option<LaneOutcome>) {
        // Nobody takes it if the run was dropped, which has cancelled it.
        ran.into_iter().for_each(|ran| drop(self.results.send(ran)));
        self.side.shared.ended.fetch_add(1, Ordering::Release);
    }

    /// Lets a program leave for whose memory the engine has no room.
    fn refuse(
        &self,
        lane: usize,
        mut program: Box<Program>,
        changes: Vec<MemoryChange>,
    ) -> Result<ControlFlow<(), Box<Program>>> {
        lock(&program.lane).put_back(changes);
        program.given = None;
        let full = Stop::OutOfMemory { lacking: Lacking::Pages };
        program.kernel.stopped(Some(full), 0)?;
        lock(&self.engine).reset(lane..lane + 1)?;
        match self.prepare(program)? {
            None => Ok(ControlFlow::Break(())),
            Some((program, _)) => Ok(ControlFlow::Continue(program)),
        }
    }
}

impl Program {
    /// Gives its supervisor what that needs until the program stops.
    fn supervise(&mut self) {
        self.given = self.kernel.desk(self.given.as_ref());
        let mut lane = lock(&self.lane);
        lane.state.supervisor = self.given.as_ref().map_or(0, |_| supervisor::PROGRAM);
        self.given.iter().flat_map(Given::pieces).for_each(|(addr, bytes)| lane.write(addr, bytes));
    }

    /// True if it does not run in its lane any more: it needs a machine for more than one thread, or for another program.
    fn has_left(&self) -> bool {
        Arc::strong_count(&self.lane) == 1
    }

    /// Runs to its end on the machine that it went to. The row, if it is to be run again.
    pub(super) fn finish(
        mut self,
        side: &Side,
        results: &SyncSender<LaneOutcome>,
    ) -> Option<Taken> {
        let Program { row, kernel, control, .. } = &mut self;
        let outcome = match kernel.run(control) {
            Ok(ending) => match side.fate(*row, ending, control, false) {
                Fate::Result => ended(kernel, ending, side.shared.keep_of(row.lane)),
                Fate::Again => return Some(*row),
                Fate::Nothing => return None,
            },
            Err(error) => Err(error.into()),
        };
        match side.ran(*row, control, outcome) {
            Ok(ran) => ran.into_iter().for_each(|ran| drop(results.send(ran))),
            Err(error) => side.fail(error),
        }
        side.shared.ended.fetch_add(1, Ordering::Release);
        None
    }
}
