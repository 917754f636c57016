//! Every row, with very many words: what a disassembler makes of a word assembles to that word again.

use std::collections::BTreeMap;

use disarm64::InsnDisplay;
use kvrm_a64::{Instruction, decode, table};

const ADDRESS: u64 = 0x7654_3210_0000;
const WORDS: u64 = 3000;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A word of the row, with what bits should be; fields have their smallest and largest values often.
fn random_word(row: &Instruction, state: &mut u64) -> Option<u32> {
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

fn disassemble(word: u32) -> String {
    let instruction = disarm64::decoder::decode(word).expect("a word that can be disassembled");
    let text = instruction.display_at(ADDRESS).to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A mistake of the disassembler.
struct Known {
    row: &'static str,
    /// Whether it makes it with this word.
    affects: fn(u32) -> bool,
}

/// What the disassembler gets wrong.
const KNOWN: &[Known] = &[
    // Extended registers with Rd = 31: it leaves the extension out, or calls it lsl, as if that were the stack
    // pointer. With the zero register this is the text of another instruction.
    Known { row: "ADDS_ext_W", affects: extension_is_lost },
    Known { row: "ADDS_ext_X", affects: extension_is_lost },
    Known { row: "SUBS_ext_W", affects: extension_is_lost },
    Known { row: "SUBS_ext_X", affects: extension_is_lost },
];

fn extension_is_lost(word: u32) -> bool {
    let (rd, rn) = (word & 31, word >> 5 & 31);
    let plain = if word >> 31 == 1 { 3 } else { 2 };
    rd == 31 && rn != 31 && word >> 13 & 7 == plain
}

/// The word with what logical immediates leave open as assemblers have it: of the rotation, only the bits
/// below the size of the repeated element count.
fn usual(row: &Instruction, word: u32) -> u32 {
    if row.group != "Logical (immediate)" {
        return word;
    }
    let (n, imms) = (word >> 22 & 1, word >> 10 & 63);
    let size = 1 << (31 - (n << 6 | !imms & 63).leading_zeros());
    let immr = row.pattern.field("immr").expect("logical immediates have a rotation");
    immr.set(word, immr.get(word) & (size - 1))
}

#[test]
fn what_is_disassembled_assembles() {
    let mut unused: Vec<&str> = KNOWN.iter().map(|known| known.row).collect();
    let mut failures: BTreeMap<&str, (u32, String)> = BTreeMap::new();
    for row in table() {
        let mut state = row.index as u64;
        let mut words = 0;
        for _ in 0..WORDS {
            let Some(word) = random_word(row, &mut state) else { continue };
            words += 1;
            let text = disassemble(word);
            let wanted = usual(row, word);
            let result = kvrm_asm::assemble(&text, ADDRESS);
            if result.as_deref() == Ok(&wanted.to_le_bytes()) {
                continue;
            }
            if KNOWN.iter().any(|known| known.row == row.name && (known.affects)(word)) {
                unused.retain(|name| *name != row.name);
                continue;
            }
            let what = format!("`{text}` is {wanted:08x}, but gave {result:02x?}");
            failures.entry(row.name).or_insert((0, what)).0 += 1;
        }
        assert!(words >= 64, "{}: only {words} words", row.name);
    }
    for (row, (count, what)) in &failures {
        eprintln!("{row}, {count} times: {what}");
    }
    assert!(failures.is_empty());
    assert_eq!(unused, [""; 0], "no longer needed in KNOWN");
}
