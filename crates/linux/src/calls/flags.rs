//! `O_…` of ARM64, four of which x86-64 has otherwise.

use crate::files::Mode;
use crate::vfs::OpenFlags;

pub(crate) const WRONLY: u32 = 0o1;
pub(crate) const RDWR: u32 = 0o2;
pub(crate) const ACCMODE: u32 = 0o3;
pub(crate) const CREAT: u32 = 0o100;
pub(crate) const EXCL: u32 = 0o200;
pub(crate) const TRUNC: u32 = 0o1000;
pub(crate) const APPEND: u32 = 0o2000;
pub(crate) const NONBLOCK: u32 = 0o4000;
pub(crate) const ASYNC: u32 = 0o20000;
pub(crate) const DIRECTORY: u32 = 0o40000;
pub(crate) const NOFOLLOW: u32 = 0o100000;
pub(crate) const DIRECT: u32 = 0o200000;
pub(crate) const LARGEFILE: u32 = 0o400000;
pub(crate) const NOATIME: u32 = 0o1000000;
pub(crate) const CLOEXEC: u32 = 0o2000000;
pub(crate) const PATH: u32 = 0o10000000;
/// Without [`DIRECTORY`], which it comes with.
pub(crate) const TMPFILE: u32 = 0o20000000;

/// Flags that are only remembered.
const OTHERS: u32 = DIRECT | LARGEFILE | NOATIME | ASYNC | 0o4010000;

impl Mode {
    /// How a file is opened with these flags.
    pub(crate) fn from_bits(bits: u32) -> Mode {
        let path_only = bits & PATH != 0;
        Mode {
            reads: !path_only && bits & ACCMODE != WRONLY,
            writes: !path_only && matches!(bits & ACCMODE, WRONLY | RDWR),
            appends: bits & APPEND != 0,
            nonblocking: bits & NONBLOCK != 0,
            path_only,
            others: bits & OTHERS,
        }
    }

    /// What `F_GETFL` gives.
    pub(crate) fn bits(&self) -> u32 {
        let access = match (self.reads, self.writes) {
            (true, true) => RDWR,
            (false, true) => WRONLY,
            (_, false) => 0,
        };
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        access
            | flag(self.appends, APPEND)
            | flag(self.nonblocking, NONBLOCK)
            | flag(self.path_only, PATH)
            | self.others
    }

    /// Sets what `F_SETFL` can set.
    pub(crate) fn set_bits(&mut self, bits: u32) {
        const SETTABLE: u32 = DIRECT | NOATIME | ASYNC;
        (self.appends, self.nonblocking) = (bits & APPEND != 0, bits & NONBLOCK != 0);
        self.others = self.others & !SETTABLE | bits & SETTABLE;
    }
}

/// What the file system is told of the flags.
pub(crate) fn open_flags(bits: u32) -> OpenFlags {
    let mode = Mode::from_bits(bits);
    OpenFlags {
        read: mode.reads,
        write: mode.writes,
        create: bits & CREAT != 0,
        exclusive: bits & EXCL != 0,
        truncate: bits & TRUNC != 0,
        directory: bits & DIRECTORY != 0,
        no_follow: bits & NOFOLLOW != 0,
        path_only: mode.path_only,
        temporary: bits & TMPFILE != 0 && bits & DIRECTORY != 0,
    }
}
