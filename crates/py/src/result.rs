//! Results and progress of runs.

use std::sync::Arc;

use kvrm::{Activity, Machine, RunReport};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::stops::{Stop, Stops};

/// Everything that a result needs from a stopped machine.
pub(crate) struct Outcome {
    pub(crate) report: RunReport,
    cycles: Arc<Vec<u64>>,
    pcs: Arc<Vec<u64>>,
    stops: Stops,
}

impl Outcome {
    pub(crate) fn of(machine: &Machine, report: RunReport) -> kvrm::Result<Outcome> {
        let statuses = machine.statuses()?;
        let before = machine.counts_before()?;
        let cycles = statuses.iter().zip(before).map(|(status, before)| status.count - before);
        let mut pcs = vec![0; machine.lanes()];
        machine.read_stopped_at(&mut pcs)?;
        let (reasons, pcs) = (statuses.iter().map(|status| status.stop).collect(), Arc::new(pcs));
        let stops = Stops::new(Arc::new(reasons), pcs.clone());
        Ok(Outcome { report, cycles: Arc::new(cycles.collect()), pcs, stops })
    }
}

/// The result of a run. It is a copy: later runs do not change it.
///
/// >>> import kvrm
/// >>> m = kvrm.Machine(lanes=3)
/// >>> m.load([0x91000400, 0xd4400000])                # add x0, x0, #1; hlt #0
/// >>> result = m.run()
/// >>> result.cycles, result.stop.reason, result.cancelled
/// (3, 'HALT', False)
/// >>> result.cycles_per_lane.tolist(), result.pcs.tolist()
/// ([1, 1, 1], [4, 4, 4])
/// >>> result.stops
/// <kvrm.Stops of 3 lanes: 3 HALT>
#[pyclass(frozen, module = "kvrm")]
pub(crate) struct RunResult(pub(crate) Arc<Outcome>);

#[pymethods]
impl RunResult {
    /// Instructions completed, over all lanes.
    #[getter]
    fn cycles(&self) -> u64 {
        self.0.report.cycles
    }

    /// Instructions that each lane completed, as an array.
    #[getter]
    fn cycles_per_lane<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_slice(py, &self.0.cycles)
    }

    /// The PC at which each lane stopped, as an array. After a run that was rolled back, where it failed.
    #[getter]
    fn pcs<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_slice(py, &self.0.pcs)
    }

    /// Why each lane stopped: a sequence of Stop.
    #[getter]
    fn stops(&self) -> Stops {
        self.0.stops.clone()
    }

    /// Why each lane stopped, as numbers: see StopReason.
    #[getter]
    fn stop_codes<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_vec(py, self.0.stops.codes())
    }

    /// Why lanes stopped: the most common stop, as the first lane with it has it.
    #[getter]
    fn stop(&self) -> Stop {
        self.0.stops.commonest()
    }

    /// Time of the run in seconds.
    #[getter]
    fn elapsed_seconds(&self) -> f64 {
        self.0.report.elapsed.as_secs_f64()
    }

    /// Instructions per second, over all lanes.
    #[getter]
    fn ips(&self) -> f64 {
        self.0.report.ips()
    }

    /// True if the run was cancelled, by a call or by its timeout. Lanes that had not stopped can continue.
    #[getter]
    fn cancelled(&self) -> bool {
        self.0.report.cancelled
    }

    /// True if its timeout cancelled the run.
    #[getter]
    fn timed_out(&self) -> bool {
        self.0.report.timed_out
    }

    /// Number of batches: one, except for run_batches.
    #[getter]
    fn batch_count(&self) -> u64 {
        self.0.report.batches
    }

    /// False if memory is double-buffered and the run was rolled back.
    #[getter]
    fn committed(&self) -> bool {
        self.0.report.committed
    }

    fn __repr__(&self) -> String {
        let RunReport { cycles, cancelled, committed, .. } = self.0.report;
        let seconds = self.elapsed_seconds();
        let stops = match self.0.cycles.len() {
            1 => self.0.stops.get(0).__str__(),
            lanes => format!("{lanes} lanes ({})", self.counts()),
        };
        let cancelled = match cancelled {
            true if self.timed_out() => ", timed out",
            true => ", cancelled",
            false => "",
        };
        let committed = if committed { "" } else { ", rolled back" };
        format!(
            "<kvrm.RunResult {cycles} instructions in {seconds:.6} s, {stops}{cancelled}{committed}>"
        )
    }

    fn _repr_html_(&self) -> String {
        let RunReport { cycles, cancelled, committed, batches, .. } = self.0.report;
        let mut rows = vec![
            ("lanes", self.0.cycles.len().to_string()),
            ("instructions", cycles.to_string()),
            ("seconds", format!("{:.6}", self.elapsed_seconds())),
            ("instructions per second", format!("{:.3e}", self.ips())),
            ("stops", self.counts()),
        ];
        rows.extend((batches > 1).then(|| ("batches", batches.to_string())));
        let why = if self.timed_out() { "by its timeout" } else { "yes" };
        rows.extend(cancelled.then(|| ("cancelled", why.to_string())));
        rows.extend((!committed).then(|| ("committed", "no: rolled back".to_string())));
        let row = |(name, value)| format!("<tr><th>{name}</th><td>{value}</td></tr>");
        format!("<table>{}</table>", rows.into_iter().map(row).collect::<String>())
    }
}

impl RunResult {
    /// Returns text such as "3 HALT, 1 FAULT", which needs no escaping in HTML.
    fn counts(&self) -> String {
        let counts =
            self.0.stops.counts().into_iter().map(|(name, count)| format!("{count} {name}"));
        counts.collect::<Vec<_>>().join(", ")
    }
}

/// The progress of a run.
///
/// >>> import kvrm
/// >>> m = kvrm.Machine()
/// >>> m.load([0x14000000])                            # b .
/// >>> m.start(1000)
/// >>> _ = m.wait()
/// >>> progress = m.poll()
/// >>> progress.running, progress.cycles, progress.stopped, progress.activity
/// (False, 1000, 1, None)
#[pyclass(frozen, get_all, module = "kvrm")]
pub(crate) struct Progress {
    /// True until the run has ended.
    running: bool,
    /// Instructions completed so far, over all lanes. Lags slightly behind.
    cycles: u64,
    /// Lanes that have stopped so far.
    stopped: u64,
    /// Time in seconds since the run started, or the time it took.
    elapsed_seconds: f64,
    /// What the run does instead of executing instructions, such as "compiling a kernel of 31 handlers"; or
    /// None.
    activity: Option<String>,
}

impl Progress {
    pub(crate) fn new(progress: kvrm::Progress) -> Progress {
        let kvrm::Progress { running, cycles, stopped, elapsed, activity } = progress;
        let elapsed_seconds = elapsed.as_secs_f64();
        Progress { running, cycles, stopped, elapsed_seconds, activity: activity.map(describe) }
    }
}

/// Describes an activity.
pub(crate) fn describe(activity: Activity) -> String {
    match activity {
        Activity::Compiling { handlers } => format!("compiling a kernel of {handlers} handlers"),
    }
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        let Progress { running, cycles, stopped, elapsed_seconds, .. } = self;
        let state = if *running { "running" } else { "ended" };
        format!(
            "<kvrm.Progress {state}: {cycles} instructions in {elapsed_seconds:.3} s, {stopped} lanes stopped>"
        )
    }
}
