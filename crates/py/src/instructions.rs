//! Assembles and disassembles.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::arguments;
use crate::errors::unpanicked;

/// A line of disassembly.
#[pyclass(frozen, get_all, eq, hash, module = "kvrm")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Instruction {
    /// Address of the instruction.
    address: u64,
    /// The instruction word.
    word: u32,
    /// The instruction in Arm's syntax, or ".inst" and the word if kvrm does not support it.
    text: String,
}

#[pymethods]
impl Instruction {
    fn __str__(&self) -> String {
        format!("{:#x}: {:08x}  {}", self.address, self.word, self.text)
    }

    fn __repr__(&self) -> String {
        format!("<kvrm.Instruction {}>", self.__str__())
    }
}

/// Assembles text in Arm's syntax and returns the bytes of a program for this address. A mistake raises
/// ValueError, which says where it is.
///
/// >>> import kvrm
/// >>> kvrm.assemble("again: subs x0, x0, #1\n b.ne again\n hlt #0").hex()
/// '000400f1e1ffff54000040d4'
/// >>> kvrm.assemble("addd x0, x1, #1")
/// Traceback (most recent call last):
/// ...
/// ValueError: line 1, column 1: there is no instruction addd: did you mean add?
#[pyfunction]
#[pyo3(signature = (text, address=None), text_signature = "(text, address=0)")]
pub(crate) fn assemble<'py>(
    text: &Bound<'py, PyAny>,
    address: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = text.py();
    let address = address.map_or(Ok(0), |address| arguments::unsigned(address, "address"))?;
    let text = text.cast::<PyString>().map_err(|_| {
        let given = arguments::type_name(text);
        PyTypeError::new_err(format!("text must be a string, not {given}"))
    })?;
    let text = text.to_cow()?;
    let bytes = py.detach(|| unpanicked(|| kvrm::assemble(&text, address)))?;
    let bytes = bytes.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Disassembles instruction words. Bytes after the last whole word are ignored.
///
/// >>> import kvrm
/// >>> for instruction in kvrm.disassemble([0x91000400, 0xd4400000], 0x1000):
/// ...     print(instruction)
/// 0x1000: 91000400  add x0, x0, #1
/// 0x1004: d4400000  hlt #0
#[pyfunction]
#[pyo3(signature = (code, address=None), text_signature = "(code, address=0)")]
pub(crate) fn disassemble(
    py: Python<'_>,
    code: &Bound<'_, PyAny>,
    address: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Instruction>> {
    let bytes = arguments::program(code, "code", u64::MAX)?;
    let address = address.map_or(Ok(0), |address| arguments::unsigned(address, "address"))?;
    let lines = py.detach(|| unpanicked(|| kvrm::disassemble(&bytes, address)))?;
    let line = |line: kvrm::Disassembled| Instruction {
        address: line.address,
        word: line.word,
        text: line.text,
    };
    Ok(lines.into_iter().map(line).collect())
}
