//! The engine: lanes on a device, launched until they stop.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use kvrm_a64::state::CpuState;
use kvrm_engine::code::{Code, DeviceMemory};
use kvrm_engine::kernel::stop;
use kvrm_engine::mirror::{DeviceArray, Mirror};
use kvrm_engine::slice::Share;
use kvrm_engine::{
    Activity, Config, Engine, EngineError, KernelLoad, LaneStatus, RunControl, RunRequest,
    StartTimes, Stop,
};

use crate::device::{Device, WgpuError};
use crate::guest::{Guest, Pool};
use crate::kernel::{LOCKS, Memory, WORKGROUP, kernel};
use crate::pipeline::Pipeline;

/// What a launch should take: operating systems end those that take seconds.
const LAUNCH_TIME: Duration = Duration::from_millis(30);
/// Instructions per lane of the first launch.
const FIRST_SHARE: u64 = 1 << 10;
/// The most instructions per lane of a launch: kernels count them in 32 bits.
const LARGEST_SHARE: u64 = 1 << 31;
/// Up to this many elements are read one by one: each takes a submission and a wait.
const FEW: usize = 4;
/// Workgroups in a row of a dispatch.
const ROW: u32 = 1 << 15;

/// A lane's counts and stop, as the kernel keeps them.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct Status {
    count: u64,
    budget: u64,
    detail: u64,
    stop: u32,
    records: u32,
}

/// An array in a buffer.
struct Array {
    device: Device,
    buffer: wgpu::Buffer,
}

impl Array {
    fn new<T>(device: &Device, what: &'static str, len: usize) -> Result<Array, WgpuError> {
        let buffer = device.buffer(what, (len * size_of::<T>()) as u64)?;
        Ok(Array { device: device.clone(), buffer })
    }
}

impl<T: Pod> DeviceArray<T> for Array {
    type Error = WgpuError;

    fn read(&self, first: usize, elements: &mut [T]) -> Result<(), WgpuError> {
        let offset = (first * size_of::<T>()) as u64;
        self.device.read(&self.buffer, offset, bytemuck::cast_slice_mut(elements))
    }

    fn write(&self, first: usize, elements: &[T]) -> Result<(), WgpuError> {
        let offset = (first * size_of::<T>()) as u64;
        self.device.write(&self.buffer, offset, bytemuck::cast_slice(elements));
        Ok(())
    }
}

/// Records and the map of granules on the device.
struct DeviceCode {
    records: wgpu::Buffer,
    map: wgpu::Buffer,
    /// What [`Code::changes`] said.
    changes: u64,
    /// Where the records of lanes start that have their own.
    starts: HashMap<usize, u32>,
}

/// What a launch is given, in the order of the kernel's `Arguments`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Arguments {
    lanes: u32,
    share: u32,
    code_len: u32,
    code_start: [u32; 2],
    frames: u32,
    begins: u32,
    max_cycles: [u32; 2],
}

/// Lanes on a GPU of any make.
pub struct WgpuEngine {
    config: Config,
    states: Mirror<CpuState, Array>,
    statuses: Mirror<Status, Array>,
    stops: Vec<Option<Stop>>,
    code: Code,
    pipeline: Option<Pipeline>,
    kernel_loads: Vec<KernelLoad>,
    device_code: Option<DeviceCode>,
    share: Share,
    /// What the next launch gives to every lane, if it is the first of a run.
    begins: Option<u64>,
    executed: u64,
    stepped: u64,
    arguments: wgpu::Buffer,
    stopped: wgpu::Buffer,
    /// Locks of shared memory, where there are no 64-bit atomics.
    locks: wgpu::Buffer,
    start_time: Duration,
    pub(crate) guest: Guest,
}

impl From<WgpuError> for EngineError {
    fn from(error: WgpuError) -> EngineError {
        let text = error.to_string();
        match error {
            WgpuError::TooLarge { .. } | WgpuError::Full { .. } => EngineError::DeviceFull(text),
            _ => EngineError::Device(text),
        }
    }
}

