//! Which handlers kernels have: see `kernel::chosen`.
//!
//! The first kernel of a program has the handlers of the code that is found from where lanes begin, and of what is
//! [probably code](DecodedCode::sweep) around it; unless the [cache](super::index) has a kernel with all of them that is not
//! much larger. Where lanes want a handler that the kernel lacks, an extended one is taken from the cache or compiled while
//! other lanes go on, and takes over between two launches.
//!
//! In flat memory, lanes wait for a handler that they lack. In mapped memory, programs are large, and want hundreds of
//! handlers, most of them for a few instructions: there, the host executes what the kernel lacks until that has taken as long
//! as compiling a larger kernel would. So it never takes more than twice as long as it must, whatever the device and its
//! compiler. The host also does it where a kernel has as many handlers as the device's compiler can do with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::kernels::Contents;
use super::{LaunchEngine, Launcher, Status};
use crate::code::AHEAD;
#[cfg(doc)]
use crate::code::DecodedCode;
use crate::kernel::{Selection, Wanted};
use crate::{EngineError, KernelLoad, RunControl, Stop};

/// What a kernel costs before one has been compiled.
const USUAL_COST: Duration = Duration::from_secs(1);
/// Instructions that the host executes before it looks whether the run is cancelled.
const STEPS: usize = 1 << 12;
/// How long the host executes for lanes, in one round, while a kernel is compiled that has what they want.
const ROUND: Duration = Duration::from_millis(50);
/// Handlers of what is probably code are added to those of code as long as a kernel has fewer than this: a kernel of a hundred
/// takes a GPU's compiler half a second to two.
const SWEPT: usize = 96;
/// How much of what a program probably wants the first kernel should have, if the program need not wait for it.
const ENOUGH: f64 = 0.95;

/// What is known of the handlers that kernels should have.
pub(super) struct Choosing {
    /// Which kernels there are is kept on disk.
    pub(super) keeps: bool,
    /// The handlers of the kernel that is to take over.
    next: Option<Arc<Selection>>,
    /// Lanes that wait for it.
    waiting: usize,
    /// Time that lanes have waited for the host to execute what the kernel has no handler for, since it was extended.
    without_handler: Duration,
    /// What another kernel is going to cost: as much as the last that was compiled, by this program or another.
    pub(super) kernel_cost: Duration,
    /// How many of the kernels that were loaded are in the index.
    noted: usize,
}

impl Default for Choosing {
    fn default() -> Choosing {
        Choosing {
            keeps: true,
            next: None,
            waiting: 0,
            without_handler: Duration::ZERO,
            kernel_cost: USUAL_COST,
            noted: 0,
        }
    }
}

impl Choosing {
    /// Notes that lanes have been seen to.
    pub(super) fn begin_round(&mut self) {
        self.waiting = 0;
    }

    /// Makes the next kernel have the handlers that were met, whatever it costs.
    pub(super) fn extend_soon(&mut self) {
        self.without_handler = self.without_handler.max(self.kernel_cost);
    }

    /// True if another kernel is going to take over.
    pub(super) fn is_extending(&self) -> bool {
        self.next.is_some()
    }
}

/// True if a kernel with so many handlers will do for one that would have fewer: a larger one is slower.
fn is_near(handlers: usize, wanted: usize) -> bool {
    handlers <= (wanted + wanted / 2).max(wanted + 24)
}

impl<L: Launcher> LaunchEngine<L> {
    /// Chooses the handlers of the first kernel, and extends it when that pays. So many lanes are running; if all of them
    /// wait for a kernel, this does.
    pub(super) fn choose_handlers(
        &mut self,
        running: usize,
        control: &RunControl,
    ) -> Result<(), EngineError> {
        if self.kernels.is_empty() && self.code.handlers.is_empty() {
            let first = self.first_selection()?;
            self.code.choose(first);
        }
        if self.choosing.next.is_none() && self.extends_kernel() {
            self.choosing.next = Some(self.extended_selection()?);
        }
        let Some(next) = self.choosing.next.clone() else { return Ok(()) };
        if self.config.translate_after == 0 {
            // Lanes wait for what is translated, which is in another kernel.
            self.take_next(next);
            return Ok(());
        }
        let contents = self.contents_with(&next);
        if !self.kernels.has(&contents) {
            if !self.kernels.is_compiling(&contents) {
                let launcher = &self.launcher;
                let compile = self.code.with_choice(&next, |code| launcher.compiler(code, None));
                self.kernels.begin(contents.clone(), compile)?;
            }
            match self.choosing.waiting >= running {
                true => self.kernels.wait(&self.launcher, control)?,
                false => self.kernels.take(&self.launcher)?,
            };
        }
        if self.kernels.has(&contents) {
            self.take_next(next);
        }
        Ok(())
    }

    fn take_next(&mut self, next: Arc<Selection>) {
        self.choosing.next = None;
        self.choosing.without_handler = Duration::ZERO;
        self.code.choose(next);
    }

    /// Chooses the handlers that all decoded code wants: where code is translated before it runs, lanes wait anyway.
    pub(super) fn choose_all(&mut self) -> Result<(), EngineError> {
        let wanted = self.code.wanted();
        if self.has_room() && !wanted.are_in(&self.code.handlers.selection()) {
            self.code.handlers.meet_all(wanted);
            let next = self.extended_selection()?;
            self.take_next(next);
        }
        Ok(())
    }

    /// What the kernel with other handlers has.
    fn contents_with(&mut self, selection: &Arc<Selection>) -> Contents<L::Target> {
        let target = self.launcher.target(&self.code);
        self.code.with_choice(selection, |code| Contents::of(code, None, target))
    }

