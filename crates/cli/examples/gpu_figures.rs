//! Measures what `kvrm bench` does not: memory, resets, cancelling, and running out of memory.
//!
//! Prints JSON, which `cargo xtask gpu-report` compares with what is wanted and makes a page of. Any engine
//! can be measured, with fewer lanes:
//!
//! ```text
//! cargo run --release --package kvrm-cli --example gpu_figures -- --engine cpu --divide 256
//! ```

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::Parser;
use kvrm::{EngineKind, Lanes, Machine, Reg, Result, RunControl, Stop};
use serde::Serialize;

/// Measures memory, resets, cancelling and running out of memory
#[derive(Parser)]
struct Options {
    /// Engine to run on
    #[arg(long, value_name = "NAME", default_value = "cuda")]
    engine: EngineKind,

    /// Run so many times fewer lanes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    divide: u16,
}

/// Everything that is printed.
#[derive(Serialize)]
struct Figures {
    engine: &'static str,
    memory: Memory,
    resets: Vec<Reset>,
    cancel: Cancel,
    /// Not on engines whose memory is the computer's.
    full: Option<Full>,
}

/// What lanes cost that have written some of their memory.
#[derive(Serialize)]
struct Memory {
    lanes: usize,
    image_bytes: u64,
    written_bytes_per_lane: u64,
    /// Of the GPU's memory, everything the process has there; nothing if there is no `nvidia-smi` to ask.
    used_bytes: Option<u64>,
}

/// What resetting all lanes takes after a run, in microseconds per lane; the best of some rounds.
#[derive(Serialize)]
struct Reset {
    lanes: usize,
    written_bytes_per_lane: u64,
    reset_us: f64,
    /// The same and a register set in each lane.
    reset_and_set_us: f64,
}

/// How soon a run ends.
#[derive(Serialize)]
struct Cancel {
    lanes: usize,
    /// The longest of some rounds.
    milliseconds: f64,
    /// Registers agreed with counts, and lanes went on to an exact limit.
    exact: bool,
}

/// Lanes that write more memory than there is.
#[derive(Serialize)]
struct Full {
    lanes: usize,
    written_bytes_per_lane: u64,
    /// Lanes that came to their end.
    halted: usize,
    /// Lanes that were stopped for want of memory.
    out_of_memory: usize,
    /// A machine built afterwards gave the right results.
    works_afterwards: bool,
}

const CODE: u64 = 0x1000;
/// Where lanes write.
const DATA: u64 = 0x10_0000;
const IMAGE: u64 = 16 << 20;
/// Threads that an H200 runs at a time.
const LANES: usize = 270_336;
const ROUNDS: usize = 3;

/// `again: str x0, [x1], #8 ; subs x2, x2, #1 ; b.ne again ; hlt #0`
const WRITE: [u32; 4] = [0xf800_8420, 0xf100_0442, 0x54ff_ffc1, 0xd440_0000];
/// `again: add x0, x0, #1 ; b again`
const ENDLESS: [u32; 2] = [0x9100_0400, 0x17ff_ffff];