impl WgpuEngine {
    /// Builds the lanes on a device, all registers zero.
    pub fn new(config: Config, device: usize) -> Result<WgpuEngine, EngineError> {
        WgpuEngine::with(config, device, u64::MAX, wgpu::Features::empty())
    }

    /// With windows of at most that many bytes, and without features that the device may have.
    pub(crate) fn with(
        config: Config,
        device: usize,
        largest_window: u64,
        without: wgpu::Features,
    ) -> Result<WgpuEngine, EngineError> {
        let start = Instant::now();
        let device = Device::open(device, without)?;
        let start_time = start.elapsed();
        let lanes = config.lanes;
        let guest = Guest::new(device, &config, largest_window)?;
        let device = &guest.device;
        let states = Array::new::<CpuState>(device, "registers", lanes)?;
        let statuses = Array::new::<Status>(device, "statuses", lanes)?;
        Ok(WgpuEngine {
            states: Mirror::new(states, CpuState::new(), lanes, FEW),
            statuses: Mirror::new(statuses, Status::default(), lanes, FEW),
            stops: vec![None; lanes],
            code: Code::new(),
            pipeline: None,
            kernel_loads: Vec::new(),
            device_code: None,
            share: Share::new(FIRST_SHARE, LARGEST_SHARE, LAUNCH_TIME),
            begins: None,
            executed: 0,
            stepped: 0,
            arguments: device.uniform("arguments", size_of::<Arguments>() as u64)?,
            stopped: device.buffer("stopped lanes", 4 * lanes as u64)?,
            locks: device.buffer("locks", 4 * LOCKS as u64)?,
            start_time,
            guest,
            config,
        })
    }

    /// Compiles a kernel with all handlers, unless it is there.
    fn load_kernel(&mut self, control: &RunControl) -> Result<(), EngineError> {
        let (handlers, windows) = (self.code.handlers.len(), self.guest.windows());
        let is_it = |p: &Pipeline| p.handlers == handlers && p.windows == windows;
        if self.pipeline.as_ref().is_some_and(is_it) {
            return Ok(());
        }
        let (model, device) = (self.config.model, &self.guest.device);
        let memory = Memory {
            model,
            size: self.config.memory_size,
            group: self.guest.group,
            subgroup: device.largest_subgroup,
            read_only: self.config.read_only,
            windows,
            atomics: device.atomics(),
        };
        let text = kernel(&self.code.handlers, &memory);
        let (pipeline, load) = control.during(Activity::Compiling { handlers }, || {
            Pipeline::load(device, text, &memory, handlers)
        })?;
        self.pipeline = Some(pipeline);
        self.kernel_loads.push(load);
        Ok(())
    }

    /// Brings records on the device up to date.
    fn upload_code(&mut self) -> Result<(), EngineError> {
        let changes = self.code.changes();
        if matches!(&self.device_code, Some(code) if code.changes == changes) {
            return Ok(());
        }
        let device = &self.guest.device;
        let (records, starts) = self.code.tables();
        let map = self.code.granules();
        let buffer = |what, bytes: &[u8]| {
            let buffer = device.buffer(what, bytes.len() as u64)?;
            device.write(&buffer, 0, bytes);
            Ok::<_, WgpuError>(buffer)
        };
        let records = buffer("records", bytemuck::cast_slice(&records))?;
        let map = buffer("map of code", bytemuck::cast_slice(&map))?;
        let old = self.device_code.replace(DeviceCode { records, map, changes, starts });
        self.upload_starts(old.map(|code| code.starts).unwrap_or_default())
    }

