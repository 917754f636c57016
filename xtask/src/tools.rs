//! Installs what tests and measurements need besides Rust and Python 3.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, Outcome, cargo, command, root, works};

mod apt;
mod arm64_programs;
mod debian_arm64;
mod lavapipe;
mod python;
mod qemu;
mod vulkan;

pub(crate) use debian_arm64::debian_arm64;
pub(crate) use lavapipe::lavapipe;
pub(crate) use python::{python_with_kvrm, wheels_to_take_along};
pub(crate) use qemu::newer_qemu;
pub(crate) use vulkan::vulkan_loader;

const UNICORN: &str = "unicorn==2.1.4";
/// Fails unless exactly this version can be imported.
const IMPORT_UNICORN: &str = "import unicorn; assert unicorn.__version__ == '2.1.4'";

/// NVIDIA's PTX assembler, which needs no GPU.
const PTXAS: &str = "nvidia-cuda-nvcc-cu12==12.9.86";

/// A Debian package, and how to check that its contents are installed.
struct Package {
    name: &'static str,
    present: fn() -> bool,
}

const QEMU: Package =
    Package { name: "qemu-user-static", present: || works("qemu-aarch64-static", &["--version"]) };
const CROSS_COMPILER: Package = Package {
    name: "gcc-aarch64-linux-gnu",
    present: || works("aarch64-linux-gnu-gcc", &["--version"]),
};
const CROSS_CPP: Package = Package {
    name: "g++-aarch64-linux-gnu",
    present: || works("aarch64-linux-gnu-g++", &["--version"]),
};
const CROSS_LIBC: Package = Package {
    name: "libc6-dev-arm64-cross",
    present: || Path::new("/usr/aarch64-linux-gnu/lib/libc.a").exists(),
};
const SPIRV_TOOLS: Package =
    Package { name: "spirv-tools", present: || works("spirv-val", &["--version"]) };
const VENV: Package =
    Package { name: "python3-venv", present: || works("python3", &["-c", "import ensurepip"]) };

/// Installs QEMU.
pub(crate) fn qemu() -> Outcome {
    install(&[QEMU])
}

/// Installs QEMU, and what builds programs for it.
pub(crate) fn emulators() -> Outcome {
    install(&[QEMU, CROSS_COMPILER, CROSS_CPP, CROSS_LIBC])
}

/// Installs Khronos's validator of SPIR-V.
pub(crate) fn spirv_val() -> Outcome {
    install(&[SPIRV_TOOLS])
}

/// Installs `cargo fmt` and `cargo clippy`.
pub(crate) fn rust_components() -> Outcome {
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if cargo_has(subcommand) {
            continue;
        }
        println!("installing the Rust component {component}");
        let installed = shell::run(command("rustup").args(["component", "add", component]));
        if installed.is_err() || !cargo_has(subcommand) {
            return Err(format!(
                "`cargo {subcommand}` is missing and rustup could not add it: install the \
                 component {component} of this Rust toolchain"
            ));
        }
    }
    Ok(())
}

fn cargo_has(subcommand: &str) -> bool {
    shell::output(cargo().args([subcommand, "--version"])).is_ok()
}

/// Returns a Python that has Unicorn: the one that the environment names, or one in `.cache/`.
pub(crate) fn oracle_python() -> Outcome<PathBuf> {
    if let Some(python) = std::env::var_os("KVRM_ORACLE_PYTHON").map(PathBuf::from) {
        return match works(&python, &["-c", IMPORT_UNICORN]) {
            true => Ok(python),
            false => Err(format!(
                "KVRM_ORACLE_PYTHON is {}, which cannot import {UNICORN}: install it there \
                 (`pip install {UNICORN}`), or unset the variable to have it done",
                python.display()
            )),
        };
    }
    let folder = root().join(".cache/oracle-python");
    let python = folder.join("bin/python3");
    if works(&python, &["-c", IMPORT_UNICORN]) {
        return Ok(python);
    }
    if !works("python3", &["-c", "import sys; assert sys.version_info >= (3, 8)"]) {
        return Err(
            "python3 (3.8 or later) is missing: install it (`apt-get install python3`)".to_string()
        );
    }
    println!("installing {UNICORN} into .cache/oracle-python");
    let attempts = [environment, packages];
    let mut reasons = Vec::new();
    for attempt in attempts {
        remove(&folder)?;
        let tried = attempt(&folder);
        if tried.is_ok() && works(&python, &["-c", IMPORT_UNICORN]) {
            return Ok(python);
        }
        reasons.extend(tried.err());
    }
    remove(&folder)?;
    Err(format!(
        "cannot install the Python package {UNICORN}: {}. Install it into any Python \
         (`pip install {UNICORN}`) and set KVRM_ORACLE_PYTHON to that Python",
        reasons.join("; ")
    ))
}

