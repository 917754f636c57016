//! Random system calls, alone and in sequences.

use kvrm_linux::calls::TABLE;
use kvrm_random::Random;

use crate::program::{AT_FDCWD, BUFFER, HANDLER, Request, list, number as nr, request};
use crate::support::{LIMITS, Outcome, executable, in_time, setup, start};
use crate::values;

/// Calls of one kind that are made in a run.
const OF_A_KIND: usize = 100;
/// Runs with calls of all kinds.
const SEQUENCES: u64 = 400;
/// Calls of such a run.
const IN_SEQUENCE: usize = 80;

/// Where the calls that come first have their structures, behind those that are random.
const OWN: u64 = BUFFER + 0x7000;

/// Structures of the calls that come first.
fn put_structures(buffer: &mut [u8]) {
    let own = (OWN - BUFFER) as usize;
    // A sigaction with the handler, and a timer that goes off every hundred microseconds and interrupts what waits.
    let words = [HANDLER, 0, 0, 0, 0, 100, 0, 100];
    for (at, word) in buffer[own..].chunks_mut(8).zip(words) {
        at.copy_from_slice(&u64::to_le_bytes(word));
    }
}

/// Files, pipes, events, timers, mappings and handlers, for what comes then.
fn beginning() -> Vec<Request> {
    const CREATE: u64 = 0o102;
    let path = |index: u64| BUFFER + 32 * index;
    let mut calls = vec![
        request(nr::RT_SIGACTION, [14, OWN, 0, 8]),
        request(nr::SETITIMER, [0, OWN + 32, 0]),
        request(nr::MKDIRAT, [AT_FDCWD, path(2), 0o755]),
        request(nr::MKNODAT, [AT_FDCWD, path(4), 0o010644]),
        request(nr::SYMLINKAT, [path(5), AT_FDCWD, path(5)]),
        request(nr::SYMLINKAT, [path(0), AT_FDCWD, path(6)]),
        request(nr::OPENAT, [AT_FDCWD, path(0), CREATE, 0o644]),
        request(nr::OPENAT, [AT_FDCWD, path(2), 0, 0]),
        request(nr::OPENAT, [AT_FDCWD, path(21), 2, 0]),
        request(nr::PIPE2, [OWN + 0x100, 0]),
        request(nr::EVENTFD2, [1, 0]),
        request(nr::EPOLL_CREATE1, [0]),
        request(nr::TIMERFD_CREATE, [1, 0]),
        request(nr::FTRUNCATE, [3, 1 << 40]),
    ];
    for (fd, shared) in [(u64::MAX, 0x22), (u64::MAX, 0x21), (3, 1), (3, 2)] {
        calls.push(request(nr::MMAP, [0, 1 << 16, 3, shared, fd, 0]));
    }
    calls
}

/// Runs calls behind the beginning. That is all: nothing must panic, hang or take much memory.
fn attack(what: String, random: &mut Random, requests: Vec<Request>) -> Outcome {
    let mut buffer = values::buffer(random);
    put_structures(&mut buffer);
    let mut calls = beginning();
    calls.extend(requests);
    calls.push(request(nr::EXIT_GROUP, [0]));
    let files = vec![
        executable("/program", list(&calls, &buffer)),
        executable("/script", b"#!/script\n".to_vec()),
    ];
    in_time(&what, move || start(setup(files, LIMITS)).unwrap())
}

#[test]
fn every_call_survives_bad_arguments() {
    for entry in TABLE {
        let mut random = Random::new(entry.number);
        let requests = (0..OF_A_KIND).map(|_| values::request(entry, &mut random)).collect();
        let outcome = attack(entry.name.to_owned(), &mut random, requests);
        assert!(outcome.report.calls.contains_key(&entry.number), "{}", entry.name);
    }
}

#[test]
fn unknown_calls_are_refused() {
    let mut random = Random::new(1);
    let requests = (0..2000).map(|_| Request { number: random.next(), args: [0; 6] }).collect();
    let outcome = attack("unknown calls".into(), &mut random, requests);
    assert!(outcome.report.unknown.len() > 500, "{:?}", outcome.ending);
}

#[test]
fn sequences_of_calls_survive() {
    for seed in 0..SEQUENCES {
        let mut random = Random::new(seed);
        let mut requests = Vec::new();
        for _ in 0..IN_SEQUENCE {
            let entry = &TABLE[random.below(TABLE.len() as u64) as usize];
            // Most runs would end too soon.
            if !matches!(entry.name, "exit" | "exit_group" | "execve" | "kill" | "rt_sigreturn")
                || random.once_in(8)
            {
                requests.push(values::request(entry, &mut random));
            }
        }
        attack(format!("sequence {seed}"), &mut random, requests);
    }
}
