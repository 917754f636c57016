//! The tables of programs of Linux.

use crate::bench_linux::{Group, Measured};
use crate::bench_set::Row;
use crate::bench_set_page::table;

/// Returns the section of docs/BENCHMARKS.md.
pub(crate) fn section(measured: &Measured, rounds: usize) -> String {
    format!(
        "\
## Linux programs

[Programs of Debian 12 for arm64](../benchmarks/linux/programs.txt) under `kvrm run` and under QEMU's user mode, with the same
files. As above, processor time of the whole process counts, the time on the clock is in parentheses, the best of {work} runs
counts (of {start} for programs that end at once), and ratios are above 1 where kvrm is faster. What the programs print is
compared.

{tables}",
        work = Group::Work.runs(rounds),
        start = Group::Start.runs(rounds),
        tables = tables(measured),
    )
}

/// Returns all tables.
pub(crate) fn tables(measured: &Measured) -> String {
    let present = measured.groups.iter().filter(|(_, rows)| !rows.is_empty());
    let tables = present.map(|(group, rows)| {
        let rows: Vec<&Row> = rows.iter().collect();
        format!("### {}\n\n{}\n", heading(*group), table(&measured.qemus, &rows))
    });
    tables.collect()
}

fn heading(group: Group) -> &'static str {
    match group {
        Group::Work => "Programs at work",
        Group::Start => "Programs that end at once",
        Group::Aside => "Programs, not looked at while tuning",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Time;

    fn row(program: &str, kvrm: f64, qemu: f64) -> Row {
        let time = |cpu: f64| Time { cpu, wall: cpu };
        Row {
            guest: program.to_string(),
            instructions: 1000,
            first: time(kvrm),
            again: time(kvrm / 2.0),
            qemus: vec![time(qemu)],
        }
    }

    #[test]
    fn groups_that_were_measured_have_tables() {
        let groups = vec![
            (Group::Work, vec![row("gzip", 1.0, 2.0), row("xz", 2.0, 2.0)]),
            (Group::Start, Vec::new()),
            (Group::Aside, vec![row("sed", 2.0, 1.0)]),
        ];
        let text = section(&Measured { qemus: vec!["QEMU 7.2".to_string()], groups }, 2);
        assert!(text.contains("the best of 2 runs") && !text.contains("end at once\n"));
        let (work, aside) = text.split_once("### Programs, not looked at while tuning").unwrap();
        assert!(work.contains("| geometric mean | | | | | 1.41 (1.41) | 2.83 (2.83) |\n"));
        assert!(aside.contains("| `sed` | 1,000 |"));
    }
}
