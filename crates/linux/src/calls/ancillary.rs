//! What comes along with messages of sockets: open files, and who has sent them.

use linux_raw_sys::net::{self, SOL_SOCKET};

use super::Call;
use crate::Errno;
use crate::answer::Answer;
use crate::descriptors::Descriptor;
use crate::files::{FileId, Socket};
use crate::layout::{ControlHeader, MessageHeader};
use crate::memory::Permissions;
use crate::messages::{Received, Sender};
use crate::resources::Limit;

/// Files with a message, at the most (`SCM_MAX_FD`).
const MOST_FILES: usize = 253;
/// Bytes of what comes along, at the most (`net.core.optmem_max`).
const MOST_BYTES: u64 = 1 << 17;
/// Bytes before what a header is for.
const HEADER: u64 = size_of::<ControlHeader>() as u64;
/// Users and groups that nobody has, of a sender that is not known.
const NOBODY: u32 = 65534;

/// What is sent along with a message.
#[derive(Default)]
pub(super) struct Attached {
    pub(super) files: Vec<FileId>,
    pub(super) sender: Option<Sender>,
}

/// Where what has come along is written, and how much of it is there.
struct Told {
    at: u64,
    room: u64,
    len: u64,
    flags: u32,
}

impl Call<'_> {
    /// What the caller attaches to a message.
    pub(super) fn attached(&mut self, header: &MessageHeader) -> Answer<Attached> {
        let (mut at, len) = (header.control, header.control_len);
        if len > MOST_BYTES {
            return Err(Errno::NOBUFS.into());
        }
        let end = at.checked_add(len).ok_or(Errno::FAULT)?;
        let mut attached = Attached::default();
        while end.saturating_sub(at) >= HEADER {
            let ControlHeader { len, level, kind } = self.read(at)?;
            if len < HEADER || len > end - at {
                return Err(Errno::INVAL.into());
            }
            let (from, size) = (at + HEADER, len - HEADER);
            match (level, kind) {
                (SOL_SOCKET, net::SCM_RIGHTS) => self.attach_files(from, size, &mut attached)?,
                (SOL_SOCKET, net::SCM_CREDENTIALS) => {
                    attached.sender = Some(self.given_sender(from, size)?);
                }
                (SOL_SOCKET, _) => return Err(Errno::INVAL.into()),
                _ => {}
            }
            at += len.next_multiple_of(8);
        }
        Ok(attached)
    }

    /// Files that are given by their descriptors.
    fn attach_files(&mut self, from: u64, size: u64, attached: &mut Attached) -> Answer<()> {
        let count = (size / 4) as usize;
        if attached.files.len() + count > MOST_FILES {
            return Err(Errno::INVAL.into());
        }
        for index in 0..count as u64 {
            let number: u32 = self.read(from + index * 4)?;
            attached.files.push(self.process().descriptors.get(number.into())?.file);
        }
        let most = self.process().resources.open_files();
        if count > 0 && self.kernel.files.posted() > most {
            self.kernel.report.hit(Limit::OpenFiles);
            return Err(Errno::TOOMANYREFS.into());
        }
        Ok(())
    }

    /// A sender as the caller gives it: any process, but only the one user that there is.
    fn given_sender(&mut self, from: u64, size: u64) -> Answer<Sender> {
        if size != 12 {
            return Err(Errno::INVAL.into());
        }
        let [pid, uid, gid]: [u32; 3] = self.read(from)?;
        match [uid, gid] {
            ids if ids.contains(&u32::MAX) => Err(Errno::INVAL.into()),
            [0, 0] if self.kernel.processes.contains_key(&pid) => Ok(Sender { pid, ids: [0; 2] }),
            [0, 0] => Err(Errno::SRCH.into()),
            _ => Err(Errno::PERM.into()),
        }
    }

    /// The caller, if it or who receives from it wants senders to be known.
    pub(super) fn own_sender(&mut self, socket: Socket) -> Option<Sender> {
        let pipes = &mut self.kernel.files.pipes;
        let mut ends = socket.incoming.into_iter().chain(socket.outgoing);
        let is_told = ends.any(|pipe| pipes.get(pipe).tells_sender);
        is_told.then(|| Sender { pid: self.pid(), ids: [0; 2] })
    }

    /// True if who receives from a socket learns the sender.
    pub(super) fn tells_sender(&mut self, socket: Socket) -> bool {
        socket.incoming.is_some_and(|pipe| self.kernel.files.pipes.get(pipe).tells_sender)
    }

    /// Tells what has come along with a message, and makes files descriptors; how many bytes, and the message's flags.
    pub(super) fn tell_attached(
        &mut self,
        socket: Socket,
        header: &MessageHeader,
        received: Received,
        how: u32,
    ) -> Answer<(u64, u32)> {
        let Received { files, sender, .. } = received;
        // Without a place for it, all that is told is that there was something.
        let room = if header.control == 0 { 0 } else { header.control_len };
        let mut told =
            Told { at: header.control, room, len: 0, flags: how & net::MSG_CMSG_CLOEXEC };
        if self.tells_sender(socket) {
            let Sender { pid, ids: [uid, gid] } =
                sender.unwrap_or(Sender { pid: 0, ids: [NOBODY; 2] });
            self.tell(&mut told, net::SCM_CREDENTIALS, &[pid, uid, gid])?;
        }
        if !files.is_empty() {
            self.tell_files(&mut told, files, how)?;
        }
        Ok((told.len, told.flags))
    }

    fn tell_files(&mut self, told: &mut Told, files: Vec<FileId>, how: u32) -> Answer<()> {
        let room = (told.left() / 4).min(files.len() as u64);
        let is_writable =
            self.memory().allows(told.at, HEADER + room * 4, Permissions::WRITE).is_ok();
        let room = if is_writable { room } else { 0 };
        let mut numbers = Vec::new();
        let mut files = files.into_iter();
        for file in files.by_ref().take(room as usize) {
            let closes_on_exec = how & net::MSG_CMSG_CLOEXEC != 0;
            let limit = self.process().resources.open_files();
            let descriptor = Descriptor { file, closes_on_exec };
            let Ok(number) = self.process().descriptors.add(0, limit, descriptor) else {
                self.kernel.report.hit(Limit::OpenFiles);
                self.kernel.close_file(file);
                told.flags |= net::MSG_CTRUNC;
                break;
            };
            numbers.push(number);
        }
        let rest: Vec<FileId> = files.collect();
        if !rest.is_empty() {
            told.flags |= net::MSG_CTRUNC;
        }
        rest.into_iter().for_each(|file| self.kernel.close_file(file));
        if numbers.is_empty() { Ok(()) } else { self.tell(told, net::SCM_RIGHTS, &numbers) }
    }

    /// Writes one of the things that have come along, as much as there is room for.
    fn tell(&mut self, told: &mut Told, kind: u32, words: &[u32]) -> Answer<()> {
        if told.room < HEADER {
            told.flags |= net::MSG_CTRUNC;
            return Ok(());
        }
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let len = HEADER + told.left().min(bytes.len() as u64);
        if len < HEADER + bytes.len() as u64 {
            told.flags |= net::MSG_CTRUNC;
        }
        self.write(told.at, &ControlHeader { len, level: SOL_SOCKET, kind })?;
        self.write_bytes(told.at + HEADER, &bytes[..(len - HEADER) as usize])?;
        let taken = len.next_multiple_of(8).min(told.room);
        (told.at, told.room, told.len) = (told.at + taken, told.room - taken, told.len + taken);
        Ok(())
    }
}

impl Told {
    /// Bytes after another header.
    fn left(&self) -> u64 {
        self.room.saturating_sub(HEADER)
    }
}
