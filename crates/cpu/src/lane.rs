//! A lane on the host.

use std::sync::Arc;

use kvrm_engine::{LaneStatus, Step, Stop};
use kvrm_mem::{PAGE, Space};

use crate::code::Translations;
use crate::context::LaneContext;
use crate::sharing::Sharing;
use crate::stubs::Stubs;

/// One machine: its registers, its memory if it has its own, and how far it got.
// Neighbours run on different threads, which should not write the same cache lines.
#[repr(align(128))]
pub(crate) struct Lane {
    pub(crate) context: LaneContext,
    pub(crate) status: LaneStatus,
    /// Private memory.
    pub(crate) space: Option<Space>,
    /// Its own translations, once it has changed its code.
    pub(crate) own_code: Option<Box<Translations>>,
    /// Instructions it may still complete in this run.
    pub(crate) budget: u64,
    /// The slice ends here, though its instructions are not all used.
    pub(crate) slice_over: bool,
    /// Bytes that the instruction at PC writes, address and length, with translated words of shared memory among
    /// them, which must be forgotten first.
    pub(crate) writes_code: Option<(u64, u64)>,
    /// It needs a translation for which there was no room.
    pub(crate) waits: bool,
    /// Its part in a pool, if it is the only lane of a machine that shares one.
    pub(crate) shares: Option<Box<Sharing>>,
    /// It does not have the code at PC that the pool has there.
    pub(crate) parts: bool,
    /// Watched ranges that it has accessed, and after how many instructions.
    pub(crate) touched: Vec<(usize, u64)>,
    /// It stops before an instruction that accesses one of them, with [`Stop::Breakpoint`].
    pub(crate) keeps_from_watched: bool,
}

// SAFETY: the pointers in the context are to memory that the lane or its engine owns; one thread at a
// time has the lane.
unsafe impl Send for Lane {}

impl Lane {
    pub(crate) fn new(space: Option<Space>) -> Lane {
        Lane {
            context: LaneContext::new(),
            status: LaneStatus { stop: None, count: 0 },
            space,
            own_code: None,
            budget: 0,
            slice_over: false,
            writes_code: None,
            waits: false,
            shares: None,
            parts: false,
            touched: Vec::new(),
            keeps_from_watched: false,
        }
    }

    /// Points the context at the memory the lane works on, and at what its code needs.
    pub(crate) fn attach(&mut self, shared: Option<&mut Space>, stubs: &Stubs) {
        let space = self.space.as_mut().or(shared).expect("memory is private or shared");
        let context = &mut self.context;
        (context.memory, context.granules) = (space.base(), space.granule_base());
        context.memory_size = stubs.target.memory_size;
        let interpreter = stubs.interpreter;
        context.tables = &interpreter.tables;
        (context.probe_stub, context.cas_stub) = (interpreter.probe, interpreter.cas);
        context.settle_stub = interpreter.settle;
    }

    /// Stops the lane.
    pub(crate) fn stop(&mut self, stop: Stop) {
        if stop.is_exception() {
            self.context.state.take_exception();
        }
        self.status.stop = Some(stop);
    }

    /// The instruction at PC was executed, or stopped the lane.
    pub(crate) fn stepped(&mut self, end: Step) {
        match end {
            Step::Done => self.status.count += 1,
            Step::DoneAndStopped(stop) => {
                self.status.count += 1;
                self.stop(stop);
            }
            Step::Stopped(stop) => self.stop(stop),
        }
    }

    /// Private memory was written where translated words are, or next to them, by the guest or the host.
    pub(crate) fn code_written(
        &mut self,
        stubs: &Arc<Stubs>,
        (addr, len): (u64, u64),
        by_guest: bool,
    ) {
        match &mut self.own_code {
            None => self.part_from_image(stubs),
            // Granules are opened when they are next written.
            Some(own) => {
                own.forget(addr, len, by_guest);
            }
        }
    }

    /// Gives the lane translations of its own: its code is no longer the image's.
    pub(crate) fn part_from_image(&mut self, stubs: &Arc<Stubs>) {
        self.own_code = Some(Box::new(Translations::own(stubs)));
        // No translation is made from pages that are written already.
        let space = self.space.as_mut().expect("only private memory parts from the image");
        for page in space.dirty_pages().collect::<Vec<_>>() {
            space.set_page_granules(page * PAGE, 0);
        }
    }
}
