//! Deleting names.

use super::Vfs;
use super::node::{Id, Name, NodeId, Source};
use super::walk::{At, Last};
use crate::{Errno, Result};

impl Vfs {
    /// Deletes a name that is not a directory's.
    pub fn unlink(&mut self, at: At<'_>) -> Result<()> {
        let mut walk = self.walk(at)?;
        let last = self.walk_to_last(&mut walk)?;
        let Last::Name(name) = &last else { return Err(Errno::ISDIR) };
        let node = self.find_last(&walk, &last)?.ok_or(Errno::NOENT)?;
        match (self.is_directory(node)?, walk.slash) {
            (true, _) => return Err(Errno::ISDIR),
            (false, true) => return Err(Errno::NOTDIR),
            (false, false) => {}
        }
        let directory = walk.directory.id()?;
        if self.is_mount_point(node) {
            return Err(Errno::BUSY);
        }
        let open = self.open_nameless(node)?;
        if let Source::Through(place, _) = &self.nodes.get(directory)?.source {
            let place = place.clone();
            self.host.unlink(&place, name)?;
        }
        self.set_nameless(node, open)?;
        self.nodes.get_mut(node.id()?)?.attributes.ctime = self.now;
        self.remove_name(directory, name)?;
        self.touch(directory)
    }

    /// Deletes an empty directory.
    pub fn rmdir(&mut self, at: At<'_>) -> Result<()> {
        let mut walk = self.walk(at)?;
        let last = self.walk_to_last(&mut walk)?;
        let name = match &last {
            Last::Root => return Err(Errno::BUSY),
            Last::Dot => return Err(Errno::INVAL),
            Last::DotDot => return Err(Errno::NOTEMPTY),
            Last::Name(name) => name,
        };
        let node = self.find_last(&walk, &last)?.ok_or(Errno::NOENT)?;
        if !self.is_directory(node)? {
            return Err(Errno::NOTDIR);
        }
        if self.is_mount_point(node) {
            return Err(Errno::BUSY);
        }
        let directory = walk.directory.id()?;
        self.must_be_empty(node.id()?)?;
        self.remove_empty(directory, name)
    }

    /// Deletes a directory that is empty, as far as is known here.
    fn remove_empty(&mut self, directory: Id, name: &Name) -> Result<()> {
        if let Source::Through(place, _) = &self.nodes.get(directory)?.source {
            let place = place.clone();
            self.host.remove_directory(&place, name)?;
        }
        self.remove_name(directory, name)?;
        self.touch(directory)
    }

    /// Fails if something is in a directory.
    pub(super) fn must_be_empty(&mut self, id: Id) -> Result<()> {
        let node = self.nodes.get(id)?;
        let entries = &node.directory()?.entries;
        let present = |node: Option<NodeId>| node.is_some_and(|node| self.is_mount_point(node));
        let empty = match &node.source {
            // The host knows better; but mounts are only known here.
            Source::Through(..) => !entries.values().any(|entry| present(entry.node)),
            Source::Memory | Source::Nameless(_) => {
                !entries.values().any(|entry| entry.node.is_some())
            }
            Source::Below(place) => {
                let place = place.clone();
                let names = self.host.names(&place)?;
                let entries = &self.nodes.get(id)?.directory()?.entries;
                let deleted = |name| entries.get(name).is_some_and(|entry| entry.node.is_none());
                names.iter().all(deleted) && entries.values().all(|entry| entry.node.is_none())
            }
        };
        if empty { Ok(()) } else { Err(Errno::NOTEMPTY) }
    }
}
