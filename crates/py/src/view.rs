//! Guest memory as a NumPy array that is not a copy.

use kvrm::View;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

/// Keeps guest memory mapped, and tells NumPy where it is.
#[pyclass(frozen, module = "kvrm")]
struct Mapped {
    view: View,
}

#[pymethods]
impl Mapped {
    /// NumPy's array interface, version 3; the flag says that the array is read-only.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let interface = pyo3::types::PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", "|u1")?;
        interface.set_item("shape", (self.view.size(),))?;
        interface.set_item("data", (self.view.as_ptr() as usize, true))?;
        Ok(interface.into_any())
    }
}

/// Returns the array, if the engine shares memory with the host.
pub(crate) fn array<'py>(
    py: Python<'py>,
    view: Option<View>,
    engine: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(view) = view else {
        return Err(PyBufferError::new_err(format!(
            "the {engine} engine's memory is not the host's, so there is no view of it: use read_memory"
        )));
    };
    py.import("numpy")?.call_method1("asarray", (Bound::new(py, Mapped { view })?,))
}
