//! Running hostile programs.

use std::sync::mpsc;
use std::time::Duration;

use kvrm_engine::RunControl;
use kvrm_linux::vfs::{self, GivenFile, Vfs};
use kvrm_linux::{
    Command, Console, Ending, Failure, Kernel, Limits, MakeGuest, Report, Setup, Status, Stream,
};

use crate::guest::EvalGuest;

/// How long any run may take. They are all made to take much less, unless something loops.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that the process of the tests may take, at the most: whatever guests ask for, they get a few MiB each.
const MOST_MEMORY: u64 = 2 << 30;

/// Limits that are hit soon.
pub(crate) const LIMITS: Limits = Limits {
    instructions: 200_000,
    memory: 64 << 20,
    file_bytes: 4 << 20,
    files: 200,
    open_files: 64,
    threads: 12,
    output: 1 << 20,
};

/// What became of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) ending: Ending,
    pub(crate) status: Option<Status>,
    pub(crate) report: Report,
    pub(crate) output: Vec<u8>,
}

/// The setup of a run with captured output.
pub(crate) fn setup(files: Vec<GivenFile>, limits: Limits) -> Setup {
    let make_guest: MakeGuest = Box::new(|| Ok(Box::new(EvalGuest::new()?)));
    let vfs = Vfs::new(vfs::Setup {
        root: None,
        binds: Vec::new(),
        files,
        limits: vfs::Limits { bytes: limits.file_bytes, nodes: limits.files },
        time: vfs::Timespec::default(),
    });
    Setup {
        make_first: None,
        make_guest,
        vfs: vfs.unwrap(),
        console: Console::captured(b"input".to_vec()),
        limits,
        seed: 1,
        realtime: false,
        strace: Some(Box::new(|_| {})),
        hook: None,
    }
}

/// An executable file.
pub(crate) fn executable(path: &str, contents: Vec<u8>) -> GivenFile {
    GivenFile { path: path.into(), contents, permissions: 0o755 }
}

/// Loads and runs `/program`.
pub(crate) fn start(setup: Setup) -> Result<Outcome, Failure> {
    let command = Command {
        path: b"/program".to_vec(),
        args: vec![b"program".to_vec()],
        env: vec![b"A=1".to_vec()],
        directory: b"/tmp".to_vec(),
    };
    let mut kernel = Kernel::new(setup, &command)?;
    let ending = kernel.run(&RunControl::new())?;
    // A file that is too large to be given as a whole is an error like others.
    let _ = kernel.written_files();
    let output = kernel.console().take_output(Stream::Output);
    let (status, report) = (kernel.status(), kernel.report().clone());
    Ok(Outcome { ending, status, report, output })
}

/// Runs a program that can be loaded.
pub(crate) fn run(program: Vec<u8>, limits: Limits) -> Outcome {
    run_with(program, Vec::new(), limits)
}

/// The same with more files.
pub(crate) fn run_with(program: Vec<u8>, mut files: Vec<GivenFile>, limits: Limits) -> Outcome {
    files.push(executable("/program", program));
    in_time("run", move || start(setup(files, limits)).unwrap())
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
