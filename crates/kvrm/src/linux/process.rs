//! Setting up a program.

use std::path::{Path, PathBuf};

use kvrm_engine::RunControl;
use kvrm_linux::vfs::{Bind, GivenFile};
use kvrm_linux::{
    Console, Decision, Ending, Hook, HostInput, HostSignals, Input, Kernel, Limits, Request, Sink,
    Strace, Stream,
};

use super::outcome::{Outcome, WrittenFile};
use super::plan::Plan;
use crate::{EngineKind, Error, Result};

/// A program that is about to run.
pub struct Process {
    pub(super) plan: Plan,
    pub(super) input: Input,
    outputs: [bool; 2],
    signals: HostSignals,
    pub(super) strace: Option<Strace>,
    pub(super) hook: Option<Hook>,
    pub(super) keep: Option<PathBuf>,
}

impl Process {
    /// A program by its path on the host, or, with a [root](Process::root), by its path or name there.
    pub fn new(program: impl AsRef<Path>) -> Process {
        Process {
            plan: Plan::new(program.as_ref()),
            input: Input::Bytes(Default::default()),
            outputs: [false; 2],
            signals: HostSignals::default(),
            strace: None,
            hook: None,
            keep: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<[u8]>) -> Process {
        self.plan.args.push(arg.as_ref().to_vec());
        self
    }

    /// Adds arguments.
    pub fn args(self, args: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Process {
        args.into_iter().fold(self, Process::arg)
    }

    /// The name that the program sees as its own (`argv[0]`); the path by default.
    pub fn name(mut self, name: impl AsRef<[u8]>) -> Process {
        self.plan.name = Some(name.as_ref().to_vec());
        self
    }

    /// Sets a variable of its environment, which is empty at first.
    pub fn env(mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Process {
        self.plan.set_variable(key.as_ref().to_vec(), value.as_ref().to_vec());
        self
    }

    /// The directory that it begins in; `/` by default.
    pub fn directory(mut self, path: impl AsRef<[u8]>) -> Process {
        self.plan.directory = path.as_ref().to_vec();
        self
    }

    /// A directory of the host that becomes its `/`. What it changes there stays in memory.
    pub fn root(mut self, path: impl Into<PathBuf>) -> Process {
        self.plan.root = Some(path.into());
        self
    }

    /// A file or directory of the host that it sees at a path. What it changes there stays in memory.
    pub fn bind(mut self, host: impl Into<PathBuf>, guest: impl AsRef<[u8]>) -> Process {
        self.plan.binds.push(Bind {
            host: host.into(),
            guest: guest.as_ref().to_vec(),
            writable: false,
        });
        self
    }

    /// The same, but what it changes is changed on the host.
    pub fn bind_writable(mut self, host: impl Into<PathBuf>, guest: impl AsRef<[u8]>) -> Process {
        self.plan.binds.push(Bind {
            host: host.into(),
            guest: guest.as_ref().to_vec(),
            writable: true,
        });
        self
    }

    /// A file with these contents.
    pub fn file(mut self, path: impl AsRef<[u8]>, contents: impl Into<Vec<u8>>) -> Process {
        self.plan.give_file(path.as_ref().to_vec(), contents.into());
        self
    }

    /// What it reads from standard input; nothing by default.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Process {
        self.input = Input::Bytes(bytes.into().into());
        self
    }

    /// It has the host's standard input, and its output goes to the host's. Signals that are
    /// [raised](HostSignals::raise) arrive at the program.
    pub fn inherit(mut self, signals: HostSignals) -> Process {
        self.input = Input::Host(HostInput::default());
        (self.outputs, self.signals) = ([true; 2], signals);
        self
    }

    /// What it may use.
    pub fn limits(mut self, limits: Limits) -> Process {
        self.plan.limits = limits;
        self
    }

    /// Where its random numbers begin; 0 by default.
    pub fn seed(mut self, seed: u64) -> Process {
        self.plan.seed = seed;
        self
    }

    /// It sees the host's time instead of a virtual one.
    pub fn realtime(mut self, realtime: bool) -> Process {
        self.plan.realtime = realtime;
        self
    }

    /// The engine that it runs on. On a GPU, a program that makes a second thread or process goes on on the CPU.
    pub fn engine(mut self, engine: EngineKind) -> Process {
        self.plan.engine = engine;
        self
    }

    /// Calls `print` with a line for each system call.
    pub fn strace(mut self, print: impl FnMut(&str) + Send + 'static) -> Process {
        self.strace = Some(Box::new(print));
        self
    }

    /// Asks `decide` about each system call before it is served.
    pub fn on_system_call(
        mut self,
        decide: impl FnMut(&mut Request<'_>) -> Decision + Send + 'static,
    ) -> Process {
        self.hook = Some(Box::new(decide));
        self
    }

    /// A directory of the host where files that it has written are put at the end.
    pub fn keep(mut self, directory: impl Into<PathBuf>) -> Process {
        self.keep = Some(directory.into());
        self
    }

    /// Runs it to its end.
    pub fn run(self) -> Result<Outcome> {
        self.run_with(&RunControl::new())
    }

    /// Runs it until its end, or until the control says so.
    pub fn run_with(self, control: &RunControl) -> Result<Outcome> {
        let keep = self.keep.clone();
        let mut kernel = self.build()?;
        let ending = kernel.run(control).map_err(Error::from)?;
        if let Some(directory) = keep {
            kernel.keep(&directory).map_err(|error| Error::Keep { directory, error })?;
        }
        outcome(&mut kernel, ending)
    }

    fn build(self) -> Result<Kernel> {
        let [out, err] =
            self.outputs.map(|host| if host { Sink::Host } else { Sink::Captured(Vec::new()) });
        let console = Console::new(self.input, [out, err], self.signals);
        let placed = self.plan.place()?;
        let machines = placed.machines();
        placed.load(&machines, console, self.strace, self.hook)
    }
}

/// What a program did whose run has ended.
pub(super) fn outcome(kernel: &mut Kernel, ending: Ending) -> Result<Outcome> {
    let [stdout, stderr] =
        [Stream::Output, Stream::Error].map(|stream| kernel.console().take_output(stream));
    let files = kernel
        .written_files()
        .map_err(|errno| Error::Sandbox(format!("cannot read a file that was written: {errno}")))?;
    let file =
        |GivenFile { path, contents, permissions }| WrittenFile { path, contents, permissions };
    let files = files.into_iter().map(file).collect();
    let report = kernel.report();
    Ok(Outcome {
        ending,
        status: kernel.status(),
        crash: report.crash.clone(),
        stdout,
        stderr,
        files,
        instructions: report.instructions,
        system_calls: report.calls_by_name(),
        unknown_calls: report.unknown.iter().map(|(number, count)| (*number, *count)).collect(),
        limits: report.limits.iter().copied().collect(),
        moved: report.moved,
    })
}
