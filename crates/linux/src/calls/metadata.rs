//! What is known of files.

use linux_raw_sys::general as raw;

use super::Call;
use crate::Errno;
use crate::answer::Answer;
use crate::console::Stream;
use crate::files::{FileId, Kind};
use crate::layout::{Stat, StatFs, Statx, TimeSpec};
use crate::opening::timespec;
use crate::vfs::{self, DeviceNumber, FileType, NodeId, Timespec};

/// The device that pipes and the like are on.
const ANONYMOUS: DeviceNumber = DeviceNumber { major: 0, minor: 15 };
/// `PIPEFS_MAGIC`.
const PIPE_MAGIC: u64 = 0x5049_5045;

impl Call<'_> {
    /// What is known of an open file.
    fn stat_file(&mut self, id: FileId) -> Answer<vfs::Stat> {
        let file_type = match &self.kernel.files.get(id).kind {
            Kind::Node(node) | Kind::Device(_, node) => {
                let node = *node;
                return Ok(self.kernel.with_vfs(self.tid, |vfs, _| vfs.stat(node))?);
            }
            Kind::Pipe { .. } => FileType::Fifo,
            Kind::Socket(_) => FileType::Socket,
            Kind::Console(stream) if self.kernel.console.is_terminal(*stream) => {
                FileType::Character
            }
            Kind::Console(_) => FileType::Fifo,
            Kind::Event { .. } | Kind::Epoll(_) | Kind::Timer { .. } => FileType::Regular,
        };
        let stream = match self.kernel.files.get(id).kind {
            Kind::Console(stream) => Some(stream),
            _ => None,
        };
        Ok(anonymous(id, file_type, stream))
    }

    fn stat_at(&mut self, flags: u32) -> Answer<vfs::Stat> {
        let path = match self.args[1] {
            0 if flags & raw::AT_EMPTY_PATH != 0 => Vec::new(),
            _ => self.path(1)?,
        };
        if path.is_empty() && flags & raw::AT_EMPTY_PATH != 0 && self.int(0) >= 0 {
            let file = self.file(0)?;
            return self.stat_file(file);
        }
        let base = self.base_of(0, &path)?;
        if path.is_empty() && flags & raw::AT_EMPTY_PATH != 0 {
            return Ok(self.kernel.with_vfs(self.tid, |vfs, _| vfs.stat(base))?);
        }
        let follow = flags & raw::AT_SYMLINK_NOFOLLOW == 0;
        let found = self.kernel.with_vfs(self.tid, |vfs, processes| {
            vfs.lookup(vfs::At { processes, base, path: &path }, follow)
        })?;
        match found {
            vfs::Found::Node(node) => {
                Ok(self.kernel.with_vfs(self.tid, |vfs, _| vfs.stat(node))?)
            }
            vfs::Found::Descriptor { pid, fd } => {
                let file = self.kernel.process_with(pid)?.descriptors.get(fd.into())?.file;
                self.stat_file(file)
            }
        }
    }

    /// The node of an open file.
    fn file_node(&mut self) -> Result<NodeId, Errno> {
        let id = self.file(0)?;
        match self.kernel.files.get(id).kind {
            Kind::Node(node) | Kind::Device(_, node) => Ok(node),
            _ => Err(Errno::PERM),
        }
    }
}

/// Of a file without a name.
fn anonymous(id: FileId, file_type: FileType, stream: Option<Stream>) -> vfs::Stat {
    let none = Timespec::default();
    let is_terminal = file_type == FileType::Character;
    let number = match stream {
        Some(stream) => 1_000_000 + stream as u64,
        None => 2_000_000 + u64::from(id),
    };
    vfs::Stat {
        device: ANONYMOUS,
        inode: number,
        links: 1,
        file_type,
        permissions: if is_terminal { 0o620 } else { 0o600 },
        uid: 0,
        gid: 0,
        device_node: DeviceNumber { major: if is_terminal { 136 } else { 0 }, minor: 0 },
        size: 0,
        block_size: 4096,
        blocks: 0,
        atime: none,
        mtime: none,
        ctime: none,
        btime: none,
    }
}

pub(super) fn fstat(call: &mut Call<'_>) -> Answer {
    let file = call.file(0)?;
    let stat = call.stat_file(file)?;
    call.write(call.args[1], &Stat::from(&stat))?;
    Ok(0)
}

pub(super) fn newfstatat(call: &mut Call<'_>) -> Answer {
    const KNOWN: u32 = raw::AT_EMPTY_PATH | raw::AT_SYMLINK_NOFOLLOW | raw::AT_NO_AUTOMOUNT;
    if call.bits(3) & !KNOWN != 0 {
        return Err(Errno::INVAL.into());
    }
    let stat = call.stat_at(call.bits(3))?;
    call.write(call.args[2], &Stat::from(&stat))?;
    Ok(0)
}

pub(super) fn statx(call: &mut Call<'_>) -> Answer {
    let flags = call.bits(2);
    if call.bits(3) & raw::STATX__RESERVED != 0 {
        return Err(Errno::INVAL.into());
    }
    let stat = call.stat_at(flags)?;
    call.write(call.args[4], &Statx::from(&stat))?;
    Ok(0)
}

