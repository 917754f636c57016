//! `kvrm bench`: measures the speed of an engine.
//!
//! For each guest, runs with known results come first. Then the number of iterations is doubled until a run
//! takes long enough to be measured, which also warms up caches. The best of three such runs counts.

use std::io::Write;
use std::time::{Duration, Instant};

use kvrm::{EngineKind, Lanes, Machine, MachineBuilder, MemoryModel, Reg, Stop};
use serde::Serialize;

use crate::args::{self, EngineArgs, LaunchArgs, ModelArgs, TimeoutArgs};
use crate::failure::{Failure, Result};
use crate::guests::{self, GUESTS, Guest, RESET, SHARED_DISTANCE};
use crate::start::{self, Start};
use crate::timing::Code;
use crate::{progress, text};

/// Options of `kvrm bench`.
#[derive(Clone, clap::Args)]
#[command(after_help = "\
Examples:
  kvrm bench
  kvrm bench --only sha256 --lanes 64
  kvrm bench --engine eval --seconds 0.1 --json

On the CPU, each program is run once more on a new machine that counts what is interpreted and what is translated. \
On a GPU, each is also measured without translated code, unless --no-translate leaves it out anyway. \
Results that are in guests/expected.txt are checked; a wrong one is an error. guests/README.md describes the \
programs; those built for floating point and vectors run only if named. `reset` measures how often per second one \
lane on one thread can be reset and run for 1,000 instructions. `start`, which must be named, starts a process and \
runs one instruction on each lane: with a small program and with one of 200 different instructions, first without \
compiled kernels on disk (cold), then with them (warm). --timeout limits the time of all measurements together.

Exit code: 0 if everything was measured, 1 if something failed (such as a wrong result), 2 if the command line is wrong, \
124 if the time of --timeout ended first, 130 after Ctrl-C.")]
pub(crate) struct Bench {
    /// Run only this program (repeatable)
    #[arg(long, value_name = "NAME", value_parser = names())]
    only: Vec<String>,

    /// Number of lanes. Default: one per thread
    #[arg(long, value_name = "N", value_parser = args::lanes)]
    lanes: Option<usize>,

    /// About how long a measured run should take
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = duration)]
    seconds: f64,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    launch: LaunchArgs,

    #[command(flatten)]
    model: ModelArgs,

    #[command(flatten)]
    timeout: TimeoutArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn all() -> impl Iterator<Item = &'static Guest> {
    GUESTS.iter().chain([&RESET])
}

fn names() -> clap::builder::PossibleValuesParser {
    all().map(|guest| guest.name).chain([start::NAME]).collect::<Vec<_>>().into()
}

fn duration(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a time: write seconds from 0.001 to 60".to_string()),
    }
}

/// Speed of a guest.
#[derive(Serialize)]
struct Speed {
    guest: &'static str,
    lanes: usize,
    iterations: u64,
    instructions: u64,
    seconds: f64,
    instructions_per_second: f64,
    instructions_per_second_per_lane: f64,
    /// What a run of as many instructions on a new machine takes, on engines that translate.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
    /// Instructions per second without translated code, on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    interpreted_per_second: Option<f64>,
}

/// Speed of resets.
#[derive(Serialize)]
struct Resets {
    executions: u64,
    seconds: f64,
    executions_per_second: f64,
}

#[derive(Serialize)]
struct Document {
    engine: &'static str,
    memory: &'static str,
    guests: Vec<Speed>,
    reset: Option<Resets>,
    starts: Vec<Start>,
}

/// Limit of instructions per lane, which no guest should reach.
const LIMIT: u64 = 1 << 40;
/// Iterations of the first run.
const FIRST: u64 = 1;

