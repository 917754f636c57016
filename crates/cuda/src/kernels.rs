//! The kernels that the engine has loaded, and the one that is being compiled while lanes run.

use std::sync::Arc;

use kvrm_engine::code::DecodedCode;
use kvrm_engine::launch::{self, Contents};
use kvrm_engine::translation::{Translated, Translation};

use crate::driver::{Compiled, CudaError, Device, Kernel};
use crate::kernel::{KernelTarget, kernel};

/// Kernels by what they have; what is compiled is kept with its text.
pub(crate) type Kernels = launch::Kernels<(), Kernel, (String, Compiled), CudaError>;

/// What the kernel has that the code wants.
pub(crate) fn wanted(code: &DecodedCode) -> Contents<()> {
    Contents::of(code, code.translation().map(|translation| &**translation), ())
}

/// Loads the kernel that the code wants.
pub(crate) fn load(
    kernels: &mut Kernels,
    device: &Device,
    code: &DecodedCode,
    target: &KernelTarget,
) -> Result<(), CudaError> {
    kernels.load(wanted(code), || Kernel::load(device, &text(code, code.translation(), target)))
}

/// Begins to compile the kernel with a translation.
pub(crate) fn prepare(
    kernels: &mut Kernels,
    device: &Device,
    code: &DecodedCode,
    translation: &Arc<Translation>,
    target: &KernelTarget,
) -> Result<(), CudaError> {
    let (text, compiler) = (text(code, Some(translation), target), device.compiler());
    let compile = move || {
        compiler.make_current()?;
        let compiled = compiler.compile(&text)?;
        Ok((text, compiled))
    };
    let contents = Contents::of(code, Some(translation), ());
    kernels.prepare(contents, compile).map_err(CudaError::NoThread)
}

/// Loads the kernel that was prepared, if it is compiled, or once it is. True if it is loaded.
pub(crate) fn take_prepared(
    kernels: &mut Kernels,
    device: &Device,
    waits: bool,
) -> Result<bool, CudaError> {
    kernels.take_prepared(waits, |(text, compiled)| Kernel::of(device, &text, &compiled))
}

fn text(
    code: &DecodedCode,
    translation: Option<&Arc<Translation>>,
    target: &KernelTarget,
) -> String {
    let record = |pc| code.record_in_kernel(pc);
    let translated = translation.map(|translation| Translated { translation, record: &record });
    kernel(&code.handlers, translated, target)
}
