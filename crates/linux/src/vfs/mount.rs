//! What the guest is given: the root, directories of the host, and files.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::contents::Contents;
use super::host::{Host, HostStat, Place};
use super::limits::Usage;
use super::node::{Attributes, Directory, Entry, Id, Kind, Name, Node, NodeId, Nodes, Source};
use super::proc::{Descriptor, Generated, ProcFile, ProcLink, Processes, SystemFile};
use super::saved::Given;
use super::stat::{Device, FileType};
use super::table::host_node;
use super::walk::{At, Found, NAME};
use super::{Bind, Setup, Vfs};
use crate::{Errno, Result};

/// Why a run cannot be given its files.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Something of the host cannot be opened.
    #[error("cannot open {}: {error}", path.display())]
    Host {
        /// Which path.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The root is not a directory.
    #[error("{} is not a directory", .0.display())]
    RootIsNoDirectory(PathBuf),
    /// Something cannot be put where the guest is to see it.
    #[error("cannot make {} for the guest: {error}", String::from_utf8_lossy(path))]
    Guest {
        /// The path in the guest.
        path: Vec<u8>,
        /// Why not.
        error: Errno,
    },
}

/// A file system that is mounted.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Mount {
    path: Vec<u8>,
    kind: MountKind,
}

/// Kinds of file systems.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum MountKind {
    Overlay,
    Proc,
    Tmpfs,
    Sysfs,
    Bind,
}

impl Mount {
    /// True if changes go to the host.
    pub(super) fn is_writable(&self) -> bool {
        self.kind == MountKind::Bind
    }

    pub(super) fn magic(&self) -> u64 {
        match self.kind {
            MountKind::Overlay | MountKind::Tmpfs => 0x0102_1994,
            MountKind::Proc => 0x9fa0,
            MountKind::Sysfs => 0x6265_6572,
            MountKind::Bind => 0xef53,
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self.kind {
            MountKind::Overlay => "overlay",
            MountKind::Proc => "proc",
            MountKind::Tmpfs => "tmpfs",
            MountKind::Sysfs => "sysfs",
            MountKind::Bind => "ext4",
        }
    }

    /// Returns the path as tables of mounts have it: without what would end it.
    pub(super) fn escaped_path(&self) -> String {
        let escape = |byte: &u8| match byte {
            b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}"),
            _ => char::from(*byte).to_string(),
        };
        self.path.iter().map(escape).collect()
    }
}

/// Nobody runs while a run is set up.
struct Nobody;

impl Processes for Nobody {
    fn current(&self) -> (u32, u32) {
        (0, 0)
    }

    fn list(&self) -> Vec<u32> {
        Vec::new()
    }

    fn threads(&self, _: u32) -> Vec<u32> {
        Vec::new()
    }

    fn file(&self, _: u32, _: ProcFile) -> Result<Vec<u8>> {
        Err(Errno::SRCH)
    }

    fn link(&self, _: u32, _: ProcLink) -> Result<NodeId> {
        Err(Errno::SRCH)
    }

    fn descriptors(&self, _: u32) -> Vec<u32> {
        Vec::new()
    }

    fn descriptor(&self, _: u32, _: u32) -> Result<Descriptor> {
        Err(Errno::SRCH)
    }

    fn system(&self, _: SystemFile) -> Result<Vec<u8>> {
        Err(Errno::SRCH)
    }
}

impl Vfs {
    /// Opens what a guest is given.
    pub fn new(setup: Setup) -> std::result::Result<Vfs, SetupError> {
        let mut host = Host::new();
        let attributes = Attributes::new(0o755, setup.time);
        let mut given = Vec::new();
        let root = match &setup.root {
            None => Node::new(Kind::Directory(Directory::default()), Source::Memory, attributes, 0),
            Some(path) => {
                let (place, node) = root_node(&mut host, path)?;
                given.push((given_as(path, b"/"), place.id()));
                node
            }
        };
        let mut nodes = Nodes::new();
        let root = nodes.add(root);
        let mounts = vec![Mount { path: b"/".to_vec(), kind: MountKind::Overlay }];
        let (usage, now) = (Usage::unlimited(), setup.time);
        let mut vfs = Vfs { nodes, root, mounts, host, usage, now, nameless: Vec::new(), given };
        vfs.mount_standard(setup.root.is_none())?;
        for bind in &setup.binds {
            vfs.bind(bind)?;
        }
        for file in setup.files {
            let made = vfs.give_file(&file.path, &file.contents, file.permissions);
            made.map_err(|error| SetupError::Guest { path: file.path, error })?;
        }
        vfs.usage.limit(setup.limits);
        Ok(vfs)
    }

