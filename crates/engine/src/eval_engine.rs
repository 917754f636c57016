//! The reference engine: evaluates every instruction, one lane after another.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_mem::{Frozen, Image, Overheard, Permissions, Space, View, branch_target};

use crate::{
    Config, Engine, EngineError, LaneStatus, MemoryModel, RunControl, RunRequest, Step, Stop, step,
};

/// Instructions that a lane executes before the next lane's turn.
const SLICE: u64 = 4096;

/// Walks the intermediate representation. Slow; the reference for the other engines.
pub struct EvalEngine {
    config: Config,
    /// None if memory is mapped.
    image: Option<Image>,
    /// One per lane, or one for all.
    spaces: Vec<Space>,
    /// What lanes begin with that have a mapped memory each.
    mapped_image: Option<Space>,
    lanes: Vec<Lane>,
}

struct Lane {
    state: CpuState,
    vectors: VectorState,
    status: LaneStatus,
    /// Instructions that it was given to advance, if it has not stopped since.
    left: u64,
    /// Watched ranges that it has accessed, and after how many instructions.
    touched: Vec<(usize, u64)>,
}

impl Lane {
    const fn new() -> Lane {
        Lane {
            state: CpuState::new(),
            vectors: VectorState::new(),
            status: LaneStatus { stop: None, count: 0 },
            left: 0,
            touched: Vec::new(),
        }
    }
}

impl EvalEngine {
    /// Builds the lanes, all registers zero.
    pub fn new(config: Config) -> Result<EvalEngine, EngineError> {
        let size = config.memory_size;
        let memory = |(lane, source)| EngineError::Memory { lane, size, source };
        config.check_mapped();
        if config.mapped {
            let mapped = |lane| Space::mapped(size).map_err(|e| memory((lane, e)));
            let (spaces, mapped_image) = match config.model {
                MemoryModel::Shared => (1, None),
                MemoryModel::Private => (config.lanes, Some(mapped(0)?)),
            };
            let spaces = (0..spaces).map(mapped).collect::<Result<_, _>>()?;
            return Ok(EvalEngine { mapped_image, ..EvalEngine::over(config, None, spaces) });
        }
        let image = Image::new(size).map_err(|e| memory((0, e)))?;
        let spaces = match config.model {
            MemoryModel::Shared if config.read_only => {
                vec![Space::read_only(&image).map_err(|e| memory((0, e)))?]
            }
            MemoryModel::Shared => vec![Space::shared(&image).map_err(|e| memory((0, e)))?],
            MemoryModel::Private => Space::private(&image, config.lanes).map_err(memory)?,
        };
        Ok(EvalEngine::over(config, Some(image), spaces))
    }

