//! Compares an engine with the reference evaluator, one case per lane and very many lanes at a time. This is how
//! engines on GPUs are tested, which are slow to start and fast with many lanes.
//!
//! A round is a machine full of cases, all rows mixed, whose code is one image (`layout.rs`). The cases are made
//! ([`case`]) and evaluated on all cores; then the engine runs them, first for one instruction, then on to whatever
//! stops the lane. Registers, stops and counts are compared after both runs, and the memory written after the second.
//! In every other round, single instructions begin with a NOP and the first run has two instructions, so that a
//! load-exclusive and its store-exclusive fit into it.

pub mod case;
pub mod compare;
pub(crate) mod layout;
pub mod report;

use std::ops::Range;
use std::time::{Duration, Instant};

use kvrm::{EngineKind, Lanes, Machine, MemoryModel};
use kvrm_a64::{Instruction, table};

use case::{LaneCase, Maker, Subject};
use compare::{Ending, Outcome, describe};
use layout::{Layout, random_data};

use crate::quota::Quota;
use crate::random::Random;

/// Instructions of the second run: enough to reach the end of the longest sequence.
const REST: u64 = 3;
/// The most differences that are described for a row.
const DESCRIBED: usize = 2;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The engine to compare with the evaluator.
    pub engine: EngineKind,
    /// Whether lanes share one memory or have one each.
    pub model: MemoryModel,
    /// The rows to test. If these are all rows, words that belong to no row are tested too.
    pub rows: Vec<&'static Instruction>,
    /// Cases for each.
    pub cases: Quota,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The most lanes of a machine; it has more if one case of each row needs more.
    pub lanes: usize,
    /// Threads that make and evaluate cases.
    pub threads: usize,
}

/// The results of a row.
#[derive(Clone, Debug)]
pub struct RowReport {
    /// The row.
    pub subject: Subject,
    /// Cases run.
    pub cases: u64,
    /// Cases that differ.
    pub different: u64,
    /// Descriptions of the first of these.
    pub descriptions: Vec<String>,
}

/// All results.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The results of rows, in the order of the plan.
    pub rows: Vec<RowReport>,
    /// Time spent making cases, on the plan's threads.
    pub making: Duration,
    /// Time spent evaluating them, likewise.
    pub evaluating: Duration,
    /// Time that the engine took, including transfers to and from the device.
    pub running: Duration,
}

impl Summary {
    /// Cases run.
    pub fn cases(&self) -> u64 {
        self.rows.iter().map(|row| row.cases).sum()
    }

    /// Cases that differ.
    pub fn different(&self) -> u64 {
        self.rows.iter().map(|row| row.different).sum()
    }
}

/// One machine full of cases.
struct Round {
    layout: Layout,
    data: Vec<u8>,
    /// Instructions of the first run.
    first_run: u64,
    /// The case of lane 1, of lane 2 and so on.
    cases: Vec<LaneCase>,
}

impl Plan {
    /// Compares everything. `progress` is called with the number of cases done, the number of all cases, and how many
    /// differ.
    pub fn run(&self, progress: &dyn Fn(u64, u64, u64)) -> kvrm::Result<Summary> {
        let subjects = self.subjects();
        let empty = |&subject| RowReport { subject, cases: 0, different: 0, descriptions: vec![] };
        let mut summary =
            Summary { rows: subjects.iter().map(empty).collect(), ..Summary::default() };
        let counts: Vec<_> = subjects.iter().map(|subject| self.cases_of(*subject)).collect();
        let total: u64 = counts.iter().sum();
        // A round has a case of every row at least, if there are as many rounds.
        let most = self.lanes.saturating_sub(1).max(subjects.len()) as u64;
        let rounds = total.div_ceil(most.max(1));
        if rounds == 0 {
            return Ok(summary);
        }
        // The same number in each round, so that the last one is not nearly empty.
        let share = total.div_ceil(rounds) as usize;
        let layout = Layout { lanes: 1 + share, model: self.model };
        let mut machine = self.machine(&layout)?;
        let mut jobs = jobs(&counts);
        for round in 0..rounds {
            let jobs: Vec<_> = jobs.by_ref().take(share).collect();
            self.round(round, &jobs, &subjects, &mut machine, &mut summary)?;
            progress(summary.cases(), total, summary.different());
        }
        Ok(summary)
    }

    fn cases_of(&self, subject: Subject) -> u64 {
        match subject {
            Subject::Row(row) => self.cases.of(row),
            Subject::Unallocated => self.cases.row,
        }
    }

    fn subjects(&self) -> Vec<Subject> {
        let all = self.rows.len() == table().len();
        let rows = self.rows.iter().map(|row| Subject::Row(row));
        rows.chain(all.then_some(Subject::Unallocated)).collect()
    }

    fn machine(&self, layout: &Layout) -> kvrm::Result<Machine> {
        let mut machine = builder(self.engine, layout).lanes(layout.lanes).build()?;
        machine.set_entry(layout.entry())?;
        Ok(machine)
    }

