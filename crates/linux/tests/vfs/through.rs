//! Directories of the host that the guest may change.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use kvrm_linux::Errno;
use kvrm_linux::vfs::{Bind, FileType, OpenFlags, RenameMode, Setup, Special, Timespec, Vfs};

use crate::support::{CREATE, at, bound, find, get, names, open, put, read_node, setup};

#[test]
fn changes_go_to_the_host() {
    let host = tempfile::tempdir().unwrap();
    let mut vfs = bound(host.path(), true);
    vfs.mkdir(at(&vfs, "/host/d"), 0o700).unwrap();
    put(&mut vfs, "/host/d/file", "written").unwrap();
    vfs.symlink(at(&vfs, "/host/link"), b"d/file").unwrap();
    vfs.rename(at(&vfs, "/host/d"), at(&vfs, "/host/e"), RenameMode::Replace).unwrap();
    assert_eq!(fs::read_to_string(host.path().join("e/file")).unwrap(), "written");
    assert_eq!(fs::read_link(host.path().join("link")).unwrap().to_str(), Some("d/file"));
    let mode = fs::metadata(host.path().join("e")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(vfs.changes().unwrap(), []);
}

#[test]
fn changes_of_the_host_are_seen() {
    let host = tempfile::tempdir().unwrap();
    let mut vfs = bound(host.path(), true);
    assert_eq!(get(&mut vfs, "/host/file"), Err(Errno::NOENT));
    fs::write(host.path().join("file"), "one").unwrap();
    assert_eq!(get(&mut vfs, "/host/file").unwrap(), "one");
    fs::write(host.path().join("file"), "longer").unwrap();
    assert_eq!(get(&mut vfs, "/host/file").unwrap(), "longer");
    fs::write(host.path().join("other"), "another").unwrap();
    fs::rename(host.path().join("other"), host.path().join("file")).unwrap();
    assert_eq!(get(&mut vfs, "/host/file").unwrap(), "another");
    fs::remove_file(host.path().join("file")).unwrap();
    assert_eq!(get(&mut vfs, "/host/file"), Err(Errno::NOENT));
    assert!(names(&mut vfs, "/host").unwrap().is_empty());
}

#[test]
fn pipes_have_names_on_the_host_only() {
    use std::os::unix::fs::FileTypeExt;

    let host = tempfile::tempdir().unwrap();
    let mut vfs = bound(host.path(), true);
    vfs.mknod(at(&vfs, "/host/fifo"), Special::Fifo, 0o600).unwrap();
    assert_eq!(vfs.mknod(at(&vfs, "/host/fifo"), Special::Fifo, 0o600), Err(Errno::EXIST));
    let path = host.path().join("fifo");
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    // The caller opens it, which must not open the host's: that would wait.
    let fifo = open(&mut vfs, "/host/fifo", OpenFlags::READ).unwrap();
    assert_eq!(vfs.stat(fifo).unwrap().file_type, FileType::Fifo);
    vfs.rename(at(&vfs, "/host/fifo"), at(&vfs, "/host/other"), RenameMode::Replace).unwrap();
    assert_eq!(open(&mut vfs, "/host/other", OpenFlags::READ), Ok(fifo));
    vfs.unlink(at(&vfs, "/host/other")).unwrap();
    assert!(!host.path().join("other").exists());
    assert_eq!(vfs.stat(fifo).unwrap().links, 0);
}

#[test]
fn deleted_files_live_while_they_are_held() {
    let host = tempfile::tempdir().unwrap();
    let mut vfs = bound(host.path(), true);
    let file = open(&mut vfs, "/host/file", CREATE).unwrap();
    vfs.write(file, 0, b"first").unwrap();
    vfs.unlink(at(&vfs, "/host/file")).unwrap();
    assert!(!host.path().join("file").exists());
    vfs.write(file, 5, b" and more").unwrap();
    assert_eq!(read_node(&mut vfs, file).unwrap(), "first and more");
    assert_eq!((vfs.stat(file).unwrap().links, vfs.stat(file).unwrap().size), (0, 14));
    vfs.release(file);
    assert_eq!(vfs.stat(file), Err(Errno::STALE));
}

#[test]
fn only_so_many_deleted_files_are_kept_open() {
    let host = tempfile::tempdir().unwrap();
    let mut vfs = bound(host.path(), true);
    let mut held = Vec::new();
    let error = loop {
        held.push(open(&mut vfs, "/host/file", CREATE).unwrap());
        if let Err(error) = vfs.unlink(at(&vfs, "/host/file")) {
            break error;
        }
    };
    assert_eq!((error, held.len()), (Errno::NFILE, 257));
    vfs.release(held[0]);
    assert_eq!(vfs.unlink(at(&vfs, "/host/file")), Ok(()));
}

#[test]
fn temporary_files_are_the_hosts() {
    let host = tempfile::tempdir().unwrap();
    let mut vfs = bound(host.path(), true);
    let flags = OpenFlags { read: true, write: true, temporary: true, ..OpenFlags::default() };
    let file = open(&mut vfs, "/host", flags).unwrap();
    vfs.write(file, 0, b"linked").unwrap();
    assert!(fs::read_dir(host.path()).unwrap().next().is_none());
    vfs.link(file, at(&vfs, "/host/name")).unwrap();
    assert_eq!(fs::read_to_string(host.path().join("name")).unwrap(), "linked");
    vfs.write(file, 6, b" once").unwrap();
    vfs.release(file);
    vfs.rename(at(&vfs, "/host/name"), at(&vfs, "/host/other"), RenameMode::Replace).unwrap();
    assert_eq!(fs::read_to_string(host.path().join("other")).unwrap(), "linked once");
    assert_eq!(get(&mut vfs, "/host/other").unwrap(), "linked once");
    let only = open(&mut vfs, "/host", OpenFlags { exclusive: true, ..flags }).unwrap();
    assert_eq!(vfs.link(only, at(&vfs, "/host/name")), Err(Errno::NOENT));
    vfs.release(only);
    let mut held = Vec::new();
    let error = loop {
        match open(&mut vfs, "/host", flags) {
            Ok(file) => held.push(file),
            Err(error) => break error,
        }
    };
    assert_eq!((error, held.len()), (Errno::NFILE, 256));
    vfs.release(held[0]);
    assert!(open(&mut vfs, "/host", flags).is_ok());
}

#[test]
fn files_may_be_written_that_cannot_be_opened_again() {
    let host = tempfile::tempdir().unwrap();
    let mut vfs = bound(host.path(), true);
    let at = at(&vfs, "/host/file");
    let file = vfs.open(at, CREATE, 0o444).unwrap().node().unwrap();
    vfs.write(file, 0, b"read-only").unwrap();
    assert_eq!(read_node(&mut vfs, file).unwrap(), "read-only");
    let mode = fs::metadata(host.path().join("file")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o444);
}

#[test]
fn times_that_the_guest_made_are_the_guests() {
    let host = tempfile::tempdir().unwrap();
    let mut vfs = bound(host.path(), true);
    let now = Timespec { seconds: 5, nanoseconds: 6 };
    vfs.set_time(now);
    put(&mut vfs, "/host/file", "x").unwrap();
    let file = find(&mut vfs, "/host/file").unwrap();
    assert_eq!(vfs.stat(file).unwrap().mtime, now);
    let set = Timespec { seconds: -7, nanoseconds: 8 };
    vfs.set_times(file, Some(set), None).unwrap();
    assert_eq!((vfs.stat(file).unwrap().atime, vfs.stat(file).unwrap().mtime), (set, now));
    let far = Timespec { seconds: i64::MAX, nanoseconds: 0 };
    assert!(matches!(vfs.set_times(file, Some(far), Some(far)), Ok(()) | Err(Errno::INVAL)));
}

#[test]
fn one_file_can_be_given() {
    let host = tempfile::tempdir().unwrap();
    let (output, input) = (host.path().join("output"), host.path().join("input"));
    fs::write(&output, "").unwrap();
    fs::write(&input, "given").unwrap();
    let bind = |host: &std::path::Path, guest: &str, writable| Bind {
        host: host.to_owned(),
        guest: guest.into(),
        writable,
    };
    let binds = vec![bind(&output, "/home/out", true), bind(&input, "/etc/passwd", false)];
    let mut vfs = Vfs::new(Setup { binds, ..setup() }).unwrap();
    assert_eq!(get(&mut vfs, "/etc/passwd").unwrap(), "given");
    put(&mut vfs, "/home/out", "result").unwrap();
    assert_eq!(fs::read_to_string(&output).unwrap(), "result");
    assert_eq!(vfs.unlink(at(&vfs, "/home/out")), Err(Errno::BUSY));
    put(&mut vfs, "/etc/passwd", "changed").unwrap();
    assert_eq!(fs::read_to_string(&input).unwrap(), "given");
}

#[test]
fn many_files_can_be_open() {
    let host = tempfile::tempdir().unwrap();
    let mut vfs = bound(host.path(), true);
    let files: Vec<_> =
        (0..300).map(|index| open(&mut vfs, &format!("/host/{index}"), CREATE).unwrap()).collect();
    for (index, file) in files.iter().enumerate() {
        vfs.write(*file, 0, index.to_string().as_bytes()).unwrap();
    }
    for (index, file) in files.iter().enumerate() {
        assert_eq!(read_node(&mut vfs, *file).unwrap(), index.to_string());
    }
    assert!(open(&mut vfs, "/host", OpenFlags::READ).is_ok());
}
