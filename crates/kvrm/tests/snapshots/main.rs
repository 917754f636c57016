//! Programs that go on from a snapshot do what they would have done in one run, and snapshots that are broken do no harm.

#![cfg(unix)]

mod program;

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use kvrm::EngineKind;
use kvrm::linux::{Limits, Many, Outcome, Point, Process, Row, Snapshot};
use kvrm_random::Random;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// A folder with the program.
fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("program");
    program::write(&path);
    (folder, path)
}

/// Everything that a run did. The children of a program may be on another engine.
fn facts(outcome: &Outcome) -> String {
    format!("{:?}", Outcome { moved: None, ..outcome.clone() })
}

const INPUT: &[u8] = b"through the pipe\n";

#[test]
fn going_on_does_what_one_run_does() {
    let (_folder, path) = folder();
    let whole = Process::new(&path).stdin(INPUT).run().unwrap();
    assert_eq!(whole.stdout, b"begin\nthrough the pipe\n", "{whole:?}");
    assert_eq!((whole.code(), whole.files.len()), (Some(8 + 7 + 3), 1), "{whole:?}");
    let points = [
        Point::FirstRead,
        Point::Address(program::before_input()),
        Point::Address(0x40_0078),
        Point::Address(0x40_0078 + 40 * 4),
    ];
    for point in points {
        let snapshot = Process::new(&path).boot_until(&point).unwrap();
        assert!(snapshot.instructions() < whole.instructions, "{point}");
        let again = Snapshot::of(snapshot.bytes()).unwrap();
        for engine in [EngineKind::Cpu, EngineKind::Eval] {
            let ran = Process::of(&again).engine(engine).stdin(INPUT).run().unwrap();
            assert_eq!(facts(&ran), facts(&whole), "{point} on {}", engine.name());
        }
    }
}

#[test]
fn a_snapshot_may_be_of_a_program_that_went_on_from_one() {
    let (_folder, path) = folder();
    let whole = Process::new(&path).stdin(INPUT).run().unwrap();
    let first = Process::new(&path).boot_until(&Point::Address(0x40_0078 + 40 * 4)).unwrap();
    let second = Process::of(&first).boot_until(&Point::FirstRead).unwrap();
    assert!(first.instructions() < second.instructions());
    let direct = Process::new(&path).boot_until(&Point::FirstRead).unwrap();
    assert_eq!(second.instructions(), direct.instructions());
    let ran = Process::of(&second).stdin(INPUT).run().unwrap();
    assert_eq!(facts(&ran), facts(&whole));
}

#[test]
fn lanes_go_on_with_inputs_of_their_own() {
    let (_folder, path) = folder();
    let snapshot = Process::new(&path).boot_until(&Point::FirstRead).unwrap();
    let inputs: Vec<Vec<u8>> = (0..12u8).map(|n| vec![b'a' + n; usize::from(n % 5)]).collect();
    let rows: Vec<Row> = inputs.iter().map(|input| Row::new().stdin(&input[..])).collect();
    let lanes: Vec<_> = Many::new(Process::of(&snapshot)).run(rows).unwrap().collect();
    assert_eq!(lanes.len(), inputs.len());
    for lane in lanes {
        let lane = lane.unwrap();
        let whole = Process::new(&path).stdin(&inputs[lane.lane as usize][..]).run().unwrap();
        assert_eq!(facts(&lane.result.unwrap()), facts(&whole), "lane {}", lane.lane);
    }
}

/// A GPU has one thread for a program: this one begins there, and goes on elsewhere when it makes a child; or it has one already.
#[test]
fn going_on_on_a_gpu_does_the_same() {
    if std::env::var_os("KVRM_LAVAPIPE_ICD").is_none() {
        eprintln!("skipped: KVRM_LAVAPIPE_ICD is not set; `cargo xtask test` sets it");
        return;
    }
    let (_folder, path) = folder();
    let whole = Process::new(&path).stdin(INPUT).run().unwrap();
    let points = [Point::Address(0x40_0078), Point::FirstRead];
    let snapshots = points.map(|point| Process::new(&path).boot_until(&point).unwrap());
    for snapshot in &snapshots {
        let program = || Process::of(snapshot).engine(EngineKind::Wgpu);
        let ran = program().stdin(INPUT).run().unwrap();
        assert_eq!(facts(&ran), facts(&whole));
        let moved = ran.moved.expect("it has a child").instructions;
        assert!((snapshot.instructions()..whole.instructions).contains(&moved), "{moved}");
        let rows = [Row::new().stdin(INPUT), Row::new().stdin(INPUT)];
        let lanes: Vec<_> = Many::new(program()).run(rows).unwrap().collect();
        assert_eq!(lanes.len(), 2);
        for lane in lanes {
            assert_eq!(facts(&lane.unwrap().result.unwrap()), facts(&whole));
        }
    }
}

