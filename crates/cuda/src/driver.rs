//! The CUDA driver, opened at run time: contexts, buffers, launches. Nothing else of CUDA is needed.

use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUdeviceptr};
use cudarc::driver::{DriverError, result};
use kvrm_engine::cache::{KernelCache, KernelKey, Turn};

use crate::compile::compile;
use crate::stream::Stream;

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
    /// The operating system gave no thread to watch a launch with.
    #[error(
        "cannot start a thread to watch the GPU with: {0}; end other programs or threads, and try again"
    )]
    NoThread(std::io::Error),
    /// A kernel has failed, which spoils the driver for the process.
    #[error(
        "a kernel failed on the GPU ({0}), and the driver refuses all further work of this process: start the program again; please report this as a bug"
    )]
    Lost(DriverError),
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

/// True if the driver says so from then on, whatever it is asked.
fn is_fatal(error: &DriverError) -> bool {
    use sys::CUresult as R;
    matches!(
        error.0,
        R::CUDA_ERROR_ILLEGAL_ADDRESS
            | R::CUDA_ERROR_LAUNCH_FAILED
            | R::CUDA_ERROR_LAUNCH_TIMEOUT
            | R::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | R::CUDA_ERROR_MISALIGNED_ADDRESS
            | R::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | R::CUDA_ERROR_INVALID_PC
            | R::CUDA_ERROR_HARDWARE_STACK_ERROR
            | R::CUDA_ERROR_ASSERT
            | R::CUDA_ERROR_ECC_UNCORRECTABLE
    )
}

/// Says what was attempted when the driver fails.
pub(crate) trait Attempt<T> {
    fn when(self, what: &'static str) -> Result<T, CudaError>;
}

impl<T> Attempt<T> for Result<T, DriverError> {
    fn when(self, what: &'static str) -> Result<T, CudaError> {
        self.map_err(|source| match is_fatal(&source) {
            true => CudaError::Lost(source),
            false => CudaError::Driver { what, source },
        })
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

/// A device that has been opened.
pub(crate) struct Device {
    pub(crate) info: DeviceInfo,
    /// What initialising the driver and opening the device took.
    pub(crate) start_time: Duration,
    pub(crate) cache: KernelCache,
    /// What it and its driver are called in the cache.
    generation: String,
    driver: String,
    context: Arc<Context>,
    pub(crate) stream: Stream,
}

// SAFETY: the context is made current on whichever thread uses the device.
unsafe impl Send for Device {}
// SAFETY: the driver is thread-safe.
unsafe impl Sync for Device {}

impl Drop for Device {
    fn drop(&mut self) {
        self.stream.destroy();
    }
}

/// A device's context, which is there for as long as somebody has this.
struct Context {
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

// SAFETY: handles of the driver, which is thread-safe.
unsafe impl Send for Context {}
// SAFETY: the same.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained in `new`; whoever has something on the device has this as well, and drops it later.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

impl Context {
    fn new(index: usize) -> Result<Context, CudaError> {
        let device = result::device::get(index as i32).when("opening the device")?;
        // SAFETY: the device was just opened.
        let handle = unsafe { result::primary_ctx::retain(device) }.when("opening the device")?;
        Ok(Context { device, handle })
    }

    /// Makes the calling thread work with the device.
    fn make_current(&self) -> Result<(), CudaError> {
        // SAFETY: the context is retained for as long as `self` lives.
        unsafe { result::ctx::set_current(self.handle) }.when("selecting the device")
    }
}

impl Device {
    pub(crate) fn open(index: usize) -> Result<Device, CudaError> {
        let begin = Instant::now();
        find(index)?;
        let info = info(index)?;
        let context = Arc::new(Context::new(index)?);
        context.make_current()?;
        let mut device = Device {
            start_time: Duration::ZERO,
            cache: KernelCache::open(),
            generation: format!("sm_{}{}", info.capability.0, info.capability.1),
            driver: format!("{}.{}", info.driver.0, info.driver.1),
            info,
            context,
            stream: Stream::new()?,
        };
        device.start_time = begin.elapsed();
        Ok(device)
    }

    /// Makes the calling thread work with this device.
    pub(crate) fn make_current(&self) -> Result<(), CudaError> {
        self.context.make_current()
    }

    /// What compiles kernels for the device.
    pub(crate) fn compiler(&self) -> Compiler {
        Compiler {
            context: self.context.clone(),
            cache: self.cache.clone(),
            generation: self.generation.clone(),
            driver: self.driver.clone(),
        }
    }

    /// What the compiled form of a kernel depends on.
    pub(crate) fn key<'a>(&'a self, ptx: &'a str) -> KernelKey<'a> {
        key(&self.generation, &self.driver, ptx)
    }

    /// Bytes free and in all.
    pub(crate) fn memory(&self) -> Result<(u64, u64), CudaError> {
        let (free, total) = result::mem_get_info().when("asking for free memory")?;
        Ok((free as u64, total as u64))
    }
}

fn key<'a>(device: &'a str, driver: &'a str, ptx: &'a str) -> KernelKey<'a> {
    KernelKey { engine: "cuda", text: ptx, device, driver }
}

/// Compiles kernels for a device, perhaps on another thread, and when nobody else uses the device any more.
pub(crate) struct Compiler {
    context: Arc<Context>,
    cache: KernelCache,
    generation: String,
    driver: String,
}

/// A kernel's machine code.
pub struct Compiled {
    cubin: Vec<u8>,
    /// It was in the cache.
    pub(crate) was_kept: bool,
}

impl Compiler {
    /// Compiles PTX, or finds it in the cache.
    pub(crate) fn compile(&self, ptx: &str) -> Result<Compiled, CudaError> {
        self.context.make_current()?;
        let key = key(&self.generation, &self.driver, ptx);
        // Another engine may be compiling the same.
        let _turn = Turn::of(&key);
        match self.cache.get(&key) {
            Some(cubin) => Ok(Compiled { cubin, was_kept: true }),
            None => Ok(Compiled { cubin: self.compile_anew(ptx)?, was_kept: false }),
        }
    }

