//! Pairs of sockets. There is no network, so that others cannot be.

use linux_raw_sys::net::{
    self, AF_UNIX, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, SOCK_DGRAM,
    SOCK_RAW, SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET,
};

use super::ancillary::Attached;
use super::{Call, MOST_BYTES, flags};
use crate::Errno;
use crate::answer::{Answer, Wait};
use crate::files::{FileId, Kind, Mode, Moves, OpenFile, Socket};
use crate::layout::MessageHeader;
use crate::memory::Permissions;
use crate::messages::{MESSAGE, Message, Received};
use crate::pipes::{CAPACITY, MESSAGES};
use crate::signals::{Info, Signal};

/// The last of the types that there are.
const SOCK_PACKET: u32 = 10;

/// What the socket is called that moves something.
fn type_of(moves: Moves) -> u32 {
    match moves {
        Moves::Bytes => SOCK_STREAM,
        Moves::Datagrams => SOCK_DGRAM,
        Moves::Packets => SOCK_SEQPACKET,
    }
}

/// There is no network.
pub(super) fn socket(_: &mut Call<'_>) -> Answer {
    Err(Errno::AFNOSUPPORT.into())
}

pub(super) fn socketpair(call: &mut Call<'_>) -> Answer {
    let (family, kind, to) = (call.bits(0), call.bits(1), call.args[3]);
    if family != AF_UNIX {
        return Err(Errno::AFNOSUPPORT.into());
    }
    let moves = match kind & !(flags::NONBLOCK | flags::CLOEXEC) {
        SOCK_STREAM => Moves::Bytes,
        SOCK_DGRAM | SOCK_RAW => Moves::Datagrams,
        SOCK_SEQPACKET => Moves::Packets,
        0..=SOCK_PACKET => return Err(Errno::SOCKTNOSUPPORT.into()),
        _ => return Err(Errno::INVAL.into()),
    };
    call.will_write(to, 8)?;
    // What was sent to a stream is one message.
    let capacity = if moves == Moves::Bytes { CAPACITY + MESSAGE } else { MESSAGES };
    let pipes = [(); 2].map(|()| call.kernel.files.pipes.add_with(None, capacity));
    let nonblocking = kind & flags::NONBLOCK != 0;
    let mode = Mode { reads: true, writes: true, nonblocking, ..Mode::default() };
    let closes = kind & flags::CLOEXEC != 0;
    let maker = call.pid();
    let ends = [(pipes[0], pipes[1]), (pipes[1], pipes[0])];
    // Both before either has a number, so that neither finds the other closed.
    let ends = ends.map(|(incoming, outgoing)| {
        let (incoming, outgoing) = (Some(incoming), Some(outgoing));
        let kind = Kind::Socket(Socket { moves, incoming, outgoing, maker });
        call.kernel.files.add(OpenFile::new(kind, mode))
    });
    let limit = call.process().resources.open_files();
    let mut numbers = Vec::new();
    for file in ends {
        let descriptor = crate::descriptors::Descriptor { file, closes_on_exec: closes };
        match call.process().descriptors.add(0, limit, descriptor) {
            Ok(number) => numbers.push(number),
            Err(errno) => {
                for number in numbers {
                    call.process().descriptors.remove(number.into())?;
                }
                ends.into_iter().for_each(|file| call.kernel.close_file(file));
                return Err(errno.into());
            }
        }
    }
    call.write(to, &[numbers[0], numbers[1]])?;
    Ok(0)
}

