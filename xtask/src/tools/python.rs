//! A Python with kvrm, installed from a wheel as users do.

use std::path::{Path, PathBuf};

use super::{VENV, install, remove};
use crate::shell::{self, Outcome, command, root, works};

/// The packages that build the wheel, and that tests import.
const PACKAGES: &[&str] = &[
    "maturin>=1.9,<2",
    "mypy",
    "numpy",
    "pytest",
    "tqdm",
    // For tables.
    "pandas",
    "pyarrow",
    // For the notebooks.
    "ipykernel",
    "matplotlib",
    "nbclient",
];
/// Fails unless they can be imported.
const IMPORTS: &str =
    "import ipykernel, matplotlib, maturin, mypy, nbclient, numpy, pandas, pyarrow, pytest, tqdm";

/// Returns the Python of an environment in `.cache/`, with the current kvrm.
///
/// The wheel is built with the profile and in the folder of the other tests, so that most of its dependencies
/// are already compiled.
pub(crate) fn python_with_kvrm() -> Outcome<PathBuf> {
    let python = environment()?;
    let wheels = root().join(".cache/wheels");
    remove(&wheels)?;
    build_wheel(&python, &wheels, &[])?;
    let mut pip = command(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall"]);
    shell::run(pip.arg("--find-links").arg(&wheels).arg("kvrm"))?;
    Ok(python)
}

/// Builds a release wheel into a folder, and adds the wheels that its tests need, except NumPy.
pub(crate) fn wheels_to_take_along(folder: &Path) -> Outcome {
    let python = environment()?;
    remove(folder)?;
    build_wheel(&python, folder, &["--release"])?;
    let mut pip = command(&python);
    pip.args(["-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest"]).arg(folder);
    shell::run(pip.args(["pytest", "tqdm"]))
}

fn build_wheel(python: &Path, folder: &Path, options: &[&str]) -> Outcome {
    println!("building the wheel");
    let mut maturin = command(python);
    maturin.args(["-m", "maturin", "build", "--quiet", "--out"]).arg(folder).args(options);
    shell::run(maturin.current_dir(root()))
}

fn environment() -> Outcome<PathBuf> {
    let folder = root().join(".cache/python");
    let python = folder.join("bin/python3");
    if works(&python, &["-c", IMPORTS]) {
        return Ok(python);
    }
    if !works("python3", &["-c", "import sys; assert sys.version_info >= (3, 9)"]) {
        return Err(
            "python3 (3.9 or later) is missing: install it (`apt-get install python3`)".to_string()
        );
    }
    if !(VENV.present)() {
        install(&[VENV])?;
    }
    println!("installing {} into .cache/python", PACKAGES.join(" "));
    remove(&folder)?;
    shell::output(command("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut pip = command(&python);
    pip.args(["-m", "pip", "install", "--quiet"]).args(PACKAGES);
    shell::output(&mut pip)
        .map_err(|reason| format!("cannot install {}: {reason}", PACKAGES.join(" ")))?;
    Ok(python)
}
