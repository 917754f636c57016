//! The kernels that an engine has loaded, and the one that is being compiled while lanes run.

use std::io;
use std::panic::resume_unwind;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::KernelLoad;
use crate::code::DecodedCode;
use crate::translation::Translation;

/// Kernels that are kept loaded: with what is translated, without, and what there was before.
const LOADED: usize = 3;

/// What a kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents<D> {
    /// How many handlers.
    handlers: usize,
    /// The number of a translation.
    translation: Option<u64>,
    /// Instructions of it.
    translated: usize,
    /// What else it depends on, on this device.
    device: D,
}

impl<D> Contents<D> {
    /// That of a kernel for some code, with a translation or without.
    pub fn of(code: &DecodedCode, translation: Option<&Translation>, device: D) -> Contents<D> {
        Contents {
            handlers: code.handlers.len(),
            translation: translation.map(Translation::number),
            translated: translation.map_or(0, Translation::instructions),
            device,
        }
    }

    fn load(&self, time: Duration, background: Duration, cached: bool) -> KernelLoad {
        let Contents { handlers, translated, .. } = *self;
        KernelLoad { handlers, translated, time, background, cached }
    }
}

/// Kernels by what they have. `K` is a kernel that is loaded, `P` one that has been compiled on another thread, and `E` why
/// that failed.
pub struct Kernels<D, K, P, E> {
    /// The last one is in use.
    loaded: Vec<(Contents<D>, K)>,
    prepared: Option<Prepared<D, P, E>>,
    loads: Vec<KernelLoad>,
}

/// A kernel that another thread compiles, or has compiled, and how long that took.
struct Prepared<D, P, E> {
    contents: Contents<D>,
    /// `None` when it has ended.
    thread: Option<JoinHandle<Result<(P, Duration), E>>>,
}

impl<D, P, E> Drop for Prepared<D, P, E> {
    fn drop(&mut self) {
        // The thread uses the device.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl<D, K, P, E> Default for Kernels<D, K, P, E> {
    fn default() -> Self {
        Kernels { loaded: Vec::new(), prepared: None, loads: Vec::new() }
    }
}

impl<D, K, P, E> Kernels<D, K, P, E>
where
    D: Copy + PartialEq,
    P: Send + 'static,
    E: Send + 'static,
{
    /// The kernel in use; there is one after a [`load`](Kernels::load).
    pub fn current(&self) -> &K {
        &self.loaded.last().expect("loaded before").1
    }

    /// The same, to change it.
    pub fn current_mut(&mut self) -> &mut K {
        &mut self.loaded.last_mut().expect("loaded before").1
    }

    /// Notes that lanes had to wait longer for the kernel that was loaded last.
    pub fn add_to_load(&mut self, time: Duration) {
        self.loads.last_mut().expect("loaded before").time += time;
    }

    /// What lanes had to wait for.
    pub fn loads(&self) -> &[KernelLoad] {
        &self.loads
    }

    /// True if the kernel that is wanted is loaded; if so, it is in use.
    pub fn has(&mut self, wanted: &Contents<D>) -> bool {
        let found = self.loaded.iter().position(|(contents, _)| contents == wanted);
        if let Some(index) = found {
            let kernel = self.loaded.remove(index);
            self.loaded.push(kernel);
        }
        found.is_some()
    }

    /// Loads a kernel, which is in use then. What loads it says whether it was in the cache.
    pub fn load(
        &mut self,
        contents: Contents<D>,
        load: impl FnOnce() -> Result<(K, bool), E>,
    ) -> Result<(), E> {
        self.add(contents, Duration::ZERO, load)
    }

    fn add(
        &mut self,
        contents: Contents<D>,
        background: Duration,
        load: impl FnOnce() -> Result<(K, bool), E>,
    ) -> Result<(), E> {
        let start = Instant::now();
        let (kernel, cached) = load()?;
        if self.loaded.len() == LOADED {
            self.loaded.remove(0);
        }
        self.loaded.push((contents, kernel));
        self.loads.push(contents.load(start.elapsed(), background, cached));
        Ok(())
    }

    /// Begins to compile a kernel on another thread.
    pub fn prepare(
        &mut self,
        contents: Contents<D>,
        compile: impl FnOnce() -> Result<P, E> + Send + 'static,
    ) -> io::Result<()> {
        let compile = move || {
            let start = Instant::now();
            Ok((compile()?, start.elapsed()))
        };
        // Two at a time would only be slower.
        self.prepared = None;
        let thread = std::thread::Builder::new().spawn(compile)?;
        self.prepared = Some(Prepared { contents, thread: Some(thread) });
        Ok(())
    }

    /// Loads the kernel that was prepared, if it is compiled, or once it is. True if it is loaded.
    pub fn take_prepared(
        &mut self,
        waits: bool,
        load: impl FnOnce(P) -> Result<(K, bool), E>,
    ) -> Result<bool, E> {
        let Some(prepared) = &mut self.prepared else { return Ok(true) };
        let is_done = |thread: &JoinHandle<_>| waits || thread.is_finished();
        let Some(thread) = prepared.thread.take_if(|thread| is_done(thread)) else {
            return Ok(false);
        };
        let contents = prepared.contents;
        let start = Instant::now();
        let compiled = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        let waited = start.elapsed();
        self.prepared = None;
        let (compiled, background) = compiled?;
        self.add(contents, background, || load(compiled))?;
        self.add_to_load(waited);
        Ok(true)
    }
}
