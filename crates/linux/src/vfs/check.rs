//! Whether the files of a snapshot are such as a run can have. A snapshot may come from anybody.

use std::collections::{HashMap, HashSet};

use super::limits::NAME;
use super::node::{Id, Inner, Kind, Name};
use super::saved::{Saved, SavedNode, SavedPlace, SavedSource};
use super::stat::FileType;
use super::walk::NAME as LONGEST_NAME;
use crate::SnapshotError;

/// What can be counted, at the most.
const MANY: u64 = 1 << 40;
/// What may count towards the limits before there are any.
const MOST_GIVEN: u64 = 1 << 32;

/// Makes the error if something is not as it must be.
fn must(holds: bool, what: &'static str) -> Result<(), SnapshotError> {
    if holds { Ok(()) } else { Err(SnapshotError::Damaged(what)) }
}

fn is_name(name: &Name) -> bool {
    let is_other = !matches!(&**name, b"" | b"." | b"..");
    is_other && name.len() <= LONGEST_NAME && !name.contains(&b'/') && !name.contains(&0)
}

impl Saved {
    /// Finds out whether it is consistent, for a run that is given so much of the host.
    pub(super) fn check(&self, given: usize) -> Result<(), SnapshotError> {
        let root = self.nodes.get(&self.root);
        let is_directory = |node: &SavedNode| matches!(node.kind, Kind::Directory(_));
        must(root.is_some_and(|root| is_directory(root) && root.names.is_empty()), "no root")?;
        must(self.next < MANY && self.nodes.keys().all(|id| (1..self.next).contains(id)), "files")?;
        for (number, place) in self.places.iter().enumerate() {
            must(
                match place {
                    SavedPlace::Given(index) => (*index as usize) < given,
                    SavedPlace::Below(above, name) => (*above as usize) < number && is_name(name),
                },
                "folders of the host",
            )?;
        }
        must(self.mounts.iter().all(|mount| !mount.is_writable()), "mounts")?;
        let mut held: HashMap<Id, u64> = HashMap::new();
        for (id, node) in &self.nodes {
            self.check_node(*id, node)?;
            if let Some((directory, _)) = &node.gone {
                *held.entry(*directory).or_default() += 1;
            }
        }
        for (id, count) in held {
            let holder = self.nodes.get(&id).filter(|node| is_directory(node));
            must(holder.is_some_and(|node| node.holders >= count), "a deleted file")?;
        }
        self.check_tree()?;
        self.check_usage()
    }

    fn check_node(&self, id: Id, node: &SavedNode) -> Result<(), SnapshotError> {
        must(usize::from(node.mount) < self.mounts.len() && node.holders < MANY, "a file")?;
        let nanoseconds = [
            node.attributes.atime,
            node.attributes.mtime,
            node.attributes.ctime,
            node.attributes.btime,
        ];
        must(nanoseconds.iter().all(|time| time.nanoseconds < 1_000_000_000), "a time")?;
        if let SavedSource::Below(place, _) = &node.source {
            must((*place as usize) < self.places.len(), "folders of the host")?;
            must(matches!(node.kind, Kind::File(_) | Kind::Directory(_)), "folders of the host")?;
        }
        for (directory, name) in &node.names {
            let entry = match self.nodes.get(directory).map(|node| &node.kind) {
                Some(Kind::Directory(directory)) => directory.entries.get(name),
                _ => None,
            };
            let is_this = entry.and_then(|entry| entry.node).map(|node| node.0);
            must(is_this == Some(Inner::Stored(id)), "a name")?;
        }
        match &node.kind {
            Kind::Directory(directory) => {
                must(node.names.len() <= 1, "a directory")?;
                let mut subdirectories = 0;
                for (name, entry) in &directory.entries {
                    must(is_name(name), "a name")?;
                    let Some(child) = entry.node else { continue };
                    let Inner::Stored(child) = child.0 else { continue };
                    let child = self.nodes.get(&child);
                    let is_here = |child: &&SavedNode| child.names.contains(&(id, name.clone()));
                    let child = child.filter(is_here).ok_or(SnapshotError::Damaged("a name"))?;
                    subdirectories += u64::from(matches!(child.kind, Kind::Directory(_)));
                }
                let counted = directory.subdirectories;
                must((subdirectories..MANY).contains(&counted), "a directory")
            }
            Kind::Special(FileType::Regular | FileType::Directory | FileType::Symlink) => {
                must(false, "a file")
            }
            Kind::File(_) | Kind::Symlink(_) | Kind::Fifo | Kind::Device(_) | Kind::Special(_) => {
                Ok(())
            }
        }
    }

    /// Whoever goes up from a file comes to an end.
    fn check_tree(&self) -> Result<(), SnapshotError> {
        let mut known: HashSet<Id> = HashSet::new();
        for first in self.nodes.keys() {
            let (mut path, mut on_path, mut at) = (Vec::new(), HashSet::new(), *first);
            while !known.contains(&at) {
                must(on_path.insert(at), "a directory is in itself")?;
                path.push(at);
                let node = self.nodes.get(&at).ok_or(SnapshotError::Damaged("a directory"))?;
                match node.names.first().or(node.gone.as_ref()) {
                    Some((above, _)) => at = *above,
                    None => break,
                }
            }
            known.extend(path);
        }
        Ok(())
    }

    /// What the files take was counted.
    fn check_usage(&self) -> Result<(), SnapshotError> {
        let (mut bytes, mut nodes) = (0u64, 0u64);
        for node in self.nodes.values() {
            nodes += u64::from(node.counted);
            bytes += match &node.kind {
                Kind::File(contents) => contents.cost(),
                Kind::Symlink(target) if node.counted => target.len() as u64,
                Kind::Directory(directory) => {
                    NAME * directory.entries.values().filter(|entry| entry.counted).count() as u64
                }
                Kind::Symlink(_) | Kind::Fifo | Kind::Device(_) | Kind::Special(_) => 0,
            };
        }
        let used = &self.usage;
        must((bytes..MANY).contains(&used.bytes()), "the count of bytes in files")?;
        must((nodes..MANY).contains(&used.nodes()), "the count of files")?;
        let given = used.given();
        must(given.bytes <= MOST_GIVEN && given.nodes <= MOST_GIVEN, "the count of files")
    }
}
