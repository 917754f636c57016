//! What a program did.

use kvrm_linux::{Crash, Ending, Limit, Move, Status};

/// What a program did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why the run ended.
    pub ending: Ending,
    /// How the program ended; `None` if it had not.
    pub status: Option<Status>,
    /// What it died of, if a signal killed it.
    pub crash: Option<Crash>,
    /// Its standard output, if that was captured.
    pub stdout: Vec<u8>,
    /// Its standard error, if that was captured.
    pub stderr: Vec<u8>,
    /// Files that it has created or changed.
    pub files: Vec<WrittenFile>,
    /// Instructions of all its threads and processes.
    pub instructions: u64,
    /// Names of the system calls that it made and how often, the most frequent first.
    pub system_calls: Vec<(String, u64)>,
    /// The same of those that kvrm does not have, by number.
    pub unknown_calls: Vec<(u64, u64)>,
    /// Limits that it hit.
    pub limits: Vec<Limit>,
    /// That it was moved from the GPU to the CPU, if it was.
    pub moved: Option<Move>,
}

/// A file that a program has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its path.
    pub path: Vec<u8>,
    /// What is in it.
    pub contents: Vec<u8>,
    /// Its permissions.
    pub permissions: u32,
}

impl Outcome {
    /// The exit code, if the program ended by itself.
    pub fn code(&self) -> Option<u8> {
        match self.status {
            Some(Status::Exited(code)) => Some(code),
            Some(Status::Killed(_)) | None => None,
        }
    }

    /// The number of the signal that killed it.
    pub fn signal(&self) -> Option<u8> {
        match self.status {
            Some(Status::Killed(signal)) => Some(signal.number()),
            Some(Status::Exited(_)) | None => None,
        }
    }

    /// Bytes of what it holds, about.
    pub(super) fn size(&self) -> usize {
        let files = self.files.iter().map(|file| file.path.len() + file.contents.len());
        self.stdout.len() + self.stderr.len() + files.sum::<usize>()
    }

    /// True if the exit code is 0.
    pub fn success(&self) -> bool {
        self.code() == Some(0)
    }
}
