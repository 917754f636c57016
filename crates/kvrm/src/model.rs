//! Who sees which memory, and what becomes of changes.

use std::str::FromStr;

use kvrm_engine::MemoryModel as Visibility;

use crate::Error;

/// What memory lanes have.
///
/// ```
/// use kvrm::MemoryModel;
/// assert_eq!("read-only".parse::<MemoryModel>()?, MemoryModel::ReadOnly);
/// assert!(!MemoryModel::Private.is_one_for_all());
/// # Ok::<(), kvrm::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryModel {
    /// One memory per lane, all starting from the same image. A lane costs what it has written.
    #[default]
    Private,
    /// One memory that every lane reads and writes.
    Shared,
    /// One memory that every lane reads. A store stops the lane with FAULT; the host can write.
    ReadOnly,
    /// One memory that every lane reads and writes, but a run's changes stay only if it ends well.
    ///
    /// A run in which some lane stops with FAULT, UNDEFINED or OUT_OF_MEMORY, which is cancelled or which fails
    /// on the host is *rolled back*: memory and all registers are again what they were when it began, and
    /// [`RunReport::committed`](crate::RunReport::committed) is false. Stops tell what happened, and counts
    /// count what was executed, whether or not it was rolled back. All batches of
    /// [`run_batches`](crate::Machine::run_batches) together are one run.
    DoubleBuffered,
}

impl MemoryModel {
    /// Every model.
    pub const ALL: [MemoryModel; 4] = [
        MemoryModel::Private,
        MemoryModel::Shared,
        MemoryModel::ReadOnly,
        MemoryModel::DoubleBuffered,
    ];

    /// The name users choose it by.
    pub fn name(self) -> &'static str {
        match self {
            MemoryModel::Private => "private",
            MemoryModel::Shared => "shared",
            MemoryModel::ReadOnly => "read-only",
            MemoryModel::DoubleBuffered => "double-buffered",
        }
    }

    /// True if there is one memory for all lanes.
    pub fn is_one_for_all(self) -> bool {
        self != MemoryModel::Private
    }

    /// What an engine has to know of it, beside whether lanes may write.
    pub(crate) fn visibility(self) -> Visibility {
        if self.is_one_for_all() { Visibility::Shared } else { Visibility::Private }
    }
}

impl FromStr for MemoryModel {
    type Err = Error;

    fn from_str(name: &str) -> Result<MemoryModel, Error> {
        let model = Self::ALL.into_iter().find(|model| model.name() == name);
        model.ok_or_else(|| Error::UnknownModel(name.to_string()))
    }
}
