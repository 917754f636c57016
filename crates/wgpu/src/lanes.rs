//! Lanes on a device, and the launches of the kernel that runs them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::cache::KernelKey;
use kvrm_engine::code::DecodedCode;
use kvrm_engine::kernel::stop;
use kvrm_engine::launch::{Compile, Launch, LaunchEngine, Launched, Launcher, Status, Translator};
use kvrm_engine::memory::DeviceMemory;
use kvrm_engine::mirror::{DeviceArray, Mirror};
use kvrm_engine::slice::Share;
use kvrm_engine::translation::{Means, Translated, Translation};
use kvrm_engine::{Config, EngineError};

use crate::LACKS;
use crate::code::DeviceCode;
use crate::device::{Device, WgpuError, WordRange};
use crate::guest::{Guest, Limits, memory_model};
use crate::kernel::{KernelTarget, LOCKS, SAMPLES, WORKGROUP, kernel};
use crate::pipeline::{Pipeline, key};
use crate::windows::Windows;

/// What a launch should take: operating systems end those that take seconds.
const LAUNCH_TIME: Duration = Duration::from_millis(100);
/// Instructions per lane of the first launch.
const FIRST_SHARE: u64 = 1 << 10;
/// The most instructions per lane of a launch: kernels count them in 32 bits.
const LARGEST_SHARE: u64 = 1 << 31;
/// Up to this many elements are read one by one: each takes a submission and a wait.
const FEW: usize = 4;
/// Up to this many lanes are read along with what a launch has counted: less than a wait of its own takes.
const ALONG: usize = 256;
/// What kernels can have translated. Functions are in pieces of handlers. Drivers take longer to compile instructions than
/// CUDA's does.
pub(crate) const MEANS: Means = Means { lacks: LACKS, calls: false, most: 250 };
/// Llvmpipe takes up to a minute for as many.
const MOST_ON_LLVMPIPE: usize = 100;
/// Workgroups in a row of a dispatch.
const ROW: u32 = 1 << 15;

/// An array in a buffer.
pub struct Array {
    device: Device,
    buffer: wgpu::Buffer,
}

impl Array {
    fn new<T>(device: &Device, what: &'static str, len: usize) -> Result<Array, WgpuError> {
        let buffer = device.buffer(what, (len * size_of::<T>()) as u64)?;
        Ok(Array { device: device.clone(), buffer })
    }

    /// The first elements.
    fn part<T>(&self, len: usize) -> WordRange<'_> {
        WordRange { buffer: &self.buffer, offset: 0, len: (len * size_of::<T>()) as u64 }
    }
}

impl<T: Pod> DeviceArray<T> for Array {
    fn read(&self, first: usize, elements: &mut [T]) -> Result<(), EngineError> {
        let offset = (first * size_of::<T>()) as u64;
        Ok(self.device.read(&self.buffer, offset, bytemuck::cast_slice_mut(elements))?)
    }

    fn write(&self, first: usize, elements: &[T]) -> Result<(), EngineError> {
        let offset = (first * size_of::<T>()) as u64;
        Ok(self.device.write(&self.buffer, offset, bytemuck::cast_slice(elements))?)
    }
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
    first_record: u32,
    first_flag: u32,
    directory: u32,
    directory_mask: u32,
    table_pages: u32,
    groups: u32,
}

/// Lanes on a GPU of any make.
pub struct WgpuLanes {
    config: Config,
    code: DeviceCode,
    /// Where that started in the last launch.
    code_start: u64,
    /// Where lanes have been, if memory is flat.
    samples: Array,
    /// What the next launch gives to every lane, if it is the first of a run.
    begins: Option<u64>,
    /// Instructions that kernels have completed, as far as has been reported.
    executed: u64,
    arguments: wgpu::Buffer,
    stopped: Array,
    /// Locks of shared memory, where there are no 64-bit atomics.
    locks: wgpu::Buffer,
    start_time: Duration,
    pub(crate) guest: Guest,
}

/// The engine on a GPU of any make.
pub type WgpuEngine = LaunchEngine<WgpuLanes>;

/// Builds the engine on a device, all registers zero. Without a number, it is the first that can be used.
pub fn build(config: Config, device: Option<usize>) -> Result<WgpuEngine, EngineError> {
    build_with(config, device, Limits::NONE)
}