impl Bench {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let mut wanted = all().filter(|guest| self.wanted(guest));
        if let Some(guest) = wanted.find(|guest| !self.possible(guest)) {
            let why = match self.model.model() {
                MemoryModel::ReadOnly => "writes memory",
                _ => "keeps its data where every lane would write it",
            };
            let message = format!("{} {why}: leave out --shared and --model", guest.name);
            return Err(Failure::Usage(message));
        }
        // `auto` goes by the number of lanes, of which checks and resets have fewer: all go where the
        // measured lanes do.
        let machine = self.machine(&RESET, self.lanes(), self.model.model())?;
        let (name, engine) = (machine.engine(), self.engine.as_for(&machine)?);
        drop(machine);
        let deadline = self.timeout.deadline();
        Bench { engine, ..self.clone() }.run_all(name, deadline, out)
    }

    fn run_all(
        &self,
        engine: &'static str,
        deadline: Option<Instant>,
        out: &mut impl Write,
    ) -> Result<()> {
        let mut document = Document {
            engine,
            memory: self.model.model().name(),
            guests: Vec::new(),
            reset: None,
            starts: Vec::new(),
        };
        self.header(out, &document)?;
        for guest in GUESTS.iter().filter(|guest| self.wanted(guest)) {
            self.check(guest, deadline)?;
            let speed = self.measure(guest, deadline)?;
            self.row(out, &speed)?;
            document.guests.push(speed);
        }
        if self.wanted(&RESET) {
            let resets = self.resets(deadline)?;
            self.reset_row(out, &resets)?;
            document.reset = Some(resets);
        }
        if self.only.iter().any(|name| name == start::NAME) {
            document.starts =
                start::measure(&self.engine, self.lanes(), self.model.model(), deadline)?;
            self.start_rows(out, &document.starts)?;
        }
        match self.json {
            true => crate::write_json(out, &document),
            false => Ok(()),
        }
    }

    /// True if the guest was named, or if none was, it has only integer instructions and can run in the chosen
    /// memory.
    fn wanted(&self, guest: &Guest) -> bool {
        match self.only.is_empty() {
            true => !guest.vectors && self.possible(guest),
            false => self.only.iter().any(|name| name == guest.name),
        }
    }

    fn possible(&self, guest: &Guest) -> bool {
        match self.model.model() {
            MemoryModel::Private => true,
            MemoryModel::ReadOnly => guest.shareable && !guest.stores,
            MemoryModel::Shared | MemoryModel::DoubleBuffered => guest.shareable,
        }
    }

    fn lanes(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.lanes.unwrap_or_else(|| match self.engine.threads {
            0 => cores(),
            threads => threads.into(),
        })
    }

    fn machine(&self, guest: &Guest, lanes: usize, model: MemoryModel) -> Result<Machine> {
        self.build(self.engine.builder(), guest, lanes, model)
    }

    fn build(
        &self,
        builder: MachineBuilder,
        guest: &Guest,
        lanes: usize,
        model: MemoryModel,
    ) -> Result<Machine> {
        let builder = builder.lanes(lanes).memory(memory_size(lanes, model));
        let mut machine = progress::build(builder.model(model))?;
        machine.load(guests::BASE, guest.code)?;
        machine.set_entry(guests::BASE)?;
        Ok(machine)
    }

    /// Runs the cases with known results, one lane each.
    fn check(&self, guest: &Guest, deadline: Option<Instant>) -> Result<()> {
        let cases = guest.cases()?;
        let mut machine = self.machine(guest, cases.len(), MemoryModel::Private)?;
        for (lane, case) in cases.iter().enumerate() {
            machine.set_register(lane, Reg::X(0), case.input)?;
            machine.set_register(lane, Reg::X(1), case.iterations)?;
        }
        let results = self.run_guest(&mut machine, guest, deadline)?.results;
        for (result, case) in results.into_iter().zip(cases) {
            if result != case.result {
                return Err(wrong(guest, case.input, result, case.result));
            }
        }
        Ok(())
    }

    /// Finds a number of iterations that takes long enough, and measures its best time.
    fn measure(&self, guest: &'static Guest, deadline: Option<Instant>) -> Result<Speed> {
        let mut machine = self.machine(guest, self.lanes(), self.model.model())?;
        let mut iterations = FIRST;
        let mut start = |iterations| self.start(&mut machine, guest, iterations, deadline);
        // Once before it counts: the first run translates, or compiles a kernel.
        start(iterations)?;
        let mut first = start(iterations)?;
        while first.seconds < self.seconds / 2.0 && iterations < LIMIT {
            // A short run says little of a long one: never more than eight times as many at once.
            let factor = (self.seconds / first.seconds.max(1e-9)).clamp(2.0, 8.0);
            iterations = (iterations as f64 * factor) as u64;
            first = start(iterations)?;
        }
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let again = start(iterations)?;
            if again.results != first.results {
                let message = format!("{}: the same run gave two different results", guest.name);
                return Err(Failure::Host(message));
            }
            best = best.min(again.seconds);
        }
        let ips = first.instructions as f64 / best.max(1e-9);
        Ok(Speed {
            guest: guest.name,
            lanes: machine.lanes(),
            iterations,
            instructions: first.instructions,
            seconds: best,
            instructions_per_second: ips,
            instructions_per_second_per_lane: ips / machine.lanes() as f64,
            code: self.code(guest, iterations, deadline)?,
            interpreted_per_second: self.interpreted(guest, iterations, &first, deadline)?,
        })
    }

    /// Measures the guest without translated code on a GPU: instructions per second. It must come to the same results.
    fn interpreted(
        &self,
        guest: &Guest,
        iterations: u64,
        translated: &Outcome,
        deadline: Option<Instant>,
    ) -> Result<Option<f64>> {
        let has_tiers = matches!(self.engine.engine, EngineKind::Cuda | EngineKind::Wgpu);
        if !has_tiers || self.engine.no_translate {
            return Ok(None);
        }
        let interpreting = self.engine.builder().translate_after(u32::MAX);
        let mut machine = self.build(interpreting, guest, self.lanes(), self.model.model())?;
        self.start(&mut machine, guest, FIRST, deadline)?;
        let mut best = f64::INFINITY;
        for _ in 0..2 {
            let run = self.start(&mut machine, guest, iterations, deadline)?;
            if run.results != translated.results {
                let what = "interpreted and translated code gave different results";
                return Err(Failure::Host(format!("{}: {what}", guest.name)));
            }
            best = best.min(run.seconds);
        }
        Ok(Some(translated.instructions as f64 / best.max(1e-9)))
    }

    /// Runs a guest once more on a machine that counts, if that translates: counting costs time.
    fn code(
        &self,
        guest: &Guest,
        iterations: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<Code>> {
        if self.engine.engine != EngineKind::Cpu {
            return Ok(None);
        }
        let counting = self.engine.builder().profile(true);
        let mut machine = self.build(counting, guest, self.lanes(), self.model.model())?;
        let run = self.start(&mut machine, guest, iterations, deadline)?;
        Ok(Code::of(&machine, run.instructions))
    }

    /// Resets and runs one lane repeatedly for the time of a measurement.
    fn resets(&self, deadline: Option<Instant>) -> Result<Resets> {
        let builder = self.engine.builder().threads(1).memory(guests::MEMORY);
        let mut machine = progress::build(builder)?;
        machine.load(guests::BASE, RESET.code)?;
        machine.set_entry(guests::BASE)?;
        let cases = RESET.cases()?;
        let time = Duration::from_secs_f64(self.seconds);
        let (start, mut executions) = (Instant::now(), 0);
        while start.elapsed() < time {
            if progress::interrupted() {
                return Err(Failure::Interrupted);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(ended_early(true));
            }
            for case in &cases {
                machine.reset(0)?;
                machine.set_register(0, Reg::X(0), case.input)?;
                machine.run(LIMIT)?;
                let result = machine.register(0, Reg::X(0))?;
                if result != case.result {
                    return Err(wrong(&RESET, case.input, result, case.result));
                }
                executions += 1;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        Ok(Resets { executions, seconds, executions_per_second: executions as f64 / seconds })
    }

    /// Resets the lanes and runs the guest; each lane's input is its number.
    fn start(
        &self,
        machine: &mut Machine,
        guest: &Guest,
        iterations: u64,
        deadline: Option<Instant>,
    ) -> Result<Outcome> {
        machine.reset(Lanes::All)?;
        if machine.memory_model().is_one_for_all() {
            machine.set_register(Lanes::All, Reg::X(2), SHARED_DISTANCE)?;
        }
        for lane in 0..machine.lanes() {
            machine.set_register(lane, Reg::X(0), lane as u64)?;
            machine.set_register(lane, Reg::X(1), iterations)?;
        }
        self.run_guest(machine, guest, deadline)
    }

    fn run_guest(
        &self,
        machine: &mut Machine,
        guest: &Guest,
        deadline: Option<Instant>,
    ) -> Result<Outcome> {
        let report = progress::run(machine, LIMIT, self.launch.mega, progress::QUIET, deadline)?;
        if report.cancelled {
            return Err(ended_early(report.timed_out));
        }
        let result = |lane| match machine.stop(lane)? {
            Some(Stop::Halt { .. }) => Ok(machine.register(lane, Reg::X(0))?),
            stop => Err(Failure::Host(format!(
                "{}: lane {lane} ended with {} instead of HALT",
                guest.name,
                stop.map_or("nothing".to_string(), |stop| stop.to_string())
            ))),
        };
        Ok(Outcome {
            instructions: report.cycles,
            seconds: report.elapsed.as_secs_f64(),
            results: (0..machine.lanes()).map(result).collect::<Result<_>>()?,
        })
    }

    // Printing; with --json all of it comes at the end.

    fn header(&self, out: &mut impl Write, document: &Document) -> Result<()> {
        if !self.json {
            let (engine, memory) = (document.engine, document.memory);
            writeln!(out, "engine {engine}, {memory} memory")?;
            if GUESTS.iter().any(|guest| self.wanted(guest)) {
                writeln!(
                    out,
                    "{:12} {:>9} {:>18} {:>9} {:>12} {:>12}",
                    "guest", "lanes", "instructions", "seconds", "G/s", "G/s per lane"
                )?;
            }
            out.flush()?;
        }
        Ok(())
    }

    fn row(&self, out: &mut impl Write, speed: &Speed) -> Result<()> {
        if !self.json {
            writeln!(
                out,
                "{:12} {:>9} {:>18} {:>9.3} {:>12.4} {:>12.4}",
                speed.guest,
                text::thousands(speed.lanes as u64),
                text::thousands(speed.instructions),
                speed.seconds,
                speed.instructions_per_second / 1e9,
                speed.instructions_per_second_per_lane / 1e9,
            )?;
            if let Some(code) = &speed.code {
                writeln!(out, "  {}", code.text())?;
            }
            if let Some(interpreted) = speed.interpreted_per_second {
                let gain = speed.instructions_per_second / interpreted;
                let rate = text::short(interpreted);
                writeln!(
                    out,
                    "  interpreted: {rate}/s; with translated code {gain:.2} times as fast"
                )?;
            }
            out.flush()?;
        }
        Ok(())
    }

    fn reset_row(&self, out: &mut impl Write, resets: &Resets) -> Result<()> {
        if !self.json {
            let rate = text::thousands(resets.executions_per_second as u64);
            writeln!(out, "reset: {rate} executions of 1,000 instructions per second")?;
        }
        Ok(())
    }

    fn start_rows(&self, out: &mut impl Write, starts: &[Start]) -> Result<()> {
        if !self.json {
            starts.iter().try_for_each(|start| writeln!(out, "{start}"))?;
        }
        Ok(())
    }
}

/// The result of a guest's run.
struct Outcome {
    instructions: u64,
    seconds: f64,
    /// x0 of each lane.
    results: Vec<u64>,
}

/// Makes the failure for measurements that ended early.
pub(crate) fn ended_early(timed_out: bool) -> Failure {
    let advice = "not all was measured; allow more time, or choose programs with --only";
    Failure::ended_early(timed_out, advice)
}

/// Returns the size of a guest's memory; shared memory has an extra word for each lane at the end.
fn memory_size(lanes: usize, model: MemoryModel) -> u64 {
    let words = (lanes as u64 * SHARED_DISTANCE).next_multiple_of(kvrm::PAGE);
    guests::MEMORY + if model.is_one_for_all() { words } else { 0 }
}

fn wrong(guest: &Guest, input: u64, result: u64, right: u64) -> Failure {
    Failure::Host(format!(
        "{} with input {input} gave {result:016x} instead of {right:016x}: please report this as a bug",
        guest.name
    ))
}
