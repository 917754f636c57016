//! The CUDA driver, opened at run time: contexts, buffers, launches. Nothing else of CUDA is needed.

use std::ffi::{CString, c_void};
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUdeviceptr};
use cudarc::driver::{DriverError, result};
use kvrm_engine::cache::{KernelCache, KernelKey};

use crate::compile::compile;

/// A failure of the driver or of what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// There is no driver on this computer.
    #[error("no CUDA device: the NVIDIA driver (libcuda) is not installed")]
    NoDriver,
    /// There is a driver but no such device.
    #[error("no CUDA device {index}: there are {count}, numbered from 0")]
    NoDevice {
        /// The one asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver refused something.
    #[error("{what}: {source}")]
    Driver {
        /// What was attempted.
        what: &'static str,
        /// What it said.
        source: DriverError,
    },
    /// The driver does not compile a kernel.
    #[error("compiling a kernel: {source}; please report this as a bug\n{log}")]
    Compile {
        /// What it said.
        source: DriverError,
        /// What its compiler said.
        log: String,
    },
    /// The program executes code at addresses that no one table can hold.
    #[error(
        "code from {start:#x} to {end:#x} spans more than the 256 MiB of the cuda engine; use the cpu engine"
    )]
    CodeTooFarApart {
        /// First address.
        start: u64,
        /// End of the last page.
        end: u64,
    },
    /// The device's memory is full.
    #[error("the GPU has no room for {wanted} more bytes ({free} of {total} are free): {advice}")]
    Full {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes free.
        free: u64,
        /// Bytes there are.
        total: u64,
        /// What would fit.
        advice: String,
    },
}

/// Says what was attempted when the driver fails.
pub(crate) trait Attempt<T> {
    fn when(self, what: &'static str) -> Result<T, CudaError>;
}

impl<T> Attempt<T> for Result<T, DriverError> {
    fn when(self, what: &'static str) -> Result<T, CudaError> {
        self.map_err(|source| CudaError::Driver { what, source })
    }
}

/// What is known of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of it that nobody uses; `None` if the device cannot be opened.
    pub free: Option<u64>,
    /// Compute capability.
    pub capability: (i32, i32),
    /// The driver's CUDA version.
    pub driver: (i32, i32),
}

fn start() -> Result<usize, CudaError> {
    // SAFETY: only looks whether the library is there.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    result::init().when("starting the CUDA driver")?;
    let count = result::device::get_count().when("counting CUDA devices")?;
    Ok(count as usize)
}

/// The devices on this computer; none if there is no driver.
pub fn devices() -> Vec<DeviceInfo> {
    let count = start().unwrap_or(0);
    let device = |index| Some(DeviceInfo { free: free_memory(index).ok(), ..info(index).ok()? });
    (0..count).filter_map(device).collect()
}

/// Makes sure that there is a device of that number, without opening it.
///
/// ```
/// let none = kvrm_cuda::find(1000).unwrap_err();
/// assert!(none.to_string().starts_with("no CUDA device"));
/// ```
pub fn find(index: usize) -> Result<(), CudaError> {
    let count = start()?;
    if index < count { Ok(()) } else { Err(CudaError::NoDevice { index, count }) }
}

/// Bytes of a device's memory that nobody uses. The device is opened for it, which takes a moment.
///
/// ```
/// assert!(kvrm_cuda::free_memory(1000).is_err());
/// ```
pub fn free_memory(index: usize) -> Result<u64, CudaError> {
    let device = Device::open(index)?;
    let (free, _) = device.memory()?;
    Ok(free)
}

fn info(index: usize) -> Result<DeviceInfo, CudaError> {
    use sys::CUdevice_attribute as A;
    let device = result::device::get(index as i32).when("opening the device")?;
    // SAFETY: the device was just opened.
    let attribute = |a| unsafe { result::device::get_attribute(device, a) };
    let capability = (
        attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR).when("asking the device")?,
        attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR).when("asking the device")?,
    );
    let mut version = 0;
    // SAFETY: writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().when("asking the driver")?;
    Ok(DeviceInfo {
        index,
        name: result::device::get_name(device).when("asking the device")?,
        // SAFETY: the device was just opened.
        memory: unsafe { result::device::total_mem(device) }.when("asking the device")? as u64,
        free: None,
        capability,
        driver: (version / 1000, version % 1000 / 10),
    })
}

