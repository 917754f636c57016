//! The Linux that guests see: processes, memory, files, signals and time, as ARM64's Linux 6 has them.
//!
//! ```text
//!  Kernel ── run ──► turn of a thread ──► Guest::run ──► stop
//!    │                    ▲                               │ system call: calls::serve ──► table ──► handler
//!    │                    └───────────────────────────────┤ fault: signal
//!    └── processes, threads, memories, files, clock       └ time is over: the next thread
//! ```
//!
//! A run has one [`Kernel`]. Its processes have a [`Guest`] each, which is a machine of whatever engine, and their threads
//! take turns on it, always in the same order and for a fixed number of instructions. Time and random numbers are
//! virtual, so that the same run gives the same result each time ([`clock`](Clock)).
//!
//! System calls are in one table ([`calls`]), by topic in its modules. A handler that has to wait says so, and is called
//! again when something has happened ([`Refusal::Wait`]); so handlers keep no state of their own.
//!
//! Guests see the files that they are given ([`vfs`]), and nothing else of the host.

mod answer;
mod boot;
pub mod calls;
mod clock;
mod console;
mod descriptors;
mod elf;
mod ending;
mod errno;
mod exec;
mod files;
mod following;
mod forking;
mod futex;
mod guest;
mod hook;
mod host_input;
mod io;
mod kernel;
mod known;
mod layout;
mod locks;
mod mapped_files;
pub mod memory;
mod messages;
mod moving;
mod opening;
mod pipes;
mod process;
mod report;
mod resources;
mod scheduler;
mod shared;
mod signals;
mod snapshot;
mod start;
mod strace;
pub mod supervisor;
mod symbols;
mod terminal;
mod thread;
mod uses;
pub mod vfs;

pub use answer::{Answer, Interrupted, Refusal, Wait};
pub use boot::{NoPoint, Point, Reached};
pub use clock::{Clock, Time};
pub use console::{Console, Got, HostSignals, Input, Sink, Stream};
pub use errno::{Errno, Result};
pub use following::{Computed, Followed};
pub use forking::CannotFork;
pub use guest::{Accesses, Guest, MakeGuest};
pub use hook::{Decision, Hook, Request};
pub use host_input::HostInput;
pub use kernel::{Command, FIRST, Failure, Kernel, Setup};
pub use moving::{Move, Reason};
pub use process::Status;
pub use report::{Crash, Ending, Report};
pub use resources::{Limit, Limits};
pub use scheduler::Next;
pub use signals::Signal;
pub use snapshot::{About, Resume, Snapshot, SnapshotError};
pub use strace::Strace;
pub use uses::FirstUses;
