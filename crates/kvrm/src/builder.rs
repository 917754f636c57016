//! Choosing an engine and building a machine.

use std::str::FromStr;

use kvrm_cpu::CpuEngine;
use kvrm_engine::{Config, Engine, EngineError, EvalEngine, SplitEngine};
use kvrm_mem::PAGE;

use crate::{Error, Machine, MemoryModel, Result};

/// Which engine a machine runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// The fastest that is present for the number of lanes: see [`MachineBuilder::engine`].
    #[default]
    Auto,
    /// Translation to the host's machine code, on all its cores.
    Cpu,
    /// An interpreter on an NVIDIA GPU.
    Cuda,
    /// An interpreter on any GPU, through Vulkan, Metal or DX12.
    Wgpu,
    /// The reference evaluator: slow, for comparison.
    Eval,
}

impl EngineKind {
    /// Every choice there is, whether or not this computer can run it.
    pub const ALL: [EngineKind; 5] =
        [EngineKind::Auto, EngineKind::Cpu, EngineKind::Cuda, EngineKind::Wgpu, EngineKind::Eval];

    /// The name users choose it by.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Auto => "auto",
            EngineKind::Cpu => "cpu",
            EngineKind::Cuda => "cuda",
            EngineKind::Wgpu => "wgpu",
            EngineKind::Eval => "eval",
        }
    }
}

impl FromStr for EngineKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<EngineKind> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| Error::UnknownEngine(name.to_string()))
    }
}

/// Threads that the host can run at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes that every engine needs for a lane in the host's memory, at the least.
const LANE_BYTES: usize = 512;

/// Finds out whether the host has memory for that many lanes: an allocation that fails later would end
/// the process. What lanes will write is not known, and counts for nothing.
fn check_room(lanes: usize) -> Result<()> {
    let bytes = lanes * LANE_BYTES;
    let there_is =
        kvrm_mem::may_have(bytes as u64) && Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    if there_is { Ok(()) } else { Err(Error::NoRoomForLanes(lanes)) }
}

/// Lanes for each host thread from which `auto` takes a GPU.
///
/// A lane runs hundreds of times as fast on a core as on a GPU, which makes up for it by running very many
/// at once. Measured (docs/BENCHMARKS.md), an H200 overtakes 16 cores with 300 lanes for each in a plain loop
/// and in sha256, and with 500 to 1,000 where lanes diverge.
const GPU_LANES_PER_THREAD: usize = 512;

/// Bytes of its memory that a lane is taken to write, where `auto` looks whether a GPU has room.
const WRITTEN: u64 = 64 << 10;

/// Lanes that a GPU runs together, and that share page tables.
const WARP: usize = 32;

/// Collects what a machine should be; [`build`](Self::build) makes it.
///
/// ```
/// use kvrm::{EngineKind, Machine, MemoryModel};
/// let machine = Machine::builder()
///     .engine(EngineKind::Cpu)
///     .lanes(8)
///     .memory(16 << 20)
///     .model(MemoryModel::Private)
///     .build()?;
/// assert_eq!((machine.lanes(), machine.memory_size()), (8, 16 << 20));
/// # Ok::<(), kvrm::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MachineBuilder {
    engine: EngineKind,
    devices: Vec<usize>,
    model: MemoryModel,
    config: Config,
}

impl Default for MachineBuilder {
    fn default() -> Self {
        let model = MemoryModel::default();
        let config = Config {
            lanes: 1,
            memory_size: 4 << 20,
            model: model.visibility(),
            read_only: false,
            threads: 0,
            translate_after: 3,
            code_memory: Self::CODE_MEMORY,
        };
        MachineBuilder { engine: EngineKind::Auto, devices: Vec::new(), model, config }
    }
}

impl MachineBuilder {
    const MAX_LANES: usize = 1 << 24;
    const MAX_MEMORY: u64 = 1 << 40;
    const CODE_MEMORY: u64 = 256 << 20;
    const MIN_CODE_MEMORY: u64 = 4 << 10;