    /// Tells the kernel which lanes have records of their own, given what it was told before.
    fn upload_starts(&mut self, before: HashMap<usize, u32>) -> Result<(), EngineError> {
        let now = &self.device_code.as_ref().expect("there is code").starts;
        let start = |starts: &HashMap<usize, u32>, lane| starts.get(&lane).copied().unwrap_or(0);
        let lanes = before.keys().chain(now.keys().filter(|lane| !before.contains_key(lane)));
        let changed: Vec<(usize, u32)> = lanes
            .filter(|lane| start(&before, **lane) != start(now, **lane))
            .map(|lane| (*lane, start(now, *lane)))
            .collect();
        for (lane, records) in &changed {
            self.statuses.modify(&[*lane], |status| status.records = *records)?;
        }
        Ok(())
    }

    fn write_arguments(&self) {
        let start = self.code.start();
        let frames = self.guest.private.as_ref().map_or(0, |private| private.count);
        let max_cycles = self.begins.unwrap_or(0);
        let arguments = Arguments {
            lanes: self.config.lanes as u32,
            share: self.share.get() as u32,
            code_len: self.code.len() as u32,
            code_start: [start as u32, (start >> 32) as u32],
            frames: frames as u32,
            begins: self.begins.is_some().into(),
            max_cycles: [max_cycles as u32, (max_cycles >> 32) as u32],
        };
        self.guest.device.write(&self.arguments, 0, bytemuck::bytes_of(&arguments));
    }

    /// What the kernel is bound to, by bind group.
    fn buffers(&self) -> Vec<Vec<&wgpu::Buffer>> {
        let code = self.device_code.as_ref().expect("uploaded before a launch");
        let tables = self.guest.private.as_ref().map_or(&self.locks, |private| &private.tables);
        let mut groups = vec![vec![
            &self.arguments,
            &self.states.device().buffer,
            &self.statuses.device().buffer,
            &self.stopped,
            &self.guest.pool,
            &code.records,
            &code.map,
            tables,
        ]];
        groups.push(self.guest.flat.iter().collect());
        groups.extend(self.guest.private.as_ref().map(|private| private.frames.iter().collect()));
        groups
    }

    fn bind_groups(&self, layouts: &[wgpu::BindGroupLayout]) -> Vec<wgpu::BindGroup> {
        let group = |(layout, buffers): (&wgpu::BindGroupLayout, Vec<&wgpu::Buffer>)| {
            let resources = buffers.iter().map(|buffer| buffer.as_entire_binding());
            let entry = |(binding, resource)| wgpu::BindGroupEntry { binding, resource };
            let entries: Vec<_> = (0..).zip(resources).map(entry).collect();
            let descriptor = wgpu::BindGroupDescriptor { label: None, layout, entries: &entries };
            self.guest.device.device.create_bind_group(&descriptor)
        };
        layouts.iter().zip(self.buffers()).map(group).collect()
    }

    /// Launches once, and waits for the end. What was counted, and how long it took.
    fn launch(&mut self, request: &RunRequest<'_>) -> Result<(Pool, Duration), EngineError> {
        self.upload_code()?;
        self.load_kernel(request.control)?;
        self.states.upload()?;
        self.statuses.upload()?;
        self.write_arguments();
        self.states.will_change();
        self.statuses.will_change();
        self.begins = None;
        let Pipeline { pipeline, layouts, .. } = self.pipeline.as_ref().expect("loaded above");
        let groups = (self.config.lanes as u32).div_ceil(WORKGROUP);
        let device = &self.guest.device;
        let start = Instant::now();
        let pool = device.checked(|| {
            let mut encoder = device.encoder();
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(pipeline);
            for (index, group) in (0..).zip(&self.bind_groups(layouts)) {
                pass.set_bind_group(index, group, &[]);
            }
            pass.dispatch_workgroups(groups.min(ROW), groups.div_ceil(ROW), 1);
            drop(pass);
            self.guest.pool_after(encoder)
        })??;
        Ok((pool, start.elapsed()))
    }

