//! What all engines share: the [`Engine`] trait, [`Stop`]s, the [`RunControl`] with which a host watches and
//! cancels a run, single steps with the reference evaluator, the reference engine built on them, and
//! [`SplitEngine`], which combines several engines. And what engines on GPUs share: handlers and records
//! ([`kernel`], [`code`]), the loop around launches ([`launch`]), the cache of compiled kernels.

pub mod cache;
mod changes;
pub mod code;
mod control;
mod eval_engine;
mod hot;
pub mod kernel;
mod lane_view;
pub mod launch;
pub mod memory;
pub mod mirror;
pub mod slice;
mod split;
mod step;
mod stop;
pub mod task;
pub mod translation;

pub use changes::{MemoryChange, Piece};
pub use control::{Activity, RunControl};
pub use eval_engine::EvalEngine;
pub use split::SplitEngine;
pub use step::{Step, fetch, step, step_deriving};
pub use stop::{FaultKind, Lacking, Stop};

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use kvrm_a64::state::{CpuState, V_REGISTERS, VectorState};
use kvrm_ir::derive::Derivation;
use kvrm_mem::{Frozen, Permissions, Space, View};

/// General registers of a lane.
pub const GENERAL: usize = 31;

/// Whether lanes share one memory or have one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryModel {
    /// One flat memory that every lane sees.
    Shared,
    /// One memory per lane, all starting from the same image.
    Private,
}

/// The configuration of an engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of lanes, at least one.
    pub lanes: usize,
    /// Bytes of guest memory, a multiple of the page size.
    pub memory_size: u64,
    /// Who sees which memory.
    pub model: MemoryModel,
    /// Stores fault: only the host writes memory, which is shared.
    pub read_only: bool,
    /// Pages of memory have [`Permissions`]: none at the start. The top byte of addresses is ignored. Nothing of the engine
    /// takes time or memory for pages that nobody uses. `eval` and `cpu` have such memory on Linux. Engines on GPUs have it
    /// for one lane, and for many with private memory, as `eval` has: `cpu` has not.
    pub mapped: bool,
    /// Bytes at the end of mapped memory that programs cannot access, whatever permissions it has. They are for *supervisors*
    /// ([`supervised_form`](kvrm_a64::supervised_form)), on engines on GPUs; 0 if there are none.
    pub supervisor_bytes: u64,
    /// Host threads that a CPU engine may use; 0 means one per core.
    pub threads: usize,
    /// How often a translating engine interprets code before it translates it; 0 translates everything, and
    /// [`u32::MAX`] nothing.
    pub translate_after: u32,
    /// Bytes that the code of a translating engine may take, and what is kept about it. What is over it is
    /// forgotten.
    pub code_memory: u64,
    /// Count the instructions that a translating engine executes in translations, which makes it a little slower.
    pub profile: bool,
}

impl Config {
    /// Panics if memory is mapped and lanes cannot write it.
    pub fn check_mapped(&self) {
        assert!(!self.mapped || !self.read_only, "mapped memory can be written");
    }

    /// Bytes of memory that programs may access.
    pub fn program_bytes(&self) -> u64 {
        self.memory_size - self.supervisor_bytes
    }

    /// Fails if memory is mapped, and lanes share it: on a device, each has its own.
    pub fn check_mapped_on_device(&self, engine: &'static str) -> Result<(), EngineError> {
        self.check_mapped();
        match self.mapped && self.lanes > 1 && self.model == MemoryModel::Shared {
            true => Err(EngineError::MappedForMany(engine)),
            false => Ok(()),
        }
    }
}

/// What the translations of an engine take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeUse {
    /// Bytes they take now, about.
    pub bytes: u64,
    /// The most they took at a time.
    pub most: u64,
    /// How often all of them were forgotten because there was no more room.
    pub evictions: u64,
    /// Different instructions that were ever translated.
    pub distinct: u64,
    /// Instructions that were translated, counted again each time.
    pub translated: u64,
    /// Those among them whose translation was kept on disk by an earlier run.
    pub kept: u64,
    /// Instructions that lanes have executed in translations, if they are [counted](Config::profile).
    pub executed: Option<u64>,
    /// Bytes of host code that were made from them.
    pub host_bytes: u64,
    /// Time that was spent on it, over all threads; for code that is interpreted, too.
    pub time: Duration,
}

