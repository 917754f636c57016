//! `kvrm run` with many lanes: rows in, a table out.

mod csv;
mod display;
mod identity;
mod inputs;
mod record;
mod summary;
mod table;
mod template;
mod words;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use clap::ArgGroup;
use kvrm::RunControl;
use kvrm::linux::{Limit, Limits, Many, Process, Runs};

use super::Run;
use crate::args;
use crate::failure::{Failure, Result};
use crate::progress;

use display::Display;
use identity::Identity;
use inputs::{Inputs, Source};
use record::Record;
use summary::Summary;
use table::Table;

/// How long to wait for a result before the display changes.
const TICK: Duration = Duration::from_millis(50);
/// Bytes that a lane may print, if --max-output does not say otherwise: thousands of lanes that print without end would
/// fill the host's memory.
const MOST_OUTPUT: u64 = 16 << 20;

/// Options for many lanes.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("rows").multiple(true).args(["lanes", "args_from", "stdin_from", "env_from"]))]
pub(super) struct ManyArgs {
    /// Run the program in this many lanes, each with its number for {lane} in the arguments and in --env. With rows from
    /// files, there are as many lanes as rows, and this many at a time
    #[arg(long, value_name = "N", value_parser = args::some)]
    lanes: Option<u64>,

    /// A lane for every line of this file, with further arguments from there; quotes as in a shell, - is standard input
    #[arg(long, value_name = "FILE")]
    args_from: Option<PathBuf>,

    /// A lane for every line of this file, or for every file of this folder by name, with that as its standard input
    #[arg(long, value_name = "FILE|DIR")]
    stdin_from: Option<PathBuf>,

    /// A lane for every line of this file, with the variables NAME=VALUE from there; quotes as in a shell
    #[arg(long, value_name = "FILE")]
    env_from: Option<PathBuf>,

    /// Write a line for every lane that has ended to this file, as JSON (.jsonl) or CSV (.csv)
    #[arg(long, value_name = "FILE", requires = "rows")]
    results: Option<PathBuf>,

    /// Output that a lane's line may have; of a longer one it has the SHA-256
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = args::size, requires = "results")]
    results_output: u64,

    /// Go on with the file of --results, and run only the lanes that are not there
    #[arg(long, requires = "results")]
    resume: bool,

    /// Host threads for the lanes; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024), requires = "rows")]
    threads: u16,

    /// Print the summary of all lanes as JSON
    #[arg(long, requires = "rows")]
    json: bool,
}

impl ManyArgs {
    /// True if many lanes are asked for.
    pub(super) fn are_given(&self) -> bool {
        let sources = [&self.args_from, &self.stdin_from, &self.env_from];
        self.lanes.is_some() || sources.iter().any(|source| source.is_some())
    }
}

/// What a run of many lanes consists of.
struct Plan<'r> {
    run: &'r Run,
    many: &'r ManyArgs,
    /// Arguments from this one on differ from lane to lane.
    common: usize,
}

/// Runs all lanes.
pub(super) fn run(run: &Run, out: &mut impl Write) -> Result<()> {
    let plan = Plan::new(run)?;
    let start = Instant::now();
    let mut summary = Summary::default();
    let (table, done) =
        match plan.many.results.as_deref().map(|path| plan.table(path, &mut summary)) {
            Some(opened) => opened.map(|(table, done)| (Some(table), done))?,
            None => (None, HashSet::new()),
        };
    let (before, total) = (done.len() as u64, plan.total()?);
    let resumed = (before, summary.instructions);
    let control = progress::cancellable(None);
    let runs = plan.start(done, total, &control)?;
    let watch = runs.watch();
    let display = Display::new(runs.watch(), total, before);
    let mut work = Work { plan: &plan, table, summary, display };
    let result = work.take_all(runs);
    let Work { table, summary, display, .. } = work;
    display.end();
    // What has ended is kept, whatever happened then.
    let kept = table.map_or(Ok(()), |mut table| table.flush());
    let complete = result.is_ok() && kept.is_ok() && !control.was_cancelled();
    let placement = watch.placement();
    let how = summary::Run { placement, elapsed: start.elapsed(), resumed, complete };
    match plan.many.json {
        true => summary.write_json(&how, out)?,
        false => summary.write(&how, out)?,
    }
    if !complete && let Some(path) = &plan.many.results {
        out.flush()?;
        let (lanes, path) = (crate::text::thousands(summary.lanes), path.display());
        eprintln!("kvrm: {path} has {lanes} lanes: the same command with --resume runs the others");
    }
    result.and(kept)?;
    if complete { Ok(()) } else { Err(Failure::Interrupted) }
}

