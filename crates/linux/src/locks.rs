//! Locks of files.

use serde::{Deserialize, Serialize};

use crate::Errno;
use crate::files::FileId;
use crate::process::Pid;
use crate::vfs::NodeId;

/// Locks of files, at the most.
const MOST: usize = 1 << 16;

/// Who has a lock. Those of different kinds of call do not meet, except records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Owner {
    /// `fcntl(F_SETLK)`.
    Process(Pid),
    /// `fcntl(F_OFD_SETLK)`.
    Record(FileId),
    /// `flock`.
    Whole(FileId),
}

impl Owner {
    fn meets(self, other: Owner) -> bool {
        matches!(self, Owner::Whole(_)) == matches!(other, Owner::Whole(_)) && self != other
    }
}

/// A lock of a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lock {
    pub(crate) node: NodeId,
    pub(crate) owner: Owner,
    /// Nobody else may have one.
    pub(crate) writes: bool,
    pub(crate) start: u64,
    /// Behind the last byte.
    pub(crate) end: u64,
}

impl Lock {
    fn overlaps(&self, other: &Lock) -> bool {
        self.node == other.node && self.start < other.end && other.start < self.end
    }
}

/// All locks of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Locks(Vec<Lock>);

impl Locks {
    /// The first lock that is in the way of another.
    pub(crate) fn conflict(&self, lock: &Lock) -> Option<Lock> {
        let is_in_the_way = |other: &&Lock| {
            other.owner.meets(lock.owner) && other.overlaps(lock) && (other.writes || lock.writes)
        };
        self.0.iter().filter(is_in_the_way).min_by_key(|other| other.start).copied()
    }

    /// Sets a lock instead of what its owner has there; `EAGAIN` if another one is in the way.
    pub(crate) fn set(&mut self, lock: Lock) -> Result<(), Errno> {
        if self.conflict(&lock).is_some() {
            return Err(Errno::AGAIN);
        }
        self.remove(&lock);
        if self.0.len() >= MOST {
            return Err(Errno::NOLCK);
        }
        self.0.push(lock);
        Ok(())
    }

    /// Takes away what the owner of a lock has there.
    pub(crate) fn remove(&mut self, lock: &Lock) {
        let mut rest = Vec::new();
        self.0.retain(|other| {
            if other.owner != lock.owner || !other.overlaps(lock) {
                return true;
            }
            let parts = [(other.start, lock.start), (lock.end, other.end)];
            let parts = parts.into_iter().filter(|(start, end)| start < end);
            rest.extend(parts.map(|(start, end)| Lock { start, end, ..*other }));
            false
        });
        self.0.extend(rest);
    }

    /// Takes away all that an owner has, of a file or of all.
    pub(crate) fn release(&mut self, owner: Owner, node: Option<NodeId>) {
        self.0.retain(|lock| lock.owner != owner || node.is_some_and(|node| node != lock.node));
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
