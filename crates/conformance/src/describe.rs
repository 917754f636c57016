//! Describes differences, so that a person can act on them.

use std::fmt::Write;

use kvrm_a64::{Instruction, decode};
use kvrm_oracles::{Case, Outcome, State, WINDOW_START};

use crate::generate::Test;

/// Returns a word with its row and the values of its fields.
pub fn instruction(word: u32) -> String {
    match decode(word) {
        Some(row) => format!("{word:#010x} {}{}", row.name, fields(row, word)),
        None => format!("{word:#010x} (unallocated)"),
    }
}

fn fields(row: &Instruction, word: u32) -> String {
    let fields = row.pattern.fields.iter();
    fields.fold(String::new(), |mut text, field| {
        // Writing to a string cannot fail.
        let _ = write!(text, " {}={:#x}", field.name, field.get(word));
        text
    })
}

/// Describes a case and its results. Of registers and memory, only what has changed is shown.
pub fn describe(test: &Test, results: &[(&str, &Outcome)], note: &str) -> String {
    let mut text = format!("{}: {}\n", test.row.name, instruction(test.word));
    for touch in &test.touches {
        let kind = if touch.write { "writes" } else { "reads" };
        text += &format!("  {kind} {} bytes at {:#x}\n", touch.len, touch.addr);
    }
    text + &describe_case(&test.case, results, note)
}

/// Like [`describe`], for a case that was not made for one instruction. NOPs in its code are left out.
pub fn describe_case(case: &Case, results: &[(&str, &Outcome)], note: &str) -> String {
    let mut text = format!("  code at {:#x}:\n", case.code_address);
    const NOP: u32 = 0xd503_201f;
    for (i, word) in case.code.iter().enumerate().filter(|(_, word)| **word != NOP) {
        text += &format!("    {:#x}: {}\n", case.code_address + 4 * i as u64, instruction(*word));
    }
    text += &format!("  before: {}\n", before(&case.state, &case.code));
    for (name, outcome) in results {
        let Outcome { kind, detail, pc, .. } = outcome;
        text += &format!(
            "  {name}: {kind:?} {detail:#x}, pc {pc:#x}; changed: {}\n",
            registers(&outcome.state, &case.state)
        );
        text += &window_changes(case, outcome);
    }
    text + "  " + note + "\n"
}

/// Lists the registers that code starts with; of vectors, only those that it can name.
pub(crate) fn before(state: &State, code: &[u32]) -> String {
    // An instruction may name the first of up to four registers.
    let named: Vec<u32> = code
        .iter()
        .filter_map(|word| Some((word, decode(*word)?)))
        .flat_map(|(word, row)| {
            let fields = row.pattern.fields.iter().filter(|field| field.name.starts_with('R'));
            fields.flat_map(|field| (0..4).map(|i| (field.get(*word) + i) % 32))
        })
        .collect();
    let mut shown = *state;
    for (_, v) in (0..).zip(&mut shown.v).filter(|(i, _)| !named.contains(i)) {
        *v = 0;
    }
    let general: String = list(&shown).into_iter().take(GENERAL).map(show).collect();
    general + &registers(&shown, &shown.without_vectors())
}

/// Lists the registers that differ from those before.
pub(crate) fn registers(state: &State, before: &State) -> String {
    let both = list(state).into_iter().zip(list(before));
    both.filter(|(new, old)| new != old).map(|(new, _)| show(new)).collect()
}

fn show((name, value): (String, u128)) -> String {
    format!("{name}={value:#x} ")
}

/// Registers that every case has: X0 to X30, SP, NZCV and TPIDR_EL0.
const GENERAL: usize = 34;

/// Returns all registers with their names.
fn list(state: &State) -> Vec<(String, u128)> {
    let State { x, sp, nzcv, tpidr_el0, v, fpcr, fpsr } = *state;
    let general = x.into_iter().enumerate().map(|(i, x)| (format!("x{i}"), x.into()));
    let single = [("sp", sp), ("nzcv", nzcv), ("tpidr_el0", tpidr_el0)];
    let vectors = v.into_iter().enumerate().map(|(i, v)| (format!("v{i}"), v));
    let control = [("fpcr", fpcr), ("fpsr", fpsr)];
    let named = |(name, value): (&str, u64)| (name.to_string(), value.into());
    general.chain(single.map(named)).chain(vectors).chain(control.map(named)).collect()
}

fn window_changes(case: &Case, outcome: &Outcome) -> String {
    let changed = (0..case.window.len()).filter(|i| case.window[*i] != outcome.window[*i]);
    let bytes: Vec<_> = changed
        .map(|i| {
            format!(
                "{:#x}:{:02x}->{:02x}",
                WINDOW_START + i as u64,
                case.window[i],
                outcome.window[i]
            )
        })
        .collect();
    if bytes.is_empty() {
        return String::new();
    }
    format!("    memory: {}\n", bytes.join(" "))
}
