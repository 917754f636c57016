//! Hostile programs of Linux. Whatever they try ends in an error that they are told, a signal, or a limit that has a name,
//! and on every engine in the same way.

pub mod calls;
pub mod elf;
pub mod files;
pub mod program;
mod run;
pub mod values;

pub use run::{LIMITS, Outcome, Translating, executable, on_all_engines};
