//! Directories of the host: everything that touches them.
//!
//! Each is opened once, when a run is set up. From there on, one component at a time is opened in a directory that is
//! already open, and never through a symbolic link: so nothing outside can be reached, whatever somebody does to the
//! directories meanwhile. Links are read and given to the guest's path walk.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use cap_fs_ext::{DirExt, FileTypeExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{
    Dir, DirBuilder, DirBuilderExt, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt,
    Permissions, PermissionsExt,
};
use rustix::fs::{
    AtFlags, RenameFlags, Timespec as Timespec64, Timestamps, UTIME_OMIT, renameat_with, utimensat,
};

use super::node::Name;
use super::stat::{FileType, Timespec};
use crate::{Errno, Result};

/// Directories and files, each, that are kept open for the next use.
const KEPT_OPEN: usize = 64;

/// Permissions that files of the host may get: not those that give someone else's rights to who runs them.
const PERMISSIONS: u32 = 0o1777;

/// What tells files of the host apart: device and inode.
pub(super) type Key = (u64, u64);

/// Where something is on the host. Renaming a directory moves what is in it, too.
pub(super) struct Place {
    id: u64,
    at: Mutex<At>,
}

#[derive(Clone, Default)]
enum At {
    /// Nowhere: it is being dropped.
    #[default]
    Nowhere,
    /// A directory that was given.
    Top(Arc<Dir>),
    /// A name in another one.
    Below(Arc<Place>, Name),
}

impl Place {
    /// Its number.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The directory that it is in, and its name there; `None` if a run was given it.
    pub(super) fn above(&self) -> Option<(Arc<Place>, Name)> {
        match self.at() {
            At::Below(above, name) => Some((above, name)),
            At::Top(_) | At::Nowhere => None,
        }
    }

    fn at(&self) -> At {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says that it has another name now.
    pub(super) fn move_to(&self, directory: &Arc<Place>, name: &Name) {
        let at = At::Below(directory.clone(), name.clone());
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }
}

/// Guests can make directories as deep as they like, so dropping them may not recurse.
impl Drop for Place {
    fn drop(&mut self) {
        let take = |place: &mut Place| {
            std::mem::take(place.at.get_mut().unwrap_or_else(PoisonError::into_inner))
        };
        let mut at = take(self);
        while let At::Below(above, _) = at {
            at = Arc::into_inner(above).as_mut().map(take).unwrap_or_default();
        }
    }
}

/// What the host says about a file.
pub(super) struct HostStat {
    pub(super) key: Key,
    pub(super) file_type: FileType,
    pub(super) permissions: u32,
    pub(super) size: u64,
    pub(super) blocks: u64,
    pub(super) links: u64,
    pub(super) mtime: Timespec,
}

impl HostStat {
    fn new(metadata: &Metadata) -> HostStat {
        HostStat {
            key: (metadata.dev(), metadata.ino()),
            file_type: file_type(metadata),
            permissions: metadata.mode() & 0o7777,
            size: metadata.len(),
            blocks: metadata.blocks(),
            links: metadata.nlink(),
            mtime: Timespec {
                seconds: metadata.mtime(),
                nanoseconds: metadata.mtime_nsec() as u32,
            },
        }
    }
}

fn file_type(metadata: &Metadata) -> FileType {
    let file_type = metadata.file_type();
    match () {
        () if file_type.is_file() => FileType::Regular,
        () if file_type.is_dir() => FileType::Directory,
        () if file_type.is_symlink() => FileType::Symlink,
        () if FileTypeExt::is_fifo(&file_type) => FileType::Fifo,
        () if FileTypeExt::is_socket(&file_type) => FileType::Socket,
        () if FileTypeExt::is_block_device(&file_type) => FileType::Block,
        () => FileType::Character,
    }
}

/// Files that stay open for the next use.
struct Kept<K, T> {
    files: HashMap<K, (Arc<T>, u64)>,
    clock: u64,
}

/// A copy has the same files open.
impl<K: Clone, T> Clone for Kept<K, T> {
    fn clone(&self) -> Self {
        Kept { files: self.files.clone(), clock: self.clock }
    }
}

impl<K: Copy + Eq + std::hash::Hash, T> Kept<K, T> {
    fn new() -> Kept<K, T> {
        Kept { files: HashMap::new(), clock: 0 }
    }