#[test]
fn what_was_used_cannot_be_changed() {
    let (_folder, path) = folder();
    let program = || Process::new(&path).arg("one").env("A", "1");
    let start = program().boot_until(&Point::Address(0x40_0078)).unwrap();
    let whole = Process::new(&path).arg("two").env("A", "2").stdin(INPUT).run().unwrap();
    let ran = Process::of(&start).arg("two").env("A", "2").stdin(INPUT).run().unwrap();
    assert_eq!(facts(&ran), facts(&whole));
    let error = |process: Process| process.run().unwrap_err().to_string();
    assert_eq!(
        error(Process::of(&start).arg("three")),
        "argument 1 was \"one\" when the snapshot was made, and can only be another one of that length, not \"three\""
    );
    assert_eq!(
        error(Process::of(&start).arg("one").arg("more")),
        "the snapshot was made with one argument, so it goes on with as many, and not with 2"
    );
    assert_eq!(
        error(Process::of(&start).env("B", "1")),
        "the snapshot was made without the variable B"
    );
    // A process that was forked has a copy of them.
    let later = program().boot_until(&Point::FirstRead).unwrap();
    assert_eq!(
        error(Process::of(&later).arg("two")),
        "argument 1 was used before the snapshot was made, so it stays \"one\""
    );
    let lanes = Many::new(Process::of(&later)).run([
        Row::new().stdin(INPUT).arg("one"),
        Row::new().arg("two"),
        Row::new().file("/tmp/y", "of its own"),
    ]);
    let mut lanes: Vec<_> = lanes.unwrap().map(|lane| lane.unwrap()).collect();
    lanes.sort_by_key(|lane| lane.lane);
    let results = lanes.into_iter().map(|lane| lane.result.map(|outcome| outcome.stdout));
    let results: Vec<_> = results.map(|result| result.map_err(|error| error.to_string())).collect();
    let used = "argument 1 was used before the snapshot was made, so it stays \"one\"".to_string();
    let files = "a lane that goes on from a snapshot has no files of its own".to_string();
    assert_eq!(results, [Ok(b"begin\nthrough the pipe\n".to_vec()), Err(used), Err(files)]);
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let (folder, path) = folder();
    let error = |process: Process, point: &str| {
        process.boot_until(&point.parse().unwrap()).err().unwrap().to_string()
    };
    let program = || Process::new(&path);
    let refused = "no snapshot can be made where ";
    assert!(error(program().realtime(true), "first-read").starts_with(refused));
    assert!(error(program().bind_writable(folder.path(), "/w"), "first-read").starts_with(refused));
    assert!(error(program().keep("x"), "first-read").starts_with(refused));
    assert!(
        error(program(), "main")
            .ends_with("program nor anything that it has loaded has a function main"),
        "{}",
        error(program(), "main")
    );
    let behind = format!("{:#x}", program::before_input() + 5 * 4);
    let text = error(program(), &behind);
    assert!(text.contains("uses its standard input before it reaches 0x40"), "{text}");
    let text = error(Process::new("../../guests/linux/collatz").args(["27", "1"]), "first-read");
    assert_eq!(
        text,
        "cannot make a snapshot: the program ended before it used its standard input: it exited with code 0"
    );
    let limits = Limits { instructions: 50, ..Limits::default() };
    let text = error(program().limits(limits), "first-read");
    assert!(text.ends_with("the limit of instructions was reached"), "{text}");
}

