//! A guest on the reference engine.

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::{
    Config, Engine, EngineError, EvalEngine, MemoryModel, RunControl, RunRequest, Stop,
};
use kvrm_linux::Guest;
use kvrm_linux::memory::{Permissions, TOP};

/// The only lane.
const LANE: usize = 0;

/// An engine with one lane of mapped memory.
pub(crate) struct EvalGuest(EvalEngine);

impl EvalGuest {
    pub(crate) fn new() -> Result<EvalGuest, EngineError> {
        let config = Config {
            lanes: 1,
            memory_size: TOP,
            model: MemoryModel::Shared,
            read_only: false,
            mapped: true,
            threads: 1,
            translate_after: u32::MAX,
            code_memory: 1 << 20,
            profile: false,
        };
        EvalEngine::new(config).map(EvalGuest)
    }
}

impl Guest for EvalGuest {
    fn registers(&self) -> Result<CpuState, EngineError> {
        self.0.state(LANE)
    }

    fn set_registers(&mut self, state: &CpuState) -> Result<(), EngineError> {
        self.0.set_state(LANE, state)
    }

    fn vectors(&self) -> Result<VectorState, EngineError> {
        self.0.vectors(LANE)
    }

    fn set_vectors(&mut self, vectors: &VectorState) -> Result<(), EngineError> {
        self.0.set_vectors(LANE, vectors)
    }

    fn read(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.0.read_memory(LANE, addr, bytes)
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.0.write_memory(LANE, addr, bytes)
    }

    fn protect(&mut self, addr: u64, len: u64, access: Permissions) -> Result<(), EngineError> {
        self.0.protect(LANE, addr, len, access)
    }

    fn discard(&mut self, addr: u64, len: u64) -> Result<(), EngineError> {
        self.0.discard(LANE, addr, len)
    }

    fn run(
        &mut self,
        instructions: u64,
        control: &RunControl,
    ) -> Result<(Option<Stop>, u64), EngineError> {
        let before = self.0.status(LANE)?.count;
        self.0.run(&RunRequest {
            max_cycles: instructions,
            breakpoints: &[],
            single_launch: false,
            continues: false,
            control,
        })?;
        let status = self.0.status(LANE)?;
        Ok((status.stop, status.count - before))
    }

    fn fork(&self) -> Result<Box<dyn Guest>, EngineError> {
        let mut child = EvalGuest::new()?;
        let memory = self.0.mapped_memory(LANE).expect("it was made with mapped memory");
        child.0.copy_memory(LANE, memory)?;
        Ok(Box::new(child))
    }
}
