//! What guests have tried: threads that wait for what never comes, and numbers that are too large.

use kvrm_fuzzing::linux::program::{
    AT_FDCWD, BUFFER, Code, HANDLER, Request, number as nr, request, steps,
};
use kvrm_fuzzing::linux::{LIMITS, Outcome};
use kvrm_linux::{Ending, Errno, Signal, Status};

use crate::support::run;

/// Where buffers have their words.
const WORDS: u64 = BUFFER + 0x100;

/// Runs calls with a path at the beginning of the buffer and words behind it.
fn calls(requests: &[Request], path: &str, words: &[u64]) -> Outcome {
    let mut buffer = path.as_bytes().to_vec();
    buffer.resize(0x100, 0);
    buffer.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    run(steps(requests).file(&buffer), LIMITS)
}

fn status(requests: &[Request], path: &str, words: &[u64]) -> Status {
    calls(requests, path, words).status.unwrap()
}

fn failed_with(errno: Errno) -> Status {
    Status::Exited(errno.number() as u8)
}

/// A call that nothing ends.
const FOR_EVER: Request = Request { number: nr::PPOLL, args: [0; 6] };

// Waiting.

#[test]
fn waiting_for_nothing_is_a_deadlock() {
    let own_pipe = [request(nr::PIPE2, [WORDS, 0]), request(nr::READ, [3, WORDS, 1])];
    assert_eq!(calls(&own_pipe, "", &[]).ending, Ending::Deadlock);
    assert_eq!(calls(&[FOR_EVER], "", &[]).ending, Ending::Deadlock);
    let mut full_pipe = vec![request(nr::PIPE2, [WORDS, 0])];
    full_pipe.extend([request(nr::WRITE, [4, BUFFER, 0x8000]); 3]);
    assert_eq!(calls(&full_pipe, "", &[]).ending, Ending::Deadlock);
    assert_eq!(status(&[request(nr::WAIT4, [u64::MAX])], "", &[]), failed_with(Errno::CHILD));
}

#[test]
fn a_pipe_without_a_reader_kills() {
    let requests = [
        request(nr::PIPE2, [WORDS, 0]),
        request(nr::CLOSE, [3]),
        request(nr::WRITE, [4, WORDS, 1]),
    ];
    assert_eq!(status(&requests, "", &[]), Status::Killed(Signal::PIPE));
}

#[test]
fn timers_that_nobody_hears_do_not_keep_a_run_going() {
    // `SIGEV_NONE`, and every nanosecond.
    let words = [0, 1 << 32, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];
    let timer = [
        request(nr::TIMER_CREATE, [1, WORDS, BUFFER]),
        request(nr::TIMER_SETTIME, [0, 0, WORDS + 64, 0]),
        FOR_EVER,
    ];
    assert_eq!(calls(&timer, "", &words).ending, Ending::Deadlock);
    // SIGALRM is ignored.
    let words = [1, 0, 0, 0, 0, 1, 0, 1];
    let alarm = [
        request(nr::RT_SIGACTION, [14, WORDS, 0, 8]),
        request(nr::SETITIMER, [0, WORDS + 32, 0]),
        FOR_EVER,
    ];
    assert_eq!(calls(&alarm, "", &words).ending, Ending::Deadlock);
}

#[test]
fn a_timer_that_is_over_is_not_waited_for() {
    // Poll for nothing of a timer.
    let words = [0, 0, 0, 1, 3];
    let requests = [
        request(nr::TIMERFD_CREATE, [1, 0]),
        request(nr::TIMERFD_SETTIME, [3, 0, WORDS, 0]),
        request(nr::PPOLL, [WORDS + 32, 1]),
    ];
    assert_eq!(calls(&requests, "", &words).ending, Ending::Deadlock);
}

#[test]
fn sleeping_ends() {
    let longest = [i64::MAX as u64, 999_999_999];
    let sleep = [request(nr::NANOSLEEP, [WORDS, 0])];
    assert_eq!(status(&sleep, "", &longest), Status::Exited(0));
    // With timers that were set for a time before that.
    let requests = [
        request(nr::RT_SIGACTION, [14, WORDS + 32, 0, 8]),
        request(nr::TIMER_CREATE, [0, 0, BUFFER]),
        request(nr::TIMER_SETTIME, [0, 1, WORDS + 64, 0]),
        request(nr::NANOSLEEP, [WORDS, 0]),
        request(nr::NANOSLEEP, [WORDS, 0]),
        request(nr::EXIT_GROUP, [0]),
    ];
    let words = [longest[0], longest[1], 0, 0, HANDLER, 0, 0, 0, 0, 1, 0, 1];
    let outcome = calls(&requests, "", &words);
    assert!(matches!(outcome.ending, Ending::Finished | Ending::Limited(_)), "{outcome:?}");
    // The time of the process, which does not go on while it sleeps.
    let requests = [request(nr::CLOCK_NANOSLEEP, [2, 1, WORDS, 0])];
    assert_eq!(status(&requests, "", &[1, 0]), Status::Exited(0));
}

