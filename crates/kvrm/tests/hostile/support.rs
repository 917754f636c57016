//! Running hostile programs for a limited time.

use std::sync::mpsc;
use std::time::Duration;

use kvrm::linux::Limits;
use kvrm_fuzzing::linux::{Outcome, Translating, executable, on_all_engines};

/// How long any run may take. They are all made to take much less, unless something loops.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that the process of the tests may take, at the most: whatever guests ask for, they get a few MiB each.
const MOST_MEMORY: u64 = 2 << 30;

/// Runs a program that can be loaded.
pub(crate) fn run(program: Vec<u8>, limits: Limits) -> Outcome {
    let files = [executable("/program", program)];
    in_time("run", move || on_all_engines(&files, &limits, Translating::Late).unwrap())
}

/// Does something that must end soon and take little memory.
pub(crate) fn in_time<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        // Nobody listens if it took too long.
        let _ = sender.send(work());
    });
    let done = match receiver.recv_timeout(PATIENCE) {
        Ok(done) => done,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what} does not end"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let panic = worker.join().expect_err("it sent nothing");
            eprintln!("{what} panics");
            std::panic::resume_unwind(panic)
        }
    };
    let peak = peak_memory();
    assert!(peak < MOST_MEMORY, "{what} took {peak} bytes");
    done
}

/// Bytes that this process has taken at the most.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
