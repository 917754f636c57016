//! Devices and buffers, through wgpu.

use std::ops::{Deref, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use wgpu::{BufferUsages, Features};

use crate::kernel::Atomics;
use crate::opened::{Lease, Opened, adapters};

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
    /// More memory is wanted than kernels can be given.
    #[error(
        "{name} has at most {limit} bytes for {what}, which needs {wanted}: use fewer lanes or a smaller memory"
    )]
    TooLarge {
        /// The device's name.
        name: String,
        /// What it is for.
        what: &'static str,
        /// Bytes wanted.
        wanted: u64,
        /// The most there can be.
        limit: u64,
    },
    /// The device has no memory left, or the host has none.
    #[error(
        "{name} has no room for {wanted} bytes, which {what} needs: use fewer lanes or a smaller memory"
    )]
    Full {
        /// The device's name.
        name: String,
        /// What it is for.
        what: &'static str,
        /// Bytes wanted.
        wanted: u64,
    },
    /// There is no thread to compile a kernel on.
    #[error("cannot start a thread: {0}")]
    NoThread(std::io::Error),
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
    /// It is the CPU, with a driver that emulates a GPU.
    pub software: bool,
    /// Why it cannot be used, if it cannot.
    pub unfit: Option<&'static str>,
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
            software: info.device_type == wgpu::DeviceType::Cpu,
            unfit: unfit(&info, adapter.features()),
        }
    };
    adapters().iter().enumerate().map(info).collect()
}

/// Makes sure that there is a device of that number, without opening it.
///
/// ```
/// let none = kvrm_wgpu::find(1000).unwrap_err();
/// assert!(none.to_string().starts_with("no GPU 1000 for wgpu"));
/// ```
pub fn find(index: usize) -> Result<(), WgpuError> {
    let count = adapters().len();
    if index < count { Ok(()) } else { Err(WgpuError::NoDevice { index, count }) }
}

/// What the kernels need.
const NEEDED: Features = Features::SHADER_INT64.union(Features::SUBGROUP);

/// What is used where there is it: shared memory without locks, caching of compiled kernels.
const WELCOME: Features =
    Features::SHADER_INT64_ATOMIC_ALL_OPS.union(Features::PIPELINE_CACHE).union(COHERENT);

/// For memory that lanes share without 64-bit atomics.
const COHERENT: Features = Features::MEMORY_DECORATION_COHERENT;

/// Why a device cannot be used.
fn unfit(info: &wgpu::AdapterInfo, features: Features) -> Option<&'static str> {
    if !features.contains(Features::SHADER_INT64) {
        return Some(match info.backend {
            // Without, wgpu takes an older one, which has none whatever the device.
            wgpu::Backend::Dx12 => {
                "its shaders have no 64-bit integers (SHADER_INT64), or DirectX's compiler is missing: put dxcompiler.dll and dxil.dll beside the program"
            }
            _ => "its shaders have no 64-bit integers (SHADER_INT64)",
        });
    }
    if !features.contains(Features::SUBGROUP) {
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
    lease: Arc<Lease>,
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
    staging: Arc<Mutex<Option<wgpu::Buffer>>>,
}

impl Deref for Device {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.lease
    }
}