#[test]
fn limits_count_from_the_beginning() {
    let (_folder, path) = folder();
    let snapshot = Process::new(&path).boot_until(&Point::FirstRead).unwrap();
    for limits in [
        Limits { instructions: snapshot.instructions() + 20, ..Limits::default() },
        Limits { output: 8, ..Limits::default() },
        Limits { file_bytes: 3000, ..Limits::default() },
    ] {
        let whole = Process::new(&path).limits(limits.clone()).stdin(INPUT).run().unwrap();
        let ran = Process::of(&snapshot).limits(limits).stdin(INPUT).run().unwrap();
        assert_eq!(facts(&ran), facts(&whole));
    }
    let error = |limits| Process::of(&snapshot).limits(limits).run().unwrap_err().to_string();
    let memory = error(Limits { memory: 4096, ..Limits::default() });
    assert!(
        memory.ends_with("more memory at that point than the limit of memory allows"),
        "{memory}"
    );
    let files = error(Limits { files: 0, ..Limits::default() });
    assert!(files.ends_with("more files at that point than the limits of files allow"), "{files}");
    let open = error(Limits { open_files: 8, ..Limits::default() });
    assert!(open.contains("more files open than the limit"), "{open}");
}

#[test]
fn files_of_the_host_must_be_as_they_were() {
    let (folder, path) = folder();
    let whole = Process::new(&path).stdin(INPUT).run().unwrap();
    let snapshot = Process::new(&path).boot_until(&Point::FirstRead).unwrap();
    let moved = folder.path().join("moved");
    std::fs::rename(&path, &moved).unwrap();
    let error = |process: Process| process.run().unwrap_err().to_string();
    let gone = error(Process::of(&snapshot));
    assert!(gone.contains("which cannot be opened"), "{gone}");
    let canonical = folder.path().canonicalize().unwrap().join("program");
    use std::os::unix::ffi::OsStrExt;
    let guest = canonical.as_os_str().as_bytes();
    let ran = Process::of(&snapshot).bind(&moved, guest).stdin(INPUT).run().unwrap();
    assert_eq!(facts(&ran), facts(&whole));
    let changed = std::fs::read(&moved).unwrap();
    std::fs::write(&moved, &changed[..changed.len() - 1]).unwrap();
    let changed = error(Process::of(&snapshot).bind(&moved, guest));
    assert!(changed.contains("has changed since the program saw it, or is gone"), "{changed}");
    let unknown = error(Process::of(&snapshot).bind(&moved, "/elsewhere"));
    assert!(
        unknown.ends_with("it was made without anything of the host as /elsewhere"),
        "{unknown}"
    );
    let seed = error(Process::of(&snapshot).seed(1));
    assert!(seed.starts_with("the seed of random numbers belongs to the beginning"), "{seed}");
}

/// Where the checksum is, and what it is of.
const CHECKSUM: usize = 12;
const CONTENTS: usize = 44;

/// The largest numbers of 64 bits and of 32, as they are written.
const LARGEST: [u8; 10] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
const LARGE: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x0f];

