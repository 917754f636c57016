//! `kvrm verify`: compares engines.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use kvrm::verify::{self, Plan, RandomPrograms, RandomVerdict, Verdict};
use kvrm::{EngineKind, Machine, MachineBuilder};

use crate::args::{CodeArgs, EngineOn, TimeoutArgs};
use crate::failure::{Failure, Result};
use crate::program::ProgramArgs;
use crate::verify_report::{Found, Report};
use crate::{args, progress, text};

/// Options of `kvrm verify`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["file", "random"])), after_help = "\
Examples:
  kvrm verify program.bin --lanes 1000 --set x0=lane
      a program with a thousand inputs, on the CPU and every GPU
  kvrm verify program.bin --engines eval,cpu --every 1 --max-cycles 10K
      compared after every instruction
  kvrm verify program.bin --engines cpu,wgpu:0,wgpu:1
      on two GPUs of one engine
  kvrm verify --random 4096 --seed 7 --engines cpu,cuda,wgpu
      programs of all instructions in a random order

The other engines are compared with the first: why lanes stop, how many instructions they complete, all registers, \
and all of memory. Engines run in pieces and are compared after each piece. After a difference, they start over \
with shorter pieces, until the instruction is found. A difference that disappears within a piece is not found: \
--every makes pieces shorter. A lane ends where it stops, also at SVC.

Lanes with --shared memory race, so engines may differ and all be right: --shared works only with a single lane.

Random programs consist of one kind of each instruction, with random registers and immediates; --seed chooses the \
kinds and everything else. A GPU compiles one kernel per seed. The cpu engine translates every program, about ten \
a second; eval is the fastest to compare a GPU with.

Exit code: 0 if the engines agree, 1 if they differ or something failed, 2 if the command line is wrong, 124 if \
the time of --timeout was over before either was known, 130 after Ctrl-C.")]
pub(crate) struct Verify {
    /// File of A64 code; - is standard input
    file: Option<PathBuf>,

    /// Engines to compare, at least two: cpu, cuda, wgpu, eval; wgpu:1 is wgpu on its GPU 1 (see `kvrm
    /// devices`). Default: cpu and the engines of this computer's GPUs, or eval if it has none
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = args::engine_on)]
    engines: Vec<EngineOn>,

    #[command(flatten)]
    program: ProgramArgs,

    /// Compare after every N instructions. Default: after 1,000, then each time after twice as many as before
    #[arg(long, value_name = "N", value_parser = args::some, conflicts_with = "random")]
    every: Option<u64>,

    /// Run N random programs instead of a file, 1,024 at a time or as many as --lanes says
    #[arg(long, value_name = "N", value_parser = args::some, conflicts_with_all = FOR_FILES)]
    random: Option<u64>,

    /// Seed of the random programs
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "file")]
    seed: u64,

    /// Make random programs of N instructions of the table (see `kvrm isa`). Default: all. Fewer compile faster
    #[arg(long, value_name = "N", value_parser = rows, conflicts_with = "file")]
    rows: Option<usize>,

    #[command(flatten)]
    code: CodeArgs,

    #[command(flatten)]
    timeout: TimeoutArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options that do not apply to random programs.
const FOR_FILES: [&str; 8] =
    ["base", "entry", "memory", "private", "shared", "set", "set_lanes", "max_cycles"];

/// Random programs that a machine runs at a time.
const AT_A_TIME: usize = 1024;

