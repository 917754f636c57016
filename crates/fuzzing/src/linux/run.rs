//! Running hostile programs, on all engines.

use std::collections::BTreeMap;

use kvrm::{EngineKind, RunControl};
use kvrm_linux::vfs::{self, GivenFile, Vfs};
use kvrm_linux::{
    Command, Console, Ending, Failure, Kernel, Limits, MakeGuest, Report, Setup, Status, Stream,
};

/// Limits that are hit soon.
pub const LIMITS: Limits = Limits {
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
pub struct Outcome {
    /// Why it ended.
    pub ending: Ending,
    /// How the first process ended.
    pub status: Option<Status>,
    /// What it took.
    pub report: Report,
    /// What it printed to standard output.
    pub output: Vec<u8>,
}

/// How soon the CPU engine translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translating {
    /// As for users.
    Late,
    /// So soon that runs of a few thousand instructions are translated.
    Soon,
}

/// An executable file.
pub fn executable(path: &str, contents: Vec<u8>) -> GivenFile {
    GivenFile { path: path.into(), contents, permissions: 0o755 }
}

/// Loads and runs `/program`, with captured output, on each engine, and returns what became of it. Panics if the engines
/// differ.
pub fn on_all_engines(
    files: &[GivenFile],
    limits: &Limits,
    translating: Translating,
) -> Result<Outcome, Failure> {
    let translate_after = match translating {
        Translating::Late => None,
        Translating::Soon => Some(2),
    };
    let [cpu, eval] = [EngineKind::Cpu, EngineKind::Eval].map(|engine| {
        let make = kvrm::linux::make_guests(engine, translate_after);
        start(setup(make, files.to_vec(), limits.clone()))
    });
    let [a, b] = [&cpu, &eval].map(seen);
    assert!(a == b, "cpu gives\n{a:#?}, not\n{b:#?}");
    cpu
}

/// Returns what must not depend on the engine.
fn seen(outcome: &Result<Outcome, Failure>) -> impl PartialEq + std::fmt::Debug + use<> {
    match outcome {
        Ok(Outcome { ending, status, report, output }) => {
            let calls: BTreeMap<u64, u64> = report.calls.iter().map(|(n, c)| (*n, *c)).collect();
            let limits: Vec<String> = report.limits.iter().map(|l| l.to_string()).collect();
            let hash = output
                .iter()
                .fold(0u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
            let printed = (output.len(), hash);
            Ok((
                *ending,
                *status,
                report.instructions,
                calls,
                report.crash.clone(),
                limits,
                printed,
            ))
        }
        Err(failure) => Err(failure.to_string()),
    }
}

fn setup(make_guest: MakeGuest, files: Vec<GivenFile>, limits: Limits) -> Setup {
    let vfs = Vfs::new(vfs::Setup {
        root: None,
        binds: Vec::new(),
        files,
        limits: vfs::Limits { bytes: limits.file_bytes, nodes: limits.files },
        time: vfs::Timespec::default(),
    });
    Setup {
        make_guest,
        make_first: None,
        vfs: vfs.expect("there are few files"),
        console: Console::captured(b"input".to_vec()),
        limits,
        seed: 1,
        realtime: false,
        // Arguments must not upset it.
        strace: Some(Box::new(|line| {
            if std::env::var_os("KVRM_FUZZ_STRACE").is_some() {
                eprintln!("{line}");
            }
        })),
        hook: None,
    }
}

fn start(setup: Setup) -> Result<Outcome, Failure> {
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