/// The device's context. One in which a kernel has failed refuses everything from then on, and is replaced.
fn open_context(device: sys::CUdevice) -> Result<sys::CUcontext, CudaError> {
    let open = || {
        // SAFETY: the device has been opened, and the context is retained.
        unsafe {
            let context = result::primary_ctx::retain(device)?;
            result::ctx::set_current(context)?;
            Ok(context)
        }
    };
    let context = open().when("opening the device")?;
    if result::mem_get_info().is_ok() {
        return Ok(context);
    }
    // SAFETY: nothing on the device can be used any more.
    unsafe { sys::cuDevicePrimaryCtxReset_v2(device) }.result().when("resetting the device")?;
    open().when("opening the device")
}

/// A device that has been opened.
pub(crate) struct Device {
    pub(crate) info: DeviceInfo,
    /// What initialising the driver and opening the device took.
    pub(crate) start_time: Duration,
    pub(crate) cache: KernelCache,
    /// What it and its driver are called in the cache.
    generation: String,
    driver: String,
    handle: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: the context is made current on whichever thread uses the device.
unsafe impl Send for Device {}
// SAFETY: the driver is thread-safe.
unsafe impl Sync for Device {}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: retained in `open`; buffers hold the device, so none is left.
        let _ = unsafe { result::primary_ctx::release(self.handle) };
    }
}

impl Device {
    pub(crate) fn open(index: usize) -> Result<Device, CudaError> {
        let begin = Instant::now();
        find(index)?;
        let info = info(index)?;
        let handle = result::device::get(index as i32).when("opening the device")?;
        let context = open_context(handle)?;
        let mut device = Device {
            start_time: Duration::ZERO,
            cache: KernelCache::open(),
            generation: format!("sm_{}{}", info.capability.0, info.capability.1),
            driver: format!("{}.{}", info.driver.0, info.driver.1),
            info,
            handle,
            context,
        };
        device.make_current()?;
        device.start_time = begin.elapsed();
        Ok(device)
    }

    /// Makes the calling thread work with this device.
    pub(crate) fn make_current(&self) -> Result<(), CudaError> {
        // SAFETY: the context is retained for as long as `self` lives.
        unsafe { result::ctx::set_current(self.context) }.when("selecting the device")
    }

    /// What the compiled form of a kernel depends on.
    pub(crate) fn key<'a>(&'a self, ptx: &'a str) -> KernelKey<'a> {
        let (device, driver) = (&self.generation, &self.driver);
        KernelKey { engine: "cuda", text: ptx, device, driver }
    }

    /// Bytes free and in all.
    pub(crate) fn memory(&self) -> Result<(u64, u64), CudaError> {
        let (free, total) = result::mem_get_info().when("asking for free memory")?;
        Ok((free as u64, total as u64))
    }
}

/// Memory on the device.
pub(crate) struct Buffer {
    pub(crate) address: CUdeviceptr,
    pub(crate) len: u64,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, and no kernel runs while engines drop buffers.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

/// Plain data that host and device see alike.
///
/// # Safety
/// Every bit pattern is a value, and there is no padding that matters.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers.
unsafe impl Plain for u8 {}
// SAFETY: integers.
unsafe impl Plain for u32 {}
// SAFETY: integers.
unsafe impl Plain for u64 {}
// SAFETY: integers.
unsafe impl Plain for kvrm_engine::kernel::Record {}
// SAFETY: integers; trailing padding is never read.
unsafe impl Plain for kvrm_a64::state::CpuState {}
// SAFETY: integers.
unsafe impl Plain for crate::kernel::Status {}
// SAFETY: integers.
unsafe impl Plain for crate::kernel::Pool {}

impl Buffer {
    /// Zeroed memory.
    pub(crate) fn new(
        device: &Device,
        len: u64,
        advice: impl Fn(u64) -> String,
    ) -> Result<Buffer, CudaError> {
        let len = len.max(16);
        // SAFETY: plain allocation.
        let address = match unsafe { result::malloc_sync(len as usize) } {
            Ok(address) => address,
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let (free, total) = device.memory()?;
                return Err(CudaError::Full { wanted: len, free, total, advice: advice(free) });
            }
            Err(source) => return Err(CudaError::Driver { what: "allocating memory", source }),
        };
        let buffer = Buffer { address, len };
        buffer.fill(0, len, 0)?;
        Ok(buffer)
    }

