//! Instructions around the one under test, where it alone shows nothing: a store-exclusive needs a load-exclusive before
//! it.

use kvrm_a64::{Instruction, table};

use crate::random::Random;

/// The longest sequence.
pub const MAX_WORDS: usize = 3;
/// The base register of the accesses around CLREX.
pub const CLREX_BASE: u32 = 5;

/// Returns the row of this name.
///
/// # Panics
/// If there is none: a mistake in the caller.
pub fn row(name: &str) -> &'static Instruction {
    let found = table().iter().find(|row| row.name == name);
    found.unwrap_or_else(|| panic!("no row {name}"))
}

/// Returns the word with some fields set.
pub fn with(row: &Instruction, word: u32, fields: &[(&str, u32)]) -> u32 {
    fields.iter().fold(word, |word, (name, value)| {
        row.pattern.field(name).map_or(word, |field| field.set(word, *value))
    })
}

/// Returns the plainest word of a row, with some fields set.
fn plain(name: &str, fields: &[(&str, u32)]) -> u32 {
    let row = row(name);
    with(row, row.pattern.value | row.pattern.preferred, fields)
}

/// Returns the code of a case for `word`, an instruction of `subject`.
pub fn around(random: &mut Random, subject: &'static Instruction, word: u32) -> Vec<u32> {
    match subject.name {
        "CLREX" => around_clrex(random, word),
        name if name.starts_with("STX") => before_store(random, subject, word),
        name if name.starts_with("LDX") && random.once_in(2) => {
            let size = partner_size(random, subject);
            vec![word, partner(random, subject, word, "ST", size)]
        }
        _ => vec![word],
    }
}

/// Returns a store-exclusive alone, or after a load-exclusive and perhaps something that makes the store fail: another
/// store-exclusive, or a change of the address.
fn before_store(random: &mut Random, subject: &'static Instruction, word: u32) -> Vec<u32> {
    let same = &subject.name[2..];
    match random.below(8) {
        0 => vec![word],
        1 => {
            let load = partner(random, subject, word, "LD", same);
            vec![load, partner(random, subject, word, "ST", same), word]
        }
        2 => {
            let rn = subject.pattern.field("Rn").map_or(0, |f| f.get(word));
            let moved = plain("ADD_imm_X", &[("imm12", 16), ("Rn", rn), ("Rd", rn)]);
            vec![partner(random, subject, word, "LD", same), moved, word]
        }
        _ => {
            let size = partner_size(random, subject);
            vec![partner(random, subject, word, "LD", size), word]
        }
    }
}

/// Picks the size of an exclusive's partner, as names spell it: mostly the same size.
fn partner_size(random: &mut Random, subject: &'static Instruction) -> &'static str {
    if random.once_in(8) {
        random.pick(&["XRB", "XRH", "XR_W", "XR_X", "XP_W", "XP_X"])
    } else {
        &subject.name[2..]
    }
}

/// Returns the registers that a word names.
fn named(subject: &Instruction, word: u32) -> Vec<u32> {
    let fields = subject.pattern.fields.iter();
    fields.filter(|f| f.name.starts_with('R')).map(|f| f.get(word)).collect()
}

/// Picks a register that is not taken, and takes it.
fn other_than(random: &mut Random, taken: &mut Vec<u32>) -> u32 {
    loop {
        let register = random.below(31) as u32;
        if !taken.contains(&register) {
            taken.push(register);
            return register;
        }
    }
}

/// Returns a partner for an exclusive, a load (`LD`) or a store (`ST`), with the same base and other registers.
fn partner(random: &mut Random, subject: &Instruction, word: u32, kind: &str, size: &str) -> u32 {
    let mut taken = named(subject, word);
    let rn = subject.pattern.field("Rn").map_or(0, |f| f.get(word));
    let mut fresh = |field| (field, other_than(random, &mut taken));
    let fields = [fresh("Rt"), fresh("Rt2"), fresh("Rs"), ("Rn", rn)];
    plain(&format!("{kind}{size}"), &fields)
}

/// Returns a load-exclusive, CLREX, and a store-exclusive, which must fail.
fn around_clrex(random: &mut Random, word: u32) -> Vec<u32> {
    let (load, store) =
        random.pick(&[("LDXR_W", "STXR_W"), ("LDXR_X", "STXR_X"), ("LDXP_X", "STXP_X")]);
    let base = ("Rn", CLREX_BASE);
    vec![
        plain(load, &[base, ("Rt", 1), ("Rt2", 2)]),
        word,
        plain(store, &[base, ("Rt", 3), ("Rt2", 4), ("Rs", 6)]),
    ]
}
