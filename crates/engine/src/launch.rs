//! Lanes on a device, launched until they stop: what engines that interpret in kernels have in common.
//!
//! A run is a sequence of launches. After each, the host sees to the lanes that stopped in it: it decodes code
//! that they have reached, executes an instruction that changes code, makes room for pages that they write; what
//! else stops a lane is for whoever asked for the run.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use kvrm_a64::state::{CpuState, VectorState};
use kvrm_ir::Access;
use kvrm_mem::{Permissions, branch_target};

use advancing::Advancing;
use choosing::Choosing;
use kernels::{Contents, Kernels};

use crate::cache::{KernelCache, KernelKey};
use crate::code::{AHEAD, DecodedCode};
use crate::kernel::stop;
use crate::memory::{DeviceMemory, Missing};
use crate::mirror::{DeviceArray, Mirror};
use crate::slice::Share;
use crate::translation::Translation;
use crate::{Config, EngineError, FaultKind, Lacking, MemoryChange, RunControl, RunRequest, Stop};

/// A lane's counts and stop, as kernels keep them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Status {
    /// Instructions completed.
    pub count: u64,
    /// Instructions it may still complete in this run.
    pub budget: u64,
    /// The stop's detail.
    pub detail: u64,
    /// A number of [`stop`].
    pub stop: u32,
    /// Nothing.
    pub unused: u32,
}

/// Why the host cannot write where lanes have code.
const NO_ROOM_FOR_CODE: &str = "the device has no room for code that is different in so many lanes: use fewer lanes, several devices or the cpu engine";

/// Instructions from where a lane begins in mapped memory whose handlers are in the first kernel.
const AHEAD_IN_FIRST_KERNEL: usize = 128;

/// What a launch is about.
pub struct Launch<'a, A> {
    /// The code, as it was [uploaded](Launcher::upload).
    pub code: &'a DecodedCode,
    /// Registers of all lanes.
    pub states: &'a Mirror<CpuState, A>,
    /// Vector registers of all lanes.
    pub vectors: &'a Mirror<VectorState, A>,
    /// Counts and stops of all lanes.
    pub statuses: &'a Mirror<Status, A>,
    /// Instructions each lane may complete before it ends.
    pub share: u64,
    /// Where to report what has been executed.
    pub control: &'a RunControl,
}

/// What came of a launch.
pub struct Launched {
    /// How long it took.
    pub time: Duration,
    /// Instructions that all lanes together have completed in it.
    pub executed: u64,
    /// The lanes that stopped in it, in any order.
    pub stopped: Vec<u32>,
}

/// A device that has lanes, and the kernel that runs them.
pub trait Launcher: Send {
    /// The name users choose the engine by.
    const NAME: &'static str;
    /// Launches may take as long as the lanes run.
    const UNBOUNDED: bool;

    /// Arrays on the device.
    type Array: DeviceArray<CpuState> + DeviceArray<VectorState> + DeviceArray<Status> + Send;
    /// Guest memory on the device.
    type Memory: DeviceMemory;
    /// What kernels depend on, beside their handlers and what is translated.
    type Target: Copy + PartialEq + Debug + Send;
    /// A kernel that was compiled.
    type Compiled: Send + 'static;
    /// A kernel that can be launched.
    type Kernel: Send;

