//! As many lanes as fill a large GPU, and fewer on engines that run them one after another.

use std::time::{Duration, Instant};

use kvrm::{
    EngineError, EngineKind, Error, FaultKind, Lacking, Lanes, Machine, MemoryModel, Reg,
    RunControl, Stop,
};

use crate::support::{
    CODE, DATA, HALT, MEMORY, Snapshot, Subject, load, read_u64, run_to_halt, set_x, x,
};

for_every_engine! {
    lanes_that_go_their_own_ways, a_counter_of_all_lanes, a_lock_that_all_lanes_want,
    faults_in_some_lanes,
}

/// Threads that an H200 runs at a time.
const FULL: usize = 270_336;

/// As many lanes as asked for on a GPU, a few elsewhere.
fn lanes(subject: Subject, on_a_gpu: usize) -> usize {
    match subject.setup.engine {
        EngineKind::Cuda => on_a_gpu,
        EngineKind::Eval | EngineKind::Wgpu => 48,
        EngineKind::Auto | EngineKind::Cpu => 500,
    }
}

/// Rounds whose branches, loads and stores (to one page) follow from a hash of X27.
fn wander() -> Vec<u8> {
    asm!(
        ; movz x6, 0x7f4b ; movk x6, 0x9e37, lsl 16 ; movk x6, 0x79b9, lsl 32
        ; add x0, x27, 1 ; and x5, x27, 31 ; add x5, x5, 20
        ; again: ; mul x0, x0, x6 ; eor x0, x0, x0, lsr 29 ; and x1, x0, 0xff8 ; tbz x0, 3, >read
        ; add x4, x0, x5 ; str x4, [x28, x1] ; b >next
        ; read: ; ldr x2, [x28, x1] ; add x3, x3, x2 ; tbnz x0, 5, >next ; udiv x3, x0, x5
        ; next: ; subs x5, x5, 1 ; b.ne <again ; hlt 0)
}

/// What is left of some lanes: registers, and the page they wrote.
fn traces(machine: &Machine, lanes: impl Iterator<Item = usize>) -> Vec<(Snapshot, Vec<u8>)> {
    let trace = |lane| {
        let mut page = vec![0; kvrm::PAGE as usize];
        machine.read_memory(lane, DATA, &mut page).unwrap();
        (Snapshot::of(machine, lane), page)
    };
    lanes.map(trace).collect()
}

/// Some of the lanes end as they do alone on the CPU engine.
fn lanes_that_go_their_own_ways(subject: Subject) {
    let mut all = subject.private(lanes(subject, FULL), 0, &wander());
    run_to_halt(&mut all);
    // A step that is odd meets every position in a warp.
    let chosen: Vec<usize> = (0..all.lanes()).step_by((all.lanes() / 1000) | 1).collect();
    let mut alone = Subject::CPU.private(chosen.len(), 0, &wander());
    for (lane, number) in chosen.iter().enumerate() {
        set_x(&mut alone, lane, 27, *number as u64);
    }
    run_to_halt(&mut alone);
    let expected = traces(&alone, 0..chosen.len());
    for ((lane, expected), found) in
        chosen.iter().zip(expected).zip(traces(&all, chosen.iter().copied()))
    {
        assert_eq!(found.0, expected.0, "lane {lane}");
        assert!(found.1 == expected.1, "memory of lane {lane}");
    }
}

/// Every lane adds one, a few times.
fn a_counter_of_all_lanes(subject: Subject) {
    let atomic =
        asm!(; mov x1, 1 ; again: ; ldadd x1, x2, [x28] ; subs x26, x26, 1 ; b.ne <again ; hlt 0);
    let exclusive = asm!(
        ; again: ; ldxr x1, [x28] ; add x1, x1, 1 ; stxr w2, x1, [x28] ; cbnz w2, <again
        ; subs x26, x26, 1 ; b.ne <again ; hlt 0);
    // An exclusive pair that many lanes try at once mostly fails: the time goes with the square of their number.
    for (way, code, most, times) in [("ldadd", atomic, 131_072, 10), ("ldxr", exclusive, 16_384, 1)]
    {
        let mut machine = subject.shared(lanes(subject, most), 0, &code);
        machine.set_register(Lanes::All, Reg::X(26), times).unwrap();
        run_to_halt(&mut machine);
        assert_eq!(read_u64(&machine, 0, DATA), machine.lanes() as u64 * times, "{way}");
    }
}

/// A spin lock keeps increments that are not atomic apart.
fn a_lock_that_all_lanes_want(subject: Subject) {
    let code = asm!(
        ; add x5, x28, 64 ; mov w2, 1
        ; again: ; ldaxr w1, [x28] ; cbnz w1, <again ; stxr w3, w2, [x28] ; cbnz w3, <again
        ; ldr x4, [x5] ; add x4, x4, 1 ; str x4, [x5] ; stlr wzr, [x28] ; hlt 0);
    for wanted in [1_024, 16_384] {
        let mut machine = subject.shared(lanes(subject, wanted), 0, &code);
        run_to_halt(&mut machine);
        assert_eq!(read_u64(&machine, 0, DATA + 64), machine.lanes() as u64);
    }
}

