//! Opened devices. A process does not close them.
//!
//! NVIDIA's driver (580) can come to a deadlock where a thread that has used Vulkan ends while another one destroys a
//! device. So a device that no machine uses any more is kept for the next one, which then need not wait for it to open.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wgpu::Features;

/// A device that has been opened.
pub(crate) struct Opened {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    /// What was said when it was lost.
    pub(crate) lost: Arc<OnceLock<String>>,
    /// The first failure of something that nobody waited for.
    failure: Arc<Mutex<Option<String>>>,
    /// Its number, and which features it was opened with.
    kind: (usize, Features),
    process: u32,
}

/// What a process keeps.
struct Kept {
    process: u32,
    instance: wgpu::Instance,
    /// Devices that no machine uses.
    idle: Vec<Arc<Opened>>,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

const BACKENDS: wgpu::Backends =
    wgpu::Backends::VULKAN.union(wgpu::Backends::METAL).union(wgpu::Backends::DX12);

fn with_kept<T>(work: impl FnOnce(&mut Kept) -> T) -> T {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if kept.as_ref().is_some_and(|kept| kept.process != process) {
        // This process was forked: the devices are its parent's.
        std::mem::forget(kept.take());
    }
    work(kept.get_or_insert_with(|| {
        let descriptor = wgpu::InstanceDescriptor {
            backends: BACKENDS,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        };
        Kept { process, instance: wgpu::Instance::new(descriptor), idle: Vec::new() }
    }))
}

/// Everything that can be opened, by its number.
pub(crate) fn adapters() -> Vec<wgpu::Adapter> {
    let instance = with_kept(|kept| kept.instance.clone());
    pollster::block_on(instance.enumerate_adapters(BACKENDS))
}

impl Opened {
    fn new(
        adapter: &wgpu::Adapter,
        kind: (usize, Features),
    ) -> Result<Opened, wgpu::RequestDeviceError> {
        let request = wgpu::DeviceDescriptor {
            label: Some("kvrm"),
            required_features: kind.1,
            required_limits: adapter.limits(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&request))?;
        let lost = Arc::new(OnceLock::new());
        let noted = lost.clone();
        device.set_device_lost_callback(move |_, message| {
            let _ = noted.set(message);
        });
        let failure = Arc::new(Mutex::new(None));
        let noted: Arc<Mutex<Option<String>>> = failure.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.get_or_insert_with(|| error.to_string());
        }));
        Ok(Opened { device, queue, lost, failure, kind, process: std::process::id() })
    }

    /// Its number.
    pub(crate) fn index(&self) -> usize {
        self.kind.0
    }

    /// The first failure since this was last asked.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lets go of the buffers that are still to be written to. True if the device can be used again.
    fn settle(&self) -> bool {
        let work = || {
            self.queue.submit([]);
            self.device.poll(wgpu::PollType::wait_indefinitely()).is_ok()
        };
        // Where a driver says that the device is lost, wgpu panics.
        catch_unwind(AssertUnwindSafe(work)).unwrap_or(false) && self.failure().is_none()
    }
}

/// A device that a machine uses, and no other.
pub(crate) struct Lease(Arc<Opened>);

impl Lease {
    /// Opens the device of that number, unless there is one that nobody uses.
    pub(crate) fn new(
        adapter: &wgpu::Adapter,
        index: usize,
        features: Features,
    ) -> Result<Lease, wgpu::RequestDeviceError> {
        let kind = (index, features);
        let idle = with_kept(|kept| {
            let place = kept.idle.iter().position(|opened| opened.kind == kind)?;
            Some(kept.idle.swap_remove(place))
        });
        let opened = match idle {
            Some(opened) => opened,
            None => Arc::new(Opened::new(adapter, kind)?),
        };
        Ok(Lease(opened))
    }
}

impl Deref for Lease {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let opened = self.0.clone();
        let usable =
            opened.process == std::process::id() && opened.lost.get().is_none() && opened.settle();
        match usable {
            true => with_kept(|kept| kept.idle.push(opened)),
            false => std::mem::forget(opened),
        }
    }
}
