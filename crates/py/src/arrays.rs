//! Registers of all lanes as NumPy arrays.

use kvrm::Reg;
use numpy::{PyArray1, PyArray3, PyArrayMethods};
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

    /// Returns the vector registers of all lanes as an array of bytes.
    pub(crate) fn read_vectors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = (self.lanes, VECTORS, VECTOR_BYTES);
        let array = empty(py, shape, "uint8")?.cast_into::<PyArray3<u8>>()?;
        let mut bytes = array.try_readwrite()?;
        let bytes = bytes.as_slice_mut()?;
        match bytemuck::try_cast_slice_mut(bytes) {
            Ok(values) => self.with(py, |machine| machine.read_vectors(values))?,
            // It is not aligned; NumPy does not say that it ever is.
            Err(_) => {
                let mut values = vec![0; self.lanes * VECTORS];
                self.with(py, |machine| machine.read_vectors(&mut values))?;
                bytes.copy_from_slice(bytemuck::cast_slice(&values));
            }
        }
        Ok(array.into_any())
    }

    /// Sets the vector registers of all lanes from an array with elements of any type.
    pub(crate) fn write_vectors(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let shape = (self.lanes, VECTORS, VECTOR_BYTES);
        let array = py.import("kvrm._arrays")?.call_method1("to_vectors", (value, shape))?;
        let array = array.cast_into::<PyArray3<u8>>()?;
        let bytes = array.try_readonly()?;
        let bytes = bytes.as_slice()?;
        match bytemuck::try_cast_slice(bytes) {
            Ok(values) => self.with(py, |machine| machine.write_vectors(values)),
            Err(_) => {
                let values: Vec<u128> = bytemuck::pod_collect_to_vec(bytes);
                self.with(py, |machine| machine.write_vectors(&values))
            }
        }
    }
}

/// Vector registers of a lane.
const VECTORS: usize = 32;
/// Bytes of a vector register.
const VECTOR_BYTES: usize = 16;

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
