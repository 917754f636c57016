//! What the host does for lanes that cannot go on by themselves: decoding code that they have reached,
//! and executing the instructions by which they change it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use kvrm_engine::{EngineError, MemoryModel, Step, Stop, fetch, step};
use kvrm_mem::PAGE;

use crate::engine::CudaEngine;
use crate::guest::{Guest, LaneMemory};
use crate::kernel::Status;

impl CudaEngine {
    /// The lane is at code that is not decoded, or was not when it stopped. The stop, if there is none.
    pub(crate) fn find_code(&mut self, lane: usize, pc: u64) -> Result<Option<Stop>, EngineError> {
        // Lanes whose code differs from that of others have their own records.
        if !self.code.is_own(lane) && self.code.is_decoded(pc) {
            return Ok(None);
        }
        if let Err(stop) = fetch(&self.lane_memory(lane), pc) {
            return Ok(Some(stop));
        }
        let size = self.config.memory_size;
        let words = Words::new(&self.guest, Some(lane), size);
        let code = self.code.reachable(lane, pc, |at| words.get(at));
        if !self.code.is_own(lane) && self.guest.has_copies()? {
            let image = Words::new(&self.guest, None, size);
            if code.iter().any(|(at, word)| image.get(*at) != Some(*word)) {
                self.code.part(lane);
                return self.find_code(lane, pc);
            }
            self.part_changed_lanes(&code)?;
        }
        self.code.add(lane, &code, &mut self.handlers, &self.breakpoints)?;
        Ok(None)
    }

    /// New common records: lanes whose own copies of those words differ part from them.
    fn part_changed_lanes(&mut self, code: &[(u64, u32)]) -> Result<(), EngineError> {
        let pages: BTreeSet<u64> = code.iter().map(|(at, _)| at / PAGE).collect();
        for page in pages {
            for lane in self.guest.owners(page)? {
                if self.code.is_own(lane) || lane >= self.config.lanes {
                    continue;
                }
                let words = Words::new(&self.guest, Some(lane), self.config.memory_size);
                let mut on_page = code.iter().filter(|(at, _)| at / PAGE == page);
                if on_page.any(|(at, word)| words.get(*at) != Some(*word)) {
                    self.code.part(lane);
                }
            }
        }
        Ok(())
    }

    fn lane_memory(&mut self, lane: usize) -> LaneMemory<'_> {
        LaneMemory {
            guest: RefCell::new(&mut self.guest),
            device: &self.device,
            lane,
            error: Cell::new(None),
        }
    }

    /// Executes one instruction of a lane here. The stop, if it has to.
    pub(crate) fn step(
        &mut self,
        lane: usize,
        mut status: Status,
    ) -> Result<Option<Stop>, EngineError> {
        let mut state = self.states.get_one(lane)?;
        let memory = self.lane_memory(lane);
        let mut written = Vec::new();
        let end = step(&mut state, status.count, &memory, &mut |addr, len| {
            written.push((addr, u64::from(len)));
        });
        if let Some(error) = memory.error.take() {
            return Err(error.into());
        }
        let (done, stop) = match end {
            Step::Done => (1, None),
            Step::DoneAndStopped(stop) => (1, Some(stop)),
            Step::Stopped(stop) => (0, Some(stop)),
        };
        status.count += done;
        status.budget -= done;
        self.stepped += done;
        for (addr, len) in written {
            self.memory_written(lane, addr, len);
        }
        self.states.set_one(lane, state)?;
        self.statuses.set_one(lane, status)?;
        Ok(stop.or((status.budget == 0).then_some(Stop::MaxCycles)))
    }

    /// Forgets what was decoded from memory that the host has written for a lane.
    pub(crate) fn memory_written(&mut self, lane: usize, addr: u64, len: u64) {
        if self.code.overlaps(lane, addr, len) {
            match self.config.model {
                MemoryModel::Shared => self.code.clear(),
                MemoryModel::Private => self.code.part(lane),
            }
        }
    }
}

/// Words of a lane's memory or of the image, fetched from the device a page at a time.
struct Words<'a> {
    guest: &'a Guest,
    lane: Option<usize>,
    size: u64,
    pages: RefCell<HashMap<u64, Option<Box<[u8; PAGE as usize]>>>>,
}

impl<'a> Words<'a> {
    fn new(guest: &'a Guest, lane: Option<usize>, size: u64) -> Self {
        Words { guest, lane, size, pages: RefCell::default() }
    }

    fn get(&self, pc: u64) -> Option<u32> {
        if !pc.is_multiple_of(4) || pc.checked_add(4)? > self.size {
            return None;
        }
        let mut pages = self.pages.borrow_mut();
        let page = pages.entry(pc / PAGE).or_insert_with(|| {
            let mut bytes = Box::new([0; PAGE as usize]);
            let start = pc / PAGE * PAGE;
            let read = match self.lane {
                Some(lane) => self.guest.read(lane, start, &mut bytes[..]),
                None => self.guest.flat.read(start, &mut bytes[..]),
            };
            read.ok().map(|()| bytes)
        });
        let at = (pc % PAGE) as usize;
        let bytes = page.as_ref()?[at..at + 4].try_into().expect("four bytes");
        Some(u32::from_le_bytes(bytes))
    }
}
