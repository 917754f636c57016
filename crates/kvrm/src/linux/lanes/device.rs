//! A GPU that engines can be built on.

use std::fmt::{Debug, Formatter};
use std::sync::Arc;

use kvrm_engine::{Config, Engine, EngineError};

use crate::EngineKind;

/// Engines with many lanes of mapped memory.
type Build = dyn Fn(Config) -> Result<Box<dyn Engine>, EngineError> + Send + Sync;

/// A GPU for lanes of Linux programs; or, for tests, something like one.
#[doc(hidden)]
#[derive(Clone)]
pub struct Device {
    kind: EngineKind,
    build: Arc<Build>,
}

impl Device {
    /// A GPU on which engines are built like this.
    pub fn new(
        kind: EngineKind,
        build: impl Fn(Config) -> Result<Box<dyn Engine>, EngineError> + Send + Sync + 'static,
    ) -> Device {
        Device { kind, build: Arc::new(build) }
    }

    /// The GPU for somebody who asks for that engine.
    pub(in super::super) fn of(kind: EngineKind) -> Device {
        match kind {
            EngineKind::Cuda => {
                Device::new(kind, |config| Ok(Box::new(kvrm_cuda::build(config, 0)?)))
            }
            EngineKind::Wgpu => Device::wgpu(None),
            EngineKind::Auto | EngineKind::Cpu | EngineKind::Eval => {
                unreachable!("programs on the host run each on a machine of its own")
            }
        }
    }

    fn wgpu(index: Option<usize>) -> Device {
        Device::new(EngineKind::Wgpu, move |config| Ok(Box::new(kvrm_wgpu::build(config, index)?)))
    }

    /// The GPU for somebody who asks for none, if there is one that can be used: with CUDA first. A driver that emulates a GPU on
    /// the CPU is none. Nothing is opened.
    pub(in super::super) fn find() -> Option<Device> {
        if kvrm_cuda::find(0).is_ok() {
            return Some(Device::of(EngineKind::Cuda));
        }
        let devices = kvrm_wgpu::devices().into_iter();
        let gpu = devices.filter(|gpu| gpu.unfit.is_none() && !gpu.software).map(|gpu| gpu.index);
        gpu.min().map(|index| Device::wgpu(Some(index)))
    }

    /// The engine.
    pub(in super::super) fn kind(&self) -> EngineKind {
        self.kind
    }

    pub(super) fn build(&self, config: Config) -> Result<Box<dyn Engine>, EngineError> {
        (self.build)(config)
    }
}

impl Debug for Device {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Device").field(&self.kind).finish()
    }
}
