//! Command lines on other engines: they do what they do on the CPU engine, in as many instructions.

use serde_json::Value;

use crate::case::{Case, Needs};
use crate::check::{chosen, difference, run_all};
use crate::place::Kvrm;
use crate::{commands, debian};

/// The most instructions that the evaluator is given.
const MOST: u64 = 500_000;
/// How many command lines are that short, at least.
const EXPECTED: usize = 60;

/// Command lines for a GPU that is none: its driver compiles slowly. The last two make other processes.
const ON_LLVMPIPE: [&str; 12] = [
    "busybox-echo",
    "busybox-wc",
    "busybox-sort",
    "busybox-tr",
    "busybox-grep",
    "busybox-sed",
    "busybox-expr",
    "busybox-md5",
    "busybox-printf",
    "busybox-sh-functions",
    "busybox-sh-pipeline",
    "busybox-sh-trap",
];

/// Runs cases on the CPU engine and on another, for so many instructions at the most. How they differ, an empty text if they
/// do not; nothing of those that take more.
fn compare_with_cpu(kvrm: &Kvrm, cases: &[&Case], engine: &str, most: u64) -> Vec<String> {
    let differences = run_all(cases, |case| {
        let (expected, cpu) = kvrm.reported(case, "cpu", most)?;
        let Some((found, report)) = kvrm.reported(case, engine, most) else {
            return Some(format!("== {}: the limit is reached on {engine}", case.name));
        };
        if expected != found {
            return Some(difference(case, &expected, &found));
        }
        let moves = report["moved_to_cpu"] != Value::Null;
        let should = engine == "wgpu" && case.needs != Needs::Single;
        let [here, there] = [&cpu, &report].map(|report| report["instructions"].as_u64());
        let same = here == there && moves == should;
        Some(if same { String::new() } else { format!("== {}: {cpu}\n{report}", case.name) })
    });
    differences.into_iter().flatten().collect()
}

fn check(compared: &[String], engine: &str) {
    let differences: Vec<_> = compared.iter().filter(|text| !text.is_empty()).cloned().collect();
    assert!(differences.is_empty(), "cpu and {engine} differ:\n{}", differences.join("\n"));
}

#[test]
fn short_command_lines_do_the_same_on_the_evaluator() {
    let Some(root) = debian() else { return };
    let cases = commands::all();
    let cases = chosen(&cases.iter().collect::<Vec<_>>());
    let short = compare_with_cpu(&Kvrm::new(root), &cases, "eval", MOST);
    check(&short, "eval");
    let all = std::env::var_os("KVRM_LINUX_ONLY").is_none();
    assert!(!all || short.len() >= EXPECTED, "only {} command lines are short", short.len());
}

#[test]
fn command_lines_do_the_same_on_a_software_gpu() {
    let Some(root) = debian() else { return };
    if std::env::var_os("KVRM_LAVAPIPE_ICD").is_none() {
        eprintln!("skipped: KVRM_LAVAPIPE_ICD is not set; `cargo xtask test` sets it");
        return;
    }
    let cases = commands::all();
    let cases: Vec<&Case> =
        cases.iter().filter(|case| ON_LLVMPIPE.contains(&case.name.as_str())).collect();
    assert_eq!(cases.len(), ON_LLVMPIPE.len());
    check(&compare_with_cpu(&Kvrm::new(root), &cases, "wgpu", u64::MAX), "wgpu");
}
