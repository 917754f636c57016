//! Random programs do what the reference does. A failure names its seed and a reduced program.

use kvrm::verify::{RandomPrograms, RandomVerdict};
use kvrm::{EngineKind, Machine, RunControl};
use kvrm_fuzzing::program::{self, Setup};
use kvrm_fuzzing::random_bytes;

use crate::support::Subject;

for_every_engine! { all_rows, few_words, a_lane_each }

for_llvmpipe! { few_words }

/// Programs of all instructions, in random states.
fn all_rows(subject: Subject) {
    check(subject, 0x1_0000, programs(subject), bytes(subject, 1024));
}

/// Short programs, which loop more.
fn few_words(subject: Subject) {
    check(subject, 0x2_0000, programs(subject), bytes(subject, 420));
}

/// Bytes that a program is made from. Drivers on the CPU take longer than in proportion for many different instructions.
fn bytes(subject: Subject, most: usize) -> usize {
    match subject.setup.engine {
        EngineKind::Wgpu => most / 3,
        _ => most,
    }
}

fn programs(subject: Subject) -> u64 {
    match subject.setup.engine {
        // Each has a kernel of its own, which a driver on the CPU compiles for seconds.
        EngineKind::Wgpu => 4,
        _ if subject.is_slow() => 20,
        _ => 1000,
    }
}

fn check(subject: Subject, first: u64, seeds: u64, len: usize) {
    for seed in first..first + seeds {
        let Err(panic) = std::panic::catch_unwind(|| {
            program::check_with(&random_bytes(seed, len), subject.setup);
        }) else {
            continue;
        };
        eprintln!("seed {seed:#x}, {len} bytes, {subject:?}");
        std::panic::resume_unwind(panic);
    }
}

/// Very many at once, which takes one kernel. `kvrm verify --random` is the same with as many as one likes.
fn a_lane_each(subject: Subject) {
    let (count, lanes, rows) = match subject.setup.engine {
        EngineKind::Cuda if subject.setup.translate_after == u32::MAX => (4000, 2001, None),
        // A kernel of all rows would be compiled again each time that more is translated.
        EngineKind::Cuda => (200, 101, Some(24)),
        // A driver on the CPU compiles a kernel of all rows for many minutes.
        EngineKind::Wgpu => (200, 101, Some(24)),
        // Where everything is translated, that takes a tenth of a second for each.
        EngineKind::Cpu => (30, 16, None),
        EngineKind::Auto | EngineKind::Eval => (200, 101, None),
    };
    let programs = RandomPrograms::new(1, count, lanes, rows);
    let machine = |setup: Setup| {
        let builder = programs.shape(Machine::builder().engine(setup.engine));
        builder.translate_after(setup.translate_after).build().unwrap()
    };
    let mut machines = [machine(Setup::REFERENCE), machine(subject.setup)];
    let verdict = programs.verify(&mut machines, &RunControl::new(), &mut |_| {}).unwrap();
    assert!(matches!(verdict, RandomVerdict::Agree { .. }), "{verdict:#?}");
}
