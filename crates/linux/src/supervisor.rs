//! System calls that a lane on a device serves by itself.
//!
//! A lane that stops waits for the host, and the host for the device. So where there are many lanes, each gets a
//! [supervisor](kvrm_a64::supervised_form): a program ([`program`]) that serves what needs little, writing to standard output
//! for example, in the lane. What it needs for that is on the lane's *desk*, in memory that only supervisors may access:
//!
//! ```text
//!  Kernel::desk ──► desk ◄──► supervisor, for any number of calls
//!                    └──► Kernel::served, when the lane stops: what was written, read and asked
//! ```
//!
//! So the program and its kernel cannot tell who served a call. Whatever the supervisor does not know, it leaves to the
//! host as if it had not been there ([`Stopped::give_back`]).

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};
use kvrm_a64::RETURN;
use kvrm_a64::state::CpuState;
use kvrm_engine::EngineError;
use linux_raw_sys::general as raw;

use crate::answer::Refusal;
use crate::calls::{self, Call};
use crate::clock::SECOND;
use crate::console::{Console, Stream};
use crate::files::Kind;
use crate::kernel::Kernel;
use crate::memory::TOP;
use crate::process::Process;
use crate::thread::Tid;

/// Bytes behind the memory of programs that are the supervisors'.
pub const BYTES: u64 = 2 << 20;
/// Where the supervisor is.
pub const PROGRAM: u64 = TOP;
/// Where the desk is: with what changes often in a page, and a page for output behind it.
pub const DESK: u64 = TOP + (1 << 20);
/// Bytes of the desk.
pub const DESK_BYTES: u64 = 2 * PAGE;

const PAGE: u64 = 4096;
/// Where its buffers are, and how long: of standard output, standard error and standard input.
const BUFFERS: [(u64, u32); 3] = [(DESK + PAGE, 4096), (DESK + 1024, 1024), (DESK + 2048, 2048)];

/// Descriptors that the supervisor knows.
const DESCRIPTORS: usize = 16;
/// Buffers of a vector that it moves, as a power of two.
const MOST_BUFFERS_BITS: u64 = 4;
/// Clocks that it knows.
const CLOCKS: usize = 8;
/// Numbers of system calls.
const READ_CALL: u64 = 63;
const WRITE_CALL: u64 = 64;
const WRITEV_CALL: u64 = 66;
const CLOCK_CALL: u64 = 113;
/// That of `getpid`; those of other calls without arguments follow, up to `gettid`.
const FIRST_NUMBER_CALL: u64 = 172;
const NUMBER_CALLS: usize = 7;

/// Bytes that were moved, and in how many calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Moved {
    bytes: u32,
    calls: u32,
}

/// The beginning of the desk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Desk {
    /// X0 to X7 of the program while the supervisor runs.
    saved: [u64; 8],
    /// By the supervisor: what was written to standard output and standard error, and read.
    moved: [Moved; 3],
    /// How often a vector of buffers was written.
    vectors: u64,
    /// How often a clock was asked, and each of the numbers.
    clocks_asked: u64,
    numbers_asked: [u64; NUMBER_CALLS],
    /// By the host: where the buffers are.
    buffers: [u64; 3],
    /// What may be written to standard output and standard error, and what there is to read.
    room: [u32; 3],
    /// Not zero if there is no more to read than that.
    input_ends: u32,
    /// What clocks are at when the counter is zero; zero for those that the host has to be asked for.
    clocks: [u64; CLOCKS],
    /// What the calls without arguments return.
    numbers: [u64; NUMBER_CALLS],
    /// What descriptors are.
    descriptors: [u8; DESCRIPTORS],
}

/// What a descriptor is: one of the buffers, counted from one.
const IS_INPUT: u8 = 3;

/// Bytes of the desk that say what the supervisor has done.
pub const HEAD_BYTES: usize = std::mem::offset_of!(Desk, buffers);

