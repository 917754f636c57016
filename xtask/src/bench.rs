//! `cargo xtask bench-peers`: compares kvrm with QEMU's user mode, on the same guests in the same run.
//!
//! Both are timed from outside, from start to end of the process, including translation. Their runs alternate,
//! so that other load affects both, and the fastest of each counts: the speed of QEMU's code varies by up to a
//! factor of three from start to start. [`bench_set`] measures a larger set of programs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench_choice::Choice;
use crate::host::{self, Host};
use crate::shell::{self, Outcome, cargo, command, root};
use crate::timing::timed;
use crate::tools::{self, cannot};
use crate::{bench_linux, bench_linux_page, bench_many, bench_page, bench_set, bench_set_page};

/// Guests and numbers of iterations that take about a second each under QEMU.
pub(crate) const GUESTS: [(&str, u64); 8] = [
    ("loop", 600_000_000),
    ("loop_store", 600_000_000),
    ("collatz", 3_000_000),
    ("sha256", 2_000_000),
    ("sort", 15_000),
    ("crc32", 70_000),
    ("strsearch", 15_000),
    ("matmul", 14_000),
];
/// Guests with floating point or vectors, and numbers of iterations that take about a second or two under QEMU.
const VECTOR_GUESTS: [(&str, u64); 12] = [
    ("nbody", 1_000_000),
    ("nbody_O3", 400_000),
    ("fft", 15_000),
    ("fft_O3", 15_000),
    ("blur", 15_000),
    ("blur_O3", 20_000),
    ("aes", 25_000),
    ("aes_O3", 25_000),
    ("json", 20_000),
    ("json_O3", 20_000),
    ("fmatmul", 700),
    ("fmatmul_O3", 700),
];
/// Number of starts of a short program.
const STARTS: usize = 20;
/// Number of runs of `kvrm bench`.
const REPEATS: usize = 3;

/// A guest under both.
pub(crate) struct Peers {
    pub(crate) guest: &'static str,
    pub(crate) instructions: u64,
    /// Seconds.
    pub(crate) kvrm: f64,
    pub(crate) qemu: f64,
}

/// All measurements.
pub(crate) struct Measurements {
    pub(crate) version: String,
    pub(crate) rounds: usize,
    pub(crate) peers: Vec<Peers>,
    /// Guests with floating point or vectors.
    pub(crate) vector_peers: Vec<Peers>,
    pub(crate) set: bench_set::Measured,
    pub(crate) linux: bench_linux::Measured,
    pub(crate) many: bench_many::Measured,
    /// Executions of 1,000 instructions per second, each after a reset.
    pub(crate) resets: f64,
    pub(crate) scaling: Scaling,
    /// Seconds from start to end of a process that executes three instructions (QEMU: a few dozen).
    pub(crate) start: f64,
    pub(crate) qemu_start: f64,
    pub(crate) memory: Memory,
}

/// Instructions per second of many lanes.
pub(crate) struct Scaling {
    pub(crate) lanes: usize,
    pub(crate) one_thread: f64,
    pub(crate) all_threads: f64,
}

/// Memory of a process with many lanes, in KiB.
pub(crate) struct Memory {
    pub(crate) lanes: u64,
    pub(crate) resident: u64,
    pub(crate) page_tables: u64,
}

