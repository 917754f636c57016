//! All that a kernel has, and how it comes into a snapshot and out of it.

use std::collections::{BTreeMap, BTreeSet};

use kvrm_engine::EngineError;
use kvrm_random::Random;
use serde::{Deserialize, Serialize};

use super::{About, Resume, Snapshot, SnapshotError};
use crate::clock::Clock;
use crate::console;
use crate::files::Files;
use crate::guest::MakeGuest;
use crate::kernel::{Held, Kernel, Numbers};
use crate::locks::Locks;
use crate::memory::{self, Budget, Memory};
use crate::moving::{Move, Reason};
use crate::process::{Pid, Process, Status};
use crate::report::Report;
use crate::scheduler::Turns;
use crate::shared::Segments;
use crate::thread::{Thread, Tid};
use crate::uses::Strings;
use crate::vfs::{self, NodeId, Vfs};

/// Everything of a kernel that goes on elsewhere.
#[derive(Serialize, Deserialize)]
pub(super) struct State {
    pub(super) processes: BTreeMap<Pid, Process>,
    pub(super) threads: BTreeMap<Tid, Thread>,
    pub(super) memories: BTreeMap<u32, SavedHeld>,
    pub(super) memory_hit: bool,
    pub(super) segments: Segments,
    pub(super) vfs: vfs::Saved,
    pub(super) files: Files,
    pub(super) locks: Locks,
    pub(super) console: console::Saved,
    pub(super) clock: [u64; 2],
    pub(super) seed: u64,
    pub(super) report: Report,
    pub(super) turns: Turns,
    pub(super) happened: u64,
    pub(super) numbers: Numbers,
    pub(super) first_status: Option<Status>,
    pub(super) foreground: Pid,
    pub(super) strings: Strings,
}

/// A [`Held`].
#[derive(Serialize, Deserialize)]
pub(super) struct SavedHeld {
    pub(super) memory: memory::Saved,
    pub(super) users: u32,
    pub(super) files: BTreeSet<NodeId>,
}

impl Kernel {
    /// Keeps the run as it is between two calls of [`run_until`](Kernel::run_until). The program was called like that, with
    /// these arguments and this environment. It must not have used its input, which a snapshot does not have.
    pub fn save(
        &mut self,
        program: &[u8],
        args: &[Vec<u8>],
        env: &[Vec<u8>],
    ) -> Result<Snapshot, SnapshotError> {
        self.save_all_vectors()?;
        let memories: Vec<u32> = self.memories.keys().copied().collect();
        memories.into_iter().for_each(|number| self.sync_shared(number));
        self.note_uses(self.report.instructions);
        let uses = self.first_uses();
        let args_used = uses.as_ref().map(|uses| &uses.args[..]);
        let env_used = uses.as_ref().map(|uses| &uses.env[..]);
        // What was not watched may have been used.
        let with_use = |strings: &[Vec<u8>], uses: Option<&[Option<u64>]>| {
            let is_used = |at: usize| {
                let first = uses.and_then(|uses| uses.get(at));
                first.is_none_or(|first| first.is_some())
            };
            let with_use = |(at, string): (usize, &Vec<u8>)| (string.clone(), is_used(at));
            strings.iter().enumerate().map(with_use).collect()
        };
        let about = |pages, given, is_single, instructions| About {
            program: program.to_vec(),
            args: with_use(args, args_used),
            env: with_use(env, env_used),
            given,
            instructions,
            pages,
            is_single,
        };
        let used = self.strings_used();
        let Kernel {
            make_guest: _,
            make_first: _,
            processes,
            threads,
            memories,
            budget,
            segments,
            vfs,
            files,
            locks,
            console,
            clock,
            random,
            limits: _,
            report,
            strace: _,
            hook: _,
            turns,
            happened,
            numbers,
            first_status,
            foreground,
            strings,
            uses: _,
        } = self;
        let saved = memories.iter().map(|(number, held)| {
            let Held { memory, users, loaded: _, files } = held;
            let (memory, files) = (memory.save()?, files.clone());
            Ok((*number, SavedHeld { memory, users: *users, files }))
        });
        let state = State {
            memories: saved.collect::<Result<_, SnapshotError>>()?,
            memory_hit: budget.was_hit(),
            processes: processes.clone(),
            threads: threads.clone(),
            segments: segments.clone(),
            vfs: vfs.save()?,
            files: files.clone(),
            locks: locks.clone(),
            console: console.save().ok_or(SnapshotError::HostStreams)?,
            clock: clock.virtual_time().ok_or(SnapshotError::HostTime)?,
            seed: random.seed(),
            report: report.clone(),
            turns: turns.clone(),
            happened: *happened,
            numbers: numbers.clone(),
            first_status: *first_status,
            foreground: *foreground,
            strings: Strings { used, ..strings.clone() },
        };
        let pages = state.memories.values().map(|held| held.memory.pages()).sum();
        let is_single = state.threads.len() == 1 && state.memories.len() == 1;
        let about = about(pages, vfs.given(), is_single, report.instructions);
        let bytes = postcard::to_stdvec(&state).expect("memory takes everything");
        Ok(Snapshot::new(about, &bytes))
    }

