//! The engine: lanes on a device, launched until they stop.

use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kvrm_a64::state::CpuState;
use kvrm_engine::code::Code;
use kvrm_engine::kernel::stop;
use kvrm_engine::mirror::{DeviceArray, Mirror};
use kvrm_engine::slice::Share;
use kvrm_engine::{
    Activity, Config, Engine, EngineError, KernelLoad, LaneStatus, RunControl, RunRequest,
    StartTimes, Stop,
};

use crate::code::DeviceCode;
use crate::driver::{Buffer, CudaError, Device, Kernel, Plain};
use crate::guest::{Guest, OnDevice, TOO_MUCH};
use crate::kernel::{Arguments, Pool, Status, Target, kernel};
use crate::memory::Memory;
use crate::stream::Mapped;

/// Threads in a block.
const BLOCK: u32 = 128;
/// What a launch should take: short enough not to freeze a desktop.
const LAUNCH_TIME: Duration = Duration::from_millis(100);
/// Instructions per lane of the first launch, and the most of any.
const FIRST_SHARE: u64 = 1 << 16;
const LARGEST_SHARE: u64 = 1 << 40;
/// From this many elements on, copying all is faster than copying each.
const MANY: usize = 64;
/// A launch that ends within this time is not watched.
const SHORT: Duration = Duration::from_millis(2);
/// How often a running launch is asked how far it is.
const ASK: Duration = Duration::from_millis(2);

/// An array in a buffer.
struct Array(Buffer);

impl<T: Plain> DeviceArray<T> for Array {
    type Error = CudaError;

    fn read(&self, first: usize, elements: &mut [T]) -> Result<(), CudaError> {
        self.0.read((first * size_of::<T>()) as u64, elements)
    }

    fn write(&self, first: usize, elements: &[T]) -> Result<(), CudaError> {
        self.0.write((first * size_of::<T>()) as u64, elements)
    }
}

fn mirror<T: Plain>(
    device: &Device,
    element: T,
    len: usize,
) -> Result<Mirror<T, Array>, CudaError> {
    let bytes = (len * size_of::<T>()) as u64;
    let array = Array(Buffer::new(device, bytes, |_| TOO_MUCH.to_string())?);
    Ok(Mirror::new(array, element, len, MANY))
}

/// Lanes on an NVIDIA GPU.
pub struct CudaEngine {
    config: Config,
    states: Mirror<CpuState, Array>,
    statuses: Mirror<Status, Array>,
    /// Why lanes stopped in the last run.
    stops: Vec<Option<Stop>>,
    code: Code,
    device_code: DeviceCode,
    /// The loaded kernel and how many handlers it has.
    kernel: Option<(Kernel, usize)>,
    kernel_loads: Vec<KernelLoad>,
    share: Share,
    /// Instructions that kernels have completed in all runs, as far as has been reported.
    executed: u64,
    /// Instructions completed here, not reported yet.
    stepped: u64,
    /// Numbers of lanes that stopped in a launch.
    stopped: Buffer,
    control: Mapped,
    guest: Guest,
    // Last: everything above is on it.
    device: Device,
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

impl Drop for CudaEngine {
    fn drop(&mut self) {
        // What is on the device is freed after this, perhaps on a thread that last used another device.
        let _ = self.device.make_current();
    }
}

impl CudaEngine {
    /// Builds the lanes on a device, all registers zero.
    pub fn new(config: Config, device: usize) -> Result<CudaEngine, EngineError> {
        let device = Device::open(device)?;
        let lanes = config.lanes;
        let mut guest = Guest::new(&device, config.model, config.memory_size, lanes)?;
        guest.read_only = config.read_only;
        Ok(CudaEngine {
            states: mirror(&device, CpuState::new(), lanes)?,
            statuses: mirror(&device, Status::default(), lanes)?,
            stops: vec![None; lanes],
            code: Code::new(),
            device_code: DeviceCode::default(),
            kernel: None,
            kernel_loads: Vec::new(),
            share: Share::new(FIRST_SHARE, LARGEST_SHARE, LAUNCH_TIME),
            executed: 0,
            stepped: 0,
            stopped: Buffer::new(&device, 4 * lanes as u64, |_| TOO_MUCH.to_string())?,
            control: Mapped::new()?,
            guest,
            device,
            config,
        })
    }

