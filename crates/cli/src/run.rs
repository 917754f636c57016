//! `kvrm run`: runs a Linux program, once or in many lanes.

mod boot;
mod many;
mod report;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use kvrm::EngineKind;
use kvrm::linux::{Ending, HostSignals, Limit, Limits, Outcome, Process, Signal, Snapshot, Status};

use crate::args::{self, TimeoutArgs};
use crate::failure::{Failure, Result};
use crate::progress;
use boot::BootArgs;
use many::ManyArgs;

/// Options of `kvrm run`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm run ./program argument
      a static program of this computer
  kvrm run --root debian-arm64 bash -c 'echo $((6 * 7))'
      programs and libraries from a folder with an ARM64 Linux
  kvrm run --bind .:/work --cwd /work ./program input.txt
      the current folder as /work; what the program changes there stays in memory
  kvrm run --bind out:/out:rw ./program /out/result
      changes in /out are changes in the folder out
  kvrm run --keep new ./program
      all files that the program has written, in the folder new
  kvrm run --strace --report ./program
      every system call, and what the run took
  kvrm run --lanes 65536 --results out.csv ./program --seed {lane}
      65,536 times, each with another argument; a table of what every lane did
  kvrm run --stdin-from inputs --results out.jsonl --timeout 10s --max-instructions 1G ./program
      once for every file in the folder inputs; add --resume to go on after Ctrl-C
  kvrm run --boot-until first-read --save start.snap --root debian-arm64 python3 -c 'print(input()[::-1])'
      starts Python, and keeps it as it is when it reads standard input for the first time
  kvrm run --stdin-from lines.txt start.snap
      goes on from there with each of these lines, without starting Python again

The program sees an in-memory file system, its own file and what it is given, and nothing else: no other files, no network, \
no other processes, and of the environment only what --env sets. Time, random numbers, process numbers and the order of \
threads are virtual: the same command gives the same output and the same number of instructions each time.

With --lanes or rows from files (--args-from, --stdin-from, --env-from), the program runs once in every lane, and no lane \
can do anything to another. Limits, and the time of --timeout, are those of each lane, and --max-output is 16M. Standard \
input is empty without --stdin-from. {lane} stands for the lane's number in arguments and --env, and {{lane}} for {lane}; \
other braces stay as they are. --keep puts the files of a lane into a folder with its number.

--boot-until runs the program on the cpu to a point: the first instruction of a FUNCTION of the program or of a library, the instruction at an ADDRESS, or first-read, just before it first reads its standard input or asks how much there is; none of these can be after the first read. What it prints up to there is printed when it goes on. A file of --save goes on wherever its format is known, on any engine. Going on does what one run would have done, to the number of instructions; limits are not kept, and count from the beginning. Standard input may be any; arguments and --env may be others of the same lengths, if the program has not used them before; what belongs to its beginning (--cwd, --seed, --realtime) cannot be given again. --root and --bind say where folders are now that were elsewhere.

Exit code with lanes: 0 if all have ended, however they ended; 1 if the host failed or a row is wrong, 2 if the command line \
is wrong, 130 after Ctrl-C.

Exit code: the program's own. If a signal ends the program, the same signal ends kvrm, which shells report as 128 and the \
signal's number. 1 if the host failed, 2 if the command line is wrong, 124 if the time of --timeout was over, 125 if a limit \
ended the run or every thread waited for ever, 126 if the program cannot be executed, 127 if it is not found.")]
pub(crate) struct Run {
    /// The program and its arguments. A name without / is looked for in the folders for programs of --root. Or a file of
    /// --save, to go on from there
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,

    /// Folder that becomes the program's /. What it changes there stays in memory
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Show the program a file or folder (repeatable): HOST is at GUEST, or at the same path. What the program changes
    /// there stays in memory, unless :rw follows
    #[arg(long, value_name = "HOST[:GUEST][:rw]", value_parser = clap::value_parser!(OsString))]
    bind: Vec<OsString>,

    /// Put all files that the program has written outside of :rw folders into this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,

    /// Set a variable of the program's environment, or pass on this one's (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,

    /// Folder that the program begins in
    #[arg(long, value_name = "DIR", default_value = "/")]
    cwd: OsString,

