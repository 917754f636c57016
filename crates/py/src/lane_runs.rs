//! Runs a Linux program in many lanes for `kvrm.run_many` and `kvrm.iter_many`, which prepare rows in Python.

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use kvrm::RunControl;
use kvrm::linux::{Ending, LaneOutcome, Many, Row, RowError, Runs, Watch};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::arguments::{self, seconds};
use crate::errors::{guarded, unpanicked};
use crate::hold::lock;
use crate::program::{self, Setup};
use crate::run::Raised;

/// How long a result is waited for before Python is asked for signals.
const ASK: Duration = Duration::from_millis(20);

/// A run of many lanes. `kvrm.iter_many` is for users.
#[pyclass(module = "kvrm._kvrm", frozen)]
pub(crate) struct LaneRuns {
    /// None when it was closed.
    runs: Mutex<Option<Runs>>,
    watch: Watch,
}

/// What a lane has of its own: further arguments, variables, standard input, files.
#[derive(FromPyObject)]
struct RowSetup<'py>(
    Vec<PyBackedBytes>,
    Vec<(PyBackedBytes, PyBackedBytes)>,
    Option<Bound<'py, PyAny>>,
    Vec<(PyBackedBytes, Bound<'py, PyAny>)>,
);

/// A Python iterator of rows, and how many there are, if that is known.
struct PyRows(Py<PyAny>, Option<usize>);

impl Iterator for PyRows {
    type Item = Result<Row, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = |py: Python<'_>| {
            let mut rows = self.0.bind(py).try_iter()?;
            rows.next().map(|row| row?.extract::<RowSetup<'_>>()?.row()).transpose()
        };
        // Without an interpreter, nobody wants more.
        let row = Python::try_attach(next)?.map_err(RowError::from).transpose();
        self.1 = self.1.map(|left| left.saturating_sub(1));
        row
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.1)
    }
}

impl RowSetup<'_> {
    fn row(self) -> PyResult<Row> {
        let RowSetup(args, env, stdin, files) = self;
        let mut row = Row::new().args(args);
        for (name, value) in env {
            row = row.env(name, value);
        }
        if let Some(stdin) = stdin {
            row = row.stdin(arguments::bytes(&stdin)?);
        }
        for (path, contents) in files {
            row = row.file(path, arguments::bytes(&contents)?);
        }
        Ok(row)
    }
}

/// Starts a run. kvrm.run_many is for users.
#[pyfunction]
pub(crate) fn start_lanes(
    py: Python<'_>,
    setup: Setup<'_>,
    rows: Py<PyAny>,
    total: Option<usize>,
    lanes: Option<&Bound<'_, PyAny>>,
    threads: &Bound<'_, PyAny>,
) -> PyResult<LaneRuns> {
    let timeout = seconds(setup.timeout)?;
    let control = Arc::new(RunControl::new());
    let process = setup.process(&control, &Raised::default())?;
    let mut many = Many::new(process).threads(arguments::size(threads, "threads")?);
    if let Some(lanes) = lanes {
        many = many.lanes(arguments::size(lanes, "lanes")?);
    }
    if let Some(timeout) = timeout {
        many = many.timeout(timeout);
    }
    let runs = py.detach(|| guarded(|| many.run_with(PyRows(rows, total), control)))?;
    let watch = runs.watch();
    Ok(LaneRuns { runs: Mutex::new(Some(runs)), watch })
}

#[pymethods]
impl LaneRuns {
    /// The next result, as a dict; None at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        loop {
            let polled =
                py.detach(|| unpanicked(|| Some(lock(&self.runs).as_mut()?.next_within(ASK))))?;
            let Some(polled) = polled else {
                return Err(PyRuntimeError::new_err("the run is closed: start another"));
            };
            py.check_signals()?;
            match polled {
                Poll::Pending => {}
                Poll::Ready(None) => return Ok(None),
                Poll::Ready(Some(ran)) => {
                    return result(py, &guarded(|| ran)?).map(Some);
                }
            }
        }
    }

    /// Lanes that run, lanes that have ended, and instructions so far.
    fn progress(&self) -> (u64, u64, u64) {
        (self.watch.running(), self.watch.ended(), self.watch.instructions())
    }

    /// Where lanes were, and why there.
    fn placement(&self) -> String {
        self.watch.placement().to_string()
    }

    /// Ends the run.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| unpanicked(|| drop(lock(&self.runs).take())))
    }
}

fn result<'py>(py: Python<'py>, ran: &LaneOutcome) -> PyResult<Bound<'py, PyDict>> {
    let (result, error) = match &ran.result {
        // Nothing else than its time cancels a single lane.
        Ok(outcome) => (program::result(py, outcome, outcome.ending == Ending::Cancelled)?, None),
        Err(error) => (program::not_started(py)?, Some(error.to_string())),
    };
    result.set_item("lane", ran.lane)?;
    result.set_item("engine", ran.engine.name())?;
    result.set_item("error", error)?;
    Ok(result)
}
