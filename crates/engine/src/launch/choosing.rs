//! Which handlers kernels for mapped memory have, where programs are large: see `kernel::chosen`.
//!
//! What the kernel lacks is executed by the host until that has taken as long as compiling a larger kernel would. So it never
//! takes more than twice as long as it must, whatever the device and its compiler. The choice is kept on disk: the next
//! program on the device begins with the handlers of those before it, in a kernel that is compiled already.

use std::time::{Duration, Instant};

use super::{LaunchEngine, Launcher, Status};
use crate::cache::KernelCache;
use crate::code::AHEAD;
use crate::{EngineError, KernelLoad, Stop};

/// What a kernel costs before one has been compiled.
const USUAL_COST: Duration = Duration::from_secs(1);
/// Instructions that the host executes before it looks whether the run is cancelled.
const STEPS: usize = 1 << 12;
/// The most handlers that a program begins with.
const MOST_KEPT: usize = 2048;
/// What the choice is called in the cache.
const KEPT: &str = "handlers for mapped memory";

impl<L: Launcher> LaunchEngine<L> {
    /// Extends the kernel if that pays.
    pub(super) fn choose_handlers(&mut self) {
        let kernels = self.launcher.start_times().kernels;
        if kernels.is_empty() {
            self.code.meet_all();
        } else if !self.code.handlers.has_met() || self.without_handler < cost(&kernels) {
            return;
        }
        self.without_handler = Duration::ZERO;
        let most = self.launcher.most_handlers();
        if self.code.handlers.len() >= most {
            return;
        }
        // What other programs have needed, up to now: there may be a kernel that has all.
        self.code.handlers.choose_in_order(&self.kept(), most);
        let is_new = self.code.handlers.has_met();
        self.code.choose(most);
        if is_new {
            self.keep();
        }
    }

    /// Words that want the handlers of earlier programs.
    fn kept(&self) -> Vec<u32> {
        let bytes = KernelCache::open().get(&self.launcher.key(KEPT)).unwrap_or_default();
        let words = bytes.chunks_exact(4).take(MOST_KEPT);
        words.map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
    }

    fn keep(&self) {
        let words: Vec<u8> =
            self.code.handlers.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        KernelCache::open().put(&self.launcher.key(KEPT), &words);
    }

    /// Executes instructions of a lane on the host until the kernel has a handler for the next. The stop, if it has to.
    pub(super) fn step_without_handler(
        &mut self,
        lane: usize,
        mut status: Status,
    ) -> Result<Option<Stop>, EngineError> {
        let start = Instant::now();
        let mut stop = None;
        for _ in 0..STEPS {
            let pc = self.states.get(lane)?.pc;
            stop = self.code.find(self.launcher.memory_mut(), lane, pc, &mut { AHEAD })?;
            if stop.is_some() || self.code.meet(lane, pc) {
                break;
            }
            stop = self.step(1, lane, status)?;
            if stop.is_some() {
                break;
            }
            status = self.statuses.get(lane)?;
        }
        self.without_handler += start.elapsed();
        Ok(stop)
    }
}

/// What another kernel is going to cost: as much as the last that was compiled.
fn cost(kernels: &[KernelLoad]) -> Duration {
    let compiled = kernels.iter().rev().find(|kernel| !kernel.cached);
    compiled.map_or(USUAL_COST, |kernel| kernel.time)
}