    fn round(
        &self,
        round: u64,
        jobs: &[Job],
        subjects: &[Subject],
        machine: &mut Machine,
        summary: &mut Summary,
    ) -> kvrm::Result<()> {
        let start = Instant::now();
        let layout = Layout { lanes: machine.lanes(), model: self.model };
        let round = self.make(round, jobs, subjects, layout);
        let made = Instant::now();
        let expected = self.expect(&round)?;
        let evaluated = Instant::now();
        let found = round.play_on(machine)?;
        summary.making += made - start;
        summary.evaluating += evaluated - made;
        summary.running += evaluated.elapsed();
        for (i, case) in round.cases.iter().enumerate() {
            let report = &mut summary.rows[jobs[i].subject];
            report.cases += 1;
            if expected[i] != found[i] {
                report.differs(case, &expected[i], &found[i], machine.engine());
            }
        }
        Ok(())
    }

    fn make(&self, round: u64, jobs: &[Job], subjects: &[Subject], layout: Layout) -> Round {
        let data = random_data(&mut Random::part(self.seed, 1 << 63 | round), &layout);
        let padded = !round.is_multiple_of(2);
        let cases = in_parallel(self.threads, jobs.len(), |part| {
            let mut maker = Maker::new(layout, self.seed, &data, padded);
            let mut case = |i: usize| {
                let Job { subject, number } = jobs[i];
                maker.case(1 + i, subjects[subject], number)
            };
            part.map(&mut case).collect()
        });
        Round { layout, data, first_run: 1 + u64::from(padded), cases }
    }

    /// Evaluates the cases.
    fn expect(&self, round: &Round) -> kvrm::Result<Vec<Ending>> {
        let endings = in_parallel(self.threads, round.cases.len(), |part| {
            vec![round.evaluate(&round.cases[part])]
        });
        Ok(endings.into_iter().collect::<kvrm::Result<Vec<_>>>()?.concat())
    }
}

/// A case to make: its subject, by position in the plan, and its number among the subject's cases.
#[derive(Clone, Copy)]
struct Job {
    subject: usize,
    number: u64,
}

/// Returns all jobs, given the number of each subject's cases: the first case of every subject, then the second, and so
/// on.
fn jobs(counts: &[u64]) -> impl Iterator<Item = Job> {
    let most = counts.iter().copied().max().unwrap_or(0);
    (0..most).flat_map(|number| {
        let subjects = counts.iter().enumerate().filter(move |(_, count)| number < **count);
        subjects.map(move |(subject, _)| Job { subject, number })
    })
}

impl RowReport {
    fn differs(&mut self, case: &LaneCase, expected: &Ending, found: &Ending, engine: &str) {
        self.different += 1;
        if self.descriptions.len() < DESCRIBED {
            self.descriptions.push(describe(case, [("eval", expected), (engine, found)]));
        }
    }
}

fn builder(engine: EngineKind, layout: &Layout) -> kvrm::MachineBuilder {
    // Everything runs once: an engine that translates only what runs often would translate nothing.
    Machine::builder()
        .engine(engine)
        .memory(layout.memory_size())
        .model(layout.model)
        .translate_after(0)
}

impl Round {
    fn load(&self, machine: &mut Machine) -> kvrm::Result<()> {
        let code = self.layout.code_image(self.cases.iter().map(|case| case.words));
        machine.load(self.layout.entry(), &code)?;
        machine.load(self.layout.all_data().start, &self.data)
    }

    /// Runs one case after another in one lane.
    fn evaluate(&self, cases: &[LaneCase]) -> kvrm::Result<Vec<Ending>> {
        let mut machine = builder(EngineKind::Eval, &self.layout).build()?;
        self.load(&mut machine)?;
        let mut endings = Vec::with_capacity(cases.len());
        for case in cases {
            machine.reset(0)?;
            endings.append(&mut self.play(&mut machine, 0, std::slice::from_ref(case))?);
        }
        Ok(endings)
    }

    /// Runs all cases at once, each in its lane.
    fn play_on(&self, machine: &mut Machine) -> kvrm::Result<Vec<Ending>> {
        // Before the image changes, or pages that lanes have copied would have to be changed too.
        machine.reset(Lanes::All)?;
        self.load(machine)?;
        self.play(machine, 1, &self.cases)
    }

