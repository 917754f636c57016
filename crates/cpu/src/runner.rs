//! Running lanes on one thread: entering translated code and dealing with its exits.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kvrm_engine::{EngineError, RunControl, Stop, fetch, step};
use kvrm_ir::Access;
use kvrm_mem::{GRANULE, GuestMemory, OPEN, Overheard, PAGE, RawMemory, branch_target};

use crate::code::{CloseGranules, Translations};
use crate::context::{ExitKind, LaneContext};
use crate::lane::Lane;
use crate::record::{LOG_RECORD, Record, SLACK, Scratch, Table};
use crate::slow::{CodeView, SlowPath, begin_write};
use crate::stubs::Stubs;
use crate::turns::Turn;

/// How often code is entered, within a slice, between two looks at whether the run is cancelled.
const LOOK: u32 = 16;

/// What all threads of a run share.
pub(crate) struct Run<'a> {
    pub(crate) stubs: &'a Arc<Stubs>,
    /// Translations of the image or of shared memory.
    pub(crate) code: &'a Mutex<Translations>,
    /// Where their records are.
    pub(crate) table: Arc<Table>,
    /// What those translations are made from.
    pub(crate) source: RawMemory<'a>,
    pub(crate) breakpoints: &'a [u64],
    pub(crate) control: &'a RunControl,
    /// Instructions a lane executes before the thread looks up.
    pub(crate) slice: u64,
}

impl<'r> Run<'r> {
    fn shared(&self) -> bool {
        self.stubs.target.shared
    }

    fn is_mapped(&self) -> bool {
        self.stubs.target.kind.mapped
    }

    fn is_breakpoint(&self, pc: u64) -> bool {
        self.breakpoints.binary_search(&pc).is_ok()
    }

    /// False once all lanes should leave their code: the run is cancelled, or there must be room for other code.
    pub(crate) fn goes_on(&self) -> bool {
        !self.control.is_cancelled() && !self.stubs.memory.is_full()
    }

    /// Runs a lane until it stops, its budget is spent, its turn is over, or the run does not go on.
    pub(crate) fn turn(&self, lane: &mut Lane, scratch: &mut Scratch) -> Result<(), EngineError> {
        let mut turn = Turn::default();
        while self.goes_on() {
            self.slice(lane, scratch, &mut turn)?;
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
        scratch: &mut Scratch,
        turn: &mut Turn,
    ) -> Result<(), EngineError> {
        let before = lane.status.count;
        let end = before + lane.budget.min(self.slice);
        lane.slice_over = false;
        let mut entries = 0u32;
        while lane.status.stop.is_none() && !lane.slice_over && lane.status.count < end {
            self.advance(lane, scratch, end - lane.status.count)?;
            entries = entries.wrapping_add(1);
            // Code that changes itself is decoded again and again, which is slow.
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

    /// Enters code once, and deals with what comes out.
    fn advance(
        &self,
        lane: &mut Lane,
        scratch: &mut Scratch,
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
        let Some(record) = self.arrive(lane, pc)? else {
            self.wait(lane);
            return Ok(());
        };
        // What is interpreted could overrun.
        if fuel < SLACK && !self.is_translated(lane, pc) {
            return self.run_exactly(lane, scratch, fuel);
        }
        // SAFETY: records live as long as their view of memory, which the lane has.
        let code = unsafe { (*record).code() };
        self.enter(lane, scratch, fuel, record, code)
    }

    /// The record of an address that has code, or `None` if there is no room for that.
    fn arrive(&self, lane: &mut Lane, pc: u64) -> Result<Option<*const Record>, EngineError> {
        let empty = self.stubs.interpreter.empty();
        let found = self.table(lane).get(pc).map(<*mut Record>::cast_const);
        // SAFETY: records live as long as their view of memory, which the lane has; code is atomic.
        if let Some(record) = found.filter(|record| unsafe { (**record).code() } != empty) {
            return Ok(Some(record));
        }
        if lane.shares.is_some() {
            return self.arrive_shared(lane, pc);
        }
        self.with_code(lane, |code, source, close| code.arrive(pc, self.words(source), close))
    }

    /// The same for a machine that shares its translations.
    fn arrive_shared(
        &self,
        lane: &mut Lane,
        pc: u64,
    ) -> Result<Option<*const Record>, EngineError> {
        let memory = self.memory(lane);
        let shares = lane.shares.as_mut().expect("the caller has looked");
        let mut code = self.locked();
        if !shares.claim(pc, &memory, &mut code) {
            lane.parts = true;
            return Ok(None);
        }
        let record = code.arrive(pc, self.words(&memory), &mut |_, _| {})?;
        if record.is_some() {
            shares.link(pc, &mut code);
        }
        Ok(record)
    }

    /// True if the lane has the code at an address as its translations have it.
    fn has(&self, lane: &Lane, pc: u64) -> bool {
        lane.shares.as_ref().is_none_or(|shares| shares.has(pc))
    }

    /// Where the lane's code finds records.
    fn table<'l>(&'l self, lane: &'l Lane) -> &'l Arc<Table> {
        let own = lane.own_code.as_ref().map(|own| own.table());
        let shares = lane.shares.as_ref().map(|shares| shares.table());
        own.or(shares).unwrap_or(&self.table)
    }

    /// True if nothing is interpreted that can be translated, and the code at `pc` is.
    fn is_translated(&self, lane: &mut Lane, pc: u64) -> bool {
        self.stubs.translate_after == 0 && self.with_code(lane, |code, _, _| code.is_translated(pc))
    }

    /// Ends the lane's slice until there is room for translations, or it has a pool where it agrees.
    fn wait(&self, lane: &mut Lane) {
        (lane.waits, lane.slice_over) = (true, true);
    }

    /// Interprets up to so many instructions, which follow one another: in copies of their records with a stop behind them.
    fn run_exactly(
        &self,
        lane: &mut Lane,
        scratch: &mut Scratch,
        fuel: u64,
    ) -> Result<(), EngineError> {
        let pc = lane.context.state.pc;
        let interpreter = self.stubs.interpreter;
        let first = self.with_code(lane, |code, source, close| {
            code.decode(pc, self.words(source), close)?;
            Ok(scratch.copy(code.copies(pc, fuel), interpreter.exit(ExitKind::Fuel)))
        })?;
        // SAFETY: the copies live as long as the thread's scratch.
        let code = unsafe { (*first).code() };
        self.enter(lane, scratch, fuel, first, code)
    }

    fn memory(&self, lane: &Lane) -> RawMemory<'r> {
        if self.shared() {
            return self.source;
        }
        // SAFETY: lanes keep their memory for the whole run, and only guests use it.
        unsafe { RawMemory::new(lane.context.memory, self.stubs.target.memory_size) }
    }

    /// The words translations are made from, but for addresses where they must end.
    fn words<'m>(&'m self, memory: &'m RawMemory<'_>) -> impl Fn(u64) -> Option<u32> + 'm {
        |pc| {
            if self.is_breakpoint(pc) { None } else { fetch(memory, pc).ok() }
        }
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
        let (own, is_fixed) = (lane.own_code.is_some(), lane.shares.is_some());
        let Lane { own_code, space, .. } = lane;
        let mut close = |page: u64, closed: u64| match space {
            // The image's translations are checked on entry instead.
            Some(_) if !own => {}
            Some(space) if space.is_dirty(page * PAGE) => {
                space.set_page_granules(page * PAGE, closed)
            }
            // Closed until the page is first written.
            Some(_) => {}
            None if is_fixed => {}
            None if memory.is_mapped() => memory.close(page, closed),
            None => close_shared(granules, page, closed),
        };
        view(self.code, own_code, is_fixed).with(|code| f(code, source, &mut close))
    }

