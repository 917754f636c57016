//! Running a program until it reaches a point: a function, an address, or the first use of its input.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use kvrm_engine::{EngineError, RunControl, Stop};

use crate::kernel::Kernel;
use crate::memory::{Backing, Permissions};
use crate::report::Ending;
use crate::scheduler::{Next, Turn};
use crate::symbols;
use crate::thread::Tid;
use crate::vfs::NodeId;

/// A point in a program, just before which a run can be kept.
///
/// ```
/// use kvrm_linux::Point;
/// assert_eq!("main".parse(), Ok(Point::Function("main".into())));
/// assert_eq!("0x400120".parse(), Ok(Point::Address(0x40_0120)));
/// assert_eq!("first-read".parse(), Ok(Point::FirstRead));
/// assert!("0x400121".parse::<Point>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Point {
    /// The first instruction of a function of the program, its interpreter or a library, in any process.
    Function(String),
    /// The instruction at an address, in any process.
    Address(u64),
    /// The first system call that reads standard input, or asks how much there is.
    FirstRead,
}

/// The text is not a point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no point in a program: give the name of a function, the address of an instruction (a multiple of 4), or first-read"
)]
pub struct NoPoint(String);

impl FromStr for Point {
    type Err = NoPoint;

    fn from_str(text: &str) -> Result<Point, NoPoint> {
        let number = match text.strip_prefix("0x") {
            Some(digits) => Some(u64::from_str_radix(digits, 16)),
            None if text.starts_with(|first: char| first.is_ascii_digit()) => Some(text.parse()),
            None => None,
        };
        match number {
            Some(Ok(address)) if address % 4 == 0 => Ok(Point::Address(address)),
            Some(_) => Err(NoPoint(text.into())),
            None if text == "first-read" => Ok(Point::FirstRead),
            None if text.is_empty() || text.starts_with('-') => Err(NoPoint(text.into())),
            None => Ok(Point::Function(text.into())),
        }
    }
}

impl Display for Point {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Point::Function(name) => f.write_str(name),
            Point::Address(address) => write!(f, "{address:#x}"),
            Point::FirstRead => f.write_str("first-read"),
        }
    }
}

/// Where a run has come that should reach a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The instruction there is the next.
    Point,
    /// The program has used its standard input before.
    Input,
    /// The run has ended before.
    End(Ending),
    /// One of both, and neither the program nor anything that it has loaded has such a function.
    NoSuchFunction,
}

/// Where a point is in the memories of a run.
struct Places {
    point: Point,
    /// Offsets of the function in files, as far as they were looked at.
    offsets: BTreeMap<NodeId, Vec<u64>>,
    /// What a memory has mapped that can be executed, and where the point is there.
    memories: BTreeMap<u32, (Vec<Mapped>, Vec<u64>)>,
}

/// A part of a file that can be executed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mapped {
    start: u64,
    end: u64,
    node: NodeId,
    offset: u64,
}

impl Places {
    fn new(point: &Point) -> Places {
        let (offsets, memories) = (BTreeMap::new(), BTreeMap::new());
        Places { point: point.clone(), offsets, memories }
    }

    /// The addresses of the point in a thread's memory, in order.
    fn of(&mut self, kernel: &mut Kernel, tid: Tid) -> Vec<u64> {
        let name = match &self.point {
            Point::Function(name) => name,
            Point::Address(address) => return vec![*address],
            Point::FirstRead => return Vec::new(),
        };
        let number = kernel.process_of(tid).memory;
        let areas = kernel.held_of(tid).memory.areas().iter();
        let mapped: Vec<Mapped> = areas
            .filter(|(_, area)| area.access.contains(Permissions::EXECUTE))
            .filter_map(|(start, area)| match area.backing {
                Backing::File { node, offset, .. } => {
                    Some(Mapped { start, end: area.end, node, offset })
                }
                Backing::Anonymous | Backing::Shared { .. } => None,
            })
            .collect();
        if let Some((known, addresses)) = self.memories.get(&number)
            && *known == mapped
        {
            return addresses.clone();
        }
        let mut addresses = Vec::new();
        for Mapped { start, end, node, offset } in &mapped {
            let offsets = self.offsets.entry(*node).or_insert_with(|| {
                let bytes = kernel.program_file(tid, *node);
                bytes.map_or(Vec::new(), |bytes| symbols::offsets_of(&bytes, name))
            });
            let within =
                offsets.iter().filter_map(|at| start.checked_add(at.checked_sub(*offset)?));
            addresses.extend(within.filter(|address| address < end));
        }
        addresses.sort_unstable();
        addresses.dedup();
        self.memories.insert(number, (mapped, addresses.clone()));
        addresses
    }