    /// Runs cases, in a machine's lanes from `first_lane` on.
    fn play(
        &self,
        machine: &mut Machine,
        first_lane: usize,
        cases: &[LaneCase],
    ) -> kvrm::Result<Vec<Ending>> {
        let lanes = || (first_lane..).zip(cases);
        for (lane, case) in lanes() {
            machine.set_registers(lane, &case.registers)?;
        }
        machine.run(self.first_run)?;
        let mut after_first = Vec::with_capacity(cases.len());
        for (lane, case) in lanes() {
            let outcome = Outcome::of(machine, lane)?;
            after_first.push(outcome);
            if let Some(pc) = case.parking(outcome.registers.pc, self.layout.memory_size()) {
                machine.set_pc(lane, pc)?;
            }
        }
        machine.run(REST)?;
        let ends = lanes().zip(after_first).map(|((lane, case), after_first)| {
            let mut memory = vec![0; (case.watched.end - case.watched.start) as usize];
            if !memory.is_empty() {
                machine.read_memory(lane, case.watched.start, &mut memory)?;
            }
            Ok(Ending { after_first, at_end: Outcome::of(machine, lane)?, memory })
        });
        ends.collect()
    }
}

/// Splits work between threads; returns the results in order.
fn in_parallel<T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(Range<usize>) -> Vec<T> + Sync,
) -> Vec<T> {
    let share = count.div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let parts = (0..count).step_by(share).map(|start| start..count.min(start + share));
        let threads: Vec<_> = parts.map(|part| scope.spawn(|| work(part))).collect();
        let results = threads.into_iter().map(|t| t.join().expect("its panic is shown above"));
        results.flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use kvrm_engine::code::reachable;

    use super::*;

    fn plan(model: MemoryModel) -> Plan {
        let rows = table().iter().collect();
        let cases = Quota::each(2);
        Plan { engine: EngineKind::Eval, model, rows, cases, seed: 1, lanes: 0, threads: 2 }
    }

    /// One round with all rows.
    fn round(model: MemoryModel, number: u64) -> Round {
        let (plan, cases) = (plan(model), 2);
        let subjects = plan.subjects();
        let layout = Layout { lanes: 1 + cases * subjects.len(), model };
        let jobs: Vec<_> = jobs(&vec![cases as u64; subjects.len()]).collect();
        plan.make(number, &jobs, &subjects, layout)
    }

    #[test]
    fn one_instruction_done_wrong_is_noticed() {
        for model in [MemoryModel::Private, MemoryModel::Shared] {
            let mut round = round(model, 0);
            let expected = plan(model).expect(&round).unwrap();
            let wrong = round.cases.iter().position(|c| c.subject.name() == "EOR_shift_X").unwrap();
            let mut machine = plan(model).machine(&round.layout).unwrap();
            assert!(round.play_on(&mut machine).unwrap() == expected);
            // EON instead of EOR.
            round.cases[wrong].words[2] ^= 1 << 21;
            let found = round.play_on(&mut machine).unwrap();
            let different: Vec<_> =
                (0..found.len()).filter(|i| expected[*i] != found[*i]).collect();
            assert_eq!(different, [wrong]);
        }
    }

    #[test]
    fn cases_do_not_depend_on_the_number_of_threads() {
        let registers = |threads| {
            let plan = Plan { threads, ..plan(MemoryModel::Private) };
            let layout = Layout { lanes: 50, model: plan.model };
            let subjects = plan.subjects();
            let jobs: Vec<_> = (0..49).map(|subject| Job { subject, number: 3 }).collect();
            let cases = plan.make(1, &jobs, &subjects, layout).cases;
            cases.into_iter().map(|case| (case.words, case.registers)).collect::<Vec<_>>()
        };
        assert_eq!(registers(1), registers(5));
    }

    #[test]
    fn all_code_is_found_from_the_first_lane_and_none_in_the_data() {
        for number in 0..2 {
            let round = round(MemoryModel::Private, number);
            let layout = round.layout;
            let code = layout.code_image(round.cases.iter().map(|case| case.words));
            let fetch = |at: u64| {
                let offset = at.wrapping_sub(layout.entry()) as usize;
                let word = code.get(offset..).and_then(|code| code.first_chunk());
                // Zero between the code and the data, and nothing outside memory.
                let zero = (at < layout.memory_size()).then_some(0);
                word.map(|word| u32::from_le_bytes(*word)).or(zero)
            };
            let found = reachable([layout.entry()], usize::MAX, fetch);
            let found: std::collections::HashSet<u64> =
                found.into_iter().map(|(at, _)| at).collect();
            let starts = round.cases.iter().map(|case| case.registers.pc);
            let ends = round.cases.iter().map(|case| case.slot.end - 4);
            assert!(starts.chain(ends).all(|at| found.contains(&at)));
            assert!(!found.iter().any(|at| layout.all_data().contains(at)));
        }
    }

    #[test]
    fn rows_have_as_many_cases_as_they_should() {
        let found: Vec<_> = jobs(&[2, 0, 3]).map(|job| (job.subject, job.number)).collect();
        assert_eq!(found, [(0, 0), (2, 0), (0, 1), (2, 1), (2, 2)]);
    }

    #[test]
    fn work_is_split_and_put_together_in_order() {
        for (threads, count) in [(1, 5), (3, 10), (8, 3), (0, 2), (4, 0)] {
            let done = in_parallel(threads, count, |part| part.collect());
            assert!(done.into_iter().eq(0..count));
        }
    }
}
