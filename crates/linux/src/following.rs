//! How far a run goes in the same way with other arguments and variables, though it uses them.
//!
//! A program that copies its arguments, or looks how long they are, has used them, and still does what it would do with others. So
//! a run is [followed](Kernel::follow) from the first use of strings on, with a [`Derivation`] of their bytes, until it does
//! something that it would not do with those of another run, or until the kernel would have to know. A run with strings
//! of its own then goes on from a copy of one that was brought to such a point: it is [given](Kernel::give_followed) whatever it
//! would have computed from them by then.

use kvrm_a64::state::{CpuState, V, VARS, X};
use kvrm_engine::{EngineError, RunControl, Stop};
use kvrm_ir::derive::{Derivation, Holder, Placements};

use crate::kernel::{FIRST, Kernel};
use crate::scheduler::Next;
use crate::thread::Tid;
use crate::uses::Uses;

/// Registers that system calls take: their arguments and their number.
const OF_CALLS: [u32; 7] = [0, 1, 2, 3, 4, 5, 8];

/// Instructions that a program executes while one value is computed, about.
const COST: u64 = 16;

/// A run that was followed.
pub struct Followed {
    derivation: Derivation,
    /// Strings whose bytes were given, by their place among arguments and variables.
    strings: Vec<usize>,
}

/// What another run would have computed.
pub struct Computed(Vec<u64>);

impl Followed {
    /// After how many instructions no other run is the same.
    pub fn end(&self) -> u64 {
        self.derivation.end().unwrap_or(0)
    }

    /// About as many instructions as it takes the time of to compute what another run has.
    pub fn cost(&self) -> u64 {
        COST * self.derivation.len() as u64
    }

    /// Bytes that it takes, about.
    pub fn size(&self) -> usize {
        self.derivation.size()
    }

    /// True if a string, by its place among arguments and variables, is one of those that others may have otherwise.
    pub fn has(&self, string: usize) -> bool {
        self.strings.binary_search(&string).is_ok()
    }

    /// What a run with these strings computes, and after how many instructions it parts from the one that was followed.
    pub fn compute(&self, args: &[Vec<u8>], env: &[Vec<u8>]) -> (Computed, u64) {
        let all: Vec<&Vec<u8>> = args.iter().chain(env).collect();
        let given: Vec<u8> = self.strings.iter().flat_map(|string| all[*string]).copied().collect();
        let (values, parts) = self.derivation.values(&given);
        (Computed(values), parts)
    }

    /// The first moment from then on at which a run may part.
    pub fn next_check(&self, from: u64) -> u64 {
        self.derivation.next_check(from).unwrap_or(from)
    }

    /// Where a run has what it computed, after so many instructions.
    pub fn placements(&self, instructions: u64) -> Placements {
        self.derivation.placements(instructions)
    }
}

impl Kernel {
    /// Runs for as long as a run with these arguments and variables would do the same, which differ from its own, but not in how
    /// long they are. It has not used those that differ. `None` if it was cancelled. Only copies of the run can go on.
    pub fn follow(
        &mut self,
        args: &[Vec<u8>],
        env: &[Vec<u8>],
        control: &RunControl,
    ) -> Result<Option<Followed>, EngineError> {
        let (mut derivation, mut strings) = (Derivation::default(), Vec::new());
        let own = &self.processes[&FIRST].program;
        let more = self.strings.more;
        let places = self.strings.args.iter().skip(more).chain(&self.strings.env);
        let own = own.args.iter().skip(more).chain(&own.env);
        for (index, ((place, own), other)) in
            places.zip(own).zip(args.iter().chain(env)).enumerate().skip(1)
        {
            if own == other {
                continue;
            }
            strings.push(index);
            for ((addr, own), other) in place.clone().zip(own).zip(other) {
                derivation.give(addr, *own, *other);
            }
        }
        self.uses = Some(Uses::of(self.strings.args.len() + self.strings.env.len()));
        let is_whole = self.follow_to_end(&mut derivation, control)?;
        Ok(is_whole.then_some(Followed { derivation, strings }))
    }

