//! The benchmark set: programs of many kinds in two sizes, beside one or two versions of QEMU.
//!
//! `guests/bench/guests.txt` lists them. What counts is the processor time of the whole process, in which
//! translation counts no matter which thread does it. kvrm and the others take turns.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::bench::{Kvrm, number};
use crate::bench_cache::Cache;
use crate::bench_choice::Choice;
use crate::shell::{self, Outcome, command, root};
use crate::timing::{Time, timed};
use crate::tools::{self, cannot};

/// Guests that nobody looks at while tuning: they tell how fast others will be.
pub(crate) const PUT_ASIDE: [&str; 8] =
    ["threaded", "jpeg", "chess", "dijkstra", "text", "lisp", "sparse", "audio"];

/// The memory for which `guests/bench/bare.ld` lays programs out.
const MEMORY: &str = "2M";
/// More of it. A machine like that interprets with the same host code, but its translations are others.
const MORE_MEMORY: &str = "4M";

/// Runs of the short size for one of the long size: they are quick, and vary more.
const SHORT_RUNS: usize = 4;

/// How much a guest has to do.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Size {
    /// About a second under QEMU.
    Long,
    /// 20 to 50 milliseconds under QEMU.
    Short,
}

impl Size {
    pub(crate) const ALL: [Size; 2] = [Size::Long, Size::Short];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Size::Long => "long",
            Size::Short => "short",
        }
    }

    /// Returns the number of runs for this many rounds.
    pub(crate) fn runs(self, rounds: usize) -> usize {
        match self {
            Size::Long => rounds,
            Size::Short => rounds * SHORT_RUNS,
        }
    }
}

/// A guest and its numbers of iterations.
pub(crate) struct Guest {
    pub(crate) name: String,
    long: u64,
    short: u64,
}

/// Reads the list of guests.
pub(crate) fn guests() -> Outcome<Vec<Guest>> {
    let path = root().join("guests/bench/guests.txt");
    let text = std::fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let guest = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let &[name, _, long, short] = &fields[..] else { return None };
        Some(Guest { name: name.to_string(), long: long.parse().ok()?, short: short.parse().ok()? })
    };
    rows.map(|line| guest(line).ok_or_else(|| format!("guests.txt: not a guest: {line}"))).collect()
}

/// A guest of one size under all.
pub(crate) struct Row {
    pub(crate) guest: String,
    pub(crate) instructions: u64,
    /// kvrm, when the program has never been run.
    pub(crate) first: Time,
    /// kvrm, when its translations are on disk.
    pub(crate) again: Time,
    /// In the order of [`Measured::qemus`].
    pub(crate) qemus: Vec<Time>,
}

impl Row {
    /// A row without measurements.
    pub(crate) fn new(guest: &str, qemus: &[Qemu]) -> Row {
        Row {
            guest: guest.to_string(),
            instructions: 0,
            first: Time::FOREVER,
            again: Time::FOREVER,
            qemus: vec![Time::FOREVER; qemus.len()],
        }
    }

    /// Shows it while others are measured.
    pub(crate) fn print(&self, kind: &str, qemus: &[Qemu]) {
        let progress =
            |name: &str, time: Time| format!("  {name} {:.3} s ({:.3})", time.cpu, time.wall);
        let others = qemus.iter().zip(&self.qemus).map(|(q, t)| progress(&q.name, *t));
        let others: String = others.collect();
        let [first, again] =
            [("first", self.first), ("again", self.again)].map(|(n, t)| progress(n, t));
        println!("{kind:5} {:10} {first}{again}{others}", self.guest);
    }
}

/// What was measured; sizes that were not are empty.
pub(crate) struct Measured {
    /// Such as `QEMU 7.2`.
    pub(crate) qemus: Vec<String>,
    pub(crate) sizes: Vec<(Size, Vec<Row>)>,
}

