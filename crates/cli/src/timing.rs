//! Times of a program's start and run, step by step.

use std::time::Duration;

use kvrm::{CodeUse, Machine, RunReport};
use serde::{Deserialize, Serialize};

use crate::text;

/// Where the time went.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Timing {
    /// Initialising the driver, if the engine has one.
    driver_seconds: Option<f64>,
    /// Building the machine and loading the program.
    machine_seconds: f64,
    pub(crate) kernels: Vec<Kernel>,
    /// Running, without kernels.
    run_seconds: f64,
    /// Making host code, which is part of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
}

/// Host code that the CPU engine has made.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Code {
    /// Decoding and translating, over all threads.
    seconds: f64,
    /// Instructions that were executed one by one.
    interpreted: u64,
    /// Instructions that were executed in translations.
    executed_translated: u64,
    /// Different instructions that were translated.
    distinct_instructions: u64,
    /// Instructions that were translated, counted again each time.
    translated_instructions: u64,
    /// Those among them whose translation was on disk.
    kept_instructions: u64,
    host_bytes: u64,
}

/// A kernel that was loaded.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Kernel {
    handlers: usize,
    /// Instructions of the program that are translated in it.
    #[serde(default)]
    translated: usize,
    /// What lanes waited for it.
    seconds: f64,
    /// What it took to compile it while lanes ran.
    #[serde(default)]
    background_seconds: f64,
    /// True if it was in the cache.
    cached: bool,
}

impl Timing {
    /// Returns the times of a machine that took `prepared` to build and load, and has then run.
    pub(crate) fn new(machine: &Machine, prepared: Duration, run: &RunReport) -> Timing {
        let start = machine.start_times();
        let loading = start.kernels.iter().map(|kernel| kernel.time).sum();
        let driver = start.driver.unwrap_or_default();
        let kernels = start.kernels.iter().map(|kernel| Kernel {
            handlers: kernel.handlers,
            translated: kernel.translated,
            seconds: kernel.time.as_secs_f64(),
            background_seconds: kernel.background.as_secs_f64(),
            cached: kernel.cached,
        });
        Timing {
            driver_seconds: start.driver.map(|time| time.as_secs_f64()),
            machine_seconds: prepared.saturating_sub(driver).as_secs_f64(),
            kernels: kernels.collect(),
            run_seconds: run.elapsed.saturating_sub(loading).as_secs_f64(),
            code: Code::of(machine, run.cycles),
        }
    }

    /// Prints the times for people; `run` is the name of the run.
    pub(crate) fn text(&self, run: &str) -> String {
        let step = |what: &str, seconds| format!("{what} {}", time(seconds));
        let mut steps = Vec::new();
        steps.extend(self.driver_seconds.map(|seconds| step("driver initialisation", seconds)));
        steps.push(step("machine", self.machine_seconds));
        steps.extend(self.kernels.iter().map(Kernel::text));
        steps.push(step(run, self.run_seconds));
        let mut text = steps.join(", ");
        text.extend(self.code.as_ref().map(|code| format!(", of which {}", code.text())));
        text
    }
}

impl Kernel {
    fn text(&self) -> String {
        let mut contents = text::handlers(self.handlers);
        if self.translated > 0 {
            let translated = text::thousands(self.translated as u64);
            contents += &format!(" and {translated} translated instructions");
        }
        let mut origin = if self.cached { "cached" } else { "compiled" }.to_string();
        if self.background_seconds > 0.0 && !self.cached {
            origin += &format!(" while lanes ran, in {}", time(self.background_seconds));
        }
        format!("kernel of {contents} {} ({origin})", time(self.seconds))
    }
}

impl Code {
    /// What a machine that counts has used for so many instructions; `None` if it does not count.
    pub(crate) fn of(machine: &Machine, instructions: u64) -> Option<Code> {
        let CodeUse { time, distinct, translated, kept, executed, host_bytes, .. } =
            machine.code_use();
        let executed = executed?;
        Some(Code {
            seconds: time.as_secs_f64(),
            interpreted: instructions.saturating_sub(executed),
            executed_translated: executed,
            distinct_instructions: distinct,
            translated_instructions: translated,
            kept_instructions: kept,
            host_bytes,
        })
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let time = time(self.seconds);
        if self.translated_instructions == 0 {
            return format!("{time} for code, none of it translated");
        }
        let [interpreted, executed, distinct, translated, kept, bytes] = [
            self.interpreted,
            self.executed_translated,
            self.distinct_instructions,
            self.translated_instructions,
            self.kept_instructions,
            self.host_bytes,
        ]
        .map(text::thousands);
        format!(
            "{time} for code: {distinct} instructions translated ({translated} with repetitions, {kept} by an earlier \
             run) to {bytes} bytes; {interpreted} instructions interpreted, {executed} executed in translations"
        )
    }
}

fn time(seconds: f64) -> String {
    text::seconds(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_in_order() {
        let kernel = |cached| Kernel {
            handlers: 31,
            translated: 0,
            seconds: 0.8,
            background_seconds: 0.0,
            cached,
        };
        let kernels = vec![kernel(false), kernel(true)];
        let mut timing = Timing {
            driver_seconds: Some(0.2),
            machine_seconds: 0.003,
            kernels,
            run_seconds: 2e-4,
            code: Some(Code {
                seconds: 1e-4,
                interpreted: 5000,
                executed_translated: 60_000,
                distinct_instructions: 1200,
                translated_instructions: 1300,
                kept_instructions: 700,
                host_bytes: 40_000,
            }),
        };
        assert_eq!(
            timing.text("run"),
            "driver initialisation 200.0 ms, machine 3.0 ms, kernel of 31 handlers 800.0 ms (compiled), \
             kernel of 31 handlers 800.0 ms (cached), run 200 µs, of which 100 µs for code: 1,200 instructions \
             translated (1,300 with repetitions, 700 by an earlier run) to 40,000 bytes; 5,000 instructions \
             interpreted, 60,000 executed in translations"
        );
        let translated = Kernel { translated: 1200, background_seconds: 1.5, ..kernel(false) };
        assert_eq!(
            translated.text(),
            "kernel of 31 handlers and 1,200 translated instructions 800.0 ms (compiled while lanes ran, in 1.50 s)"
        );
        (timing.driver_seconds, timing.kernels) = (None, Vec::new());
        timing.code = None;
        assert_eq!(timing.text("first instruction"), "machine 3.0 ms, first instruction 200 µs");
    }
}
