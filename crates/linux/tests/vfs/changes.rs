//! What is reported as changed, and kept.

use std::fs;
use std::os::unix::fs::symlink;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use kvrm_linux::vfs::{ChangeKind, RenameMode, Special, Vfs};

use crate::support::{CREATE, at, bound, find, memory, open, put};

fn changes(vfs: &mut Vfs) -> Vec<(String, ChangeKind)> {
    let changes = vfs.changes().unwrap().into_iter();
    changes.map(|change| (String::from_utf8(change.path).unwrap(), change.kind)).collect()
}

fn host() -> tempfile::TempDir {
    let host = tempfile::tempdir().unwrap();
    fs::create_dir_all(host.path().join("d/inner")).unwrap();
    fs::write(host.path().join("d/inner/file"), "inner").unwrap();
    fs::write(host.path().join("one"), "1").unwrap();
    fs::write(host.path().join("two"), "2").unwrap();
    host
}

#[test]
fn looking_changes_nothing() {
    let host = host();
    let mut vfs = bound(host.path(), false);
    find(&mut vfs, "/host/d/inner/file").unwrap();
    put(&mut vfs, "/tmp/file", "").unwrap();
    vfs.unlink(at(&vfs, "/tmp/file")).unwrap();
    put(&mut vfs, "/dev/shm/file", "").unwrap();
    assert_eq!(changes(&mut vfs), []);
}

#[test]
fn changes_are_found() {
    let host = host();
    let mut vfs = bound(host.path(), false);
    put(&mut vfs, "/host/one", "new").unwrap();
    vfs.unlink(at(&vfs, "/host/two")).unwrap();
    vfs.mkdir(at(&vfs, "/host/made"), 0o755).unwrap();
    put(&mut vfs, "/host/made/file", "").unwrap();
    vfs.unlink(at(&vfs, "/etc/hosts")).unwrap();
    put(&mut vfs, "/etc/passwd.new", "root").unwrap();
    let (from, to) = (at(&vfs, "/etc/passwd.new"), at(&vfs, "/etc/passwd"));
    vfs.rename(from, to, RenameMode::Replace).unwrap();
    let group = find(&mut vfs, "/etc/group").unwrap();
    vfs.chmod(group, 0o600).unwrap();
    use ChangeKind::{Changed, Created, Deleted};
    let expected = [
        ("/etc/group", Changed),
        ("/etc/hosts", Deleted),
        ("/etc/passwd", Changed),
        ("/host/made", Created),
        ("/host/made/file", Created),
        ("/host/one", Changed),
        ("/host/two", Deleted),
    ];
    assert_eq!(changes(&mut vfs), expected.map(|(path, kind)| (path.to_owned(), kind)));
}

#[test]
fn moved_directories_are_new_with_all_that_is_in_them() {
    let host = host();
    let mut vfs = bound(host.path(), false);
    vfs.rename(at(&vfs, "/host/d"), at(&vfs, "/home/d"), RenameMode::Replace).unwrap();
    use ChangeKind::{Created, Deleted};
    let expected = [
        ("/home/d", Created),
        ("/home/d/inner", Created),
        ("/home/d/inner/file", Created),
        ("/host/d", Deleted),
    ];
    assert_eq!(changes(&mut vfs), expected.map(|(path, kind)| (path.to_owned(), kind)));
    // Back where it was, it is as it was.
    vfs.rename(at(&vfs, "/home/d"), at(&vfs, "/host/d"), RenameMode::Replace).unwrap();
    assert_eq!(changes(&mut vfs), []);
}

#[test]
fn changes_are_kept() {
    let host = host();
    let mut vfs = bound(host.path(), false);
    put(&mut vfs, "/host/one", "new").unwrap();
    vfs.rename(at(&vfs, "/host/d"), at(&vfs, "/home/d"), RenameMode::Replace).unwrap();
    vfs.symlink(at(&vfs, "/home/link"), b"/etc/passwd").unwrap();
    vfs.mknod(at(&vfs, "/home/fifo"), Special::Fifo, 0o600).unwrap();
    let sparse = open(&mut vfs, "/home/sparse", CREATE).unwrap();
    vfs.write(sparse, 3 << 30, b"end").unwrap();
    vfs.chmod(sparse, 0o4751).unwrap();
    let kept = tempfile::tempdir().unwrap();
    let into = Dir::open_ambient_dir(kept.path(), ambient_authority()).unwrap();
    assert_eq!(vfs.keep(&into).unwrap(), vfs.changes().unwrap());
    let read = |path: &str| fs::read_to_string(kept.path().join(path)).unwrap();
    assert_eq!((read("host/one"), read("home/d/inner/file")), ("new".into(), "inner".into()));
    let link = fs::read_link(kept.path().join("home/link")).unwrap();
    assert_eq!(link.to_str(), Some("/etc/passwd"));
    use std::os::unix::fs::MetadataExt;
    let sparse = fs::metadata(kept.path().join("home/sparse")).unwrap();
    assert_eq!((sparse.len(), sparse.mode() & 0o7777), ((3 << 30) + 3, 0o751));
    assert!(sparse.blocks() < 10_000);
    assert!(!kept.path().join("home/fifo").exists());
    // Once more, over what is there.
    vfs.keep(&into).unwrap();
    assert_eq!(read("host/one"), "new");
}

#[test]
fn keeping_follows_no_links() {
    let mut vfs = memory();
    put(&mut vfs, "/home/file", "guest").unwrap();
    put(&mut vfs, "/tmp/file", "guest").unwrap();
    let (outside, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("file"), "outside").unwrap();
    let into = Dir::open_ambient_dir(kept.path(), ambient_authority()).unwrap();
    // A link in place of a file is replaced.
    fs::create_dir(kept.path().join("home")).unwrap();
    fs::create_dir(kept.path().join("tmp")).unwrap();
    symlink(outside.path().join("file"), kept.path().join("home/file")).unwrap();
    vfs.keep(&into).unwrap();
    assert_eq!(fs::read_to_string(kept.path().join("home/file")).unwrap(), "guest");
    // A link in place of a directory is not entered.
    fs::remove_dir_all(kept.path().join("tmp")).unwrap();
    symlink(outside.path(), kept.path().join("tmp")).unwrap();
    let error = vfs.keep(&into).unwrap_err();
    assert_eq!(error.path, b"/tmp/file");
    assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), "outside");
}
