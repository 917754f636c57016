//! What operations do in memory, and which errors they give.

use kvrm_linux::Errno;
use kvrm_linux::vfs::{
    Access, Allocation, At, Device, FileType, Found, OpenFlags, RenameMode, Special, Timespec,
};

use crate::support::{
    CREATE, NOBODY, START, WRITE, at, below, find, get, memory, names, open, put, read_node,
};

const LATER: Timespec = Timespec { seconds: 2000, nanoseconds: 0 };

#[test]
fn the_root_has_what_programs_need() {
    let mut vfs = memory();
    let root =
        ["bin", "dev", "etc", "home", "lib", "proc", "root", "run", "sys", "tmp", "usr", "var"];
    assert_eq!(names(&mut vfs, "/").unwrap(), root);
    assert_eq!(get(&mut vfs, "/etc/passwd").unwrap(), "root:x:0:0:root:/root:/bin/sh\n");
    let tmp = find(&mut vfs, "/tmp").unwrap();
    assert_eq!(vfs.stat(tmp).unwrap().mode(), 0o041777);
    let null = find(&mut vfs, "/dev/null").unwrap();
    assert_eq!(vfs.device(null), Some(Device::Null));
    assert_eq!(vfs.stat(null).unwrap().device_node.bits(), 0x103);
}

#[test]
fn paths_above_the_root_stay_at_the_root() {
    let mut vfs = memory();
    assert_eq!(find(&mut vfs, "/../../.."), Ok(vfs.root()));
    assert_eq!(find(&mut vfs, "/../etc/../../tmp"), find(&mut vfs, "/tmp"));
}

#[test]
fn lookups_fail_in_the_order_of_linux() {
    let mut vfs = memory();
    put(&mut vfs, "/tmp/file", "").unwrap();
    let long = "x".repeat(256);
    let longer = "x/".repeat(2048);
    for (path, error) in [
        ("", Errno::NOENT),
        ("/tmp/none", Errno::NOENT),
        ("/tmp/none/more", Errno::NOENT),
        ("/tmp/file/more", Errno::NOTDIR),
        ("/tmp/file/", Errno::NOTDIR),
        ("/tmp/file/..", Errno::NOTDIR),
        (&long[..], Errno::NAMETOOLONG),
        (&format!("/tmp/file/{long}"), Errno::NOTDIR),
        (&format!("/tmp/none/{long}"), Errno::NOENT),
        (&longer, Errno::NAMETOOLONG),
    ] {
        assert_eq!(find(&mut vfs, path), Err(error), "{path}");
    }
    assert_eq!(find(&mut vfs, &long[..255]), Err(Errno::NOENT));
    let file = find(&mut vfs, "/tmp/file").unwrap();
    assert_eq!(vfs.lookup(below(file, "."), true), Err(Errno::NOTDIR));
}

#[test]
fn forty_links_are_followed_but_not_more() {
    let mut vfs = memory();
    put(&mut vfs, "/tmp/0", "found").unwrap();
    for link in 1..=41 {
        let (link, target) = (format!("/tmp/{link}"), (link - 1).to_string());
        vfs.symlink(at(&vfs, &link), target.as_bytes()).unwrap();
    }
    assert_eq!(get(&mut vfs, "/tmp/40").unwrap(), "found");
    assert_eq!(get(&mut vfs, "/tmp/41"), Err(Errno::LOOP));
    vfs.symlink(at(&vfs, "/tmp/self"), b"self").unwrap();
    assert_eq!(find(&mut vfs, "/tmp/self/more"), Err(Errno::LOOP));
}

