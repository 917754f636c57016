//! The host's terminal.

use crate::console::Stream;
use crate::layout::{Termios, WindowSize};
use crate::{Errno, Result};

#[cfg(target_os = "linux")]
mod host {
    use rustix::fd::BorrowedFd;
    use rustix::termios::{self, OptionalActions, SpecialCodeIndex};

    use super::*;

    /// Control characters that the kernel's structure has.
    const CHARACTERS: usize = 19;

    fn with<T>(
        stream: Stream,
        f: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<T>,
    ) -> Result<T> {
        let done = match stream {
            Stream::Input => f(rustix::stdio::stdin()),
            Stream::Output => f(rustix::stdio::stdout()),
            Stream::Error => f(rustix::stdio::stderr()),
        };
        done.map_err(|error| Errno::from(std::io::Error::from(error)))
    }

    fn index(number: usize) -> SpecialCodeIndex {
        use SpecialCodeIndex as Index;
        // In the order of Linux's numbers.
        const ALL: [SpecialCodeIndex; 17] = [
            Index::VINTR,
            Index::VQUIT,
            Index::VERASE,
            Index::VKILL,
            Index::VEOF,
            Index::VTIME,
            Index::VMIN,
            Index::VSWTC,
            Index::VSTART,
            Index::VSTOP,
            Index::VSUSP,
            Index::VEOL,
            Index::VREPRINT,
            Index::VDISCARD,
            Index::VWERASE,
            Index::VLNEXT,
            Index::VEOL2,
        ];
        ALL[number]
    }

    pub(crate) fn settings(stream: Stream) -> Result<Termios> {
        let found = with(stream, |fd| termios::tcgetattr(fd))?;
        let mut characters = [0; CHARACTERS];
        for (number, character) in characters.iter_mut().take(17).enumerate() {
            *character = found.special_codes[index(number)];
        }
        Ok(Termios {
            input: found.input_modes.bits(),
            output: found.output_modes.bits(),
            control: found.control_modes.bits(),
            local: found.local_modes.bits(),
            line: 0,
            characters,
        })
    }

    pub(crate) fn set_settings(stream: Stream, new: &Termios) -> Result<()> {
        let mut all = with(stream, |fd| termios::tcgetattr(fd))?;
        all.input_modes = termios::InputModes::from_bits_retain(new.input);
        all.output_modes = termios::OutputModes::from_bits_retain(new.output);
        all.local_modes = termios::LocalModes::from_bits_retain(new.local);
        for (number, character) in new.characters.iter().take(17).enumerate() {
            all.special_codes[index(number)] = *character;
        }
        with(stream, |fd| termios::tcsetattr(fd, OptionalActions::Now, &all))
    }

    pub(crate) fn window_size(stream: Stream) -> Result<WindowSize> {
        let size = with(stream, |fd| termios::tcgetwinsize(fd))?;
        Ok(WindowSize {
            rows: size.ws_row,
            columns: size.ws_col,
            width: size.ws_xpixel,
            height: size.ws_ypixel,
        })
    }
}

#[cfg(target_os = "linux")]
pub(crate) use host::{set_settings, settings, window_size};

/// Other systems have other settings: guests see a terminal that cannot be set.
#[cfg(not(target_os = "linux"))]
pub(crate) fn settings(_: Stream) -> Result<Termios> {
    Err(Errno::NOTTY)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn set_settings(_: Stream, _: &Termios) -> Result<()> {
    Err(Errno::NOTTY)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn window_size(_: Stream) -> Result<WindowSize> {
    Err(Errno::NOTTY)
}