    fn compile_anew(&self, ptx: &str) -> Result<Vec<u8>, CudaError> {
        let cubin = compile(ptx)?;
        self.cache.put(&key(&self.generation, &self.driver, ptx), &cubin);
        Ok(cubin)
    }
}

/// Memory on the device.
pub(crate) struct Buffer {
    pub(crate) address: CUdeviceptr,
    pub(crate) len: u64,
    /// Through which it is read and written.
    pub(crate) stream: Stream,
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
unsafe impl Plain for kvrm_engine::memory::Entry {}
// SAFETY: integers.
unsafe impl Plain for kvrm_engine::code::DirectoryEntry {}
// SAFETY: integers.
unsafe impl Plain for kvrm_engine::kernel::Record {}
// SAFETY: integers; trailing padding is never read.
unsafe impl Plain for kvrm_a64::state::CpuState {}
// SAFETY: integers.
unsafe impl Plain for kvrm_a64::state::VectorState {}
// SAFETY: integers.
unsafe impl Plain for kvrm_engine::launch::Status {}
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
            Err(source) => return Err(source).when("allocating memory"),
        };
        let buffer = Buffer { address, len, stream: device.stream };
        buffer.fill(0, len, 0)?;
        Ok(buffer)
    }

    fn check(&self, offset: u64, bytes: usize) {
        assert!(offset + bytes as u64 <= self.len, "access beyond a device buffer");
    }

    pub(crate) fn fill(&self, offset: u64, len: u64, byte: u8) -> Result<(), CudaError> {
        self.check(offset, len as usize);
        self.stream.fill(self.address + offset, len, byte)
    }

    /// Copies all of another buffer, which is not larger. The copy may take place later.
    pub(crate) fn copy_from(&self, other: &Buffer) -> Result<(), CudaError> {
        self.check(0, other.len as usize);
        self.stream.copy(self.address, other.address, other.len)
    }

    pub(crate) fn write<T: Plain>(&self, offset: u64, data: &[T]) -> Result<(), CudaError> {
        self.check(offset, size_of_val(data));
        match data.is_empty() {
            true => Ok(()),
            false => self.stream.write(self.address + offset, data),
        }
    }

