//! The fuzz targets on pseudorandom bytes.
//!
//! `KVRM_FUZZ_FIRST` and `KVRM_FUZZ_RUNS` choose other seeds, and more of them.

use std::panic::{catch_unwind, resume_unwind};

#[cfg(unix)]
use kvrm_fuzzing::linux;
use kvrm_fuzzing::{
    api, assemble, cancelling, decode, lanes, large, limits, program, random_bytes,
};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Runs a target with `runs` seeds, or as many as `KVRM_FUZZ_RUNS` says.
fn fuzz(target: fn(&[u8]), runs: u64, len: usize) {
    let first = setting("KVRM_FUZZ_FIRST", 0);
    for seed in first..first + setting("KVRM_FUZZ_RUNS", runs) {
        // Shorter inputs find other things.
        let len = if seed % 3 == 0 { len / 3 } else { len };
        if let Err(panic) = catch_unwind(|| target(&random_bytes(seed, len))) {
            eprintln!("seed {seed}, {len} bytes");
            resume_unwind(panic);
        }
    }
}

#[test]
fn decoding() {
    fuzz(decode::check, 3000, 4096);
}

#[test]
fn assembling() {
    fuzz(assemble::check, 5000, 512);
}

#[test]
fn programs() {
    fuzz(program::check, 1000, 1024);
}

#[test]
fn calls() {
    fuzz(api::check, 3000, 2048);
}

#[test]
fn large_programs() {
    fuzz(large::check, 50, 2048);
}

#[test]
fn lanes_in_shared_memory() {
    fuzz(lanes::check, 60, 2048);
}

#[test]
fn cancelled_runs() {
    fuzz(cancelling::check, 40, 2048);
}

#[test]
fn limits_of_time_and_memory() {
    fuzz(limits::check, 50, 1024);
}

#[cfg(unix)]
#[test]
fn calls_of_linux_programs() {
    fuzz(linux::calls::check, 400, 4096);
}

#[cfg(unix)]
#[test]
fn files_of_linux_programs() {
    fuzz(linux::files::check, 2000, 64);
}
