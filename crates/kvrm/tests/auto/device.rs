//! Devices for `auto` that are not what they should be.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kvrm::EngineKind;
use kvrm::linux::Device;
use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::{
    Config, Engine, EngineError, EvalEngine, LaneStatus, MemoryChange, Piece, RunControl,
    RunRequest,
};
use kvrm_mem::Permissions;

/// What a device does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// What it should.
    Works,
    /// It cannot be opened.
    IsMissing,
    /// It is lost when lanes have run so many times.
    Fails(u64),
    /// Its lanes make no progress.
    Hangs,
}

/// A device whose engines are evaluators, and how often their lanes have run.
pub(crate) fn device(manner: Manner) -> (Device, Arc<AtomicU64>) {
    let advances = Arc::new(AtomicU64::new(0));
    let counter = advances.clone();
    let build = move |config: Config| -> Result<Box<dyn Engine>, EngineError> {
        if manner == Manner::IsMissing {
            return Err(EngineError::Device("there is no such device".into()));
        }
        let (inner, advances) = (EvalEngine::new(config)?, counter.clone());
        Ok(Box::new(Odd { inner, manner, advances }))
    };
    (Device::new(EngineKind::Wgpu, build), advances)
}

struct Odd {
    inner: EvalEngine,
    manner: Manner,
    advances: Arc<AtomicU64>,
}

impl Engine for Odd {
    fn name(&self) -> &'static str {
        "wgpu"
    }

    fn config(&self) -> &Config {
        self.inner.config()
    }

    fn state(&self, lane: usize) -> Result<CpuState, EngineError> {
        self.inner.state(lane)
    }

    fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError> {
        self.inner.set_state(lane, state)
    }

    fn vectors(&self, lane: usize) -> Result<VectorState, EngineError> {
        self.inner.vectors(lane)
    }

    fn set_vectors(&mut self, lane: usize, vectors: &VectorState) -> Result<(), EngineError> {
        self.inner.set_vectors(lane, vectors)
    }

    fn status(&self, lane: usize) -> Result<LaneStatus, EngineError> {
        self.inner.status(lane)
    }

    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.inner.read_memory(lane, addr, bytes)
    }

    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        self.inner.private_pages()
    }

    fn write_memory(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.inner.write_memory(lane, addr, bytes)
    }

    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.inner.write_image(addr, bytes)
    }

    fn protect_image(
        &mut self,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> Result<(), EngineError> {
        self.inner.protect_image(addr, len, permissions)
    }

    fn read_pieces(&self, pieces: &[Piece]) -> Result<Vec<Vec<u8>>, EngineError> {
        self.inner.read_pieces(pieces)
    }

    fn change_memory(
        &mut self,
        changes: &[(usize, Vec<MemoryChange>)],
    ) -> Result<Vec<usize>, EngineError> {
        self.inner.change_memory(changes)
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        self.inner.run(request)
    }

    fn give(&mut self, lanes: &[(usize, u64)]) -> Result<(), EngineError> {
        self.inner.give(lanes)
    }

    fn advance(&mut self, control: &RunControl) -> Result<Vec<usize>, EngineError> {
        let before = self.advances.fetch_add(1, Ordering::Relaxed);
        match self.manner {
            Manner::Fails(times) if before >= times => {
                Err(EngineError::Device("the device was lost".into()))
            }
            Manner::Hangs => {
                std::thread::sleep(Duration::from_millis(5));
                Ok(Vec::new())
            }
            Manner::Works | Manner::IsMissing | Manner::Fails(_) => self.inner.advance(control),
        }
    }

    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        self.inner.reset(lanes)
    }
}
