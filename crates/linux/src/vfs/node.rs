//! Files, directories and so on, and the table that holds them.

use std::collections::hash_map;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use cap_std::fs::File;
use serde::{Deserialize, Serialize};

use super::contents::Contents;
use super::host::{Key, Place};
use super::proc::Generated;
use super::stat::{Device, FileType, Timespec};
use crate::{Errno, Result};

/// A name in a directory.
pub(super) type Name = Arc<[u8]>;

/// The number of a stored node. It is the number of the inode and is never used again.
pub(super) type Id = u64;

/// A file, directory, link and so on. It stays valid as long as the file has a name or is held
/// ([`Vfs::retain`](super::Vfs::retain)); after that, calls fail with `ESTALE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Inner", into = "Inner")]
pub struct NodeId(pub(super) Inner);

/// What a [`NodeId`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Inner {
    /// In the table.
    Stored(Id),
    /// In `/proc`: made anew whenever someone looks.
    Generated(Generated),
}

impl From<NodeId> for Inner {
    fn from(node: NodeId) -> Inner {
        node.0
    }
}

impl TryFrom<Inner> for NodeId {
    type Error = &'static str;

    fn try_from(inner: Inner) -> std::result::Result<NodeId, &'static str> {
        match inner {
            Inner::Generated(generated) if !generated.exists() => Err("/proc has no such file"),
            Inner::Generated(_) | Inner::Stored(_) => Ok(NodeId(inner)),
        }
    }
}

impl NodeId {
    pub(super) fn stored(id: Id) -> NodeId {
        NodeId(Inner::Stored(id))
    }

    /// Returns the number in the table; files of `/proc` have none, and may not be changed.
    pub(super) fn id(self) -> Result<Id> {
        match self.0 {
            Inner::Stored(id) => Ok(id),
            Inner::Generated(_) => Err(Errno::PERM),
        }
    }
}

/// Permissions, owners and times.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Attributes {
    pub(super) permissions: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) atime: Timespec,
    pub(super) mtime: Timespec,
    pub(super) ctime: Timespec,
    pub(super) btime: Timespec,
}

impl Attributes {
    pub(super) fn new(permissions: u32, time: Timespec) -> Attributes {
        let permissions = permissions & 0o7777;
        let (atime, mtime, ctime, btime) = (time, time, time, time);
        Attributes { permissions, uid: 0, gid: 0, atime, mtime, ctime, btime }
    }
}

/// Where the contents are: the bytes of a file, the entries of a directory.
#[derive(Clone)]
pub(super) enum Source {
    /// In memory only.
    Memory,
    /// A host's file until it is written, or a host's directory below the entries in memory.
    Below(Arc<Place>),
    /// On the host, with all changes.
    Through(Arc<Place>, Key),
    /// On the host, where it has lost its last name.
    Nameless(Arc<File>),
}

/// What a node is.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Kind {
    File(Contents),
    Directory(Directory),
    Symlink(Name),
    Fifo,
    Device(Device),
    /// A device, socket or FIFO of the host, which nobody may open.
    Special(FileType),
}

/// The entries of a directory, as far as they are not only known to the host.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Directory {
    pub(super) entries: BTreeMap<Name, Entry>,
    pub(super) subdirectories: u64,
}

/// An entry of a directory.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Entry {
    /// What has the name; nothing if something given was deleted.
    pub(super) node: Option<NodeId>,
    /// The guest was given something with this name.
    pub(super) given: bool,
    /// The name counts towards the limits.
    pub(super) counted: bool,
}

/// A file, directory and so on.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) source: Source,
    pub(super) attributes: Attributes,
    /// The file system: an index of mounts.
    pub(super) mount: u16,
    /// Something is mounted here, so that the name must stay.
    pub(super) mount_point: bool,
    /// The directories it is in, with the names it has there.
    pub(super) names: BTreeSet<(Id, Name)>,
    /// The last name, if it has none any more. The directory is held.
    pub(super) gone: Option<(Id, Name)>,
    /// Where the guest was given it.
    pub(super) origin: Option<(Id, Name)>,
    /// Contents or attributes are not those that were given.
    pub(super) changed: bool,
    /// How many open files, mappings and so on hold it.
    pub(super) holders: u64,
    /// It counts towards the limits.
    pub(super) counted: bool,
    /// It has no name yet, but may get one.
    pub(super) linkable: bool,
}