    /// The handlers of a program's first kernel.
    fn first_selection(&mut self) -> Result<Arc<Selection>, EngineError> {
        let most = self.launcher.most_handlers();
        let needed = self.code.wanted();
        if let Some(words) = self.known_handlers()?.filter(|_| self.choosing.keeps) {
            let selection = self.code.handlers.of_words(&words);
            if needed.are_in(&selection) || selection.len() >= most {
                return Ok(Arc::new(selection));
            }
        }
        let mut own = needed.by_frequency();
        let mut all = self.code.sweep(self.launcher.memory())?;
        let swept = all.clone().without(&Selection::new(own.iter().copied())).by_frequency();
        own.extend(swept.into_iter().take(SWEPT.saturating_sub(own.len())));
        own.truncate(most);
        let own = Selection::new(own);
        // What there is no room for does not matter.
        all.add_all(&needed);
        let (needed, all) = (needed.only(&own), all.only(&own));
        let enough = if self.config.mapped { 0.0 } else { ENOUGH };
        Ok(self.find_kernel(&needed, &all, enough).unwrap_or_else(|| Arc::new(own)))
    }

    /// The handlers of a kernel that has more than the one there is.
    fn extended_selection(&mut self) -> Result<Arc<Selection>, EngineError> {
        let most = self.launcher.most_handlers();
        let (there, met) = (self.code.handlers.selection(), self.code.handlers.met().clone());
        let mut needed = Wanted::default();
        there.handlers().iter().for_each(|handler| needed.add(*handler, 1));
        needed.add_all(&met);
        let mut all = needed.clone();
        let mut own = there.handlers().to_vec();
        own.extend(met.by_frequency());
        if !self.config.mapped {
            let wanted = self.code.wanted();
            all.add_all(&wanted);
            own.extend(wanted.by_frequency());
            let swept = self.code.sweep(self.launcher.memory())?;
            let swept = swept.without(&Selection::new(own.iter().copied())).by_frequency();
            own.extend(swept.into_iter().take(SWEPT.saturating_sub(own.len())));
        }
        let own = Selection::new(own);
        let own = Selection::new(own.handlers().iter().copied().take(most));
        let (needed, all) = (needed.only(&own), all.only(&own));
        Ok(self.find_kernel(&needed, &all, 0.0).unwrap_or_else(|| Arc::new(own)))
    }

    /// The handlers of a kernel that was compiled before and has all that is needed: of those that have enough of what is
    /// wanted, the one that has most of it.
    fn find_kernel(
        &mut self,
        needed: &Wanted,
        wanted: &Wanted,
        enough: f64,
    ) -> Option<Arc<Selection>> {
        let most = self.launcher.most_handlers();
        let uses_vectors =
            self.code.handlers.use_vectors_of(&Selection::new(wanted.by_frequency()));
        let mut best: Option<(f64, Selection, Duration)> = None;
        for known in self.known_kernels() {
            let selection = self.code.handlers.of_words(&known.words);
            // (In mapped memory, programs are going to want more anyway.)
            let is_near = selection.len() <= most
                && (self.config.mapped || is_near(selection.len(), wanted.len()));
            // Registers that nobody needs cost time, too.
            let is_like = uses_vectors || !self.code.handlers.use_vectors_of(&selection);
            let covered = wanted.covered_by(&selection);
            if !is_near || !is_like || !needed.are_in(&selection) || covered < enough {
                continue;
            }
            let is_better = best.as_ref().is_none_or(|(best, other, _)| {
                covered > *best || covered == *best && selection.len() < other.len()
            });
            if is_better {
                best = Some((covered, selection, known.cost()));
            }
        }
        let (_, selection, cost) = best?;
        self.choosing.kernel_cost = cost;
        Some(Arc::new(selection))
    }

    /// Takes note of kernels that were compiled, after a launch.
    pub(super) fn note_kernels(&mut self) {
        let loads = self.kernels.loads();
        let new = loads.len() - std::mem::replace(&mut self.choosing.noted, loads.len());
        let compiled = |load: &&KernelLoad| !load.cached && load.translated == 0;
        let Some(load) = loads.iter().rev().take(new).find(compiled) else { return };
        self.choosing.kernel_cost = load.time + load.background;
        self.note_kernel(&self.code.handlers.selection(), self.choosing.kernel_cost);
    }

    /// True if the next kernel has the handlers that were met.
    fn extends_kernel(&self) -> bool {
        !self.code.handlers.met().is_empty()
            && self.has_room()
            && (!self.config.mapped || self.choosing.without_handler >= self.choosing.kernel_cost)
    }

    /// True if a kernel may have more handlers.
    fn has_room(&self) -> bool {
        self.code.handlers.len() < self.launcher.most_handlers()
    }

    /// Sees to a lane, one of `count` that have stopped, that wants a handler which the kernel lacks. `begin` is when the first of
    /// them was seen to. The stop, if it has to.
    pub(super) fn serve_without_handler(
        &mut self,
        count: usize,
        lane: usize,
        status: Status,
        begin: Instant,
    ) -> Result<Option<Stop>, EngineError> {
        let is_coming = match self.config.mapped {
            true if self.choosing.is_extending() => begin.elapsed() > ROUND,
            true => count > 1 && self.extends_kernel(),
            false => self.has_room() || self.choosing.is_extending(),
        };
        match is_coming {
            true => {
                self.choosing.waiting += 1;
                let pc = self.states.get_of(count, lane)?.pc;
                self.code.meet(lane, pc);
                Ok(None)
            }
            false => self.step_without_handler(count, lane, status),
        }
    }

    /// Executes instructions of a lane, one of `count` that have stopped, on the host until the kernel has a handler for the
    /// next. The stop, if it has to.
    fn step_without_handler(
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
        self.choosing.without_handler += start.elapsed() * count as u32;
        Ok(stop)
    }
}
