//! A process's processor and memory, on an engine.

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::{Engine, EngineError, RunControl, RunRequest, Stop};
use kvrm_linux::Guest;
use kvrm_mem::Permissions;

/// Makes an engine with one lane of mapped memory.
pub(super) type MakeEngine =
    std::sync::Arc<dyn Fn() -> Result<Box<dyn Engine>, EngineError> + Send + Sync>;

/// An engine with one lane.
pub(super) struct EngineGuest {
    engine: Box<dyn Engine>,
    make: MakeEngine,
}

impl EngineGuest {
    pub(super) fn new(make: &MakeEngine) -> Result<EngineGuest, EngineError> {
        Ok(EngineGuest { engine: make()?, make: make.clone() })
    }
}

/// The only lane.
const LANE: usize = 0;

impl Guest for EngineGuest {
    fn registers(&self) -> Result<CpuState, EngineError> {
        self.engine.state(LANE)
    }

    fn set_registers(&mut self, state: &CpuState) -> Result<(), EngineError> {
        self.engine.set_state(LANE, state)
    }

    fn vectors(&self) -> Result<VectorState, EngineError> {
        self.engine.vectors(LANE)
    }

    fn set_vectors(&mut self, vectors: &VectorState) -> Result<(), EngineError> {
        self.engine.set_vectors(LANE, vectors)
    }

    fn read(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.engine.read_memory(LANE, addr, bytes)
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.engine.write_memory(LANE, addr, bytes)
    }

    fn protect(
        &mut self,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> Result<(), EngineError> {
        self.engine.protect(LANE, addr, len, permissions)
    }

    fn discard(&mut self, addr: u64, len: u64) -> Result<(), EngineError> {
        self.engine.discard(LANE, addr, len)
    }

    fn run(
        &mut self,
        instructions: u64,
        control: &RunControl,
    ) -> Result<(Option<Stop>, u64), EngineError> {
        let before = self.engine.status(LANE)?.count;
        self.engine.run(&RunRequest {
            max_cycles: instructions,
            breakpoints: &[],
            single_launch: false,
            continues: false,
            control,
        })?;
        let status = self.engine.status(LANE)?;
        Ok((status.stop, status.count - before))
    }

    fn fork(&self) -> Result<Box<dyn Guest>, EngineError> {
        let mut child = EngineGuest::new(&self.make)?;
        let memory =
            self.engine.mapped_memory(LANE).expect("the engine was made with mapped memory");
        child.engine.copy_memory(LANE, memory)?;
        Ok(Box::new(child))
    }
}
