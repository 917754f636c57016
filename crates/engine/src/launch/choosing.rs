//! Which handlers kernels for mapped memory have, where programs are large: see `kernel::chosen`.
//!
//! What the kernel lacks is executed by the host until that has taken as long as compiling a larger kernel would. So it never
//! takes more than twice as long as it must, whatever the device and its compiler. The choice can be
//! [kept](LaunchEngine::keeping_handlers) on disk: the next program on the device begins with the handlers of those before
//! it, in a kernel that is compiled already.

use std::time::{Duration, Instant};

use super::{LaunchEngine, Launcher, Status};
use crate::cache::KernelCache;
use crate::code::AHEAD;
use crate::{EngineError, Stop};

/// What a kernel costs before one has been compiled.
pub(super) const USUAL_COST: Duration = Duration::from_secs(1);
/// Instructions that the host executes before it looks whether the run is cancelled.
const STEPS: usize = 1 << 12;
/// The most handlers that a program begins with.
const MOST_KEPT: usize = 2048;
/// What the choice is called in the cache.
const KEPT: &str = "handlers for mapped memory";

impl<L: Launcher> LaunchEngine<L> {
    /// Chooses the handlers of the first kernel, and extends it when that pays.
    pub(super) fn choose_handlers(&mut self) {
        let kernels = self.launcher.start_times().kernels;
        let most = self.launcher.most_handlers();
        if kernels.is_empty() {
            self.adopt_kept(most);
            if self.code.handlers.is_empty() {
                self.code.meet_all();
                self.code.choose(most);
            }
            return;
        }
        if let Some(compiled) = kernels.last().filter(|kernel| !kernel.cached)
            && self.kernel_cost != compiled.time
        {
            // Only now is it known, and others can have the kernel.
            self.kernel_cost = compiled.time;
            self.keep();
        }
        if !self.code.handlers.has_met() || !self.extends_kernel() {
            return;
        }
        self.without_handler = Duration::ZERO;
        self.adopt_kept(most);
        self.code.choose(most);
    }

    /// True if the next kernel has the handlers that were met.
    pub(super) fn extends_kernel(&self) -> bool {
        self.without_handler >= self.kernel_cost
            && self.code.handlers.len() < self.launcher.most_handlers()
    }

    /// Notes that a lane wants the handler of the instruction that it is at.
    pub(super) fn meet(&mut self, lane: usize) -> Result<(), EngineError> {
        let pc = self.states.get(lane)?.pc;
        self.code.meet(lane, pc);
        Ok(())
    }

    /// Takes over what other programs have needed up to now: there may be a kernel that has all.
    fn adopt_kept(&mut self, most: usize) {
        if !self.keeps_handlers {
            return;
        }
        let kept = KernelCache::open().get(&self.launcher.key(KEPT)).unwrap_or_default();
        let numbers = kept.chunks_exact(4).take(1 + MOST_KEPT);
        let mut numbers =
            numbers.map(|number| u32::from_le_bytes(number.try_into().expect("four bytes")));
        let Some(milliseconds) = numbers.next() else { return };
        self.kernel_cost = Duration::from_millis(milliseconds.into());
        self.code.handlers.choose_in_order(&numbers.collect::<Vec<u32>>(), most);
    }

    /// Keeps what the last kernel cost, and words that want its handlers.
    fn keep(&self) {
        if !self.keeps_handlers {
            return;
        }
        let milliseconds = self.kernel_cost.as_millis().try_into().unwrap_or(u32::MAX);
        let words = self.code.handlers.words().into_iter();
        let kept = std::iter::once(milliseconds).chain(words).flat_map(u32::to_le_bytes);
        KernelCache::open().put(&self.launcher.key(KEPT), &kept.collect::<Vec<u8>>());
    }

    /// Executes instructions of a lane, one of `count` that have stopped, on the host until the kernel has a handler for the next. The stop, if it has to.
    pub(super) fn step_without_handler(
        &mut self,
        count: usize,
        lane: usize,
        mut status: Status,
    ) -> Result<Option<Stop>, EngineError> {
        let start = Instant::now();
        let mut stop = None;
        for _ in 0..STEPS {
            let pc = self.states.get(lane)?.pc;
            stop = self.find_code(count, lane, pc, &mut { AHEAD })?;
            if stop.is_some() || self.code.meet(lane, pc) {
                break;
            }
            stop = self.step(count, lane, status)?;
            if stop.is_some() {
                break;
            }
            status = self.statuses.get(lane)?;
        }
        // The others wait meanwhile.
        self.without_handler += start.elapsed() * count as u32;
        Ok(stop)
    }
}
