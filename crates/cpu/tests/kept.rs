//! Programs that were run before, whose translations are on disk, give what they gave.

use std::path::Path;

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_cpu::CpuEngine;
use kvrm_engine::cache::KernelCache;
use kvrm_engine::{CodeUse, Config, Engine, LaneStatus, MemoryModel, RunControl, RunRequest};
use kvrm_mem::Permissions;

const BASE: u64 = 0x1_0000;

const ALL: Permissions = Permissions::READ.union(Permissions::WRITE).union(Permissions::EXECUTE);

/// What a run gave.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    status: LaneStatus,
    state: CpuState,
    vectors: VectorState,
    memory: Vec<u8>,
}

/// How a guest is run.
#[derive(Clone, Copy)]
struct Setup<'a> {
    guest: &'a str,
    iterations: u64,
    memory_size: u64,
    model: MemoryModel,
    mapped: bool,
    breakpoints: &'a [u64],
    /// A word that is changed before the run.
    patch: Option<(u64, u32)>,
}

const SHA256: Setup<'_> = Setup {
    guest: "sha256",
    iterations: 300,
    memory_size: 1 << 20,
    model: MemoryModel::Private,
    mapped: false,
    breakpoints: &[],
    patch: None,
};

fn run(setup: Setup<'_>, cache: KernelCache) -> (Outcome, CodeUse) {
    let config = Config {
        lanes: 1,
        memory_size: setup.memory_size,
        model: setup.model,
        read_only: false,
        mapped: setup.mapped,
        supervisor_bytes: 0,
        threads: 1,
        translate_after: 2000,
        code_memory: 64 << 20,
        profile: false,
    };
    let mut engine = CpuEngine::with_cache(config, cache).unwrap();
    if setup.mapped {
        engine.protect(0, 0, setup.memory_size, ALL).unwrap();
    }
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/bin");
    let program = std::fs::read(guests.join(setup.guest).with_extension("bin")).unwrap();
    let mut writes = vec![(BASE, program)];
    writes.extend(setup.patch.map(|(addr, word)| (addr, word.to_le_bytes().to_vec())));
    for (addr, bytes) in writes {
        match setup.model {
            MemoryModel::Private => engine.write_image(addr, &bytes).unwrap(),
            MemoryModel::Shared => engine.write_memory(0, addr, &bytes).unwrap(),
        }
    }
    let mut state = CpuState::new();
    (state.pc, state.x[0], state.x[1]) = (BASE, 1, setup.iterations);
    engine.set_state(0, &state).unwrap();
    let control = RunControl::default();
    let request = RunRequest {
        max_cycles: 100_000_000,
        breakpoints: setup.breakpoints,
        single_launch: false,
        continues: false,
        control: &control,
    };
    engine.run(&request).unwrap();
    let mut memory = vec![0; setup.memory_size as usize];
    engine.read_memory(0, 0, &mut memory).unwrap();
    let (status, state) = (engine.status(0).unwrap(), engine.state(0).unwrap());
    let vectors = engine.vectors(0).unwrap();
    (Outcome { status, state, vectors, memory }, engine.code_use())
}

/// Runs a guest with nothing on disk, and then with what `first` has left there.
fn compare(first: Setup<'_>, second: Setup<'_>) -> CodeUse {
    let folder = tempfile::tempdir().unwrap();
    let (_, used) = run(first, KernelCache::at(folder.path()));
    assert!(used.translated > 0 && used.kept == 0, "{used:?}");
    let (expected, _) = run(second, KernelCache::nowhere());
    let (outcome, used) = run(second, KernelCache::at(folder.path()));
    assert!(outcome == expected, "{:?} instead of {:?}", outcome.status, expected.status);
    used
}

#[test]
fn a_second_run_translates_nothing() {
    for (guest, iterations) in [("sha256", 300), ("nbody", 300), ("json", 20), ("sort", 100)] {
        let kinds = [
            (MemoryModel::Private, false),
            (MemoryModel::Shared, false),
            (MemoryModel::Shared, true),
        ];
        for (model, mapped) in kinds {
            let setup = Setup { guest, iterations, model, mapped, ..SHA256 };
            let used = compare(setup, setup);
            assert!(used.kept * 10 >= used.translated * 9, "{guest}: {used:?}");
        }
    }
}

#[test]
fn other_programs_get_none_of_it() {
    let used = compare(SHA256, Setup { guest: "crc32", ..SHA256 });
    assert_eq!(used.kept, 0);
    let used = compare(SHA256, Setup { memory_size: 2 << 20, ..SHA256 });
    assert_eq!(used.kept, 0);
    let shared = Setup { model: MemoryModel::Shared, ..SHA256 };
    let mapped = Setup { mapped: true, ..shared };
    for (first, second) in [(shared, mapped), (mapped, shared)] {
        assert_eq!(compare(first, second).kept, 0);
    }
    let used = compare(SHA256, Setup { model: MemoryModel::Shared, ..SHA256 });
    assert_eq!(used.kept, 0);
}

#[test]
fn breakpoints_and_changed_words_are_heeded_wherever_they_are() {
    let program = std::fs::metadata(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/bin/sha256.bin"),
    );
    let end = BASE + program.unwrap().len();
    for addr in (BASE..end).step_by(44) {
        compare(SHA256, Setup { breakpoints: &[addr], ..SHA256 });
        // nop
        compare(SHA256, Setup { patch: Some((addr, 0xd503_201f)), ..SHA256 });
    }
}
