//! The fuzz targets in `fuzz/` as functions of bytes, so that tests can run them too, on pseudorandom bytes and without
//! a fuzzer.
//!
//! Each target panics if something is wrong, with a message that can be turned into a test.

pub mod api;
pub mod assemble;
pub mod cancelling;
mod compare;
pub mod decode;
pub mod lanes;
pub mod large;
pub mod limits;
#[cfg(unix)]
pub mod linux;
pub mod program;
mod source;
mod words;

pub use source::{Source, random_bytes};
pub use words::{Habit, word};
