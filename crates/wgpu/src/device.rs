//! Devices and buffers, through wgpu.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wgpu::{BufferUsages, Features};

use crate::kernel::Atomics;

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
    /// The device has no memory left.
    #[error(
        "{name} has no room for {wanted} bytes, which {what} needs: use fewer lanes or a smaller memory"
    )]
    Full {
        /// The device's name.
        name: String,
        /// What the buffer is for.
        what: &'static str,
        /// Bytes wanted.
        wanted: u64,
    },
    /// The device is gone.
    #[error("{name} was lost ({message}), and with it what its lanes had: build the machine again")]
    Lost {
        /// Its name.
        name: String,
        /// What the driver said.
        message: String,
    },
    /// The device refused something.
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

/// What the kernels need.
const NEEDED: Features = Features::SHADER_INT64.union(Features::SUBGROUP);

/// What is used where there is it: shared memory without locks, caching of compiled kernels.
const WELCOME: Features =
    Features::SHADER_INT64_ATOMIC_ALL_OPS.union(Features::PIPELINE_CACHE).union(COHERENT);

/// For memory that lanes share without 64-bit atomics.
const COHERENT: Features = Features::MEMORY_DECORATION_COHERENT;

/// Why a device cannot be used.
fn unfit(adapter: &wgpu::Adapter) -> Option<&'static str> {
    let info = adapter.get_info();
    if !adapter.features().contains(Features::SHADER_INT64) {
        return Some("its shaders have no 64-bit integers (SHADER_INT64)");
    }
    if !adapter.features().contains(Features::SUBGROUP) {
        return Some("its shaders have no subgroup operations (SUBGROUP)");
    }
    // Ends loops after 65,535 turns, and runs every arm of a switch: results are wrong.
    let old_mesa = ["Mesa 20.", "Mesa 21.", "Mesa 22."];
    if info.driver == "llvmpipe" && old_mesa.iter().any(|old| info.driver_info.starts_with(old)) {
        return Some("llvmpipe before Mesa 23 computes wrong results; install Mesa 25 or later");
    }
    None
}

/// The most bytes in a buffer: kernels count its words of 64 bits in 32.
const LARGEST: u64 = 1 << 34;

/// A device that has been opened.
#[derive(Clone)]
pub(crate) struct Device {
    pub(crate) name: Arc<str>,
    /// The driver, as far as compiled kernels depend on it.
    pub(crate) driver: Arc<str>,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    /// Lanes that certainly run in step: 32 or fewer.
    pub(crate) group: u32,
    /// Lanes that may run in step.
    pub(crate) largest_subgroup: u32,
    pub(crate) features: Features,
    /// Host and device have the same memory: buffers are mapped instead of copied.
    shares_memory: bool,
    /// Bytes that one binding can have, and how many there can be.
    pub(crate) limit: u64,
    pub(crate) bindings: u32,
    lost: Arc<OnceLock<String>>,
    /// The first failure of something that nobody waited for.
    failure: Arc<Mutex<Option<String>>>,
    staging: Arc<Mutex<Option<wgpu::Buffer>>>,
}

/// Whole words of 32 bits in a buffer.
pub(crate) struct Part<'a> {
    pub(crate) buffer: &'a wgpu::Buffer,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// The least and the most lanes in a subgroup.
fn subgroup_sizes(info: &wgpu::AdapterInfo) -> (u32, u32) {
    match info.backend {
        // wgpu does not ask; all of Apple's GPUs have 32.
        wgpu::Backend::Metal if info.name.starts_with("Apple") => (32, 32),
        _ => (info.subgroup_min_size, info.subgroup_max_size),
    }
}

fn shares_memory(info: &wgpu::AdapterInfo) -> bool {
    matches!(info.device_type, wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::Cpu)
}