#[test]
fn times_are_those_of_the_clock() {
    let mut vfs = memory();
    put(&mut vfs, "/tmp/file", "1").unwrap();
    let file = find(&mut vfs, "/tmp/file").unwrap();
    vfs.set_time(LATER);
    assert_eq!(get(&mut vfs, "/tmp/file").unwrap(), "1");
    let stat = vfs.stat(file).unwrap();
    assert_eq!([stat.atime, stat.mtime, stat.ctime, stat.btime], [START; 4]);
    put(&mut vfs, "/tmp/file", "2").unwrap();
    let stat = vfs.stat(file).unwrap();
    assert_eq!([stat.atime, stat.mtime, stat.ctime, stat.btime], [START, LATER, LATER, START]);
    let tmp = find(&mut vfs, "/tmp").unwrap();
    assert_eq!(vfs.stat(tmp).unwrap().mtime, START);
    vfs.unlink(at(&vfs, "/tmp/file")).unwrap();
    assert_eq!(vfs.stat(tmp).unwrap().mtime, LATER);
}

#[test]
fn attributes_are_set() {
    let mut vfs = memory();
    put(&mut vfs, "/tmp/file", "").unwrap();
    let file = find(&mut vfs, "/tmp/file").unwrap();
    vfs.chmod(file, 0o4711).unwrap();
    vfs.set_times(file, None, Some(LATER)).unwrap();
    let stat = vfs.stat(file).unwrap();
    assert_eq!((stat.mode(), stat.atime, stat.mtime), (0o104711, START, LATER));
    vfs.chown(file, Some(5), None).unwrap();
    let stat = vfs.stat(file).unwrap();
    assert_eq!((stat.permissions, stat.uid, stat.gid), (0o711, 5, 0));
    let execute = Access { execute: true, ..Access::default() };
    assert_eq!(vfs.access(file, execute), Ok(()));
    vfs.chmod(file, 0o600).unwrap();
    assert_eq!(vfs.access(file, execute), Err(Errno::ACCES));
    assert_eq!(vfs.access(file, Access { read: true, write: true, execute: false }), Ok(()));
}

#[test]
fn directories_with_a_group_give_it_on() {
    let mut vfs = memory();
    let directory = vfs.mkdir(at(&vfs, "/tmp/d"), 0o777).unwrap();
    vfs.chown(directory, None, Some(9)).unwrap();
    vfs.chmod(directory, 0o2755).unwrap();
    put(&mut vfs, "/tmp/d/file", "").unwrap();
    let inner = vfs.mkdir(at(&vfs, "/tmp/d/d"), 0o755).unwrap();
    let file = find(&mut vfs, "/tmp/d/file").unwrap();
    assert_eq!(vfs.stat(file).unwrap().gid, 9);
    assert_eq!((vfs.stat(inner).unwrap().gid, vfs.stat(inner).unwrap().permissions), (9, 0o2755));
}

#[test]
fn directories_count_their_links() {
    let mut vfs = memory();
    let directory = vfs.mkdir(at(&vfs, "/tmp/d"), 0o755).unwrap();
    vfs.mkdir(at(&vfs, "/tmp/d/1"), 0o755).unwrap();
    vfs.mkdir(at(&vfs, "/tmp/2"), 0o755).unwrap();
    assert_eq!(vfs.stat(directory).unwrap().links, 3);
    vfs.rename(at(&vfs, "/tmp/2"), at(&vfs, "/tmp/d/2"), RenameMode::Replace).unwrap();
    assert_eq!(vfs.stat(directory).unwrap().links, 4);
    vfs.rmdir(at(&vfs, "/tmp/d/1")).unwrap();
    assert_eq!(vfs.stat(directory).unwrap().links, 3);
}

#[test]
fn deleted_files_live_while_they_are_held() {
    let mut vfs = memory();
    let before = vfs.used();
    let file = open(&mut vfs, "/tmp/file", CREATE).unwrap();
    vfs.write(file, 0, b"still here").unwrap();
    vfs.unlink(at(&vfs, "/tmp/file")).unwrap();
    assert_eq!(read_node(&mut vfs, file).unwrap(), "still here");
    assert_eq!(vfs.path_of(file), Err(Errno::NOENT));
    assert_eq!(vfs.link_text(file).unwrap(), b"/tmp/file (deleted)");
    assert_eq!(vfs.stat(file).unwrap().links, 0);
    assert_eq!(vfs.link(file, at(&vfs, "/tmp/again")), Err(Errno::NOENT));
    vfs.release(file);
    assert_eq!(vfs.stat(file), Err(Errno::STALE));
    assert_eq!(vfs.used(), before);
}

