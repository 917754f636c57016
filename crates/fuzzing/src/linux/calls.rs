//! Any sequence of system calls with any arguments: nothing panics or hangs, and engines agree.

use kvrm_linux::calls::{Entry, TABLE};
use kvrm_linux::vfs::GivenFile;

use super::program::{AT_FDCWD, BUFFER, HANDLER, Request, list, number as nr, request};
use super::run::{LIMITS, Translating, executable, on_all_engines};
use super::values;
use crate::Source;

/// The most calls of a sequence.
const CALLS: usize = 80;

/// Where the calls that come first have their structures, behind those that are random.
const OWN: u64 = BUFFER + 0x7000;

/// Makes the calls in `bytes`.
pub fn check(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let translating = if source.one_in(2) { Translating::Soon } else { Translating::Late };
    let mut requests = Vec::new();
    while requests.len() < CALLS && !source.is_empty() {
        requests.push(values::request(entry(&mut source), &mut source));
        // The rest is for structures.
        if source.one_in(32) {
            break;
        }
    }
    let files = attack(&mut source, requests);
    on_all_engines(&files, &LIMITS, translating).expect("the program can be loaded");
}

/// Picks a call; not often one after which nothing comes any more.
fn entry(source: &mut Source<'_>) -> &'static Entry {
    loop {
        let entry = &TABLE[source.below(TABLE.len() as u64) as usize];
        let ends = matches!(entry.name, "exit" | "exit_group" | "execve" | "kill" | "rt_sigreturn");
        if !ends || source.one_in(8) {
            return entry;
        }
    }
}

/// Returns the files of a program that makes calls, after others that make files, pipes, events, timers, mappings and
/// handlers. Structures are taken from the source.
pub fn attack(source: &mut Source<'_>, requests: Vec<Request>) -> Vec<GivenFile> {
    let mut buffer = values::buffer(source);
    put_structures(&mut buffer);
    let mut calls = beginning();
    calls.extend(requests);
    calls.push(request(nr::EXIT_GROUP, [0]));
    vec![
        executable("/program", list(&calls, &buffer)),
        executable("/script", b"#!/script\n".to_vec()),
    ]
}

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
