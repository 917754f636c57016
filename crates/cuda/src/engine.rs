//! The engine: lanes on a device, launched until they stop.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::mem::offset_of;
use std::ops::Range;
use std::time::{Duration, Instant};

use kvrm_a64::state::CpuState;
use kvrm_engine::kernel::Handlers;
use kvrm_engine::{
    Config, Engine, EngineError, LaneStatus, MemoryModel, RunRequest, Step, Stop, fetch, step,
};
use kvrm_ir::Access;
use kvrm_mem::PAGE;

use crate::code::Code;
use crate::driver::{Buffer, CudaError, Device, Kernel, Mapped};
use crate::guest::{Guest, LaneMemory, TOO_MUCH};
use crate::kernel::{Arguments, Control, Status, kernel};
use crate::memory::Memory;
use crate::stop;

/// Threads in a block.
const BLOCK: u32 = 128;
/// What a launch should take: short enough not to freeze a desktop.
const LAUNCH_TIME: Duration = Duration::from_millis(100);
/// Instructions per lane of the first launch.
const FIRST_SHARE: u64 = 1 << 16;

/// Lanes on an NVIDIA GPU.
pub struct CudaEngine {
    config: Config,
    states: Vec<CpuState>,
    statuses: Vec<Status>,
    stops: Vec<Option<Stop>>,
    /// The host has changed registers since the last run.
    states_changed: bool,
    handlers: Handlers,
    code: Code,
    breakpoints: Vec<u64>,
    /// The loaded kernel and how many handlers it has.
    kernel: Option<(Kernel, usize)>,
    share: u64,
    /// Instructions that have been reported while kernels ran.
    executed: u64,
    device_states: Buffer,
    device_statuses: Buffer,
    control: Mapped,
    guest: Guest,
    // Last: everything above is on it.
    device: Device,
}

impl From<CudaError> for EngineError {
    fn from(error: CudaError) -> EngineError {
        EngineError::Device(error.to_string())
    }
}

impl Drop for CudaEngine {
    fn drop(&mut self) {
        // What is on the device is freed after this, perhaps on a thread that last used another device.
        let _ = self.device.make_current();
    }
}

impl CudaEngine {
    /// Builds the lanes on a device, all registers zero.
    pub fn new(config: Config, device: usize) -> Result<CudaEngine, EngineError> {
        let device = Device::open(device)?;
        let lanes = config.lanes;
        let fewer = |_| TOO_MUCH.to_string();
        let guest = Guest::new(&device, config.model, config.memory_size, lanes)?;
        let states = vec![CpuState::new(); lanes];
        let device_states = Buffer::new(&device, size_of_val(&states[..]) as u64, fewer)?;
        let statuses = vec![Status::default(); lanes];
        let device_statuses = Buffer::new(&device, size_of_val(&statuses[..]) as u64, fewer)?;
        Ok(CudaEngine {
            config,
            states,
            statuses,
            stops: vec![None; lanes],
            states_changed: true,
            handlers: Handlers::new(),
            code: Code::new(),
            breakpoints: Vec::new(),
            kernel: None,
            share: FIRST_SHARE,
            executed: 0,
            device_states,
            device_statuses,
            control: Mapped::new(size_of::<Control>())?,
            guest,
            device,
        })
    }

    fn memory(&self) -> Memory {
        Memory { model: self.config.model, size: self.config.memory_size }
    }

    /// Loads a kernel with all handlers, unless it is loaded.
    fn load_kernel(&mut self) -> Result<(), EngineError> {
        let wanted = self.handlers.len();
        if !matches!(self.kernel, Some((_, loaded)) if loaded == wanted) {
            let text = kernel(&self.handlers, &self.memory());
            self.kernel = Some((Kernel::load(&text)?, wanted));
        }
        Ok(())
    }