impl Verify {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let engines = match self.engines.is_empty() {
            true => verify::engines().into_iter().map(anywhere).collect(),
            false => self.engines.clone(),
        };
        if engines.len() < 2 {
            return Err(kvrm::Error::NothingToCompare.into());
        }
        if let Some(twice) = (1..engines.len()).find(|n| engines[..*n].contains(&engines[*n])) {
            let message = format!("--engines names {} twice", engines[twice]);
            return Err(Failure::Usage(message));
        }
        let report = match (&self.file, self.random) {
            (Some(file), None) => self.file(file, &engines)?,
            (_, programs) => self.random(programs.unwrap_or(0), &engines)?,
        };
        match self.json {
            true => report.write_json(out)?,
            false => report.write_human(out)?,
        }
        match report.found {
            Found::Agreement { .. } => Ok(()),
            Found::Difference { .. } => Err(Failure::Different),
            Found::Nothing { timed_out } => {
                let advice = "no difference was found until then; allow more time, or fewer instructions or programs";
                Err(Failure::ended_early(timed_out, advice))
            }
        }
    }

    fn file(&self, file: &Path, engines: &[EngineOn]) -> Result<Report> {
        let program = self.program.read(file)?;
        let mut machines = self.build(engines, |builder| program.shape(builder))?;
        machines.iter_mut().try_for_each(|machine| program.load(machine))?;
        // What can be wrong with inputs is found here; setting them again cannot fail but with the engine.
        machines.iter_mut().try_for_each(|machine| program.set_registers(machine))?;
        let inputs = |machine: &mut Machine| {
            program.set_registers(machine).map_err(|failure| match failure {
                Failure::Host(message) => kvrm::EngineError::Device(message).into(),
                _ => unreachable!("the same inputs were set before"),
            })
        };
        let plan = Plan { max_cycles: self.program.max_cycles, every: self.every };
        let deadline = self.timeout.deadline();
        let (verdict, timed_out) =
            progress::work(progress::QUIET, deadline, String::new, |control| {
                let verdict = verify::verify(&mut machines, &plan, &inputs, control);
                (verdict, control.timed_out())
            });
        let found = match verdict? {
            Verdict::Agree(agreement) => Found::Agreement { agreement, programs: None },
            Verdict::Differ(difference) => Found::Difference { difference, program: None },
            Verdict::Cancelled => Found::Nothing { timed_out },
        };
        Ok(Report { engines: names(engines), lanes: machines[0].lanes(), seed: None, found })
    }

    fn random(&self, count: u64, engines: &[EngineOn]) -> Result<Report> {
        let at_a_time = self.program.lanes.unwrap_or(AT_A_TIME).min(count.max(1) as usize);
        let programs = RandomPrograms::new(self.seed, count, 1 + at_a_time, self.rows);
        let mut machines =
            self.build(engines, |builder| programs.shape(builder).translate_after(0))?;
        let done = AtomicU64::new(0);
        let ahead = || {
            let done = text::thousands(done.load(Ordering::Relaxed));
            format!("{done} of {} programs, ", text::thousands(count))
        };
        let deadline = self.timeout.deadline();
        let (verdict, timed_out) = progress::work(progress::QUIET, deadline, ahead, |control| {
            let mut progress = |programs| done.store(programs, Ordering::Relaxed);
            (programs.verify(&mut machines, control, &mut progress), control.timed_out())
        });
        // A difference is told by the machine's lanes, of which the first has no program.
        let (lanes, found) = match verdict? {
            RandomVerdict::Agree { programs, agreement } => {
                (at_a_time, Found::Agreement { agreement, programs: Some(programs) })
            }
            RandomVerdict::Differ { program, difference } => {
                (1 + at_a_time, Found::Difference { difference, program: Some(program) })
            }
            RandomVerdict::Cancelled { .. } => (at_a_time, Found::Nothing { timed_out }),
        };
        Ok(Report { engines: names(engines), lanes, seed: Some(self.seed), found })
    }

    fn build(
        &self,
        engines: &[EngineOn],
        shape: impl Fn(MachineBuilder) -> MachineBuilder,
    ) -> Result<Vec<Machine>> {
        let machine = |engine: &EngineOn| {
            progress::build(shape(engine.builder()).code_memory(self.code.code_memory))
        };
        engines.iter().map(machine).collect()
    }
}

/// Parses a number of rows of the table.
fn rows(text: &str) -> Result<usize, String> {
    let most = kvrm::a64::table().len();
    match text.parse() {
        Ok(rows) if (1..=most).contains(&rows) => Ok(rows),
        _ => Err(format!("the table has {most} rows: write a number from 1 to {most}")),
    }
}

/// Returns an engine on its default device.
fn anywhere(engine: EngineKind) -> EngineOn {
    EngineOn { engine, device: None }
}

fn names(engines: &[EngineOn]) -> Vec<String> {
    engines.iter().map(EngineOn::to_string).collect()
}
