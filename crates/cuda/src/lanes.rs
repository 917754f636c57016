//! Lanes on a device, and the launches of the kernel that runs them.

use std::mem::offset_of;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::cache::KernelKey;
use kvrm_engine::code::DecodedCode;
use kvrm_engine::kernel::stop;
use kvrm_engine::launch::{Compile, Launch, LaunchEngine, Launched, Launcher, Status, Translator};
use kvrm_engine::mirror::{DeviceArray, Mirror};
use kvrm_engine::slice::Share;
use kvrm_engine::translation::{Means, Translated, Translation};
use kvrm_engine::{Config, EngineError, RunControl};

use crate::code::DeviceCode;
use crate::driver::{Buffer, Compiled, CudaError, Device, Kernel, Plain};
use crate::emit::LACKS;
use crate::guest::{Guest, TOO_MUCH, memory_model};
use crate::kernel::{Arguments, KernelTarget, Pool, SAMPLES, kernel};
use crate::memory::MemorySpec;
use crate::stream::Mapped;

/// Threads in a block.
const BLOCK: u32 = 128;
/// What a launch should take: short enough not to freeze a desktop.
const LAUNCH_TIME: Duration = Duration::from_millis(100);
/// Instructions per lane of the first launch, and the most of any.
const FIRST_SHARE: u64 = 1 << 16;
const LARGEST_SHARE: u64 = 1 << 40;
/// Up to this many elements are faster copied one by one than all together.
const FEW: usize = 64;
/// Instructions that are translated at the most: kernels with more did not get faster on an H200, or took long to compile.
const MOST_TRANSLATED: usize = 500;
/// A launch that ends within this time is not watched.
const SHORT: Duration = Duration::from_millis(2);
/// How often a running launch is asked how far it is.
const ASK: Duration = Duration::from_millis(2);

/// An array in a buffer.
pub struct Array(Buffer);

impl<T: Plain> DeviceArray<T> for Array {
    fn read(&self, first: usize, elements: &mut [T]) -> Result<(), EngineError> {
        Ok(self.0.read((first * size_of::<T>()) as u64, elements)?)
    }

    fn write(&self, first: usize, elements: &[T]) -> Result<(), EngineError> {
        Ok(self.0.write((first * size_of::<T>()) as u64, elements)?)
    }
}

fn array<T>(device: &Device, len: usize) -> Result<Array, CudaError> {
    let bytes = (len * size_of::<T>()) as u64;
    Ok(Array(Buffer::new(device, bytes, |_| TOO_MUCH.to_string())?))
}

/// Lanes on an NVIDIA GPU.
pub struct CudaLanes {
    config: Config,
    device_code: DeviceCode,
    /// Instructions that kernels have completed in all runs, as far as has been reported.
    executed: u64,
    /// Numbers of lanes that stopped in a launch.
    stopped: Buffer,
    control: Mapped,
    /// Where lanes have been.
    samples: Buffer,
    // Last: everything above is on its device.
    guest: Guest,
}

/// The engine on an NVIDIA GPU.
pub type CudaEngine = LaunchEngine<CudaLanes>;

/// Builds the engine on a device, all registers zero.
pub fn build(config: Config, device: usize) -> Result<CudaEngine, EngineError> {
    config.check_mapped_on_device("cuda")?;
    let device = Device::open(device)?;
    let lanes = config.lanes;
    let guest = Guest::new(device, &config)?;
    let device = &guest.device;
    let arrays = [
        array::<CpuState>(device, lanes)?,
        array::<VectorState>(device, lanes)?,
        array::<Status>(device, lanes)?,
    ];
    let lanes = CudaLanes {
        device_code: DeviceCode::default(),
        executed: 0,
        stopped: Buffer::new(device, 4 * lanes as u64, |_| TOO_MUCH.to_string())?,
        control: Mapped::new()?,
        samples: Buffer::new(device, (SAMPLES * size_of::<u64>()) as u64, |_| {
            TOO_MUCH.to_string()
        })?,
        guest,
        config: config.clone(),
    };
    let share = Share::new(FIRST_SHARE, LARGEST_SHARE, LAUNCH_TIME);
    Ok(LaunchEngine::new(config, lanes, arrays, FEW, share))
}

