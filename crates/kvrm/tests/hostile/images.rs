//! Programs whose files are odd; `crates/fuzzing` makes many more that are broken.

use kvrm_fuzzing::linux::Outcome;
use kvrm_fuzzing::linux::elf::{ANYWHERE, CODE, DATA, EXECUTABLE, HEADER, SEGMENT, Segment, file};
use kvrm_fuzzing::linux::files::{self, code, text};
use kvrm_fuzzing::linux::program::{AT_FDCWD, BUFFER, TEXT, number as nr, request, steps};
use kvrm_linux::{Ending, Errno, Failure, Signal, Status};

use crate::support::in_time;

fn load(program: Vec<u8>) -> Result<Outcome, Failure> {
    in_time("a program", move || files::load(program))
}

fn refused(program: Vec<u8>) -> Errno {
    match load(program) {
        Err(Failure::Program { errno, .. }) => errno,
        other => panic!("{other:?}"),
    }
}

fn status(program: Vec<u8>) -> Status {
    load(program).unwrap().status.unwrap()
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
fn segments_outside_of_the_file_are_refused() {
    // The offset of the first segment in the file, and of the second.
    for (segment, offset) in [(0, 1u64 << 40), (0, u64::MAX - 0xfff), (1, u64::MAX - 0xfff)] {
        let data = Segment { memory: 0x3000, ..Segment::load(DATA, TEXT + 0x1000, vec![7]) };
        let mut bytes = file(EXECUTABLE, TEXT, &[text(TEXT), data]);
        let at = HEADER + segment * SEGMENT + 8;
        bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
        assert_eq!(refused(bytes), Errno::NOEXEC);
    }
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
fn only_what_is_needed_of_a_file_is_read() {
    const PROGRAM: u64 = 0x1000;
    let program = file(EXECUTABLE, TEXT, &[text(TEXT)]);
    let mut buffer = b"/tmp/large\0".to_vec();
    buffer.resize(PROGRAM as usize, 0);
    buffer.extend(&program);
    // A file of holes, with a program at its beginning or not.
    for (len, expected) in [(0, Errno::NOEXEC.number() as u8), (program.len(), 0)] {
        let requests = [
            request(nr::OPENAT, [AT_FDCWD, BUFFER, 0o102, 0o755]),
            request(nr::WRITE, [3, BUFFER + PROGRAM, len as u64]),
            request(nr::FTRUNCATE, [3, 1 << 40]),
            request(nr::CLOSE, [3]),
            request(nr::EXECVE, [BUFFER, 0, 0]),
        ];
        let outcome = load(steps(&requests).file(&buffer)).unwrap();
        let status = Some(Status::Exited(expected));
        assert_eq!((outcome.ending, outcome.status), (Ending::Finished, status));
    }
}