    fn target(&self) -> Target {
        let (major, minor) = self.device.info.capability;
        Target {
            memory: Memory {
                model: self.config.model,
                size: self.config.memory_size,
                read_only: self.config.read_only,
            },
            capability: (10 * major + minor) as u32,
        }
    }

    /// Loads a kernel with all handlers, unless it is loaded.
    fn load_kernel(&mut self, control: &RunControl) -> Result<(), EngineError> {
        let handlers = self.code.handlers.len();
        if !matches!(self.kernel, Some((_, loaded)) if loaded == handlers) {
            let start = Instant::now();
            let (kernel, cached) = control.during(Activity::Compiling { handlers }, || {
                Kernel::load(&self.device, &kernel(&self.code.handlers, &self.target()))
            })?;
            self.kernel = Some((kernel, handlers));
            self.kernel_loads.push(KernelLoad { handlers, time: start.elapsed(), cached });
        }
        Ok(())
    }

    fn arguments(&mut self, single: bool) -> Result<Arguments, EngineError> {
        let (records, code_map) = self.device_code.upload(&self.device, &self.code)?;
        let (frames, tables, table_bytes) = match &self.guest.private {
            Some(p) => (p.frames.base(), p.tables.address, p.table_bytes),
            None => (0, 0, 0),
        };
        Ok(Arguments {
            states: self.states.device().0.address,
            statuses: self.statuses.device().0.address,
            lanes: self.config.lanes as u64,
            stopped: self.stopped.address,
            share: if single { u64::MAX } else { self.share.get() },
            memory: self.guest.flat.address,
            frames,
            page_tables: tables,
            page_table_bytes: table_bytes,
            pool: self.guest.pool.address,
            records,
            code_start: self.code.start(),
            code_len: self.code.len(),
            code_map,
            control: self.control.device,
        })
    }

    /// Launches once, and waits for the end. How long it took.
    fn launch(&mut self, request: &RunRequest<'_>) -> Result<Duration, EngineError> {
        self.load_kernel(request.control)?;
        let arguments = self.arguments(request.single_launch)?;
        self.states.upload()?;
        self.statuses.upload()?;
        self.states.will_change();
        self.statuses.will_change();
        let blocks = (self.config.lanes as u32).div_ceil(BLOCK);
        let (kernel, _) = self.kernel.as_ref().expect("loaded above");
        let start = Instant::now();
        kernel.launch(blocks, BLOCK, &arguments)?;
        if !kernel.is_done_within(SHORT)? {
            self.executed = watch(kernel, &self.control, request.control, self.executed)?;
        }
        Ok(start.elapsed())
    }

    /// Reports what has been executed since the last report.
    fn report(&mut self, request: &RunRequest<'_>, executed: u64) {
        let stepped = std::mem::take(&mut self.stepped);
        request.control.report(executed - self.executed + stepped, 0);
        self.executed = executed;
    }

    /// The lanes that stopped in the last launch.
    fn stopped_lanes(&mut self, request: &RunRequest<'_>) -> Result<Vec<u32>, EngineError> {
        let pool = self.guest.counters()?;
        let mut lanes = vec![0; pool.stopped as usize];
        self.stopped.read(0, &mut lanes)?;
        self.guest.set_counters(Pool { stopped: 0, cancel: 0, ..pool })?;
        self.report(request, pool.executed);
        Ok(lanes)
    }

    /// Sees to lanes that stopped. How many have ended.
    fn service(&mut self, lanes: &[u32], request: &RunRequest<'_>) -> Result<usize, EngineError> {
        let (mut ended, mut grow) = (0, false);
        let mut ended_here = Vec::new();
        for lane in lanes.iter().map(|lane| *lane as usize) {
            let status = self.statuses.get_of(lanes.len(), lane)?;
            let for_host = stop::is_for_host(status.stop);
            let stop = match status.stop {
                stop::NO_FRAME => None,
                stop::NO_CODE => self.find_code(lane, status.detail)?,
                stop::CODE_WRITE => self.step(lane, status)?,
                stop => Some(stop::meaning(stop, status.detail)),
            };
            grow |= status.stop == stop::NO_FRAME;
            self.stops[lane] = stop;
            ended += usize::from(stop.is_some());
            if stop.is_some() && for_host {
                ended_here.push(lane);
            }
        }
        self.end(&ended_here)?;
        if grow {
            self.guest.grow(&self.device)?;
        }
        request.control.report(0, ended as u64);
        Ok(ended)
    }