/// Measures the guests and sizes that are chosen.
pub(crate) fn measure(
    kvrm: &Kvrm,
    qemus: &[Qemu],
    choice: &Choice,
    rounds: usize,
) -> Outcome<Measured> {
    let guests: Vec<_> = guests()?.into_iter().filter(|g| choice.has_program(&g.name)).collect();
    let measure_all = |size: Size| {
        let rows = guests.iter().map(|guest| row(kvrm, qemus, guest, size, size.runs(rounds)));
        Ok((size, rows.collect::<Outcome<Vec<_>>>()?))
    };
    let sizes = Size::ALL.into_iter().filter(|size| choice.has_size(*size));
    let sizes = sizes.map(measure_all).collect::<Outcome<Vec<_>>>()?;
    Ok(Measured { qemus: qemus.iter().map(|qemu| qemu.name.clone()).collect(), sizes })
}

/// A version of QEMU.
pub(crate) struct Qemu {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// Returns the distribution's QEMU, and a newer one where there is one.
pub(crate) fn qemus() -> Outcome<Vec<Qemu>> {
    tools::qemu()?;
    let newer = tools::newer_qemu().unwrap_or_else(|reason| {
        println!("{reason}");
        None
    });
    let paths = std::iter::once(PathBuf::from("qemu-aarch64-static")).chain(newer);
    paths.map(|path| Ok(Qemu { name: version_of(&path)?, path })).collect()
}

/// Returns the name with the first two numbers of the version.
fn version_of(qemu: &PathBuf) -> Outcome<String> {
    let text = shell::output(command(qemu).arg("--version"))?;
    let version = text.split_whitespace().skip_while(|word| *word != "version").nth(1);
    let numbers: Vec<_> = version.unwrap_or("unknown").split('.').take(2).collect();
    Ok(format!("QEMU {}", numbers.join(".")))
}

/// Measures a guest under all in turns, and compares their results.
fn row(kvrm: &Kvrm, qemus: &[Qemu], guest: &Guest, size: Size, runs: usize) -> Outcome<Row> {
    let name = &guest.name;
    let iterations = match size {
        Size::Long => guest.long,
        Size::Short => guest.short,
    };
    let exec = |memory: &str, cache: &Path| {
        let mut command = kvrm.command(&format!(
            "exec guests/bench/bin/{name}.bin --base 0x10000 --memory {memory} --threads 1 --json \
             --max-cycles 1T --set x0=1 --set x1={iterations}"
        ));
        command.env("KVRM_CACHE_DIR", cache);
        command
    };
    let cache = Cache::new()?;
    timed(&mut exec(MORE_MEMORY, &cache.unknown()))?;
    let mut row = Row::new(name, qemus);
    for _ in 0..runs {
        cache.forget(|_| true)?;
        let (time, text) = timed(&mut exec(MEMORY, &cache.known()))?;
        row.first = row.first.best(time);
        let (ours, instructions) = result(&text, name)?;
        row.instructions = instructions;
        let (time, text) = timed(&mut exec(MEMORY, &cache.known()))?;
        row.again = row.again.best(time);
        if result(&text, name)? != (ours, instructions) {
            return Err(format!("{name}: kvrm gave something else when it was run again"));
        }
        for (qemu, best) in qemus.iter().zip(&mut row.qemus) {
            let (time, text) = timed(&mut linux_program(qemu, name, iterations))?;
            *best = best.best(time);
            let theirs = number(&text, name)?;
            if ours != theirs {
                let other = &qemu.name;
                return Err(format!("{name}: kvrm gave {ours:016x}, {other} {theirs:016x}"));
            }
        }
    }
    row.print(size.name(), qemus);
    Ok(row)
}

fn linux_program(qemu: &Qemu, name: &str, iterations: u64) -> Command {
    let mut command = command(&qemu.path);
    command.arg(format!("guests/bench/linux/{name}")).args(["1", &iterations.to_string()]);
    command
}

/// Returns x0 and the number of instructions from what `kvrm exec` printed.
fn result(text: &str, name: &str) -> Outcome<(u64, u64)> {
    let output: Value = serde_json::from_str(text).map_err(|e| format!("{name}: not JSON: {e}"))?;
    let lane = &output["lanes"][0];
    // Registers that are zero are left out.
    let x0 = number(lane["registers"]["x0"].as_str().unwrap_or("0"), name)?;
    Ok((x0, lane["cycles"].as_u64().unwrap_or(0)))
}
