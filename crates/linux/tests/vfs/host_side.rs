//! The other side of comparisons: the same operations with the host's own file system.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use kvrm_linux::vfs::{OpenFlags, RenameMode};
use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::{self, Errno};

/// A directory of the host, and files that are open in it.
pub(crate) struct HostSide {
    top: OwnedFd,
    base: OwnedFd,
    slots: Vec<Option<OwnedFd>>,
}

pub(crate) type Outcome = Result<String, u16>;

fn number(error: Errno) -> u16 {
    error.raw_os_error() as u16
}

fn done<T>(result: Result<T, Errno>) -> Outcome {
    result.map(|_| String::new()).map_err(number)
}

impl HostSide {
    pub(crate) fn new(top: &std::path::Path, base: &std::path::Path, slots: usize) -> HostSide {
        let open =
            |path| fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        HostSide { top: open(top), base: open(base), slots: (0..slots).map(|_| None).collect() }
    }

    fn base(&self, slot: Option<usize>) -> BorrowedFd<'_> {
        let slot = slot.and_then(|slot| self.slots[slot].as_ref());
        slot.unwrap_or(&self.base).as_fd()
    }

    pub(crate) fn open(
        &mut self,
        base: Option<usize>,
        path: &str,
        flags: OpenFlags,
        slot: usize,
    ) -> Outcome {
        let mut bits = match (flags.read, flags.write) {
            (_, false) => OFlags::RDONLY,
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
        };
        for (set, bit) in [
            (flags.create, OFlags::CREATE),
            (flags.exclusive, OFlags::EXCL),
            (flags.truncate, OFlags::TRUNC),
            (flags.directory, OFlags::DIRECTORY),
            (flags.no_follow, OFlags::NOFOLLOW),
            (flags.path_only, OFlags::PATH),
            (flags.temporary, OFlags::TMPFILE),
        ] {
            bits |= if set { bit } else { OFlags::empty() };
        }
        match fs::openat(self.base(base), path, bits, Mode::from_raw_mode(0o644)) {
            Ok(fd) => {
                self.slots[slot] = Some(fd);
                Ok(String::new())
            }
            Err(error) => Err(number(error)),
        }
    }

    pub(crate) fn close(&mut self, slot: usize) {
        self.slots[slot] = None;
    }

    pub(crate) fn mkdir(&mut self, base: Option<usize>, path: &str) -> Outcome {
        done(fs::mkdirat(self.base(base), path, Mode::from_raw_mode(0o755)))
    }

    pub(crate) fn unlink(&mut self, base: Option<usize>, path: &str) -> Outcome {
        done(fs::unlinkat(self.base(base), path, AtFlags::empty()))
    }

    pub(crate) fn rmdir(&mut self, base: Option<usize>, path: &str) -> Outcome {
        done(fs::unlinkat(self.base(base), path, AtFlags::REMOVEDIR))
    }

    pub(crate) fn symlink(&mut self, target: &str, base: Option<usize>, path: &str) -> Outcome {
        done(fs::symlinkat(target, self.base(base), path))
    }

    pub(crate) fn link(
        &mut self,
        from: (Option<usize>, &str),
        follow: bool,
        to: (Option<usize>, &str),
    ) -> Outcome {
        let flags = if follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
        done(fs::linkat(self.base(from.0), from.1, self.base(to.0), to.1, flags))
    }

    pub(crate) fn rename(
        &mut self,
        from: (Option<usize>, &str),
        to: (Option<usize>, &str),
        mode: RenameMode,
    ) -> Outcome {
        let flags = match mode {
            RenameMode::Replace => RenameFlags::empty(),
            RenameMode::NoReplace => RenameFlags::NOREPLACE,
            RenameMode::Exchange => RenameFlags::EXCHANGE,
        };
        done(fs::renameat_with(self.base(from.0), from.1, self.base(to.0), to.1, flags))
    }

    pub(crate) fn readlink(&mut self, base: Option<usize>, path: &str) -> Outcome {
        // An empty path would mean the directory itself here, but not in the guest's call.
        let target = fs::readlinkat(self.base(base), path, Vec::new()).map_err(number)?;
        Ok(target.into_string().unwrap())
    }

    pub(crate) fn stat(&mut self, base: Option<usize>, path: &str, follow: bool) -> Outcome {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        fs::statat(self.base(base), path, flags).map(describe).map_err(number)
    }

    fn slot(&self, slot: usize) -> Result<BorrowedFd<'_>, u16> {
        self.slots[slot].as_ref().map(OwnedFd::as_fd).ok_or(0)
    }

    pub(crate) fn stat_slot(&mut self, slot: usize) -> Outcome {
        fs::fstat(self.slot(slot)?).map(describe).map_err(number)
    }

    pub(crate) fn read(&mut self, slot: usize, offset: u64, len: usize) -> Outcome {
        let mut buffer = vec![0; len];
        let count = io::pread(self.slot(slot)?, &mut buffer, offset).map_err(number)?;
        Ok(format!("{:?}", &buffer[..count]))
    }

    pub(crate) fn write(&mut self, slot: usize, offset: u64, bytes: &[u8]) -> Outcome {
        let count = io::pwrite(self.slot(slot)?, bytes, offset).map_err(number)?;
        Ok(count.to_string())
    }

    pub(crate) fn truncate(&mut self, slot: usize, len: u64) -> Outcome {
        done(fs::ftruncate(self.slot(slot)?, len))
    }

    pub(crate) fn read_dir(&mut self, slot: usize) -> Outcome {
        // A description of its own, so that it starts with the first entry.
        let fd =
            fs::openat(self.slot(slot)?, ".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        list(fd.map_err(number)?)
    }

    /// Returns the path of an open directory, without where the comparison happens.
    pub(crate) fn path(&mut self, slot: usize) -> Outcome {
        use std::os::fd::AsRawFd;
        let path = |fd: i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        let path_of_slot = path(self.slot(slot)?.as_raw_fd());
        let top = path(self.top.as_raw_fd());
        Ok(path_of_slot.strip_prefix(&top).unwrap().to_str().unwrap().to_owned())
    }

    /// Describes everything below the top.
    pub(crate) fn tree(&self) -> String {
        let mut text = String::new();
        tree(&self.top.try_clone().unwrap(), "", &mut text);
        text
    }
}

