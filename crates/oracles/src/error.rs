use std::fmt;
use std::io;

use crate::Outcome;

/// Why an oracle could not be started or did not answer every case.
#[derive(Debug)]
pub enum Error {
    /// A program that the oracle needs is not installed.
    ProgramNotFound {
        /// The program that was looked for.
        program: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// A program could not be started, or a file could not be written.
    Io {
        /// What was being done.
        action: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The oracle's process started but did not answer a first, trivial case.
    Start {
        /// The oracle's name.
        oracle: &'static str,
        /// How the process ended, and what it printed.
        reason: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// The compiler rejected the QEMU harness.
    HarnessBuild {
        /// What the compiler printed.
        output: String,
    },
    /// A case breaks a rule that oracles rely on. None of the cases has run.
    InvalidCase {
        /// The case's index.
        index: usize,
        /// The rule.
        reason: &'static str,
    },
    /// Some cases made the oracle's process crash or hang.
    Cases {
        /// The oracle's name.
        oracle: &'static str,
        /// The cases without an outcome.
        failures: Vec<CaseFailure>,
        /// The outcomes of all cases, `None` for the failed ones.
        outcomes: Vec<Option<Outcome>>,
    },
}

/// A case that made the oracle's process crash or hang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFailure {
    /// The case's index.
    pub index: usize,
    /// The case's code.
    pub words: Vec<u32>,
    /// How the process ended, and what it printed.
    pub reason: String,
}

impl fmt::Display for CaseFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {} with code", self.index)?;
        for word in &self.words {
            write!(f, " {word:#010x}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProgramNotFound { program, advice } => write!(f, "{program} not found: {advice}"),
            Self::Io { action, source } => write!(f, "cannot {action}: {source}"),
            Self::Start { oracle, reason, advice } => {
                write!(f, "{oracle} does not work: {reason}; {advice}")
            }
            Self::HarnessBuild { output } => write!(f, "cannot compile the QEMU harness: {output}"),
            Self::InvalidCase { index, reason } => write!(f, "case {index} is invalid: {reason}"),
            Self::Cases { oracle, failures, .. } => {
                write!(f, "{oracle} failed on {} case(s)", failures.len())?;
                failures.iter().try_for_each(|failure| write!(f, "\n{failure}"))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
