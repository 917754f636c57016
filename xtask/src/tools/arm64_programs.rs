//! Programs in Go and Rust for arm64, built by Debian's compilers. These are unpacked into `.cache/`, and removed
//! when the programs are built.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::{Apt, create, list};
use super::{cannot, remove};
use crate::shell::{self, Outcome, command, root};

/// The release whose compilers build them: another gives other programs.
const SUITE: &str = "bookworm";

/// A program: its source in `crates/linux/tests/programs`, and its name in `usr/local/bin`. `usr/local/src` gets
/// a copy of the source, which tells later whether the program is current.
struct Program {
    source: &'static str,
    name: &'static str,
    compile: fn(&Path, &Path, &Path) -> Outcome,
}

const PROGRAMS: &[Program] = &[
    Program { source: "goroutines.go", name: "goroutines", compile: go },
    Program { source: "rust_threads.rs", name: "rust-threads", compile: rust },
];

/// Builds them into the root of a Debian for arm64, unless that is done.
pub(super) fn build(debian: &Path) -> Outcome {
    let (programs, sources) = (debian.join("usr/local/bin"), debian.join("usr/local/src"));
    if PROGRAMS.iter().all(|program| is_current(program, &programs, &sources)) {
        return Ok(());
    }
    println!("unpacking compilers of Go and Rust into .cache/arm64-compilers");
    super::install(&[super::CROSS_COMPILER, super::CROSS_LIBC])?;
    let compilers = root().join(".cache/arm64-compilers");
    unpack(&compilers)
        .map_err(|error| format!("cannot download compilers of Go and Rust: {error}"))?;
    [&programs, &sources].into_iter().try_for_each(|folder| create(folder))?;
    for program in PROGRAMS {
        println!("building {}", program.source);
        let (source, copy) = (source(program), sources.join(program.source));
        (program.compile)(&compilers, &source, &programs.join(program.name))?;
        std::fs::copy(&source, &copy).map_err(|error| cannot("write", &copy, &error))?;
    }
    remove(&compilers)
}

fn source(program: &Program) -> PathBuf {
    root().join("crates/linux/tests/programs").join(program.source)
}

fn is_current(program: &Program, programs: &Path, sources: &Path) -> bool {
    let built_from = std::fs::read(sources.join(program.source));
    let same = built_from.is_ok_and(|of| std::fs::read(source(program)).is_ok_and(|now| now == of));
    same && programs.join(program.name).is_file()
}

/// The compilers run here; only Rust's library is for arm64.
fn unpack(compilers: &Path) -> Outcome {
    remove(compilers)?;
    let (apt, unpacked) = (compilers.join("apt"), compilers.join("root"));
    let names = ["golang-go", "rustc"];
    Apt::new(apt.clone())?.unpack(&names, Some(SUITE), &unpacked, |_| Ok(()))?;
    Apt::foreign(apt, "arm64")?.unpack_alone("libstd-rust-dev", SUITE, &unpacked)
}

fn go(compilers: &Path, source: &Path, to: &Path) -> Outcome {
    let goroot = compilers.join("root/usr/lib/go");
    let mut go = command(goroot.join("bin/go"));
    go.args(["build", "-trimpath", "-ldflags", "-s -w", "-o"]).arg(to).arg(source);
    go.env("GOROOT", &goroot).env("GOCACHE", compilers.join("cache"));
    go.env("GOPATH", compilers.join("path")).env("GOOS", "linux").env("GOARCH", "arm64");
    compile(go.env("CGO_ENABLED", "0"))
}

fn rust(compilers: &Path, source: &Path, to: &Path) -> Outcome {
    let usr = compilers.join("root/usr");
    let mut rustc = command(usr.join("bin/rustc"));
    rustc.args(["--target", "aarch64-unknown-linux-gnu", "-C", "linker=aarch64-linux-gnu-gcc"]);
    rustc.args(["-O", "-C", "strip=symbols", "-o"]).arg(to).arg(source);
    let libraries = [list(&usr.join("lib"))?, list(&compilers.join("root/lib"))?].concat();
    let libraries = libraries.into_iter().filter(|path| path.is_dir());
    let path = std::env::join_paths(libraries)
        .map_err(|error| format!("cannot set LD_LIBRARY_PATH: {error}"))?;
    compile(rustc.env("LD_LIBRARY_PATH", path))
}

fn compile(compiler: &mut Command) -> Outcome {
    shell::output(compiler).map(drop)
}