/// As on a device that has less.
pub(crate) fn build_with(
    config: Config,
    device: Option<usize>,
    limits: Limits,
) -> Result<WgpuEngine, EngineError> {
    config.check_mapped_on_device("wgpu")?;
    let start = Instant::now();
    let device = Device::open(device, limits.without)?;
    let start_time = start.elapsed();
    let lanes = config.lanes;
    let guest = Guest::new(device, &config, limits)?;
    let device = &guest.device;
    let states = Array::new::<CpuState>(device, "registers", lanes)?;
    let vectors = Array::new::<VectorState>(device, "vector registers", lanes)?;
    let statuses = Array::new::<Status>(device, "statuses", lanes)?;
    let lanes = WgpuLanes {
        code: DeviceCode::new(device),
        code_start: 0,
        samples: Array::new::<u32>(device, "where lanes are", SAMPLES)?,
        begins: None,
        executed: 0,
        arguments: device.uniform("arguments", size_of::<Arguments>() as u64)?,
        stopped: Array::new::<u32>(device, "stopped lanes", lanes)?,
        locks: device.buffer("locks", 4 * LOCKS as u64)?,
        start_time,
        guest,
        config: config.clone(),
    };
    let share = Share::new(FIRST_SHARE, LARGEST_SHARE, LAUNCH_TIME);
    Ok(LaunchEngine::new(config, lanes, [states, vectors, statuses], FEW, share))
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

impl WgpuLanes {
    fn kernel_target(&self) -> KernelTarget {
        let device = &self.guest.device;
        KernelTarget {
            model: memory_model(&self.config),
            mapped: self.config.mapped,
            program: self.config.program_bytes(),
            size: self.config.memory_size,
            group: self.guest.group,
            subgroup: device.largest_subgroup,
            read_only: self.config.read_only,
            windows: self.guest.windows(),
            atomics: device.atomics(),
        }
    }

    fn write_arguments(&mut self, launch: &Launch<'_, Array>) -> Result<(), WgpuError> {
        let start = launch.code.start();
        let frames = self.guest.private.as_ref().map_or(0, |private| private.count);
        let max_cycles = self.begins.unwrap_or(0);
        let arguments = Arguments {
            lanes: self.config.lanes as u32,
            share: launch.share as u32,
            code_len: launch.code.len() as u32,
            code_start: [start as u32, (start >> 32) as u32],
            frames: frames as u32,
            begins: self.begins.take().is_some().into(),
            max_cycles: [max_cycles as u32, (max_cycles >> 32) as u32],
            first_record: launch.code.first_record() as u32,
            first_flag: launch.code.first_flag() as u32,
            directory: self.code.directory(),
            directory_mask: launch.code.layout().directory_len() as u32 - 1,
            table_pages: self.guest.room() as u32,
            groups: (self.config.lanes as u32).div_ceil(self.guest.group),
        };
        self.guest.device.write(&self.arguments, 0, bytemuck::bytes_of(&arguments))
    }

    /// What the kernel is bound to, by bind group.
    fn buffers<'a>(&'a self, launch: &'a Launch<'_, Array>) -> Vec<Vec<&'a wgpu::Buffer>> {
        let code = self.code.buffers();
        let tables = self.guest.private.as_ref().map_or(&self.locks, |private| &private.tables);
        let mut groups = vec![vec![
            &self.arguments,
            &launch.states.device().buffer,
            &launch.statuses.device().buffer,
            &self.stopped.buffer,
            &self.guest.pool_buffer,
            &code.records,
            &code.map,
            tables,
            &launch.vectors.device().buffer,
        ]];
        match &self.guest.mapped {
            Some(mapped) => {
                groups[0].extend([&mapped.words, self.code.blocks(), &mapped.columns]);
            }
            None => groups[0].push(&self.samples.buffer),
        }
        groups.push(self.guest.flat.iter().collect());
        groups.extend(self.guest.private.as_ref().map(|private| private.frames.iter().collect()));
        groups
    }

    fn bind_groups(
        &self,
        launch: &Launch<'_, Array>,
        layouts: &[wgpu::BindGroupLayout],
    ) -> Vec<wgpu::BindGroup> {
        let group = |(layout, buffers): (&wgpu::BindGroupLayout, Vec<&wgpu::Buffer>)| {
            let resources = buffers.iter().map(|buffer| buffer.as_entire_binding());
            let entry = |(binding, resource)| wgpu::BindGroupEntry { binding, resource };
            let entries: Vec<_> = (0..).zip(resources).map(entry).collect();
            let descriptor = wgpu::BindGroupDescriptor { label: None, layout, entries: &entries };
            self.guest.device.device.create_bind_group(&descriptor)
        };
        layouts.iter().zip(self.buffers(launch)).map(group).collect()
    }

    /// Runs the kernel in so many workgroups, and waits for what is in these parts then.
    fn dispatch(
        &self,
        pipeline: &Pipeline,
        launch: &Launch<'_, Array>,
        groups: u32,
        parts: &[WordRange<'_>],
    ) -> Result<Vec<u8>, WgpuError> {
        let Pipeline { pipeline, layouts, .. } = pipeline;
        let device = &self.guest.device;
        device.checked(|| {
            let mut encoder = device.encoder();
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(pipeline);
            for (index, group) in (0..).zip(&self.bind_groups(launch, layouts)) {
                pass.set_bind_group(index, group, &[]);
            }
            pass.dispatch_workgroups(groups.min(ROW), groups.div_ceil(ROW), 1);
            drop(pass);
            device.read_all(encoder, parts)
        })?
    }

    /// What is read after a launch: counters, stopped lanes, and of few lanes everything.
    fn parts<'a>(&'a self, launch: &'a Launch<'_, Array>) -> [WordRange<'a>; 4] {
        let lanes = self.config.lanes;
        let along = if lanes <= ALONG { lanes } else { 0 };
        [
            self.guest.pool_part(),
            self.stopped.part::<u32>(lanes.min(ALONG)),
            launch.statuses.device().part::<Status>(along),
            launch.states.device().part::<CpuState>(along),
        ]
    }

    /// Takes note of what was read after a launch. The lanes that stopped in it.
    fn take_results(
        &mut self,
        launch: &Launch<'_, Array>,
        bytes: &[u8],
        lens: [usize; 4],
    ) -> Result<Vec<u32>, EngineError> {
        let (pool, rest) = bytes.split_at(lens[0]);
        let (stopped, rest) = rest.split_at(lens[1]);
        let (statuses, states) = rest.split_at(lens[2]);
        if !states.is_empty() {
            launch.statuses.copied(&bytemuck::pod_collect_to_vec(statuses));
            launch.states.copied(&bytemuck::pod_collect_to_vec(states));
        }
        let pool = self.guest.launched(pool)?;
        launch.control.report(pool.executed - self.executed, 0);
        self.executed = pool.executed;
        let first: Vec<u32> = bytemuck::pod_collect_to_vec(stopped);
        self.stopped_lanes(pool.stopped as usize, &first)
    }

    /// The lanes that stopped in a launch, of which the first are known.
    fn stopped_lanes(&self, count: usize, first: &[u32]) -> Result<Vec<u32>, EngineError> {
        if count <= first.len() {
            return Ok(first[..count].to_vec());
        }
        let mut lanes = vec![0u32; count];
        self.stopped.read(0, &mut lanes)?;
        Ok(lanes)
    }
}

