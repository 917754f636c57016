//! System calls with bad arguments; `crates/fuzzing` makes sequences of them.

use kvrm_fuzzing::linux::program::Request;
use kvrm_fuzzing::linux::{LIMITS, Outcome, Translating, calls, on_all_engines, values};
use kvrm_fuzzing::{Source, random_bytes};
use kvrm_linux::calls::TABLE;

use crate::support::in_time;

/// Calls of one kind that are made in a run.
const OF_A_KIND: usize = 100;
/// Bytes that the arguments and structures of a run are made from.
const BYTES: usize = 1 << 14;

/// Runs calls. Nothing must panic, hang or take much memory.
fn attack(what: &str, source: &mut Source<'_>, requests: Vec<Request>) -> Outcome {
    let files = calls::attack(source, requests);
    in_time(what, move || on_all_engines(&files, &LIMITS, Translating::Late).unwrap())
}

#[test]
fn every_call_survives_bad_arguments() {
    for entry in TABLE {
        let bytes = random_bytes(entry.number, BYTES);
        let mut source = Source::new(&bytes);
        let requests = (0..OF_A_KIND).map(|_| values::request(entry, &mut source)).collect();
        let outcome = attack(entry.name, &mut source, requests);
        assert!(outcome.report.calls.contains_key(&entry.number), "{}", entry.name);
    }
}

#[test]
fn unknown_calls_are_refused() {
    let bytes = random_bytes(1, BYTES);
    let mut source = Source::new(&bytes);
    let requests = (0..1500).map(|_| Request { number: source.u64(), args: [0; 6] }).collect();
    let outcome = attack("unknown calls", &mut source, requests);
    assert!(outcome.report.unknown.len() > 500, "{:?}", outcome.ending);
}