/// One run, for all lanes.
pub struct RunRequest<'a> {
    /// Limit of instructions per lane in this run.
    pub max_cycles: u64,
    /// Addresses to stop at before executing, in ascending order. A lane that starts the run at a breakpoint
    /// passes it.
    pub breakpoints: &'a [u64],
    /// Do not split the run into launches of bounded length, so that the host has nothing to do until the last
    /// lane stops. Results are the same; engines that do not support this may ignore it.
    pub single_launch: bool,
    /// Continue the previous run: lanes that stopped for any reason but its limit keep that stop, and no lane
    /// passes a breakpoint that it is at.
    pub continues: bool,
    /// The control with which the host watches and cancels the run.
    pub control: &'a RunControl,
}

/// The status of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneStatus {
    /// Why it stopped; `None` before its first run, after a reset, and after a cancelled run.
    pub stop: Option<Stop>,
    /// Instructions completed since it was built or reset.
    pub count: u64,
}

/// A kernel that an engine has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLoad {
    /// Number of handlers.
    pub handlers: usize,
    /// Instructions of the program that are translated in it.
    pub translated: usize,
    /// Time for generating, compiling and loading it that lanes had to wait.
    pub time: Duration,
    /// Time for compiling it while lanes ran.
    pub background: Duration,
    /// True if it had been compiled before and was found in the [cache].
    pub cached: bool,
}

/// What an engine's lanes had to wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartTimes {
    /// The driver's own initialisation, if the engine needs a driver.
    pub driver: Option<Duration>,
    /// The kernels loaded so far, in order.
    pub kernels: Vec<KernelLoad>,
}

impl LaneStatus {
    /// True if a run that [continues](RunRequest::continues) the one before leaves the lane alone.
    pub fn is_final(&self) -> bool {
        !matches!(self.stop, None | Some(Stop::MaxCycles))
    }
}

/// Failures of the host; those of a guest are [`Stop`]s.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The operating system refused memory.
    #[error(
        "cannot map {size} bytes of guest memory for lane {lane}: {source}; use fewer lanes, or a smaller memory if that is what is lacking (every lane is a mapping, of which Linux allows 65,530 unless `sysctl vm.max_map_count` is raised, and a thousand are kept free)"
    )]
    Memory {
        /// The lane.
        lane: usize,
        /// Size of its memory.
        size: u64,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The operating system refused to change mapped memory.
    #[error("cannot change mapped guest memory: {0}; end other programs that use much memory")]
    MappedMemory(std::io::Error),
    /// Memory is not mapped.
    #[error("pages have permissions only in mapped memory, which this machine on {0} has not")]
    NotMapped(&'static str),
    /// The engine has no mapped memory that several lanes share.
    #[error(
        "memory whose pages have permissions cannot be shared by lanes on the {0} engine; use private memory, or cpu or eval"
    )]
    MappedForMany(&'static str),
    /// The engine has no mapped memory for each of several lanes.
    #[error(
        "lanes cannot have a memory each whose pages have permissions on the {0} engine; use a machine for each, or a GPU"
    )]
    MappedForEach(&'static str),
    /// The operating system gave no thread.
    #[error("cannot start a thread to run on: {0}; end other programs or threads, and try again")]
    NoThread(std::io::Error),
    /// The engine has no lanes that stop on their own.
    #[error("lanes cannot advance on their own on the {0} engine; use eval or a GPU")]
    NotAdvancing(&'static str),
    /// One memory cannot be on several devices.
    #[error(
        "lanes that share memory cannot be split over devices: use private memory or one device"
    )]
    SharedMemoryIsWhole,
    /// The host's processor is not supported.
    #[error("this processor is not supported by the cpu engine: {0}; use the eval engine")]
    Unsupported(String),
    /// A device or its driver failed.
    #[error("{0}")]
    Device(String),
    /// A device's memory is full.
    #[error("{0}")]
    DeviceFull(String),
    /// Code generation failed.
    #[error("cannot translate the code at {pc:#x}: {message}; please report this as a bug")]
    Translation {
        /// Guest address.
        pc: u64,
        /// The message of the code generator.
        message: String,
    },
}

/// A set of lanes and the means to run them.
///
/// The caller checks addresses and lane numbers; an engine may panic on bad ones.
pub trait Engine: Send {
    /// Returns the name that users choose it by.
    fn name(&self) -> &'static str;

    /// Returns its configuration.
    fn config(&self) -> &Config;

    /// Returns what the lanes had to wait for; nothing, if there is neither driver nor kernel.
    fn start_times(&self) -> StartTimes {
        StartTimes::default()
    }

    /// Returns the registers of a lane.
    fn state(&self, lane: usize) -> Result<CpuState, EngineError>;

    /// Changes the registers of a lane.
    fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError>;

    /// Returns the vector registers of a lane.
    fn vectors(&self, lane: usize) -> Result<VectorState, EngineError>;

    /// Changes the vector registers of a lane.
    fn set_vectors(&mut self, lane: usize, vectors: &VectorState) -> Result<(), EngineError>;

