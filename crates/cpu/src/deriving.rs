//! Running a lane that a derivation follows.
//!
//! As long as nothing but memory holds values that were derived, code runs as always, and stops before it accesses one of
//! these bytes, which are watched. From there on, instructions are executed one by one by the evaluator, until such values
//! are in memory alone again.

use std::cell::Cell;

use kvrm_engine::{Engine, EngineError, RunRequest, Step, Stop, step_deriving};
use kvrm_ir::Access;
use kvrm_ir::derive::Derivation;
use kvrm_mem::{GuestMemory, Overheard};

use crate::CpuEngine;
use crate::context::LaneContext;

impl CpuEngine {
    /// Runs the lane of a machine that shares its translations until it stops, or the derivation has come to its end; `None`
    /// if the machine does not share them, because its code may change.
    pub(crate) fn run_followed(
        &mut self,
        request: &RunRequest<'_>,
        at: u64,
        derivation: &mut Derivation,
    ) -> Result<Option<()>, EngineError> {
        let start = self.lanes[0].status.count;
        // The next instruction accesses bytes that are watched.
        let mut stands_before = false;
        loop {
            if self.shares().is_none() {
                return Ok(None);
            }
            self.lanes[0].status.stop = None;
            let done = self.lanes[0].status.count - start;
            let is_over = derivation.end().is_some() || done == request.max_cycles;
            if is_over {
                self.lanes[0].status.stop = Some(Stop::MaxCycles);
            }
            if is_over || request.control.is_cancelled() {
                break;
            }
            if derivation.is_in_registers() || std::mem::take(&mut stands_before) {
                self.step_followed(at + done, derivation);
                request.control.report(1, 0);
                if self.lanes[0].status.stop.is_some() {
                    break;
                }
                continue;
            }
            self.watch_derived(derivation)?;
            self.lanes[0].keeps_from_watched = true;
            let ran = self.run(&RunRequest { max_cycles: request.max_cycles - done, ..*request });
            self.lanes[0].keeps_from_watched = false;
            ran?;
            if self.lanes[0].status.stop != Some(Stop::Breakpoint { imm: None }) {
                break;
            }
            stands_before = true;
        }
        // Others who access derived bytes are to notice that.
        self.watch_derived(derivation)?;
        Ok(Some(()))
    }

    fn watch_derived(&mut self, derivation: &mut Derivation) -> Result<(), EngineError> {
        match derivation.new_memory() {
            Some(ranges) => self.mapped_space().watch(ranges).map_err(EngineError::MappedMemory),
            None => Ok(()),
        }
    }

    /// Executes one instruction with the evaluator.
    fn step_followed(&mut self, at: u64, derivation: &mut Derivation) {
        let memory = self.shared.as_mut().expect("mapped memory is shared").raw();
        let lane = &mut self.lanes[0];
        let writes_code = Cell::new(false);
        let hear = |access, addr, len: u32| {
            if access != Access::Read {
                memory.note_written(addr, len.into());
                let last = addr + u64::from(len) - 1;
                let is_code = [addr, last].iter().any(|addr| memory.probe_fetch(*addr).is_ok());
                writes_code.set(writes_code.get() || is_code);
            }
            Ok(())
        };
        let heard = Overheard::new(memory, hear);
        let LaneContext { state, vectors, .. } = &mut lane.context;
        let end = step_deriving(state, vectors, lane.status.count, &heard, at, derivation);
        if writes_code.get() {
            // Values must not become instructions.
            derivation.finish(at);
        }
        if let Step::Stopped(_) = end {
            derivation.finish(at);
        }
        lane.stepped(end);
    }
}
