//! What is printed assembles to the same word, and is what GNU objdump prints.

mod words;

use std::collections::BTreeMap;
use std::process::Command;

use kvrm_a64::table;
use kvrm_asm::{assemble, disassemble};
use words::{ADDRESS, count, random_word, usual};

/// Returns random words of all rows.
fn words() -> Vec<(&'static str, u32)> {
    let mut words = Vec::new();
    for row in table() {
        let mut state = row.index as u64;
        let random = (0..count(row)).filter_map(|_| random_word(row, &mut state));
        words.extend(random.map(|word| (row.name, usual(row, word))));
    }
    words
}

/// Fails if there are failures, with an example for each row.
fn report(failures: impl Iterator<Item = (&'static str, String)>) {
    let mut rows: BTreeMap<&str, (u32, String)> = BTreeMap::new();
    for (row, what) in failures {
        rows.entry(row).or_insert((0, what)).0 += 1;
    }
    for (row, (count, what)) in &rows {
        eprintln!("{row}, {count} times: {what}");
    }
    assert!(rows.is_empty());
}

#[test]
fn what_is_printed_assembles() {
    report(words().into_iter().filter_map(|(row, word)| {
        let text = disassemble(word, ADDRESS).expect("a word of the table");
        let bytes = assemble(&text, ADDRESS);
        let same = bytes.as_deref() == Ok(&word.to_le_bytes());
        (!same).then(|| (row, format!("{word:08x} is printed `{text}`, which gives {bytes:02x?}")))
    }));
}

/// Returns what objdump prints for consecutive words, or `None` if it is not installed.
fn objdump(words: &[u32]) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words.bin");
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&path, bytes).unwrap();
    let mut command = Command::new("aarch64-linux-gnu-objdump");
    command.args(["-D", "-z", "-b", "binary", "-m", "aarch64"]);
    command.arg(format!("--adjust-vma={ADDRESS:#x}")).arg(path);
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    // Address, word, text.
    let lines = text.lines().filter_map(|line| line.splitn(3, '\t').nth(2));
    Some(lines.map(str::to_string).collect())
}

/// Returns the text with all numbers as decimals of this many bits, and without comments.
fn plain(text: &str, bits: u32) -> String {
    let text = text.split("//").next().unwrap_or_default();
    let words = text.split([' ', '\t']).filter(|word| !word.is_empty());
    let plain = words.map(|word| {
        let number = word.trim_start_matches(['[', '#']).trim_end_matches([',', ']', '!']);
        let float = number.contains('.').then(|| number.parse::<f64>().ok()).flatten();
        match (value(number), float) {
            (Some(value), _) => {
                word.replace(number, &(value & (u64::MAX >> (64 - bits))).to_string())
            }
            (None, Some(value)) => word.replace(number, &value.to_string()),
            (None, None) => word.to_string(),
        }
    });
    plain.collect::<Vec<_>>().join(" ").replace('#', "")
}

fn value(text: &str) -> Option<u64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

/// Rows for which objdump prints something else that is right too: a part of our text, and of theirs.
const KNOWN: &[(&str, &str, &str)] = &[
    // Operands for which Arm allows any behaviour.
    ("LDPSW_off", "", "undefined"),
    ("LDPSW_post", "", "undefined"),
    ("LDPSW_pre", "", "undefined"),
    // Names that are newer than objdump 2.40.
    ("HINT", "", "hint"),
    ("HINT", "clrbhb", "clearbhb"),
    ("MRS_ID", "id_aa64", "s3_0_c0_"),
    ("PRFM_lit", "slc", ""),
    ("PRFM_reg", "slc", ""),
    ("PRFM_uimm", "slc", ""),
    ("PRFUM", "slc", ""),
];

#[test]
fn it_is_what_objdump_prints() {
    let words = words();
    let numbers: Vec<u32> = words.iter().map(|(_, word)| *word).collect();
    let Some(theirs) = objdump(&numbers) else { return };
    assert_eq!(theirs.len(), words.len());
    let mut unused = KNOWN.to_vec();
    let addresses = (0..).map(|index: u64| ADDRESS + 4 * index);
    report(words.iter().zip(theirs).zip(addresses).filter_map(
        |(((row, word), theirs), address)| {
            let ours = disassemble(*word, address).expect("a word of the table");
            let bits = if row.ends_with("_imm_W") || *row == "MOVN_W" { 32 } else { 64 };
            if plain(&ours, bits) == plain(&theirs, bits) {
                return None;
            }
            let known = |(name, a, b): &(&str, &str, &str)| {
                name == row && ours.contains(a) && theirs.contains(b)
            };
            if KNOWN.iter().any(known) {
                unused.retain(|entry| !known(entry));
                return None;
            }
            Some((*row, format!("{word:08x} is `{ours}`, and of objdump `{theirs}`")))
        },
    ));
    assert_eq!(unused, [], "no longer needed in KNOWN");
}
