//! Short command lines on the evaluator: they do what they do on the CPU engine, in as many instructions.

use crate::check::{chosen, difference, run_all};
use crate::place::Kvrm;
use crate::{commands, debian};

/// The most instructions that the evaluator is given.
const MOST: u64 = 500_000;
/// How many command lines are that short, at least.
const EXPECTED: usize = 60;

#[test]
fn short_command_lines_do_the_same_on_the_evaluator() {
    let Some(root) = debian() else { return };
    let kvrm = Kvrm::new(root);
    let cases = commands::all();
    let cases = chosen(&cases.iter().collect::<Vec<_>>());
    let differences = run_all(&cases, |case| {
        let (expected, count) = kvrm.counted(case, "cpu", MOST)?;
        let Some((found, other)) = kvrm.counted(case, "eval", MOST) else {
            return Some(format!("== {}: the limit is reached on eval", case.name));
        };
        if expected != found {
            return Some(difference(case, &expected, &found));
        }
        let same = count == other;
        Some(if same { String::new() } else { format!("== {}: {count} and {other}", case.name) })
    });
    let short: Vec<String> = differences.into_iter().flatten().collect();
    let differences: Vec<_> = short.iter().filter(|text| !text.is_empty()).cloned().collect();
    assert!(differences.is_empty(), "cpu and eval differ:\n{}", differences.join("\n"));
    let all = std::env::var_os("KVRM_LINUX_ONLY").is_none();
    assert!(!all || short.len() >= EXPECTED, "only {} command lines are short", short.len());
}
