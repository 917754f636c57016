//! New files, directories, links and names.

use super::Vfs;
use super::contents::Contents;
use super::node::{Attributes, Directory, Entry, Id, Kind, Name, Node, NodeId, Source};
use super::stat::FileType;
use super::walk::{At, Last};
use crate::{Errno, Result};

/// Bytes of the target of a link, with its end.
const TARGET: usize = 4096;

/// What `mknod` makes. Devices are not for guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// An empty file.
    Regular,
    /// A named pipe.
    Fifo,
}

/// What is to be made.
#[derive(Clone, Copy)]
pub(super) enum New<'a> {
    File,
    Directory,
    Symlink(&'a [u8]),
    Fifo,
}

impl Vfs {
    /// Makes a directory. The caller has applied the umask.
    pub fn mkdir(&mut self, at: At<'_>, permissions: u32) -> Result<NodeId> {
        let (directory, name) = self.find_new(at, true)?;
        self.make(directory, &name, New::Directory, permissions & 0o1777)
    }

    /// Makes an empty file or a named pipe. The caller has applied the umask.
    pub fn mknod(&mut self, at: At<'_>, what: Special, permissions: u32) -> Result<NodeId> {
        let (directory, name) = self.find_new(at, false)?;
        let new = match what {
            Special::Regular => New::File,
            Special::Fifo => New::Fifo,
        };
        self.make(directory, &name, new, permissions)
    }

    /// Makes a symbolic link.
    pub fn symlink(&mut self, at: At<'_>, target: &[u8]) -> Result<NodeId> {
        match target.len() {
            0 => return Err(Errno::NOENT),
            TARGET.. => return Err(Errno::NAMETOOLONG),
            _ => {}
        }
        let (directory, name) = self.find_new(at, false)?;
        self.make(directory, &name, New::Symlink(target), 0o777)
    }

    /// Gives a file another name.
    pub fn link(&mut self, node: NodeId, at: At<'_>) -> Result<()> {
        let (directory, name) = self.find_new(at, false)?;
        let id = node.id().map_err(|_| Errno::XDEV)?;
        let (old, parent) = (self.nodes.get(id)?, self.nodes.get(directory)?);
        if old.mount != parent.mount {
            return Err(Errno::XDEV);
        }
        if old.is_directory() {
            return Err(Errno::PERM);
        }
        if old.names.is_empty() && !old.linkable {
            return Err(Errno::NOENT);
        }
        self.usage.take_name()?;
        let linked = match (&old.source, &parent.source) {
            (Source::Through(place, _), Source::Through(parent, _)) => {
                self.host.link(place, parent, &name).map(|()| None)
            }
            (Source::Nameless(file), Source::Through(parent, _)) => {
                self.host.link_nameless(file, parent, &name).map(Some)
            }
            _ => Ok(None),
        };
        let place = linked.inspect_err(|_| self.usage.give_name())?;
        if let Some((place, key)) = place {
            self.nodes.get_mut(id)?.source = Source::Through(place, key);
        }
        self.name(directory, &name, node)?;
        let now = self.now;
        let old = self.nodes.get_mut(id)?;
        old.attributes.ctime = now;
        if let Some((held, _)) = old.gone.take() {
            self.release(NodeId::stored(held));
        }
        Ok(())
    }

    /// Finds the place for something new.
    fn find_new(&mut self, at: At<'_>, directory: bool) -> Result<(Id, Name)> {
        let mut walk = self.walk(at)?;
        let last = self.walk_to_last(&mut walk)?;
        let Last::Name(name) = &last else { return Err(Errno::EXIST) };
        if self.find_last(&walk, &last)?.is_some() {
            return Err(Errno::EXIST);
        }
        if walk.slash && !directory {
            return Err(Errno::NOENT);
        }
        // There is nothing in /proc that could be made.
        let id = walk.directory.id().map_err(|_| Errno::NOENT)?;
        self.may_add(id)?;
        Ok((id, name.clone()))
    }

    /// Fails if a directory is deleted, so that nothing can be made in it.
    pub(super) fn may_add(&self, id: Id) -> Result<()> {
        if self.is_alive(id)? { Ok(()) } else { Err(Errno::NOENT) }
    }