    /// Returns the status of a lane.
    fn status(&self, lane: usize) -> Result<LaneStatus, EngineError>;

    /// Calls `visit` with the registers of each lane.
    fn visit_states(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(&CpuState),
    ) -> Result<(), EngineError> {
        lanes.into_iter().try_for_each(|lane| self.state(lane).map(|state| visit(&state)))
    }

    /// Calls `change` with the registers of each lane, which it may change.
    fn change_states(
        &mut self,
        lanes: Range<usize>,
        change: &mut dyn FnMut(&mut CpuState),
    ) -> Result<(), EngineError> {
        lanes.into_iter().try_for_each(|lane| {
            let mut state = self.state(lane)?;
            change(&mut state);
            self.set_state(lane, &state)
        })
    }

    /// Calls `visit` with the vector registers of each lane.
    fn visit_vectors(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(&VectorState),
    ) -> Result<(), EngineError> {
        lanes.into_iter().try_for_each(|lane| self.vectors(lane).map(|vectors| visit(&vectors)))
    }

    /// Calls `change` with the vector registers of each lane, which it may change.
    fn change_vectors(
        &mut self,
        lanes: Range<usize>,
        change: &mut dyn FnMut(&mut VectorState),
    ) -> Result<(), EngineError> {
        lanes.into_iter().try_for_each(|lane| {
            let mut vectors = self.vectors(lane)?;
            change(&mut vectors);
            self.set_vectors(lane, &vectors)
        })
    }

    /// Copies x0 to x30 of all lanes, one row a lane.
    fn copy_registers(&self, rows: &mut [[u64; GENERAL]]) -> Result<(), EngineError> {
        let lanes = 0..rows.len();
        let mut rows = rows.iter_mut();
        self.visit_states(lanes, &mut |state| {
            let row = rows.next().expect("there is a row for each lane");
            row.copy_from_slice(&state.x[..GENERAL]);
        })
    }

    /// Copies V0 to V31 of all lanes, one row a lane.
    fn copy_vectors(&self, rows: &mut [[u128; V_REGISTERS]]) -> Result<(), EngineError> {
        let lanes = 0..rows.len();
        let mut rows = rows.iter_mut();
        self.visit_vectors(lanes, &mut |vectors| {
            vectors.copy_to(rows.next().expect("there is a row for each lane"));
        })
    }

    /// Calls `visit` with the status of each lane.
    fn visit_statuses(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(LaneStatus),
    ) -> Result<(), EngineError> {
        lanes.into_iter().try_for_each(|lane| self.status(lane).map(&mut *visit))
    }

    /// Returns a lane's memory, if the host can read it without copying.
    fn view_memory(&self, _lane: usize) -> Option<View> {
        None
    }

    /// True if [`run`](Self::run) works only on the calling thread, and checks its control there at least every
    /// 50 ms.
    fn runs_on_caller(&self) -> bool {
        false
    }

    /// What its translations take, if it is an engine that translates.
    fn code_use(&self) -> CodeUse {
        CodeUse::default()
    }

    /// Reads a lane's memory.
    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError>;

    /// Reads the same number of bytes from the memory of each lane, lane after lane.
    fn read_memory_of(
        &self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &mut [u8],
    ) -> Result<(), EngineError> {
        let len = (bytes.len() / lanes.len()).max(1);
        let mut rows = lanes.zip(bytes.chunks_exact_mut(len));
        rows.try_for_each(|(lane, row)| self.read_memory(lane, addr, row))
    }

    /// Returns the pages that may differ from the image, as lanes and page numbers; all others equal the image.
    /// None in shared memory, which is its own image, and in [mapped](Config::mapped) memory, where nobody asks.
    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError>;

