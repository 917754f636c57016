//! Checks what users build for systems that are not at hand, as far as types and lints go.

use crate::shell::{self, Outcome, cargo, command};

const TARGETS: [&str; 3] =
    ["aarch64-apple-darwin", "x86_64-pc-windows-msvc", "aarch64-unknown-linux-gnu"];

pub(crate) fn check() -> Outcome {
    for target in TARGETS {
        println!("{target}");
        shell::run(command("rustup").args(["--quiet", "target", "add", target]))?;
        let mut clippy = cargo();
        clippy.args(["clippy", "--quiet", "--package", "kvrm-cli", "--package", "kvrm-py"]);
        shell::run(clippy.args(["--target", target, "--", "--deny", "warnings"]))?;
    }
    Ok(())
}
