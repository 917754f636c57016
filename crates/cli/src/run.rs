//! `kvrm run`: runs a Linux program.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use kvrm::linux::{HostSignals, Process};

use crate::failure::{Failure, Result};

/// Options of `kvrm run`.
#[derive(clap::Args)]
pub(crate) struct Run {
    /// The program, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,

    /// A directory that becomes the program's /; what it changes there stays in memory
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Set a variable of the environment (repeatable)
    #[arg(long = "env", value_name = "NAME=VALUE")]
    env: Vec<OsString>,

    /// The directory that the program begins in
    #[arg(long, value_name = "DIR", default_value = "/")]
    cwd: OsString,

    /// Print every system call
    #[arg(long)]
    strace: bool,

    /// Engine
    #[arg(long, default_value = "auto")]
    engine: String,

    /// Print a report
    #[arg(long)]
    report: bool,
}

impl Run {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        out.flush()?;
        let mut process = Process::new(&self.command[0]).engine(self.engine.parse()?);
        process = process.args(self.command[1..].iter().map(|arg| arg.as_bytes()));
        if let Some(root) = &self.root {
            process = process.root(root);
        }
        for variable in &self.env {
            let bytes = variable.clone().into_vec();
            let at = bytes.iter().position(|byte| *byte == b'=').unwrap_or(bytes.len());
            process = process.env(&bytes[..at], bytes.get(at + 1..).unwrap_or(&[]));
        }
        process = process.directory(self.cwd.as_bytes()).inherit(HostSignals::default());
        if self.strace {
            process = process.strace(|line| eprintln!("{line}"));
        }
        let outcome = process.run()?;
        if self.report {
            eprintln!("{:?} {:?} {} instructions {:?} {:?} {:?}", outcome.ending, outcome.status, outcome.instructions, outcome.system_calls, outcome.unknown_calls, outcome.crash);
        }
        match (outcome.code(), outcome.signal()) {
            (Some(0), _) => Ok(()),
            (Some(code), _) => std::process::exit(code.into()),
            (_, Some(signal)) => std::process::exit(128 + i32::from(signal)),
            _ => Err(Failure::Host(format!("{:?}", outcome.ending))),
        }
    }
}