/// Options of `cargo xtask bench-peers`.
pub(crate) struct Options {
    rounds: usize,
    print: bool,
    choice: Choice,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options { rounds: 5, print: false, choice: Default::default() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--print" => options.print = true,
                "--only" => {
                    let parts =
                        arguments.next().ok_or("--only needs long, short, linux or lanes")?;
                    options.choice.add_parts(parts)?;
                }
                "--guests" => {
                    let names = arguments.next().ok_or("--guests needs names, with commas")?;
                    options.choice.add_programs(names);
                }
                "--rounds" => {
                    let number = arguments.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
                    options.rounds = number.ok_or("--rounds needs a number, at least 1")?;
                }
                other => return Err(format!("unexpected {other}")),
            }
        }
        Ok(options)
    }

    pub(crate) fn run(&self) -> Outcome {
        if !cfg!(target_os = "linux") {
            return Err("QEMU's user mode runs on Linux only, and so does this".to_string());
        }
        // Before building, which is a load itself.
        let host = Host::describe();
        self.choice.check(&names()?)?;
        tools::qemu()?;
        let qemus = bench_set::qemus()?;
        let kvrm = Kvrm::build()?;
        if host.load.parse().is_ok_and(|load: f64| load > 0.5) {
            println!("the load is {}: something else is running, expect worse numbers", host.load);
        }
        if !self.choice.is_everything() {
            print!("\n{}", self.chosen(&kvrm, &qemus)?);
            return Ok(());
        }
        let measurements = Measurements {
            version: kvrm.version()?,
            rounds: self.rounds,
            peers: kvrm.peers(&GUESTS, self.rounds)?,
            vector_peers: kvrm.peers(&VECTOR_GUESTS, self.rounds)?,
            set: bench_set::measure(&kvrm, &qemus, &self.choice, self.rounds)?,
            linux: bench_linux::measure(&kvrm, &qemus, &self.choice, self.rounds)?,
            many: bench_many::measure(&kvrm, &qemus[0], &self.choice)?,
            resets: kvrm.resets()?,
            scaling: kvrm.scaling()?,
            start: kvrm.start()?,
            qemu_start: qemu_start()?,
            memory: kvrm.memory()?,
        };
        let page = bench_page::page(&host, &measurements);
        if self.print {
            print!("{page}");
            return Ok(());
        }
        println!("\n{}", bench_page::table(&measurements.peers));
        println!("{}", bench_page::table(&measurements.vector_peers));
        print!("{}", bench_set_page::tables(&measurements.set));
        print!("{}", bench_linux_page::tables(&measurements.linux));
        print!("{}", bench_many::table(&measurements.many));
        bench_page::write(&page, &bench_page::summary(&host, &measurements))
    }

    /// Measures what is chosen, and returns tables, or sections of the page.
    fn chosen(&self, kvrm: &Kvrm, qemus: &[bench_set::Qemu]) -> Outcome<String> {
        let (choice, rounds) = (&self.choice, self.rounds);
        let mut text = String::new();
        if choice.has_set() {
            let set = bench_set::measure(kvrm, qemus, choice, rounds)?;
            text += &match self.print {
                true => bench_set_page::section(&set, rounds),
                false => bench_set_page::tables(&set),
            };
        }
        if choice.has_linux() {
            let linux = bench_linux::measure(kvrm, qemus, choice, rounds)?;
            text += &match self.print {
                true => bench_linux_page::section(&linux, rounds),
                false => bench_linux_page::tables(&linux),
            };
        }
        if choice.has_lanes() {
            let many = bench_many::measure(kvrm, &qemus[0], choice)?;
            text += &match self.print {
                true => bench_many::section(&many),
                false => bench_many::table(&many),
            };
        }
        Ok(text)
    }
}

/// Returns the names of all programs that can be chosen.
fn names() -> Outcome<Vec<String>> {
    let guests = bench_set::guests()?.into_iter().map(|guest| guest.name);
    let linux = bench_linux::programs()?.into_iter().map(|program| program.name);
    let many = bench_many::programs()?.into_iter().map(|program| program.name);
    Ok(guests.chain(linux).chain(many).collect())
}

/// The program to measure.
pub(crate) struct Kvrm(PathBuf);

