//! The kernels that the engine has loaded, and the one that is being compiled while lanes run.

use std::sync::Arc;

use kvrm_engine::code::DecodedCode;
use kvrm_engine::launch::{self, Contents};
use kvrm_engine::translation::{Translated, Translation};

use crate::device::{Device, WgpuError};
use crate::kernel::{KernelTarget, kernel};
use crate::pipeline::Pipeline;

/// What kernels depend on beside their handlers and what is translated: what memory is like, and whether they know code
/// that differs between lanes.
type Other = (KernelTarget, bool);

/// Kernels by what they have. What another thread has compiled is ready to run; it says whether that was in the cache.
pub(crate) type Kernels = launch::Kernels<Other, Pipeline, (Pipeline, bool), WgpuError>;

fn contents(
    code: &DecodedCode,
    translation: Option<&Arc<Translation>>,
    memory: &KernelTarget,
) -> Contents<Other> {
    Contents::of(code, translation.map(|it| &**it), (*memory, code.handlers.divert()))
}

/// True if the kernel that the code wants is loaded; if so, it is in use.
pub(crate) fn has(kernels: &mut Kernels, code: &DecodedCode, memory: &KernelTarget) -> bool {
    kernels.has(&contents(code, code.translation(), memory))
}

/// Loads the kernel that the code wants.
pub(crate) fn load(
    kernels: &mut Kernels,
    device: &Device,
    code: &DecodedCode,
    memory: &KernelTarget,
) -> Result<(), WgpuError> {
    let translation = code.translation();
    let load = || Pipeline::load(device, &text(code, translation, memory), memory);
    kernels.load(contents(code, translation, memory), load)
}

/// Begins to compile the kernel with a translation.
pub(crate) fn prepare(
    kernels: &mut Kernels,
    device: &Device,
    code: &DecodedCode,
    translation: &Arc<Translation>,
    memory: &KernelTarget,
) -> Result<(), WgpuError> {
    let contents = contents(code, Some(translation), memory);
    let text = text(code, Some(translation), memory);
    let (device, memory) = (device.clone(), *memory);
    let compile = move || Pipeline::load(&device, &text, &memory);
    kernels.prepare(contents, compile).map_err(WgpuError::NoThread)
}

fn text(
    code: &DecodedCode,
    translation: Option<&Arc<Translation>>,
    memory: &KernelTarget,
) -> String {
    let record = |pc| code.record_in_kernel(pc);
    let translated = translation.map(|translation| Translated { translation, record: &record });
    kernel(&code.handlers, translated, memory)
}
