//! What a run took, for people and for scripts.

use std::path::Path;

use kvrm::linux::{Ending, Outcome, Status};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::text;

#[derive(Serialize)]
struct Json<'o> {
    ending: String,
    exit_code: Option<u8>,
    signal: Option<String>,
    fault_address: Option<String>,
    pc: Option<String>,
    function: Option<&'o str>,
    instructions: u64,
    system_calls: Vec<Calls<'o>>,
    unknown_system_calls: Vec<Unknown>,
    limits: Vec<String>,
    moved_to_cpu: Option<Moved>,
    files: Vec<File>,
}

#[derive(Serialize)]
struct Calls<'o> {
    name: &'o str,
    count: u64,
}

#[derive(Serialize)]
struct Unknown {
    number: u64,
    count: u64,
}

#[derive(Serialize)]
struct Moved {
    instructions: u64,
    reason: String,
}

#[derive(Serialize)]
struct File {
    path: String,
    bytes: usize,
}

/// How a run ended, in words.
pub(super) fn ending(outcome: &Outcome) -> String {
    match (outcome.status, outcome.ending) {
        (Some(Status::Exited(_)), _) => "exited".into(),
        (Some(Status::Killed(_)), _) => "killed".into(),
        (None, Ending::Limited(limit)) => format!("limit of {limit}"),
        (None, Ending::Deadlock) => "deadlock".into(),
        (None, Ending::Cancelled | Ending::Finished) => "cancelled".into(),
    }
}

/// The name of the signal that killed the program.
pub(super) fn signal(outcome: &Outcome) -> Option<String> {
    match outcome.status {
        Some(Status::Killed(signal)) => Some(format!("SIG{}", signal.name())),
        Some(Status::Exited(_)) | None => None,
    }
}

/// Writes the report as JSON.
pub(super) fn write_json(path: &Path, outcome: &Outcome) -> Result<()> {
    let crash = outcome.crash.as_ref();
    let hex = |value: u64| format!("{value:#x}");
    let report = Json {
        ending: ending(outcome),
        exit_code: outcome.code(),
        signal: signal(outcome),
        fault_address: crash.and_then(|crash| crash.address).map(hex),
        pc: crash.map(|crash| hex(crash.pc)),
        function: crash.and_then(|crash| crash.symbol.as_ref()).map(|(name, _)| &name[..]),
        instructions: outcome.instructions,
        system_calls: outcome
            .system_calls
            .iter()
            .map(|(name, count)| Calls { name, count: *count })
            .collect(),
        unknown_system_calls: outcome
            .unknown_calls
            .iter()
            .map(|(number, count)| Unknown { number: *number, count: *count })
            .collect(),
        limits: outcome.limits.iter().map(ToString::to_string).collect(),
        moved_to_cpu: outcome.moved.map(|moved| Moved {
            instructions: moved.instructions,
            reason: moved.reason.to_string(),
        }),
        files: outcome
            .files
            .iter()
            .map(|file| File {
                path: String::from_utf8_lossy(&file.path).into(),
                bytes: file.contents.len(),
            })
            .collect(),
    };
    let file = std::fs::File::create(path).map_err(|error| Failure::file("write", path, &error))?;
    serde_json::to_writer_pretty(file, &report)?;
    Ok(())
}

/// Prints the report.
pub(super) fn print(outcome: &Outcome) {
    let how = match (outcome.code(), signal(outcome)) {
        (Some(code), _) => format!("exit code {code}"),
        (_, Some(signal)) => signal,
        _ => ending(outcome),
    };
    let total: u64 = outcome.system_calls.iter().map(|(_, count)| count).sum();
    eprintln!(
        "kvrm: {how}, {} instructions, {} system calls",
        text::thousands(outcome.instructions),
        text::thousands(total)
    );
    let most: Vec<String> = outcome
        .system_calls
        .iter()
        .take(8)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    eprintln!("kvrm: most frequent: {}", most.join(", "));
    if let Some(moved) = outcome.moved {
        let after = text::thousands(moved.instructions);
        eprintln!("kvrm: moved to the cpu engine after {after} instructions: {}", moved.reason);
    }
    for (number, count) in &outcome.unknown_calls {
        eprintln!("kvrm: unknown system call {number}, {count} times: it failed with ENOSYS");
    }
    for limit in &outcome.limits {
        eprintln!("kvrm: the limit of {limit} was reached");
    }
}
