//! The CUDA engine: the whole fetch-decode-execute loop in a kernel, one thread a lane.
//!
//! ```text
//!  rows ──► handlers (engine::kernel) ──► PTX (kernel, emit, …) ──► the driver compiles (compile),
//!                │                           unless the cache has the kernel, and loads (driver)
//!                │
//!  words ──► records (engine::code) ──► device memory (code)
//!                │
//!  run ──► launch (lanes) ──► stopped lanes ──► the guest's stop, or seen to by the host (engine::launch):
//!                                              more code decoded, more frames, code that a lane has changed
//! ```
//!
//! Only the driver is needed, and it is opened at run time. A kernel holds the handlers that the program
//! has been seen to need; a lane that reaches code which is not decoded stops, the host decodes what can
//! be reached from there, adds handlers if there are new ones, and launches again. Words are decoded on
//! the host ([`kvrm_engine::kernel`]); a lane reads sixteen bytes per instruction.
//!
//! A run is a sequence of launches of about a tenth of a second each, or a *single launch* that goes on until
//! the last lane has stopped. While one runs, the host reads a counter of the kernel's now and then, and
//! can ask it to end. What lanes have done stays on the device until somebody looks.

mod call;
mod code;
mod compile;
mod diverted;
mod driver;
mod emit;
mod ending;
mod entry;
mod float;
mod frames;
mod gather;
mod guest;
mod kernel;
mod lanes;
mod memory;
mod moves;
mod region;
mod room;
mod stream;

pub use driver::{CudaError, DeviceInfo, devices, find, free_memory};
pub use lanes::{CudaEngine, CudaLanes, build};
pub use room::lanes_that_fit;

#[cfg(test)]
mod tests;