fn main() -> ExitCode {
    match Options::parse().measure() {
        Ok(figures) => {
            println!("{}", serde_json::to_string_pretty(&figures).expect("plain data"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    fn measure(&self) -> Result<Figures> {
        let (memory, first) = self.memory()?;
        let second = self.reset(&mut self.machine(131_072, 1 << 20, &WRITE)?, 4096)?;
        Ok(Figures {
            engine: self.machine(1, 1 << 20, &WRITE)?.engine(),
            memory,
            resets: vec![first, second],
            cancel: self.cancel()?,
            full: (self.engine == EngineKind::Cuda).then(|| self.full()).transpose()?,
        })
    }

    fn machine(&self, lanes: usize, memory: u64, code: &[u32]) -> Result<Machine> {
        let lanes = (lanes / usize::from(self.divide)).max(1);
        let mut machine =
            Machine::builder().engine(self.engine).lanes(lanes).memory(memory).build()?;
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        machine.load(CODE, &bytes)?;
        machine.set_entry(CODE)?;
        Ok(machine)
    }

    /// A machine of large images that are partly written; how long it takes to reset it, too.
    fn memory(&self) -> Result<(Memory, Reset)> {
        let written = 256 << 10;
        let before = gpu_memory_used();
        let mut machine = self.machine(65_536, IMAGE, &WRITE)?;
        write(&mut machine, written)?;
        let used = gpu_memory_used().zip(before).map(|(now, before)| now.saturating_sub(before));
        let memory = Memory {
            lanes: machine.lanes(),
            image_bytes: IMAGE,
            written_bytes_per_lane: written,
            used_bytes: used.filter(|_| self.engine == EngineKind::Cuda),
        };
        Ok((memory, self.reset(&mut machine, written)?))
    }

    fn reset(&self, machine: &mut Machine, written: u64) -> Result<Reset> {
        let (mut reset, mut reset_and_set) = (Duration::MAX, Duration::MAX);
        for _ in 0..ROUNDS {
            write(machine, written)?;
            let start = Instant::now();
            machine.reset(Lanes::All)?;
            reset = reset.min(start.elapsed());

            write(machine, written)?;
            let start = Instant::now();
            machine.reset(Lanes::All)?;
            for lane in 0..machine.lanes() {
                machine.set_register(lane, Reg::X(0), lane as u64)?;
            }
            reset_and_set = reset_and_set.min(start.elapsed());
        }
        let per_lane = |time: Duration| time.as_secs_f64() * 1e6 / machine.lanes() as f64;
        Ok(Reset {
            lanes: machine.lanes(),
            written_bytes_per_lane: written,
            reset_us: per_lane(reset),
            reset_and_set_us: per_lane(reset_and_set),
        })
    }

    fn cancel(&self) -> Result<Cancel> {
        let mut machine = self.machine(LANES, 1 << 20, &ENDLESS)?;
        // Compiles, and lets the lengths of launches settle.
        time_to_cancel(&mut machine, Duration::from_secs(1))?;
        let mut longest = Duration::ZERO;
        for round in 0..2 * ROUNDS as u64 {
            // At different points of a launch.
            let time = time_to_cancel(&mut machine, Duration::from_millis(200 + 17 * round))?;
            longest = longest.max(time);
        }
        Ok(Cancel {
            lanes: machine.lanes(),
            milliseconds: longest.as_secs_f64() * 1e3,
            exact: goes_on_exactly(&mut machine)?,
        })
    }

    fn full(&self) -> Result<Full> {
        // 528 GiB, more than any GPU has.
        let written = 2 << 20;
        let mut machine = self.machine(LANES, 4 << 20, &WRITE)?;
        write(&mut machine, written)?;
        let statuses = machine.statuses()?;
        drop(machine);
        let count = |is: fn(&Stop) -> bool| {
            statuses.iter().filter(|status| status.stop.as_ref().is_some_and(is)).count()
        };
        let halted = count(|stop| matches!(stop, Stop::Halt { .. }));
        let out_of_memory = count(|stop| matches!(stop, Stop::OutOfMemory { .. }));
        let works_afterwards = self.works().unwrap_or_else(|error| {
            eprintln!("error: after the GPU was full: {error}");
            false
        });
        let (lanes, written_bytes_per_lane) = (statuses.len(), written);
        Ok(Full { lanes, written_bytes_per_lane, halted, out_of_memory, works_afterwards })
    }

    /// True if all lanes of a new machine come to their end.
    fn works(&self) -> Result<bool> {
        let mut machine = self.machine(LANES, 4 << 20, &WRITE)?;
        write(&mut machine, 4096)?;
        for lane in 0..machine.lanes() {
            let halted = machine.stop(lane)? == Some(Stop::Halt { imm: 0 });
            if !halted || machine.register(lane, Reg::X(1))? != DATA + 4096 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Resets the lanes and lets each write so many bytes.
fn write(machine: &mut Machine, bytes: u64) -> Result<()> {
    machine.reset(Lanes::All)?;
    machine.set_register(Lanes::All, Reg::X(1), DATA)?;
    machine.set_register(Lanes::All, Reg::X(2), bytes / 8)?;
    machine.run(u64::MAX).map(drop)
}

/// Runs for some time and cancels; how long the run still took.
fn time_to_cancel(machine: &mut Machine, after: Duration) -> Result<Duration> {
    let control = RunControl::new();
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            std::thread::sleep(after);
            let now = Instant::now();
            control.cancel();
            now
        });
        machine.run_with(u64::MAX, &control)?;
        let end = Instant::now();
        Ok(end - watcher.join().expect("it only waits"))
    })
}

/// True if lanes of [`ENDLESS`] go on for just as many instructions as they should, and have counted
/// those before.
fn goes_on_exactly(machine: &mut Machine) -> Result<bool> {
    const MORE: u64 = 1001;
    let before: Vec<u64> =
        (0..machine.lanes()).map(|lane| machine.total_cycles(lane)).collect::<Result<_>>()?;
    machine.run(MORE)?;
    for (lane, before) in before.into_iter().enumerate() {
        let count = machine.total_cycles(lane)?;
        let added = machine.register(lane, Reg::X(0))?;
        let stopped = machine.stop(lane)? == Some(Stop::MaxCycles);
        if !stopped || count != before + MORE || added != count.div_ceil(2) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Bytes in use on the first GPU, by everybody.
fn gpu_memory_used() -> Option<u64> {
    let mut query = Command::new("nvidia-smi");
    query.args(["--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]);
    let output = query.output().ok().filter(|output| output.status.success())?;
    let mebibytes: u64 = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    Some(mebibytes << 20)
}
