//! `ioctl`: terminals, and the little that other files have.

use linux_raw_sys::ioctl as request;

use super::Call;
use crate::Errno;
use crate::answer::Answer;
use crate::console::Stream;
use crate::files::{FileId, Kind, Moves, Socket};
use crate::layout::{Termios, WindowSize};
use crate::terminal;
use crate::vfs::Device;

pub(super) fn ioctl(call: &mut Call<'_>) -> Answer {
    let id = call.file(0)?;
    let (what, argument) = (call.bits(1), call.args[2]);
    if call.kernel.files.get(id).mode.path_only {
        return Err(Errno::BADF.into());
    }
    match what {
        request::FIONBIO => {
            let on: u32 = call.read(argument)?;
            call.kernel.files.get_mut(id).mode.nonblocking = on != 0;
            Ok(0)
        }
        request::FIOCLEX | request::FIONCLEX => {
            let number = call.bits(0).into();
            call.process().descriptors.set_closes_on_exec(number, what == request::FIOCLEX)?;
            Ok(0)
        }
        request::FIONREAD => {
            let bytes = readable(call, id)?;
            call.write(argument, &bytes)?;
            Ok(0)
        }
        _ => on_terminal(call, id, what, argument),
    }
}

/// Bytes that can be read at once.
fn readable(call: &mut Call<'_>, id: FileId) -> Answer<u32> {
    let file = call.kernel.files.get(id);
    let offset = file.offset;
    Ok(match file.kind {
        Kind::Pipe { pipe } => call.kernel.files.pipes.get(pipe).bytes.len() as u32,
        Kind::Socket(Socket { incoming: None, .. }) => 0,
        Kind::Socket(Socket { moves, incoming: Some(pipe), .. }) => {
            let pipe = call.kernel.files.pipes.get(pipe);
            let sizes = pipe.messages.iter().map(|message| message.bytes.len());
            let bytes: usize = match moves {
                Moves::Datagrams => sizes.take(1).sum(),
                Moves::Bytes | Moves::Packets => sizes.sum(),
            };
            bytes as u32
        }
        Kind::Console(_) | Kind::Device(Device::Tty, _) => call.kernel.console.available() as u32,
        Kind::Node(node) => {
            let size = call.kernel.node_size(call.tid, node)?;
            size.saturating_sub(offset).min(i32::MAX as u64) as u32
        }
        _ => return Err(Errno::NOTTY.into()),
    })
}

fn on_terminal(call: &mut Call<'_>, id: FileId, what: u32, argument: u64) -> Answer {
    let stream = match call.kernel.files.get(id).kind {
        Kind::Console(stream) => stream,
        Kind::Device(Device::Tty, _) => Stream::Input,
        _ => return Err(Errno::NOTTY.into()),
    };
    if !call.kernel.console.is_terminal(stream) {
        return Err(Errno::NOTTY.into());
    }
    match what {
        request::TCGETS => {
            let settings: Termios = terminal::settings(stream)?;
            call.write(argument, &settings)?;
        }
        request::TCSETS | request::TCSETSW | request::TCSETSF => {
            let settings: Termios = call.read(argument)?;
            call.kernel.console.set_terminal(stream, &settings)?;
        }
        request::TIOCGWINSZ => {
            let size: WindowSize = terminal::window_size(stream)?;
            call.write(argument, &size)?;
        }
        request::TIOCSWINSZ
        | request::TCFLSH
        | request::TCSBRK
        | request::TCXONC
        | request::TIOCSCTTY => {}
        request::TIOCGPGRP => {
            let group = call.kernel.foreground;
            call.write(argument, &group)?;
        }
        request::TIOCSPGRP => call.kernel.foreground = call.read(argument)?,
        request::TIOCGSID => {
            let session = call.process().session;
            call.write(argument, &session)?;
        }
        _ => return Err(Errno::INVAL.into()),
    }
    Ok(0)
}
