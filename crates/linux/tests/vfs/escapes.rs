//! Nothing leads out of what the guest is given.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use kvrm_linux::Errno;
use kvrm_linux::vfs::{OpenFlags, RenameMode, Vfs};

use crate::support::{CREATE, WRITE, at, below, bound, find, get, names, open, put};

/// A directory with a secret beside the directory that the guest gets.
struct Secret {
    outer: tempfile::TempDir,
}

impl Secret {
    fn new() -> Secret {
        let outer = tempfile::tempdir().unwrap();
        fs::create_dir(outer.path().join("given")).unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        Secret { outer }
    }

    fn given(&self) -> std::path::PathBuf {
        self.outer.path().join("given")
    }

    fn path(&self) -> String {
        self.outer.path().join("secret").to_str().unwrap().to_owned()
    }

    fn is_untouched(&self) {
        assert_eq!(fs::read_to_string(self.outer.path().join("secret")).unwrap(), "secret");
        let mut names: Vec<_> =
            fs::read_dir(self.outer.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["given", "secret"]);
    }
}

#[test]
fn links_of_the_host_lead_to_the_guests_files() {
    for writable in [false, true] {
        let secret = Secret::new();
        symlink(secret.path(), secret.given().join("absolute")).unwrap();
        symlink("../secret", secret.given().join("relative")).unwrap();
        symlink("..", secret.given().join("up")).unwrap();
        symlink("/etc/passwd", secret.given().join("passwd")).unwrap();
        let mut vfs = bound(&secret.given(), writable);
        assert_eq!(get(&mut vfs, "/host/absolute"), Err(Errno::NOENT));
        assert_eq!(get(&mut vfs, "/host/relative"), Err(Errno::NOENT));
        assert_eq!(find(&mut vfs, "/host/up"), Ok(vfs.root()));
        assert_eq!(get(&mut vfs, "/host/passwd").unwrap(), "root:x:0:0:root:/root:/bin/sh\n");
        // Writing through a link writes a file of the guest.
        put(&mut vfs, "/host/relative", "changed").unwrap();
        assert_eq!(get(&mut vfs, "/secret").unwrap(), "changed");
        secret.is_untouched();
    }
}

#[test]
fn links_of_the_guest_lead_to_the_guests_files() {
    let secret = Secret::new();
    let mut vfs = bound(&secret.given(), true);
    vfs.symlink(at(&vfs, "/host/link"), secret.path().as_bytes()).unwrap();
    vfs.symlink(at(&vfs, "/host/up"), b"../../../../../../..").unwrap();
    assert_eq!(get(&mut vfs, "/host/link"), Err(Errno::NOENT));
    assert_eq!(put(&mut vfs, "/host/link", "x"), Err(Errno::NOENT));
    assert_eq!(find(&mut vfs, "/host/up"), Ok(vfs.root()));
    let given = find(&mut vfs, "/host").unwrap();
    assert_eq!(vfs.lookup(below(given, "../../../secret"), true), Err(Errno::NOENT));
    secret.is_untouched();
}

#[test]
fn names_with_a_link_in_place_of_what_was_seen() {
    for writable in [false, true] {
        let secret = Secret::new();
        let given = secret.given();
        fs::write(given.join("file"), "harmless").unwrap();
        fs::create_dir(given.join("d")).unwrap();
        fs::write(given.join("d/secret"), "harmless").unwrap();
        let mut vfs = bound(&given, writable);
        let (file, inner) =
            (find(&mut vfs, "/host/file").unwrap(), find(&mut vfs, "/host/d/secret").unwrap());
        fs::remove_file(given.join("file")).unwrap();
        symlink(secret.path(), given.join("file")).unwrap();
        fs::remove_dir_all(given.join("d")).unwrap();
        symlink(secret.outer.path(), given.join("d")).unwrap();
        for node in [file, inner] {
            let mut buffer = [0; 9];
            assert!(vfs.read(&crate::support::NOBODY, node, 0, &mut buffer).is_err());
            assert_eq!(buffer, [0; 9]);
            assert!(vfs.write(node, 0, b"x").is_err());
        }
        for path in ["/host/file", "/host/d/secret"] {
            assert!(get(&mut vfs, path).is_err(), "{path}");
            assert!(put(&mut vfs, path, "x").is_err() || !writable, "{path}");
        }
        secret.is_untouched();
    }
}

