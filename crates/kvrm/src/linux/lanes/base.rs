//! What lanes have in common before they begin: the program up to where it uses something that is its row's own.
//!
//! The program of the first row is run on the host, once to find out where that is, and once up to there. Its memory then is
//! the [`Image`] of all lanes. Lanes whose rows are like the first, in how long what they are given is, begin there; others
//! begin with the program as it is loaded.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::{EngineError, RunControl, Stop};
use kvrm_linux::{CannotFork, Guest, Kernel};
use kvrm_mem::Permissions;

use super::super::rows::Row;
use super::super::runner::{Given, Runner};
use super::guest::{Lane, LaneGuest, SharedLane, lock};
use super::image::Image;
use crate::{Error, Result};

/// Instructions of the host on which a program is first looked whether it has used something, and the most.
const FIRST_LOOK: u64 = 1 << 20;
const MOST: u64 = 1 << 30;

/// What lanes begin with.
pub(super) struct Base {
    pub(super) image: Image,
    prefix: Option<Prefix>,
}

/// A program that was run for some time, and goes on in lanes.
struct Prefix {
    /// As many as there are threads that want one.
    copies: Vec<Mutex<Copy>>,
    args: Vec<Vec<u8>>,
    env: Vec<Vec<u8>>,
    files: Vec<(Vec<u8>, Vec<u8>)>,
    /// The arguments at the beginning that may have been used.
    used: usize,
}

/// One of the copies of a prefix, and where lanes come from that are forked of it.
struct Copy {
    kernel: Kernel,
    forked: Forked,
}

/// The lane that was forked last.
type Forked = Arc<Mutex<Option<SharedLane>>>;

impl Base {
    /// Finds out what rows have in common that are like this one. `threads` want to begin lanes at the same time.
    pub(super) fn new(
        runner: &Runner,
        row: &Row,
        threads: usize,
        control: &RunControl,
    ) -> Result<Base> {
        let given = runner.given(row.clone())?;
        let used = if row.env.is_empty() { runner.common_args() } else { 1 };
        match prefix(runner, &given, used, control)? {
            Some(mut kernel) => {
                let mut copies = Vec::new();
                for _ in 0..threads {
                    let forked = kernel.fork(given.stdin.clone()).map_err(cannot_fork)?;
                    copies.push(Copy::new(forked)?);
                }
                let (copies, images): (Vec<_>, Vec<_>) = copies.into_iter().unzip();
                let image = images.into_iter().next().expect("there is a thread");
                let copies = copies.into_iter().map(Mutex::new).collect();
                let Given { args, env, .. } = given;
                let files = row.files.clone();
                Ok(Base { image, prefix: Some(Prefix { copies, args, env, files, used }) })
            }
            None => {
                let lane = Lane::new();
                let first = LaneGuest::make_first(&lane, runner.machines());
                given.load(&runner.machines().beginning_on(first))?;
                let image = Image::new(&lock(&lane).take_changes());
                Ok(Base { image, prefix: None })
            }
        }
    }

    /// Begins a row's program: its kernel, and its lane, whose changes are those of the image.
    pub(super) fn begin(
        &self,
        runner: &Runner,
        row: Row,
        number: usize,
    ) -> Result<(Kernel, SharedLane)> {
        let files = row.files.clone();
        let given = runner.given(row)?;
        if let Some(prefix) = self.prefix.as_ref().filter(|prefix| prefix.is_of(&given, &files)) {
            return prefix.begin(given, number);
        }
        let lane = Lane::new();
        let first = LaneGuest::make_first(&lane, runner.machines());
        let kernel = given.load(&runner.machines().beginning_on(first))?;
        lock(&lane).change_from(&self.image);
        Ok((kernel, lane))
    }
}

impl Prefix {
    /// True if a program that is given this does the same up to here.
    fn is_of(&self, given: &Given, files: &[(Vec<u8>, Vec<u8>)]) -> bool {
        let lengths = |strings: &[Vec<u8>]| strings.iter().map(Vec::len).collect::<Vec<_>>();
        let used = self.used.min(self.args.len());
        lengths(&self.args) == lengths(&given.args)
            && self.args[..used] == given.args[..used]
            && self.env == given.env
            && self.files == files
    }

