//! A program's processor and memory in a lane of an engine that many programs are on.
//!
//! While a lane is stopped, its kernel works on a [`Lane`] of the host: registers, what is going to change in memory, and
//! pieces of memory that were brought along because the kernel probably wants them. Whatever else it reads comes from the
//! engine. The changes of all stopped lanes are made together, before they go on. So kernels can be served on any number of
//! threads, and few transfers are for many lanes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::{Engine, EngineError, MemoryChange, RunControl, Stop};
use kvrm_linux::{Guest, MakeGuest};
use kvrm_mem::Permissions;

use super::super::plan::Machines;
use super::image::Image;

/// An engine that lanes are on, which one thread at a time uses.
pub(super) type SharedEngine = Mutex<Box<dyn Engine>>;

/// Locks an engine, or a lane. Somebody who panicked while they had it ends the run anyway.
pub(in super::super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lane as its kernel and those who drive it have it.
pub(super) type SharedLane = Arc<Mutex<Lane>>;

/// What a lane's kernel and those who drive it have in common.
pub(super) struct Lane {
    pub(super) state: CpuState,
    /// Instructions that the lane of the engine has executed, those of its supervisor included.
    executed: u64,
    vectors: Vectors,
    /// Where its memory is; nowhere yet, and zero, while its program is loaded.
    place: Option<(Arc<SharedEngine>, usize)>,
    /// What is not in that memory yet, in order.
    changes: Vec<MemoryChange>,
    /// Pieces of that memory.
    known: Vec<(u64, Vec<u8>)>,
}

/// Vector registers, which many system calls leave alone.
enum Vectors {
    /// As the engine has them.
    OnEngine,
    /// These, which the engine has not got yet.
    New(Box<VectorState>),
}

impl Lane {
    /// A lane that a program is about to be loaded for.
    pub(super) fn new() -> SharedLane {
        Arc::new(Mutex::new(Lane {
            state: CpuState::new(),
            executed: 0,
            vectors: Vectors::New(Box::new(VectorState::new())),
            place: None,
            changes: Vec::new(),
            known: Vec::new(),
        }))
    }

    /// Makes its changes those of an image, and not of zeros.
    pub(super) fn change_from(&mut self, image: &Image) {
        self.changes = image.difference(&self.changes);
    }

    /// Says where it runs from now on. Memory is the image there, and its changes are changes of that.
    pub(super) fn settle(&mut self, engine: &Arc<SharedEngine>, lane: usize) {
        self.place = Some((engine.clone(), lane));
    }

    /// Takes over what the engine has after the lane has stopped.
    pub(super) fn stopped(&mut self, state: CpuState, executed: u64, known: Vec<(u64, Vec<u8>)>) {
        (self.state, self.executed, self.known) = (state, executed, known);
    }

    /// Changes its memory.
    pub(super) fn write(&mut self, addr: u64, bytes: Vec<u8>) {
        self.changes.push(MemoryChange::Write { addr, bytes });
    }

    /// Takes what the engine is to get.
    pub(super) fn take_changes(&mut self) -> Vec<MemoryChange> {
        self.known.clear();
        std::mem::take(&mut self.changes)
    }

    /// Takes changes back that there was no room for.
    pub(super) fn put_back(&mut self, changes: Vec<MemoryChange>) {
        self.changes = changes;
    }

    /// The same of vector registers, if they have changed.
    pub(super) fn take_vectors(&mut self) -> Option<Box<VectorState>> {
        match std::mem::replace(&mut self.vectors, Vectors::OnEngine) {
            Vectors::OnEngine => None,
            Vectors::New(vectors) => Some(vectors),
        }
    }

    /// Reads what there was before the changes.
    fn read_stored(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        let Some((engine, lane)) = &self.place else {
            bytes.fill(0);
            return Ok(());
        };
        let end = addr + bytes.len() as u64;
        let has =
            |(start, piece): &&(u64, Vec<u8>)| *start <= addr && end <= start + piece.len() as u64;
        match self.known.iter().find(has) {
            Some((start, piece)) => {
                let from = (addr - start) as usize;
                bytes.copy_from_slice(&piece[from..from + bytes.len()]);
                Ok(())
            }
            None => lock(engine).read_memory(*lane, addr, bytes),
        }
    }
}

/// Makes a change in a part of memory.
pub(super) fn make(change: &MemoryChange, addr: u64, bytes: &mut [u8]) {
    let (start, len) = match change {
        MemoryChange::Write { addr, bytes } => (*addr, bytes.len() as u64),
        MemoryChange::Discard { addr, len } => (*addr, *len),
        MemoryChange::Protect { .. } => return,
    };
    let (first, end) = (start.max(addr), (start + len).min(addr + bytes.len() as u64));
    if first >= end {
        return;
    }
    let part = &mut bytes[(first - addr) as usize..(end - addr) as usize];
    match change {
        MemoryChange::Write { bytes, .. } => {
            part.copy_from_slice(&bytes[(first - start) as usize..(end - start) as usize]);
        }
        MemoryChange::Discard { .. } | MemoryChange::Protect { .. } => part.fill(0),
    }
}

/// A lane as its kernel has it. When the kernel lets it go, the program goes on elsewhere.
pub(super) struct LaneGuest(SharedLane);

impl LaneGuest {
    /// That lane.
    pub(super) fn of(lane: &SharedLane) -> LaneGuest {
        LaneGuest(Arc::clone(lane))
    }

    /// Gives a program this lane at first. A program that another one is executed instead of gets a machine of its own.
    pub(super) fn make_first(lane: &SharedLane, machines: &Machines) -> MakeGuest {
        let (first, others) = (Mutex::new(Some(Arc::clone(lane))), machines.on_host());
        Arc::new(move || match lock(&first).take() {
            Some(lane) => Ok(Box::new(LaneGuest(lane))),
            None => others.make(),
        })
    }
}

impl Guest for LaneGuest {
    fn registers(&self) -> Result<CpuState, EngineError> {
        Ok(lock(&self.0).state)
    }

    fn set_registers(&mut self, state: &CpuState) -> Result<(), EngineError> {
        lock(&self.0).state = *state;
        Ok(())
    }

    fn executed(&self) -> Result<u64, EngineError> {
        Ok(lock(&self.0).executed)
    }

    fn vectors(&self) -> Result<VectorState, EngineError> {
        let lane = lock(&self.0);
        match (&lane.vectors, &lane.place) {
            (Vectors::New(vectors), _) => Ok(**vectors),
            (Vectors::OnEngine, Some((engine, number))) => lock(engine).vectors(*number),
            (Vectors::OnEngine, None) => unreachable!("a lane has vector registers from the start"),
        }
    }

    fn set_vectors(&mut self, vectors: &VectorState) -> Result<(), EngineError> {
        lock(&self.0).vectors = Vectors::New(Box::new(*vectors));
        Ok(())
    }

    fn read(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        let lane = lock(&self.0);
        lane.read_stored(addr, bytes)?;
        lane.changes.iter().for_each(|change| make(change, addr, bytes));
        Ok(())
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        lock(&self.0).write(addr, bytes.to_vec());
        Ok(())
    }

    fn protect(
        &mut self,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> Result<(), EngineError> {
        lock(&self.0).changes.push(MemoryChange::Protect { addr, len, permissions });
        Ok(())
    }

    fn discard(&mut self, addr: u64, len: u64) -> Result<(), EngineError> {
        lock(&self.0).changes.push(MemoryChange::Discard { addr, len });
        Ok(())
    }

    fn run(&mut self, _: u64, _: &RunControl) -> Result<(Option<Stop>, u64), EngineError> {
        unreachable!("lanes are run together")
    }

    fn fork(&mut self) -> Result<Box<dyn Guest>, EngineError> {
        unreachable!("a program is moved before it makes a second process")
    }
}
