//! `/proc`: which files there are, and who knows what is in them.

use serde::{Deserialize, Serialize};

use super::node::{Inner, NodeId};
use super::stat::FileType;
use crate::{Errno, Result};

/// The version of Linux that guests see.
pub const RELEASE: &str = "6.12.0";
/// The name of the guest's computer.
pub const HOSTNAME: &str = "kvrm";

/// What the kernel tells about processes, for `/proc`.
pub trait Processes {
    /// Returns the process and the thread that ask.
    fn current(&self) -> (u32, u32);
    /// Returns all processes, in ascending order.
    fn list(&self) -> Vec<u32>;
    /// Returns all threads of a process, in ascending order: none if there is no such process.
    fn threads(&self, pid: u32) -> Vec<u32>;
    /// Returns the contents of a file of a process or thread.
    fn file(&self, id: u32, file: ProcFile) -> Result<Vec<u8>>;
    /// Returns where a link of a process or thread leads.
    fn link(&self, id: u32, link: ProcLink) -> Result<NodeId>;
    /// Returns the numbers of open files, in ascending order.
    fn descriptors(&self, id: u32) -> Vec<u32>;
    /// Returns what an open file is.
    fn descriptor(&self, id: u32, fd: u32) -> Result<Descriptor>;
    /// Returns the contents of a file about the whole system.
    fn system(&self, file: SystemFile) -> Result<Vec<u8>>;
}

/// What an open file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// A file of the file system.
    Node(NodeId),
    /// Something else, and how its link reads: `pipe:[12]`.
    Other(Vec<u8>),
}

/// Files of a process: `/proc/<pid>/...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProcFile {
    /// `auxv`.
    Auxv,
    /// `cmdline`.
    Cmdline,
    /// `comm`.
    Comm,
    /// `environ`.
    Environ,
    /// `limits`.
    Limits,
    /// `maps`.
    Maps,
    /// `stat`.
    Stat,
    /// `statm`.
    Statm,
    /// `status`.
    Status,
    /// `fdinfo/<number>`.
    DescriptorInfo(u32),
}

/// Links of a process: `/proc/<pid>/...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProcLink {
    /// `cwd`.
    Cwd,
    /// `exe`.
    Exe,
    /// `root`.
    Root,
}

/// Files about the whole system that only the kernel knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SystemFile {
    /// `/proc/cpuinfo`.
    Cpuinfo,
    /// `/proc/loadavg`.
    Loadavg,
    /// `/proc/meminfo`.
    Meminfo,
    /// `/proc/stat`.
    Stat,
    /// `/proc/uptime`.
    Uptime,
    /// `/proc/version`.
    Version,
    /// `/proc/sys/kernel/random/boot_id`.
    BootId,
    /// `/proc/sys/kernel/random/uuid`: another one each time.
    Uuid,
}

/// A process, or one of its threads as `/proc/<pid>/task/<tid>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Owner {
    pid: u32,
    tid: Option<u32>,
}

impl Owner {
    pub(super) fn id(self) -> u32 {
        self.tid.unwrap_or(self.pid)
    }

    fn path(self) -> String {
        match self.tid {
            None => format!("/proc/{}", self.pid),
            Some(tid) => format!("/proc/{}/task/{tid}", self.pid),
        }
    }
}

/// Something in `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Generated {
    /// A directory that is always there: an index of [`DIRECTORIES`].
    Directory(u8),
    /// A file or link that is always there: an index of [`FIXED`].
    Fixed(u8),
    Process(Owner),
    Tasks(u32),
    File(Owner, ProcFile),
    Mounts(Owner, MountTable),
    Link(Owner, ProcLink),
    Descriptors(Owner),
    Descriptor(Owner, u32),
    DescriptorInfos(Owner),
}

/// A list of mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum MountTable {
    Mounts,
    Mountinfo,
}

