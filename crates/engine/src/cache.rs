//! Keeps compiled kernels on disk between runs.
//!
//! An entry is a file whose name is the hash of everything its contents depend on ([`KernelKey`]), so no entry
//! is ever out of date. A file contains a checksum and the compiled kernel. It is written under another name
//! and then renamed, so that readers find all of it or nothing, however many processes write it at a time. The
//! checksum detects damage, not forgery: whoever may write to the folder is trusted (SECURITY.md).
//!
//! A cache only saves time. If anything goes wrong with it (no folder, no right to write, a damaged file), the
//! kernel is compiled.
//!
//! `KVRM_CACHE_DIR` names the folder; if it is empty or `off`, there is no cache. Without it, the folder is
//! `kvrm` in the user's cache folder: `$XDG_CACHE_HOME` or `~/.cache`, on macOS `~/Library/Caches`, on Windows
//! `%LOCALAPPDATA%`. Entries are in its subfolder `kernels`. When they exceed 256 MiB, the least recently used
//! are removed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// Limit of all entries together, in bytes.
const LIMIT: u64 = 256 << 20;
/// How the names of entries end, also of unfinished ones. Other files in the folder are not touched.
const ENDING: &str = ".kernel";

type Hash = [u8; 32];

/// Everything that a compiled kernel depends on, except the version of kvrm, which is always included.
#[derive(Clone, Copy, Debug)]
pub struct KernelKey<'a> {
    /// Name of the engine.
    pub engine: &'a str,
    /// The kernel's source.
    pub text: &'a str,
    /// The device it is compiled for.
    pub device: &'a str,
    /// The driver that compiles it.
    pub driver: &'a str,
}

impl KernelKey<'_> {
    fn hash(&self) -> Hash {
        let KernelKey { engine, text, device, driver } = *self;
        let mut hash = Sha256::new();
        for part in [env!("CARGO_PKG_VERSION"), engine, text, device, driver] {
            // With its length, so that no two keys give the same bytes.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// What this process is making, for which others of it wait that want the same.
static BEING_MADE: Mutex<BTreeSet<Hash>> = Mutex::new(BTreeSet::new());
static WAS_MADE: Condvar = Condvar::new();

/// The turn to make an entry. While somebody has it, others of the process wait for theirs, and then find the entry.
pub struct Turn(Hash);

impl Turn {
    /// Waits for it.
    pub fn of(key: &KernelKey<'_>) -> Turn {
        let hash = key.hash();
        let mut being_made = BEING_MADE.lock().unwrap_or_else(PoisonError::into_inner);
        while !being_made.insert(hash) {
            being_made = WAS_MADE.wait(being_made).unwrap_or_else(PoisonError::into_inner);
        }
        Turn(hash)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        BEING_MADE.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        WAS_MADE.notify_all();
    }
}

/// The cache of compiled kernels.
#[derive(Clone, Debug)]
pub struct KernelCache {
    /// Folder of the entries; `None` keeps nothing.
    folder: Option<PathBuf>,
    limit: u64,
}

impl KernelCache {
    /// Opens the user's cache. Never fails: at worst it keeps nothing.
    pub fn open() -> KernelCache {
        let folder = folder_of_user().map(|folder| folder.join("kernels"));
        KernelCache { folder, limit: LIMIT }
    }

    /// A cache that keeps nothing.
    pub fn nowhere() -> KernelCache {
        KernelCache { folder: None, limit: 0 }
    }

    /// Opens a cache in this folder, for tests.
    pub fn at(folder: &Path) -> KernelCache {
        KernelCache { folder: Some(folder.to_path_buf()), limit: LIMIT }
    }

    /// Returns the kernel, if it has been compiled before.
    pub fn get(&self, key: &KernelKey<'_>) -> Option<Vec<u8>> {
        let hash = key.hash();
        let path = path(self.folder.as_deref()?, &hash);
        let entry = fs::read(&path).ok()?;
        let kernel = checked(&hash, &entry)?.to_vec();
        mark_used(&path);
        Some(kernel)
    }

    /// Keeps a compiled kernel, if that is possible.
    pub fn put(&self, key: &KernelKey<'_>, kernel: &[u8]) {
        self.put_all([(*key, kernel)]);
    }

    /// Keeps several, if that is possible.
    pub fn put_all<'a>(&self, kernels: impl IntoIterator<Item = (KernelKey<'a>, &'a [u8])>) {
        let Some(folder) = self.folder.as_deref() else { return };
        // A kernel that does not fit would push out everything else.
        let fits = |kernel: &[u8]| (size_of::<Hash>() + kernel.len()) as u64 <= self.limit;
        let mut has_grown = false;
        for (key, kernel) in kernels.into_iter().filter(|(_, kernel)| fits(kernel)) {
            // If it fails, the next run compiles again.
            has_grown |= write(folder, &key.hash(), kernel).is_ok();
        }
        if has_grown {
            let _ = shrink(folder, self.limit);
        }
    }
}

/// Returns the folder of the user's caches, unless it is turned off.
pub fn folder_of_user() -> Option<PathBuf> {
    folder(|name| std::env::var_os(name), std::env::home_dir())
}

/// Returns the folder of kvrm's caches, unless it is turned off.
fn folder(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    if let Some(chosen) = variable("KVRM_CACHE_DIR") {
        return (!chosen.is_empty() && chosen != "off").then(|| chosen.into());
    }
    // A relative path would depend on the current folder.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = if cfg!(windows) {
        absolute("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home.map(|home| home.join("Library/Caches"))
    } else {
        absolute("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")))
    };
    Some(caches?.join("kvrm"))
}

