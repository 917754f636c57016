//! The CPU engine: guest code is interpreted, and what stays hot is translated to the host's code with Cranelift.
//!
//! ```text
//!  guest words ──► records and handlers ──► interpreted ──► hot? ──► region ──► Cranelift ──► host code
//!                  (interpreter, handlers)                  (code)   (kvrm_translate)  (translate, emit)
//!
//!  run ──► one thread per core ──► lane by lane ──► enter ──► … from record to record … ──► exit
//!          (turns)                 (runner)         (stubs)                                 (runner)
//! ```
//!
//! **Records.** Every address that lanes have reached has a record (`record`): the host code to run there, and the
//! parameters of its instruction. All host code goes on with the code of another record by a tail call, without
//! returning to the engine. What runs at an address changes for all ways there when its record changes.
//!
//! **Interpreting.** A handler does what one shape of instruction does (`handlers`). All machines of the process share
//! them (`interpreter`), and they are kept on disk (`library`), so starting a program compiles little or nothing.
//!
//! **Translating.** Branches count how often a record is reached. What direct branches reach from a hot one, as far as it
//! has been executed, is translated together. In a small loop, guest registers are variables of that function and stay in
//! host registers; elsewhere they are in the lane context, which costs far less to compile and little to run
//! (`registers`). A region ends where another begins (`code`). Flags are computed where they are read (`flags`).
//! Translations are kept on disk for the next process that runs the same code (`kept`).
//!
//! **Counting.** Code gets *fuel*, the number of instructions it may execute. Translations take a block's length from it
//! at the block's start; interpreted code looks at it where it branches. When less is left than could be needed, the
//! engine executes exactly the rest, in copies of the records.
//!
//! **Memory.** Loads are checked against the size. Stores are also checked against a byte of state per
//! 64-byte granule, which finds in one look the first write to a page (for cheap resets) and
//! writes to decoded words. In mapped memory, whose pages have permissions, loads are checked against that byte, too: it
//! says what was found out about the page (`mapped`). Accesses of a translation that lie near each other are checked
//! together (`memory`). A lane that changes code it shares with others through the image gets
//! records of its own. Words that are written are decoded anew, and translations made from them are forgotten; words that
//! change again and again are interpreted, and what is around them is translated without them.
//!
//! **Sharing.** Machines of processes share records and translations in pools (`pool`), as long as they agree on their code
//! (`segments`, `sharing`).
//!
//! **Memory for code.** All records and translations of a machine have a budget (`code_memory`). When it is spent, all
//! lanes leave their code at the end of what they are doing, everything is forgotten, and what is still needed is made
//! again. Handlers belong to the process and are not counted.

mod arena;
mod code;
mod code_memory;
mod compiler;
mod context;
mod deriving;
mod emit;
mod file;
mod flags;
mod handlers;
mod hashing;
mod index;
mod interpreter;
mod kept;
mod lane;
mod leaving;
mod library;
mod mapped;
mod memory;
mod packed;
mod pool;
mod record;
mod registers;
mod runner;
mod segments;
mod sharing;
mod slow;
mod stubs;
mod translate;
mod turns;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvrm_a64::state::{CpuState, V_REGISTERS, VectorState};
use kvrm_engine::cache::KernelCache;
use kvrm_engine::{
    CodeUse, Config, Engine, EngineError, GENERAL, LaneStatus, MemoryModel, RunRequest, Stop,
};
use kvrm_ir::derive::Derivation;
use kvrm_mem::{Frozen, Image, PAGE, Permissions, Space, View as MemoryView, branch_target};

use code::Translations;
use lane::Lane;
use pool::{Pool, Pools};
use record::Scratch;
use runner::Run;
use sharing::Sharing;
use slow::{CodeView, begin_write};
use stubs::Stubs;
use turns::{Turn, Waiting, on_threads};

/// Instructions between two looks at whether the run is cancelled.
const PRIVATE_SLICE: u64 = 1 << 23;
/// Instructions before the next lane's turn, where lanes may wait for one another.
const SHARED_SLICE: u64 = 1 << 18;

/// Lanes whose registers are copied so quickly that threads would not help.
const COPIED_ALONE: usize = 1 << 14;

/// The registers of lanes, which several threads may read.
struct States<'a>(&'a [Lane]);

