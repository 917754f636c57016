//! Runs cases on our machines and on the oracles, and compares the results.

use kvrm_a64::Instruction;
use kvrm_oracles::{Outcome, OutcomeKind};

use crate::describe::describe;
use crate::generate::{Generator, Test};
use crate::known::{OWN, known};
use crate::oracle::{ORACLES, Oracles, Tools, Which};
use crate::ours::{FORMS, Ours, Ran};
use crate::random::Random;

/// Cases sent to an oracle at a time: few enough for each to have its own code address.
const BATCH: u64 = 4000;
/// Differences described in full for one row; the rest are counted.
const DESCRIBED: usize = 2;

/// A case with our result and an oracle's.
pub struct Seen<'a> {
    /// The case.
    pub test: &'a Test,
    /// Ours.
    pub ours: &'a Ran,
    /// The oracle's.
    pub theirs: &'a Outcome,
}

/// How many cases of a row agreed with an oracle, and how many differ for a known reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Cases that agree in everything.
    pub equal: u64,
    /// Cases that differ for a known reason.
    pub explained: u64,
    /// Cases the oracle gave no answer to.
    pub unanswered: u64,
}

/// The results of a row.
#[derive(Clone, Debug)]
pub struct RowReport {
    /// The row.
    pub row: &'static Instruction,
    /// Cases run.
    pub cases: u64,
    /// Cases made but not run.
    pub dropped: u64,
    /// How cases compare, by oracle.
    pub tallies: [Tally; 2],
    /// How often each entry of [`known`] was needed, by oracle.
    pub known: Vec<[u64; 2]>,
    /// Cases that differ without a known reason.
    pub different: u64,
    /// Descriptions of the first of these.
    pub descriptions: Vec<String>,
}

impl RowReport {
    /// Makes an empty report.
    pub fn new(row: &'static Instruction) -> RowReport {
        RowReport {
            row,
            cases: 0,
            dropped: 0,
            tallies: Default::default(),
            known: vec![[0; 2]; known().count()],
            different: 0,
            descriptions: Vec::new(),
        }
    }

    /// Adds the results of more cases.
    pub fn add(&mut self, other: &RowReport) {
        self.cases += other.cases;
        self.dropped += other.dropped;
        self.different += other.different;
        for (mine, theirs) in self.tallies.iter_mut().zip(other.tallies) {
            mine.equal += theirs.equal;
            mine.explained += theirs.explained;
            mine.unanswered += theirs.unanswered;
        }
        for (mine, theirs) in self.known.iter_mut().zip(&other.known) {
            mine[0] += theirs[0];
            mine[1] += theirs[1];
        }
        self.descriptions.extend(other.descriptions.iter().cloned());
        self.descriptions.truncate(DESCRIBED);
    }

    fn differs(&mut self, description: impl FnOnce() -> String) {
        self.different += 1;
        if self.descriptions.len() < DESCRIBED {
            self.descriptions.push(description());
        }
    }
}

/// Our machines and the oracles, for one thread.
pub struct Bench {
    /// Ours.
    pub ours: Ours,
    /// Theirs.
    pub oracles: Oracles,
}

impl Bench {
    /// Builds the machines and starts the oracles.
    pub fn new(tools: &Tools) -> Result<Bench, String> {
        let ours = Ours::new().map_err(|e| e.to_string())?;
        Ok(Bench { ours, oracles: tools.start()? })
    }

    /// Compares `cases` cases of a row.
    pub fn row(
        &mut self,
        row: &'static Instruction,
        cases: u64,
        seed: u64,
    ) -> Result<RowReport, String> {
        let mut report = RowReport::new(row);
        let mut generator = Generator::new(Random::part(seed, row.index as u64));
        while report.cases < cases {
            let batch = BATCH.min(cases - report.cases);
            let tests = generator.tests(row, batch);
            self.batch(&tests, &mut report)?;
        }
        report.dropped = generator.dropped;
        for description in &mut report.descriptions {
            *description = format!("seed {seed:#x}, {description}");
        }
        Ok(report)
    }

