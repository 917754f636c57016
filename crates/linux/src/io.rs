//! Reading and writing open files.

use crate::Errno;
use crate::answer::Answer;
use crate::console::{Got, Stream};
use crate::files::{FileId, Kind, Moves, Socket};
use crate::kernel::Kernel;
use crate::messages::Message;
use crate::pipes::Pipe;
use crate::resources::Limit;
use crate::signals::{Info, Signal};
use crate::thread::Tid;
use crate::vfs::{Device, FileType, NodeId};

impl Kernel {
    /// Reads at an offset, or where the last read or write ended; `EAGAIN` if there is nothing yet.
    pub(crate) fn read_file(
        &mut self,
        tid: Tid,
        id: FileId,
        at: Option<u64>,
        bytes: &mut [u8],
    ) -> Answer<usize> {
        let file = self.files.get(id);
        if !file.mode.reads || file.mode.path_only {
            return Err(Errno::BADF.into());
        }
        let offset = at.unwrap_or(file.offset);
        match &file.kind {
            Kind::Node(node) => {
                let node = *node;
                let read = self.read_node(tid, node, offset, bytes)?;
                if at.is_none() {
                    self.files.get_mut(id).offset = offset + read as u64;
                }
                Ok(read)
            }
            Kind::Device(device, _) => self.read_device(*device, bytes),
            Kind::Console(_) | Kind::Pipe { .. } | Kind::Event { .. } | Kind::Timer { .. }
                if at.is_some() =>
            {
                Err(Errno::SPIPE.into())
            }
            Kind::Console(stream) => self.read_console(*stream, bytes),
            Kind::Socket(_) if at.is_some() => Err(Errno::SPIPE.into()),
            Kind::Socket(Socket { incoming: None, .. }) => Ok(0),
            Kind::Socket(Socket { moves, incoming: Some(pipe), .. }) => {
                let (moves, pipe) = (*moves, *pipe);
                self.read_socket(moves, pipe, bytes)
            }
            Kind::Pipe { pipe } => {
                let pipe = self.files.pipes.get(*pipe);
                if pipe.bytes.is_empty() && pipe.writers > 0 && !bytes.is_empty() {
                    return Err(Errno::AGAIN.into());
                }
                let read = pipe.read(bytes);
                self.note();
                Ok(read)
            }
            Kind::Event { .. } | Kind::Timer { .. } => self.read_counter(id, bytes),
            Kind::Epoll(_) => Err(Errno::INVAL.into()),
        }
    }

    fn read_device(&mut self, device: Device, bytes: &mut [u8]) -> Answer<usize> {
        match device {
            Device::Null => return Ok(0),
            Device::Zero | Device::Full => bytes.fill(0),
            Device::Random | Device::Urandom => self.random.fill(bytes),
            Device::Tty => return self.read_console(Stream::Input, bytes),
        }
        Ok(bytes.len())
    }

    /// Reads from the messages of a socket. Files that have come along are closed.
    fn read_socket(&mut self, moves: Moves, pipe: u32, bytes: &mut [u8]) -> Answer<usize> {
        let queue = self.files.pipes.get(pipe);
        let Some(received) = queue.receive(moves, bytes.len(), false) else {
            let waits = queue.writers > 0 && !bytes.is_empty();
            return if waits { Err(Errno::AGAIN.into()) } else { Ok(0) };
        };
        for file in received.files {
            self.files.unpost(file);
            self.close_file(file);
        }
        bytes[..received.bytes.len()].copy_from_slice(&received.bytes);
        self.note();
        Ok(received.bytes.len())
    }

    pub(crate) fn read_console(&mut self, stream: Stream, bytes: &mut [u8]) -> Answer<usize> {
        if stream != Stream::Input && !self.console.is_terminal(stream) {
            return Err(Errno::BADF.into());
        }
        match self.console.read(bytes).map_err(Errno::from)? {
            Got::Bytes(len) => Ok(len),
            Got::NotYet => Err(Errno::AGAIN.into()),
        }
    }

    /// Reads the counter of an event or timer.
    fn read_counter(&mut self, id: FileId, bytes: &mut [u8]) -> Answer<usize> {
        let now = self.clock.now();
        let Some(bytes) = bytes.get_mut(..8) else { return Err(Errno::INVAL.into()) };
        let value = match &mut self.files.get_mut(id).kind {
            Kind::Event { count: 0, .. } => 0,
            Kind::Event { count, semaphore: true } => {
                *count -= 1;
                1
            }
            Kind::Event { count, semaphore: false } => std::mem::take(count),
            Kind::Timer { alarm, .. } => match alarm.filter(|alarm| alarm.at <= now) {
                None => 0,
                Some(due) => {
                    let (next, missed) = due.next(now);
                    *alarm = next;
                    u64::from(missed) + 1
                }
            },
            _ => unreachable!("the caller has looked"),
        };
        if value == 0 {
            return Err(Errno::AGAIN.into());
        }
        bytes.copy_from_slice(&value.to_le_bytes());
        self.note();
        Ok(8)
    }

