//! Where cases run: under `kvrm run`, or under qemu-user in namespaces with the same files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::case::{Case, Needs, Output};
use crate::folder;

/// The environment of every case. A program's own may have more, such as `PWD` of a shell.
const ENVIRONMENT: [&str; 4] = ["PATH=/usr/bin", "LC_ALL=C", "HOME=/work", "TZ=UTC"];

/// What QEMU prints when a signal ends a program.
const QEMU_MESSAGE: &[u8] = b"qemu: uncaught target signal";

/// `kvrm run`, on one engine.
pub(crate) struct Kvrm {
    root: PathBuf,
    engine: Option<String>,
}

impl Kvrm {
    pub(crate) fn new(root: PathBuf) -> Kvrm {
        Kvrm { root, engine: std::env::var("KVRM_LINUX_ENGINE").ok() }
    }

    /// True if the engine can run it.
    pub(crate) fn runs(&self, case: &Case) -> bool {
        match case.needs {
            Needs::Single => true,
            Needs::Long | Needs::Threads | Needs::Processes => {
                self.engine.as_ref().is_none_or(|engine| engine == "cpu")
            }
        }
    }

    pub(crate) fn output(&self, case: &Case) -> Output {
        self.finish(case, self.engine.as_deref(), &[])
    }

    /// Runs a case on an engine for a number of instructions at the most: what it did, and the report. Returns nothing if
    /// they were not enough.
    pub(crate) fn reported(
        &self,
        case: &Case,
        engine: &str,
        most: u64,
    ) -> Option<(Output, serde_json::Value)> {
        let report = tempfile::NamedTempFile::new().unwrap();
        let path = report.path().to_str().unwrap();
        let options = ["--report-json", path, "--max-instructions", &most.to_string()];
        let output = self.finish(case, Some(engine), &options);
        let text = std::fs::read_to_string(path).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        (report["limits"] == serde_json::json!([])).then_some((output, report))
    }

    fn finish(&self, case: &Case, engine: Option<&str>, options: &[&str]) -> Output {
        let work = Work::new(case);
        let command = std::env::var("KVRM_COMMAND");
        let mut kvrm = limited(command.as_deref().unwrap_or(env!("CARGO_BIN_EXE_kvrm")));
        kvrm.arg("run").arg("--root").arg(&self.root);
        kvrm.args(engine.iter().flat_map(|engine| ["--engine", engine])).args(options);
        kvrm.arg("--bind").arg(format!("{}:/work", work.files().display()));
        if let Some(programs) = &case.programs {
            kvrm.arg("--bind").arg(format!("{}:/programs", programs.display()));
        }
        kvrm.args(ENVIRONMENT.iter().flat_map(|variable| ["--env", variable]));
        kvrm.args(["--cwd", case.directory]).args(&case.words);
        finish(&mut kvrm, &case.input)
    }
}

/// qemu-user, with the same files.
pub(crate) struct Qemu {
    root: PathBuf,
}

impl Qemu {
    /// Returns nothing where the namespaces cannot be made.
    pub(crate) fn new(root: PathBuf) -> Option<Qemu> {
        let qemu = Qemu { root };
        let folder = TempDir::new().unwrap();
        let mut hello = qemu.command(folder.path(), folder.path(), folder.path(), "/tmp");
        let output = finish(hello.args(["/usr/bin/echo", "works"]), "");
        if output.out == b"works\n" {
            return Some(qemu);
        }
        let reason = String::from_utf8_lossy(&output.err);
        eprintln!("skipped: qemu.sh does not work here (it needs Linux 6.7): {}", reason.trim());
        None
    }

    fn command(&self, scratch: &Path, work: &Path, programs: &Path, directory: &str) -> Command {
        let mut command = limited("unshare");
        command.args(["--map-root-user", "--mount", "sh"]).arg(folder().join("qemu.sh"));
        command.args([&self.root, scratch, work, programs]).arg(directory).args(ENVIRONMENT);
        command
    }

    pub(crate) fn output(&self, case: &Case) -> Output {
        let work = Work::new(case);
        let files = work.files();
        let programs = case.programs.as_ref().unwrap_or(&files);
        let mut command = self.command(&work.scratch(), &files, programs, case.directory);
        let mut output = finish(command.args(&case.words), &case.input);
        let lines = output.err.split_inclusive(|byte| *byte == b'\n');
        output.err =
            lines.filter(|line| !line.starts_with(QEMU_MESSAGE)).flatten().copied().collect();
        output
    }
}

/// The host's folders for one run.
struct Work(TempDir);

impl Work {
    fn new(case: &Case) -> Work {
        let work = Work(TempDir::new().unwrap());
        std::fs::create_dir(work.files()).unwrap();
        std::fs::create_dir(work.scratch()).unwrap();
        for (name, text) in &case.files {
            std::fs::write(work.files().join(name), text).unwrap();
        }
        work
    }

    fn files(&self) -> PathBuf {
        self.0.path().join("work")
    }

    /// An empty folder, over which something is mounted.
    fn scratch(&self) -> PathBuf {
        self.0.path().join("scratch")
    }
}

/// Makes a command that is killed with all that it started if it takes too long.
fn limited(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "900", program]);
    command
}

fn finish(command: &mut Command, input: &str) -> Output {
    // All of the input is there when the program begins, so that it does the same each time. It is smaller than a pipe.
    let (stdin, mut writer) = std::io::pipe().unwrap();
    writer.write_all(input.as_bytes()).unwrap();
    drop(writer);
    let output = command.stdin(stdin).output().unwrap();
    // `timeout` exits with the program's status, and dies of its signal.
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    let status = output.status.code().unwrap_or_else(|| 128 + signal.unwrap());
    Output { status, out: output.stdout, err: output.stderr }
}
