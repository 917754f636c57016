//! All processes of a run, and what they share.

use std::collections::{BTreeMap, BTreeSet};

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::EngineError;
use kvrm_random::Random;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::console::Console;
use crate::descriptors::Descriptors;
use crate::exec;
use crate::files::{Files, next_free};
use crate::guest::MakeGuest;
use crate::hook::Hook;
use crate::locks::Locks;
use crate::memory::{Budget, Memory};
use crate::process::{Executed, Pid, Process, State, Status};
use crate::report::Report;
use crate::resources::{Limits, Resources};
use crate::scheduler::Turns;
use crate::shared::Segments;
use crate::signals::{Actions, Pending};
use crate::strace::Strace;
use crate::thread::{Thread, Tid};
use crate::uses::{Strings, Uses};
use crate::vfs::{FileType, GivenFile, NodeId, Vfs};
use crate::{Errno, Refusal};

/// The number of a run's first process.
pub const FIRST: Pid = 1000;
/// The last number that is given away before they begin again, as Linux has it.
pub(crate) const LAST: Pid = 1 << 22;

/// Everything that a run's processes see.
pub struct Kernel {
    pub(crate) make_guest: MakeGuest,
    pub(crate) make_first: Option<MakeGuest>,
    pub(crate) processes: BTreeMap<Pid, Process>,
    pub(crate) threads: BTreeMap<Tid, Thread>,
    pub(crate) memories: BTreeMap<u32, Held>,
    pub(crate) budget: Budget,
    pub(crate) segments: Segments,
    pub(crate) vfs: Vfs,
    pub(crate) files: Files,
    pub(crate) locks: Locks,
    pub(crate) console: Console,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) limits: Limits,
    pub(crate) report: Report,
    pub(crate) strace: Option<Strace>,
    pub(crate) hook: Option<Hook>,
    /// Whose turn it is.
    pub(crate) turns: Turns,
    /// How often something has happened that a thread may wait for.
    pub(crate) happened: u64,
    /// Numbers that were given away.
    pub(crate) numbers: Numbers,
    /// How the first process ended.
    pub(crate) first_status: Option<Status>,
    /// The process group that the terminal's signals go to.
    pub(crate) foreground: Pid,
    /// Where the first program's arguments and environment are.
    pub(crate) strings: Strings,
    /// When they and the input were first used, if the run is watched.
    pub(crate) uses: Option<Uses>,
}

/// The last of each kind of number that was given away.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Numbers {
    pub(crate) thread: Tid,
    pub(crate) memory: u32,
    pub(crate) ticket: u64,
}

/// A memory and those who have it.
pub(crate) struct Held {
    pub(crate) memory: Memory,
    /// How many processes have it.
    pub(crate) users: u32,
    /// Whose vector registers the machine has.
    pub(crate) loaded: Option<Tid>,
    /// Files that it shows, which are retained. Those of the program are the process's.
    pub(crate) files: BTreeSet<NodeId>,
}

/// What a run is made from.
pub struct Setup {
    /// Makes machines.
    pub make_guest: MakeGuest,
    /// Makes machines for a program that has one thread; as soon as it gets another, it is moved to one of the others.
    pub make_first: Option<MakeGuest>,
    /// The files.
    pub vfs: Vfs,
    /// Standard input and output.
    pub console: Console,
    /// Limits.
    pub limits: Limits,
    /// Where random numbers begin.
    pub seed: u64,
    /// Guests see the host's time.
    pub realtime: bool,
    /// Where system calls are printed.
    pub strace: Option<Strace>,
    /// Who is asked before a system call is served.
    pub hook: Option<Hook>,
}

/// The program that a run begins with.
pub struct Command {
    /// Its path.
    pub path: Vec<u8>,
    /// Its arguments, the first of which is its name.
    pub args: Vec<Vec<u8>>,
    /// Its environment.
    pub env: Vec<Vec<u8>>,
    /// The directory that it begins in.
    pub directory: Vec<u8>,
}

/// Why a run cannot begin, or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The program cannot be executed.
    #[error("cannot execute {path}: {errno}{advice}")]
    Program {
        /// Its path.
        path: String,
        /// Why.
        errno: Errno,
        /// What to do.
        advice: &'static str,
    },
    /// The directory is not one.
    #[error("cannot begin in the directory {path}: {errno}")]
    Directory {
        /// Its path.
        path: String,
        /// Why.
        errno: Errno,
    },
    /// The host failed.
    #[error(transparent)]
    Host(#[from] EngineError),
}

