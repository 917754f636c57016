//! Compares the instructions with emulators written elsewhere, for as long as asked.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand, ValueEnum};
use kvrm::{EngineKind, MemoryModel};
use kvrm_a64::Instruction;
use kvrm_conformance::lanes;
use kvrm_conformance::oracle::Tools;
use kvrm_conformance::quota::Quota;
use kvrm_conformance::report;
use kvrm_conformance::suite::{Plan, SEED, Summary};

/// Compares every instruction with emulators that nobody here wrote.
///
/// Exits with 1 if anything differs that known.rs does not explain.
#[derive(Parser)]
#[command(name = "conformance", args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Test only rows whose name contains this; several can be given.
    #[arg(long)]
    rows: Vec<String>,
    /// Cases for each row; without this, 2000, but at most 30000 for all rows of a group.
    #[arg(long)]
    cases: Option<u64>,
    /// The most cases for all rows of a group together.
    #[arg(long)]
    group_cases: Option<u64>,
    /// Words to try that may be no instructions.
    #[arg(long, default_value_t = 100_000)]
    invalid: u64,
    /// Random programs to run.
    #[arg(long, default_value_t = 100)]
    programs: u64,
    /// Where random numbers start.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Go on for this long and no longer, with new seeds when all is done.
    #[arg(long)]
    seconds: Option<u64>,
    /// Go on with new seeds until something differs.
    #[arg(long, conflicts_with = "seconds")]
    forever: bool,
    /// The emulators to compare with.
    #[arg(long, value_enum, default_value = "both")]
    oracle: Choice,
    /// Threads, each with emulators of its own.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    Lanes(LanesOptions),
}

/// Compares an engine with the reference evaluator, on very many lanes; needs no emulators.
///
/// Exits with 1 if anything differs.
#[derive(Args)]
struct LanesOptions {
    /// The engine: cpu, cuda.
    #[arg(long, default_value = "cpu")]
    engine: EngineKind,
    /// Cases for each row.
    #[arg(long, default_value_t = 1000)]
    cases: u64,
    /// The most cases for all rows of a group together.
    #[arg(long)]
    group_cases: Option<u64>,
    /// Test only rows whose name contains this; several can be given.
    #[arg(long)]
    rows: Vec<String>,
    /// Test only one part of these rows, as in 0/16: every sixteenth from the first on. A kernel of all rows takes a GPU
    /// minutes to compile.
    #[arg(long, value_parser = part)]
    part: Option<(usize, usize)>,
    /// Where random numbers start.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Lanes share one memory, each with a part of its own, instead of having one each.
    #[arg(long)]
    shared: bool,
    /// Lanes of a machine; 131072 by default for cuda, 4096 for others.
    #[arg(long)]
    lanes: Option<usize>,
    /// Threads that make and evaluate cases; one per core by default.
    #[arg(long)]
    threads: Option<usize>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

impl LanesOptions {
    fn plan(&self) -> lanes::Plan {
        // A GPU takes long to compile a kernel and has room for many lanes; on the host, the number of mappings is
        // limited.
        let lanes = if self.engine == EngineKind::Cuda { 1 << 17 } else { 1 << 12 };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        lanes::Plan {
            engine: self.engine,
            model: if self.shared { MemoryModel::Shared } else { MemoryModel::Private },
            rows: self.part_of(chosen(&self.rows)),
            cases: Quota { row: self.cases, group: self.group_cases },
            seed: self.seed,
            lanes: self.lanes.unwrap_or(lanes),
            threads: self.threads.unwrap_or(cores),
        }
    }

