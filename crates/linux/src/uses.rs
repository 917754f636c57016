//! When a run first uses what is given to it: its arguments, its environment, its standard input.
//!
//! Until then, runs that differ in nothing else are the same run. A run that is [watched](Kernel::watch) does what it does
//! anyway, and tells afterwards how many instructions it had completed when it first used each thing
//! ([`FirstUses`]). Another run can then be brought [that far](Kernel::run_until), copied, and given the others'
//! things ([`Kernel::give_strings`]).
//!
//! The bytes of arguments and variables are watched in memory. They count as used by whoever reads or writes one of them, by
//! `/proc`, and when their process is forked, because a copy of them is not watched. An instruction that uses something has
//! not been executed at that point; nor has the one that made a system call which did.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use kvrm_engine::EngineError;
use serde::{Deserialize, Serialize};

use crate::kernel::{FIRST, Kernel};
use crate::process::Program;

/// Instructions that a run had completed when it first used what it was given; `None` if it never did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstUses {
    /// Its arguments. Whatever loads a program may have used the first, its name.
    pub args: Vec<Option<u64>>,
    /// The variables of its environment.
    pub env: Vec<Option<u64>>,
    /// Its standard input.
    pub input: Option<u64>,
}

/// Where arguments and environment are in the memory of the first process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Strings {
    /// The number of the memory.
    pub(crate) memory: u32,
    /// The arguments that the process has, which begin with others if its program is a script.
    pub(crate) args: Vec<Range<u64>>,
    pub(crate) env: Vec<Range<u64>>,
    /// How many arguments there are more than were given.
    pub(crate) more: usize,
    /// Those that were used before a snapshot was made, with which the run began: arguments, then variables. None are there
    /// if it did not begin so.
    pub(crate) used: Vec<bool>,
}

/// What is known of a run that is watched.
#[derive(Default)]
pub(crate) struct Uses {
    /// By the place among all strings.
    strings: Vec<Option<u64>>,
    input: Option<u64>,
    /// Somebody has asked `/proc` for strings.
    asked: Cell<bool>,
}

impl Uses {
    /// Of a run with so many strings, none of which is watched.
    pub(crate) fn of(strings: usize) -> Uses {
        Uses { strings: vec![None; strings], ..Uses::default() }
    }

    /// True if something was used.
    pub(crate) fn has_any(&self) -> bool {
        self.asked.get() || self.has_input() || self.strings.iter().any(Option::is_some)
    }

    /// True if the input was used.
    pub(crate) fn has_input(&self) -> bool {
        self.input.is_some()
    }

    /// Notes that somebody asks for arguments or environment otherwise than by their bytes.
    pub(crate) fn ask_for_strings(&self) {
        self.asked.set(true);
    }
}

impl Kernel {
    /// Finds out from now on when what the run was given is first used; false if its machine cannot tell. The program has
    /// been loaded, and has executed nothing, or goes on from a snapshot. What was used before that counts as used at once.
    pub fn watch(&mut self) -> Result<bool, EngineError> {
        let Strings { memory, args, env, more: _, used } = &self.strings;
        let ranges: Vec<_> = args.iter().chain(env).cloned().collect();
        let held = self.memories.get_mut(memory).expect("the program is loaded");
        if !held.memory.guest.watch(&ranges)? {
            return Ok(false);
        }
        let was_used = |index| used.get(index).is_some_and(|used| *used).then_some(0);
        let strings = (0..ranges.len()).map(was_used).collect();
        self.uses = Some(Uses { strings, ..Uses::default() });
        Ok(true)
    }

    /// When things were first used, of a run that is watched.
    pub fn first_uses(&self) -> Option<FirstUses> {
        let uses = self.uses.as_ref()?;
        let (args, env) = uses.strings.split_at(self.strings.args.len());
        // The name of a script is not there.
        let given = args.get(self.strings.more + 1..).unwrap_or_default();
        let args = [Some(0)].into_iter().chain(given.iter().copied()).collect();
        Some(FirstUses { args, env: env.to_vec(), input: uses.input })
    }

    /// Which strings were used, as [`Strings`] has it; all, if the run is not watched.
    pub(crate) fn strings_used(&self) -> Vec<bool> {
        let Strings { args, env, .. } = &self.strings;
        match &self.uses {
            Some(uses) => uses.strings.iter().map(Option::is_some).collect(),
            None => vec![true; args.len() + env.len()],
        }
    }

    /// Notes what a memory's machine has found out in its last run, before which so many instructions had been completed, and
    /// what others have used since it ran.
    pub(crate) fn note_uses(&mut self, before: u64) {
        let Some(uses) = &mut self.uses else { return };
        let here = self.report.instructions.saturating_sub(1);
        if let Some(held) = self.memories.get_mut(&self.strings.memory) {
            for (string, instructions) in held.memory.guest.take_touched() {
                let point = instructions.map_or(here, |instructions| before + instructions);
                uses.strings[string].get_or_insert(point);
            }
        }
        if uses.asked.take() {
            uses.strings.iter_mut().for_each(|string| *string = string.or(Some(here)));
        }
        if self.console.was_used() {
            uses.input.get_or_insert(here);
        }
    }

    /// Notes that all arguments and variables are used.
    pub(crate) fn use_strings(&self) {
        self.uses.iter().for_each(Uses::ask_for_strings);
    }

    /// Gives the run other arguments and another environment, which are as long as those it has, and differ from these in
    /// what has not been used so far.
    pub fn give_strings(&mut self, args: &[Vec<u8>], env: &[Vec<u8>]) -> Result<(), EngineError> {
        self.set_strings(args, env, |_| true)
    }

    /// The same. `writes` says of a string, by its place in memory among others, whether it is written there.
    pub(crate) fn set_strings(
        &mut self,
        args: &[Vec<u8>],
        env: &[Vec<u8>],
        writes: impl Fn(usize) -> bool,
    ) -> Result<(), EngineError> {
        let more = self.strings.more;
        let process = self.processes.get_mut(&FIRST);
        // A program that has run another one without using them has them no longer.
        let Some(process) = process.filter(|process| process.memory == self.strings.memory) else {
            return Ok(());
        };
        let Some(held) = self.memories.get_mut(&self.strings.memory) else { return Ok(()) };
        let old = Arc::clone(&process.program);
        let mut program = Program { env: env.to_vec(), ..(*old).clone() };
        program.args[more + 1..].clone_from_slice(&args[1..]);
        let places = self.strings.args.iter().chain(&self.strings.env);
        let strings = program.args.iter().chain(&program.env);
        let known = old.args.iter().chain(&old.env);
        for (index, ((place, string), known)) in places.zip(strings).zip(known).enumerate() {
            assert_eq!(string.len(), known.len(), "strings are as long as those before");
            if string != known && writes(index) {
                held.memory.guest.write(place.start, string)?;
            }
        }
        process.program = Arc::new(program);
        Ok(())
    }
}
