//! Running lanes on one thread: entering translated code and dealing with its exits.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kvrm_engine::{EngineError, RunControl, Stop, fetch, step};
use kvrm_ir::{Access, Order, Type};
use kvrm_mem::{CLOSED, GRANULE, GuestMemory, PAGE, RawMemory};

use crate::code::{CloseGranules, Heat, Translations};
use crate::context::{ExitKind, JUMP_ENTRIES, JumpEntry, LaneContext, NO_PC};
use crate::lane::Lane;
use crate::slow::{CodeView, SlowPath, begin_write};
use crate::stubs::Stubs;
use crate::turns::Turn;

/// How often translated code is entered, within a slice, between two looks at whether the run is cancelled.
const LOOK: u32 = 16;

/// Instructions that are stepped through at a time.
const STEPS: u64 = 1 << 10;

/// A thread's jump cache, kept from run to run.
pub(crate) struct JumpCache {
    entries: Box<[JumpEntry; JUMP_ENTRIES]>,
    /// The generation of the code it holds.
    generation: u64,
    /// What an entry leads to that holds no code.
    untranslated: *const u8,
}

// SAFETY: the pointers are to code that outlives its generation, and to a stub.
unsafe impl Send for JumpCache {}

impl JumpCache {
    pub(crate) fn new(stubs: &Stubs) -> JumpCache {
        let untranslated = stubs.untranslated;
        let empty = JumpEntry { pc: NO_PC, code: untranslated };
        JumpCache { entries: Box::new([empty; JUMP_ENTRIES]), generation: 0, untranslated }
    }

    fn entry(&mut self, pc: u64) -> &mut JumpEntry {
        &mut self.entries[(pc / 4) as usize % JUMP_ENTRIES]
    }

    /// Makes the cache one of that generation of code.
    fn belong_to(&mut self, generation: u64) {
        if self.generation != generation {
            let empty = JumpEntry { pc: NO_PC, code: self.untranslated };
            self.entries.fill(empty);
            self.generation = generation;
        }
    }
}

/// What all threads of a run share.
pub(crate) struct Run<'a> {
    pub(crate) stubs: &'a Arc<Stubs>,
    /// Translations of the image or of shared memory.
    pub(crate) code: &'a Mutex<Translations>,
    /// The generation of those, which does not change during the run.
    pub(crate) generation: u64,
    /// What those translations are made from.
    pub(crate) source: RawMemory<'a>,
    pub(crate) breakpoints: &'a [u64],
    pub(crate) control: &'a RunControl,
    /// Instructions a lane executes before the thread looks up.
    pub(crate) slice: u64,
}

/// How a lane goes on.
enum Way {
    /// In translated code.
    Enter(*const u8),
    /// By stepping, usually until control branches.
    Step,
    /// By stepping through one instruction.
    StepOne,
    /// Not before there is room for translations.
    Wait,
}

impl<'r> Run<'r> {
    fn shared(&self) -> bool {
        self.stubs.target.shared
    }

    fn is_breakpoint(&self, pc: u64) -> bool {
        self.breakpoints.binary_search(&pc).is_ok()
    }

    /// False once all lanes should leave their code: the run is cancelled, or there must be room for other code.
    pub(crate) fn goes_on(&self) -> bool {
        !self.control.is_cancelled() && !self.stubs.memory.is_full()
    }

