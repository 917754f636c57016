//! Limits hold, whatever a guest tries.

use kvrm_linux::Errno;
use kvrm_linux::vfs::{Allocation, Limit, Limits, OpenFlags, RenameMode, Setup, Special, Vfs};

use crate::support::{CREATE, WRITE, at, bound, find, open, put, setup};

fn limited(bytes: u64, nodes: u64) -> Vfs {
    Vfs::new(Setup { limits: Limits { bytes, nodes }, ..setup() }).unwrap()
}

#[test]
fn writes_end_at_the_limit() {
    let mut vfs = limited(1 << 20, 100);
    let file = open(&mut vfs, "/tmp/file", CREATE).unwrap();
    let before = vfs.used().bytes;
    let written = vfs.write(file, 0, &vec![1; 2 << 20]).unwrap();
    assert!(written > 900_000 && written < 1 << 20, "{written}");
    assert!(vfs.used().bytes - before <= 1 << 20);
    assert_eq!(vfs.write(file, written as u64 + (1 << 20), &[1; 70_000]), Err(Errno::NOSPC));
    assert_eq!(vfs.limit_hit(), Some(Limit::Bytes));
    // Everything comes back.
    vfs.truncate(file, 0).unwrap();
    assert_eq!(vfs.used().bytes, before);
    assert_eq!(vfs.write(file, 0, &vec![1; 2 << 20]), Ok(written));
}

#[test]
fn sparse_writes_count_what_they_take() {
    let mut vfs = limited(1 << 20, 100);
    let file = open(&mut vfs, "/tmp/file", CREATE).unwrap();
    let written = (0..).take_while(|index| vfs.write(file, index << 30, b"x").is_ok()).count();
    // A byte takes an allocation of 64 and 64 to find it.
    assert!((7000..8200).contains(&written), "{written}");
    // At the end of what is allocated at once, it takes all of that.
    let mut vfs = limited(1 << 20, 100);
    let file = open(&mut vfs, "/tmp/file", CREATE).unwrap();
    let written =
        (1..).take_while(|index| vfs.write(file, (index << 16) - 1, b"x").is_ok()).count();
    assert_eq!(written, 15);
}

#[test]
fn allocating_more_than_there_is_takes_nothing() {
    let mut vfs = limited(1 << 20, 100);
    let file = open(&mut vfs, "/tmp/file", CREATE).unwrap();
    let before = vfs.used();
    for end in [1 << 21, 1 << 40, (1 << 62) + 5] {
        assert_eq!(vfs.allocate(file, Allocation::KeepSize, 0, end), Err(Errno::NOSPC));
    }
    assert_eq!(vfs.used(), before);
    assert_eq!(vfs.stat(file).unwrap().size, 0);
}

#[test]
fn empty_files_links_and_directories_count() {
    let mut vfs = limited(1 << 20, 50);
    let made =
        (0..).take_while(|index| put(&mut vfs, &format!("/tmp/{index}"), "").is_ok()).count();
    assert_eq!((made, vfs.limit_hit()), (50, Some(Limit::Nodes)));
    assert_eq!(vfs.mkdir(at(&vfs, "/tmp/d"), 0o755), Err(Errno::NOSPC));
    assert_eq!(vfs.symlink(at(&vfs, "/tmp/d"), b"x"), Err(Errno::NOSPC));
    assert_eq!(vfs.mknod(at(&vfs, "/tmp/d"), Special::Fifo, 0o600), Err(Errno::NOSPC));
    let temporary = OpenFlags { temporary: true, ..WRITE };
    assert_eq!(open(&mut vfs, "/tmp", temporary), Err(Errno::NOSPC));
    vfs.unlink(at(&vfs, "/tmp/0")).unwrap();
    assert!(vfs.mkdir(at(&vfs, "/tmp/d"), 0o755).is_ok());
}

#[test]
fn names_of_one_file_count() {
    let mut vfs = limited(64_000, 50);
    put(&mut vfs, "/tmp/file", "").unwrap();
    let file = find(&mut vfs, "/tmp/file").unwrap();
    let long = "x".repeat(240);
    let made = (0..)
        .take_while(|index| vfs.link(file, at(&vfs, &format!("/tmp/{long}{index}"))).is_ok())
        .count();
    assert_eq!((made, vfs.limit_hit()), (199, Some(Limit::Bytes)));
    // Renaming needs no room.
    let renamed =
        vfs.rename(at(&vfs, "/tmp/file"), at(&vfs, &format!("/tmp/{long}y")), RenameMode::Replace);
    assert_eq!(renamed, Ok(()));
}

#[test]
fn targets_of_links_count() {
    let mut vfs = limited(100_000, 50);
    let (before, target) = (vfs.used(), [b'x'; 4000]);
    let made =
        (0..).take_while(|index| vfs.symlink(at(&vfs, &format!("/tmp/{index}")), &target).is_ok());
    assert_eq!((made.count(), vfs.limit_hit()), (23, Some(Limit::Bytes)));
    for index in 0..23 {
        vfs.unlink(at(&vfs, &format!("/tmp/{index}"))).unwrap();
    }
    assert_eq!(vfs.used(), before);
}

#[test]
fn deleted_files_that_are_open_count() {
    let mut vfs = limited(1 << 20, 50);
    let before = vfs.used();
    let file = open(&mut vfs, "/tmp/file", CREATE).unwrap();
    vfs.write(file, 0, &vec![1; 900_000]).unwrap();
    vfs.unlink(at(&vfs, "/tmp/file")).unwrap();
    let other = open(&mut vfs, "/tmp/other", CREATE).unwrap();
    assert_eq!(vfs.write(other, 0, &vec![1; 200_000]), Ok(65_536));
    vfs.release(file);
    assert_eq!(vfs.write(other, 0, &vec![1; 200_000]), Ok(200_000));
    vfs.unlink(at(&vfs, "/tmp/other")).unwrap();
    vfs.release(other);
    assert_eq!(vfs.used(), before);
}

#[test]
fn copies_of_host_files_count() {
    let host = tempfile::tempdir().unwrap();
    std::fs::write(host.path().join("large"), vec![1; 3 << 20]).unwrap();
    let bind = kvrm_linux::vfs::Bind {
        host: host.path().into(),
        guest: b"/host".to_vec(),
        writable: false,
    };
    let limits = Limits { bytes: 1 << 20, nodes: 50 };
    let mut vfs = Vfs::new(Setup { binds: vec![bind], limits, ..setup() }).unwrap();
    let file = open(&mut vfs, "/host/large", WRITE).unwrap();
    let before = vfs.used();
    assert_eq!(vfs.write(file, 0, b"x"), Err(Errno::NOSPC));
    assert_eq!((vfs.used(), vfs.limit_hit()), (before, Some(Limit::Bytes)));
    // Nothing has to be copied for this.
    assert_eq!(vfs.truncate(file, 0), Ok(()));
    assert_eq!(vfs.write(file, 0, b"x"), Ok(1));
}

#[test]
fn nodes_on_the_host_count() {
    let host = tempfile::tempdir().unwrap();
    let mut vfs = bound(host.path(), true);
    let before = vfs.used();
    put(&mut vfs, "/host/file", "x").unwrap();
    assert_eq!(vfs.used().nodes, before.nodes + 1);
    vfs.unlink(at(&vfs, "/host/file")).unwrap();
    assert_eq!(vfs.used(), before);
}
