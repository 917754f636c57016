//! The whole suite: what to run, on how many threads, and the results.

use std::sync::Mutex;
use std::time::Instant;

use kvrm_a64::{Instruction, table};

use crate::compare::{Bench, RowReport};
use crate::invalid::{InvalidReport, try_words};
use crate::known::{Known, OWN, known};
use crate::oracle::{ORACLES, Tools};
use crate::programs::{ProgramReport, run_programs};
use crate::quota::Quota;
use crate::random::Random;
use crate::vectors::touches;

/// The seed of test runs: the same cases every time.
pub const SEED: u64 = 0x6b76_726d;
/// If every row has this many cases, or its usual share, every entry in the list of known differences must have been
/// needed.
const ENOUGH: u64 = 1000;
/// Words and programs that one thread takes at a time.
const WORDS_PER_UNIT: u64 = 20_000;
const PROGRAMS_PER_UNIT: u64 = 256;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rows to test.
    pub rows: Vec<&'static Instruction>,
    /// Cases for each.
    pub cases: Quota,
    /// Whether operations on one half are tested with every half.
    pub halves: bool,
    /// Words to try that may be invalid.
    pub invalid: u64,
    /// Random programs to run.
    pub programs: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The seed of half the cases of rows that get fewer than others: with another one in every run, all runs together
    /// make up for that.
    pub other_seed: Option<u64>,
    /// When to stop, if not at the end.
    pub until: Option<Instant>,
    /// Threads, each with oracles of its own.
    pub threads: usize,
}

/// True for rows that compute something of each half of a vector. FCVTL takes those of the lower half, FCVTL2 the others.
fn is_of_one_half(row: &'static Instruction) -> bool {
    row.group == "Advanced SIMD two-register miscellaneous"
        && (row.name.ends_with("_8H") || row.name == "FCVTL_4H")
        && touches(row).fpcr
}

/// A piece of the work.
#[derive(Clone, Copy)]
enum Unit {
    Row { row: &'static Instruction, cases: u64, seed: u64 },
    Halves(&'static Instruction),
    Words { count: u64, part: u64 },
    Programs { count: u64, part: u64 },
}

/// The results.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The results of rows, in the order of the table.
    pub rows: Vec<RowReport>,
    /// The results of words that may be invalid.
    pub invalid: InvalidReport,
    /// The results of programs.
    pub programs: ProgramReport,
}

impl Plan {
    fn units(&self) -> Vec<Unit> {
        let split = |total: u64, most: u64| {
            (0..total.div_ceil(most)).map(move |part| (most.min(total - part * most), part))
        };
        let words =
            split(self.invalid, WORDS_PER_UNIT).map(|(count, part)| Unit::Words { count, part });
        let programs = split(self.programs, PROGRAMS_PER_UNIT)
            .map(|(count, part)| Unit::Programs { count, part });
        let rows = self.rows.iter().flat_map(|row| self.row_units(row));
        let halves =
            table().iter().filter(|row| self.halves && is_of_one_half(row)).map(Unit::Halves);
        let mut units: Vec<_> = rows.chain(halves).chain(words).chain(programs).collect();
        if self.until.is_some() {
            // In another order with every seed, so that all get their turn.
            let mut random = Random::part(self.seed, 3 << 32);
            units.sort_by_cached_key(|_| random.next());
        }
        units
    }

