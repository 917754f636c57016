//! Runs a machine with a progress bar on the terminal; Ctrl-C ends the run.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use kvrm::{Activity, Machine, MachineBuilder, RunControl, RunReport};

use crate::failure::Result;
use crate::text;

/// How long a run may take before its progress is shown.
pub(crate) const QUIET: Duration = Duration::from_secs(1);
/// How often the bar is updated.
const TICK: Duration = Duration::from_millis(100);

/// Set by the first Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The run that Ctrl-C should cancel.
static CURRENT: Mutex<Option<Arc<RunControl>>> = Mutex::new(None);

/// Builds a machine. If that takes long, because of a driver, a line says so.
pub(crate) fn build(builder: MachineBuilder) -> Result<Machine> {
    let update = |bar: &ProgressBar, _| bar.set_message("building the machine");
    Ok(watched(QUIET, 1, update, || builder.build())?)
}

/// Runs every lane until it stops. After the time `quiet`, a bar shows the progress if standard error is a
/// terminal. Ctrl-C and the deadline cancel the run, and the report says so. `mega` asks for a single launch.
pub(crate) fn run(
    machine: &mut Machine,
    max_cycles: u64,
    mega: bool,
    quiet: Duration,
    deadline: Option<Instant>,
) -> Result<RunReport> {
    let control = cancellable(deadline);
    let lanes = machine.lanes() as u64;
    let update = |bar: &ProgressBar, elapsed| {
        bar.set_message(message(&control, elapsed));
        bar.set_position(control.stopped());
    };
    Ok(watched(quiet, lanes, update, || match mega {
        true => machine.run_mega_with(max_cycles, &control),
        false => machine.run_with(max_cycles, &control),
    })?)
}

/// Does something that runs machines; Ctrl-C and the deadline cancel it. After the time `quiet`, a line shows the progress:
/// `ahead`, and what [`run`] would show.
pub(crate) fn work<T>(
    quiet: Duration,
    deadline: Option<Instant>,
    ahead: impl Fn() -> String + Send + Sync,
    work: impl FnOnce(&RunControl) -> T,
) -> T {
    let control = cancellable(deadline);
    let update = |bar: &ProgressBar, elapsed| {
        bar.set_message(format!("{}{}", ahead(), message(&control, elapsed)));
    };
    watched(quiet, 1, update, || work(&control))
}

/// Makes a control for a run that has the terminal to itself: what the run does instead of executing instructions is
/// shown while it lasts, and nothing else is.
pub(crate) fn for_activities() -> RunControl {
    RunControl::new().with_activities(|activity, work| {
        let update = |bar: &ProgressBar, _| bar.set_message(describe(activity));
        watched(QUIET, 1, update, work);
    })
}

/// True once Ctrl-C was pressed during or after a [`run`], for loops around it.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Makes a control for a run that Ctrl-C and the deadline cancel; the second Ctrl-C ends the process.
pub(crate) fn cancellable(deadline: Option<Instant>) -> Arc<RunControl> {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        // Where no handler can be had, Ctrl-C ends the process, which will do.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::SeqCst) {
                kvrm::end_process(130);
            }
            if let Some(control) = &*lock() {
                control.cancel();
            }
        });
    });
    let control = Arc::new(RunControl::new());
    if let Some(deadline) = deadline {
        control.cancel_at(deadline);
    }
    *lock() = Some(control.clone());
    // It may have been pressed between two runs.
    if interrupted() {
        control.cancel();
    }
    control
}

fn lock() -> std::sync::MutexGuard<'static, Option<Arc<RunControl>>> {
    CURRENT.lock().expect("nobody panics with it")
}

/// Does something while showing a bar of this length.
fn watched<T>(
    quiet: Duration,
    length: u64,
    update: impl Fn(&ProgressBar, Duration) + Send,
    work: impl FnOnce() -> T,
) -> T {
    let (running, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        if std::io::stderr().is_terminal() {
            let watch = move || watch(quiet, length, update, &ended);
            // Where there is no thread to be had, nothing is shown.
            let _ = thread::Builder::new().spawn_scoped(scope, watch);
        }
        let result = work();
        // The watcher ends when its channel does, also if the work panics.
        drop(running);
        result
    })
}

/// Shows the bar after `quiet` and moves it until the other end of `ended` is dropped.
fn watch(
    quiet: Duration,
    length: u64,
    update: impl Fn(&ProgressBar, Duration),
    ended: &Receiver<()>,
) {
    let start = Instant::now();
    if ended.recv_timeout(quiet) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::new(length).with_style(style(length)).with_elapsed(start.elapsed());
    loop {
        update(&bar, start.elapsed());
        if ended.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    bar.finish_and_clear();
}

/// Describes what a run is doing.
fn message(control: &RunControl, elapsed: Duration) -> String {
    match control.activity() {
        Some(activity) => describe(activity),
        None => {
            let executed = control.executed() as f64;
            let speed = text::short(executed / elapsed.as_secs_f64());
            format!("{} instructions, {speed}/s", text::short(executed))
        }
    }
}

fn describe(activity: Activity) -> String {
    match activity {
        Activity::Compiling { handlers } => {
            format!("compiling a kernel of {}", text::handlers(handlers))
        }
    }
}

fn style(lanes: u64) -> ProgressStyle {
    let template = match lanes {
        1 => "{spinner} {elapsed} {msg}",
        _ => "{elapsed} [{bar:30}] {pos} of {len} lanes, {msg}",
    };
    ProgressStyle::with_template(template).expect("a sound template").progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_tells_what_a_run_does() {
        let (control, time) = (RunControl::new(), Duration::from_secs(2));
        control.report(3_000_000, 0);
        assert_eq!(message(&control, time), "3.00 M instructions, 1.50 M/s");
        let compiling = Activity::Compiling { handlers: 362 };
        let message = control.during(compiling, || message(&control, time));
        assert_eq!(message, "compiling a kernel of 362 handlers");
    }
}
