//! Debian 12 for arm64, as a folder that programs can be given as `/`. Its packages are unpacked into `.cache/`,
//! not installed, so that no root rights are needed.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::apt::{Apt, create, write};
use super::{arm64_programs, cannot, remove};
use crate::shell::{self, Outcome, command, root};

/// The release whose programs the tests expect.
const SUITE: &str = "bookworm";

/// The programs that tests run; their dependencies come along.
const PACKAGES: &[&str] = &[
    "bash",
    "bc",
    "busybox-static",
    "bzip2",
    "coreutils",
    "dash",
    "dc",
    "diffutils",
    "file",
    "findutils",
    "gawk",
    "grep",
    "gzip",
    "hostname",
    "libpython3.11-testsuite",
    "libstdc++6",
    "lua5.4",
    "mawk",
    "openssl",
    "perl",
    "python3",
    "sed",
    "sqlite3",
    "tar",
    "xz-utils",
    "zstd",
];

/// Folders that are links into `usr` on an installed system.
const MERGED: &[&str] = &["bin", "lib", "sbin"];

/// Links that installing would make, and what they lead to.
const LINKS: &[(&str, &str)] = &[
    ("usr/bin/awk", "gawk"),
    ("usr/bin/nawk", "gawk"),
    ("usr/bin/lua", "lua5.4"),
    ("usr/bin/luac", "luac5.4"),
    ("usr/bin/sh", "dash"),
    ("usr/bin/which", "which.debianutils"),
];

/// Files that installing would write.
const FILES: &[(&str, &str)] = &[
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("etc/hostname", "debian\n"),
];

const BY_HAND: &str = "set KVRM_DEBIAN_ARM64 to the root of any Debian 12 for arm64 that has the packages of \
     xtask/src/tools/debian_arm64.rs";

/// Returns the root of a Debian 12 for arm64: the one that the environment names, or one in `.cache/`, with the
/// programs that [`arm64_programs`] builds.
pub(crate) fn debian_arm64() -> Outcome<PathBuf> {
    if let Some(folder) = std::env::var_os("KVRM_DEBIAN_ARM64").map(PathBuf::from) {
        return match folder.join("usr/bin/busybox").is_file() {
            // Tests run in other folders.
            true => folder.canonicalize().map_err(|e| cannot("use", &folder, &e)),
            false => Err(format!("KVRM_DEBIAN_ARM64 is {}, without a busybox", folder.display())),
        };
    }
    let folder = root().join(".cache/debian-arm64");
    let stamp = root().join(".cache/debian-arm64.packages");
    let packages = format!("{SUITE} {}\n", PACKAGES.join(" "));
    let done = std::fs::read_to_string(&stamp).is_ok_and(|done| done == packages);
    if !done || !folder.is_dir() {
        println!("unpacking Debian 12 for arm64 into .cache/debian-arm64");
        bring(&folder).map_err(|error| {
            format!("cannot download Debian for arm64; without a network, {BY_HAND}. {error}")
        })?;
        write(&stamp, &packages)?;
    }
    arm64_programs::build(&folder)?;
    Ok(folder)
}

fn bring(folder: &Path) -> Outcome {
    remove(folder)?;
    create(folder)?;
    let apt = Apt::foreign(root().join(".cache/debian-arm64.apt"), "arm64")?;
    apt.unpack(PACKAGES, Some(SUITE), folder, |_| Ok(()))?;
    MERGED.iter().try_for_each(|name| merge(folder, name))?;
    for (link, target) in LINKS {
        let link = folder.join(link);
        // A package may have brought it.
        let _ = std::fs::remove_file(&link);
        symlink(target, &link).map_err(|error| cannot("link", &link, &error))?;
    }
    FILES.iter().try_for_each(|(path, text)| write(&folder.join(path), text))?;
    compile_python(folder)
}

/// Moves what a folder holds into the one of that name in `usr`, and makes it a link to that.
fn merge(folder: &Path, name: &str) -> Outcome {
    let (from, into) = (folder.join(name), folder.join("usr").join(name));
    if from.is_dir() {
        create(&into)?;
        shell::output(command("cp").arg("-a").arg(from.join(".")).arg(&into))?;
        remove(&from)?;
    }
    symlink(Path::new("usr").join(name), &from).map_err(|error| cannot("link", &from, &error))
}

/// Compiles Python's modules as installing would, so that programs start quickly; its tests are left out.
fn compile_python(folder: &Path) -> Outcome {
    super::qemu()?;
    println!("compiling the Python modules of .cache/debian-arm64");
    let mut python = command("qemu-aarch64-static");
    python.arg("-L").arg(folder).arg(folder.join("usr/bin/python3.11"));
    python.args(["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]);
    python.args(["-x", "/(test|tests|lib2to3|idlelib)/", "-p", "/", "-s"]).arg(folder);
    python.arg(folder.join("usr/lib/python3.11"));
    python.env("PYTHONHOME", folder.join("usr"));
    shell::output(&mut python).map(drop)
}
