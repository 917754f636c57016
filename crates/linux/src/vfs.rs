//! The files that guests see.
//!
//! All processes of a run share one [`Vfs`]. It has a root in memory and what the guest is given: directories of the
//! host, and files. Directories of the host are not changed (changes stay in memory and hide what is there), unless
//! they are given as writable. Paths are resolved here, one component at a time, with the guest's root and the guest's
//! links, so that nothing else of the host can be reached.
//!
//! Equal operations give equal results: inodes are numbered in the order in which they are seen first, directories are
//! sorted by name, and times come from [`Vfs::set_time`]. Reading files does not change their times (`noatime`). Files
//! of the host belong to the guest's root user and have one time, that of their last change.
//!
//! Directories of the host that are given without write access are expected to stay as they are. If they change
//! meanwhile, the guest may see something of the old and something of the new, but nothing from outside. Directories
//! with write access may change at any time.

mod attributes;
mod changes;
mod check;
mod contents;
mod create;
mod host;
mod io;
mod keep;
mod limits;
mod listing;
mod mount;
mod node;
mod open;
mod proc;
mod remove;
mod rename;
mod saved;
mod standard;
mod stat;
mod table;
mod walk;

use std::path::PathBuf;
use std::sync::Weak;

use cap_std::fs::File;

pub use attributes::Access;
pub use changes::{Change, ChangeKind};
pub use create::Special;
pub use io::Allocation;
pub use keep::KeepError;
pub use limits::{Limit, Limits};
pub use mount::SetupError;
pub use node::NodeId;
pub use open::OpenFlags;
pub use proc::{Descriptor, HOSTNAME, ProcFile, ProcLink, Processes, RELEASE, SystemFile};
pub use rename::RenameMode;
pub use saved::Given;
pub(crate) use saved::Saved;
pub use stat::{Device, DeviceNumber, DirectoryEntry, FileType, Stat, StatFs, Timespec};
pub use walk::{At, Found};

use host::Host;
use limits::Usage;
use mount::Mount;
use node::{Id, Nodes};

/// What a guest is given.
#[derive(Clone, Debug)]
pub struct Setup {
    /// A directory of the host that becomes `/`. Changes stay in memory. Without it, `/` is in memory and has what most
    /// programs need.
    pub root: Option<PathBuf>,
    /// More of the host.
    pub binds: Vec<Bind>,
    /// Files in memory; directories are made for them.
    pub files: Vec<GivenFile>,
    /// How much the guest may add.
    pub limits: Limits,
    /// The time at the start, which files in memory get.
    pub time: Timespec,
}

/// A file or directory of the host that a guest is given.
#[derive(Clone, Debug)]
pub struct Bind {
    /// The path on the host.
    pub host: PathBuf,
    /// The path in the guest; it is made if it is not there.
    pub guest: Vec<u8>,
    /// Changes go to the host; otherwise, they stay in memory.
    pub writable: bool,
}

/// A file that a guest is given.
#[derive(Clone, Debug)]
pub struct GivenFile {
    /// The path in the guest.
    pub path: Vec<u8>,
    /// What is in it.
    pub contents: Vec<u8>,
    /// Permissions.
    pub permissions: u32,
}

/// All files of a run.
pub struct Vfs {
    nodes: Nodes,
    root: Id,
    mounts: Vec<Mount>,
    host: Host,
    usage: Usage,
    now: Timespec,
    /// Files of the host that have lost their names but are still open.
    nameless: Vec<Weak<File>>,
    /// What of the host the guest was given, and the numbers of its places.
    given: Vec<(Given, u64)>,
}

impl Vfs {
    /// A copy for a run that goes on separately; `None` if directories of the host may be written, which are not copied.
    pub(crate) fn fork(&mut self) -> Option<Vfs> {
        if self.mounts.iter().any(Mount::is_writable) {
            return None;
        }
        Some(Vfs {
            nodes: self.nodes.fork(),
            root: self.root,
            mounts: self.mounts.clone(),
            host: self.host.clone(),
            usage: self.usage.clone(),
            now: self.now,
            nameless: self.nameless.clone(),
            given: self.given.clone(),
        })
    }

    /// Returns `/`.
    pub fn root(&self) -> NodeId {
        NodeId::stored(self.root)
    }

    /// Sets the time that changes get from now on.
    pub fn set_time(&mut self, now: Timespec) {
        self.now = now;
    }

    /// Returns the limit that was reached first, if one was.
    pub fn limit_hit(&self) -> Option<Limit> {
        self.usage.hit()
    }

    /// Returns what counts towards the limits now: bytes, and nodes.
    pub fn used(&self) -> Limits {
        Limits { bytes: self.usage.bytes(), nodes: self.usage.nodes() }
    }
}