#[test]
fn at_the_end_of_time_timers_are_over() {
    // An alarm every hundred microseconds, which is blocked, a sleep as long as there is, and nothing to wait for.
    let words = [i64::MAX as u64, 0, 0, 100, 0, 100, 1 << 13, 0];
    let requests = [
        request(nr::RT_SIGPROCMASK, [0, WORDS + 48, 0, 8]),
        request(nr::SETITIMER, [0, WORDS + 16, 0]),
        request(nr::NANOSLEEP, [WORDS, 0]),
        FOR_EVER,
    ];
    assert_eq!(calls(&requests, "", &words).ending, Ending::Deadlock);
}

#[test]
fn a_parent_that_may_not_be_interrupted_waits_for_its_child() {
    const SHARES_UNTIL_EXEC: u64 = 0x4111;
    for (signal, expected) in [(14, Status::Exited(0)), (9, Status::Killed(Signal::KILL))] {
        let mut code = Code::default();
        code.call(request(nr::RT_SIGACTION, [14, BUFFER, 0, 8]));
        code.call(request(nr::CLONE, [SHARES_UNTIL_EXEC]));
        let parent = code.here() + 1 + 3 * 29;
        code.branch_unless_zero(0, parent);
        code.call(request(nr::KILL, [1000, signal]));
        code.call(request(nr::NANOSLEEP, [BUFFER + 32, 0]));
        code.call(request(nr::EXIT, [0]));
        assert_eq!(code.here(), parent);
        code.call(request(nr::EXIT_GROUP, [0]));
        let words = [HANDLER, 0, 0, 0, 1, 0];
        let buffer: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        assert_eq!(run(code.file(&buffer), LIMITS).status, Some(expected));
    }
}

#[test]
fn sets_in_sets_are_looked_at_once() {
    const LAYERS: u64 = 5;
    const WIDTH: u64 = 10;
    let mut requests = vec![request(nr::EPOLL_CREATE1, [0]); (LAYERS * WIDTH) as usize];
    for layer in 1..LAYERS {
        for (from, to) in (0..WIDTH).flat_map(|from| (0..WIDTH).map(move |to| (from, to))) {
            let [set, file] = [(layer - 1, from), (layer, to)].map(|(l, n)| 3 + l * WIDTH + n);
            requests.push(request(nr::EPOLL_CTL, [set, 1, file, WORDS]));
        }
    }
    requests.push(request(nr::EPOLL_CTL, [3 + (LAYERS - 1) * WIDTH, 1, 3, WORDS]));
    assert_eq!(status(&requests, "", &[1, 0]), failed_with(Errno::LOOP));
    *requests.last_mut().unwrap() = request(nr::EPOLL_PWAIT, [3, WORDS, 1, 0, 0, 8]);
    assert_eq!(status(&requests, "", &[1, 0]), Status::Exited(0));
}

// Numbers.

#[test]
fn numbers_of_descriptors_have_32_bits() {
    let requests = [request(nr::PSELECT6, [0xffff_ffff_0000_0001, 0, 0, 0, WORDS])];
    assert_eq!(status(&requests, "", &[0, 0]), Status::Exited(0));
    let requests = [request(nr::PSELECT6, [0, u64::MAX, u64::MAX, 0, WORDS])];
    assert_eq!(status(&requests, "", &[0, 0]), Status::Exited(0));
}

#[test]
fn offsets_are_positive() {
    let open = request(nr::OPENAT, [AT_FDCWD, BUFFER, 2, 0]);
    let send = [open, request(nr::SENDFILE, [1, 3, WORDS, 1 << 20])];
    assert_eq!(status(&send, "/dev/zero", &[u64::MAX]), failed_with(Errno::INVAL));
    let open = request(nr::OPENAT, [AT_FDCWD, BUFFER, 0o102, 0o644]);
    let map = [open, request(nr::MMAP, [0, 0x2000, 1, 2, 3, u64::MAX - 0xfff])];
    assert_eq!(status(&map, "/tmp/file", &[]), failed_with(Errno::OVERFLOW));
}

#[test]
fn one_call_moves_a_limited_number_of_bytes() {
    let memory = 0x3000_0000;
    let vector: Vec<u64> = [memory, 1 << 25].repeat(1024);
    let requests = [
        request(nr::OPENAT, [AT_FDCWD, BUFFER, 2, 0]),
        request(nr::MMAP, [memory, 1 << 25, 3, 0x32, u64::MAX, 0]),
        request(nr::READV, [3, WORDS, 1024]),
    ];
    assert_eq!(status(&requests, "/dev/urandom", &vector), Status::Exited(0));
}

