//! Reads the results of `run.sh` of `cargo xtask gpu-check`, and checks them.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::shell::Outcome;
use crate::text::{bytes, thousands};
use crate::tools::cannot;

/// A results.json, or several of them.
#[derive(Deserialize)]
pub(crate) struct Results {
    pub(crate) date: String,
    pub(crate) version: String,
    pub(crate) cpu: String,
    pub(crate) cores: u64,
    devices: Option<Vec<OnDevice>>,
    pub(crate) steps: Vec<Step>,
    bench: Vec<Bench>,
    qemu: Vec<Qemu>,
    pub(crate) start: Option<Starts>,
    pub(crate) figures: Option<Figures>,
}

/// A row of `kvrm devices`.
#[derive(Deserialize)]
struct OnDevice {
    engine: String,
    name: String,
    driver: Option<String>,
}

/// How a step of the script ended.
#[derive(Deserialize)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) outcome: String,
    pub(crate) seconds: f64,
    pub(crate) note: String,
    /// The version that ran, from its results.
    #[serde(skip)]
    pub(crate) version: String,
}

/// The output of `kvrm bench`.
#[derive(Deserialize)]
struct Bench {
    engine: String,
    memory: String,
    guests: Vec<Speed>,
}

/// A guest on a number of lanes.
#[derive(Clone, Deserialize)]
pub(crate) struct Speed {
    pub(crate) guest: String,
    pub(crate) lanes: u64,
    pub(crate) instructions_per_second: f64,
}

/// Processes of QEMU that all ran the same guest, with the instructions of each.
#[derive(Deserialize)]
struct Qemu {
    guest: String,
    processes: u64,
    instructions: f64,
    seconds: f64,
}

/// The output of `kvrm bench --only start`.
#[derive(Deserialize)]
pub(crate) struct Starts {
    pub(crate) starts: Vec<Start>,
}

/// Times to the first instruction of a program.
#[derive(Deserialize)]
pub(crate) struct Start {
    pub(crate) program: String,
    /// Whether kernels had been compiled before: "cold" or "warm".
    pub(crate) cache: Option<String>,
    pub(crate) timing: Timing,
}

#[derive(Deserialize)]
pub(crate) struct Timing {
    driver_seconds: Option<f64>,
    pub(crate) machine_seconds: f64,
    kernels: Vec<Kernel>,
    pub(crate) run_seconds: f64,
}

#[derive(Deserialize)]
struct Kernel {
    handlers: u64,
    seconds: f64,
}

/// The output of `gpu_figures`, which documents these figures.
#[derive(Deserialize)]
pub(crate) struct Figures {
    pub(crate) memory: Memory,
    pub(crate) resets: Vec<Reset>,
    pub(crate) cancel: Cancel,
    pub(crate) full: Option<Full>,
}

#[derive(Deserialize)]
pub(crate) struct Memory {
    pub(crate) lanes: u64,
    pub(crate) image_bytes: u64,
    pub(crate) written_bytes_per_lane: u64,
    pub(crate) used_bytes: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct Reset {
    pub(crate) lanes: u64,
    pub(crate) written_bytes_per_lane: u64,
    pub(crate) reset_us: f64,
    pub(crate) reset_and_set_us: f64,
}

#[derive(Deserialize)]
pub(crate) struct Cancel {
    pub(crate) lanes: u64,
    pub(crate) milliseconds: f64,
    exact: bool,
}

#[derive(Deserialize)]
pub(crate) struct Full {
    pub(crate) lanes: u64,
    pub(crate) written_bytes_per_lane: u64,
    pub(crate) halted: u64,
    pub(crate) out_of_memory: u64,
    works_afterwards: bool,
}

/// Limit of memory for lanes of 16 MiB, in bytes.
const MOST_MEMORY: u64 = 20 << 30;
/// Limit for resetting a lane, in microseconds.
const LONGEST_RESET: f64 = 1.0;
/// Limit for cancelling, in milliseconds.
const LONGEST_CANCEL: f64 = 50.0;

/// Limits of the time to the first instruction, beyond the driver's own, in seconds: warm and cold.
const LONGEST_START: [(&str, f64); 2] = [("warm", 0.1), ("cold", 5.0)];

/// The least speed of `wgpu`, relative to that of `cuda` on the same GPU.
const LEAST_SHARE: f64 = 0.5;
/// The least instructions per second of `wgpu`, for a guest on this many lanes, with private memory.
const LEAST_SPEED: (&str, u64, f64) = ("loop_store", 131_072, 60e9);

/// A result next to the expected one.
struct Check {
    what: String,
    found: String,
    wanted: String,
    passed: bool,
}

impl Results {
    /// Reads results.json in each of the folders, as if one run had given them all.
    pub(crate) fn read(folders: &[impl AsRef<Path>]) -> Outcome<Results> {
        let mut all = folders.iter().map(|folder| read_one(folder.as_ref()));
        let first = all.next().ok_or("no folder with a results.json was named")??;
        all.try_fold(first, |results, more| Ok(results.and(more?)))
    }

