//! Random instructions.

use kvrm_a64::{Instruction, table};

use crate::Source;

/// Branches and literal loads reach this many words in either direction, mostly.
const REACH: u32 = 24;

/// An instruction, mostly of a row of the table, sometimes any word at all.
pub fn word(source: &mut Source<'_>) -> u32 {
    let (choice, bits) = (source.u16(), source.u32());
    if choice.is_multiple_of(64) {
        return bits;
    }
    let row = &table()[usize::from(choice) % table().len()];
    let word = row.pattern.value | bits & !row.pattern.mask;
    let word = if row.matches(word) { word } else { row.pattern.value | row.pattern.preferred };
    if bits >> 29 == 0 { word } else { stay_near(row, word, bits) }
}

/// Makes the target of a relative branch one nearby.
fn stay_near(row: &Instruction, word: u32, bits: u32) -> u32 {
    let offsets = ["imm26", "imm19", "imm14"];
    let Some(field) = offsets.into_iter().find_map(|name| row.pattern.field(name)) else {
        return word;
    };
    // The lower bits of the offset are the ones with the most freedom.
    let offset = (bits >> 5 ^ bits >> 17) % (2 * REACH);
    field.set(word, offset.wrapping_sub(REACH))
}