/// Something on the host keeps swapping a directory and a link to the outside.
#[test]
fn races_with_the_host_lead_nowhere() {
    let secret = Secret::new();
    let given = secret.given();
    fs::create_dir(given.join("d")).unwrap();
    fs::write(given.join("d/secret"), "harmless").unwrap();
    symlink(secret.outer.path(), given.join("link")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| swap(&given, &stop));
        for _ in 0..1500 {
            let mut vfs = bound(&given, true);
            if let Ok(text) = get(&mut vfs, "/host/d/secret") {
                assert_eq!(text, "harmless");
            }
            let _ = put(&mut vfs, "/host/d/secret", "harmless");
            let _ = vfs.mkdir(at(&vfs, "/host/d/new"), 0o755);
            let _ = vfs.rmdir(at(&vfs, "/host/d/new"));
        }
        stop.store(true, Ordering::Relaxed);
    });
    secret.is_untouched();
}

fn swap(given: &Path, stop: &AtomicBool) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, given.join("d"), CWD, given.join("link"), RenameFlags::EXCHANGE)
            .unwrap();
    }
}

#[test]
fn a_directory_moved_out_leads_nowhere() {
    let secret = Secret::new();
    fs::create_dir_all(secret.given().join("d/inner")).unwrap();
    let mut vfs = bound(&secret.given(), true);
    let inner = find(&mut vfs, "/host/d/inner").unwrap();
    vfs.retain(inner).unwrap();
    // The guest cannot take a directory to another file system.
    let renamed = vfs.rename(at(&vfs, "/host/d"), at(&vfs, "/tmp/d"), RenameMode::Replace);
    assert_eq!(renamed, Err(Errno::XDEV));
    // If somebody else does, `..` still leads to where the guest saw it.
    fs::rename(secret.given().join("d"), secret.outer.path().join("d")).unwrap();
    let found = vfs.lookup(below(inner, "../../.."), true).unwrap().node();
    assert_eq!(found, Ok(vfs.root()));
    assert_eq!(vfs.lookup(below(inner, "../../secret"), true), Err(Errno::NOENT));
    fs::remove_dir_all(secret.outer.path().join("d")).unwrap();
    secret.is_untouched();
}

#[test]
fn hard_links_stay_inside() {
    let secret = Secret::new();
    fs::write(secret.given().join("file"), "x").unwrap();
    let mut vfs = bound(&secret.given(), true);
    let file = find(&mut vfs, "/host/file").unwrap();
    assert_eq!(vfs.link(file, at(&vfs, "/tmp/file")), Err(Errno::XDEV));
    vfs.link(file, at(&vfs, "/host/../host/other")).unwrap();
    symlink(secret.path(), secret.given().join("link")).unwrap();
    let link = vfs.lookup(at(&vfs, "/host/link"), false).unwrap().node().unwrap();
    vfs.link(link, at(&vfs, "/host/linked")).unwrap();
    assert!(fs::symlink_metadata(secret.given().join("linked")).unwrap().is_symlink());
    secret.is_untouched();
}

fn special(vfs: &mut Vfs, path: &str) -> Vec<Result<(), Errno>> {
    let flags = [OpenFlags::READ, WRITE, CREATE];
    flags.iter().map(|flags| open(vfs, path, *flags).map(drop)).collect()
}

#[test]
fn special_files_of_the_host_are_not_opened() {
    for writable in [false, true] {
        let secret = Secret::new();
        let socket = secret.given().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        let (fifo, kind) = (secret.given().join("fifo"), rustix::fs::FileType::Fifo);
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, fifo, kind, mode, 0).unwrap();
        let mut vfs = bound(&secret.given(), writable);
        assert_eq!(names(&mut vfs, "/host").unwrap(), ["fifo", "socket"]);
        assert_eq!(special(&mut vfs, "/host/fifo"), [Err(Errno::ACCES); 3]);
        assert_eq!(special(&mut vfs, "/host/socket"), [Err(Errno::NXIO); 3]);
    }
}

#[test]
fn files_on_the_host_give_no_rights() {
    use std::os::unix::fs::PermissionsExt;
    let secret = Secret::new();
    let mut vfs = bound(&secret.given(), true);
    put(&mut vfs, "/host/file", "").unwrap();
    let file = find(&mut vfs, "/host/file").unwrap();
    vfs.chmod(file, 0o6755).unwrap();
    let mode = fs::metadata(secret.given().join("file")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}
