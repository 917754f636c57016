//! Compares every instruction with emulators written elsewhere.
//!
//! - [`generate`] makes cases from the rows of the table, with a bias towards hard values, and [`vectors`] fills the
//!   vector registers for those that use them;
//! - [`ours`] runs them in four ways that must agree: on the reference engine, which knows only an instruction's
//!   shape; on the evaluator with the translated form; and on the CPU engine, translating and interpreting;
//! - [`oracle`] runs them on Unicorn and QEMU, and [`compare`] compares everything with everything;
//! - [`known`] lists the differences that are allowed, each with its reason;
//! - [`invalid`] tries words that are not instructions, [`programs`] runs random programs;
//! - [`quota`] says how many cases a row gets, and [`suite`] runs all of this, for the tests and for the command
//!   `conformance`;
//! - [`lanes`] compares an engine with the evaluator alone, on very many lanes: the command `conformance
//!   lanes`, for engines on devices.
//!
//! The seed alone decides what a run compares, so a difference can be reproduced.

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
pub mod quota;
pub mod report;
pub mod sequence;
pub mod suite;
pub mod vectors;

pub use kvrm_random as random;
