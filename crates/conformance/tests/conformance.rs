//! The suite as a test. Its cases are the same every time, but for a part of those of large groups; the command
//! `conformance` tries others, and with `--seed` those of a failure again.
//!
//! Needs the oracles' programs; the failure says how to install them.

use std::time::{SystemTime, UNIX_EPOCH};

use kvrm_a64::table;
use kvrm_conformance::oracle::Tools;
use kvrm_conformance::quota::Quota;
use kvrm_conformance::report;
use kvrm_conformance::suite::{Plan, SEED};

fn check(plan: &Plan) {
    let tools = Tools::find([true; 2]).unwrap_or_else(|error| panic!("{error}"));
    let summary = plan.run(&tools, &|_, _, _| ()).unwrap_or_else(|error| panic!("{error}"));
    print!("{}", report::text(&summary));
    let problems = summary.problems([true; 2]);
    if summary.different() > 0 || !problems.is_empty() {
        summary.descriptions().for_each(|description| println!("{description}"));
        panic!("{} different, seed {:#x}; problems: {problems:#?}", summary.different(), plan.seed);
    }
}

const NOTHING: Plan = Plan {
    rows: Vec::new(),
    cases: Quota::USUAL,
    halves: false,
    invalid: 0,
    programs: 0,
    seed: SEED,
    other_seed: None,
    until: None,
    threads: 2,
};

#[test]
fn every_row_agrees_with_the_oracles_in_every_form() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let other_seed = Some(now.as_secs());
    check(&Plan { rows: table().iter().collect(), other_seed, ..NOTHING });
}

#[test]
fn every_half_agrees() {
    check(&Plan { halves: true, ..NOTHING });
}

#[test]
fn words_that_both_oracles_find_undefined_are_undefined() {
    check(&Plan { invalid: 100_000, ..NOTHING });
}

#[test]
fn random_programs_agree() {
    check(&Plan { programs: 300, ..NOTHING });
}
