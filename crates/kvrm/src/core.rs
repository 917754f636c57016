//! The engine and the state of its runs. While a machine runs in the background, its thread holds this.

use std::time::Instant;

use kvrm_engine::{Engine, RunControl, RunRequest, Stop};

use crate::saved::Saved;
use crate::{MemoryModel, Result, RunReport};

/// An engine and the state of its runs.
pub(crate) struct Core {
    pub(crate) engine: Box<dyn Engine>,
    /// Each lane's instruction count when the last run began.
    pub(crate) counts_before: Vec<u64>,
    /// Where each lane stopped in the last run, if that was rolled back.
    pub(crate) rolled_back: Option<Vec<u64>>,
    /// The state that a run can be rolled back to; `None` if runs are not rolled back.
    saved: Option<Saved>,
}

/// The parts of a [`RunRequest`] that do not borrow.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_cycles: u64,
    pub(crate) single_launch: bool,
}

/// A run that has begun.
pub(crate) struct Begun {
    start: Instant,
    pub(crate) batches: u64,
    /// True if it was cancelled between two batches.
    pub(crate) cut_short: bool,
}

impl Core {
    pub(crate) fn new(engine: Box<dyn Engine>, model: MemoryModel) -> Core {
        let counts_before = vec![0; engine.config().lanes];
        let saved = (model == MemoryModel::DoubleBuffered).then(Saved::default);
        Core { engine, counts_before, rolled_back: None, saved }
    }

    pub(crate) fn lanes(&self) -> usize {
        self.counts_before.len()
    }

    /// Runs from beginning to end.
    pub(crate) fn run(
        &mut self,
        limits: Limits,
        breakpoints: &[u64],
        control: &RunControl,
    ) -> Result<RunReport> {
        let mut run = self.begin()?;
        let end = self.batch(&mut run, limits, breakpoints, control);
        self.end(&run, end, control)
    }

    /// Begins a run of one or more batches.
    pub(crate) fn begin(&mut self) -> Result<Begun> {
        if let Some(saved) = &mut self.saved {
            saved.save(&*self.engine)?;
        }
        self.rolled_back = None;
        let (mut counts, lanes) = (self.counts_before.iter_mut(), 0..self.engine.config().lanes);
        self.engine.visit_statuses(lanes, &mut |status| {
            *counts.next().expect("one for each lane") = status.count;
        })?;
        Ok(Begun { start: Instant::now(), batches: 0, cut_short: false })
    }

    /// Runs lanes that have not ended in an earlier batch.
    pub(crate) fn batch(
        &mut self,
        run: &mut Begun,
        limits: Limits,
        breakpoints: &[u64],
        control: &RunControl,
    ) -> Result<()> {
        let Limits { max_cycles, single_launch } = limits;
        let continues = run.batches > 0;
        run.batches += 1;
        let request = RunRequest { max_cycles, breakpoints, single_launch, continues, control };
        Ok(self.engine.run(&request)?)
    }

    /// Returns what a run has done so far.
    pub(crate) fn report(&self, run: &Begun, control: &RunControl) -> Result<RunReport> {
        let elapsed = run.start.elapsed();
        let (mut before, mut cycles, mut unfinished) = (self.counts_before.iter(), 0, false);
        self.engine.visit_statuses(0..self.lanes(), &mut |status| {
            cycles += status.count - before.next().expect("one for each lane");
            unfinished |= status.stop.is_none();
        })?;
        // A cancellation that comes after the end does not count.
        let cancelled = control.was_cancelled() && (unfinished || run.cut_short);
        let timed_out = cancelled && control.timed_out();
        let batches = run.batches;
        Ok(RunReport { cycles, elapsed, cancelled, timed_out, committed: true, batches })
    }

    /// Ends a run, and rolls it back if it failed.
    pub(crate) fn end(
        &mut self,
        run: &Begun,
        end: Result<()>,
        control: &RunControl,
    ) -> Result<RunReport> {
        let report = end.and_then(|()| self.report(run, control));
        if self.saved.is_none() {
            return report;
        }
        match report {
            Ok(report) if !report.cancelled && !self.has_failures()? => Ok(report),
            Ok(report) => {
                self.roll_back()?;
                Ok(RunReport { committed: false, ..report })
            }
            Err(error) => {
                // The error of the run says more than one of rolling it back.
                let _ = self.roll_back();
                Err(error)
            }
        }
    }

    fn has_failures(&self) -> Result<bool> {
        let mut failures = false;
        self.engine.visit_statuses(0..self.lanes(), &mut |status| {
            failures |= status.stop.as_ref().is_some_and(Stop::is_failure);
        })?;
        Ok(failures)
    }

    fn roll_back(&mut self) -> Result<()> {
        let mut pcs = Vec::with_capacity(self.lanes());
        self.engine.visit_states(0..self.lanes(), &mut |state| pcs.push(state.pc))?;
        self.rolled_back = Some(pcs);
        let saved = self.saved.as_ref().expect("only runs that were saved are rolled back");
        saved.restore(&mut *self.engine)
    }
}
