//! Numbers of errors, as system calls return them.

use std::fmt::{self, Debug, Display, Formatter};
use std::io;

use linux_raw_sys::errno;

/// The number of an error. Linux has the same ones on ARM64 and on x86-64.
///
/// ```
/// use kvrm_linux::Errno;
/// assert_eq!(Errno::NOENT.to_string(), "ENOENT");
/// assert_eq!(Errno::NOENT.as_result(), -2i64 as u64);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(u16);

/// What a system call gives.
pub type Result<T> = std::result::Result<T, Errno>;

macro_rules! numbers {
    ($($name:ident = $full:ident,)*) => {
        impl Errno {
            $(#[doc = concat!("`", stringify!($full), "`.")]
            pub const $name: Errno = Errno(errno::$full as u16);)*

            /// The name in C, if it is one that kvrm gives.
            fn name(self) -> Option<&'static str> {
                match self {
                    $(Errno::$name => Some(stringify!($full)),)*
                    _ => None,
                }
            }
        }
    };
}

numbers! {
    PERM = EPERM, NOENT = ENOENT, SRCH = ESRCH, INTR = EINTR, IO = EIO, NXIO = ENXIO, TOOBIG = E2BIG,
    NOEXEC = ENOEXEC, BADF = EBADF, CHILD = ECHILD, AGAIN = EAGAIN, NOMEM = ENOMEM, ACCES = EACCES,
    FAULT = EFAULT, BUSY = EBUSY, EXIST = EEXIST, XDEV = EXDEV, NODEV = ENODEV, NOTDIR = ENOTDIR,
    ISDIR = EISDIR, INVAL = EINVAL, NFILE = ENFILE, MFILE = EMFILE, NOTTY = ENOTTY, TXTBSY = ETXTBSY,
    FBIG = EFBIG, NOSPC = ENOSPC, SPIPE = ESPIPE, ROFS = EROFS, MLINK = EMLINK, PIPE = EPIPE,
    DOM = EDOM, RANGE = ERANGE, DEADLK = EDEADLK, NAMETOOLONG = ENAMETOOLONG, NOSYS = ENOSYS,
    NOTEMPTY = ENOTEMPTY, LOOP = ELOOP, NODATA = ENODATA, OVERFLOW = EOVERFLOW, OPNOTSUPP = EOPNOTSUPP,
    AFNOSUPPORT = EAFNOSUPPORT, TIMEDOUT = ETIMEDOUT, BADFD = EBADFD, LIBBAD = ELIBBAD,
    OWNERDEAD = EOWNERDEAD, NOLCK = ENOLCK, ISCONN = EISCONN, NOTSOCK = ENOTSOCK, STALE = ESTALE,
    MSGSIZE = EMSGSIZE, SOCKTNOSUPPORT = ESOCKTNOSUPPORT, CONNREFUSED = ECONNREFUSED,
    NOBUFS = ENOBUFS, TOOMANYREFS = ETOOMANYREFS,
}

impl Errno {
    /// What the guest finds in x0.
    pub fn as_result(self) -> u64 {
        (-i64::from(self.0)) as u64
    }

    /// The number.
    pub fn number(self) -> u16 {
        self.0
    }
}

impl Display for Errno {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}

impl Debug for Errno {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// Errors of the host's files are the guest's.
impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        match (error.raw_os_error(), error.kind()) {
            (Some(number), _) if (1..=133).contains(&number) => Errno(number as u16),
            // cap-std's answer to paths that lead out of a directory.
            (_, io::ErrorKind::PermissionDenied) => Errno::ACCES,
            (_, io::ErrorKind::NotFound) => Errno::NOENT,
            _ => Errno::IO,
        }
    }
}