    /// Mounts what every guest has, and makes the files that it has without a root of its own.
    fn mount_standard(&mut self, files: bool) -> std::result::Result<(), SetupError> {
        let guest = |path: &str| {
            let path = path.as_bytes().to_vec();
            |error| SetupError::Guest { path, error }
        };
        for (path, kind) in [("/dev", MountKind::Tmpfs), ("/sys", MountKind::Sysfs)] {
            self.mount_memory(path.as_bytes(), kind, 0o755).map_err(guest(path))?;
        }
        self.mounts.push(Mount { path: b"/proc".to_vec(), kind: MountKind::Proc });
        let proc = NodeId::from(Generated::ROOT);
        self.mount_at(b"/proc", proc).map_err(guest("/proc"))?;
        self.mount_temporary().map_err(guest("/tmp"))?;
        self.make_standard(files).map_err(guest("/"))
    }

    /// `/tmp` is the guest's own, but part of the root's file system, so that files can be renamed to it.
    fn mount_temporary(&mut self) -> Result<()> {
        let attributes = Attributes::new(0o1777, self.now);
        let kind = Kind::Directory(Directory::default());
        let mut node = Node::new(kind, Source::Memory, attributes, 0);
        node.mount_point = true;
        let node = NodeId::stored(self.nodes.add(node));
        self.mount_at(b"/tmp", node)
    }

    fn mount_memory(&mut self, path: &[u8], kind: MountKind, permissions: u32) -> Result<()> {
        let index = self.mounts.len() as u16;
        self.mounts.push(Mount { path: path.to_vec(), kind });
        let attributes = Attributes::new(permissions, self.now);
        let directory = Kind::Directory(Directory::default());
        let mut node = Node::new(directory, Source::Memory, attributes, index);
        node.mount_point = true;
        let node = NodeId::stored(self.nodes.add(node));
        self.mount_at(path, node)
    }

    fn bind(&mut self, bind: &Bind) -> std::result::Result<(), SetupError> {
        let given = self.host.given(&bind.host);
        let (place, stat) =
            given.map_err(|error| SetupError::Host { path: bind.host.clone(), error })?;
        self.given.push((given_as(&bind.host, &bind.guest), place.id()));
        let index = match bind.writable {
            false => 0,
            true => {
                self.mounts.push(Mount { path: bind.guest.clone(), kind: MountKind::Bind });
                (self.mounts.len() - 1) as u16
            }
        };
        let node = self.bound(place, stat, bind.writable, index);
        let mounted = self.mount_at(&bind.guest, node);
        mounted.map_err(|error| SetupError::Guest { path: bind.guest.clone(), error })
    }

    fn bound(&mut self, place: Arc<Place>, stat: HostStat, writable: bool, index: u16) -> NodeId {
        let mut node = host_node(place, stat, None, writable, index);
        node.mount_point = true;
        NodeId::stored(self.nodes.add(node))
    }

    /// Puts a node where a path leads, in place of what is there.
    fn mount_at(&mut self, path: &[u8], node: NodeId) -> Result<()> {
        let (directory, name) = self.given_place(path)?;
        self.remove_name(directory, &name)?;
        self.give(directory, &name, node)
    }

    /// Returns the directory and the name of a path; directories are made, and links followed.
    fn given_place(&mut self, path: &[u8]) -> Result<(Id, Name)> {
        let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        names.retain(|name| !matches!(*name, b"" | b"."));
        let Some(name) = names.pop() else { return Err(Errno::BUSY) };
        let mut directory = self.root;
        for name in names {
            directory = self.given_directory(directory, name)?.id()?;
        }
        let valid =
            path.starts_with(b"/") && name.len() <= NAME && name != b".." && !path.contains(&0);
        if valid { Ok((directory, name.into())) } else { Err(Errno::INVAL) }
    }

