//! Programs of Debian for arm64 in many lanes of one `kvrm run`, and in as many processes of QEMU.
//!
//! `benchmarks/linux/lanes.txt` lists the command lines. A process of QEMU takes about as long as the next, so there are fewer of
//! them than lanes, and what counts is the time for each. What lanes print and how they end must be what QEMU's processes do.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::bench::Kvrm;
use crate::bench_choice::Choice;
use crate::bench_linux::{ENVIRONMENT, folder, path_of};
use crate::bench_set::Qemu;
use crate::shell::{Outcome, command};
use crate::text::thousands;
use crate::timing::{Time, measured, timed_output};
use crate::tools::{self, cannot};

/// A command line.
pub(crate) struct Program {
    pub(crate) name: String,
    lanes: u64,
    /// Of QEMU.
    processes: u64,
    /// In Debian's folder.
    path: String,
    args: Vec<String>,
}

/// What was measured.
pub(crate) struct Measured {
    /// Such as `QEMU 7.2`.
    pub(crate) qemu: String,
    pub(crate) rows: Vec<Row>,
}

/// A program under both.
pub(crate) struct Row {
    pub(crate) program: String,
    pub(crate) lanes: u64,
    /// Of an average lane.
    pub(crate) instructions: u64,
    /// For each lane.
    pub(crate) kvrm: Time,
    /// For each process.
    pub(crate) qemu: Time,
}

/// Reads the list of command lines.
pub(crate) fn programs() -> Outcome<Vec<Program>> {
    let path = folder().join("lanes.txt");
    let text = std::fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse(line).ok_or_else(|| format!("lanes.txt: what is {line}?"))).collect()
}

fn parse(line: &str) -> Option<Program> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_string();
    let (lanes, processes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let path = path_of(words.next()?);
    let args = words.map(str::to_string).collect();
    Some(Program { name, lanes, processes, path, args })
}

/// Measures the programs that are chosen.
pub(crate) fn measure(kvrm: &Kvrm, qemu: &Qemu, choice: &Choice) -> Outcome<Measured> {
    let programs = programs()?;
    let chosen = programs.iter().filter(|program| choice.has_program(&program.name));
    let bench = Bench { kvrm, qemu, debian: tools::debian_arm64()? };
    let rows = chosen.map(|program| bench.row(program)).collect::<Outcome<Vec<_>>>()?;
    Ok(Measured { qemu: qemu.name.clone(), rows })
}

/// Returns the section of docs/BENCHMARKS.md.
pub(crate) fn section(measured: &Measured) -> String {
    format!(
        "\
## One Linux program, many times

[Command lines](../benchmarks/linux/lanes.txt) that are another one in each lane, in one `kvrm run --lanes` on all cores, and
in processes of QEMU, one for each core at a time. Times are those for each lane and each process: processor time, and time
on the clock in parentheses; those of kvrm include the start and the table, with an empty cache. QEMU runs some hundred of the
lanes, whose outputs are compared.

{table}
",
        table = table(measured)
    )
}

/// Returns the table.
pub(crate) fn table(measured: &Measured) -> String {
    let mut text = format!(
        "| program | lanes | instructions of each | kvrm, ms for each | {qemu}, ms for each | {qemu} / kvrm |\n\
         |---|---:|---:|---:|---:|---:|\n",
        qemu = measured.qemu
    );
    let times = |time: Time| format!("{:.3} ({:.3})", time.cpu * 1e3, time.wall * 1e3);
    for row in &measured.rows {
        let Row { program, lanes, instructions, kvrm, qemu } = row;
        writeln!(
            text,
            "| `{program}` | {} | {} | {} | {} | {:.1} ({:.1}) |",
            thousands(*lanes),
            thousands(*instructions),
            times(*kvrm),
            times(*qemu),
            qemu.cpu / kvrm.cpu,
            qemu.wall / kvrm.wall,
        )
        .expect("a string");
    }
    text
}

/// What measuring needs.
struct Bench<'a> {
    kvrm: &'a Kvrm,
    qemu: &'a Qemu,
    debian: PathBuf,
}