// SAFETY: only the registers are read, plain numbers that nobody writes while the engine is borrowed.
unsafe impl Send for States<'_> {}

impl States<'_> {
    /// Copies some of each lane's registers to its row.
    fn copy<T>(self, rows: &mut [T], copy: impl Fn(&CpuState, &VectorState, &mut T)) {
        for (lane, row) in self.0.iter().zip(rows) {
            copy(&lane.context.state, &lane.context.vectors, row);
        }
    }
}

/// Lanes translated to host code and spread over threads.
pub struct CpuEngine {
    config: Config,
    lanes: Vec<Lane>,
    scratches: Vec<Scratch>,
    /// The memory of all lanes, unless each has its own.
    shared: Option<Space>,
    /// None if memory is mapped.
    image: Option<Image>,
    breakpoints: Vec<u64>,
    /// Its translations. Other machines have them, too, as long as its lane [shares](Lane::shares) them.
    pool: Arc<Pool>,
    /// Other pools, if the machine may share them.
    pools: Option<Arc<Pools>>,
}

/// Makes machines with mapped memory and one lane that have translations in common where their code is the same.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use kvrm_cpu::CpuMachines;
/// use kvrm_engine::{Config, Engine, MemoryModel};
/// let config = Config {
///     lanes: 1,
///     memory_size: 1 << 39,
///     model: MemoryModel::Shared,
///     read_only: false,
///     mapped: true,
///     supervisor_bytes: 0,
///     threads: 1,
///     translate_after: 16_000,
///     code_memory: 1 << 28,
///     profile: false,
/// };
/// let machines = CpuMachines::new(config);
/// let two = [machines.make()?, machines.make()?];
/// assert!(two.iter().all(|machine| machine.config().mapped));
/// # }
/// # Ok::<(), kvrm_engine::EngineError>(())
/// ```
pub struct CpuMachines {
    config: Config,
    pools: Arc<Pools>,
}

impl CpuMachines {
    /// Machines of that kind.
    pub fn new(config: Config) -> CpuMachines {
        CpuMachines::with_cache(config, KernelCache::open())
    }

    fn with_cache(mut config: Config, cache: KernelCache) -> CpuMachines {
        config.check_mapped();
        assert!(config.mapped && config.lanes == 1, "they have one lane and mapped memory");
        config.threads = 1;
        let pools = Arc::new(Pools::new(&config, cache));
        CpuMachines { config, pools }
    }

    /// Makes one; its memory is empty, and its registers are zero.
    pub fn make(&self) -> Result<CpuEngine, EngineError> {
        let size = self.config.memory_size;
        let failed = |source| EngineError::Memory { lane: 0, size, source };
        let space = Space::mapped(size).map_err(failed)?;
        CpuEngine::sharing(&self.config, &self.pools, self.pools.any()?, Sharing::new(size), space)
    }
}

impl CpuEngine {
    /// Builds the lanes, all registers zero.
    pub fn new(config: Config) -> Result<CpuEngine, EngineError> {
        CpuEngine::with_cache(config, KernelCache::open())
    }

    /// The same, with translations kept in `cache`.
    pub fn with_cache(mut config: Config, cache: KernelCache) -> Result<CpuEngine, EngineError> {
        config.check_mapped();
        if config.mapped && config.model == MemoryModel::Private {
            return Err(EngineError::MappedForEach("cpu"));
        }
        if config.mapped && config.lanes == 1 {
            return CpuMachines::with_cache(config, cache).make();
        }
        let size = config.memory_size;
        let memory = |(lane, source)| EngineError::Memory { lane, size, source };
        if config.threads == 0 {
            config.threads = std::thread::available_parallelism().map_or(1, usize::from);
        }
        let pool = Pool::alone(Stubs::new(&config, cache)?);
        let image = match config.mapped {
            true => None,
            false => Some(Image::new(size).map_err(|e| memory((0, e)))?),
        };
        let mut shared = None;
        let mut lanes: Vec<Lane> = Vec::new();
        let there_is = kvrm_mem::may_have((config.lanes * size_of::<Lane>()) as u64)
            && lanes.try_reserve_exact(config.lanes).is_ok();
        if !there_is {
            return Err(memory((0, std::io::ErrorKind::OutOfMemory.into())));
        }
        match config.model {
            MemoryModel::Shared => {
                let space = match &image {
                    None => Space::mapped(size),
                    Some(image) if config.read_only => Space::read_only(image),
                    Some(image) => Space::shared(image),
                };
                shared = Some(space.map_err(|e| memory((0, e)))?);
                lanes.extend((0..config.lanes).map(|_| Lane::new(None)));
            }
            MemoryModel::Private => {
                let image = image.as_ref().expect("private memory is not mapped");
                let spaces = Space::private(image, config.lanes).map_err(memory)?;
                lanes.extend(spaces.into_iter().map(|space| Lane::new(Some(space))));
            }
        }
        lanes.iter_mut().for_each(|lane| lane.attach(shared.as_mut(), &pool.stubs));
        let threads = config.threads.min(config.lanes);
        let scratches = (0..threads).map(|_| Scratch::new()).collect();
        let (breakpoints, pools) = (Vec::new(), None);
        Ok(CpuEngine { config, lanes, scratches, shared, image, breakpoints, pool, pools })
    }