    fn and(mut self, more: Results) -> Results {
        // If a step was repeated, the last time counts.
        self.steps.retain(|step| more.steps.iter().all(|again| again.name != step.name));
        self.steps.extend(more.steps);
        self.bench.extend(more.bench);
        self.qemu.extend(more.qemu);
        Results {
            devices: self.devices.or(more.devices),
            start: more.start.or(self.start),
            figures: more.figures.or(self.figures),
            ..self
        }
    }

    /// Returns the GPU, as the engine describes it.
    pub(crate) fn gpu(&self, engine: &str) -> Option<String> {
        let gpu = self.devices.iter().flatten().find(|on| on.engine == engine)?;
        Some(match &gpu.driver {
            Some(driver) => format!("{}, {driver}", gpu.name),
            None => gpu.name.clone(),
        })
    }

    /// Returns the speeds on an engine, in the order of the guests.
    fn speeds(&self, engine: &str, memory: &str) -> impl Iterator<Item = &Speed> {
        let wanted = move |bench: &&Bench| bench.engine == engine && bench.memory == memory;
        self.bench.iter().filter(wanted).flat_map(|bench| &bench.guests)
    }

    /// Returns the guests that ran on an engine, each once.
    pub(crate) fn guests(&self, engine: &str) -> Vec<&str> {
        let mut guests = Vec::new();
        for speed in self.speeds(engine, "private") {
            if !guests.contains(&speed.guest.as_str()) {
                guests.push(&speed.guest);
            }
        }
        guests
    }

    /// Returns the numbers of lanes on an engine, in ascending order.
    pub(crate) fn lanes(&self, engine: &str) -> Vec<u64> {
        let mut lanes: Vec<u64> = self.speeds(engine, "private").map(|speed| speed.lanes).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }

    /// Returns instructions per second on an engine with private memory.
    pub(crate) fn speed(&self, engine: &str, guest: &str, lanes: u64) -> Option<f64> {
        let speeds = self.speeds(engine, "private");
        let speeds = speeds.filter(|speed| speed.guest == guest && speed.lanes == lanes);
        speeds.map(|speed| speed.instructions_per_second).reduce(f64::max)
    }

    /// Returns the speed of `wgpu` divided by that of `cuda`.
    pub(crate) fn share(&self, guest: &str, lanes: u64) -> Option<f64> {
        Some(self.speed("wgpu", guest, lanes)? / self.speed("cuda", guest, lanes)?)
    }

    /// Returns the fastest run of a guest on an engine.
    pub(crate) fn best(&self, engine: &str, memory: &str, guest: &str) -> Option<Speed> {
        let speeds = self.speeds(engine, memory).filter(|speed| speed.guest == guest);
        let faster = |a: &&Speed, b: &&Speed| {
            a.instructions_per_second.total_cmp(&b.instructions_per_second)
        };
        speeds.max_by(faster).cloned()
    }

    /// Returns the instructions per second of all QEMU processes together.
    pub(crate) fn qemu(&self, guest: &str) -> Option<f64> {
        let peers = self.qemu.iter().filter(|qemu| qemu.guest == guest);
        let speed = |q: &Qemu| q.processes as f64 * q.instructions / q.seconds;
        peers.map(speed).reduce(f64::max)
    }