fn describe(stat: fs::Stat) -> String {
    let regular = stat.st_mode & 0o170000 == 0o100000;
    let directory = stat.st_mode & 0o170000 == 0o040000;
    let size = if directory { 0 } else { stat.st_size };
    let links = if regular { stat.st_nlink } else { 0 };
    format!("mode {:o}, {links} links, {size} bytes", stat.st_mode)
}

fn list(fd: OwnedFd) -> Outcome {
    let mut names = Vec::new();
    for entry in fs::Dir::read_from(fd).map_err(number)? {
        let entry = entry.map_err(number)?;
        names.push(entry.file_name().to_str().unwrap().to_owned());
    }
    // rustix takes the error that a deleted directory gives for the end.
    if names.is_empty() {
        return Err(number(Errno::NOENT));
    }
    names.sort();
    Ok(names.join(" "))
}

fn tree(directory: &OwnedFd, path: &str, text: &mut String) {
    let names = list(fs::openat(directory, ".", OFlags::RDONLY, Mode::empty()).unwrap()).unwrap();
    for name in names.split(' ').filter(|name| !matches!(*name, "." | "..")) {
        let stat = fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let path = format!("{path}/{name}");
        text.push_str(&format!("{path}: {}", describe(stat)));
        match stat.st_mode & 0o170000 {
            0o120000 => {
                let target = fs::readlinkat(directory, name, Vec::new()).unwrap();
                text.push_str(&format!(" -> {}\n", target.to_str().unwrap()));
            }
            0o040000 => {
                text.push('\n');
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                tree(&fs::openat(directory, name, flags, Mode::empty()).unwrap(), &path, text);
            }
            _ => {
                let file = fs::openat(directory, name, OFlags::RDONLY, Mode::empty()).unwrap();
                let mut bytes = vec![0; stat.st_size as usize];
                let count = io::pread(&file, &mut bytes, 0).unwrap();
                let sum = bytes[..count]
                    .iter()
                    .fold(7u64, |sum, byte| sum * 31 % 1_000_003 + u64::from(*byte));
                text.push_str(&format!(" sum {sum}\n"));
            }
        }
    }
}
