//! Many words of every row: the text of another disassembler assembles to the same word again.

mod words;

use std::collections::BTreeMap;

use disarm64::InsnDisplay;
use kvrm_a64::{Instruction, table};
use words::{ADDRESS, count, random_word, usual};

fn disassemble(word: u32) -> String {
    let instruction = disarm64::decoder::decode(word).expect("a word that can be disassembled");
    let text = instruction.display_at(ADDRESS).to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A mistake of the disassembler.
struct Known {
    what: &'static str,
    /// True if it affects this word of the row.
    affects: fn(&Instruction, u32) -> bool,
}

/// What the disassembler gets wrong.
const KNOWN: &[Known] = &[
    Known {
        what: "Extended registers with Rd = 31: it leaves the extension out, or calls it lsl, as if that were the \
               stack pointer. With the zero register this is the text of another instruction.",
        affects: |row, word| row.name.contains("S_ext_") && extension_is_lost(word),
    },
    Known {
        what: "Several structures are all called LD4 and ST4.",
        affects: |row, _| row.group.ends_with("multiple structures") && !row.name.contains("4_"),
    },
    Known {
        what: "Four registers in a row are called LD4 and ST4, too.",
        affects: |row, _| row.name.starts_with("LD1_4") || row.name.starts_with("ST1_4"),
    },
    Known {
        what: "LD1R to LD4R of doublewords are undefined.",
        affects: |row, _| {
            row.name.starts_with("LD") && row.name.contains("R_") && row.name.ends_with('D')
        },
    },
    Known {
        what: "The result of DUP is undefined, or of the wrong size.",
        affects: |row, _| row.name.starts_with("DUP_scalar"),
    },
    Known {
        what: "A register of the wrong size.",
        affects: |row, _| row.name == "INS_gen_D" || row.name.starts_with("FCVT_"),
    },
    Known {
        what: "Arrangements that are undefined or wrong where numbers are combined with their neighbours.",
        affects: |row, _| {
            let combines =
                ["across lanes", "scalar pairwise"].iter().any(|g| row.group.ends_with(g));
            combines && row.name.starts_with('F')
        },
    },
    Known {
        what: "Fixed-point numbers of the wrong size.",
        affects: |row, _| row.group.contains("scalar shift") && row.name.contains("_fixed_"),
    },
];

fn extension_is_lost(word: u32) -> bool {
    let (rd, rn) = (word & 31, word >> 5 & 31);
    let plain = if word >> 31 == 1 { 3 } else { 2 };
    rd == 31 && rn != 31 && word >> 13 & 7 == plain
}

#[test]
fn what_is_disassembled_assembles() {
    let mut unused: Vec<&str> = KNOWN.iter().map(|known| known.what).collect();
    let mut failures: BTreeMap<&str, (u32, String)> = BTreeMap::new();
    for row in table() {
        let mut state = row.index as u64;
        let mut words = 0;
        for _ in 0..count(row) {
            let Some(word) = random_word(row, &mut state) else { continue };
            words += 1;
            let text = disassemble(word);
            let wanted = usual(row, word);
            let result = kvrm_asm::assemble(&text, ADDRESS);
            if result.as_deref() == Ok(&wanted.to_le_bytes()) {
                continue;
            }
            if let Some(known) = KNOWN.iter().find(|known| (known.affects)(row, word)) {
                unused.retain(|what| *what != known.what);
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