    /// Runs until the derivation has come to its end; false if it was cancelled.
    fn follow_to_end(
        &mut self,
        derivation: &mut Derivation,
        control: &RunControl,
    ) -> Result<bool, EngineError> {
        let mut expected = None;
        loop {
            let Next::Run { instructions } = self.next(u64::MAX, control)? else {
                derivation.finish(self.report.instructions.saturating_sub(1));
                return Ok(!control.is_cancelled());
            };
            let (tid, before) = (self.turns.last, self.report.instructions);
            if !self.is_as_expected(tid, expected) {
                derivation.finish(before.saturating_sub(1));
                return Ok(true);
            }
            let guest = &mut self.held_of(tid).memory.guest;
            let ran = guest.run_deriving(instructions, before, derivation, control)?;
            let Some((stop, executed)) = ran else {
                derivation.finish(before);
                return Ok(true);
            };
            if derivation.end().is_some() || stop.is_none() {
                return Ok(stop.is_some());
            }
            let mut registers = guest.registers()?;
            let last = (before + executed).saturating_sub(1);
            let is_call = matches!(stop, Some(Stop::Syscall { .. }));
            if is_call && OF_CALLS.iter().any(|x| derivation.has(Holder::Register(X.id, *x))) {
                derivation.finish(last);
                return Ok(true);
            }
            self.stopped(stop, executed)?;
            if !self.note_accesses(tid, last, derivation) {
                derivation.finish(last);
                return Ok(true);
            }
            if is_call {
                registers.x[0] = self.thread(tid).registers.x[0];
                derivation.overwrite(last, Holder::Register(X.id, 0));
            }
            expected = Some(registers);
        }
    }

    /// True if the thread is the only one, and nothing but its own instructions has changed its registers.
    fn is_as_expected(&self, tid: Tid, expected: Option<CpuState>) -> bool {
        let is_alone = self.threads.len() == 1 && self.processes.len() == 1 && tid == FIRST;
        is_alone && expected.is_none_or(|expected| self.threads[&tid].registers == expected)
    }

    /// Notes what the kernel has done with memory since the thread stopped; false if it has looked at something that other
    /// runs may have otherwise.
    fn note_accesses(&mut self, tid: Tid, at: u64, derivation: &mut Derivation) -> bool {
        let uses = self.uses.as_ref().expect("it was set");
        if uses.has_any() || !self.threads.contains_key(&tid) || self.threads.len() > 1 {
            return false;
        }
        let number = self.process_of(tid).memory;
        if number != self.strings.memory {
            return false;
        }
        let accesses = self.held_of(tid).memory.guest.take_accesses();
        accesses.written.into_iter().for_each(|bytes| derivation.overwrite_memory(at, bytes));
        !accesses.others
    }

    /// Gives a copy of the run that was followed, which has come as far as the placements say, the arguments, variables and
    /// whatever else a run with these has there.
    pub fn give_followed(
        &mut self,
        args: &[Vec<u8>],
        env: &[Vec<u8>],
        followed: &Followed,
        placements: &Placements,
        Computed(values): &Computed,
    ) -> Result<(), EngineError> {
        let more = self.strings.more;
        self.set_strings(args, env, |place| {
            !place.checked_sub(more).is_some_and(|string| followed.has(string))
        })?;
        let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
        let thread = self.threads.get_mut(&FIRST).expect("it was the only one");
        placements.for_each(values, |holder, value| match holder {
            Holder::Memory(addr) => match pieces.last_mut() {
                Some((start, bytes)) if *start + bytes.len() as u64 == addr => {
                    bytes.push(value as u8);
                }
                _ => pieces.push((addr, vec![value as u8])),
            },
            Holder::Register(file, slot) if file == V.id => thread.vectors.set_half(slot, value),
            Holder::Register(_, slot) => thread.registers.x[slot as usize] = value,
            Holder::Variable(number) => {
                thread.registers.set_var(VARS[usize::from(number)].0, value);
            }
            Holder::Flags => {
                thread.registers.flags = [0, 1, 2, 3].map(|bit| (value >> bit & 1) as u8);
            }
        });
        let memory = &mut self.held_of(FIRST).memory;
        pieces.into_iter().try_for_each(|(addr, bytes)| memory.guest.write(addr, &bytes))
    }
}