#[test]
fn arguments_of_programs_are_limited_in_all() {
    // All arguments are the same.
    let mut vector = vec![BUFFER + 0xc000; 4000];
    vector.push(0);
    vector.resize(0x1800, u64::MAX / 255);
    let requests = [request(nr::EXECVE, [BUFFER, WORDS, WORDS])];
    assert_eq!(status(&requests, "/program", &vector), failed_with(Errno::TOOBIG));
}

// Memory.

#[test]
fn mappings_that_nobody_can_access_take_no_time() {
    const SHARED: u64 = 0x31;
    let at = 1 << 32;
    let mut requests = vec![
        request(nr::MMAP, [at, 1 << 38, 0, SHARED, u64::MAX, 0]),
        request(nr::MREMAP, [at, 1 << 37, 1 << 37, 3, 3 << 37, 0]),
        request(nr::CLONE, [17]),
    ];
    requests.extend([request(nr::GETPID, []); 50]);
    requests.push(request(nr::MUNMAP, [0x1_0000_0000, 1 << 38]));
    assert_eq!(status(&requests, "", &[]), Status::Exited(0));
}

#[test]
fn files_that_nobody_shows_any_more_take_no_room() {
    // Much more than there may be at a time.
    let mut requests = Vec::new();
    for _ in 0..20 {
        requests.extend([
            request(nr::OPENAT, [AT_FDCWD, BUFFER, 0o102, 0o644]),
            request(nr::UNLINKAT, [AT_FDCWD, BUFFER, 0]),
        ]);
        requests.extend([request(nr::WRITE, [3, BUFFER, 0x1_0000]); 16]);
        requests.extend([
            // Shown twice: once until it is taken away, once until something else is there.
            request(nr::MMAP, [0x3000_0000, 1 << 20, 3, 0x12, 3, 0]),
            request(nr::MMAP, [0x3800_0000, 1 << 20, 3, 0x11, 3, 0]),
            request(nr::CLOSE, [3]),
            request(nr::MUNMAP, [0x3000_0000, 1 << 20]),
            request(nr::MMAP, [0x3800_0000, 1 << 20, 3, 0x32, u64::MAX, 0]),
        ]);
    }
    requests.push(request(nr::OPENAT, [AT_FDCWD, BUFFER, 0o102, 0o644]));
    requests.push(request(nr::WRITE, [3, BUFFER, 0x80]));
    let outcome = calls(&requests, "/tmp/file", &[]);
    assert_eq!(outcome.status, Some(Status::Exited(0x80)));
    assert!(outcome.report.limits.is_empty(), "{:?}", outcome.report.limits);
}

#[test]
fn files_of_holes_take_no_memory_but_count() {
    let mut requests = vec![
        request(nr::OPENAT, [AT_FDCWD, BUFFER, 0o102, 0o644]),
        request(nr::FTRUNCATE, [3, 1 << 40]),
        request(nr::MMAP, [0, 1 << 38, 1, 2, 3, 0]),
    ];
    for protection in [0, 1] {
        requests[2].args[2] = protection;
        assert_eq!(status(&requests, "/tmp/file", &[]), failed_with(Errno::NOMEM));
    }
}

#[test]
fn files_that_grow_behind_mappings_count_when_they_are_accessed() {
    const SHARED_FIXED: u64 = 0x11;
    let at = 1 << 37;
    let grown = |size: u64| {
        let mut code = Code::default();
        code.call(request(nr::OPENAT, [AT_FDCWD, BUFFER, 0o102, 0o644]));
        code.call(request(nr::MMAP, [at, 1 << 37, 3, SHARED_FIXED, 3, 0]));
        code.call(request(nr::FTRUNCATE, [3, size]));
        code.set(21, at);
        code.store(21, 21);
        code.call(request(nr::EXIT_GROUP, [7]));
        run(code.file(b"/tmp/file\0"), LIMITS).status.unwrap()
    };
    assert_eq!(grown(1), Status::Exited(7));
    assert_eq!(grown(0), Status::Killed(Signal::BUS));
    // There is no memory for that much of it.
    assert_eq!(grown(1 << 37), Status::Killed(Signal::BUS));
}

#[test]
fn segments_that_nobody_has_any_more_take_no_memory() {
    const SHARED: u64 = 0x31;
    let at = 0x3000_0000;
    let mut code = Code::default();
    code.call(request(nr::CLONE, [17]));
    let again = code.here();
    code.call(request(nr::MMAP, [at, 1 << 20, 3, SHARED, u64::MAX, 0]));
    code.exit_on_error();
    code.set(21, at);
    code.set(22, 256);
    let fill = code.here();
    code.store(21, 21);
    code.add(21, 21, 0x1000);
    // sub x22, x22, #1
    code.word(0xd100_06d6);
    code.branch_unless_zero(22, fill);
    code.call(request(nr::MUNMAP, [at, 1 << 20]));
    code.branch(again);
    let outcome = run(code.file(&[]), kvrm_linux::Limits { instructions: 2_800_000, ..LIMITS });
    assert!(matches!(outcome.ending, Ending::Limited(_)), "{outcome:?}");
}
