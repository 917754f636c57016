//! Where lanes of a GPU have their rows from, and what becomes of these: a GPU runs all rows of a run, or has some of them beside
//! workers of the `cpu` engine, to whom they go back if it does not do them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kvrm_engine::RunControl;
use kvrm_linux::Ending;

use super::super::auto::Auto;
use super::super::many::{LaneOutcome, Shared};
use super::super::outcome::Outcome;
use super::super::rows::Row;
use crate::{EngineKind, Error, Result};

/// A GPU's side of a run.
pub(in super::super) struct Side {
    pub(super) shared: Arc<Shared>,
    engine: EngineKind,
    /// Ends it.
    pub(super) control: Arc<RunControl>,
    is_beside: bool,
}

/// A row that was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// The number that its result bears.
    pub(super) lane: u64,
    /// The loan that it is, on a side.
    loan: u64,
}

/// What becomes of a program that has come to its end.
pub(super) enum Fate {
    /// Its result is handed over.
    Result,
    /// It is run again on `cpu`.
    Again,
    /// Nothing: somebody else has its row, or the run is over.
    Nothing,
}

impl Side {
    /// A GPU that runs all rows.
    pub(super) fn whole(shared: &Arc<Shared>) -> Side {
        let (engine, control) = (shared.runner.engine(), shared.control.clone());
        Side { shared: shared.clone(), engine, control, is_beside: false }
    }

    /// One beside workers.
    pub(in super::super) fn beside(shared: &Arc<Shared>, auto: &Auto, engine: EngineKind) -> Side {
        let control = auto.control_of_gpu().clone();
        Side { shared: shared.clone(), engine, control, is_beside: true }
    }

    /// The one who decides which rows a GPU beside workers has.
    fn auto(&self) -> Option<&Auto> {
        self.shared.auto.as_ref().filter(|_| self.is_beside)
    }

    /// The next row. A row that comes when nobody wants it any more is there for others.
    pub(super) fn next_row(&self) -> Option<Result<(Taken, Row)>> {
        let next = self.shared.rows.next_if(|lane, row| match self.auto() {
            None => Some(Taken { lane, loan: 0 }),
            Some(auto) => {
                let taken = Taken { lane, loan: auto.loans.lend(lane, row)? };
                self.shared.taken.fetch_add(1, Ordering::Release);
                Some(taken)
            }
        });
        Some(next?.map(|(taken, _, row)| (taken, row)))
    }

    /// Notes that so many rows go to lanes.
    pub(super) fn begin(&self, rows: usize) {
        // On a side, they have begun when they were lent.
        if !self.is_beside {
            self.shared.taken.fetch_add(rows as u64, Ordering::Release);
        }
    }

    /// Notes that nobody does so many rows that have begun.
    pub(super) fn abandon(&self, rows: usize) {
        if !self.is_beside {
            self.shared.ended.fetch_add(rows as u64, Ordering::Release);
        }
    }

    /// Notes that lanes are there.
    pub(super) fn lanes_begin(&self, lanes: usize) {
        if let Some(auto) = self.auto() {
            auto.lanes_begin(&self.shared, lanes);
        }
    }

    /// How many more rows a station may take that has so many lanes, of which some are free and some in use; `None` if it will
    /// never be more.
    pub(super) fn allowance(&self, lanes: usize, [free, used]: [usize; 2]) -> Option<usize> {
        match self.auto() {
            None => Some(free),
            Some(auto) => auto.allowance(&self.shared, lanes, [free, used]),
        }
    }

    /// True if nobody else has taken the row.
    pub(super) fn has(&self, taken: Taken) -> bool {
        self.auto().is_none_or(|auto| auto.loans.has(taken.loan))
    }

    /// A control for a lane that is about to begin.
    pub(super) fn control_of_lane(&self) -> RunControl {
        self.shared.control_of_lane(&self.control)
    }

    /// Notes that a program has left its lane.
    pub(super) fn leave(&self) {
        if let Some(auto) = self.auto() {
            auto.count(false);
        }
    }

    /// What becomes of a program that has come to its end, in its lane or elsewhere. If it has a result, the row is nobody's any
    /// more.
    pub(super) fn fate(
        &self,
        taken: Taken,
        ending: Ending,
        control: &RunControl,
        in_lane: bool,
    ) -> Fate {
        let Some(auto) = self.auto() else { return Fate::Result };
        if ending == Ending::Cancelled {
            // What a lane of a GPU has no time for, `cpu` may have.
            let is_late = control.timed_out() && self.has(taken);
            return if is_late { Fate::Again } else { Fate::Nothing };
        }
        match self.claim(taken) {
            false => Fate::Nothing,
            true => {
                if in_lane {
                    auto.count(true);
                }
                Fate::Result
            }
        }
    }

    /// True if it has the row, which nobody can take any more then.
    fn claim(&self, taken: Taken) -> bool {
        let Some(auto) = self.auto() else { return true };
        let claimed = auto.loans.end(taken.loan).is_some();
        auto.end_if_done(&self.shared);
        claimed
    }

    /// What the caller gets of a lane whose fate is a result.
    pub(super) fn ran(
        &self,
        taken: Taken,
        control: &RunControl,
        result: Result<Outcome>,
    ) -> Result<Option<LaneOutcome>> {
        self.shared.ran(taken.lane, self.engine, control, result)
    }

    /// What the caller gets of a row that could not begin, if that is not the host's fault.
    pub(super) fn refused(
        &self,
        taken: Taken,
        error: Error,
    ) -> Result<ControlFlow<(), LaneOutcome>> {
        if !matches!(error, Error::Program(_) | Error::Sandbox(_)) {
            return Err(error);
        }
        if !self.claim(taken) {
            return Ok(ControlFlow::Break(()));
        }
        let ran = self.ran(taken, &RunControl::new(), Err(error))?;
        Ok(ran.map_or(ControlFlow::Break(()), ControlFlow::Continue))
    }

    /// Takes a row that is to be run again.
    pub(super) fn take_back(&self, taken: Taken) -> Option<(u64, Row)> {
        let row = self.auto()?.loans.end(taken.loan);
        self.shared.auto.as_ref()?.end_if_done(&self.shared);
        row
    }

    /// Notes that the host has failed. If it was the device, and there are others to run its rows, the run goes on.
    pub(in super::super) fn fail(&self, error: Error) {
        match (self.auto(), &error) {
            (Some(auto), Error::Engine(_)) => auto.fail(&error),
            _ => {
                self.shared.fail(error);
                self.shared.control.cancel();
            }
        }
    }
}
