//! `/proc`, and the links that lead to it.

use kvrm_linux::Errno;
use kvrm_linux::vfs::{At, Descriptor, Found, NodeId, OpenFlags, Vfs};

use crate::support::{CREATE, One, WRITE, at, find, get, memory, names, open, put};

fn with<'a>(vfs: &Vfs, processes: &'a One, path: &'a str) -> At<'a> {
    At { processes, base: vfs.root(), path: path.as_bytes() }
}

fn one(vfs: &mut Vfs) -> (One, NodeId) {
    let file = open(vfs, "/tmp/file", CREATE).unwrap();
    let tmp = find(vfs, "/tmp").unwrap();
    let descriptors = vec![
        (0, Descriptor::Other(b"pipe:[12]".to_vec())),
        (3, Descriptor::Node(file)),
        (4, Descriptor::Node(tmp)),
    ];
    (One { cwd: Some(tmp), descriptors }, file)
}

#[test]
fn files_come_from_processes_or_are_constant() {
    let mut vfs = memory();
    for (path, contents) in [
        ("/proc/self/cmdline", "Cmdline of 7\n"),
        ("/proc/7/maps", "Maps of 7\n"),
        ("/proc/thread-self/comm", "Comm of 8\n"),
        ("/proc/7/task/8/stat", "Stat of 8\n"),
        ("/proc/meminfo", "Meminfo\n"),
        ("/proc/sys/kernel/ostype", "Linux\n"),
        ("/proc/sys/vm/overcommit_memory", "0\n"),
        ("/proc/sys/kernel/random/uuid", "Uuid\n"),
    ] {
        assert_eq!(get(&mut vfs, path).as_deref(), Ok(contents), "{path}");
    }
    for (path, error) in [
        ("/proc/8", Errno::NOENT),
        ("/proc/007", Errno::NOENT),
        ("/proc/7/task/9", Errno::NOENT),
        ("/proc/nothing", Errno::NOENT),
        ("/proc/cpuinfo/more", Errno::NOTDIR),
    ] {
        assert_eq!(find(&mut vfs, path), Err(error), "{path}");
    }
}

#[test]
fn nothing_can_be_changed() {
    let mut vfs = memory();
    assert_eq!(put(&mut vfs, "/proc/new", ""), Err(Errno::NOENT));
    assert_eq!(open(&mut vfs, "/proc/cpuinfo", WRITE), Err(Errno::ACCES));
    assert_eq!(vfs.mkdir(at(&vfs, "/proc/new"), 0o755), Err(Errno::NOENT));
    assert_eq!(vfs.unlink(at(&vfs, "/proc/cpuinfo")), Err(Errno::PERM));
    let cpuinfo = find(&mut vfs, "/proc/cpuinfo").unwrap();
    assert_eq!(vfs.chmod(cpuinfo, 0o777), Err(Errno::PERM));
    assert_eq!(vfs.link(cpuinfo, at(&vfs, "/tmp/cpuinfo")), Err(Errno::XDEV));
}

#[test]
fn directories_are_listed() {
    let mut vfs = memory();
    assert_eq!(names(&mut vfs, "/proc/7/task").unwrap(), ["7", "8"]);
    assert_eq!(names(&mut vfs, "/proc/sys").unwrap(), ["fs", "kernel", "vm"]);
    let all = names(&mut vfs, "/proc").unwrap();
    assert!(
        ["7", "cpuinfo", "mounts", "self", "sys"].iter().all(|name| all.contains(&(*name).into()))
    );
    assert!(all.is_sorted());
    // Everything that is listed is found, with the number that the list has, and its path leads back to it.
    let mut directories = vec!["/proc".to_owned()];
    while let Some(path) = directories.pop() {
        let node = find(&mut vfs, &path).unwrap();
        for entry in vfs.read_dir(&crate::support::NOBODY, node).unwrap().into_iter().skip(2) {
            let child = format!("{path}/{}", String::from_utf8(entry.name).unwrap());
            let node = vfs.lookup(at(&vfs, &child), false).unwrap().node().unwrap();
            assert_eq!(vfs.stat(node).unwrap().inode, entry.inode, "{child}");
            assert_eq!(vfs.path_of(node).unwrap(), child.as_bytes());
            if entry.file_type == kvrm_linux::vfs::FileType::Directory {
                let parent = vfs.lookup(at(&vfs, &format!("{child}/..")), true);
                assert_eq!(parent, vfs.lookup(at(&vfs, &path), true));
                directories.push(child);
            }
        }
    }
}

#[test]
fn links_lead_to_open_files() {
    let mut vfs = memory();
    let (one, _) = one(&mut vfs);
    let fd = |fd| Ok(Found::Descriptor { pid: 7, fd });
    for (path, found) in [
        ("/proc/self/fd/3", fd(3)),
        ("/dev/fd/3", fd(3)),
        ("/dev/stdin", fd(0)),
        ("/dev/stdout", Err(Errno::NOENT)),
    ] {
        assert_eq!(vfs.lookup(with(&vfs, &one, path), true), found, "{path}");
        assert_eq!(vfs.open(with(&vfs, &one, path), OpenFlags::READ, 0), found, "{path}");
    }
    let no_follow = OpenFlags { no_follow: true, ..OpenFlags::READ };
    let path = "/proc/self/fd/3";
    assert_eq!(vfs.open(with(&vfs, &one, path), no_follow, 0), Err(Errno::LOOP));
}

#[test]
fn links_lead_through_open_directories() {
    let mut vfs = memory();
    let (one, file) = one(&mut vfs);
    for path in ["/proc/self/fd/4/file", "/proc/self/cwd/file"] {
        assert_eq!(vfs.lookup(with(&vfs, &one, path), true), Ok(Found::Node(file)), "{path}");
    }
    for path in ["/proc/self/fd/0/file", "/proc/self/fd/3/file", "/proc/self/fd/3/"] {
        assert_eq!(vfs.lookup(with(&vfs, &one, path), true), Err(Errno::NOTDIR), "{path}");
    }
}

#[test]
fn links_read_as_paths() {
    let mut vfs = memory();
    let (one, _) = one(&mut vfs);
    let read = |vfs: &mut Vfs, path| {
        let link = vfs.lookup(with(vfs, &one, path), false).unwrap().node().unwrap();
        String::from_utf8(vfs.readlink(&one, link).unwrap()).unwrap()
    };
    for (path, target) in [
        ("/proc/self", "7"),
        ("/proc/thread-self", "7/task/8"),
        ("/proc/self/cwd", "/tmp"),
        ("/proc/7/fd/0", "pipe:[12]"),
        ("/proc/7/fd/3", "/tmp/file"),
        ("/proc/mounts", "self/mounts"),
    ] {
        assert_eq!(read(&mut vfs, path), target, "{path}");
    }
    vfs.unlink(at(&vfs, "/tmp/file")).unwrap();
    assert_eq!(read(&mut vfs, "/proc/7/fd/3"), "/tmp/file (deleted)");
}

#[test]
fn mounts_are_listed() {
    let host = tempfile::tempdir().unwrap();
    let mut vfs = crate::support::bound(host.path(), true);
    let text = get(&mut vfs, "/proc/mounts").unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "overlay / overlay rw,noatime 0 0");
    assert!(lines.contains(&"proc /proc proc rw,noatime 0 0"));
    assert!(lines.contains(&"ext4 /host ext4 rw,noatime 0 0"));
}