    /// The lane is at code that is not decoded, or was not when it stopped. The stop, if there is none.
    fn find_code(&mut self, lane: usize, pc: u64) -> Result<Option<Stop>, EngineError> {
        let mut memory = OnDevice { guest: &mut self.guest, device: &self.device };
        self.code.find(&mut memory, self.config.lanes, lane, pc)
    }

    /// Executes one instruction of a lane here. The stop, if it has to.
    fn step(&mut self, lane: usize, mut status: Status) -> Result<Option<Stop>, EngineError> {
        let mut state = self.states.get_of(1, lane)?;
        let mut memory = OnDevice { guest: &mut self.guest, device: &self.device };
        let (model, count) = (self.config.model, status.count);
        let (done, stop) = self.code.step(&mut memory, model, lane, &mut state, count)?;
        status.count += done;
        status.budget -= done;
        self.stepped += done;
        self.states.set_one(lane, state)?;
        self.statuses.set_one(lane, status)?;
        Ok(stop.or((status.budget == 0).then_some(Stop::MaxCycles)))
    }

    /// Makes sure that lanes whose stop was found here do not go on.
    fn end(&mut self, lanes: &[usize]) -> Result<(), EngineError> {
        self.statuses.modify(lanes, |status| status.stop = stop::ENDED)?;
        let exception = |lane: &usize| self.stops[*lane].is_some_and(|stop| stop.is_exception());
        let excepted: Vec<usize> = lanes.iter().copied().filter(exception).collect();
        Ok(self.states.modify(&excepted, |state| state.exclusive_len = 0)?)
    }

    /// Gives lanes the run's instructions; all of them, unless it continues one. How many have ended already.
    fn start(&mut self, request: &RunRequest<'_>) -> Result<usize, EngineError> {
        let max_cycles = request.max_cycles;
        let ended = |stop: &Option<Stop>| stop.is_some_and(|stop| stop != Stop::MaxCycles);
        let mut kept = Vec::new();
        for (lane, stop) in self.stops.iter_mut().enumerate() {
            match request.continues && ended(stop) {
                true => kept.push(lane),
                false => *stop = (max_cycles == 0).then_some(Stop::MaxCycles),
            }
        }
        self.statuses.upload()?;
        self.statuses.will_change();
        let fill = |field: usize, value: u32| {
            let at = self.statuses.device().0.address + field as u64;
            self.device.stream.fill_column(at, size_of::<Status>() as u64, self.config.lanes, value)
        };
        fill(offset_of!(Status, budget), max_cycles as u32)?;
        fill(offset_of!(Status, budget) + 4, (max_cycles >> 32) as u32)?;
        fill(offset_of!(Status, stop), stop::RUNNING)?;
        self.statuses.modify(&kept, |status| status.stop = stop::ENDED)?;
        self.control.set_cancel(false);
        let pool = self.guest.counters()?;
        self.guest.set_counters(Pool { cancel: 0, stopped: 0, ..pool })?;
        Ok(kept.len())
    }

    /// Lanes that start at a breakpoint execute the instruction there. How many stop by that.
    fn pass_breakpoints(&mut self) -> Result<usize, EngineError> {
        let mut ended = Vec::new();
        if self.code.breakpoints().is_empty() {
            return Ok(0);
        }
        for lane in 0..self.config.lanes {
            let pc = self.states.get(lane)?.pc;
            if self.code.breakpoints().binary_search(&pc).is_ok() {
                let status = self.statuses.get(lane)?;
                self.stops[lane] = self.step(lane, status)?;
                if self.stops[lane].is_some() {
                    ended.push(lane);
                }
            }
        }
        self.end(&ended)?;
        Ok(ended.len())
    }

    /// Tells the kernel which lanes have records of their own.
    fn upload_own_records(&mut self) -> Result<(), EngineError> {
        self.device_code.upload(&self.device, &self.code)?;
        for (lane, records) in self.device_code.changed_own_records() {
            let status = self.statuses.get_of(1, lane)?;
            self.statuses.set_one(lane, Status { records, ..status })?;
        }
        Ok(())
    }

