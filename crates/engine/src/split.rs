//! One machine on several devices: each device has its own engine, which runs a range of the lanes.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use kvrm_a64::state::{CpuState, V_REGISTERS, VectorState};

use crate::{Config, Engine, EngineError, GENERAL, LaneStatus, MemoryModel, RunRequest};

/// Lanes spread over several engines, which run at once.
///
/// Each engine has a contiguous range of lanes with private memory, so that lanes cannot notice the others and
/// results do not depend on the number of engines. If one fails, the runs of the others are cancelled, and the
/// error is returned when all have ended.
pub struct SplitEngine {
    /// Configuration of the whole.
    config: Config,
    /// In the order of their lanes; never empty.
    parts: Vec<Share>,
    sliced: bool,
}

struct Share {
    lanes: Range<usize>,
    engine: Box<dyn Engine>,
}

impl SplitEngine {
    /// Builds `parts` engines, at least one, with `build`, which is given a part's number and what that
    /// part should be.
    ///
    /// Every part except the last has a multiple of `unit` lanes, because GPUs run lanes by the warp. If there
    /// are fewer units than parts, the last parts are left out.
    ///
    /// ```
    /// use kvrm_engine::{Config, Engine, EvalEngine, MemoryModel, SplitEngine};
    /// let config = Config {
    ///     lanes: 100,
    ///     memory_size: 4096,
    ///     model: MemoryModel::Private,
    ///     read_only: false,
    ///     mapped: false,
    ///     supervisor_bytes: 0,
    ///     threads: 0,
    ///     translate_after: 0,
    ///     code_memory: 256 << 20,
    ///     profile: false,
    /// };
    /// let mut sizes = Vec::new();
    /// let engine = SplitEngine::new(config, 2, 32, |_, config| {
    ///     sizes.push(config.lanes);
    ///     Ok(Box::new(EvalEngine::new(config)?))
    /// })?;
    /// assert_eq!((engine.config().lanes, sizes), (100, vec![64, 36]));
    /// # Ok::<(), kvrm_engine::EngineError>(())
    /// ```
    pub fn new(
        config: Config,
        parts: usize,
        unit: usize,
        mut build: impl FnMut(usize, Config) -> Result<Box<dyn Engine>, EngineError>,
    ) -> Result<SplitEngine, EngineError> {
        if config.model == MemoryModel::Shared && parts > 1 {
            return Err(EngineError::SharedMemoryIsWhole);
        }
        let part = |(number, lanes): (usize, Range<usize>)| {
            let engine = build(number, Config { lanes: lanes.len(), ..config.clone() })
                .map_err(|error| of_whole(error, lanes.start))?;
            Ok(Share { lanes, engine })
        };
        let ranges = ranges(config.lanes, parts, unit);
        let parts = ranges.into_iter().enumerate().map(part).collect::<Result<_, _>>()?;
        Ok(SplitEngine { config, parts, sliced: false })
    }

    /// Never asks for [`RunRequest::single_launch`]: if parts share a device, the driver makes one wait for
    /// another's launch, which must then be short.
    pub fn sliced(mut self) -> SplitEngine {
        self.sliced = true;
        self
    }

    /// Returns the part that has a lane, and the lane's number there.
    fn part(&self, lane: usize) -> (usize, usize) {
        let part = self.parts.partition_point(|part| part.lanes.end <= lane);
        (part, lane - self.parts[part].lanes.start)
    }

    /// Returns the parts that have lanes of a range, each with the numbers of those lanes there.
    fn parts_of(&self, lanes: Range<usize>) -> impl Iterator<Item = (&Share, Range<usize>)> {
        let parts = self.parts.iter().map(move |part| (part, part.own(&lanes)));
        parts.filter(|(_, own)| !own.is_empty())
    }

    /// The same, to change them.
    fn parts_of_mut(
        &mut self,
        lanes: Range<usize>,
    ) -> impl Iterator<Item = (&mut Share, Range<usize>)> {
        let parts = self.parts.iter_mut().map(move |part| {
            let own = part.own(&lanes);
            (part, own)
        });
        parts.filter(|(_, own)| !own.is_empty())
    }
}

