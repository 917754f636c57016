//! Finding, opening and closing files for a thread.

use crate::Errno;
use crate::answer::Answer;
use crate::descriptors::Descriptor;
use crate::files::{FileId, Kind, OpenFile};
use crate::kernel::Kernel;
use crate::known::Known;
use crate::locks::Owner;
use crate::process::Pid;
use crate::resources::Limit;
use crate::thread::Tid;
use crate::vfs::{At, FileType, Found, NodeId, Processes, Stat, Timespec, Vfs};

/// Open files of all processes, at the most.
const MOST_FILES: usize = 1 << 16;

impl Kernel {
    /// Runs `f` with the files, and with what `/proc` tells a thread.
    pub(crate) fn with_vfs<T>(
        &mut self,
        tid: Tid,
        f: impl FnOnce(&mut Vfs, &dyn Processes) -> T,
    ) -> T {
        let now = self.clock.since_1970(self.clock.now());
        self.vfs.set_time(timespec(now));
        let known = Known {
            processes: &self.processes,
            threads: &self.threads,
            memories: &self.memories,
            files: &self.files,
            clock: &self.clock,
            limits: &self.limits,
            uses: self.uses.as_ref(),
            tid,
        };
        f(&mut self.vfs, &known)
    }

    /// The node of a path, from a directory.
    pub(crate) fn find(
        &mut self,
        tid: Tid,
        base: NodeId,
        path: &[u8],
        follow: bool,
    ) -> Answer<NodeId> {
        let found =
            self.with_vfs(tid, |vfs, processes| vfs.lookup(At { processes, base, path }, follow))?;
        Ok(self.node_of(found)?)
    }

    /// The node of something that was found.
    pub(crate) fn node_of(&self, found: Found) -> Result<NodeId, Errno> {
        match found {
            Found::Node(node) => Ok(node),
            Found::Descriptor { pid, fd } => {
                let process = self.process_with(pid)?;
                let file = process.descriptors.get(fd.into())?.file;
                match self.files.get(file).kind {
                    Kind::Node(node) | Kind::Device(_, node) => Ok(node),
                    _ => Err(Errno::ACCES),
                }
            }
        }
    }

    /// The process of a number, which may be that of one of its threads.
    pub(crate) fn process_with(&self, id: u32) -> Result<&crate::process::Process, Errno> {
        let pid = self.threads.get(&id).map_or(id, |thread| thread.pid);
        self.processes.get(&pid).ok_or(Errno::NOENT)
    }

    /// A directory, before there are threads.
    pub(crate) fn directory_at(&mut self, base: NodeId, path: &[u8]) -> Result<NodeId, Errno> {
        let found =
            self.with_vfs(0, |vfs, processes| vfs.lookup(At { processes, base, path }, true))?;
        let node = found.node()?;
        if self.vfs.stat(node)?.file_type != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        self.vfs.retain(node)?;
        Ok(node)
    }

    /// Reads a file.
    pub(crate) fn read_node(
        &mut self,
        tid: Tid,
        node: NodeId,
        offset: u64,
        bytes: &mut [u8],
    ) -> Answer<usize> {
        Ok(self.with_vfs(tid, |vfs, processes| vfs.read(processes, node, offset, bytes))?)
    }

    /// The size of a file.
    pub(crate) fn node_size(&mut self, tid: Tid, node: NodeId) -> Answer {
        let stat: Stat = self.with_vfs(tid, |vfs, _| vfs.stat(node))?;
        match stat.file_type {
            FileType::Regular => Ok(stat.size),
            FileType::Directory => Err(Errno::NODEV.into()),
            _ => Err(Errno::ACCES.into()),
        }
    }

    /// Reads a whole file; `EFBIG` if it is larger than `most`.
    pub(crate) fn read_whole(&mut self, tid: Tid, node: NodeId, most: u64) -> Answer<Vec<u8>> {
        let size = self.node_size(tid, node)?;
        if size > most {
            return Err(Errno::FBIG.into());
        }
        let mut bytes = vec![0; size as usize];
        let mut done = 0;
        while done < bytes.len() {
            let got = self.read_node(tid, node, done as u64, &mut bytes[done..])?;
            if got == 0 {
                break;
            }
            done += got;
        }
        bytes.truncate(done);
        Ok(bytes)
    }

    /// Gives an open file the lowest free number.
    pub(crate) fn add_file(&mut self, tid: Tid, file: OpenFile, closes_on_exec: bool) -> Answer {
        let limit = self.process_of(tid).resources.open_files();
        let file = self.files.add(file);
        let descriptor = Descriptor { file, closes_on_exec };
        let added = match self.files.len() > MOST_FILES {
            true => Err(Errno::NFILE),
            false => self.process_of(tid).descriptors.add(0, limit, descriptor),
        };
        match added {
            Ok(number) => Ok(number.into()),
            Err(errno) => {
                self.report.hit(Limit::OpenFiles);
                self.close_file(file);
                Err(errno.into())
            }
        }
    }

    /// A descriptor is closed, or a message with a file is dropped.
    pub(crate) fn close_file(&mut self, id: FileId) {
        self.note();
        let mut closing = vec![id];
        while let Some(id) = closing.pop() {
            if let Some(file) = self.files.close(id, &mut closing) {
                self.let_go(id, file);
            }
        }
    }

    /// Nobody uses an open file any more.
    fn let_go(&mut self, id: FileId, file: OpenFile) {
        self.locks.release(Owner::Record(id), None);
        self.locks.release(Owner::Whole(id), None);
        match file.kind {
            Kind::Node(node) | Kind::Device(_, node) => self.vfs.release(node),
            Kind::Pipe { .. }
            | Kind::Socket(_)
            | Kind::Console(_)
            | Kind::Event { .. }
            | Kind::Epoll(_)
            | Kind::Timer { .. } => {}
        }
    }

    /// Closes everything that a process has open.
    pub(crate) fn close_all(&mut self, pid: Pid) {
        let process = self.processes.get_mut(&pid).expect("the caller has looked");
        let descriptors = std::mem::take(&mut process.descriptors);
        self.locks.release(Owner::Process(pid), None);
        descriptors.iter().for_each(|(_, descriptor)| self.close_file(descriptor.file));
    }
}

/// A time in nanoseconds since 1970.
pub(crate) fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        seconds: (nanoseconds / crate::clock::SECOND) as i64,
        nanoseconds: (nanoseconds % crate::clock::SECOND) as u32,
    }
}
