//! The CPU engine.
pub use kvrm_engine::EvalEngine as CpuEngine;