impl Bench<'_> {
    fn row(&self, program: &Program) -> Outcome<Row> {
        let folder =
            tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let results = folder.path().join("results.jsonl");
        let mut kvrm = self.kvrm(program, &results);
        kvrm.env("KVRM_CACHE_DIR", folder.path().join("cache"));
        let (time, output) = timed_output(&mut kvrm)?;
        if !output.status.success() {
            return Err(format!("{}: {}", program.name, String::from_utf8_lossy(&output.stderr)));
        }
        let table = table_of(&results)?;
        if table.len() as u64 != program.lanes {
            return Err(format!("{}: the table has {} lanes", program.name, table.len()));
        }
        let instructions: u64 =
            table.values().filter_map(|lane| lane["instructions"].as_u64()).sum();
        let (qemu_time, outputs) = measured(|| self.processes(program))?;
        for (lane, output) in (0..).zip(&outputs) {
            check(&program.name, &table[&lane], output)?;
        }
        let row = Row {
            program: program.name.clone(),
            lanes: program.lanes,
            instructions: instructions / program.lanes,
            kvrm: time.of_each(program.lanes),
            qemu: qemu_time.of_each(program.processes),
        };
        println!(
            "lanes {:12} kvrm {:8.3} ms   {} {:8.3} ms",
            row.program,
            row.kvrm.cpu * 1e3,
            self.qemu.name,
            row.qemu.cpu * 1e3
        );
        Ok(row)
    }

    fn kvrm(&self, program: &Program, results: &Path) -> Command {
        let mut command = self.kvrm.command("run --engine cpu --root");
        command.arg(&self.debian).args(["--lanes", &program.lanes.to_string()]);
        command.arg("--results").arg(results);
        for (name, value) in ENVIRONMENT {
            command.arg("--env").arg(format!("{name}={value}"));
        }
        command.arg(&program.path).args(&program.args);
        command
    }

    /// Runs QEMU's processes, one for each core at a time.
    fn processes(&self, program: &Program) -> Outcome<Vec<Output>> {
        let outputs = Mutex::new(Vec::new());
        let next = AtomicU64::new(0);
        let work = || -> Outcome {
            loop {
                let lane = next.fetch_add(1, Ordering::Relaxed);
                if lane >= program.processes {
                    return Ok(());
                }
                let output = self.process(program, lane).output();
                let output = output.map_err(|error| format!("cannot start QEMU: {error}"))?;
                outputs.lock().expect("no thread has panicked").push((lane, output));
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let results = workers.into_iter().map(|worker| worker.join().expect("no panic"));
            results.collect::<Outcome<()>>()
        })?;
        let mut outputs = outputs.into_inner().expect("no thread has panicked");
        outputs.sort_by_key(|(lane, _)| *lane);
        Ok(outputs.into_iter().map(|(_, output)| output).collect())
    }

    fn process(&self, program: &Program, lane: u64) -> Command {
        let mut command = command(&self.qemu.path);
        command.arg("-L").arg(&self.debian).args(["-0", &program.path]);
        command.arg(self.debian.join(program.path.trim_start_matches('/')));
        let args = program.args.iter();
        command.args(args.map(|arg| arg.replace("{lane}", &lane.to_string())));
        command.env_clear().envs(ENVIRONMENT);
        command
    }
}

/// Returns the lines of a table by lane.
fn table_of(path: &Path) -> Outcome<HashMap<u64, Value>> {
    let text = std::fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
    let lines = text.lines().map(|line| {
        let lane: Value =
            serde_json::from_str(line).map_err(|error| format!("a line is not JSON: {error}"))?;
        let number = lane["lane"].as_u64().ok_or("a line has no lane")?;
        Ok((number, lane))
    });
    lines.collect()
}

/// Fails if a lane did something else than QEMU did.
fn check(program: &str, lane: &Value, qemu: &Output) -> Outcome {
    let code = qemu.status.code().map(i64::from);
    let printed = String::from_utf8_lossy(&qemu.stdout);
    if lane["exit_code"].as_i64() == code && lane["stdout"].as_str() == Some(&printed) {
        return Ok(());
    }
    Err(format!("{program}: QEMU did something else ({}, {printed:?}) than {lane}", qemu.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_read() {
        let programs = programs().unwrap();
        let expr = programs.iter().find(|program| program.name == "expr").unwrap();
        assert_eq!((expr.lanes, &expr.path[..]), (10_000, "/usr/bin/busybox"));
        assert_eq!(expr.args, ["expr", "{lane}", "*", "3"]);
        assert!(programs.iter().all(|program| program.processes <= program.lanes));
    }

    #[test]
    fn times_are_those_of_a_lane() {
        let row = Row {
            program: "lua".to_string(),
            lanes: 2000,
            instructions: 1234,
            kvrm: Time { cpu: 2.0, wall: 1.0 }.of_each(2000),
            qemu: Time { cpu: 4.0, wall: 4.0 }.of_each(100),
        };
        let text = table(&Measured { qemu: "QEMU 7.2".to_string(), rows: vec![row] });
        assert!(
            text.ends_with(
                "| `lua` | 2,000 | 1,234 | 1.000 (0.500) | 40.000 (40.000) | 40.0 (80.0) |\n"
            ),
            "{text}"
        );
    }
}
