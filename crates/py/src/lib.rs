//! The native part of the Python package `kvrm`: its classes, over those of the Rust library.
//!
//! Nothing here may end the interpreter. Bad calls raise exceptions with a clear message, `errors` converts the
//! library's errors to Python's, and a panic becomes a `KvrmError`. Calls that take time let other Python
//! threads run and check for Ctrl-C (`run`).

mod arguments;
mod arrays;
mod devices;
mod errors;
mod hold;
mod instructions;
#[cfg(unix)]
mod lane_runs;
mod machine;
#[cfg(unix)]
mod program;
mod result;
mod run;
mod stops;
#[cfg(unix)]
mod system_call;
mod view;

#[pyo3::pymodule]
mod _kvrm {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::devices::{Device, devices};
    #[pymodule_export]
    use crate::errors::KvrmError;
    #[pymodule_export]
    use crate::instructions::{Instruction, assemble, disassemble};
    #[cfg(unix)]
    #[pymodule_export]
    use crate::lane_runs::{LaneRuns, start_lanes};
    #[pymodule_export]
    use crate::machine::Machine;
    #[cfg(unix)]
    #[pymodule_export]
    use crate::program::{run_program, save_program};
    #[pymodule_export]
    use crate::result::{Progress, RunResult};
    #[pymodule_export]
    use crate::stops::{Stop, Stops};
    #[cfg(unix)]
    #[pymodule_export]
    use crate::system_call::SystemCall;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