    /// Engine to run on. On a GPU (cuda, wgpu), a program that makes a second thread or process goes on on the cpu. auto is
    /// cpu; many lanes begin there, and a GPU runs some of them if they are done sooner then
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine_parser())]
    engine: EngineKind,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Show the program the real time. Then runs differ
    #[arg(long)]
    realtime: bool,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    timeout: TimeoutArgs,

    #[command(flatten)]
    boot: BootArgs,

    #[command(flatten)]
    many: ManyArgs,

    /// Print every system call to standard error
    #[arg(long, conflicts_with = "rows")]
    strace: bool,

    /// Print how the run ended and what it took to standard error
    #[arg(long, conflicts_with = "rows")]
    report: bool,

    /// Write the same as JSON to a file
    #[arg(long, value_name = "FILE", conflicts_with = "rows")]
    report_json: Option<PathBuf>,
}

/// What a program may use.
#[derive(clap::Args)]
struct LimitArgs {
    /// Limit of instructions, over all threads (K, M, G and T are powers of 1000)
    #[arg(long, value_name = "N", value_parser = args::some)]
    max_instructions: Option<u64>,

    /// Limit of memory
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = args::size)]
    max_memory: u64,

    /// Limit of what files in memory may hold
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = args::size)]
    max_file_bytes: u64,

    /// Limit of files in memory
    #[arg(long, value_name = "N", default_value = "1M", value_parser = args::some)]
    max_files: u64,

    /// Limit of open files of a process
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(3..=1 << 20))]
    max_open_files: u32,

    /// Limit of processes and threads at a time
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    max_processes: u32,

    /// Limit of output: standard output and standard error together
    #[arg(long, value_name = "SIZE", value_parser = args::size)]
    max_output: Option<u64>,
}

impl LimitArgs {
    fn limits(&self) -> Limits {
        Limits {
            instructions: self.max_instructions.unwrap_or(u64::MAX),
            memory: self.max_memory,
            file_bytes: self.max_file_bytes,
            files: self.max_files,
            open_files: self.max_open_files,
            threads: self.max_processes as usize,
            output: self.max_output.unwrap_or(u64::MAX),
        }
    }
}

fn engine_parser() -> impl TypedValueParser<Value = EngineKind> {
    PossibleValuesParser::new(["auto", "cpu", "cuda", "wgpu", "eval"])
        .map(|name| name.parse().expect("a name of an engine"))
}

impl Run {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        if self.boot.save.is_some() {
            return boot::save(self);
        }
        if self.many.are_given() {
            return many::run(self, out);
        }
        if self.boot.boot_until.is_some() {
            let message = "--boot-until is of no use alone: add --save FILE, or run many lanes";
            return Err(Failure::Usage(message.into()));
        }
        out.flush()?;
        let control = progress::for_activities();
        if let Some(deadline) = self.timeout.deadline() {
            control.cancel_at(deadline);
        }
        let outcome = self.process()?.run_with(&control)?;
        if let Some(path) = &self.report_json {
            report::write_json(path, &outcome)?;
        }
        if self.report {
            report::print(&outcome);
        }
        self.end(&outcome)
    }

    fn process(&self) -> Result<Process> {
        let mut process = self.alone()?.inherit(signals());
        if let Some(directory) = &self.keep {
            process = process.keep(directory);
        }
        Ok(process)
    }

    /// A program with everything that one run has, but for the host's streams.
    fn alone(&self) -> Result<Process> {
        let mut process = self
            .base()?
            .args(self.command[1..].iter().map(|arg| arg.as_bytes()))
            .limits(self.limits.limits());
        for variable in &self.env {
            process = add_variable(process, variable);
        }
        if self.strace {
            process = process.strace(|line| eprintln!("{line}"));
        }
        Ok(process)
    }

    /// What is the same for one run and for all lanes: nothing of what lanes can have of their own.
    fn base(&self) -> Result<Process> {
        let program = &self.command[0];
        let process = match Snapshot::is_one(program) {
            true => Process::of(&Snapshot::open(program)?),
            false => Process::new(program),
        };
        let mut process = process
            .engine(self.engine)
            .directory(self.cwd.as_bytes())
            .seed(self.seed)
            .realtime(self.realtime);
        if let Some(root) = &self.root {
            process = process.root(root);
        }
        for bind in &self.bind {
            process = add_bind(process, bind)?;
        }
        Ok(process)
    }

    /// The program's file, if its path says where that is.
    fn program_on_host(&self) -> PathBuf {
        let program = Path::new(&self.command[0]);
        let in_root = |root: &PathBuf| root.join(program.strip_prefix("/").unwrap_or(program));
        let in_root = self.root.as_ref().map(in_root).filter(|path| path.is_file());
        in_root.unwrap_or_else(|| program.into())
    }

    /// Ends as the program did.
    fn end(&self, outcome: &Outcome) -> Result<()> {
        let name = self.command[0].to_string_lossy();
        if let Some(crash) = outcome.crash.as_ref().filter(|crash| crash.signal.dumps()) {
            eprintln!("kvrm: {name}: {crash}");
        }
        match (outcome.ending, outcome.status) {
            (_, Some(Status::Exited(0))) => Ok(()),
            (_, Some(Status::Exited(code))) => Err(Failure::Program(code)),
            (_, Some(Status::Killed(signal))) => Err(Failure::Signal(signal.number())),
            (Ending::Limited(limit), None) => {
                let option = option_of(limit);
                Err(Failure::Limited(format!(
                    "{name}: the limit of {limit} was reached: {option} sets it"
                )))
            }
            (Ending::Deadlock, None) => Err(Failure::Limited(format!(
                "{name}: every thread waits for something that nobody will do"
            ))),
            (Ending::Cancelled | Ending::Finished, None) => {
                Err(Failure::ended_early(true, "give the program more, or less to do"))
            }
        }
    }
}

