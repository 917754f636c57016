//! Chooses an engine and builds a machine.

use std::str::FromStr;

use kvrm_cpu::CpuEngine;
use kvrm_engine::{Config, Engine, EngineError, EvalEngine, SplitEngine};
use kvrm_mem::PAGE;

use crate::{Error, Machine, MemoryModel, Result};

/// Which engine a machine runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// The fastest available engine for the number of lanes: see [`MachineBuilder::engine`].
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
    /// All engines, whether or not this computer can run them.
    pub const ALL: [EngineKind; 5] =
        [EngineKind::Auto, EngineKind::Cpu, EngineKind::Cuda, EngineKind::Wgpu, EngineKind::Eval];

    /// True for those that need a GPU.
    pub(crate) fn is_gpu(self) -> bool {
        match self {
            EngineKind::Auto | EngineKind::Cpu | EngineKind::Eval => false,
            EngineKind::Cuda | EngineKind::Wgpu => true,
        }
    }

    /// Returns the name that users choose it by.
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

/// Returns how many threads the host can run at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Host memory in bytes that every engine needs per lane, at least.
const LANE_BYTES: usize = 512;

/// Checks that the host has memory for this many lanes: an allocation that fails later would end the process.
/// What lanes will write is not known and not counted.
fn check_room(lanes: usize) -> Result<()> {
    let bytes = lanes * LANE_BYTES;
    let there_is =
        kvrm_mem::may_have(bytes as u64) && Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    if there_is { Ok(()) } else { Err(Error::NoRoomForLanes(lanes)) }
}

/// Lanes per host thread from which `auto` takes a GPU.
///
/// A core runs a lane hundreds of times as fast as a GPU does, but a GPU runs very many at once. In
/// measurements (docs/BENCHMARKS.md), an H200 overtakes 16 cores at 300 lanes per core in a plain loop and in
/// sha256, and at 500 to 1,000 where lanes diverge.
const GPU_LANES_PER_THREAD: usize = 512;

/// Bytes that `auto` assumes a lane writes, when it checks whether lanes fit a GPU.
const WRITTEN: u64 = 64 << 10;

/// Lanes that a GPU runs together and that share page tables.
const WARP: usize = 32;

/// Configures a machine; [`build`](Self::build) builds it.
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
            mapped: false,
            supervisor_bytes: 0,
            threads: 0,
            translate_after: Self::TRANSLATE_AFTER,
            code_memory: Self::CODE_MEMORY,
            profile: false,
        };
        MachineBuilder { engine: EngineKind::Auto, devices: Vec::new(), model, config }
    }
}

impl MachineBuilder {
    const MAX_LANES: usize = 1 << 24;
    const MAX_MEMORY: u64 = 1 << 40;
    const CODE_MEMORY: u64 = 256 << 20;
    const MIN_CODE_MEMORY: u64 = 4 << 10;

    /// The configuration of an engine with one lane of mapped memory of this size.
    #[cfg(unix)]
    pub(crate) fn mapped_config(memory_size: u64) -> Config {
        let config = MachineBuilder::default().config;
        let model = kvrm_engine::MemoryModel::Shared;
        Config { memory_size, model, mapped: true, threads: 1, ..config }
    }

    /// How often the CPU engine interprets code before it translates it, by default.
    pub const TRANSLATE_AFTER: u32 = 16_000;

    /// Sets the engine; `auto` by default.
    ///
    /// `auto` takes the first CUDA device if the lanes fit it and there are at least 512 lanes per host thread:
    /// few lanes are much faster on a CPU. Otherwise it takes the CPU. [`Machine::engine`] returns the engine
    /// it took. If devices are chosen, `auto` takes the engine that has them.
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
        self
    }

    /// Sets the device of the engine; the first by default. `kvrm devices` lists them.
    pub fn device(self, device: usize) -> Self {
        self.devices([device])
    }

    /// Sets the devices to split the lanes over; only the first by default. All get about the same number of
    /// lanes, in multiples of 32, so few lanes may use fewer devices. Only private memory can be split. The
    /// same device may be named twice, which is useful only for tests.
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

    /// Sets the number of lanes; one by default.
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.config.lanes = lanes;
        self
    }

    /// Sets the size of guest memory in bytes, per lane if it is private; 4 MiB by default.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.config.memory_size = bytes;
        self
    }

    /// Sets the memory model; private by default.
    pub fn model(mut self, model: MemoryModel) -> Self {
        self.model = model;
        self.config.model = model.visibility();
        self.config.read_only = model == MemoryModel::ReadOnly;
        self
    }

    /// Sets the number of host threads for the CPU engine; zero, the default, means one per core.
    pub fn threads(mut self, threads: usize) -> Self {
        self.config.threads = threads;
        self
    }

    /// Sets how often engines interpret code before they translate it; [`Self::TRANSLATE_AFTER`] by default. Zero translates
    /// everything and [`u32::MAX`] nothing, for tests; from 65,535 on, the CPU engine takes the number for 65,535. The CUDA
    /// engine translates up to 500 instructions, when lanes have run for a while, and the wgpu engine up to 250.
    pub fn translate_after(mut self, times: u32) -> Self {
        self.config.translate_after = times;
        self
    }

    /// Bytes that the CPU engine's translations of guest code may take, over all lanes and with all that is kept about
    /// them; 256 MiB by default, 4 KiB at the least. When they are spent, all translations are forgotten, and what is
    /// still executed is translated again. What other engines translate is bounded anyway.
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

    /// Makes the CPU engine count the instructions that it executes in translations, for
    /// [`CodeUse::executed`](crate::CodeUse::executed); the others are interpreted. It is a little slower then.
    ///
    /// ```
    /// use kvrm::{EngineKind, Machine};
    /// let mut machine = Machine::builder().engine(EngineKind::Cpu).profile(true).build()?;
    /// // loop: subs x0, x0, #1; b.ne loop; hlt #0
    /// let words = [0xf100_0400_u32, 0x54ff_ffe1, 0xd440_0000];
    /// machine.load(0x1000, words.map(u32::to_le_bytes).as_flattened())?;
    /// machine.set_pc(0, 0x1000)?;
    /// machine.set_register(0, kvrm::Reg::X(0), 100_000)?;
    /// let cycles = machine.run(1 << 20)?.cycles;
    /// let translated = machine.code_use().executed.unwrap();
    /// assert!(cycles / 2 < translated && translated < cycles);
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn profile(mut self, profile: bool) -> Self {
        self.config.profile = profile;
        self
    }

    /// Builds the machine. Memory and all registers are zero.
    pub fn build(self) -> Result<Machine> {
        let Config { lanes, memory_size, code_memory, .. } = self.config;
        // The index of instructions is made here: a process that is forked while a thread made it would wait for it for ever.
        kvrm_a64::decode(0);
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
            // There is one memory, which the engine allocates at once or not at all.
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
        // Devices that get no lanes must exist, too.
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
        // Devices that get no lanes must exist, too.
        devices.iter().try_for_each(|device| kvrm_cuda::find(*device))?;
        Ok(Box::new(if twice { split.sliced() } else { split }))
    }
}