/// The instructions of the supervisor, for [`PROGRAM`].
///
/// ```
/// let words = kvrm_linux::supervisor::program().chunks_exact(4);
/// assert!((100..200).contains(&words.len()));
/// ```
pub fn program() -> &'static [u8] {
    static PROGRAM_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let text = format!("{}{}", names(), include_str!("supervisor/program.s"));
        kvrm_asm::assemble(&text, PROGRAM).expect("it is tested")
    });
    &PROGRAM_BYTES
}

/// Definitions of the names in the text.
fn names() -> String {
    macro_rules! offset {
        ($field:ident) => {
            std::mem::offset_of!(Desk, $field) as u64
        };
    }
    let names = [
        ("DESK", DESK),
        ("SAVED", offset!(saved)),
        ("MOVED", offset!(moved)),
        ("INPUT_MOVED", 2 * size_of::<Moved>() as u64),
        ("VECTORS", offset!(vectors)),
        ("CLOCKS_ASKED", offset!(clocks_asked)),
        ("NUMBERS_ASKED", offset!(numbers_asked)),
        ("BUFFERS", offset!(buffers)),
        ("INPUT_BUFFER", offset!(buffers) + 16),
        ("ROOM", offset!(room)),
        ("INPUT", offset!(room) + 8),
        ("INPUT_ENDS", offset!(input_ends)),
        ("CLOCKS", offset!(clocks)),
        ("NUMBERS", offset!(numbers)),
        ("DESCRIPTORS", offset!(descriptors)),
        ("IS_INPUT", IS_INPUT.into()),
        ("DESCRIPTOR_BITS", DESCRIPTORS.ilog2().into()),
        ("MOST_BUFFERS_BITS", MOST_BUFFERS_BITS),
        ("CLOCK_BITS", CLOCKS.ilog2().into()),
        ("ADDRESS_BITS", TOP.ilog2().into()),
        ("READ_CALL", READ_CALL),
        ("WRITE_CALL", WRITE_CALL),
        ("WRITEV_CALL", WRITEV_CALL),
        ("CLOCK_CALL", CLOCK_CALL),
        ("FIRST_NUMBER_CALL", FIRST_NUMBER_CALL),
        ("NUMBER_CALLS", NUMBER_CALLS as u64),
        ("SECOND", SECOND),
        ("RETURN", RETURN),
    ];
    names.iter().map(|(name, value)| format!(".equ {name}, {value}\n")).collect()
}

/// True if supervisors may serve calls with that number.
fn may_serve(number: u64) -> bool {
    let last = FIRST_NUMBER_CALL + NUMBER_CALLS as u64;
    matches!(number, READ_CALL | WRITE_CALL | WRITEV_CALL | CLOCK_CALL)
        || (FIRST_NUMBER_CALL..last).contains(&number)
}

/// What a supervisor is given: the beginning of the desk, and the input if that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    desk: Box<Desk>,
    input: Option<Vec<u8>>,
    /// Bytes of the run's input from that on.
    left: usize,
}

impl Given {
    /// What is to be written where.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        let desk = bytemuck::bytes_of(&*self.desk);
        // The first of it is the supervisor's own.
        let from = std::mem::offset_of!(Desk, moved);
        let desk = (DESK + from as u64, desk[from..].to_vec());
        let input = self.input.as_ref().map(|input| (BUFFERS[2].0, input.clone()));
        std::iter::once(desk).chain(input)
    }
}

/// What a lane has done with what its supervisor was given.
pub struct Stopped {
    desk: Box<Desk>,
}

impl Stopped {
    /// What the [head](HEAD_BYTES) of the desk says.
    pub fn new(given: &Given, head: &[u8]) -> Stopped {
        let mut desk = given.desk.clone();
        bytemuck::bytes_of_mut(&mut *desk)[..HEAD_BYTES].copy_from_slice(head);
        Stopped { desk }
    }

    /// Where output is that the kernel has not got yet.
    pub fn outputs(&self) -> impl Iterator<Item = (u64, usize)> {
        (0..2).map(|index| (BUFFERS[index].0, self.moved(index)))
    }

    /// Bytes that were moved; no more than there were, whatever the lane says.
    fn moved(&self, index: usize) -> usize {
        self.desk.moved[index].bytes.min(self.desk.room[index]) as usize
    }