    /// A machine with one lane that shares its translations.
    fn sharing(
        config: &Config,
        pools: &Arc<Pools>,
        pool: Arc<Pool>,
        shares: Sharing,
        mut space: Space,
    ) -> Result<CpuEngine, EngineError> {
        let mut lane = Lane::new(None);
        lane.shares = Some(Box::new(shares));
        lane.attach(Some(&mut space), &pool.stubs);
        Ok(CpuEngine {
            config: config.clone(),
            lanes: vec![lane],
            scratches: vec![Scratch::new()],
            shared: Some(space),
            image: None,
            breakpoints: Vec::new(),
            pool,
            pools: Some(Arc::clone(pools)),
        })
    }

    fn code(&self) -> MutexGuard<'_, Translations> {
        self.pool.code()
    }

    fn space(&self, lane: usize) -> &Space {
        let own = self.lanes[lane].space.as_ref();
        own.or(self.shared.as_ref()).expect("memory is private or shared")
    }

    /// Forgets all translations, which no other machine has.
    fn clear_code(&mut self) {
        let mut code = self.pool.code();
        if let Some(space) = &mut self.shared {
            for page in code.pages() {
                space.set_page_granules(page * PAGE, 0);
            }
        }
        code.clear();
        drop(code);
        for own in self.lanes.iter_mut().filter_map(|lane| lane.own_code.as_mut()) {
            own.clear();
        }
        self.pool.stubs.kept().memory_changed();
        // SAFETY: that were all that there are, and lanes run only while somebody else has the engine.
        unsafe { self.pool.stubs.memory.clear() };
    }

    /// Makes room for translations if there is none; true if there was none.
    fn make_room(&mut self) -> Result<bool, EngineError> {
        let full = self.pool.stubs.memory.is_full();
        match self.shares() {
            Some(_) if full => self.leave_full_pool()?,
            None if full => self.clear_code(),
            Some(_) | None => {}
        }
        Ok(full)
    }

    /// Forgets translations of bytes in shared memory that change.
    fn forget_shared(&mut self, (addr, len): (u64, u64), by_guest: bool) {
        if let Some(shares) = self.shares() {
            return shares.drop_claims(&(addr..addr + len));
        }
        let mut code = self.pool.code();
        let space = self.shared.as_mut().expect("memory is shared");
        for page in code.forget(addr, len, by_guest) {
            space.set_page_granules(page * PAGE, code.granules_of_page(page));
        }
    }

    /// What the threads of a run share, and beside it the lanes and a scratch for each thread.
    fn begin<'r>(
        &'r mut self,
        request: &RunRequest<'r>,
        slice: u64,
    ) -> (Run<'r>, &'r mut [Lane], &'r mut [Scratch]) {
        let table = match &self.lanes[0].shares {
            // Others may have the pool locked.
            Some(shares) => Arc::clone(shares.table()),
            None => Arc::clone(self.pool.code().table()),
        };
        let source = self.shared.as_mut().map(Space::raw);
        let run = Run {
            stubs: &self.pool.stubs,
            code: &self.pool.code,
            table,
            source: source.or(self.image.as_mut().map(Image::raw)).expect("there is memory"),
            breakpoints: &self.breakpoints,
            control: request.control,
            slice,
        };
        (run, &mut self.lanes, &mut self.scratches)
    }

    /// Does `work` once for every lane that has not stopped, spread over threads.
    fn for_running_lanes(
        &mut self,
        request: &RunRequest<'_>,
        slice: u64,
        work: impl Fn(&Run<'_>, &mut Lane, &mut Scratch) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError> {
        let (run, lanes, scratches) = self.begin(request, slice);
        let go = |lanes: &mut [Lane], scratch: &mut Scratch| {
            let running = lanes.iter_mut().filter(|lane| lane.status.stop.is_none());
            running.into_iter().try_for_each(|lane| work(&run, lane, scratch))
        };
        if let [scratch] = scratches {
            return go(lanes, scratch);
        }
        // Small enough for threads to share the work evenly, large enough to be worth fetching.
        let chunk = (lanes.len() / (scratches.len() * 8)).clamp(1, 256);
        let chunks = Mutex::new(lanes.chunks_mut(chunk));
        let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
        on_threads(scratches, |scratch| {
            while let Some(lanes) = next() {
                go(lanes, scratch)?;
            }
            Ok(())
        })
    }

    /// Every lane has a turn, and those that are not done in it take turns from then on. So a lane that runs for ever
    /// keeps no other from running, and a lane that stops soon is never queued.
    fn run_private(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        let some_wait = AtomicBool::new(false);
        self.for_running_lanes(request, PRIVATE_SLICE, |run, lane, scratch| {
            run.turn(lane, scratch)?;
            if lane.status.stop.is_none() {
                some_wait.store(true, Ordering::Relaxed);
            }
            Ok(())
        })?;
        // Looking for them would take longer than many a run does.
        if !some_wait.into_inner() {
            return Ok(());
        }
        let running = |(number, lane): (usize, &Lane)| lane.status.stop.is_none().then_some(number);
        let mut order: Vec<usize> = self.lanes.iter().enumerate().filter_map(running).collect();
        while !order.is_empty() && !request.control.is_cancelled() {
            self.make_room()?;
            let (run, lanes, scratches) = self.begin(request, PRIVATE_SLICE);
            let waiting = Waiting::in_order(lanes, &order);
            let threads = order.len().min(scratches.len());
            on_threads(&mut scratches[..threads], |scratch| {
                waiting.take_turns(|| run.goes_on(), |lane| run.turn(lane, scratch))
            })?;
            order = waiting.order();
        }
        Ok(())
    }

    /// Lanes that stand at a breakpoint when a run begins pass it.
    fn pass_breakpoints(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        self.for_running_lanes(request, 1, |run, lane, _| {
            let at_breakpoint = run.breakpoints.binary_search(&lane.context.state.pc).is_ok();
            if at_breakpoint && lane.budget > 0 {
                run.pass(lane);
            }
            Ok(())
        })?;
        self.write_code(request)
    }

    /// Lanes take turns, and between them translated words are forgotten if some lane writes any, or if there is no more
    /// room for translations. Lanes that wait for room have it first.
    fn run_shared(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        let mut some_wait = false;
        while self.any_lane(|_| true) && !request.control.is_cancelled() {
            self.for_running_lanes(request, SHARED_SLICE, |run, lane, scratch| {
                let waited = std::mem::take(&mut lane.waits);
                if run.control.is_cancelled() || some_wait && !waited {
                    return Ok(());
                }
                run.slice(lane, scratch, &mut Turn::default())
            })?;
            some_wait = self.make_room()? && self.any_lane(|lane| lane.waits);
            self.settle_sharing()?;
            self.write_code(request)?;
        }
        Ok(())
    }

    /// True if there is such a lane that has not stopped.
    fn any_lane(&self, is_such: impl Fn(&Lane) -> bool) -> bool {
        self.lanes.iter().any(|lane| lane.status.stop.is_none() && is_such(lane))
    }

    /// Executes the instructions of lanes that write translated words of shared memory, which are forgotten first.
    fn write_code(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        let written: Vec<_> = self.lanes.iter().filter_map(|lane| lane.writes_code).collect();
        if written.is_empty() {
            return Ok(());
        }
        written.into_iter().for_each(|bytes| self.forget_shared(bytes, true));
        self.for_running_lanes(request, 1, |run, lane, _| {
            if lane.writes_code.take().is_some() && lane.budget > 0 {
                run.pass(lane);
            }
            Ok(())
        })
    }

    /// Copies some of each lane's registers to its row, on several threads.
    fn copy_rows<T: Send>(
        &self,
        rows: &mut [T],
        copy: impl Fn(&CpuState, &VectorState, &mut T) + Sync,
    ) -> Result<(), EngineError> {
        let threads = if rows.len() < COPIED_ALONE { 1 } else { self.config.threads };
        let share = rows.len().div_ceil(threads);
        let shares = self.lanes.chunks(share).map(States).zip(rows.chunks_mut(share));
        let shares = Mutex::new(shares.collect::<Vec<_>>());
        let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).pop();
        on_threads(&mut vec![(); threads], |()| {
            while let Some((states, rows)) = next() {
                states.copy(rows, &copy);
            }
            Ok(())
        })
    }
}