    fn checks(&self) -> Vec<Check> {
        let step = |step: &Step| Check {
            what: step.name.clone(),
            found: format!("{} {:.1} s", step.outcome, step.seconds),
            wanted: step.note.clone(),
            passed: step.outcome != "failed",
        };
        let starts = self.start.iter().flat_map(|start| &start.starts).filter_map(Start::check);
        let figures = self.figures.iter().flat_map(Figures::checks);
        let steps = self.steps.iter().map(step);
        steps.chain(starts).chain(figures).chain(self.wgpu_checks()).collect()
    }

    /// Returns the checks of `wgpu`: each guest where it is slowest relative to `cuda`, and one speed.
    fn wgpu_checks(&self) -> Vec<Check> {
        let share = |guest| {
            let shares = self.lanes("wgpu").into_iter();
            let shares = shares.filter_map(|lanes| Some((self.share(guest, lanes)?, lanes)));
            let (share, lanes) = shares.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
            Some(Check {
                what: format!("wgpu beside cuda: {guest}, {} lanes", thousands(lanes)),
                found: format!("{share:.2} of it"),
                wanted: format!("at least {LEAST_SHARE} of it with any number of lanes"),
                passed: share >= LEAST_SHARE,
            })
        };
        let (guest, lanes, least) = LEAST_SPEED;
        let speed = self.speed("wgpu", guest, lanes).map(|speed| Check {
            what: format!("wgpu: {guest}, {} lanes", thousands(lanes)),
            found: format!("{} G/s", billions(speed)),
            wanted: format!("at least {} G/s", billions(least)),
            passed: speed >= least,
        });
        self.guests("wgpu").into_iter().filter_map(share).chain(speed).collect()
    }

    /// Prints what was found beside what is wanted; fails if something is not as it should be.
    pub(crate) fn check(&self) -> Outcome {
        let gpu = self.gpu("cuda").unwrap_or("no NVIDIA GPU".to_string());
        println!("\n{}, {} cores; {gpu}", self.cpu, self.cores);
        for engine in ["cuda", "wgpu"] {
            if !self.lanes(engine).is_empty() {
                println!("\n{}", self.table(engine));
            }
        }
        let checks = self.checks();
        for Check { what, found, wanted, passed } in &checks {
            let passed = if *passed { "ok" } else { "FAILED" };
            println!("{passed:6} {what:65} {found:>16}  {wanted}");
        }
        match checks.iter().filter(|check| !check.passed).count() {
            0 => Ok(()),
            failed => Err(format!("{failed} of {} checks failed", checks.len())),
        }
    }

    /// Formats billions of instructions per second for a terminal.
    fn table(&self, engine: &str) -> String {
        let lanes = self.lanes(engine);
        let mut table = format!("{:12}", format!("{engine}, G/s:"));
        lanes.iter().for_each(|lanes| table += &format!(" {:>9}", thousands(*lanes)));
        table += &format!(" {:>9} {:>9}\n", "cpu", "qemu");
        for guest in self.guests(engine) {
            let on_gpu = lanes.iter().map(|lanes| self.speed(engine, guest, *lanes));
            let cpu = self.best("cpu", "private", guest).map(|speed| speed.instructions_per_second);
            table += &format!("{guest:12}");
            for speed in on_gpu.chain([cpu, self.qemu(guest)]) {
                table += &format!(" {:>9}", speed.map_or("-".to_string(), billions));
            }
            table.push('\n');
        }
        table
    }
}

impl Start {
    pub(crate) fn handlers(&self) -> u64 {
        self.timing.kernels.iter().map(|kernel| kernel.handlers).max().unwrap_or(0)
    }

    /// Returns the seconds of the driver's own initialisation.
    pub(crate) fn driver(&self) -> f64 {
        self.timing.driver_seconds.unwrap_or(0.0)
    }

    /// Returns the seconds of its kernels.
    pub(crate) fn kernels(&self) -> f64 {
        self.timing.kernels.iter().map(|kernel| kernel.seconds).sum()
    }

    /// Returns the seconds beyond the driver's own.
    fn beyond(&self) -> f64 {
        self.timing.machine_seconds + self.kernels() + self.timing.run_seconds
    }

