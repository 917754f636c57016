//! Renaming.

use super::Vfs;
use super::node::{Entry, Id, Name, NodeId, Source};
use super::walk::{At, Last};
use crate::{Errno, Result};

/// What renaming does if the new name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    /// What has the name loses it.
    Replace,
    /// It fails.
    NoReplace,
    /// The two swap their names.
    Exchange,
}

/// One end of a renaming.
struct End {
    directory: NodeId,
    name: Name,
    slash: bool,
    node: Option<NodeId>,
}

impl Vfs {
    /// Gives something another name.
    pub fn rename(&mut self, from: At<'_>, to: At<'_>, mode: RenameMode) -> Result<()> {
        let (from_directory, from_last) = self.rename_end(from)?;
        let (to_directory, to_last) = self.rename_end(to)?;
        if self.mount_of(from_directory.0)? != self.mount_of(to_directory.0)? {
            return Err(Errno::XDEV);
        }
        let Last::Name(from_name) = from_last else { return Err(Errno::BUSY) };
        let Last::Name(to_name) = to_last else {
            let taken = mode == RenameMode::NoReplace;
            return Err(if taken { Errno::EXIST } else { Errno::BUSY });
        };
        let from = self.find_end(from, from_directory, from_name)?;
        let Some(node) = from.node else { return Err(Errno::NOENT) };
        let to = self.find_end(to, to_directory, to_name)?;
        self.may_add(to.directory.id()?)?;
        self.may_rename(node, &from, &to, mode)?;
        if to.node == Some(node) {
            return Ok(());
        }
        self.rename_checked(node, from, to, mode)
    }

    /// Returns the directory, whether the path ends with slashes, and the last component.
    fn rename_end(&mut self, at: At<'_>) -> Result<((NodeId, bool), Last)> {
        let mut walk = self.walk(at)?;
        let last = self.walk_to_last(&mut walk)?;
        Ok(((walk.directory, walk.slash), last))
    }

    fn find_end(
        &mut self,
        at: At<'_>,
        (directory, slash): (NodeId, bool),
        name: Name,
    ) -> Result<End> {
        let node = self.child(at.processes, directory, &name)?;
        Ok(End { directory, name, slash, node })
    }

    /// Finds out what is wrong, in the order of Linux.
    fn may_rename(&self, node: NodeId, from: &End, to: &End, mode: RenameMode) -> Result<()> {
        match (mode, to.node) {
            (RenameMode::NoReplace, Some(_)) => return Err(Errno::EXIST),
            (RenameMode::Exchange, None) => return Err(Errno::NOENT),
            (RenameMode::Exchange, Some(other)) if to.slash && !self.is_directory(other)? => {
                return Err(Errno::NOTDIR);
            }
            _ => {}
        }
        let exchange = mode == RenameMode::Exchange;
        let directory = self.is_directory(node)?;
        if !directory && (from.slash || (!exchange && to.slash)) {
            return Err(Errno::NOTDIR);
        }
        if self.is_within(to.directory, node)? {
            return Err(Errno::INVAL);
        }
        if let Some(other) = to.node
            && self.is_within(from.directory, other)?
        {
            return Err(if exchange { Errno::INVAL } else { Errno::NOTEMPTY });
        }
        if to.node == Some(node) {
            return Ok(());
        }
        if let Some(other) = to.node.filter(|_| !exchange) {
            match (directory, self.is_directory(other)?) {
                (true, false) => return Err(Errno::NOTDIR),
                (false, true) => return Err(Errno::ISDIR),
                (true, true) | (false, false) => {}
            }
        }
        let mounted =
            self.is_mount_point(node) || to.node.is_some_and(|to| self.is_mount_point(to));
        if mounted { Err(Errno::BUSY) } else { Ok(()) }
    }

    fn rename_checked(&mut self, node: NodeId, from: End, to: End, mode: RenameMode) -> Result<()> {
        let (from_id, to_id) = (from.directory.id()?, to.directory.id()?);
        match (mode, to.node) {
            (RenameMode::Exchange, Some(other)) => {
                self.rename_on_host(from_id, &from.name, to_id, &to.name, true)?;
                self.exchange((from_id, &from.name, node), (to_id, &to.name, other))?;
            }
            (_, other) => {
                if let Some(other) = other.filter(|_| self.is_directory(node).unwrap_or(false)) {
                    self.must_be_empty(other.id()?)?;
                }
                self.replace(from_id, &from.name, to_id, &to.name, other)?;
            }
        }
        self.nodes.get_mut(node.id()?)?.attributes.ctime = self.now;
        self.touch(from_id)?;
        self.touch(to_id)
    }