    fn check(&self, offset: u64, bytes: usize) {
        assert!(offset + bytes as u64 <= self.len, "access beyond a device buffer");
    }

    pub(crate) fn fill(&self, offset: u64, len: u64, byte: u8) -> Result<(), CudaError> {
        self.check(offset, len as usize);
        // SAFETY: in bounds.
        unsafe { result::memset_d8_sync(self.address + offset, byte, len as usize) }
            .when("clearing memory")
    }

    pub(crate) fn write<T: Plain>(&self, offset: u64, data: &[T]) -> Result<(), CudaError> {
        self.check(offset, size_of_val(data));
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: in bounds, and `T` is plain.
        unsafe { result::memcpy_htod_sync(self.address + offset, data) }
            .when("writing device memory")
    }

    pub(crate) fn read<T: Plain>(&self, offset: u64, data: &mut [T]) -> Result<(), CudaError> {
        self.check(offset, size_of_val(data));
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: in bounds, and every bit pattern is a `T`.
        unsafe { result::memcpy_dtoh_sync(data, self.address + offset) }
            .when("reading device memory")
    }
}

/// Sets a 32-bit number in each of `rows` places that are `pitch` bytes apart.
pub(crate) fn fill_column(
    at: CUdeviceptr,
    pitch: u64,
    rows: usize,
    value: u32,
) -> Result<(), CudaError> {
    // SAFETY: the caller names memory of its buffers.
    unsafe { sys::cuMemsetD2D32_v2(at, pitch as usize, value, 1, rows) }
        .result()
        .when("setting device memory")
}

/// Copies `rows` times 8 bytes between places on the device that are `from_pitch` and `to_pitch` bytes
/// apart.
pub(crate) fn copy_words(
    from: CUdeviceptr,
    from_pitch: u64,
    to: CUdeviceptr,
    to_pitch: u64,
    rows: u64,
) -> Result<(), CudaError> {
    let mut copy = copy_2d(rows);
    (copy.srcDevice, copy.srcPitch) = (from, from_pitch as usize);
    (copy.dstDevice, copy.dstPitch) = (to, to_pitch as usize);
    // SAFETY: the caller names memory of its buffers.
    unsafe { sys::cuMemcpy2D_v2(&copy) }.result().when("copying device memory")
}

/// Reads every `pitch`-th 8-byte word.
pub(crate) fn read_words(
    from: CUdeviceptr,
    pitch: u64,
    words: &mut [u64],
) -> Result<(), CudaError> {
    let mut copy = copy_2d(words.len() as u64);
    (copy.srcDevice, copy.srcPitch) = (from, pitch as usize);
    copy.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_HOST;
    (copy.dstHost, copy.dstPitch) = (words.as_mut_ptr().cast::<c_void>(), 8);
    // SAFETY: the caller names memory of its buffers; `words` has as many rows as are copied.
    unsafe { sys::cuMemcpy2D_v2(&copy) }.result().when("reading device memory")
}

/// Writes every `pitch`-th 8-byte word.
pub(crate) fn write_words(to: CUdeviceptr, pitch: u64, words: &[u64]) -> Result<(), CudaError> {
    let mut copy = copy_2d(words.len() as u64);
    copy.srcMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_HOST;
    (copy.srcHost, copy.srcPitch) = (words.as_ptr().cast::<c_void>(), 8);
    (copy.dstDevice, copy.dstPitch) = (to, pitch as usize);
    // SAFETY: as in `read_words`.
    unsafe { sys::cuMemcpy2D_v2(&copy) }.result().when("writing device memory")
}

fn copy_2d(rows: u64) -> sys::CUDA_MEMCPY2D {
    sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: 0,
        srcArray: std::ptr::null_mut(),
        srcPitch: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: 0,
        dstArray: std::ptr::null_mut(),
        dstPitch: 0,
        WidthInBytes: 8,
        Height: rows as usize,
    }
}

/// Reads and writes single numbers on the device while a kernel runs. (Memory that is mapped for both would
/// do, but a kernel of many lanes that polls it across the bus is held up by that.)
pub(crate) struct SideChannel {
    stream: sys::CUstream,
    /// Eight bytes that the device can copy from and to by itself.
    pinned: *mut c_void,
}

// SAFETY: used through `&mut`, and the driver is thread-safe.
unsafe impl Send for SideChannel {}

impl Drop for SideChannel {
    fn drop(&mut self) {
        // SAFETY: made in `new`; every copy has been waited for.
        unsafe {
            let _ = result::stream::destroy(self.stream);
            let _ = result::free_host(self.pinned);
        }
    }
}