/// Whole words of 32 bits in a buffer.
pub(crate) struct WordRange<'a> {
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
    /// Opens a device, the first that can be used if no number is given, and uses none of the features in `without`.
    pub(crate) fn open(index: Option<usize>, without: Features) -> Result<Device, WgpuError> {
        let adapters = adapters();
        let count = adapters.len();
        let is_fit = |it: &wgpu::Adapter| unfit(&it.get_info(), it.features()).is_none();
        let index = index.or_else(|| adapters.iter().position(is_fit)).unwrap_or(0);
        let adapter = adapters.get(index).ok_or(WgpuError::NoDevice { index, count })?;
        let info = adapter.get_info();
        if let Some(why) = unfit(&info, adapter.features()) {
            return Err(WgpuError::Unfit { name: info.name, why });
        }
        let mappable = match shares_memory(&info) {
            true => Features::MAPPABLE_PRIMARY_BUFFERS,
            false => Features::empty(),
        };
        let welcome = adapter.features() & (WELCOME | mappable);
        let features = NEEDED | (welcome - without);
        let limits = adapter.limits();
        let lease = Lease::new(adapter, index, features).map_err(|error| WgpuError::Failed {
            name: info.name.clone(),
            message: error.to_string(),
        })?;
        let (smallest, largest) = subgroup_sizes(&info);
        let driver = format!("{} {} {}", info.backend, info.driver, info.driver_info);
        Ok(Device {
            name: info.name.as_str().into(),
            driver: driver.into(),
            lease: Arc::new(lease),
            group: smallest.clamp(1, 32),
            largest_subgroup: largest,
            features,
            shares_memory: features.contains(Features::MAPPABLE_PRIMARY_BUFFERS),
            limit: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(LARGEST),
            bindings: limits.max_storage_buffers_per_shader_stage,
            staging: Arc::default(),
        })
    }

    /// The same, opened once more.
    pub(crate) fn another(&self) -> Result<Device, WgpuError> {
        let failed = |message: String| WgpuError::Failed { name: self.name.to_string(), message };
        let index = self.lease.index();
        let adapters = adapters();
        let adapter = adapters.get(index).ok_or_else(|| failed("it is gone".to_string()))?;
        let lease =
            Lease::new(adapter, index, self.features).map_err(|error| failed(error.to_string()))?;
        Ok(Device { lease: Arc::new(lease), staging: Arc::default(), ..self.clone() })
    }

    /// True if it is the CPU, and its compiler takes long for large kernels.
    pub(crate) fn is_llvmpipe(&self) -> bool {
        self.driver.contains("llvmpipe")
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
        match self.poll(wgpu::PollType::Poll) {
            Err(lost) => lost,
            Ok(()) => match self.lost.get() {
                Some(message) => self.lose(message),
                None => WgpuError::Failed { name, message: message.to_string() },
            },
        }
    }

    /// The device is of no use any more.
    pub(crate) fn lose(&self, why: &str) -> WgpuError {
        let message = self.lost.get_or_init(|| why.to_string()).clone();
        WgpuError::Lost { name: self.name.to_string(), message }
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
        // All of them, the last one first: wgpu panics where they end in another order.
        let pop = |scope: wgpu::ErrorScopeGuard| pollster::block_on(scope.pop());
        let errors: Vec<_> = scopes.into_iter().rev().filter_map(pop).collect();
        errors.into_iter().next().map_or(Ok(result), Err)
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
            let part = WordRange { buffer, offset, len: bytes.len() as u64 };
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
        parts: &[WordRange<'_>],
    ) -> Result<Vec<u8>, WgpuError> {
        match self.shares_memory {
            true => self.read_mapped(encoder, parts),
            false => self.read_copied(encoder, parts),
        }
    }

    fn read_mapped(
        &self,
        encoder: wgpu::CommandEncoder,
        parts: &[WordRange<'_>],
    ) -> Result<Vec<u8>, WgpuError> {
        self.queue.submit([encoder.finish()]);
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len as usize).sum());
        for WordRange { buffer, offset, len } in parts.iter().filter(|part| part.len > 0) {
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
        parts: &[WordRange<'_>],
    ) -> Result<Vec<u8>, WgpuError> {
        let size = parts.iter().map(|part| part.len).sum();
        let staging = self.staging(size)?;
        let mut end = 0;
        for WordRange { buffer, offset, len } in parts.iter().filter(|part| part.len > 0) {
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
        self.poll(all)?;
        self.check()
    }

    /// Lets wgpu look what the device has done. Where the driver says that it is lost, wgpu panics.
    fn poll(&self, how: wgpu::PollType) -> Result<(), WgpuError> {
        if let Some(message) = self.lost.get() {
            return Err(self.lose(message));
        }
        match catch_unwind(AssertUnwindSafe(|| self.device.poll(how))) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                Err(WgpuError::Failed { name: self.name.to_string(), message: error.to_string() })
            }
            Err(panic) => {
                let message = panic.downcast_ref::<String>().map_or("it does not say why", |it| it);
                Err(self.lose(&message.split_whitespace().collect::<Vec<_>>().join(" ")))
            }
        }
    }

    /// Fails if the device is lost, or if something has failed that nobody waited for.
    fn check(&self) -> Result<(), WgpuError> {
        let failure = self.failure();
        match self.lost.get().or(failure.as_ref()) {
            Some(message) => Err(self.failed(message)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why_not(
        backend: wgpu::Backend,
        driver: [&str; 2],
        features: Features,
    ) -> Option<&'static str> {
        let mut info = wgpu::AdapterInfo::new(wgpu::DeviceType::Other, backend);
        [info.driver, info.driver_info] = driver.map(str::to_string);
        unfit(&info, features)
    }

    #[test]
    fn devices_that_cannot_be_used_are_told_why() {
        use wgpu::Backend::{Dx12, Metal, Vulkan};
        let llvmpipe = |version| why_not(Vulkan, ["llvmpipe", version], NEEDED);
        assert_eq!(llvmpipe("Mesa 25.0.7 (LLVM 15.0.6)"), None);
        assert!(llvmpipe("Mesa 22.3.6 (LLVM 15.0.6)").unwrap().contains("install Mesa 25"));
        assert_eq!(why_not(Vulkan, ["radv", "Mesa 22.3.6"], NEEDED), None);
        assert!(why_not(Metal, ["", ""], Features::SUBGROUP).unwrap().contains("64-bit integers"));
        assert!(why_not(Dx12, ["", ""], Features::SUBGROUP).unwrap().contains("dxcompiler.dll"));
        assert!(why_not(Metal, ["", ""], Features::SHADER_INT64).unwrap().contains("subgroup"));
    }

    #[test]
    fn devices_are_used_again_unless_they_are_lost() {
        // No other test opens devices without this feature.
        let open = || Device::open(None, Features::PIPELINE_CACHE).unwrap();
        let (first, second) = (open(), open());
        assert!(first.device != second.device, "two machines share a device");
        let handle = second.device.clone();
        drop(second);
        let third = open();
        assert!(third.device == handle, "a device was opened while one was idle");
        third.device.destroy();
        assert!(matches!(third.wait(), Err(WgpuError::Lost { .. })));
        drop(third);
        assert!(open().device != handle, "a lost device was kept");
        drop(first);
    }

    #[test]
    fn memory_of_a_machine_that_is_gone_is_free() {
        let device = Device::open(None, Features::MAPPABLE_PRIMARY_BUFFERS | COHERENT).unwrap();
        let opened = device.device.clone();
        let used = || opened.generate_allocator_report().map(|it| it.total_allocated_bytes);
        let before = used().expect("Vulkan tells");
        let buffer = device.buffer("a test", 1 << 20).unwrap();
        // wgpu keeps what is to be written, and so the buffer, until something is submitted.
        device.write(&buffer, 0, &[1; 8]).unwrap();
        assert!(used() >= Some(before + (1 << 20)));
        drop((buffer, device));
        assert!(used() <= Some(before), "it still has {:?}", used());
    }

    #[test]
    fn a_kernel_that_does_not_compile_is_an_error() {
        let device = Device::open(None, Features::empty()).unwrap();
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl("not a kernel".into()),
        };
        let error = device.checked(|| device.device.create_shader_module(descriptor));
        assert!(matches!(error, Err(WgpuError::Failed { .. })));
        // Nothing is left of it.
        device.checked(|| ()).unwrap();
    }
}
