//! Differences from the oracles that have been explained.

use kvrm_oracles::OutcomeKind;

use crate::compare::Seen;
use crate::generate::Test;
use crate::oracle::Which;
use crate::ours::Ran;

/// A difference and its explanation.
pub struct Known {
    /// The oracles that differ in this way.
    pub oracles: &'static [Which],
    /// Which instructions, and why the difference is right.
    pub reason: &'static str,
    /// Whether this is it.
    pub explains: fn(&Seen<'_>) -> bool,
}

/// Rows that no oracle can judge fully, and what we expect of them ourselves.
pub struct Own {
    /// Names of the rows.
    pub rows: &'static [&'static str],
    /// Why.
    pub reason: &'static str,
    /// Whether it came out as it should.
    pub expected: fn(&Test, &Ran) -> bool,
}

const _BOTH: &[Which] = &[Which::Unicorn, Which::Qemu];

/// The list.
pub const KNOWN: &[Known] = &[];

/// The list of rows.
pub const OWN: &[Own] = &[];

#[expect(dead_code, reason = "x")]
fn k(_: OutcomeKind) {}
