//! Runs that are cancelled in the middle and continued afterwards.
//!
//! Wherever a cancelled run leaves a lane, its state must be that of the reference after as many instructions, and it
//! must continue as if the run had not been cancelled.

use std::sync::atomic::{AtomicU64, Ordering};

use kvrm::{Machine, MemoryModel, RunControl, RunReport};

use crate::compare::{found, go_on, lanes_differ, stops_differ};
use crate::program::{Program, Setup};
use crate::{Source, large};

/// The most runs.
const RUNS: u64 = 12;
/// Instructions of a run: more than the CPU engine executes in shared memory before it checks whether the run is
/// cancelled.
const LONG: u64 = 300_000;
const SHORT: u64 = 10_000;

/// How a program is run.
#[derive(Debug)]
struct Plan {
    setup: Setup,
    model: MemoryModel,
    lanes: usize,
    limit: u64,
    /// For each run, how often the engine may ask before the run is cancelled.
    asked: Vec<u64>,
}

/// Cancels runs of the program in `bytes`, on the CPU engine or on the reference itself.
pub fn check(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let plan = Plan::from_source(&mut source);
    let program = match source.one_in(2) {
        true => large::program(&mut source),
        false => Program::from_source(&mut source),
    }
    .endless();
    program.check(|program| found(|| plan.difference(program)));
}

/// Returns a control that cancels the run when the engine has asked this many times.
pub(crate) fn cancels_when_asked(times: u64) -> RunControl {
    let asked = AtomicU64::new(0);
    RunControl::new().with_interrupt(move || asked.fetch_add(1, Ordering::Relaxed) >= times)
}

impl Plan {
    fn from_source(source: &mut Source<'_>) -> Plan {
        let setup = if source.one_in(8) { Setup::REFERENCE } else { Setup::from_source(source) };
        // Several lanes in one memory would not do the same in every run.
        let (model, lanes) = match source.below(4) {
            0 => (MemoryModel::Private, 2 + source.below(3) as usize),
            1 => (MemoryModel::Private, 1),
            _ => (MemoryModel::Shared, 1),
        };
        let limit = if source.one_in(3) { LONG } else { SHORT };
        // Engines ask up to twice for every lane before they execute anything.
        let first = if source.one_in(16) { 0 } else { 2 * lanes as u64 };
        let asked = |source: &mut Source<'_>| first + source.below(5);
        let asked = (0..1 + source.below(RUNS)).map(|_| asked(source)).collect();
        Plan { setup, model, lanes, limit, asked }
    }

    /// Returns how lanes of cancelled runs differ from lanes that run alone, if they do.
    fn difference(&self, program: &Program) -> kvrm::Result<Option<String>> {
        let builder = self.setup.builder().lanes(self.lanes).threads(2).model(self.model);
        let mut machine = program.start(builder.build()?)?;
        let alone = (0..self.lanes).map(|lane| program.of_lane(lane).machine(Setup::REFERENCE));
        let mut alone = alone.collect::<kvrm::Result<Vec<_>>>()?;
        // The last run is not cancelled.
        for asked in self.asked.iter().copied().chain([u64::MAX]) {
            let report = machine.run_with(self.limit, &cancels_when_asked(asked))?;
            for (lane, reference) in alone.iter_mut().enumerate() {
                follow(&machine, lane, reference, self.limit)?;
                if let Some(difference) = wrong(&machine, lane, reference, report)? {
                    return Ok(Some(format!("{self:?}, lane {lane}, asked {asked}: {difference}")));
                }
                go_on(&mut machine, lane, program.words.len())?;
                go_on(reference, 0, program.words.len())?;
            }
        }
        Ok(None)
    }
}

/// Runs the reference to where a run has left a lane.
pub(crate) fn follow(
    machine: &Machine,
    lane: usize,
    reference: &mut Machine,
    limit: u64,
) -> kvrm::Result<()> {
    let stopped = machine.stop(lane)?.is_some();
    reference.run(if stopped { limit } else { machine.cycles(lane)? })?;
    Ok(())
}

/// Returns what is wrong with a lane, after the reference has followed it.
fn wrong(
    machine: &Machine,
    lane: usize,
    reference: &Machine,
    report: RunReport,
) -> kvrm::Result<Option<String>> {
    if let Some(difference) = ends_wrongly(machine, lane, reference, report)? {
        return Ok(Some(difference));
    }
    lanes_differ(machine, lane, reference)
}

/// Returns what is wrong with how a lane ended: only cancelled runs may leave it without a stop.
pub(crate) fn ends_wrongly(
    machine: &Machine,
    lane: usize,
    reference: &Machine,
    report: RunReport,
) -> kvrm::Result<Option<String>> {
    match machine.stop(lane)? {
        Some(_) => stops_differ(machine, lane, reference),
        None if report.cancelled => {
            let counts = [machine.total_cycles(lane)?, reference.total_cycles(0)?];
            let stopped = counts[0] != counts[1];
            Ok(stopped.then(|| format!("{counts:?} instructions, {:?}", reference.stop(0))))
        }
        None => Ok(Some("no stop, though the run was not cancelled".to_string())),
    }
}