    fn run_lanes(&mut self, request: &RunRequest<'_>, ended: usize) -> Result<(), EngineError> {
        let passed = if request.continues { 0 } else { self.pass_breakpoints()? };
        let mut running = self.config.lanes - ended - passed;
        // Where all lanes have the same code, the first launch should find some.
        if running > 0 && self.code.is_empty() && !self.guest.has_copies()? {
            let pc = self.states.get_of(1, 0)?.pc;
            // If there is none, the lane will say so.
            self.find_code(0, pc)?;
        }
        while running > 0 && !request.control.is_cancelled() {
            self.upload_own_records()?;
            let time = self.launch(request)?;
            let stopped = self.stopped_lanes(request)?;
            if !request.single_launch {
                self.share.adapt(time, stopped.len() < running);
            }
            running -= self.service(&stopped, request)?;
        }
        self.report(request, self.executed);
        Ok(())
    }
}

/// Waits for the end of a launch, while another thread reports how far it is and passes on that the run is
/// cancelled. (This one may have to wait in the driver.) What has been reported, of all runs.
fn watch(
    kernel: &Kernel,
    mapped: &Mapped,
    control: &RunControl,
    reported: u64,
) -> Result<u64, CudaError> {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut reported = reported;
            while !ended.load(Ordering::Relaxed) {
                let executed = mapped.read().executed.max(reported);
                control.report(executed - reported, 0);
                reported = executed;
                if control.is_cancelled() {
                    mapped.set_cancel(true);
                }
                std::thread::sleep(ASK);
            }
            reported
        });
        let result = kernel.wait();
        ended.store(true, Ordering::Relaxed);
        let reported = watcher.join().expect("it only reads and writes numbers");
        result.map(|()| reported)
    })
}

impl Engine for CudaEngine {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn start_times(&self) -> StartTimes {
        let driver = Some(self.device.start_time);
        StartTimes { driver, kernels: self.kernel_loads.clone() }
    }

    fn state(&self, lane: usize) -> Result<CpuState, EngineError> {
        self.device.make_current()?;
        Ok(self.states.get(lane)?)
    }

    fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError> {
        self.device.make_current()?;
        Ok(self.states.set(lane..lane + 1, *state)?)
    }

    fn status(&self, lane: usize) -> Result<LaneStatus, EngineError> {
        self.device.make_current()?;
        Ok(LaneStatus { stop: self.stops[lane], count: self.statuses.get(lane)?.count })
    }

    fn visit_states(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(&CpuState),
    ) -> Result<(), EngineError> {
        self.device.make_current()?;
        Ok(self.states.visit(lanes, visit)?)
    }

    fn visit_statuses(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(LaneStatus),
    ) -> Result<(), EngineError> {
        self.device.make_current()?;
        let mut stops = self.stops[lanes.clone()].iter();
        Ok(self.statuses.visit(lanes, &mut |status| {
            let stop = *stops.next().expect("every lane has one");
            visit(LaneStatus { stop, count: status.count });
        })?)
    }

    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.device.make_current()?;
        Ok(self.guest.read(lane, addr, bytes)?)
    }

    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        self.device.make_current()?;
        let mut pages = self.guest.private_pages()?;
        pages.retain(|(lane, _)| *lane < self.config.lanes);
        Ok(pages)
    }

    fn write_memory(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.device.make_current()?;
        self.guest.write(&self.device, lane, addr, bytes)?;
        self.code.written(self.config.model, lane, addr, bytes.len() as u64);
        Ok(())
    }

    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.device.make_current()?;
        self.guest.write_image(addr, bytes)?;
        self.code.clear();
        Ok(())
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        self.device.make_current()?;
        self.code.set_breakpoints(request.breakpoints);
        let ended = self.start(request)?;
        if request.max_cycles == 0 || request.control.is_cancelled() {
            return Ok(());
        }
        self.run_lanes(request, ended)
    }

    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        self.device.make_current()?;
        if lanes.len() == self.config.lanes {
            self.guest.drop_frames()?;
        } else {
            for lane in lanes.clone() {
                self.guest.drop_pages(lane)?;
            }
        }
        self.states.set(lanes.clone(), CpuState::new())?;
        self.statuses.set(lanes.clone(), Status::default())?;
        self.stops[lanes.clone()].fill(None);
        self.device_code.forget(&lanes);
        lanes.for_each(|lane| self.code.join(lane));
        Ok(())
    }
}
