//! Runs random programs: on both engines, whole and in pieces, and on the oracles.

use kvrm::{Machine, Stop};
use kvrm_oracles::{Case, OutcomeKind};

use crate::compare::{Bench, agree};
use crate::describe::describe_case;
use crate::oracle::ORACLES;
use crate::ours::{Ran, end_of, load, result};
use crate::program::{Flavour, Programmer};
use crate::random::Random;

/// Programs sent to the oracles at a time.
const BATCH: u64 = 64;

/// The results of programs.
#[derive(Clone, Debug, Default)]
pub struct ProgramReport {
    /// Programs run.
    pub programs: u64,
    /// Instructions executed by one engine.
    pub instructions: u64,
    /// Stops in the middle at which the engines were compared.
    pub stops: u64,
    /// Comparisons with an oracle, by oracle.
    pub compared: [u64; 2],
    /// Programs that differ.
    pub different: u64,
    /// Descriptions of the first of these.
    pub descriptions: Vec<String>,
}

impl ProgramReport {
    /// Adds the results of more programs.
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
        [Flavour::Plain, Flavour::Stopping, Flavour::BeyondUnicorn, Flavour::SelfModifying];
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
        Flavour::Plain | Flavour::Stopping | Flavour::BeyondUnicorn => bench.oracles.run(&cases)?,
    };
    for (i, case) in cases.iter().enumerate() {
        report.programs += 1;
        let pieces = Random::new(random.next());
        let engines = Engines::run(bench, case, pieces.clone(), &mut report.stops)?;
        if engines.odd.is_some() {
            let smaller = shrink(bench, case, &pieces, report.descriptions.len())?;
            report.differs(|| smaller);
            continue;
        }
        let ours = engines.whole;
        report.instructions += ours.count;
        if flavour != Flavour::Stopping && ours.outcome.kind != OutcomeKind::Done {
            let note = format!("did not reach its end: {:?}", ours.stop);
            report.differs(|| describe_case(case, &[("ours", &ours.outcome)], &note));
        }
        for (oracle, answers) in answers.iter().enumerate() {
            let skip = oracle == 0 && flavour == Flavour::BeyondUnicorn;
            let answer = answers.as_ref().and_then(|answers| answers[i].as_ref());
            let Some(theirs) = answer.filter(|_| !skip) else { continue };
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

/// The results of a program on our machines.
struct Engines {
    /// The reference engine's result.
    whole: Ran,
    /// Two results that should be the same and are not.
    odd: Option<[(&'static str, Ran); 2]>,
}

impl Engines {
    /// Runs a case in all our forms, and on both engines in pieces.
    fn run(
        bench: &mut Bench,
        case: &Case,
        pieces: Random,
        stops: &mut u64,
    ) -> Result<Engines, String> {
        let forms = bench.ours.run(case).map_err(|e| e.to_string())?;
        let [whole, translated, cpu, interpreted] = forms;
        let others =
            [("translated form", translated), ("cpu", cpu), ("cpu, interpreting", interpreted)];
        for (name, form) in others {
            if form != whole {
                let odd = Some([("eval", whole.clone()), (name, form)]);
                return Ok(Engines { whole, odd });
            }
        }
        let engines = bench.ours.engines().map_err(|e| e.to_string())?;
        let [eval, cpu] = in_pieces(engines, case, pieces, stops).map_err(|e| e.to_string())?;
        let odd = if eval != cpu {
            Some([("eval in pieces", eval), ("cpu in pieces", cpu)])
        } else if eval != whole {
            Some([("eval", whole.clone()), ("both in pieces", eval)])
        } else {
            None
        };
        Ok(Engines { whole, odd })
    }
}

/// Replaces as much of a program as possible with NOP while our engines still differ; returns a description of the
/// rest. This takes time, so it is done for the first difference only: `found` is how many there were before.
fn shrink(bench: &mut Bench, case: &Case, pieces: &Random, found: usize) -> Result<String, String> {
    const NOP: u32 = 0xd503_201f;
    let mut small = case.clone();
    // A loop does not end if its counting instruction is replaced.
    small.max_instructions = 4000;
    let mut size = if found == 0 { case.code.len() / 2 } else { 0 };
    while size > 0 {
        for start in (0..small.code.len()).step_by(size) {
            let end = small.code.len().min(start + size);
            let mut tried = small.clone();
            tried.code[start..end].fill(NOP);
            let engines = Engines::run(bench, &tried, pieces.clone(), &mut 0)?;
            if engines.odd.is_some() && engines.whole.stop != Some(Stop::MaxCycles) {
                small = tried;
            }
        }
        size /= 2;
    }
    let Some(odd) = Engines::run(bench, &small, pieces.clone(), &mut 0)?.odd else {
        return Ok("a difference that does not repeat".to_string());
    };
    let results = odd.each_ref().map(|(name, ran)| (*name, &ran.outcome));
    let [first, second] = odd.each_ref().map(|(_, ran)| (ran.stop, ran.count));
    Ok(describe_case(&small, &results, &format!("stop and count: {first:?} and {second:?}")))
}

/// Runs a case on two engines in pieces of random length, and compares them at every stop; returns the results at the
/// end, or where they first differ.
fn in_pieces(
    mut engines: [&mut Machine; 2],
    case: &Case,
    mut random: Random,
    stops: &mut u64,
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
        *stops += 1;
        let results = [result(engines[0], case)?, result(engines[1], case)?];
        let done = results[0].stop != Some(Stop::MaxCycles)
            || results[0].count > case.max_instructions.into();
        if done || results[0] != results[1] {
            break results;
        }
    };
    for machine in &mut engines {
        machine.remove_breakpoint(end_of(case));
    }
    Ok(results)
}
