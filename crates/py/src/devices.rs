//! Lists the devices that kvrm can run on.

use pyo3::prelude::*;

use crate::errors::unpanicked;

/// A device of an engine.
#[pyclass(frozen, get_all, module = "kvrm")]
pub(crate) struct Device {
    /// Name of its engine: "cpu", "cuda", "wgpu" or "eval".
    engine: String,
    /// Number of the device, if the engine has several; otherwise 0.
    index: usize,
    /// Name of the device.
    name: String,
    /// Size of its memory in bytes; None if unknown.
    memory: Option<u64>,
    /// Its driver, with the version; None if it needs no driver.
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

/// Returns the devices of this computer, including those that cannot be used.
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
