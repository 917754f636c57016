//! `cargo xtask gpu-check`: tests and measurements that need an NVIDIA GPU.
//!
//! Everything goes into one folder that can be copied to a computer with a GPU and only its driver: programs,
//! guests, QEMU for comparison, a Vulkan loader, the Python package, and a script that runs them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::bench::{GUESTS, Kvrm};
use crate::gpu_linux;
use crate::shell::{self, Outcome, cargo, command, root, works};
use crate::tools::{self, cannot};

/// The script for the computer with the GPU.
const SCRIPT: &str = include_str!("gpu-check.sh");
/// Limit of the folder's size in bytes, so that it is quick to copy.
pub(crate) const LIMIT: u64 = 64 << 20;
/// Compressed, they take a third of the space.
const PROGRAMS: [&str; 8] =
    ["kvrm", "driver", "wgpu_devices", "engines", "kvrm-conformance", "gpu_figures", "xtask", QEMU];
pub(crate) const QEMU: &str = "qemu-aarch64-static";

/// Builds everything, and runs it if there is a GPU.
pub(crate) fn check() -> Outcome {
    let folder = root().join("target/gpu-check");
    fs::create_dir_all(&folder).map_err(|error| cannot("create", &folder, &error))?;
    let (kvrm, engines) = programs(&folder)?;
    peers(&folder)?;
    pack(&folder, &PROGRAMS)?;
    vulkan(&folder)?;
    python(&folder)?;
    let script = folder.join("run.sh");
    write(&script, SCRIPT)?;
    shell::run(command("chmod").arg("+x").arg(&script))?;
    let size = size(&folder)?;
    if size > LIMIT {
        return Err(format!("target/gpu-check has {size} bytes, more than {LIMIT}"));
    }
    let linux = root().join("target/gpu-check-linux");
    gpu_linux::make(&linux, &kvrm, &engines)?;
    if !works("nvidia-smi", &["-L"]) {
        println!(
            "no NVIDIA GPU here: copy target/gpu-check and target/gpu-check-linux to a computer that has one, and run \
             run.sh in each"
        );
        return Ok(());
    }
    shell::run(command(script).env("OUT", folder.join("results")))?;
    shell::run(&mut command(linux.join("run.sh")))
}

/// Builds the programs. Where the command is, and the tests of engines.
fn programs(folder: &Path) -> Outcome<(PathBuf, PathBuf)> {
    let kvrm = Kvrm::build()?;
    copy_program(kvrm.path(), &folder.join("kvrm"))?;
    write(&folder.join("version.txt"), &kvrm.version()?)?;
    let driver = test_binary("kvrm-cuda", "kvrm_cuda", &["--lib"])?;
    copy_program(&driver, &folder.join("driver"))?;
    let wgpu_devices = test_binary("kvrm-wgpu", "kvrm_wgpu", &["--lib"])?;
    copy_program(&wgpu_devices, &folder.join("wgpu_devices"))?;
    let engines = test_binary("kvrm", "engines", &["--test", "engines"])?;
    copy_program(&engines, &folder.join("engines"))?;
    shell::run(cargo().args(["build", "--release", "--package", "kvrm-conformance"]))?;
    let conformance = kvrm.path().with_file_name("conformance");
    copy_program(&conformance, &folder.join("kvrm-conformance"))?;
    let example = ["--package", "kvrm-cli", "--example", "gpu_figures"];
    shell::run(cargo().args(["build", "--release"]).args(example))?;
    let figures = kvrm.path().with_file_name("examples").join("gpu_figures");
    copy_program(&figures, &folder.join("gpu_figures"))?;
    // This program itself compares the results with the expected ones.
    let this =
        std::env::current_exe().map_err(|error| format!("which program is this? {error}"))?;
    copy_program(&this, &folder.join("xtask"))?;
    Ok((kvrm.path().to_path_buf(), engines))
}

/// Copies QEMU and the guests in both forms, and writes their numbers of iterations.
fn peers(folder: &Path) -> Outcome {
    copy_qemu(folder)?;
    for guests in ["bin", "linux"] {
        shell::run(command("cp").arg("-R").arg(root().join("guests").join(guests)).arg(folder))?;
    }
    let lines: Vec<_> = GUESTS.iter().map(|(guest, n)| format!("{guest} {n}\n")).collect();
    write(&folder.join("peers.txt"), &lines.concat())
}

/// Packs programs into an archive, which the script unpacks.
pub(crate) fn pack(folder: &Path, programs: &[&str]) -> Outcome {
    let mut tar = command("tar");
    tar.args(["--use-compress-program=gzip -9", "--remove-files", "-cf", "programs.tar.gz"]);
    shell::run(tar.args(programs).current_dir(folder))
}

/// Copies the Vulkan loader, for computers that have a driver but no loader. Without it, the script uses the
/// system's.
fn vulkan(folder: &Path) -> Outcome {
    match tools::vulkan_loader() {
        Ok(libraries) => {
            let to = folder.join("vulkan");
            tools::remove(&to)?;
            shell::run(command("cp").arg("-RL").arg(libraries).arg(to))
        }
        Err(error) => {
            println!("no Vulkan loader goes along: {error}. The engine `wgpu` needs one there");
            Ok(())
        }
    }
}

/// Copies the Python package with its tests and benchmarks.
fn python(folder: &Path) -> Outcome {
    tools::wheels_to_take_along(&folder.join("wheels"))?;
    for part in ["python/tests", "benchmarks"] {
        let to = folder.join(part);
        tools::remove(&to)?;
        fs::create_dir_all(&to).map_err(|error| cannot("create", &to, &error))?;
        let files = format!("cp {part}/*.* {}", to.display());
        shell::run(command("sh").args(["-c", &files]).current_dir(root()))?;
    }
    Ok(())
}

/// Builds tests of a package, those of the target that `choice` chooses; the path of the program.
pub(crate) fn test_binary(package: &str, target: &str, choice: &[&str]) -> Outcome<PathBuf> {
    let mut build = cargo();
    build.args(["test", "--no-run", "--release", "--package", package]).args(choice);
    let output = shell::output(build.arg("--message-format=json"))?;
    let name = format!("\"name\":\"{target}\"");
    let path = output.lines().filter(|line| line.contains(&name)).find_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        Some(PathBuf::from(rest.split_once('"')?.0))
    });
    path.ok_or_else(|| "cargo did not say where the tests are".to_string())
}

/// Copies a program without what only debuggers need.
pub(crate) fn copy_program(from: &Path, to: &Path) -> Outcome {
    shell::run(command("strip").arg("-o").arg(to).arg(from))
}

pub(crate) fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| cannot("write", path, &error))
}

/// Copies QEMU's user mode, which is installed if it is missing.
pub(crate) fn copy_qemu(folder: &Path) -> Outcome {
    tools::qemu()?;
    let qemu = shell::output(command("sh").args(["-c", &format!("command -v {QEMU}")]))?;
    shell::run(command("cp").arg(qemu.trim()).arg(folder))
}

/// Returns the size of all files in a folder, in bytes.
pub(crate) fn size(folder: &Path) -> Outcome<u64> {
    let entries = fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    let mut sum = 0;
    for entry in entries.flatten() {
        let path = entry.path();
        let metadata = entry.metadata().map_err(|error| cannot("read", &path, &error))?;
        sum += if metadata.is_dir() { size(&path)? } else { metadata.len() };
    }
    Ok(sum)
}