impl Launcher for WgpuLanes {
    const NAME: &'static str = "wgpu";
    const UNBOUNDED: bool = false;

    type Array = Array;
    type Memory = Guest;
    /// What memory is like, and whether kernels know code that differs between lanes.
    type Target = (KernelTarget, bool);
    /// With whether it was in the cache.
    type Compiled = (Pipeline, bool);
    type Kernel = Pipeline;

    fn memory(&self) -> &Guest {
        &self.guest
    }

    fn memory_mut(&mut self) -> &mut Guest {
        &mut self.guest
    }

    fn translator(&mut self) -> Option<&mut dyn Translator> {
        // Kernels have no blocks that access mapped memory.
        if self.config.mapped { None } else { Some(self) }
    }

    fn most_handlers(&self) -> usize {
        // Its compiler takes minutes for more, and crashes where there are 80 levels of conditions, a case being one.
        if self.guest.device.is_llvmpipe() { 48 } else { usize::MAX }
    }

    fn key<'a>(&'a self, text: &'a str) -> KernelKey<'a> {
        key(&self.guest.device, text)
    }

    fn start_time(&self) -> Duration {
        self.start_time
    }

    fn target(&self, code: &DecodedCode) -> (KernelTarget, bool) {
        (self.kernel_target(), code.handlers.divert())
    }