    fn row_units(&self, row: &'static Instruction) -> impl Iterator<Item = Unit> + use<> {
        let cases = self.cases.of(row);
        let other = self.other_seed.filter(|_| cases < self.cases.row);
        let others = if other.is_some() { cases / 2 } else { 0 };
        let units = [(cases - others, self.seed), (others, other.unwrap_or(self.seed))];
        let units = units.into_iter().filter(|(cases, _)| *cases > 0);
        units.map(move |(cases, seed)| Unit::Row { row, cases, seed })
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Runs everything, or as much as there is time for. `progress` is called with the number of units that are finished, the number of all units, and
    /// the number of differences so far.
    pub fn run(
        &self,
        tools: &Tools,
        progress: &(dyn Fn(usize, usize, u64) + Sync),
    ) -> Result<Summary, String> {
        let units = self.units();
        // How many units have been taken, how many are finished, and their results.
        let state = Mutex::new((0, 0, Summary::default()));
        let work = || -> Result<(), String> {
            let mut bench = Bench::new(tools)?;
            loop {
                let unit = {
                    let (taken, ..) = &mut *state.lock().expect("no thread panicked");
                    *taken += 1;
                    units.get(*taken - 1).copied()
                };
                let Some(unit) = unit.filter(|_| !self.is_over()) else { return Ok(()) };
                let done = self.unit(&mut bench, unit)?;
                let (_, finished, summary) = &mut *state.lock().expect("no thread panicked");
                *finished += 1;
                summary.add(done);
                progress(*finished, units.len(), summary.different());
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .try_for_each(|t| t.join().expect("the thread's panic is shown above"))
        })?;
        Ok(state.into_inner().expect("no thread panicked").2)
    }

    fn unit(&self, bench: &mut Bench, unit: Unit) -> Result<Summary, String> {
        let mut summary = Summary::default();
        match unit {
            Unit::Row { row, cases, seed } => summary.rows.push(bench.row(row, cases, seed)?),
            Unit::Halves(row) => summary.rows.push(bench.halves(row, self.seed)?),
            Unit::Words { count, part } => {
                // The lower parts are those of the rows.
                summary.invalid = try_words(bench, count, Random::part(self.seed, 1 << 32 | part))?;
            }
            Unit::Programs { count, part } => {
                summary.programs =
                    run_programs(bench, count, Random::part(self.seed, 2 << 32 | part).next())?;
            }
        }
        Ok(summary)
    }
}

impl Summary {
    /// Adds more results.
    pub fn add(&mut self, other: Summary) {
        for report in other.rows {
            match self.rows.iter_mut().find(|mine| mine.row.index == report.row.index) {
                Some(mine) => mine.add(&report),
                None => self.rows.push(report),
            }
        }
        self.rows.sort_by_key(|report| report.row.index);
        self.invalid.add(other.invalid);
        self.programs.add(other.programs);
    }

    /// Returns how many cases, words and programs differ without a known reason.
    pub fn different(&self) -> u64 {
        let rows: u64 = self.rows.iter().map(|report| report.different).sum();
        rows + self.invalid.different + self.programs.different
    }

    /// Returns descriptions of the first differences.
    pub fn descriptions(&self) -> impl Iterator<Item = &String> {
        let rows = self.rows.iter().flat_map(|report| &report.descriptions);
        rows.chain(&self.invalid.descriptions).chain(&self.programs.descriptions)
    }

    /// Returns how often an entry of [`known`] was needed, by oracle.
    pub fn known(&self, entry: usize) -> [u64; 2] {
        self.rows.iter().fold([0; 2], |sum, report| {
            [sum[0] + report.known[entry][0], sum[1] + report.known[entry][1]]
        })
    }

    /// Returns what is wrong with the run besides differences: rows of which too few cases were compared, and known
    /// differences that no longer occur.
    pub fn problems(&self, asked: [bool; 2]) -> Vec<String> {
        let mut problems: Vec<_> =
            self.rows.iter().flat_map(|report| row_problems(report, asked)).collect();
        let enough = |report: &RowReport| report.cases >= Quota::USUAL.of(report.row).min(ENOUGH);
        let complete = self.rows.len() == table().len() && self.rows.iter().all(enough);
        let is_about_some = |known: &Known| table().iter().any(known.rows);
        for (entry, known) in known().enumerate().filter(|(_, k)| complete && is_about_some(k)) {
            for (oracle, needed) in self.known(entry).into_iter().enumerate() {
                if needed == 0 && asked[oracle] && known.oracles.contains(&ORACLES[oracle]) {
                    let name = ORACLES[oracle].name();
                    problems.push(format!(
                        "{name} no longer differs in this; remove it from known.rs: {}",
                        known.reason
                    ));
                }
            }
        }
        problems
    }
}

fn row_problems(report: &RowReport, asked: [bool; 2]) -> Vec<String> {
    let RowReport { row, cases, dropped, tallies, .. } = report;
    let mut problems = Vec::new();
    if *dropped > cases / 4 + 10 {
        problems.push(format!("{}: {dropped} cases dropped for {cases} run", row.name));
    }
    let equal = tallies.iter().map(|tally| tally.equal).max().unwrap_or(0);
    let own = OWN.iter().any(|own| own.rows.contains(&row.name));
    if asked == [true; 2] && *cases >= 100 && equal * 2 < *cases && !own {
        problems.push(format!(
            "{}: only {equal} of {cases} cases were comparable with an oracle",
            row.name
        ));
    }
    let unanswered: u64 = tallies.iter().map(|tally| tally.unanswered).sum();
    if unanswered > 0 {
        problems.push(format!("{}: {unanswered} cases without an answer", row.name));
    }
    problems
}
