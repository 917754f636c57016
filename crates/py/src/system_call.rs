//! System calls of Linux programs, as Python sees and answers them.

use std::cell::Cell;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::Arc;

use kvrm::RunControl;
use kvrm::linux::{Decision, Errno, Request};
use pyo3::exceptions::{PyBaseException, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments;
use crate::run::{Raised, note};

/// How much of a guest's memory is read at a time: a guest may name any length.
const PIECE: u64 = 1 << 20;

/// A system call that a program is about to make, for the function on_syscall of kvrm.run.
///
/// Its memory can be read and written only until that function returns.
#[pyclass(frozen, unsendable, module = "kvrm")]
pub(crate) struct SystemCall {
    /// Its name, such as "openat"; "syscall_1000" if kvrm does not know the number.
    #[pyo3(get)]
    name: String,
    /// Its number.
    #[pyo3(get)]
    number: u64,
    /// Its six arguments, as 64-bit numbers without a sign.
    #[pyo3(get)]
    args: (u64, u64, u64, u64, u64, u64),
    /// Number of the process that makes it.
    #[pyo3(get)]
    pid: u32,
    /// There while Python is asked about it.
    request: Cell<Option<NonNull<Request<'static>>>>,
}

impl SystemCall {
    fn new(request: &mut Request<'_>) -> SystemCall {
        let [a, b, c, d, e, f] = request.args;
        let name =
            request.name.map_or_else(|| format!("syscall_{}", request.number), str::to_owned);
        SystemCall {
            name,
            number: request.number,
            args: (a, b, c, d, e, f),
            pid: request.pid,
            request: Cell::new(Some(NonNull::from(request).cast())),
        }
    }

    fn with_request<T>(
        &self,
        work: impl FnOnce(&mut Request<'_>) -> Result<T, Errno>,
    ) -> PyResult<T> {
        let mut request = self.request.get().ok_or_else(|| {
            PyRuntimeError::new_err(
                "the system call is over: read and write its memory before on_syscall returns",
            )
        })?;
        // SAFETY: `ask` puts the pointer there while it has the request borrowed, and takes it away before it gives the
        // request back. The object stays on its thread, and no Python code runs in `work`, so that there is no other
        // reference.
        work(unsafe { request.as_mut() }).map_err(exception)
    }
}

#[pymethods]
impl SystemCall {
    /// Returns bytes of the process's memory. Raises OSError (EFAULT) where it has none.
    fn read<'py>(
        &self,
        py: Python<'py>,
        address: u64,
        length: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with_request(|request| read(request, address, length))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the bytes up to the next zero, at most 4,095. Raises OSError (EFAULT) if there is none.
    fn read_string<'py>(&self, py: Python<'py>, address: u64) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with_request(|request| request.read_string(address))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the process's memory. Raises OSError (EFAULT) where it may not write itself.
    fn write(&self, address: u64, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = arguments::bytes(data)?;
        self.with_request(|request| request.write(address, &bytes))
    }

    fn __repr__(&self) -> String {
        let (a, b, c, d, e, f) = self.args;
        let args = [a, b, c, d, e, f].map(|arg| format!("{arg:#x}")).join(", ");
        format!("<kvrm.SystemCall {}({args}) of process {}>", self.name, self.pid)
    }
}

fn read(request: &Request<'_>, address: u64, length: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < length {
        let done = bytes.len();
        let piece = PIECE.min(length - done as u64);
        bytes.resize(done + piece as usize, 0);
        let from = address.checked_add(done as u64).ok_or(Errno::FAULT)?;
        request.read(from, &mut bytes[done..])?;
    }
    Ok(bytes)
}

/// The exception with that number.
fn exception(errno: Errno) -> PyErr {
    PyOSError::new_err((errno.number(), errno.to_string()))
}

/// What Python says about system calls.
pub(crate) enum Answers {
    /// A function, which is asked about all.
    Function(Py<PyAny>),
    /// Answers, or functions, for some of them, by name.
    Table(HashMap<String, Py<PyAny>>),
}

impl Answers {
    /// Converts the argument.
    pub(crate) fn new(answers: &Bound<'_, PyAny>) -> PyResult<Answers> {
        match answers.cast::<PyDict>() {
            Ok(table) => Ok(Answers::Table(table.extract()?)),
            Err(_) => Ok(Answers::Function(answers.clone().unbind())),
        }
    }

    fn find(&self, request: &Request<'_>) -> Option<&Py<PyAny>> {
        match self {
            Answers::Function(function) => Some(function),
            Answers::Table(table) => table.get(request.name?),
        }
    }

    /// Answers a system call. After an exception, nothing that Python might have refused is served any more.
    pub(crate) fn decide(
        &self,
        request: &mut Request<'_>,
        control: &Arc<RunControl>,
        raised: &Raised,
    ) -> Decision {
        let Some(answer) = self.find(request) else { return Decision::Serve };
        if control.was_cancelled() {
            return Decision::Refuse(Errno::INTR);
        }
        let decision = Python::try_attach(|py| ask(answer.bind(py), request));
        match decision {
            Some(Ok(decision)) => decision,
            Some(Err(error)) => {
                note(raised, Err(error));
                control.cancel();
                Decision::Refuse(Errno::INTR)
            }
            None => Decision::Refuse(Errno::INTR),
        }
    }
}

fn ask(answer: &Bound<'_, PyAny>, request: &mut Request<'_>) -> PyResult<Decision> {
    if !answer.is_callable() {
        return decision(answer.py(), Ok(answer.clone()));
    }
    let call = Bound::new(answer.py(), SystemCall::new(request))?;
    let given = answer.call1((&call,));
    call.borrow().request.set(None);
    decision(answer.py(), given)
}

fn decision(py: Python<'_>, given: PyResult<Bound<'_, PyAny>>) -> PyResult<Decision> {
    match given {
        Err(error) => refusal(py, error),
        Ok(value) if value.is_none() => Ok(Decision::Serve),
        Ok(value) if value.is_instance_of::<PyBaseException>() => {
            refusal(py, PyErr::from_value(value))
        }
        Ok(value) => Ok(Decision::Answer(arguments::bits(&value, "the answer to a system call")?)),
    }
}

/// An `OSError` is the guest's, and others are the caller's.
fn refusal(py: Python<'_>, error: PyErr) -> PyResult<Decision> {
    if !error.is_instance_of::<PyOSError>(py) {
        return Err(error);
    }
    let number = error.value(py).getattr("errno")?.extract::<i32>().ok();
    let number = number.filter(|number| (1..=133).contains(number)).ok_or_else(|| {
        PyValueError::new_err(
            "an OSError that refuses a system call needs a number from 1 to 133: OSError(errno.EACCES, \"no\")",
        )
    })?;
    Ok(Decision::Refuse(std::io::Error::from_raw_os_error(number).into()))
}
