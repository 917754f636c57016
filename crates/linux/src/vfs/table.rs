//! Names in directories, and how long files live.

use std::sync::Arc;

use cap_std::fs::File;

use super::Vfs;
use super::contents::Contents;
use super::host::{HostStat, Place};
use super::node::{Attributes, Directory, Entry, Id, Inner, Kind, Name, Node, NodeId, Source};
use super::stat::FileType;
use crate::{Errno, Result};

/// Files of the host without names that may be open at a time: each takes a descriptor of the host's process.
const NAMELESS: usize = 256;

impl Vfs {
    /// Holds a file: it stays, even if it loses its last name.
    pub fn retain(&mut self, node: NodeId) -> Result<()> {
        if let Inner::Stored(id) = node.0 {
            self.nodes.get_mut(id)?.holders += 1;
        }
        Ok(())
    }

    /// Ends a hold. A file without names and holds is deleted.
    pub fn release(&mut self, node: NodeId) {
        let Inner::Stored(id) = node.0 else { return };
        if let Ok(node) = self.nodes.get_mut(id) {
            node.holders = node.holders.saturating_sub(1);
            self.delete_unused(id);
        }
    }

    /// Deletes a node that has neither names nor holders, and then, maybe, the directory that it held.
    fn delete_unused(&mut self, id: Id) {
        let mut unused = vec![id];
        while let Some(id) = unused.pop() {
            let root = self.root;
            let is_unused = |node: &&Node| node.names.is_empty() && node.holders == 0 && id != root;
            if self.nodes.get(id).ok().filter(is_unused).is_none() {
                continue;
            }
            let Some(mut node) = self.nodes.remove(id) else { continue };
            if node.counted {
                self.usage.give_node();
                self.usage.give_bytes(target_bytes(&node.kind));
            }
            if let Source::Through(place, _) = &node.source {
                self.host.forget(place);
            }
            match &mut node.kind {
                Kind::File(contents) => contents.drop_all(&mut self.usage),
                Kind::Directory(directory) => unused.extend(self.abandon(id, directory)),
                Kind::Symlink(_) | Kind::Fifo | Kind::Device(_) | Kind::Special(_) => {}
            }
            if let Some((directory, _)) = node.gone
                && let Ok(directory_node) = self.nodes.get_mut(directory)
            {
                // Those of a snapshot may be fewer than there should be.
                directory_node.holders = directory_node.holders.saturating_sub(1);
                unused.push(directory);
            }
        }
    }

    /// Takes their names from what was seen in a directory of the host that is gone.
    fn abandon(&mut self, id: Id, directory: &Directory) -> Vec<Id> {
        let mut children = Vec::new();
        for (name, entry) in &directory.entries {
            if entry.counted {
                self.usage.give_name();
            }
            if let Some(NodeId(Inner::Stored(child))) = entry.node
                && let Ok(node) = self.nodes.get_mut(child)
            {
                node.names.remove(&(id, name.clone()));
                children.push(child);
            }
        }
        children
    }

    /// Looks for a name in a directory that is stored.
    pub(super) fn stored_child(&mut self, id: Id, name: &Name) -> Result<Option<NodeId>> {
        let node = self.nodes.get(id)?;
        let entry = node.directory()?.entries.get(name).copied();
        match &node.source {
            Source::Memory | Source::Nameless(_) => Ok(entry.and_then(|entry| entry.node)),
            Source::Below(place) => match entry {
                Some(entry) => Ok(entry.node),
                None => {
                    let place = place.clone();
                    let Some(stat) = self.host.find(&place, name)? else { return Ok(None) };
                    self.see(id, &place, name, stat, false).map(Some)
                }
            },
            Source::Through(place, _) => {
                let place = place.clone();
                self.through_child(id, &place, name, entry.and_then(|entry| entry.node))
            }
        }
    }

    /// Asks the host for a name in a directory that may change there at any time.
    fn through_child(
        &mut self,
        id: Id,
        place: &Arc<Place>,
        name: &Name,
        known: Option<NodeId>,
    ) -> Result<Option<NodeId>> {
        if let Some(known) = known.filter(|known| self.is_mount_point(*known)) {
            return Ok(Some(known));
        }
        if !self.is_alive(id)? {
            return Ok(None);
        }
        let stat = self.host.find(place, name)?;
        if let Some(known) = known {
            let node = self.nodes.get(known.id()?)?;
            let same = |stat: &HostStat| {
                matches!(node.source, Source::Through(_, key) if key == stat.key)
                    && node.file_type() == stat.file_type
            };
            if stat.as_ref().is_some_and(same) {
                return Ok(Some(known));
            }
            self.remove_name(id, name)?;
        }
        stat.map(|stat| self.see(id, place, name, stat, true)).transpose()
    }

    /// Adds what was found in a directory of the host.
    fn see(
        &mut self,
        id: Id,
        directory: &Arc<Place>,
        name: &Name,
        stat: HostStat,
        through: bool,
    ) -> Result<NodeId> {
        let place = self.host.below(directory, name);
        let target = match stat.file_type {
            FileType::Symlink => Some(self.host.read_link(directory, name)?),
            _ => None,
        };
        let mount = self.nodes.get(id)?.mount;
        let mut node = host_node(place, stat, target, through, mount);
        node.origin = Some((id, name.clone()));
        let child = NodeId::stored(self.nodes.add(node));
        self.add_name(id, name, child, Entry { node: Some(child), given: true, counted: false })?;
        Ok(child)
    }

