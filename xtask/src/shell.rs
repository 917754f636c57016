//! Runs other programs from the repository's root.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The result of a chore; the error is a message for people.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// Returns the repository's folder.
pub(crate) fn root() -> PathBuf {
    let manifest = env!("CARGO_MANIFEST_DIR");
    // As cargo says, in case the repository has moved since this was compiled.
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or(manifest.to_string());
    let parent = PathBuf::from(manifest).parent().map(PathBuf::from);
    parent.expect("xtask is in a folder of the repository")
}

/// Makes a command in the repository's root.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Makes a command for the cargo that runs this.
pub(crate) fn cargo() -> Command {
    command(std::env::var("CARGO").unwrap_or("cargo".to_string()))
}

/// Returns the command as one would type it.
pub(crate) fn describe(command: &Command) -> String {
    let parts = std::iter::once(command.get_program()).chain(command.get_args());
    let mut parts: Vec<_> = parts.map(|part| part.to_string_lossy().into_owned()).collect();
    // Without the path of the cargo that was found.
    if parts[0].ends_with("/cargo") {
        parts[0] = "cargo".to_string();
    }
    parts.join(" ")
}

/// Runs a command; its output is shown.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("`{}` failed ({status})", describe(command))),
    }
}

/// Runs a command and returns its output.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| cannot_start(command, &error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let printed = String::from_utf8_lossy(&output.stderr);
            Err(format!("`{}` failed ({}): {}", describe(command), output.status, printed.trim()))
        }
    }
}

/// True if the command can be started and succeeds; its output is not shown.
pub(crate) fn works(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> bool {
    let mut command = command(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("cannot start `{}`: {error}", describe(command))
}
