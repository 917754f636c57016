//! Runs a machine while the user watches: a progress bar on the terminal, and Ctrl-C to end it.

use std::io::IsTerminal;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use kvrm::{Machine, RunControl, RunReport};

use crate::failure::Result;
use crate::text;

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

/// Set by the first Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The run that Ctrl-C should cancel.
static CURRENT: Mutex<Option<Arc<RunControl>>> = Mutex::new(None);

/// Runs every lane to its stop. A bar shows how far they are once the run has taken `quiet`, if standard
/// error is a terminal. Ctrl-C cancels the run, which the report tells. `mega` asks for a single launch.
pub(crate) fn run(
    machine: &mut Machine,
    max_cycles: u64,
    mega: bool,
    quiet: Duration,
) -> Result<RunReport> {
    let control = cancellable();
    let lanes = machine.lanes() as u64;
    let (running, ended) = mpsc::channel::<()>();
    let report = thread::scope(|scope| {
        if std::io::stderr().is_terminal() {
            let control = &*control;
            scope.spawn(move || watch(control, lanes, quiet, &ended));
        }
        let report = match mega {
            true => machine.run_mega_with(max_cycles, &control),
            false => machine.run_with(max_cycles, &control),
        };
        // The watcher ends when its channel does, also if the run panics.
        drop(running);
        report
    });
    Ok(report?)
}

/// True once Ctrl-C was pressed during or after a [`run`]: for loops outside of it.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// A control for one run that Ctrl-C cancels; the second Ctrl-C ends the process.
fn cancellable() -> Arc<RunControl> {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        // Where no handler can be had, Ctrl-C ends the process, which will do.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::SeqCst) {
                process::exit(130);
            }
            if let Some(control) = &*lock() {
                control.cancel();
            }
        });
    });
    let control = Arc::new(RunControl::new());
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

/// Moves the bar until the other end of `ended` is dropped.
fn watch(control: &RunControl, lanes: u64, quiet: Duration, ended: &Receiver<()>) {
    let start = Instant::now();
    if ended.recv_timeout(quiet) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::new(lanes).with_style(style(lanes)).with_elapsed(start.elapsed());
    loop {
        let executed = control.executed() as f64;
        let speed = executed / start.elapsed().as_secs_f64();
        bar.set_message(format!(
            "{} instructions, {}/s",
            text::short(executed),
            text::short(speed)
        ));
        bar.set_position(control.stopped());
        if ended.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    bar.finish_and_clear();
}

fn style(lanes: u64) -> ProgressStyle {
    let template = match lanes {
        1 => "{spinner} {elapsed} {msg}",
        _ => "{elapsed} [{bar:30}] {pos} of {len} lanes, {msg}",
    };
    ProgressStyle::with_template(template).expect("a sound template").progress_chars("=> ")
}