impl Call<'_> {
    fn socket(&mut self) -> Result<(FileId, Socket), Errno> {
        let id = self.file(0)?;
        Ok((id, self.as_socket(id)?))
    }

    fn as_socket(&self, id: FileId) -> Result<Socket, Errno> {
        match self.kernel.files.get(id).kind {
            Kind::Socket(socket) => Ok(socket),
            _ => Err(Errno::NOTSOCK),
        }
    }

    /// True for sockets.
    pub(super) fn is_socket(&self, id: FileId) -> bool {
        self.as_socket(id).is_ok()
    }

    fn waits(&self, id: FileId, how: u32) -> bool {
        how & MSG_DONTWAIT == 0 && !self.kernel.files.get(id).mode.nonblocking
    }

    /// Sends bytes, or a message, and what is attached to them.
    pub(super) fn send(
        &mut self,
        id: FileId,
        buffers: &[(u64, u64)],
        how: u32,
        attached: Attached,
    ) -> Answer {
        let socket = self.as_socket(id)?;
        let waits = self.waits(id, how);
        let mut bytes = Vec::new();
        for (addr, len) in buffers {
            bytes.extend(self.bytes(*addr, (*len).min(MOST_BYTES - bytes.len() as u64))?);
        }
        let Attached { files, sender } = attached;
        let sender = sender.or_else(|| self.own_sender(socket));
        match socket.moves {
            Moves::Bytes => {
                // What was attached went with the first of the bytes.
                let rest = Message::new(&bytes[self.thread().progress as usize..]);
                self.send_bytes(socket, Message { files, sender, ..rest }, how, waits)
            }
            Moves::Datagrams | Moves::Packets => {
                self.send_message(socket, Message { files, sender, ..Message::new(&bytes) }, waits)
            }
        }
    }

    /// Sends the rest of bytes.
    fn send_bytes(&mut self, socket: Socket, rest: Message, how: u32, waits: bool) -> Answer {
        let outgoing = socket.outgoing;
        let is_open = outgoing.is_some_and(|pipe| self.kernel.files.pipes.get(pipe).readers > 0);
        let Some(pipe) = outgoing.filter(|_| is_open) else {
            if how & MSG_NOSIGNAL == 0 {
                self.kernel.send_to_thread(self.tid, Info::kernel(Signal::PIPE));
            }
            return Err(Errno::PIPE.into());
        };
        let (left, files) = (rest.bytes.len(), rest.files.clone());
        let written = self.kernel.files.pipes.get(pipe).send_bytes(rest);
        if written > 0 {
            files.into_iter().for_each(|file| self.kernel.files.post(file));
        }
        self.thread().progress += written as u64;
        self.kernel.note();
        let total = self.thread().progress;
        match written == left || !waits && total > 0 {
            true => Ok(total),
            false if !waits => Err(Errno::AGAIN.into()),
            false => Err(Wait::for_ever()),
        }
    }

    /// Sends a message as a whole. Nobody gets a signal if the other is gone.
    fn send_message(&mut self, socket: Socket, message: Message, waits: bool) -> Answer {
        let Some(pipe) = socket.outgoing else { return Err(Errno::PIPE.into()) };
        let pipes = &mut self.kernel.files.pipes;
        if pipes.get(pipe).readers == 0 {
            let is_gone = socket.incoming.is_none_or(|pipe| pipes.get(pipe).writers == 0);
            let refuses = socket.moves == Moves::Datagrams && is_gone;
            return Err(if refuses { Errno::CONNREFUSED } else { Errno::PIPE }.into());
        }
        let (len, files) = (message.bytes.len(), message.files.clone());
        if len > pipes.get(pipe).capacity {
            return Err(Errno::MSGSIZE.into());
        }
        if !pipes.get(pipe).send(message) {
            return Err(if waits { Wait::for_ever() } else { Errno::AGAIN.into() });
        }
        files.into_iter().for_each(|file| self.kernel.files.post(file));
        self.kernel.note();
        Ok(len as u64)
    }

    /// Receives bytes, or as much of a message as there is room for. What is attached is dropped.
    pub(super) fn receive(&mut self, id: FileId, buffers: &[(u64, u64)], how: u32) -> Answer {
        let (len, received) = self.receive_all(id, buffers, how)?;
        received.files.into_iter().for_each(|file| self.kernel.close_file(file));
        Ok(len)
    }

    /// The same, with what the call gives; files that come along are in use, and may become descriptors.
    fn receive_all(
        &mut self,
        id: FileId,
        buffers: &[(u64, u64)],
        how: u32,
    ) -> Answer<(u64, Received)> {
        let socket = self.as_socket(id)?;
        let done = self.thread().progress;
        let buffers = behind(buffers, done);
        let received = match socket.incoming {
            Some(pipe) => self.receive_from(id, pipe, &buffers, how)?,
            None => Received::default(),
        };
        if socket.moves != Moves::Bytes {
            let counts_all = how & MSG_TRUNC != 0;
            let len = if counts_all { received.len } else { received.bytes.len() };
            return Ok((len as u64, received));
        }
        let asked: u64 = buffers.iter().map(|(_, len)| *len).sum();
        let got = received.bytes.len() as u64;
        let waits_for_all = how & (MSG_WAITALL | MSG_PEEK) == MSG_WAITALL && self.waits(id, how);
        let is_part = (1..asked).contains(&got) && received.files.is_empty();
        if waits_for_all && is_part && self.is_empty(socket) {
            self.thread().progress += got;
            return Err(Wait::for_ever());
        }
        Ok((done + got, received))
    }

    fn receive_from(
        &mut self,
        id: FileId,
        pipe: u32,
        buffers: &[(u64, u64)],
        how: u32,
    ) -> Answer<Received> {
        let moves = self.as_socket(id)?.moves;
        let asked = buffers.iter().map(|(_, len)| *len).sum::<u64>().min(MOST_BYTES) as usize;
        let queue = self.kernel.files.pipes.get(pipe);
        let Some(first) = queue.messages.front() else {
            let has_ended = moves != Moves::Datagrams && queue.writers == 0;
            return match has_ended || moves == Moves::Bytes && asked == 0 {
                true => Ok(Received::default()),
                false if self.waits(id, how) => Err(Wait::for_ever()),
                false => Err(Errno::AGAIN.into()),
            };
        };
        let least = if moves == Moves::Bytes { 1 } else { first.bytes.len() };
        let room = self.room(buffers, asked);
        if room < asked.min(least) {
            return Err(Errno::FAULT.into());
        }
        let peeks = how & MSG_PEEK != 0;
        let files = &mut self.kernel.files;
        let received = files.pipes.get(pipe).receive(moves, room, peeks);
        let received = received.expect("there was something");
        for file in &received.files {
            match peeks {
                true => files.share(*file),
                false => files.unpost(*file),
            }
        }
        let mut rest = &received.bytes[..];
        for (addr, len) in buffers {
            let now;
            (now, rest) = rest.split_at((*len).min(rest.len() as u64) as usize);
            self.memory().write(*addr, now)?;
        }
        self.kernel.note();
        Ok(received)
    }

    /// True if there is nothing to be received, but may be later.
    fn is_empty(&mut self, socket: Socket) -> bool {
        let pipe = socket.incoming.map(|pipe| self.kernel.files.pipes.get(pipe));
        pipe.is_some_and(|pipe| pipe.messages.is_empty() && pipe.writers > 0)
    }

    /// Bytes of buffers that can be written, up to the first that cannot; no more than were asked for.
    fn room(&mut self, buffers: &[(u64, u64)], asked: usize) -> usize {
        let mut room = 0;
        for (addr, len) in buffers {
            let len = (*len).min((asked - room) as u64);
            let there = self.memory().accessible(*addr, len, Permissions::WRITE);
            room += there as usize;
            if there < len {
                break;
            }
        }
        room
    }

    /// A `struct msghdr`, and its buffers. The other has no address.
    fn header(&mut self) -> Answer<(MessageHeader, Vec<(u64, u64)>)> {
        let header: MessageHeader = self.read(self.args[1])?;
        let buffers = self.buffers(header.buffers, header.count)?;
        Ok((header, buffers))
    }
}

