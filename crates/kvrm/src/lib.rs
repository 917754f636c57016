//! Runs unmodified AArch64 (ARM64) programs, very many at a time.
//!
//! A [`Machine`] holds one or more *lanes*: independent ARM64 processors that run the same program.
//! They share one memory or have one each, and run on the engine you choose.
//!
//! ```
//! use kvrm::{Machine, Reg, Stop};
//!
//! // x0 = x0 * x0 + 1, on four machines at once
//! let code = kvrm::assemble("mul x0, x0, x0; add x0, x0, #1; hlt #0", 0x1000)?;
//! let mut machine = Machine::builder().lanes(4).build()?;
//! machine.load(0x1000, &code)?;
//! machine.set_entry(0x1000)?;
//! for lane in 0..4 {
//!     machine.set_register(lane, Reg::X(0), lane as u64)?;
//! }
//! let report = machine.run(1_000)?;
//! assert_eq!(report.cycles, 8);
//! for lane in 0..4 {
//!     assert_eq!(machine.stop(lane)?, Some(Stop::Halt { imm: 0 }));
//!     assert_eq!(machine.register(lane, Reg::X(0))?, (lane * lane + 1) as u64);
//! }
//! # Ok::<(), kvrm::Error>(())
//! ```

mod batches;
mod builder;
mod bulk;
mod core;
mod devices;
mod disassembly;
mod error;
mod float;
#[cfg(unix)]
pub mod linux;
mod machine;
mod model;
mod register;
mod running;
mod saved;
mod size;
pub mod verify;

pub use batches::Batches;
pub use builder::{EngineKind, MachineBuilder};
pub use devices::{Device, devices};
pub use disassembly::{Disassembled, disassemble};
pub use error::{Error, Result};
pub use float::FloatFormat;
pub use kvrm_a64 as a64;
pub use kvrm_asm as asm;
pub use kvrm_asm::assemble;
pub use kvrm_cuda::lanes_that_fit;
pub use kvrm_engine::{
    Activity, CodeUse, EngineError, FaultKind, KernelLoad, Lacking, LaneStatus, RunControl,
    StartTimes, Stop, task::end_process,
};
pub use kvrm_mem::{PAGE, ProcessMark, View};
pub use machine::{Lanes, Machine, RunReport};
pub use model::MemoryModel;
pub use register::{Reg, Registers};
pub use running::Progress;
pub use size::{parse_memory_size, parse_size, parse_unsigned, parse_wide, parse_with_suffix};

/// The guide's page about this crate, so that its examples are tested.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Guide;

/// The same about Linux programs.
#[cfg(all(doctest, unix))]
#[doc = include_str!("../../../docs/linux.md")]
struct LinuxGuide;
