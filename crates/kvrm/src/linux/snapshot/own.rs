//! Which snapshots this user has made here. Only these may show programs files of the host without being told: they name them
//! themselves, and one that somebody else has made could name any.
//!
//! The folder `snapshots` in the user's cache has an empty file for each, named by the snapshot's checksum.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kvrm_engine::cache;

/// Snapshots that are known, about; then the older half is forgotten.
const MOST: usize = 4096;

/// Notes that this user has made the snapshot with a checksum. If that fails, the user has to say what programs may see.
pub(super) fn note(checksum: &[u8]) {
    if let Some(folder) = folder() {
        let _ = note_in(&folder, checksum, MOST);
    }
}

/// True if this user has made the snapshot with a checksum, as far as is known.
pub(super) fn has_made(checksum: &[u8]) -> bool {
    folder().is_some_and(|folder| path(&folder, checksum).is_file())
}

fn folder() -> Option<PathBuf> {
    Some(cache::folder_of_user()?.join("snapshots"))
}

fn path(folder: &Path, checksum: &[u8]) -> PathBuf {
    folder.join(checksum.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn note_in(folder: &Path, checksum: &[u8], most: usize) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(path(folder, checksum), [])?;
    let entries: Vec<_> = fs::read_dir(folder)?.flatten().collect();
    if entries.len() <= most {
        return Ok(());
    }
    let age = |entry: &fs::DirEntry| entry.metadata().and_then(|data| data.modified());
    let mut by_age: Vec<(SystemTime, PathBuf)> =
        entries.iter().filter_map(|entry| Some((age(entry).ok()?, entry.path()))).collect();
    by_age.sort();
    by_age.iter().take(by_age.len() / 2).try_for_each(|(_, path)| fs::remove_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_are_known() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..20u8 {
            note_in(folder.path(), &[number, 0xff], 10).unwrap();
        }
        let known = fs::read_dir(folder.path()).unwrap().count();
        assert!((5..=10).contains(&known), "{known}");
        assert!(path(folder.path(), &[19, 0xff]).ends_with("13ff"));
        assert!(path(folder.path(), &[19, 0xff]).is_file());
    }
}