#[test]
fn deleted_directories_still_know_where_they_were() {
    let mut vfs = memory();
    vfs.mkdir(at(&vfs, "/tmp/outer"), 0o755).unwrap();
    let inner = vfs.mkdir(at(&vfs, "/tmp/outer/inner"), 0o755).unwrap();
    vfs.retain(inner).unwrap();
    vfs.rmdir(at(&vfs, "/tmp/outer/inner")).unwrap();
    vfs.rmdir(at(&vfs, "/tmp/outer")).unwrap();
    assert_eq!(vfs.link_text(inner).unwrap(), b"/tmp/outer/inner (deleted)");
    assert_eq!(vfs.mkdir(below(inner, "new"), 0o755), Err(Errno::NOENT));
    assert_eq!(vfs.read_dir(&NOBODY, inner), Err(Errno::NOENT));
    let tmp = find(&mut vfs, "/tmp").unwrap();
    assert_eq!(vfs.lookup(below(inner, "../.."), true), Ok(Found::Node(tmp)));
    vfs.release(inner);
    assert_eq!(vfs.stat(inner), Err(Errno::STALE));
}

#[test]
fn temporary_files_can_get_names() {
    let mut vfs = memory();
    let flags = OpenFlags { temporary: true, ..WRITE };
    let file = open(&mut vfs, "/tmp", flags).unwrap();
    vfs.write(file, 0, b"linked").unwrap();
    vfs.link(file, at(&vfs, "/tmp/name")).unwrap();
    vfs.release(file);
    assert_eq!(get(&mut vfs, "/tmp/name").unwrap(), "linked");
    let only = open(&mut vfs, "/tmp", OpenFlags { exclusive: true, ..flags }).unwrap();
    assert_eq!(vfs.link(only, at(&vfs, "/tmp/other")), Err(Errno::NOENT));
    assert_eq!(open(&mut vfs, "/tmp", OpenFlags { write: false, ..flags }), Err(Errno::INVAL));
    assert_eq!(open(&mut vfs, "/tmp/name", flags), Err(Errno::NOTDIR));
}

#[test]
fn only_pipes_and_files_can_be_made() {
    let mut vfs = memory();
    let fifo = vfs.mknod(at(&vfs, "/tmp/fifo"), Special::Fifo, 0o600).unwrap();
    assert_eq!(vfs.stat(fifo).unwrap().file_type, FileType::Fifo);
    assert_eq!(open(&mut vfs, "/tmp/fifo", OpenFlags::READ), Ok(fifo));
    vfs.mknod(at(&vfs, "/tmp/file"), Special::Regular, 0o600).unwrap();
    assert_eq!(get(&mut vfs, "/tmp/file").unwrap(), "");
    assert_eq!(vfs.mknod(at(&vfs, "/tmp/file"), Special::Fifo, 0o600), Err(Errno::EXIST));
    assert_eq!(vfs.mknod(at(&vfs, "/tmp/none/"), Special::Fifo, 0o600), Err(Errno::NOENT));
}

#[test]
fn large_files_are_sparse() {
    let mut vfs = memory();
    let file = open(&mut vfs, "/tmp/file", CREATE).unwrap();
    let before = vfs.used();
    vfs.truncate(file, 1 << 40).unwrap();
    assert_eq!(vfs.used(), before);
    let end = (1 << 40) - 3;
    assert_eq!(vfs.write(file, end, b"end and more"), Ok(12));
    let mut buffer = [9; 20];
    assert_eq!(vfs.read(&NOBODY, file, end - 4, &mut buffer), Ok(16));
    assert_eq!(&buffer[..16], b"\0\0\0\0end and more");
    assert_eq!(vfs.seek_data(file, 5), Ok(end - end % 65536));
    assert_eq!(vfs.seek_hole(file, 5), Ok(5));
    assert_eq!(vfs.seek_data(file, end + 12), Err(Errno::NXIO));
    assert!(vfs.stat(file).unwrap().blocks < 1000);
}

