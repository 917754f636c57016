//! `kvrm isa`: lists the implemented instructions.

use std::io::Write;

use kvrm::EngineKind;
use kvrm::a64::{Instruction, table};
use serde::Serialize;

use crate::failure::Result;

/// Options of `kvrm isa`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm isa
  kvrm isa --json | jq '.[] | select(.group == \"Hints\")'

Each line is an encoding: its name, and its bits as the Arm manual draws them.")]
pub(crate) struct Isa {
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print the page docs/isa.md
    #[arg(long)]
    markdown: bool,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    group: &'static str,
    encoding: &'static str,
    engines: Vec<&'static str>,
}

/// Returns all engines: they are made from the table, so each of them runs every row.
fn engines() -> Vec<&'static str> {
    let named = EngineKind::ALL.into_iter().filter(|kind| *kind != EngineKind::Auto);
    named.map(EngineKind::name).collect()
}

impl Isa {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        if self.json {
            let entry = |row: &Instruction| Entry {
                name: row.name,
                group: row.group,
                encoding: row.encoding,
                engines: engines(),
            };
            let entries: Vec<_> = table().iter().map(entry).collect();
            return crate::write_json(out, &entries);
        }
        if self.markdown {
            return markdown(out);
        }
        plain(out)
    }
}

/// Classes of A64 instructions, or features, that are absent, and what stands in their place.
const ABSENT: &[(&str, &str)] = &[
    ("SVE, SVE2, SME", "programs find out from the ID registers, and use Advanced SIMD"),
    ("MTE (memory tagging)", "tags are not checked, and its instructions are `UNDEFINED`"),
    (
        "PAuth (pointer authentication)",
        "those in the hint space do nothing; others are `UNDEFINED`",
    ),
    ("BTI (branch target identification)", "a hint that does nothing"),
    ("MOPS (memory copy and set)", "`UNDEFINED`"),
    ("LS64, LSE128, LRCPC3, CSSC, RNG, TME, WFxT, FP8", "`UNDEFINED`"),
    ("AFP (alternate floating-point behaviour), EBF16", "bits of FPCR that are always zero"),
    ("Traps of floating-point exceptions", "bits of FPCR that are always zero"),
    ("Instructions of EL1 and above", "`UNDEFINED`: kvrm runs programs, not systems"),
    ("A32 and T32", "64-bit code only"),
];

/// Returns the rows of each group, in the order in which groups first occur.
fn groups() -> Vec<(&'static str, Vec<&'static Instruction>)> {
    let mut groups: Vec<(&str, Vec<_>)> = Vec::new();
    for row in table() {
        match groups.iter_mut().find(|(name, _)| *name == row.group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((row.group, vec![row])),
        }
    }
    groups
}

fn plain(out: &mut impl Write) -> Result<()> {
    let name = table().iter().map(|row| row.name.len()).max().unwrap_or(0);
    for (group, rows) in groups() {
        writeln!(out, "{group}")?;
        for row in rows {
            writeln!(out, "  {:name$}  {}", row.name, row.encoding)?;
        }
    }
    let engines = engines().join(", ");
    writeln!(out, "{} encodings, each run by: {engines}", table().len())?;
    Ok(())
}

fn markdown(out: &mut impl Write) -> Result<()> {
    let engines = engines().join("`, `");
    write!(
        out,
        "# Instructions

<!-- Written by `kvrm isa --markdown`; `KVRM_BLESS=1 cargo test` writes it anew. -->

kvrm runs the {} A64 encodings below; any other word stops the lane with `UNDEFINED`. Every engine runs
all of them: `{engines}`.

Bits are written as the Arm manual draws them, most significant first: `0101` are bits with these
values, `imm12:12` is a field of twelve bits, `cond#4` is one that decides what kind of work it is, `(11)`
should be these bits but may be others.

## Classes

| Class | Encodings |
|---|---:|
",
        table().len()
    )?;
    for (group, rows) in groups() {
        writeln!(out, "| {group} | {} |", rows.len())?;
    }
    write!(out, "\n## What is absent\n\n| Class or feature | Instead |\n|---|---|\n")?;
    for (class, instead) in ABSENT {
        writeln!(out, "| {class} | {instead} |")?;
    }
    for (group, rows) in groups() {
        write!(out, "\n## {group}\n\n| Name | Encoding |\n|---|---|\n")?;
        for row in rows {
            writeln!(out, "| {} | `{}` |", row.name, row.encoding)?;
        }
    }
    Ok(())
}
