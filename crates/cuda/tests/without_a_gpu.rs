#![cfg(target_os = "linux")]
//! What the host does for lanes on a GPU, tried where there is none: with a driver that only copies, and whose
//! kernel only looks for records.
//!
//! The driver is found by name when a process starts, so a test starts this program once more, with
//! `copying_driver.c` compiled and in the way.

use std::path::Path;
use std::process::Command;

use kvrm_a64::state::CpuState;
use kvrm_cuda::{CudaEngine, build};
use kvrm_engine::code::{DIRECTORY_FACTORS, DIRECTORY_SHIFT};
use kvrm_engine::kernel::{UNDEFINED, stop};
use kvrm_engine::{Config, Engine, FaultKind, Lacking, MemoryModel, RunControl, RunRequest, Stop};

const PAGE: usize = 4096;
/// Not all lanes of the last warp are used.
const LANES: usize = 75;
const PAGES: usize = 5;

#[test]
fn with_a_driver_that_only_copies() {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/copying_driver.c");
    let library = folder.path().join("libcuda.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]);
    compiler.args([
        format!("-DSTATE_BYTES={}", size_of::<CpuState>()),
        format!("-DPC_OFFSET={}", std::mem::offset_of!(CpuState, pc)),
        format!("-DFACTOR={}u", DIRECTORY_FACTORS[0]),
        format!("-DFACTOR_2={}u", DIRECTORY_FACTORS[1]),
        format!("-DSHIFT={DIRECTORY_SHIFT}"),
        format!("-DRUNNING={}", stop::RUNNING),
        format!("-DNO_CODE={}", stop::NO_CODE),
        format!("-DCODE_WRITE={}", stop::CODE_WRITE),
        format!("-DNO_FRAME={}", stop::NO_FRAME),
        format!("-DUNALIGNED={}", stop::exit(kvrm_a64::stop::UNALIGNED)),
    ]);
    assert!(compiler.arg("-o").arg(library).arg(source).status().expect("a C compiler").success());
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(["--ignored", "--test-threads", "1"]).env("LD_LIBRARY_PATH", folder.path());
    tests.env("KVRM_CACHE_DIR", "off");
    let output = tests.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(" 7 passed"), "{text}");
}

fn engine(model: MemoryModel, lanes: usize, pages: usize) -> CudaEngine {
    let memory_size = (pages * PAGE) as u64;
    let config = Config {
        lanes,
        memory_size,
        model,
        read_only: false,
        mapped: false,
        supervisor_bytes: 0,
        threads: 1,
        translate_after: u32::MAX,
        code_memory: 1 << 20,
        profile: false,
    };
    build(config, 0).unwrap()
}

