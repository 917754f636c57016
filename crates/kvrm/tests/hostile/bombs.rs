//! Guests that use up what there is.

use kvrm_fuzzing::linux::program::{
    AT_FDCWD, BUFFER, Code, number as nr, request, steps, until_error,
};
use kvrm_fuzzing::linux::{LIMITS, Outcome};
use kvrm_linux::{Ending, Errno, Limit, Limits, Signal, Status};

use crate::support::run;

const SIGCHLD: u64 = 17;
/// Private and anonymous.
const ANONYMOUS: u64 = 0x22;
/// The same where it is asked for.
const FIXED: u64 = ANONYMOUS | 0x10;
const READ_WRITE: u64 = 3;
/// Where nothing is mapped.
const FAR: u64 = 1 << 32;

/// Plenty of instructions, for bombs that end by themselves.
const LONG: Limits = Limits { instructions: 20_000_000, ..LIMITS };

fn failed_with(errno: Errno) -> Option<Status> {
    Some(Status::Exited(errno.number() as u8))
}

fn assert_limited(outcome: &Outcome, limit: Limit) {
    assert_eq!(outcome.ending, Ending::Limited(Limit::Instructions));
    assert!(outcome.report.has_hit(limit), "{:?}", outcome.report.limits);
}

/// Clones for ever.
fn cloning(flags: u64, stack: u64) -> Vec<u8> {
    let mut code = Code::default();
    let again = code.here();
    code.call(request(nr::CLONE, [flags, stack]));
    code.branch(again);
    code.file(&[])
}

#[test]
fn processes_are_limited() {
    let many = Limits { memory: 1 << 30, ..LIMITS };
    assert_limited(&run(cloning(SIGCHLD, 0), many), Limit::Threads);
    assert_limited(&run(cloning(SIGCHLD, 0), LIMITS), Limit::Memory);
}

#[test]
fn threads_are_limited() {
    const THREAD: u64 = 0x1_0f00;
    assert_limited(&run(cloning(THREAD, BUFFER + 0x1000), LIMITS), Limit::Threads);
}

#[test]
fn processes_that_nobody_waits_for_are_limited() {
    let mut code = Code::default();
    let again = code.here();
    code.call(request(nr::CLONE, [SIGCHLD]));
    code.branch_unless_zero(0, again);
    code.call(request(nr::EXIT_GROUP, [0]));
    let many = Limits { memory: 1 << 30, ..LIMITS };
    assert_limited(&run(code.file(&[]), many), Limit::Threads);
}

fn assert_full(outcome: &Outcome) {
    assert_eq!(outcome.status, failed_with(Errno::NOMEM));
    assert!(outcome.report.has_hit(Limit::Memory));
}

#[test]
fn memory_is_limited() {
    let program = until_error(Code::default(), &[], (0, 1), |code| {
        code.call(request(nr::MMAP, [0, 1 << 20, READ_WRITE, ANONYMOUS, u64::MAX, 0]));
        code.exit_on_error();
        code.store(20, 0);
    });
    assert_full(&run(program, LONG));
}

#[test]
fn memory_that_cannot_be_accessed_any_more_counts() {
    let program = until_error(Code::default(), &[], (0, 1), |code| {
        code.call(request(nr::MMAP, [0, 1 << 20, READ_WRITE, ANONYMOUS, u64::MAX, 0]));
        code.exit_on_error();
        code.store(20, 0);
        code.set(2, 0);
        code.svc(nr::MPROTECT);
    });
    assert_full(&run(program, LONG));
}

#[test]
fn the_heap_is_limited() {
    let outcome = run(steps(&[request(nr::BRK, [0x1000_0000])]).file(&[]), LIMITS);
    assert!(outcome.report.has_hit(Limit::Memory));
}

#[test]
fn mappings_are_limited() {
    let program = until_error(Code::default(), &[], (FAR, 0x2000), |code| {
        code.call_with(request(nr::MMAP, [0, 0x1000, 0, FIXED, u64::MAX, 0]), 0);
    });
    assert_eq!(run(program, LONG).status, failed_with(Errno::NOMEM));
}

#[test]
fn holes_in_mappings_are_limited() {
    for (number, protection) in [(nr::MUNMAP, 0), (nr::MPROTECT, 1)] {
        let mut code = Code::default();
        code.call(request(nr::MMAP, [FAR, 1 << 38, 0, FIXED, u64::MAX, 0]));
        let program = until_error(code, &[], (FAR, 0x2000), |code| {
            code.call_with(request(number, [0, 0x1000, protection]), 0);
        });
        let limits = Limits { memory: 1 << 30, ..LONG };
        assert_eq!(run(program, limits).status, failed_with(Errno::NOMEM));
    }
}

