//! `kvrm syscalls`: lists the system calls that Linux programs can make.

use std::io::Write;

use kvrm::linux::calls::{Argument, Entry, TABLE};
use serde::Serialize;

use crate::failure::Result;

/// Options of `kvrm syscalls`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm syscalls
  kvrm syscalls --json | jq '.[] | select(.name == \"futex\")'

Each line is a system call: its number on ARM64, its name and arguments, and what it does not do.")]
pub(crate) struct Syscalls {
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print the page docs/syscalls.md
    #[arg(long)]
    markdown: bool,
}

#[derive(Serialize)]
struct Call {
    number: u64,
    name: &'static str,
    arguments: Vec<&'static str>,
    support: &'static str,
}

/// System calls that are absent and would be missed most, and what programs do instead.
const ABSENT: &[(&[&str], &str)] = &[
    (&["bind", "listen", "accept", "accept4"], "there are no sockets: `socket` fails"),
    (&["ptrace", "process_vm_readv", "process_vm_writev"], "processes cannot look into each other"),
    (&["unshare", "setns", "mount", "umount2", "pivot_root"], "no name spaces, no mounts"),
    (
        &["io_setup", "io_submit", "io_uring_setup"],
        "files are read and written by `read` and `write`",
    ),
    (&["inotify_init1", "fanotify_init"], "nobody else changes files"),
    (&["shmget", "semget", "msgget", "mq_open"], "shared memory is made with `mmap` and `fork`"),
    (
        &["seccomp", "landlock_create_ruleset", "bpf", "perf_event_open"],
        "`--strace` and hooks see every call",
    ),
    (&["init_module", "reboot", "swapon", "kexec_load"], "there is no computer to administer"),
];

impl Syscalls {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        if self.json {
            let call = |entry: &Entry| Call {
                number: entry.number,
                name: entry.name,
                arguments: arguments(entry),
                support: entry.support,
            };
            let calls: Vec<_> = TABLE.iter().map(call).collect();
            return crate::write_json(out, &calls);
        }
        if self.markdown {
            return markdown(out);
        }
        plain(out)
    }
}

fn arguments(entry: &Entry) -> Vec<&'static str> {
    entry.arguments.iter().copied().map(word).collect()
}

fn word(argument: Argument) -> &'static str {
    match argument {
        Argument::Fd => "descriptor",
        Argument::Int => "int",
        Argument::Size => "size",
        Argument::Offset => "offset",
        Argument::Pointer => "pointer",
        Argument::Flags => "flags",
        Argument::Mode => "mode",
        Argument::Signal => "signal",
        Argument::Text => "text",
        Argument::Bytes => "bytes",
    }
}

fn plain(out: &mut impl Write) -> Result<()> {
    for entry in TABLE {
        let shown = format!("{}({})", entry.name, arguments(entry).join(", "));
        match entry.support {
            "" => writeln!(out, "{:4}  {shown}", entry.number)?,
            support => writeln!(out, "{:4}  {shown}: {support}", entry.number)?,
        }
    }
    writeln!(out, "{} system calls", TABLE.len())?;
    Ok(())
}

fn markdown(out: &mut impl Write) -> Result<()> {
    write!(
        out,
        "# System calls

<!-- Written by `kvrm syscalls --markdown`; `KVRM_BLESS=1 cargo test` writes it anew. -->

A [Linux program](linux.md) can make the {} system calls below, with the numbers and the meaning that they have on
ARM64's Linux 6. Where the last column is empty, nothing that programs use is known to be missing.

Any other system call fails with `ENOSYS`, as in a kernel that is older or built without it; `kvrm run --report` tells its
number and how often it was made.

| Number | Name | Arguments | What is different |
|---:|---|---|---|
",
        TABLE.len()
    )?;
    for entry in TABLE {
        let Entry { number, name, support, .. } = entry;
        writeln!(out, "| {number} | `{name}` | {} | {support} |", arguments(entry).join(", "))?;
    }
    write!(out, "\n## What is absent\n\n| System calls | Instead |\n|---|---|\n")?;
    for (names, instead) in ABSENT {
        writeln!(out, "| `{}` | {instead} |", names.join("`, `"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_not_there() {
        let there = |name: &&&str| TABLE.iter().any(|entry| entry.name == **name);
        let found: Vec<_> = ABSENT.iter().flat_map(|(names, _)| *names).filter(there).collect();
        assert!(found.is_empty(), "the page says that there is no {found:?}");
    }
}
