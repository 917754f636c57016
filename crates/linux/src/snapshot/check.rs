//! Whether a state is one that a kernel can have. A snapshot may come from anybody, and a kernel trusts its own state.

use std::collections::{BTreeMap, HashMap, HashSet};

use kvrm_a64::state::{CpuState, DIT, FPCR_MASK, FPSR_MASK, SSBS, ZR};

use super::state::State;
use super::{About, SnapshotError};
use crate::files::{FileId, Files, Kind, OpenFile, Socket};
use crate::kernel::{FIRST, LAST};
use crate::memory::TOP;
use crate::pipes::{MOST_BYTES, Pipe};
use crate::process::{Pid, Process, State as Life};
use crate::report::Report;
use crate::scheduler::ALONE;
use crate::thread::Thread;

/// What is counted in a run, at the most: it may grow for a lifetime without an overflow.
const MANY: u64 = 1 << 62;
/// The same of each system call, all of which are added up.
const MANY_CALLS: u64 = 1 << 40;

/// Makes the error if something is not as it must be.
fn must(holds: bool, what: &'static str) -> Result<(), SnapshotError> {
    if holds { Ok(()) } else { Err(SnapshotError::Damaged(what)) }
}

impl State {
    /// Finds out whether it is consistent.
    pub(super) fn check(&self, about: &About) -> Result<(), SnapshotError> {
        let counts = [self.happened, self.numbers.ticket, self.report.instructions];
        must(counts.iter().chain(&self.clock).all(|count| *count < MANY), "a count")?;
        must(self.report.instructions == about.instructions, "the count of instructions")?;
        let Report { instructions: _, calls, unknown, limits: _, crash: _, moved: _ } =
            &self.report;
        must(calls.values().chain(unknown.values()).all(|count| *count < MANY_CALLS), "a count")?;
        must(self.console.written() < MANY && self.segments.are_possible(), "a count")?;
        must(self.numbers.thread <= LAST && self.turns.last <= LAST, "the number of a thread")?;
        self.check_threads()?;
        self.processes.iter().try_for_each(|(pid, process)| self.check_process(*pid, process))?;
        self.check_ancestors()?;
        self.check_memories()?;
        self.check_files()?;
        self.check_turn()?;
        self.check_strings(about)
    }

    fn check_threads(&self) -> Result<(), SnapshotError> {
        for (tid, thread) in &self.threads {
            let process = self.processes.get(&thread.pid);
            let is_its = process.is_some_and(|process| process.threads.contains(tid));
            must((1..=LAST).contains(tid) && is_its, "the process of a thread")?;
            must(is_possible(&thread.registers), "registers")?;
            must(thread.progress < MANY, "a system call")?;
            if let Some((file, _)) = thread.fifo {
                let is_pipe =
                    self.files.has(file) && matches!(self.files.get(file).kind, Kind::Pipe { .. });
                must(is_pipe, "a pipe")?;
            }
        }
        Ok(())
    }

    fn check_process(&self, pid: Pid, process: &Process) -> Result<(), SnapshotError> {
        must((1..=LAST).contains(&pid), "the number of a process")?;
        let is_its = |tid| self.threads.get(tid).is_some_and(|thread| thread.pid == pid);
        let different: HashSet<_> = process.threads.iter().collect();
        let are_its = different.len() == process.threads.len() && different.into_iter().all(is_its);
        must(are_its, "the threads of a process")?;
        let has_ended = matches!(process.state, Life::Ended(_));
        must(has_ended == process.threads.is_empty(), "the state of a process")?;
        let executed = [process.executed.own, process.executed.children];
        must(executed.iter().all(|count| *count < MANY), "a count")?;
        let files = process.descriptors.iter().all(|(_, open)| self.files.has(open.file));
        must(files, "an open file")
    }

    /// Nobody descends from itself.
    fn check_ancestors(&self) -> Result<(), SnapshotError> {
        let mut known = HashSet::new();
        for pid in self.processes.keys() {
            let (mut path, mut at) = (HashSet::new(), *pid);
            while let Some(process) = self.processes.get(&at).filter(|_| !known.contains(&at)) {
                must(path.insert(at), "a process descends from itself")?;
                at = process.parent;
            }
            known.extend(path);
        }
        Ok(())
    }

    fn check_memories(&self) -> Result<(), SnapshotError> {
        let mut users: BTreeMap<u32, u32> = BTreeMap::new();
        for process in self.processes.values().filter(|process| !process.threads.is_empty()) {
            *users.entry(process.memory).or_default() += 1;
        }
        let held = self.memories.iter().map(|(number, held)| (*number, held.users));
        must(users == held.collect(), "the memory of a process")
    }