    fn compiler(
        &self,
        code: &DecodedCode,
        translation: Option<&Arc<Translation>>,
    ) -> Compile<(Pipeline, bool)> {
        let record = |pc| code.record_in_kernel(pc);
        let translated = translation.map(|translation| Translated { translation, record: &record });
        let target = self.kernel_target();
        let text = kernel(&code.handlers, translated, &target);
        let device = self.guest.device.clone();
        Box::new(move || Ok(Pipeline::load(&device, &text, &target)?))
    }

    fn load(&self, compiled: (Pipeline, bool)) -> Result<(Pipeline, bool), EngineError> {
        Ok(compiled)
    }

    fn warm_up(
        &mut self,
        pipeline: &mut Pipeline,
        launch: &Launch<'_, Array>,
    ) -> Result<bool, EngineError> {
        if std::mem::replace(&mut pipeline.has_run, true) {
            return Ok(false);
        }
        self.guest.upload_map()?;
        // It executes nothing, as there are no lanes.
        let nothing = Arguments::zeroed();
        self.guest.device.write(&self.arguments, 0, bytemuck::bytes_of(&nothing))?;
        // (It waits only if something is read.)
        self.dispatch(pipeline, launch, 1, &[self.guest.pool_part()])?;
        Ok(true)
    }

    fn begin(
        &mut self,
        statuses: &mut Mirror<Status, Array>,
        max_cycles: u64,
        in_kernel: bool,
    ) -> Result<(), EngineError> {
        self.begins = in_kernel.then_some(max_cycles);
        if !in_kernel {
            for lane in 0..self.config.lanes {
                let status = statuses.get(lane)?;
                let begun = Status { budget: max_cycles, stop: stop::RUNNING, ..status };
                statuses.set(lane..lane + 1, begun)?;
            }
        }
        Ok(())
    }

    fn resume(&mut self) -> Result<(), EngineError> {
        self.begins = None;
        Ok(())
    }

    fn upload(&mut self, code: &mut DecodedCode) -> Result<(), EngineError> {
        code.upload(&mut self.code)
    }

    fn launch(
        &mut self,
        pipeline: &Pipeline,
        launch: &Launch<'_, Array>,
    ) -> Result<Launched, EngineError> {
        self.guest.upload_map()?;
        self.write_arguments(launch)?;
        self.code_start = launch.code.start();
        let parts = self.parts(launch);
        let lens = parts.each_ref().map(|part| part.len as usize);
        let start = Instant::now();
        let groups = (self.config.lanes as u32).div_ceil(WORKGROUP);
        let dispatched = self.dispatch(pipeline, launch, groups, &parts);
        let time = start.elapsed();
        let bytes = dispatched.inspect_err(|_| {
            // It may have run, or be in no state to tell.
            let _ = self.guest.recount();
        })?;
        let before = self.executed;
        let stopped = self.take_results(launch, &bytes, lens)?;
        Ok(Launched { time, executed: self.executed - before, stopped })
    }
}

impl Translator for WgpuLanes {
    fn means(&self) -> Means {
        let most = if self.guest.device.is_llvmpipe() { MOST_ON_LLVMPIPE } else { MEANS.most };
        // Each access selects a window.
        let Windows { flat, frames, .. } = self.guest.windows();
        Means { most: most / flat.max(frames) as usize, ..MEANS }
    }

    fn samples(&mut self) -> Result<Vec<u64>, EngineError> {
        let mut samples = vec![0u32; SAMPLES];
        self.samples.read(0, &mut samples)?;
        self.samples.write(0, &[0u32; SAMPLES])?;
        // All code is within a distance of 32 bits.
        let distance = |noted: u32| noted.wrapping_sub(1).wrapping_sub(self.code_start as u32);
        let address = |noted: u32| {
            self.code_start.wrapping_add_signed(i64::from(distance(noted).cast_signed()))
        };
        Ok(samples.into_iter().filter(|noted| *noted != 0).map(address).collect())
    }
}
