//! `kvrm run` beside qemu-user: programs of Debian for arm64, and programs in C that try one part of Linux each.
//!
//! `KVRM_DEBIAN_ARM64` names the Debian; `cargo xtask debian-arm64` makes it. `KVRM_LINUX_ONLY` chooses cases by
//! parts of their names, with commas. `KVRM_LINUX_ENGINE` chooses the engine; with any other than `cpu`, only
//! programs of a single process and thread run. `KVRM_LINUX_JOBS` is how many run at a time.
//!
//! Where this program runs without the repository, `KVRM_COMMAND` is the command, `KVRM_LINUX_TESTS` the folder with the
//! cases, and `KVRM_LINUX_PROGRAMS` that of the programs in C, which are built.

#![cfg(target_os = "linux")]

mod case;
mod check;
mod commands;
mod engines;
mod expected;
mod many;
mod place;
mod programs;
mod python;
mod snapshots;
mod streams;

use std::path::{Path, PathBuf};

use case::Case;
use check::{bless, compare};
use place::{Kvrm, Qemu};

/// Returns the Debian for arm64, or nothing if the environment names none.
fn debian() -> Option<PathBuf> {
    let Some(root) = std::env::var_os("KVRM_DEBIAN_ARM64").map(PathBuf::from) else {
        eprintln!(
            "skipped: KVRM_DEBIAN_ARM64 is not set; `cargo xtask debian-arm64` prints a value"
        );
        return None;
    };
    assert!(
        root.join("usr/bin/busybox").is_file(),
        "KVRM_DEBIAN_ARM64 is {}, which has no usr/bin/busybox",
        root.display()
    );
    Some(root.canonicalize().unwrap())
}

/// Files of this test.
fn folder() -> PathBuf {
    let given = std::env::var_os("KVRM_LINUX_TESTS").map(PathBuf::from);
    given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/linux"))
}

fn with_kvrm(cases: &[Case]) {
    if let Some(root) = debian() {
        let kvrm = Kvrm::new(root);
        let runs = |case: &&Case| kvrm.runs(case);
        let cases: Vec<_> = cases.iter().filter(runs).collect();
        compare(&cases, |case| kvrm.output(case));
    }
}

fn with_qemu(cases: &[Case]) {
    let Some(qemu) = debian().and_then(Qemu::new) else { return };
    let cases: Vec<_> = cases.iter().filter(|case| case.qemu_is_right).collect();
    match std::env::var_os("KVRM_BLESS") {
        Some(_) => bless(&cases, |case| qemu.output(case)),
        None => compare(&cases, |case| qemu.output(case)),
    }
}

#[test]
fn command_lines_give_what_is_expected() {
    with_kvrm(&commands::all());
}

#[test]
fn programs_give_what_is_expected() {
    with_kvrm(&programs::all());
}

#[test]
#[ignore = "for checking at the end"]
fn held_out_command_lines_give_what_is_expected() {
    with_kvrm(&commands::held_out());
}

#[test]
fn qemu_gives_what_command_lines_are_expected_to() {
    with_qemu(&[commands::all(), commands::held_out()].concat());
}

#[test]
fn qemu_gives_what_programs_are_expected_to() {
    with_qemu(&programs::all());
}
