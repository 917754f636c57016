//! `kvrm run --boot-until`: runs a program to a point, and keeps it as it is there.

use std::path::PathBuf;

use kvrm::RunControl;
use kvrm::linux::{Point, Process, Snapshot};

use super::Run;
use crate::failure::{Failure, Result};
use crate::{files, progress, text};

/// Options for going on from a point of a program.
#[derive(clap::Args)]
pub(super) struct BootArgs {
    /// Run the program to this point first. Then keep it as it is there (--save), or begin all lanes there
    #[arg(long, value_name = "FUNCTION|ADDRESS|first-read")]
    pub(super) boot_until: Option<Point>,

    /// Keep the program as it is at the point of --boot-until in this file. kvrm run FILE goes on from there
    #[arg(
        long,
        value_name = "FILE",
        requires = "boot_until",
        conflicts_with_all = ["rows", "keep", "report", "report_json"]
    )]
    pub(super) save: Option<PathBuf>,
}

/// Keeps the program in a file.
pub(super) fn save(run: &Run) -> Result<()> {
    let (Some(path), Some(point)) = (&run.boot.save, &run.boot.boot_until) else {
        unreachable!("both are given, or none");
    };
    let control = RunControl::part_of(&progress::cancellable(None));
    let snapshot = self::run(run.alone()?, point, control, run)?;
    files::write(path, |file| file.write_all(snapshot.bytes()))?;
    eprintln!(
        "kvrm: {} has the program at {point}: {} instructions, {} pages of memory, {} bytes",
        path.display(),
        text::thousands(snapshot.instructions()),
        text::thousands(snapshot.pages()),
        text::thousands(snapshot.bytes().len() as u64),
    );
    Ok(())
}

/// Runs a program to a point, for as long as a run may take.
pub(super) fn run(
    process: Process,
    point: &Point,
    control: RunControl,
    run: &Run,
) -> Result<Snapshot> {
    let control = match run.timeout.time() {
        Some(time) => control.with_timeout(time),
        None => control,
    };
    process.boot_until_with(point, &control).map_err(|error| match control.was_cancelled() {
        true => Failure::ended_early(control.timed_out(), "give the program more, or less to do"),
        false => error.into(),
    })
}
