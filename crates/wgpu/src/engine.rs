//! The engine: lanes on a device, launched until they stop.

use std::ops::Range;
use std::time::{Duration, Instant};

use kvrm_a64::state::{CpuState, VARS};
use kvrm_engine::code::{Code, DeviceMemory};
use kvrm_engine::kernel::stop;
use kvrm_engine::{
    Activity, Config, Engine, EngineError, LaneStatus, MemoryModel, RunControl, RunRequest, Stop,
};
use kvrm_ir::Type;

use crate::device::{Device, WgpuError};
use crate::guest::{Guest, Pool};
use crate::kernel::{Memory, WORKGROUP, kernel};

/// What a launch should take: operating systems end those that take seconds.
const LAUNCH_TIME: Duration = Duration::from_millis(50);
/// Instructions per lane of the first launch.
const FIRST_SHARE: u32 = 1 << 10;
/// Words of 32 bits in a lane's state.
const STATE_WORDS: usize = size_of::<CpuState>() / 4;
/// Workgroups in a row of a dispatch.
const ROW: u32 = 1 << 15;

/// A lane's counts and stop, as the kernel keeps them.
#[derive(Clone, Copy, Debug, Default)]
struct Status {
    count: u64,
    budget: u64,
    detail: u64,
    stop: u32,
    records: u32,
}

const STATUS_BYTES: usize = 32;

impl Status {
    fn to_bytes(self) -> [u8; STATUS_BYTES] {
        let mut bytes = [0; STATUS_BYTES];
        for (part, number) in bytes.chunks_exact_mut(8).zip([self.count, self.budget, self.detail])
        {
            part.copy_from_slice(&number.to_le_bytes());
        }
        bytes[24..28].copy_from_slice(&self.stop.to_le_bytes());
        bytes[28..].copy_from_slice(&self.records.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Status {
        let wide = |at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let last = wide(24);
        Status {
            count: wide(0),
            budget: wide(8),
            detail: wide(16),
            stop: last as u32,
            records: (last >> 32) as u32,
        }
    }
}

fn state_to_bytes(state: &CpuState, bytes: &mut [u8]) {
    for (part, x) in bytes.chunks_exact_mut(8).zip(state.x) {
        part.copy_from_slice(&x.to_le_bytes());
    }
    for (var, offset) in VARS {
        let value = state.var(*var).to_le_bytes();
        let len = if var.ty == Type::Bool { 1 } else { var.ty.bytes() as usize };
        bytes[*offset..offset + len].copy_from_slice(&value[..len]);
    }
}

fn state_from_bytes(bytes: &[u8]) -> CpuState {
    let mut state = CpuState::new();
    for (x, part) in state.x.iter_mut().zip(bytes.chunks_exact(8)) {
        *x = u64::from_le_bytes(part.try_into().expect("eight bytes"));
    }
    for (var, offset) in VARS {
        let len = if var.ty == Type::Bool { 1 } else { var.ty.bytes() as usize };
        let mut value = [0; 8];
        value[..len].copy_from_slice(&bytes[*offset..offset + len]);
        state.set_var(*var, u64::from_le_bytes(value));
    }
    state
}

struct Pipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    /// How many handlers it has.
    handlers: usize,
}

/// Records and the map of granules on the device.
struct DeviceCode {
    records: wgpu::Buffer,
    map: wgpu::Buffer,
    /// What [`Code::changes`] said.
    changes: u64,
}

/// Lanes on a GPU of any make.
pub struct WgpuEngine {
    config: Config,
    states: Vec<CpuState>,
    states_changed: bool,
    statuses: Vec<Status>,
    stops: Vec<Option<Stop>>,
    code: Code,
    pipeline: Option<Pipeline>,
    device_code: Option<DeviceCode>,
    share: u32,
    executed: u64,
    stepped: u64,
    arguments: wgpu::Buffer,
    device_states: wgpu::Buffer,
    device_statuses: wgpu::Buffer,
    stopped: wgpu::Buffer,
    guest: Guest,
}

impl From<WgpuError> for EngineError {
    fn from(error: WgpuError) -> EngineError {
        let text = error.to_string();
        match error {
            WgpuError::TooLarge { .. } => EngineError::DeviceFull(text),
            _ => EngineError::Device(text),
        }
    }
}

impl WgpuEngine {
    /// Builds the lanes on a device, all registers zero.
    pub fn new(config: Config, device: usize) -> Result<WgpuEngine, EngineError> {
        let device = Device::open(device)?;
        let atomics = config.model == MemoryModel::Shared && !config.read_only;
        if atomics && !device.has_wide_atomics {
            let why = "shared memory needs 64-bit atomics (SHADER_INT64_ATOMIC_ALL_OPS)";
            return Err(WgpuError::Unfit { name: device.name, why }.into());
        }
        let lanes = config.lanes;
        let mut guest = Guest::new(device, config.model, config.memory_size, lanes)?;
        guest.read_only = config.read_only;
        let device = &guest.device;
        Ok(WgpuEngine {
            states: vec![CpuState::new(); lanes],
            states_changed: true,
            statuses: vec![Status::default(); lanes],
            stops: vec![None; lanes],
            code: Code::new(),
            pipeline: None,
            device_code: None,
            share: FIRST_SHARE,
            executed: 0,
            stepped: 0,
            arguments: device.buffer("arguments", 32)?,
            device_states: device.buffer("registers", (lanes * STATE_WORDS * 4) as u64)?,
            device_statuses: device.buffer("statuses", (lanes * STATUS_BYTES) as u64)?,
            stopped: device.buffer("stopped lanes", 4 * lanes as u64)?,
            guest,
            config,
        })
    }

