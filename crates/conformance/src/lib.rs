//! Compares every instruction with emulators nobody here wrote.
//!
//! - [`generate`] makes cases from the rows of the table, with a bias to what is hard;
//! - [`ours`] runs them in every form an instruction has: kernel form on the reference engine, translated
//!   form on the evaluator, and the CPU engine;
//! - [`oracle`] runs them on Unicorn and QEMU, and [`compare`] compares everything with everything;
//! - [`known`] explains the differences there may be, one by one;
//! - [`invalid`] tries words that are no instructions, [`programs`] runs random programs;
//! - [`suite`] runs it all, for the tests and for the command `conformance`;
//! - [`lanes`] compares an engine with the evaluator alone, on very many lanes: the command `conformance
//!   lanes`, for engines on devices.
//!
//! What a run compares is decided by its seed alone, so a difference can be had again.

pub mod compare;
pub mod describe;
pub mod flat;
pub mod generate;
pub mod invalid;
pub mod known;
pub mod lanes;
pub mod oracle;
pub mod ours;
pub mod program;
pub mod programs;
pub mod report;
pub mod sequence;
pub mod suite;

pub use kvrm_random as random;
