//! From paths to files.

use std::sync::Arc;

use super::Vfs;
use super::node::{Inner, Kind, Name, NodeId};
use super::proc::{Descriptor, Generated, Processes};
use super::stat::FileType;
use crate::{Errno, Result};

/// Links that may be followed in one path.
const LINKS: u32 = 40;
/// Bytes of a path, with its end.
const PATH: usize = 4096;
/// Bytes of a name.
pub(super) const NAME: usize = 255;

/// A path, and where it starts.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// Who asks, and all other processes.
    pub processes: &'a dyn Processes,
    /// The directory where paths start that do not start with a slash.
    pub base: NodeId,
    /// The path.
    pub path: &'a [u8],
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file, directory and so on.
    Node(NodeId),
    /// An open file, by its link in `/proc/<pid>/fd`.
    Descriptor {
        /// The process or thread.
        pid: u32,
        /// The number of the open file.
        fd: u32,
    },
}

impl Found {
    /// Returns the node. What can only be done to files in the file system fails with `EACCES` for open files.
    pub fn node(self) -> Result<NodeId> {
        match self {
            Found::Node(node) => Ok(node),
            Found::Descriptor { .. } => Err(Errno::ACCES),
        }
    }
}

/// The last component of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Root,
    Dot,
    DotDot,
    Name(Name),
}

/// A path that is being walked: a directory, and what is left to do from there.
pub(super) struct Walk<'a> {
    processes: &'a dyn Processes,
    pub(super) directory: NodeId,
    rest: Vec<u8>,
    links: u32,
    /// The path ended with slashes.
    pub(super) slash: bool,
}

/// What following a link gives.
enum Followed {
    /// The walk goes on.
    Path,
    /// A link of `/proc`, which leads somewhere without a path.
    Found(Found),
}