    /// Compiles a kernel with all handlers, unless it is there.
    fn load_kernel(&mut self, control: &RunControl) -> Result<(), EngineError> {
        let handlers = self.code.handlers.len();
        if matches!(&self.pipeline, Some(pipeline) if pipeline.handlers == handlers) {
            return Ok(());
        }
        let memory = Memory {
            model: self.config.model,
            size: self.config.memory_size,
            group: self.guest.group,
            read_only: self.config.read_only,
        };
        let text = kernel(&self.code.handlers, &memory);
        let device = &self.guest.device;
        let (pipeline, layout) = control.during(Activity::Compiling { handlers }, || {
            device.checked(|| compile(&device.device, text, &memory))
        })?;
        self.pipeline = Some(Pipeline { pipeline, layout, handlers });
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
        let records: Vec<u8> =
            records.iter().flat_map(|r| r.0).flat_map(|word| word.to_le_bytes()).collect();
        let map: Vec<u8> =
            self.code.granules().iter().flat_map(|word| word.to_le_bytes()).collect();
        let buffer = device.buffer("records", records.len() as u64)?;
        device.write(&buffer, 0, &records);
        let map_buffer = device.buffer("map of code", map.len() as u64)?;
        device.write(&map_buffer, 0, &map);
        self.device_code = Some(DeviceCode { records: buffer, map: map_buffer, changes });
        for lane in 0..self.config.lanes {
            let records = starts.get(&lane).copied().unwrap_or(0);
            if self.statuses[lane].records != records {
                self.statuses[lane].records = records;
                self.upload_status(lane);
            }
        }
        Ok(())
    }

    fn upload_status(&self, lane: usize) {
        let offset = (lane * STATUS_BYTES) as u64;
        let bytes = self.statuses[lane].to_bytes();
        self.guest.device.write(&self.device_statuses, offset, &bytes);
    }

    fn upload_state(&self, lane: usize) {
        let mut bytes = [0; STATE_WORDS * 4];
        state_to_bytes(&self.states[lane], &mut bytes);
        let offset = (lane * bytes.len()) as u64;
        self.guest.device.write(&self.device_states, offset, &bytes);
    }

    fn upload(&mut self) {
        let statuses: Vec<u8> = self.statuses.iter().flat_map(|s| s.to_bytes()).collect();
        self.guest.device.write(&self.device_statuses, 0, &statuses);
        if std::mem::take(&mut self.states_changed) {
            let mut states = vec![0; self.states.len() * STATE_WORDS * 4];
            for (state, bytes) in self.states.iter().zip(states.chunks_exact_mut(STATE_WORDS * 4)) {
                state_to_bytes(state, bytes);
            }
            self.guest.device.write(&self.device_states, 0, &states);
        }
    }

    fn download_statuses(&mut self) -> Result<(), EngineError> {
        let mut bytes = vec![0; self.statuses.len() * STATUS_BYTES];
        self.guest.device.read(&self.device_statuses, 0, &mut bytes)?;
        for (status, bytes) in self.statuses.iter_mut().zip(bytes.chunks_exact(STATUS_BYTES)) {
            *status = Status::from_bytes(bytes);
        }
        Ok(())
    }

    fn download_states(&mut self) -> Result<(), EngineError> {
        let mut bytes = vec![0; self.states.len() * STATE_WORDS * 4];
        self.guest.device.read(&self.device_states, 0, &mut bytes)?;
        for (state, bytes) in self.states.iter_mut().zip(bytes.chunks_exact(STATE_WORDS * 4)) {
            *state = state_from_bytes(bytes);
        }
        Ok(())
    }

