//! Runs a program on several engines and finds the first instruction after which they differ.
//!
//! Machines run in pieces. After each piece, everything that the host can see of them is compared with the
//! first machine: why lanes stopped, how many instructions they completed, all registers, and all of their
//! memory (only pages that a lane has written are read). After a difference, all machines are reset and run
//! again with shorter pieces, until the instruction is known before which they agree and after which they
//! differ. A difference that disappears within a piece is not found; shorter pieces find more.
//!
//! This needs engines whose runs can be repeated, which is true of all engines if each lane has its own memory.
//! Lanes that share memory race, so only a single one can be compared.
//!
//! ```
//! use kvrm::verify::{self, Plan, Verdict};
//! use kvrm::{EngineKind, Machine, Reg, RunControl};
//!
//! // add x0, x0, #1; hlt #0
//! let code = [0x9100_0400u32, 0xd440_0000].map(u32::to_le_bytes).concat();
//! let mut machines = [EngineKind::Cpu, EngineKind::Eval].map(|engine| {
//!     let mut machine = Machine::builder().engine(engine).lanes(3).build().unwrap();
//!     machine.load(0, &code).unwrap();
//!     machine
//! });
//! let inputs = |machine: &mut Machine| machine.set_register(2, Reg::X(0), 41);
//! let plan = Plan { max_cycles: 1_000, every: None };
//! match verify::verify(&mut machines, &plan, &inputs, &RunControl::new())? {
//!     Verdict::Agree(agreement) => assert_eq!(agreement.instructions, 3),
//!     _ => unreachable!("they are right"),
//! }
//! # Ok::<(), kvrm::Error>(())
//! ```

mod difference;
mod random;
#[cfg(test)]
mod tests;

pub use difference::{Difference, Side};
pub use random::{RandomPrograms, RandomVerdict};

use std::collections::BTreeSet;

use kvrm_engine::{RunControl, Stop};
use kvrm_mem::PAGE;

use crate::{EngineKind, Error, Lanes, Machine, MemoryModel, Result};

/// How long to run, and how often to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Instructions that each lane may complete.
    pub max_cycles: u64,
    /// Instructions between two comparisons; `None` means 1,000 first, then each time twice as many as before.
    pub every: Option<u64>,
}

impl Plan {
    /// Returns the lengths of the pieces.
    fn pieces(&self) -> impl Iterator<Item = u64> {
        let (mut left, mut next) = (self.max_cycles, self.every.unwrap_or(1000).max(1));
        let factor = if self.every.is_some() { 1 } else { 2 };
        std::iter::from_fn(move || {
            let piece = next.min(left);
            (left, next) = (left - piece, next.saturating_mul(factor));
            (piece > 0).then_some(piece)
        })
    }
}

/// The outcome of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All machines did the same.
    Agree(Agreement),
    /// One differs from the first.
    Differ(Box<Difference>),
    /// It was cancelled before there was a result.
    Cancelled,
}

/// What machines agree on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Instructions completed, over all lanes, on each of the machines.
    pub instructions: u64,
    /// Number of comparisons.
    pub comparisons: u64,
    /// Pages of memory that were read and found equal in the last comparison.
    pub pages: u64,
    /// Why each lane stopped.
    pub stops: Vec<Option<Stop>>,
}

/// Returns the engines that can be compared on this computer: `cpu`, and those with a usable GPU, or the
/// reference evaluator if there is none.
///
/// ```
/// assert!(kvrm::verify::engines().len() >= 2);
/// ```
pub fn engines() -> Vec<EngineKind> {
    let mut engines: Vec<EngineKind> = crate::devices()
        .into_iter()
        .filter(|device| device.why_not.is_none() && device.engine != EngineKind::Eval)
        .map(|device| device.engine)
        .collect();
    // Devices of one engine are adjacent.
    engines.dedup();
    if engines.len() == 1 {
        engines.push(EngineKind::Eval);
    }
    engines
}

/// Compares machines that have the same program: each is reset, given its `inputs`, and run until every lane
/// has stopped.
///
/// The other machines are compared with the first. If there is a difference, finding it takes the time of
/// several runs. The control reports the total number of executed instructions.
pub fn verify(
    machines: &mut [Machine],
    plan: &Plan,
    inputs: &dyn Fn(&mut Machine) -> Result<()>,
    control: &RunControl,
) -> Result<Verdict> {
    Verifier::new(machines, inputs, &leave_stopped, control)?.run(plan.pieces())
}