impl Vfs {
    /// Starts to walk a path.
    pub(super) fn walk<'a>(&self, at: At<'a>) -> Result<Walk<'a>> {
        if at.path.is_empty() {
            return Err(Errno::NOENT);
        }
        if at.path.len() >= PATH {
            return Err(Errno::NAMETOOLONG);
        }
        let directory = if at.path[0] == b'/' { self.root() } else { at.base };
        if self.type_of(directory)? != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        let rest = at.path.to_vec();
        Ok(Walk { processes: at.processes, directory, rest, links: 0, slash: false })
    }

    /// Walks to the directory that the last component is in.
    pub(super) fn walk_to_last(&mut self, walk: &mut Walk<'_>) -> Result<Last> {
        let mut rest = std::mem::take(&mut walk.rest);
        let mut at = slashes(&rest, 0);
        if at == rest.len() {
            walk.slash = false;
            return Ok(Last::Root);
        }
        loop {
            let end =
                at + rest[at..].iter().position(|byte| *byte == b'/').unwrap_or(rest.len() - at);
            let component = &rest[at..end];
            at = slashes(&rest, end);
            if at == rest.len() {
                walk.slash = end < rest.len();
                return last(component);
            }
            let next = match last(component)? {
                Last::Root | Last::Dot => walk.directory,
                Last::DotDot => self.parent_of(walk.directory)?,
                Last::Name(name) => {
                    self.child(walk.processes, walk.directory, &name)?.ok_or(Errno::NOENT)?
                }
            };
            if self.type_of(next)? != FileType::Symlink {
                self.enter(walk, next)?;
                continue;
            }
            match self.follow(walk, next, &rest[at..])? {
                Followed::Path => {
                    rest = std::mem::take(&mut walk.rest);
                    at = slashes(&rest, 0);
                }
                Followed::Found(found) => {
                    let next = self.found_node(walk.processes, found)?;
                    self.enter(walk, next)?;
                }
            }
        }
    }

    fn enter(&self, walk: &mut Walk<'_>, next: NodeId) -> Result<()> {
        if self.type_of(next)? != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        walk.directory = next;
        Ok(())
    }

    /// Returns the file behind an open file; other things cannot be walked through.
    fn found_node(&self, processes: &dyn Processes, found: Found) -> Result<NodeId> {
        match found {
            Found::Node(node) => Ok(node),
            Found::Descriptor { pid, fd } => match processes.descriptor(pid, fd)? {
                Descriptor::Node(node) => Ok(node),
                Descriptor::Other(_) => Err(Errno::NOTDIR),
            },
        }
    }

    /// Follows a link. What comes after it in the path comes after its target.
    fn follow(&mut self, walk: &mut Walk<'_>, link: NodeId, after: &[u8]) -> Result<Followed> {
        walk.links += 1;
        if walk.links > LINKS {
            return Err(Errno::LOOP);
        }
        match link.0 {
            Inner::Generated(Generated::Link(owner, which)) => {
                return Ok(Followed::Found(Found::Node(walk.processes.link(owner.id(), which)?)));
            }
            Inner::Generated(Generated::Descriptor(owner, fd)) => {
                return Ok(Followed::Found(Found::Descriptor { pid: owner.id(), fd }));
            }
            Inner::Generated(_) | Inner::Stored(_) => {}
        }
        let mut rest = self.readlink(walk.processes, link)?;
        if rest.first() == Some(&b'/') {
            walk.directory = self.root();
        }
        if !after.is_empty() {
            rest.push(b'/');
            rest.extend_from_slice(after);
        }
        walk.rest = rest;
        Ok(Followed::Path)
    }

    /// Follows the last component of a path, which is a link: the walk goes on, or ends here.
    pub(super) fn follow_last(
        &mut self,
        walk: &mut Walk<'_>,
        link: NodeId,
    ) -> Result<Option<Found>> {
        let slash = walk.slash;
        match self.follow(walk, link, b"")? {
            Followed::Path => {
                if slash {
                    walk.rest.push(b'/');
                }
                Ok(None)
            }
            Followed::Found(found) => Ok(Some(found)),
        }
    }

    /// Returns what the last component is.
    pub(super) fn find_last(&mut self, walk: &Walk<'_>, last: &Last) -> Result<Option<NodeId>> {
        match last {
            Last::Root => Ok(Some(self.root())),
            Last::Dot => Ok(Some(walk.directory)),
            Last::DotDot => Ok(Some(self.parent_of(walk.directory)?)),
            Last::Name(name) => self.child(walk.processes, walk.directory, name),
        }
    }

    /// Returns what a path leads to; if it leads to a link, `follow` says whether what that leads to is wanted.
    pub fn lookup(&mut self, at: At<'_>, follow: bool) -> Result<Found> {
        let mut walk = self.walk(at)?;
        loop {
            let last = self.walk_to_last(&mut walk)?;
            let node = self.find_last(&walk, &last)?.ok_or(Errno::NOENT)?;
            let link = self.type_of(node)? == FileType::Symlink;
            let found = match link && (follow || walk.slash) {
                false => Found::Node(node),
                true => match self.follow_last(&mut walk, node)? {
                    Some(found) => found,
                    None => continue,
                },
            };
            if walk.slash {
                let node = self.found_node(walk.processes, found)?;
                if self.type_of(node)? != FileType::Directory {
                    return Err(Errno::NOTDIR);
                }
            }
            return Ok(found);
        }
    }

    /// Returns the kind of a file.
    pub(super) fn type_of(&self, node: NodeId) -> Result<FileType> {
        match node.0 {
            Inner::Stored(id) => Ok(self.nodes.get(id)?.file_type()),
            Inner::Generated(generated) => Ok(generated.file_type()),
        }
    }

    /// Returns the directory that a directory is in; the root's is the root.
    pub(super) fn parent_of(&self, node: NodeId) -> Result<NodeId> {
        match node.0 {
            Inner::Stored(id) => {
                let parent = self.nodes.get(id)?.location().map(|(parent, _)| *parent);
                Ok(NodeId::stored(parent.unwrap_or(id)))
            }
            Inner::Generated(generated) => Ok(generated.parent().map_or(self.root(), NodeId::from)),
        }
    }

    /// Looks for a name in a directory.
    pub(super) fn child(
        &mut self,
        processes: &dyn Processes,
        directory: NodeId,
        name: &Name,
    ) -> Result<Option<NodeId>> {
        if name.len() > NAME {
            return Err(Errno::NAMETOOLONG);
        }
        match directory.0 {
            Inner::Stored(id) => self.stored_child(id, name),
            Inner::Generated(generated) => Ok(generated.child(processes, name)?.map(NodeId::from)),
        }
    }

    /// Returns what is in a link.
    pub fn readlink(&mut self, processes: &dyn Processes, link: NodeId) -> Result<Vec<u8>> {
        match link.0 {
            Inner::Stored(id) => match &self.nodes.get(id)?.kind {
                Kind::Symlink(target) => Ok(target.to_vec()),
                _ => Err(Errno::INVAL),
            },
            Inner::Generated(generated) => self.generated_link(processes, generated),
        }
    }
}

fn slashes(path: &[u8], from: usize) -> usize {
    from + path[from..].iter().take_while(|byte| **byte == b'/').count()
}

fn last(component: &[u8]) -> Result<Last> {
    match component {
        b"." => Ok(Last::Dot),
        b".." => Ok(Last::DotDot),
        name if name.contains(&0) => Err(Errno::INVAL),
        name => Ok(Last::Name(Arc::from(name))),
    }
}
