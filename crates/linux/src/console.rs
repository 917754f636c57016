//! Standard input and output, and the terminal.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kvrm_engine::RunControl;
use serde::{Deserialize, Serialize};

use crate::host_input::HostInput;
use crate::layout::Termios;
use crate::signals::Signal;
use crate::{Result, terminal};

/// Bytes of output that are kept in memory, if nobody says less.
const MOST_CAPTURED: u64 = 1 << 30;

/// One of the three streams that a program begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Where the streams of a run lead.
pub struct Console {
    input: Input,
    outputs: [Sink; 2],
    /// Bytes that were written.
    written: u64,
    /// A guest waits for input.
    awaited: bool,
    signals: HostSignals,
    /// Input was read or counted since somebody last asked.
    used: bool,
    /// The run has begun elsewhere, where none of its streams was a terminal.
    no_terminals: bool,
    /// How the terminal was before the guest changed it.
    before: Option<(Stream, Termios)>,
}

/// Signals that arrive at the host and are meant for the guest.
///
/// ```
/// use kvrm_linux::{HostSignals, Signal};
/// let signals = HostSignals::default();
/// signals.raise(Signal::INT);
/// assert_eq!((signals.take(), signals.take()), (Some(Signal::INT), None));
/// ```
#[derive(Clone, Debug, Default)]
pub struct HostSignals(Arc<AtomicU64>);

impl HostSignals {
    /// Notes that a signal has arrived. May be called by a handler of signals.
    pub fn raise(&self, signal: Signal) {
        self.0.fetch_or(1 << (signal.number() - 1), Ordering::Relaxed);
    }

    /// Takes the lowest that has arrived.
    pub fn take(&self) -> Option<Signal> {
        let bits = self.0.load(Ordering::Relaxed);
        let signal = Signal::from_number(u64::from(bits.trailing_zeros()) + 1)?;
        self.0.fetch_and(!(1 << (signal.number() - 1)), Ordering::Relaxed);
        Some(signal)
    }

    fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// Where standard input comes from.
pub enum Input {
    /// These bytes.
    Bytes(VecDeque<u8>),
    /// The host's standard input.
    Host(HostInput),
}

/// Where an output goes.
pub enum Sink {
    /// Into memory.
    Captured(Vec<u8>),
    /// To the host's stream of that name.
    Host,
}

/// What a snapshot has of the streams of a run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    outputs: [Vec<u8>; 2],
    written: u64,
    awaited: bool,
}

impl Saved {
    /// Bytes that were written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }
}

/// What reading gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// So many bytes; none at the end.
    Bytes(usize),
    /// Nothing yet.
    NotYet,
}

impl Console {
    /// Streams in memory: the input is given, and the output kept.
    pub fn captured(input: Vec<u8>) -> Console {
        let outputs = [Sink::Captured(Vec::new()), Sink::Captured(Vec::new())];
        Console::new(Input::Bytes(input.into()), outputs, HostSignals::default())
    }

    /// The host's streams.
    pub fn host(signals: HostSignals) -> Console {
        Console::new(Input::Host(HostInput::default()), [Sink::Host, Sink::Host], signals)
    }

    /// Any combination.
    pub fn new(input: Input, outputs: [Sink; 2], signals: HostSignals) -> Console {
        Console {
            input,
            outputs,
            written: 0,
            awaited: false,
            signals,
            used: false,
            no_terminals: false,
            before: None,
        }
    }

    /// Reads standard input.
    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<Got> {
        self.used = true;
        let got = match &mut self.input {
            Input::Bytes(buffer) => Got::Bytes(buffer.read(bytes)?),
            Input::Host(host) => host.read(bytes)?,
        };
        self.awaited |= got == Got::NotYet;
        Ok(got)
    }

    /// True if reading would give something at once, or the end.
    pub fn is_readable(&mut self) -> bool {
        match &mut self.input {
            Input::Bytes(_) => true,
            Input::Host(host) => {
                let ready = host.wait(Duration::ZERO);
                self.awaited |= !ready;
                ready
            }
        }
    }

    /// Bytes that could be read at once.
    pub fn available(&mut self) -> usize {
        self.used = true;
        match &self.input {
            Input::Bytes(buffer) => buffer.len(),
            Input::Host(host) => host.available(),
        }
    }

    /// Bytes of input in memory that were not read, if it is there.
    pub(crate) fn unread(&self) -> Option<usize> {
        match &self.input {
            Input::Bytes(bytes) => Some(bytes.len()),
            Input::Host(_) => None,
        }
    }

    /// The first bytes of these, as many as are wanted.
    pub(crate) fn peek(&self, most: usize) -> Vec<u8> {
        match &self.input {
            Input::Bytes(bytes) => bytes.iter().copied().take(most).collect(),
            Input::Host(_) => Vec::new(),
        }
    }

    /// Bytes that standard output and standard error take without asking again, no more than there is room for, if `most` are
    /// written in all.
    pub(crate) fn room(&self, most: u64, sizes: [u32; 2]) -> [u32; 2] {
        let left = most.min(MOST_CAPTURED).saturating_sub(self.written);
        let first = left.min(sizes[0].into());
        [first, (left - first).min(sizes[1].into())].map(|bytes| bytes as u32)
    }

