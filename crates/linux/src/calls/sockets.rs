//! Pairs of sockets. There is no network, so that others cannot be.

use super::{Call, MOST_BYTES, flags};
use crate::Errno;
use crate::answer::{Answer, Refusal, Wait};
use crate::files::{FileId, Kind, Mode, OpenFile};
use crate::memory::Permissions;
use crate::signals::{Info, Signal};

const AF_UNIX: u32 = 1;
const SOCK_STREAM: u32 = 1;
const MSG_PEEK: u32 = 2;
const MSG_DONTWAIT: u32 = 0x40;
const MSG_NOSIGNAL: u32 = 0x4000;

/// There is no network.
pub(super) fn socket(_: &mut Call<'_>) -> Answer {
    Err(Errno::AFNOSUPPORT.into())
}

pub(super) fn socketpair(call: &mut Call<'_>) -> Answer {
    let (family, kind, to) = (call.bits(0), call.bits(1), call.args[3]);
    if family != AF_UNIX {
        return Err(Errno::AFNOSUPPORT.into());
    }
    if kind & !(flags::NONBLOCK | flags::CLOEXEC) != SOCK_STREAM {
        return Err(Errno::OPNOTSUPP.into());
    }
    call.will_write(to, 8)?;
    let pipes = [(); 2].map(|()| call.kernel.files.pipes.add(None));
    let nonblocking = kind & flags::NONBLOCK != 0;
    let mode = Mode { reads: true, writes: true, nonblocking, ..Mode::default() };
    let closes = kind & flags::CLOEXEC != 0;
    let ends = [(pipes[0], pipes[1]), (pipes[1], pipes[0])];
    // Both before either has a number, so that neither finds the other closed.
    let ends = ends.map(|(incoming, outgoing)| {
        let kind = Kind::Socket { incoming: Some(incoming), outgoing: Some(outgoing) };
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
    /// The pipes of a socket.
    fn socket(&mut self) -> Result<(FileId, Option<u32>, Option<u32>), Errno> {
        let id = self.file(0)?;
        match self.kernel.files.get(id).kind {
            Kind::Socket { incoming, outgoing } => Ok((id, incoming, outgoing)),
            _ => Err(Errno::NOTSOCK),
        }
    }

    fn send(&mut self, buffers: &[(u64, u64)], how: u32) -> Answer {
        let (id, _, outgoing) = self.socket()?;
        let nonblocking = how & MSG_DONTWAIT != 0 || self.kernel.files.get(id).mode.nonblocking;
        let mut bytes = Vec::new();
        for (addr, len) in buffers {
            bytes.extend(self.bytes(*addr, (*len).min(MOST_BYTES - bytes.len() as u64))?);
        }
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
        match total as usize == bytes.len() || nonblocking && total > 0 {
            true => Ok(total),
            false if nonblocking => Err(Errno::AGAIN.into()),
            false => Err(Wait::for_ever()),
        }
    }

    fn receive(&mut self, buffers: &[(u64, u64)], how: u32) -> Answer {
        let (id, incoming, _) = self.socket()?;
        let nonblocking = how & MSG_DONTWAIT != 0 || self.kernel.files.get(id).mode.nonblocking;
        let Some(pipe) = incoming else { return Ok(0) };
        let mut total = 0;
        for (addr, len) in buffers {
            let len = self.memory().accessible(*addr, (*len).min(MOST_BYTES), Permissions::WRITE);
            if len == 0 {
                return Err(Errno::FAULT.into());
            }
            let pipe = self.kernel.files.pipes.get(pipe);
            if pipe.bytes.is_empty() && total == 0 && pipe.writers > 0 {
                return Err(if nonblocking { Errno::AGAIN.into() } else { Wait::for_ever() });
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
        Ok(total)
    }

    /// The buffers of a `struct msghdr`, which has no address of another.
    fn message(&mut self) -> Answer<Vec<(u64, u64)>> {
        let [_, _, vector, count, ..]: [u64; 7] = self.read(self.args[1])?;
        self.buffers(vector, count)
    }
}

pub(super) fn sendto(call: &mut Call<'_>) -> Answer {
    let buffer = (call.args[1], call.args[2]);
    call.send(&[buffer], call.bits(3))
}

pub(super) fn recvfrom(call: &mut Call<'_>) -> Answer {
    let buffer = (call.args[1], call.args[2]);
    if buffer.1 == 0 {
        call.socket()?;
        return Ok(0);
    }
    call.receive(&[buffer], call.bits(3))
}

pub(super) fn sendmsg(call: &mut Call<'_>) -> Answer {
    let buffers = call.message()?;
    call.send(&buffers, call.bits(2))
}

pub(super) fn recvmsg(call: &mut Call<'_>) -> Answer {
    let buffers = call.message()?;
    let received = call.receive(&buffers, call.bits(2))?;
    // Neither an address nor anything else comes along.
    let at = call.args[1];
    call.write(at + 8, &0u32)?;
    call.write(at + 40, &0u64)?;
    call.write(at + 48, &0u32)?;
    Ok(received)
}

pub(super) fn shutdown(call: &mut Call<'_>) -> Answer {
    let (id, incoming, outgoing) = call.socket()?;
    let how = call.bits(1);
    if how > 2 {
        return Err(Errno::INVAL.into());
    }
    let (ends_reading, ends_writing) = (how != 1, how != 0);
    call.kernel.files.get_mut(id).kind = Kind::Socket {
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
        // SO_TYPE, SO_ERROR, SO_SNDBUF, SO_RCVBUF, SO_ACCEPTCONN, SO_PROTOCOL and SO_DOMAIN.
        (SOL_SOCKET, 3 | 39) => SOCK_STREAM,
        (SOL_SOCKET, 4 | 30 | 38) => 0,
        (SOL_SOCKET, 7 | 8) => crate::pipes::CAPACITY as u32,
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