    /// Which engine to use; `auto` by default.
    ///
    /// `auto` takes the first CUDA device if there is one with room for the lanes, and if there are at least
    /// 512 lanes for each host thread: few lanes are much faster on a CPU. Otherwise it takes the CPU.
    /// [`Machine::engine`] tells which one it took. Where devices are chosen, `auto` takes the engine
    /// that has them.
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
        self
    }

    /// Which device of the engine to use; the first by default. `kvrm devices` lists them.
    pub fn device(self, device: usize) -> Self {
        self.devices([device])
    }

    /// Devices to split the lanes over; the first alone by default. Each gets about as many lanes as the
    /// others, in multiples of 32, so that few lanes may need fewer devices. Only private memory can be
    /// split. The same device may be named twice, which is good for tests only.
    ///
    /// ```
    /// use kvrm::{EngineKind, Machine};
    /// let builder = Machine::builder().engine(EngineKind::Cpu).devices([0, 1]);
    /// let error = builder.build().err().expect("only GPUs have numbers");
    /// assert!(error.to_string().contains("only cuda and wgpu have"));
    /// ```
    pub fn devices(mut self, devices: impl IntoIterator<Item = usize>) -> Self {
        self.devices = devices.into_iter().collect();
        self
    }

    /// How many machines to run side by side; one by default.
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.config.lanes = lanes;
        self
    }

    /// Bytes of guest memory, per lane if it is private; 4 MiB by default.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.config.memory_size = bytes;
        self
    }

    /// What memory lanes have; one each by default.
    pub fn model(mut self, model: MemoryModel) -> Self {
        self.model = model;
        self.config.model = model.visibility();
        self.config.read_only = model == MemoryModel::ReadOnly;
        self
    }

    /// Host threads the CPU engine may use; one per core by default, or if zero.
    pub fn threads(mut self, threads: usize) -> Self {
        self.config.threads = threads;
        self
    }

    /// How often the CPU engine steps through code before it translates it; 3 by default. Zero
    /// translates everything, which tests of the translator want.
    pub fn translate_after(mut self, times: u32) -> Self {
        self.config.translate_after = times;
        self
    }

    /// Bytes that the CPU engine's translations of guest code may take, over all lanes and with all that is kept about
    /// them; 256 MiB by default, 4 KiB at the least. When they are spent, all translations are forgotten, and what is
    /// still executed is translated again. Other engines do not translate.
    ///
    /// ```
    /// use kvrm::{EngineKind, Machine};
    /// let machine = Machine::builder().engine(EngineKind::Cpu).code_memory(1 << 20).build()?;
    /// assert_eq!(machine.code_use().most, 0);
    /// assert!(Machine::builder().code_memory(1000).build().is_err());
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn code_memory(mut self, bytes: u64) -> Self {
        self.config.code_memory = bytes;
        self
    }

    /// Builds the machine: memory and all registers zero.
    pub fn build(self) -> Result<Machine> {
        let Config { lanes, memory_size, code_memory, .. } = self.config;
        if lanes == 0 {
            return Err(Error::NoLanes);
        }
        if lanes > Self::MAX_LANES {
            return Err(Error::TooManyLanes(lanes));
        }
        let whole_pages = memory_size.is_multiple_of(PAGE);
        if !(PAGE..=Self::MAX_MEMORY).contains(&memory_size) || !whole_pages {
            return Err(Error::MemorySize(memory_size));
        }
        if code_memory < Self::MIN_CODE_MEMORY {
            return Err(Error::CodeMemory(code_memory));
        }
        let no_devices = matches!(self.engine, EngineKind::Cpu | EngineKind::Eval);
        if no_devices && !self.devices.is_empty() {
            return Err(Error::NoDevices(self.engine.name()));
        }
        check_room(lanes)?;
        let model = self.model;
        Ok(Machine::new(self.build_engine()?, model))
    }

    fn build_engine(self) -> Result<Box<dyn Engine>, EngineError> {
        match self.engine {
            EngineKind::Auto if !self.devices.is_empty() => self.build_cuda(),
            EngineKind::Auto => match self.suits_gpu().then(|| self.clone().build_cuda()) {
                Some(Ok(engine)) => Ok(engine),
                // A GPU that cannot be used is as good as none.
                Some(Err(_)) | None => Ok(Box::new(CpuEngine::new(self.config)?)),
            },
            EngineKind::Cpu => Ok(Box::new(CpuEngine::new(self.config)?)),
            EngineKind::Cuda => self.build_cuda(),
            EngineKind::Wgpu => self.build_wgpu(),
            EngineKind::Eval => Ok(Box::new(EvalEngine::new(self.config)?)),
        }
    }

    /// True if a GPU would run the lanes faster, and has room for them.
    fn suits_gpu(&self) -> bool {
        let Config { lanes, memory_size, threads, .. } = self.config;
        let threads = if threads == 0 { cores() } else { threads };
        let room = |free| match self.model {
            MemoryModel::Private => kvrm_cuda::lanes_that_fit(free, memory_size, WRITTEN),
            // There is one memory, which the engine makes at once or not at all.
            MemoryModel::Shared | MemoryModel::ReadOnly | MemoryModel::DoubleBuffered => u64::MAX,
        };
        lanes >= GPU_LANES_PER_THREAD.saturating_mul(threads)
            && kvrm_cuda::free_memory(0).is_ok_and(|free| room(free) >= lanes as u64)
    }

    fn build_wgpu(self) -> Result<Box<dyn Engine>, EngineError> {
        let (devices, config) = (self.devices, self.config);
        if let [] | [_] = devices[..] {
            return Ok(Box::new(kvrm_wgpu::build(config, devices.first().copied())?));
        }
        let split = SplitEngine::new(config, devices.len(), WARP, |part, config| {
            Ok(Box::new(kvrm_wgpu::build(config, Some(devices[part]))?))
        })?;
        // Those that few lanes leave without work should exist, too.
        devices.iter().try_for_each(|device| kvrm_wgpu::find(*device))?;
        Ok(Box::new(split))
    }

    fn build_cuda(self) -> Result<Box<dyn Engine>, EngineError> {
        let (devices, config) = (self.devices, self.config);
        if let [] | [_] = devices[..] {
            return Ok(Box::new(kvrm_cuda::build(config, devices.first().copied().unwrap_or(0))?));
        }
        let twice = (1..devices.len()).any(|n| devices[..n].contains(&devices[n]));
        let split = SplitEngine::new(config, devices.len(), WARP, |part, config| {
            Ok(Box::new(kvrm_cuda::build(config, devices[part])?))
        })?;
        // Those that few lanes leave without work should exist, too.
        devices.iter().try_for_each(|device| kvrm_cuda::find(*device))?;
        Ok(Box::new(if twice { split.sliced() } else { split }))
    }
}