/// Lanes 3 and 5 of every seven access the memory behind the end, each at its own address.
fn faults_in_some_lanes(subject: Subject) {
    let code = asm!(
        ; movz x1, 7 ; udiv x2, x27, x1 ; msub x2, x2, x1, x27 ; add x26, x26, x27, lsl 3
        ; cmp x2, 3 ; b.eq >read ; cmp x2, 5 ; b.eq >write ; add x0, x27, 1 ; hlt 0
        ; read: ; ldr x0, [x26] ; hlt 0
        ; write: ; str x27, [x26] ; hlt 0);
    for model in [MemoryModel::Private, MemoryModel::Shared] {
        let builder = subject.builder().lanes(lanes(subject, 16_384)).model(model);
        let mut machine = load(builder, &code);
        machine.set_register(Lanes::All, Reg::X(26), MEMORY).unwrap();
        machine.run(1_000_000).unwrap();
        for lane in 0..machine.lanes() {
            let address = MEMORY + 8 * lane as u64;
            let (stop, count, result) = match lane % 7 {
                3 => (Stop::Fault { kind: FaultKind::Read, address }, 6, 0),
                5 => (Stop::Fault { kind: FaultKind::Write, address }, 8, 0),
                _ => (HALT, 9, lane as u64 + 1),
            };
            assert_eq!(machine.stop(lane).unwrap(), Some(stop), "lane {lane}");
            assert_eq!((machine.cycles(lane).unwrap(), x(&machine, lane, 0)), (count, result));
        }
    }
}

/// What needs the GPU to itself, for its time or its memory: `--ignored whole_gpu:: --test-threads 1`.
mod whole_gpu {
    use super::*;

    /// Runs until `enough` instructions are done, and cancels; how long the run still took.
    fn time_to_cancel(machine: &mut Machine, enough: u64) -> Duration {
        let control = RunControl::new();
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while control.executed() < enough {
                    std::thread::yield_now();
                }
                let now = Instant::now();
                control.cancel();
                now
            });
            assert!(machine.run_with(u64::MAX, &control).unwrap().cancelled);
            let end = Instant::now();
            end - watcher.join().expect("it only waits")
        })
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU to itself: cargo xtask gpu-check"]
    fn a_run_ends_soon_after_it_is_cancelled() {
        let mut machine =
            Subject::CUDA.private(FULL, 0, &asm!(; again: ; add x0, x0, 1 ; b <again));
        // The first launch waits for the compiler, and the lengths of launches settle.
        for enough in [1, 1_000_000_000, 50_000_000_000] {
            let time = time_to_cancel(&mut machine, enough);
            assert!(enough == 1 || time < Duration::from_millis(50), "{time:?}");
        }
        let before: Vec<u64> = (0..FULL).map(|lane| machine.total_cycles(lane).unwrap()).collect();
        let report = machine.run(1001).unwrap();
        assert_eq!(report.cycles, 1001 * FULL as u64);
        for (lane, before) in before.into_iter().enumerate() {
            let count = machine.total_cycles(lane).unwrap();
            assert_eq!(
                (count, machine.stop(lane).unwrap()),
                (before + 1001, Some(Stop::MaxCycles))
            );
            assert_eq!(x(&machine, lane, 0), count.div_ceil(2), "lane {lane}");
        }
    }

    /// Lane 1 branches further than the tables of a device reach.
    #[test]
    #[ignore = "needs an NVIDIA GPU to itself: cargo xtask gpu-check"]
    fn code_too_far_apart_stops_one_lane() {
        let code = asm!(; cbz x27, >end ; br x26 ; end: ; mov x0, 1 ; hlt 0);
        for model in [MemoryModel::Private, MemoryModel::Shared] {
            let builder = Subject::CUDA.builder().lanes(2).memory(300 << 20).model(model);
            let mut machine = load(builder, &code);
            machine.set_register(Lanes::All, Reg::X(26), 299 << 20).unwrap();
            machine.run(1000).unwrap();
            assert_eq!((machine.stop(0).unwrap(), x(&machine, 0, 0)), (Some(HALT), 1));
            let stop = Stop::OutOfMemory { lacking: Lacking::Code };
            assert_eq!(machine.stop(1).unwrap(), Some(stop));
            assert_eq!((machine.pc(1).unwrap(), machine.cycles(1).unwrap()), (299 << 20, 2));
        }
    }

    /// A machine whose lanes write so many pages each.
    fn writers(lanes: usize, pages: u64) -> Machine {
        let code = asm!(
            ; again: ; str x26, [x28] ; add x28, x28, 1, lsl 12 ; subs x26, x26, 1 ; b.ne <again ; hlt 0);
        let builder = Subject::CUDA.builder().lanes(lanes).memory(4 << 20);
        let mut machine = load(builder, &code);
        machine.set_register(Lanes::All, Reg::X(26), pages).unwrap();
        machine
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU to itself: cargo xtask gpu-check"]
    fn a_full_gpu_can_be_used_again() {
        // 528 GiB, more than any GPU has. The first warp wants little.
        let mut machine = writers(FULL, 512);
        for lane in 0..32 {
            set_x(&mut machine, lane, 26, 1);
        }
        machine.run(u64::MAX).unwrap();
        let stopped = Some(Stop::OutOfMemory { lacking: Lacking::Pages });
        for lane in 0..FULL {
            let (stop, pc) = (machine.stop(lane).unwrap(), machine.pc(lane).unwrap());
            let wanted = if lane < 32 { Some(HALT) } else { stopped };
            assert_eq!(stop, wanted, "lane {lane}");
            assert_eq!(pc, if lane < 32 { CODE + 16 } else { CODE }, "lane {lane}");
        }
        // What the host writes does not fit either, and says so.
        let error = machine.write_memory(40, (4 << 20) - 8, &[1; 8]).expect_err("it is full");
        assert!(matches!(error, Error::Engine(EngineError::DeviceFull(_))), "{error}");
        let text = error.to_string();
        assert!(text.contains("bytes") && text.contains("use fewer lanes"), "{text}");
        drop(machine);
        let mut machine = writers(FULL, 1);
        run_to_halt(&mut machine);
        assert_eq!(read_u64(&machine, FULL - 1, DATA), 1);
    }
}