impl Share {
    /// Returns the lanes of a range that this part has, by its own numbers.
    fn own(&self, lanes: &Range<usize>) -> Range<usize> {
        let first = self.lanes.start;
        let (start, end) = (lanes.start.max(first), lanes.end.min(self.lanes.end));
        if start < end { start - first..end - first } else { 0..0 }
    }
}

/// Returns the lanes of each part: whole units, distributed as evenly as possible.
fn ranges(lanes: usize, parts: usize, unit: usize) -> Vec<Range<usize>> {
    let units = lanes.div_ceil(unit);
    let parts = parts.min(units);
    let start = |part: usize| {
        let larger = part.min(units % parts);
        lanes.min((part * (units / parts) + larger) * unit)
    };
    (0..parts).map(|part| start(part)..start(part + 1)).collect()
}

/// Returns a part's error with the lane's number in the whole.
fn of_whole(error: EngineError, first: usize) -> EngineError {
    match error {
        EngineError::Memory { lane, size, source } => {
            EngineError::Memory { lane: first + lane, size, source }
        }
        EngineError::SharedMemoryIsWhole
        | EngineError::NoThread(_)
        | EngineError::Unsupported(_)
        | EngineError::Device(_)
        | EngineError::DeviceFull(_)
        | EngineError::MappedMemory(_)
        | EngineError::NotMapped(_)
        | EngineError::MappedForMany(_)
        | EngineError::MappedForEach(_)
        | EngineError::NotAdvancing(_)
        | EngineError::Translation { .. } => error,
    }
}

impl Engine for SplitEngine {
    fn name(&self) -> &'static str {
        self.parts[0].engine.name()
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn state(&self, lane: usize) -> Result<CpuState, EngineError> {
        let (part, lane) = self.part(lane);
        self.parts[part].engine.state(lane)
    }

    fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError> {
        let (part, lane) = self.part(lane);
        self.parts[part].engine.set_state(lane, state)
    }

    fn vectors(&self, lane: usize) -> Result<VectorState, EngineError> {
        let (part, lane) = self.part(lane);
        self.parts[part].engine.vectors(lane)
    }

    fn set_vectors(&mut self, lane: usize, vectors: &VectorState) -> Result<(), EngineError> {
        let (part, lane) = self.part(lane);
        self.parts[part].engine.set_vectors(lane, vectors)
    }

    fn status(&self, lane: usize) -> Result<LaneStatus, EngineError> {
        let (part, lane) = self.part(lane);
        self.parts[part].engine.status(lane)
    }

    fn visit_states(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(&CpuState),
    ) -> Result<(), EngineError> {
        let mut parts = self.parts_of(lanes);
        parts.try_for_each(|(part, lanes)| part.engine.visit_states(lanes, visit))
    }

    fn change_states(
        &mut self,
        lanes: Range<usize>,
        change: &mut dyn FnMut(&mut CpuState),
    ) -> Result<(), EngineError> {
        let mut parts = self.parts_of_mut(lanes);
        parts.try_for_each(|(part, lanes)| part.engine.change_states(lanes, change))
    }

    fn visit_vectors(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(&VectorState),
    ) -> Result<(), EngineError> {
        let mut parts = self.parts_of(lanes);
        parts.try_for_each(|(part, lanes)| part.engine.visit_vectors(lanes, visit))
    }

    fn change_vectors(
        &mut self,
        lanes: Range<usize>,
        change: &mut dyn FnMut(&mut VectorState),
    ) -> Result<(), EngineError> {
        let mut parts = self.parts_of_mut(lanes);
        parts.try_for_each(|(part, lanes)| part.engine.change_vectors(lanes, change))
    }

    fn copy_registers(&self, rows: &mut [[u64; GENERAL]]) -> Result<(), EngineError> {
        let copy = |part: &Share| part.engine.copy_registers(&mut rows[part.lanes.clone()]);
        self.parts.iter().try_for_each(copy)
    }

    fn copy_vectors(&self, rows: &mut [[u128; V_REGISTERS]]) -> Result<(), EngineError> {
        let copy = |part: &Share| part.engine.copy_vectors(&mut rows[part.lanes.clone()]);
        self.parts.iter().try_for_each(copy)
    }