/// Makes sure that stopped lanes do nothing more; returns true if a lane has not stopped.
///
/// Most lanes stop again where they are. After SVC a lane would continue, so its PC is set to an address
/// outside memory.
fn leave_stopped(machine: &mut Machine) -> Result<bool> {
    const NOWHERE: u64 = u64::MAX - 3;
    let mut some_go_on = false;
    for lane in 0..machine.lanes() {
        match machine.stop(lane)? {
            Some(Stop::MaxCycles) => some_go_on = true,
            Some(Stop::Syscall { .. }) => machine.set_pc(lane, NOWHERE)?,
            _ => {}
        }
    }
    Ok(some_go_on)
}

/// Machines that have agreed so far.
struct Verifier<'a> {
    machines: &'a mut [Machine],
    inputs: &'a dyn Fn(&mut Machine) -> Result<()>,
    /// Prepares lanes for the next piece; returns false if none is needed.
    between: &'a dyn Fn(&mut Machine) -> Result<bool>,
    control: &'a RunControl,
    /// The initial contents of shared memory, which resets do not restore.
    shared: Option<Vec<u8>>,
    /// Pieces after which all machines were equal.
    done: Vec<u64>,
    agreement: Agreement,
}

/// A machine that differs from the first, and the lanes that differ.
struct Found {
    machine: usize,
    lanes: BTreeSet<usize>,
}