impl From<CudaError> for EngineError {
    fn from(error: CudaError) -> EngineError {
        let text = error.to_string();
        match error {
            CudaError::Full { .. } => EngineError::DeviceFull(text),
            _ => EngineError::Device(text),
        }
    }
}

impl CudaLanes {
    fn kernel_target(&self) -> KernelTarget {
        let (major, minor) = self.guest.device.info.capability;
        KernelTarget {
            memory: MemorySpec {
                model: memory_model(&self.config),
                size: self.config.memory_size,
                read_only: self.config.read_only,
                mapped: self.config.mapped,
                program: self.config.program_bytes(),
            },
            capability: (10 * major + minor) as u32,
        }
    }

    fn arguments(&self, launch: &Launch<'_, Array>) -> Arguments {
        let (frames, tables, table_bytes) = match &self.guest.private {
            Some(p) => (p.frames.base(), p.tables.address, p.table_bytes),
            None => (0, 0, 0),
        };
        let (page_map, page_columns, column_bytes) = match &self.guest.mapped {
            Some(m) => (m.words.address, m.columns.address, m.column_bytes()),
            None => (0, 0, 0),
        };
        Arguments {
            states: launch.states.device().0.address,
            vectors: launch.vectors.device().0.address,
            statuses: launch.statuses.device().0.address,
            lanes: self.config.lanes as u64,
            stopped: self.stopped.address,
            share: launch.share,
            memory: self.guest.flat.address,
            frames,
            page_tables: tables,
            page_table_bytes: table_bytes,
            pool: self.guest.pool_buffer.address,
            records: self.device_code.record(launch.code.first_record()),
            code_start: launch.code.start(),
            code_len: launch.code.len(),
            code_map: self.device_code.flag(launch.code.first_flag()),
            directory: self.device_code.directory(),
            directory_mask: launch.code.layout().directory_len() as u64 - 1,
            control: self.control.device,
            page_map,
            code_blocks: self.device_code.blocks(),
            samples: self.samples.address,
            page_columns,
            column_bytes,
        }
    }

    /// Launches the kernel and waits for its end. What has been reported, of all runs.
    fn run_kernel(&self, kernel: &Kernel, launch: &Launch<'_, Array>) -> Result<u64, CudaError> {
        let arguments = self.arguments(launch);
        let blocks = (self.config.lanes as u32).div_ceil(BLOCK);
        let begin = || kernel.launch(blocks, BLOCK, &arguments);
        let watch = |wait: &dyn Fn() -> Result<(), CudaError>| {
            watch(&self.control, launch.control, self.executed, wait)
        };
        // One without an end of its own is watched from the start. If another thread frees memory, the driver waits
        // for all launches, and meanwhile does not even answer whether this one has ended.
        if launch.share > LARGEST_SHARE {
            return watch(&|| begin().and_then(|()| kernel.wait()));
        }
        begin()?;
        match kernel.is_done_within(SHORT)? {
            true => Ok(self.executed),
            false => watch(&|| kernel.wait()),
        }
    }

    /// The lanes that stopped in the last launch, of which the counters are read.
    fn stopped_lanes(&mut self, control: &RunControl) -> Result<Vec<u32>, CudaError> {
        let pool = self.guest.launched()?;
        let mut lanes = vec![0; pool.stopped as usize];
        self.stopped.read(0, &mut lanes)?;
        self.guest.set_pool(Pool { stopped: 0, cancel: 0, ..pool })?;
        control.report(pool.executed - self.executed, 0);
        self.executed = pool.executed;
        Ok(lanes)
    }
}

/// Does something that waits for a launch, while another thread reports how far the launch is and passes on that
/// the run is cancelled. (This one may have to wait in the driver.) What has been reported, of all runs.
fn watch(
    mapped: &Mapped,
    control: &RunControl,
    reported: u64,
    wait: impl FnOnce() -> Result<(), CudaError>,
) -> Result<u64, CudaError> {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = std::thread::Builder::new().spawn_scoped(scope, || {
            let mut reported = reported;
            while !ended.load(Ordering::Relaxed) {
                let executed = mapped.read().executed.max(reported);
                control.report(executed - reported, 0);
                reported = executed;
                if control.is_cancelled() {
                    mapped.set_cancel(true);
                }
                std::thread::park_timeout(ASK);
            }
            reported
        });
        if watcher.is_err() {
            // Nobody could end it later.
            mapped.set_cancel(true);
        }
        let result = wait();
        ended.store(true, Ordering::Relaxed);
        let watcher = watcher.map_err(CudaError::NoThread)?;
        watcher.thread().unpark();
        let reported = watcher.join().unwrap_or_else(|panic| resume_unwind(panic));
        result.map(|()| reported)
    })
}

