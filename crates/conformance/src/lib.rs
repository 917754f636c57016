//! Compares every instruction with emulators nobody here wrote.

pub mod compare;
pub mod describe;
pub mod flat;
pub mod generate;
pub mod invalid;
pub mod known;
pub mod oracle;
pub mod ours;
pub mod program;
pub mod programs;
pub mod random;
pub mod sequence;
