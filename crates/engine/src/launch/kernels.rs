//! The kernels that an engine has loaded, and the one that is being compiled.
//!
//! All kernels are compiled on threads of their own, so that lanes can go on meanwhile with the kernel that there is. Where
//! they cannot, the engine waits for as long as the run is not cancelled. A kernel that is not wanted any more is not waited
//! for, not even by a machine that is dropped: what compiles it owns all that it uses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Launcher;
use crate::code::DecodedCode;
use crate::kernel::Selection;
use crate::task::Task;
use crate::translation::Translation;
use crate::{Activity, EngineError, KernelLoad, RunControl};

/// Kernels that are kept loaded: with what is translated, without, and what there was before.
const LOADED: usize = 3;
/// How often it is asked whether a run that waits is cancelled.
const ASK: Duration = Duration::from_millis(10);

/// What a kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contents<T> {
    handlers: Arc<Selection>,
    /// The number of a translation.
    translation: Option<u64>,
    /// Instructions of it.
    translated: usize,
    /// What else it depends on, on this device.
    target: T,
}

impl<T: Copy + PartialEq> Contents<T> {
    /// That of a kernel for some code, with a translation or without.
    pub(super) fn of(
        code: &DecodedCode,
        translation: Option<&Translation>,
        target: T,
    ) -> Contents<T> {
        Contents {
            handlers: code.handlers.selection(),
            translation: translation.map(Translation::number),
            translated: translation.map_or(0, Translation::instructions),
            target,
        }
    }

    fn load(&self, time: Duration, background: Duration, cached: bool) -> KernelLoad {
        let (handlers, translated) = (self.handlers.len(), self.translated);
        KernelLoad { handlers, translated, time, background, cached }
    }
}

/// What compiles a kernel, on any thread.
pub type Compile<C> = Box<dyn FnOnce() -> Result<C, EngineError> + Send>;

/// A kernel that another thread compiles, or has compiled.
struct Compiling<L: Launcher> {
    contents: Contents<L::Target>,
    task: Task<Result<(L::Compiled, Duration), EngineError>>,
    /// For how long lanes have waited for it.
    waited: Duration,
    /// Lanes have run meanwhile.
    have_run: bool,
}

/// Kernels by what they have.
pub(super) struct Kernels<L: Launcher> {
    /// The last one is in use.
    loaded: Vec<(Contents<L::Target>, L::Kernel)>,
    compiling: Option<Compiling<L>>,
    loads: Vec<KernelLoad>,
}

impl<L: Launcher> Default for Kernels<L> {
    fn default() -> Self {
        Kernels { loaded: Vec::new(), compiling: None, loads: Vec::new() }
    }
}

impl<L: Launcher> Kernels<L> {
    /// The kernel in use; there is one once some are loaded.
    pub(super) fn current(&mut self) -> &mut L::Kernel {
        &mut self.loaded.last_mut().expect("loaded before").1
    }

    /// True before the first is loaded.
    pub(super) fn is_empty(&self) -> bool {
        self.loaded.is_empty()
    }

    /// Notes that lanes had to wait longer for the kernel that was loaded last.
    pub(super) fn add_to_load(&mut self, time: Duration) {
        self.loads.last_mut().expect("loaded before").time += time;
    }

    /// What lanes had to wait for.
    pub(super) fn loads(&self) -> &[KernelLoad] {
        &self.loads
    }

    /// True if the kernel that is wanted is loaded; if so, it is in use.
    pub(super) fn has(&mut self, wanted: &Contents<L::Target>) -> bool {
        let found = self.loaded.iter().position(|(contents, _)| contents == wanted);
        if let Some(index) = found {
            let kernel = self.loaded.remove(index);
            self.loaded.push(kernel);
        }
        found.is_some()
    }

    /// True if a kernel is being compiled, or waits to be loaded.
    pub(super) fn is_compiling(&self, wanted: &Contents<L::Target>) -> bool {
        self.compiling.as_ref().is_some_and(|compiling| compiling.contents == *wanted)
    }

    /// Begins to compile a kernel. The one that was being compiled is not wanted any more.
    pub(super) fn begin(
        &mut self,
        contents: Contents<L::Target>,
        compile: Compile<L::Compiled>,
    ) -> Result<(), EngineError> {
        let compile = move || {
            let start = Instant::now();
            Ok((compile()?, start.elapsed()))
        };
        let task = Task::begin(compile).map_err(EngineError::NoThread)?;
        self.compiling =
            Some(Compiling { contents, task, waited: Duration::ZERO, have_run: false });
        Ok(())
    }

    /// Loads the kernel that was being compiled, if it is there. True unless one is being compiled still.
    pub(super) fn take(&mut self, launcher: &L) -> Result<bool, EngineError> {
        if let Some(compiling) = &mut self.compiling {
            compiling.have_run = true;
        }
        self.take_within(launcher, Duration::ZERO)
    }

    /// The same, once it is there. False if the run is cancelled before that.
    pub(super) fn wait(&mut self, launcher: &L, control: &RunControl) -> Result<bool, EngineError> {
        let Some(compiling) = &self.compiling else { return Ok(true) };
        let activity = Activity::Compiling { handlers: compiling.contents.handlers.len() };
        control.during(activity, || {
            while !self.take_within(launcher, ASK)? {
                if control.is_cancelled() {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    fn take_within(&mut self, launcher: &L, time: Duration) -> Result<bool, EngineError> {
        let Some(compiling) = &mut self.compiling else { return Ok(true) };
        let start = Instant::now();
        let result = compiling.task.result_within(time);
        compiling.waited += start.elapsed();
        let Some(result) = result else { return Ok(false) };
        let Compiling { contents, waited, have_run, .. } =
            self.compiling.take().expect("found above");
        let (compiled, took) = result?;
        let start = Instant::now();
        let (kernel, cached) = launcher.load(compiled)?;
        if self.loaded.len() == LOADED {
            self.loaded.remove(0);
        }
        let background = if have_run { took.saturating_sub(waited) } else { Duration::ZERO };
        self.loads.push(contents.load(waited + start.elapsed(), background, cached));
        self.loaded.push((contents, kernel));
        Ok(true)
    }
}