/// Returns the folder where cargo puts what it builds.
pub(crate) fn target_folder() -> Outcome<PathBuf> {
    let metadata = shell::output(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata = json(&metadata)?;
    Ok(metadata["target_directory"].as_str().unwrap_or("target").into())
}

impl Kvrm {
    pub(crate) fn build() -> Outcome<Kvrm> {
        shell::run(cargo().args(["build", "--release", "--package", "kvrm-cli"]))?;
        Ok(Kvrm(target_folder()?.join("release/kvrm")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = command(&self.0);
        command.args(arguments.split_whitespace());
        command
    }

    /// Returns the version, with the commit if there is one.
    pub(crate) fn version(&self) -> Outcome<String> {
        let version = shell::output(&mut self.command("--version"))?;
        let commit = shell::output(command("git").args(["rev-parse", "--short", "HEAD"]));
        let commit = commit.map_or(String::new(), |commit| format!(" ({})", commit.trim()));
        Ok(format!("{}{commit}", version.trim()))
    }

    /// Measures each guest under both, in turns.
    fn peers(&self, guests: &[(&'static str, u64)], rounds: usize) -> Outcome<Vec<Peers>> {
        guests.iter().map(|(guest, iterations)| self.peer(guest, *iterations, rounds)).collect()
    }

    fn peer(&self, guest: &'static str, iterations: u64, rounds: usize) -> Outcome<Peers> {
        let exec = format!(
            "exec guests/bin/{guest}.bin --base 0x10000 --memory 1M --threads 1 --json \
             --max-cycles 1T --set x0=1 --set x1={iterations}"
        );
        let mut peers = Peers { guest, instructions: 0, kvrm: f64::INFINITY, qemu: f64::INFINITY };
        for _ in 0..rounds {
            let (time, text) = timed(&mut self.command(&exec))?;
            peers.kvrm = peers.kvrm.min(time.wall);
            let lane = &json(&text)?["lanes"][0];
            peers.instructions = lane["cycles"].as_u64().unwrap_or(0);
            let ours = number(lane["registers"]["x0"].as_str().unwrap_or(""), guest)?;

            let (time, text) = timed(&mut qemu(guest, iterations))?;
            peers.qemu = peers.qemu.min(time.wall);
            let theirs = number(&text, guest)?;
            if ours != theirs {
                return Err(format!("{guest}: kvrm gave {ours:016x}, QEMU {theirs:016x}"));
            }
        }
        println!("{guest:12} kvrm {:6.3} s   qemu {:6.3} s", peers.kvrm, peers.qemu);
        Ok(peers)
    }

    fn resets(&self) -> Outcome<f64> {
        best(REPEATS, || {
            let text = shell::output(&mut self.command("bench --only reset --threads 1 --json"))?;
            float(&json(&text)?["reset"]["executions_per_second"])
        })
    }

    fn scaling(&self) -> Outcome<Scaling> {
        const LANES: usize = 64;
        let speed = |threads: usize| {
            let bench = format!("bench --only sha256 --lanes {LANES} --threads {threads} --json");
            best(REPEATS, || {
                let text = shell::output(&mut self.command(&bench))?;
                float(&json(&text)?["guests"][0]["instructions_per_second"])
            })
        };
        Ok(Scaling { lanes: LANES, one_thread: speed(1)?, all_threads: speed(0)? })
    }

    /// Measures a process that executes three instructions (`mov x0, #41; add x0, x0, #1; hlt #0`).
    fn start(&self) -> Outcome<f64> {
        let program = Program::write("start", &[0xd280_0520, 0x9100_0400, 0xd440_0000])?;
        let mut exec = self.command("exec");
        exec.arg(&program.0);
        let seconds = best(STARTS, || Ok(-timed(&mut exec)?.0.wall))?;
        Ok(-seconds)
    }

    /// Measures the memory of lanes of 16 MiB that write one page each (`str x0, [x1]; hlt #0`). There are so
    /// many that the result does not fit into a pipe; the process waits with all lanes alive and can be
    /// inspected.
    fn memory(&self) -> Outcome<Memory> {
        const LANES: u64 = 1000;
        let program = Program::write("memory", &[0xf900_0020, 0xd440_0000])?;
        let exec = format!("exec --memory 16M --lanes {LANES} --set x1=0x800000 --json");
        let mut exec = self.command(&exec);
        let mut child = exec.arg(&program.0).stdout(Stdio::piped()).spawn().map_err(message)?;
        let mut output = child.stdout.take().ok_or("no output")?;
        let mut text = vec![0];
        output.read_exact(&mut text).map_err(message)?;
        let status = format!("/proc/{}/status", child.id());
        let status = std::fs::read_to_string(&status).map_err(message)?;
        output.read_to_end(&mut text).map_err(message)?;
        child.wait().map_err(message)?;

        let result = json(&String::from_utf8_lossy(&text))?;
        if result["totals"]["stops"]["HALT"] != LANES {
            return Err(format!("not all lanes halted: {}", result["totals"]["stops"]));
        }
        let kib = |name: &str| {
            let value = host::value(&status, name, ':');
            let number = value.and_then(|value| value.strip_suffix("kB")?.trim().parse().ok());
            number.ok_or(format!("the system does not tell {name}"))
        };
        Ok(Memory { lanes: LANES, resident: kib("VmHWM")?, page_tables: kib("VmPTE")? })
    }
}

fn qemu(guest: &str, iterations: u64) -> Command {
    let mut command = command("qemu-aarch64-static");
    command.arg(format!("guests/linux/{guest}")).args(["1", &iterations.to_string()]);
    command
}

/// Measures the same for QEMU, with a program that does next to nothing.
fn qemu_start() -> Outcome<f64> {
    let seconds = best(STARTS, || Ok(-timed(&mut qemu("loop", 1))?.0.wall))?;
    Ok(-seconds)
}

/// A temporary file of code.
struct Program(PathBuf);

impl Program {
    fn write(name: &str, words: &[u32]) -> Outcome<Program> {
        let name = format!("kvrm-bench-{name}-{}.bin", std::process::id());
        let path = std::env::temp_dir().join(name);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(&path, bytes).map_err(|error| cannot("write", &path, &error))?;
        Ok(Program(path))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A few bytes left in the folder for temporary files do no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns the largest of several measurements.
fn best(times: usize, mut measure: impl FnMut() -> Outcome<f64>) -> Outcome<f64> {
    (0..times).try_fold(f64::NEG_INFINITY, |best, _| Ok(best.max(measure()?)))
}

fn json(text: &str) -> Outcome<Value> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

fn float(value: &Value) -> Outcome<f64> {
    value.as_f64().ok_or(format!("not a number: {value}"))
}

/// Parses a hexadecimal result.
pub(crate) fn number(text: &str, guest: &str) -> Outcome<u64> {
    let digits = text.trim();
    u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16)
        .map_err(|_| format!("{guest}: not a result: {digits:?}"))
}

fn message(error: std::io::Error) -> String {
    format!("cannot measure memory: {error}")
}

/// Returns the path of the page.
pub(crate) fn page_path() -> PathBuf {
    root().join("docs/BENCHMARKS.md")
}
