//! A process's processor and memory, on an engine.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::{Engine, EngineError, RunControl, RunRequest, Stop};
use kvrm_ir::derive::Derivation;
use kvrm_linux::{Accesses, Guest};
use kvrm_mem::{Frozen, Permissions};

/// Machines that nobody needs at the moment and that are kept for the next, at the most.
const MOST_SPARE: usize = 64;

/// An engine with one lane.
pub(super) struct EngineGuest {
    /// None while it is being dropped.
    engine: Option<Box<dyn Engine>>,
    /// What its memory begins with, if others begin with the same.
    family: Option<Arc<Family>>,
    /// Some of its memory is watched.
    is_watched: bool,
    /// Watched ranges that somebody else than the program has accessed.
    touched: RefCell<Vec<usize>>,
    /// What others have done with bytes that a derivation follows, if one does.
    accesses: RefCell<Option<Accesses>>,
    /// Instructions that it had executed before its last run.
    before: u64,
}

/// Machines that begin with the same memory.
struct Family {
    frozen: Arc<Frozen>,
    /// Those that are as they were at the beginning.
    spare: Mutex<Vec<Box<dyn Engine>>>,
}

impl Family {
    fn spare(&self) -> MutexGuard<'_, Vec<Box<dyn Engine>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EngineGuest {
    pub(super) fn new(engine: Box<dyn Engine>) -> EngineGuest {
        EngineGuest {
            engine: Some(engine),
            family: None,
            is_watched: false,
            touched: RefCell::default(),
            accesses: RefCell::default(),
            before: 0,
        }
    }

    fn engine(&self) -> &dyn Engine {
        self.engine.as_deref().expect("it is there until it is dropped")
    }

    fn engine_mut(&mut self) -> &mut Box<dyn Engine> {
        self.engine.as_mut().expect("it is there until it is dropped")
    }

    /// Notes that somebody else than the program does something with its memory, if a derivation follows some of it.
    fn note(&self, addr: u64, len: u64, is_write: bool) {
        let mut accesses = self.accesses.borrow_mut();
        let Some(accesses) = accesses.as_mut() else { return };
        let memory = self.engine().mapped_memory(LANE).expect("it runs there");
        if memory.watched(addr, len).is_empty() {
            return;
        }
        match is_write {
            true => accesses.written.push(addr..addr + len),
            false => accesses.others = true,
        }
    }

    /// Notes that somebody else than the program accesses its memory.
    fn touch(&self, addr: u64, len: u64) {
        if let Some(memory) = self.engine().mapped_memory(LANE).filter(|_| self.is_watched) {
            self.touched.borrow_mut().extend(memory.watched(addr, len));
        }
    }
}

/// The only lane.
const LANE: usize = 0;

impl Guest for EngineGuest {
    fn registers(&self) -> Result<CpuState, EngineError> {
        self.engine().state(LANE)
    }

    fn set_registers(&mut self, state: &CpuState) -> Result<(), EngineError> {
        self.engine_mut().set_state(LANE, state)
    }

    fn executed(&self) -> Result<u64, EngineError> {
        Ok(self.engine().status(LANE)?.count)
    }

    fn vectors(&self) -> Result<VectorState, EngineError> {
        self.engine().vectors(LANE)
    }

    fn set_vectors(&mut self, vectors: &VectorState) -> Result<(), EngineError> {
        self.engine_mut().set_vectors(LANE, vectors)
    }

    fn read(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.touch(addr, bytes.len() as u64);
        self.note(addr, bytes.len() as u64, false);
        self.engine().read_memory(LANE, addr, bytes)
    }

    fn read_text(&self, addr: u64, bytes: &mut [u8]) -> Result<Option<usize>, EngineError> {
        self.engine().read_memory(LANE, addr, bytes)?;
        let end = bytes.iter().position(|byte| *byte == 0);
        let read = end.map_or(bytes.len(), |end| end + 1) as u64;
        self.touch(addr, read);
        self.note(addr, read, false);
        Ok(end)
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.touch(addr, bytes.len() as u64);
        self.note(addr, bytes.len() as u64, true);
        self.engine_mut().write_memory(LANE, addr, bytes)
    }

