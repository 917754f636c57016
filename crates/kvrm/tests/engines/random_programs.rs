//! Random programs do what the reference does. A failure names its seed and a reduced program.

use kvrm::EngineKind;
use kvrm_fuzzing::{program, random_bytes};

use crate::support::Subject;

for_every_engine! { all_rows, few_words }

/// Programs of all instructions, in random states.
fn all_rows(subject: Subject) {
    check(subject, 0x1_0000, programs(subject), 1024);
}

/// Short programs, which loop more.
fn few_words(subject: Subject) {
    check(subject, 0x2_0000, programs(subject), 420);
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
