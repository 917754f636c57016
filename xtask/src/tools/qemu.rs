//! A newer QEMU than the distribution's, beside it. It is unpacked into `.cache/`, not installed, so that tests
//! go on with the other.

use std::path::{Path, PathBuf};

use super::apt::{Apt, codename, create};
use super::{cannot, remove};
use crate::shell::{Outcome, root, works};

/// Distributions with a newer QEMU, the suites that have it, and the package: its programs are static.
const BACKPORTS: &[(&str, &str, &str)] = &[("bookworm", "bookworm-backports", "qemu-user")];

const PROGRAM: &str = "qemu-aarch64";

/// Returns the newer QEMU's user mode: the one that the environment names, or one in `.cache/`. There may be
/// none for this distribution.
pub(crate) fn newer_qemu() -> Outcome<Option<PathBuf>> {
    if let Some(qemu) = std::env::var_os("KVRM_NEWER_QEMU").map(PathBuf::from) {
        return match works(&qemu, &["--version"]) {
            true => Ok(Some(qemu)),
            false => Err(format!("KVRM_NEWER_QEMU is {}, which does not run", qemu.display())),
        };
    }
    let codename = codename();
    let Some((_, suite, package)) = BACKPORTS.iter().find(|(of, ..)| *of == codename) else {
        return Ok(None);
    };
    let folder = root().join(".cache/newer-qemu");
    let program = folder.join(PROGRAM);
    if !works(&program, &["--version"]) {
        println!("unpacking {package} of {suite} into .cache/newer-qemu");
        bring(&folder, suite, package).map_err(|error| {
            format!("no newer QEMU: {error}. Or set KVRM_NEWER_QEMU to any qemu-aarch64")
        })?;
    }
    Ok(Some(program))
}

/// Downloads and unpacks it, and keeps one of its many programs.
fn bring(folder: &Path, suite: &str, package: &str) -> Outcome {
    remove(folder)?;
    create(folder)?;
    let unpacked = folder.join("root");
    Apt::new(folder.join("apt"))?.unpack(&[package], Some(suite), &unpacked, |_| Ok(()))?;
    let (from, to) = (unpacked.join("usr/bin").join(PROGRAM), folder.join(PROGRAM));
    std::fs::rename(&from, &to).map_err(|error| cannot("keep", &from, &error))?;
    remove(&unpacked)
}