/// What a file has in it that is always there.
#[derive(Clone, Copy)]
pub(super) enum Fixed {
    /// Text, without the end of its last line.
    Line(&'static str),
    System(SystemFile),
    Link(&'static str),
    SelfLink,
    ThreadSelfLink,
}

const DIRECTORIES: [&str; 6] = ["", "sys", "sys/fs", "sys/kernel", "sys/kernel/random", "sys/vm"];

const FIXED: [(&str, Fixed); 22] = [
    ("cpuinfo", Fixed::System(SystemFile::Cpuinfo)),
    ("filesystems", Fixed::Line("nodev\tproc\nnodev\ttmpfs\nnodev\toverlay")),
    ("loadavg", Fixed::System(SystemFile::Loadavg)),
    ("meminfo", Fixed::System(SystemFile::Meminfo)),
    ("mounts", Fixed::Link("self/mounts")),
    ("self", Fixed::SelfLink),
    ("stat", Fixed::System(SystemFile::Stat)),
    ("thread-self", Fixed::ThreadSelfLink),
    ("uptime", Fixed::System(SystemFile::Uptime)),
    ("version", Fixed::System(SystemFile::Version)),
    ("sys/fs/file-max", Fixed::Line("1048576")),
    ("sys/fs/nr_open", Fixed::Line("1048576")),
    ("sys/fs/pipe-max-size", Fixed::Line("1048576")),
    ("sys/kernel/hostname", Fixed::Line(HOSTNAME)),
    ("sys/kernel/osrelease", Fixed::Line(RELEASE)),
    ("sys/kernel/ostype", Fixed::Line("Linux")),
    ("sys/kernel/pid_max", Fixed::Line("4194304")),
    ("sys/kernel/random/boot_id", Fixed::System(SystemFile::BootId)),
    ("sys/kernel/random/uuid", Fixed::System(SystemFile::Uuid)),
    ("sys/vm/max_map_count", Fixed::Line("65530")),
    ("sys/vm/mmap_min_addr", Fixed::Line("65536")),
    ("sys/vm/overcommit_memory", Fixed::Line("0")),
];

const FILES: [(&str, ProcFile); 9] = [
    ("auxv", ProcFile::Auxv),
    ("cmdline", ProcFile::Cmdline),
    ("comm", ProcFile::Comm),
    ("environ", ProcFile::Environ),
    ("limits", ProcFile::Limits),
    ("maps", ProcFile::Maps),
    ("stat", ProcFile::Stat),
    ("statm", ProcFile::Statm),
    ("status", ProcFile::Status),
];

const LINKS: [(&str, ProcLink); 3] =
    [("cwd", ProcLink::Cwd), ("exe", ProcLink::Exe), ("root", ProcLink::Root)];

const MOUNTS: [(&str, MountTable); 2] =
    [("mountinfo", MountTable::Mountinfo), ("mounts", MountTable::Mounts)];

impl Generated {
    /// `/proc` itself.
    pub(super) const ROOT: Generated = Generated::Directory(0);

    /// False for an index that is none.
    pub(super) fn exists(self) -> bool {
        match self {
            Generated::Directory(index) => usize::from(index) < DIRECTORIES.len(),
            Generated::Fixed(index) => usize::from(index) < FIXED.len(),
            Generated::Process(_)
            | Generated::Tasks(_)
            | Generated::File(..)
            | Generated::Mounts(..)
            | Generated::Link(..)
            | Generated::Descriptors(_)
            | Generated::Descriptor(..)
            | Generated::DescriptorInfos(_) => true,
        }
    }

    pub(super) fn file_type(self) -> FileType {
        match self {
            Generated::Directory(_)
            | Generated::Process(_)
            | Generated::Tasks(_)
            | Generated::Descriptors(_)
            | Generated::DescriptorInfos(_) => FileType::Directory,
            Generated::Fixed(index) => match FIXED[usize::from(index)].1 {
                Fixed::Line(_) | Fixed::System(_) => FileType::Regular,
                Fixed::Link(_) | Fixed::SelfLink | Fixed::ThreadSelfLink => FileType::Symlink,
            },
            Generated::File(..) | Generated::Mounts(..) => FileType::Regular,
            Generated::Link(..) | Generated::Descriptor(..) => FileType::Symlink,
        }
    }

    pub(super) fn permissions(self) -> u32 {
        match (self, self.file_type()) {
            (Generated::Descriptors(_) | Generated::DescriptorInfos(_), _) => 0o500,
            (Generated::Descriptor(..), _) => 0o700,
            (_, FileType::Directory) => 0o555,
            (_, FileType::Symlink) => 0o777,
            (_, _) => 0o444,
        }
    }

    /// Returns a number of its own: with the process above, what it is below.
    pub(super) fn inode(self) -> u64 {
        let of = |owner: Owner, number: u64| u64::from(owner.id()) << 32 | 1 << 31 | number;
        let kind = |index: usize| index as u64;
        match self {
            Generated::Directory(index) => (1 << 31) + u64::from(index),
            Generated::Fixed(index) => (1 << 31) + 0x100 + u64::from(index),
            Generated::Process(owner) => of(owner, u64::from(owner.tid.is_some())),
            Generated::Tasks(pid) => of(Owner { pid, tid: None }, 2),
            Generated::Descriptors(owner) => of(owner, 3),
            Generated::DescriptorInfos(owner) => of(owner, 4),
            Generated::Link(owner, link) => {
                of(owner, 0x10 + kind(LINKS.iter().position(|row| row.1 == link).unwrap_or(0)))
            }
            Generated::Mounts(owner, table) => of(owner, 0x20 + table as u64),
            Generated::File(owner, ProcFile::DescriptorInfo(fd)) => {
                of(owner, 1 << 30 | u64::from(fd))
            }
            Generated::File(owner, file) => {
                of(owner, 0x30 + kind(FILES.iter().position(|row| row.1 == file).unwrap_or(0)))
            }
            Generated::Descriptor(owner, fd) => of(owner, 1 << 29 | u64::from(fd)),
        }
    }

    /// Returns the directory it is in; nothing for `/proc`.
    pub(super) fn parent(self) -> Option<Generated> {
        let above = |path: &str| {
            let above = path.rsplit_once('/').map_or("", |(above, _)| above);
            DIRECTORIES.iter().position(|directory| *directory == above)
        };
        match self {
            Generated::Directory(0) => None,
            Generated::Directory(index) => above(DIRECTORIES[usize::from(index)]),
            Generated::Fixed(index) => above(FIXED[usize::from(index)].0),
            Generated::Process(Owner { tid: None, .. }) => Some(0),
            Generated::Process(Owner { pid, tid: Some(_) }) => return Some(Generated::Tasks(pid)),
            Generated::Tasks(pid) => return Some(Generated::Process(Owner { pid, tid: None })),
            Generated::Descriptor(owner, _) => return Some(Generated::Descriptors(owner)),
            Generated::File(owner, ProcFile::DescriptorInfo(_)) => {
                return Some(Generated::DescriptorInfos(owner));
            }
            Generated::File(owner, _)
            | Generated::Mounts(owner, _)
            | Generated::Link(owner, _)
            | Generated::Descriptors(owner)
            | Generated::DescriptorInfos(owner) => return Some(Generated::Process(owner)),
        }
        .map(|index| Generated::Directory(index as u8))
    }

    /// Returns the path from the root.
    pub(super) fn path(self) -> String {
        match self {
            Generated::Directory(0) => "/proc".into(),
            Generated::Directory(index) => format!("/proc/{}", DIRECTORIES[usize::from(index)]),
            Generated::Fixed(index) => format!("/proc/{}", FIXED[usize::from(index)].0),
            Generated::Process(owner) => owner.path(),
            Generated::Tasks(pid) => format!("/proc/{pid}/task"),
            Generated::Descriptors(owner) => format!("{}/fd", owner.path()),
            Generated::DescriptorInfos(owner) => format!("{}/fdinfo", owner.path()),
            Generated::Descriptor(owner, fd) => format!("{}/fd/{fd}", owner.path()),
            Generated::File(owner, ProcFile::DescriptorInfo(fd)) => {
                format!("{}/fdinfo/{fd}", owner.path())
            }
            Generated::File(owner, file) => format!("{}/{}", owner.path(), name_of(&FILES, file)),
            Generated::Mounts(owner, table) => {
                format!("{}/{}", owner.path(), name_of(&MOUNTS, table))
            }
            Generated::Link(owner, link) => format!("{}/{}", owner.path(), name_of(&LINKS, link)),
        }
    }

    /// Returns what is in a file or link that is always there.
    pub(super) fn fixed(index: u8) -> Fixed {
        FIXED[usize::from(index)].1
    }

    /// Looks for a name.
    pub(super) fn child(self, processes: &dyn Processes, name: &[u8]) -> Result<Option<Generated>> {
        let Ok(name) = std::str::from_utf8(name) else { return Ok(None) };
        match self {
            Generated::Directory(index) => Ok(self.fixed_child(processes, index, name)),
            Generated::Process(owner) => Ok(process_child(processes, owner, name)),
            Generated::Tasks(pid) => {
                let thread = number(name).filter(|tid| processes.threads(pid).contains(tid));
                Ok(thread.map(|tid| Generated::Process(Owner { pid, tid: Some(tid) })))
            }
            Generated::Descriptors(owner) => {
                Ok(open(processes, owner, name).map(|fd| Generated::Descriptor(owner, fd)))
            }
            Generated::DescriptorInfos(owner) => Ok(open(processes, owner, name)
                .map(|fd| Generated::File(owner, ProcFile::DescriptorInfo(fd)))),
            Generated::Fixed(_)
            | Generated::File(..)
            | Generated::Mounts(..)
            | Generated::Link(..)
            | Generated::Descriptor(..) => Err(Errno::NOTDIR),
        }
    }

    fn fixed_child(self, processes: &dyn Processes, index: u8, name: &str) -> Option<Generated> {
        if let Some(pid) = number(name).filter(|_| index == 0) {
            let exists = !processes.threads(pid).is_empty();
            return exists.then_some(Generated::Process(Owner { pid, tid: None }));
        }
        let children = self.fixed_children(index);
        children.into_iter().find(|(child, _)| *child == name).map(|(_, child)| child)
    }

    fn fixed_children(self, index: u8) -> Vec<(&'static str, Generated)> {
        let directory = DIRECTORIES[usize::from(index)];
        let inside = |path: &'static str| {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            (above == directory && !name.is_empty()).then_some(name)
        };
        let directories = DIRECTORIES
            .iter()
            .enumerate()
            .filter_map(|(index, path)| Some((inside(path)?, Generated::Directory(index as u8))));
        let files = FIXED
            .iter()
            .enumerate()
            .filter_map(|(index, (path, _))| Some((inside(path)?, Generated::Fixed(index as u8))));
        directories.chain(files).collect()
    }

    /// Returns everything in a directory.
    pub(super) fn children(self, processes: &dyn Processes) -> Result<Vec<(String, Generated)>> {
        let named = |id: &u32, generated: Generated| (id.to_string(), generated);
        Ok(match self {
            Generated::Directory(index) => {
                let fixed = self.fixed_children(index).into_iter();
                let mut all: Vec<_> = fixed.map(|(name, child)| (name.to_owned(), child)).collect();
                let pids = if index == 0 { processes.list() } else { Vec::new() };
                let process = |pid: &u32| Generated::Process(Owner { pid: *pid, tid: None });
                all.extend(pids.iter().map(|pid| named(pid, process(pid))));
                all
            }
            Generated::Process(owner) => process_children(owner),
            Generated::Tasks(pid) => {
                let task = |tid: &u32| Generated::Process(Owner { pid, tid: Some(*tid) });
                processes.threads(pid).iter().map(|tid| named(tid, task(tid))).collect()
            }
            Generated::Descriptors(owner) => {
                let fds = processes.descriptors(owner.id());
                fds.iter().map(|fd| named(fd, Generated::Descriptor(owner, *fd))).collect()
            }
            Generated::DescriptorInfos(owner) => {
                let file = |fd: &u32| Generated::File(owner, ProcFile::DescriptorInfo(*fd));
                processes.descriptors(owner.id()).iter().map(|fd| named(fd, file(fd))).collect()
            }
            Generated::Fixed(_)
            | Generated::File(..)
            | Generated::Mounts(..)
            | Generated::Link(..)
            | Generated::Descriptor(..) => return Err(Errno::NOTDIR),
        })
    }
}

impl From<Generated> for NodeId {
    fn from(generated: Generated) -> NodeId {
        NodeId(Inner::Generated(generated))
    }
}

fn process_children(owner: Owner) -> Vec<(String, Generated)> {
    let mut all = vec![
        ("fd".to_owned(), Generated::Descriptors(owner)),
        ("fdinfo".to_owned(), Generated::DescriptorInfos(owner)),
    ];
    if owner.tid.is_none() {
        all.push(("task".to_owned(), Generated::Tasks(owner.pid)));
    }
    all.extend(FILES.map(|(name, file)| (name.to_owned(), Generated::File(owner, file))));
    all.extend(LINKS.map(|(name, link)| (name.to_owned(), Generated::Link(owner, link))));
    all.extend(MOUNTS.map(|(name, table)| (name.to_owned(), Generated::Mounts(owner, table))));
    all
}

fn process_child(processes: &dyn Processes, owner: Owner, name: &str) -> Option<Generated> {
    let exists = !processes.threads(owner.pid).is_empty();
    let children = process_children(owner).into_iter().filter(|_| exists);
    children.into_iter().find(|(child, _)| child == name).map(|(_, child)| child)
}

fn open(processes: &dyn Processes, owner: Owner, name: &str) -> Option<u32> {
    number(name).filter(|fd| processes.descriptors(owner.id()).contains(fd))
}

/// Parses a number as `/proc` writes them: without leading zeros.
fn number(name: &str) -> Option<u32> {
    name.parse().ok().filter(|number: &u32| number.to_string() == name)
}

fn name_of<T: PartialEq + Copy>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|row| row.1 == value).map_or("", |row| row.0)
}
