//! Standard input and the terminal, which are shared with other programs of the host.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

use crate::debian;

#[test]
fn what_a_program_does_not_read_is_left_for_the_next() {
    let Some(root) = debian() else { return };
    let mut input = tempfile::NamedTempFile::new().unwrap();
    input.write_all(b"five letters and the rest\n").unwrap();
    let script = r#""$0" run --root "$1" dd bs=1 count=4 status=none; echo; exec cat"#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_kvrm")]).arg(root);
    let output = shell.stdin(input.reopen().unwrap()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "five\n letters and the rest\n");
}

/// Runs a script of bash at a terminal, with options of `kvrm run`; its exit code, and whether the terminal shows what is typed
/// afterwards.
fn at_terminal(script: &str, options: &[&str]) -> Option<(i32, bool)> {
    let root = debian()?;
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let path = ptsname(&controller, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(path.to_str().unwrap()).unwrap();
    let mut kvrm = Command::new(env!("CARGO_BIN_EXE_kvrm"));
    kvrm.arg("run").args(options).arg("--root").arg(root).args(["bash", "-c", script]);
    kvrm.stdin(terminal.try_clone().unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    let code = kvrm.status().unwrap().code().unwrap();
    Some((code, tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHO)))
}

#[test]
fn the_terminal_is_as_it_was_if_a_limit_ends_a_program() {
    let forever = "stty -echo; while :; do :; done";
    let Some(unchanged) = at_terminal("stty echo", &[]) else { return };
    assert_eq!(unchanged, (0, true));
    // As without kvrm: it may have been what the user wanted.
    assert_eq!(at_terminal("stty -echo", &[]), Some((0, false)));
    assert_eq!(at_terminal(forever, &["--max-instructions", "20M"]), Some((125, true)));
    assert_eq!(at_terminal(forever, &["--timeout", "2s"]), Some((124, true)));
}

#[test]
fn named_pipes_work_in_writable_folders() {
    let Some(root) = debian() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = "mkfifo p; echo through > p & cat p; wait; test -p p && echo a pipe";
    let mut kvrm = Command::new(env!("CARGO_BIN_EXE_kvrm"));
    kvrm.arg("run").arg("--root").arg(root).args(["--cwd", "/out", "--bind"]);
    kvrm.arg(format!("{}:/out:rw", folder.path().display())).args(["bash", "-c", script]);
    let output = kvrm.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(text == "through\na pipe\n", "{text}");
    let kind = std::fs::symlink_metadata(folder.path().join("p")).unwrap().file_type();
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&kind));
}
