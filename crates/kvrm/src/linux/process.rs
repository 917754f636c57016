//! Setting up a program.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kvrm_cpu::CpuEngine;
use kvrm_engine::{Config, Engine, EngineError, EvalEngine, RunControl};
use kvrm_linux::vfs::{self, Bind, GivenFile, Vfs};
use kvrm_linux::{
    Clock, Command, Console, Decision, Ending, Failure, Hook, HostInput, HostSignals, Input,
    Kernel, Limits, MakeGuest, Request, Setup, Sink, Strace, Stream, memory,
};

use super::guest::{EngineGuest, MakeEngine};
use super::outcome::{Outcome, WrittenFile};
use crate::{EngineKind, Error, MachineBuilder, Result};

/// Where programs without a slash in their name are looked for.
const PATHS: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A program that is about to run.
pub struct Process {
    program: PathBuf,
    name: Option<Vec<u8>>,
    args: Vec<Vec<u8>>,
    env: Vec<(Vec<u8>, Vec<u8>)>,
    directory: Vec<u8>,
    root: Option<PathBuf>,
    binds: Vec<Bind>,
    files: Vec<GivenFile>,
    input: Input,
    outputs: [bool; 2],
    signals: HostSignals,
    limits: Limits,
    seed: u64,
    realtime: bool,
    engine: EngineKind,
    strace: Option<Strace>,
    hook: Option<Hook>,
    keep: Option<PathBuf>,
}