impl SideChannel {
    pub(crate) fn new() -> Result<SideChannel, CudaError> {
        // SAFETY: plain allocation.
        let pinned = unsafe { result::malloc_host(8, 0) }.when("allocating pinned memory")?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .when("creating a stream")?;
        Ok(SideChannel { stream, pinned })
    }

    fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.stream) }.when("talking to a running kernel")
    }

    /// Reads a number that a kernel may be changing; the caller names memory of its buffers.
    pub(crate) fn read(&mut self, from: CUdeviceptr) -> Result<u64, CudaError> {
        // SAFETY: both sides have eight bytes, and the copy is waited for.
        unsafe {
            sys::cuMemcpyDtoHAsync_v2(self.pinned, from, 8, self.stream)
                .result()
                .when("talking to a running kernel")?;
            self.wait()?;
            Ok(self.pinned.cast::<u64>().read_volatile())
        }
    }

    /// Writes a number that a kernel may be reading; the caller names memory of its buffers.
    pub(crate) fn write(&mut self, to: CUdeviceptr, value: u32) -> Result<(), CudaError> {
        // SAFETY: both sides have four bytes, and the copy is waited for.
        unsafe {
            self.pinned.cast::<u32>().write_volatile(value);
            sys::cuMemcpyHtoDAsync_v2(to, self.pinned, 4, self.stream)
                .result()
                .when("talking to a running kernel")?;
        }
        self.wait()
    }
}

/// A kernel that has been loaded.
pub(crate) struct Kernel {
    module: sys::CUmodule,
    function: sys::CUfunction,
    stream: sys::CUstream,
    event: sys::CUevent,
}

// SAFETY: handles of the driver, which is thread-safe.
unsafe impl Send for Kernel {}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: made in `load`; nothing runs any more.
        unsafe {
            let _ = result::event::destroy(self.event);
            let _ = result::stream::destroy(self.stream);
            let _ = result::module::unload(self.module);
        }
    }
}

impl Kernel {
    /// Loads the kernel that PTX describes, from the cache if it was compiled before. True if it was.
    pub(crate) fn load(device: &Device, ptx: &str) -> Result<(Kernel, bool), CudaError> {
        let key = device.key(ptx);
        // A kept kernel that the driver does not take is as good as none.
        let kept = device.cache.get(&key).and_then(|cubin| Kernel::from_cubin(&cubin).ok());
        if let Some(kernel) = kept {
            return Ok((kernel, true));
        }
        let cubin = compile(ptx)?;
        device.cache.put(&key, &cubin);
        Ok((Kernel::from_cubin(&cubin)?, false))
    }

    /// Loads what the driver's compiler has made.
    fn from_cubin(cubin: &[u8]) -> Result<Kernel, CudaError> {
        // SAFETY: it is whole: that of the cache is checked. The driver copies it.
        let module =
            unsafe { result::module::load_data(cubin.as_ptr().cast()) }.when("loading a kernel")?;
        let name = CString::new("run").expect("no zero bytes");
        // SAFETY: the module was just loaded.
        let function =
            unsafe { result::module::get_function(module, name) }.when("finding the kernel")?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .when("creating a stream")?;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .when("creating an event")?;
        Ok(Kernel { module, function, stream, event })
    }

    /// Starts the kernel on that many blocks; `arguments` is its only parameter.
    pub(crate) fn launch(
        &self,
        blocks: u32,
        threads: u32,
        arguments: &crate::kernel::Arguments,
    ) -> Result<(), CudaError> {
        let mut params = [std::ptr::from_ref(arguments).cast_mut().cast::<c_void>()];
        // SAFETY: the kernel has one parameter of that type; the driver copies it.
        unsafe {
            result::launch_kernel(
                self.function,
                (blocks, 1, 1),
                (threads, 1, 1),
                0,
                self.stream,
                &mut params,
            )
            .when("starting a kernel")?;
            result::event::record(self.event, self.stream).when("starting a kernel")
        }
    }

    /// True once the last launch has ended; its failure, if it has failed.
    pub(crate) fn is_done(&self) -> Result<bool, CudaError> {
        // SAFETY: the event was recorded.
        match unsafe { result::event::query(self.event) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(source) => Err(CudaError::Driver { what: "running a kernel", source }),
        }
    }
}