    /// Runs the code of a record, and deals with its exit.
    fn enter(
        &self,
        lane: &mut Lane,
        scratch: &mut Scratch,
        fuel: u64,
        record: *const Record,
        code: *const u8,
    ) -> Result<(), EngineError> {
        let memory = self.memory(lane);
        lane.context.sheets = self.table(lane).as_ptr();
        let Lane { context, space, own_code, status, shares, .. } = lane;
        let view = view(self.code, own_code, shares.is_some());
        let mut slow = SlowPath { space: space.as_mut(), memory, view };
        context.host = std::ptr::from_mut(&mut slow).cast();
        context.count_base = status.count + fuel;
        let end = (record as u64).wrapping_add(fuel << LOG_RECORD);
        let memory = context.memory;
        // SAFETY: the code was made by `translate` for this engine and has not been freed; the context
        // is complete, and its memory outlives the call.
        unsafe { (self.stubs.interpreter.enter)(&mut *context, record, end, memory, code) };
        status.count += fuel - context.fuel;
        if self.stubs.target.profile {
            self.stubs.memory.count_executed(std::mem::take(&mut context.executed));
        }
        let LaneContext { flags, state, .. } = &mut *context;
        flags.settle(state);
        if self.is_mapped() {
            state.pc = branch_target(state.pc);
        }
        self.exited(lane, scratch)
    }

    fn exited(&self, lane: &mut Lane, scratch: &mut Scratch) -> Result<(), EngineError> {
        let (reason, detail) = (lane.context.reason, lane.context.detail);
        match ExitKind::from_number(lane.context.exit) {
            ExitKind::Chain => {}
            ExitKind::Hot => return self.heated(lane),
            ExitKind::Fuel => return self.finish(lane, scratch),
            // The instruction at PC faults, or it writes near decoded words.
            ExitKind::Probe => self.step(lane),
            ExitKind::Slow => return self.step_undecoded(lane),
            ExitKind::Exit => {
                let stop = Stop::from_exit(reason as u8, detail);
                lane.stop(if self.is_mapped() { stop.untagged() } else { stop });
            }
            ExitKind::Undefined => lane.stop(Stop::Undefined { word: detail as u32 }),
            ExitKind::Stale => lane.part_from_image(self.stubs),
        }
        Ok(())
    }