/// Returns NVIDIA's PTX assembler: the one that the environment names, or one in `.cache/`.
pub(crate) fn ptxas(python: &Path) -> Outcome<PathBuf> {
    if let Some(ptxas) = std::env::var_os("KVRM_PTXAS").map(PathBuf::from) {
        return match works(&ptxas, &["--version"]) {
            true => Ok(ptxas),
            false => Err(format!("KVRM_PTXAS is {}, which does not run", ptxas.display())),
        };
    }
    let folder = root().join(".cache/ptxas");
    let ptxas = folder.join("nvidia/cuda_nvcc/bin/ptxas");
    if works(&ptxas, &["--version"]) {
        return Ok(ptxas);
    }
    println!("installing {PTXAS} into .cache/ptxas");
    remove(&folder)?;
    let mut pip = command(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(&folder).arg(PTXAS);
    match shell::output(&mut pip) {
        Ok(_) if works(&ptxas, &["--version"]) => Ok(ptxas),
        Ok(_) => {
            Err(format!("the ptxas of {PTXAS} does not run here; set KVRM_PTXAS to one that does"))
        }
        Err(reason) => Err(format!(
            "cannot install the Python package {PTXAS}: {reason}. Set KVRM_PTXAS to any ptxas"
        )),
    }
}

/// Creates a Python environment with Unicorn.
fn environment(folder: &Path) -> Outcome {
    if !(VENV.present)() {
        install(&[VENV])?;
    }
    shell::output(command("python3").args(["-m", "venv"]).arg(folder))?;
    let python = folder.join("bin/python3");
    shell::output(command(python).args(["-m", "pip", "install", "--quiet", UNICORN])).map(drop)
}

/// Creates a folder of packages and a command that uses it, if environments cannot be created.
fn packages(folder: &Path) -> Outcome {
    let (packages, bin) = (folder.join("packages"), folder.join("bin"));
    let mut pip = command("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(&packages).arg(UNICORN);
    shell::output(&mut pip)?;
    std::fs::create_dir_all(&bin).map_err(|e| cannot("create", &bin, &e))?;
    let script =
        format!("#!/bin/sh\nPYTHONPATH='{}' exec python3 \"$@\"\n", packages.to_string_lossy());
    let python = bin.join("python3");
    std::fs::write(&python, script).map_err(|e| cannot("write", &python, &e))?;
    shell::run(command("chmod").arg("+x").arg(&python))
}

/// Removes a folder if there is one.
pub(crate) fn remove(folder: &Path) -> Outcome {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(cannot("remove", folder, &error))
        }
        _ => Ok(()),
    }
}

/// Installs the missing Debian packages.
fn install(packages: &[Package]) -> Outcome {
    let missing: Vec<_> = packages.iter().filter(|package| !(package.present)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|package| package.name).collect();
    let by_hand = format!("install by hand what these Debian packages bring: {}", names.join(" "));
    if !works("apt-get", &["--version"]) {
        return Err(format!("programs are missing and there is no apt-get: {by_hand}"));
    }
    println!("installing the Debian packages {}", names.join(" "));
    apt_get(&["update", "-qq"])
        .and_then(|()| {
            let options = ["install", "-y", "-qq", "--no-install-recommends"];
            apt_get(&[&options[..], &names[..]].concat())
        })
        .map_err(|error| format!("{error}: {by_hand}"))?;
    match missing.iter().find(|package| !(package.present)()) {
        Some(package) => {
            Err(format!("{} is installed, but not what it should bring: {by_hand}", package.name))
        }
        None => Ok(()),
    }
}

fn apt_get(arguments: &[&str]) -> Outcome {
    let root = shell::output(command("id").arg("-u"))?.trim() == "0";
    let mut apt_get: Command = command(if root { "env" } else { "sudo" });
    apt_get.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(arguments);
    shell::run(&mut apt_get)
}

/// Returns a message about a file.
pub(crate) fn cannot(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}
