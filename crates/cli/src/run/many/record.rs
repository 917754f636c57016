//! A row of the table: what a lane did.

use kvrm::linux::{Ending, LaneOutcome, Outcome};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::run::report;

/// What a lane did.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) lane: u64,
    /// `exited`, `killed`, `limit of …`, `deadlock`, `timeout` or `not started`.
    pub(super) ending: String,
    pub(super) exit_code: Option<u8>,
    pub(super) signal: Option<String>,
    pub(super) fault_address: Option<String>,
    pub(super) pc: Option<String>,
    /// The function that it crashed in, and how far from its beginning.
    pub(super) function: Option<String>,
    pub(super) instructions: u64,
    pub(super) system_calls: u64,
    pub(super) stdout: String,
    pub(super) stdout_form: Form,
    pub(super) stdout_bytes: u64,
    pub(super) stderr: String,
    pub(super) stderr_form: Form,
    pub(super) stderr_bytes: u64,
    pub(super) files: Vec<Written>,
    /// Limits that were reached, whether or not they ended it.
    pub(super) limits: Vec<String>,
    /// Where it ran, or began, if it was moved.
    pub(super) engine: String,
    /// Instructions after which it was moved to the CPU.
    pub(super) moved_after: Option<u64>,
    /// Why it could not be started.
    pub(super) error: Option<String>,
}

/// How the bytes of an output are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// As they are: they are UTF-8.
    Text,
    /// Two digits each.
    Hex,
    /// Their SHA-256 only, because they are many.
    Sha256,
}

/// A file that a lane has written.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    path: String,
    bytes: u64,
    sha256: String,
}

impl Record {
    /// Outputs of more bytes than `most` become their hash.
    pub(super) fn new(ran: LaneOutcome, most: u64) -> Record {
        let engine = ran.engine.name();
        match ran.result {
            Ok(outcome) => Record::of(ran.lane, engine, outcome, most),
            Err(error) => Record::not_started(ran.lane, engine, error.to_string()),
        }
    }

    fn of(lane: u64, engine: &str, outcome: Outcome, most: u64) -> Record {
        let crash = outcome.crash.as_ref();
        let hex = |value: u64| format!("{value:#x}");
        let symbol = crash.and_then(|crash| crash.symbol.as_ref());
        let (stdout_form, stdout) = form(&outcome.stdout, most);
        let (stderr_form, stderr) = form(&outcome.stderr, most);
        Record {
            lane,
            // Nothing else than its time cancels a single lane.
            ending: match outcome.ending {
                Ending::Cancelled => "timeout".into(),
                Ending::Finished | Ending::Limited(_) | Ending::Deadlock => {
                    report::ending(&outcome)
                }
            },
            exit_code: outcome.code(),
            signal: report::signal(&outcome),
            fault_address: crash.and_then(|crash| crash.address).map(hex),
            pc: crash.map(|crash| hex(crash.pc)),
            function: symbol.map(|(name, offset)| format!("{name}+{offset:#x}")),
            instructions: outcome.instructions,
            system_calls: outcome.system_calls.iter().map(|(_, count)| count).sum(),
            stdout,
            stdout_form,
            stdout_bytes: outcome.stdout.len() as u64,
            stderr,
            stderr_form,
            stderr_bytes: outcome.stderr.len() as u64,
            files: outcome
                .files
                .iter()
                .map(|file| Written {
                    path: String::from_utf8_lossy(&file.path).into(),
                    bytes: file.contents.len() as u64,
                    sha256: sha256(&file.contents),
                })
                .collect(),
            limits: outcome.limits.iter().map(ToString::to_string).collect(),
            engine: engine.into(),
            moved_after: outcome.moved.map(|moved| moved.instructions),
            error: None,
        }
    }

    fn not_started(lane: u64, engine: &str, error: String) -> Record {
        Record {
            lane,
            ending: "not started".into(),
            exit_code: None,
            signal: None,
            fault_address: None,
            pc: None,
            function: None,
            instructions: 0,
            system_calls: 0,
            stdout: String::new(),
            stdout_form: Form::Text,
            stdout_bytes: 0,
            stderr: String::new(),
            stderr_form: Form::Text,
            stderr_bytes: 0,
            files: Vec::new(),
            limits: Vec::new(),
            engine: engine.into(),
            moved_after: None,
            error: Some(error),
        }
    }

    /// True if it did not end with exit code 0.
    pub(super) fn failed(&self) -> bool {
        self.exit_code != Some(0)
    }

    /// How it ended, in words that are the same for all lanes that ended so.
    pub(super) fn how(&self) -> String {
        match (self.exit_code, &self.signal, &self.error) {
            (Some(code), _, _) => format!("exit code {code}"),
            (_, Some(signal), _) => match (&self.function, &self.pc) {
                (Some(function), _) => format!("{signal} in {function}"),
                (None, Some(pc)) => format!("{signal} at {pc}"),
                (None, None) => signal.clone(),
            },
            (_, _, Some(error)) => format!("not started: {error}"),
            (None, None, None) => self.ending.clone(),
        }
    }
}

fn form(bytes: &[u8], most: u64) -> (Form, String) {
    if bytes.len() as u64 > most {
        return (Form::Sha256, sha256(bytes));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => (Form::Text, text.into()),
        Err(_) => (Form::Hex, hex(bytes)),
    }
}

/// The SHA-256 of bytes, in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Two digits for each byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_text_digits_or_a_hash() {
        assert_eq!(form("grün\n".as_bytes(), 8), (Form::Text, "grün\n".into()));
        assert_eq!(form(&[0, 0xff, 0x10], 8), (Form::Hex, "00ff10".into()));
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(form(b"abc", 2), (Form::Sha256, digest.into()));
        assert_eq!(form(b"abc", 3), (Form::Text, "abc".into()));
    }
}