    fn get(&mut self, key: K) -> Option<Arc<T>> {
        self.clock += 1;
        let (file, used) = self.files.get_mut(&key)?;
        *used = self.clock;
        Some(file.clone())
    }

    fn add(&mut self, key: K, file: T) -> Arc<T> {
        let oldest = self.files.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
        if let Some(oldest) = oldest.filter(|_| self.files.len() >= KEPT_OPEN) {
            self.files.remove(&oldest);
        }
        let file = Arc::new(file);
        self.files.insert(key, (file.clone(), self.clock));
        file
    }
}

/// The host's side of all directories that a run was given.
#[derive(Clone)]
pub(super) struct Host {
    directories: Kept<u64, Dir>,
    files: Kept<(u64, bool), File>,
    next: u64,
}

impl Host {
    pub(super) fn new() -> Host {
        Host { directories: Kept::new(), files: Kept::new(), next: 0 }
    }

    fn place(&mut self, at: At) -> Arc<Place> {
        self.next += 1;
        Arc::new(Place { id: self.next, at: Mutex::new(at) })
    }

    /// Opens what a run is given: a directory, or one file.
    pub(super) fn given(&mut self, path: &Path) -> io::Result<(Arc<Place>, HostStat)> {
        let path = std::fs::canonicalize(path)?;
        match Dir::open_ambient_dir(&path, ambient_authority()) {
            Ok(dir) => {
                let stat = HostStat::new(&dir.dir_metadata()?);
                Ok((self.place(At::Top(Arc::new(dir))), stat))
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => self.given_file(&path),
            Err(error) => Err(error),
        }
    }

    fn given_file(&mut self, path: &Path) -> io::Result<(Arc<Place>, HostStat)> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let dir = Dir::open_ambient_dir(directory, ambient_authority())?;
        let stat = HostStat::new(&dir.symlink_metadata(name)?);
        let top = self.place(At::Top(Arc::new(dir)));
        Ok((self.place(At::Below(top, name.as_bytes().into())), stat))
    }

    /// Returns the place of a name in a directory.
    pub(super) fn below(&mut self, directory: &Arc<Place>, name: &Name) -> Arc<Place> {
        self.place(At::Below(directory.clone(), name.clone()))
    }

    /// Opens a directory.
    pub(super) fn directory(&mut self, place: &Arc<Place>) -> Result<Arc<Dir>> {
        let mut steps = Vec::new();
        let mut place = place.clone();
        let mut dir = loop {
            if let Some(dir) = self.directories.get(place.id) {
                break dir;
            }
            match place.at() {
                At::Nowhere => return Err(Errno::STALE),
                At::Top(dir) => break dir,
                At::Below(above, name) => {
                    steps.push((place.id, name));
                    place = above;
                }
            }
        };
        while let Some((id, name)) = steps.pop() {
            dir = self.directories.add(id, dir.open_dir_nofollow(path(&name))?);
        }
        Ok(dir)
    }

    /// Opens the directory that something is in, and returns its name there.
    fn named(&mut self, place: &Arc<Place>) -> Result<(Arc<Dir>, Name)> {
        match place.at() {
            At::Nowhere => Err(Errno::STALE),
            At::Top(dir) => Ok((dir, Name::from(*b"."))),
            At::Below(above, name) => Ok((self.directory(&above)?, name)),
        }
    }

    /// Opens a regular file. Anything else that has taken its place meanwhile is refused.
    pub(super) fn file(
        &mut self,
        place: &Arc<Place>,
        write: bool,
        key: Option<Key>,
    ) -> Result<Arc<File>> {
        if let Some(file) = self.files.get((place.id, write)) {
            return Ok(file);
        }
        let (dir, name) = self.named(place)?;
        let file = dir.open_with(
            path(&name),
            OpenOptions::new().read(true).write(write).nonblock(true).follow(FollowSymlinks::No),
        )?;
        let stat = HostStat::new(&file.metadata()?);
        if key.is_some_and(|key| key != stat.key) {
            return Err(Errno::STALE);
        }
        if stat.file_type != FileType::Regular {
            return Err(Errno::ACCES);
        }
        Ok(self.files.add((place.id, write), file))
    }

