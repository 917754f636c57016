//! What other devices have or lack, tried on the first one there is: `cargo xtask test` brings llvmpipe.

use std::sync::atomic::{AtomicUsize, Ordering};

use kvrm_a64::state::CpuState;
use kvrm_engine::code::AHEAD;
use kvrm_engine::{
    Config, Engine, EngineError, Lacking, MemoryModel, RunControl, RunRequest, Stop,
};
use wgpu::Features;

use crate::WgpuEngine;
use crate::guest::Limits;
use crate::lanes::build_with;

/// Not all lanes of the last subgroup are used.
const LANES: usize = 37;
const BASE: u64 = 0x1000;

const USUAL: Limits = Limits::NONE;

/// As where the device has its own memory.
const COPIED: Limits = Limits { without: Features::MAPPABLE_PRIMARY_BUFFERS, ..USUAL };

/// All code is translated. That of lanes with private memory is not: it gets more windows in the course of a run, and llvmpipe
/// has to compile everything for each.
fn config(model: MemoryModel, memory_size: u64) -> Config {
    let translate_after = if model == MemoryModel::Shared { 0 } else { u32::MAX };
    Config {
        lanes: LANES,
        memory_size,
        model,
        read_only: false,
        mapped: false,
        supervisor_bytes: 0,
        threads: 1,
        translate_after,
        code_memory: 1 << 20,
        profile: false,
    }
}

fn build(model: MemoryModel, memory_size: u64, way: &Limits, text: &str) -> WgpuEngine {
    let mut engine = build_with(config(model, memory_size), None, *way).unwrap();
    engine.write_image(BASE, &kvrm_asm::assemble(text, BASE).unwrap()).unwrap();
    for lane in 0..LANES {
        let mut state = CpuState { pc: BASE, ..CpuState::new() };
        state.x[0] = lane as u64;
        engine.set_state(lane, &state).unwrap();
    }
    engine
}

fn run(engine: &mut WgpuEngine) -> Result<(), EngineError> {
    run_with(engine, &RunControl::new())
}

fn run_with(engine: &mut WgpuEngine, control: &RunControl) -> Result<(), EngineError> {
    let request = RunRequest {
        max_cycles: 1 << 40,
        breakpoints: &[],
        single_launch: false,
        continues: false,
        control,
    };
    engine.run(&request)
}