impl Launcher for CudaLanes {
    const NAME: &'static str = "cuda";
    const UNBOUNDED: bool = true;

    type Array = Array;
    type Memory = Guest;
    type Target = KernelTarget;
    /// With its text.
    type Compiled = (String, Compiled);
    type Kernel = Kernel;

    fn memory(&self) -> &Guest {
        &self.guest
    }

    fn memory_mut(&mut self) -> &mut Guest {
        &mut self.guest
    }

    fn select(&self) -> Result<(), EngineError> {
        Ok(self.guest.device.make_current()?)
    }

    fn translator(&mut self) -> Option<&mut dyn Translator> {
        Some(self)
    }

    fn most_handlers(&self) -> usize {
        usize::MAX
    }

    fn key<'a>(&'a self, text: &'a str) -> KernelKey<'a> {
        self.guest.device.key(text)
    }

    fn start_time(&self) -> Duration {
        self.guest.device.start_time
    }

    fn target(&self, _: &DecodedCode) -> KernelTarget {
        self.kernel_target()
    }

    fn compiler(
        &self,
        code: &DecodedCode,
        translation: Option<&Arc<Translation>>,
    ) -> Compile<(String, Compiled)> {
        let record = |pc| code.record_in_kernel(pc);
        let translated = translation.map(|translation| Translated { translation, record: &record });
        let text = kernel(&code.handlers, translated, &self.kernel_target());
        let compiler = self.guest.device.compiler();
        Box::new(move || {
            let compiled = compiler.compile(&text)?;
            Ok((text, compiled))
        })
    }

    fn load(&self, (text, compiled): (String, Compiled)) -> Result<(Kernel, bool), EngineError> {
        Ok(Kernel::of(&self.guest.device, &text, &compiled)?)
    }

    fn begin(
        &mut self,
        statuses: &mut Mirror<Status, Array>,
        max_cycles: u64,
        _: bool,
    ) -> Result<(), EngineError> {
        statuses.upload()?;
        statuses.will_change();
        let fill = |field: usize, value: u32| {
            let at = statuses.device().0.address + field as u64;
            self.guest.device.stream.fill_column(
                at,
                size_of::<Status>() as u64,
                self.config.lanes,
                value,
            )
        };
        fill(offset_of!(Status, budget), max_cycles as u32)?;
        fill(offset_of!(Status, budget) + 4, (max_cycles >> 32) as u32)?;
        fill(offset_of!(Status, stop), stop::RUNNING)?;
        self.resume()
    }

    fn resume(&mut self) -> Result<(), EngineError> {
        self.control.set_cancel(false);
        let pool = self.guest.pool();
        Ok(self.guest.set_pool(Pool { cancel: 0, stopped: 0, ..pool })?)
    }

    fn upload(&mut self, code: &mut DecodedCode) -> Result<(), EngineError> {
        code.upload(&mut self.device_code.on(&self.guest.device))
    }

    fn launch(
        &mut self,
        kernel: &Kernel,
        launch: &Launch<'_, Array>,
    ) -> Result<Launched, EngineError> {
        self.guest.upload_map()?;
        let (start, before) = (Instant::now(), self.guest.pool().executed);
        self.executed = self.run_kernel(kernel, launch)?;
        let time = start.elapsed();
        let stopped = self.stopped_lanes(launch.control)?;
        Ok(Launched { time, executed: self.executed - before, stopped })
    }
}

impl Translator for CudaLanes {
    fn means(&self) -> Means {
        Means { lacks: LACKS, calls: true, most: MOST_TRANSLATED }
    }

    fn samples(&mut self) -> Result<Vec<u64>, EngineError> {
        let mut samples = vec![0; SAMPLES];
        self.samples.read(0, &mut samples)?;
        self.samples.fill(0, self.samples.len, 0)?;
        Ok(samples.into_iter().filter_map(|noted: u64| noted.checked_sub(1)).collect())
    }
}