pub(super) fn fchmod(call: &mut Call<'_>) -> Answer {
    let node = call.file_node()?;
    let permissions = call.bits(1) & 0o7777;
    call.kernel.with_vfs(call.tid, |vfs, _| vfs.chmod(node, permissions))?;
    Ok(0)
}

pub(super) fn fchmodat(call: &mut Call<'_>) -> Answer {
    let node = call.node(0, 0)?;
    let permissions = call.bits(2) & 0o7777;
    call.kernel.with_vfs(call.tid, |vfs, _| vfs.chmod(node, permissions))?;
    Ok(0)
}

/// `None` for "as it is".
fn owner(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

pub(super) fn fchown(call: &mut Call<'_>) -> Answer {
    let node = call.file_node()?;
    let (uid, gid) = (owner(call.bits(1)), owner(call.bits(2)));
    call.kernel.with_vfs(call.tid, |vfs, _| vfs.chown(node, uid, gid))?;
    Ok(0)
}

pub(super) fn fchownat(call: &mut Call<'_>) -> Answer {
    let node = call.node(0, call.bits(4))?;
    let (uid, gid) = (owner(call.bits(2)), owner(call.bits(3)));
    call.kernel.with_vfs(call.tid, |vfs, _| vfs.chown(node, uid, gid))?;
    Ok(0)
}

pub(super) fn utimensat(call: &mut Call<'_>) -> Answer {
    let now = timespec(call.kernel.clock.since_1970(call.kernel.clock.now()));
    let times = match call.args[2] {
        0 => [Some(now); 2],
        addr => {
            let times: [TimeSpec; 2] = call.read(addr)?;
            let [access, change] = times.map(|time| new_time(time, now));
            [access?, change?]
        }
    };
    let node = match call.args[1] {
        0 => call.file_node()?,
        _ => call.node(0, call.bits(3))?,
    };
    call.kernel.with_vfs(call.tid, |vfs, _| vfs.set_times(node, times[0], times[1]))?;
    Ok(0)
}

fn new_time(time: TimeSpec, now: Timespec) -> Result<Option<Timespec>, Errno> {
    const NOW: i64 = raw::UTIME_NOW as i64;
    const OMIT: i64 = raw::UTIME_OMIT as i64;
    match time.nanoseconds {
        NOW => Ok(Some(now)),
        OMIT => Ok(None),
        nanoseconds @ 0..1_000_000_000 => {
            Ok(Some(Timespec { seconds: time.seconds, nanoseconds: nanoseconds as u32 }))
        }
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn faccessat(call: &mut Call<'_>) -> Answer {
    access(call, 0)
}

pub(super) fn faccessat2(call: &mut Call<'_>) -> Answer {
    const KNOWN: u32 = raw::AT_EACCESS | raw::AT_SYMLINK_NOFOLLOW | raw::AT_EMPTY_PATH;
    let flags = call.bits(3);
    if flags & !KNOWN != 0 { Err(Errno::INVAL.into()) } else { access(call, flags) }
}

fn access(call: &mut Call<'_>, flags: u32) -> Answer {
    let wanted = call.bits(2);
    if wanted > 7 {
        return Err(Errno::INVAL.into());
    }
    let node = call.node(0, flags)?;
    let access =
        vfs::Access { read: wanted & 4 != 0, write: wanted & 2 != 0, execute: wanted & 1 != 0 };
    call.kernel.with_vfs(call.tid, |vfs, _| vfs.access(node, access))?;
    Ok(0)
}

fn write_statfs(call: &mut Call<'_>, addr: u64, stat: vfs::StatFs) -> Answer {
    let found = StatFs {
        magic: stat.magic,
        block_size: stat.block_size,
        blocks: stat.blocks,
        blocks_free: stat.blocks_free,
        blocks_available: stat.blocks_free,
        files: stat.files,
        files_free: stat.files_free,
        name_length: stat.name_length,
        fragment_size: stat.block_size,
        ..StatFs::default()
    };
    call.write(addr, &found)?;
    Ok(0)
}

pub(super) fn statfs(call: &mut Call<'_>) -> Answer {
    let path = call.path(0)?;
    let base = call.process().directory;
    let node = call.kernel.find(call.tid, base, &path, true)?;
    let stat = call.kernel.vfs.statfs(node)?;
    write_statfs(call, call.args[1], stat)
}

pub(super) fn fstatfs(call: &mut Call<'_>) -> Answer {
    let id = call.file(0)?;
    let stat = match call.kernel.files.get(id).kind {
        Kind::Node(node) | Kind::Device(_, node) => call.kernel.vfs.statfs(node)?,
        _ => vfs::StatFs {
            magic: PIPE_MAGIC,
            block_size: 4096,
            blocks: 0,
            blocks_free: 0,
            files: 0,
            files_free: 0,
            name_length: 255,
        },
    };
    write_statfs(call, call.args[1], stat)
}