/// A number as it is written.
fn number(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Makes the checksum right.
fn seal(bytes: &mut [u8]) {
    let digest = Sha256::digest(&bytes[CONTENTS..]);
    bytes[CHECKSUM..CONTENTS].copy_from_slice(&digest);
}

/// A snapshot that was written once must be read as long as its format has the same number. If this fails, the kernel's
/// structures have changed: then the format is another one (`FORMAT` in crates/linux/src/snapshot.rs), and `KVRM_BLESS=1` writes
/// the file anew.
#[test]
fn the_format_is_what_its_number_says() {
    let (folder, path) = folder();
    // A snapshot knows when the files that it needs were changed last.
    let long_ago = UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    std::fs::File::open(&path).unwrap().set_modified(long_ago).unwrap();
    let bound = || Process::new("/bound/program").bind(folder.path(), "/bound");
    let program = || bound().arg("one").env("A", "1");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/golden.snap");
    if std::env::var_os("KVRM_BLESS").is_some() {
        let snapshot = program().boot_until(&Point::FirstRead).unwrap();
        std::fs::write(&golden, snapshot.bytes()).unwrap();
    }
    let snapshot = Snapshot::open(golden).unwrap();
    let whole = program().stdin(INPUT).run().unwrap();
    let ran = Process::of(&snapshot).bind(folder.path(), "/bound").stdin(INPUT).run();
    assert_eq!(facts(&ran.expect("FORMAT is another one")), facts(&whole));
}

#[test]
fn what_somebody_else_made_shows_only_what_the_caller_says() {
    let (folder, path) = folder();
    let bound = Process::new("/bound/program").bind(folder.path(), "/bound");
    let mut bytes = bound.boot_until(&Point::FirstRead).unwrap().bytes().to_vec();
    let whole = Process::new(&path).stdin(INPUT).run().unwrap();
    assert!(Process::of(&Snapshot::of(&bytes[..]).unwrap()).stdin(INPUT).run().is_ok());
    // Another number of pages, of which it only tells, makes it a snapshot that nobody here has made.
    let snapshot = Snapshot::of(&bytes[..]).unwrap();
    let told = [number(snapshot.instructions()), number(snapshot.pages())].concat();
    let at = bytes.windows(told.len()).position(|window| window == told).expect("it tells both");
    bytes[at + number(snapshot.instructions()).len()] ^= 1;
    seal(&mut bytes);
    let foreign = Snapshot::of(bytes).unwrap();
    let error = Process::of(&foreign).stdin(INPUT).run().unwrap_err().to_string();
    assert!(error.contains("somebody else"), "{error}");
    assert!(error.contains(&format!("{} as /bound", folder.path().display())), "{error}");
    let named = Process::of(&foreign).bind(folder.path(), "/bound").stdin(INPUT).run().unwrap();
    let trusted = Process::of(&foreign.trusted()).stdin(INPUT).run().unwrap();
    assert_eq!([&named.stdout, &trusted.stdout], [&whole.stdout; 2]);
}

#[test]
fn damage_is_noticed() {
    let (_folder, path) = folder();
    let good = Process::new(&path).boot_until(&Point::FirstRead).unwrap().bytes().to_vec();
    let error = |bytes: &[u8]| Snapshot::of(bytes).err().map(|error| error.to_string());
    assert_eq!(error(&good), None);
    for len in [0, 7, 8, 11, 12, 43, 44, 50, good.len() / 2, good.len() - 1] {
        let text = error(&good[..len]).unwrap();
        let wanted = if len < 8 { "not a snapshot" } else { "it is damaged" };
        assert!(text.contains(wanted), "{len}: {text}");
    }
    for at in (0..good.len()).step_by(97) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        assert!(error(&bytes).is_some(), "byte {at}");
    }
    let mut other = good.clone();
    other[8] += 1;
    assert!(error(&other).unwrap().contains("this version of kvrm has format"));
}

#[test]
fn whatever_a_snapshot_says_does_no_harm() {
    let (_folder, path) = folder();
    let good = Process::new(&path).boot_until(&Point::FirstRead).unwrap().bytes().to_vec();
    let limits = Limits {
        instructions: 1_000_000,
        memory: 64 << 20,
        file_bytes: 1 << 20,
        output: 1 << 16,
        ..Limits::default()
    };
    let (mut refused, mut ran) = (0, 0);
    let rounds = std::env::var("KVRM_SNAPSHOT_ROUNDS").map_or(1500, |text| text.parse().unwrap());
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let at = CONTENTS + random.below((bytes.len() - CONTENTS) as u64) as usize;
            let small = bytes[at] & 0x80 | random.below(0x80) as u8;
            match random.below(12) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, random.below(256) as u8),
                2 => bytes[at] = random.below(256) as u8,
                // Numbers as large as they can be.
                3 => drop(bytes.splice(at..=at, LARGEST)),
                4 => drop(bytes.splice(at..=at, LARGE)),
                5 => bytes[at] ^= 1,
                // Other numbers of as many bytes.
                _ => bytes[at] = small,
            }
        }
        seal(&mut bytes);
        let went = Snapshot::of(bytes)
            .map(Snapshot::trusted)
            .and_then(|snapshot| Process::of(&snapshot).limits(limits.clone()).stdin(INPUT).run());
        match went {
            Ok(_) => ran += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0 && ran > 0, "{refused} were refused, {ran} ran");
}