    /// Compares the cases of a row with every half.
    pub fn halves(&mut self, row: &'static Instruction, seed: u64) -> Result<RowReport, String> {
        let mut report = RowReport::new(row);
        let mut generator = Generator::new(Random::part(seed, row.index as u64));
        for tests in generator.halves(row).chunks(BATCH as usize) {
            self.batch(tests, &mut report)?;
        }
        Ok(report)
    }

    fn batch(&mut self, tests: &[Test], report: &mut RowReport) -> Result<(), String> {
        let cases: Vec<_> = tests.iter().map(|test| test.case.clone()).collect();
        let answers = self.oracles.run(&cases)?;
        for (i, test) in tests.iter().enumerate() {
            report.cases += 1;
            let forms = self.ours.run(&test.case).map_err(|e| e.to_string())?;
            if !forms_agree(test, &forms, report) {
                continue;
            }
            expect_own(test, &forms[0], report);
            for (oracle, answers) in answers.iter().enumerate() {
                if let Some(answers) = answers {
                    judge(oracle, test, &forms[0], answers[i].as_ref(), report);
                }
            }
        }
        Ok(())
    }
}

/// True if our forms have the same result; if not, reports a difference.
fn forms_agree(test: &Test, forms: &[Ran], report: &mut RowReport) -> bool {
    let odd = (1..FORMS.len()).find(|i| forms[*i] != forms[0]);
    if let Some(odd) = odd {
        let names = [format!("{:?}", FORMS[0]), format!("{:?}", FORMS[odd])];
        report.differs(|| {
            let results =
                [(names[0].as_str(), &forms[0].outcome), (names[1].as_str(), &forms[odd].outcome)];
            describe(
                test,
                &results,
                &format!("stops: {:?} and {:?}", forms[0].stop, forms[odd].stop),
            )
        });
    }
    odd.is_none()
}

/// Checks what no oracle can judge.
fn expect_own(test: &Test, ours: &Ran, report: &mut RowReport) {
    for entry in OWN.iter().filter(|own| own.rows.contains(&test.row.name)) {
        if !(entry.expected)(test, ours) {
            report.differs(|| {
                let note = format!("not as known.rs expects of it; stop: {:?}", ours.stop);
                describe(test, &[("ours", &ours.outcome)], &note)
            });
        }
    }
}

fn judge(oracle: usize, test: &Test, ours: &Ran, theirs: Option<&Outcome>, report: &mut RowReport) {
    let Some(theirs) = theirs else {
        report.tallies[oracle].unanswered += 1;
        return;
    };
    if agree(ORACLES[oracle], &ours.outcome, theirs) {
        report.tallies[oracle].equal += 1;
        return;
    }
    let seen = Seen { test, ours, theirs };
    let reason = known().position(|known| known.is_reason(ORACLES[oracle], &seen));
    if let Some(reason) = reason {
        report.known[reason][oracle] += 1;
        report.tallies[oracle].explained += 1;
        return;
    }
    report.differs(|| {
        let results = [("ours", &ours.outcome), (ORACLES[oracle].name(), theirs)];
        describe(test, &results, &format!("our stop: {:?}", ours.stop))
    });
}

/// True if two outcomes are the same in all that the oracle knows.
pub fn agree(oracle: Which, ours: &Outcome, theirs: &Outcome) -> bool {
    let knows_detail = match (theirs.kind, oracle) {
        // Hosts do not tell QEMU fault addresses that no program can have.
        (OutcomeKind::MemoryFault, Which::Qemu) => ours.detail >> 47 == 0,
        (OutcomeKind::MemoryFault, Which::Unicorn) | (OutcomeKind::AlignmentFault, Which::Qemu) => {
            true
        }
        (OutcomeKind::Svc, _) => true,
        _ => false,
    };
    ours.kind == theirs.kind
        && ours.pc == theirs.pc
        && ours.state == theirs.state
        && ours.window == theirs.window
        && (!knows_detail || ours.detail == theirs.detail)
}
