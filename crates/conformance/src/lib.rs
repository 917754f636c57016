//! Compares every instruction with emulators nobody here wrote.

pub mod compare;
pub mod describe;
pub mod flat;
pub mod generate;
pub mod known;
pub mod oracle;
pub mod ours;
pub mod random;
pub mod sequence;
