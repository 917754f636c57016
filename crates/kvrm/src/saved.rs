//! The state of a double-buffered machine when a run began.

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::Engine;

use crate::{Error, Result};

/// Bytes compared and restored at a time.
const PIECE: usize = 4096;
/// Bytes read at a time.
const AT_ONCE: usize = 1 << 20;

/// Registers and memory, kept on the host for every engine.
#[derive(Default)]
pub(crate) struct Saved {
    memory: Vec<u8>,
    states: Vec<CpuState>,
    vectors: Vec<VectorState>,
}

impl Saved {
    /// Saves the current state of the lanes.
    pub(crate) fn save(&mut self, engine: &dyn Engine) -> Result<()> {
        let size = engine.config().memory_size;
        let too_large = |_| Error::NoRoomForCopy(size);
        let len = usize::try_from(size).map_err(|_| Error::NoRoomForCopy(size))?;
        self.memory.try_reserve_exact(len - self.memory.len()).map_err(too_large)?;
        self.memory.resize(len, 0);
        engine.read_memory(0, 0, &mut self.memory)?;
        self.states.clear();
        self.vectors.clear();
        let lanes = 0..engine.config().lanes;
        engine.visit_states(lanes.clone(), &mut |state| self.states.push(*state))?;
        engine.visit_vectors(lanes, &mut |vectors| self.vectors.push(*vectors))?;
        Ok(())
    }

    /// Restores the state of the lanes. It writes only what has changed, because engines discard translations
    /// of memory that the host writes.
    pub(crate) fn restore(&self, engine: &mut dyn Engine) -> Result<()> {
        let mut now = vec![0; self.memory.len().min(AT_ONCE)];
        for (start, saved) in (0u64..).step_by(AT_ONCE).zip(self.memory.chunks(AT_ONCE)) {
            let now = &mut now[..saved.len()];
            engine.read_memory(0, start, now)?;
            for (at, (was, is)) in saved.chunks(PIECE).zip(now.chunks(PIECE)).enumerate() {
                if was != is {
                    engine.write_memory(0, start + (at * PIECE) as u64, was)?;
                }
            }
        }
        for (lane, state) in self.states.iter().enumerate() {
            engine.set_state(lane, state)?;
        }
        let mut vectors = self.vectors.iter();
        let restore = &mut |now: &mut VectorState| *now = *vectors.next().expect("one a lane");
        Ok(engine.change_vectors(0..self.vectors.len(), restore)?)
    }
}
