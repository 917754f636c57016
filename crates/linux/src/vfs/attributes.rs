//! Permissions, owners, times and sizes.

use super::Vfs;
use super::host::{HostStat, stat_open};
use super::node::{Attributes, Id, Inner, Kind, Node, NodeId, Source};
use super::proc::Generated;
use super::stat::{Device, DeviceNumber, FileType, Stat, StatFs, Timespec};
use super::walk::NAME;
use crate::{Errno, Result};

/// Bytes in a block.
const BLOCK: u32 = 4096;

/// What somebody wants to do with a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Read it: `R_OK`.
    pub read: bool,
    /// Write it: `W_OK`.
    pub write: bool,
    /// Execute it, or go through it: `X_OK`.
    pub execute: bool,
}

impl Vfs {
    /// Returns what is known about a file.
    pub fn stat(&mut self, node: NodeId) -> Result<Stat> {
        match node.0 {
            Inner::Stored(id) => self.stat_stored(id),
            Inner::Generated(generated) => Ok(self.stat_generated(generated)),
        }
    }

    fn stat_stored(&mut self, id: Id) -> Result<Stat> {
        let node = self.nodes.get(id)?;
        let mut stat = self.stat_known(id, node);
        let host = match &node.source {
            Source::Memory | Source::Below(_) => return Ok(stat),
            // A directory that is deleted on the host.
            Source::Through(..) if node.names.is_empty() => return Ok(stat),
            Source::Nameless(file) => stat_open(file)?,
            Source::Through(place, _) => {
                let place = place.clone();
                self.host.stat(&place)?
            }
        };
        merge(&mut stat, host, self.nodes.get(id)?.changed);
        Ok(stat)
    }

    /// Returns what is known without the host.
    fn stat_known(&self, id: Id, node: &Node) -> Stat {
        let Attributes { permissions, uid, gid, atime, mtime, ctime, btime } = node.attributes;
        let (size, held, links) = match &node.kind {
            Kind::File(contents) => {
                let held = match node.source {
                    Source::Memory => contents.stored(),
                    _ => contents.len(),
                };
                (contents.len(), held, node.names.len() as u64)
            }
            Kind::Directory(directory) => {
                (u64::from(BLOCK), 0, self.links(id, node, directory.subdirectories))
            }
            Kind::Symlink(target) => (target.len() as u64, 0, node.names.len() as u64),
            Kind::Fifo | Kind::Device(_) | Kind::Special(_) => (0, 0, node.names.len() as u64),
        };
        Stat {
            device: DeviceNumber { major: 0, minor: u32::from(node.mount) + 1 },
            inode: id,
            links,
            file_type: node.file_type(),
            permissions,
            uid,
            gid,
            device_node: match node.kind {
                Kind::Device(device) => device.number(),
                _ => DeviceNumber::default(),
            },
            size,
            block_size: BLOCK,
            blocks: held.div_ceil(BLOCK.into()) * u64::from(BLOCK / 512),
            atime,
            mtime,
            ctime,
            btime,
        }
    }

    /// Returns how many links a directory has. On the host, that is not known without reading it, which 1 says.
    fn links(&self, id: Id, node: &Node, subdirectories: u64) -> u64 {
        match node.source {
            _ if id != self.root && node.names.is_empty() => 0,
            Source::Memory => 2 + subdirectories,
            Source::Below(_) | Source::Through(..) | Source::Nameless(_) => 1,
        }
    }

    fn stat_generated(&self, generated: Generated) -> Stat {
        let time = self.now;
        Stat {
            device: DeviceNumber { major: 0, minor: self.proc_device() },
            inode: generated.inode(),
            links: if generated.file_type() == FileType::Directory { 2 } else { 1 },
            file_type: generated.file_type(),
            permissions: generated.permissions(),
            uid: 0,
            gid: 0,
            device_node: DeviceNumber::default(),
            size: 0,
            block_size: 1024,
            blocks: 0,
            atime: time,
            mtime: time,
            ctime: time,
            btime: time,
        }
    }

    /// Returns which device a file is.
    pub fn device(&self, node: NodeId) -> Option<Device> {
        match self.nodes.get(node.id().ok()?).ok()?.kind {
            Kind::Device(device) => Some(device),
            _ => None,
        }
    }

    /// Finds out whether the root user may do something: all but executing what nobody may execute, and writing
    /// `/proc`.
    pub fn access(&mut self, node: NodeId, access: Access) -> Result<()> {
        let stat = self.stat(node)?;
        let executable = stat.file_type == FileType::Directory || stat.permissions & 0o111 != 0;
        if access.execute && !executable {
            return Err(Errno::ACCES);
        }
        let generated = matches!(node.0, Inner::Generated(_));
        if access.write && generated { Err(Errno::ACCES) } else { Ok(()) }
    }

