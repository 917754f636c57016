//! Compiled kernels, and what they are bound to.

use kvrm_engine::MemoryModel;
use kvrm_engine::cache::{KernelCache, KernelKey};

use crate::device::{Device, WgpuError};
use crate::kernel::KernelTarget;

/// A kernel that is ready to run.
pub(crate) struct Pipeline {
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
        let cache = Cache::open(device, text);
        let (pipeline, layouts) = device.checked(|| {
            let layouts = layouts(&device.device, memory);
            (compile(&device.device, text.to_string(), &layouts, cache.cache.as_ref()), layouts)
        })?;
        cache.keep(device, text);
        Ok((Pipeline { pipeline, layouts, has_run: false }, cache.found))
    }
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

/// The layouts of the bind groups: the fixed one, windows of flat memory, windows of frames.
fn layouts(device: &wgpu::Device, memory: &KernelTarget) -> Vec<wgpu::BindGroupLayout> {
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
    groups.iter().map(|types| layout(device, types)).collect()
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