#[test]
fn files_are_not_larger_than_offsets() {
    let mut vfs = memory();
    let file = open(&mut vfs, "/tmp/file", CREATE).unwrap();
    let largest = i64::MAX as u64;
    assert_eq!(vfs.write(file, largest, b"x"), Err(Errno::FBIG));
    assert_eq!(vfs.write(file, u64::MAX, b"x"), Err(Errno::FBIG));
    assert_eq!(vfs.write(file, largest - 2, b"four"), Ok(2));
    assert_eq!(vfs.truncate(file, largest + 1), Err(Errno::INVAL));
    assert_eq!(vfs.read(&NOBODY, file, u64::MAX, &mut [0; 9]), Ok(0));
    let extend = Allocation::Extend;
    assert_eq!(vfs.allocate(file, extend, largest, 2), Err(Errno::FBIG));
    assert_eq!(vfs.allocate(file, extend, 0, 0), Err(Errno::INVAL));
}

#[test]
fn space_is_allocated_and_holes_are_made() {
    let mut vfs = memory();
    let file = open(&mut vfs, "/tmp/file", CREATE).unwrap();
    vfs.allocate(file, Allocation::KeepSize, 0, 100_000).unwrap();
    assert_eq!((vfs.stat(file).unwrap().size, vfs.stat(file).unwrap().blocks), (0, 256));
    vfs.allocate(file, Allocation::Extend, 0, 100_000).unwrap();
    assert_eq!(vfs.stat(file).unwrap().size, 100_000);
    vfs.write(file, 0, b"0123456789").unwrap();
    vfs.allocate(file, Allocation::PunchHole, 2, 5).unwrap();
    let mut buffer = [0; 10];
    vfs.read(&NOBODY, file, 0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"01\0\0\0\0\x00789");
    let tmp = find(&mut vfs, "/tmp").unwrap();
    assert_eq!(vfs.allocate(tmp, Allocation::Extend, 0, 1), Err(Errno::NODEV));
}

#[test]
fn what_is_mounted_stays() {
    let mut vfs = memory();
    for path in ["/proc", "/dev", "/tmp"] {
        assert_eq!(vfs.rmdir(at(&vfs, path)), Err(Errno::BUSY), "{path}");
        let renamed = vfs.rename(at(&vfs, path), at(&vfs, "/other"), RenameMode::Replace);
        assert_eq!(renamed, Err(Errno::BUSY), "{path}");
    }
    put(&mut vfs, "/tmp/file", "").unwrap();
    let renamed = vfs.rename(at(&vfs, "/tmp/file"), at(&vfs, "/dev/shm/file"), RenameMode::Replace);
    assert_eq!(renamed, Err(Errno::XDEV));
    assert_eq!(vfs.rename(at(&vfs, "/tmp/file"), at(&vfs, "/file"), RenameMode::Replace), Ok(()));
}

#[test]
fn the_same_operations_give_the_same_numbers() {
    let run = || {
        let mut vfs = memory();
        for name in ["/tmp/b", "/tmp/a", "/home/x"] {
            put(&mut vfs, name, name).unwrap();
        }
        vfs.unlink(at(&vfs, "/tmp/b")).unwrap();
        put(&mut vfs, "/tmp/c", "").unwrap();
        let tmp = find(&mut vfs, "/tmp").unwrap();
        vfs.read_dir(&NOBODY, tmp).unwrap()
    };
    assert_eq!(run(), run());
}

#[test]
fn deep_directories_are_no_problem() {
    let mut vfs = memory();
    let mut directory = find(&mut vfs, "/tmp").unwrap();
    for _ in 0..20_000 {
        directory = vfs.mkdir(below(directory, "d"), 0o755).unwrap();
    }
    assert_eq!(vfs.path_of(directory), Err(Errno::NAMETOOLONG));
    let to = At { processes: &NOBODY, base: directory, path: b"d" };
    assert_eq!(vfs.rename(at(&vfs, "/tmp/d"), to, RenameMode::Replace), Err(Errno::INVAL));
    assert!(vfs.changes().unwrap().len() < 3000);
}

#[test]
fn runs_can_move_to_other_threads() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&memory());
}
