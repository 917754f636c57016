//! Writes the page of benchmarks, and the part of README with the same measurements.

use std::fs;
use std::path::Path;

use crate::bench::{Measurements, Peers, page_path};
use crate::host::Host;
use crate::shell::{Outcome, root};
use crate::text::{Section, thousands};
use crate::tools::cannot;
use crate::{bench_linux_page, bench_many, bench_set_page, gpu_page};

const README: Section = Section {
    start: "<!-- Written by `cargo xtask bench-peers`. -->",
    end: "<!-- End of what it writes. -->",
};

/// Returns the page docs/BENCHMARKS.md.
pub(crate) fn page(host: &Host, m: &Measurements) -> String {
    let cores = host.cores;
    let scaling = &m.scaling;
    let threads = format!(
        "{} lanes of `sha256` run {:.2} billion instructions per second on one thread and\n  {:.2} on {cores} \
         ({:.2} times as many)",
        scaling.lanes,
        scaling.one_thread / 1e9,
        scaling.all_threads / 1e9,
        scaling.all_threads / scaling.one_thread
    );
    let memory = format!(
        "{} lanes with 16 MiB of private memory each, each of which writes one page, take {} of resident\n  \
         memory, the program included, and {} of page tables in the system",
        thousands(m.memory.lanes),
        mebibytes(m.memory.resident),
        mebibytes(m.memory.page_tables)
    );
    format!(
        "\
# Benchmarks

`cargo xtask bench-peers` writes this page, except for the GPU sections, and the table in the README. It installs what
it needs and takes about three quarters of an hour. Run it on an idle computer.

| | |
|---|---|
| date | {date} |
| processor | {cpu}, {cores} cores |
| system | {system} |
| load when it began | {load} |
| kvrm | {version} |
| QEMU | {qemu} |
| Rust | {rustc} |

## One machine, one thread, beside QEMU

Each program of [guests/](../guests/README.md) is built twice from one source: as a raw image for kvrm, and as a static
Linux program for `qemu-aarch64-static`. Times are those of the whole process, from start to end, including translation.
kvrm and QEMU take turns; the best of {rounds} runs counts for each. Their results are compared. The last column is
above 1 where kvrm is faster.

{table}
These use integer instructions only. The next have floating point or vectors; names that end in `_O3` are built with
`-O3`, which makes vectors of loops, the others with `-O2`.

{vector_table}
kvrm counts every instruction exactly and checks every access against the size
of the guest's memory. QEMU's user mode does not count and leaves checking to the host's page tables, but runs whole
Linux programs.

{set}{linux}{many}## Other measurements

- Resets: {resets} runs of 1,000 instructions per second on one thread, each after a reset of registers and memory
  (`kvrm bench --only reset`).
- Threads: {threads}.
- Start-up: `kvrm exec` with three instructions takes {start:.1} ms from start to end of the process (best of 20).
  `qemu-aarch64-static` with a program that does next to nothing takes {qemu_start:.1} ms.
- Memory: {memory}.
",
        date = host.date,
        cpu = host.cpu,
        system = host.system,
        load = host.load,
        version = m.version,
        qemu = host.qemu,
        rustc = host.rustc,
        rounds = m.rounds,
        table = table(&m.peers),
        vector_table = table(&m.vector_peers),
        set = bench_set_page::section(&m.set, m.rounds),
        linux = bench_linux_page::section(&m.linux, m.rounds),
        many = bench_many::section(&m.many),
        resets = thousands(m.resets as u64),
        start = m.start * 1e3,
        qemu_start = m.qemu_start * 1e3,
    )
}

/// Returns the table that compares kvrm with QEMU.
pub(crate) fn table(peers: &[Peers]) -> String {
    let row = |p: &Peers| {
        format!(
            "| `{}` | {} | {:.3} | {:.3} | {:.2} | {:.2} |\n",
            p.guest,
            thousands(p.instructions),
            p.kvrm,
            p.qemu,
            rate(p, p.kvrm),
            p.qemu / p.kvrm
        )
    };
    let rows: String = peers.iter().map(row).collect();
    format!(
        "\
| program | instructions | kvrm, s | QEMU, s | kvrm, billion instructions/s | QEMU's time / kvrm's |
|---|---:|---:|---:|---:|---:|
{rows}| geometric mean | | | | | {:.2} |
",
        mean(peers)
    )
}

/// Returns the part for README.
pub(crate) fn summary(host: &Host, m: &Measurements) -> String {
    let names: Vec<_> = m.peers.iter().map(|p| format!("`{}`", p.guest)).collect();
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let cells = |label: &str, value: &dyn Fn(&Peers) -> f64| {
        let values = m.peers.iter().map(|p| format!("{:.2}", value(p)));
        line(&std::iter::once(label.to_string()).chain(values).collect::<Vec<_>>())
    };
    let header = line(&[&["one machine, one thread".to_string()], &names[..]].concat());
    format!(
        "\
{header}|---|{}
{}{}
One thread resets a machine and runs 1,000 instructions {} times a second. A process that runs three
instructions takes {:.1} ms from start to end. {} machines of 16 MiB that have each written a page take {}.
({}, {})
",
        "---:|".repeat(names.len()),
        cells("billion instructions/s", &|p| rate(p, p.kvrm)),
        cells("times as fast as QEMU", &|p| p.qemu / p.kvrm),
        thousands(m.resets as u64),
        m.start * 1e3,
        thousands(m.memory.lanes),
        mebibytes(m.memory.resident + m.memory.page_tables),
        host.cpu,
        host.date,
    )
}

/// Writes the page, except for the GPU section and what follows it, and the summary in README.
pub(crate) fn write(page: &str, summary: &str) -> Outcome {
    let path = page_path();
    let old = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let gpu = gpu_page::SECTION.find(&old).and_then(|section| old.find(section));
    let rest = gpu.map_or(String::new(), |at| format!("\n{}", &old[at..]));
    fs::write(&path, format!("{page}{rest}")).map_err(|error| cannot("write", &path, &error))?;
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let readme =
        README.replace(&readme, summary).ok_or("README.md has no place for the summary")?;
    fs::write(&path, readme).map_err(|error| cannot("write", &path, &error))?;
    println!("written: docs/BENCHMARKS.md and the table in {}", Path::new("README.md").display());
    Ok(())
}

/// Returns billions of instructions per second.
fn rate(peers: &Peers, seconds: f64) -> f64 {
    peers.instructions as f64 / seconds / 1e9
}

/// Returns the geometric mean of all ratios.
fn mean(peers: &[Peers]) -> f64 {
    let sum: f64 = peers.iter().map(|p| (p.qemu / p.kvrm).ln()).sum();
    (sum / peers.len() as f64).exp()
}

fn mebibytes(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}