    fn begin(&self, given: Given, number: usize) -> Result<(Kernel, SharedLane)> {
        let mut copy = lock(&self.copies[number % self.copies.len()]);
        let Given { args, env, stdin, .. } = given;
        let mut kernel = copy.kernel.fork(stdin).map_err(cannot_fork)?;
        let lane = lock(&copy.forked).take().expect("it was just forked");
        drop(copy);
        kernel.give_strings(&args, &env)?;
        Ok((kernel, lane))
    }
}

impl Copy {
    /// Makes lanes be forked of a program; and the image that they begin with.
    fn new(mut kernel: Kernel) -> Result<(Copy, Image)> {
        let (lane, forked) = (Lane::new(), Forked::default());
        let machine = BaseGuest { guest: LaneGuest::of(&lane), forked: Arc::clone(&forked) };
        let changed = kernel.change_machine(Box::new(machine))?;
        assert!(changed, "it has one thread, as before it was copied");
        let image = Image::new(&lock(&lane).take_changes());
        Ok((Copy { kernel, forked }, image))
    }
}

fn cannot_fork(error: CannotFork) -> Error {
    match error {
        CannotFork::Host(error) => Error::Engine(error),
        CannotFork::HostStreams | CannotFork::HostDirectories | CannotFork::HostTime => {
            unreachable!("lanes have nothing of the host")
        }
    }
}

/// Runs the program of a row up to where it uses something of its own, on the host; `None` if there is no such point where it
/// still has one thread.
fn prefix(
    runner: &Runner,
    given: &Given,
    used: usize,
    control: &RunControl,
) -> Result<Option<Kernel>> {
    let machines = runner.machines().on_host();
    let mut scout = given.load(&machines)?;
    if !scout.watch()? {
        return Ok(None);
    }
    let mut total = FIRST_LOOK;
    let first = loop {
        let has_ended = scout.run_until(total, control)?.is_some();
        let Some(uses) = scout.first_uses() else { return Ok(None) };
        let own = uses.args.iter().skip(used).copied();
        let first = own.chain([uses.input]).flatten().min();
        match first {
            Some(first) => break first,
            None if has_ended => return Ok(None),
            None if total >= MOST => break total,
            None => total *= 2,
        }
    };
    let mut kernel = given.load(&machines)?;
    if first > 0 && kernel.run_until(first, control)?.is_some() {
        return Ok(None);
    }
    Ok(kernel.is_movable().then_some(kernel))
}

/// A machine that never runs: copies of its program go on in lanes.
struct BaseGuest {
    guest: LaneGuest,
    forked: Forked,
}

impl Guest for BaseGuest {
    fn registers(&self) -> std::result::Result<CpuState, EngineError> {
        self.guest.registers()
    }

    fn set_registers(&mut self, state: &CpuState) -> std::result::Result<(), EngineError> {
        self.guest.set_registers(state)
    }

    fn executed(&self) -> std::result::Result<u64, EngineError> {
        self.guest.executed()
    }

    fn vectors(&self) -> std::result::Result<VectorState, EngineError> {
        self.guest.vectors()
    }

    fn set_vectors(&mut self, vectors: &VectorState) -> std::result::Result<(), EngineError> {
        self.guest.set_vectors(vectors)
    }

    fn read(&self, addr: u64, bytes: &mut [u8]) -> std::result::Result<(), EngineError> {
        self.guest.read(addr, bytes)
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> std::result::Result<(), EngineError> {
        self.guest.write(addr, bytes)
    }

    fn protect(
        &mut self,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> std::result::Result<(), EngineError> {
        self.guest.protect(addr, len, permissions)
    }

    fn discard(&mut self, addr: u64, len: u64) -> std::result::Result<(), EngineError> {
        self.guest.discard(addr, len)
    }

    fn run(
        &mut self,
        _: u64,
        _: &RunControl,
    ) -> std::result::Result<(Option<Stop>, u64), EngineError> {
        unreachable!("copies of it run")
    }

    fn fork(&mut self) -> std::result::Result<Box<dyn Guest>, EngineError> {
        let lane = Lane::new();
        *lock(&self.forked) = Some(Arc::clone(&lane));
        Ok(Box::new(LaneGuest::of(&lane)))
    }

    fn watch(&mut self, _: &[Range<u64>]) -> std::result::Result<bool, EngineError> {
        Ok(false)
    }
}
