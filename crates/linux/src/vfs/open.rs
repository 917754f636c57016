//! Opening files.

use std::sync::Arc;

use cap_std::fs::File;

use super::Vfs;
use super::create::New;
use super::node::{Id, Inner, Kind, NodeId, Source};
use super::stat::FileType;
use super::walk::{At, Found, Last, Walk};
use crate::{Errno, Result};

/// How a file is to be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// To read it: `O_RDONLY` or `O_RDWR`.
    pub read: bool,
    /// To write it: `O_WRONLY` or `O_RDWR`.
    pub write: bool,
    /// It may be created: `O_CREAT`.
    pub create: bool,
    /// It must be created; a temporary file may not get a name: `O_EXCL`.
    pub exclusive: bool,
    /// What is in it is deleted: `O_TRUNC`.
    pub truncate: bool,
    /// It must be a directory: `O_DIRECTORY`.
    pub directory: bool,
    /// It may not be a link: `O_NOFOLLOW`.
    pub no_follow: bool,
    /// Only to name it: `O_PATH`.
    pub path_only: bool,
    /// A file without a name, in this directory: `O_TMPFILE`.
    pub temporary: bool,
}

impl OpenFlags {
    /// To read a file that is there.
    pub const READ: OpenFlags = OpenFlags {
        read: true,
        write: false,
        create: false,
        exclusive: false,
        truncate: false,
        directory: false,
        no_follow: false,
        path_only: false,
        temporary: false,
    };
}

/// What looking for the file gave.
enum Target {
    Found(Found),
    Created(NodeId),
}

impl Vfs {
    /// Opens a file and holds it for the caller ([`Vfs::retain`]); open files of processes are the caller's. The caller
    /// has applied the umask to the permissions, which a new file gets.
    pub fn open(&mut self, at: At<'_>, flags: OpenFlags, permissions: u32) -> Result<Found> {
        let flags = match flags.path_only {
            true => OpenFlags {
                directory: flags.directory,
                no_follow: flags.no_follow,
                path_only: true,
                ..OpenFlags::default()
            },
            false => flags,
        };
        if (flags.create && flags.directory) || (flags.temporary && !flags.write) {
            return Err(Errno::INVAL);
        }
        if flags.temporary {
            return self.open_temporary(at, flags, permissions);
        }
        match self.find_or_create(at, flags, permissions)? {
            Target::Created(node) => {
                self.retain(node)?;
                Ok(Found::Node(node))
            }
            Target::Found(Found::Node(node)) => {
                self.may_open(node, flags)?;
                self.retain(node)?;
                if flags.truncate && self.type_of(node)? == FileType::Regular {
                    self.truncate(node, 0).inspect_err(|_| self.release(node))?;
                }
                Ok(Found::Node(node))
            }
            Target::Found(found @ Found::Descriptor { .. }) => Ok(found),
        }
    }

    fn find_or_create(&mut self, at: At<'_>, flags: OpenFlags, permissions: u32) -> Result<Target> {
        let mut walk = self.walk(at)?;
        loop {
            let last = self.walk_to_last(&mut walk)?;
            if flags.create && walk.slash && matches!(last, Last::Name(_)) {
                return Err(Errno::ISDIR);
            }
            let Some(node) = self.find_last(&walk, &last)? else {
                return self.create(&walk, &last, flags, permissions);
            };
            if flags.create && flags.exclusive {
                return Err(Errno::EXIST);
            }
            let link = self.type_of(node)? == FileType::Symlink;
            if !link || (flags.no_follow && !walk.slash) {
                if walk.slash && !self.is_directory(node)? {
                    return Err(Errno::NOTDIR);
                }
                return Ok(Target::Found(Found::Node(node)));
            }
            if let Some(found) = self.follow_last(&mut walk, node)? {
                return Ok(Target::Found(found));
            }
        }
    }

    fn create(
        &mut self,
        walk: &Walk<'_>,
        last: &Last,
        flags: OpenFlags,
        permissions: u32,
    ) -> Result<Target> {
        let Last::Name(name) = last else { return Err(Errno::NOENT) };
        if !flags.create {
            return Err(Errno::NOENT);
        }
        let directory = walk.directory.id().map_err(|_| Errno::NOENT)?;
        self.may_add(directory)?;
        self.make(directory, name, New::File, permissions).map(Target::Created)
    }

