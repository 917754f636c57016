//! Kernels for Metal, Vulkan and DX12: the interpreter of [`kvrm_engine::kernel`] in WGSL.
//!
//! ```text
//!  rows ──► handlers (engine::kernel) ──► legal IR (ir::legalise) ──► WGSL (kernel, emit, memory.wgsl)
//! ```
//!
//! 64-bit integers are the language's own (`SHADER_INT64`). What it lacks, or what its compilers get wrong, is
//! replaced in the IR ([`kvrm_ir::legalise`]), so that the emitter has one short arm for each operation.
//!
//! **Private** memory starts as the image. A page that a lane writes gets a *frame*: room for that page of
//! a group of neighbouring lanes, interleaved by 8-byte word. **Shared** memory is 64-bit atomics, one for
//! each 8-byte word, so that accesses within a word are never seen half done; where a device has none, whoever
//! writes a word takes a lock. Either may be larger than a binding, and is then in several *windows*.
//!
//! Lanes of a subgroup that are at the same place execute together up to the next branch (run.wgsl). The kernel
//! relies on one thing that the language does not promise: what an invocation writes into its group's page
//! table, others of its subgroup see after the subgroup has voted.

mod code;
mod device;
mod emit;
mod entry;
mod guest;
mod kernel;
mod lanes;
mod opened;
mod pipeline;
mod region;
mod windows;

pub use device::{DeviceInfo, WgpuError, devices, find};
pub use lanes::{WgpuEngine, WgpuLanes, build};

use kvrm_ir::legalise::{Calls, Lacks};

/// What WGSL lacks, and what naga's writers get wrong of it: 64-bit `countLeadingZeros` and `reverseBits`.
pub(crate) const LACKS: Lacks = Lacks { calls: Calls::Single, ..Lacks::EVERYTHING };

#[cfg(test)]
mod device_tests;
#[cfg(test)]
mod tests;
