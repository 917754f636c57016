//! What the fuzz targets in `fuzz/` do, as functions of bytes, so that tests can do it too: with
//! pseudorandom bytes, without a fuzzer.
//!
//! Each target panics if something is wrong, and says what in a form that can be turned into a test.

pub mod api;
pub mod assemble;
pub mod cancelling;
mod compare;
pub mod decode;
pub mod lanes;
pub mod large;
pub mod limits;
pub mod program;
mod source;
mod words;

pub use source::{Source, random_bytes};
pub use words::{Habit, word};
