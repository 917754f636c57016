//! Running the command and reading what it says.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// What a command left behind.
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A folder of files for one test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// kvrm in the folder; arguments are separated by spaces.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvrm"));
        command.args(arguments.split_whitespace()).current_dir(self.path());
        command
    }

    /// Runs kvrm in the folder.
    pub(crate) fn kvrm(&self, arguments: &str) -> Output {
        self.kvrm_with_input(arguments, b"")
    }

    pub(crate) fn kvrm_with_input(&self, arguments: &str, input: &[u8]) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that fails early does not read its input.
        let _ = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        Output {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command that must succeed; what it printed.
    pub(crate) fn output(&self, arguments: &str) -> String {
        let output = self.kvrm(arguments);
        assert_eq!(output.code, 0, "kvrm {arguments}: {}", output.stderr);
        assert_eq!(output.stderr, "", "kvrm {arguments}");
        output.stdout
    }

    /// Runs a command that must fail with this exit code; what it says.
    pub(crate) fn error(&self, arguments: &str, code: i32) -> String {
        let output = self.kvrm(arguments);
        assert_eq!(output.code, code, "kvrm {arguments}: {}", output.stderr);
        output.stderr
    }

    /// Runs a command that must succeed, with `--json`; what it printed.
    pub(crate) fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.output(&format!("{arguments} --json"))).unwrap()
    }
}

/// Instruction words as a file holds them.
pub(crate) fn code(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