fn option_of(limit: Limit) -> &'static str {
    match limit {
        Limit::Instructions => "--max-instructions",
        Limit::Memory => "--max-memory",
        Limit::FileBytes => "--max-file-bytes",
        Limit::Files => "--max-files",
        Limit::OpenFiles => "--max-open-files",
        Limit::Threads => "--max-processes",
        Limit::Output => "--max-output",
    }
}

/// Ends as the program did, without a core file. Returns if that signal does not end processes.
pub(crate) fn die_by(number: u8) {
    use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    // A core file of kvrm would be of no use, but do no harm.
    let _ = setrlimit(Resource::Core, none);
    if let Some(signal) = Signal::from_named_raw(number.into()) {
        // The first one may only reach Rust's handler for overflown stacks, which makes way for the second.
        for _ in 0..2 {
            let _ = kill_process(getpid(), signal);
        }
    }
}

/// Ctrl-C is the program's.
fn signals() -> HostSignals {
    static SIGNALS: Mutex<Option<HostSignals>> = Mutex::new(None);
    let signals = HostSignals::default();
    *SIGNALS.lock().unwrap_or_else(PoisonError::into_inner) = Some(signals.clone());
    // Where no handler can be had, Ctrl-C ends kvrm, which will do.
    let _ = ctrlc::set_handler(|| {
        if let Some(signals) = &*SIGNALS.lock().unwrap_or_else(PoisonError::into_inner) {
            signals.raise(Signal::INT);
        }
    });
    signals
}

fn add_bind(process: Process, text: &OsStr) -> Result<Process> {
    let bytes = text.as_bytes();
    let (bytes, writable) = match bytes.strip_suffix(b":rw") {
        Some(rest) => (rest, true),
        None => (bytes.strip_suffix(b":ro").unwrap_or(bytes), false),
    };
    let mut parts = bytes.splitn(2, |byte| *byte == b':');
    let host = PathBuf::from(OsStr::from_bytes(parts.next().unwrap_or_default()));
    let host = std::fs::canonicalize(&host)
        .map_err(|error| Failure::file("show the program", &host, &error))?;
    let guest = match parts.next() {
        None => host.clone().into_os_string().into_vec(),
        Some(guest) if guest.starts_with(b"/") => guest.to_vec(),
        Some(_) => {
            let text = text.to_string_lossy();
            return Err(Failure::Usage(format!(
                "--bind {text}: the path in the guest must begin with /"
            )));
        }
    };
    Ok(match writable {
        true => process.bind_writable(host, guest),
        false => process.bind(host, guest),
    })
}

/// `NAME=VALUE`, or the host's value of `NAME`, if it has one.
fn add_variable(process: Process, text: &OsStr) -> Process {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => process.env(&bytes[..at], &bytes[at + 1..]),
        None => match std::env::var_os(text) {
            Some(value) => process.env(bytes, value.as_bytes()),
            None => process,
        },
    }
}
