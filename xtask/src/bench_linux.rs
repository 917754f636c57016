//! Programs of Debian for arm64, under `kvrm run` and under one or two versions of QEMU.
//!
//! `benchmarks/linux/programs.txt` lists the command lines. Both get the same files: QEMU looks for absolute paths in
//! Debian's folder (`-L`), and programs run in a folder with their inputs. What counts is the processor time of the whole
//! process; what programs print and how they end must be the same.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::bench::Kvrm;
use crate::bench_cache::Cache;
use crate::bench_choice::Choice;
use crate::bench_set::{Qemu, Row};
use crate::shell::{Outcome, command, root};
use crate::timing::{timed, timed_output};
use crate::tools::{self, cannot};

/// The environment of every program.
pub(crate) const ENVIRONMENT: [(&str, &str); 3] =
    [("PATH", "/usr/bin"), ("LC_ALL", "C"), ("HOME", "/work")];

/// Bytes of the text that programs work on.
const CORPUS: u64 = 10_000_000;
/// Bytes of the beginning of it.
const PART: u64 = 2_000_000;
/// How often the large file repeats it.
const TIMES: usize = 4;

/// Runs of programs that end at once for one of the others.
const START_RUNS: usize = 6;

/// Which table a program belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Work,
    Start,
    /// Nobody looks at these while tuning: they tell how fast others will be.
    Aside,
}

impl Group {
    pub(crate) const ALL: [Group; 3] = [Group::Work, Group::Start, Group::Aside];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Group::Work => "work",
            Group::Start => "start",
            Group::Aside => "aside",
        }
    }

    /// Returns the number of runs for this many rounds.
    pub(crate) fn runs(self, rounds: usize) -> usize {
        match self {
            Group::Work | Group::Aside => rounds,
            Group::Start => rounds * START_RUNS,
        }
    }
}

/// A command line.
pub(crate) struct Program {
    pub(crate) group: Group,
    pub(crate) name: String,
    /// In Debian's folder.
    path: String,
    args: Vec<String>,
}

/// What was measured.
pub(crate) struct Measured {
    /// Such as `QEMU 7.2`.
    pub(crate) qemus: Vec<String>,
    pub(crate) groups: Vec<(Group, Vec<Row>)>,
}

/// Reads the list of command lines.
pub(crate) fn programs() -> Outcome<Vec<Program>> {
    let path = folder().join("programs.txt");
    let text = std::fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse(line).ok_or_else(|| format!("programs.txt: what is {line}?"))).collect()
}

/// Returns the folder with what programs need.
pub(crate) fn folder() -> PathBuf {
    root().join("benchmarks/linux")
}

fn parse(line: &str) -> Option<Program> {
    let mut words = line.split_whitespace();
    let group = words.next()?;
    let group = Group::ALL.into_iter().find(|known| known.name() == group)?;
    let (name, program) = (words.next()?.to_string(), words.next()?);
    let args = words.map(|word| if word == "''" { "" } else { word }.to_string()).collect();
    Some(Program { group, name, path: path_of(program), args })
}

/// Returns where a program is in Debian's folder.
pub(crate) fn path_of(program: &str) -> String {
    match program.starts_with('/') {
        true => program.to_string(),
        false => format!("/usr/bin/{program}"),
    }
}

/// Measures the programs that are chosen.
pub(crate) fn measure(
    kvrm: &Kvrm,
    qemus: &[Qemu],
    choice: &Choice,
    rounds: usize,
) -> Outcome<Measured> {
    let programs: Vec<_> =
        programs()?.into_iter().filter(|program| choice.has_program(&program.name)).collect();
    if programs.is_empty() {
        return Ok(Measured { qemus: Vec::new(), groups: Vec::new() });
    }
    let debian = tools::debian_arm64()?;
    let inputs = inputs(&debian)?;
    let interpreter = interpreter(kvrm)?;
    let bench = Bench { kvrm, qemus, debian, inputs, interpreter };
    let measure_group = |group: Group| {
        let of_group = programs.iter().filter(|program| program.group == group);
        let rows = of_group.map(|program| bench.row(program, group.runs(rounds)));
        Ok((group, rows.collect::<Outcome<Vec<_>>>()?))
    };
    let groups = Group::ALL.into_iter().map(measure_group).collect::<Outcome<Vec<_>>>()?;
    Ok(Measured { qemus: qemus.iter().map(|qemu| qemu.name.clone()).collect(), groups })
}

/// Returns the names of the entries in kvrm's cache with which it interprets: those of a program that ends before anything of
/// it is translated. They are the same for all programs.
fn interpreter(kvrm: &Kvrm) -> Outcome<Vec<OsString>> {
    let cache = Cache::new()?;
    let mut command = kvrm.command("run guests/linux/collatz 1 1");
    timed(command.env("KVRM_CACHE_DIR", cache.unknown()))?;
    cache.names()
}

/// Makes a folder with the files that programs need.
fn inputs(debian: &Path) -> Outcome<tempfile::TempDir> {
    let inputs = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let scripts = files(&folder())?;
    for script in scripts {
        let to = inputs.path().join(script.file_name().unwrap_or_default());
        std::fs::copy(&script, &to).map_err(|error| cannot("copy", &script, &error))?;
    }
    let corpus = corpus(&debian.join("usr/lib/python3.11"))?;
    let parts =
        [("corpus", corpus.len(), 1), ("part", PART as usize, 1), ("large", corpus.len(), TIMES)];
    for (name, len, times) in parts {
        let path = inputs.path().join(name);
        let write = || {
            let mut file = std::fs::File::create(&path)?;
            (0..times).try_for_each(|_| file.write_all(&corpus[..len]))
        };
        write().map_err(|error: std::io::Error| cannot("write", &path, &error))?;
    }
    Ok(inputs)
}

