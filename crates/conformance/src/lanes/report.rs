//! The summary as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Plan, RowReport, Summary};
use crate::report::quoted;

/// The most differences that are printed; more would not be read.
const SHOWN: usize = 10;

/// Returns descriptions of the first differences.
fn descriptions(summary: &Summary) -> impl Iterator<Item = &String> {
    summary.rows.iter().flat_map(|row| &row.descriptions).take(SHOWN)
}

/// Returns the first differences, a table by group, and totals.
pub fn text(plan: &Plan, summary: &Summary) -> String {
    let mut text: String = descriptions(summary).map(|text| format!("{text}\n")).collect();
    let mut groups: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for row in &summary.rows {
        let (rows, cases, different) = groups.entry(row.subject.group()).or_default();
        *rows += 1;
        *cases += row.cases;
        *different += row.different;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{:46} {:>4} {:>9} {:>9}", "group", "rows", "cases", "different");
    for (name, (rows, cases, different)) in groups {
        let _ = writeln!(text, "{name:46} {rows:>4} {cases:>9} {different:>9}");
    }
    for row in summary.rows.iter().filter(|row| row.different > 0) {
        let RowReport { subject, cases, different, .. } = row;
        let _ = writeln!(text, "  {}: {different} of {cases} different", subject.name());
    }
    let [made, evaluated, ran] = seconds(summary);
    let _ = writeln!(
        text,
        "{} rows, {} cases on {}, {} memory: {} different (seed {:#x})\n\
         made in {made:.1} s and evaluated in {evaluated:.1} s on {} threads, run in {ran:.1} s",
        summary.rows.len(),
        summary.cases(),
        plan.engine.name(),
        plan.model.name(),
        summary.different(),
        plan.seed,
        plan.threads
    );
    text
}

fn seconds(summary: &Summary) -> [f64; 3] {
    [summary.making, summary.evaluating, summary.running].map(|time| time.as_secs_f64())
}

/// Returns the summary as JSON.
pub fn json(plan: &Plan, summary: &Summary) -> String {
    let row = |row: &RowReport| {
        format!(
            r#"{{"row":{},"cases":{},"different":{}}}"#,
            quoted(row.subject.name()),
            row.cases,
            row.different
        )
    };
    let rows: Vec<_> = summary.rows.iter().map(row).collect();
    let differences: Vec<_> = descriptions(summary).map(|text| quoted(text)).collect();
    let [made, evaluated, ran] = seconds(summary);
    format!(
        r#"{{"engine":{},"memory":{},"seed":{},"cases":{},"different":{},"seconds":{{"making":{made:.3},"evaluating":{evaluated:.3},"running":{ran:.3}}},"rows":[{}],"differences":[{}]}}"#,
        quoted(plan.engine.name()),
        quoted(plan.model.name()),
        plan.seed,
        summary.cases(),
        summary.different(),
        rows.join(","),
        differences.join(",")
    )
}