    /// Makes a call that the supervisor has not served one that it has not seen: the program's registers after the call.
    pub fn give_back(&self, state: &mut CpuState) {
        state.x[..8].copy_from_slice(&self.desk.saved);
        (state.x[16], state.x[17]) = (state.caller_x16, state.caller_x17);
        (state.pc, state.caller) = (state.caller, 0);
    }
}

impl Kernel {
    /// True if a supervisor might serve the call with that number and first argument that the program is making.
    pub fn could_leave(&self, number: u64, first: u64) -> bool {
        let is_of_stream = || {
            let pid = self.threads.get(&self.turns.current()?)?.pid;
            let descriptors = descriptors(self.processes.get(&pid)?, &self.files);
            descriptors.get(usize::try_from(first).ok()?).copied()
        };
        match number {
            READ_CALL | WRITE_CALL | WRITEV_CALL => is_of_stream().is_some_and(|kind| kind != 0),
            _ => may_serve(number),
        }
    }

    /// What the supervisor needs to serve calls of the program, which is about to go on; `None` if somebody wants to see each
    /// call. `before` is what it was given before that: the input is there, if nothing was read.
    pub fn desk(&mut self, before: Option<&Given>) -> Option<Given> {
        let is_seen = self.strace.is_some() || self.hook.is_some() || self.uses.is_some();
        if is_seen || self.clock.is_real() || self.threads.len() != 1 || self.processes.len() != 1 {
            return None;
        }
        let tid = self.turns.current()?;
        let left = self.console.input_left()?;
        let mut desk = Desk::zeroed();
        desk.buffers = BUFFERS.map(|(addr, _)| addr);
        let output = self.limits.output;
        let [out, err] = self.console.room(output, [BUFFERS[0].1, BUFFERS[1].1]);
        desk.room = [out, err, left.min(BUFFERS[2].1 as usize) as u32];
        desk.input_ends = u32::from(left <= BUFFERS[2].1 as usize);
        desk.clocks = self.clocks();
        desk.numbers = self.numbers_of(tid);
        let pid = self.thread(tid).pid;
        desk.descriptors = descriptors(&self.processes[&pid], &self.files);
        let is_there = before.is_some_and(|before| before.left == left);
        let input = (!is_there).then(|| self.console.peek(desk.room[2] as usize));
        Some(Given { desk: Box::new(desk), input, left })
    }

    /// What clocks are at when the counter is zero. It is the clock while the program runs.
    fn clocks(&self) -> [u64; CLOCKS] {
        let now = self.clock.now();
        let mut clocks = [0; CLOCKS];
        for clock in [raw::CLOCK_REALTIME, raw::CLOCK_REALTIME_COARSE] {
            clocks[clock as usize] = self.clock.since_1970(now).wrapping_sub(now.0);
        }
        for clock in [
            raw::CLOCK_MONOTONIC,
            raw::CLOCK_MONOTONIC_RAW,
            raw::CLOCK_MONOTONIC_COARSE,
            raw::CLOCK_BOOTTIME,
        ] {
            clocks[clock as usize] = self.clock.since_boot(now).wrapping_sub(now.0);
        }
        clocks
    }

    fn numbers_of(&mut self, tid: Tid) -> [u64; NUMBER_CALLS] {
        std::array::from_fn(|index| {
            let entry = calls::find(FIRST_NUMBER_CALL + index as u64).expect("in the table");
            let answer = (entry.handler)(&mut Call { kernel: self, tid, args: [0; 6] });
            answer.unwrap_or_else(|_| unreachable!("these calls cannot fail"))
        })
    }