fn path(folder: &Path, hash: &Hash) -> PathBuf {
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    folder.join(digits + ENDING)
}

/// Returns the checksum at the start of a file. It includes the key, so that a renamed file is detected, too.
fn checksum(key: &Hash, kernel: &[u8]) -> Hash {
    Sha256::new().chain_update(key).chain_update(kernel).finalize().into()
}

/// Returns the kernel in an entry, unless the entry is damaged.
fn checked<'a>(key: &Hash, entry: &'a [u8]) -> Option<&'a [u8]> {
    let (sum, kernel) = entry.split_first_chunk()?;
    (*sum == checksum(key, kernel)).then_some(kernel)
}

/// Marks the entry as most recently used.
fn mark_used(path: &Path) {
    // A failure does no harm: a cache that is only read never shrinks.
    let _ = File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()));
}

fn write(folder: &Path, key: &Hash, kernel: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix("new-").suffix(ENDING).tempfile_in(folder)?;
    file.write_all(&checksum(key, kernel))?;
    file.write_all(kernel)?;
    file.persist(path(folder, key))?;
    Ok(())
}

/// Removes the least recently used entries until the rest is within the limit.
fn shrink(folder: &Path, limit: u64) -> io::Result<()> {
    let mut entries = entries(folder)?;
    let mut total: u64 = entries.iter().map(|(_, len, _)| len).sum();
    entries.sort();
    for (_, len, path) in entries {
        if total <= limit {
            break;
        }
        // Another process may have removed it already.
        let _ = fs::remove_file(path);
        total -= len;
    }
    Ok(())
}

