//! `kvrm completions` and `kvrm man`, generated from the definition of the command line.

use std::io::Write;
use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Cli;
use crate::failure::{Failure, Result};

/// Options of `kvrm completions`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm completions bash > ~/.local/share/bash-completion/completions/kvrm
  kvrm completions fish > ~/.config/fish/completions/kvrm.fish")]
pub(crate) struct Completions {
    /// Shell to complete for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let mut script = Vec::new();
        // Into memory first: it panics where it cannot write.
        clap_complete::generate(self.shell, &mut Cli::command(), "kvrm", &mut script);
        Ok(out.write_all(&script)?)
    }
}

/// Options of `kvrm man`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm man | man -l -
  kvrm man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Folder for the pages of all commands (kvrm.1, kvrm-exec.1 and so on)
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        match &self.dir {
            None => Ok(clap_mangen::Man::new(Cli::command()).render(out)?),
            Some(dir) => std::fs::create_dir_all(dir)
                .and_then(|()| clap_mangen::generate_to(Cli::command(), dir))
                .map_err(|error| Failure::file("write into", dir, &error)),
        }
    }
}
