//! Gives the sources that host code depends on a number, so that code which was made from other sources is not used.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::{fs, io};

/// Where they are. Outside of the workspace only the first is there, and crates have versions.
const SOURCES: [&str; 7] = [
    "src",
    "../a64/src",
    "../engine/src",
    "../ir/src",
    "../mem/src",
    "../translate/src",
    "../../Cargo.lock",
];

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    for path in SOURCES.map(Path::new).into_iter().filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
        hash(path, &mut hasher)?;
    }
    println!("cargo::rustc-env=KVRM_CPU_SOURCES={:016x}", hasher.finish());
    Ok(())
}

/// A file, or everything in a folder.
fn hash(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    if path.is_file() {
        fs::read(path)?.hash(hasher);
        return Ok(());
    }
    let mut inside =
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    inside.sort();
    inside.iter().try_for_each(|path| hash(path, hasher))
}
