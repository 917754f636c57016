#![cfg(target_os = "linux")]
//! What the host does for lanes on a GPU, tried where there is none: with a driver that only copies.
//!
//! The driver is found by name when a process starts, so a test starts this program once more, with
//! `copying_driver.c` compiled and in the way.

use std::path::Path;
use std::process::Command;

use kvrm_a64::state::CpuState;
use kvrm_cuda::{CudaEngine, build};
use kvrm_engine::{Config, Engine, MemoryModel, RunControl, RunRequest, Stop};

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
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
    assert!(compiler.arg(library).arg(source).status().expect("a C compiler").success());
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(["--ignored", "--test-threads", "1"]).env("LD_LIBRARY_PATH", folder.path());
    let output = tests.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(" 5 passed"), "{text}");
}

fn engine(model: MemoryModel, lanes: usize, pages: usize) -> CudaEngine {
    let memory_size = (pages * PAGE) as u64;
    let config =
        Config { lanes, memory_size, model, read_only: false, threads: 1, translate_after: 0 };
    build(config, 0).unwrap()
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
    let control = RunControl::new();
    let request = RunRequest {
        max_cycles: 0,
        breakpoints: &[],
        single_launch: false,
        continues: false,
        control: &control,
    };
    engine.run(&request).unwrap();
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