    fn check(&self) -> Option<Check> {
        let cache = self.cache.as_deref()?;
        let (_, longest) = LONGEST_START.into_iter().find(|(name, _)| *name == cache)?;
        Some(Check {
            what: format!("{cache} start of {}, {} handlers", self.program, self.handlers()),
            found: format!("{:.3} s", self.beyond()),
            wanted: format!("under {longest} s, beyond {:.3} s of the driver", self.driver()),
            passed: self.beyond() < longest,
        })
    }
}

impl Figures {
    fn checks(&self) -> Vec<Check> {
        let Memory { lanes, image_bytes, written_bytes_per_lane, used_bytes } = &self.memory;
        let mut checks = vec![Check {
            what: format!(
                "memory: {} lanes of {}, each writes {}",
                thousands(*lanes),
                bytes(*image_bytes),
                bytes(*written_bytes_per_lane)
            ),
            found: used_bytes.map_or("not measured".to_string(), bytes),
            wanted: format!("under {}", bytes(MOST_MEMORY)),
            passed: used_bytes.is_some_and(|used| used < MOST_MEMORY),
        }];
        checks.extend(self.resets.iter().flat_map(Reset::checks));
        let Cancel { lanes, milliseconds, exact } = &self.cancel;
        checks.push(Check {
            what: format!("cancelling {} lanes", thousands(*lanes)),
            found: format!("{milliseconds:.1} ms"),
            wanted: format!("under {LONGEST_CANCEL} ms"),
            passed: *milliseconds < LONGEST_CANCEL,
        });
        checks.push(Check {
            what: "counts after cancelling, and of the run after it".to_string(),
            found: if *exact { "exact" } else { "wrong" }.to_string(),
            wanted: "exact".to_string(),
            passed: *exact,
        });
        checks.extend(self.full.iter().map(Full::check));
        checks
    }
}

impl Reset {
    fn checks(&self) -> [Check; 2] {
        let both = [
            ("resetting", self.reset_us),
            ("resetting and setting a register", self.reset_and_set_us),
        ];
        both.map(|(what, microseconds)| Check {
            what: format!(
                "{what}: {} lanes, {} written",
                thousands(self.lanes),
                bytes(self.written_bytes_per_lane)
            ),
            found: format!("{microseconds:.3} µs a lane"),
            wanted: format!("under {LONGEST_RESET} µs"),
            passed: microseconds < LONGEST_RESET,
        })
    }
}

impl Full {
    fn check(&self) -> Check {
        let afterwards = if self.works_afterwards { "works" } else { "does not work" };
        Check {
            what: format!("the GPU full: a new machine {afterwards}"),
            found: format!(
                "{} lanes out of memory, {} at their end",
                thousands(self.out_of_memory),
                thousands(self.halted)
            ),
            wanted: format!("{} lanes, some of them out of memory", thousands(self.lanes)),
            passed: self.out_of_memory > 0
                && self.halted + self.out_of_memory == self.lanes
                && self.works_afterwards,
        }
    }
}

fn read_one(folder: &Path) -> Outcome<Results> {
    let path = folder.join("results.json");
    let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let mut results: Results =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    for step in &mut results.steps {
        step.version = results.version.clone();
    }
    Ok(results)
}

/// Formats billions with about three digits.
pub(crate) fn billions(number: f64) -> String {
    let billions = number / 1e9;
    let decimals = match billions {
        ..0.1 => 4,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{billions:.decimals$}")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Made up; the plot and the page are tested with it too.
    pub(crate) const EXAMPLE: &str = r#"{
        "date": "2000-01-02", "version": "kvrm 0.0.0", "cpu": "Some CPU", "cores": 4,
        "devices": [{"engine": "cpu", "name": "x"}, {"engine": "cuda", "name": "Some GPU"},
                    {"engine": "wgpu", "name": "Some GPU", "driver": "Vulkan"}],
        "steps": [{"name": "suite", "outcome": "passed", "seconds": 1.5, "note": "7 passed"},
                  {"name": "conformance", "outcome": "skipped", "seconds": 0, "note": ""}],
        "bench": [
            {"engine": "cuda", "memory": "private", "guests": [
                {"guest": "loop", "lanes": 1, "instructions_per_second": 7e6},
                {"guest": "sort", "lanes": 1, "instructions_per_second": 2e6}]},
            {"engine": "cuda", "memory": "private", "guests": [
                {"guest": "loop", "lanes": 1024, "instructions_per_second": 8e9}]},
            {"engine": "cuda", "memory": "shared", "guests": [
                {"guest": "loop", "lanes": 1024, "instructions_per_second": 6e9}]},
            {"engine": "wgpu", "memory": "private", "guests": [
                {"guest": "loop", "lanes": 1, "instructions_per_second": 4.2e6},
                {"guest": "loop", "lanes": 1024, "instructions_per_second": 6e9}]},
            {"engine": "wgpu", "memory": "private", "guests": [
                {"guest": "loop_store", "lanes": 131072, "instructions_per_second": 75e9}]},
            {"engine": "cpu", "memory": "private", "guests": [
                {"guest": "loop", "lanes": 4, "instructions_per_second": 2e9}]}],
        "qemu": [{"guest": "loop", "processes": 4, "instructions": 1e9, "seconds": 4.0}],
        "start": {"starts": [{"program": "loop", "cache": "warm", "process_seconds": 0.5,
            "timing": {"driver_seconds": 0.25, "machine_seconds": 0.015625, "run_seconds": 0.0078125,
                "kernels": [{"handlers": 9, "seconds": 0.0078125, "cached": true}]}}]},
        "figures": {
            "engine": "cuda",
            "memory": {"lanes": 65536, "image_bytes": 16777216, "written_bytes_per_lane": 262144,
                       "used_bytes": 18253611008},
            "resets": [{"lanes": 65536, "written_bytes_per_lane": 262144, "reset_us": 0.5,
                        "reset_and_set_us": 0.75}],
            "cancel": {"lanes": 270336, "milliseconds": 12.5, "exact": true},
            "full": {"lanes": 270336, "written_bytes_per_lane": 2097152, "halted": 336, "out_of_memory": 270000,
                     "works_afterwards": true}}}"#;

    pub(crate) fn example() -> Results {
        serde_json::from_str(EXAMPLE).unwrap()
    }

    fn failed(results: &Results) -> Vec<String> {
        let failed = results.checks().into_iter().filter(|check| !check.passed);
        failed.map(|check| check.what).collect()
    }

    #[test]
    fn what_is_wanted_passes() {
        assert_eq!(failed(&example()), [""; 0]);
        assert!(example().check().is_ok());
    }

    #[test]
    fn what_is_missed_fails() {
        let mut results = example();
        results.steps[0].outcome = "failed".to_string();
        let figures = results.figures.as_mut().unwrap();
        figures.memory.used_bytes = None;
        figures.resets[0].reset_and_set_us = 1.5;
        figures.cancel.exact = false;
        figures.full.as_mut().unwrap().works_afterwards = false;
        results.bench[3].guests[0].instructions_per_second = 3e6;
        results.bench[4].guests[0].instructions_per_second = 59e9;
        let expected = [
            "suite",
            "memory: 65,536 lanes of 16 MiB, each writes 256 KiB",
            "resetting and setting a register: 65,536 lanes, 256 KiB written",
            "counts after cancelling, and of the run after it",
            "the GPU full: a new machine does not work",
            "wgpu beside cuda: loop, 1 lanes",
            "wgpu: loop_store, 131,072 lanes",
        ];
        assert_eq!(failed(&results), expected);
        assert!(results.check().is_err());
    }

    #[test]
    fn several_runs_count_as_one() {
        let mut second = example();
        second.bench.truncate(1);
        second.bench[0].guests[0].instructions_per_second = 9e6;
        let both = example().and(second);
        let on_cuda = |lanes| both.speed("cuda", "loop", lanes);
        assert_eq!((on_cuda(1), on_cuda(1024)), (Some(9e6), Some(8e9)));
        assert_eq!(both.lanes("cuda"), [1, 1024]);
        assert_eq!(both.guests("cuda"), ["loop", "sort"]);
        assert_eq!(both.steps.len(), 2, "each step once");
        assert_eq!(both.qemu("loop"), Some(1e9));
    }

    #[test]
    fn billions_have_three_digits() {
        let numbers = [7e6, 4.321e9, 43.21e9, 432.1e9];
        assert_eq!(numbers.map(billions), ["0.0070", "4.32", "43.2", "432"]);
    }
}