    fn heated(&self, lane: &mut Lane) -> Result<(), EngineError> {
        let pc = lane.context.state.pc;
        if !self.has(lane, pc) {
            return Ok(());
        }
        let fits =
            self.with_code(lane, |code, source, close| code.heated(pc, self.words(source), close));
        if !fits? {
            self.wait(lane);
        }
        Ok(())
    }

    /// Executes the instruction at PC, which a translation could not, and which could not be interpreted at once. The next
    /// time it can.
    fn step_undecoded(&self, lane: &mut Lane) -> Result<(), EngineError> {
        let pc = lane.context.state.pc;
        self.with_code(lane, |code, source, close| code.decode(pc, self.words(source), close))?;
        self.step(lane);
        Ok(())
    }

    /// Less fuel is left than the code at PC asks for: ends the slice, or executes the rest if the budget ends there.
    fn finish(&self, lane: &mut Lane, scratch: &mut Scratch) -> Result<(), EngineError> {
        let (pc, left) = (lane.context.state.pc, lane.context.fuel);
        if lane.budget > self.slice {
            lane.slice_over = true;
            return Ok(());
        }
        if left == 0 || !self.has(lane, pc) || !self.is_translated(lane, pc) {
            return Ok(());
        }
        let tail = self.with_code(lane, |code, source, close| {
            let tail = code.tail(pc, left, self.words(source), close)?;
            Ok(tail.map(|tail| (code.record(pc), tail)))
        })?;
        match tail {
            Some((record, tail)) => self.enter(lane, scratch, left, record, tail),
            None => {
                self.step_on(lane, left);
                Ok(())
            }
        }
    }

    /// Executes so many instructions with the evaluator, because code and its tail may never fit into memory together.
    fn step_on(&self, lane: &mut Lane, instructions: u64) {
        let end = lane.status.count + instructions;
        while lane.status.count < end && lane.status.stop.is_none() && !lane.slice_over {
            if self.is_breakpoint(lane.context.state.pc) {
                return;
            }
            self.step(lane);
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
        // Held until a write is done, so that nobody translates the words meanwhile. Those that machines share are never
        // written.
        let code = lane.shares.is_none().then(|| self.locked());
        let memory = self.memory(lane);
        let (refused, touched) = (Cell::new(None), RefCell::new(Vec::new()));
        let (keeps_off, kept_off) = (lane.keeps_from_watched, Cell::new(false));
        let hear = |access, addr, len: u32| {
            let bytes = (addr, u64::from(len));
            let writes = access != Access::Read;
            if keeps_off && memory.touched(bytes.0, bytes.1).next().is_some() {
                kept_off.set(true);
                return Err(addr);
            }
            if writes && code.as_ref().is_some_and(|code| code.overlaps(bytes.0, bytes.1)) {
                refused.set(Some(bytes));
                return Err(addr);
            }
            if writes {
                memory.note_written(bytes.0, bytes.1);
            }
            touched.borrow_mut().extend(memory.touched(bytes.0, bytes.1));
            Ok(())
        };
        let before = (lane.context.state, lane.status.count);
        let LaneContext { state, vectors, .. } = &mut lane.context;
        let end = step(state, vectors, before.1, &Overheard::new(memory, hear), &mut |_, _| {});
        match refused.get() {
            _ if kept_off.get() => {
                lane.context.state = before.0;
                lane.stop(Stop::Breakpoint { imm: None });
            }
            Some(bytes) => {
                lane.context.state = before.0;
                (lane.writes_code, lane.slice_over) = (Some(bytes), true);
            }
            None => lane.stepped(end),
        }
        for range in touched.into_inner() {
            lane.touched.push((range, before.1));
            // They need not be watched any longer.
            lane.slice_over = true;
        }
    }

    fn step_private(&self, lane: &mut Lane) {
        let memory = self.memory(lane);
        let mut written = None;
        let Lane { context, space, own_code, status, .. } = lane;
        let space = space.as_mut().expect("memory is private");
        let mut view = view(self.code, own_code, false);
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

fn view<'l>(
    image: &'l Mutex<Translations>,
    own: &'l mut Option<Box<Translations>>,
    is_fixed: bool,
) -> CodeView<'l> {
    match own {
        Some(code) => CodeView::Own(code),
        None if is_fixed => CodeView::Fixed(image),
        None => CodeView::Image(image),
    }
}

/// Closes granules of shared memory, which other threads may be looking at, for stores.
fn close_shared(granules: *mut u8, page: u64, closed: u64) {
    for index in (0..PAGE / GRANULE).filter(|index| closed >> index & 1 != 0) {
        let granule = page * (PAGE / GRANULE) + index;
        // SAFETY: translated words lie in memory, so their granule has a state byte.
        let state = unsafe { AtomicU8::from_ptr(granules.add(granule as usize)) };
        state.fetch_and(!OPEN, Ordering::SeqCst);
    }
}