    fn write_arguments(&self) {
        let start = self.code.start();
        let frames = self.guest.private.as_ref().map_or(0, |private| private.count);
        let words = [
            self.config.lanes as u32,
            self.share,
            self.code.len() as u32,
            start as u32,
            (start >> 32) as u32,
            frames as u32,
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.guest.device.write(&self.arguments, 0, &bytes);
    }

    /// Launches once, and waits for the end.
    fn launch(&mut self, control: &RunControl) -> Result<(), EngineError> {
        self.upload_code()?;
        self.load_kernel(control)?;
        self.write_arguments();
        let code = self.device_code.as_ref().expect("uploaded above");
        let Pipeline { pipeline, layout, .. } = self.pipeline.as_ref().expect("compiled above");
        let mut buffers = vec![
            &self.arguments,
            &self.device_states,
            &self.device_statuses,
            &self.stopped,
            &self.guest.pool,
            &code.records,
            &code.map,
            &self.guest.flat,
        ];
        if let Some(private) = &self.guest.private {
            buffers.extend([&private.frames, &private.tables]);
        }
        let entries: Vec<_> = (0..)
            .zip(&buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let groups = (self.config.lanes as u32).div_ceil(WORKGROUP);
        let device = &self.guest.device;
        let start = Instant::now();
        device.checked(|| {
            let group = device.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout,
                entries: &entries,
            });
            let mut encoder = device.device.create_command_encoder(&Default::default());
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(groups.min(ROW), groups.div_ceil(ROW), 1);
            drop(pass);
            device.queue.submit([encoder.finish()]);
        })?;
        device.wait()?;
        // Towards launches of the wanted length.
        let ratio = LAUNCH_TIME.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-6);
        self.share = (f64::from(self.share) * ratio.clamp(0.25, 4.0)).clamp(64.0, 1e9) as u32;
        Ok(())
    }

    /// Sees to the lanes that stopped. How many have ended.
    fn service(&mut self, control: &RunControl) -> Result<usize, EngineError> {
        let pool = self.guest.pool()?;
        self.guest.set_pool(Pool { stopped: 0, ..pool });
        control.report(pool.executed - self.executed + std::mem::take(&mut self.stepped), 0);
        self.executed = pool.executed;
        if pool.stopped == 0 {
            return Ok(0);
        }
        let mut bytes = vec![0; 4 * pool.stopped as usize];
        self.guest.device.read(&self.stopped, 0, &mut bytes)?;
        self.download_statuses()?;
        let (mut ended, mut grow) = (0, false);
        for lane in bytes.chunks_exact(4) {
            let lane = u32::from_le_bytes(lane.try_into().expect("four bytes")) as usize;
            let Status { stop, detail, .. } = self.statuses[lane];
            grow |= stop == stop::NO_FRAME;
            self.stops[lane] = match stop {
                stop::NO_FRAME => None,
                stop::NO_CODE => {
                    self.code.find(&mut self.guest, self.config.lanes, lane, detail)?
                }
                stop::CODE_WRITE => self.step(lane)?,
                stop => Some(stop::meaning(stop, detail)),
            };
            if self.stops[lane].is_some() {
                ended += 1;
                if stop::is_for_host(stop) {
                    self.end(lane)?;
                }
            }
        }
        if grow {
            self.guest.grow()?;
        }
        control.report(0, ended as u64);
        Ok(ended)
    }

    /// Makes sure that a lane whose stop was found here does not go on.
    fn end(&mut self, lane: usize) -> Result<(), EngineError> {
        self.statuses[lane].stop = stop::ENDED;
        self.upload_status(lane);
        if self.stops[lane].is_some_and(|stop| stop.is_exception()) {
            self.fetch_state(lane)?;
            self.states[lane].exclusive_len = 0;
            self.upload_state(lane);
        }
        Ok(())
    }

    fn fetch_state(&mut self, lane: usize) -> Result<(), EngineError> {
        let mut bytes = [0; STATE_WORDS * 4];
        let offset = (lane * bytes.len()) as u64;
        self.guest.device.read(&self.device_states, offset, &mut bytes)?;
        self.states[lane] = state_from_bytes(&bytes);
        Ok(())
    }

