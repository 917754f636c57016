//! What programs learn about files.

use serde::{Deserialize, Serialize};

/// A time, since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Timespec {
    /// Seconds.
    pub seconds: i64,
    /// And nanoseconds, less than a second.
    pub nanoseconds: u32,
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A device of characters.
    Character,
    /// A device of blocks; only seen in directories of the host.
    Block,
    /// A socket; only seen in directories of the host.
    Socket,
}

impl FileType {
    /// Returns the bits of `st_mode` (`S_IFMT`); 12 bits to the right, they are `d_type` of directory entries.
    pub fn bits(self) -> u32 {
        match self {
            FileType::Regular => 0o100000,
            FileType::Directory => 0o040000,
            FileType::Symlink => 0o120000,
            FileType::Fifo => 0o010000,
            FileType::Character => 0o020000,
            FileType::Block => 0o060000,
            FileType::Socket => 0o140000,
        }
    }
}

/// The number of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceNumber {
    /// Which driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl DeviceNumber {
    /// Returns the number as `st_dev` and `st_rdev` have it.
    pub fn bits(self) -> u64 {
        let (major, minor) = (u64::from(self.major), u64::from(self.minor));
        (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12 | (major & !0xfff) << 32
    }
}

/// Devices in `/dev`. What reading and writing them does is not the business of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Device {
    /// `/dev/null`.
    Null,
    /// `/dev/zero`.
    Zero,
    /// `/dev/full`.
    Full,
    /// `/dev/random`.
    Random,
    /// `/dev/urandom`.
    Urandom,
    /// `/dev/tty`.
    Tty,
}

impl Device {
    /// Returns the number that Linux gives the device.
    pub fn number(self) -> DeviceNumber {
        let (major, minor) = match self {
            Device::Null => (1, 3),
            Device::Zero => (1, 5),
            Device::Full => (1, 7),
            Device::Random => (1, 8),
            Device::Urandom => (1, 9),
            Device::Tty => (5, 0),
        };
        DeviceNumber { major, minor }
    }
}

/// What `stat` and `statx` tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The device of the file system.
    pub device: DeviceNumber,
    /// The number of the inode.
    pub inode: u64,
    /// Names that the file has.
    pub links: u64,
    /// What it is.
    pub file_type: FileType,
    /// Permissions: 12 bits.
    pub permissions: u32,
    /// The user who owns it.
    pub uid: u32,
    /// The group that owns it.
    pub gid: u32,
    /// Which device it is.
    pub device_node: DeviceNumber,
    /// Bytes.
    pub size: u64,
    /// Bytes to read at once.
    pub block_size: u32,
    /// 512-byte blocks that are allocated.
    pub blocks: u64,
    /// The last access. Reading does not change it (as with `noatime`).
    pub atime: Timespec,
    /// The last change of the contents.
    pub mtime: Timespec,
    /// The last change.
    pub ctime: Timespec,
    /// The creation.
    pub btime: Timespec,
}

impl Stat {
    /// Returns `st_mode`: the kind and the permissions.
    pub fn mode(&self) -> u32 {
        self.file_type.bits() | self.permissions
    }
}

/// What `statfs` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatFs {
    /// The magic number of the kind of file system.
    pub magic: u64,
    /// Bytes in a block.
    pub block_size: u64,
    /// Blocks in all.
    pub blocks: u64,
    /// Blocks that are free.
    pub blocks_free: u64,
    /// Inodes in all.
    pub files: u64,
    /// Inodes that are free.
    pub files_free: u64,
    /// The longest name.
    pub name_length: u64,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// The name.
    pub name: Vec<u8>,
    /// The number of the inode.
    pub inode: u64,
    /// What it is.
    pub file_type: FileType,
}