    /// True if a function was looked for and is nowhere.
    fn is_nowhere(&self) -> bool {
        matches!(self.point, Point::Function(_)) && self.offsets.values().all(Vec::is_empty)
    }
}

impl Kernel {
    /// Runs until the point is reached, or cannot be reached any more. To go on later is the same as not to have paused. The
    /// run should be [watched](Kernel::watch). To find the first read, use [`first_read`](Kernel::first_read).
    pub fn run_to(&mut self, point: &Point, control: &RunControl) -> Result<Reached, EngineError> {
        let mut places = Places::new(point);
        loop {
            let next = self.next(u64::MAX, control)?;
            let other = match next {
                _ if self.has_used_input() => Some(Reached::Input),
                Next::Run { .. } => None,
                Next::Pause => unreachable!("there is nothing to pause for"),
                Next::End(Ending::Cancelled) => return Ok(Reached::End(Ending::Cancelled)),
                Next::End(ending) => Some(Reached::End(ending)),
            };
            if let Some(other) = other {
                return Ok(if places.is_nowhere() { Reached::NoSuchFunction } else { other });
            }
            let Next::Run { instructions } = next else { continue };
            let tid = self.turns.last;
            let addresses = places.of(self, tid);
            if addresses.binary_search(&self.thread(tid).registers.pc).is_ok() {
                self.pause(0);
                return Ok(Reached::Point);
            }
            let guest = &mut self.held_of(tid).memory.guest;
            let (stop, executed) = guest.run_to(instructions, &addresses, control)?;
            match stop {
                Some(Stop::Breakpoint { imm: None }) if executed < instructions => {
                    self.count_paused(executed)?;
                    return Ok(Reached::Point);
                }
                // The point is looked at again when the thread goes on.
                Some(Stop::Breakpoint { imm: None }) => {
                    self.stopped(Some(Stop::MaxCycles), executed)?;
                }
                stop => self.stopped(stop, executed)?,
            }
        }
    }

    /// Runs until the program has used its standard input: after how many instructions another run must
    /// [pause](Kernel::run_until) that should not. The run must be [watched](Kernel::watch). The ending, if it ends before.
    pub fn first_read(&mut self, control: &RunControl) -> Result<Result<u64, Ending>, EngineError> {
        loop {
            let next = self.next(u64::MAX, control)?;
            if let Next::End(_) = next {
                self.note_uses(self.report.instructions);
            }
            if let Some(input) = self.first_uses().and_then(|uses| uses.input) {
                return Ok(Ok(input));
            }
            match next {
                Next::Run { instructions } => {
                    let guest = &mut self.held_of(self.turns.last).memory.guest;
                    let (stop, executed) = guest.run(instructions, control)?;
                    self.stopped(stop, executed)?;
                }
                Next::Pause => unreachable!("there is nothing to pause for"),
                Next::End(ending) => return Ok(Err(ending)),
            }
        }
    }

    fn has_used_input(&mut self) -> bool {
        self.note_uses(self.report.instructions);
        self.uses.as_ref().is_some_and(|uses| uses.has_input())
    }

    /// Interrupts a turn after some of its instructions.
    fn pause(&mut self, executed: u64) {
        let Turn { tid, left, paused: _ } = self.turns.current.expect("it is somebody's turn");
        self.turns.current = Some(Turn { tid, left: left - executed.min(left), paused: true });
    }

    /// The same of one that has just executed them.
    fn count_paused(&mut self, executed: u64) -> Result<(), EngineError> {
        let tid = self.turns.last;
        let before = self.report.instructions;
        self.count(tid, executed);
        self.note_uses(before);
        self.save_registers(tid)?;
        self.pause(executed);
        Ok(())
    }
}
