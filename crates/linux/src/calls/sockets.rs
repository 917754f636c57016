//! Pairs of sockets. There is no network, so that others cannot be.

use super::{Call, MOST_BYTES, flags};
use crate::Errno;
use crate::answer::{Answer, Refusal, Wait};
use crate::files::{FileId, Kind, Mode, Moves, OpenFile};
use crate::memory::Permissions;
use crate::pipes::{CAPACITY, MESSAGES};
use crate::signals::{Info, Signal};

const AF_UNIX: u32 = 1;
const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const SOCK_RAW: u32 = 3;
const SOCK_SEQPACKET: u32 = 5;
const SOCK_PACKET: u32 = 10;
const MSG_PEEK: u32 = 2;
const MSG_TRUNC: u32 = 0x20;
const MSG_DONTWAIT: u32 = 0x40;
const MSG_NOSIGNAL: u32 = 0x4000;

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
    let capacity = if moves == Moves::Bytes { CAPACITY } else { MESSAGES };
    let pipes = [(); 2].map(|()| call.kernel.files.pipes.add_with(None, capacity));
    let nonblocking = kind & flags::NONBLOCK != 0;
    let mode = Mode { reads: true, writes: true, nonblocking, ..Mode::default() };
    let closes = kind & flags::CLOEXEC != 0;
    let ends = [(pipes[0], pipes[1]), (pipes[1], pipes[0])];
    // Both before either has a number, so that neither finds the other closed.
    let ends = ends.map(|(incoming, outgoing)| {
        let kind = Kind::Socket { moves, incoming: Some(incoming), outgoing: Some(outgoing) };
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

/// A socket, with the pipes that it was not shut down for.
#[derive(Clone, Copy)]
struct Socket {
    moves: Moves,
    incoming: Option<u32>,
    outgoing: Option<u32>,
}

impl Call<'_> {
    fn socket(&mut self) -> Result<(FileId, Socket), Errno> {
        let id = self.file(0)?;
        Ok((id, self.as_socket(id)?))
    }

    fn as_socket(&self, id: FileId) -> Result<Socket, Errno> {
        match self.kernel.files.get(id).kind {
            Kind::Socket { moves, incoming, outgoing } => Ok(Socket { moves, incoming, outgoing }),
            _ => Err(Errno::NOTSOCK),
        }
    }

    /// True for sockets that keep messages apart.
    pub(super) fn has_messages(&self, id: FileId) -> bool {
        self.as_socket(id).is_ok_and(|socket| socket.moves != Moves::Bytes)
    }

    fn waits(&self, id: FileId, how: u32) -> bool {
        how & MSG_DONTWAIT == 0 && !self.kernel.files.get(id).mode.nonblocking
    }

    /// Sends bytes, or a message.
    pub(super) fn send(&mut self, id: FileId, buffers: &[(u64, u64)], how: u32) -> Answer {
        let socket = self.as_socket(id)?;
        let waits = self.waits(id, how);
        let mut bytes = Vec::new();
        for (addr, len) in buffers {
            bytes.extend(self.bytes(*addr, (*len).min(MOST_BYTES - bytes.len() as u64))?);
        }
        if socket.moves != Moves::Bytes {
            return self.send_message(socket, bytes, waits);
        }
        let outgoing = socket.outgoing;
        let is_open = outgoing.is_some_and(|pipe| self.kernel.files.pipes.get(pipe).readers > 0);
        let Some(pipe) = outgoing.filter(|_| is_open) else {
            if how & MSG_NOSIGNAL == 0 {
                self.kernel.send_to_thread(self.tid, Info::kernel(Signal::PIPE));
            }
            return Err(Errno::PIPE.into());
        };
        let done = self.thread().progress as usize;
        let written = self.kernel.files.pipes.get(pipe).write(&bytes[done..]);
        self.thread().progress += written as u64;
        self.kernel.note();
        let total = self.thread().progress;
        match total as usize == bytes.len() || !waits && total > 0 {
            true => Ok(total),
            false if !waits => Err(Errno::AGAIN.into()),
            false => Err(Wait::for_ever()),
        }
    }

    /// Sends a message as a whole. Nobody gets a signal if the other is gone.
    fn send_message(&mut self, socket: Socket, message: Vec<u8>, waits: bool) -> Answer {
        let Some(pipe) = socket.outgoing else { return Err(Errno::PIPE.into()) };
        let pipes = &mut self.kernel.files.pipes;
        if pipes.get(pipe).readers == 0 {
            let is_gone = socket.incoming.is_none_or(|pipe| pipes.get(pipe).writers == 0);
            let refuses = socket.moves == Moves::Datagrams && is_gone;
            return Err(if refuses { Errno::CONNREFUSED } else { Errno::PIPE }.into());
        }
        let len = message.len();
        if len > pipes.get(pipe).capacity {
            return Err(Errno::MSGSIZE.into());
        }
        if !pipes.get(pipe).send(message) {
            return Err(if waits { Wait::for_ever() } else { Errno::AGAIN.into() });
        }
        self.kernel.note();
        Ok(len as u64)
    }

    /// Receives bytes, or as much of a message as there is room for.
    pub(super) fn receive(&mut self, id: FileId, buffers: &[(u64, u64)], how: u32) -> Answer {
        Ok(self.receive_all(id, buffers, how)?.0)
    }

    /// The same; true if there was more of the message.
    fn receive_all(&mut self, id: FileId, buffers: &[(u64, u64)], how: u32) -> Answer<(u64, bool)> {
        let socket = self.as_socket(id)?;
        let waits = self.waits(id, how);
        let Some(pipe) = socket.incoming else { return Ok((0, false)) };
        if socket.moves != Moves::Bytes {
            return self.receive_message((socket.moves, pipe), buffers, how, waits);
        }
        let mut total = 0;
        for (addr, len) in buffers {
            let len = self.memory().accessible(*addr, (*len).min(MOST_BYTES), Permissions::WRITE);
            if len == 0 {
                return Err(Errno::FAULT.into());
            }
            let pipe = self.kernel.files.pipes.get(pipe);
            if pipe.bytes.is_empty() && total == 0 && pipe.writers > 0 {
                return Err(if waits { Wait::for_ever() } else { Errno::AGAIN.into() });
            }
            let mut bytes = vec![0; (len as usize).min(pipe.bytes.len())];
            match how & MSG_PEEK {
                0 => {
                    pipe.read(&mut bytes);
                }
                _ => bytes.iter_mut().zip(&pipe.bytes).for_each(|(to, from)| *to = *from),
            }
            self.memory().write(*addr, &bytes)?;
            total += bytes.len() as u64;
        }
        self.kernel.note();
        Ok((total, false))
    }

    fn receive_message(
        &mut self,
        (moves, pipe): (Moves, u32),
        buffers: &[(u64, u64)],
        how: u32,
        waits: bool,
    ) -> Answer<(u64, bool)> {
        let queue = self.kernel.files.pipes.get(pipe);
        let Some(message) = queue.messages.front().cloned() else {
            return match moves == Moves::Packets && queue.writers == 0 {
                true => Ok((0, false)),
                false if waits => Err(Wait::for_ever()),
                false => Err(Errno::AGAIN.into()),
            };
        };
        let mut rest = &message[..];
        for (addr, len) in buffers {
            let len = usize::try_from(*len).unwrap_or(usize::MAX).min(rest.len());
            self.will_write(*addr, len as u64)?;
            let (now, later) = rest.split_at(len);
            self.memory().write(*addr, now)?;
            rest = later;
        }
        if how & MSG_PEEK == 0 {
            self.kernel.files.pipes.get(pipe).receive();
            self.kernel.note();
        }
        let len = if how & MSG_TRUNC == 0 { message.len() - rest.len() } else { message.len() };
        Ok((len as u64, !rest.is_empty()))
    }

    /// The buffers of a `struct msghdr`, which has no address of another.
    fn message(&mut self) -> Answer<Vec<(u64, u64)>> {
        let [_, _, vector, count, ..]: [u64; 7] = self.read(self.args[1])?;
        self.buffers(vector, count)
    }
}

pub(super) fn sendto(call: &mut Call<'_>) -> Answer {
    let buffer = (call.args[1], call.args[2]);
    let (id, _) = call.socket()?;
    call.send(id, &[buffer], call.bits(3))
}

pub(super) fn recvfrom(call: &mut Call<'_>) -> Answer {
    let (id, socket) = call.socket()?;
    let buffer = (call.args[1], call.args[2]);
    let received = match socket.moves == Moves::Bytes && buffer.1 == 0 {
        true => 0,
        false => call.receive(id, &[buffer], call.bits(3))?,
    };
    // The other has no name.
    if call.args[4] != 0 {
        call.write_optional(call.args[5], &0u32)?;
    }
    Ok(received)
}

pub(super) fn sendmsg(call: &mut Call<'_>) -> Answer {
    let (id, _) = call.socket()?;
    let buffers = call.message()?;
    call.send(id, &buffers, call.bits(2))
}

pub(super) fn recvmsg(call: &mut Call<'_>) -> Answer {
    let (id, _) = call.socket()?;
    let buffers = call.message()?;
    let (received, is_cut) = call.receive_all(id, &buffers, call.bits(2))?;
    // Neither an address nor anything else comes along.
    let at = call.args[1];
    call.write(at + 8, &0u32)?;
    call.write(at + 40, &0u64)?;
    call.write(at + 48, &if is_cut { MSG_TRUNC } else { 0 })?;
    Ok(received)
}

pub(super) fn shutdown(call: &mut Call<'_>) -> Answer {
    let (id, Socket { moves, incoming, outgoing }) = call.socket()?;
    let how = call.bits(1);
    if how > 2 {
        return Err(Errno::INVAL.into());
    }
    let (ends_reading, ends_writing) = (how != 1, how != 0);
    call.kernel.files.get_mut(id).kind = Kind::Socket {
        moves,
        incoming: incoming.filter(|_| !ends_reading),
        outgoing: outgoing.filter(|_| !ends_writing),
    };
    let pipes = &mut call.kernel.files.pipes;
    if let Some(pipe) = incoming.filter(|_| ends_reading) {
        pipes.get(pipe).readers -= 1;
        pipes.close(pipe);
    }
    if let Some(pipe) = outgoing.filter(|_| ends_writing) {
        pipes.get(pipe).writers -= 1;
        pipes.close(pipe);
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
    const SOL_SOCKET: u32 = 1;
    let value: u32 = match (call.bits(1), call.bits(2)) {
        // SO_TYPE, SO_DOMAIN, SO_ERROR, SO_ACCEPTCONN, SO_PROTOCOL, SO_SNDBUF and SO_RCVBUF.
        (SOL_SOCKET, 3) => type_of(call.socket()?.1.moves),
        (SOL_SOCKET, 39) => AF_UNIX,
        (SOL_SOCKET, 4 | 30 | 38) => 0,
        (SOL_SOCKET, 7 | 8) => MESSAGES as u32,
        _ => return Err(Refusal::Errno(Errno::OPNOTSUPP)),
    };
    call.socket()?;
    let room: u32 = call.read(call.args[4])?;
    if room < 4 {
        return Err(Errno::INVAL.into());
    }
    call.write(call.args[3], &value)?;
    call.write(call.args[4], &4u32)?;
    Ok(0)
}

/// Sizes of buffers and the like are accepted.
pub(super) fn setsockopt(call: &mut Call<'_>) -> Answer {
    call.socket()?;
    Ok(0)
}

/// There is nobody to call.
pub(super) fn connect(call: &mut Call<'_>) -> Answer {
    call.socket()?;
    Err(Errno::ISCONN.into())
}
