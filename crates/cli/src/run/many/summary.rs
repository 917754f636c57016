//! What all lanes did, in a few lines.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use kvrm::linux::{LaneTimes, Placement};
use serde::Serialize;

use super::record::{Form, Record};
use crate::failure::Result;
use crate::{text, write_json};

/// Kinds of outcomes that are printed.
const MOST_PRINTED: usize = 20;
/// Characters of an example's output that are printed.
const MOST_SHOWN: usize = 40;

/// What lanes did.
#[derive(Default)]
pub(super) struct Summary {
    pub(super) lanes: u64,
    /// Lanes that did not end with exit code 0.
    pub(super) failed: u64,
    /// Also those that lanes had in common, which were executed once.
    pub(super) instructions: u64,
    kinds: BTreeMap<String, Kind>,
}

/// A way to end.
#[derive(Clone, Serialize)]
struct Kind {
    outcome: String,
    lanes: u64,
    /// The lowest lane that ended so, and the beginning of what it printed.
    example_lane: u64,
    example_output: String,
}

#[derive(Serialize)]
struct Json {
    lanes: u64,
    failed: u64,
    /// Those that were in the table before.
    resumed: u64,
    instructions: u64,
    seconds: f64,
    complete: bool,
    /// Lanes of this run, by the engine that they began on, and why there, if the engine was `auto`.
    engines: BTreeMap<&'static str, u64>,
    why: Option<String>,
    /// Seconds of engines on a GPU.
    gpu_seconds: Option<GpuSeconds>,
    /// System calls of lanes on a GPU.
    gpu_calls: Option<GpuCalls>,
    outcomes: Vec<Kind>,
}

/// What lanes on a GPU spent their time on.
#[derive(Serialize)]
struct GpuSeconds {
    running: f64,
    compiling: f64,
    serving: f64,
    moving: f64,
}

/// Who has served system calls of lanes on a GPU.
#[derive(Serialize)]
struct GpuCalls {
    in_lanes: u64,
    on_host: u64,
}

impl From<LaneTimes> for GpuCalls {
    fn from(times: LaneTimes) -> GpuCalls {
        GpuCalls { in_lanes: times.calls_in_lanes, on_host: times.calls_on_host }
    }
}

impl From<LaneTimes> for GpuSeconds {
    fn from(times: LaneTimes) -> GpuSeconds {
        let LaneTimes { running, compiling, serving, moving, .. } = times;
        GpuSeconds { running, compiling, serving, moving }
    }
}

/// How the run went.
pub(super) struct Run {
    pub(super) placement: Placement,
    pub(super) elapsed: Duration,
    /// Lanes that were in the table before, and their instructions.
    pub(super) resumed: (u64, u64),
    /// All rows are done.
    pub(super) complete: bool,
}

impl Summary {
    /// Counts a lane.
    pub(super) fn add(&mut self, record: &Record) {
        self.lanes += 1;
        self.failed += u64::from(record.failed());
        self.instructions = self.instructions.saturating_add(record.instructions);
        let kind = self.kinds.entry(record.how()).or_insert_with(|| Kind {
            outcome: record.how(),
            lanes: 0,
            example_lane: u64::MAX,
            example_output: String::new(),
        });
        kind.lanes += 1;
        if record.lane < kind.example_lane {
            (kind.example_lane, kind.example_output) = (record.lane, shown(record));
        }
    }

    /// The kinds, the most frequent first.
    fn outcomes(&self) -> Vec<Kind> {
        let mut kinds: Vec<_> = self.kinds.values().cloned().collect();
        kinds.sort_by(|a, b| b.lanes.cmp(&a.lanes).then_with(|| a.outcome.cmp(&b.outcome)));
        kinds
    }

    /// Prints it as JSON.
    pub(super) fn write_json(&self, run: &Run, out: &mut impl Write) -> Result<()> {
        let engines = &run.placement.lanes;
        let json = Json {
            lanes: self.lanes,
            failed: self.failed,
            resumed: run.resumed.0,
            instructions: self.instructions,
            seconds: run.elapsed.as_secs_f64(),
            complete: run.complete,
            engines: engines.iter().map(|(engine, lanes)| (engine.name(), *lanes)).collect(),
            why: run.placement.why.clone(),
            gpu_seconds: run.placement.gpu.map(GpuSeconds::from),
            gpu_calls: run.placement.gpu.map(GpuCalls::from),
            outcomes: self.outcomes(),
        };
        write_json(out, &json)
    }

    /// Prints it as a table.
    pub(super) fn write(&self, run: &Run, out: &mut impl Write) -> Result<()> {
        let kinds = self.outcomes();
        let printed = &kinds[..kinds.len().min(MOST_PRINTED)];
        let width = |text: fn(&Kind) -> String| {
            printed.iter().map(|kind| text(kind).chars().count()).max().unwrap_or(0)
        };
        let lanes: fn(&Kind) -> String = |kind| text::thousands(kind.lanes);
        let (count, outcome) = (width(lanes), width(|kind| kind.outcome.clone()));
        for kind in printed {
            let example = match &kind.example_output[..] {
                "" => format!("lane {}", kind.example_lane),
                output => format!("lane {}: {output}", kind.example_lane),
            };
            writeln!(out, "{:>count$}  {:<outcome$}  {example}", lanes(kind), kind.outcome)?;
        }
        if let Some(others) = kinds.len().checked_sub(MOST_PRINTED).filter(|others| *others > 0) {
            let lanes = kinds[MOST_PRINTED..].iter().map(|kind| kind.lanes).sum();
            writeln!(out, "({} lanes with {others} other outcomes)", text::thousands(lanes))?;
        }
        let (lanes, instructions) = run.resumed;
        let resumed = match lanes {
            0 => String::new(),
            lanes => format!(", {} of them before", text::thousands(lanes)),
        };
        let engines = &run.placement.lanes;
        let names: Vec<_> = engines.iter().map(|(engine, _)| engine.name()).collect();
        let speed = (self.instructions - instructions) as f64 / run.elapsed.as_secs_f64();
        writeln!(
            out,
            "{} on {}{resumed}: {} failed; {} instructions in {}, {}/s",
            text::lanes(self.lanes as usize),
            names.join(" and "),
            text::thousands(self.failed),
            text::thousands(self.instructions),
            text::seconds(run.elapsed),
            text::short(speed)
        )?;
        if run.placement.why.is_some() {
            writeln!(out, "auto: {}", run.placement)?;
        }
        if let Some(times) = &run.placement.gpu {
            writeln!(out, "on the GPU: {times}")?;
        }
        Ok(())
    }
}

/// The first line of what a lane has printed: of its standard output, or of its standard error if it failed.
fn shown(record: &Record) -> String {
    let output = (&record.stdout, record.stdout_form, record.stdout_bytes);
    let error = (&record.stderr, record.stderr_form, record.stderr_bytes);
    let first = if record.failed() && error.2 > 0 { error } else { output };
    match first {
        (text, Form::Text, _) => {
            let line = text.lines().next().unwrap_or_default();
            let mut shown: String = line.chars().take(MOST_SHOWN).map(printable).collect();
            if shown.len() < text.trim_end_matches('\n').len() {
                shown.push('…');
            }
            shown
        }
        (_, Form::Hex | Form::Sha256, bytes) => format!("({})", text::bytes(bytes)),
    }
}

/// A character that does nothing to a terminal.
fn printable(char: char) -> char {
    if char.is_control() { '\u{fffd}' } else { char }
}