    pub(crate) fn read<T: Plain>(&self, offset: u64, data: &mut [T]) -> Result<(), CudaError> {
        self.check(offset, size_of_val(data));
        match data.is_empty() {
            true => Ok(()),
            false => self.stream.read(self.address + offset, data),
        }
    }
}

/// How often a running kernel is looked at, once it has been watched for a while without a pause.
const LOOK: Duration = Duration::from_micros(50);
const BUSY: Duration = Duration::from_micros(50);

/// A kernel that has been loaded.
pub struct Kernel {
    module: sys::CUmodule,
    function: sys::CUfunction,
    stream: Stream,
    event: sys::CUevent,
}

// SAFETY: handles of the driver, which is thread-safe.
unsafe impl Send for Kernel {}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: made in `load`; nothing runs any more.
        unsafe {
            let _ = result::event::destroy(self.event);
            let _ = result::module::unload(self.module);
        }
    }
}

impl Kernel {
    /// Loads the kernel that PTX describes, from the cache if it was compiled before. True if it was.
    pub(crate) fn load(device: &Device, ptx: &str) -> Result<(Kernel, bool), CudaError> {
        let compiled = device.compiler().compile(ptx)?;
        Kernel::of(device, ptx, &compiled)
    }

    /// Loads what was compiled from PTX.
    pub(crate) fn of(
        device: &Device,
        ptx: &str,
        compiled: &Compiled,
    ) -> Result<(Kernel, bool), CudaError> {
        match Kernel::from_cubin(device, &compiled.cubin) {
            // A kept kernel that the driver does not take is as good as none.
            Err(_) if compiled.was_kept => {
                let cubin = device.compiler().compile_anew(ptx)?;
                Ok((Kernel::from_cubin(device, &cubin)?, false))
            }
            loaded => Ok((loaded?, compiled.was_kept)),
        }
    }

    /// Loads what the driver's compiler has made.
    fn from_cubin(device: &Device, cubin: &[u8]) -> Result<Kernel, CudaError> {
        // SAFETY: it is whole: that of the cache is checked. The driver copies it.
        let module =
            unsafe { result::module::load_data(cubin.as_ptr().cast()) }.when("loading a kernel")?;
        let name = CString::new("run").expect("no zero bytes");
        // SAFETY: the module was just loaded.
        let function =
            unsafe { result::module::get_function(module, name) }.when("finding the kernel")?;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .when("creating an event")?;
        Ok(Kernel { module, function, stream: device.stream, event })
    }

    /// Starts the kernel on that many blocks; `arguments` is its only parameter.
    pub(crate) fn launch<A>(
        &self,
        blocks: u32,
        threads: u32,
        arguments: &A,
    ) -> Result<(), CudaError> {
        let mut params = [std::ptr::from_ref(arguments).cast_mut().cast::<c_void>()];
        // SAFETY: the kernel has one parameter of that type; the driver copies it.
        unsafe {
            result::launch_kernel(
                self.function,
                (blocks, 1, 1),
                (threads, 1, 1),
                0,
                self.stream.0,
                &mut params,
            )
            .when("starting a kernel")?;
            result::event::record(self.event, self.stream.0).when("starting a kernel")
        }
    }

    /// Waits for the last launch for a while; true if it has ended.
    pub(crate) fn is_done_within(&self, time: Duration) -> Result<bool, CudaError> {
        let start = Instant::now();
        while !self.is_done()? {
            match start.elapsed() {
                elapsed if elapsed > time => return Ok(false),
                elapsed if elapsed > BUSY => std::thread::sleep(LOOK),
                _ => std::thread::yield_now(),
            }
        }
        Ok(true)
    }

    /// Waits for the end of the last launch.
    pub(crate) fn wait(&self) -> Result<(), CudaError> {
        self.is_done_within(Duration::MAX).map(|_| ())
    }

    /// True once the last launch has ended; its failure, if it has failed.
    pub(crate) fn is_done(&self) -> Result<bool, CudaError> {
        // SAFETY: the event was recorded.
        match unsafe { result::event::query(self.event) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(source) => Err(source).when("running a kernel"),
        }
    }
}
