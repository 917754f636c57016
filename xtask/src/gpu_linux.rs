//! The part of `cargo xtask gpu-check` with Linux programs: a folder of its own, because a Debian takes as much room as all
//! the rest.

use std::fs;
use std::path::Path;

use crate::gpu::{LIMIT, QEMU, copy_program, copy_qemu, pack, size, test_binary, write};
use crate::shell::{self, Outcome, command, root};
use crate::tools::{self, cannot};

/// The script for the computer with the GPU.
const SCRIPT: &str = include_str!("gpu-check-linux.sh");
const PROGRAMS: [&str; 3] = ["kvrm", "engines", "linux"];
/// What is measured in many lanes, and what it is compared with.
const MEASURED: [&str; 2] = ["hash", QEMU];
/// What no program of the tests reads.
const WITHOUT: [&str; 6] = [
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
    "usr/lib/aarch64-linux-gnu/gconv",
    "usr/lib/python3.11/test",
    "usr/lib/python3.11/lib2to3",
];

/// Fills the folder. `kvrm` is the command, and `engines` the tests of engines, both built.
pub(crate) fn make(folder: &Path, kvrm: &Path, engines: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))?;
    let linux = test_binary("kvrm-cli", "linux", &["--test", "linux"])?;
    for (program, name) in [kvrm, engines, &linux].into_iter().zip(PROGRAMS) {
        copy_program(program, &folder.join(name))?;
    }
    lanes(folder)?;
    pack(folder, &[&PROGRAMS[..], &MEASURED].concat())?;
    debian(folder)?;
    tests(folder, &linux)?;
    let vulkan = folder.join("vulkan");
    tools::remove(&vulkan)?;
    shell::run(command("cp").arg("-RL").arg(tools::vulkan_loader()?).arg(vulkan))?;
    let script = folder.join("run.sh");
    write(&script, SCRIPT)?;
    shell::run(command("chmod").arg("+x").arg(&script))?;
    match size(folder)? {
        size if size > LIMIT => {
            Err(format!("{} has {size} bytes, more than {LIMIT}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Copies what measures programs in many lanes.
fn lanes(folder: &Path) -> Outcome {
    copy_qemu(folder)?;
    tools::emulators()?;
    let benchmarks = root().join("benchmarks");
    shell::run(command("cp").arg(benchmarks.join("linux_lanes.py")).arg(folder))?;
    let mut compiler = command("aarch64-linux-gnu-gcc");
    compiler.args(["-O2", "-static", "-s", "-o"]).arg(folder.join("hash"));
    shell::run(compiler.arg(benchmarks.join("linux/hash.c")))
}

/// Packs the Debian for arm64.
fn debian(folder: &Path) -> Outcome {
    let debian = tools::debian_arm64()?;
    let parent = debian.parent().ok_or("the Debian is in no folder")?;
    let name = debian.file_name().and_then(|name| name.to_str()).ok_or("the Debian has no name")?;
    let mut tar = command("tar");
    tar.args(WITHOUT.iter().map(|path| format!("--exclude={path}")));
    tar.args(["--use-compress-program=xz -3 -T0", "-cf"]).arg(folder.join("root.tar.xz"));
    shell::run(
        tar.args(["--transform", &format!("s|^{name}|debian-arm64|S"), name]).current_dir(parent),
    )
}

/// Copies the cases, what is expected of them, and the programs in C, which a test builds.
fn tests(folder: &Path, linux: &Path) -> Outcome {
    let (cases, programs) = (folder.join("tests"), folder.join("linux-programs"));
    tools::remove(&cases)?;
    tools::remove(&programs)?;
    shell::run(command("cp").arg("-R").arg(root().join("crates/cli/tests/linux")).arg(cases))?;
    tools::emulators()?;
    let mut build = command(linux);
    build.args(["--quiet", "programs_give_what_is_expected"]);
    build.env("KVRM_LINUX_ONLY", "hello_raw").env("KVRM_DEBIAN_ARM64", tools::debian_arm64()?);
    shell::run(&mut build)?;
    let built = crate::bench::target_folder()?.join("tmp/linux-programs");
    shell::run(command("cp").arg("-R").arg(built).arg(&programs))?;
    shell::run(command("sh").args(["-c", "aarch64-linux-gnu-strip *"]).current_dir(programs))?;
    // Most are static, and have the same libraries.
    let mut tar = command("tar");
    tar.args(["--remove-files", "-cJf", "linux-programs.tar.xz", "linux-programs"]);
    shell::run(tar.current_dir(folder))
}