    /// Sets permissions.
    pub fn chmod(&mut self, node: NodeId, permissions: u32) -> Result<()> {
        let id = node.id()?;
        let file_type = self.nodes.get(id)?.file_type();
        if file_type == FileType::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        let permissions = permissions & 0o7777;
        match &self.nodes.get(id)?.source {
            Source::Memory | Source::Below(_) => {}
            Source::Nameless(file) => file.set_permissions(cap_permissions(permissions))?,
            Source::Through(place, _) => {
                let place = place.clone();
                self.host.set_permissions(&place, file_type, permissions)?;
            }
        }
        self.changed(id)?.permissions = permissions;
        Ok(())
    }

    /// Sets owners; nothing stays as it is. Files on the host always belong to the root user.
    pub fn chown(&mut self, node: NodeId, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        let id = node.id()?;
        let node = self.nodes.get(id)?;
        if matches!(node.source, Source::Through(..) | Source::Nameless(_)) {
            let root = uid.unwrap_or(0) == 0 && gid.unwrap_or(0) == 0;
            return if root { Ok(()) } else { Err(Errno::PERM) };
        }
        let directory = node.is_directory();
        let attributes = self.changed(id)?;
        attributes.uid = uid.unwrap_or(attributes.uid);
        attributes.gid = gid.unwrap_or(attributes.gid);
        if !directory {
            // The new owner has not agreed to lend rights; without group execution, the bit means locking.
            let group = if attributes.permissions & 0o010 != 0 { 0o2000 } else { 0 };
            attributes.permissions &= !(0o4000 | group);
        }
        Ok(())
    }

    /// Sets times; nothing stays as it is.
    pub fn set_times(
        &mut self,
        node: NodeId,
        atime: Option<Timespec>,
        mtime: Option<Timespec>,
    ) -> Result<()> {
        let id = node.id()?;
        if let Source::Through(place, _) = &self.nodes.get(id)?.source {
            let place = place.clone();
            self.host.set_times(&place, atime, mtime)?;
            let stat = self.stat_stored(id)?;
            let attributes = &mut self.nodes.get_mut(id)?.attributes;
            (attributes.atime, attributes.mtime) = (stat.atime, stat.mtime);
        }
        let attributes = self.changed(id)?;
        attributes.atime = atime.unwrap_or(attributes.atime);
        attributes.mtime = mtime.unwrap_or(attributes.mtime);
        Ok(())
    }

    /// Returns what is known about the file system that a file is in.
    pub fn statfs(&self, node: NodeId) -> Result<StatFs> {
        let (limits, used) = (self.usage.limits(), self.used());
        let in_memory = match node.0 {
            Inner::Stored(id) => {
                let mount = self.nodes.get(id)?.mount;
                let magic = self.mounts[usize::from(mount)].magic();
                (magic, limits.bytes, limits.nodes)
            }
            Inner::Generated(_) => (PROC_MAGIC, 0, 0),
        };
        let (magic, bytes, files) = in_memory;
        let block = u64::from(BLOCK);
        Ok(StatFs {
            magic,
            block_size: block,
            blocks: bytes / block,
            blocks_free: bytes.saturating_sub(used.bytes) / block,
            files,
            files_free: files.saturating_sub(used.nodes),
            name_length: NAME as u64,
        })
    }

    /// Says that attributes change now.
    fn changed(&mut self, id: Id) -> Result<&mut Attributes> {
        let now = self.now;
        let node = self.nodes.get_mut(id)?;
        node.changed = true;
        node.attributes.ctime = now;
        Ok(&mut node.attributes)
    }
}

/// The magic number of `/proc`.
const PROC_MAGIC: u64 = 0x9fa0;

/// Adds what the host knows better.
fn merge(stat: &mut Stat, host: HostStat, changed_here: bool) {
    stat.permissions = host.permissions;
    if stat.file_type == FileType::Regular {
        (stat.size, stat.blocks, stat.links) = (host.size, host.blocks, host.links);
    }
    // Times of what the guest has changed are the guest's.
    if !changed_here {
        let time = host.mtime;
        (stat.atime, stat.mtime, stat.ctime, stat.btime) = (time, time, time, time);
    }
}

fn cap_permissions(permissions: u32) -> cap_std::fs::Permissions {
    use cap_std::fs::PermissionsExt;
    cap_std::fs::Permissions::from_mode(permissions & 0o1777)
}