    /// Goes on from a snapshot.
    pub fn resume(snapshot: &Snapshot, resume: Resume) -> Result<Kernel, SnapshotError> {
        let Resume { make_guest, mut make_first, mut console, limits, given, strace, hook } =
            resume;
        let bytes = &snapshot.bytes[snapshot.state..];
        let (state, left) = postcard::take_from_bytes::<State>(bytes)
            .map_err(|_| SnapshotError::Damaged("the state of the program"))?;
        if !left.is_empty() {
            return Err(SnapshotError::Damaged("there is something behind its end"));
        }
        state.check(&snapshot.about)?;
        let State {
            processes,
            threads,
            memories: saved,
            memory_hit,
            segments,
            vfs,
            files,
            locks,
            console: printed,
            clock,
            seed,
            mut report,
            turns,
            happened,
            numbers,
            first_status,
            foreground,
            strings,
        } = state;
        let may_open = |process: &Process| process.resources.open_files_at_most();
        if processes.values().any(|process| may_open(process) > limits.open_files.into()) {
            return Err(SnapshotError::OpenFileLimit);
        }
        let in_files = vfs::Limits { bytes: limits.file_bytes, nodes: limits.files };
        let vfs = Vfs::restore(vfs, given, in_files)?;
        let mut leave = |make_first: &mut Option<MakeGuest>, reason| {
            let instructions = report.instructions;
            report.moved = make_first.take().map(|_| Move { instructions, reason });
        };
        if threads.len() != 1 || saved.len() != 1 {
            // It has left the machine for one thread before it came here.
            leave(&mut make_first, Reason::Second);
        }
        let budget = Budget::new(limits.memory);
        let mut memories = BTreeMap::new();
        for (number, SavedHeld { memory, users, files }) in saved {
            let first = make_first.as_ref().map(|make| Memory::restore(&memory, make()?, &budget));
            let memory = match first {
                Some(Err(SnapshotError::Host(EngineError::DeviceFull(_)))) => {
                    leave(&mut make_first, Reason::Room);
                    Memory::restore(&memory, make_guest()?, &budget)?
                }
                Some(restored) => restored?,
                None => Memory::restore(&memory, make_guest()?, &budget)?,
            };
            memories.insert(number, Held { memory, users, loaded: None, files });
        }
        budget.set_hit(memory_hit);
        console.go_on(printed).map_err(SnapshotError::Output)?;
        Ok(Kernel {
            make_guest,
            make_first,
            processes,
            threads,
            memories,
            budget,
            segments,
            vfs,
            files,
            locks,
            console,
            clock: Clock::at(clock),
            random: Random::new(seed),
            limits,
            report,
            strace,
            hook,
            turns,
            happened,
            numbers,
            first_status,
            foreground,
            strings,
            uses: None,
        })
    }
}
