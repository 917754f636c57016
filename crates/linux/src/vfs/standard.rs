//! Files that every guest has, and those of a guest without a root of its own.

use super::Vfs;
use super::stat::Device;
use crate::Result;

const DEVICES: [(&str, Device); 6] = [
    ("/dev/full", Device::Full),
    ("/dev/null", Device::Null),
    ("/dev/random", Device::Random),
    ("/dev/tty", Device::Tty),
    ("/dev/urandom", Device::Urandom),
    ("/dev/zero", Device::Zero),
];

const LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
];

const DEVICE_DIRECTORIES: [(&str, u32); 2] = [("/dev/pts", 0o755), ("/dev/shm", 0o1777)];

const DIRECTORIES: [(&str, u32); 9] = [
    ("/bin", 0o755),
    ("/etc", 0o755),
    ("/home", 0o755),
    ("/lib", 0o755),
    ("/root", 0o700),
    ("/run", 0o755),
    ("/usr", 0o755),
    ("/var", 0o755),
    ("/var/tmp", 0o1777),
];

const FILES: [(&str, &str); 4] = [
    ("/etc/group", "root:x:0:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
];

impl Vfs {
    /// Makes devices; and, if `files`, what most programs need besides.
    pub(super) fn make_standard(&mut self, files: bool) -> Result<()> {
        for (path, device) in DEVICES {
            self.give_device(path.as_bytes(), device)?;
        }
        for (path, target) in LINKS {
            self.give_symlink(path.as_bytes(), target.as_bytes())?;
        }
        for (path, permissions) in DEVICE_DIRECTORIES {
            self.give_directory(path.as_bytes(), permissions)?;
        }
        if !files {
            return Ok(());
        }
        for (path, permissions) in DIRECTORIES {
            self.give_directory(path.as_bytes(), permissions)?;
        }
        for (path, contents) in FILES {
            self.give_file(path.as_bytes(), contents.as_bytes(), 0o644)?;
        }
        Ok(())
    }
}
