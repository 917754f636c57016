//! Runs in batches, with a callback between them.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use kvrm_engine::RunControl;

use crate::core::{Begun, Core, Limits};
use crate::{Error, Machine, Result, RunReport};

/// How a run is cut into batches.
///
/// ```
/// use kvrm::Batches;
/// let batches = Batches { max: Some(10), ..Batches::of(1_000_000) };
/// assert_eq!((batches.cycles, batches.timeout), (1_000_000, None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batches {
    /// Instructions of each lane in a batch.
    pub cycles: u64,
    /// Limit of batches; `None` means no limit.
    pub max: Option<u64>,
    /// Time after which the run is cancelled, even in the middle of a batch: the report then says
    /// [`timed_out`](RunReport::timed_out).
    pub timeout: Option<Duration>,
}

impl Batches {
    /// Returns batches of this many instructions, without a limit.
    pub fn of(cycles: u64) -> Batches {
        Batches { cycles, max: None, timeout: None }
    }
}

impl Machine {
    /// Runs in batches until every lane has stopped for a reason other than the end of its batch.
    ///
    /// After each batch except the last, it calls `between` with the machine and the report so far. If that
    /// returns `Break`, the run ends, as it does after the last of a limited number of batches: lanes have the
    /// stop [`Stop::MaxCycles`](crate::Stop::MaxCycles). Lanes do exactly what they would do in one
    /// [`run`](Self::run) of as many instructions.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use kvrm::{Batches, Machine, Reg, Stop};
    /// let mut machine = Machine::builder().build()?;
    /// machine.load(0, &[0x9100_0400u32, 0x17ff_ffff].map(u32::to_le_bytes).concat())?; // add x0, x0, #1; b .-4
    /// let mut seen = Vec::new();
    /// let report = machine.run_batches(Batches::of(10), |machine, report| {
    ///     seen.push((report.cycles, machine.register(0, Reg::X(0)).expect("it stands still")));
    ///     if seen.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// assert_eq!(seen, [(10, 5), (20, 10), (30, 15)]);
    /// assert_eq!((report.batches, machine.stop(0)?), (3, Some(Stop::MaxCycles)));
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn run_batches(
        &mut self,
        batches: Batches,
        between: impl FnMut(&Machine, &RunReport) -> ControlFlow<()>,
    ) -> Result<RunReport> {
        self.run_batches_with(batches, &RunControl::new(), between)
    }

    /// Like [`run_batches`](Self::run_batches), with a control to watch and cancel the run from another thread.
    /// The timeout of `batches` applies unless the control has its own deadline.
    pub fn run_batches_with(
        &mut self,
        batches: Batches,
        control: &RunControl,
        mut between: impl FnMut(&Machine, &RunReport) -> ControlFlow<()>,
    ) -> Result<RunReport> {
        if batches.cycles == 0 {
            return Err(Error::EmptyBatches);
        }
        let mut run = self.core_mut()?.begin()?;
        let end = self.batch_after_batch(&mut run, batches, control, &mut between);
        self.core_mut()?.end(&run, end, control)
    }

    fn batch_after_batch(
        &mut self,
        run: &mut Begun,
        batches: Batches,
        control: &RunControl,
        between: &mut dyn FnMut(&Machine, &RunReport) -> ControlFlow<()>,
    ) -> Result<()> {
        // A deadline that is too far away to be represented is none.
        if let Some(end) = batches.timeout.and_then(|timeout| Instant::now().checked_add(timeout)) {
            control.cancel_at(end);
        }
        let limits = Limits { max_cycles: batches.cycles, single_launch: false };
        while batches.max.is_none_or(|max| run.batches < max) {
            let breakpoints = std::mem::take(&mut self.breakpoints);
            let core = self.core_mut()?;
            let result = core.batch(run, limits, &breakpoints, control);
            self.breakpoints = breakpoints;
            result?;
            let core = self.core()?;
            let is_last = batches.max.is_some_and(|max| run.batches == max);
            let going_on = core.going_on()?;
            if is_last || going_on == 0 {
                break;
            }
            let report = core.report(run, control)?;
            let stop = !control.was_cancelled() && between(self, &report).is_break();
            run.cut_short = control.was_cancelled();
            if stop || run.cut_short {
                break;
            }
            control.go_on(going_on);
        }
        Ok(())
    }
}

impl Core {
    /// Returns how many lanes have only reached the end of their batch.
    fn going_on(&self) -> Result<u64> {
        let mut count = 0;
        self.engine.visit_statuses(0..self.lanes(), &mut |status| {
            count += u64::from(!status.is_final());
        })?;
        Ok(count)
    }
}