/// Buffers without their first bytes.
fn behind(buffers: &[(u64, u64)], mut done: u64) -> Vec<(u64, u64)> {
    let rest = buffers.iter().map(|(addr, len)| {
        let now = done.min(*len);
        done -= now;
        (addr + now, len - now)
    });
    rest.collect()
}

pub(super) fn sendto(call: &mut Call<'_>) -> Answer {
    let buffer = (call.args[1], call.args[2]);
    let (id, _) = call.socket()?;
    call.send(id, &[buffer], call.bits(3), Attached::default())
}

pub(super) fn recvfrom(call: &mut Call<'_>) -> Answer {
    let (id, _) = call.socket()?;
    let buffer = (call.args[1], call.args[2]);
    let received = call.receive(id, &[buffer], call.bits(3))?;
    // The other has no name.
    if call.args[4] != 0 {
        call.write_optional(call.args[5], &0u32)?;
    }
    Ok(received)
}

pub(super) fn sendmsg(call: &mut Call<'_>) -> Answer {
    let (id, _) = call.socket()?;
    let (header, buffers) = call.header()?;
    let attached = match call.thread().progress {
        0 => call.attached(&header)?,
        _ => Attached::default(),
    };
    call.send(id, &buffers, call.bits(2), attached)
}

pub(super) fn recvmsg(call: &mut Call<'_>) -> Answer {
    let (id, socket) = call.socket()?;
    let (header, buffers) = call.header()?;
    let how = call.bits(2);
    let (len, received) = call.receive_all(id, &buffers, how)?;
    let cuts = socket.moves != Moves::Bytes && received.bytes.len() < received.len;
    let (told, flags) = call.tell_attached(socket, &header, received, how)?;
    // No address comes along.
    let at = call.args[1];
    call.write(at + 8, &0u32)?;
    call.write(at + 40, &told)?;
    call.write(at + 48, &(flags | if cuts { MSG_TRUNC } else { 0 }))?;
    Ok(len)
}

