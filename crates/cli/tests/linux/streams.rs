//! Standard input, shared with other programs of the host.

use std::io::Write;
use std::process::Command;

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