impl Engine for CpuEngine {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn state(&self, lane: usize) -> Result<CpuState, EngineError> {
        Ok(self.lanes[lane].context.state)
    }

    fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError> {
        self.lanes[lane].context.state = *state;
        Ok(())
    }

    fn vectors(&self, lane: usize) -> Result<VectorState, EngineError> {
        Ok(self.lanes[lane].context.vectors)
    }

    fn set_vectors(&mut self, lane: usize, vectors: &VectorState) -> Result<(), EngineError> {
        self.lanes[lane].context.vectors = *vectors;
        Ok(())
    }

    fn status(&self, lane: usize) -> Result<LaneStatus, EngineError> {
        Ok(self.lanes[lane].status)
    }

    fn visit_states(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(&CpuState),
    ) -> Result<(), EngineError> {
        self.lanes[lanes].iter().for_each(|lane| visit(&lane.context.state));
        Ok(())
    }

    fn change_states(
        &mut self,
        lanes: Range<usize>,
        change: &mut dyn FnMut(&mut CpuState),
    ) -> Result<(), EngineError> {
        self.lanes[lanes].iter_mut().for_each(|lane| change(&mut lane.context.state));
        Ok(())
    }

    fn visit_vectors(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(&VectorState),
    ) -> Result<(), EngineError> {
        self.lanes[lanes].iter().for_each(|lane| visit(&lane.context.vectors));
        Ok(())
    }