#[test]
fn output_is_limited() {
    let mut code = Code::default();
    let again = code.here();
    code.call(request(nr::WRITE, [1, BUFFER, 5000]));
    code.branch(again);
    let outcome = run(code.file(&[b'a'; 5000]), LIMITS);
    assert_eq!(outcome.ending, Ending::Limited(Limit::Output));
    assert_eq!(outcome.output.len() as u64, LIMITS.output);
}

#[test]
fn files_are_limited() {
    let mut code = Code::default();
    code.call(request(nr::OPENAT, [AT_FDCWD, BUFFER, 0o102, 0o644]));
    let program = until_error(code, b"/tmp/file\0", (0, 1), |code| {
        code.call(request(nr::WRITE, [3, BUFFER, 0x8000]));
    });
    let outcome = run(program, LONG);
    assert_eq!(outcome.status, failed_with(Errno::NOSPC));
    assert!(outcome.report.has_hit(Limit::FileBytes));
}

#[test]
fn directories_are_limited_however_deep() {
    let program = until_error(Code::default(), b"directory\0", (0, 1), |code| {
        code.call(request(nr::MKDIRAT, [AT_FDCWD, BUFFER, 0o755]));
        code.exit_on_error();
        code.call(request(nr::CHDIR, [BUFFER]));
    });
    let outcome = run(program, LONG);
    assert_eq!(outcome.status, failed_with(Errno::NOSPC));
    assert!(outcome.report.has_hit(Limit::Files));
}

#[test]
fn descriptors_are_limited() {
    let program = until_error(Code::default(), &[], (0, 1), |code| {
        code.call(request(nr::PIPE2, [BUFFER, 0]));
    });
    let outcome = run(program, LONG);
    assert_eq!(outcome.status, failed_with(Errno::MFILE));
    assert!(outcome.report.has_hit(Limit::OpenFiles));
}

#[test]
fn files_that_a_set_waits_for_are_limited() {
    let mut code = Code::default();
    code.call(request(nr::EPOLL_CREATE1, [0]));
    let again = code.here();
    // Always the same descriptor, always another file.
    code.call(request(nr::EVENTFD2, [0, 0]));
    code.call(request(nr::EPOLL_CTL, [3, 1, 4, BUFFER]));
    code.exit_on_error();
    code.call(request(nr::CLOSE, [4]));
    code.branch(again);
    let outcome = run(code.file(&[]), Limits { instructions: 2_000_000, ..LIMITS });
    assert_eq!(outcome.ending, Ending::Limited(Limit::Instructions));
}

#[test]
fn pending_signals_are_limited() {
    let mut code = Code::default();
    code.call(request(nr::RT_SIGPROCMASK, [2, BUFFER + 64, 0, 8]));
    let mut buffer = vec![0xff; 72];
    buffer[..8].fill(0);
    let program = until_error(code, &buffer, (0, 1), |code| {
        code.call(request(nr::RT_SIGQUEUEINFO, [1000, 40, BUFFER]));
    });
    assert_eq!(run(program, LONG).status, failed_with(Errno::AGAIN));
}

#[test]
fn a_loop_is_limited() {
    let mut code = Code::default();
    let here = code.here();
    code.branch(here);
    let outcome = run(code.file(&[]), LIMITS);
    assert_eq!(outcome.ending, Ending::Limited(Limit::Instructions));
    assert_eq!(outcome.report.instructions, LIMITS.instructions);
}

#[test]
fn handlers_that_fault_end_with_their_stack() {
    const SEGV: u64 = 11;
    const NODEFER: u64 = 0x4000_0000;
    const ONSTACK: u64 = 0x0800_0000;
    for (flags, stack) in [(NODEFER, 0), (NODEFER | ONSTACK, 0x8000), (NODEFER | ONSTACK, u64::MAX)]
    {
        // A handler where nothing is, and a stack in the middle of the buffer.
        let words = [16, flags, 0, 0, BUFFER + 0x4000, 0, stack];
        let buffer: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let requests = [
            request(nr::RT_SIGACTION, [SEGV, BUFFER, 0, 8]),
            request(nr::SIGALTSTACK, [BUFFER + 32, 0]),
            request(nr::KILL, [1000, SEGV]),
        ];
        let outcome = run(steps(&requests).file(&buffer), LIMITS);
        assert_eq!(outcome.status, Some(Status::Killed(Signal::SEGV)), "{flags:#x} {stack:#x}");
    }
}