    /// Launches once, and waits for the end.
    fn launch(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        self.load_kernel()?;
        let (records, code_map) = self.code.upload(&self.device)?;
        let (frames, tables, table_bytes) = match &self.guest.private {
            Some(p) => (p.frames.base(), p.tables.address, p.table_bytes),
            None => (0, 0, 0),
        };
        // Lanes that share memory may wait for one that needs the host, which looks after a launch only.
        let whole = request.single_launch && self.config.model == MemoryModel::Private;
        let arguments = Arguments {
            states: self.device_states.address,
            statuses: self.device_statuses.address,
            lanes: self.config.lanes as u64,
            share: if whole { u64::MAX } else { self.share },
            memory: self.guest.flat.address,
            frames,
            page_tables: tables,
            page_table_bytes: table_bytes,
            pool: self.guest.pool.address,
            records,
            code_start: self.code.start(),
            code_len: self.code.len(),
            code_map,
            control: self.control.device,
        };
        let blocks = (self.config.lanes as u32).div_ceil(BLOCK);
        let (kernel, _) = self.kernel.as_ref().expect("loaded above");
        let start = Instant::now();
        kernel.launch(blocks, BLOCK, &arguments)?;
        while !kernel.is_done()? {
            let executed = self.control.read(offset_of!(Control, executed));
            request.control.report(executed.saturating_sub(self.executed), 0);
            self.executed = self.executed.max(executed);
            if request.control.is_cancelled() {
                self.control.write(offset_of!(Control, cancel), 1);
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        if whole {
            return Ok(());
        }
        // Towards launches of the wanted length.
        let ratio = LAUNCH_TIME.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-6);
        self.share = (self.share as f64 * ratio.clamp(0.25, 4.0)).clamp(1024.0, 1e12) as u64;
        Ok(())
    }

    fn download_statuses(&mut self) -> Result<(), EngineError> {
        Ok(self.device_statuses.read(0, &mut self.statuses)?)
    }

    fn download_states(&mut self) -> Result<(), EngineError> {
        Ok(self.device_states.read(0, &mut self.states)?)
    }

    /// The stop that a number of the kernel's means for the guest; `None` if the host must see to it.
    fn stop_of(&self, lane: usize) -> Option<Stop> {
        let Status { stop, detail, .. } = self.statuses[lane];
        match stop {
            stop::RUNNING | stop::CODE_WRITE | stop::NO_FRAME | stop::NO_CODE => None,
            stop::MAX_CYCLES => Some(Stop::MaxCycles),
            stop::UNDEFINED => Some(Stop::Undefined { word: detail as u32 }),
            stop::BREAKPOINT => Some(Stop::Breakpoint { imm: None }),
            _ if stop >= stop::FAULT => {
                let access = if stop == stop::FAULT { Access::Read } else { Access::Write };
                Some(Stop::from_fault(access, detail))
            }
            _ => Some(Stop::from_exit((stop - stop::EXIT) as u8, detail)),
        }
    }

    /// Sees to lanes that stopped for the host; true if some lane still runs.
    fn service(&mut self, final_stops: &mut [Option<Stop>]) -> Result<bool, EngineError> {
        self.download_statuses()?;
        let (mut running, mut grow, mut states_read) = (false, false, false);
        for lane in 0..self.config.lanes {
            if final_stops[lane].is_some() {
                continue;
            }
            if let Some(stop) = self.stop_of(lane) {
                final_stops[lane] = Some(stop);
                continue;
            }
            let reason = self.statuses[lane].stop;
            if matches!(reason, stop::NO_CODE | stop::CODE_WRITE) && !states_read {
                self.download_states()?;
                states_read = true;
            }
            match reason {
                stop::NO_CODE if self.statuses[lane].budget == 0 => {
                    final_stops[lane] = Some(Stop::MaxCycles);
                }
                stop::NO_CODE => self.find_code(lane, final_stops)?,
                stop::CODE_WRITE => self.step(lane, final_stops)?,
                stop::NO_FRAME => grow = true,
                _ => {}
            }
            if final_stops[lane].is_none() {
                self.set_stop(lane, stop::RUNNING)?;
                running = true;
            }
        }
        if grow {
            self.guest.grow(&self.device)?;
        }
        Ok(running)
    }

    fn set_stop(&mut self, lane: usize, stop: u32) -> Result<(), EngineError> {
        if self.statuses[lane].stop != stop {
            self.statuses[lane].stop = stop;
            self.upload_status(lane)?;
        }
        Ok(())
    }

    fn upload_status(&mut self, lane: usize) -> Result<(), EngineError> {
        let offset = (lane * size_of::<Status>()) as u64;
        Ok(self.device_statuses.write(offset, &self.statuses[lane..=lane])?)
    }

    /// The lane is at code that is not decoded.
    fn find_code(&mut self, lane: usize, stops: &mut [Option<Stop>]) -> Result<(), EngineError> {
        let pc = self.states[lane].pc;
        let has_copies = self.guest.has_copies()?;
        if !has_copies && self.code.is_decoded(pc) {
            return Ok(());
        }
        let memory = LaneMemory {
            guest: RefCell::new(&mut self.guest),
            device: &self.device,
            lane,
            error: Cell::new(None),
        };
        if let Err(stop) = fetch(&memory, pc) {
            stops[lane] = Some(stop);
            return Ok(());
        }
        let words = Words::new(&self.guest, lane, self.config.memory_size);
        let code = self.code.reachable(lane, pc, |at| words.get(at));
        let pages: BTreeSet<u64> = code.iter().map(|(at, _)| at / PAGE).collect();
        if has_copies && !self.code.is_own(lane) {
            for page in &pages {
                if self.guest.owns(lane, *page)? {
                    self.code.part(lane);
                    return self.find_code(lane, stops);
                }
            }
        }
        let common = !self.code.is_own(lane);
        self.code.add(lane, &code, &mut self.handlers, &self.breakpoints)?;
        if has_copies && common {
            self.part_changed_lanes(&code, &pages)?;
        }
        Ok(())
    }

    /// New common records: lanes whose own copies of those words differ part from them.
    fn part_changed_lanes(
        &mut self,
        code: &[(u64, u32)],
        pages: &BTreeSet<u64>,
    ) -> Result<(), EngineError> {
        for page in pages {
            for lane in self.guest.owners(*page)? {
                if self.code.is_own(lane) || lane >= self.config.lanes {
                    continue;
                }
                let words = Words::new(&self.guest, lane, self.config.memory_size);
                let on_page = code.iter().filter(|(at, _)| at / PAGE == *page);
                if on_page.into_iter().any(|(at, word)| words.get(*at) != Some(*word)) {
                    self.code.part(lane);
                }
            }
        }
        Ok(())
    }

    /// Executes one instruction of a lane on the host.
    fn step(&mut self, lane: usize, stops: &mut [Option<Stop>]) -> Result<(), EngineError> {
        let memory = LaneMemory {
            guest: RefCell::new(&mut self.guest),
            device: &self.device,
            lane,
            error: Cell::new(None),
        };
        let mut written = Vec::new();
        let end =
            step(&mut self.states[lane], self.statuses[lane].count, &memory, &mut |addr, len| {
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
        self.statuses[lane].count += done;
        self.statuses[lane].budget -= done;
        stops[lane] = stop;
        if stop.is_none() && self.statuses[lane].budget == 0 {
            stops[lane] = Some(Stop::MaxCycles);
        }
        for (addr, len) in written {
            self.memory_written(lane, addr, len);
        }
        let offset = (lane * size_of::<CpuState>()) as u64;
        self.device_states.write(offset, &self.states[lane..=lane])?;
        self.upload_status(lane)
    }

    /// Forgets what was decoded from memory that the host has written for a lane.
    fn memory_written(&mut self, lane: usize, addr: u64, len: u64) {
        if self.code.overlaps(lane, addr, len) {
            match self.config.model {
                MemoryModel::Shared => self.code.clear(),
                MemoryModel::Private => self.code.part(lane),
            }
        }
    }

    fn upload(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        for status in &mut self.statuses {
            status.budget = request.max_cycles;
            status.stop = stop::RUNNING;
        }
        self.device_statuses.write(0, &self.statuses)?;
        if std::mem::take(&mut self.states_changed) {
            self.device_states.write(0, &self.states)?;
        }
        self.control.write(offset_of!(Control, cancel), 0);
        Ok(())
    }

    /// Tells the kernel which lanes have records of their own.
    fn upload_own_records(&mut self) -> Result<(), EngineError> {
        self.code.upload(&self.device)?;
        for lane in 0..self.config.lanes {
            let records = self.code.own_records(lane);
            if self.statuses[lane].records != records {
                self.statuses[lane].records = records;
                self.upload_status(lane)?;
            }
        }
        Ok(())
    }
}

/// A lane's words, fetched from the device a page at a time.
struct Words<'a> {
    guest: &'a Guest,
    lane: usize,
    size: u64,
    pages: RefCell<std::collections::HashMap<u64, Option<Box<[u8; PAGE as usize]>>>>,
}

impl<'a> Words<'a> {
    fn new(guest: &'a Guest, lane: usize, size: u64) -> Self {
        Words { guest, lane, size, pages: RefCell::default() }
    }

    fn get(&self, pc: u64) -> Option<u32> {
        if !pc.is_multiple_of(4) || pc.checked_add(4)? > self.size {
            return None;
        }
        let mut pages = self.pages.borrow_mut();
        let page = pages.entry(pc / PAGE).or_insert_with(|| {
            let mut bytes = Box::new([0; PAGE as usize]);
            self.guest.read(self.lane, pc / PAGE * PAGE, &mut bytes[..]).ok()?;
            Some(bytes)
        });
        let at = (pc % PAGE) as usize;
        let bytes = page.as_ref()?[at..at + 4].try_into().expect("four bytes");
        Some(u32::from_le_bytes(bytes))
    }
}

impl Engine for CudaEngine {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn state(&self, lane: usize) -> CpuState {
        self.states[lane]
    }

    fn set_state(&mut self, lane: usize, state: &CpuState) {
        self.states[lane] = *state;
        self.states_changed = true;
    }

    fn status(&self, lane: usize) -> LaneStatus {
        LaneStatus { stop: self.stops[lane], count: self.statuses[lane].count }
    }

    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.device.make_current()?;
        Ok(self.guest.read(lane, addr, bytes)?)
    }

    fn write_memory(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.device.make_current()?;
        self.guest.write(&self.device, lane, addr, bytes)?;
        self.memory_written(lane, addr, bytes.len() as u64);
        Ok(())
    }

    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.device.make_current()?;
        self.guest.write_image(addr, bytes)?;
        self.code.clear();
        Ok(())
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        self.device.make_current()?;
        if self.breakpoints != request.breakpoints {
            self.breakpoints = request.breakpoints.to_vec();
            self.code.clear();
        }
        self.upload(request)?;
        let counted: u64 = self.statuses.iter().map(|s| s.count).sum();
        self.executed = self.control.read(offset_of!(Control, executed));
        let reported = self.executed;
        let mut stops = vec![None; self.config.lanes];
        if request.max_cycles == 0 {
            stops.fill(Some(Stop::MaxCycles));
        } else if !self.breakpoints.is_empty() && !request.control.is_cancelled() {
            for lane in 0..self.config.lanes {
                if self.breakpoints.binary_search(&self.states[lane].pc).is_ok() {
                    self.step(lane, &mut stops)?;
                }
            }
        }
        let mut running = stops.iter().any(Option::is_none);
        // Where all lanes have the same code, the first launch should find some.
        if running && self.code.len() == 0 && !self.guest.has_copies()? {
            self.find_code(0, &mut stops)?;
        }
        while running && !request.control.is_cancelled() {
            self.upload_own_records()?;
            self.launch(request)?;
            running = self.service(&mut stops)?;
        }
        // What was reported on the way lags behind.
        let executed = self.statuses.iter().map(|s| s.count).sum::<u64>() - counted;
        let stopped = stops.iter().flatten().count() as u64;
        request.control.report(executed.saturating_sub(self.executed - reported), stopped);
        self.download_states()?;
        for (lane, stop) in stops.iter().enumerate() {
            if stop.is_some_and(|stop| stop.is_exception()) {
                self.states[lane].exclusive_len = 0;
                self.states_changed = true;
            }
        }
        self.stops = stops;
        Ok(())
    }

    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        self.device.make_current()?;
        if lanes.len() == self.config.lanes {
            self.guest.drop_frames()?;
        } else {
            for lane in lanes.clone() {
                self.guest.drop_pages(lane)?;
            }
        }
        for lane in lanes {
            self.states[lane] = CpuState::new();
            self.statuses[lane] = Status::default();
            self.stops[lane] = None;
            self.code.join(lane);
        }
        self.states_changed = true;
        Ok(())
    }
}
