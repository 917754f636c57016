//! What a run of a program begins with, apart from where its input and output lead.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kvrm_cpu::CpuMachines;
use kvrm_engine::{Engine, EngineError, EvalEngine};
use kvrm_linux::vfs::{self, Bind, GivenFile, Vfs};
use kvrm_linux::{
    Clock, Command, Console, Failure, Hook, Kernel, Limits, MakeGuest, Resume, Setup, Strace,
    memory,
};

use super::guest::EngineGuest;
use super::snapshot::{Snapshot, cannot_resume, given_now};
use crate::{EngineKind, Error, MachineBuilder, Result};

/// Where programs without a slash in their name are looked for.
const PATHS: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A program, its arguments, its files and what it may use.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) program: PathBuf,
    pub(super) name: Option<Vec<u8>>,
    pub(super) args: Vec<Vec<u8>>,
    pub(super) env: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) directory: Vec<u8>,
    pub(super) root: Option<PathBuf>,
    pub(super) binds: Vec<Bind>,
    pub(super) files: Vec<GivenFile>,
    pub(super) limits: Limits,
    pub(super) seed: u64,
    pub(super) realtime: bool,
    pub(super) engine: EngineKind,
    /// What it goes on from, instead of the program's beginning.
    pub(super) snapshot: Option<Snapshot>,
}

/// A plan whose program was found.
#[derive(Clone)]
pub(super) struct Placed {
    plan: Plan,
    /// Where the program is for the guest.
    path: Vec<u8>,
}

impl Plan {
    pub(super) fn new(program: &Path) -> Plan {
        Plan {
            program: program.to_owned(),
            name: None,
            args: Vec::new(),
            env: Vec::new(),
            directory: b"/".to_vec(),
            root: None,
            binds: Vec::new(),
            files: Vec::new(),
            limits: Limits::default(),
            seed: 0,
            realtime: false,
            engine: EngineKind::Auto,
            snapshot: None,
        }
    }

    /// Sets a variable of the environment.
    pub(super) fn set_variable(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.env.retain(|(other, _)| *other != key);
        self.env.push((key, value));
    }

    /// Gives a file.
    pub(super) fn give_file(&mut self, path: Vec<u8>, contents: Vec<u8>) {
        self.files.retain(|other| other.path != path);
        self.files.push(GivenFile { path, contents, permissions: 0o755 });
    }

    /// Finds the program in the root, or gives the guest the host's file.
    pub(super) fn place(mut self) -> Result<Placed> {
        if self.snapshot.is_some() {
            self.check_going_on()?;
            return Ok(Placed { plan: self, path: Vec::new() });
        }
        let given = self.program.as_os_str().as_bytes().to_vec();
        let is_given = |path: &[u8]| self.files.iter().any(|file| file.path == path);
        if given.first() == Some(&b'/') && (self.is_in_root(&given) || is_given(&given)) {
            return Ok(Placed { plan: self, path: given });
        }
        if !given.contains(&b'/') {
            let candidates = PATHS.iter().map(|path| format!("{path}/").into_bytes());
            let mut candidates = candidates.map(|path| [&path[..], &given[..]].concat());
            if let Some(found) = candidates.find(|path| self.is_in_root(path)) {
                return Ok(Placed { plan: self, path: found });
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
        Ok(Placed { plan: self, path: guest })
    }

    /// Refuses what a program can only begin with.
    fn check_going_on(&self) -> Result<()> {
        let refused = [
            (self.name.is_some(), "another name of the program"),
            (self.directory != b"/", "the directory that it begins in"),
            (self.seed != 0, "the seed of random numbers"),
            (self.realtime, "the real time"),
            (!self.files.is_empty(), "a file in memory"),
            (self.binds.iter().any(|bind| bind.writable), "a folder that can be written"),
        ];
        match refused.iter().find(|(is_asked, _)| *is_asked) {
            Some((_, what)) => Err(Error::BeforeSnapshot(what)),
            None => Ok(()),
        }
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
            path.strip_prefix(guest).is_ok_and(|rest| {
                // A file has nothing behind a slash.
                let is_itself = rest.as_os_str().is_empty();
                let host = if is_itself { bind.host.clone() } else { bind.host.join(rest) };
                host.symlink_metadata().is_ok()
            })
        };
        in_root || self.binds.iter().any(in_bind)
    }
}

impl Placed {
    /// The engine that the program begins on.
    pub(super) fn engine(&self) -> EngineKind {
        match self.plan.engine {
            EngineKind::Auto => EngineKind::Cpu,
            engine => engine,
        }
    }

    /// What it was made of, to change it. The program stays where it was found.
    pub(super) fn plan_mut(&mut self) -> &mut Plan {
        &mut self.plan
    }

    /// The program, as it is called.
    pub(super) fn program(&self) -> &Path {
        &self.plan.program
    }

    /// What it goes on from, if it does not begin.
    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.plan.snapshot.as_ref()
    }

    /// Its arguments, with its name, and its environment.
    pub(super) fn strings(&self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        if let Some(snapshot) = self.snapshot() {
            return self.strings_after(snapshot);
        }
        let Plan { name, program, args, env, .. } = &self.plan;
        let name = name.clone().unwrap_or_else(|| program.as_os_str().as_bytes().to_vec());
        let args = [name].into_iter().chain(args.iter().cloned()).collect();
        let env = env.iter().map(|(key, value)| [&key[..], b"=", value].concat()).collect();
        (args, env)
    }