    pub(super) fn stat(&mut self, place: &Arc<Place>) -> Result<HostStat> {
        let (dir, name) = self.named(place)?;
        Ok(HostStat::new(&dir.symlink_metadata(path(&name))?))
    }

    /// Looks for a name in a directory.
    pub(super) fn find(&mut self, directory: &Arc<Place>, name: &[u8]) -> Result<Option<HostStat>> {
        match self.directory(directory)?.symlink_metadata(path(name)) {
            Ok(metadata) => Ok(Some(HostStat::new(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn read_link(&mut self, directory: &Arc<Place>, name: &[u8]) -> Result<Name> {
        let target = self.directory(directory)?.read_link_contents(path(name))?;
        Ok(target.into_os_string().into_vec().into())
    }

    /// Returns the names in a directory, in no order.
    pub(super) fn names(&mut self, place: &Arc<Place>) -> Result<Vec<Name>> {
        let mut names = Vec::new();
        for entry in self.directory(place)?.entries()? {
            names.push(entry?.file_name().into_vec().into());
        }
        Ok(names)
    }

    pub(super) fn create_file(
        &mut self,
        directory: &Arc<Place>,
        name: &[u8],
        permissions: u32,
    ) -> Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).follow(FollowSymlinks::No);
        let file = self.directory(directory)?.open_with(path(name), &options)?;
        file.set_permissions(Permissions::from_mode(permissions & PERMISSIONS))?;
        Ok(file)
    }

    /// Creates a file without a name.
    #[cfg(target_os = "linux")]
    pub(super) fn create_nameless(
        &mut self,
        directory: &Arc<Place>,
        permissions: u32,
        linkable: bool,
    ) -> Result<File> {
        use rustix::fs::{Mode, OFlags, openat};
        let exclusive = if linkable { OFlags::empty() } else { OFlags::EXCL };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | exclusive;
        let opened = openat(&*self.directory(directory)?, ".", flags, Mode::from_raw_mode(0o600));
        let file = File::from_std(std::fs::File::from(opened.map_err(io::Error::from)?));
        file.set_permissions(Permissions::from_mode(permissions & PERMISSIONS))?;
        Ok(file)
    }

    /// Not every system has such files.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn create_nameless(&mut self, _: &Arc<Place>, _: u32, _: bool) -> Result<File> {
        Err(Errno::OPNOTSUPP)
    }

    /// Gives a name to a file that has none; where it is then.
    #[cfg(target_os = "linux")]
    pub(super) fn link_nameless(
        &mut self,
        file: &File,
        directory: &Arc<Place>,
        name: &Name,
    ) -> Result<(Arc<Place>, Key)> {
        use std::os::fd::AsRawFd;

        use rustix::fs::{CWD, linkat};
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        let dir = self.directory(directory)?;
        let linked = linkat(CWD, open, &*dir, path(name), AtFlags::SYMLINK_FOLLOW);
        linked.map_err(io::Error::from)?;
        let place = self.below(directory, name);
        self.keep_open(&place, file.try_clone()?);
        Ok((place, stat_open(file)?.key))
    }

    /// As above.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn link_nameless(
        &mut self,
        _: &File,
        _: &Arc<Place>,
        _: &Name,
    ) -> Result<(Arc<Place>, Key)> {
        Err(Errno::NOENT)
    }

    /// Keeps a file open that was just created: its permissions may not allow to open it again.
    pub(super) fn keep_open(&mut self, place: &Place, file: File) {
        self.files.add((place.id, true), file);
    }

    pub(super) fn create_directory(
        &mut self,
        directory: &Arc<Place>,
        name: &[u8],
        permissions: u32,
    ) -> Result<()> {
        let dir = self.directory(directory)?;
        dir.create_dir_with(path(name), DirBuilder::new().mode(0o700))?;
        let made = dir.open_dir_nofollow(path(name))?;
        Ok(made.set_permissions(".", Permissions::from_mode(permissions & PERMISSIONS))?)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn create_fifo(
        &mut self,
        directory: &Arc<Place>,
        name: &[u8],
        permissions: u32,
    ) -> Result<()> {
        use rustix::fs::{FileType, Mode, mknodat};
        let mode = Mode::from_raw_mode(permissions & PERMISSIONS);
        let made = mknodat(&*self.directory(directory)?, path(name), FileType::Fifo, mode, 0);
        made.map_err(|error| Errno::from(io::Error::from(error)))
    }

    /// Not every system has the function for it.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn create_fifo(&mut self, _: &Arc<Place>, _: &[u8], _: u32) -> Result<()> {
        Err(Errno::PERM)
    }

    pub(super) fn create_symlink(
        &mut self,
        directory: &Arc<Place>,
        name: &[u8],
        target: &[u8],
    ) -> Result<()> {
        Ok(self.directory(directory)?.symlink_contents(path(target), path(name))?)
    }

    pub(super) fn link(
        &mut self,
        place: &Arc<Place>,
        directory: &Arc<Place>,
        name: &[u8],
    ) -> Result<()> {
        let (from, old) = self.named(place)?;
        Ok(from.hard_link(path(&old), &*self.directory(directory)?, path(name))?)
    }

    pub(super) fn unlink(&mut self, directory: &Arc<Place>, name: &[u8]) -> Result<()> {
        Ok(self.directory(directory)?.remove_file(path(name))?)
    }

    pub(super) fn remove_directory(&mut self, directory: &Arc<Place>, name: &[u8]) -> Result<()> {
        Ok(self.directory(directory)?.remove_dir(path(name))?)
    }

    pub(super) fn rename(
        &mut self,
        from: (&Arc<Place>, &[u8]),
        to: (&Arc<Place>, &[u8]),
        exchange: bool,
    ) -> Result<()> {
        let (old, new) = (self.directory(from.0)?, self.directory(to.0)?);
        if !exchange {
            return Ok(old.rename(path(from.1), &new, path(to.1))?);
        }
        let renamed = renameat_with(&*old, path(from.1), &*new, path(to.1), RenameFlags::EXCHANGE);
        Ok(renamed.map_err(io::Error::from)?)
    }

    /// Sets permissions of a file or directory; symbolic links have none.
    pub(super) fn set_permissions(
        &mut self,
        place: &Arc<Place>,
        file_type: FileType,
        permissions: u32,
    ) -> Result<()> {
        let permissions = Permissions::from_mode(permissions & PERMISSIONS);
        match file_type {
            FileType::Directory => Ok(self.directory(place)?.set_permissions(".", permissions)?),
            _ => Ok(self.file(place, false, None)?.set_permissions(permissions)?),
        }
    }

    pub(super) fn set_times(
        &mut self,
        place: &Arc<Place>,
        atime: Option<Timespec>,
        mtime: Option<Timespec>,
    ) -> Result<()> {
        let (dir, name) = self.named(place)?;
        let time = |time: Option<Timespec>| Timespec64 {
            tv_sec: time.map_or(0, |time| time.seconds),
            tv_nsec: time.map_or(UTIME_OMIT as _, |time| time.nanoseconds.into()),
        };
        let times = Timestamps { last_access: time(atime), last_modification: time(mtime) };
        let changed = utimensat(&*dir, path(&name), &times, AtFlags::SYMLINK_NOFOLLOW);
        Ok(changed.map_err(io::Error::from)?)
    }

    /// Forgets open files of a place whose name is gone.
    pub(super) fn forget(&mut self, place: &Place) {
        self.directories.files.remove(&place.id);
        self.files.files.remove(&(place.id, false));
        self.files.files.remove(&(place.id, true));
    }
}

/// Returns what the host says about a file that has no name any more.
pub(super) fn stat_open(file: &File) -> Result<HostStat> {
    Ok(HostStat::new(&file.metadata()?))
}

fn path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_places_can_be_dropped() {
        let mut host = Host::new();
        let temporary = tempfile::tempdir().unwrap();
        let (mut place, _) = host.given(temporary.path()).unwrap();
        for _ in 0..1_000_000 {
            place = host.below(&place, &Name::from(*b"d"));
        }
        drop(place);
    }
}
