//! Programs whose files are broken.

use kvrm_linux::{Ending, Errno, Failure, Signal, Status};
use kvrm_random::Random;

use crate::elf::{ANYWHERE, CODE, DATA, EXECUTABLE, HEADER, SEGMENT, Segment, file};
use crate::program::{BUFFER, TEXT, number as nr, request, steps};
use crate::support::{LIMITS, Outcome, executable, in_time, setup, start};

/// Broken files of each kind.
const FILES: u64 = 1500;

/// `mov x8, #94; svc #0`.
const EXIT: [u32; 2] = [0xd280_0bc8, 0xd400_0001];

fn code() -> Vec<u8> {
    EXIT.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn text(addr: u64) -> Segment {
    Segment::load(CODE, addr, code())
}

/// Loads a program, with an interpreter and a script at hand.
fn load(what: &str, program: Vec<u8>) -> Result<Outcome, Failure> {
    let files = vec![
        executable("/program", program),
        executable("/interpreter", file(ANYWHERE, 0, &[text(0)])),
        executable("/script", b"#!/script a\n".to_vec()),
    ];
    in_time(what, move || start(setup(files, LIMITS)))
}

fn refused(program: Vec<u8>) -> Errno {
    match load("a program", program) {
        Err(Failure::Program { errno, .. }) => errno,
        other => panic!("{other:?}"),
    }
}

fn status(program: Vec<u8>) -> Status {
    load("a program", program).unwrap().status.unwrap()
}

/// Loads a program that is broken somehow: it runs or is refused.
fn survive(what: &str, program: Vec<u8>) {
    match load(what, program) {
        Ok(_) | Err(Failure::Program { .. }) => {}
        Err(failure) => panic!("{what}: {failure}"),
    }
}

fn good(random: &mut Random) -> (Vec<u8>, usize) {
    let segments = [
        text(TEXT),
        Segment { memory: 0x3000, ..Segment::load(DATA, BUFFER, vec![7; 5000]) },
        Segment::interpreter(b"/interpreter"),
    ];
    let count = 2 + usize::from(random.once_in(2));
    let kind = random.pick(&[EXECUTABLE, ANYWHERE]);
    (file(kind, TEXT, &segments[..count]), HEADER + count * SEGMENT)
}

#[test]
fn flipped_bits_are_survived() {
    for seed in 0..FILES {
        let mut random = Random::new(seed);
        let (mut bytes, headers) = good(&mut random);
        for _ in 0..1 + random.below(4) {
            let end = if random.once_in(8) { bytes.len() } else { headers };
            bytes[random.below(end as u64) as usize] ^= 1 << random.below(8);
        }
        if random.once_in(16) {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        survive(&format!("file {seed}"), bytes);
    }
}

#[test]
fn extreme_fields_are_survived() {
    const EXTREME: [u64; 14] = [
        0,
        1,
        0xfff,
        0x1000,
        0x1_0000,
        0x1f80_0000,
        0x2000_0000,
        1 << 32,
        1 << 38,
        (1 << 39) - 0x1000,
        1 << 39,
        1 << 63,
        u64::MAX - 0xfff,
        u64::MAX,
    ];
    for seed in 0..FILES {
        let mut random = Random::new(seed);
        let (mut bytes, headers) = good(&mut random);
        for _ in 0..1 + random.below(3) {
            // Fields of eight bytes, and the last of the header, which are smaller.
            let at = 24 + 8 * random.below((headers as u64 - 24) / 8) as usize;
            let value = random.pick(&EXTREME).wrapping_add(random.below(3)).wrapping_sub(1);
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        survive(&format!("file {seed}"), bytes);
    }
}

#[test]
fn files_that_are_no_programs_are_refused() {
    assert_eq!(refused(Vec::new()), Errno::NOEXEC);
    assert_eq!(refused(b"#!".to_vec()), Errno::NOEXEC);
    assert_eq!(refused(b"#!/script".to_vec()), Errno::LOOP);
    assert_eq!(refused(b"#!/program".to_vec()), Errno::LOOP);
    assert_eq!(refused(b"#!/tmp".to_vec()), Errno::ACCES);
    assert_eq!(refused(b"#!/missing".to_vec()), Errno::NOENT);
    assert_eq!(refused(file(EXECUTABLE, TEXT, &[])), Errno::NOEXEC);
    assert_eq!(refused(file(EXECUTABLE, TEXT, &[text(0)])), Errno::PERM);
    let huge = Segment { memory: 1 << 38, ..text(TEXT) };
    assert_eq!(refused(file(EXECUTABLE, TEXT, std::slice::from_ref(&huge))), Errno::NOMEM);
    assert_eq!(refused(file(ANYWHERE, TEXT, &[huge])), Errno::NOMEM);
    let wrapping = Segment { memory: u64::MAX, ..text(TEXT) };
    assert_eq!(refused(file(EXECUTABLE, TEXT, &[wrapping])), Errno::NOEXEC);
}

#[test]
fn interpreters_that_are_none_are_refused() {
    let with = |path: &[u8]| file(EXECUTABLE, TEXT, &[text(TEXT), Segment::interpreter(path)]);
    assert_eq!(refused(with(b"/missing")), Errno::NOENT);
    assert_eq!(refused(with(b"/tmp")), Errno::ACCES);
    assert_eq!(refused(with(b"/script")), Errno::NOEXEC);
    assert_eq!(refused(with(b"")), Errno::NOEXEC);
    assert_eq!(refused(with(&[b'a'; 5000])), Errno::NOEXEC);
    assert_eq!(status(with(b"/interpreter")), Status::Exited(0));
}

#[test]
fn odd_programs_run() {
    let killed = Status::Killed(Signal::SEGV);
    let overlapping = [text(TEXT), Segment::load(CODE, TEXT, code())];
    assert_eq!(status(file(EXECUTABLE, TEXT, &overlapping)), Status::Exited(0));
    let stack = Segment { memory: 0x80_0000, ..Segment::load(DATA, 0x1f80_0000, vec![1]) };
    assert_eq!(status(file(EXECUTABLE, TEXT, &[text(TEXT), stack])), Status::Exited(0));
    let last = text((1 << 39) - 0x1000);
    assert_eq!(status(file(EXECUTABLE, last.addr, &[last])), Status::Exited(0));
    for entry in [0, TEXT + 0x1000, 1 << 39, u64::MAX - 3] {
        assert_eq!(status(file(EXECUTABLE, entry, &[text(TEXT)])), killed, "{entry:#x}");
    }
    assert_eq!(status(file(EXECUTABLE, TEXT + 2, &[text(TEXT)])), Status::Killed(Signal::BUS));
}

#[test]
fn a_file_of_holes_is_too_large_to_run() {
    let requests = [
        request(nr::OPENAT, [crate::program::AT_FDCWD, BUFFER, 0o102, 0o755]),
        request(nr::FTRUNCATE, [3, 1 << 40]),
        request(nr::CLOSE, [3]),
        request(nr::EXECVE, [BUFFER, 0, 0]),
    ];
    let outcome = load("holes", steps(&requests).file(b"/tmp/holes\0")).unwrap();
    let too_large = Status::Exited(Errno::FBIG.number() as u8);
    assert_eq!((outcome.ending, outcome.status), (Ending::Finished, Some(too_large)));
}