fn read(engine: &WgpuEngine, lane: usize, addr: u64) -> u64 {
    let mut bytes = [0; 8];
    engine.read_memory(lane, addr, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// Every lane adds to counters of 64, 32 and 8 bits, by atomics and by plain stores of its own bytes.
const COUNT_TOGETHER: &str = "
        mov     x9, #0x80000
        mov     x5, #50
    again:
        mov     x1, #1
        ldadd   x1, x2, [x9]
        add     x3, x9, #8
        ldaddal w1, w2, [x3]
        add     x3, x9, #16
        ldaddb  w1, w2, [x3]
    retry:
        add     x3, x9, #24
        ldaxr   x4, [x3]
        add     x4, x4, #1
        stlxr   w6, x4, [x3]
        cbnz    w6, retry
        add     x3, x9, #64
        strb    w5, [x3, x0]
        subs    x5, x5, #1
        b.ne    again
        hlt     #0";

fn count_together(way: &Limits) {
    let mut engine = build(MemoryModel::Shared, 1 << 20, way, COUNT_TOGETHER);
    run(&mut engine).unwrap();
    for lane in 0..LANES {
        assert_eq!(engine.status(lane).unwrap().stop, Some(Stop::Halt { imm: 0 }));
    }
    let total = 50 * LANES as u64;
    assert_eq!(read(&engine, 0, 0x80000), total);
    assert_eq!(read(&engine, 0, 0x80008), total);
    assert_eq!(read(&engine, 0, 0x80010), total % 256);
    assert_eq!(read(&engine, 0, 0x80018), total);
    for lane in 0..LANES as u64 {
        assert_eq!(read(&engine, 0, 0x80040 + lane) & 0xff, 1);
    }
}

#[test]
fn lanes_share_memory() {
    count_together(&USUAL);
}

#[test]
fn lanes_share_memory_without_wide_atomics() {
    count_together(&Limits { without: Features::SHADER_INT64_ATOMIC_ALL_OPS, ..USUAL });
}

#[test]
fn lanes_share_memory_in_windows() {
    count_together(&Limits { largest_window: 1 << 19, ..USUAL });
}

/// Every lane writes to the first page, then to each of 64 others, also across them, and adds up what is there.
const WRITE_PAGES: &str = "
        add     x3, x0, #7
        str     x3, [x10]
        mov     x9, #0x1e0000
        mov     x5, #64
    again:
        add     x3, x0, x5
        str     x3, [x9]
        mov     x4, #0xffd
        str     x3, [x9, x4]
        ldr     x6, [x9]
        add     x7, x7, x6
        ldur    x6, [x9, #1]
        add     x7, x7, x6
        add     x9, x9, #0x1000
        subs    x5, x5, #1
        b.ne    again
        hlt     #0";

fn write_pages(way: &Limits) -> Vec<u64> {
    let mut engine = build(MemoryModel::Private, 4 << 20, way, WRITE_PAGES);
    run(&mut engine).unwrap();
    for lane in [0, LANES - 1] {
        assert_eq!(read(&engine, lane, 0), lane as u64 + 7);
        assert_eq!(read(&engine, lane, 0x1e0000), lane as u64 + 64);
        // The store across the boundary has its last bytes on the next page, which was written after it.
        assert_eq!(read(&engine, lane, 0x21fff8) >> 40, (lane as u64 + 1) & 0xff_ffff);
    }
    (0..LANES).map(|lane| engine.state(lane).unwrap().x[7]).collect()
}

#[test]
fn private_memory_in_windows() {
    let usual = write_pages(&USUAL);
    // The image in two windows, and frames in some more.
    assert_eq!(write_pages(&Limits { largest_window: 3 << 20, ..USUAL }), usual);
}

#[test]
fn memory_that_is_copied() {
    assert_eq!(write_pages(&COPIED), write_pages(&USUAL));
    count_together(&COPIED);
}

#[test]
fn much_memory_at_once() {
    for way in [&USUAL, &COPIED] {
        let mut engine = build(MemoryModel::Shared, 40 << 20, way, "hlt #0");
        let bytes: Vec<u8> = (0..33 << 20 | 3).map(|at: u32| (at ^ at >> 9) as u8).collect();
        engine.write_memory(0, 0x2005, &bytes).unwrap();
        let mut seen = vec![0; bytes.len() + 2];
        engine.read_memory(7, 0x2004, &mut seen).unwrap();
        assert!(seen[1..=bytes.len()] == bytes && (seen[0], seen[bytes.len() + 1]) == (0, 0));
    }
}

#[test]
fn windows_are_not_without_number() {
    let config = config(MemoryModel::Shared, 1 << 26);
    let limits = Limits { largest_window: 1 << 16, ..USUAL };
    let error = build_with(config, None, limits).err().unwrap();
    assert!(error.to_string().contains("guest memory"), "{error}");
}

/// Lanes whose number is less than x1 write one page, the others x2.
const WRITE_MANY_OR_FEW: &str = "
        mov     x9, #0x100000
        cmp     x0, x1
        mov     x5, x2
        mov     x6, #1
        csel    x5, x5, x6, hs
    again:
        str     x5, [x9]
        add     x9, x9, #0x1000
        subs    x5, x5, #1
        b.ne    again
        hlt     #0";

#[test]
fn lanes_without_room_for_pages_stop_and_others_do_not() {
    // One window of frames, for fewer pages than all groups want.
    let limits = Limits { largest_window: 3 << 20, most_windows: 3, ..USUAL };
    let mut engine = build(MemoryModel::Private, 4 << 20, &limits, WRITE_MANY_OR_FEW);
    let group = engine.launcher().guest.group as usize;
    for lane in 0..LANES {
        let mut state = engine.state(lane).unwrap();
        (state.x[1], state.x[2]) = (group as u64, 64);
        engine.set_state(lane, &state).unwrap();
    }
    let (mut out, store) = (Vec::new(), BASE + 5 * 4);
    for _ in 0..2 {
        // The second time, nothing more is done, and nothing is lost.
        run(&mut engine).unwrap();
        let before = std::mem::take(&mut out);
        for lane in 0..LANES {
            let (status, state) = (engine.status(lane).unwrap(), engine.state(lane).unwrap());
            let (page, done) = (state.x[9], 64 - state.x[5]);
            match status.stop {
                Some(Stop::OutOfMemory { lacking }) => {
                    assert_eq!((lacking, state.pc), (Lacking::Pages, store), "lane {lane}");
                    assert_eq!((page, status.count), (0x100000 + done * 0x1000, 5 + 4 * done));
                    if done > 0 {
                        assert_eq!(read(&engine, lane, page - 0x1000), state.x[5] + 1);
                    }
                    assert_eq!(read(&engine, lane, page), 0);
                    out.push((lane, done));
                }
                stop => assert_eq!(stop, Some(Stop::Halt { imm: 0 }), "lane {lane}"),
            }
        }
        assert!(out.iter().any(|(_, done)| *done > 0), "{out:?}");
        assert!(out.iter().all(|(lane, _)| *lane >= group), "{out:?}");
        assert!(before.is_empty() || before == out);
        // Only what was stopped goes on.
        for lane in 0..group {
            let mut state = engine.state(lane).unwrap();
            state.pc = store + 16;
            engine.set_state(lane, &state).unwrap();
        }
    }
    // Pages that all lanes give back are there for those that need them.
    engine.reset(0..LANES).unwrap();
    let mut state = CpuState { pc: BASE, ..CpuState::new() };
    state.x[2] = 16;
    engine.set_state(LANES - 1, &state).unwrap();
    run(&mut engine).unwrap();
    assert_eq!(engine.status(LANES - 1).unwrap().stop, Some(Stop::Halt { imm: 0 }));
    state = engine.state(LANES - 1).unwrap();
    assert_eq!((state.x[5], state.x[9]), (0, 0x110000));
}

/// Lane 1 branches a few megabytes away.
#[test]
fn code_without_room_stops_one_lane() {
    let limits = Limits { most_records: 4 << 20, ..USUAL };
    for model in [MemoryModel::Private, MemoryModel::Shared] {
        let mut engine = build(model, 4 << 20, &limits, "cmp x0, #1; b.eq far; hlt #1; far: br x1");
        engine.write_image(0x300000, &kvrm_asm::assemble("hlt #2", 0x300000).unwrap()).unwrap();
        let mut state = engine.state(1).unwrap();
        state.x[1] = 0x300000;
        engine.set_state(1, &state).unwrap();
        run(&mut engine).unwrap();
        for lane in 0..LANES {
            let status = engine.status(lane).unwrap();
            let (stop, count, pc) = match lane {
                1 => (Stop::OutOfMemory { lacking: Lacking::Code }, 3, 0x300000),
                _ => (Stop::Halt { imm: 1 }, 2, BASE + 8),
            };
            assert_eq!((status.stop, status.count), (Some(stop), count), "lane {lane}");
            assert_eq!(engine.state(lane).unwrap().pc, pc);
        }
    }
}

/// Every lane changes a word in much code, and executes it. What that takes is for the changed granules only.
#[test]
fn lanes_that_change_their_code_cost_little() {
    // Code that goes from page to page; the word is in a function.
    let text = "
            adr     x1, function
            ldr     w2, [x1]
            add     w2, w2, w0, lsl #5
            str     w2, [x1]
            bl      function
            hlt     #0
        function:
            mov     x3, #100
            ret";
    let mut engine = build(MemoryModel::Private, 4 << 20, &USUAL, text);
    // Others than these lanes have been all over the place.
    let nops = 0xd503_201f_u32.to_le_bytes().repeat((1 << 20) / 4);
    engine.write_image(0x100000, &nops).unwrap();
    engine.write_image(0x200000, &0xd440_0000_u32.to_le_bytes()).unwrap();
    engine.set_state(0, &CpuState { pc: 0x100000, ..CpuState::new() }).unwrap();
    run(&mut engine).unwrap();
    assert_eq!(engine.status(0).unwrap().count, 1 << 18);
    for lane in 1..LANES {
        let state = engine.state(lane).unwrap();
        assert_eq!(
            (engine.status(lane).unwrap().stop, state.x[3]),
            (Some(Stop::Halt { imm: 0 }), 100 + lane as u64)
        );
    }
    let (code, lanes) = (engine.code(), LANES as u64);
    assert!(code.decoded() < (1 << 18) + 20 * lanes, "{} instructions", code.decoded());
    assert!(code.layout().bytes() < 4 * 2 * (2 << 20) + 1024 * lanes, "{:?}", code.layout());
}

/// Decoding is done in steps, and whether the run goes on is asked between them.
#[test]
fn a_cancelled_run_decodes_no_further() {
    let mut engine = build(MemoryModel::Shared, 4 << 20, &USUAL, "hlt #0");
    let nops = 0xd503_201f_u32.to_le_bytes().repeat((3 << 20) / 4);
    engine.write_image(0x100000, &nops).unwrap();
    for lane in 0..LANES {
        // All in code that nobody has been at.
        let pc = 0x100000 + lane as u64 * (2 << 20) / LANES as u64 / 4 * 4;
        engine.set_state(lane, &CpuState { pc, ..CpuState::new() }).unwrap();
    }
    let asked = AtomicUsize::new(0);
    let control =
        RunControl::new().with_interrupt(move || asked.fetch_add(1, Ordering::Relaxed) >= 6);
    run_with(&mut engine, &control).unwrap();
    // What is found before the first launch, and at most as much for each answer.
    let decoded = engine.code().decoded();
    assert!(decoded <= 7 * AHEAD as u64 && decoded < 3 << 18, "{decoded}");
    assert!((0..LANES).all(|lane| engine.status(lane).unwrap().stop.is_none()));
    run(&mut engine).unwrap();
    assert_eq!(engine.code().decoded(), 3 << 18);
}

/// With NVIDIA's driver, closing devices meanwhile would be a deadlock now and then: of a thread that ends, and one
/// that closes its device.
#[test]
fn threads_with_machines_come_and_go() {
    for _ in 0..4 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| write_pages(&USUAL));
            }
        });
    }
}

fn a_lost_device_is_named(way: &Limits) {
    let mut engine = build(MemoryModel::Private, 1 << 20, way, WRITE_PAGES);
    engine.launcher().guest.device.device.destroy();
    let error = run(&mut engine).unwrap_err().to_string();
    assert!(error.contains(&*engine.launcher().guest.device.name), "{error}");
    assert!(error.contains("was lost"), "{error}");
}

#[test]
fn a_lost_device_is_named_and_a_new_machine_works() {
    a_lost_device_is_named(&USUAL);
    a_lost_device_is_named(&COPIED);
    write_pages(&USUAL);
}