    fn protect(
        &mut self,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> Result<(), EngineError> {
        if permissions.contains(Permissions::EXECUTE) {
            self.touch(addr, len);
            self.note(addr, len, false);
        }
        self.engine_mut().protect(LANE, addr, len, permissions)
    }

    fn discard(&mut self, addr: u64, len: u64) -> Result<(), EngineError> {
        self.touch(addr, len);
        self.note(addr, len, true);
        self.engine_mut().discard(LANE, addr, len)
    }

    fn run(
        &mut self,
        instructions: u64,
        control: &RunControl,
    ) -> Result<(Option<Stop>, u64), EngineError> {
        self.run_to(instructions, &[], control)
    }

    fn run_to(
        &mut self,
        instructions: u64,
        addresses: &[u64],
        control: &RunControl,
    ) -> Result<(Option<Stop>, u64), EngineError> {
        let engine = self.engine.as_mut().expect("it is there until it is dropped");
        self.before = engine.status(LANE)?.count;
        engine.run(&RunRequest {
            max_cycles: instructions,
            breakpoints: addresses,
            single_launch: false,
            continues: false,
            control,
        })?;
        let status = engine.status(LANE)?;
        Ok((status.stop, status.count - self.before))
    }

    fn run_deriving(
        &mut self,
        instructions: u64,
        at: u64,
        derivation: &mut Derivation,
        control: &RunControl,
    ) -> Result<Option<(Option<Stop>, u64)>, EngineError> {
        self.accesses.borrow_mut().get_or_insert_default();
        let engine = self.engine_mut();
        let before = engine.status(LANE)?.count;
        let request = RunRequest {
            max_cycles: instructions,
            breakpoints: &[],
            single_launch: false,
            continues: false,
            control,
        };
        if engine.run_deriving(LANE, &request, at, derivation)?.is_none() {
            return Ok(None);
        }
        let status = engine.status(LANE)?;
        Ok(Some((status.stop, status.count - before)))
    }

    fn take_accesses(&mut self) -> Accesses {
        self.accesses.get_mut().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn fork(&mut self) -> Result<Box<dyn Guest>, EngineError> {
        if self.family.is_none() {
            self.freeze()?;
        }
        let family = Arc::clone(self.family.as_ref().expect("it was just frozen"));
        let spare = family.spare().pop();
        let mut engine = match spare {
            Some(engine) => engine,
            None => self.engine().sibling(LANE)?,
        };
        let memory = self.engine().mapped_memory(LANE).expect("it was frozen");
        if memory.differs().next().is_some() {
            engine.copy_memory(LANE, memory)?;
        }
        let mut guest = EngineGuest::new(engine);
        guest.family = Some(family);
        Ok(Box::new(guest))
    }

    fn freeze(&mut self) -> Result<(), EngineError> {
        let frozen = self.engine_mut().freeze_memory(LANE)?;
        if self.family.as_ref().is_none_or(|family| !Arc::ptr_eq(&family.frozen, &frozen)) {
            self.family = Some(Arc::new(Family { frozen, spare: Mutex::default() }));
        }
        Ok(())
    }

    fn watch(&mut self, ranges: &[Range<u64>]) -> Result<bool, EngineError> {
        if self.engine().mapped_memory(LANE).is_none() {
            return Ok(false);
        }
        self.engine_mut().watch_memory(LANE, ranges.to_vec())?;
        self.is_watched = true;
        Ok(true)
    }

    fn take_touched(&mut self) -> Vec<(usize, Option<u64>)> {
        let before = self.before;
        let by_guest = self.engine_mut().take_touched(LANE).into_iter();
        let by_guest = by_guest.map(|(range, count)| (range, Some(count - before)));
        by_guest.chain(self.touched.take().into_iter().map(|range| (range, None))).collect()
    }
}

/// A machine that others may begin with goes back to what it began with.
impl Drop for EngineGuest {
    fn drop(&mut self) {
        let (Some(mut engine), Some(family)) = (self.engine.take(), self.family.take()) else {
            return;
        };
        let has_room = family.spare().len() < MOST_SPARE;
        if has_room && engine.reset(LANE..LANE + 1).is_ok() {
            family.spare().push(engine);
        }
    }
}
