//! Converts errors of the library to Python exceptions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kvrm::{EngineError, Error};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyException, PyFileNotFoundError, PyIndexError, PyMemoryError, PyOSError, PyRuntimeError,
    PyValueError,
};
use pyo3::prelude::*;

create_exception!(
    kvrm,
    KvrmError,
    PyException,
    "Something failed that is neither the caller's fault nor the guest's: a device, a driver, kvrm itself."
);

/// Returns the exception for an error.
pub(crate) fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::NoSuchLane { .. } => PyIndexError::new_err(text),
        Error::Assembly(_)
        | Error::NoLanes
        | Error::TooManyLanes(_)
        | Error::MemorySize(_)
        | Error::CodeMemory(_)
        | Error::NotASize(_)
        | Error::WrongLength { .. }
        | Error::Uneven { .. }
        | Error::OneMemory
        | Error::OutsideMemory { .. }
        | Error::MisalignedPc(_)
        | Error::UnknownEngine(_)
        | Error::UnknownModel(_)
        | Error::NoDevices(_)
        | Error::UnknownRegister(_)
        | Error::WideRegister(_)
        | Error::EmptyBatches => PyValueError::new_err(text),
        Error::Forked => {
            PyRuntimeError::new_err(format!("{text}, or start processes by \"spawn\""))
        }
        Error::Running | Error::NotStarted => PyRuntimeError::new_err(text),
        Error::NoRoomForCopy(_)
        | Error::NoRoomForLanes(_)
        | Error::Engine(EngineError::Memory { .. } | EngineError::DeviceFull(_)) => {
            PyMemoryError::new_err(text)
        }
        // What Python raised while it made a row.
        Error::Rows(error) => match error.downcast::<PyErr>() {
            Ok(raised) => *raised,
            Err(_) => PyValueError::new_err(text),
        },
        Error::NotOfMany(_) | Error::NotOfSnapshot(_) | Error::BeforeSnapshot(_) => {
            PyValueError::new_err(text)
        }
        Error::NoProgram(_) => PyFileNotFoundError::new_err(text),
        Error::Program(_) | Error::Sandbox(_) | Error::Snapshot(_) | Error::Keep { .. } => {
            PyOSError::new_err(text)
        }
        Error::Engine(
            EngineError::SharedMemoryIsWhole
            | EngineError::NotMapped(_)
            | EngineError::MappedForMany(_)
            | EngineError::MappedForEach(_)
            | EngineError::NotAdvancing(_),
        ) => PyValueError::new_err(text),
        _ => KvrmError::new_err(text),
    }
}

/// Runs `work`; a panic becomes a `KvrmError`.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> PyResult<T> {
    unpanicked(work)?.map_err(exception)
}

/// Runs `work`, which can fail only by a panic.
pub(crate) fn unpanicked<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panicked(&*panic))
}

/// Returns the exception for a panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("for no stated reason");
    KvrmError::new_err(format!(
        "kvrm failed: {text}; if it was using a machine, make another; please report this as a bug"
    ))
}
