//! The summary as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::invalid::missing_words;
use crate::known::known;
use crate::suite::Summary;

/// Totals of a group of rows.
#[derive(Default)]
struct Group {
    rows: u64,
    cases: u64,
    equal: [u64; 2],
    explained: [u64; 2],
    dropped: u64,
    different: u64,
}

/// Returns a table by group, and how often each known difference was needed.
pub fn text(summary: &Summary) -> String {
    let mut text = table(summary);
    // Writing to a string cannot fail.
    for (entry, known) in known().enumerate() {
        let [unicorn, qemu] = summary.known(entry);
        if unicorn + qemu > 0 {
            let _ = writeln!(text, "  known, {unicorn} unicorn, {qemu} qemu: {}", known.reason);
        }
    }
    let invalid = &summary.invalid;
    if invalid.words > 0 {
        let _ = writeln!(
            text,
            "words: {} tried, {} undefined for both oracles, of which {} halt or are constrained unpredictable \
             here, {} differ; missing here:\n{}",
            invalid.words,
            invalid.undefined,
            invalid.explained,
            invalid.different,
            missing_words(invalid)
        );
    }
    let programs = &summary.programs;
    if programs.programs > 0 {
        let _ = writeln!(
            text,
            "programs: {} with {} instructions; {} stops compared; {} compared with unicorn, {} with qemu; {} differ",
            programs.programs,
            programs.instructions,
            programs.stops,
            programs.compared[0],
            programs.compared[1],
            programs.different
        );
    }
    text
}

fn table(summary: &Summary) -> String {
    let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
    for report in &summary.rows {
        let group = groups.entry(report.row.group).or_default();
        group.rows += 1;
        group.cases += report.cases;
        group.dropped += report.dropped;
        group.different += report.different;
        for (oracle, tally) in report.tallies.iter().enumerate() {
            group.equal[oracle] += tally.equal;
            group.explained[oracle] += tally.explained;
        }
    }
    let mut text = format!(
        "{:46} {:>4} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>6}\n",
        "group", "rows", "cases", "=unicorn", "=qemu", "~unicorn", "~qemu", "dropped", "differ"
    );
    for (name, g) in groups {
        let _ = writeln!(
            text,
            "{name:46} {:>4} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>6}",
            g.rows,
            g.cases,
            g.equal[0],
            g.equal[1],
            g.explained[0],
            g.explained[1],
            g.dropped,
            g.different
        );
    }
    text + "(= agrees in everything, ~ differs for a known reason)\n"
}

/// Returns the summary as JSON.
pub fn json(summary: &Summary, problems: &[String]) -> String {
    let rows: Vec<_> = summary
        .rows
        .iter()
        .map(|r| {
            let [unicorn, qemu] = r.tallies;
            format!(
                r#"{{"row":{},"cases":{},"dropped":{},"equal":[{},{}],"explained":[{},{}],"different":{}}}"#,
                quoted(r.row.name), r.cases, r.dropped, unicorn.equal, qemu.equal, unicorn.explained, qemu.explained,
                r.different
            )
        })
        .collect();
    let known: Vec<_> = known()
        .enumerate()
        .map(|(entry, known)| {
            format!(r#"{{"reason":{},"needed":{:?}}}"#, quoted(known.reason), summary.known(entry))
        })
        .collect();
    let list =
        |texts: &[String]| texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(",");
    let descriptions: Vec<_> = summary.descriptions().cloned().collect();
    let (invalid, programs) = (&summary.invalid, &summary.programs);
    format!(
        r#"{{"rows":[{}],"known":[{}],"words":{{"tried":{},"undefined":{},"explained":{},"different":{}}},"programs":{{"run":{},"instructions":{},"stops":{},"compared":{:?},"different":{}}},"problems":[{}],"differences":[{}]}}"#,
        rows.join(","),
        known.join(","),
        invalid.words,
        invalid.undefined,
        invalid.explained,
        invalid.different,
        programs.programs,
        programs.instructions,
        programs.stops,
        programs.compared,
        programs.different,
        list(problems),
        list(&descriptions)
    )
}

/// Returns a text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            _ => quoted.push(c),
        }
    }
    quoted + "\""
}