impl<'a> Verifier<'a> {
    fn new(
        machines: &'a mut [Machine],
        inputs: &'a dyn Fn(&mut Machine) -> Result<()>,
        between: &'a dyn Fn(&mut Machine) -> Result<bool>,
        control: &'a RunControl,
    ) -> Result<Verifier<'a>> {
        let form =
            |machine: &Machine| (machine.lanes(), machine.memory_size(), machine.memory_model());
        let [first, others @ ..] = &*machines else { return Err(Error::NothingToCompare) };
        if others.is_empty() {
            return Err(Error::NothingToCompare);
        }
        if others.iter().any(|other| form(other) != form(first)) {
            return Err(Error::UnlikeMachines);
        }
        let (lanes, size, model) = form(first);
        let shared = match model {
            MemoryModel::Private => None,
            MemoryModel::Shared | MemoryModel::DoubleBuffered if lanes > 1 => {
                return Err(Error::RacingLanes);
            }
            MemoryModel::Shared | MemoryModel::DoubleBuffered | MemoryModel::ReadOnly => {
                let mut bytes = vec![0; size as usize];
                first.read_memory(0, 0, &mut bytes)?;
                Some(bytes)
            }
        };
        let agreement = Agreement { stops: vec![None; lanes], ..Agreement::default() };
        Ok(Verifier { machines, inputs, between, control, shared, done: Vec::new(), agreement })
    }

    fn run(mut self, pieces: impl Iterator<Item = u64>) -> Result<Verdict> {
        self.restart()?;
        if let Some(found) = self.compare()? {
            return Ok(Verdict::Differ(Box::new(self.describe(&found)?)));
        }
        for piece in pieces {
            if !self.advance(piece)? {
                return Ok(Verdict::Cancelled);
            }
            if let Some(found) = self.compare()? {
                return self.locate(&found, piece);
            }
            self.done.push(piece);
            self.note_stops()?;
            if !self.prepare_next()? {
                break;
            }
        }
        let first = &self.machines[0];
        let counts = (0..first.lanes()).map(|lane| first.total_cycles(lane));
        self.agreement.instructions = counts.sum::<Result<u64>>()?;
        Ok(Verdict::Agree(self.agreement))
    }

    /// Resets all machines to their initial state.
    fn restart(&mut self) -> Result<()> {
        for machine in &mut *self.machines {
            machine.reset(Lanes::All)?;
            if let Some(bytes) = &self.shared {
                restore(machine, bytes)?;
            }
            (self.inputs)(machine)?;
        }
        Ok(())
    }

    /// Runs all machines; returns false if cancelled.
    fn advance(&mut self, cycles: u64) -> Result<bool> {
        for machine in &mut *self.machines {
            if machine.run_with(cycles, self.control)?.cancelled {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn prepare_next(&mut self) -> Result<bool> {
        let mut more = false;
        for machine in &mut *self.machines {
            more |= (self.between)(machine)?;
        }
        Ok(more)
    }

    /// Records why lanes stopped the first time.
    fn note_stops(&mut self) -> Result<()> {
        for (lane, noted) in self.agreement.stops.iter_mut().enumerate() {
            if matches!(noted, None | Some(Stop::MaxCycles)) {
                *noted = self.machines[0].stop(lane)?;
            }
        }
        Ok(())
    }

    /// Runs from the beginning to `cycles` instructions after the finished pieces; returns false if cancelled.
    fn replay(&mut self, cycles: u64) -> Result<bool> {
        self.restart()?;
        for piece in self.done.clone() {
            if !self.advance(piece)? {
                return Ok(false);
            }
            self.prepare_next()?;
        }
        Ok(cycles == 0 || self.advance(cycles)?)
    }

    /// Finds the instruction in a piece after which machines differ.
    fn locate(mut self, found: &Found, piece: u64) -> Result<Verdict> {
        // Used if the search is cancelled, or if the difference does not happen again.
        let mut once = self.describe(found)?;
        let (mut equal, mut different) = (0, piece);
        while different - equal > 1 {
            let middle = equal + (different - equal) / 2;
            if !self.replay(middle)? {
                return Ok(Verdict::Differ(Box::new(once)));
            }
            match self.compare()? {
                Some(_) => different = middle,
                None => equal = middle,
            }
        }
        if !self.replay(different)? {
            return Ok(Verdict::Differ(Box::new(once)));
        }
        let Some(found) = self.compare()? else {
            once.repeats = false;
            return Ok(Verdict::Differ(Box::new(once)));
        };
        let mut difference = self.describe(&found)?;
        if self.replay(equal)? {
            difference.add_instruction(&self.machines[0])?;
        }
        Ok(Verdict::Differ(Box::new(difference)))
    }

    fn describe(&self, found: &Found) -> Result<Difference> {
        let lane = *found.lanes.first().expect("some lane differs");
        Difference::new(self.machines, found.machine, lane, found.lanes.len())
    }

    /// Returns the first machine that differs from machine 0, if there is one.
    fn compare(&mut self) -> Result<Option<Found>> {
        let (first, others) = self.machines.split_first().expect("at least two");
        self.agreement.comparisons += 1;
        self.agreement.pages = 0;
        for (machine, other) in (1..).zip(others) {
            let mut lanes = BTreeSet::new();
            for lane in 0..first.lanes() {
                if difference::registers_differ([first, other], lane)? {
                    lanes.insert(lane);
                }
            }
            let pages = written_pages([first, other])?;
            self.agreement.pages += pages.len() as u64;
            for (lane, page) in pages {
                if !lanes.contains(&lane) && difference::page_differs([first, other], lane, page)? {
                    lanes.insert(lane);
                }
            }
            if !lanes.is_empty() {
                return Ok(Some(Found { machine, lanes }));
            }
        }
        Ok(None)
    }
}

/// Returns the pages in which two machines might differ, by lane.
fn written_pages(pair: [&Machine; 2]) -> Result<Vec<(usize, u64)>> {
    if pair[0].memory_model().is_one_for_all() {
        return Ok((0..pair[0].memory_size() / PAGE).map(|page| (0, page)).collect());
    }
    let mut pages = pair[0].private_pages()?;
    pages.extend(pair[1].private_pages()?);
    pages.sort_unstable();
    pages.dedup();
    Ok(pages)
}

/// Restores the pages of shared memory that have changed.
fn restore(machine: &mut Machine, bytes: &[u8]) -> Result<()> {
    let mut page = [0; PAGE as usize];
    for (address, wanted) in (0..).step_by(page.len()).zip(bytes.chunks_exact(page.len())) {
        machine.read_memory(0, address, &mut page)?;
        if page != wanted {
            machine.write_memory(0, address, wanted)?;
        }
    }
    Ok(())
}