    /// Writes a lane's memory (that of all lanes, if it is shared).
    fn write_memory(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError>;

    /// Writes the same number of bytes to the memory of each lane, given lane after lane.
    fn write_memory_of(
        &mut self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        let len = (bytes.len() / lanes.len()).max(1);
        let mut rows = lanes.zip(bytes.chunks_exact(len));
        rows.try_for_each(|(lane, row)| self.write_memory(lane, addr, row))
    }

    /// Writes the image, and with it every lane's memory.
    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError>;

    /// Sets what guests may do with whole pages of [mapped](Config::mapped) memory.
    fn protect(
        &mut self,
        _lane: usize,
        _addr: u64,
        _len: u64,
        _permissions: Permissions,
    ) -> Result<(), EngineError> {
        Err(EngineError::NotMapped(self.name()))
    }

    /// The same in the image, and with it in every lane's memory.
    fn protect_image(
        &mut self,
        _addr: u64,
        _len: u64,
        _permissions: Permissions,
    ) -> Result<(), EngineError> {
        Err(EngineError::NotMapped(self.name()))
    }

    /// Makes whole pages of [mapped](Config::mapped) memory zero again, and gives what they take back to the host.
    fn discard(&mut self, _lane: usize, _addr: u64, _len: u64) -> Result<(), EngineError> {
        Err(EngineError::NotMapped(self.name()))
    }

    /// Returns a lane's memory, if it is [mapped](Config::mapped), for another engine to [copy](Self::copy_memory).
    fn mapped_memory(&self, _lane: usize) -> Option<&Space> {
        None
    }

    /// Makes a lane's [mapped](Config::mapped) memory, as it is now, what it begins with itself after a [reset](Self::reset),
    /// and what other engines [begin](Self::sibling) with.
    fn freeze_memory(&mut self, _lane: usize) -> Result<Arc<Frozen>, EngineError> {
        Err(EngineError::NotMapped(self.name()))
    }

    /// Makes another engine with one lane, whose [mapped](Config::mapped) memory is what that of a lane of this engine was
    /// when it was last [frozen](Self::freeze_memory), which it must have been; its registers are zero. What both have in
    /// common, and what engines make of the code in it, is there once.
    fn sibling(&self, _lane: usize) -> Result<Box<dyn Engine>, EngineError> {
        Err(EngineError::NotMapped(self.name()))
    }

    /// Watches ranges of bytes in a lane's [mapped](Config::mapped) memory, each until the lane has first accessed it, instead
    /// of those that were watched before.
    fn watch_memory(&mut self, _lane: usize, _ranges: Vec<Range<u64>>) -> Result<(), EngineError> {
        Err(EngineError::NotMapped(self.name()))
    }

    /// Takes out which watched ranges a lane has accessed, by their place in the list, and how many instructions it had
    /// completed before the one that did it.
    fn take_touched(&mut self, _lane: usize) -> Vec<(usize, u64)> {
        Vec::new()
    }

    /// Runs a lane like [`run`](Self::run), while a derivation follows it, until these two part; `at` is the number of
    /// instructions that the program has completed before. `None` if the engine cannot.
    fn run_deriving(
        &mut self,
        _lane: usize,
        _request: &RunRequest<'_>,
        _at: u64,
        _derivation: &mut Derivation,
    ) -> Result<Option<()>, EngineError> {
        Ok(None)
    }

    /// Makes a lane's [mapped](Config::mapped) memory equal to another of the same size, permissions included. That takes
    /// time for the pages that were used; if both began with the same, for those that were written since.
    fn copy_memory(&mut self, _lane: usize, _from: &Space) -> Result<(), EngineError> {
        Err(EngineError::NotMapped(self.name()))
    }

    /// Reads pieces of lanes' memory, which takes less time for many than one after the other.
    fn read_pieces(&self, pieces: &[Piece]) -> Result<Vec<Vec<u8>>, EngineError> {
        changes::read_one_by_one(self, pieces)
    }

    /// Makes changes in the [mapped](Config::mapped) memory of lanes, those of each in order. The lanes for which there was
    /// no room, of whose changes some were made.
    fn change_memory(
        &mut self,
        changes: &[(usize, Vec<MemoryChange>)],
    ) -> Result<Vec<usize>, EngineError> {
        changes::make_one_by_one(self, changes)
    }

    /// Runs every lane until it stops or reaches the limit of instructions.
    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError>;

    /// Lets lanes complete so many more instructions each, at least one, from where they are. They [advance](Self::advance)
    /// on their own: what other lanes do meanwhile does not matter. A lane that was given some and has not stopped has what it
    /// was given last.
    ///
    /// For lanes with private memory, on engines that say so.
    fn give(&mut self, _lanes: &[(usize, u64)]) -> Result<(), EngineError> {
        Err(EngineError::NotAdvancing(self.name()))
    }

    /// Runs lanes that were [given](Self::give) instructions until some have stopped: those, in ascending order. Others have
    /// got as far as they have, and go on next time. None, if all have stopped before, or the control cancels.
    fn advance(&mut self, _control: &RunControl) -> Result<Vec<usize>, EngineError> {
        Err(EngineError::NotAdvancing(self.name()))
    }

    /// Resets lanes: restores the image's contents in their private memory, or what was [frozen](Self::freeze_memory), and
    /// clears registers and counts. Other shared memory stays as it is.
    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError>;

    /// The same for lanes anywhere, in ascending order; where each reset takes time, that is faster than one after the other.
    fn reset_each(&mut self, lanes: &[usize]) -> Result<(), EngineError> {
        lanes.iter().try_for_each(|lane| self.reset(*lane..*lane + 1))
    }
}