/// Takes results.
struct Work<'p> {
    plan: &'p Plan<'p>,
    table: Option<Table>,
    summary: Summary,
    display: Display,
}

impl Work<'_> {
    fn take_all(&mut self, mut runs: Runs) -> Result<()> {
        loop {
            match runs.next_within(TICK) {
                Poll::Ready(None) => return Ok(()),
                // There is time for it.
                Poll::Pending => self.flush(Table::flush)?,
                Poll::Ready(Some(ran)) => {
                    let record = Record::new(ran?, self.plan.many.results_output);
                    self.summary.add(&record);
                    if let Some(table) = &mut self.table {
                        table.add(&record)?;
                    }
                }
            }
            self.flush(Table::flush_soon)?;
            self.display.update(&self.summary);
        }
    }

    fn flush(&mut self, flush: fn(&mut Table) -> Result<()>) -> Result<()> {
        self.table.as_mut().map_or(Ok(()), flush)
    }
}

impl<'r> Plan<'r> {
    fn new(run: &'r Run) -> Result<Plan<'r>> {
        let many = &run.many;
        let args = &run.command[1..];
        let differs = |arg: &OsString| template::differs(arg.as_bytes());
        let common = args.iter().position(differs).unwrap_or(args.len());
        let plan = Plan { run, many, common };
        let from_stdin = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        if plan.sources().iter().filter(|(_, path)| from_stdin(path)).count() > 1 {
            let message =
                "only one kind of rows can come from standard input: name a file for the others";
            return Err(Failure::Usage(message.into()));
        }
        Ok(plan)
    }

    /// Where rows come from.
    fn sources(&self) -> [(&'static str, &'r Option<PathBuf>); 3] {
        let many = self.many;
        [
            ("--args-from", &many.args_from),
            ("--stdin-from", &many.stdin_from),
            ("--env-from", &many.env_from),
        ]
    }

    fn has_source(&self) -> bool {
        self.sources().iter().any(|(_, path)| path.is_some())
    }

    /// How many lanes there will be, if that can be known.
    fn total(&self) -> Result<Option<u64>> {
        let sources = self.sources().into_iter();
        let mut counts = Vec::new();
        for (option, path) in sources.filter_map(|(option, path)| Some((option, path.as_ref()?))) {
            if let Some(count) = inputs::count(path)? {
                counts.push((option, path.display(), count));
            }
        }
        match &counts[..] {
            [] if self.has_source() => Ok(None),
            [] => Ok(self.many.lanes),
            [(option, path, count), others @ ..] => {
                match others.iter().find(|(_, _, other)| other != count) {
                    None => Ok(Some(*count)),
                    Some((other_option, other_path, other)) => Err(Failure::Usage(format!(
                        "{option} {path} has {count} rows, and {other_option} {other_path} has {other}: give each as many"
                    ))),
                }
            }
        }
    }

    fn table(&self, path: &Path, summary: &mut Summary) -> Result<(Table, HashSet<u64>)> {
        let identity = self.identity()?;
        match self.many.resume {
            true => Table::resume(path, &identity, |record| summary.add(record)),
            false => Ok((Table::create(path, &identity)?, HashSet::new())),
        }
    }

    /// What the table depends on.
    fn identity(&self) -> Result<Identity> {
        let (run, many) = (self.run, self.many);
        let texts = |texts: &[OsString]| texts.iter().map(|text| as_text(text)).collect::<Vec<_>>();
        let mut identity = Identity::new();
        identity.add("command", texts(&run.command));
        identity.add("--env", run.env.iter().map(|text| variable_text(text)).collect::<Vec<_>>());
        identity.add("--bind", texts(&run.bind));
        identity.add("--root", run.root.as_ref().map(|root| as_text(root.as_os_str())));
        identity.add("--cwd", as_text(&run.cwd));
        identity.add("--seed", run.seed);
        identity.add("--realtime", run.realtime);
        identity.add("--timeout", run.timeout.time().map(|time| time.as_secs_f64()));
        for (limit, value) in limits(&self.limits()) {
            identity.add(super::option_of(limit), value);
        }
        identity.add("--results-output", many.results_output);
        // With rows from files, --lanes only says how many run at a time.
        if !self.has_source() {
            identity.add("--lanes", many.lanes);
        }
        for (option, path) in self.sources() {
            if let Some(path) = path {
                identity.add(option, as_text(path.as_os_str()));
                identity.add_contents(option, path)?;
            }
        }
        identity.add_contents("the program", &run.program_on_host())?;
        Ok(identity)
    }

    fn limits(&self) -> Limits {
        let mut limits = self.run.limits.limits();
        if self.run.limits.max_output.is_none() {
            limits.output = MOST_OUTPUT;
        }
        limits
    }

    fn start(
        &self,
        done: HashSet<u64>,
        total: Option<u64>,
        control: &Arc<RunControl>,
    ) -> Result<Runs> {
        let (run, many) = (self.run, self.many);
        let args = &run.command[1..][..self.common];
        let mut process =
            run.base()?.args(args.iter().map(|arg| arg.as_bytes())).limits(self.limits());
        for variable in run.env.iter().filter(|text| !self.differs(text)) {
            process = super::add_variable(process, variable);
        }
        if let Some(point) = &run.boot.boot_until {
            self.check_boot()?;
            let snapshot = super::boot::run(process, point, RunControl::part_of(control), run)?;
            process = Process::of(&snapshot).engine(run.engine).limits(self.limits());
        }
        if let Some(directory) = &run.keep {
            process = process.keep(directory);
        }
        let mut lanes = Many::new(process).threads(many.threads.into());
        if let Some(most) = many.lanes {
            lanes = lanes.lanes(usize::try_from(most).unwrap_or(usize::MAX));
        }
        if let Some(timeout) = run.timeout.time() {
            lanes = lanes.timeout(timeout);
        }
        Ok(lanes.run_with(self.inputs(done, total)?, control.clone())?)
    }

    /// Lanes that begin at the same point are the same up to there.
    fn check_boot(&self) -> Result<()> {
        let (run, many) = (self.run, self.many);
        let own = [
            (self.common < run.command.len() - 1, "{lane} in arguments"),
            (run.env.iter().any(|text| self.differs(text)), "{lane} in --env"),
            (many.args_from.is_some(), "--args-from"),
            (many.env_from.is_some(), "--env-from"),
        ];
        match own.iter().find(|(is_own, _)| *is_own) {
            Some((_, what)) => Err(Failure::Usage(format!(
                "--boot-until is for lanes that differ in their standard input alone, and not with {what}: lanes begin where they differ anyway"
            ))),
            None => Ok(()),
        }
    }

    fn differs(&self, variable: &OsStr) -> bool {
        inputs::variable(variable).is_some_and(|(_, value)| template::differs(value))
    }

    fn inputs(&self, done: HashSet<u64>, total: Option<u64>) -> Result<Inputs> {
        let (run, many) = (self.run, self.many);
        let args_from = many.args_from.as_deref().map(|path| Source::lines("--args-from", path));
        let stdin_from =
            many.stdin_from.as_deref().map(|path| Source::files_or_lines("--stdin-from", path));
        let env_from = many.env_from.as_deref().map(|path| Source::lines("--env-from", path));
        let [args_from, stdin_from, env_from] =
            [args_from.transpose()?, stdin_from.transpose()?, env_from.transpose()?];
        let differing = run.env.iter().filter(|text| self.differs(text));
        let env = differing.filter_map(|text| inputs::variable(text));
        Ok(Inputs {
            args: run.command[1..][self.common..]
                .iter()
                .map(|arg| arg.as_bytes().to_vec())
                .collect(),
            env: env.map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
            args_from,
            stdin_from,
            env_from,
            count: if self.has_source() { None } else { many.lanes },
            left: total.map(|total| total.saturating_sub(done.len() as u64)),
            done,
            next: 0,
        })
    }
}

/// The limits as numbers.
fn limits(limits: &Limits) -> [(Limit, u64); 7] {
    [
        (Limit::Instructions, limits.instructions),
        (Limit::Memory, limits.memory),
        (Limit::FileBytes, limits.file_bytes),
        (Limit::Files, limits.files),
        (Limit::OpenFiles, limits.open_files.into()),
        (Limit::Threads, limits.threads as u64),
        (Limit::Output, limits.output),
    ]
}

/// Text that is the same only if the bytes are.
fn as_text(bytes: &OsStr) -> String {
    match bytes.to_str() {
        Some(text) => text.into(),
        None => bytes.as_bytes().escape_ascii().to_string(),
    }
}

/// A variable with its value. Of one that is passed on, which may be secret, the value's hash.
fn variable_text(text: &OsStr) -> String {
    match (inputs::variable(text), std::env::var_os(text)) {
        (None, Some(value)) => {
            format!("{} with SHA-256 {}", as_text(text), record::sha256(value.as_bytes()))
        }
        _ => as_text(text),
    }
}
