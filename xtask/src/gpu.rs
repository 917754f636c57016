//! `cargo xtask gpu-check`: the tests and the benchmark that need an NVIDIA GPU.

use std::path::{Path, PathBuf};

use crate::shell::{self, Outcome, cargo, command, root, works};

/// What runs on the computer with the GPU; it needs nothing but the driver.
const SCRIPT: &str = "#!/bin/sh
# Tests of the CUDA engine, then its benchmark.
cd \"$(dirname \"$0\")\" || exit 1
./kvrm devices
./engines --ignored cuda --test-threads 4 || exit 1
for lanes in 128 16384 131072; do
    ./kvrm bench --engine cuda --lanes $lanes --seconds 1 || exit 1
done
";

/// Builds everything, and runs it if there is a GPU.
pub(crate) fn check() -> Outcome {
    let folder = root().join("target/gpu-check");
    std::fs::create_dir_all(&folder)
        .map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    shell::run(cargo().args(["build", "--release", "--package", "kvrm-cli"]))?;
    copy(&root().join("target/release/kvrm"), &folder.join("kvrm"))?;
    copy(&test_binary()?, &folder.join("engines"))?;
    let script = folder.join("run.sh");
    std::fs::write(&script, SCRIPT)
        .map_err(|e| format!("cannot write {}: {e}", script.display()))?;
    shell::run(command("chmod").arg("+x").arg(&script))?;
    if !works("nvidia-smi", &["-L"]) {
        println!(
            "no NVIDIA GPU here: copy target/gpu-check to a computer that has one, and run run.sh there"
        );
        return Ok(());
    }
    shell::run(&mut command(script))
}

/// Builds the engine suite; the path of the program.
fn test_binary() -> Outcome<PathBuf> {
    let mut build = cargo();
    build.args(["test", "--no-run", "--release", "--package", "kvrm", "--test", "engines"]);
    let output = shell::output(build.arg("--message-format=json"))?;
    let path =
        output.lines().filter(|line| line.contains("\"name\":\"engines\"")).find_map(|line| {
            let (_, rest) = line.split_once("\"executable\":\"")?;
            Some(PathBuf::from(rest.split_once('"')?.0))
        });
    path.ok_or_else(|| "cargo did not say where the tests are".to_string())
}

/// Copies a program without what only debuggers need.
fn copy(from: &Path, to: &Path) -> Outcome {
    shell::run(command("strip").arg("-o").arg(to).arg(from))
}
