//! The machine: lanes, their registers and memory, and running them.

use std::ops::Range;
use std::time::Duration;

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::{CodeUse, Config, Engine, LaneStatus, RunControl, StartTimes, Stop};
use kvrm_mem::ProcessMark;

use crate::core::{Core, Limits};
use crate::running::{LastStart, Place};
use crate::{Error, MachineBuilder, MemoryModel, Reg, Registers, Result};

/// Approximate number of bytes that are written to lanes at a time.
const LANES_BYTES: usize = 16 << 20;

/// One lane or all of them. A lane number converts into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// Every lane.
    All,
    /// The lane with this number.
    One(usize),
}

impl From<usize> for Lanes {
    fn from(lane: usize) -> Lanes {
        Lanes::One(lane)
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunReport {
    /// Instructions completed, over all lanes.
    pub cycles: u64,
    /// Time it took.
    pub elapsed: Duration,
    /// True if it was cancelled, by a call or by its timeout: lanes without a stop can continue.
    pub cancelled: bool,
    /// True if its timeout cancelled it: see [`RunControl::with_timeout`].
    pub timed_out: bool,
    /// False if memory is double-buffered and the run was rolled back:
    /// see [`MemoryModel::DoubleBuffered`].
    pub committed: bool,
    /// Number of batches; one, unless it was a run in batches.
    pub batches: u64,
}

impl RunReport {
    /// Returns guest instructions per second, over all lanes.
    pub fn ips(&self) -> f64 {
        self.cycles as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// One or more ARM64 machines that run the same program.
///
/// A machine belongs to the process that built it. In a forked process, every use of it returns [`Error::Forked`], and
/// dropping it frees nothing.
pub struct Machine {
    process: ProcessMark,
    pub(crate) place: Place,
    pub(crate) last_start: LastStart,
    pub(crate) breakpoints: Vec<u64>,
    entry: u64,
    engine: &'static str,
    config: Config,
    model: MemoryModel,
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            // Freeing it would wait for a thread or a driver that is not there.
            std::mem::forget(std::mem::replace(&mut self.place, Place::Lost));
        }
    }
}

impl Machine {
    /// Starts building a machine.
    pub fn builder() -> MachineBuilder {
        MachineBuilder::default()
    }

    pub(crate) fn new(engine: Box<dyn Engine>, model: MemoryModel) -> Machine {
        Machine {
            process: ProcessMark::here(),
            engine: engine.name(),
            config: engine.config().clone(),
            model,
            entry: 0,
            breakpoints: Vec::new(),
            last_start: LastStart::default(),
            place: Place::Here(Box::new(Core::new(engine, model))),
        }
    }

    /// Fails in a process that was forked from the one that built the machine: its memory is still shared with that
    /// process, and threads and drivers do not survive a fork.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.process.is_here() { Ok(()) } else { Err(Error::Forked) }
    }

    /// Returns the core, unless the machine is running.
    pub(crate) fn core(&self) -> Result<&Core> {
        self.check_process()?;
        match &self.place {
            Place::Here(core) => Ok(core),
            Place::Running(_) => Err(Error::Running),
            Place::Lost => Err(Error::Lost),
        }
    }

    pub(crate) fn core_mut(&mut self) -> Result<&mut Core> {
        self.check_process()?;
        self.settle();
        match &mut self.place {
            Place::Here(core) => Ok(core),
            Place::Running(_) => Err(Error::Running),
            Place::Lost => Err(Error::Lost),
        }
    }

    fn engine_mut(&mut self) -> Result<&mut dyn Engine> {
        Ok(&mut *self.core_mut()?.engine)
    }

    fn status(&self, lane: usize) -> Result<LaneStatus> {
        self.check_lane(lane)?;
        Ok(self.core()?.engine.status(lane)?)
    }

    /// Returns the name of its engine.
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// Returns what its lanes had to wait for so far: the driver when it was built, kernels when it ran. Empty
    /// while it runs in the background.
    pub fn start_times(&self) -> StartTimes {
        self.core().map_or_else(|_| StartTimes::default(), |core| core.engine.start_times())
    }

    /// What its translated code takes, if its engine translates: see [`MachineBuilder::code_memory`]. Nothing is known
    /// while it runs in the background.
    ///
    /// [`MachineBuilder::code_memory`]: crate::MachineBuilder::code_memory
    pub fn code_use(&self) -> CodeUse {
        self.core().map_or_else(|_| CodeUse::default(), |core| core.engine.code_use())
    }

    /// Returns the number of lanes.
    pub fn lanes(&self) -> usize {
        self.config.lanes
    }

    /// Returns the size of guest memory in bytes (per lane, if it is private).
    pub fn memory_size(&self) -> u64 {
        self.config.memory_size
    }

    /// Returns the memory model.
    pub fn memory_model(&self) -> MemoryModel {
        self.model
    }

    /// True if a run works on the thread that calls it alone, so that a control's
    /// [interrupt](RunControl::with_interrupt) is asked there, at least every 50 ms.
    pub fn runs_on_caller(&self) -> Result<bool> {
        Ok(self.core()?.engine.runs_on_caller())
    }

    pub(crate) fn check_lane(&self, lane: usize) -> Result<()> {
        let lanes = self.lanes();
        if lane < lanes { Ok(()) } else { Err(Error::NoSuchLane { lane, lanes }) }
    }

    pub(crate) fn check_range(&self, address: u64, len: u64) -> Result<()> {
        let size = self.memory_size();
        match address.checked_add(len) {
            Some(end) if end <= size => Ok(()),
            _ => Err(Error::OutsideMemory { address, len, size }),
        }
    }

    /// Makes sure that a lane has that memory, and that the machine is not running.
    pub fn check_access(&self, lane: usize, address: u64, len: u64) -> Result<()> {
        self.check_idle()?;
        self.check_lane(lane)?;
        self.check_range(address, len)
    }

    /// Makes sure that the machine is not running.
    pub fn check_idle(&self) -> Result<()> {
        self.core().map(drop)
    }

    /// Returns the numbers of the chosen lanes.
    fn range(&self, lanes: Lanes) -> Result<Range<usize>> {
        match lanes {
            Lanes::All => Ok(0..self.lanes()),
            Lanes::One(lane) => {
                self.check_lane(lane)?;
                Ok(lane..lane + 1)
            }
        }
    }

    // Programs and memory.

    /// Writes bytes to the image, and so to every lane's memory, now and after each reset.
    pub fn load(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.check_range(address, bytes.len() as u64)?;
        Ok(self.engine_mut()?.write_image(address, bytes)?)
    }

    /// Sets where every lane starts, now and after each reset.
    pub fn set_entry(&mut self, pc: u64) -> Result<()> {
        self.set_pc(Lanes::All, pc)?;
        self.entry = pc;
        Ok(())
    }

    /// Reads memory as a lane sees it.
    pub fn read_memory(&self, lane: usize, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.check_lane(lane)?;
        self.check_range(address, bytes.len() as u64)?;
        Ok(self.core()?.engine.read_memory(lane, address, bytes)?)
    }

    /// Returns the pages that may differ from the image, as lanes and page numbers; none if memory is shared.
    pub(crate) fn private_pages(&self) -> Result<Vec<(usize, u64)>> {
        Ok(self.core()?.engine.private_pages()?)
    }

    /// Writes memory of one lane or of all. Unlike [`load`](Self::load), a reset undoes it if memory is
    /// private.
    pub fn write_memory(
        &mut self,
        lanes: impl Into<Lanes>,
        address: u64,
        bytes: &[u8],
    ) -> Result<()> {
        self.check_range(address, bytes.len() as u64)?;
        let lanes = match lanes.into() {
            Lanes::All if self.model.is_one_for_all() => 0..1,
            lanes => self.range(lanes)?,
        };
        let engine = self.engine_mut()?;
        if lanes.len() == 1 {
            return Ok(engine.write_memory(lanes.start, address, bytes)?);
        }
        let step = (LANES_BYTES / bytes.len().max(1)).clamp(1, lanes.len());
        for first in lanes.clone().step_by(step) {
            let lanes = first..lanes.end.min(first + step);
            engine.write_memory_of(lanes.clone(), address, &bytes.repeat(lanes.len()))?;
        }
        Ok(())
    }

    // Registers.

    /// Reads a register of a lane; any but V, which has more bits: see [`vector`](Self::vector).
    pub fn register(&self, lane: usize, reg: Reg) -> Result<u64> {
        reg.check_narrow()?;
        let lanes = self.range(Lanes::One(lane))?;
        let mut value = 0;
        self.visit_register(lanes, reg, &mut |of_lane| value = of_lane)?;
        Ok(value)
    }

    /// Writes a register of one lane or of all; any but V, which has more bits: see
    /// [`set_vector`](Self::set_vector). A register of fewer bits takes the low ones.
    pub fn set_register(&mut self, lanes: impl Into<Lanes>, reg: Reg, value: u64) -> Result<()> {
        reg.check_value(value)?;
        let lanes = self.range(lanes.into())?;
        self.change_register(lanes, reg, &mut || value)
    }

    /// Calls `visit` with a register of each lane, one that exists and has at most 64 bits.
    pub(crate) fn visit_register(
        &self,
        lanes: Range<usize>,
        reg: Reg,
        visit: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let engine = &self.core()?.engine;
        match reg.vector() {
            Some(_) => {
                engine.visit_vectors(lanes, &mut |vectors| visit(reg.get_vector(vectors) as u64))?
            }
            None => engine.visit_states(lanes, &mut |state| visit(reg.get(state)))?,
        }
        Ok(())
    }

    /// Sets a register of each lane, one that exists and has at most 64 bits, to what `next` returns.
    pub(crate) fn change_register(
        &mut self,
        lanes: Range<usize>,
        reg: Reg,
        next: &mut dyn FnMut() -> u64,
    ) -> Result<()> {
        let engine = self.engine_mut()?;
        match reg.vector() {
            Some(_) => engine
                .change_vectors(lanes, &mut |vectors| reg.set_vector(vectors, next().into()))?,
            None => engine.change_states(lanes, &mut |state| reg.set(state, next()))?,
        }
        Ok(())
    }

    /// Reads a vector register of a lane, all of its 128 bits.
    ///
    /// ```
    /// use kvrm::{Lanes, Machine, Reg};
    /// let mut machine = Machine::builder().lanes(2).build()?;
    /// machine.set_vector(Lanes::All, 3, 0x3ff8_0000_0000_0000_4004_0000_0000_0000)?;
    /// assert_eq!(machine.vector(1, 3)? >> 64, 1.5f64.to_bits().into());
    /// // The lower half; writing it would clear the upper one.
    /// assert_eq!(f64::from_bits(machine.register(1, Reg::D(3))?), 2.5);
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn vector(&self, lane: usize, n: u8) -> Result<u128> {
        let reg = Reg::V(n);
        reg.check()?;
        let lanes = self.range(Lanes::One(lane))?;
        let mut value = 0;
        let engine = &self.core()?.engine;
        engine.visit_vectors(lanes, &mut |vectors| value = reg.get_vector(vectors))?;
        Ok(value)
    }

    /// Writes a vector register of one lane or of all.
    pub fn set_vector(&mut self, lanes: impl Into<Lanes>, n: u8, value: u128) -> Result<()> {
        let reg = Reg::V(n);
        reg.check()?;
        let lanes = self.range(lanes.into())?;
        let set = &mut |vectors: &mut VectorState| reg.set_vector(vectors, value);
        Ok(self.engine_mut()?.change_vectors(lanes, set)?)
    }

    /// Reads all registers of a lane.
    pub fn registers(&self, lane: usize) -> Result<Registers> {
        self.check_lane(lane)?;
        let engine = &self.core()?.engine;
        Ok(Registers::of(&engine.state(lane)?, &engine.vectors(lane)?))
    }

    /// Writes all registers of one lane or of all.
    pub fn set_registers(&mut self, lanes: impl Into<Lanes>, registers: &Registers) -> Result<()> {
        Reg::Pc.check_value(registers.pc)?;
        let lanes = self.range(lanes.into())?;
        let new = VectorState::from(&registers.v);
        let engine = self.engine_mut()?;
        engine.change_states(lanes.clone(), &mut |state| registers.put_into(state))?;
        Ok(engine.change_vectors(lanes, &mut |vectors| *vectors = new)?)
    }

    /// Returns the program counter of a lane.
    pub fn pc(&self, lane: usize) -> Result<u64> {
        self.register(lane, Reg::Pc)
    }

    /// Sets the program counter of one lane or of all.
    pub fn set_pc(&mut self, lanes: impl Into<Lanes>, pc: u64) -> Result<()> {
        self.set_register(lanes, Reg::Pc, pc)
    }

    // Running.

    /// Makes lanes stop before they execute the instruction at `pc`.
    pub fn add_breakpoint(&mut self, pc: u64) -> Result<()> {
        if !pc.is_multiple_of(4) {
            return Err(Error::MisalignedPc(pc));
        }
        if let Err(position) = self.breakpoints.binary_search(&pc) {
            self.breakpoints.insert(position, pc);
        }
        Ok(())
    }

    /// Removes a breakpoint; true if there was one.
    pub fn remove_breakpoint(&mut self, pc: u64) -> bool {
        let found = self.breakpoints.binary_search(&pc);
        found.is_ok_and(|position| self.breakpoints.remove(position) == pc)
    }

    /// Returns the breakpoints, in ascending order.
    pub fn breakpoints(&self) -> &[u64] {
        &self.breakpoints
    }

    /// Runs every lane until it stops or has completed `max_cycles` instructions.
    pub fn run(&mut self, max_cycles: u64) -> Result<RunReport> {
        self.run_with(max_cycles, &RunControl::new())
    }

    /// Like [`run`](Self::run), watched and cancelled from another thread, or by a
    /// [timeout](RunControl::with_timeout).
    ///
    /// ```
    /// use kvrm::{Machine, RunControl};
    /// let mut machine = Machine::builder().build()?;
    /// machine.load(0, &0x14000000u32.to_le_bytes())?; // b .
    /// let control = RunControl::new();
    /// let report = std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         while control.executed() < 1000 {
    ///             std::thread::yield_now();
    ///         }
    ///         control.cancel();
    ///     });
    ///     machine.run_with(u64::MAX, &control)
    /// })?;
    /// assert!(report.cancelled && report.cycles >= 1000);
    ///
    /// // A tenth of a second and no more.
    /// let control = RunControl::new().with_timeout(std::time::Duration::from_millis(100));
    /// let report = machine.run_with(u64::MAX, &control)?;
    /// assert!(report.cancelled && report.timed_out);
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn run_with(&mut self, max_cycles: u64, control: &RunControl) -> Result<RunReport> {
        self.run_request(max_cycles, false, control)
    }

    /// Like [`run`](Self::run), in a single launch where the engine has such a thing: a GPU then works
    /// without any help from the host until the last lane stops, instead of being launched anew about ten
    /// times a second. The results are the same.
    ///
    /// Use it only on GPUs that do nothing else. A display on the same GPU freezes until the run ends, or the
    /// operating system's watchdog kills the run; building or dropping another machine on the same GPU may have
    /// to wait for the end. If lanes with private memory need the host (for code that is reached for the first
    /// time, or more memory), they wait until all others have stopped; in shared memory, where lanes may wait
    /// for one another, the launch ends for it. Only the `cuda` engine has single launches, and not for a
    /// machine that has one device twice.
    ///
    /// ```
    /// use kvrm::{Machine, Reg};
    /// let mut machine = Machine::builder().lanes(64).build()?;
    /// machine.load(0, &[0x9100_0400u32, 0xd440_0000].map(u32::to_le_bytes).concat())?; // add x0, x0, #1; hlt
    /// assert_eq!(machine.run_mega(1_000)?.cycles, 64);
    /// assert_eq!(machine.register(63, Reg::X(0))?, 1);
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn run_mega(&mut self, max_cycles: u64) -> Result<RunReport> {
        self.run_mega_with(max_cycles, &RunControl::new())
    }

    /// Like [`run_mega`](Self::run_mega), watched and cancelled from another thread.
    pub fn run_mega_with(&mut self, max_cycles: u64, control: &RunControl) -> Result<RunReport> {
        self.run_request(max_cycles, true, control)
    }

    fn run_request(
        &mut self,
        max_cycles: u64,
        single_launch: bool,
        control: &RunControl,
    ) -> Result<RunReport> {
        self.check_process()?;
        self.settle();
        match &mut self.place {
            Place::Here(core) => {
                core.run(Limits { max_cycles, single_launch }, &self.breakpoints, control)
            }
            Place::Running(_) => Err(Error::Running),
            Place::Lost => Err(Error::Lost),
        }
    }

    /// Returns how many instructions a lane completed in the last run.
    pub fn cycles(&self, lane: usize) -> Result<u64> {
        Ok(self.status(lane)?.count - self.core()?.counts_before[lane])
    }

    /// Returns how many instructions a lane has completed since it was built or reset.
    pub fn total_cycles(&self, lane: usize) -> Result<u64> {
        Ok(self.status(lane)?.count)
    }

    /// Returns why a lane stopped; `None` before its first run, after a reset, or if the run was cancelled.
    pub fn stop(&self, lane: usize) -> Result<Option<Stop>> {
        Ok(self.status(lane)?.stop)
    }

    /// Returns where a lane stopped: its program counter at the end of the last run, even if that was rolled
    /// back.
    pub fn stopped_at(&self, lane: usize) -> Result<u64> {
        self.check_lane(lane)?;
        match &self.core()?.rolled_back {
            Some(pcs) => Ok(pcs[lane]),
            None => self.pc(lane),
        }
    }

    /// Resets lanes: registers zero, PC at the entry, private memory as in the image. Memory that lanes share
    /// stays as it is.
    pub fn reset(&mut self, lanes: impl Into<Lanes>) -> Result<()> {
        let lanes = self.range(lanes.into())?;
        let state = CpuState { pc: self.entry, ..CpuState::new() };
        let core = self.core_mut()?;
        core.rolled_back = None;
        core.engine.reset(lanes.clone())?;
        for lane in lanes {
            core.engine.set_state(lane, &state)?;
            core.counts_before[lane] = 0;
        }
        Ok(())
    }
}