impl Kernel {
    /// Loads the program.
    pub fn new(setup: Setup, command: &Command) -> Result<Kernel, Failure> {
        let Setup { make_guest, make_first, vfs, console, limits, seed, realtime, strace, hook } =
            setup;
        let mut kernel = Kernel {
            make_guest,
            make_first,
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            memories: BTreeMap::new(),
            budget: Budget::new(limits.memory),
            segments: Segments::default(),
            vfs,
            files: Files::default(),
            locks: Locks::default(),
            console,
            clock: Clock::new(realtime),
            random: Random::new(seed),
            limits,
            report: Report::default(),
            strace,
            hook,
            turns: Turns::default(),
            happened: 0,
            numbers: Numbers { thread: FIRST, memory: 0, ticket: 0 },
            first_status: None,
            foreground: FIRST,
            strings: Strings::default(),
            uses: None,
        };
        kernel.begin(command)?;
        Ok(kernel)
    }

    fn begin(&mut self, command: &Command) -> Result<(), Failure> {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let directory = self.start_directory(&command.directory);
        let directory = directory
            .map_err(|errno| Failure::Directory { path: lossy(&command.directory), errno })?;
        let loaded = exec::load(self, directory, &command.path, &command.args, &command.env);
        let loaded = loaded.map_err(|refusal| match refusal {
            Refusal::Host(error) => Failure::Host(error),
            Refusal::Errno(errno) => {
                let advice = exec::advice(errno);
                Failure::Program { path: lossy(&command.path), errno, advice }
            }
            Refusal::Wait(_) | Refusal::Gone => unreachable!("loading does not wait"),
        })?;
        let descriptors = Descriptors::of_console(&mut self.files);
        let memory = self.hold(loaded.memory);
        let [args, env] = loaded.strings;
        let more = args.len() - command.args.len();
        self.strings = Strings { memory, args, env, more, used: Vec::new() };
        let process = Process {
            parent: 1,
            group: FIRST,
            session: FIRST,
            memory,
            descriptors,
            directory,
            umask: 0o022,
            actions: Actions::new(),
            pending: Pending::default(),
            threads: vec![FIRST],
            state: State::Running { continued: false },
            exit_signal: None,
            vfork: None,
            program: loaded.program,
            alarm: None,
            busy_alarms: [None; 2],
            parent_death_signal: 0,
            is_subreaper: false,
            no_new_privileges: false,
            timers: BTreeMap::new(),
            groups: vec![0],
            resources: Resources::new(&self.limits),
            executed: Executed::default(),
        };
        let thread = Thread::new(FIRST, loaded.registers, VectorState::new(), loaded.name);
        self.processes.insert(FIRST, process);
        self.threads.insert(FIRST, thread);
        Ok(())
    }

    /// Keeps a memory for one process; its number.
    pub(crate) fn hold(&mut self, memory: Memory) -> u32 {
        let number = next_free(&mut self.numbers.memory, |n| self.memories.contains_key(&n));
        self.memories
            .insert(number, Held { memory, users: 1, loaded: None, files: BTreeSet::new() });
        number
    }

    /// Lets go of a memory.
    pub(crate) fn release_memory(&mut self, number: u32) {
        let held = self.memories.get_mut(&number).expect("somebody has it");
        held.users -= 1;
        if held.users == 0 {
            self.note_uses(self.report.instructions);
            let held = self.memories.remove(&number);
            let files = held.map(|held| held.files).unwrap_or_default();
            files.into_iter().for_each(|node| self.vfs.release(node));
        }
    }

    /// A number for a new thread or process.
    pub(crate) fn new_tid(&mut self) -> Result<Tid, Errno> {
        let ended = self.processes.values().filter(|process| process.threads.is_empty()).count();
        if self.threads.len() + ended >= self.limits.threads {
            self.report.hit(crate::resources::Limit::Threads);
            return Err(Errno::AGAIN);
        }
        loop {
            let last = self.numbers.thread;
            self.numbers.thread = if last < LAST { last + 1 } else { FIRST + 1 };
            if !self.is_known(self.numbers.thread) {
                return Ok(self.numbers.thread);
            }
        }
    }

    /// True if something goes by a number.
    fn is_known(&self, number: Tid) -> bool {
        let is_of = |process: &Process| process.group == number || process.session == number;
        self.threads.contains_key(&number)
            || self.processes.contains_key(&number)
            || self.processes.values().any(is_of)
    }