    /// Writes standard output or standard error; how many bytes it has taken.
    pub fn write(&mut self, stream: Stream, bytes: &[u8], most: u64) -> io::Result<Option<usize>> {
        let is_captured =
            matches!(self.outputs[usize::from(stream == Stream::Error)], Sink::Captured(_));
        let most = if is_captured { most.min(MOST_CAPTURED) } else { most };
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX).min(most - self.written.min(most));
        if len == 0 && !bytes.is_empty() {
            return Ok(None);
        }
        let bytes = &bytes[..len as usize];
        let sink = &mut self.outputs[usize::from(stream == Stream::Error)];
        let written = match (sink, stream) {
            (Sink::Captured(text), _) => {
                text.extend_from_slice(bytes);
                bytes.len()
            }
            (Sink::Host, Stream::Error) => write_some(io::stderr(), bytes)?,
            (Sink::Host, _) => write_some(io::stdout().lock(), bytes)?,
        };
        self.written += written as u64;
        Ok(Some(written))
    }

    /// True if the stream is a terminal of the host.
    pub fn is_terminal(&self, stream: Stream) -> bool {
        match stream {
            _ if self.no_terminals => false,
            Stream::Input => matches!(self.input, Input::Host(_)) && io::stdin().is_terminal(),
            Stream::Output => matches!(self.outputs[0], Sink::Host) && io::stdout().is_terminal(),
            Stream::Error => matches!(self.outputs[1], Sink::Host) && io::stderr().is_terminal(),
        }
    }

    /// True if the host's own stream is behind it.
    pub fn is_host(&self, stream: Stream) -> bool {
        match stream {
            Stream::Input => matches!(self.input, Input::Host(_)),
            Stream::Output => matches!(self.outputs[0], Sink::Host),
            Stream::Error => matches!(self.outputs[1], Sink::Host),
        }
    }

    /// The same streams for a run that goes on separately, with its own input; `None` if the host has one of them.
    pub(crate) fn fork(&self, input: VecDeque<u8>) -> Option<Console> {
        let captured = |sink: &Sink| match sink {
            Sink::Captured(text) => Some(Sink::Captured(text.clone())),
            Sink::Host => None,
        };
        let [out, err] = self.outputs.each_ref().map(captured);
        if matches!(self.input, Input::Host(_)) {
            return None;
        }
        let mut console = Console::new(Input::Bytes(input), [out?, err?], HostSignals::default());
        (console.written, console.awaited) = (self.written, self.awaited);
        Some(console)
    }

    /// What a snapshot has of it: what was captured. Input is not in it; `None` if the host has one of the outputs.
    pub(crate) fn save(&self) -> Option<Saved> {
        let captured = |sink: &Sink| match sink {
            Sink::Captured(text) => Some(text.clone()),
            Sink::Host => None,
        };
        let [out, err] = self.outputs.each_ref().map(captured);
        Some(Saved { outputs: [out?, err?], written: self.written, awaited: self.awaited })
    }

    /// Goes on as a run that has printed something already, which is printed now. None of its streams is a terminal, as
    /// none was before.
    pub(crate) fn go_on(&mut self, saved: Saved) -> io::Result<()> {
        let Saved { outputs: [out, err], written, awaited } = saved;
        for (stream, text) in [(Stream::Output, out), (Stream::Error, err)] {
            match (&mut self.outputs[usize::from(stream == Stream::Error)], stream) {
                (Sink::Captured(captured), _) => *captured = text,
                (Sink::Host, Stream::Error) => drop(write_some(io::stderr(), &text)?),
                (Sink::Host, _) => drop(write_some(io::stdout().lock(), &text)?),
            }
        }
        (self.written, self.awaited, self.no_terminals) = (written, awaited, true);
        Ok(())
    }

    /// What was captured.
    pub fn take_output(&mut self, stream: Stream) -> Vec<u8> {
        match &mut self.outputs[usize::from(stream == Stream::Error)] {
            Sink::Captured(text) => std::mem::take(text),
            Sink::Host => Vec::new(),
        }
    }

    /// True if input was read or counted since the last call.
    pub(crate) fn was_used(&mut self) -> bool {
        std::mem::take(&mut self.used)
    }

    /// True if a guest has asked for input that was not there.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited
    }

    /// Waits for input or a signal, for so many nanoseconds or for ever; true if there is something.
    pub(crate) fn wait(&mut self, nanoseconds: Option<u64>, control: &RunControl) -> bool {
        const LOOK: Duration = Duration::from_millis(20);
        let mut left = nanoseconds.map_or(Duration::MAX, Duration::from_nanos);
        self.awaited = false;
        while !control.is_cancelled() && !self.signals.any() {
            let Input::Host(host) = &mut self.input else { return true };
            if host.wait(left.min(LOOK)) {
                return true;
            }
            left = left.saturating_sub(LOOK);
            if left.is_zero() {
                return false;
            }
        }
        true
    }

    /// Changes the settings of the terminal.
    pub(crate) fn set_terminal(&mut self, stream: Stream, settings: &Termios) -> Result<()> {
        if self.before.is_none() {
            self.before = Some((stream, terminal::settings(stream)?));
        }
        terminal::set_settings(stream, settings)
    }

    /// The guest has ended by itself: the terminal stays as it wants it.
    pub(crate) fn keep_terminal(&mut self) {
        self.before = None;
    }

    /// A signal that has arrived for the guest.
    pub(crate) fn take_signal(&mut self) -> Option<Signal> {
        self.signals.take()
    }
}

/// A guest that could not do so itself leaves the terminal as it was.
impl Drop for Console {
    fn drop(&mut self) {
        if let Some((stream, settings)) = self.before.take() {
            // Nothing can be done about a terminal that is gone.
            let _ = terminal::set_settings(stream, &settings);
        }
    }
}

/// Writes what the host takes at once.
fn write_some(mut to: impl Write, bytes: &[u8]) -> io::Result<usize> {
    to.write_all(bytes)?;
    to.flush()?;
    Ok(bytes.len())
}