/// Returns sources of Python's library one after the other, in the order of their names.
fn corpus(library: &Path) -> Outcome<Vec<u8>> {
    let mut text = Vec::new();
    let mut folders = vec![library.to_path_buf()];
    while let Some(folder) = folders.pop()
        && (text.len() as u64) < CORPUS
    {
        for path in files(&folder)? {
            if path.extension() == Some("py".as_ref()) {
                text.extend(std::fs::read(&path).map_err(|error| cannot("read", &path, &error))?);
            }
        }
        folders.extend(entries(&folder)?.into_iter().rev().filter(|path| is_folder(path)));
    }
    if (text.len() as u64) < CORPUS {
        return Err(format!("{} has less than {CORPUS} bytes of sources", library.display()));
    }
    text.truncate(CORPUS as usize);
    Ok(text)
}

/// True for folders, but not for links to them.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Returns the plain files of a folder, by their names.
fn files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    Ok(entries(folder)?.into_iter().filter(is_file).collect())
}

fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    };
    let mut paths = list().map_err(|error| cannot("read", folder, &error))?;
    paths.sort();
    Ok(paths)
}

/// What measuring needs.
struct Bench<'a> {
    kvrm: &'a Kvrm,
    qemus: &'a [Qemu],
    debian: PathBuf,
    inputs: tempfile::TempDir,
    /// Names of entries in the cache.
    interpreter: Vec<OsString>,
}

impl Bench<'_> {
    /// Measures a program under all in turns, and compares what it prints.
    fn row(&self, program: &Program, runs: usize) -> Outcome<Row> {
        let mut row = Row::new(&program.name, self.qemus);
        let cache = Cache::new()?;
        let report = self.inputs.path().join("report.json");
        let mut kvrm = self.kvrm(program, &cache.unknown(), Some(&report));
        let (_, expected) = timed_output(&mut kvrm)?;
        row.instructions = instructions(&report)?;
        let check = |who: &str, found: Output| {
            if (found.status, &found.stdout) == (expected.status, &expected.stdout) {
                return Ok(());
            }
            let messages =
                [&expected, &found].map(|output| String::from_utf8_lossy(&output.stderr));
            Err(format!(
                "{}: {who} did something else ({}) than kvrm did ({})\nkvrm: {}\n{who}: {}",
                program.name, found.status, expected.status, messages[0], messages[1]
            ))
        };
        for _ in 0..runs {
            cache.forget(|name| self.interpreter.contains(name))?;
            let (time, output) = timed_output(&mut self.kvrm(program, &cache.known(), None))?;
            row.first = row.first.best(time);
            check("kvrm, in a first run,", output)?;
            let (time, output) = timed_output(&mut self.kvrm(program, &cache.known(), None))?;
            row.again = row.again.best(time);
            check("kvrm, when it was run again,", output)?;
            for (qemu, best) in self.qemus.iter().zip(&mut row.qemus) {
                let (time, output) = timed_output(&mut self.qemu(program, qemu))?;
                *best = best.best(time);
                check(&qemu.name, output)?;
            }
        }
        row.print(program.group.name(), self.qemus);
        Ok(row)
    }

    fn kvrm(&self, program: &Program, cache: &Path, report: Option<&Path>) -> Command {
        let mut command = self.kvrm.command("run --engine cpu --cwd /work --root");
        command.arg(&self.debian).arg("--bind");
        command.arg(format!("{}:/work", self.inputs.path().display()));
        for (name, value) in ENVIRONMENT {
            command.arg("--env").arg(format!("{name}={value}"));
        }
        if let Some(report) = report {
            command.arg("--report-json").arg(report);
        }
        command.arg(&program.path).args(&program.args);
        command.env("KVRM_CACHE_DIR", cache);
        command
    }

    fn qemu(&self, program: &Program, qemu: &Qemu) -> Command {
        let mut command = command(&qemu.path);
        command.arg("-L").arg(&self.debian).args(["-0", &program.path]);
        command.arg(self.debian.join(program.path.trim_start_matches('/'))).args(&program.args);
        command.current_dir(self.inputs.path()).env_clear().envs(ENVIRONMENT);
        command
    }
}

/// Returns the number of instructions that a report tells.
fn instructions(report: &Path) -> Outcome<u64> {
    let text = std::fs::read_to_string(report).map_err(|error| cannot("read", report, &error))?;
    let report: Value =
        serde_json::from_str(&text).map_err(|error| format!("a report is not JSON: {error}"))?;
    report["instructions"].as_u64().ok_or_else(|| "a report tells no instructions".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_read() {
        let programs = programs().unwrap();
        let count = |group| programs.iter().filter(|program| program.group == group).count();
        assert!(count(Group::Work) >= 11 && count(Group::Start) >= 4 && count(Group::Aside) >= 4);
        let lua = programs.iter().find(|p| p.group == Group::Start && p.name == "lua").unwrap();
        assert_eq!(
            (&lua.path[..], &lua.args[..]),
            ("/usr/bin/lua5.4", &["-e".into(), "".into()][..])
        );
    }
}
