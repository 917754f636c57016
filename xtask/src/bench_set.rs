//! The benchmark set: programs of many kinds in two sizes, beside one or two versions of QEMU.
//!
//! `guests/bench/guests.txt` lists them. What counts is the processor time of the whole process, in which
//! translation counts no matter which thread does it. kvrm and the others take turns.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::bench::{Kvrm, number};
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
    const ALL: [Size; 2] = [Size::Long, Size::Short];

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

/// What to measure.
#[derive(Default)]
pub(crate) struct Choice {
    /// Both, if there is none.
    sizes: Vec<Size>,
    /// All, if there is none.
    guests: Vec<String>,
}

impl Choice {
    /// Adds sizes from a list with commas.
    pub(crate) fn add_sizes(&mut self, list: &str) -> Result<(), String> {
        for name in list.split(',') {
            let size = Size::ALL.into_iter().find(|size| size.name() == name);
            self.sizes.push(size.ok_or_else(|| format!("no size {name}; there are long, short"))?);
        }
        Ok(())
    }

    /// Adds guests from a list with commas.
    pub(crate) fn add_guests(&mut self, list: &str) {
        self.guests.extend(list.split(',').map(str::to_string));
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.sizes.is_empty() && self.guests.is_empty()
    }

    fn has(&self, size: Size) -> bool {
        self.sizes.is_empty() || self.sizes.contains(&size)
    }

    /// Returns the guests that are chosen.
    fn of(&self, all: Vec<Guest>) -> Outcome<Vec<Guest>> {
        if let Some(name) = self.guests.iter().find(|name| !all.iter().any(|g| g.name == **name)) {
            let names: Vec<_> = all.iter().map(|guest| guest.name.as_str()).collect();
            return Err(format!("no guest {name} in the set; there are {}", names.join(", ")));
        }
        let chosen = |guest: &Guest| self.guests.is_empty() || self.guests.contains(&guest.name);
        Ok(all.into_iter().filter(chosen).collect())
    }
}

/// A guest and its numbers of iterations.
struct Guest {
    name: String,
    long: u64,
    short: u64,
}

/// Reads the list of guests.
fn guests() -> Outcome<Vec<Guest>> {
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

/// What was measured; sizes that were not are empty.
pub(crate) struct Measured {
    /// Such as `QEMU 7.2`.
    pub(crate) qemus: Vec<String>,
    pub(crate) sizes: Vec<(Size, Vec<Row>)>,
}

/// Measures the guests and sizes that are chosen.
pub(crate) fn measure(kvrm: &Kvrm, choice: &Choice, rounds: usize) -> Outcome<Measured> {
    let guests = choice.of(guests()?)?;
    let qemus = qemus()?;
    let measure_all = |size: Size| {
        let rows = guests.iter().map(|guest| row(kvrm, &qemus, guest, size, size.runs(rounds)));
        Ok((size, rows.collect::<Outcome<Vec<_>>>()?))
    };
    let sizes = Size::ALL.into_iter().filter(|size| choice.has(*size));
    let sizes = sizes.map(measure_all).collect::<Outcome<Vec<_>>>()?;
    Ok(Measured { qemus: qemus.into_iter().map(|qemu| qemu.name).collect(), sizes })
}

/// A version of QEMU.
struct Qemu {
    name: String,
    path: PathBuf,
}

/// Returns the distribution's QEMU, and a newer one where there is one.
fn qemus() -> Outcome<Vec<Qemu>> {
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
    timed(&mut exec(MORE_MEMORY, cache.unknown()))?;
    let times = vec![Time::FOREVER; qemus.len()];
    let (first, again) = (Time::FOREVER, Time::FOREVER);
    let mut row = Row { guest: name.clone(), instructions: 0, first, again, qemus: times };
    for _ in 0..runs {
        cache.forget()?;
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
    let others: String = qemus.iter().zip(&row.qemus).map(|(q, t)| progress(&q.name, *t)).collect();
    let [first, again] = [("first", row.first), ("again", row.again)].map(|(n, t)| progress(n, t));
    println!("{:5} {name:10} {first}{again}{others}", size.name());
    Ok(row)
}

/// Caches of kvrm: what it interprets with is in both.
struct Cache(tempfile::TempDir);

impl Cache {
    fn new() -> Outcome<Cache> {
        let folder =
            tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        Ok(Cache(folder))
    }

    /// Where the program has not been run.
    fn unknown(&self) -> &Path {
        self.0.path()
    }

    /// Where it may have been.
    fn known(&self) -> PathBuf {
        self.0.path().join("known")
    }

    /// Makes both the same.
    fn forget(&self) -> Outcome {
        let (from, to) = (self.unknown().join("kernels"), self.known().join("kernels"));
        let copy = || {
            if to.exists() {
                std::fs::remove_dir_all(&to)?;
            }
            std::fs::create_dir_all(&to)?;
            for entry in std::fs::read_dir(&from)? {
                let entry = entry?;
                std::fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
            Ok(())
        };
        copy().map_err(|error: std::io::Error| cannot("copy", &from, &error))
    }
}

fn progress(name: &str, time: Time) -> String {
    format!("  {name} {:.3} s ({:.3})", time.cpu, time.wall)
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