    /// Gives a node a name.
    pub(super) fn add_name(
        &mut self,
        id: Id,
        name: &Name,
        child: NodeId,
        entry: Entry,
    ) -> Result<()> {
        if let Inner::Stored(child) = child.0 {
            self.nodes.get_mut(child)?.names.insert((id, name.clone()));
        }
        let is_directory = self.type_of(child)? == FileType::Directory;
        let directory = self.nodes.get_mut(id)?.directory_mut()?;
        directory.subdirectories += u64::from(is_directory);
        directory.entries.insert(name.clone(), entry);
        Ok(())
    }

    /// Takes a name from a node, which is deleted if nothing else needs it. Something given stays known as deleted.
    pub(super) fn remove_name(&mut self, id: Id, name: &Name) -> Result<()> {
        let Some(child) = self.take_name(id, name)? else { return Ok(()) };
        let node = self.nodes.get_mut(child)?;
        if !node.names.is_empty() {
            return self.find_another_place(child);
        }
        if node.holders > 0 {
            node.gone = Some((id, name.clone()));
            self.nodes.get_mut(id)?.holders += 1;
        }
        self.delete_unused(child);
        Ok(())
    }

    /// Takes a name from a node and returns the node.
    pub(super) fn take_name(&mut self, id: Id, name: &Name) -> Result<Option<Id>> {
        let through = matches!(self.nodes.get(id)?.source, Source::Through(..));
        let entries = &mut self.nodes.get_mut(id)?.directory_mut()?.entries;
        let Some(entry) = entries.remove(name) else { return Ok(None) };
        if entry.given && !through {
            let deleted = Entry { node: None, given: true, counted: false };
            entries.insert(name.clone(), deleted);
        }
        if entry.counted {
            self.usage.give_name();
        }
        let Some(NodeId(Inner::Stored(child))) = entry.node else { return Ok(None) };
        let node = self.nodes.get_mut(child)?;
        node.names.remove(&(id, name.clone()));
        if node.is_directory() {
            self.nodes.get_mut(id)?.directory_mut()?.subdirectories -= 1;
        }
        Ok(Some(child))
    }

    /// A file of the host is found by one of its names: by another one, if that is gone.
    fn find_another_place(&mut self, child: Id) -> Result<()> {
        let node = self.nodes.get(child)?;
        let (Source::Through(place, _), Some((directory, name))) =
            (&node.source, node.names.first())
        else {
            return Ok(());
        };
        if let Source::Through(directory, _) = &self.nodes.get(*directory)?.source {
            place.move_to(directory, name);
        }
        Ok(())
    }

    /// Opens a file of the host that is about to lose its last name while it is held.
    pub(super) fn open_nameless(&mut self, node: NodeId) -> Result<Option<Arc<File>>> {
        let node = self.nodes.get(node.id()?)?;
        let last = node.names.len() == 1 && node.holders > 0;
        let (Source::Through(place, key), Kind::File(_), true) = (&node.source, &node.kind, last)
        else {
            return Ok(None);
        };
        let (place, key) = (place.clone(), *key);
        self.may_add_nameless()?;
        let file = self.host.file(&place, true, Some(key));
        file.or_else(|_| self.host.file(&place, false, Some(key))).map(Some)
    }

    /// Fails if too many files of the host are open only here.
    pub(super) fn may_add_nameless(&mut self) -> Result<()> {
        self.nameless.retain(|file| file.strong_count() > 0);
        if self.nameless.len() < NAMELESS { Ok(()) } else { Err(Errno::NFILE) }
    }

    /// Says that a file of the host has lost its last name.
    pub(super) fn set_nameless(&mut self, node: NodeId, file: Option<Arc<File>>) -> Result<()> {
        let Some(file) = file else { return Ok(()) };
        self.nameless.push(Arc::downgrade(&file));
        let source = &mut self.nodes.get_mut(node.id()?)?.source;
        if let Source::Through(place, _) = source {
            self.host.forget(place);
        }
        *source = Source::Nameless(file);
        Ok(())
    }

    pub(super) fn is_mount_point(&self, node: NodeId) -> bool {
        match node.0 {
            Inner::Stored(id) => self.nodes.get(id).is_ok_and(|node| node.mount_point),
            Inner::Generated(generated) => generated.parent().is_none(),
        }
    }

    /// Returns whether a directory still has a name, so that something can be created in it.
    pub(super) fn is_alive(&self, id: Id) -> Result<bool> {
        Ok(id == self.root || !self.nodes.get(id)?.names.is_empty())
    }
}

/// Returns the bytes of a link's target.
fn target_bytes(kind: &Kind) -> u64 {
    match kind {
        Kind::Symlink(target) => target.len() as u64,
        Kind::File(_) | Kind::Directory(_) | Kind::Fifo | Kind::Device(_) | Kind::Special(_) => 0,
    }
}

/// Returns a node for something on the host.
pub(super) fn host_node(
    place: Arc<Place>,
    stat: HostStat,
    target: Option<Name>,
    through: bool,
    mount: u16,
) -> Node {
    let kind = match (stat.file_type, target) {
        (FileType::Regular, _) => Kind::File(Contents::of_length(stat.size)),
        (FileType::Directory, _) => Kind::Directory(Directory::default()),
        (FileType::Symlink, target) => Kind::Symlink(target.unwrap_or_default()),
        (other, _) => Kind::Special(other),
    };
    let source = match (&kind, through) {
        (_, true) => Source::Through(place, stat.key),
        (Kind::File(_) | Kind::Directory(_), false) => Source::Below(place),
        (_, false) => Source::Memory,
    };
    Node::new(kind, source, Attributes::new(stat.permissions, stat.mtime), mount)
}
