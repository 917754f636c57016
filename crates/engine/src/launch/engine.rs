//! Lanes on a device as an engine.

use std::ops::Range;

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_mem::{PAGE, Permissions};

use super::{LaunchEngine, Launcher, NO_ROOM_FOR_CODE, Status};
use crate::changes::{make_one_by_one, read_one_by_one};
use crate::kernel::stop;
use crate::memory::DeviceMemory;
use crate::{
    Config, Engine, EngineError, LaneStatus, MemoryChange, Piece, RunControl, RunRequest,
    StartTimes,
};

impl<L: Launcher> Engine for LaunchEngine<L> {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn start_times(&self) -> StartTimes {
        let (driver, kernels) = (Some(self.launcher.start_time()), self.kernels.loads().to_vec());
        StartTimes { driver, kernels }
    }

    fn state(&self, lane: usize) -> Result<CpuState, EngineError> {
        self.launcher.select()?;
        self.states.get(lane)
    }

    fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError> {
        self.launcher.select()?;
        self.states.set(lane..lane + 1, *state)
    }

    fn vectors(&self, lane: usize) -> Result<VectorState, EngineError> {
        self.launcher.select()?;
        self.vectors.get(lane)
    }

    fn set_vectors(&mut self, lane: usize, vectors: &VectorState) -> Result<(), EngineError> {
        self.launcher.select()?;
        self.vectors.set(lane..lane + 1, *vectors)
    }

    fn status(&self, lane: usize) -> Result<LaneStatus, EngineError> {
        self.launcher.select()?;
        let count = self.statuses.get(lane)?.count;
        Ok(LaneStatus { stop: self.stops[lane], count })
    }

    fn visit_states(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(&CpuState),
    ) -> Result<(), EngineError> {
        self.launcher.select()?;
        self.states.visit(lanes, visit)
    }

    fn change_states(
        &mut self,
        lanes: Range<usize>,
        change: &mut dyn FnMut(&mut CpuState),
    ) -> Result<(), EngineError> {
        self.launcher.select()?;
        self.states.change(lanes, change)
    }

    fn visit_vectors(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(&VectorState),
    ) -> Result<(), EngineError> {
        self.launcher.select()?;
        self.vectors.visit(lanes, visit)
    }

    fn change_vectors(
        &mut self,
        lanes: Range<usize>,
        change: &mut dyn FnMut(&mut VectorState),
    ) -> Result<(), EngineError> {
        self.launcher.select()?;
        self.vectors.change(lanes, change)
    }