    /// Takes note of what a supervisor has served, and returns how many calls. `outputs` is what [`Stopped::outputs`] says.
    pub fn served(&mut self, stopped: &Stopped, outputs: [&[u8]; 2]) -> Result<u64, EngineError> {
        let Stopped { desk } = stopped;
        for (stream, bytes) in [Stream::Output, Stream::Error].into_iter().zip(outputs) {
            if !bytes.is_empty() {
                host_only(self.write_console(stream, bytes))?;
            }
        }
        let mut read = vec![0; stopped.moved(2)];
        if !read.is_empty() {
            host_only(self.read_console(Stream::Input, &mut read))?;
        }
        let [out, err, input] = desk.moved.map(|moved| u64::from(moved.calls));
        let numbers = (FIRST_NUMBER_CALL..).zip(desk.numbers_asked);
        let calls = [
            (READ_CALL, input),
            (WRITE_CALL, out + err),
            (WRITEV_CALL, desk.vectors),
            (CLOCK_CALL, desk.clocks_asked),
        ];
        let mut total = 0;
        for (number, times) in calls.into_iter().chain(numbers) {
            self.report.count_calls(number, times);
            total += times;
        }
        Ok(total)
    }
}

/// What descriptors of a process are for its supervisor.
fn descriptors(process: &Process, files: &crate::files::Files) -> [u8; DESCRIPTORS] {
    std::array::from_fn(|number| {
        let Ok(descriptor) = process.descriptors.get(number as u64) else { return 0 };
        let file = files.get(descriptor.file);
        match file.kind {
            _ if file.mode.path_only => 0,
            Kind::Console(Stream::Output) if file.mode.writes => 1,
            Kind::Console(Stream::Error) if file.mode.writes => 2,
            Kind::Console(Stream::Input) if file.mode.reads => IS_INPUT,
            _ => 0,
        }
    })
}

/// Streams in memory do not fail; the host may.
fn host_only<T>(answer: Result<T, Refusal>) -> Result<(), EngineError> {
    match answer {
        Err(Refusal::Host(error)) => Err(error),
        _ => Ok(()),
    }
}

impl Console {
    /// Bytes of the input that were not read; `None` if a stream is the host's.
    fn input_left(&self) -> Option<usize> {
        let is_captured = [Stream::Input, Stream::Output, Stream::Error];
        let is_captured = is_captured.into_iter().all(|stream| !self.is_host(stream));
        is_captured.then(|| self.unread()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use kvrm_a64::{decode, shaped_form};

    use super::*;

    #[test]
    fn the_program_leaves_flags_and_most_registers_alone() {
        for word in program().chunks_exact(4) {
            let word = u32::from_le_bytes(word.try_into().unwrap());
            let row = decode(word).expect("an instruction");
            assert!(!shaped_form(row, word).to_string().contains("flags :="), "{}", row.name);
            let text = kvrm_asm::disassemble(word, 0).unwrap();
            let registers = text.split(|c: char| !c.is_alphanumeric()).filter_map(|name| {
                name.strip_prefix(['x', 'w']).and_then(|number| number.parse::<u32>().ok())
            });
            for register in registers {
                assert!(matches!(register, 0..=8 | 16 | 17), "{text}");
            }
        }
    }

    #[test]
    fn a_lane_cannot_have_moved_more_than_there_was() {
        let mut desk = Box::new(Desk::zeroed());
        desk.room = [10, 0, 7];
        let given = Given { desk, input: None, left: 7 };
        let mut head = vec![0; HEAD_BYTES];
        let moved = std::mem::offset_of!(Desk, moved);
        head[moved..moved + 24].fill(0xff);
        let stopped = Stopped::new(&given, &head);
        assert_eq!([0, 1, 2].map(|index| stopped.moved(index)), [10, 0, 7]);
        let outputs: Vec<_> = stopped.outputs().map(|(_, len)| len).collect();
        assert_eq!(outputs, [10, 0]);
    }

    #[test]
    fn all_of_the_desk_has_its_place() {
        assert!(size_of::<Desk>() as u64 <= BUFFERS[1].0 - DESK);
        let ends = BUFFERS.map(|(addr, len)| addr + u64::from(len));
        assert_eq!(ends, [DESK + DESK_BYTES, BUFFERS[2].0, BUFFERS[0].0]);
    }

    #[test]
    fn calls_that_may_be_served_are_these() {
        let served = (0..1000).filter(|number| may_serve(*number));
        let names: Vec<_> = served.map(|number| calls::find(number).unwrap().name).collect();
        let numbers = ["getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "gettid"];
        assert_eq!(names[..4], ["read", "write", "writev", "clock_gettime"]);
        assert_eq!(names[4..], numbers);
    }
}