    fn change_vectors(
        &mut self,
        lanes: Range<usize>,
        change: &mut dyn FnMut(&mut VectorState),
    ) -> Result<(), EngineError> {
        self.lanes[lanes].iter_mut().for_each(|lane| change(&mut lane.context.vectors));
        Ok(())
    }

    fn copy_registers(&self, rows: &mut [[u64; GENERAL]]) -> Result<(), EngineError> {
        self.copy_rows(rows, |state, _, row| row.copy_from_slice(&state.x[..GENERAL]))
    }

    fn copy_vectors(&self, rows: &mut [[u128; V_REGISTERS]]) -> Result<(), EngineError> {
        self.copy_rows(rows, |_, vectors, row| vectors.copy_to(row))
    }

    fn visit_statuses(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(LaneStatus),
    ) -> Result<(), EngineError> {
        self.lanes[lanes].iter().for_each(|lane| visit(lane.status));
        Ok(())
    }

    fn view_memory(&self, lane: usize) -> Option<MemoryView> {
        Some(self.space(lane).view())
    }

    fn code_use(&self) -> CodeUse {
        self.pool.stubs.memory.code_use()
    }

    fn runs_on_caller(&self) -> bool {
        self.scratches.len() == 1
    }

    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        let from = &self.space(lane).bytes()[addr as usize..];
        bytes.copy_from_slice(&from[..bytes.len()]);
        Ok(())
    }

    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        let mut pages = Vec::new();
        for (number, lane) in self.lanes.iter().enumerate() {
            let space = lane.space.iter();
            pages.extend(space.flat_map(Space::dirty_pages).map(|page| (number, page)));
        }
        Ok(pages)
    }

    fn write_memory(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        let len = bytes.len() as u64;
        if len == 0 {
            return Ok(());
        }
        if let Some(space) = &mut self.shared {
            space.write(addr, bytes);
            self.forget_shared((addr, len), false);
            return Ok(());
        }
        let Lane { space, own_code, .. } = &mut self.lanes[lane];
        let space = space.as_mut().expect("memory is private or shared");
        let mut view = match own_code {
            Some(code) => CodeView::Own(code),
            None => CodeView::Image(&self.pool.code),
        };
        let apart = begin_write(space, &mut view, addr, len);
        space.write(addr, bytes);
        if !apart {
            self.lanes[lane].code_written(&self.pool.stubs, (addr, len), false);
        }
        Ok(())
    }

    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        let Some(image) = &mut self.image else { return self.write_memory(0, addr, bytes) };
        image.bytes_mut()[addr as usize..addr as usize + bytes.len()].copy_from_slice(bytes);
        for space in self.lanes.iter_mut().filter_map(|lane| lane.space.as_mut()) {
            space.image_changed(image, addr, bytes.len() as u64);
        }
        self.clear_code();
        Ok(())
    }

    fn protect(
        &mut self,
        _: usize,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> Result<(), EngineError> {
        self.protect_mapped(addr, len, permissions).map_err(EngineError::MappedMemory)
    }

    fn discard(&mut self, _: usize, addr: u64, len: u64) -> Result<(), EngineError> {
        self.discard_mapped(addr, len).map_err(EngineError::MappedMemory)
    }

    fn mapped_memory(&self, _: usize) -> Option<&Space> {
        self.shared.as_ref().filter(|_| self.config.mapped)
    }

    fn freeze_memory(&mut self, _: usize) -> Result<Arc<Frozen>, EngineError> {
        if !self.config.mapped {
            return Err(EngineError::NotMapped(self.name()));
        }
        self.freeze_mapped().map_err(EngineError::MappedMemory)
    }

    fn sibling(&self, _: usize) -> Result<Box<dyn Engine>, EngineError> {
        Ok(Box::new(self.mapped_sibling()?))
    }

    fn watch_memory(&mut self, _: usize, ranges: Vec<Range<u64>>) -> Result<(), EngineError> {
        if !self.config.mapped {
            return Err(EngineError::NotMapped(self.name()));
        }
        self.lanes[0].touched.clear();
        self.mapped_space().watch(ranges).map_err(EngineError::MappedMemory)
    }

    fn take_touched(&mut self, lane: usize) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.lanes[lane].touched)
    }

    fn run_deriving(
        &mut self,
        _: usize,
        request: &RunRequest<'_>,
        at: u64,
        derivation: &mut Derivation,
    ) -> Result<Option<()>, EngineError> {
        self.run_followed(request, at, derivation)
    }

    fn copy_memory(&mut self, _: usize, from: &Space) -> Result<(), EngineError> {
        self.copy_mapped(from).map_err(EngineError::MappedMemory)
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        if self.breakpoints != request.breakpoints {
            self.breakpoints = request.breakpoints.to_vec();
            match self.lanes[0].shares.is_some() {
                // Others do not have them.
                true => self.leave_pools()?,
                false => self.clear_code(),
            }
        }
        for lane in &mut self.lanes {
            if request.continues && lane.status.is_final() {
                continue;
            }
            lane.budget = request.max_cycles;
            if self.config.mapped {
                lane.context.state.pc = branch_target(lane.context.state.pc);
            }
            lane.status.stop = (request.max_cycles == 0).then_some(Stop::MaxCycles);
            if request.max_cycles == 0 {
                request.control.report(0, 1);
            }
        }
        let passes = !self.breakpoints.is_empty() && !request.continues;
        if passes && !request.control.is_cancelled() {
            self.pass_breakpoints(request)?;
        }
        match self.config.model {
            MemoryModel::Shared => self.run_shared(request),
            MemoryModel::Private => self.run_private(request),
        }
    }

    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        self.restore_mapped()?;
        for lane in &mut self.lanes[lanes] {
            if let (Some(space), Some(image)) = (&mut lane.space, &self.image) {
                space.reset(image);
            }
            lane.context.state = CpuState::new();
            lane.context.vectors = VectorState::new();
            lane.status = LaneStatus { stop: None, count: 0 };
            lane.own_code = None;
        }
        Ok(())
    }
}