    fn given_directory(&mut self, directory: Id, name: &[u8]) -> Result<NodeId> {
        let at = At { processes: &Nobody, base: NodeId::stored(directory), path: name };
        match self.lookup(at, true) {
            Ok(Found::Node(node)) if self.type_of(node)? == FileType::Directory => Ok(node),
            Ok(_) => Err(Errno::NOTDIR),
            Err(Errno::NOENT) => {
                let kind = Kind::Directory(Directory::default());
                self.give_node(directory, &Name::from(name), kind, 0o755)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes something that the guest is given.
    fn give_node(
        &mut self,
        directory: Id,
        name: &Name,
        kind: Kind,
        permissions: u32,
    ) -> Result<NodeId> {
        let parent = self.nodes.get(directory)?;
        let writable = matches!(parent.source, Source::Through(..));
        if writable {
            // It would have to be made on the host, where nobody has asked for it.
            return Err(Errno::ROFS);
        }
        let attributes = Attributes::new(permissions, self.now);
        let mut node = Node::new(kind, Source::Memory, attributes, parent.mount);
        node.origin = Some((directory, name.clone()));
        let node = NodeId::stored(self.nodes.add(node));
        self.give(directory, name, node)?;
        Ok(node)
    }

    fn give(&mut self, directory: Id, name: &Name, node: NodeId) -> Result<()> {
        let entry = Entry { node: Some(node), given: true, counted: false };
        if let Ok(id) = node.id() {
            self.nodes.get_mut(id)?.origin = Some((directory, name.clone()));
        }
        self.add_name(directory, name, node, entry)
    }

    /// Gives the guest a file, in place of what is there.
    pub(super) fn give_file(
        &mut self,
        path: &[u8],
        contents: &[u8],
        permissions: u32,
    ) -> Result<()> {
        let mut file = Contents::default();
        file.write(&mut self.usage, 0, contents)?;
        self.give_at(path, Kind::File(file), permissions)
    }

    pub(super) fn give_directory(&mut self, path: &[u8], permissions: u32) -> Result<()> {
        self.give_at(path, Kind::Directory(Directory::default()), permissions)
    }

    pub(super) fn give_symlink(&mut self, path: &[u8], target: &[u8]) -> Result<()> {
        self.give_at(path, Kind::Symlink(target.into()), 0o777)
    }

    pub(super) fn give_device(&mut self, path: &[u8], device: Device) -> Result<()> {
        self.give_at(path, Kind::Device(device), 0o666)
    }

    fn give_at(&mut self, path: &[u8], kind: Kind, permissions: u32) -> Result<()> {
        let (directory, name) = self.given_place(path)?;
        if let Some(old) = self.stored_child(directory, &name)? {
            if self.type_of(old)? == FileType::Directory {
                return Err(Errno::ISDIR);
            }
            self.remove_name(directory, &name)?;
        }
        self.give_node(directory, &name, kind, permissions).map(drop)
    }

    pub(super) fn proc_device(&self) -> u32 {
        let proc = self.mounts.iter().position(|mount| mount.kind == MountKind::Proc);
        proc.map_or(0, |index| index as u32 + 1)
    }
}

/// What a run is given, to be found again.
fn given_as(host: &Path, guest: &[u8]) -> Given {
    let host = std::path::absolute(host).unwrap_or_else(|_| host.to_owned());
    Given { guest: guest.to_vec(), host: host.into_os_string().into_vec() }
}

fn root_node(host: &mut Host, path: &Path) -> std::result::Result<(Arc<Place>, Node), SetupError> {
    let given = host.given(path);
    let (place, stat) = given.map_err(|error| SetupError::Host { path: path.to_owned(), error })?;
    if stat.file_type != FileType::Directory {
        return Err(SetupError::RootIsNoDirectory(path.to_owned()));
    }
    Ok((Arc::clone(&place), host_node(place, stat, None, false, 0)))
}