    /// Called before anything else is asked of it, on the same thread.
    fn select(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// The memory of all lanes.
    fn memory(&self) -> &Self::Memory;

    /// The same, to change it.
    fn memory_mut(&mut self) -> &mut Self::Memory;

    /// How long it took to open the device.
    fn start_time(&self) -> Duration;

    /// What kernels depend on now.
    fn target(&self, code: &DecodedCode) -> Self::Target;

    /// What compiles the kernel with the handlers that are chosen, and a translation, or finds it in the cache. It owns all that
    /// it uses, so that nobody has to wait for its end.
    fn compiler(
        &self,
        code: &DecodedCode,
        translation: Option<&Arc<Translation>>,
    ) -> Compile<Self::Compiled>;

    /// Makes of a compiled kernel one that can be launched. True if it was in the cache.
    fn load(&self, compiled: Self::Compiled) -> Result<(Self::Kernel, bool), EngineError>;

    /// What has code translated, if kernels can have such code.
    fn translator(&mut self) -> Option<&mut dyn Translator>;

    /// The most handlers that a kernel should have.
    fn most_handlers(&self) -> usize;

    /// Where compiled kernels are kept.
    fn cache(&self) -> KernelCache {
        KernelCache::open()
    }

    /// Where the cache keeps something that belongs to the device.
    fn key<'a>(&'a self, text: &'a str) -> KernelKey<'a>;

    /// Lets every lane run, and complete `max_cycles` more instructions. Where `in_kernel`, the next launch
    /// is soon enough; otherwise the host is going to look before that.
    fn begin(
        &mut self,
        statuses: &mut Mirror<Status, Self::Array>,
        max_cycles: u64,
        in_kernel: bool,
    ) -> Result<(), EngineError>;

    /// Forgets that the run before was cancelled.
    fn resume(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Brings records on the device [up to date](DecodedCode::upload).
    fn upload(&mut self, code: &mut DecodedCode) -> Result<(), EngineError>;

    /// Does what a kernel needs before it is launched for the first time, if it was not done yet. True if it was done now.
    fn warm_up(
        &mut self,
        _kernel: &mut Self::Kernel,
        _launch: &Launch<'_, Self::Array>,
    ) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// Runs all lanes that can, and waits for the end.
    fn launch(
        &mut self,
        kernel: &Self::Kernel,
        launch: &Launch<'_, Self::Array>,
    ) -> Result<Launched, EngineError>;
}

/// An engine whose lanes are on a device.
pub struct LaunchEngine<L: Launcher> {
    config: Config,
    states: Mirror<CpuState, L::Array>,
    vectors: Mirror<VectorState, L::Array>,
    statuses: Mirror<Status, L::Array>,
    /// Why lanes stopped in the last run.
    stops: Vec<Option<Stop>>,
    code: DecodedCode,
    share: Share,
    /// Lanes that stop on their own, if it is not a run that gives all of them instructions.
    advancing: Option<Advancing>,
    /// Instructions completed on the host, not reported yet.
    stepped: u64,
    kernels: Kernels<L>,
    choosing: Choosing,
    tiers: Tiers,
    // Last: everything above is on it.
    launcher: L,
}

impl<L: Launcher> Drop for LaunchEngine<L> {
    fn drop(&mut self) {
        // What is on the device is freed after this, perhaps on a thread that last used another device.
        let _ = self.launcher.select();
    }
}

impl<L: Launcher> LaunchEngine<L> {
    /// An engine with all registers zero. The arrays have an element per lane, of which up to `few` are faster
    /// copied one by one than all together.
    pub fn new(
        config: Config,
        launcher: L,
        [states, vectors, statuses]: [L::Array; 3],
        few: usize,
        share: Share,
    ) -> LaunchEngine<L> {
        let lanes = config.lanes;
        let code = match config.mapped {
            true if config.supervisor_bytes > 0 => {
                DecodedCode::of_mapped(config.memory_size).supervised(config.program_bytes())
            }
            true => DecodedCode::of_mapped(config.memory_size),
            false => DecodedCode::new(),
        };
        LaunchEngine {
            states: Mirror::new(states, CpuState::new(), lanes, few),
            vectors: Mirror::new(vectors, VectorState::new(), lanes, few),
            statuses: Mirror::new(statuses, Status::default(), lanes, few),
            stops: vec![None; lanes],
            code,
            share,
            advancing: None,
            stepped: 0,
            kernels: Kernels::default(),
            choosing: Choosing::default(),
            tiers: Tiers::default(),
            launcher,
            config,
        }
    }

    /// The same engine, whose kernels do not depend on those that other programs have needed: for tests.
    pub fn without_other_kernels(mut self) -> LaunchEngine<L> {
        self.choosing.keeps = false;
        self
    }

    /// The device.
    pub fn launcher(&self) -> &L {
        &self.launcher
    }

    /// The code that lanes have reached.
    pub fn code(&self) -> &DecodedCode {
        &self.code
    }

    /// Gives lanes the run's instructions; all of them, unless it continues one. How many have ended already.
    fn start(&mut self, request: &RunRequest<'_>) -> Result<usize, EngineError> {
        let max_cycles = request.max_cycles;
        self.advancing = None;
        if self.config.mapped {
            self.drop_tags_of(0..self.config.lanes)?;
        }
        let mut kept = Vec::new();
        for (lane, stop) in self.stops.iter_mut().enumerate() {
            match request.continues && stop.is_some_and(|stop| stop != Stop::MaxCycles) {
                true => kept.push(lane),
                false => *stop = (max_cycles == 0).then_some(Stop::MaxCycles),
            }
        }
        let passes = !request.continues && !self.code.breakpoints().is_empty();
        let in_kernel = kept.is_empty() && !passes;
        self.launcher.begin(&mut self.statuses, max_cycles, in_kernel)?;
        self.statuses.modify(&kept, |status| status.stop = stop::ENDED)?;
        Ok(kept.len())
    }

    /// Makes lanes in mapped memory begin where a branch to their PC would go.
    fn drop_tags_of(&mut self, lanes: impl IntoIterator<Item = usize>) -> Result<(), EngineError> {
        for lane in lanes {
            let mut state = self.states.get(lane)?;
            let target = branch_target(state.pc);
            if state.pc != target {
                state.pc = target;
                self.states.set(lane..lane + 1, state)?;
            }
        }
        Ok(())
    }

    /// Lanes that start at a breakpoint execute the instruction there. How many stop by that.
    fn pass_breakpoints(&mut self) -> Result<usize, EngineError> {
        let mut ended = Vec::new();
        if self.code.breakpoints().is_empty() {
            return Ok(0);
        }
        for lane in 0..self.config.lanes {
            let pc = self.states.get(lane)?.pc;
            if self.code.breakpoints().binary_search(&pc).is_ok() {
                let status = self.statuses.get(lane)?;
                self.stops[lane] = self.step(self.config.lanes, lane, status)?;
                if self.stops[lane].is_some() {
                    ended.push(lane);
                }
            }
        }
        self.end(&ended)?;
        Ok(ended.len())
    }

    fn run_lanes(&mut self, request: &RunRequest<'_>, ended: usize) -> Result<(), EngineError> {
        let passed = if request.continues { 0 } else { self.pass_breakpoints()? };
        request.control.report(0, passed as u64);
        let mut running = self.config.lanes - ended - passed;
        // Where all lanes have the same code, the first launch should find some.
        if running > 0 && self.code.is_empty() && !self.launcher.memory().has_copies() {
            let pc = self.states.get_of(1, 0)?.pc;
            let mut ahead = if self.config.mapped { AHEAD_IN_FIRST_KERNEL } else { AHEAD };
            // If there is none, the lane will say so.
            self.code.find(self.launcher.memory_mut(), 0, pc, &mut ahead)?;
        }
        let unbounded = request.single_launch && L::UNBOUNDED;
        while running > 0 && !request.control.is_cancelled() {
            let share = if unbounded { u64::MAX } else { self.share.of(running) };
            let share = self.tiers.share(&self.config, share);
            let launched = self.launch(share, running, request.control)?;
            let Some(Launched { time, executed, stopped }) = launched else { break };
            self.tiers.launched(share, executed, time, running);
            if !unbounded {
                self.share.adapt(time, stopped.len() < running);
            }
            running -= self.service(&stopped, request.control)?;
        }
        Ok(())
    }

    /// Launches the kernel that so many running lanes want. Nothing, if the run was cancelled before there was one.
    fn launch(
        &mut self,
        share: u64,
        running: usize,
        control: &RunControl,
    ) -> Result<Option<Launched>, EngineError> {
        self.choose_handlers(running, control)?;
        self.translate(control)?;
        if !self.load_kernel(control)? {
            return Ok(None);
        }
        self.launcher.upload(&mut self.code)?;
        self.states.upload()?;
        self.statuses.upload()?;
        self.states.will_change();
        self.statuses.will_change();
        if self.code.handlers.use_vectors() {
            self.vectors.upload()?;
            self.vectors.will_change();
        }
        let LaunchEngine { launcher, states, vectors, statuses, code, kernels, .. } = self;
        let launch = Launch { code, states, vectors, statuses, share, control };
        let start = Instant::now();
        if launcher.warm_up(kernels.current(), &launch)? {
            kernels.add_to_load(start.elapsed());
        }
        let launched = launcher.launch(kernels.current(), &launch)?;
        self.note_kernels();
        Ok(Some(launched))
    }

    /// What the kernel has that the code wants.
    fn wanted_kernel(&self) -> Contents<L::Target> {
        let translation = self.code.translation().map(|translation| &**translation);
        Contents::of(&self.code, translation, self.launcher.target(&self.code))
    }

    /// Makes sure that the kernel is in use which the code wants. False if the run is cancelled before it is compiled.
    fn load_kernel(&mut self, control: &RunControl) -> Result<bool, EngineError> {
        let wanted = self.wanted_kernel();
        if self.kernels.has(&wanted) {
            return Ok(true);
        }
        if !self.kernels.is_compiling(&wanted) {
            let compile = self.launcher.compiler(&self.code, self.code.translation());
            self.kernels.begin(wanted.clone(), compile)?;
        }
        Ok(self.kernels.wait(&self.launcher, control)? && self.kernels.has(&wanted))
    }

    /// Services lanes that stopped; returns how many ended. After the run has been cancelled, those that want something
    /// of the host do not get it any more, and do not end: another run begins with that.
    fn service(&mut self, lanes: &[u32], control: &RunControl) -> Result<usize, EngineError> {
        let (mut ended, mut ended_here, mut without_frame) = (0, Vec::new(), Vec::new());
        let (mut ahead, begin) = (AHEAD, Instant::now());
        self.choosing.begin_round();
        for lane in lanes.iter().map(|lane| *lane as usize) {
            let status = self.statuses.get_of(lanes.len(), lane)?;
            let stop = match status.stop {
                stop::NO_FRAME => {
                    without_frame.push(lane);
                    None
                }
                stop::NO_CODE | stop::CODE_WRITE if control.is_cancelled() => None,
                stop::NO_CODE => self.find_code(lanes.len(), lane, status.detail, &mut ahead)?,
                stop::CODE_WRITE => self.step(lanes.len(), lane, status)?,
                stop::NO_HANDLER if control.is_cancelled() => None,
                stop::NO_HANDLER => self.serve_without_handler(lanes.len(), lane, status, begin)?,
                stop => match stop::access_without_page(stop) {
                    Some(_) if control.is_cancelled() => None,
                    Some(access) => self.admit(lanes.len(), lane, access, status)?,
                    None => Some(self.meaning(stop, status.detail)),
                },
            };
            self.stops[lane] = stop;
            ended += usize::from(stop.is_some());
            if stop.is_some() && stop::is_for_host(status.stop) {
                ended_here.push(lane);
            }
        }
        if !without_frame.is_empty() && !self.make_frames()? {
            let stop = Some(Stop::OutOfMemory { lacking: Lacking::Pages });
            without_frame.iter().for_each(|lane| self.stops[*lane] = stop);
            ended += without_frame.len();
            ended_here.extend(without_frame);
        }
        self.end(&ended_here)?;
        control.report(std::mem::take(&mut self.stepped), ended as u64);
        Ok(ended)
    }

    /// Decodes code that a lane wants to go on with, one of `count` that have stopped. The stop, if it may not.
    fn find_code(
        &mut self,
        count: usize,
        lane: usize,
        pc: u64,
        ahead: &mut usize,
    ) -> Result<Option<Stop>, EngineError> {
        let is_program = pc < self.config.program_bytes() || !pc.is_multiple_of(4);
        if !is_program && self.states.get_of(count, lane)?.caller == 0 {
            return Ok(Some(Stop::Fault { kind: FaultKind::Fetch, address: pc }));
        }
        let stop = self.code.find(self.launcher.memory_mut(), lane, pc, ahead)?;
        if !is_program && stop.is_none() {
            // It is there to save time: the next kernel has all that it needs.
            self.code.meet_from(self.config.program_bytes());
            self.choosing.extend_soon();
        }
        Ok(stop)
    }

    /// The guest's stop that a kernel's number means.
    fn meaning(&self, number: u32, detail: u64) -> Stop {
        let stop = stop::meaning(number, detail, self.launcher.memory().bounds());
        if self.config.mapped { stop.untagged() } else { stop }
    }

    /// Sees to it that an access to mapped memory can proceed which a kernel could not make. The stop, if it may not.
    fn admit(
        &mut self,
        count: usize,
        lane: usize,
        access: Access,
        status: Status,
    ) -> Result<Option<Stop>, EngineError> {
        let memory = self.launcher.memory_mut();
        let map = memory.map().expect("only mapped memory lacks pages");
        let pages = match map.look(lane, access, status.detail) {
            Missing::Permission(refused) => return Ok(Some(Stop::from_fault(access, refused))),
            Missing::Unclear => return self.step(count, lane, status),
            Missing::Slots(pages) => pages,
        };
        match memory.add_slots(&pages) {
            Err(EngineError::DeviceFull(_)) => {
                Ok(Some(Stop::OutOfMemory { lacking: Lacking::Pages }))
            }
            added => added.map(|()| None),
        }
    }

    /// Forgets code that changes of a lane's memory affect. False if there is no room for what the lane needs then.
    fn forget_changed(
        &mut self,
        lane: usize,
        changes: &[MemoryChange],
    ) -> Result<bool, EngineError> {
        for change in changes {
            let (addr, len) = match change {
                MemoryChange::Write { addr, bytes } => (*addr, bytes.len() as u64),
                MemoryChange::Discard { addr, len } => (*addr, *len),
                MemoryChange::Protect { permissions, .. }
                    if permissions.contains(Permissions::EXECUTE) =>
                {
                    continue;
                }
                MemoryChange::Protect { addr, len, .. } => (*addr, *len),
            };
            let memory = self.launcher.memory();
            if !self.code.before_write(memory, lane..lane + 1, addr, len)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes frames for lanes that found none. False if the device has no room for any.
    fn make_frames(&mut self) -> Result<bool, EngineError> {
        match self.launcher.memory_mut().grow() {
            Err(EngineError::DeviceFull(_)) => Ok(false),
            made => made.map(|()| true),
        }
    }

    /// Executes one instruction of a lane here, one of `count` lanes. The stop, if it has to.
    fn step(
        &mut self,
        count: usize,
        lane: usize,
        mut status: Status,
    ) -> Result<Option<Stop>, EngineError> {
        let mut state = self.states.get_of(count, lane)?;
        let mut vectors = self.vectors.get_of(count, lane)?;
        let before = vectors;
        let memory = self.launcher.memory_mut();
        let (done, stop) = self.code.step(memory, lane, &mut state, &mut vectors, status.count)?;
        status.count += done;
        status.budget -= done;
        self.stepped += done;
        self.states.set_of(count, lane, state)?;
        if vectors != before {
            self.vectors.set_of(count, lane, vectors)?;
        }
        self.statuses.set_of(count, lane, status)?;
        Ok(stop.or((status.budget == 0).then_some(Stop::MaxCycles)))
    }

    /// Makes sure that lanes whose stop was found here do not go on.
    fn end(&mut self, lanes: &[usize]) -> Result<(), EngineError> {
        self.statuses.modify(lanes, |status| status.stop = stop::ENDED)?;
        let exception = |lane: &usize| self.stops[*lane].is_some_and(|stop| stop.is_exception());
        let excepted: Vec<usize> = lanes.iter().copied().filter(exception).collect();
        self.states.modify(&excepted, CpuState::take_exception)
    }
}

mod advancing;
mod choosing;
mod engine;
mod index;
mod kernels;
#[cfg(test)]
mod tests;
mod tiers;

pub use kernels::Compile;
use tiers::Tiers;
pub use tiers::Translator;
