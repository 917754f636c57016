//! The reference engine: evaluates every instruction, one lane after another.

use std::ops::Range;

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_mem::{Image, Permissions, Space, View, branch_target};

use crate::{Config, Engine, EngineError, LaneStatus, MemoryModel, RunRequest, Step, Stop, step};

/// Instructions that a lane executes before the next lane's turn.
const SLICE: u64 = 4096;

/// Walks the intermediate representation. Slow; the reference for the other engines.
pub struct EvalEngine {
    config: Config,
    image: Image,
    /// One per lane, or one for all.
    spaces: Vec<Space>,
    lanes: Vec<Lane>,
}

struct Lane {
    state: CpuState,
    vectors: VectorState,
    status: LaneStatus,
}

impl Lane {
    const fn new() -> Lane {
        Lane {
            state: CpuState::new(),
            vectors: VectorState::new(),
            status: LaneStatus { stop: None, count: 0 },
        }
    }
}

impl EvalEngine {
    /// Builds the lanes, all registers zero.
    pub fn new(config: Config) -> Result<EvalEngine, EngineError> {
        let size = config.memory_size;
        let memory = |(lane, source)| EngineError::Memory { lane, size, source };
        config.check_mapped();
        let image = Image::new(size).map_err(|e| memory((0, e)))?;
        let spaces = match config.model {
            MemoryModel::Shared if config.mapped => {
                vec![Space::mapped(&image).map_err(|e| memory((0, e)))?]
            }
            MemoryModel::Shared if config.read_only => {
                vec![Space::read_only(&image).map_err(|e| memory((0, e)))?]
            }
            MemoryModel::Shared => vec![Space::shared(&image).map_err(|e| memory((0, e)))?],
            MemoryModel::Private => Space::private(&image, config.lanes).map_err(memory)?,
        };
        let lanes = (0..config.lanes).map(|_| Lane::new()).collect();
        Ok(EvalEngine { config, image, spaces, lanes })
    }

    fn space(&self, lane: usize) -> usize {
        match self.config.model {
            MemoryModel::Shared => 0,
            MemoryModel::Private => lane,
        }
    }

    /// Runs a lane for at most `budget` instructions; how many it completed.
    fn slice(&mut self, lane: usize, budget: u64, breakpoints: &[u64], passes: bool) -> u64 {
        let space = self.space(lane);
        let space = &mut self.spaces[space];
        let Lane { state, vectors, status } = &mut self.lanes[lane];
        let mut written = Vec::new();
        for done in 0..budget {
            let may_break = done > 0 || !passes;
            if may_break && breakpoints.binary_search(&state.pc).is_ok() {
                status.stop = Some(Stop::Breakpoint { imm: None });
                return done;
            }
            let note = &mut |addr, len: u32| written.push((addr, len.into()));
            let end = step(state, vectors, status.count, &space.raw(), note);
            written.drain(..).for_each(|(addr, len)| space.touch(addr, len));
            match end {
                Step::Done => status.count += 1,
                Step::DoneAndStopped(stop) => {
                    status.count += 1;
                    status.stop = Some(stop);
                    return done + 1;
                }
                Step::Stopped(stop) => {
                    status.stop = Some(stop);
                    return done;
                }
            }
        }
        budget
    }
}

impl Engine for EvalEngine {
    fn name(&self) -> &'static str {
        "eval"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn state(&self, lane: usize) -> Result<CpuState, EngineError> {
        Ok(self.lanes[lane].state)
    }

    fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError> {
        self.lanes[lane].state = *state;
        Ok(())
    }

    fn vectors(&self, lane: usize) -> Result<VectorState, EngineError> {
        Ok(self.lanes[lane].vectors)
    }

    fn set_vectors(&mut self, lane: usize, vectors: &VectorState) -> Result<(), EngineError> {
        self.lanes[lane].vectors = *vectors;
        Ok(())
    }

    fn status(&self, lane: usize) -> Result<LaneStatus, EngineError> {
        Ok(self.lanes[lane].status)
    }

    fn view_memory(&self, lane: usize) -> Option<View> {
        Some(self.spaces[self.space(lane)].view())
    }

    fn runs_on_caller(&self) -> bool {
        true
    }

    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        let from = &self.spaces[self.space(lane)].bytes()[addr as usize..];
        bytes.copy_from_slice(&from[..bytes.len()]);
        Ok(())
    }

    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        let spaces = match self.config.model {
            MemoryModel::Private => &self.spaces[..],
            MemoryModel::Shared => &[],
        };
        let pages = |(lane, space): (usize, &Space)| {
            space.dirty_pages().map(|page| (lane, page)).collect::<Vec<_>>()
        };
        Ok(spaces.iter().enumerate().flat_map(pages).collect())
    }

    fn write_memory(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        let space = self.space(lane);
        self.spaces[space].touch(addr, bytes.len() as u64);
        self.spaces[space].write(addr, bytes);
        Ok(())
    }

    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.image.bytes_mut()[addr as usize..addr as usize + bytes.len()].copy_from_slice(bytes);
        for space in &mut self.spaces {
            space.image_changed(&self.image, addr, bytes.len() as u64);
        }
        Ok(())
    }

    fn protect(
        &mut self,
        lane: usize,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> Result<(), EngineError> {
        let space = self.space(lane);
        self.spaces[space].protect(addr, len, permissions).map_err(EngineError::MappedMemory)
    }

    fn discard(&mut self, lane: usize, addr: u64, len: u64) -> Result<(), EngineError> {
        let space = self.space(lane);
        self.spaces[space].discard(addr, len).map_err(EngineError::MappedMemory)
    }

    fn mapped_memory(&self, lane: usize) -> Option<&Space> {
        self.config.mapped.then(|| &self.spaces[self.space(lane)])
    }

    fn copy_memory(&mut self, lane: usize, from: &Space) -> Result<(), EngineError> {
        let space = self.space(lane);
        self.spaces[space].copy_from(from).map_err(EngineError::MappedMemory)
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        let mut running = Vec::with_capacity(self.lanes.len());
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            if !request.continues || !lane.status.is_final() {
                lane.status.stop = None;
                if self.config.mapped {
                    lane.state.pc = branch_target(lane.state.pc);
                }
                running.push(number);
            }
        }
        let mut spent = 0;
        while !running.is_empty() && !request.control.is_cancelled() {
            let budget = SLICE.min(request.max_cycles - spent);
            let passes = spent == 0 && !request.continues;
            running.retain(|&lane| {
                if request.control.is_cancelled() {
                    return true;
                }
                let executed = self.slice(lane, budget, request.breakpoints, passes);
                if spent + budget == request.max_cycles {
                    self.lanes[lane].status.stop.get_or_insert(Stop::MaxCycles);
                }
                let stopped = self.lanes[lane].status.stop.is_some();
                request.control.report(executed, stopped.into());
                !stopped
            });
            spent += budget;
        }
        Ok(())
    }

    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        for lane in lanes {
            if self.config.model == MemoryModel::Private {
                self.spaces[lane].reset(&self.image);
            }
            self.lanes[lane] = Lane::new();
        }
        Ok(())
    }
}
