//! Runs random programs: on both engines, whole and in pieces, and on the oracles.

use kvrm::Machine;
use kvrm_oracles::{Case, OutcomeKind};

use crate::compare::{Bench, agree};
use crate::describe::describe_case;
use crate::oracle::ORACLES;
use crate::ours::{Ran, end_of, load, result};
use crate::program::{Flavour, MAX_EXECUTED, Programmer};
use crate::random::Random;

/// Programs sent to the oracles at a time.
const BATCH: u64 = 64;

/// What came of the programs.
#[derive(Clone, Debug, Default)]
pub struct ProgramReport {
    /// Programs run.
    pub programs: u64,
    /// Instructions executed, counted once.
    pub instructions: u64,
    /// Stops in the middle at which the engines were compared.
    pub stops: u64,
    /// Comparisons with an oracle, by oracle.
    pub compared: [u64; 2],
    /// Programs that differ.
    pub different: u64,
    /// The first of them, in words.
    pub descriptions: Vec<String>,
}

impl ProgramReport {
    /// Adds what came of more programs.
    pub fn add(&mut self, other: ProgramReport) {
        self.programs += other.programs;
        self.instructions += other.instructions;
        self.stops += other.stops;
        self.compared[0] += other.compared[0];
        self.compared[1] += other.compared[1];
        self.different += other.different;
        self.descriptions.extend(other.descriptions);
    }

    fn differs(&mut self, description: impl FnOnce() -> String) {
        self.different += 1;
        if self.descriptions.len() < 2 {
            self.descriptions.push(description());
        }
    }
}

/// Runs programs of every flavour.
pub fn run_programs(bench: &mut Bench, programs: u64, seed: u64) -> Result<ProgramReport, String> {
    let mut report = ProgramReport::default();
    let flavours =
        [Flavour::Plain, Flavour::Stopping, Flavour::WithSignedAtomics, Flavour::SelfModifying];
    let mut batches = 0;
    while report.programs < programs {
        let flavour = flavours[batches % flavours.len()];
        let random = Random::part(seed, batches as u64);
        let count = BATCH.min(programs - report.programs);
        run_batch(bench, flavour, count, random, &mut report)?;
        batches += 1;
    }
    Ok(report)
}

fn run_batch(
    bench: &mut Bench,
    flavour: Flavour,
    count: u64,
    mut random: Random,
    report: &mut ProgramReport,
) -> Result<(), String> {
    let mut programmer = Programmer::new(Random::new(random.next()), flavour);
    let cases: Vec<_> = (0..count).map(|_| programmer.program()).collect();
    let answers = match flavour {
        Flavour::SelfModifying => [None, None],
        Flavour::Plain | Flavour::Stopping | Flavour::WithSignedAtomics => {
            bench.oracles.run(&cases)?
        }
    };
    for (i, case) in cases.iter().enumerate() {
        report.programs += 1;
        let Some(ours) = on_our_engines(bench, case, &mut random, report)? else {
            continue;
        };
        report.instructions += ours.count;
        if flavour != Flavour::Stopping && ours.outcome.kind != OutcomeKind::Done {
            let note = format!("did not reach its end: {:?}", ours.stop);
            report.differs(|| describe_case(case, &[("ours", &ours.outcome)], &note));
        }
        for (oracle, answers) in answers.iter().enumerate() {
            let skip = oracle == 0 && flavour == Flavour::WithSignedAtomics;
            let Some(theirs) =
                answers.as_ref().and_then(|answers| answers[i].as_ref()).filter(|_| !skip)
            else {
                continue;
            };
            report.compared[oracle] += 1;
            if !agree(ORACLES[oracle], &ours.outcome, theirs) {
                report.differs(|| {
                    let results = [("ours", &ours.outcome), (ORACLES[oracle].name(), theirs)];
                    describe_case(case, &results, &format!("our stop: {:?}", ours.stop))
                });
            }
        }
    }
    Ok(())
}

/// Runs a case in all our forms, and on both engines in pieces; `None` if they differ.
fn on_our_engines(
    bench: &mut Bench,
    case: &Case,
    random: &mut Random,
    report: &mut ProgramReport,
) -> Result<Option<Ran>, String> {
    let forms = bench.ours.run(case).map_err(|e| e.to_string())?;
    let whole = forms[0].clone();
    let mut same = forms.iter().all(|form| *form == whole);
    let mut shown = forms.into_iter().find(|form| *form != whole).unwrap_or(whole.clone());
    if same {
        let pieces =
            in_pieces(bench.ours.engines(), case, random, report).map_err(|e| e.to_string())?;
        if let Some(odd) = pieces.into_iter().find(|ran| *ran != whole) {
            (same, shown) = (false, odd);
        }
    }
    if !same {
        report.differs(|| {
            let note = format!(
                "stops: {:?} and {:?}; counts: {} and {}",
                whole.stop, shown.stop, whole.count, shown.count
            );
            describe_case(
                case,
                &[("eval", &whole.outcome), ("other form or in pieces", &shown.outcome)],
                &note,
            )
        });
    }
    Ok(same.then_some(whole))
}

/// Runs a case on two engines in pieces of random length, and compares them at every stop; the results at
/// the end, or where they first differ.
fn in_pieces(
    mut engines: [&mut Machine; 2],
    case: &Case,
    random: &mut Random,
    report: &mut ProgramReport,
) -> kvrm::Result<[Ran; 2]> {
    for machine in &mut engines {
        load(machine, case)?;
        machine.add_breakpoint(end_of(case))?;
    }
    let most = random.pick(&[3, 20, 100, 1000]);
    let results = loop {
        let piece = 1 + random.below(most);
        for machine in &mut engines {
            machine.run(piece)?;
        }
        report.stops += 1;
        let results = [result(engines[0], case)?, result(engines[1], case)?];
        let done = results[0].stop != Some(kvrm::Stop::MaxCycles)
            || results[0].count > MAX_EXECUTED.into();
        if done || results[0] != results[1] {
            break results;
        }
    };
    for machine in &mut engines {
        machine.remove_breakpoint(end_of(case));
    }
    Ok(results)
}
