//! Lanes on a device that has no kernels but lists of handlers, and executes instructions with the evaluator: what is
//! compiled, when, and who waits for it.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_ir::legalise::Lacks;
use kvrm_mem::{PAGE, Permissions};
use tempfile::TempDir;

use super::*;
use crate::cache::KernelCache;
use crate::code::tests::{Store, in_blocks as in_blocks_of};
use crate::kernel::{BLOCK, BREAKPOINT, FIRST_HANDLER, NOT_DECODED, ON_HOST, UNDEFINED};
use crate::lane_view::LaneMemory;
use crate::memory::tests::Fake;
use crate::mirror::DeviceArray;
use crate::translation::Means;
use crate::{Engine, KernelLoad, MemoryModel, Step, step};

/// What each launch is said to take.
const LAUNCH: Duration = Duration::from_millis(100);

/// What is known of a device's compiler.
#[derive(Default)]
struct Compiler {
    /// Handlers and translated instructions of each kernel that was compiled.
    compiled: Mutex<Vec<(usize, usize)>>,
    /// Launches so far. A kernel is not compiled before there were as many as `from`.
    launches: Mutex<u64>,
    launched: Condvar,
    from: AtomicU64,
}

impl Compiler {
    fn compile(&self, kernel: (usize, usize)) {
        let launches = self.launches.lock().unwrap();
        let is_early = |launches: &mut u64| *launches < self.from.load(Ordering::Relaxed);
        drop(self.launched.wait_while(launches, is_early).unwrap());
        self.compiled.lock().unwrap().push(kernel);
    }

    fn launch(&self) {
        *self.launches.lock().unwrap() += 1;
        assert!(*self.launches.lock().unwrap() < 1 << 20, "the lanes get nowhere");
        self.launched.notify_all();
    }

    /// Makes it compile nothing until there were so many launches more.
    fn wait_for(&self, launches: u64) {
        let from = self.launches.lock().unwrap().saturating_add(launches);
        self.from.store(from, Ordering::Relaxed);
        self.launched.notify_all();
    }

    fn count(&self) -> usize {
        self.compiled.lock().unwrap().len()
    }
}

/// An array of anything.
struct Array(Mutex<Vec<u8>>);

impl<T: Pod> DeviceArray<T> for Array {
    fn read(&self, first: usize, elements: &mut [T]) -> Result<(), EngineError> {
        let bytes = bytemuck::cast_slice_mut(elements);
        let start = first * size_of::<T>();
        bytes.copy_from_slice(&self.0.lock().unwrap()[start..start + bytes.len()]);
        Ok(())
    }

