//! Files and directories by their paths.

use linux_raw_sys::general as raw;

use super::flags::{self, open_flags};
use super::{Call, MOST_BYTES, PATH_MAX};
use crate::Errno;
use crate::answer::{Answer, Refusal, Wait};
use crate::files::{Kind, Mode, OpenFile};
use crate::layout::OpenHow;
use crate::vfs::{At, FileType, Found, NodeId, RenameMode, Special};

/// `AT_FDCWD`.
const HERE: i32 = -100;

impl Call<'_> {
    /// The directory that paths begin at, by its descriptor.
    pub(super) fn base(&mut self, index: usize) -> Result<NodeId, Errno> {
        if self.int(index) == HERE {
            return Ok(self.process().directory);
        }
        let file = self.file(index)?;
        match self.kernel.files.get(file).kind {
            Kind::Node(node) | Kind::Device(_, node) => Ok(node),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// The directory that a path begins at; that of absolute ones is not looked at.
    pub(super) fn base_of(&mut self, index: usize, path: &[u8]) -> Result<NodeId, Errno> {
        match path.first() {
            Some(b'/') => Ok(self.kernel.vfs.root()),
            _ => self.base(index),
        }
    }

    /// The node of a path from a directory, arguments `index` and `index + 1`; with `AT_EMPTY_PATH`, of the descriptor itself.
    pub(super) fn node(&mut self, index: usize, flags: u32) -> Answer<NodeId> {
        let path = self.path(index + 1)?;
        let base = self.base_of(index, &path)?;
        if path.is_empty() && flags & raw::AT_EMPTY_PATH != 0 {
            return Ok(base);
        }
        let follow = flags & raw::AT_SYMLINK_NOFOLLOW == 0;
        self.kernel.find(self.tid, base, &path, follow)
    }

    /// Does something with a path from a directory, arguments `index` and `index + 1`.
    fn at<T>(
        &mut self,
        index: usize,
        work: impl FnOnce(&mut crate::vfs::Vfs, At<'_>) -> crate::Result<T>,
    ) -> Answer<T> {
        let path = self.path(index + 1)?;
        let base = self.base_of(index, &path)?;
        let done = self
            .kernel
            .with_vfs(self.tid, |vfs, processes| work(vfs, At { processes, base, path: &path }));
        if matches!(done, Err(Errno::NOSPC)) {
            self.kernel.note_file_limit();
        }
        Ok(done?)
    }

    fn permissions(&mut self, index: usize) -> u32 {
        let umask = self.process().umask;
        self.args[index] as u32 & 0o7777 & !umask
    }
}

pub(super) fn openat(call: &mut Call<'_>) -> Answer {
    open(call, call.bits(2), call.args[3] as u32)
}

pub(super) fn openat2(call: &mut Call<'_>) -> Answer {
    const RESOLVE_CACHED: u64 = 0x20;
    let how: OpenHow = call.read(call.args[2])?;
    if call.args[3] < 24 || how.resolve & !(0x1f | RESOLVE_CACHED) != 0 || how.flags >> 32 != 0 {
        return Err(Errno::INVAL.into());
    }
    // Ways of walking that are stricter than usual are not supported, and programs fall back.
    if how.resolve != 0 {
        return Err(Errno::AGAIN.into());
    }
    open(call, how.flags as u32, how.mode as u32)
}

fn open(call: &mut Call<'_>, bits: u32, permissions: u32) -> Answer {
    let path = call.path(1)?;
    let base = call.base_of(0, &path)?;
    let umask = call.process().umask;
    let found = call.kernel.with_vfs(call.tid, |vfs, processes| {
        vfs.open(
            At { processes, base, path: &path },
            open_flags(bits),
            permissions & 0o7777 & !umask,
        )
    });
    if matches!(found, Err(Errno::NOSPC)) {
        call.kernel.note_file_limit();
    }
    let (mode, closes) = (Mode::from_bits(bits), bits & flags::CLOEXEC != 0);
    let node = match found? {
        Found::Node(node) => node,
        Found::Descriptor { pid, fd } => return reopen(call, pid, fd, mode, closes),
    };
    // It is held from here on.
    if bits & flags::TRUNC != 0 {
        call.kernel.file_shortened(node)?;
    }
    let file_type = call.kernel.vfs.stat(node)?.file_type;
    if file_type == FileType::Fifo && !mode.path_only {
        let answer = open_fifo(call, node, mode, closes);
        call.kernel.vfs.release(node);
        return answer;
    }
    let kind = match call.kernel.vfs.device(node) {
        Some(crate::vfs::Device::Tty) if !has_terminal(call) => {
            call.kernel.vfs.release(node);
            return Err(Errno::NXIO.into());
        }
        Some(device) => Kind::Device(device, node),
        None => Kind::Node(node),
    };
    call.kernel.add_file(call.tid, OpenFile::new(kind, mode), closes)
}

fn has_terminal(call: &Call<'_>) -> bool {
    call.kernel.console.is_terminal(crate::console::Stream::Input)
}

/// Opens what another descriptor leads to, by `/proc/self/fd`.
fn reopen(call: &mut Call<'_>, pid: u32, fd: u32, mode: Mode, closes: bool) -> Answer {
    let file = call.kernel.process_with(pid)?.descriptors.get(fd.into())?.file;
    let kind = match call.kernel.files.get(file).kind {
        Kind::Node(node) => {
            call.kernel.vfs.retain(node)?;
            Kind::Node(node)
        }
        Kind::Device(device, node) => {
            call.kernel.vfs.retain(node)?;
            Kind::Device(device, node)
        }
        Kind::Pipe { pipe } => Kind::Pipe { pipe },
        Kind::Console(stream) => Kind::Console(stream),
        Kind::Socket(_) | Kind::Event { .. } | Kind::Epoll(_) | Kind::Timer { .. } => {
            return Err(Errno::NXIO.into());
        }
    };
    call.kernel.add_file(call.tid, OpenFile::new(kind, mode), closes)
}

/// Opening one side of a FIFO waits for the other.
fn open_fifo(call: &mut Call<'_>, node: NodeId, mode: Mode, closes: bool) -> Answer {
    let number = call.kernel.files.pipes.of_fifo(node);
    let pipe = call.kernel.files.pipes.get(number);
    // Which of the two counts is waited for, and what it was when the waiting began.
    let other = usize::from(mode.reads);
    let is_there = if mode.reads { pipe.writers > 0 } else { pipe.readers > 0 };
    let came = pipe.opened[other];
    match call.thread().fifo {
        None if mode.reads && mode.writes => {}
        None if mode.nonblocking && mode.reads => {}
        None if mode.nonblocking && !is_there => {
            call.kernel.files.pipes.close(number);
            return Err(Errno::NXIO.into());
        }
        None if !is_there => {
            // Open already, so that the other side finds it, but without a number.
            call.kernel.vfs.retain(node)?;
            let file = call.kernel.files.add(OpenFile::new(Kind::Pipe { pipe: number }, mode));
            call.thread().fifo = Some((file, came));
            call.kernel.note();
            return Err(Wait::for_ever());
        }
        None => {}
        Some((_, seen)) if came == seen => return Err(Wait::for_ever()),
        Some((file, _)) => {
            call.thread().fifo = None;
            let limit = call.process().resources.open_files();
            let descriptor = crate::descriptors::Descriptor { file, closes_on_exec: closes };
            return match call.process().descriptors.add(0, limit, descriptor) {
                Ok(fd) => Ok(fd.into()),
                Err(errno) => {
                    call.kernel.close_file(file);
                    Err(errno.into())
                }
            };
        }
    }
    call.kernel.vfs.retain(node)?;
    call.kernel.note();
    call.kernel.add_file(call.tid, OpenFile::new(Kind::Pipe { pipe: number }, mode), closes)
}

pub(super) fn mkdirat(call: &mut Call<'_>) -> Answer {
    let permissions = call.permissions(2);
    call.at(0, |vfs, at| vfs.mkdir(at, permissions))?;
    Ok(0)
}

pub(super) fn mknodat(call: &mut Call<'_>) -> Answer {
    let permissions = call.permissions(2);
    let what = match call.bits(2) & 0o170000 {
        0 | 0o100000 => Special::Regular,
        0o010000 => Special::Fifo,
        0o020000 | 0o060000 | 0o140000 => return Err(Errno::PERM.into()),
        _ => return Err(Errno::INVAL.into()),
    };
    call.at(0, |vfs, at| vfs.mknod(at, what, permissions))?;
    Ok(0)
}

pub(super) fn unlinkat(call: &mut Call<'_>) -> Answer {
    match call.bits(2) {
        0 => call.at(0, |vfs, at| vfs.unlink(at))?,
        raw::AT_REMOVEDIR => call.at(0, |vfs, at| vfs.rmdir(at))?,
        _ => return Err(Errno::INVAL.into()),
    }
    Ok(0)
}

pub(super) fn symlinkat(call: &mut Call<'_>) -> Answer {
    let target = call.path(0)?;
    call.at(1, |vfs, at| vfs.symlink(at, &target))?;
    Ok(0)
}

pub(super) fn linkat(call: &mut Call<'_>) -> Answer {
    let flags = call.bits(4);
    if flags & !(raw::AT_SYMLINK_FOLLOW | raw::AT_EMPTY_PATH) != 0 {
        return Err(Errno::INVAL.into());
    }
    let follow = if flags & raw::AT_SYMLINK_FOLLOW != 0 { 0 } else { raw::AT_SYMLINK_NOFOLLOW };
    let node = call.node(0, flags & raw::AT_EMPTY_PATH | follow)?;
    call.at(2, |vfs, at| vfs.link(node, at))?;
    Ok(0)
}

pub(super) fn renameat(call: &mut Call<'_>) -> Answer {
    rename(call, RenameMode::Replace)
}

pub(super) fn renameat2(call: &mut Call<'_>) -> Answer {
    let mode = match call.bits(4) {
        0 => RenameMode::Replace,
        raw::RENAME_NOREPLACE => RenameMode::NoReplace,
        raw::RENAME_EXCHANGE => RenameMode::Exchange,
        _ => return Err(Errno::INVAL.into()),
    };
    rename(call, mode)
}

fn rename(call: &mut Call<'_>, mode: RenameMode) -> Answer {
    let from = call.path(1)?;
    let base = call.base_of(0, &from)?;
    let to = call.path(3)?;
    let base_to = call.base_of(2, &to)?;
    call.kernel.with_vfs(call.tid, |vfs, processes| {
        let from = At { processes, base, path: &from };
        vfs.rename(from, At { processes, base: base_to, path: &to }, mode)
    })?;
    Ok(0)
}

pub(super) fn readlinkat(call: &mut Call<'_>) -> Answer {
    if call.int(3) <= 0 {
        return Err(Errno::INVAL.into());
    }
    let path = call.path(1)?;
    let base = call.base_of(0, &path)?;
    let target = call.kernel.with_vfs(call.tid, |vfs, processes| {
        let link = match path.is_empty() {
            true => base,
            false => match vfs.lookup(At { processes, base, path: &path }, false)? {
                Found::Node(node) => node,
                Found::Descriptor { .. } => return Err(Errno::INVAL),
            },
        };
        vfs.readlink(processes, link)
    })?;
    let len = target.len().min(call.args[3] as usize);
    call.write_bytes(call.args[2], &target[..len])?;
    Ok(len as u64)
}

pub(super) fn getcwd(call: &mut Call<'_>) -> Answer {
    let directory = call.process().directory;
    let mut path = call.kernel.vfs.path_of(directory)?;
    path.push(0);
    if path.len() as u64 > call.args[1] || path.len() > PATH_MAX {
        return Err(Errno::RANGE.into());
    }
    call.write_bytes(call.args[0], &path)?;
    Ok(path.len() as u64)
}

pub(super) fn chdir(call: &mut Call<'_>) -> Answer {
    let path = call.path(0)?;
    let base = call.process().directory;
    let node = call.kernel.find(call.tid, base, &path, true)?;
    enter(call, node)
}

pub(super) fn fchdir(call: &mut Call<'_>) -> Answer {
    let file = call.file(0)?;
    let Kind::Node(node) = call.kernel.files.get(file).kind else {
        return Err(Errno::NOTDIR.into());
    };
    enter(call, node)
}

fn enter(call: &mut Call<'_>, node: NodeId) -> Answer {
    if !call.kernel.is_directory(call.tid, node) {
        return Err(Errno::NOTDIR.into());
    }
    let access = crate::vfs::Access { execute: true, ..crate::vfs::Access::default() };
    call.kernel.vfs.access(node, access)?;
    call.kernel.vfs.retain(node)?;
    let old = std::mem::replace(&mut call.process().directory, node);
    call.kernel.vfs.release(old);
    Ok(0)
}

/// Everybody has the same root.
pub(super) fn chroot(call: &mut Call<'_>) -> Answer {
    let path = call.path(0)?;
    let base = call.process().directory;
    let node = call.kernel.find(call.tid, base, &path, true)?;
    match node == call.kernel.vfs.root() {
        true => Ok(0),
        false => Err(Errno::PERM.into()),
    }
}

pub(super) fn getdents64(call: &mut Call<'_>) -> Answer {
    let id = call.file(0)?;
    let file = call.kernel.files.get(id);
    let Kind::Node(node) = file.kind else { return Err(Errno::NOTDIR.into()) };
    if !file.mode.reads {
        return Err(Errno::BADF.into());
    }
    if !call.kernel.is_directory(call.tid, node) {
        return Err(Errno::NOTDIR.into());
    }
    if call.kernel.files.get(id).listing.is_none() {
        let entries =
            call.kernel.with_vfs(call.tid, |vfs, processes| vfs.read_dir(processes, node))?;
        call.kernel.files.get_mut(id).listing = Some(entries);
        call.kernel.files.forget_listings(id);
    }
    let room = call.args[2].min(MOST_BYTES) as usize;
    let file = call.kernel.files.get(id);
    let listing = file.listing.as_ref().expect("it was just read");
    let mut bytes = Vec::new();
    let mut next = file.offset;
    for entry in listing.iter().skip(usize::try_from(next).unwrap_or(usize::MAX)) {
        let len = (19 + entry.name.len() + 1).next_multiple_of(8);
        if bytes.len() + len > room {
            break;
        }
        next += 1;
        let start = bytes.len();
        bytes.extend_from_slice(&entry.inode.to_le_bytes());
        bytes.extend_from_slice(&next.to_le_bytes());
        bytes.extend_from_slice(&(len as u16).to_le_bytes());
        bytes.push((entry.file_type.bits() >> 12) as u8);
        bytes.extend_from_slice(&entry.name);
        bytes.resize(start + len, 0);
    }
    let is_end = next as usize >= listing.len();
    if bytes.is_empty() && !is_end {
        return Err(Errno::INVAL.into());
    }
    call.write_bytes(call.args[1], &bytes)?;
    call.kernel.files.get_mut(id).offset = next;
    Ok(bytes.len() as u64)
}

pub(super) fn umask(call: &mut Call<'_>) -> Answer {
    let new = call.bits(0) & 0o777;
    Ok(std::mem::replace(&mut call.process().umask, new).into())
}

/// Files have no other attributes.
pub(super) fn no_attributes(_: &mut Call<'_>) -> Answer {
    Err(Refusal::Errno(Errno::OPNOTSUPP))
}