    fn over(config: Config, image: Option<Image>, spaces: Vec<Space>) -> EvalEngine {
        let lanes = (0..config.lanes).map(|_| Lane::new()).collect();
        EvalEngine { config, image, spaces, mapped_image: None, lanes }
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
        let Lane { state, vectors, status, touched, .. } = &mut self.lanes[lane];
        let mut written = Vec::new();
        let heard = RefCell::new(Vec::new());
        for done in 0..budget {
            let may_break = done > 0 || !passes;
            if may_break && breakpoints.binary_search(&state.pc).is_ok() {
                status.stop = Some(Stop::Breakpoint { imm: None });
                return done;
            }
            let note = &mut |addr, len: u32| written.push((addr, len.into()));
            let raw = space.raw();
            let hear = |_, addr, len: u32| {
                heard.borrow_mut().extend(raw.touched(addr, len.into()));
                Ok(())
            };
            let end = step(state, vectors, status.count, &Overheard::new(raw, hear), note);
            written.drain(..).for_each(|(addr, len)| space.touch(addr, len));
            for range in heard.borrow_mut().drain(..) {
                space.unwatch(range);
                touched.push((range, status.count));
            }
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
        if let Some(image) = &mut self.mapped_image {
            image.write(addr, bytes);
            self.spaces.iter_mut().for_each(|space| space.write(addr, bytes));
            return Ok(());
        }
        let Some(image) = &mut self.image else { return self.write_memory(0, addr, bytes) };
        image.bytes_mut()[addr as usize..addr as usize + bytes.len()].copy_from_slice(bytes);
        for space in &mut self.spaces {
            space.image_changed(image, addr, bytes.len() as u64);
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

    fn protect_image(
        &mut self,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> Result<(), EngineError> {
        let mut spaces = self.mapped_image.iter_mut().chain(&mut self.spaces);
        let protected = spaces.try_for_each(|space| space.protect(addr, len, permissions));
        protected.map_err(EngineError::MappedMemory)
    }

    fn discard(&mut self, lane: usize, addr: u64, len: u64) -> Result<(), EngineError> {
        let space = self.space(lane);
        self.spaces[space].discard(addr, len).map_err(EngineError::MappedMemory)
    }

    fn mapped_memory(&self, lane: usize) -> Option<&Space> {
        self.config.mapped.then(|| &self.spaces[self.space(lane)])
    }

    fn freeze_memory(&mut self, lane: usize) -> Result<Arc<Frozen>, EngineError> {
        if !self.config.mapped {
            return Err(EngineError::NotMapped(self.name()));
        }
        let space = self.space(lane);
        self.spaces[space].freeze().map_err(EngineError::MappedMemory)
    }

    fn sibling(&self, lane: usize) -> Result<Box<dyn Engine>, EngineError> {
        let frozen = self.spaces[self.space(lane)].frozen();
        let frozen = frozen.ok_or(EngineError::NotMapped(self.name()))?;
        let space = Space::of(frozen).map_err(EngineError::MappedMemory)?;
        let config = Config { lanes: 1, ..self.config.clone() };
        Ok(Box::new(EvalEngine::over(config, None, vec![space])))
    }

    fn watch_memory(&mut self, lane: usize, ranges: Vec<Range<u64>>) -> Result<(), EngineError> {
        let space = self.space(lane);
        self.lanes[lane].touched.clear();
        self.spaces[space].watch(ranges).map_err(EngineError::MappedMemory)
    }

    fn take_touched(&mut self, lane: usize) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.lanes[lane].touched)
    }

    fn copy_memory(&mut self, lane: usize, from: &Space) -> Result<(), EngineError> {
        let space = self.space(lane);
        self.spaces[space].copy_from(from).map_err(EngineError::MappedMemory)
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        let mut running = Vec::with_capacity(self.lanes.len());
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            lane.left = 0;
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

    fn give(&mut self, lanes: &[(usize, u64)]) -> Result<(), EngineError> {
        for (lane, instructions) in lanes {
            let lane = &mut self.lanes[*lane];
            (lane.left, lane.status.stop) = (*instructions, None);
            if self.config.mapped {
                lane.state.pc = branch_target(lane.state.pc);
            }
        }
        Ok(())
    }

    fn advance(&mut self, control: &RunControl) -> Result<Vec<usize>, EngineError> {
        let mut stopped = Vec::new();
        while stopped.is_empty() && self.lanes.iter().any(|lane| lane.left > 0) {
            for lane in 0..self.lanes.len() {
                if control.is_cancelled() {
                    return Ok(stopped);
                }
                let budget = SLICE.min(self.lanes[lane].left);
                if budget == 0 {
                    continue;
                }
                let executed = self.slice(lane, budget, &[], false);
                control.report(executed, 0);
                let Lane { left, status, .. } = &mut self.lanes[lane];
                *left -= executed;
                if *left == 0 {
                    status.stop.get_or_insert(Stop::MaxCycles);
                }
                if status.stop.is_some() {
                    *left = 0;
                    stopped.push(lane);
                }
            }
        }
        Ok(stopped)
    }

    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        for lane in lanes {
            if let Some(image) = &self.mapped_image {
                self.spaces[lane].copy_from(image).map_err(EngineError::MappedMemory)?;
                self.lanes[lane] = Lane::new();
                continue;
            }
            let space = self.space(lane);
            let space = &mut self.spaces[space];
            match &self.image {
                Some(image) => space.reset(image),
                None if space.frozen().is_some() => {
                    space.restore().map_err(EngineError::MappedMemory)?;
                }
                None => {}
            }
            self.lanes[lane] = Lane::new();
        }
        Ok(())
    }
}
