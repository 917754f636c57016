//! Memory models: who sees which memory, and which changes stay.

use std::str::FromStr;

use kvrm_engine::MemoryModel as Visibility;

use crate::Error;

/// The memory of lanes.
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
    /// A run is *rolled back* if a lane stops with FAULT, UNDEFINED or OUT_OF_MEMORY, if it is cancelled, or if it
    /// fails on the host: memory and all registers are as they were when it began, and
    /// [`RunReport::committed`](crate::RunReport::committed) is false. Stops and counts still show what
    /// happened and what was executed. All batches of [`run_batches`](crate::Machine::run_batches) together are
    /// one run.
    DoubleBuffered,
}

impl MemoryModel {
    /// All models.
    pub const ALL: [MemoryModel; 4] = [
        MemoryModel::Private,
        MemoryModel::Shared,
        MemoryModel::ReadOnly,
        MemoryModel::DoubleBuffered,
    ];

    /// Returns the name that users choose it by.
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

    /// Returns what an engine must know of it, apart from whether lanes may write.
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
