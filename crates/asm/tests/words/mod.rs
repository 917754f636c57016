//! Random words of a row, for tests of the assembler and the disassembler.

use kvrm_a64::{Instruction, decode};

/// Where they are.
pub(crate) const ADDRESS: u64 = 0x7654_3210_0000;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns how many words of a row to try. Rows for vectors are many, and siblings differ in little.
pub(crate) fn count(row: &Instruction) -> u32 {
    let is_vector = ["SIMD", "loating"].iter().any(|part| row.group.contains(part));
    if is_vector { 200 } else { 3000 }
}

/// Returns a random word of the row, whose fields often have their smallest and largest values; `None` if the word
/// belongs to no row or to another.
pub(crate) fn random_word(row: &Instruction, state: &mut u64) -> Option<u32> {
    let mut word = row.pattern.value | row.pattern.preferred;
    for field in &row.pattern.fields {
        let value = match random(state) % 8 {
            0 => 0,
            1 => u32::MAX,
            2 => random(state) as u32 % 4,
            _ => random(state) as u32,
        };
        word = field.set(word, value);
    }
    decode(word).filter(|found| found.index == row.index).map(|_| word)
}

/// Returns the word as assemblers encode it: in the rotation of logical immediates, they clear the bits that do not
/// count, those above the size of the repeated element.
pub(crate) fn usual(row: &Instruction, word: u32) -> u32 {
    if row.group != "Logical (immediate)" {
        return word;
    }
    let (n, imms) = (word >> 22 & 1, word >> 10 & 63);
    let size = 1 << (31 - (n << 6 | !imms & 63).leading_zeros());
    let immr = row.pattern.field("immr").expect("logical immediates have a rotation");
    immr.set(word, immr.get(word) & (size - 1))
}
