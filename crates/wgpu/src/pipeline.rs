//! Compiled kernels, and what they are bound to.

use kvrm_engine::MemoryModel;
use kvrm_engine::cache::{KernelCache, KernelKey, Turn};

use crate::device::{Device, WgpuError, WordRange};
use crate::kernel::KernelTarget;

/// A kernel that is ready to run.
pub struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    /// One for each bind group.
    pub(crate) layouts: Vec<wgpu::BindGroupLayout>,
    /// It has been executed; some drivers compile it only then.
    pub(crate) has_run: bool,
}

impl Pipeline {
    /// Compiles a kernel, or takes it from the cache of this computer. True if it was there.
    pub(crate) fn load(
        device: &Device,
        text: &str,
        memory: &KernelTarget,
    ) -> Result<(Pipeline, bool), WgpuError> {
        // Another engine may be compiling the same.
        let _turn = Turn::of(&key(device, text));
        let cache = Cache::open(device, text);
        if device.is_llvmpipe() && !cache.found {
            compile_elsewhere(device, text, memory)?;
        }
        let pipeline = Pipeline::new(device, text, memory, cache.cache.as_ref())?;
        cache.keep(device, text);
        Ok((pipeline, cache.found))
    }

    fn new(
        device: &Device,
        text: &str,
        memory: &KernelTarget,
        cache: Option<&wgpu::PipelineCache>,
    ) -> Result<Pipeline, WgpuError> {
        let (pipeline, layouts) = device.checked(|| {
            let layouts = layouts(&device.device, memory);
            (compile(&device.device, text.to_string(), &layouts, cache), layouts)
        })?;
        Ok(Pipeline { pipeline, layouts, has_run: false })
    }
}

/// Makes llvmpipe compile a kernel, which it does when the kernel is executed. Done on the device whose lanes go on meanwhile,
/// these would wait for it. On another, it is in Mesa's cache afterwards.
fn compile_elsewhere(device: &Device, text: &str, memory: &KernelTarget) -> Result<(), WgpuError> {
    /// Enough for whatever a kernel has bound, if there are no lanes.
    const BYTES: u64 = 1 << 16;
    let device = device.another()?;
    let kernel = Pipeline::new(&device, text, memory, None)?;
    let arguments = device.uniform("no arguments", BYTES)?;
    // A buffer is for reading or for writing.
    let [read, written] = [device.buffer("nothing", BYTES)?, device.buffer("nothing", BYTES)?];
    let groups = kernel.layouts.iter().zip(bindings(memory)).map(|(layout, types)| {
        let buffer = |ty: &wgpu::BufferBindingType| match ty {
            wgpu::BufferBindingType::Uniform => &arguments,
            wgpu::BufferBindingType::Storage { read_only: true } => &read,
            wgpu::BufferBindingType::Storage { read_only: false } => &written,
        };
        let resources = types.iter().map(|ty| buffer(ty).as_entire_binding());
        let entry = |(binding, resource)| wgpu::BindGroupEntry { binding, resource };
        let entries: Vec<_> = (0..).zip(resources).map(entry).collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout, entries: &entries };
        device.device.create_bind_group(&descriptor)
    });
    device.checked(|| {
        let mut encoder = device.encoder();
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&kernel.pipeline);
        for (index, group) in (0..).zip(groups) {
            pass.set_bind_group(index, &group, &[]);
        }
        pass.dispatch_workgroups(1, 1, 1);
        drop(pass);
        // (It waits only if something is read.)
        let part = WordRange { buffer: &written, offset: 0, len: 8 };
        device.read_all(encoder, &[part]).map(|_| ())
    })?
}

/// Compiles a kernel, without the checks that its text does not need.
fn compile(
    device: &wgpu::Device,
    text: String,
    layouts: &[wgpu::BindGroupLayout],
    cache: Option<&wgpu::PipelineCache>,
) -> wgpu::ComputePipeline {
    let source = wgpu::ShaderSource::Wgsl(text.into());
    let descriptor = wgpu::ShaderModuleDescriptor { label: None, source };
    // SAFETY: every index is checked by the kernel itself, its loops end, and it never divides by zero.
    let module = unsafe {
        device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
    };
    let layouts: Vec<_> = layouts.iter().map(Some).collect();
    let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &layouts,
        immediate_size: 0,
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&layout),
        module: &module,
        entry_point: Some("run"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache,
    })
}

fn layouts(device: &wgpu::Device, memory: &KernelTarget) -> Vec<wgpu::BindGroupLayout> {
    bindings(memory).iter().map(|types| layout(device, types)).collect()
}

/// What is bound, by bind group: what is always there, windows of flat memory, windows of frames.
fn bindings(memory: &KernelTarget) -> Vec<Vec<wgpu::BufferBindingType>> {
    use wgpu::BufferBindingType::{Storage, Uniform};
    let (read, write) = (Storage { read_only: true }, Storage { read_only: false });
    let mut groups = vec![vec![Uniform, write, write, write, write, read, read, write, write]];
    match memory.mapped {
        true => groups[0].extend([read, read, read]),
        false => groups[0].push(write),
    }
    let flat = match memory.model {
        MemoryModel::Shared if !memory.read_only => write,
        MemoryModel::Shared | MemoryModel::Private => read,
    };
    let windows = memory.windows;
    groups.push(vec![flat; windows.flat as usize]);
    if windows.frames > 0 {
        groups.push(vec![write; windows.frames as usize]);
    }
    groups
}

fn layout(device: &wgpu::Device, types: &[wgpu::BufferBindingType]) -> wgpu::BindGroupLayout {
    let entry = |(binding, ty): (u32, &wgpu::BufferBindingType)| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: *ty,
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let entries: Vec<_> = (0..).zip(types).map(entry).collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &entries,
    })
}

/// What the driver has compiled before, where it gives that away (Vulkan).
struct Cache {
    cache: Option<wgpu::PipelineCache>,
    found: bool,
}

impl Cache {
    fn open(device: &Device, text: &str) -> Cache {
        if !device.features.contains(wgpu::Features::PIPELINE_CACHE) {
            return Cache { cache: None, found: false };
        }
        let data = KernelCache::open().get(&key(device, text));
        let descriptor =
            wgpu::PipelineCacheDescriptor { label: None, data: data.as_deref(), fallback: true };
        // SAFETY: the data is what `keep` got from the same driver, with a checksum.
        let cache = unsafe { device.device.create_pipeline_cache(&descriptor) };
        Cache { cache: Some(cache), found: data.is_some() }
    }

    fn keep(&self, device: &Device, text: &str) {
        if let (Some(cache), false) = (&self.cache, self.found)
            && let Some(data) = cache.get_data()
        {
            KernelCache::open().put(&key(device, text), &data);
        }
    }
}

/// Where the cache keeps what belongs to a device.
pub(crate) fn key<'a>(device: &'a Device, text: &'a str) -> KernelKey<'a> {
    KernelKey { engine: "wgpu", text, device: &device.name, driver: &device.driver }
}
