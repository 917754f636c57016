//! Runs Linux programs for `kvrm.run`, which prepares the arguments in Python.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use kvrm::linux::{Crash, Ending, Limit, Limits, Outcome, Point, Process, Snapshot, Status};
use kvrm::{EngineKind, RunControl};
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments::{self, seconds};
use crate::errors::{exception, guarded};
use crate::run::{self, Raised, note, with_signals};
use crate::system_call::Answers;

/// What `kvrm.run` gives.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Setup<'py> {
    args: Vec<PyBackedBytes>,
    stdin: Bound<'py, PyAny>,
    files: Vec<(PyBackedBytes, Bound<'py, PyAny>)>,
    env: Vec<(PyBackedBytes, PyBackedBytes)>,
    cwd: PyBackedBytes,
    root: Option<PathBuf>,
    /// Path on the host, path in the guest, and whether changes go to the host.
    binds: Vec<(PathBuf, PyBackedBytes, bool)>,
    limits: HashMap<String, Bound<'py, PyAny>>,
    seed: Bound<'py, PyAny>,
    realtime: bool,
    engine: String,
    pub(crate) timeout: Option<f64>,
    keep: Option<PathBuf>,
    strace: Option<Py<PyAny>>,
    on_syscall: Option<Bound<'py, PyAny>>,
}

/// Runs a program. kvrm.run is for users.
#[pyfunction]
pub(crate) fn run_program<'py>(py: Python<'py>, setup: Setup<'py>) -> PyResult<Bound<'py, PyDict>> {
    let raised = Raised::default();
    let control = with_signals(run::control(seconds(setup.timeout)?), raised.clone());
    let control = Arc::new(control);
    let process = setup.process(&control, &raised)?;
    let outcome = py.detach(|| guarded(|| process.run_with(&control)));
    if let Some(error) = raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    result(py, &outcome?, control.timed_out())
}

/// Runs a program to a point: the snapshot, and how many instructions and pages it has. kvrm.save is for users.
#[pyfunction]
pub(crate) fn save_program<'py>(
    py: Python<'py>,
    setup: Setup<'py>,
    until: &str,
) -> PyResult<(Bound<'py, PyBytes>, u64, u64)> {
    let point: Point = until.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
    let raised = Raised::default();
    let control = with_signals(run::control(seconds(setup.timeout)?), raised.clone());
    let control = Arc::new(control);
    let process = setup.process(&control, &raised)?;
    let kept = py.detach(|| guarded(|| process.boot_until_with(&point, &control)));
    if let Some(error) = raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    if control.timed_out() {
        return Err(PyTimeoutError::new_err(format!("the time was over before {until}")));
    }
    let snapshot = kept?;
    Ok((PyBytes::new(py, snapshot.bytes()), snapshot.instructions(), snapshot.pages()))
}

impl Setup<'_> {
    pub(crate) fn process(self, control: &Arc<RunControl>, raised: &Raised) -> PyResult<Process> {
        let engine: EngineKind = self.engine.parse().map_err(exception)?;
        let (program, args) = self
            .args
            .split_first()
            .ok_or_else(|| PyValueError::new_err("args is empty: it begins with the program"))?;
        let path = path_of(program);
        let process = match Snapshot::is_one(&path) {
            true => Process::of(&Snapshot::open(&path).map_err(exception)?),
            false => Process::new(path),
        };
        let mut process = process
            .args(args)
            .directory(&self.cwd)
            .stdin(arguments::bytes(&self.stdin)?)
            .seed(arguments::unsigned(&self.seed, "seed")?)
            .limits(limits(&self.limits)?)
            .realtime(self.realtime)
            .engine(engine);
        for (path, contents) in &self.files {
            process = process.file(path, arguments::bytes(contents)?);
        }
        for (name, value) in &self.env {
            process = process.env(name, value);
        }
        for (host, guest, writable) in self.binds {
            process = match writable {
                true => process.bind_writable(host, guest),
                false => process.bind(host, guest),
            };
        }
        if let Some(root) = self.root {
            process = process.root(root);
        }
        if let Some(keep) = self.keep {
            process = process.keep(keep);
        }
        if let Some(print) = self.strace {
            process = process.strace(printer(print, control.clone(), raised.clone()));
        }
        if let Some(answers) = self.on_syscall {
            let (answers, control) = (Answers::new(&answers)?, control.clone());
            let raised = raised.clone();
            process =
                process.on_system_call(move |request| answers.decide(request, &control, &raised));
        }
        Ok(process)
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Calls a Python function with each line.
fn printer(
    print: Py<PyAny>,
    control: Arc<RunControl>,
    raised: Raised,
) -> impl FnMut(&str) + Send + 'static {
    move |line| {
        // Without an interpreter, nobody reads it.
        let printed = Python::try_attach(|py| print.call1(py, (line,)).map(drop));
        if !control.was_cancelled() && note(&raised, printed.unwrap_or(Ok(()))) {
            control.cancel();
        }
    }
}

