//! Runs many cases at once, and shows all that differ from what is expected.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::case::{Case, Output};
use crate::expected;

/// Lines around a difference.
const CONTEXT: usize = 3;

/// Runs cases and panics with all differences.
pub(crate) fn compare(cases: &[&Case], run: impl Fn(&Case) -> Output + Sync) {
    let cases = chosen(cases);
    let outputs = run_all(&cases, run);
    let mut files: HashMap<&Path, HashMap<String, Output>> = HashMap::new();
    let mut differences = Vec::new();
    for (case, output) in cases.iter().zip(&outputs) {
        let file = files.entry(&case.expected).or_insert_with(|| expected::read(&case.expected));
        match file.get(&case.name) {
            Some(expected) if expected == output => {}
            Some(expected) => differences.push(difference(case, expected, output)),
            None => differences.push(format!("== {}: nothing is expected yet", case.name)),
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {} cases differ (- expected, + found):\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n")
    );
}

/// Runs cases and writes what they gave; cases that were not chosen keep what they had.
pub(crate) fn bless(cases: &[&Case], run: impl Fn(&Case) -> Output + Sync) {
    let chosen = chosen(cases);
    let outputs = run_all(&chosen, run);
    let mut files: HashMap<&Path, HashMap<String, Output>> = HashMap::new();
    for (case, output) in chosen.iter().zip(outputs) {
        let file = files.entry(&case.expected).or_insert_with(|| expected::read(&case.expected));
        file.insert(case.name.clone(), output);
    }
    for (path, outputs) in files {
        let here = cases.iter().filter(|case| case.expected == path);
        let known = here.filter_map(|case| Some((case.name.as_str(), outputs.get(&case.name)?)));
        expected::write(path, &known.collect::<Vec<_>>());
    }
}

/// Returns the cases that `KVRM_LINUX_ONLY` chooses.
pub(crate) fn chosen<'a>(cases: &[&'a Case]) -> Vec<&'a Case> {
    let only = std::env::var("KVRM_LINUX_ONLY").unwrap_or_default();
    let wanted = |name: &str| only.split(',').any(|part| name.contains(part));
    cases.iter().copied().filter(|case| wanted(&case.name)).collect()
}

/// Runs cases on all cores.
pub(crate) fn run_all<T: Clone + Send>(cases: &[&Case], run: impl Fn(&Case) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let outputs = Mutex::new(vec![None; cases.len()]);
    let given = std::env::var("KVRM_LINUX_JOBS").ok().and_then(|jobs| jobs.parse().ok());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = given.unwrap_or(cores);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(case) = cases.get(at)
                {
                    let output = run(case);
                    outputs.lock().unwrap()[at] = Some(output);
                }
            });
        }
    });
    outputs.into_inner().unwrap().into_iter().map(|output| output.unwrap()).collect()
}

/// Describes the lines from the first to the last that differ.
pub(crate) fn difference(case: &Case, expected: &Output, found: &Output) -> String {
    let text = |output: &Output| format!("status {}\n{}", output.status, expected::lines(output));
    let (expected, found) = (text(expected), text(found));
    let (old, new): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let ends = old[start..].iter().rev().zip(new[start..].iter().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let mut lines = vec![format!("== {}: {}", case.name, case.words.join(" "))];
    let mut add = |mark: &str, part: &[&str]| {
        lines.extend(part.iter().map(|line| format!("{mark} {line}")));
    };
    add(" ", &old[start.saturating_sub(CONTEXT)..start]);
    add("-", &old[start..old.len() - end]);
    add("+", &new[start..new.len() - end]);
    add(" ", &old[old.len() - end..][..end.min(CONTEXT)]);
    lines.join("\n")
}
