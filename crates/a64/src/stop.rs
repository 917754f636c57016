//! Reason codes of the exits that A64 semantics take, and of a failed probe's access.

/// SVC; the detail is its immediate. The only exit that completes its instruction.
pub const SVC: u8 = 0;
/// HLT; the detail is its immediate.
pub const HLT: u8 = 1;
/// BRK; the detail is its immediate.
pub const BRK: u8 = 2;
/// UDF; the detail is its immediate.
pub const UDF: u8 = 3;
/// An access that must be aligned is not; the detail is its address.
pub const UNALIGNED: u8 = 4;
