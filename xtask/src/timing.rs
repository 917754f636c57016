//! Measures what a process takes: time on the clock, and time of processors.

use std::process::{Command, Output, Stdio};
use std::time::Instant;

use crate::shell::{self, Outcome};

/// What a process took from start to end, in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Time {
    /// Of all processors, for the program and for the system on its behalf.
    pub(crate) cpu: f64,
    /// On the clock.
    pub(crate) wall: f64,
}

impl Time {
    /// Longer than any other.
    pub(crate) const FOREVER: Time = Time { cpu: f64::INFINITY, wall: f64::INFINITY };

    /// Returns the time for each of so many.
    pub(crate) fn of_each(self, number: u64) -> Time {
        Time { cpu: self.cpu / number as f64, wall: self.wall / number as f64 }
    }

    /// Returns the best of both, each for itself.
    pub(crate) fn best(self, other: Time) -> Time {
        Time { cpu: self.cpu.min(other.cpu), wall: self.wall.min(other.wall) }
    }
}

/// Runs a command: the time it took, and what it printed. No other may run meanwhile.
pub(crate) fn timed(command: &mut Command) -> Outcome<(Time, String)> {
    measured(|| shell::output(command))
}

/// Runs a command that may also fail: the time it took, what it printed, and how it ended.
pub(crate) fn timed_output(command: &mut Command) -> Outcome<(Time, Output)> {
    measured(|| {
        let output = command.stdin(Stdio::null()).output();
        output.map_err(|error| format!("cannot start `{}`: {error}", shell::describe(command)))
    })
}

/// Does something that runs commands: the time that these took.
pub(crate) fn measured<T>(run: impl FnOnce() -> Outcome<T>) -> Outcome<(Time, T)> {
    let (start, before) = (Instant::now(), cpu_of_children()?);
    let result = run()?;
    let wall = start.elapsed().as_secs_f64();
    Ok((Time { cpu: cpu_of_children()? - before, wall }, result))
}

/// Returns the processor seconds of all processes that this one has started and that have ended.
#[cfg(unix)]
fn cpu_of_children() -> Outcome<f64> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;

    let usage = getrusage(UsageWho::RUSAGE_CHILDREN);
    let usage = usage.map_err(|error| format!("cannot ask for processor time: {error}"))?;
    let time = usage.user_time() + usage.system_time();
    Ok(time.num_microseconds() as f64 / 1e6)
}

#[cfg(not(unix))]
fn cpu_of_children() -> Outcome<f64> {
    Err("processor time is measured on Unix only".to_string())
}
