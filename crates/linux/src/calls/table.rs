//! Every system call that kvrm has.

use super::*;

/// A system call.
pub struct Entry {
    /// Its number on ARM64.
    pub number: u64,
    /// Its name.
    pub name: &'static str,
    /// What its arguments are, for `--strace`.
    pub arguments: &'static [Argument],
    pub(crate) handler: fn(&mut Call<'_>) -> Answer,
    /// How far it is supported, in words; empty if completely.
    pub support: &'static str,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A descriptor.
    Fd,
    /// A number of C's type `int`.
    Int,
    /// A number of bytes or things.
    Size,
    /// A place in a file.
    Offset,
    /// An address.
    Pointer,
    /// Bits.
    Flags,
    /// Permissions.
    Mode,
    /// A signal.
    Signal,
    /// A string that ends with a zero.
    Text,
    /// Bytes, of which the next argument is the length.
    Bytes,
}

macro_rules! table {
    ($($number:literal $name:ident($($argument:ident),*) $($path:ident)::+ $support:literal;)*) => {
        /// All of them, by number.
        pub const TABLE: &[Entry] = &[$(Entry {
            number: $number,
            name: stringify!($name),
            arguments: &[$(Argument::$argument),*],
            handler: $($path)::+,
            support: $support,
        }),*];
    };
}

table! {
    5 setxattr(Text, Text, Bytes, Size, Flags) paths::no_attributes "files have no extended attributes";
    6 lsetxattr(Text, Text, Bytes, Size, Flags) paths::no_attributes "files have no extended attributes";
    7 fsetxattr(Fd, Text, Bytes, Size, Flags) paths::no_attributes "files have no extended attributes";
    8 getxattr(Text, Text, Pointer, Size) paths::no_attributes "files have no extended attributes";
    9 lgetxattr(Text, Text, Pointer, Size) paths::no_attributes "files have no extended attributes";
    10 fgetxattr(Fd, Text, Pointer, Size) paths::no_attributes "files have no extended attributes";
    11 listxattr(Text, Pointer, Size) paths::no_attributes "files have no extended attributes";
    12 llistxattr(Text, Pointer, Size) paths::no_attributes "files have no extended attributes";
    13 flistxattr(Fd, Pointer, Size) paths::no_attributes "files have no extended attributes";
    14 removexattr(Text, Text) paths::no_attributes "files have no extended attributes";
    15 lremovexattr(Text, Text) paths::no_attributes "files have no extended attributes";
    16 fremovexattr(Fd, Text) paths::no_attributes "files have no extended attributes";
    17 getcwd(Pointer, Size) paths::getcwd "";
    19 eventfd2(Int, Flags) sources::eventfd2 "";
    20 epoll_create1(Flags) polling::epoll_create1 "";
    21 epoll_ctl(Fd, Int, Fd, Pointer) polling::epoll_ctl "";
    22 epoll_pwait(Fd, Pointer, Int, Int, Pointer, Size) polling::epoll_pwait "";
    23 dup(Fd) descriptors::dup "";
    24 dup3(Fd, Fd, Flags) descriptors::dup3 "";
    25 fcntl(Fd, Int, Flags) descriptors::fcntl "no leases, no notification";
    29 ioctl(Fd, Flags, Pointer) terminal::ioctl "terminals: settings, window size, groups; FIONREAD, FIONBIO, FIOCLEX";
    32 flock(Fd, Int) locks::flock "";
    33 mknodat(Fd, Text, Mode, Int) paths::mknodat "regular files and FIFOs";
    34 mkdirat(Fd, Text, Mode) paths::mkdirat "";
    35 unlinkat(Fd, Text, Flags) paths::unlinkat "";
    36 symlinkat(Text, Fd, Text) paths::symlinkat "";
    37 linkat(Fd, Text, Fd, Text, Flags) paths::linkat "";
    38 renameat(Fd, Text, Fd, Text) paths::renameat "";
    43 statfs(Text, Pointer) metadata::statfs "";
    44 fstatfs(Fd, Pointer) metadata::fstatfs "";
    45 truncate(Text, Offset) reading::truncate "";
    46 ftruncate(Fd, Offset) reading::ftruncate "";
    47 fallocate(Fd, Flags, Offset, Size) reading::fallocate "allocating and punching holes";
    48 faccessat(Fd, Text, Int) metadata::faccessat "";
    49 chdir(Text) paths::chdir "";
    50 fchdir(Fd) paths::fchdir "";
    51 chroot(Text) paths::chroot "only to /";
    52 fchmod(Fd, Mode) metadata::fchmod "";
    53 fchmodat(Fd, Text, Mode) metadata::fchmodat "";
    54 fchownat(Fd, Text, Int, Int, Flags) metadata::fchownat "";
    55 fchown(Fd, Int, Int) metadata::fchown "";
    56 openat(Fd, Text, Flags, Mode) paths::openat "";
    57 close(Fd) descriptors::close "";
    59 pipe2(Pointer, Flags) sources::pipe2 "";
    61 getdents64(Fd, Pointer, Size) paths::getdents64 "";
    62 lseek(Fd, Offset, Int) reading::lseek "";
    63 read(Fd, Pointer, Size) reading::read "";
    64 write(Fd, Bytes, Size) reading::write "";
    65 readv(Fd, Pointer, Size) reading::readv "";
    66 writev(Fd, Pointer, Size) reading::writev "";
    67 pread64(Fd, Pointer, Size, Offset) reading::pread64 "";
    68 pwrite64(Fd, Bytes, Size, Offset) reading::pwrite64 "";
    69 preadv(Fd, Pointer, Size, Offset) reading::preadv "";
    70 pwritev(Fd, Pointer, Size, Offset) reading::pwritev "";
    71 sendfile(Fd, Fd, Pointer, Size) reading::sendfile "";
    72 pselect6(Size, Pointer, Pointer, Pointer, Pointer, Pointer) polling::pselect6 "";
    73 ppoll(Pointer, Size, Pointer, Pointer, Size) polling::ppoll "";
    76 splice(Fd, Pointer, Fd, Pointer, Size, Flags) reading::splice "flags have no effect";
    78 readlinkat(Fd, Text, Pointer, Size) paths::readlinkat "";
    79 newfstatat(Fd, Text, Pointer, Flags) metadata::newfstatat "";
    80 fstat(Fd, Pointer) metadata::fstat "";
    81 sync() reading::sync "nothing is ever unwritten";
    82 fsync(Fd) reading::fsync "nothing is ever unwritten";
    83 fdatasync(Fd) reading::fsync "nothing is ever unwritten";
    85 timerfd_create(Int, Flags) sources::timerfd_create "";
    86 timerfd_settime(Fd, Flags, Pointer, Pointer) sources::timerfd_settime "";
    87 timerfd_gettime(Fd, Pointer) sources::timerfd_gettime "";
    88 utimensat(Fd, Text, Pointer, Flags) metadata::utimensat "";
    90 capget(Pointer, Pointer) identity::capget "the guest has all";
    91 capset(Pointer, Pointer) identity::capset "accepted, without effect";
    92 personality(Flags) identity::personality "only Linux's own";
    93 exit(Int) processes::exit "";
    94 exit_group(Int) processes::exit_group "";
    95 waitid(Int, Int, Pointer, Flags, Pointer) processes::waitid "no descriptors of processes";
    96 set_tid_address(Pointer) threads::set_tid_address "";
    98 futex(Pointer, Int, Int, Pointer, Pointer, Int) threads::futex "all threads have the same priority";
    99 set_robust_list(Pointer, Size) threads::set_robust_list "";
    100 get_robust_list(Int, Pointer, Pointer) threads::get_robust_list "";
    101 nanosleep(Pointer, Pointer) time::nanosleep "";
    102 getitimer(Int, Pointer) time::getitimer "";
    103 setitimer(Int, Pointer, Pointer) time::setitimer "";
    107 timer_create(Int, Pointer, Pointer) time::timer_create "clocks that count time, not those of processors";
    108 timer_gettime(Int, Pointer) time::timer_gettime "";
    109 timer_getoverrun(Int) time::timer_getoverrun "";
    110 timer_settime(Int, Flags, Pointer, Pointer) time::timer_settime "";
    111 timer_delete(Int) time::timer_delete "";
    112 clock_settime(Int, Pointer) time::clock_settime "refused";
    113 clock_gettime(Int, Pointer) time::clock_gettime "processor time is that of the process";
    114 clock_getres(Int, Pointer) time::clock_getres "";
    115 clock_nanosleep(Int, Flags, Pointer, Pointer) time::clock_nanosleep "";
    118 sched_setparam(Int, Pointer) threads::sched_setparam "priority 0";
    119 sched_setscheduler(Int, Int, Pointer) threads::sched_setscheduler "policies without priorities";
    120 sched_getscheduler(Int) threads::sched_getscheduler "";
    121 sched_getparam(Int, Pointer) threads::sched_getparam "";
    122 sched_setaffinity(Int, Size, Pointer) threads::sched_setaffinity "there is one processor";
    123 sched_getaffinity(Int, Size, Pointer) threads::sched_getaffinity "there is one processor";
    124 sched_yield() threads::sched_yield "";
    125 sched_get_priority_max(Int) threads::sched_get_priority_max "";
    126 sched_get_priority_min(Int) threads::sched_get_priority_min "";
    127 sched_rr_get_interval(Int, Pointer) threads::sched_rr_get_interval "";
    129 kill(Int, Signal) signals::kill "";
    130 tkill(Int, Signal) signals::tkill "";
    131 tgkill(Int, Int, Signal) signals::tgkill "";
    132 sigaltstack(Pointer, Pointer) signals::sigaltstack "";
    133 rt_sigsuspend(Pointer, Size) signals::rt_sigsuspend "";
    134 rt_sigaction(Signal, Pointer, Pointer, Size) signals::rt_sigaction "";
    135 rt_sigprocmask(Int, Pointer, Pointer, Size) signals::rt_sigprocmask "";
    136 rt_sigpending(Pointer, Size) signals::rt_sigpending "";
    137 rt_sigtimedwait(Pointer, Pointer, Pointer, Size) signals::rt_sigtimedwait "";
    138 rt_sigqueueinfo(Int, Signal, Pointer) signals::rt_sigqueueinfo "";
    139 rt_sigreturn() signals::rt_sigreturn "";
    140 setpriority(Int, Int, Int) threads::setpriority "no thread has less time for it";
    141 getpriority(Int, Int) threads::getpriority "";
    143 setregid(Int, Int) identity::setreid "there is one user";
    144 setgid(Int) identity::setid "there is one user";
    145 setreuid(Int, Int) identity::setreid "there is one user";
    146 setuid(Int) identity::setid "there is one user";
    147 setresuid(Int, Int, Int) identity::setresid "there is one user";
    148 getresuid(Pointer, Pointer, Pointer) identity::getresid "";
    149 setresgid(Int, Int, Int) identity::setresid "there is one user";
    150 getresgid(Pointer, Pointer, Pointer) identity::getresid "";
    151 setfsuid(Int) identity::setfsid "there is one user";
    152 setfsgid(Int) identity::setfsid "there is one user";
    153 times(Pointer) time::times "";
    154 setpgid(Int, Int) processes::setpgid "";
    155 getpgid(Int) processes::getpgid "";
    156 getsid(Int) processes::getsid "";
    157 setsid() processes::setsid "";
    158 getgroups(Int, Pointer) identity::getgroups "";
    159 setgroups(Int, Pointer) identity::setgroups "groups give no rights";
    160 uname(Pointer) identity::uname "";
    161 sethostname(Text, Size) identity::sethostname "refused";
    163 getrlimit(Int, Pointer) identity::getrlimit "";
    164 setrlimit(Int, Pointer) identity::setrlimit "open files and file size have an effect";
    165 getrusage(Int, Pointer) identity::getrusage "user time and memory";
    166 umask(Mode) paths::umask "";
    167 prctl(Int, Pointer, Pointer, Pointer, Pointer) identity::prctl "names; other settings are accepted or refused";
    168 getcpu(Pointer, Pointer) threads::getcpu "";
    169 gettimeofday(Pointer, Pointer) time::gettimeofday "";
    172 getpid() processes::getpid "";
    173 getppid() processes::getppid "";
    174 getuid() identity::root "";
    175 geteuid() identity::root "";
    176 getgid() identity::root "";
    177 getegid() identity::root "";
    178 gettid() threads::gettid "";
    179 sysinfo(Pointer) identity::sysinfo "";
    198 socket(Int, Int, Int) sockets::socket "there is no network, only pairs of sockets";
    199 socketpair(Int, Int, Int, Pointer) sockets::socketpair "there is no network, only pairs of sockets";
    203 connect(Fd, Pointer, Size) sockets::connect "there is no network, only pairs of sockets";
    204 getsockname(Fd, Pointer, Pointer) sockets::getsockname "there is no network, only pairs of sockets";
    205 getpeername(Fd, Pointer, Pointer) sockets::getsockname "there is no network, only pairs of sockets";
    206 sendto(Fd, Bytes, Size, Flags, Pointer, Size) sockets::sendto "there is no network, only pairs of sockets";
    207 recvfrom(Fd, Pointer, Size, Flags, Pointer, Pointer) sockets::recvfrom "there is no network, only pairs of sockets";
    208 setsockopt(Fd, Int, Int, Pointer, Size) sockets::setsockopt "there is no network, only pairs of sockets";
    209 getsockopt(Fd, Int, Int, Pointer, Pointer) sockets::getsockopt "there is no network, only pairs of sockets";
    210 shutdown(Fd, Int) sockets::shutdown "there is no network, only pairs of sockets";
    211 sendmsg(Fd, Pointer, Flags) sockets::sendmsg "there is no network, only pairs of sockets";
    212 recvmsg(Fd, Pointer, Flags) sockets::recvmsg "there is no network, only pairs of sockets";
    213 readahead(Fd, Offset, Size) reading::fsync "without effect";
    214 brk(Pointer) memory::brk "";
    215 munmap(Pointer, Size) memory::munmap "";
    216 mremap(Pointer, Size, Size, Flags, Pointer) memory::mremap "";
    220 clone(Flags, Pointer, Pointer, Pointer, Pointer) processes::clone "threads and processes; no name spaces";
    221 execve(Text, Pointer, Pointer) processes::execve "";
    222 mmap(Pointer, Size, Flags, Flags, Fd, Offset) memory::mmap "shared mappings of files longer than the file's end do not grow with it";
    223 fadvise64(Fd, Offset, Size, Int) reading::fadvise64 "without effect";
    226 mprotect(Pointer, Size, Flags) memory::mprotect "";
    227 msync(Pointer, Size, Flags) memory::msync "";
    228 mlock(Pointer, Size) memory::mlock "memory is never paged out";
    229 munlock(Pointer, Size) memory::mlock "memory is never paged out";
    230 mlockall(Flags) memory::mlockall "memory is never paged out";
    231 munlockall() memory::mlockall "memory is never paged out";
    232 mincore(Pointer, Size, Pointer) memory::mincore "";
    233 madvise(Pointer, Size, Int) memory::madvise "MADV_DONTNEED and MADV_FREE have an effect";
    240 rt_tgsigqueueinfo(Int, Int, Signal, Pointer) signals::rt_tgsigqueueinfo "";
    260 wait4(Int, Pointer, Flags, Pointer) processes::wait4 "";
    261 prlimit64(Int, Int, Pointer, Pointer) identity::prlimit64 "one's own only";
    276 renameat2(Fd, Text, Fd, Text, Flags) paths::renameat2 "";
    278 getrandom(Pointer, Size, Flags) identity::getrandom "from the run's seed";
    279 memfd_create(Text, Flags) sources::memfd_create "no seals, no huge pages";
    281 execveat(Fd, Text, Pointer, Pointer, Flags) processes::execveat "";
    283 membarrier(Int, Flags, Int) identity::absent "absent, as in a kernel built without";
    284 mlock2(Pointer, Size, Flags) memory::mlock "memory is never paged out";
    285 copy_file_range(Fd, Pointer, Fd, Pointer, Size, Flags) reading::copy_file_range "";
    286 preadv2(Fd, Pointer, Size, Offset, Offset, Flags) reading::preadv2 "flags have no effect";
    287 pwritev2(Fd, Pointer, Size, Offset, Offset, Flags) reading::pwritev2 "flags have no effect";
    291 statx(Fd, Text, Flags, Flags, Pointer) metadata::statx "";
    293 rseq(Pointer, Size, Flags, Int) identity::absent "absent, as in a kernel built without";
    435 clone3(Pointer, Size) processes::clone3 "threads and processes; no name spaces";
    436 close_range(Int, Int, Flags) descriptors::close_range "";
    437 openat2(Fd, Text, Pointer, Size) paths::openat2 "without RESOLVE flags";
    439 faccessat2(Fd, Text, Int, Flags) metadata::faccessat2 "";
    441 epoll_pwait2(Fd, Pointer, Int, Pointer, Pointer, Size) polling::epoll_pwait2 "";
}

/// The system call of a number.
pub fn find(number: u64) -> Option<&'static Entry> {
    let index = TABLE.binary_search_by_key(&number, |entry| entry.number).ok()?;
    Some(&TABLE[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(TABLE.is_sorted_by(|a, b| a.number < b.number));
        assert_eq!(find(64).map(|entry| entry.name), Some("write"));
        assert!(find(1000).is_none());
    }
}
