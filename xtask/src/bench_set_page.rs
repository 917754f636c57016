//! The tables of the benchmark set.

use std::fmt::Write;

use crate::bench_set::{Measured, PUT_ASIDE, Row, Size};
use crate::text::thousands;
use crate::timing::Time;

/// Returns the section of docs/BENCHMARKS.md.
pub(crate) fn section(measured: &Measured, rounds: usize) -> String {
    format!(
        "\
## Programs of many kinds

[The benchmark set](../guests/bench/README.md) has programs of many kinds and shapes, each in two sizes. *Long* takes QEMU
about a second. *Short* takes it 20 to 50 ms: there, translation counts most. What counts is processor time, of all threads
and of the system, for the whole process from start to end; time on the clock is beside it in parentheses. kvrm and QEMU
take turns; the best of {long} runs counts, of {short} for the short size. Ratios are above 1 where kvrm is faster.

kvrm keeps translations on disk ([how](ARCHITECTURE.md#compiled-kernels)). In the *first run* of a program there are none,
but the interpreter has run such instructions before; *again* means that the same program has been run before. QEMU
keeps nothing, so all of its runs are alike.

Eight of the programs were put aside: kvrm was not tuned with them, so they tell how fast it is with programs nobody has
tried.

{tables}",
        long = Size::Long.runs(rounds),
        short = Size::Short.runs(rounds),
        tables = tables(measured),
    )
}

/// Returns all tables.
pub(crate) fn tables(measured: &Measured) -> String {
    let sizes = measured.sizes.iter();
    sizes.map(|(size, rows)| of_size(&measured.qemus, *size, rows)).collect()
}

/// Returns the tables of a size: programs that were looked at while tuning, and the others.
fn of_size(qemus: &[String], size: Size, rows: &[Row]) -> String {
    let (aside, tuned): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| PUT_ASIDE.contains(&row.guest.as_str()));
    let headings = [
        (format!("### {}", capitalised(size.name())), tuned),
        (format!("### {}, not looked at while tuning", capitalised(size.name())), aside),
    ];
    let present = headings.iter().filter(|(_, rows)| !rows.is_empty());
    present.map(|(heading, rows)| format!("{heading}\n\n{}\n", table(qemus, rows))).collect()
}

/// Returns a table with the mean, the least and the number of ratios below 1.
pub(crate) fn table(qemus: &[String], rows: &[&Row]) -> String {
    let mut text = "| program | instructions | kvrm, first run, s | kvrm, again, s |".to_string();
    qemus.iter().for_each(|qemu| write!(text, " {qemu}, s |").expect("a string"));
    for qemu in qemus {
        write!(text, " {qemu} / first | {qemu} / again |").expect("a string");
    }
    writeln!(text, "\n|---|{}", "---:|".repeat(3 + 3 * qemus.len())).expect("a string");
    for row in rows {
        let times = [row.first, row.again].into_iter().chain(row.qemus.iter().copied());
        let times: String = times.map(|time| format!(" {} |", seconds(time))).collect();
        let ratios: String = ratios(row).map(|ratio| format!(" {} |", both(ratio))).collect();
        let (guest, instructions) = (&row.guest, thousands(row.instructions));
        writeln!(text, "| `{guest}` | {instructions} |{times}{ratios}").expect("a string");
    }
    text + &summary(qemus.len(), rows)
}

/// Returns the ratios of a row, for each QEMU those of the first run and of others.
fn ratios(row: &Row) -> impl Iterator<Item = Time> + '_ {
    row.qemus.iter().flat_map(|time| [row.first, row.again].map(|kvrm| ratio(*time, kvrm)))
}

/// Returns the last rows of a table, one for each way to sum up its ratios.
fn summary(qemus: usize, rows: &[&Row]) -> String {
    let line = |name: &str, of: &dyn Fn(&[f64]) -> f64, decimals: usize| {
        let cells = (0..2 * qemus).map(|column| {
            let ratios: Vec<Time> = rows.iter().filter_map(|row| ratios(row).nth(column)).collect();
            let cpu: Vec<_> = ratios.iter().map(|ratio| ratio.cpu).collect();
            let wall: Vec<_> = ratios.iter().map(|ratio| ratio.wall).collect();
            format!(" {:.decimals$} ({:.decimals$}) |", of(&cpu), of(&wall))
        });
        format!("| {name} | | | |{}{}\n", " |".repeat(qemus), cells.collect::<String>())
    };
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let below = |values: &[f64]| values.iter().filter(|ratio| **ratio < 1.0).count() as f64;
    line("geometric mean", &geometric_mean, 2)
        + &line("least", &least, 2)
        + &line(&format!("below 1.0, of {}", rows.len()), &below, 0)
}

/// Returns how many times as long as kvrm the other took.
fn ratio(other: Time, kvrm: Time) -> Time {
    Time { cpu: other.cpu / kvrm.cpu, wall: other.wall / kvrm.wall }
}

fn geometric_mean(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (sum / values.len() as f64).exp()
}

fn seconds(time: Time) -> String {
    format!("{:.3} ({:.3})", time.cpu, time.wall)
}

fn both(ratio: Time) -> String {
    format!("{:.2} ({:.2})", ratio.cpu, ratio.wall)
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(guest: &str, kvrm: f64, qemu: f64) -> Row {
        let time = |cpu: f64| Time { cpu, wall: 2.0 * cpu };
        Row {
            guest: guest.to_string(),
            instructions: 1000,
            first: time(kvrm),
            again: time(kvrm / 2.0),
            qemus: vec![time(qemu)],
        }
    }

    #[test]
    fn tables_sum_up_and_keep_apart_what_was_put_aside() {
        let rows =
            vec![row("regex", 1.0, 4.0), row("lists", 2.0, 2.0), row(PUT_ASIDE[0], 2.0, 1.0)];
        let measured =
            Measured { qemus: vec!["QEMU 7.2".to_string()], sizes: vec![(Size::Long, rows)] };
        let text = section(&measured, 5);
        let (tuned, aside) = text.split_once("### Long, not looked at while tuning").unwrap();
        assert!(
            tuned.contains(
                "| `regex` | 1,000 | 1.000 (2.000) | 0.500 (1.000) | 4.000 (8.000) | 4.00 (4.00) | 8.00 (8.00) |\n"
            )
        );
        assert!(tuned.contains("| geometric mean | | | | | 2.00 (2.00) | 4.00 (4.00) |\n"));
        assert!(tuned.contains("| least | | | | | 1.00 (1.00) | 2.00 (2.00) |\n"));
        assert!(tuned.contains("| below 1.0, of 2 | | | | | 0 (0) | 0 (0) |\n"));
        assert!(aside.contains("| below 1.0, of 1 | | | | | 1 (1) | 0 (0) |\n"));
    }
}
