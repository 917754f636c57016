//! What the guest has made of what it was given.

use super::Vfs;
use super::node::{Entry, Id, Inner, Name, NodeId};
use crate::Result;

/// Bytes of the longest path that is reported. Guests can make directories that lie deeper.
const LONGEST: usize = 4096;

/// A difference from what the guest was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path in the guest.
    pub path: Vec<u8>,
    /// What happened.
    pub kind: ChangeKind,
    /// What is there now, for [`Vfs::stat`], [`Vfs::read`] and [`Vfs::readlink`]; nothing if it was deleted.
    pub node: Option<NodeId>,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The guest was given nothing with this path.
    Created,
    /// Contents or attributes are others, or it is another file.
    Changed,
    /// It is gone. What was in a directory that is gone is not reported.
    Deleted,
}

/// A directory to go through.
struct Open {
    id: Id,
    path: Vec<u8>,
    /// The guest was not given it here: everything in it is new.
    new: bool,
}

impl Vfs {
    /// Returns what the guest has created, changed and deleted, sorted by path; except in `/dev`, `/proc` and `/sys`,
    /// in writable directories of the host (where everything is on the host), and where paths have over 4095 bytes.
    pub fn changes(&mut self) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        let mut open = vec![Open { id: self.root, path: Vec::new(), new: false }];
        while let Some(directory) = open.pop() {
            for (name, entry) in self.entries_now(&directory)? {
                let mut path = directory.path.clone();
                path.push(b'/');
                path.extend_from_slice(&name);
                if path.len() >= LONGEST {
                    continue;
                }
                self.compare(&directory, name, entry, path, &mut changes, &mut open)?;
            }
        }
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(changes)
    }

    /// Returns what may differ in a directory: everything, if it is new.
    fn entries_now(&mut self, directory: &Open) -> Result<Vec<(Name, Entry)>> {
        if !directory.new {
            let entries = &self.nodes.get(directory.id)?.directory()?.entries;
            return Ok(entries.iter().map(|(name, entry)| (name.clone(), *entry)).collect());
        }
        let new = |node| Entry { node: Some(node), given: false, counted: true };
        let children = self.children(directory.id)?.into_iter();
        Ok(children.map(|(name, node)| (name, new(node))).collect())
    }

    fn compare(
        &self,
        directory: &Open,
        name: Name,
        entry: Entry,
        path: Vec<u8>,
        changes: &mut Vec<Change>,
        open: &mut Vec<Open>,
    ) -> Result<()> {
        let Some(node) = entry.node else {
            changes.push(Change { path, kind: ChangeKind::Deleted, node: None });
            return Ok(());
        };
        let Inner::Stored(id) = node.0 else { return Ok(()) };
        let child = self.nodes.get(id)?;
        if child.mount != 0 {
            return Ok(());
        }
        let in_place = child.origin == Some((directory.id, name));
        let new = !child.mount_point && (directory.new || !in_place);
        if new || child.changed {
            let kind = if new && !entry.given { ChangeKind::Created } else { ChangeKind::Changed };
            changes.push(Change { path: path.clone(), kind, node: Some(node) });
        }
        if child.is_directory() {
            open.push(Open { id, path, new });
        }
        Ok(())
    }
}
