//! Words as text.

use pyo3::prelude::*;

use crate::arguments;

/// A line of disassembly.
#[pyclass(frozen, get_all, eq, hash, module = "kvrm")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Instruction {
    /// Where it is.
    address: u64,
    /// The instruction word.
    word: u32,
    /// The instruction in Arm's syntax; ".inst" and the word, if kvrm does not run it.
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

/// Instruction words as text. Bytes after the last whole word are left out.
///
/// >>> import kvrm
/// >>> for instruction in kvrm.disassemble([0x91000400, 0xd4400000], 0x1000):
/// ...     print(instruction)
/// 0x1000: 91000400  add x0, x0, #0x1
/// 0x1004: d4400000  hlt #0x0
#[pyfunction]
#[pyo3(signature = (code, address=None), text_signature = "(code, address=0)")]
pub(crate) fn disassemble(
    py: Python<'_>,
    code: &Bound<'_, PyAny>,
    address: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Instruction>> {
    let bytes = arguments::program(code, "code")?;
    let address = address.map_or(Ok(0), |address| arguments::unsigned(address, "address"))?;
    let lines = py.detach(|| kvrm::disassemble(&bytes, address));
    let line = |line: kvrm::Disassembled| Instruction {
        address: line.address,
        word: line.word,
        text: line.text,
    };
    Ok(lines.into_iter().map(line).collect())
}
