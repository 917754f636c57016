//! The kernels that an engine has loaded, and the one that is being compiled while lanes run.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kvrm_engine::KernelLoad;
use kvrm_engine::code::DecodedCode;
use kvrm_engine::translation::Translation;

use crate::driver::{Compiled, CudaError, Device, Kernel};
use crate::kernel::{KernelTarget, Translated, kernel};

/// What a kernel has: how many handlers, and the number of a translation.
type Contents = (usize, Option<u64>);

/// Kernels that are kept loaded: with what is translated, without, and what there was before.
const LOADED: usize = 3;

/// Kernels by what they have.
#[derive(Default)]
pub(crate) struct Kernels {
    /// The last one is in use.
    loaded: Vec<(Contents, Kernel)>,
    prepared: Option<Prepared>,
    pub(crate) loads: Vec<KernelLoad>,
}

/// A kernel that another thread compiles, or has compiled.
struct Prepared {
    contents: Contents,
    translated: usize,
    text: Arc<String>,
    /// `None` when it has ended.
    thread: Option<JoinHandle<Result<(Compiled, Duration), CudaError>>>,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // The thread uses the device.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Kernels {
    /// The kernel in use; there is one after [`Kernels::load`].
    pub(crate) fn current(&self) -> &Kernel {
        &self.loaded.last().expect("loaded before").1
    }

    /// True if the kernel that the code wants is loaded; if so, it is in use.
    pub(crate) fn has(&mut self, code: &DecodedCode) -> bool {
        let wanted =
            (code.handlers.len(), code.translation().map(|translation| translation.number()));
        let found = self.loaded.iter().position(|(contents, _)| *contents == wanted);
        if let Some(index) = found {
            let kernel = self.loaded.remove(index);
            self.loaded.push(kernel);
        }
        found.is_some()
    }

    /// Loads the kernel that the code wants.
    pub(crate) fn load(
        &mut self,
        device: &Device,
        code: &DecodedCode,
        target: &KernelTarget,
    ) -> Result<(), CudaError> {
        let start = Instant::now();
        let translation = code.translation();
        let (contents, text) = text(code, translation, target);
        let (kernel, cached) = Kernel::load(device, &text)?;
        self.add(contents, kernel);
        self.loads.push(KernelLoad {
            handlers: contents.0,
            translated: translation.map_or(0, |translation| translation.instructions()),
            time: start.elapsed(),
            background: Duration::ZERO,
            cached,
        });
        Ok(())
    }

    fn add(&mut self, contents: Contents, kernel: Kernel) {
        if self.loaded.len() == LOADED {
            self.loaded.remove(0);
        }
        self.loaded.push((contents, kernel));
    }

    /// Begins to compile the kernel with a translation.
    pub(crate) fn prepare(
        &mut self,
        device: &Device,
        code: &DecodedCode,
        translation: &Arc<Translation>,
        target: &KernelTarget,
    ) -> Result<(), CudaError> {
        let (contents, text) = text(code, Some(translation), target);
        let (text, compiler) = (Arc::new(text), device.compiler());
        let ptx = text.clone();
        let compile = move || {
            let start = Instant::now();
            compiler.make_current()?;
            Ok((compiler.compile(&ptx)?, start.elapsed()))
        };
        // Two at a time would only be slower.
        self.prepared = None;
        let thread = std::thread::Builder::new().spawn(compile).map_err(CudaError::NoThread)?;
        let translated = translation.instructions();
        self.prepared = Some(Prepared { contents, translated, text, thread: Some(thread) });
        Ok(())
    }

    /// Loads the kernel that was prepared, if it is compiled, or once it is. True if it is loaded.
    pub(crate) fn take_prepared(
        &mut self,
        device: &Device,
        waits: bool,
    ) -> Result<bool, CudaError> {
        let Some(prepared) = &mut self.prepared else { return Ok(true) };
        let is_done = |thread: &JoinHandle<_>| waits || thread.is_finished();
        let Some(thread) = prepared.thread.take_if(|thread| is_done(thread)) else {
            return Ok(false);
        };
        let start = Instant::now();
        let compiled = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        let prepared = self.prepared.take().expect("found above");
        let (compiled, background) = compiled?;
        let (kernel, cached) = Kernel::of(device, &prepared.text, &compiled)?;
        self.add(prepared.contents, kernel);
        self.loads.push(KernelLoad {
            handlers: prepared.contents.0,
            translated: prepared.translated,
            time: start.elapsed(),
            background,
            cached,
        });
        Ok(true)
    }
}

fn text(
    code: &DecodedCode,
    translation: Option<&Arc<Translation>>,
    target: &KernelTarget,
) -> (Contents, String) {
    let contents = (code.handlers.len(), translation.map(|translation| translation.number()));
    let record = |pc| code.record_in_kernel(pc);
    let translated = translation.map(|translation| Translated { translation, record: &record });
    (contents, kernel(&code.handlers, translated, target))
}
