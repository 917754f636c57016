//! Structures of system calls, as ARM64's Linux has them in memory.

use bytemuck::{Pod, Zeroable};
use linux_raw_sys::{general as raw, net, system};

use crate::clock::SECOND;
use crate::vfs;

macro_rules! layouts {
    ($($(#[$doc:meta])* $name:ident $(= $same:ty)? { $($field:ident: $ty:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
        #[repr(C)]
        pub(crate) struct $name { $(pub(crate) $field: $ty,)* }
        // Those that are the same for all processors.
        $(const _: () = assert!(size_of::<$name>() == size_of::<$same>());)?)*
    };
}

layouts! {
    /// `struct timespec`.
    TimeSpec = raw::__kernel_timespec { seconds: i64, nanoseconds: i64, }
    /// `struct timeval`.
    TimeVal = raw::__kernel_old_timeval { seconds: i64, microseconds: i64, }
    /// `struct itimerval`.
    IntervalVal = raw::__kernel_old_itimerval { interval: TimeVal, value: TimeVal, }
    /// `struct itimerspec`.
    IntervalSpec = raw::__kernel_itimerspec { interval: TimeSpec, value: TimeSpec, }
    /// `struct stat`, which x86-64 has otherwise.
    Stat {
        device: u64, inode: u64, mode: u32, links: u32, uid: u32, gid: u32, device_node: u64,
        pad1: u64, size: i64, block_size: i32, pad2: i32, blocks: i64, atime: TimeSpec,
        mtime: TimeSpec, ctime: TimeSpec, unused: [u32; 2],
    }
    /// `struct statx_timestamp`.
    StatxTime = raw::statx_timestamp { seconds: i64, nanoseconds: u32, reserved: i32, }
    /// `struct statx`.
    Statx = raw::statx {
        mask: u32, block_size: u32, attributes: u64, links: u32, uid: u32, gid: u32, mode: u16,
        pad1: u16, inode: u64, size: u64, blocks: u64, attributes_mask: u64, atime: StatxTime,
        btime: StatxTime, ctime: StatxTime, mtime: StatxTime, device_node: [u32; 2],
        device: [u32; 2], mount: u64, more: [u64; 13],
    }
    /// `struct statfs`.
    StatFs = raw::statfs64 {
        magic: u64, block_size: u64, blocks: u64, blocks_free: u64, blocks_available: u64,
        files: u64, files_free: u64, id: [i32; 2], name_length: u64, fragment_size: u64,
        flags: u64, spare: [u64; 4],
    }
    /// `struct iovec`.
    IoVec = raw::iovec { base: u64, len: u64, }
    /// `struct msghdr`.
    MessageHeader = net::msghdr {
        name: u64, name_len: u32, pad: u32, buffers: u64, count: u64, control: u64,
        control_len: u64, flags: u32, pad2: u32,
    }
    /// `struct cmsghdr`.
    ControlHeader = net::cmsghdr { len: u64, level: u32, kind: u32, }
    /// `struct rlimit64`.
    ResourceLimit = raw::rlimit64 { soft: u64, hard: u64, }
    /// `struct rusage`.
    ResourceUsage = raw::rusage { user: TimeVal, system: TimeVal, others: [i64; 14], }
    /// `struct sysinfo`.
    SystemInfo = system::sysinfo {
        uptime: i64, loads: [u64; 3], total: u64, free: u64, shared: u64, buffer: u64,
        total_swap: u64, free_swap: u64, processes: u16, pad: [u16; 3], total_high: u64,
        free_high: u64, unit: u32, pad2: u32,
    }
    /// `struct sigaction` of the kernel.
    SigAction { handler: u64, flags: u64, restorer: u64, mask: u64, }
    /// `stack_t`.
    SigStack { start: u64, flags: u32, pad: u32, len: u64, }
    /// `struct pollfd`.
    PollFd = raw::pollfd { fd: i32, events: u16, happened: u16, }
    /// `struct epoll_event`, which x86-64 packs.
    EpollEvent { events: u32, pad: u32, data: u64, }
    /// `struct clone_args`.
    CloneArgs = raw::clone_args {
        flags: u64, pidfd: u64, child_tid: u64, parent_tid: u64, exit_signal: u64, stack: u64,
        stack_size: u64, tls: u64, set_tid: u64, set_tid_size: u64, cgroup: u64,
    }
    /// `struct winsize`.
    WindowSize = raw::winsize { rows: u16, columns: u16, width: u16, height: u16, }
    /// `struct termios` of the kernel.
    Termios = raw::termios { input: u32, output: u32, control: u32, local: u32, line: u8, characters: [u8; 19], }
    /// `struct open_how`.
    OpenHow = raw::open_how { flags: u64, mode: u64, resolve: u64, }
    /// The beginning of `struct sigevent`.
    SigEvent { value: u64, signal: i32, notify: i32, thread: i32, pad: i32, rest: [u64; 5], }
    /// `struct tms`.
    ProcessTimes { user: i64, system: i64, child_user: i64, child_system: i64, }
    /// `struct flock`.
    FileLock = raw::flock64 { kind: i16, whence: i16, pad: i32, start: i64, len: i64, pid: i32, pad2: i32, }
}

impl TimeSpec {
    /// So many nanoseconds.
    pub(crate) fn from_nanoseconds(nanoseconds: u64) -> TimeSpec {
        TimeSpec {
            seconds: (nanoseconds / SECOND) as i64,
            nanoseconds: (nanoseconds % SECOND) as i64,
        }
    }

    /// How many nanoseconds; `None` if it is not a time.
    pub(crate) fn nanoseconds(self) -> Option<u64> {
        let fits = self.seconds >= 0 && (0..SECOND as i64).contains(&self.nanoseconds);
        let seconds = (self.seconds as u64).saturating_mul(SECOND);
        fits.then(|| seconds.saturating_add(self.nanoseconds as u64))
    }
}

impl TimeVal {
    /// So many nanoseconds, rounded down.
    pub(crate) fn from_nanoseconds(nanoseconds: u64) -> TimeVal {
        TimeVal {
            seconds: (nanoseconds / SECOND) as i64,
            microseconds: (nanoseconds % SECOND / 1000) as i64,
        }
    }

    /// How many nanoseconds; `None` if it is not a time.
    pub(crate) fn nanoseconds(self) -> Option<u64> {
        let nanoseconds = self.microseconds.checked_mul(1000)?;
        TimeSpec { seconds: self.seconds, nanoseconds }.nanoseconds()
    }
}

fn time(time: vfs::Timespec) -> TimeSpec {
    TimeSpec { seconds: time.seconds, nanoseconds: time.nanoseconds.into() }
}

fn statx_time(time: vfs::Timespec) -> StatxTime {
    StatxTime { seconds: time.seconds, nanoseconds: time.nanoseconds, reserved: 0 }
}

impl From<&vfs::Stat> for Stat {
    fn from(stat: &vfs::Stat) -> Stat {
        Stat {
            device: stat.device.bits(),
            inode: stat.inode,
            mode: stat.mode(),
            links: stat.links as u32,
            uid: stat.uid,
            gid: stat.gid,
            device_node: stat.device_node.bits(),
            size: stat.size as i64,
            block_size: stat.block_size as i32,
            blocks: stat.blocks as i64,
            atime: time(stat.atime),
            mtime: time(stat.mtime),
            ctime: time(stat.ctime),
            ..Stat::default()
        }
    }
}

impl From<&vfs::Stat> for Statx {
    fn from(stat: &vfs::Stat) -> Statx {
        Statx {
            mask: raw::STATX_BASIC_STATS | raw::STATX_BTIME,
            block_size: stat.block_size,
            links: stat.links as u32,
            uid: stat.uid,
            gid: stat.gid,
            mode: stat.mode() as u16,
            inode: stat.inode,
            size: stat.size,
            blocks: stat.blocks,
            atime: statx_time(stat.atime),
            btime: statx_time(stat.btime),
            ctime: statx_time(stat.ctime),
            mtime: statx_time(stat.mtime),
            device_node: [stat.device_node.major, stat.device_node.minor],
            device: [stat.device.major, stat.device.minor],
            ..Statx::default()
        }
    }
}

const _: () = assert!(size_of::<Stat>() == 128);