    /// The same where it goes on: what is not given is as it was.
    fn strings_after(&self, snapshot: &Snapshot) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let about = snapshot.state.about();
        let mut args: Vec<Vec<u8>> = about.args.iter().map(|(arg, _)| arg.clone()).collect();
        if !self.plan.args.is_empty() {
            args.truncate(1);
            args.extend(self.plan.args.iter().cloned());
        }
        let mut env: Vec<Vec<u8>> =
            about.env.iter().map(|(variable, _)| variable.clone()).collect();
        for (key, value) in &self.plan.env {
            let start = [&key[..], b"="].concat();
            let variable = [&start[..], value].concat();
            match env.iter_mut().find(|known| known.starts_with(&start)) {
                Some(known) => *known = variable,
                None => env.push(variable),
            }
        }
        (args, env)
    }

    /// Why it cannot go on with its arguments and its environment, if it cannot.
    pub(super) fn refused_strings(&self) -> Option<String> {
        let (args, env) = self.strings();
        self.snapshot()?.refuses(&args, &env)
    }

    /// True if it sees the host's time.
    pub(super) fn is_realtime(&self) -> bool {
        self.plan.realtime
    }

    /// The machines for it.
    pub(super) fn machines(&self) -> Machines {
        Machines::new(self.plan.engine, None)
    }

    /// Loads the program.
    pub(super) fn load(
        self,
        machines: &Machines,
        console: Console,
        strace: Option<Strace>,
        hook: Option<Hook>,
    ) -> Result<Kernel> {
        let (args, env) = self.strings();
        if let Some(snapshot) = self.snapshot() {
            if let Some(why) = self.refused_strings() {
                return Err(Error::Snapshot(why));
            }
            let resume = Resume {
                make_guest: machines.others.clone(),
                make_first: machines.first.clone(),
                console,
                limits: self.plan.limits.clone(),
                given: given_now(snapshot, self.plan.root.as_ref(), &self.plan.binds)?,
                strace,
                hook,
            };
            let mut kernel = Kernel::resume(&snapshot.state, resume).map_err(cannot_resume)?;
            kernel.give_strings(&args, &env)?;
            return Ok(kernel);
        }
        let Placed { plan, path } = self;
        let vfs = Vfs::new(vfs::Setup {
            root: plan.root,
            binds: plan.binds,
            files: plan.files,
            limits: vfs::Limits { bytes: plan.limits.file_bytes, nodes: plan.limits.files },
            time: Clock::new(plan.realtime).start(),
        });
        let vfs = vfs.map_err(|error| Error::Sandbox(error.to_string()))?;
        let setup = Setup {
            make_guest: machines.others.clone(),
            make_first: machines.first.clone(),
            vfs,
            console,
            limits: plan.limits,
            seed: plan.seed,
            realtime: plan.realtime,
            strace,
            hook,
        };
        let command = Command { path, args, env, directory: plan.directory };
        Kernel::new(setup, &command).map_err(|failure| match failure {
            Failure::Host(error) => Error::Engine(error),
            Failure::Program { .. } => Error::Program(failure.to_string()),
            Failure::Directory { .. } => Error::Sandbox(failure.to_string()),
        })
    }
}

/// Makes guests on an engine of the host, for tests with kernels of their own. The CPU engine translates as soon as is said.
#[doc(hidden)]
pub fn make_guests(engine: EngineKind, translate_after: Option<u32>) -> MakeGuest {
    Machines::new(engine, translate_after).others
}

/// What makes machines for a run, or for many runs, which then share what can be shared.
pub(super) struct Machines {
    /// Those for one thread alone, on which a program begins, if they are others.
    first: Option<MakeGuest>,
    others: MakeGuest,
}

impl Machines {
    /// Those of the host alone, of which a program may leave the first for another.
    pub(super) fn on_host(&self) -> Machines {
        self.beginning_on(Arc::clone(&self.others))
    }

    /// These, but a program begins on that one.
    pub(super) fn beginning_on(&self, first: MakeGuest) -> Machines {
        Machines { first: Some(first), others: Arc::clone(&self.others) }
    }

    /// A machine that can have any number of threads.
    pub(super) fn make(&self) -> std::result::Result<Box<dyn kvrm_linux::Guest>, EngineError> {
        (self.others)()
    }

    fn new(kind: EngineKind, translate_after: Option<u32>) -> Machines {
        let mut config = MachineBuilder::mapped_config(memory::TOP);
        config.translate_after = translate_after.unwrap_or(config.translate_after);
        let on_cpu = {
            let machines = CpuMachines::new(config.clone());
            make_guest(move || Ok(Box::new(machines.make()?)))
        };
        match kind {
            EngineKind::Auto | EngineKind::Cpu => Machines { first: None, others: on_cpu },
            EngineKind::Eval => {
                let make = move || -> Made { Ok(Box::new(EvalEngine::new(config.clone())?)) };
                Machines { first: None, others: make_guest(make) }
            }
            EngineKind::Cuda => {
                let make = move || -> Made { Ok(Box::new(kvrm_cuda::build(config.clone(), 0)?)) };
                Machines { first: Some(make_guest(make)), others: on_cpu }
            }
            EngineKind::Wgpu => {
                let make =
                    move || -> Made { Ok(Box::new(kvrm_wgpu::build(config.clone(), None)?)) };
                Machines { first: Some(make_guest(make)), others: on_cpu }
            }
        }
    }
}

/// An engine with one lane of mapped memory.
type Made = std::result::Result<Box<dyn Engine>, EngineError>;

fn make_guest(make: impl Fn() -> Made + Send + Sync + 'static) -> MakeGuest {
    Arc::new(move || Ok(Box::new(EngineGuest::new(make()?))))
}
