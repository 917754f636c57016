//! Instructions around the one under test, where it alone shows nothing: a store-exclusive needs a
//! load-exclusive before it, and what goes into FPCR is seen by reading it back.

use kvrm_a64::{Instruction, table};

use crate::generate::random_word;
use crate::random::Random;

/// The longest sequence.
pub const MAX_WORDS: usize = 3;
/// The base register of the accesses around CLREX.
pub const CLREX_BASE: u32 = 5;

/// The row of that name.
///
/// # Panics
/// If there is none: a mistake in the caller.
pub fn row(name: &str) -> &'static Instruction {
    let found = table().iter().find(|row| row.name == name);
    found.unwrap_or_else(|| panic!("no row {name}"))
}

/// The word with some fields set.
pub fn with(row: &Instruction, word: u32, fields: &[(&str, u32)]) -> u32 {
    fields.iter().fold(word, |word, (name, value)| {
        row.pattern
            .field(name)
            .map_or(word, |field| field.set(word, *value))
    })
}

/// The code of a case for `word`, an instruction of `subject`.
pub fn around(random: &mut Random, subject: &'static Instruction, word: u32) -> Vec<u32> {
    let rt = subject.pattern.field("Rt").map_or(0, |f| f.get(word));
    match subject.name {
        "CLREX" => around_clrex(random, word),
        "MSR_FPCR" => vec![word, read_back(random, "MRS_FPCR")],
        "MSR_FPSR" => vec![word, read_back(random, "MRS_FPSR")],
        "MRS_FPCR" => vec![
            with(
                row("MSR_FPCR"),
                row("MSR_FPCR").pattern.value,
                &[("Rt", rt)],
            ),
            word,
        ],
        "MRS_FPSR" => vec![
            with(
                row("MSR_FPSR"),
                row("MSR_FPSR").pattern.value,
                &[("Rt", rt)],
            ),
            word,
        ],
        name if name.starts_with("STX") && !random.once_in(8) => {
            vec![matching_load(random, subject, word), word]
        }
        name if name.starts_with("LDX") && random.once_in(2) => {
            vec![word, matching_store(random, subject, word)]
        }
        _ => vec![word],
    }
}

fn read_back(random: &mut Random, name: &str) -> u32 {
    random_word(random, row(name))
}

/// The registers a word names, but for those it would be the only one to name.
fn named(subject: &Instruction, word: u32) -> Vec<u32> {
    let fields = subject.pattern.fields.iter();
    fields
        .filter(|f| f.name.starts_with('R'))
        .map(|f| f.get(word))
        .collect()
}

/// A register that is none of those.
fn other_than(random: &mut Random, taken: &mut Vec<u32>) -> u32 {
    loop {
        let register = random.below(31) as u32;
        if !taken.contains(&register) {
            taken.push(register);
            return register;
        }
    }
}

/// A partner for an exclusive: the same base, mostly the same size, registers of its own.
fn partner(random: &mut Random, subject: &Instruction, word: u32, from: &str, to: &str) -> u32 {
    let mut name = subject.name.replace(from, to);
    if random.once_in(8) {
        let sizes = ["XRB", "XRH", "XR_W", "XR_X", "XP_W", "XP_X"];
        name = format!("{}{}", &to[..2], random.pick(&sizes));
    }
    let partner = row(&name);
    let mut taken = named(subject, word);
    let rn = subject.pattern.field("Rn").map_or(0, |f| f.get(word));
    let mut fresh = |field| (field, other_than(random, &mut taken));
    let fields = [fresh("Rt"), fresh("Rt2"), fresh("Rs"), ("Rn", rn)];
    with(
        partner,
        partner.pattern.value | partner.pattern.preferred,
        &fields,
    )
}

fn matching_load(random: &mut Random, subject: &Instruction, word: u32) -> u32 {
    partner(random, subject, word, "ST", "LD")
}

fn matching_store(random: &mut Random, subject: &Instruction, word: u32) -> u32 {
    partner(random, subject, word, "LD", "ST")
}

/// A load-exclusive, CLREX, and the store-exclusive that must now fail.
fn around_clrex(random: &mut Random, word: u32) -> Vec<u32> {
    let (load, store) = random.pick(&[
        ("LDXR_W", "STXR_W"),
        ("LDXR_X", "STXR_X"),
        ("LDXP_X", "STXP_X"),
    ]);
    let code = |name, fields: &[(&str, u32)]| {
        with(
            row(name),
            row(name).pattern.value | row(name).pattern.preferred,
            fields,
        )
    };
    let base = ("Rn", CLREX_BASE);
    vec![
        code(load, &[base, ("Rt", 1), ("Rt2", 2)]),
        word,
        code(store, &[base, ("Rt", 3), ("Rt2", 4), ("Rs", 6)]),
    ]
}
