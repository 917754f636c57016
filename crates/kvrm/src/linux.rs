//! Linux programs in a sandbox.
//!
//! A [`Process`] is what [`std::process::Command`] is for the host: a program, its arguments and its files. The program sees
//! an in-memory file system, its own file and what it is given, and nothing else of the host. Time, random numbers,
//! process numbers and the order of threads are virtual, so that the same process gives the same result each time.
//!
//! ```no_run
//! use kvrm::linux::Process;
//!
//! let outcome = Process::new("./program").arg("--verbose").stdin("1 2 3").run()?;
//! assert!(outcome.success());
//! println!("{}", String::from_utf8_lossy(&outcome.stdout));
//! # Ok::<(), kvrm::Error>(())
//! ```

mod auto;
mod guest;
mod lanes;
mod many;
mod outcome;
mod plan;
mod process;
mod rows;
mod runner;
mod snapshot;
mod trails;

pub use auto::Placement;
#[doc(hidden)]
pub use auto::Policy;
pub use kvrm_linux::vfs::{Change, ChangeKind};
pub use kvrm_linux::{
    Crash, Decision, Ending, Errno, HostSignals, Limit, Limits, Move, NoPoint, Point, Reason,
    Request, Signal, Status, Stream, calls,
};
#[doc(hidden)]
pub use lanes::Device;
pub use lanes::LaneTimes;
pub use many::{LaneOutcome, Many, Runs, Watch};
pub use outcome::{Outcome, WrittenFile};
pub use plan::make_guests;
pub use process::Process;
pub use rows::{IntoRow, Row, RowError};
pub use snapshot::Snapshot;