    /// Notes that something has happened that a thread may wait for.
    pub(crate) fn note(&mut self) {
        self.happened += 1;
    }

    /// The process of a thread.
    pub(crate) fn process_of(&mut self, tid: Tid) -> &mut Process {
        let pid = self.thread(tid).pid;
        self.processes.get_mut(&pid).expect("threads have a process")
    }

    /// A thread.
    pub(crate) fn thread(&mut self, tid: Tid) -> &mut Thread {
        self.threads.get_mut(&tid).expect("it has not ended")
    }

    /// The memory of a thread.
    pub(crate) fn held_of(&mut self, tid: Tid) -> &mut Held {
        let number = self.process_of(tid).memory;
        self.memories.get_mut(&number).expect("processes have memory")
    }

    /// Brings a thread's registers to its machine, and those of the thread that was there to that thread.
    pub(crate) fn load(&mut self, tid: Tid) -> Result<(), EngineError> {
        let loaded = self.held_of(tid).loaded;
        if loaded != Some(tid) {
            self.save_vectors(tid)?;
            let vectors = self.thread(tid).vectors;
            let held = self.held_of(tid);
            held.memory.guest.set_vectors(&vectors)?;
            held.loaded = Some(tid);
        }
        // The virtual counter is the clock, whatever the machine has executed for others.
        let now = self.clock.now().0;
        let mut registers = self.thread(tid).registers;
        let guest = &mut self.held_of(tid).memory.guest;
        registers.counter = now.wrapping_sub(guest.executed()?);
        guest.set_registers(&registers)
    }

    /// Brings the vector registers from the machine of a thread to the thread that they belong to.
    pub(crate) fn save_vectors(&mut self, tid: Tid) -> Result<(), EngineError> {
        let held = self.held_of(tid);
        let Some(owner) = held.loaded.take() else { return Ok(()) };
        let vectors = held.memory.guest.vectors()?;
        if let Some(thread) = self.threads.get_mut(&owner) {
            thread.vectors = vectors;
        }
        Ok(())
    }

    /// The registers of a thread that is stopped, from its machine.
    pub(crate) fn save_registers(&mut self, tid: Tid) -> Result<CpuState, EngineError> {
        let registers = self.held_of(tid).memory.guest.registers()?;
        self.thread(tid).registers = registers;
        Ok(registers)
    }

    /// Bytes of memory over all processes.
    pub(crate) fn memory_used(&self) -> u64 {
        self.budget.used()
    }

    /// What happened in the run.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// How the first process ended, if it has.
    pub fn status(&self) -> Option<Status> {
        self.first_status
    }

    /// Files that were created or changed. `EFBIG` if they have more bytes than files may have, which those with holes
    /// can.
    pub fn written_files(&mut self) -> crate::Result<Vec<GivenFile>> {
        let mut files = Vec::new();
        let mut room = self.limits.file_bytes;
        for change in self.vfs.changes()? {
            let Some(node) = change.node else { continue };
            let stat = self.vfs.stat(node)?;
            if stat.file_type != FileType::Regular {
                continue;
            }
            room = room.checked_sub(stat.size).ok_or(Errno::FBIG)?;
            let mut contents = vec![0; stat.size as usize];
            let mut done = 0;
            while done < contents.len() {
                let read = |vfs: &mut Vfs, processes: &dyn crate::vfs::Processes| {
                    vfs.read(processes, node, done as u64, &mut contents[done..])
                };
                match self.with_vfs(0, read)? {
                    0 => break,
                    len => done += len,
                }
            }
            let (path, permissions) = (change.path, stat.permissions);
            files.push(GivenFile { path, contents, permissions });
        }
        Ok(files)
    }

    /// Writes them to a directory of the host, which is made if it is not there.
    pub fn keep(&mut self, directory: &std::path::Path) -> std::io::Result<()> {
        std::fs::create_dir_all(directory)?;
        let directory =
            cap_std::fs::Dir::open_ambient_dir(directory, cap_std::ambient_authority())?;
        self.vfs.keep(&directory).map_err(std::io::Error::other)?;
        Ok(())
    }

    /// Standard input and output.
    pub fn console(&mut self) -> &mut Console {
        &mut self.console
    }

    fn start_directory(&mut self, path: &[u8]) -> Result<crate::vfs::NodeId, Errno> {
        let root = self.vfs.root();
        self.directory_at(root, path)
    }
}
