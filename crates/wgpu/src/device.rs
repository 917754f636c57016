//! Devices and buffers, through wgpu.

use wgpu::{BufferUsages, Features};

/// A failure of a device, or of what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum WgpuError {
    /// There is no such device.
    #[error("no GPU {index} for wgpu: there are {count}; a Vulkan, Metal or DX12 driver is needed")]
    NoDevice {
        /// The one asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The device cannot run the kernels.
    #[error("{name} cannot be used: {why}")]
    Unfit {
        /// Its name.
        name: String,
        /// What it lacks.
        why: &'static str,
    },
    /// More memory is wanted than fits a binding.
    #[error(
        "{name} takes at most {limit} bytes in one buffer, and {what} needs {wanted}: use fewer lanes or a smaller memory"
    )]
    TooLarge {
        /// The device's name.
        name: String,
        /// What the buffer is for.
        what: &'static str,
        /// Bytes wanted.
        wanted: u64,
        /// The most there can be.
        limit: u64,
    },
    /// The device is gone, or refused something.
    #[error("{name} failed: {message}")]
    Failed {
        /// Its name.
        name: String,
        /// What it said.
        message: String,
    },
}

/// What is known of a device.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// Its number.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// How wgpu reaches it: Vulkan, Metal, DX12.
    pub backend: String,
    /// The driver, with its version.
    pub driver: String,
    /// Why it cannot be used, if it cannot.
    pub unfit: Option<&'static str>,
}

fn adapters() -> Vec<wgpu::Adapter> {
    let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    pollster::block_on(instance.enumerate_adapters(backends))
}

/// The devices on this computer, those that cannot be used included.
pub fn devices() -> Vec<DeviceInfo> {
    let info = |(index, adapter): (usize, &wgpu::Adapter)| {
        let info = adapter.get_info();
        DeviceInfo {
            index,
            name: info.name.clone(),
            backend: info.backend.to_string(),
            driver: format!("{} {}", info.driver, info.driver_info),
            unfit: unfit(adapter),
        }
    };
    adapters().iter().enumerate().map(info).collect()
}

/// What the kernels need; shared memory needs 64-bit atomics, too.
const NEEDED: Features = Features::SHADER_INT64;

/// Why a device cannot be used.
fn unfit(adapter: &wgpu::Adapter) -> Option<&'static str> {
    let info = adapter.get_info();
    if !adapter.features().contains(NEEDED) {
        return Some("its shaders have no 64-bit integers (SHADER_INT64)");
    }
    // Ends loops after 65,535 turns, and runs every arm of a switch: results are wrong.
    let old_mesa = ["Mesa 20.", "Mesa 21.", "Mesa 22."];
    if info.driver == "llvmpipe" && old_mesa.iter().any(|old| info.driver_info.starts_with(old)) {
        return Some("llvmpipe before Mesa 23 computes wrong results; install Mesa 25 or later");
    }
    None
}

/// A device that has been opened.
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    /// Lanes that run in step.
    pub(crate) subgroup: u32,
    pub(crate) has_wide_atomics: bool,
    /// Bytes that one binding can have.
    pub(crate) limit: u64,
}

impl Device {
    pub(crate) fn open(index: usize) -> Result<Device, WgpuError> {
        let adapters = adapters();
        let count = adapters.len();
        let adapter = adapters.get(index).ok_or(WgpuError::NoDevice { index, count })?;
        let info = adapter.get_info();
        if let Some(why) = unfit(adapter) {
            return Err(WgpuError::Unfit { name: info.name, why });
        }
        let atomics = adapter.features() & Features::SHADER_INT64_ATOMIC_ALL_OPS;
        let limits = adapter.limits();
        let limit = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        let request = wgpu::DeviceDescriptor {
            label: Some("kvrm"),
            required_features: NEEDED | atomics,
            required_limits: limits,
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let failed = |message: String| WgpuError::Failed { name: info.name.clone(), message };
        let (device, queue) = pollster::block_on(adapter.request_device(&request))
            .map_err(|error| failed(error.to_string()))?;
        Ok(Device {
            name: info.name.clone(),
            device,
            queue,
            subgroup: info.subgroup_max_size.clamp(1, 32),
            has_wide_atomics: !atomics.is_empty(),
            limit,
        })
    }

    pub(crate) fn failed(&self, message: impl ToString) -> WgpuError {
        WgpuError::Failed { name: self.name.clone(), message: message.to_string() }
    }

    /// Does something, and waits for what the device says of it.
    pub(crate) fn checked<T>(&self, work: impl FnOnce() -> T) -> Result<T, WgpuError> {
        let scopes = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory]
            .map(|filter| self.device.push_error_scope(filter));
        let result = work();
        for scope in scopes.into_iter().rev() {
            if let Some(error) = pollster::block_on(scope.pop()) {
                return Err(self.failed(error));
            }
        }
        Ok(result)
    }

    /// Zeroed memory for kernels.
    pub(crate) fn buffer(&self, what: &'static str, len: u64) -> Result<wgpu::Buffer, WgpuError> {
        let size = len.next_multiple_of(16).max(16);
        if size > self.limit {
            let (name, limit) = (self.name.clone(), self.limit);
            return Err(WgpuError::TooLarge { name, what, wanted: size, limit });
        }
        let usage = BufferUsages::STORAGE
            | BufferUsages::UNIFORM
            | BufferUsages::COPY_SRC
            | BufferUsages::COPY_DST;
        let label = Some(what);
        self.checked(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label,
                size,
                usage: if size > 1 << 14 { usage - BufferUsages::UNIFORM } else { usage },
                mapped_at_creation: false,
            })
        })
    }

    /// Writes whole words of 32 bits.
    pub(crate) fn write(&self, buffer: &wgpu::Buffer, offset: u64, bytes: &[u8]) {
        self.queue.write_buffer(buffer, offset, bytes);
    }

    /// Reads whole words of 32 bits.
    pub(crate) fn read(
        &self,
        buffer: &wgpu::Buffer,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), WgpuError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let size = bytes.len() as u64;
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("staging"),
            size,
            usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, offset, &staging, 0, size);
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |_| {});
        self.wait()?;
        let view = staging.get_mapped_range(..).map_err(|error| self.failed(error))?;
        bytes.copy_from_slice(&view);
        Ok(())
    }

    /// Waits for all that has been submitted.
    pub(crate) fn wait(&self) -> Result<(), WgpuError> {
        let all = wgpu::PollType::Wait { submission_index: None, timeout: None };
        self.device.poll(all).map(|_| ()).map_err(|error| self.failed(error))
    }
}