    /// Makes something whose name is free.
    pub(super) fn make(
        &mut self,
        directory: Id,
        name: &Name,
        new: New<'_>,
        permissions: u32,
    ) -> Result<NodeId> {
        let bytes = match new {
            New::Symlink(target) => target.len() as u64,
            New::File | New::Directory | New::Fifo => 0,
        };
        self.usage.take_new(bytes)?;
        let made = self.make_counted(directory, name, new, permissions);
        made.inspect_err(|_| self.usage.give_new(bytes))
    }

    fn make_counted(
        &mut self,
        directory: Id,
        name: &Name,
        new: New<'_>,
        permissions: u32,
    ) -> Result<NodeId> {
        if matches!(self.nodes.get(directory)?.source, Source::Through(..)) {
            return self.make_through(directory, name, new, permissions);
        }
        let node = self.new_node(directory, new, permissions)?;
        let child = NodeId::stored(self.nodes.add(node));
        self.name(directory, name, child)?;
        Ok(child)
    }

    /// Returns a node for a directory, which it is not in yet.
    pub(super) fn new_node(&self, directory: Id, new: New<'_>, permissions: u32) -> Result<Node> {
        let parent = self.nodes.get(directory)?;
        let mut attributes = Attributes::new(permissions, self.now);
        if parent.attributes.permissions & 0o2000 != 0 {
            attributes.gid = parent.attributes.gid;
            attributes.permissions |= if matches!(new, New::Directory) { 0o2000 } else { 0 };
        }
        let kind = match new {
            New::File => Kind::File(Contents::default()),
            New::Directory => Kind::Directory(Directory::default()),
            New::Symlink(target) => Kind::Symlink(target.into()),
            New::Fifo => Kind::Fifo,
        };
        let mut node = Node::new(kind, Source::Memory, attributes, parent.mount);
        node.counted = true;
        Ok(node)
    }

    /// Makes something on the host.
    fn make_through(
        &mut self,
        directory: Id,
        name: &Name,
        new: New<'_>,
        permissions: u32,
    ) -> Result<NodeId> {
        let Source::Through(place, _) = &self.nodes.get(directory)?.source else {
            return Err(Errno::INVAL);
        };
        let place = place.clone();
        let mut file = None;
        let is_fifo = matches!(new, New::Fifo);
        match new {
            New::File => file = Some(self.host.create_file(&place, name, permissions)?),
            New::Directory => self.host.create_directory(&place, name, permissions)?,
            New::Symlink(target) => self.host.create_symlink(&place, name, target)?,
            New::Fifo => self.host.create_fifo(&place, name, permissions)?,
        }
        let child = self.stored_child(directory, name)?.ok_or(Errno::STALE)?;
        let entries = &mut self.nodes.get_mut(directory)?.directory_mut()?.entries;
        if let Some(entry) = entries.get_mut(name) {
            entry.counted = true;
        }
        let now = self.now;
        let node = self.nodes.get_mut(child.id()?)?;
        node.counted = true;
        node.changed = true;
        node.attributes = Attributes::new(permissions, now);
        if is_fifo {
            // It has a name on the host, but what goes through it stays among the guest's processes.
            node.kind = Kind::Fifo;
        }
        if let (Source::Through(place, _), Some(file)) = (&node.source, file) {
            self.host.keep_open(place, file);
        }
        self.touch(directory)?;
        Ok(child)
    }

    /// Gives a node a name that the guest has chosen and that counts.
    fn name(&mut self, directory: Id, name: &Name, child: NodeId) -> Result<()> {
        let entries = &self.nodes.get(directory)?.directory()?.entries;
        let given = entries.get(name).is_some_and(|entry| entry.given);
        self.add_name(directory, name, child, Entry { node: Some(child), given, counted: true })?;
        self.touch(directory)
    }

    /// Says that a directory has changed.
    pub(super) fn touch(&mut self, directory: Id) -> Result<()> {
        let now = self.now;
        let node = self.nodes.get_mut(directory)?;
        (node.attributes.mtime, node.attributes.ctime) = (now, now);
        // On the host, the time is another one.
        node.changed |= matches!(node.source, Source::Through(..));
        Ok(())
    }

    /// Returns whether a file is a directory.
    pub(super) fn is_directory(&self, node: NodeId) -> Result<bool> {
        Ok(self.type_of(node)? == FileType::Directory)
    }
}