fn run(engine: &mut CudaEngine, max_cycles: u64) {
    let control = RunControl::new();
    let request = RunRequest {
        max_cycles,
        breakpoints: &[],
        single_launch: false,
        continues: false,
        control: &control,
    };
    engine.run(&request).unwrap();
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    /// One below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % end
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

/// Compares everything that lanes see.
fn check(engine: &CudaEngine, wanted: &[Vec<u8>]) {
    let size = PAGES * PAGE;
    let mut rows = vec![0; LANES * size];
    engine.read_memory_of(0..LANES, 0, &mut rows).unwrap();
    for (lane, (row, wanted)) in rows.chunks_exact(size).zip(wanted).enumerate() {
        assert!(row == wanted, "lane {lane}");
    }
}

#[test]
#[ignore = "for the driver that only copies"]
fn lanes_have_what_was_written() {
    let mut engine = engine(MemoryModel::Private, LANES, PAGES);
    let mut random = Random(1);
    let mut image = vec![0; PAGES * PAGE];
    let mut wanted = vec![image.clone(); LANES];
    for step in 0..300 {
        let addr = random.below(PAGES * PAGE);
        let len = random.below((PAGES * PAGE - addr).min(9000)) + 1;
        match random.below(8) {
            0 => {
                let bytes = random.bytes(len);
                engine.write_image(addr as u64, &bytes).unwrap();
                for memory in wanted.iter_mut().chain([&mut image]) {
                    memory[addr..addr + len].copy_from_slice(&bytes);
                }
            }
            1 => {
                let lane = random.below(LANES);
                engine.reset(lane..lane + 1).unwrap();
                wanted[lane].clone_from(&image);
            }
            2 if step % 10 == 0 => {
                engine.reset(0..LANES).unwrap();
                wanted.fill(image.clone());
            }
            _ => {
                let start = random.below(LANES);
                let end = start + 1 + random.below(LANES - start);
                let rows = random.bytes((end - start) * len);
                engine.write_memory_of(start..end, addr as u64, &rows).unwrap();
                for (memory, row) in wanted[start..end].iter_mut().zip(rows.chunks_exact(len)) {
                    memory[addr..addr + len].copy_from_slice(row);
                }
            }
        }
        let lane = random.below(LANES);
        let mut seen = vec![0; len];
        engine.read_memory(lane, addr as u64, &mut seen).unwrap();
        assert!(seen == wanted[lane][addr..addr + len], "lane {lane} in step {step}");
    }
    check(&engine, &wanted);
}

#[test]
#[ignore = "for the driver that only copies"]
fn pages_that_lanes_have_written_are_known() {
    let mut engine = engine(MemoryModel::Private, LANES, PAGES);
    assert_eq!(engine.private_pages().unwrap(), []);
    engine.write_memory(40, PAGE as u64 - 1, &[1, 2]).unwrap();
    engine.write_memory(74, 4 * PAGE as u64, &[3]).unwrap();
    assert_eq!(engine.private_pages().unwrap(), [(40, 0), (40, 1), (74, 4)]);
    engine.reset(40..41).unwrap();
    assert_eq!(engine.private_pages().unwrap(), [(74, 4)]);
    engine.reset(0..LANES).unwrap();
    assert_eq!(engine.private_pages().unwrap(), []);
}

#[test]
#[ignore = "for the driver that only copies"]
fn lanes_that_share_memory_see_the_same() {
    let mut engine = engine(MemoryModel::Shared, LANES, PAGES);
    engine.write_memory(3, 4090, b"a seam in it").unwrap();
    engine.write_image(4092, b"SEAM").unwrap();
    let mut memory = vec![0; PAGES * PAGE];
    memory[4090..4102].copy_from_slice(b"a SEAM in it");
    check(&engine, &vec![memory; LANES]);
    assert_eq!(engine.private_pages().unwrap(), []);
}

#[test]
#[ignore = "for the driver that only copies"]
fn registers_and_counts() {
    let mut engine = engine(MemoryModel::Private, LANES, PAGES);
    for lane in 0..LANES {
        let mut state = CpuState { pc: 4 * lane as u64, ..CpuState::new() };
        state.x[7] = lane as u64 * 3;
        engine.set_state(lane, &state).unwrap();
    }
    run(&mut engine, 0);
    for lane in 0..LANES {
        let state = engine.state(lane).unwrap();
        assert_eq!((state.pc, state.x[7]), (4 * lane as u64, lane as u64 * 3));
        let status = engine.status(lane).unwrap();
        assert_eq!((status.stop, status.count), (Some(Stop::MaxCycles), 0));
    }
    engine.reset(1..2).unwrap();
    assert_eq!([0, 1, 2].map(|lane| engine.state(lane).unwrap().x[7]), [0, 0, 6]);
}

#[test]
#[ignore = "for the driver that only copies"]
fn a_full_device_says_so_and_can_be_used_again() {
    // Room for one piece of 2,048 frames, of which the first is not used.
    let (lanes, pages) = (64, 2048);
    let mut engine = engine(MemoryModel::Private, lanes, pages);
    let write = |engine: &mut CudaEngine, page: usize| {
        engine.write_memory_of(0..lanes, (page * PAGE) as u64, &[7; 64])
    };
    let full = (0..pages).find_map(|page| write(&mut engine, page).err().map(|e| (page, e)));
    let (page, error) = full.expect("two frames a page are more than there are");
    assert_eq!(page, 1023);
    let text = error.to_string();
    assert!(text.contains("no room") && text.contains("use fewer lanes"), "{text}");
    let mut rows = [0; 64];
    engine.read_memory_of(0..lanes, 1022 * PAGE as u64, &mut rows).unwrap();
    assert_eq!(rows, [7; 64]);
    engine.reset(0..lanes).unwrap();
    write(&mut engine, 2047).unwrap();
    engine.read_memory_of(0..lanes, 2047 * PAGE as u64, &mut rows).unwrap();
    assert_eq!(rows, [7; 64]);
}

/// A word that is no instruction: a record says which it was.
fn undefined(random: &mut Random) -> [u8; 4] {
    let word = 0xffff_0000 | random.below(1 << 16) as u32;
    assert!(kvrm_a64::decode(word).is_none());
    word.to_le_bytes()
}

/// Whatever lanes and the host have written, and wherever lanes are: kernels find the records of their words.
#[test]
#[ignore = "for the driver that only copies"]
fn kernels_find_the_records_of_each_lane() {
    let pages = 700;
    for model in [MemoryModel::Private, MemoryModel::Shared] {
        let (mut engine, mut random) = (engine(model, LANES, pages), Random(2));
        for round in 0..25 {
            // Rarely far from each other.
            let around = random.below(pages - 3) * PAGE;
            let place = |random: &mut Random| (around + 4 * random.below(2 * PAGE / 4)) as u64;
            for _ in 0..40 {
                let (lane, at) = (random.below(LANES), place(&mut random));
                match random.below(20) {
                    0 => engine.write_image(at, &undefined(&mut random)).unwrap(),
                    1 => engine.reset(lane..lane + 1).unwrap(),
                    _ => engine.write_memory(lane, at, &undefined(&mut random)).unwrap(),
                }
            }
            for lane in 0..LANES {
                let state = CpuState { pc: place(&mut random), ..CpuState::new() };
                engine.set_state(lane, &state).unwrap();
            }
            run(&mut engine, 1000);
            for lane in 0..LANES {
                let (state, status) = (engine.state(lane).unwrap(), engine.status(lane).unwrap());
                let fault = Stop::Fault { kind: FaultKind::Unaligned, address: state.pc };
                assert_eq!(status.stop, Some(fault), "lane {lane} in round {round}");
                let mut word = [0; 4];
                engine.read_memory(lane, state.pc, &mut word).unwrap();
                let word = u32::from_le_bytes(word);
                if word != 0 {
                    let record = [UNDEFINED.into(), word.into(), 1];
                    assert_eq!(state.x[..3], record, "lane {lane} in round {round}");
                }
            }
        }
    }
}

#[test]
#[ignore = "for the driver that only copies"]
fn lanes_that_find_a_full_device_stop_and_others_do_not() {
    let mut engine = engine(MemoryModel::Private, LANES, PAGES);
    for lane in 0..LANES {
        let mut state = CpuState::new();
        // Together more than the device has, and no more than it has without lane 7.
        state.x[3] = if lane == 7 { 10_000 } else { 10 };
        engine.set_state(lane, &state).unwrap();
    }
    run(&mut engine, 1000);
    for lane in 0..LANES {
        let (state, status) = (engine.state(lane).unwrap(), engine.status(lane).unwrap());
        match status.stop {
            Some(Stop::OutOfMemory { lacking }) => {
                assert_eq!(lacking, Lacking::Pages);
                assert!(lane >= 7 && state.x[3] > 0, "lane {lane}");
            }
            stop => assert!(matches!(stop, Some(Stop::Fault { .. })) && lane != 7, "lane {lane}"),
        }
    }
    // With all frames back, the others have enough.
    engine.reset(0..LANES).unwrap();
    for lane in 0..LANES {
        let mut state = CpuState::new();
        state.x[3] = 10;
        engine.set_state(lane, &state).unwrap();
    }
    run(&mut engine, 1000);
    let stop = |lane| engine.status(lane).unwrap().stop;
    assert!((0..LANES).all(|lane| matches!(stop(lane), Some(Stop::Fault { .. }))));
}
