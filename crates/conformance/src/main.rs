//! Compares the instructions with emulators written elsewhere, for as long as asked.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use kvrm_conformance::oracle::Tools;
use kvrm_conformance::report;
use kvrm_conformance::suite::{Plan, SEED, Summary};

/// Compares every instruction with emulators that nobody here wrote.
///
/// Exits with 1 if anything differs that known.rs does not explain.
#[derive(Parser)]
#[command(name = "conformance")]
struct Options {
    /// Test only rows whose name contains this; several can be given.
    #[arg(long)]
    rows: Vec<String>,
    /// Cases for each row.
    #[arg(long, default_value_t = 2000)]
    cases: u64,
    /// Words to try that may be no instructions.
    #[arg(long, default_value_t = 100_000)]
    invalid: u64,
    /// Random programs to run.
    #[arg(long, default_value_t = 1000)]
    programs: u64,
    /// Where random numbers start.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Go on with new seeds for this long.
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
    fn plan(&self, seed: u64) -> Plan {
        let chosen = |name: &str| {
            self.rows.is_empty() || self.rows.iter().any(|part| name.contains(part.as_str()))
        };
        let both = self.oracle.wanted() == [true; 2];
        let all = self.rows.is_empty();
        Plan {
            rows: kvrm_a64::table().iter().filter(|row| chosen(row.name)).collect(),
            cases: self.cases,
            // Only both oracles together can say that a word is invalid.
            invalid: if both && all { self.invalid } else { 0 },
            programs: if all { self.programs } else { 0 },
            seed,
            threads: self.threads,
        }
    }

    /// Runs rounds until the time is over or something differs.
    fn run(&self) -> Result<Summary, String> {
        let tools = Tools::find(self.oracle.wanted())?;
        let start = Instant::now();
        let mut total = Summary::default();
        for round in 0.. {
            let seed = self.seed.wrapping_add(round);
            total.add(
                self.plan(seed)
                    .run(&tools, &|done, of, different| progress(seed, done, of, different))?,
            );
            let time_left = self.seconds.is_some_and(|s| start.elapsed() < Duration::from_secs(s));
            if total.different() > 0 || !(self.forever || time_left) {
                break;
            }
        }
        Ok(total)
    }
}

/// The progress line, where somebody can see it.
fn progress(seed: u64, done: usize, of: usize, different: u64) {
    if std::io::stderr().is_terminal() {
        eprint!("\rseed {seed:#x}: {done} of {of} done, {different} different ");
        if done == of {
            eprintln!();
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let summary = match options.run() {
        Ok(summary) => summary,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
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