    /// Runs a lane until it stops, its budget is spent, its turn is over, or the run does not go on.
    pub(crate) fn turn(&self, lane: &mut Lane, cache: &mut JumpCache) -> Result<(), EngineError> {
        let mut turn = Turn::default();
        while self.goes_on() {
            self.slice(lane, cache, &mut turn)?;
            if lane.status.stop.is_some() || turn.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Runs a lane for about a slice of its budget, or for the rest of its turn if that is slow.
    pub(crate) fn slice(
        &self,
        lane: &mut Lane,
        cache: &mut JumpCache,
        turn: &mut Turn,
    ) -> Result<(), EngineError> {
        let before = lane.status.count;
        let end = before + lane.budget.min(self.slice);
        lane.slice_over = false;
        let mut entries = 0u32;
        while lane.status.stop.is_none() && !lane.slice_over && lane.status.count < end {
            self.advance(lane, cache, end - lane.status.count)?;
            entries = entries.wrapping_add(1);
            // Code that changes itself is only translated and stepped through, which is slow.
            if entries.is_multiple_of(LOOK) {
                lane.slice_over |= !self.goes_on() || turn.is_over();
            }
        }
        lane.budget -= lane.status.count - before;
        if lane.budget == 0 && lane.status.stop.is_none() {
            lane.stop(Stop::MaxCycles);
        }
        self.control.report(lane.status.count - before, lane.status.stop.is_some().into());
        Ok(())
    }

    /// Enters translated code once, and deals with what comes out.
    fn advance(
        &self,
        lane: &mut Lane,
        cache: &mut JumpCache,
        fuel: u64,
    ) -> Result<(), EngineError> {
        let pc = lane.context.state.pc;
        if self.is_breakpoint(pc) {
            lane.stop(Stop::Breakpoint { imm: None });
            return Ok(());
        }
        if let Err(stop) = fetch(&self.memory(lane), pc) {
            lane.stop(stop);
            return Ok(());
        }
        match self.way_from(lane, cache, pc)? {
            Way::Enter(code) => return self.enter(lane, cache, fuel, code),
            Way::Step => self.step_to_branch(lane, fuel),
            Way::StepOne => self.step(lane),
            Way::Wait => self.wait(lane),
        }
        Ok(())
    }

    /// Ends the lane's slice until there is room for translations.
    fn wait(&self, lane: &mut Lane) {
        (lane.waits, lane.slice_over) = (true, true);
    }

    /// Steps through code that is not worth translating yet, until control branches, or for a while.
    fn step_to_branch(&self, lane: &mut Lane, fuel: u64) {
        let end = lane.status.count + fuel.min(STEPS);
        loop {
            let next = lane.context.state.pc.wrapping_add(4);
            self.step(lane);
            let goes_on = lane.status.stop.is_none() && lane.status.count < end;
            if !goes_on
                || lane.slice_over
                || lane.context.state.pc != next
                || self.is_breakpoint(next)
            {
                return;
            }
        }
    }

    fn memory(&self, lane: &Lane) -> RawMemory<'r> {
        let target = &self.stubs.target;
        // SAFETY: lanes keep their memory for the whole run, and only guests use it.
        let memory = unsafe { RawMemory::new(lane.context.memory, target.memory_size) };
        if target.read_only { memory.read_only() } else { memory }
    }

    /// The words translations are made from, but for addresses where they must end.
    fn words<'m>(&'m self, memory: &'m RawMemory<'_>) -> impl Fn(u64) -> Option<u32> + 'm {
        |pc| {
            if self.is_breakpoint(pc) { None } else { fetch(memory, pc).ok() }
        }
    }

    /// How a lane goes on at a guest address.
    fn way_from(
        &self,
        lane: &mut Lane,
        cache: &mut JumpCache,
        pc: u64,
    ) -> Result<Way, EngineError> {
        cache.belong_to(lane.own_code.as_ref().map_or(self.generation, |own| own.generation()));
        let entry = cache.entry(pc);
        if entry.pc == pc {
            return Ok(Way::Enter(entry.code));
        }
        let way = self.with_code(lane, |code, source, close| {
            if let Some(found) = code.get(pc) {
                return Ok(Way::Enter(found));
            }
            match code.reach(pc) {
                Heat::Cold => Ok(Way::Step),
                Heat::Unsettled => Ok(Way::StepOne),
                Heat::Hot => code
                    .translate(pc, self.words(source), close)
                    .map(|code| code.map_or(Way::Wait, Way::Enter)),
            }
        })?;
        if let Way::Enter(code) = way {
            *cache.entry(pc) = JumpEntry { pc, code };
        }
        Ok(way)
    }

    /// Runs `f` with the lane's translations, what they are made from, and a way to close the granules
    /// of new ones.
    fn with_code<T>(
        &self,
        lane: &mut Lane,
        f: impl FnOnce(&mut Translations, &RawMemory<'_>, &mut CloseGranules<'_>) -> T,
    ) -> T {
        let memory = self.memory(lane);
        let source = if lane.own_code.is_some() { &memory } else { &self.source };
        let granules = lane.context.granules;
        let own = lane.own_code.is_some();
        let Lane { own_code, space, .. } = lane;
        let mut close = |page: u64, closed: u64| match space {
            // The image's translations are checked on entry instead.
            Some(_) if !own => {}
            Some(space) if space.is_dirty(page * PAGE) => {
                space.set_page_granules(page * PAGE, closed)
            }
            // Closed until the page is first written.
            Some(_) => {}
            None => close_shared(granules, page, closed),
        };
        view(self.code, own_code).with(|code| f(code, source, &mut close))
    }

    /// Runs translated code, and deals with its exit.
    fn enter(
        &self,
        lane: &mut Lane,
        cache: &mut JumpCache,
        fuel: u64,
        code: *const u8,
    ) -> Result<(), EngineError> {
        let memory = self.memory(lane);
        let Lane { context, space, own_code, status, .. } = lane;
        let view = view(self.code, own_code);
        let mut slow = SlowPath { space: space.as_mut(), memory, view };
        (context.probe_stub, context.cas_stub) = (self.stubs.probe, self.stubs.cas);
        context.host = std::ptr::from_mut(&mut slow).cast();
        context.count_base = status.count + fuel;
        context.jump_cache = cache.entries.as_ptr();
        let pc = context.state.pc;
        // SAFETY: the code was made by `translate` for this engine and has not been freed; the context
        // is complete, and its memory outlives the call.
        unsafe { (self.stubs.enter)(&mut *context, fuel, pc, code) };
        status.count += fuel - context.fuel;
        let LaneContext { flags, state, .. } = &mut *context;
        flags.settle(state);
        self.exited(lane, cache)
    }

    fn exited(&self, lane: &mut Lane, cache: &mut JumpCache) -> Result<(), EngineError> {
        let (reason, detail) = (lane.context.reason, lane.context.detail);
        match ExitKind::from_number(lane.context.exit) {
            ExitKind::Chain => {}
            ExitKind::Fuel => return self.finish(lane, cache),
            // The instruction at PC faults, or it writes near translated words.
            ExitKind::Probe => self.step(lane),
            ExitKind::Exit => lane.stop(Stop::from_exit(reason as u8, detail)),
            ExitKind::Undefined => lane.stop(Stop::Undefined { word: detail as u32 }),
            ExitKind::Stale => lane.part_from_image(self.stubs),
        }
        Ok(())
    }

    /// Fewer instructions are left than the block at PC has: executes them, if the budget ends there.
    fn finish(&self, lane: &mut Lane, cache: &mut JumpCache) -> Result<(), EngineError> {
        let (pc, left) = (lane.context.state.pc, lane.context.fuel);
        if lane.budget > self.slice {
            lane.slice_over = true;
            return Ok(());
        }
        if left == 0 {
            return Ok(());
        }
        let must = self.stubs.translate_after == 0;
        let tail = self.with_code(lane, |code, source, close| {
            code.tail(pc, left, must, self.words(source), close)
        })?;
        match tail {
            Some(code) => self.enter(lane, cache, left, code),
            // They may change one another into a branch, after which everything has to be looked at.
            None => {
                self.step_to_branch(lane, left);
                Ok(())
            }
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Translations> {
        self.code.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes the instruction at PC, whatever stands in the way of entering it, as part of the budget.
    pub(crate) fn pass(&self, lane: &mut Lane) {
        let before = lane.status.count;
        self.step(lane);
        lane.budget -= lane.status.count - before;
        if lane.budget == 0 && lane.status.stop.is_none() {
            lane.stop(Stop::MaxCycles);
        }
        self.control.report(lane.status.count - before, lane.status.stop.is_some().into());
    }

    /// Executes the instruction at PC with the evaluator. If it writes translated words of shared memory, in which other
    /// lanes may be running, it is left for later: the lane says which.
    fn step(&self, lane: &mut Lane) {
        if self.shared() { self.step_shared(lane) } else { self.step_private(lane) }
    }

    fn step_shared(&self, lane: &mut Lane) {
        // Held until a write is done, so that nobody translates the words meanwhile.
        let code = self.locked();
        let memory = Guarded { memory: self.memory(lane), code: &code, refused: Cell::new(None) };
        let before = lane.context.state;
        let LaneContext { state, vectors, .. } = &mut lane.context;
        let end = step(state, vectors, lane.status.count, &memory, &mut |_, _| {});
        match memory.refused.get() {
            Some(bytes) => {
                lane.context.state = before;
                (lane.writes_code, lane.slice_over) = (Some(bytes), true);
            }
            None => lane.stepped(end),
        }
    }

    fn step_private(&self, lane: &mut Lane) {
        let memory = self.memory(lane);
        let mut written = None;
        let Lane { context, space, own_code, status, .. } = lane;
        let space = space.as_mut().expect("memory is private");
        let mut view = view(self.code, own_code);
        let end = step(
            &mut context.state,
            &mut context.vectors,
            status.count,
            &memory,
            &mut |addr, len| {
                let apart = begin_write(space, &mut view, addr, len.into());
                written = (!apart).then_some((addr, u64::from(len)));
            },
        );
        lane.stepped(end);
        if let Some(bytes) = written {
            lane.code_written(self.stubs, bytes, true);
        }
    }
}

/// Shared memory, of which translated words cannot be written.
struct Guarded<'a> {
    memory: RawMemory<'a>,
    code: &'a Translations,
    /// Bytes that would have been written.
    refused: Cell<Option<(u64, u64)>>,
}

impl GuestMemory for Guarded<'_> {
    fn probe(&self, access: Access, addr: u64, len: u32) -> Result<(), u64> {
        self.memory.probe(access, addr, len)?;
        if access != Access::Read && self.code.overlaps(addr, len.into()) {
            self.refused.set(Some((addr, len.into())));
            return Err(addr);
        }
        Ok(())
    }

    fn load(&self, ty: Type, order: Order, addr: u64) -> u64 {
        self.memory.load(ty, order, addr)
    }

    fn store(&self, ty: Type, order: Order, addr: u64, value: u64) {
        self.memory.store(ty, order, addr, value);
    }

    fn cas(&self, ty: Type, addr: u64, expected: u64, new: u64) -> u64 {
        self.memory.cas(ty, addr, expected, new)
    }

    fn cas128(&self, addr: u64, expected: [u64; 2], new: [u64; 2]) -> [u64; 2] {
        self.memory.cas128(addr, expected, new)
    }
}

fn view<'l>(
    image: &'l Mutex<Translations>,
    own: &'l mut Option<Box<Translations>>,
) -> CodeView<'l> {
    match own {
        Some(code) => CodeView::Own(code),
        None => CodeView::Image(image),
    }
}

/// Closes granules of shared memory, which other threads may be looking at.
fn close_shared(granules: *mut u8, page: u64, closed: u64) {
    for index in (0..PAGE / GRANULE).filter(|index| closed >> index & 1 != 0) {
        let granule = page * (PAGE / GRANULE) + index;
        // SAFETY: translated words lie in memory, so their granule has a state byte.
        let state = unsafe { AtomicU8::from_ptr(granules.add(granule as usize)) };
        state.store(CLOSED, Ordering::SeqCst);
    }
}