    /// The lanes that stopped in the last launch.
    fn stopped_lanes(&mut self, pool: Pool, control: &RunControl) -> Result<Vec<u32>, EngineError> {
        control.report(pool.executed - self.executed + std::mem::take(&mut self.stepped), 0);
        self.executed = pool.executed;
        let mut lanes = vec![0u32; pool.stopped as usize];
        if !lanes.is_empty() {
            self.guest.set_pool(Pool { stopped: 0, ..pool });
            let bytes = bytemuck::cast_slice_mut(&mut lanes);
            self.guest.device.read(&self.stopped, 0, bytes)?;
        }
        Ok(lanes)
    }

    /// Sees to lanes that stopped. How many have ended.
    fn service(&mut self, lanes: &[u32], control: &RunControl) -> Result<usize, EngineError> {
        let (mut ended, mut grow, mut ended_here) = (0, false, Vec::new());
        for lane in lanes.iter().map(|lane| *lane as usize) {
            let status = self.statuses.get_of(lanes.len(), lane)?;
            grow |= status.stop == stop::NO_FRAME;
            let stop = match status.stop {
                stop::NO_FRAME => None,
                stop::NO_CODE => {
                    self.code.find(&mut self.guest, self.config.lanes, lane, status.detail)?
                }
                stop::CODE_WRITE => self.step(lane, status)?,
                stop => Some(stop::meaning(stop, status.detail)),
            };
            self.stops[lane] = stop;
            ended += usize::from(stop.is_some());
            if stop.is_some() && stop::is_for_host(status.stop) {
                ended_here.push(lane);
            }
        }
        self.end(&ended_here)?;
        if grow {
            self.guest.grow()?;
        }
        control.report(0, ended as u64);
        Ok(ended)
    }

    /// Makes sure that lanes whose stop was found here do not go on.
    fn end(&mut self, lanes: &[usize]) -> Result<(), EngineError> {
        self.statuses.modify(lanes, |status| status.stop = stop::ENDED)?;
        let exception = |lane: &usize| self.stops[*lane].is_some_and(|stop| stop.is_exception());
        let excepted: Vec<usize> = lanes.iter().copied().filter(exception).collect();
        Ok(self.states.modify(&excepted, |state| state.exclusive_len = 0)?)
    }

    /// Executes one instruction of a lane here. The stop, if it has to.
    fn step(&mut self, lane: usize, mut status: Status) -> Result<Option<Stop>, EngineError> {
        let mut state = self.states.get_of(1, lane)?;
        let (model, count) = (self.config.model, status.count);
        let (done, stop) = self.code.step(&mut self.guest, model, lane, &mut state, count)?;
        status.count += done;
        status.budget -= done;
        self.stepped += done;
        self.states.modify(&[lane], |there| *there = state)?;
        self.statuses.modify(&[lane], |there| *there = status)?;
        Ok(stop.or((status.budget == 0).then_some(Stop::MaxCycles)))
    }

    /// Gives lanes the run's instructions; all of them, unless it continues one. How many have ended already.
    fn start(&mut self, request: &RunRequest<'_>) -> Result<usize, EngineError> {
        let max_cycles = request.max_cycles;
        let mut ended = Vec::new();
        for (lane, stop) in self.stops.iter_mut().enumerate() {
            match request.continues && stop.is_some_and(|stop| stop != Stop::MaxCycles) {
                true => ended.push(lane),
                false => *stop = (max_cycles == 0).then_some(Stop::MaxCycles),
            }
        }
        let passes = !request.continues && !self.code.breakpoints().is_empty();
        if ended.is_empty() && !passes {
            // The kernel gives itself the instructions.
            self.begins = Some(max_cycles);
            return Ok(0);
        }
        self.begins = None;
        for lane in 0..self.config.lanes {
            let mut status = self.statuses.get(lane)?;
            (status.budget, status.stop) = (max_cycles, stop::RUNNING);
            self.statuses.set(lane..lane + 1, status)?;
        }
        self.end(&ended)?;
        Ok(ended.len())
    }

