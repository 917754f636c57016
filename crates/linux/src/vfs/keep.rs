//! Writing what the guest has made to a directory of the host.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, FileExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};

use super::Vfs;
use super::changes::Change;
use super::node::{Id, Inner, Kind, NodeId};
use super::stat::Stat;
use crate::Errno;

/// Bytes that are copied at once.
const COPY: u64 = 1 << 16;

/// Something could not be written to the host.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep {}: {error}", String::from_utf8_lossy(path))]
pub struct KeepError {
    /// The path in the guest; nothing if finding out what has changed failed.
    pub path: Vec<u8>,
    /// Why not.
    pub error: io::Error,
}

impl Vfs {
    /// Writes the files, directories and links that the guest has created or changed to a directory, with the guest's
    /// paths. Links are never followed, and files there are replaced. Returns all changes, also those that nothing can
    /// be written for: deleted files and named pipes.
    pub fn keep(&mut self, into: &Dir) -> Result<Vec<Change>, KeepError> {
        let changes = self.changes();
        let changes =
            changes.map_err(|error| KeepError { path: Vec::new(), error: host_error(error) })?;
        for change in &changes {
            let Some(node) = change.node else { continue };
            let kept = self.keep_one(into, &change.path, node);
            kept.map_err(|error| KeepError { path: change.path.clone(), error })?;
        }
        Ok(changes)
    }

    fn keep_one(&mut self, into: &Dir, path: &[u8], node: NodeId) -> io::Result<()> {
        let Inner::Stored(id) = node.0 else { return Ok(()) };
        let names: Vec<&[u8]> =
            path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        let Some((name, above)) = names.split_last() else { return Ok(()) };
        let mut dir = into.try_clone()?;
        for name in above {
            dir = directory(&dir, as_path(name))?;
        }
        let name = as_path(name);
        let stat = self.stat(node).map_err(host_error)?;
        match &self.nodes.get(id).map_err(host_error)?.kind {
            Kind::Directory(_) => {
                directory(&dir, name)?.set_permissions(".", permissions(&stat, 0o700))
            }
            Kind::Symlink(target) => {
                let target = target.clone();
                replacing(&dir, name, || dir.symlink_contents(as_path(&target), name))
            }
            Kind::File(_) => {
                let mut options = OpenOptions::new();
                options.write(true).create_new(true).mode(0o600).follow(FollowSymlinks::No);
                let file = replacing(&dir, name, || dir.open_with(name, &options))?;
                self.keep_contents(id, &file, stat.size)?;
                file.set_permissions(permissions(&stat, 0))
            }
            Kind::Fifo | Kind::Device(_) | Kind::Special(_) => Ok(()),
        }
    }

    /// Copies what is in a file; holes stay holes.
    fn keep_contents(&mut self, id: Id, file: &File, size: u64) -> io::Result<()> {
        file.set_len(size)?;
        let mut buffer = vec![0; COPY as usize];
        let mut at = 0;
        while at < size {
            at = match self.seek_data(NodeId::stored(id), at) {
                Ok(data) => data,
                Err(Errno::NXIO) => break,
                Err(error) => return Err(host_error(error)),
            };
            // Data and holes begin at multiples of this.
            let most = (COPY - at % COPY) as usize;
            let count = self.read_stored(id, at, &mut buffer[..most]).map_err(host_error)?;
            if count == 0 {
                break;
            }
            file.write_all_at(&buffer[..count], at)?;
            at += count as u64;
        }
        Ok(())
    }
}

/// Opens a directory, which is made if it is not there.
fn directory(dir: &Dir, name: &Path) -> io::Result<Dir> {
    match dir.create_dir(name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => dir.open_dir_nofollow(name),
    }
}

/// Makes something new, in place of what is there.
fn replacing<T>(dir: &Dir, name: &Path, make: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            dir.remove_file(name)?;
            make()
        }
        made => made,
    }
}

/// Permissions on the host: not those that give someone else's rights to who runs a file, and at least `needed`.
fn permissions(stat: &Stat, needed: u32) -> Permissions {
    Permissions::from_mode(stat.permissions & 0o777 | needed)
}

fn as_path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

fn host_error(error: Errno) -> io::Error {
    io::Error::from_raw_os_error(error.number().into())
}
