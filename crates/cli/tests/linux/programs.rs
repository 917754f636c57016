//! Programs in C and C++, one for each part of Linux. They are built when tests begin.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::case::{Case, Needs};
use crate::folder;

/// How a program is linked.
#[derive(Clone, Copy)]
enum Link {
    Static,
    StaticPie,
    Pie,
    /// Without a C library.
    Raw,
}

impl Link {
    /// What follows the program's name in that of the case.
    fn suffix(self) -> &'static str {
        match self {
            Link::Static | Link::Raw => "",
            Link::StaticPie => "-static-pie",
            Link::Pie => "-pie",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Link::Static => &["-static", "-DSTATIC", "-pthread"],
            Link::StaticPie => &["-static-pie", "-fPIE", "-DSTATIC", "-pthread"],
            Link::Pie => &["-pie", "-fPIE", "-pthread"],
            Link::Raw => &["-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector"],
        }
    }
}

const ONCE: &[Link] = &[Link::Static];
/// For programs that linking may affect.
const ALL: &[Link] = &[Link::Static, Link::StaticPie, Link::Pie];

/// The sources, what they need, and how they are linked.
const SOURCES: &[(&str, Needs, &[Link])] = &[
    ("allocation.c", Needs::Single, ALL),
    ("atomics.c", Needs::Threads, ONCE),
    ("bad_pointers.c", Needs::Processes, ONCE),
    (BEYOND_QEMU, Needs::Processes, ONCE),
    ("clocks.c", Needs::Single, ALL),
    ("descriptors.c", Needs::Single, ONCE),
    ("directories.c", Needs::Single, ONCE),
    ("exceptions.cc", Needs::Threads, ALL),
    ("exec.c", Needs::Processes, ALL),
    ("faults.c", Needs::Single, ALL),
    ("file_io.c", Needs::Single, ONCE),
    ("file_locks.c", Needs::Processes, ONCE),
    ("futexes.c", Needs::Threads, ONCE),
    ("hello_raw.c", Needs::Single, &[Link::Raw]),
    ("identity.c", Needs::Single, ALL),
    ("jumps.c", Needs::Single, ALL),
    ("linked.c", Needs::Single, ALL),
    ("mappings.c", Needs::Single, ONCE),
    ("metadata.c", Needs::Single, ONCE),
    ("open_flags.c", Needs::Single, ONCE),
    ("passed_files.c", Needs::Processes, ONCE),
    ("pi_mutexes.c", Needs::Threads, ONCE),
    ("pipes.c", Needs::Single, ONCE),
    ("printing.c", Needs::Single, ALL),
    ("proc_files.c", Needs::Single, ALL),
    ("processes.c", Needs::Processes, ONCE),
    ("semaphores.c", Needs::Processes, ONCE),
    ("shared_memory.c", Needs::Processes, ONCE),
    ("signal_basics.c", Needs::Single, ONCE),
    ("signal_context.c", Needs::Single, ALL),
    ("signal_defaults.c", Needs::Processes, ONCE),
    ("signal_restart.c", Needs::Processes, ONCE),
    ("signal_stack.c", Needs::Single, ONCE),
    ("small_calls.c", Needs::Single, ONCE),
    ("socket_pairs.c", Needs::Processes, ONCE),
    ("strings.c", Needs::Single, ALL),
    ("thread_ends.c", Needs::Processes, ALL),
    ("thread_signals.c", Needs::Threads, ONCE),
    ("threads.c", Needs::Threads, ALL),
    ("timers.c", Needs::Single, ONCE),
    ("waiting.c", Needs::Single, ONCE),
];

/// The source of what QEMU does differently; Linux wrote what is expected of it.
const BEYOND_QEMU: &str = "beyond_qemu.c";

/// All programs, built.
pub(crate) fn all() -> Vec<Case> {
    let built = built();
    let cases = SOURCES.iter().flat_map(|(source, needs, links)| {
        links.iter().map(move |link| {
            let (stem, _) = source.split_once('.').unwrap();
            let name = format!("{stem}{}", link.suffix());
            Case {
                words: vec![format!("/programs/{name}")],
                name,
                needs: *needs,
                qemu_is_right: *source != BEYOND_QEMU,
                files: Vec::new(),
                input: String::new(),
                directory: "/tmp",
                programs: Some(built.to_path_buf()),
                expected: folder().join("programs").join(stem).with_extension("expected"),
            }
        })
    });
    cases.collect()
}

/// Builds all programs once, and returns their folder. Without the Debian for arm64, nothing would run them.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(given) = std::env::var_os("KVRM_LINUX_PROGRAMS") {
            return given.into();
        }
        let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linux-programs");
        std::fs::create_dir_all(&to).unwrap();
        if std::env::var_os("KVRM_DEBIAN_ARM64").is_some() {
            std::thread::scope(|scope| {
                for (source, _, links) in SOURCES {
                    let to = &to;
                    scope.spawn(move || links.iter().for_each(|link| build(source, *link, to)));
                }
            });
        }
        to
    })
}

fn build(source: &str, link: Link, to: &Path) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux/tests/programs").join(source);
    let (stem, extension) = source.split_once('.').unwrap();
    let (compiler, standard) = match extension {
        "c" => ("aarch64-linux-gnu-gcc", "-std=gnu11"),
        _ => ("aarch64-linux-gnu-g++", "-std=c++17"),
    };
    let mut command = Command::new(compiler);
    command.args([standard, "-O2", "-Wall", "-Wextra", "-Wno-unused-result"]);
    command.args(link.options()).arg("-o").arg(to.join(format!("{stem}{}", link.suffix())));
    let status = command.arg(path).arg("-lm").status().unwrap_or_else(|error| {
        panic!("{compiler}: {error}; `cargo xtask test` installs it");
    });
    assert!(status.success(), "{source} does not compile");
}

#[test]
fn every_source_is_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux/tests/programs");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    let mut sources: Vec<_> = names.filter(|n| n.ends_with(".c") || n.ends_with(".cc")).collect();
    sources.sort();
    let listed: Vec<_> = SOURCES.iter().map(|(source, ..)| *source).collect();
    assert_eq!(sources, listed);
}