pub(super) fn shutdown(call: &mut Call<'_>) -> Answer {
    let (id, socket) = call.socket()?;
    let how = call.bits(1);
    if how > 2 {
        return Err(Errno::INVAL.into());
    }
    let (ends_reading, ends_writing) = (how != 1, how != 0);
    call.kernel.files.get_mut(id).kind = Kind::Socket(Socket {
        incoming: socket.incoming.filter(|_| !ends_reading),
        outgoing: socket.outgoing.filter(|_| !ends_writing),
        ..socket
    });
    if let Some(pipe) = socket.incoming.filter(|_| ends_reading) {
        let dropped = call.kernel.files.stop_reading(pipe);
        dropped.into_iter().for_each(|file| call.kernel.close_file(file));
    }
    if let Some(pipe) = socket.outgoing.filter(|_| ends_writing) {
        call.kernel.files.stop_writing(pipe);
    }
    call.kernel.note();
    Ok(0)
}

/// Neither side has a name.
pub(super) fn getsockname(call: &mut Call<'_>) -> Answer {
    call.socket()?;
    let room: u32 = call.read(call.args[2])?;
    if room >= 2 {
        call.write(call.args[1], &(AF_UNIX as u16))?;
    }
    call.write(call.args[2], &2u32)?;
    Ok(0)
}

pub(super) fn getsockopt(call: &mut Call<'_>) -> Answer {
    let (_, socket) = call.socket()?;
    let value = match (call.bits(1), call.bits(2)) {
        (SOL_SOCKET, net::SO_TYPE) => vec![type_of(socket.moves)],
        (SOL_SOCKET, net::SO_DOMAIN) => vec![AF_UNIX],
        (SOL_SOCKET, net::SO_ERROR | net::SO_ACCEPTCONN | net::SO_PROTOCOL) => vec![0],
        (SOL_SOCKET, net::SO_SNDBUF | net::SO_RCVBUF) => vec![MESSAGES as u32],
        (SOL_SOCKET, net::SO_PASSCRED) => vec![call.tells_sender(socket).into()],
        (SOL_SOCKET, net::SO_PEERCRED) => vec![socket.maker, 0, 0],
        _ => return Err(Errno::OPNOTSUPP.into()),
    };
    let room: i32 = call.read(call.args[4])?;
    let room = usize::try_from(room).map_err(|_| Errno::INVAL)?;
    let bytes: &[u8] = bytemuck::cast_slice(&value);
    let bytes = &bytes[..bytes.len().min(room)];
    call.write_bytes(call.args[3], bytes)?;
    call.write(call.args[4], &(bytes.len() as u32))?;
    Ok(0)
}

/// Sizes of buffers and the like are accepted.
pub(super) fn setsockopt(call: &mut Call<'_>) -> Answer {
    let (_, socket) = call.socket()?;
    if (call.bits(1), call.bits(2)) == (SOL_SOCKET, net::SO_PASSCRED) {
        if call.bits(4) < 4 {
            return Err(Errno::INVAL.into());
        }
        let value: u32 = call.read(call.args[3])?;
        if let Some(pipe) = socket.incoming {
            call.kernel.files.pipes.get(pipe).tells_sender = value != 0;
        }
    }
    Ok(0)
}

/// There is nobody to call.
pub(super) fn connect(call: &mut Call<'_>) -> Answer {
    call.socket()?;
    Err(Errno::ISCONN.into())
}
