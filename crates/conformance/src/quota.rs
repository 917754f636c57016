//! How many cases each row gets.

use std::collections::HashMap;
use std::sync::LazyLock;

use kvrm_a64::{Instruction, table};

/// Even in the largest group, a row has this many cases.
const LEAST: u64 = 64;

/// Cases for rows: few for each row of a large group, whose rows are much alike, so that the time for all does not grow
/// with their number.
///
/// ```
/// use kvrm_conformance::quota::Quota;
/// use kvrm_conformance::sequence::row;
/// // One row of one, and one of 36.
/// let rows = [row("HINT"), row("LDADD_X")];
/// assert_eq!(rows.map(|row| Quota { row: 2000, group: Some(18_000) }.of(row)), [2000, 500]);
/// assert_eq!(rows.map(|row| Quota::each(30).of(row)), [30, 30]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The most cases of a row.
    pub row: u64,
    /// The most cases of all rows of a group together, if there is such a limit. A row's share does not depend on which
    /// other rows are tested.
    pub group: Option<u64>,
}

impl Quota {
    /// What the suite runs unless it is told otherwise.
    pub const USUAL: Quota = Quota { row: 2000, group: Some(30_000) };

    /// The same number for every row.
    pub const fn each(cases: u64) -> Quota {
        Quota { row: cases, group: None }
    }

    /// Returns the number of cases of a row.
    pub fn of(&self, row: &Instruction) -> u64 {
        let share = self.group.map(|group| (group / rows_of(row.group)).max(LEAST));
        share.map_or(self.row, |share| share.min(self.row))
    }
}

/// Returns the number of rows in a group.
fn rows_of(group: &str) -> u64 {
    static GROUPS: LazyLock<HashMap<&str, u64>> = LazyLock::new(|| {
        table().iter().fold(HashMap::new(), |mut groups, row| {
            *groups.entry(row.group).or_default() += 1;
            groups
        })
    });
    GROUPS.get(group).copied().unwrap_or(1)
}
