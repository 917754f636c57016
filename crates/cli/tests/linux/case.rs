//! Something to run, and what it leaves behind.

use std::path::PathBuf;

/// What a program needs of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// One process with one thread.
    Single,
    /// The same, for more instructions than a single lane of a GPU executes in a minute.
    Long,
    /// One process.
    Threads,
    /// Anything.
    Processes,
}

/// A program with its arguments and files.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) needs: Needs,
    /// False if QEMU does something else than Linux.
    pub(crate) qemu_is_right: bool,
    pub(crate) files: Vec<(String, String)>,
    pub(crate) input: String,
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    /// Where it runs.
    pub(crate) directory: &'static str,
    /// The host's folder that is `/programs`.
    pub(crate) programs: Option<PathBuf>,
    /// The file that says what is expected.
    pub(crate) expected: PathBuf,
}

/// What a program printed, and how it ended.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Output {
    /// The exit status; 128 and the number of a signal.
    pub(crate) status: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
}