    /// Executes one instruction of a lane here. The stop, if it has to.
    fn step(&mut self, lane: usize) -> Result<Option<Stop>, EngineError> {
        self.fetch_state(lane)?;
        let (model, count) = (self.config.model, self.statuses[lane].count);
        let state = &mut self.states[lane];
        let (done, stop) = self.code.step(&mut self.guest, model, lane, state, count)?;
        let status = &mut self.statuses[lane];
        status.count += done;
        status.budget -= done;
        let used_up = status.budget == 0;
        self.stepped += done;
        self.upload_state(lane);
        self.upload_status(lane);
        Ok(stop.or(used_up.then_some(Stop::MaxCycles)))
    }

    /// Lanes that start at a breakpoint execute the instruction there. How many stop by that.
    fn pass_breakpoints(&mut self) -> Result<usize, EngineError> {
        let mut ended = 0;
        for lane in 0..self.config.lanes {
            if self.code.breakpoints().binary_search(&self.states[lane].pc).is_ok() {
                self.stops[lane] = self.step(lane)?;
                if self.stops[lane].is_some() {
                    self.end(lane)?;
                    ended += 1;
                }
            }
        }
        Ok(ended)
    }

    /// Gives lanes the run's instructions; all of them, unless it continues one. How many have ended already.
    fn start(&mut self, request: &RunRequest<'_>) -> usize {
        let mut ended = 0;
        for (stop, status) in self.stops.iter_mut().zip(&mut self.statuses) {
            if request.continues && stop.is_some_and(|stop| stop != Stop::MaxCycles) {
                status.stop = stop::ENDED;
                ended += 1;
            } else {
                (status.budget, status.stop) = (request.max_cycles, stop::RUNNING);
                *stop = (request.max_cycles == 0).then_some(Stop::MaxCycles);
            }
        }
        ended
    }

    fn run_lanes(&mut self, request: &RunRequest<'_>, ended: usize) -> Result<(), EngineError> {
        let control = request.control;
        let passed = if request.continues { 0 } else { self.pass_breakpoints()? };
        let mut running = self.config.lanes - ended - passed;
        // Where all lanes have the same code, the first launch should find some.
        if running > 0 && self.code.is_empty() && !self.guest.has_copies()? {
            let pc = self.states[0].pc;
            // If there is none, the lane will say so.
            self.code.find(&mut self.guest, self.config.lanes, 0, pc)?;
        }
        while running > 0 && !control.is_cancelled() {
            self.launch(control)?;
            running -= self.service(control)?;
        }
        control.report(std::mem::take(&mut self.stepped), 0);
        self.download_statuses()?;
        self.download_states()
    }
}

/// Compiles a kernel, without the checks that its text does not need.
fn compile(
    device: &wgpu::Device,
    text: String,
    memory: &Memory,
) -> (wgpu::ComputePipeline, wgpu::BindGroupLayout) {
    let descriptor =
        wgpu::ShaderModuleDescriptor { label: None, source: wgpu::ShaderSource::Wgsl(text.into()) };
    // SAFETY: every index is checked by the kernel itself, its loops end, and it never divides by zero.
    let module = unsafe {
        device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
    };
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &layout_entries(memory),
    });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some("run"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    (pipeline, layout)
}

fn layout_entries(memory: &Memory) -> Vec<wgpu::BindGroupLayoutEntry> {
    use wgpu::BufferBindingType::{Storage, Uniform};
    let (read, write) = (Storage { read_only: true }, Storage { read_only: false });
    let mut types = vec![Uniform, write, write, write, write, read, read];
    match memory.model {
        MemoryModel::Shared if memory.read_only => types.push(read),
        MemoryModel::Shared => types.push(write),
        MemoryModel::Private => types.extend([read, write, write]),
    }
    (0..)
        .zip(types)
        .map(|(binding, ty)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        })
        .collect()
}

impl Engine for WgpuEngine {
    fn name(&self) -> &'static str {
        "wgpu"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn state(&self, lane: usize) -> Result<CpuState, EngineError> {
        Ok(self.states[lane])
    }

    fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError> {
        self.states[lane] = *state;
        self.states_changed = true;
        Ok(())
    }

    fn status(&self, lane: usize) -> Result<LaneStatus, EngineError> {
        Ok(LaneStatus { stop: self.stops[lane], count: self.statuses[lane].count })
    }

    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.guest.read(Some(lane), addr, bytes)
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
        let ended = self.start(request);
        if request.max_cycles == 0 || request.control.is_cancelled() {
            return Ok(());
        }
        self.upload();
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
        for lane in lanes {
            self.states[lane] = CpuState::new();
            self.statuses[lane] = Status::default();
            self.stops[lane] = None;
            self.code.join(lane);
        }
        self.states_changed = true;
        Ok(())
    }
}
