//! What a run says about where its lanes were.

use std::fmt::{Display, Formatter};

use super::super::lanes::LaneTimes;
use super::policy::Chance;
use crate::EngineKind;

/// Where the lanes of a run were, and why there. It can be asked for while they run, too.
///
/// ```
/// use kvrm::linux::{Many, Process, Row};
/// # std::env::set_current_dir("../..").expect("the folder of the repository");
/// let mut runs = Many::new(Process::new("guests/linux/collatz")).run([Row::new().args(["27", "1"])])?;
/// runs.next();
/// let placement = runs.placement();
/// assert_eq!(placement.lanes, [(kvrm::EngineKind::Cpu, 1)]);
/// assert!(placement.to_string().starts_with("1 lane on cpu (a lane took "));
/// # Ok::<(), kvrm::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Placement {
    /// Engines, and how many of the lanes that have ended began on each.
    pub lanes: Vec<(EngineKind, u64)>,
    /// Why; none, if the caller has chosen the engine.
    pub why: Option<String>,
    /// What lanes on a GPU spent their time on, if there were some. Waits for kernels are known at the end.
    pub gpu: Option<LaneTimes>,
}

impl Display for Placement {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.lanes[..] {
            [(engine, lanes)] => write!(f, "{} on {}", count(*lanes), engine.name())?,
            several => {
                let total = several.iter().map(|(_, lanes)| lanes).sum();
                write!(f, "{}: ", count(total))?;
                for (index, (engine, lanes)) in several.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{} on {}", thousands(*lanes), engine.name())?;
                }
            }
        }
        self.why.as_ref().map_or(Ok(()), |why| write!(f, " ({why})"))
    }
}

/// What has become of the question where lanes should run.
#[derive(Clone, Debug)]
pub(super) enum Story {
    /// They cannot be anywhere else.
    RealTime,
    /// On `cpu`, because there is no more of a chance than that.
    Watched(Chance),
    /// A GPU would have been of use.
    NoDevice,
    /// A GPU was to be used.
    Opened(EngineKind),
    /// A GPU has lanes.
    Used(EngineKind),
    /// It had, but the host had more to do for them than it gained: instructions a second with it, and before.
    NotWorthIt(EngineKind, [f64; 2]),
    /// It had, but most of them left, or took too long there.
    Left(EngineKind),
    Failed(EngineKind, String),
}

impl Story {
    /// Why lanes were where they were. `rows` are how long one took on `cpu`, and how often one ended on a GPU, if any did.
    pub(super) fn why(&self, [cpu, gpu]: [Option<f64>; 2]) -> String {
        let Some(row) = cpu.map(seconds) else { return "no lane has ended".into() };
        let took = format!("a lane took {row} on a core");
        match self {
            Story::RealTime => "a program that sees the real time stays on cpu".into(),
            Story::Watched(Chance::Short | Chance::Good) => {
                format!("{took}: the rest was done in less time than a GPU needs to start")
            }
            Story::Watched(Chance::Idle) => {
                format!("{took}: rows came, or results were taken, more slowly than cpu runs them")
            }
            Story::Watched(Chance::Leavers) => {
                "most lanes make threads or processes, which a lane of a GPU cannot have".into()
            }
            Story::Watched(Chance::Few) => {
                format!(
                    "{took}: a lane of a GPU takes longer than cpu takes for all that were left"
                )
            }
            Story::NoDevice => format!("{took}, and there is no GPU that can be used"),
            Story::Opened(kind) => format!("{took}: cpu was done before {} began", kind.name()),
            Story::Used(kind) => match gpu.map(seconds) {
                Some(each) => format!("{took}, and {each} on {}", kind.name()),
                None => format!("{took}: cpu was done before a lane of {} was", kind.name()),
            },
            Story::NotWorthIt(kind, [with, before]) => {
                let [with, before] = [with, before].map(|rate| rate / 1e9);
                format!(
                    "{took}: with {} beside it, lanes executed {with:.2} G instructions a second instead of {before:.2} G",
                    kind.name()
                )
            }
            Story::Left(kind) => format!(
                "most lanes left {}: they need threads, processes or memory that a lane cannot have, or more time",
                kind.name()
            ),
            Story::Failed(kind, message) => {
                format!("{} failed, and its lanes were run on cpu: {message}", kind.name())
            }
        }
    }
}

fn count(lanes: u64) -> String {
    format!("{} lane{}", thousands(lanes), if lanes == 1 { "" } else { "s" })
}

fn thousands(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        _ => format!("{},{:03}", thousands(n / 1000), n % 1000),
    }
}

/// A time with two digits or three.
fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    let decimals = if value < 1.0 { 2 } else { usize::from(value < 10.0) };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_is_a_sentence() {
        let on = |lanes: &[(EngineKind, u64)], why: Option<&str>| {
            let why = why.map(str::to_string);
            Placement { lanes: lanes.to_vec(), why, gpu: None }.to_string()
        };
        assert_eq!(on(&[(EngineKind::Cuda, 1000)], None), "1,000 lanes on cuda");
        let story = Story::Used(EngineKind::Cuda);
        let why = story.why([Some(0.038), Some(0.000_29)]);
        assert_eq!(
            on(&[(EngineKind::Cuda, 60_112), (EngineKind::Cpu, 5424)], Some(&why)),
            "65,536 lanes: 60,112 on cuda, 5,424 on cpu (a lane took 38 ms on a core, and 290 µs on cuda)"
        );
    }

    #[test]
    fn reasons_have_numbers() {
        let why = |story: Story| story.why([Some(0.0004), None]);
        assert_eq!(
            why(Story::Watched(Chance::Short)),
            "a lane took 400 µs on a core: the rest was done in less time than a GPU needs to start"
        );
        assert_eq!(
            why(Story::NotWorthIt(EngineKind::Wgpu, [1.5e9, 2e9])),
            "a lane took 400 µs on a core: with wgpu beside it, lanes executed 1.50 G instructions a second instead of 2.00 G"
        );
        let failed = Story::Failed(EngineKind::Cuda, "no memory".into());
        assert_eq!(why(failed), "cuda failed, and its lanes were run on cpu: no memory");
        assert_eq!(Story::NoDevice.why([None, None]), "no lane has ended");
        let times = [12.0, 1.25, 0.0031].map(seconds);
        assert_eq!(times, ["12 s", "1.2 s", "3.1 ms"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