/// Returns when each entry was last used, its length and its path.
fn entries(folder: &Path) -> io::Result<Vec<(SystemTime, u64, PathBuf)>> {
    let ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().ends_with(ENDING);
    let describe = |entry: fs::DirEntry| {
        let data = entry.metadata().ok().filter(|data| data.is_file())?;
        Some((data.modified().ok()?, data.len(), entry.path()))
    };
    Ok(fs::read_dir(folder)?.flatten().filter(ours).filter_map(describe).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;

    const KEY: KernelKey<'_> =
        KernelKey { engine: "test", text: "add", device: "sm_90", driver: "13.0" };

    fn cache(folder: &Path, limit: u64) -> KernelCache {
        KernelCache { limit, ..KernelCache::at(folder) }
    }

    fn files(folder: &TempDir) -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn what_was_put_is_got() {
        let folder = TempDir::new().unwrap();
        let cache = cache(&folder.path().join("not/there/yet"), LIMIT);
        assert_eq!(cache.get(&KEY), None);
        cache.put(&KEY, b"kernel");
        assert_eq!(cache.get(&KEY).unwrap(), b"kernel");
        cache.put(&KEY, b"");
        assert_eq!(cache.get(&KEY).unwrap(), b"");
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let others = [
            KernelKey { engine: "other", ..KEY },
            KernelKey { text: "sub", ..KEY },
            KernelKey { device: "sm_70", ..KEY },
            KernelKey { driver: "12.0", ..KEY },
            // The same letters in a row.
            KernelKey { engine: "testa", text: "dd", ..KEY },
        ];
        for other in others {
            assert_ne!(other.hash(), KEY.hash(), "{other:?}");
        }
    }

    #[test]
    fn damaged_entries_are_absent_and_replaced() {
        let folder = TempDir::new().unwrap();
        let cache = cache(folder.path(), LIMIT);
        cache.put(&KEY, b"kernel");
        let path = path(folder.path(), &KEY.hash());
        let whole = fs::read(&path).unwrap();
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let longer = [&whole[..], b"."].concat();
        let truncated = [0, 31, 32, whole.len() - 1].map(|len| whole[..len].to_vec());
        for damaged in truncated.into_iter().chain([flipped(0), flipped(35), longer]) {
            fs::write(&path, &damaged).unwrap();
            assert_eq!(cache.get(&KEY), None, "{damaged:?}");
        }
        cache.put(&KEY, b"kernel");
        assert_eq!(cache.get(&KEY).unwrap(), b"kernel");
    }

    #[test]
    fn an_entry_under_another_name_is_absent() {
        let folder = TempDir::new().unwrap();
        let cache = cache(folder.path(), LIMIT);
        cache.put(&KEY, b"kernel");
        let other = KernelKey { text: "sub", ..KEY };
        let [from, to] = [KEY, other].map(|key| path(folder.path(), &key.hash()));
        fs::rename(from, to).unwrap();
        assert_eq!(cache.get(&other), None);
    }

    #[test]
    fn writers_of_one_key_do_not_disturb_each_other_or_readers() {
        let folder = TempDir::new().unwrap();
        let kernel = vec![7; 100_000];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // As another process would, each opens the cache for itself.
                let (cache, kernel) = (cache(folder.path(), LIMIT), &kernel);
                scope.spawn(move || {
                    for _ in 0..20 {
                        cache.put(&KEY, kernel);
                        assert!(cache.get(&KEY).as_ref() == Some(kernel));
                    }
                });
            }
        });
        assert_eq!(files(&folder).len(), 1);
    }

    #[test]
    fn who_wants_the_same_waits_until_it_is_there() {
        let folder = TempDir::new().unwrap();
        let (cache, made) = (cache(folder.path(), LIMIT), Mutex::new(0));
        let make = || {
            let _turn = Turn::of(&KEY);
            if cache.get(&KEY).is_none() {
                *made.lock().unwrap() += 1;
                cache.put(&KEY, b"kernel");
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(make))));
        assert_eq!(*made.lock().unwrap(), 1);
    }

    #[test]
    fn what_was_not_used_for_longest_is_removed() {
        let folder = TempDir::new().unwrap();
        let texts = ["a", "b", "c"];
        let [a, b, c] = texts.map(|text| KernelKey { text, ..KEY });
        // Room for two, with their checksums.
        let cache = cache(folder.path(), 2 * (32 + 100));
        fs::write(folder.path().join("notes.txt"), [0; 1000]).unwrap();
        for (key, age) in [(a, 200), (b, 100)] {
            cache.put(&key, &[0; 100]);
            let file = File::options().append(true).open(path(folder.path(), &key.hash()));
            let used = SystemTime::now() - Duration::from_secs(age);
            file.unwrap().set_modified(used).unwrap();
        }
        assert!(cache.get(&a).is_some(), "now b is older");
        cache.put(&c, &[0; 100]);
        assert_eq!([a, b, c].map(|key| cache.get(&key).is_some()), [true, false, true]);
        assert!(folder.path().join("notes.txt").exists(), "not ours");
    }

    #[test]
    fn what_is_larger_than_the_limit_is_not_kept() {
        let folder = TempDir::new().unwrap();
        let cache = cache(folder.path(), 100);
        cache.put(&KEY, &[0; 10]);
        cache.put(&KernelKey { text: "large", ..KEY }, &[0; 100]);
        assert_eq!(files(&folder), [path(folder.path(), &KEY.hash())]);
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_no_error() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "in the way").unwrap();
        let nowhere = KernelCache { folder: None, limit: LIMIT };
        for cache in [cache(&file, LIMIT), nowhere] {
            cache.put(&KEY, b"kernel");
            assert_eq!(cache.get(&KEY), None);
        }
    }

    /// The folder with these variables set.
    fn with(variables: &[(&str, &str)]) -> Option<PathBuf> {
        let value = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
        folder(value, Some("/home/user".into()))
    }

    #[test]
    fn a_variable_chooses_the_folder() {
        assert_eq!(with(&[("KVRM_CACHE_DIR", "/a")]), Some("/a".into()));
        assert_eq!(with(&[("KVRM_CACHE_DIR", "")]), None);
        assert_eq!(with(&[("KVRM_CACHE_DIR", "off")]), None);
        let both = [("KVRM_CACHE_DIR", "/a"), ("XDG_CACHE_HOME", "/b")];
        assert_eq!(with(&both), Some("/a".into()));
    }

    #[cfg(not(any(windows, target_os = "macos")))]
    #[test]
    fn otherwise_it_is_the_users() {
        assert_eq!(with(&[]), Some("/home/user/.cache/kvrm".into()));
        assert_eq!(with(&[("XDG_CACHE_HOME", "/b")]), Some("/b/kvrm".into()));
        assert_eq!(with(&[("XDG_CACHE_HOME", "b")]), Some("/home/user/.cache/kvrm".into()));
        assert_eq!(folder(|_| None, None), None);
    }
}
