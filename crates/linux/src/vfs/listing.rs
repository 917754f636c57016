//! Directories and paths, and what is in `/proc`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Vfs;
use super::node::{Id, Inner, Name, NodeId, Source};
use super::proc::{Descriptor, Fixed, Generated, MountTable, Processes};
use super::stat::{DirectoryEntry, FileType};
use crate::{Errno, Result};

/// The longest path, with its end.
const PATH: usize = 4096;

impl Vfs {
    /// Returns what is in a directory: itself, the directory it is in, and everything else sorted by name.
    pub fn read_dir(
        &mut self,
        processes: &dyn Processes,
        node: NodeId,
    ) -> Result<Vec<DirectoryEntry>> {
        let children = match node.0 {
            Inner::Stored(id) => self.children(id)?,
            Inner::Generated(generated) => {
                let children = generated.children(processes)?.into_iter();
                children.map(|(name, child)| (name.into_bytes().into(), child.into())).collect()
            }
        };
        let mut entries = vec![
            self.directory_entry(b".", node)?,
            self.directory_entry(b"..", self.parent_of(node)?)?,
        ];
        for (name, child) in children {
            entries.push(self.directory_entry(&name, child)?);
        }
        Ok(entries)
    }

    fn directory_entry(&self, name: &[u8], node: NodeId) -> Result<DirectoryEntry> {
        let inode = match node.0 {
            Inner::Stored(id) => id,
            Inner::Generated(generated) => generated.inode(),
        };
        Ok(DirectoryEntry { name: name.to_vec(), inode, file_type: self.type_of(node)? })
    }

    /// Returns everything in a directory, sorted by name.
    pub(super) fn children(&mut self, id: Id) -> Result<BTreeMap<Name, NodeId>> {
        let node = self.nodes.get(id)?;
        let mut names: Vec<Name> = node.directory()?.entries.keys().cloned().collect();
        if !self.is_alive(id)? {
            return Err(Errno::NOENT);
        }
        if let Source::Below(place) | Source::Through(place, _) = &node.source {
            let place = place.clone();
            names.extend(self.host.names(&place)?);
        }
        // Inodes are numbered in the order of names, not in the host's.
        names.sort();
        names.dedup();
        let mut children = BTreeMap::new();
        for name in names {
            if let Some(child) = self.stored_child(id, &name)? {
                children.insert(name, child);
            }
        }
        Ok(children)
    }

    /// Returns the path of a file, one of them if it has several. `ENOENT` if it is deleted.
    pub fn path_of(&self, node: NodeId) -> Result<Vec<u8>> {
        match node.0 {
            Inner::Stored(id) if !self.is_alive(id)? => Err(Errno::NOENT),
            Inner::Stored(_) | Inner::Generated(_) => self.path_even_if_deleted(node),
        }
    }

    /// Returns the path of a file as links in `/proc` have it: marked if the file is deleted.
    pub fn link_text(&self, node: NodeId) -> Result<Vec<u8>> {
        let mut path = self.path_even_if_deleted(node)?;
        if let Inner::Stored(id) = node.0
            && !self.is_alive(id)?
        {
            path.extend_from_slice(b" (deleted)");
        }
        Ok(path)
    }

    fn path_even_if_deleted(&self, node: NodeId) -> Result<Vec<u8>> {
        let mut id = match node.0 {
            Inner::Stored(id) => id,
            Inner::Generated(generated) => return Ok(generated.path().into_bytes()),
        };
        let mut names: Vec<&Name> = Vec::new();
        let mut len = 0;
        while let Some((directory, name)) = self.nodes.get(id)?.location() {
            len += 1 + name.len();
            if len >= PATH {
                return Err(Errno::NAMETOOLONG);
            }
            names.push(name);
            id = *directory;
        }
        let mut path = Vec::with_capacity(len);
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        Ok(path)
    }

    /// Returns what is in a link of `/proc`.
    pub(super) fn generated_link(
        &self,
        processes: &dyn Processes,
        generated: Generated,
    ) -> Result<Vec<u8>> {
        match generated {
            Generated::Link(owner, link) => self.link_text(processes.link(owner.id(), link)?),
            Generated::Descriptor(owner, fd) => match processes.descriptor(owner.id(), fd)? {
                Descriptor::Node(node) => self.link_text(node),
                Descriptor::Other(text) => Ok(text),
            },
            Generated::Fixed(index) => {
                let (pid, tid) = processes.current();
                match Generated::fixed(index) {
                    Fixed::Link(target) => Ok(target.into()),
                    Fixed::SelfLink => Ok(pid.to_string().into_bytes()),
                    Fixed::ThreadSelfLink => Ok(format!("{pid}/task/{tid}").into_bytes()),
                    Fixed::Line(_) | Fixed::System(_) => Err(Errno::INVAL),
                }
            }
            Generated::Directory(_)
            | Generated::Process(_)
            | Generated::Tasks(_)
            | Generated::File(..)
            | Generated::Mounts(..)
            | Generated::Descriptors(_)
            | Generated::DescriptorInfos(_) => Err(Errno::INVAL),
        }
    }

    /// Returns what is in a file of `/proc`.
    pub(super) fn generated_contents(
        &self,
        processes: &dyn Processes,
        generated: Generated,
    ) -> Result<Vec<u8>> {
        match (generated, generated.file_type()) {
            (Generated::File(owner, file), _) => processes.file(owner.id(), file),
            (Generated::Mounts(_, table), _) => Ok(self.mount_table(table).into_bytes()),
            (Generated::Fixed(index), _) => match Generated::fixed(index) {
                Fixed::Line(text) => Ok(format!("{text}\n").into_bytes()),
                Fixed::System(file) => processes.system(file),
                Fixed::Link(_) | Fixed::SelfLink | Fixed::ThreadSelfLink => Err(Errno::INVAL),
            },
            (_, FileType::Directory) => Err(Errno::ISDIR),
            (_, _) => Err(Errno::INVAL),
        }
    }

    fn mount_table(&self, table: MountTable) -> String {
        let mut text = String::new();
        for (index, mount) in self.mounts.iter().enumerate() {
            let (path, kind) = (mount.escaped_path(), mount.kind());
            let (id, above) = (index + 1, usize::from(index > 0));
            let written = match table {
                MountTable::Mounts => writeln!(text, "{kind} {path} {kind} rw,noatime 0 0"),
                MountTable::Mountinfo => {
                    writeln!(text, "{id} {above} 0:{id} / {path} rw,noatime - {kind} {kind} rw")
                }
            };
            written.unwrap_or_else(|_| unreachable!("strings can be written"));
        }
        text
    }
}
