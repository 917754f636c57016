//! Caches of kvrm, as they are before the first run of a program and after it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::shell::Outcome;
use crate::tools::cannot;

/// Two caches: in both, kvrm finds what it interprets with.
pub(crate) struct Cache(tempfile::TempDir);

impl Cache {
    pub(crate) fn new() -> Outcome<Cache> {
        let folder =
            tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        Ok(Cache(folder))
    }

    /// Where no translations of the program are that count.
    pub(crate) fn unknown(&self) -> PathBuf {
        self.0.path().join("unknown")
    }

    /// Where the program may have been run.
    pub(crate) fn known(&self) -> PathBuf {
        self.0.path().join("known")
    }

    /// Empties the cache where the program may have been run, and copies those entries of the other that `counts`
    /// chooses by their names.
    pub(crate) fn forget(&self, counts: impl Fn(&OsString) -> bool) -> Outcome {
        let (from, to) = (self.unknown().join("kernels"), self.known().join("kernels"));
        let copy = || {
            if to.exists() {
                std::fs::remove_dir_all(&to)?;
            }
            std::fs::create_dir_all(&to)?;
            for name in entries(&from)?.iter().filter(|name| counts(name)) {
                std::fs::copy(from.join(name), to.join(name))?;
            }
            Ok(())
        };
        copy().map_err(|error: std::io::Error| cannot("copy", &from, &error))
    }

    /// The names of all entries of the first one.
    pub(crate) fn names(&self) -> Outcome<Vec<OsString>> {
        let folder = self.unknown().join("kernels");
        entries(&folder).map_err(|error| cannot("read", &folder, &error))
    }
}

fn entries(folder: &Path) -> std::io::Result<Vec<OsString>> {
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}