    fn write(&self, first: usize, elements: &[T]) -> Result<(), EngineError> {
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        let start = first * size_of::<T>();
        self.0.lock().unwrap()[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

impl Array {
    fn get<T: Pod>(&self, index: usize) -> T {
        let mut element = [T::zeroed()];
        self.read(index, &mut element).unwrap();
        element[0]
    }

    fn set<T: Pod>(&self, index: usize, element: T) {
        self.write(index, &[element]).unwrap();
    }
}

/// What the handlers of a kernel do, and where it has blocks.
struct Kernel {
    handlers: Vec<String>,
    blocks: BTreeSet<u64>,
}

struct Device {
    memory: Fake,
    store: Store,
    compiler: Arc<Compiler>,
    cache: KernelCache,
    most_handlers: usize,
    /// How many times as fast translated code is.
    gain: f64,
    samples: Vec<u64>,
    /// What the handler of a word does.
    routines: HashMap<u32, String>,
}

impl Device {
    /// Lets a lane execute a share of instructions. How many it has completed in blocks, and in all, and whether it stopped.
    fn run(
        &mut self,
        kernel: &Kernel,
        launch: &Launch<'_, Array>,
        lane: usize,
    ) -> (u64, u64, bool) {
        let (states, vectors) = (launch.states.device(), launch.vectors.device());
        let statuses = launch.statuses.device();
        let mut status: Status = statuses.get(lane);
        if status.stop != stop::RUNNING && !stop::is_for_host(status.stop) {
            return (0, 0, false);
        }
        let (mut state, mut vector): (CpuState, VectorState) =
            (states.get(lane), vectors.get(lane));
        let (mut in_blocks, mut done) = (0, 0);
        let (stop, detail) = loop {
            if done == launch.share {
                break (stop::RUNNING, 0);
            }
            if status.budget == 0 {
                break (stop::MAX_CYCLES, 0);
            }
            let record = match self.memory.map() {
                Some(_) => in_blocks_of(&self.store, state.pc).0,
                None => self.store.record(launch.code, lane as u32, state.pc),
            };
            match record.handler() {
                NOT_DECODED => break (stop::NO_CODE, state.pc),
                UNDEFINED => break (stop::UNDEFINED, record.wide()),
                BREAKPOINT => break (stop::BREAKPOINT, 0),
                ON_HOST => break (stop::NO_HANDLER, 0),
                BLOCK => assert!(kernel.blocks.contains(&state.pc), "a block at {:#x}", state.pc),
                number => {
                    // The record is for this kernel, and for the word that is there.
                    let mut word = [0; 4];
                    self.memory.read(lane, state.pc, &mut word).unwrap();
                    let word = u32::from_le_bytes(word);
                    let wanted = self.routines.entry(word).or_insert_with(|| {
                        let row = kvrm_a64::decode(word).unwrap();
                        crate::kernel::cut_shape(row, word).after.to_string()
                    });
                    assert_eq!(kernel.handlers[(number - FIRST_HANDLER) as usize], *wanted);
                }
            }
            let view = LaneMemory::new(&mut self.memory, lane, None);
            let end = step(&mut state, &mut vector, status.count, &view, &mut |_, _| ());
            view.check().unwrap();
            match end {
                Step::Done => {}
                Step::Stopped(Stop::Halt { imm }) => {
                    break (stop::exit(kvrm_a64::stop::HLT), imm.into());
                }
                other => panic!("{other:?} at {:#x}", state.pc),
            }
            in_blocks += u64::from(!kernel.blocks.is_empty());
            (status.count, status.budget) = (status.count + 1, status.budget - 1);
            done += 1;
        };
        self.samples.push(state.pc);
        (status.stop, status.detail) = (stop, detail);
        states.set(lane, state);
        vectors.set(lane, vector);
        statuses.set(lane, status);
        (in_blocks, done, stop != stop::RUNNING)
    }
}

impl Launcher for Device {
    const NAME: &'static str = "test";
    const UNBOUNDED: bool = false;

    type Array = Array;
    type Memory = Fake;
    type Target = ();
    type Compiled = (Kernel, bool);
    type Kernel = Kernel;

    fn memory(&self) -> &Fake {
        &self.memory
    }

    fn memory_mut(&mut self) -> &mut Fake {
        &mut self.memory
    }

    fn start_time(&self) -> Duration {
        Duration::ZERO
    }

    fn target(&self, _: &DecodedCode) {}

    fn compiler(
        &self,
        code: &DecodedCode,
        translation: Option<&Arc<Translation>>,
    ) -> Compile<(Kernel, bool)> {
        let handlers: Vec<String> =
            code.handlers.iter().map(|handler| handler.routine.to_string()).collect();
        let blocks: BTreeSet<u64> =
            translation.iter().flat_map(|it| it.heads()).map(|(pc, _)| pc).collect();
        let translated = translation.map_or(0, |translation| translation.instructions());
        let (compiler, cache) = (self.compiler.clone(), self.cache.clone());
        Box::new(move || {
            let text = format!("{handlers:?} {blocks:?} {translated}");
            let key = KernelKey { engine: "test", text: &text, device: "", driver: "" };
            let cached = cache.get(&key).is_some();
            if !cached {
                compiler.compile((handlers.len(), translated));
                cache.put(&key, b"compiled");
            }
            Ok((Kernel { handlers, blocks }, cached))
        })
    }

    fn load(&self, compiled: (Kernel, bool)) -> Result<(Kernel, bool), EngineError> {
        Ok(compiled)
    }

    fn translator(&mut self) -> Option<&mut dyn Translator> {
        Some(self)
    }

    fn most_handlers(&self) -> usize {
        self.most_handlers
    }

    fn cache(&self) -> KernelCache {
        self.cache.clone()
    }

    fn key<'a>(&'a self, text: &'a str) -> KernelKey<'a> {
        KernelKey { engine: "test", text, device: "", driver: "" }
    }

    fn begin(
        &mut self,
        statuses: &mut Mirror<Status, Array>,
        max_cycles: u64,
        _: bool,
    ) -> Result<(), EngineError> {
        for lane in 0..self.memory.lanes() {
            let status = statuses.get(lane)?;
            let begun = Status { budget: max_cycles, stop: stop::RUNNING, ..status };
            statuses.set(lane..lane + 1, begun)?;
        }
        Ok(())
    }

    fn upload(&mut self, code: &mut DecodedCode) -> Result<(), EngineError> {
        code.upload(&mut self.store)
    }

    fn launch(
        &mut self,
        kernel: &Kernel,
        launch: &Launch<'_, Array>,
    ) -> Result<Launched, EngineError> {
        let (mut executed, mut in_blocks, mut stopped) = (0, 0, Vec::new());
        for lane in 0..self.memory.lanes() {
            let (blocks, done, has_stopped) = self.run(kernel, launch, lane);
            (executed, in_blocks) = (executed + done, in_blocks + blocks);
            if has_stopped {
                stopped.push(lane as u32);
            }
        }
        self.compiler.launch();
        let part = in_blocks as f64 / executed.max(1) as f64;
        let time = LAUNCH.mul_f64(1.0 - part + part / self.gain);
        Ok(Launched { time, executed, stopped })
    }
}

impl Translator for Device {
    fn means(&self) -> Means {
        Means { lacks: Lacks::EVERYTHING, calls: true, most: 500 }
    }

    fn samples(&mut self) -> Result<Vec<u64>, EngineError> {
        Ok(std::mem::take(&mut self.samples))
    }
}

/// What several engines have in common: a cache, and what they are like.
struct Bench {
    folder: TempDir,
    lanes: usize,
    most_handlers: usize,
    translate_after: u32,
    gain: f64,
}

impl Bench {
    fn new() -> Bench {
        let folder = TempDir::new().unwrap();
        Bench { folder, lanes: 2, most_handlers: usize::MAX, translate_after: u32::MAX, gain: 1.0 }
    }

    /// An engine whose lanes begin with some code, at address 0, and pages with other code.
    fn engine(&self, code: &[u32], pages: &[(u64, &[u32])]) -> LaunchEngine<Device> {
        let last = pages.iter().map(|(page, _)| *page).max().unwrap_or(0);
        let mut flat = vec![0; (last + 1) as usize * PAGE as usize];
        for (page, words) in [(0, code)].iter().chain(pages) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            flat[(page * PAGE) as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        let size = flat.len() as u64;
        self.build(Fake::with(true, self.lanes, flat), size, false)
    }

    fn build(&self, memory: Fake, memory_size: u64, mapped: bool) -> LaunchEngine<Device> {
        let lanes = self.lanes;
        let config = Config {
            lanes,
            memory_size,
            model: MemoryModel::Shared,
            read_only: false,
            mapped,
            supervisor_bytes: 0,
            threads: 1,
            translate_after: self.translate_after,
            code_memory: 1 << 20,
            profile: false,
        };
        let device = Device {
            memory,
            store: Store::default(),
            compiler: Arc::default(),
            cache: KernelCache::at(self.folder.path()),
            most_handlers: self.most_handlers,
            gain: self.gain,
            samples: Vec::new(),
            routines: HashMap::new(),
        };
        let array = |size: usize| Array(Mutex::new(vec![0; lanes * size]));
        let arrays =
            [size_of::<CpuState>(), size_of::<VectorState>(), size_of::<Status>()].map(array);
        let share = Share::new(64, 64, Duration::from_millis(1));
        LaunchEngine::new(config, device, arrays, 0, share)
    }
}

fn run(engine: &mut LaunchEngine<Device>, max_cycles: u64, control: &RunControl) {
    let request = RunRequest {
        max_cycles,
        breakpoints: &[],
        single_launch: false,
        continues: false,
        control,
    };
    engine.run(&request).unwrap();
}

/// Runs to the end, in which all lanes halt. How many kernels were compiled.
fn run_all(engine: &mut LaunchEngine<Device>) -> usize {
    let control = RunControl::new();
    control.cancel_at(Instant::now() + Duration::from_secs(60));
    run(engine, u64::MAX, &control);
    for lane in 0..engine.config().lanes {
        assert_eq!(engine.status(lane).unwrap().stop, Some(Stop::Halt { imm: 0 }));
    }
    engine.launcher().compiler.count()
}

fn set(engine: &mut LaunchEngine<Device>, lane: usize, change: impl FnOnce(&mut CpuState)) {
    let mut state = engine.state(lane).unwrap();
    change(&mut state);
    engine.set_state(lane, &state).unwrap();
}

const HLT: u32 = 0xd440_0000;
/// `add x1, x1, #1`, `mul x2, x1, x1`, `eor x3, x3, x2`, `clz x4, x1`, `udiv x5, x3, x4`
const ADD: u32 = 0x9100_0421;
const MUL: u32 = 0x9b01_7c22;
const EOR: u32 = 0xca02_0063;
const CLZ: u32 = 0xdac0_1024;
const UDIV: u32 = 0x9ac4_0865;
/// `br x0`, `subs x9, x9, #1`
const BR: u32 = 0xd61f_0000;
const SUBS: u32 = 0xf100_0529;
/// `b.ne` to so many words before.
const fn back(words: u32) -> u32 {
    0x5400_0001 | (0x7_ffff & words.wrapping_neg()) << 5
}

/// Words that are taken for code, and end in HLT.
fn code(words: &[u32]) -> Vec<u32> {
    let mut code: Vec<u32> = words.iter().copied().cycle().take(40).collect();
    code.push(HLT);
    code
}

#[test]
fn a_program_of_many_kinds_takes_one_kernel_cold_and_none_warm() {
    let bench = Bench::new();
    let (first, second) = (code(&[ADD, MUL, EOR]), code(&[CLZ, UDIV]));
    for compiled in [1, 0] {
        let mut engine = bench.engine(&[ADD, BR], &[(1, &first), (2, &second)]);
        for lane in 0..2 {
            set(&mut engine, lane, |state| state.x[0] = PAGE * (1 + lane as u64));
        }
        assert_eq!(run_all(&mut engine), compiled);
        let kernels = engine.start_times().kernels;
        let [KernelLoad { handlers: 7, cached, .. }] = kernels[..] else { panic!("{kernels:?}") };
        assert_eq!(cached, compiled == 0);
        assert_eq!(engine.state(0).unwrap().x[1], 1 + 14);
    }
}

#[test]
fn a_kernel_with_more_handlers_will_do() {
    let bench = Bench::new();
    let all = [ADD, MUL, EOR, CLZ, UDIV, HLT];
    assert_eq!(run_all(&mut bench.engine(&all, &[])), 1);
    // In another order, and fewer.
    assert_eq!(run_all(&mut bench.engine(&[UDIV, EOR, CLZ, ADD, MUL, HLT], &[])), 0);
    let mut engine = bench.engine(&[CLZ, ADD, HLT], &[]);
    assert_eq!(run_all(&mut engine), 0);
    assert_eq!(engine.start_times().kernels[0].handlers, 6);
    // Another that it lacks; and then that kernel has all.
    assert_eq!(run_all(&mut bench.engine(&[CLZ, SUBS, HLT], &[])), 1);
    assert_eq!(run_all(&mut bench.engine(&[SUBS, CLZ, HLT], &[])), 0);
    // If nothing is kept of it, each has its own.
    let mut engine = bench.engine(&[CLZ, HLT], &[]).without_other_kernels();
    assert_eq!(run_all(&mut engine), 1);
}

#[test]
fn what_is_much_larger_or_has_vectors_is_not_taken() {
    let mut kinds = BTreeSet::new();
    let mut handlers = crate::kernel::Handlers::new();
    // Shapes of integer instructions that go on.
    let words: Vec<u32> = kvrm_a64::table()
        .iter()
        .map(|row| row.pattern.value | row.pattern.preferred)
        .filter(|word| kvrm_a64::flow(*word, 0).is_next() && word >> 24 & 0x1f == 0x0b)
        .filter(|word| kinds.insert(handlers.record(0, *word).handler()))
        .collect();
    let words: Vec<u32> = words.into_iter().chain([CLZ, HLT]).collect();
    assert!(words.len() < 30, "{}", words.len());
    let many: Vec<u32> = [ADD, MUL, EOR, UDIV, SUBS].into_iter().chain(words).collect();
    let bench = Bench::new();
    run_all(&mut bench.engine(&many, &[]));
    let few = [CLZ, HLT];
    let is_near = many.len() <= few.len() + 24;
    assert_eq!(run_all(&mut bench.engine(&few, &[])), usize::from(!is_near));
    // add v0.2d, v0.2d, v0.2d
    let bench = Bench::new();
    run_all(&mut bench.engine(&[0x4ee0_8400, ADD, HLT], &[]));
    assert_eq!(run_all(&mut bench.engine(&[ADD, HLT], &[])), 1);
    assert_eq!(run_all(&mut bench.engine(&[0x4ee0_8400, HLT], &[])), 0);
}

#[test]
fn a_kernel_that_is_not_there_yet_holds_up_nobody_else() {
    let bench = Bench::new();
    let loops = [ADD, SUBS, back(2), BR];
    let far = code(&[MUL, EOR, CLZ, UDIV]);
    let mut engine = bench.engine(&loops, &[(100, &far)]);
    for (lane, turns) in [(0, 1), (1, 2000)] {
        set(&mut engine, lane, |state| (state.x[0], state.x[9]) = (100 * PAGE, turns));
    }
    run(&mut engine, 1, &RunControl::new());
    // From here on, nothing is compiled before there were 20 launches, in which lane 1 is in its loop.
    engine.launcher().compiler.wait_for(20);
    assert_eq!(run_all(&mut engine), 2);
    // Had it waited for the second kernel instead of launching the first, that would never have come.
    assert_eq!(engine.start_times().kernels.len(), 2);
    let counts = [0, 1].map(|lane| engine.status(lane).unwrap().count);
    assert_eq!(counts, [3 + 1 + 40, 6000 + 1 + 40]);
}

#[test]
fn nobody_waits_for_a_kernel_that_is_not_wanted_any_more() {
    let bench = Bench::new();
    let mut engine = bench.engine(&[ADD, HLT], &[]);
    let compiler = engine.launcher().compiler.clone();
    compiler.wait_for(u64::MAX);
    // Cancelled while all lanes wait.
    let asked = AtomicU64::new(0);
    let control =
        RunControl::new().with_interrupt(move || asked.fetch_add(1, Ordering::Relaxed) > 5);
    run(&mut engine, u64::MAX, &control);
    assert_eq!(engine.status(0).unwrap(), crate::LaneStatus { stop: None, count: 0 });
    // This takes no time, and the kernel is compiled after all, for the next.
    drop(engine);
    compiler.wait_for(0);
    let mut engine = bench.engine(&[ADD, HLT], &[]);
    run_all(&mut engine);
    drop(engine);
}

#[test]
fn a_run_that_was_cancelled_goes_on_with_the_kernel() {
    let bench = Bench::new();
    let mut engine = bench.engine(&[ADD, HLT], &[]);
    engine.launcher().compiler.wait_for(u64::MAX);
    let asked = AtomicU64::new(0);
    let control =
        RunControl::new().with_interrupt(move || asked.fetch_add(1, Ordering::Relaxed) > 5);
    run(&mut engine, u64::MAX, &control);
    engine.launcher().compiler.wait_for(0);
    assert_eq!(run_all(&mut engine), 1);
}

#[test]
fn the_host_executes_what_a_kernel_has_no_room_for() {
    let bench = Bench { most_handlers: 3, ..Bench::new() };
    let words = [ADD, ADD, MUL, MUL, CLZ, EOR, UDIV, SUBS, HLT];
    let mut engine = bench.engine(&words, &[]);
    assert_eq!(run_all(&mut engine), 1);
    assert_eq!(engine.start_times().kernels[0].handlers, 3);
    assert_eq!(engine.status(1).unwrap().count, words.len() as u64 - 1);
    assert_eq!(engine.state(1).unwrap().x[2], 4);
}

/// A loop that is worth it.
const LOOP: [u32; 5] = [ADD, MUL, SUBS, back(3), HLT];

fn looping(bench: &Bench) -> LaunchEngine<Device> {
    let mut engine = bench.engine(&LOOP, &[]);
    for lane in 0..bench.lanes {
        set(&mut engine, lane, |state| state.x[9] = 20_000);
    }
    engine
}

fn translating(gain: f64) -> Bench {
    Bench { translate_after: 1000, gain, lanes: 8, ..Bench::new() }
}

#[test]
fn a_second_run_starts_translated_and_waits_for_nothing() {
    let bench = translating(4.0);
    let mut engine = looping(&bench);
    assert_eq!(run_all(&mut engine), 2);
    let translated = |engine: &LaunchEngine<Device>| -> Vec<usize> {
        engine.start_times().kernels.iter().map(|kernel| kernel.translated).collect()
    };
    assert_eq!(translated(&engine), [0, 4]);
    assert!(engine.code().translation().is_some());
    let first = *engine.launcher().compiler.launches.lock().unwrap();
    let mut engine = looping(&bench);
    assert_eq!(run_all(&mut engine), 0);
    assert_eq!(translated(&engine), [0, 4]);
    assert!(engine.start_times().kernels.iter().all(|kernel| kernel.cached));
    assert_eq!(*engine.launcher().compiler.launches.lock().unwrap(), first);
}

#[test]
fn what_translating_makes_slower_is_interpreted_again() {
    let bench = translating(0.5);
    let mut engine = looping(&bench);
    assert_eq!(run_all(&mut engine), 2);
    assert!(engine.code().translation().is_none());
}

/// The loop in mapped memory, of one lane.
fn mapped(bench: &Bench, code: &[u32]) -> LaunchEngine<Device> {
    let mut memory = Fake::mapped();
    let at = 0x40_0000;
    memory.map_mut().unwrap().protect(0, at / PAGE..at / PAGE + 1, Permissions::EXECUTE);
    let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    memory.write(0, at, &bytes).unwrap();
    let mut engine = bench.build(memory, 1 << 39, true);
    set(&mut engine, 0, |state| (state.pc, state.x[9]) = (at, 20_000));
    engine
}

#[test]
fn code_in_mapped_memory_is_translated_once_its_kernel_stays_the_same() {
    let bench = Bench { lanes: 1, ..translating(4.0) };
    let mut engine = mapped(&bench, &LOOP);
    assert_eq!(run_all(&mut engine), 2);
    assert_eq!(engine.start_times().kernels[1].translated, 4);
    assert!(engine.code().translation().is_some());
}

#[test]
fn a_kernel_that_may_be_extended_again_is_not_translated_yet() {
    let bench = Bench { lanes: 1, ..translating(4.0) };
    let mut engine = mapped(&bench, &LOOP);
    run(&mut engine, 64, &RunControl::new());
    // As much as ten launches.
    engine.choosing.kernel_cost = Duration::from_secs(1);
    run(&mut engine, 15 * 64, &RunControl::new());
    assert_eq!(engine.launcher().compiler.count(), 1);
    assert_eq!(run_all(&mut engine), 2);
    assert_eq!(engine.start_times().kernels[1].translated, 4);
}

#[test]
fn a_kernel_that_lanes_wait_for_comes_before_a_translation() {
    let bench = translating(4.0);
    // A loop, and code far away that wants other handlers.
    let loops = [ADD, MUL, SUBS, back(3), BR];
    let mut engine = bench.engine(&loops, &[(100, &code(&[EOR, CLZ, UDIV]))]);
    for lane in 0..8 {
        let turns = if lane == 0 { 500 } else { 20_000 };
        set(&mut engine, lane, |state| (state.x[0], state.x[9]) = (100 * PAGE, turns));
    }
    run(&mut engine, 64, &RunControl::new());
    // Nothing is compiled before lane 0 has left the loop, by when the loop is worth a translation.
    engine.launcher().compiler.wait_for(40);
    run_all(&mut engine);
    let kernels = engine.start_times().kernels;
    let loaded: Vec<_> =
        kernels.iter().map(|kernel| (kernel.handlers, kernel.translated > 0)).collect();
    assert_eq!(loaded, [(5, false), (9, false), (9, true)]);
    assert_eq!(engine.status(0).unwrap().count, 4 * 500 + 1 + 40);
}

#[test]
fn where_all_is_translated_at_first_there_is_one_kernel_for_what_is_decoded() {
    let bench = Bench { translate_after: 0, ..Bench::new() };
    let mut engine = bench.engine(&[ADD, BR], &[(100, &[EOR, CLZ, UDIV, HLT])]);
    for lane in 0..2 {
        set(&mut engine, lane, |state| state.x[0] = 100 * PAGE);
    }
    assert_eq!(run_all(&mut engine), 2);
    let kernels = engine.start_times().kernels;
    let loaded: Vec<_> =
        kernels.iter().map(|kernel| (kernel.handlers, kernel.translated)).collect();
    assert_eq!(loaded, [(2, 2), (6, 5)]);
}
