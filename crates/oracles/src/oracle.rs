use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::process::{Session, spawn_error};
use crate::{Case, Error, Oracle, Outcome};

const UNICORN_SCRIPT: &str = include_str!("../unicorn_oracle.py");
const QEMU_HARNESS: &str = include_str!("../qemu_oracle.c");

const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// SVE and SME would add to the state that a signal saves and restores, and
/// pointer authentication would use random keys.
const QEMU_CPU: &str = "max,pauth=off,sve=off,sme=off";
const COMPILER_ARGUMENTS: [&str; 14] = [
    "-std=c11",
    "-O2",
    "-Wall",
    "-static",
    "-nostdlib",
    "-ffreestanding",
    "-fno-pie",
    "-no-pie",
    "-fno-stack-protector",
    // Loops must not become calls of the functions that contain them.
    "-fno-tree-loop-distribute-patterns",
    // Away from the guest's memory, and out of reach of its branches.
    "-Wl,-Ttext-segment=0x500000000",
    "-x",
    "c",
    "-",
];

/// The Unicorn emulator, run by a Python script.
pub struct UnicornOracle(Session);

impl UnicornOracle {
    /// Starts the oracle with a Python that has the `unicorn` package.
    pub fn start(python: &Path) -> Result<Self, Error> {
        let arguments = vec!["-c".into(), UNICORN_SCRIPT.into()];
        let advice = "install Python 3 and its package with pip install unicorn==2.1.4";
        Session::start("unicorn", python.into(), arguments, advice).map(Self)
    }
}

impl Oracle for UnicornOracle {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn run(&mut self, cases: &[Case]) -> Result<Vec<Outcome>, Error> {
        self.0.run(cases)
    }
}

/// QEMU's user mode emulator, which runs a harness program.
pub struct QemuOracle(Session);

impl QemuOracle {
    /// Starts the oracle with `qemu-aarch64-static`, by name or by path, and the
    /// program from [`build_qemu_harness`].
    pub fn start(qemu: &Path, harness: &Path) -> Result<Self, Error> {
        let arguments: Vec<OsString> = vec!["-cpu".into(), QEMU_CPU.into(), harness.into()];
        let advice = "apt-get install qemu-user-static";
        Session::start("qemu", qemu.into(), arguments, advice).map(Self)
    }
}

impl Oracle for QemuOracle {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn run(&mut self, cases: &[Case]) -> Result<Vec<Outcome>, Error> {
        self.0.run(cases)
    }
}

/// Compiles the program that [`QemuOracle`] runs, into `out_dir`, which is
/// created if it does not exist. Returns the program's path.
pub fn build_qemu_harness(out_dir: &Path) -> Result<PathBuf, Error> {
    std::fs::create_dir_all(out_dir)
        .map_err(|source| Error::Io { action: format!("create {}", out_dir.display()), source })?;
    let harness = out_dir.join("qemu_oracle");
    let output = compile(&harness)?;
    if output.status.success() {
        return Ok(harness);
    }
    Err(Error::HarnessBuild { output: String::from_utf8_lossy(&output.stderr).into_owned() })
}

fn compile(harness: &Path) -> Result<Output, Error> {
    let mut child = Command::new(COMPILER)
        .arg("-o")
        .arg(harness)
        .args(COMPILER_ARGUMENTS)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            spawn_error(&COMPILER.into(), "apt-get install gcc-aarch64-linux-gnu", error)
        })?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // If the compiler stops reading, its output says why.
    let _ = stdin.write_all(QEMU_HARNESS.as_bytes());
    drop(stdin);
    child
        .wait_with_output()
        .map_err(|source| Error::Io { action: format!("await {COMPILER}"), source })
}