    /// Lanes that start at a breakpoint execute the instruction there. How many stop by that.
    fn pass_breakpoints(&mut self) -> Result<usize, EngineError> {
        let mut ended = Vec::new();
        if self.code.breakpoints().is_empty() {
            return Ok(0);
        }
        for lane in 0..self.config.lanes {
            if self.code.breakpoints().binary_search(&self.states.get(lane)?.pc).is_ok() {
                self.stops[lane] = self.step(lane, self.statuses.get(lane)?)?;
                if self.stops[lane].is_some() {
                    ended.push(lane);
                }
            }
        }
        self.end(&ended)?;
        Ok(ended.len())
    }

    fn run_lanes(&mut self, request: &RunRequest<'_>, ended: usize) -> Result<(), EngineError> {
        let passed = if request.continues { 0 } else { self.pass_breakpoints()? };
        let mut running = self.config.lanes - ended - passed;
        // Where all lanes have the same code, the first launch should find some.
        if running > 0 && self.code.is_empty() && !self.guest.has_copies()? {
            let pc = self.states.get_of(1, 0)?.pc;
            // If there is none, the lane will say so.
            self.code.find(&mut self.guest, self.config.lanes, 0, pc)?;
        }
        while running > 0 && !request.control.is_cancelled() {
            let (pool, time) = self.launch(request)?;
            let stopped = self.stopped_lanes(pool, request.control)?;
            self.share.adapt(time, stopped.len() < running);
            running -= self.service(&stopped, request.control)?;
        }
        request.control.report(std::mem::take(&mut self.stepped), 0);
        Ok(())
    }
}

impl Engine for WgpuEngine {
    fn name(&self) -> &'static str {
        "wgpu"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn start_times(&self) -> StartTimes {
        StartTimes { driver: Some(self.start_time), kernels: self.kernel_loads.clone() }
    }

    fn state(&self, lane: usize) -> Result<CpuState, EngineError> {
        Ok(self.states.get(lane)?)
    }

    fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError> {
        Ok(self.states.set(lane..lane + 1, *state)?)
    }

    fn status(&self, lane: usize) -> Result<LaneStatus, EngineError> {
        Ok(LaneStatus { stop: self.stops[lane], count: self.statuses.get(lane)?.count })
    }

    fn visit_states(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(&CpuState),
    ) -> Result<(), EngineError> {
        Ok(self.states.visit(lanes, visit)?)
    }

    fn visit_statuses(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(LaneStatus),
    ) -> Result<(), EngineError> {
        let mut stops = self.stops[lanes.clone()].iter();
        Ok(self.statuses.visit(lanes, &mut |status| {
            let stop = *stops.next().expect("as many as statuses");
            visit(LaneStatus { stop, count: status.count });
        })?)
    }

    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.guest.read(Some(lane), addr, bytes)
    }

    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        Ok(self.guest.private_pages()?)
    }

    fn write_memory(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.guest.write(lane, addr, bytes)?;
        self.code.written(self.config.model, lane, addr, bytes.len() as u64);
        Ok(())
    }

    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.guest.write_image(addr, bytes)?;
        self.code.clear();
        Ok(())
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        self.code.set_breakpoints(request.breakpoints);
        let ended = self.start(request)?;
        if request.max_cycles == 0 || request.control.is_cancelled() {
            return Ok(());
        }
        self.run_lanes(request, ended)
    }

    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        if lanes.len() == self.config.lanes {
            self.guest.drop_frames()?;
        } else {
            for lane in lanes.clone() {
                self.guest.drop_pages(lane)?;
            }
        }
        self.states.set(lanes.clone(), CpuState::new())?;
        self.stops[lanes.clone()].fill(None);
        lanes.clone().for_each(|lane| self.code.join(lane));
        let starts = self.device_code.as_ref().map(|code| &code.starts);
        let records = |lane| starts.and_then(|starts| starts.get(&lane)).copied().unwrap_or(0);
        self.statuses.set(lanes.clone(), Status::default())?;
        for lane in lanes.filter(|lane| records(*lane) != 0) {
            let status = Status { records: records(lane), ..Status::default() };
            self.statuses.set(lane..lane + 1, status)?;
        }
        Ok(())
    }
}