fn limits(given: &HashMap<String, Bound<'_, PyAny>>) -> PyResult<Limits> {
    let mut limits = Limits::default();
    for (name, value) in given {
        let ranged = |range: RangeInclusive<u32>| {
            let number = arguments::unsigned(value, name)?;
            let number = u32::try_from(number).ok().filter(|number| range.contains(number));
            number.ok_or_else(|| {
                let (first, last) = range.into_inner();
                PyValueError::new_err(format!("{name} must be a number from {first} to {last}"))
            })
        };
        match name.as_str() {
            "max_instructions" => limits.instructions = arguments::unsigned(value, name)?,
            "max_memory" => limits.memory = arguments::byte_count(value, name)?,
            "max_file_bytes" => limits.file_bytes = arguments::byte_count(value, name)?,
            "max_files" => limits.files = arguments::unsigned(value, name)?,
            "max_open_files" => limits.open_files = ranged(3..=1 << 20)?,
            "max_processes" => limits.threads = ranged(1..=1 << 16)? as usize,
            "max_output" => limits.output = arguments::byte_count(value, name)?,
            _ => return Err(PyValueError::new_err(format!("there is no limit {name}"))),
        }
    }
    Ok(limits)
}

/// The argument of `kvrm.run` that sets a limit.
fn name_of(limit: Limit) -> &'static str {
    match limit {
        Limit::Instructions => "max_instructions",
        Limit::Memory => "max_memory",
        Limit::FileBytes => "max_file_bytes",
        Limit::Files => "max_files",
        Limit::OpenFiles => "max_open_files",
        Limit::Threads => "max_processes",
        Limit::Output => "max_output",
    }
}

fn ending(outcome: &Outcome, timed_out: bool) -> &'static str {
    match (outcome.status, outcome.ending) {
        (Some(Status::Exited(_)), _) => "exited",
        (Some(Status::Killed(_)), _) => "killed",
        (None, _) if timed_out => "timeout",
        (None, Ending::Limited(_)) => "limit",
        (None, Ending::Deadlock) => "deadlock",
        (None, Ending::Cancelled | Ending::Finished) => "cancelled",
    }
}

/// What a program did, as a dict.
pub(crate) fn result<'py>(
    py: Python<'py>,
    outcome: &Outcome,
    timed_out: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let files = PyDict::new(py);
    for file in &outcome.files {
        files.set_item(PyBytes::new(py, &file.path), PyBytes::new(py, &file.contents))?;
    }
    let syscalls = PyDict::new(py);
    for (name, count) in &outcome.system_calls {
        syscalls.set_item(name, count)?;
    }
    let unknown = PyDict::new(py);
    for (number, count) in &outcome.unknown_calls {
        unknown.set_item(number, count)?;
    }
    let result = PyDict::new(py);
    result.set_item("ending", ending(outcome, timed_out))?;
    result.set_item("exit_code", outcome.code())?;
    result.set_item("signal_number", outcome.signal())?;
    result.set_item("signal", signal(outcome))?;
    result.set_item("stdout", PyBytes::new(py, &outcome.stdout))?;
    result.set_item("stderr", PyBytes::new(py, &outcome.stderr))?;
    result.set_item("files", files)?;
    result.set_item("instructions", outcome.instructions)?;
    result.set_item("syscalls", syscalls)?;
    result.set_item("unknown_syscalls", unknown)?;
    let limits: Vec<_> = outcome.limits.iter().copied().map(name_of).collect();
    result.set_item("limits_hit", limits)?;
    result.set_item("moved_to_cpu", outcome.moved.map(|moved| moved.instructions))?;
    result
        .set_item("crash", outcome.crash.as_ref().map(|crash| crash_of(py, crash)).transpose()?)?;
    Ok(result)
}

/// The same for a program that could not be started.
pub(crate) fn not_started(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let nothing = Outcome {
        ending: Ending::Finished,
        status: None,
        crash: None,
        stdout: Vec::new(),
        stderr: Vec::new(),
        files: Vec::new(),
        instructions: 0,
        system_calls: Vec::new(),
        unknown_calls: Vec::new(),
        limits: Vec::new(),
        moved: None,
    };
    let result = result(py, &nothing, false)?;
    result.set_item("ending", "not started")?;
    Ok(result)
}

fn signal(outcome: &Outcome) -> Option<String> {
    match outcome.status {
        Some(Status::Killed(signal)) => Some(format!("SIG{}", signal.name())),
        Some(Status::Exited(_)) | None => None,
    }
}

fn crash_of<'py>(py: Python<'py>, crash: &Crash) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    let (function, offset) = crash.symbol.clone().unzip();
    fields.set_item("signal", format!("SIG{}", crash.signal.name()))?;
    fields.set_item("pc", crash.pc)?;
    fields.set_item("address", crash.address)?;
    fields.set_item("function", function)?;
    fields.set_item("offset", offset)?;
    Ok(fields)
}
