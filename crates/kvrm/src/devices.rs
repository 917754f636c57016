//! Lists the devices of this computer.

use crate::EngineKind;
use crate::builder::cores;

/// A device of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The engine.
    pub engine: EngineKind,
    /// Its number ([`MachineBuilder::device`](crate::MachineBuilder::device)), for engines that have several.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Size of its memory in bytes, if known.
    pub memory: Option<u64>,
    /// Free memory in bytes, if known.
    pub free_memory: Option<u64>,
    /// Its compute capability, if it is an NVIDIA GPU that CUDA runs.
    pub compute_capability: Option<(i32, i32)>,
    /// Its driver, with the version, if it needs one.
    pub driver: Option<String>,
    /// Why it cannot be used, if it cannot.
    pub why_not: Option<String>,
}

/// Returns the devices of this computer, including those that cannot be used.
///
/// ```
/// use kvrm::EngineKind;
/// let devices = kvrm::devices();
/// assert!(devices.iter().any(|device| device.engine == EngineKind::Cpu && device.why_not.is_none()));
/// ```
pub fn devices() -> Vec<Device> {
    let host = |engine, name| Device {
        engine,
        index: 0,
        name,
        memory: None,
        free_memory: None,
        compute_capability: None,
        driver: None,
        why_not: None,
    };
    let arch = std::env::consts::ARCH;
    let mut devices = vec![host(EngineKind::Cpu, format!("{arch}, {} threads", cores()))];
    devices.extend(kvrm_cuda::devices().into_iter().map(|gpu| Device {
        engine: EngineKind::Cuda,
        index: gpu.index,
        memory: Some(gpu.memory),
        free_memory: gpu.free,
        compute_capability: Some(gpu.capability),
        driver: Some(format!("CUDA {}.{}", gpu.driver.0, gpu.driver.1)),
        why_not: gpu.free.is_none().then(|| "it cannot be opened".to_string()),
        name: gpu.name,
    }));
    devices.extend(kvrm_wgpu::devices().into_iter().map(|gpu| Device {
        engine: EngineKind::Wgpu,
        index: gpu.index,
        memory: None,
        free_memory: None,
        compute_capability: None,
        driver: Some(format!("{}, {}", gpu.backend, gpu.driver)),
        why_not: gpu.unfit.map(str::to_string),
        name: gpu.name,
    }));
    devices.push(host(EngineKind::Eval, format!("{arch}, 1 thread")));
    devices
}