    fn visit_statuses(
        &self,
        lanes: Range<usize>,
        visit: &mut dyn FnMut(LaneStatus),
    ) -> Result<(), EngineError> {
        let mut parts = self.parts_of(lanes);
        parts.try_for_each(|(part, lanes)| part.engine.visit_statuses(lanes, visit))
    }

    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        let (part, lane) = self.part(lane);
        self.parts[part].engine.read_memory(lane, addr, bytes)
    }

    fn read_memory_of(
        &self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &mut [u8],
    ) -> Result<(), EngineError> {
        let len = bytes.len() / lanes.len();
        let mut rest = bytes;
        for (part, own) in self.parts_of(lanes) {
            let (rows, after) = rest.split_at_mut(own.len() * len);
            part.engine.read_memory_of(own, addr, rows)?;
            rest = after;
        }
        Ok(())
    }

    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        let mut all = Vec::new();
        for part in &self.parts {
            let pages = part.engine.private_pages()?;
            all.extend(pages.into_iter().map(|(lane, page)| (part.lanes.start + lane, page)));
        }
        Ok(all)
    }

    fn write_memory(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        let (part, lane) = self.part(lane);
        self.parts[part].engine.write_memory(lane, addr, bytes)
    }

    fn write_memory_of(
        &mut self,
        lanes: Range<usize>,
        addr: u64,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        let len = bytes.len() / lanes.len();
        let mut rest = bytes;
        for (part, own) in self.parts_of_mut(lanes) {
            let (rows, after) = rest.split_at(own.len() * len);
            part.engine.write_memory_of(own, addr, rows)?;
            rest = after;
        }
        Ok(())
    }

    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.parts.iter_mut().try_for_each(|part| part.engine.write_image(addr, bytes))
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        let single_launch = request.single_launch && !self.sliced;
        let request = RunRequest { single_launch, ..*request };
        let run = |part: &mut Share| {
            let result = part.engine.run(&request);
            if result.is_err() {
                // End the others early: their results come with an error anyway.
                request.control.cancel();
            }
            result.map_err(|error| of_whole(error, part.lanes.start))
        };
        thread::scope(|scope| {
            let spawn = |part| thread::Builder::new().spawn_scoped(scope, || run(part));
            let threads: Vec<_> = self.parts.iter_mut().map(spawn).collect();
            if threads.iter().any(Result::is_err) {
                request.control.cancel();
            }
            let results = threads.into_iter().map(|thread| {
                thread.map_err(EngineError::NoThread)?.join().unwrap_or_else(|p| resume_unwind(p))
            });
            results.fold(Ok(()), Result::and)
        })
    }

    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        self.parts_of_mut(lanes).try_for_each(|(part, lanes)| part.engine.reset(lanes))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::{EvalEngine, RunControl, Stop};

    const PAGE: u64 = 4096;

    fn config(lanes: usize) -> Config {
        let model = MemoryModel::Private;
        Config {
            lanes,
            memory_size: 2 * PAGE,
            model,
            read_only: false,
            mapped: false,
            supervisor_bytes: 0,
            threads: 0,
            translate_after: 0,
            code_memory: 1 << 20,
            profile: false,
        }
    }

    fn eval(_: usize, config: Config) -> Result<Box<dyn Engine>, EngineError> {
        Ok(Box::new(EvalEngine::new(config)?))
    }

    fn split(lanes: usize, parts: usize) -> SplitEngine {
        SplitEngine::new(config(lanes), parts, 1, eval).unwrap()
    }

    fn request(max_cycles: u64, control: &RunControl) -> RunRequest<'_> {
        RunRequest { max_cycles, breakpoints: &[], single_launch: false, continues: false, control }
    }

    /// `str x0, [x1]`, `subs x0, x0, #1`, `b.ne` to the beginning, `hlt #0`.
    const COUNT_DOWN: [u32; 4] = [0xf900_0020, 0xf100_0400, 0x54ff_ffc1, 0xd440_0000];
    /// `b .`
    const FOR_EVER: [u32; 1] = [0x1400_0000];

    /// Loads a program; lane n has n + 1 in X0 and the second page's address in X1.
    fn load(engine: &mut dyn Engine, code: &[u32]) {
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        engine.write_image(0, &bytes).unwrap();
        for lane in 0..engine.config().lanes {
            let mut state = CpuState::new();
            (state.x[0], state.x[1]) = (lane as u64 + 1, PAGE);
            engine.set_state(lane, &state).unwrap();
        }
    }

    /// Everything that can be seen of a lane.
    fn seen(engine: &dyn Engine, lane: usize) -> (LaneStatus, [u64; 2], u64, Vec<u8>) {
        let state = engine.state(lane).unwrap();
        let mut memory = vec![0; 2 * PAGE as usize];
        engine.read_memory(lane, 0, &mut memory).unwrap();
        (engine.status(lane).unwrap(), [state.x[0], state.x[1]], state.pc, memory)
    }

    #[test]
    fn ranges_are_balanced_and_of_whole_units() {
        let lens = |lanes, parts, unit| -> Vec<usize> {
            let ranges = ranges(lanes, parts, unit);
            let ends = ranges.iter().map(|range| range.end);
            let starts = ranges.iter().map(|range| range.start).skip(1).chain([lanes]);
            assert!(ends.eq(starts) && ranges[0].start == 0, "{ranges:?}");
            ranges.iter().map(Range::len).collect()
        };
        assert_eq!(lens(10, 3, 1), [4, 3, 3]);
        assert_eq!(lens(2, 3, 1), [1, 1]);
        assert_eq!(lens(128, 2, 32), [64, 64]);
        assert_eq!(lens(100, 3, 32), [64, 32, 4]);
        assert_eq!(lens(33, 2, 32), [32, 1]);
        assert_eq!(lens(32, 2, 32), [32]);
        assert_eq!(lens(5, 4, 32), [5]);
        assert_eq!(lens(1 << 24, 3, 32), [5_592_416, 5_592_416, 5_592_384]);
    }

    #[test]
    fn results_are_those_of_one_engine() {
        for parts in [1, 2, 3, 7] {
            let (mut one, mut many) = (EvalEngine::new(config(7)).unwrap(), split(7, parts));
            let controls = [RunControl::new(), RunControl::new()];
            for (engine, control) in
                [&mut one as &mut dyn Engine, &mut many].into_iter().zip(&controls)
            {
                load(engine, &COUNT_DOWN);
                engine.write_memory(4, PAGE + 8, b"four").unwrap();
                engine.run(&request(13, control)).unwrap();
                engine.run(&request(5, control)).unwrap();
            }
            for lane in 0..7 {
                assert_eq!(seen(&one, lane), seen(&many, lane), "lane {lane} of {parts} parts");
            }
            let [a, b] = controls.map(|control| (control.executed(), control.stopped()));
            assert_eq!(a, b);
        }
    }

    #[test]
    fn resets_reach_across_seams() {
        for lanes in [0..10, 2..9, 3..7, 4..5, 9..10] {
            let mut engine = split(10, 3);
            load(&mut engine, &COUNT_DOWN);
            engine.run(&request(100, &RunControl::new())).unwrap();
            engine.reset(lanes.clone()).unwrap();
            for lane in 0..10 {
                let (status, _, _, memory) = seen(&engine, lane);
                let reset = lanes.contains(&lane);
                assert_eq!(
                    status.stop.is_none() && status.count == 0,
                    reset,
                    "{lane} of {lanes:?}"
                );
                assert_eq!(memory[PAGE as usize] == 0, reset, "{lane} of {lanes:?}");
            }
        }
    }

    #[test]
    fn changes_of_registers_reach_across_seams() {
        for lanes in [0..10, 2..9, 3..7, 4..5, 9..10] {
            let mut engine = split(10, 3);
            let mut next = 0..;
            let mut number = || next.next().expect("there is always another");
            engine.change_states(lanes.clone(), &mut |state| state.x[7] = number()).unwrap();
            engine
                .change_vectors(lanes.clone(), &mut |vectors| vectors.v[3][1] = number())
                .unwrap();
            let (mut states, mut vectors) = (Vec::new(), Vec::new());
            engine.visit_states(0..10, &mut |state| states.push(state.x[7])).unwrap();
            engine.visit_vectors(0..10, &mut |lane| vectors.push(lane.v[3][1])).unwrap();
            let mut rows = [[0; V_REGISTERS]; 10];
            engine.copy_vectors(&mut rows).unwrap();
            assert_eq!(rows.map(|row| (row[3] >> 64) as u64), *vectors);
            for lane in 0..10 {
                let nth = lanes.clone().position(|changed| changed == lane);
                let count = lanes.len();
                let expected = nth.map_or([0, 0], |nth| [nth as u64, (count + nth) as u64]);
                assert_eq!([states[lane], vectors[lane]], expected, "{lane} of {lanes:?}");
            }
        }
    }

    #[test]
    fn all_parts_are_cancelled_and_report() {
        let mut engine = split(4, 4);
        load(&mut engine, &FOR_EVER);
        let control = RunControl::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                while control.executed() < 100_000 {
                    thread::yield_now();
                }
                control.cancel();
            });
            engine.run(&request(u64::MAX, &control)).unwrap();
        });
        let counts = (0..4).map(|lane| engine.status(lane).unwrap().count);
        assert_eq!(counts.sum::<u64>(), control.executed());
        assert!((0..4).all(|lane| engine.status(lane).unwrap().stop.is_none()));
        engine.run(&request(5, &RunControl::new())).unwrap();
        assert!((0..4).all(|lane| engine.status(lane).unwrap().stop == Some(Stop::MaxCycles)));
    }

    /// An engine whose runs fail.
    struct Broken(EvalEngine);

    impl Engine for Broken {
        fn name(&self) -> &'static str {
            self.0.name()
        }
        fn config(&self) -> &Config {
            self.0.config()
        }
        fn state(&self, lane: usize) -> Result<CpuState, EngineError> {
            self.0.state(lane)
        }
        fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError> {
            self.0.set_state(lane, state)
        }
        fn vectors(&self, lane: usize) -> Result<VectorState, EngineError> {
            self.0.vectors(lane)
        }
        fn set_vectors(&mut self, lane: usize, vectors: &VectorState) -> Result<(), EngineError> {
            self.0.set_vectors(lane, vectors)
        }
        fn status(&self, lane: usize) -> Result<LaneStatus, EngineError> {
            self.0.status(lane)
        }
        fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
            self.0.read_memory(lane, addr, bytes)
        }
        fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
            self.0.private_pages()
        }
        fn write_memory(
            &mut self,
            lane: usize,
            addr: u64,
            bytes: &[u8],
        ) -> Result<(), EngineError> {
            self.0.write_memory(lane, addr, bytes)
        }
        fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
            self.0.write_image(addr, bytes)
        }
        fn run(&mut self, _: &RunRequest<'_>) -> Result<(), EngineError> {
            Err(full(1))
        }
        fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
            self.0.reset(lanes)
        }
    }

    fn full(lane: usize) -> EngineError {
        EngineError::Memory { lane, size: PAGE, source: io::ErrorKind::OutOfMemory.into() }
    }

    #[test]
    fn an_error_of_one_part_ends_the_run_of_all() {
        let build = |part, config| -> Result<Box<dyn Engine>, EngineError> {
            let engine = EvalEngine::new(config)?;
            Ok(if part == 1 { Box::new(Broken(engine)) } else { Box::new(engine) })
        };
        let mut engine = SplitEngine::new(config(6), 3, 1, build).unwrap();
        load(&mut engine, &FOR_EVER);
        let error = engine.run(&request(u64::MAX, &RunControl::new())).unwrap_err();
        // Lane 1 of the part with lanes 2 and 3.
        assert!(matches!(error, EngineError::Memory { lane: 3, .. }), "{error}");
    }

    #[test]
    fn what_cannot_be_built() {
        let shared = Config { model: MemoryModel::Shared, ..config(4) };
        let error = SplitEngine::new(shared.clone(), 2, 1, eval).err().expect("it is shared");
        assert!(error.to_string().contains("use private memory or one device"), "{error}");
        assert!(SplitEngine::new(shared, 1, 1, eval).is_ok());
        let build = |part, config| if part == 1 { Err(full(0)) } else { eval(part, config) };
        let error = SplitEngine::new(config(6), 2, 1, build).err().expect("the second is full");
        assert!(matches!(error, EngineError::Memory { lane: 3, .. }), "{error}");
    }
}