impl Process {
    /// A program by its path on the host, or, with a [root](Process::root), by its path or name there.
    pub fn new(program: impl AsRef<Path>) -> Process {
        Process {
            program: program.as_ref().to_owned(),
            name: None,
            args: Vec::new(),
            env: Vec::new(),
            directory: b"/".to_vec(),
            root: None,
            binds: Vec::new(),
            files: Vec::new(),
            input: Input::Bytes(Default::default()),
            outputs: [false; 2],
            signals: HostSignals::default(),
            limits: Limits::default(),
            seed: 0,
            realtime: false,
            engine: EngineKind::Auto,
            strace: None,
            hook: None,
            keep: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<[u8]>) -> Process {
        self.args.push(arg.as_ref().to_vec());
        self
    }

    /// Adds arguments.
    pub fn args(self, args: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Process {
        args.into_iter().fold(self, Process::arg)
    }

    /// The name that the program sees as its own (`argv[0]`); the path by default.
    pub fn name(mut self, name: impl AsRef<[u8]>) -> Process {
        self.name = Some(name.as_ref().to_vec());
        self
    }

    /// Sets a variable of its environment, which is empty at first.
    pub fn env(mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Process {
        self.env.retain(|(other, _)| other != key.as_ref());
        self.env.push((key.as_ref().to_vec(), value.as_ref().to_vec()));
        self
    }

    /// The directory that it begins in; `/` by default.
    pub fn directory(mut self, path: impl AsRef<[u8]>) -> Process {
        self.directory = path.as_ref().to_vec();
        self
    }

    /// A directory of the host that becomes its `/`. What it changes there stays in memory.
    pub fn root(mut self, path: impl Into<PathBuf>) -> Process {
        self.root = Some(path.into());
        self
    }

    /// A file or directory of the host that it sees at a path. What it changes there stays in memory.
    pub fn bind(mut self, host: impl Into<PathBuf>, guest: impl AsRef<[u8]>) -> Process {
        self.binds.push(Bind {
            host: host.into(),
            guest: guest.as_ref().to_vec(),
            writable: false,
        });
        self
    }

    /// The same, but what it changes is changed on the host.
    pub fn bind_writable(mut self, host: impl Into<PathBuf>, guest: impl AsRef<[u8]>) -> Process {
        self.binds.push(Bind { host: host.into(), guest: guest.as_ref().to_vec(), writable: true });
        self
    }

    /// A file with these contents.
    pub fn file(mut self, path: impl AsRef<[u8]>, contents: impl Into<Vec<u8>>) -> Process {
        let (path, contents) = (path.as_ref().to_vec(), contents.into());
        self.files.push(GivenFile { path, contents, permissions: 0o755 });
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
        self.limits = limits;
        self
    }

    /// Where its random numbers begin; 0 by default.
    pub fn seed(mut self, seed: u64) -> Process {
        self.seed = seed;
        self
    }

    /// It sees the host's time instead of a virtual one.
    pub fn realtime(mut self, realtime: bool) -> Process {
        self.realtime = realtime;
        self
    }

    /// The engine that it runs on. On a GPU, a program that makes a second thread or process goes on on the CPU.
    pub fn engine(mut self, engine: EngineKind) -> Process {
        self.engine = engine;
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
            kernel.keep(&directory).map_err(|error| Error::Sandbox(error.to_string()))?;
        }
        outcome(&mut kernel, ending)
    }

    fn build(mut self) -> Result<Kernel> {
        let path = self.place_program()?;
        let name = self.name.take().unwrap_or_else(|| self.program.as_os_str().as_bytes().to_vec());
        let mut args = vec![name];
        args.append(&mut self.args);
        let env = self.env.iter().map(|(key, value)| [&key[..], b"=", value].concat()).collect();
        let vfs = Vfs::new(vfs::Setup {
            root: self.root,
            binds: self.binds,
            files: self.files,
            limits: vfs::Limits { bytes: self.limits.file_bytes, nodes: self.limits.files },
            time: Clock::new(self.realtime).start(),
        });
        let vfs = vfs.map_err(|error| Error::Sandbox(error.to_string()))?;
        let [out, err] =
            self.outputs.map(|host| if host { Sink::Host } else { Sink::Captured(Vec::new()) });
        let (first, others) = engines(self.engine);
        let setup = Setup {
            make_guest: make_guest(others, None),
            make_first: first.map(|first| make_guest(first, None)),
            vfs,
            console: Console::new(self.input, [out, err], self.signals),
            limits: self.limits,
            seed: self.seed,
            realtime: self.realtime,
            strace: self.strace,
            hook: self.hook,
        };
        let command = Command { path, args, env, directory: self.directory };
        Kernel::new(setup, &command).map_err(|failure| match failure {
            Failure::Host(error) => Error::Engine(error),
            Failure::Program { .. } => Error::Program(failure.to_string()),
            Failure::Directory { .. } => Error::Sandbox(failure.to_string()),
        })
    }

    /// Finds the program in the root, or gives the guest the host's file; its path in the guest.
    fn place_program(&mut self) -> Result<Vec<u8>> {
        let given = self.program.as_os_str().as_bytes().to_vec();
        let is_given = |path: &[u8]| self.files.iter().any(|file| file.path == path);
        if given.first() == Some(&b'/') && (self.is_in_root(&given) || is_given(&given)) {
            return Ok(given);
        }
        if !given.contains(&b'/') {
            let candidates = PATHS.iter().map(|path| format!("{path}/").into_bytes());
            let mut candidates = candidates.map(|path| [&path[..], &given[..]].concat());
            if let Some(found) = candidates.find(|path| self.is_in_root(path)) {
                return Ok(found);
            }
        }
        let found = std::fs::canonicalize(&self.program);
        let host = found.map_err(|error| {
            let advice =
                if self.root.is_some() { " (neither in the root nor on the host)" } else { "" };
            Error::NoProgram(format!(
                "cannot find the program {}: {error}{advice}",
                self.program.display()
            ))
        })?;
        let guest = host.clone().into_os_string().into_vec();
        self.binds.push(Bind { host, guest: guest.clone(), writable: false });
        Ok(guest)
    }

    /// True if the guest will have something at that path because of its root or a bind. Links are the guest's business.
    fn is_in_root(&self, path: &[u8]) -> bool {
        let relative =
            Path::new(std::ffi::OsStr::from_bytes(path)).strip_prefix("/").unwrap_or(Path::new(""));
        let in_root =
            self.root.as_ref().is_some_and(|root| root.join(relative).symlink_metadata().is_ok());
        let in_bind = |bind: &Bind| {
            let guest = Path::new(std::ffi::OsStr::from_bytes(&bind.guest));
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            path.strip_prefix(guest)
                .is_ok_and(|rest| bind.host.join(rest).symlink_metadata().is_ok())
        };
        in_root || self.binds.iter().any(in_bind)
    }
}

/// Makes guests on an engine of the host, for tests with kernels of their own. The CPU engine translates as soon as is said.
#[doc(hidden)]
pub fn make_guests(engine: EngineKind, translate_after: Option<u32>) -> MakeGuest {
    make_guest(engines(engine).1, translate_after)
}

/// Makes an engine with one lane of mapped memory.
type Build = fn(Config) -> std::result::Result<Box<dyn Engine>, EngineError>;

/// The engine that a program begins on, if it is for one thread alone, and the one for programs with many.
fn engines(kind: EngineKind) -> (Option<Build>, Build) {
    let cpu: Build = |config| Ok(Box::new(CpuEngine::new(config)?));
    match kind {
        EngineKind::Auto | EngineKind::Cpu => (None, cpu),
        EngineKind::Eval => (None, |config| Ok(Box::new(EvalEngine::new(config)?))),
        EngineKind::Cuda => {
            (Some(|config| Ok(Box::new(kvrm_cuda::build(config, 0)?.keeping_handlers()))), cpu)
        }
        EngineKind::Wgpu => {
            (Some(|config| Ok(Box::new(kvrm_wgpu::build(config, None)?.keeping_handlers()))), cpu)
        }
    }
}

fn make_guest(build: Build, translate_after: Option<u32>) -> MakeGuest {
    let mut config = MachineBuilder::mapped_config(memory::TOP);
    config.translate_after = translate_after.unwrap_or(config.translate_after);
    let make: MakeEngine = Arc::new(move || build(config.clone()));
    Box::new(move || Ok(Box::new(EngineGuest::new(&make)?)))
}

fn outcome(kernel: &mut Kernel, ending: Ending) -> Result<Outcome> {
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
