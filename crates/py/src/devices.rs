//! What kvrm can run on here.

use pyo3::prelude::*;

use crate::errors::unpanicked;

/// Something to run on: one of an engine's devices.
#[pyclass(frozen, get_all, module = "kvrm")]
pub(crate) struct Device {
    /// The engine to choose: "cpu", "cuda", "wgpu" or "eval".
    engine: String,
    /// The number to choose it by, for engines that have several; otherwise 0.
    index: usize,
    /// What it is called.
    name: String,
    /// Bytes of its memory; None if nobody knows.
    memory: Option<u64>,
    /// Its driver, with the version; None if it needs none.
    driver: Option<String>,
    /// True if it can be used.
    usable: bool,
    /// Why it cannot be used; None if it can.
    why_not: Option<String>,
}

#[pymethods]
impl Device {
    fn __repr__(&self) -> String {
        let Device { engine, index, name, .. } = self;
        let not = self.why_not.as_ref().map_or(String::new(), |why| format!(", not usable: {why}"));
        format!("<kvrm.Device {engine} {index}: {name}{not}>")
    }
}

/// The devices on this computer, those that cannot be used included.
///
/// >>> import kvrm
/// >>> [(device.index, device.usable) for device in kvrm.devices() if device.engine == "cpu"]
/// [(0, True)]
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<Vec<Device>> {
    let devices = py.detach(|| unpanicked(kvrm::devices))?;
    let device = |device: kvrm::Device| Device {
        engine: device.engine.name().to_string(),
        index: device.index,
        name: device.name,
        memory: device.memory,
        driver: device.driver,
        usable: device.why_not.is_none(),
        why_not: device.why_not,
    };
    Ok(devices.into_iter().map(device).collect())
}
