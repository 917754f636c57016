//! Choosing an engine and building a machine.

use std::str::FromStr;

use kvrm_cpu::CpuEngine;
use kvrm_cuda::CudaEngine;
use kvrm_engine::{Config, Engine, EvalEngine, MemoryModel};
use kvrm_mem::PAGE;

use crate::{Error, Machine, Result};

/// Which engine a machine runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// The fastest that is present.
    #[default]
    Auto,
    /// Translation to the host's machine code, on all its cores.
    Cpu,
    /// An interpreter on an NVIDIA GPU.
    Cuda,
    /// The reference evaluator: slow, for comparison.
    Eval,
}

impl EngineKind {
    /// Every choice there is, whether or not this computer can run it.
    pub const ALL: [EngineKind; 4] =
        [EngineKind::Auto, EngineKind::Cpu, EngineKind::Cuda, EngineKind::Eval];

    /// The name users choose it by.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Auto => "auto",
            EngineKind::Cpu => "cpu",
            EngineKind::Cuda => "cuda",
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

/// An engine as it is on this computer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineInfo {
    /// The name to choose it by.
    pub name: &'static str,
    /// What it is.
    pub description: &'static str,
    /// What it runs on here.
    pub device: String,
}

/// The engines on this computer, the one `auto` takes first.
pub fn engines() -> Vec<EngineInfo> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut engines = vec![EngineInfo {
        name: "cpu",
        description: "translates to host machine code; lanes spread over threads",
        device: format!("{}, {cores} threads", std::env::consts::ARCH),
    }];
    engines.extend(kvrm_cuda::devices().into_iter().take(1).map(|device| EngineInfo {
        name: "cuda",
        description: "interprets on the GPU; one thread a lane",
        device: format!(
            "{}, {} GiB, compute capability {}.{}, driver for CUDA {}.{}",
            device.name,
            device.memory >> 30,
            device.capability.0,
            device.capability.1,
            device.driver.0,
            device.driver.1
        ),
    }));
    engines.push(EngineInfo {
        name: "eval",
        description: "reference evaluator, slow, for comparison",
        device: format!("{}, 1 thread", std::env::consts::ARCH),
    });
    engines
}

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
    config: Config,
}

impl Default for MachineBuilder {
    fn default() -> Self {
        let config = Config {
            lanes: 1,
            memory_size: 4 << 20,
            model: MemoryModel::Private,
            threads: 0,
            translate_after: 3,
        };
        MachineBuilder { engine: EngineKind::Auto, config }
    }
}

impl MachineBuilder {
    const MAX_LANES: usize = 1 << 24;
    const MAX_MEMORY: u64 = 1 << 40;

    /// Which engine to use; the best one present by default.
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
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

    /// Whether lanes share memory; private by default.
    pub fn model(mut self, model: MemoryModel) -> Self {
        self.config.model = model;
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

    /// Builds the machine: memory and all registers zero.
    pub fn build(self) -> Result<Machine> {
        let Config { lanes, memory_size, .. } = self.config;
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
        let engine: Box<dyn Engine> = match self.engine {
            EngineKind::Auto | EngineKind::Cpu => Box::new(CpuEngine::new(self.config)?),
            EngineKind::Cuda => Box::new(CudaEngine::new(self.config, 0)?),
            EngineKind::Eval => Box::new(EvalEngine::new(self.config)?),
        };
        Ok(Machine::new(engine))
    }
}