    /// Moves a name to where another one may be, which is deleted.
    fn replace(
        &mut self,
        from: Id,
        from_name: &Name,
        to: Id,
        to_name: &Name,
        other: Option<NodeId>,
    ) -> Result<()> {
        // Some name counted already, or this is a new one in place of one that was given.
        let counted = |vfs: &Vfs, id: Id, name: &Name| -> Result<bool> {
            let entries = &vfs.nodes.get(id)?.directory()?.entries;
            Ok(entries.get(name).is_some_and(|entry| entry.node.is_some() && entry.counted))
        };
        let free = counted(self, from, from_name)? || counted(self, to, to_name)?;
        if !free {
            self.usage.take_name()?;
        }
        let renamed = self.replace_on_host(from, from_name, to, to_name, other);
        if let Err(error) = renamed {
            if !free {
                self.usage.give_name();
            }
            return Err(error);
        }
        if let Some(other) = other {
            self.nodes.get_mut(other.id()?)?.attributes.ctime = self.now;
            self.remove_name(to, to_name)?;
        }
        let Some(child) = self.take_name(from, from_name)? else { return Err(Errno::STALE) };
        if free {
            self.usage.take_name()?;
        }
        self.put(to, to_name, NodeId::stored(child), true)
    }

    fn replace_on_host(
        &mut self,
        from: Id,
        from_name: &Name,
        to: Id,
        to_name: &Name,
        other: Option<NodeId>,
    ) -> Result<()> {
        let open = other.map(|other| self.open_nameless(other)).transpose()?.flatten();
        self.rename_on_host(from, from_name, to, to_name, false)?;
        match other {
            Some(other) => self.set_nameless(other, open),
            None => Ok(()),
        }
    }

    /// Renames on the host, if that is where the directories are: then, both are.
    fn rename_on_host(
        &mut self,
        from: Id,
        from_name: &Name,
        to: Id,
        to_name: &Name,
        exchange: bool,
    ) -> Result<()> {
        let (from, to) = (&self.nodes.get(from)?.source, &self.nodes.get(to)?.source);
        let (Source::Through(from, _), Source::Through(to, _)) = (from, to) else { return Ok(()) };
        self.host.rename((from, from_name), (to, to_name), exchange)
    }

    fn exchange(
        &mut self,
        (from, from_name, node): (Id, &Name, NodeId),
        (to, to_name, other): (Id, &Name, NodeId),
    ) -> Result<()> {
        let mut counted = [true; 2];
        for (counted, (id, name)) in counted.iter_mut().zip([(from, from_name), (to, to_name)]) {
            let entries = &self.nodes.get(id)?.directory()?.entries;
            *counted = entries.get(name).is_some_and(|entry| entry.counted);
            self.take_name(id, name)?;
        }
        for (counted, id, name, node) in
            [(counted[0], from, from_name, other), (counted[1], to, to_name, node)]
        {
            if counted {
                self.usage.take_name()?;
            }
            self.put(id, name, node, counted)?;
        }
        self.nodes.get_mut(other.id()?)?.attributes.ctime = self.now;
        Ok(())
    }

    /// Gives a node a name that is free now, but may have been given.
    fn put(&mut self, id: Id, name: &Name, child: NodeId, counted: bool) -> Result<()> {
        let entries = &self.nodes.get(id)?.directory()?.entries;
        let given = entries.get(name).is_some_and(|entry| entry.given);
        self.add_name(id, name, child, Entry { node: Some(child), given, counted })?;
        let (directory, node) = (self.nodes.get(id)?, self.nodes.get(child.id()?)?);
        if let (Source::Through(directory, _), Source::Through(place, _)) =
            (&directory.source, &node.source)
        {
            place.move_to(directory, name);
        }
        Ok(())
    }

    fn mount_of(&self, node: NodeId) -> Result<Option<u16>> {
        match node.id() {
            Ok(id) => Ok(Some(self.nodes.get(id)?.mount)),
            Err(_) => Ok(None),
        }
    }

    /// Returns whether a directory is another one, or below it.
    fn is_within(&self, directory: NodeId, above: NodeId) -> Result<bool> {
        let mut at = directory;
        loop {
            if at == above {
                return Ok(true);
            }
            let next = self.parent_of(at)?;
            if next == at {
                return Ok(false);
            }
            at = next;
        }
    }
}
