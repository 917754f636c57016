//! What tests of the file system share.

use kvrm_linux::vfs::{
    At, Bind, Descriptor, Found, Limits, NodeId, OpenFlags, ProcFile, ProcLink, Processes, Setup,
    SystemFile, Timespec, Vfs,
};
use kvrm_linux::{Errno, Result};

pub(crate) const LIMITS: Limits = Limits { bytes: 1 << 30, nodes: 100_000 };
pub(crate) const START: Timespec = Timespec { seconds: 1000, nanoseconds: 5 };

pub(crate) const WRITE: OpenFlags = OpenFlags { write: true, ..OpenFlags::READ };
pub(crate) const CREATE: OpenFlags = OpenFlags { create: true, ..WRITE };

/// One process, number 7, with threads 7 and 8 and some open files.
pub(crate) struct One {
    pub(crate) cwd: Option<NodeId>,
    pub(crate) descriptors: Vec<(u32, Descriptor)>,
}

pub(crate) static NOBODY: One = One { cwd: None, descriptors: Vec::new() };

impl Processes for One {
    fn current(&self) -> (u32, u32) {
        (7, 8)
    }

    fn list(&self) -> Vec<u32> {
        vec![7]
    }

    fn threads(&self, pid: u32) -> Vec<u32> {
        if pid == 7 { vec![7, 8] } else { Vec::new() }
    }

    fn file(&self, id: u32, file: ProcFile) -> Result<Vec<u8>> {
        Ok(format!("{file:?} of {id}\n").into_bytes())
    }

    fn link(&self, _: u32, link: ProcLink) -> Result<NodeId> {
        match link {
            ProcLink::Cwd => self.cwd.ok_or(Errno::NOENT),
            ProcLink::Exe | ProcLink::Root => Err(Errno::NOENT),
        }
    }

    fn descriptors(&self, _: u32) -> Vec<u32> {
        self.descriptors.iter().map(|(fd, _)| *fd).collect()
    }

    fn descriptor(&self, _: u32, fd: u32) -> Result<Descriptor> {
        let found = self.descriptors.iter().find(|(number, _)| *number == fd);
        found.map(|(_, descriptor)| descriptor.clone()).ok_or(Errno::NOENT)
    }

    fn system(&self, file: SystemFile) -> Result<Vec<u8>> {
        Ok(format!("{file:?}\n").into_bytes())
    }
}

pub(crate) fn setup() -> Setup {
    Setup { root: None, binds: Vec::new(), files: Vec::new(), limits: LIMITS, time: START }
}

pub(crate) fn memory() -> Vfs {
    Vfs::new(setup()).unwrap()
}

/// A guest that sees a directory of the host as `/host`.
pub(crate) fn bound(host: &std::path::Path, writable: bool) -> Vfs {
    let bind = Bind { host: host.to_owned(), guest: b"/host".to_vec(), writable };
    Vfs::new(Setup { binds: vec![bind], ..setup() }).unwrap()
}

pub(crate) fn at<'a>(vfs: &Vfs, path: &'a str) -> At<'a> {
    At { processes: &NOBODY, base: vfs.root(), path: path.as_bytes() }
}

pub(crate) fn below(base: NodeId, path: &str) -> At<'_> {
    At { processes: &NOBODY, base, path: path.as_bytes() }
}

pub(crate) fn find(vfs: &mut Vfs, path: &str) -> Result<NodeId> {
    vfs.lookup(at(vfs, path), true)?.node()
}

/// Opens a file that the caller has to release.
pub(crate) fn open(vfs: &mut Vfs, path: &str, flags: OpenFlags) -> Result<NodeId> {
    match vfs.open(at(vfs, path), flags, 0o644)? {
        Found::Node(node) => Ok(node),
        Found::Descriptor { .. } => panic!("{path} is an open file"),
    }
}

/// Writes a new file, or over an old one.
pub(crate) fn put(vfs: &mut Vfs, path: &str, contents: &str) -> Result<()> {
    let node = open(vfs, path, OpenFlags { truncate: true, ..CREATE })?;
    let written = vfs.write(node, 0, contents.as_bytes());
    vfs.release(node);
    written.map(|count| assert_eq!(count, contents.len()))
}

pub(crate) fn read_node(vfs: &mut Vfs, node: NodeId) -> Result<String> {
    let mut buffer = vec![0; 1 << 16];
    let count = vfs.read(&NOBODY, node, 0, &mut buffer)?;
    buffer.truncate(count);
    Ok(String::from_utf8(buffer).unwrap())
}

/// Opens and reads a file.
pub(crate) fn get(vfs: &mut Vfs, path: &str) -> Result<String> {
    let node = open(vfs, path, OpenFlags::READ)?;
    let text = read_node(vfs, node);
    vfs.release(node);
    text
}

/// Returns the names in a directory.
pub(crate) fn names(vfs: &mut Vfs, path: &str) -> Result<Vec<String>> {
    let node = find(vfs, path)?;
    let entries = vfs.read_dir(&NOBODY, node)?;
    let names = entries.into_iter().skip(2).map(|entry| String::from_utf8(entry.name).unwrap());
    Ok(names.collect())
}