    /// Writes at an offset, or where the last read or write ended; `EAGAIN` if there is no room yet.
    pub(crate) fn write_file(
        &mut self,
        tid: Tid,
        id: FileId,
        at: Option<u64>,
        bytes: &[u8],
    ) -> Answer<usize> {
        let file = self.files.get(id);
        if !file.mode.writes || file.mode.path_only {
            return Err(Errno::BADF.into());
        }
        match &file.kind {
            Kind::Node(node) => {
                let (node, appends, offset) = (*node, file.mode.appends, file.offset);
                let offset = match appends {
                    true => self.with_vfs(tid, |vfs, _| vfs.stat(node))?.size,
                    false => at.unwrap_or(offset),
                };
                let written = self.write_node(tid, node, offset, bytes)?;
                if at.is_none() {
                    self.files.get_mut(id).offset = offset + written as u64;
                }
                Ok(written)
            }
            Kind::Device(Device::Full, _) => Err(Errno::NOSPC.into()),
            Kind::Device(Device::Tty, _) => self.write_console(Stream::Output, bytes),
            Kind::Device(..) => Ok(bytes.len()),
            Kind::Console(_) | Kind::Pipe { .. } | Kind::Event { .. } if at.is_some() => {
                Err(Errno::SPIPE.into())
            }
            Kind::Console(stream) => self.write_console(*stream, bytes),
            Kind::Socket(_) if at.is_some() => Err(Errno::SPIPE.into()),
            Kind::Socket(Socket { outgoing: None, .. }) => {
                self.send_to_thread(tid, Info::kernel(Signal::PIPE));
                Err(Errno::PIPE.into())
            }
            Kind::Pipe { pipe } => self.write_pipe(tid, *pipe, bytes, Pipe::write),
            Kind::Socket(Socket { outgoing: Some(pipe), .. }) => {
                self.write_pipe(tid, *pipe, bytes, |pipe, bytes| {
                    pipe.send_bytes(Message::new(bytes))
                })
            }
            Kind::Event { .. } => self.write_counter(id, bytes),
            Kind::Epoll(_) | Kind::Timer { .. } => Err(Errno::INVAL.into()),
        }
    }

    fn write_node(&mut self, tid: Tid, node: NodeId, offset: u64, bytes: &[u8]) -> Answer<usize> {
        let limit = self.process_of(tid).resources.file_size();
        if offset >= limit && !bytes.is_empty() {
            self.send_to_thread(tid, Info::kernel(Signal::XFSZ));
            return Err(Errno::FBIG.into());
        }
        let most = (limit - offset.min(limit)).min(bytes.len() as u64) as usize;
        let written = self.with_vfs(tid, |vfs, _| vfs.write(node, offset, &bytes[..most]));
        if written == Err(Errno::NOSPC) {
            self.note_file_limit();
        }
        let written = written?;
        self.file_written(node, offset, &bytes[..written]);
        Ok(written)
    }

    /// Notes which limit of files was hit.
    pub(crate) fn note_file_limit(&mut self) {
        match self.vfs.limit_hit() {
            Some(crate::vfs::Limit::Bytes) => self.report.hit(Limit::FileBytes),
            Some(crate::vfs::Limit::Nodes) => self.report.hit(Limit::Files),
            None => {}
        }
    }

    pub(crate) fn write_console(&mut self, stream: Stream, bytes: &[u8]) -> Answer<usize> {
        if stream == Stream::Input && !self.console.is_terminal(stream) {
            return Err(Errno::BADF.into());
        }
        match self.console.write(stream, bytes, self.limits.output).map_err(Errno::from)? {
            Some(written) => Ok(written),
            None => {
                self.report.hit(Limit::Output);
                Err(Errno::NOSPC.into())
            }
        }
    }

    fn write_pipe(
        &mut self,
        tid: Tid,
        pipe: u32,
        bytes: &[u8],
        write: impl FnOnce(&mut Pipe, &[u8]) -> usize,
    ) -> Answer<usize> {
        let pipe = self.files.pipes.get(pipe);
        if pipe.readers == 0 {
            self.send_to_thread(tid, Info::kernel(Signal::PIPE));
            return Err(Errno::PIPE.into());
        }
        let written = write(pipe, bytes);
        if written == 0 && !bytes.is_empty() {
            return Err(Errno::AGAIN.into());
        }
        self.note();
        Ok(written)
    }

    fn write_counter(&mut self, id: FileId, bytes: &[u8]) -> Answer<usize> {
        let Some(bytes) = bytes.get(..8) else { return Err(Errno::INVAL.into()) };
        let value = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let Kind::Event { count, .. } = &mut self.files.get_mut(id).kind else {
            unreachable!("the caller has looked")
        };
        if value == u64::MAX {
            return Err(Errno::INVAL.into());
        }
        let sum = count.checked_add(value).filter(|sum| *sum < u64::MAX).ok_or(Errno::AGAIN)?;
        *count = sum;
        self.note();
        Ok(8)
    }

    /// True if the file is a directory.
    pub(crate) fn is_directory(&mut self, tid: Tid, node: NodeId) -> bool {
        let stat = self.with_vfs(tid, |vfs, _| vfs.stat(node));
        stat.is_ok_and(|stat| stat.file_type == FileType::Directory)
    }
}
