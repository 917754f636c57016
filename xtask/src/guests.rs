//! Checks that the guest programs kept in the repository are what their sources give.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{self, Outcome, command, root};
use crate::test;
use crate::tools::{self, cannot};

/// The compiler that built the stored programs; others give other bytes.
const COMPILER: &str = "12.2";

/// The folders of what is built from sources.
const BUILT: [&str; 4] = ["bin", "linux", "bench/bin", "bench/linux"];

/// Builds everything in a copy, compares, and runs what was built.
pub(crate) fn check() -> Outcome {
    tools::emulators()?;
    let kept = root().join("guests");
    let copy = root().join(".cache/guests-check");
    tools::remove(&copy)?;
    fs::create_dir_all(root().join(".cache")).map_err(|e| cannot("create", &copy, &e))?;
    shell::run(command("cp").arg("-R").arg(&kept).arg(&copy))?;
    BUILT.iter().try_for_each(|built| tools::remove(&copy.join(built)))?;
    shell::output(&mut command(copy.join("build.sh")))?;

    let version = shell::output(command("aarch64-linux-gnu-gcc").arg("-dumpfullversion"))?;
    let version = version.trim();
    let same = version.starts_with(COMPILER);
    if same {
        compare(&kept, &copy)?;
    } else {
        println!("not compared byte by byte: this is GCC {version}, guests/ is from {COMPILER}");
    }
    let folders = [&kept, &copy];
    for guests in folders {
        shell::run(command("python3").arg(guests.join("check.py")).args(["--linux", "--bare"]))?;
    }
    let kvrm = test::build_kvrm()?;
    // The larger set takes longer: no need to run the same programs twice.
    for guests in &folders[..if same { 1 } else { 2 }] {
        let check = guests.join("bench/check.py");
        shell::run(command("python3").arg(check).arg("--kvrm").arg(&kvrm))?;
    }
    tools::remove(&copy)
}

/// Checks that both folders have the same programs.
fn compare(kept: &Path, built: &Path) -> Outcome {
    for folder in BUILT {
        let (kept, built) = (files(&kept.join(folder))?, files(&built.join(folder))?);
        let names = |files: &[(String, Vec<u8>)]| {
            files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(" ")
        };
        if names(&kept) != names(&built) {
            let (kept, built) = (names(&kept), names(&built));
            return Err(format!("guests/{folder} has {kept}; the sources give {built}"));
        }
        for ((name, kept), (_, built)) in kept.iter().zip(&built) {
            if kept != built {
                return Err(format!(
                    "guests/{folder}/{name} is not what its source gives: run guests/build.sh"
                ));
            }
        }
    }
    Ok(())
}

/// Returns names and contents of a folder's files, in order.
fn files(folder: &Path) -> Outcome<Vec<(String, Vec<u8>)>> {
    let entries = fs::read_dir(folder).map_err(|e| cannot("read", folder, &e))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, fs::read(&path).map_err(|e| cannot("read", &path, &e))?))
    };
    paths.into_iter().map(read).collect()
}
