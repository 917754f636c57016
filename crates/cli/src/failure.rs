//! Failures of commands and their exit codes.

use std::io;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something impossible.
    Usage(String),
    /// Something outside the command line is wrong: a file, the host's memory, a result.
    Host(String),
    /// Results differ that should be equal. The difference has been printed.
    Different,
    /// The time of `--timeout` was over. Useful results so far have been printed.
    TimedOut(String),
    /// The program of `kvrm run` ended with this exit code.
    Program(u8),
    /// A signal ended the program of `kvrm run`.
    Signal(u8),
    /// The program of `kvrm run` hit a limit, or cannot go on.
    Limited(String),
    /// The program of `kvrm run` cannot be executed.
    NotExecutable(String),
    /// The program of `kvrm run` is not there.
    NotFound(String),
    /// Ctrl-C. Useful results so far have been printed.
    Interrupted,
    /// The reader of the output has closed it (`kvrm isa | head`).
    OutputClosed,
}

/// A result with [`Failure`].
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Returns the message for the user, if there is one.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Failure::Usage(message)
            | Failure::Host(message)
            | Failure::TimedOut(message)
            | Failure::Limited(message)
            | Failure::NotExecutable(message)
            | Failure::NotFound(message) => Some(message),
            Failure::Different
            | Failure::Interrupted
            | Failure::OutputClosed
            | Failure::Program(_)
            | Failure::Signal(_) => None,
        }
    }

    /// Returns the exit code of the process.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Host(_) | Failure::Different => 1,
            // What `timeout` of GNU's coreutils says.
            Failure::TimedOut(_) => 124,
            Failure::Interrupted => 130,
            Failure::OutputClosed => 0,
            Failure::Program(code) => *code,
            Failure::Signal(number) => 128 + number,
            // As `env` and `timeout` of GNU's coreutils have them.
            Failure::Limited(_) => 125,
            Failure::NotExecutable(_) => 126,
            Failure::NotFound(_) => 127,
        }
    }

    /// Makes the failure for a run that its timeout or Ctrl-C cancelled. After a timeout, `advice` says what to do.
    pub(crate) fn ended_early(timed_out: bool, advice: &str) -> Failure {
        match timed_out {
            true => Failure::TimedOut(format!("the time of --timeout was over: {advice}")),
            false => Failure::Interrupted,
        }
    }

    /// Makes the failure for a file that could not be used.
    pub(crate) fn file(doing: &str, path: &std::path::Path, error: &io::Error) -> Failure {
        Failure::Host(format!("cannot {doing} {}: {error}", path.display()))
    }
}

impl From<kvrm::Error> for Failure {
    fn from(error: kvrm::Error) -> Failure {
        match error {
            kvrm::Error::Engine(_) | kvrm::Error::NoThread(_) => Failure::Host(error.to_string()),
            kvrm::Error::Program(_) => Failure::NotExecutable(error.to_string()),
            kvrm::Error::NoProgram(_) => Failure::NotFound(error.to_string()),
            kvrm::Error::Sandbox(_)
            | kvrm::Error::Snapshot(_)
            | kvrm::Error::Keep { .. }
            | kvrm::Error::Rows(_) => Failure::Host(error.to_string()),
            // Everything else is about a number or name that came from the command line.
            _ => Failure::Usage(error.to_string()),
        }
    }
}

/// For writing to standard output; errors of other I/O name the file.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Host(format!("cannot write the output: {error}")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::from(io::Error::from(error))
    }
}
