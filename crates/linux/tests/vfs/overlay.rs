//! Directories of the host that stay as they are, whatever the guest does.

use std::fs;
use std::path::Path;

use kvrm_linux::Errno;
use kvrm_linux::vfs::{GivenFile, OpenFlags, RenameMode, Setup, Vfs};

use crate::support::{NOBODY, WRITE, at, bound, find, get, names, open, put, setup};

/// Describes all files of the host.
fn everything(path: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let contents = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        all.push(format!("{path:?} {:?} {contents:?}", metadata.permissions()));
        if metadata.is_dir() {
            all.extend(everything(&path));
        }
    }
    all.sort();
    all
}

fn host() -> tempfile::TempDir {
    let host = tempfile::tempdir().unwrap();
    fs::create_dir_all(host.path().join("d/inner")).unwrap();
    fs::write(host.path().join("file"), "from the host").unwrap();
    fs::write(host.path().join("d/one"), "1").unwrap();
    fs::write(host.path().join("d/two"), "2").unwrap();
    std::os::unix::fs::symlink("d/one", host.path().join("link")).unwrap();
    host
}

#[test]
fn nothing_changes_on_the_host() {
    let host = host();
    let before = everything(host.path());
    let mut vfs = bound(host.path(), false);
    put(&mut vfs, "/host/file", "new").unwrap();
    put(&mut vfs, "/host/d/three", "3").unwrap();
    vfs.unlink(at(&vfs, "/host/d/one")).unwrap();
    vfs.rmdir(at(&vfs, "/host/d/inner")).unwrap();
    vfs.rename(at(&vfs, "/host/d"), at(&vfs, "/host/e"), RenameMode::Replace).unwrap();
    let two = find(&mut vfs, "/host/e/two").unwrap();
    vfs.chmod(two, 0o777).unwrap();
    vfs.truncate(two, 100).unwrap();
    vfs.set_times(two, None, Some(Default::default())).unwrap();
    vfs.link(two, at(&vfs, "/host/linked")).unwrap();
    assert_eq!(everything(host.path()), before);
    assert_eq!(names(&mut vfs, "/host").unwrap(), ["e", "file", "link", "linked"]);
    assert_eq!(names(&mut vfs, "/host/e").unwrap(), ["three", "two"]);
    assert_eq!(get(&mut vfs, "/host/file").unwrap(), "new");
    assert_eq!(get(&mut vfs, "/host/link"), Err(Errno::NOENT));
}

#[test]
fn files_are_read_from_the_host_until_they_are_written() {
    let host = host();
    let mut vfs = bound(host.path(), false);
    let used = vfs.used();
    let file = open(&mut vfs, "/host/file", OpenFlags { read: true, ..WRITE }).unwrap();
    assert_eq!(get(&mut vfs, "/host/file").unwrap(), "from the host");
    vfs.chmod(file, 0o600).unwrap();
    assert_eq!(vfs.used(), used);
    vfs.write(file, 5, b"xxx").unwrap();
    assert_eq!(get(&mut vfs, "/host/file").unwrap(), "from xxx host");
    assert!(vfs.used().bytes > used.bytes);
    assert_eq!(vfs.stat(file).unwrap().permissions, 0o600);
}

#[test]
fn new_directories_do_not_show_old_files() {
    let host = host();
    let mut vfs = bound(host.path(), false);
    assert_eq!(vfs.rmdir(at(&vfs, "/host/d")), Err(Errno::NOTEMPTY));
    for path in ["/host/d/one", "/host/d/two"] {
        vfs.unlink(at(&vfs, path)).unwrap();
    }
    vfs.rmdir(at(&vfs, "/host/d/inner")).unwrap();
    vfs.rmdir(at(&vfs, "/host/d")).unwrap();
    assert_eq!(find(&mut vfs, "/host/d/one"), Err(Errno::NOENT));
    vfs.mkdir(at(&vfs, "/host/d"), 0o700).unwrap();
    assert!(names(&mut vfs, "/host/d").unwrap().is_empty());
    assert_eq!(find(&mut vfs, "/host/d/one"), Err(Errno::NOENT));
}

#[test]
fn numbers_do_not_depend_on_the_host() {
    let numbers = || {
        let host = host();
        let mut vfs = bound(host.path(), false);
        let node = find(&mut vfs, "/host").unwrap();
        vfs.read_dir(&NOBODY, node).unwrap()
    };
    assert_eq!(numbers(), numbers());
}

#[test]
fn owners_are_the_guests() {
    let host = host();
    let mut vfs = bound(host.path(), false);
    let file = find(&mut vfs, "/host/file").unwrap();
    let stat = vfs.stat(file).unwrap();
    assert_eq!((stat.uid, stat.gid, stat.links, stat.size), (0, 0, 1, 13));
    assert_eq!(stat.atime, stat.mtime);
}

#[test]
fn a_root_has_its_own_devices() {
    let host = host();
    fs::create_dir(host.path().join("dev")).unwrap();
    fs::write(host.path().join("dev/null"), "not a device").unwrap();
    fs::create_dir(host.path().join("etc")).unwrap();
    let files = vec![GivenFile {
        path: b"/etc/given/deep".to_vec(),
        contents: b"given".to_vec(),
        permissions: 0o640,
    }];
    let root = Some(host.path().to_owned());
    let mut vfs = Vfs::new(Setup { root, files, ..setup() }).unwrap();
    let all = ["d", "dev", "etc", "file", "link", "proc", "sys", "tmp"];
    assert_eq!(names(&mut vfs, "/").unwrap(), all);
    let null = find(&mut vfs, "/dev/null").unwrap();
    assert!(vfs.device(null).is_some());
    assert_eq!(get(&mut vfs, "/link").unwrap(), "1");
    assert_eq!(get(&mut vfs, "/etc/given/deep").unwrap(), "given");
    assert_eq!(vfs.changes().unwrap(), []);
}