    fn visit_statuses(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(LaneStatus),
    ) -> Result<(), EngineError> {
        self.launcher.select()?;
        let mut stops = self.stops[lanes.clone()].iter();
        let mut visit = |status: &Status| {
            let stop = *stops.next().expect("every lane has one");
            visit(LaneStatus { stop, count: status.count });
        };
        self.statuses.visit(lanes, &mut visit)
    }

    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.launcher.select()?;
        self.launcher.memory().read(lane, addr, bytes)
    }

    fn read_memory_of(
        &self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &mut [u8],
    ) -> Result<(), EngineError> {
        self.launcher.select()?;
        self.launcher.memory().read_lanes(lanes, addr, bytes)
    }

    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        if self.config.mapped {
            return Ok(Vec::new());
        }
        self.launcher.select()?;
        let mut pages = self.launcher.memory().private_pages()?;
        pages.retain(|(lane, _)| *lane < self.config.lanes);
        Ok(pages)
    }

    fn write_memory(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.write_memory_of(lane..lane + 1, addr, bytes)
    }

    fn write_memory_of(
        &mut self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        self.launcher.select()?;
        let len = (bytes.len() / lanes.len()) as u64;
        let memory = self.launcher.memory_mut();
        if !self.code.before_write(memory, lanes.clone(), addr, len)? {
            return Err(EngineError::DeviceFull(NO_ROOM_FOR_CODE.to_string()));
        }
        memory.write_lanes(lanes, addr, bytes)
    }

    fn protect(
        &mut self,
        lane: usize,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> Result<(), EngineError> {
        self.launcher.select()?;
        let memory = self.launcher.memory_mut();
        let forgets = !permissions.contains(Permissions::EXECUTE);
        if forgets && !self.code.before_write(memory, lane..lane + 1, addr, len)? {
            return Err(EngineError::DeviceFull(NO_ROOM_FOR_CODE.to_string()));
        }
        let map = memory.map_mut().ok_or(EngineError::NotMapped(L::NAME))?;
        map.protect(lane, addr / PAGE..(addr + len) / PAGE, permissions);
        Ok(())
    }

    fn read_pieces(&self, pieces: &[Piece]) -> Result<Vec<Vec<u8>>, EngineError> {
        self.launcher.select()?;
        match self.launcher.memory().is_of_each() {
            true if !pieces.is_empty() => self.launcher.memory().read_pieces(pieces),
            _ => read_one_by_one(self, pieces),
        }
    }

    fn change_memory(
        &mut self,
        changes: &[(usize, Vec<MemoryChange>)],
    ) -> Result<Vec<usize>, EngineError> {
        self.launcher.select()?;
        if changes.iter().all(|(_, changes)| changes.is_empty()) {
            return Ok(Vec::new());
        }
        if !self.launcher.memory().is_of_each() {
            return make_one_by_one(self, changes);
        }
        let mut fits = true;
        for (lane, changes) in changes {
            fits &= self.forget_changed(*lane, changes)?;
        }
        if !fits || !self.launcher.memory_mut().change(changes)? {
            return make_one_by_one(self, changes);
        }
        let map = self.launcher.memory_mut().map_mut().ok_or(EngineError::NotMapped(L::NAME))?;
        for (lane, changes) in changes {
            for change in changes {
                if let MemoryChange::Protect { addr, len, permissions } = change {
                    map.protect(*lane, addr / PAGE..(addr + len) / PAGE, *permissions);
                }
            }
        }
        Ok(Vec::new())
    }

    fn protect_image(
        &mut self,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> Result<(), EngineError> {
        self.launcher.select()?;
        let map = self.launcher.memory_mut().map_mut().ok_or(EngineError::NotMapped(L::NAME))?;
        map.protect_all(addr / PAGE..(addr + len) / PAGE, permissions);
        self.code.clear();
        Ok(())
    }

    fn discard(&mut self, lane: usize, addr: u64, len: u64) -> Result<(), EngineError> {
        self.launcher.select()?;
        let memory = self.launcher.memory_mut();
        if !self.code.before_write(memory, lane..lane + 1, addr, len)? {
            return Err(EngineError::DeviceFull(NO_ROOM_FOR_CODE.to_string()));
        }
        memory.discard(lane, addr, len)
    }

    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.launcher.select()?;
        let result = self.launcher.memory_mut().write_image(addr, bytes);
        // Where it failed, some of it may have been written.
        self.code.clear();
        result
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        self.launcher.select()?;
        self.code.set_breakpoints(request.breakpoints);
        let ended = self.start(request)?;
        if request.control.is_cancelled() {
            return Ok(());
        }
        if request.max_cycles == 0 {
            request.control.report(0, (self.config.lanes - ended) as u64);
            return Ok(());
        }
        let result = self.run_lanes(request, ended);
        request.control.report(std::mem::take(&mut self.stepped), 0);
        result
    }

    fn give(&mut self, lanes: &[(usize, u64)]) -> Result<(), EngineError> {
        self.launcher.select()?;
        self.code.set_breakpoints(&[]);
        self.give_lanes(lanes)
    }

    fn advance(&mut self, control: &RunControl) -> Result<Vec<usize>, EngineError> {
        self.launcher.select()?;
        let result = self.advance_lanes(control);
        control.report(std::mem::take(&mut self.stepped), 0);
        result
    }

    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        self.launcher.select()?;
        let memory = self.launcher.memory_mut();
        match lanes.len() == self.config.lanes {
            // It has no image that it could be reset to.
            _ if self.config.mapped && !memory.is_private() => {}
            true => memory.reset_all()?,
            false => memory.reset_each(&lanes.clone().collect::<Vec<_>>())?,
        }
        self.begin_again(lanes)
    }

    fn reset_each(&mut self, lanes: &[usize]) -> Result<(), EngineError> {
        self.launcher.select()?;
        let memory = self.launcher.memory_mut();
        if !self.config.mapped || memory.is_private() {
            memory.reset_each(lanes)?;
        }
        lanes.iter().try_for_each(|lane| self.begin_again(*lane..*lane + 1))
    }
}

impl<L: Launcher> LaunchEngine<L> {
    /// Resets lanes whose memory is reset.
    fn begin_again(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        self.states.set(lanes.clone(), CpuState::new())?;
        self.vectors.set(lanes.clone(), VectorState::new())?;
        self.statuses.set(lanes.clone(), Status { stop: stop::ENDED, ..Status::default() })?;
        if let Some(advancing) = &mut self.advancing {
            lanes.clone().for_each(|lane| advancing.reset(lane));
        }
        self.stops[lanes.clone()].fill(None);
        lanes.for_each(|lane| self.code.join(lane));
        Ok(())
    }
}