    /// Finds out whether something that is there may be opened.
    fn may_open(&mut self, node: NodeId, flags: OpenFlags) -> Result<()> {
        let file_type = self.type_of(node)?;
        if flags.create && file_type == FileType::Directory {
            return Err(Errno::ISDIR);
        }
        if flags.directory && file_type != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        if flags.path_only {
            return Ok(());
        }
        match file_type {
            FileType::Symlink => Err(Errno::LOOP),
            FileType::Directory if flags.write || flags.truncate => Err(Errno::ISDIR),
            FileType::Directory | FileType::Fifo | FileType::Character => {
                self.may_open_special(node)
            }
            FileType::Block => Err(Errno::ACCES),
            FileType::Socket => Err(Errno::NXIO),
            FileType::Regular => match node.0 {
                Inner::Stored(id) => self.may_open_file(id, flags),
                // Nothing in /proc can be written.
                Inner::Generated(_) if flags.write || flags.truncate => Err(Errno::ACCES),
                Inner::Generated(_) => Ok(()),
            },
        }
    }

    /// Pipes and devices of the host are not opened.
    fn may_open_special(&self, node: NodeId) -> Result<()> {
        let Inner::Stored(id) = node.0 else { return Ok(()) };
        match self.nodes.get(id)?.kind {
            Kind::Special(_) => Err(Errno::ACCES),
            Kind::File(_)
            | Kind::Directory(_)
            | Kind::Symlink(_)
            | Kind::Fifo
            | Kind::Device(_) => Ok(()),
        }
    }

    /// Opens a file on the host, to find out whether that is possible before it is read or written.
    fn may_open_file(&mut self, id: Id, flags: OpenFlags) -> Result<()> {
        match &self.nodes.get(id)?.source {
            Source::Memory | Source::Nameless(_) => Ok(()),
            Source::Below(place) => {
                let place = place.clone();
                self.host.file(&place, false, None).map(drop)
            }
            Source::Through(place, key) => {
                let (place, key) = (place.clone(), *key);
                let write = flags.write || flags.truncate;
                self.host.file(&place, write, Some(key)).map(drop)
            }
        }
    }

    /// Makes a file without a name.
    fn open_temporary(&mut self, at: At<'_>, flags: OpenFlags, permissions: u32) -> Result<Found> {
        let directory = self.lookup(at, !flags.no_follow)?.node()?;
        if !self.is_directory(directory)? {
            return Err(Errno::NOTDIR);
        }
        let directory = directory.id().map_err(|_| Errno::OPNOTSUPP)?;
        // What ext4 says.
        self.may_add(directory).map_err(|_| Errno::PERM)?;
        let mut node = self.new_node(directory, New::File, permissions)?;
        node.linkable = !flags.exclusive;
        node.holders = 1;
        self.usage.take_node()?;
        match self.temporary_on_host(directory, permissions, node.linkable) {
            Ok(Some(file)) => node.source = Source::Nameless(file),
            Ok(None) => {}
            Err(error) => {
                self.usage.give_node();
                return Err(error);
            }
        }
        // A deleted file holds the directory that it was in.
        let id = self.nodes.add(node);
        self.nodes.get_mut(directory)?.holders += 1;
        self.nodes.get_mut(id)?.gone = Some((directory, format!("#{id}").into_bytes().into()));
        Ok(Found::Node(NodeId::stored(id)))
    }

    /// The host's file for one without a name, if the directory is the host's.
    fn temporary_on_host(
        &mut self,
        directory: Id,
        permissions: u32,
        linkable: bool,
    ) -> Result<Option<Arc<File>>> {
        let Source::Through(place, _) = &self.nodes.get(directory)?.source else { return Ok(None) };
        let place = place.clone();
        self.may_add_nameless()?;
        let file = Arc::new(self.host.create_nameless(&place, permissions, linkable)?);
        self.nameless.push(Arc::downgrade(&file));
        Ok(Some(file))
    }
}