impl Node {
    pub(super) fn new(kind: Kind, source: Source, attributes: Attributes, mount: u16) -> Node {
        Node {
            kind,
            source,
            attributes,
            mount,
            mount_point: false,
            names: BTreeSet::new(),
            gone: None,
            origin: None,
            changed: false,
            holders: 0,
            counted: false,
            linkable: false,
        }
    }

    pub(super) fn file_type(&self) -> FileType {
        match &self.kind {
            Kind::File(_) => FileType::Regular,
            Kind::Directory(_) => FileType::Directory,
            Kind::Symlink(_) => FileType::Symlink,
            Kind::Fifo => FileType::Fifo,
            Kind::Device(_) => FileType::Character,
            Kind::Special(file_type) => *file_type,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory(_))
    }

    pub(super) fn directory(&self) -> Result<&Directory> {
        match &self.kind {
            Kind::Directory(directory) => Ok(directory),
            _ => Err(Errno::NOTDIR),
        }
    }

    pub(super) fn directory_mut(&mut self) -> Result<&mut Directory> {
        match &mut self.kind {
            Kind::Directory(directory) => Ok(directory),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// Returns where it is, or was before it lost its last name.
    pub(super) fn location(&self) -> Option<&(Id, Name)> {
        self.names.first().or(self.gone.as_ref())
    }
}

/// All nodes that are stored.
pub(super) struct Nodes {
    /// Those that several runs have in common.
    common: Arc<HashMap<Id, Node>>,
    /// Those that are others here, or gone.
    own: HashMap<Id, Option<Node>>,
    next: Id,
}

impl Nodes {
    pub(super) fn new() -> Nodes {
        Nodes { common: Arc::default(), own: HashMap::new(), next: 1 }
    }

    pub(super) fn add(&mut self, node: Node) -> Id {
        let id = self.next;
        self.next += 1;
        self.own.insert(id, Some(node));
        id
    }

    pub(super) fn get(&self, id: Id) -> Result<&Node> {
        let found = match self.own.get(&id) {
            Some(own) => own.as_ref(),
            None => self.common.get(&id),
        };
        found.ok_or(Errno::STALE)
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Result<&mut Node> {
        let own = match self.own.entry(id) {
            hash_map::Entry::Occupied(own) => own.into_mut(),
            hash_map::Entry::Vacant(own) => {
                own.insert(Some(self.common.get(&id).ok_or(Errno::STALE)?.clone()))
            }
        };
        own.as_mut().ok_or(Errno::STALE)
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<Node> {
        match self.common.get(&id) {
            None => self.own.remove(&id)?,
            Some(common) => {
                let own = self.own.insert(id, None);
                own.unwrap_or_else(|| Some(common.clone()))
            }
        }
    }

    /// All nodes of a snapshot. They are in common with copies.
    pub(super) fn of(nodes: BTreeMap<Id, Node>, next: Id) -> Nodes {
        Nodes { common: Arc::new(nodes.into_iter().collect()), own: HashMap::new(), next }
    }

    /// All nodes, of a copy that was just made.
    pub(super) fn common(&self) -> impl Iterator<Item = (&Id, &Node)> {
        self.common.iter()
    }

    /// The number of the next one.
    pub(super) fn next(&self) -> Id {
        self.next
    }

    /// A copy for a run that goes on separately.
    pub(super) fn fork(&mut self) -> Nodes {
        if !self.own.is_empty() {
            let common = Arc::make_mut(&mut self.common);
            for (id, own) in self.own.drain() {
                match own {
                    Some(node) => common.insert(id, node),
                    None => common.remove(&id),
                };
            }
        }
        Nodes { common: Arc::clone(&self.common), own: HashMap::new(), next: self.next }
    }
}
