//! Registers of all lanes as NumPy arrays.

use kvrm::Reg;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

use crate::machine::Machine;

impl Machine {
    /// Returns a register of all lanes as an array.
    pub(crate) fn column<'py>(
        &self,
        py: Python<'py>,
        reg: Reg,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let array = empty(py, (self.lanes,), "uint64")?.cast_into::<PyArray1<u64>>()?;
        let mut values = array.try_readwrite()?;
        let values = values.as_slice_mut()?;
        self.with(py, |machine| machine.read_register(reg, values))?;
        Ok(array)
    }

    /// Sets a register of all lanes from anything that NumPy can convert to an array.
    pub(crate) fn set_column(&self, value: &Bound<'_, PyAny>, reg: Reg) -> PyResult<()> {
        let py = value.py();
        let array = to_lanes(value, (self.lanes,), &reg.to_string())?;
        let array = array.cast_into::<PyArray1<u64>>()?;
        let values = array.try_readonly()?;
        let values = values.as_slice()?;
        if reg == Reg::Nzcv {
            values.iter().try_for_each(|nzcv| crate::arguments::check_flags(*nzcv))?;
        }
        self.with(py, |machine| machine.write_register(reg, values))
    }
}

/// Returns an array of the machine's property of that name. Assigning to its items sets them in the machine, too.
pub(crate) fn written_through<'py>(
    machine: &Bound<'py, Machine>,
    name: &str,
    array: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let arrays = machine.py().import("kvrm._arrays")?;
    arrays.call_method1("written_through", (machine, name, array))
}

/// Makes a NumPy array; raises MemoryError if there is no room.
pub(crate) fn empty<'py, S: IntoPyObject<'py>>(
    py: Python<'py>,
    shape: S,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("numpy")?.call_method1("empty", (shape, dtype))
}

/// Converts the caller's value to an array of uint64 with this shape.
pub(crate) fn to_lanes<'py, S: IntoPyObject<'py>>(
    value: &Bound<'py, PyAny>,
    shape: S,
    what: &str,
) -> PyResult<Bound<'py, PyAny>> {
    value.py().import("kvrm._arrays")?.call_method1("to_lanes", (value, shape, what))
}