    fn part_of(&self, rows: Vec<&'static Instruction>) -> Vec<&'static Instruction> {
        let (first, parts) = self.part.unwrap_or((0, 1));
        rows.into_iter().skip(first).step_by(parts).collect()
    }

    fn run(&self) -> ExitCode {
        let plan = self.plan();
        let progress = |done, of, different| {
            progress(self.seed, &format!("{done} of {of} cases"), different, done == of);
        };
        let summary = match plan.run(&progress) {
            Ok(summary) => summary,
            Err(error) => return failed(&error.to_string()),
        };
        if self.json {
            println!("{}", lanes::report::json(&plan, &summary));
        } else {
            print!("{}", lanes::report::text(&plan, &summary));
        }
        if summary.different() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Reads the number of a part and how many there are.
fn part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').map(|(part, of)| (part.parse(), of.parse()));
    match numbers {
        Some((Ok(part), Ok(of))) if part < of => Ok((part, of)),
        _ => Err("expected the number of a part and how many there are, as in 0/16".to_string()),
    }
}

/// Returns the rows whose name contains one of the parts; all rows if there are no parts.
fn chosen(parts: &[String]) -> Vec<&'static Instruction> {
    let chosen =
        |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()));
    kvrm_a64::table().iter().filter(|row| chosen(row.name)).collect()
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    Unicorn,
    Qemu,
    Both,
    None,
}

impl Choice {
    fn wanted(self) -> [bool; 2] {
        match self {
            Choice::Unicorn => [true, false],
            Choice::Qemu => [false, true],
            Choice::Both => [true, true],
            Choice::None => [false, false],
        }
    }
}

impl Options {
    fn quota(&self) -> Quota {
        match (self.cases, self.group_cases) {
            (None, None) => Quota::USUAL,
            (cases, group) => Quota { row: cases.unwrap_or(Quota::USUAL.row), group },
        }
    }

    fn plan(&self, seed: u64, until: Option<Instant>) -> Plan {
        let both = self.oracle.wanted() == [true; 2];
        let all = self.rows.is_empty();
        Plan {
            rows: chosen(&self.rows),
            cases: self.quota(),
            halves: all,
            // Only both oracles together can say that a word is invalid.
            invalid: if both && all { self.invalid } else { 0 },
            programs: if all { self.programs } else { 0 },
            seed,
            other_seed: None,
            until,
            threads: self.threads,
        }
    }

    /// Runs rounds until the time is over or something differs.
    fn run(&self) -> Result<Summary, String> {
        let tools = Tools::find(self.oracle.wanted())?;
        let until = self.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let mut total = Summary::default();
        for round in 0.. {
            let seed = self.seed.wrapping_add(round);
            total.add(self.plan(seed, until).run(&tools, &|done, of, different| {
                progress(seed, &format!("{done} of {of} done"), different, done == of);
            })?);
            let time_left = until.is_some_and(|until| Instant::now() < until);
            if total.different() > 0 || !(self.forever || time_left) {
                break;
            }
        }
        Ok(total)
    }
}

/// Prints the progress line, if somebody can see it.
fn progress(seed: u64, done: &str, different: u64, is_last: bool) {
    if std::io::stderr().is_terminal() {
        eprint!("\rseed {seed:#x}: {done}, {different} different ");
        if is_last {
            eprintln!();
        }
    }
}

fn failed(error: &str) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(2)
}

fn main() -> ExitCode {
    let options = Options::parse();
    match &options.command {
        Some(Command::Lanes(lanes)) => lanes.run(),
        None => compare_with_oracles(&options),
    }
}

fn compare_with_oracles(options: &Options) -> ExitCode {
    let summary = match options.run() {
        Ok(summary) => summary,
        Err(error) => return failed(&error),
    };
    let problems = summary.problems(options.oracle.wanted());
    if options.json {
        println!("{}", report::json(&summary, &problems));
    } else {
        summary.descriptions().for_each(|description| println!("{description}"));
        print!("{}", report::text(&summary));
        problems.iter().for_each(|problem| println!("problem: {problem}"));
        println!(
            "{} different, {} problems (seed {:#x})",
            summary.different(),
            problems.len(),
            options.seed
        );
    }
    let ok = summary.different() == 0 && problems.is_empty();
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