impl Device {
    /// Opens a device, and uses none of the features in `without`.
    pub(crate) fn open(index: usize, without: Features) -> Result<Device, WgpuError> {
        let adapters = adapters();
        let count = adapters.len();
        let adapter = adapters.get(index).ok_or(WgpuError::NoDevice { index, count })?;
        let info = adapter.get_info();
        if let Some(why) = unfit(adapter) {
            return Err(WgpuError::Unfit { name: info.name, why });
        }
        let mappable = match shares_memory(&info) {
            true => Features::MAPPABLE_PRIMARY_BUFFERS,
            false => Features::empty(),
        };
        let welcome = adapter.features() & (WELCOME | mappable);
        let features = NEEDED | (welcome - without);
        let limits = adapter.limits();
        let request = wgpu::DeviceDescriptor {
            label: Some("kvrm"),
            required_features: features,
            required_limits: limits.clone(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let failed = |error: wgpu::RequestDeviceError| WgpuError::Failed {
            name: info.name.clone(),
            message: error.to_string(),
        };
        let (device, queue) =
            pollster::block_on(adapter.request_device(&request)).map_err(failed)?;
        let lost = Arc::new(OnceLock::new());
        let noted = lost.clone();
        device.set_device_lost_callback(move |_, message| {
            let _ = noted.set(message);
        });
        let failure = Arc::new(Mutex::new(None));
        let noted: Arc<Mutex<Option<String>>> = failure.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.get_or_insert_with(|| error.to_string());
        }));
        let (smallest, largest) = subgroup_sizes(&info);
        let driver = format!("{} {} {}", info.backend, info.driver, info.driver_info);
        Ok(Device {
            name: info.name.as_str().into(),
            driver: driver.into(),
            device,
            queue,
            group: smallest.clamp(1, 32),
            largest_subgroup: largest,
            features,
            shares_memory: features.contains(Features::MAPPABLE_PRIMARY_BUFFERS),
            limit: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(LARGEST),
            bindings: limits.max_storage_buffers_per_shader_stage,
            lost,
            failure,
            staging: Arc::default(),
        })
    }

    /// What there is for lanes that share memory.
    pub(crate) fn atomics(&self) -> Atomics {
        match self.features.contains(Features::SHADER_INT64_ATOMIC_ALL_OPS) {
            true => Atomics::Wide,
            false => Atomics::Locks { coherent: self.features.contains(COHERENT) },
        }
    }

    pub(crate) fn failed(&self, message: impl ToString) -> WgpuError {
        let name = self.name.to_string();
        // That it is lost may be known, and only not told yet.
        let _ = self.device.poll(wgpu::PollType::Poll);
        match self.lost.get() {
            Some(message) => WgpuError::Lost { name, message: message.clone() },
            None => WgpuError::Failed { name, message: message.to_string() },
        }
    }

    /// Does something, and waits for what the device says of it.
    pub(crate) fn checked<T>(&self, work: impl FnOnce() -> T) -> Result<T, WgpuError> {
        self.attempt(work).map_err(|error| self.failed(error))
    }

    fn attempt<T>(&self, work: impl FnOnce() -> T) -> Result<T, wgpu::Error> {
        use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
        let scopes =
            [Validation, OutOfMemory, Internal].map(|filter| self.device.push_error_scope(filter));
        let result = work();
        for scope in scopes.into_iter().rev() {
            if let Some(error) = pollster::block_on(scope.pop()) {
                return Err(error);
            }
        }
        Ok(result)
    }

    /// Zeroed memory for kernels.
    pub(crate) fn buffer(&self, what: &'static str, len: u64) -> Result<wgpu::Buffer, WgpuError> {
        let size = len.next_multiple_of(16).max(16);
        if size > self.limit {
            let (name, limit) = (self.name.to_string(), self.limit);
            return Err(WgpuError::TooLarge { name, what, wanted: size, limit });
        }
        let mut usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        if self.shares_memory {
            usage |= BufferUsages::MAP_READ | BufferUsages::MAP_WRITE;
        }
        self.create(what, size, usage)
    }

    /// Room for what a launch is given.
    pub(crate) fn uniform(&self, what: &'static str, len: u64) -> Result<wgpu::Buffer, WgpuError> {
        let usage = BufferUsages::UNIFORM | BufferUsages::COPY_DST;
        self.create(what, len.next_multiple_of(16), usage)
    }

    fn create(
        &self,
        what: &'static str,
        size: u64,
        usage: BufferUsages,
    ) -> Result<wgpu::Buffer, WgpuError> {
        let (label, mapped_at_creation) = (Some(what), false);
        let descriptor = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation };
        self.attempt(|| self.device.create_buffer(&descriptor)).map_err(|error| match error {
            wgpu::Error::OutOfMemory { .. } => {
                WgpuError::Full { name: self.name.to_string(), what, wanted: size }
            }
            error => self.failed(error),
        })
    }

    /// Writes whole words of 32 bits, from a multiple of 8 on.
    pub(crate) fn write(
        &self,
        buffer: &wgpu::Buffer,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), WgpuError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if !buffer.usage().contains(BufferUsages::MAP_WRITE) {
            self.queue.write_buffer(buffer, offset, bytes);
            return self.check();
        }
        let range = offset..offset + bytes.len() as u64;
        self.map(buffer, wgpu::MapMode::Write, range.clone(), || {
            buffer.get_mapped_range_mut(range)?.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// Reads whole words of 32 bits.
    pub(crate) fn read(
        &self,
        buffer: &wgpu::Buffer,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), WgpuError> {
        if !bytes.is_empty() {
            let part = Part { buffer, offset, len: bytes.len() as u64 };
            bytes.copy_from_slice(&self.read_all(self.encoder(), &[part])?);
        }
        Ok(())
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&Default::default())
    }

    /// Does what the encoder has, and then reads parts of buffers, one behind the other. All at once:
    /// each submission and the wait for its end take time.
    pub(crate) fn read_all(
        &self,
        encoder: wgpu::CommandEncoder,
        parts: &[Part<'_>],
    ) -> Result<Vec<u8>, WgpuError> {
        match self.shares_memory {
            true => self.read_mapped(encoder, parts),
            false => self.read_copied(encoder, parts),
        }
    }

    fn read_mapped(
        &self,
        encoder: wgpu::CommandEncoder,
        parts: &[Part<'_>],
    ) -> Result<Vec<u8>, WgpuError> {
        self.queue.submit([encoder.finish()]);
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len as usize).sum());
        for Part { buffer, offset, len } in parts.iter().filter(|part| part.len > 0) {
            // Mappings start at multiples of 8.
            let (first, end) = (offset & !7, (offset + len).next_multiple_of(4));
            self.look(buffer, first..end, |view| {
                bytes.extend_from_slice(&view[(offset - first) as usize..][..*len as usize]);
            })?;
        }
        Ok(bytes)
    }

    /// By way of a buffer that the host can map.
    fn read_copied(
        &self,
        mut encoder: wgpu::CommandEncoder,
        parts: &[Part<'_>],
    ) -> Result<Vec<u8>, WgpuError> {
        let size = parts.iter().map(|part| part.len).sum();
        let staging = self.staging(size)?;
        let mut end = 0;
        for Part { buffer, offset, len } in parts.iter().filter(|part| part.len > 0) {
            encoder.copy_buffer_to_buffer(buffer, *offset, &staging, end, *len);
            end += len;
        }
        self.queue.submit([encoder.finish()]);
        let mut bytes = Vec::with_capacity(size as usize);
        self.look(&staging, 0..size, |view| bytes.extend_from_slice(view))?;
        Ok(bytes)
    }

    /// A buffer that the host can map; there is one, which grows.
    fn staging(&self, size: u64) -> Result<wgpu::Buffer, WgpuError> {
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(buffer) = staging.as_ref().filter(|buffer| buffer.size() >= size) {
            return Ok(buffer.clone());
        }
        let usage = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
        let size = size.next_power_of_two().min(self.limit).max(size).max(1 << 12);
        let buffer = self.create("a copy for the host", size, usage)?;
        *staging = Some(buffer.clone());
        Ok(buffer)
    }

    /// Looks into a buffer that the host can map, when the device has done what it was given.
    fn look(
        &self,
        buffer: &wgpu::Buffer,
        range: Range<u64>,
        look: impl FnOnce(&[u8]),
    ) -> Result<(), WgpuError> {
        self.map(buffer, wgpu::MapMode::Read, range.clone(), || {
            look(&buffer.get_mapped_range(range)?);
            Ok(())
        })
    }

    /// Does something while a buffer is mapped.
    fn map(
        &self,
        buffer: &wgpu::Buffer,
        mode: wgpu::MapMode,
        range: Range<u64>,
        work: impl FnOnce() -> Result<(), wgpu::MapRangeError>,
    ) -> Result<(), WgpuError> {
        let mapped = Arc::new(AtomicBool::new(false));
        let done = mapped.clone();
        buffer.map_async(mode, range, move |result| done.store(result.is_ok(), Relaxed));
        let waited = self.wait();
        if !mapped.load(Relaxed) {
            return waited.and(Err(self.failed("a buffer cannot be mapped")));
        }
        let worked = waited.and_then(|()| work().map_err(|error| self.failed(error)));
        buffer.unmap();
        worked
    }

    /// Waits for all that has been submitted.
    pub(crate) fn wait(&self) -> Result<(), WgpuError> {
        let all = wgpu::PollType::Wait { submission_index: None, timeout: None };
        self.device.poll(all).map_err(|error| self.failed(error))?;
        self.check()
    }

    /// Fails if the device is lost, or if something has failed that nobody waited for.
    fn check(&self) -> Result<(), WgpuError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        match self.lost.get().or(failure.as_ref()) {
            Some(message) => Err(self.failed(message)),
            None => Ok(()),
        }
    }
}