    fn check_files(&self) -> Result<(), SnapshotError> {
        let Files { pipes, .. } = &self.files;
        let messages = pipes.iter().flat_map(|(_, pipe)| &pipe.messages);
        let mut in_messages: HashMap<FileId, u32> = HashMap::new();
        for file in messages.flat_map(|message| &message.files) {
            *in_messages.entry(*file).or_default() += 1;
        }
        must(in_messages.keys().all(|file| self.files.has(*file)), "a message")?;
        let mut users = in_messages.clone();
        let descriptors = self.processes.values().flat_map(|process| process.descriptors.iter());
        let opening = self.threads.values().filter_map(|thread: &Thread| Some(thread.fifo?.0));
        for file in descriptors.map(|(_, open)| open.file).chain(opening) {
            *users.entry(file).or_default() += 1;
        }
        let mut ends: HashMap<u32, [u32; 2]> = HashMap::new();
        for (number, file) in self.files.iter() {
            must(users.get(&number) == Some(&file.users), "an open file")?;
            let in_messages = in_messages.get(&number).copied().unwrap_or_default();
            must(in_messages == file.in_messages, "an open file")?;
            must(is_possible_file(file), "an open file")?;
            let mut count = |pipe: u32, end: usize, is_one: bool| {
                ends.entry(pipe).or_default()[end] += u32::from(is_one);
            };
            match &file.kind {
                Kind::Pipe { pipe } => {
                    count(*pipe, 0, file.mode.reads);
                    count(*pipe, 1, file.mode.writes);
                }
                Kind::Socket(Socket { moves: _, incoming, outgoing, maker: _ }) => {
                    incoming.iter().for_each(|pipe| count(*pipe, 0, true));
                    outgoing.iter().for_each(|pipe| count(*pipe, 1, true));
                }
                Kind::Node(_)
                | Kind::Device(..)
                | Kind::Console(_)
                | Kind::Event { .. }
                | Kind::Epoll(_)
                | Kind::Timer { .. } => {}
            }
        }
        for (number, pipe) in pipes.iter() {
            let found = ends.remove(&number).unwrap_or_default();
            must(found == [pipe.readers, pipe.writers] && is_possible_pipe(pipe), "a pipe")?;
        }
        must(ends.is_empty(), "a pipe")
    }

    fn check_turn(&self) -> Result<(), SnapshotError> {
        let Some(turn) = &self.turns.current else { return Ok(()) };
        let is_its = turn.tid == self.turns.last && self.threads.contains_key(&turn.tid);
        must(is_its && turn.left <= ALONE, "whose turn it is")
    }

    /// Arguments and environment can be changed where they are.
    fn check_strings(&self, about: &About) -> Result<(), SnapshotError> {
        let strings = &self.strings;
        let what = "arguments and environment";
        let given = strings.args.len().checked_sub(strings.more) == Some(about.args.len())
            && strings.env.len() == about.env.len();
        must(given && strings.used.len() == strings.args.len() + strings.env.len(), what)?;
        let mut places = strings.args.iter().chain(&strings.env);
        must(places.all(|place| place.start <= place.end && place.end <= TOP), what)?;
        let Some(process) = self.processes.get(&FIRST) else { return Ok(()) };
        if process.memory != strings.memory {
            return Ok(());
        }
        let is_long = |place: &std::ops::Range<u64>, string: &Vec<u8>| {
            place.end - place.start == string.len() as u64
        };
        let are_there = |places: &[std::ops::Range<u64>], strings: &[Vec<u8>]| {
            places.len() == strings.len()
                && places.iter().zip(strings).all(|(place, string)| is_long(place, string))
        };
        let program = &process.program;
        must(are_there(&strings.args, &program.args), what)?;
        must(are_there(&strings.env, &program.env), what)?;
        let same = |own: &[Vec<u8>], about: &[(Vec<u8>, bool)]| {
            own.iter().zip(about).all(|(own, (about, _))| own == about)
        };
        // The name of a script is in another place.
        let args = &program.args[strings.more + 1..];
        must(same(args, &about.args[1..]) && same(&program.env, &about.env), what)
    }
}

/// Registers as instructions leave them.
fn is_possible(registers: &CpuState) -> bool {
    registers.x[ZR as usize] == 0
        && registers.flags.iter().all(|flag| *flag <= 1)
        && registers.fpcr & !FPCR_MASK == 0
        && registers.fpsr & !FPSR_MASK == 0
        && registers.pstate & !(1 << DIT | 1 << SSBS) == 0
        && [registers.supervisor, registers.caller] == [0; 2]
        && matches!(registers.exclusive_len, 0 | 1 | 2 | 4 | 8 | 16)
}

fn is_possible_file(file: &OpenFile) -> bool {
    let counts = match file.kind {
        Kind::Event { count, .. } => count < u64::MAX,
        _ => true,
    };
    counts && file.offset <= i64::MAX as u64
}

fn is_possible_pipe(pipe: &Pipe) -> bool {
    let counts = pipe.opened.iter().chain([&pipe.moves]).all(|count| *count < MANY);
    counts && pipe.capacity <= MOST_BYTES
}
