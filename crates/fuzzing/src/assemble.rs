//! Any text is assembled or refused, and what is assembled can be decoded.

use std::sync::LazyLock;

use kvrm_a64::{decode, table};

use crate::Source;

/// What programs are made of, besides mnemonics.
const PARTS: &[&str] = &[
    "x0",
    "w1",
    "x30",
    "xzr",
    "wzr",
    "sp",
    "wsp",
    "lr",
    "x31",
    "q0",
    "eq",
    "al",
    "lsl",
    "ror",
    "uxtw",
    "sxtx",
    "sy",
    "pldl1keep",
    "nzcv",
    "tpidr_el0",
    "s3_3_c13_c0_2",
    "c7",
    "ivau",
    "csync",
    ":lo12:",
    ":abs_g1_nc:",
    ":abs_g9:",
    "#",
    "#1",
    "#-1",
    "#8",
    "#4095",
    "#4096",
    "#0xffff0000",
    "#63",
    "#64",
    "0",
    "1",
    "0x7fffffffffffffff",
    "18446744073709551615",
    "-9223372036854775808",
    "0b",
    "0b1",
    "1b",
    "1f",
    "09",
    "'a'",
    "'",
    "'\\",
    "\"text\"",
    "\"",
    "\"\\x",
    ".",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "~",
    "(",
    ")",
    "((((",
    "[",
    "]",
    "]!",
    "{",
    "}",
    "!",
    "=",
    "\\",
    "\\@",
    "\\a",
    "\\()",
    "@",
    "//",
    "/*",
    "*/",
    ";",
    "name",
    "name:",
    "1:",
    "name =",
    ".byte",
    ".hword",
    ".word",
    ".quad",
    ".inst",
    ".ascii",
    ".asciz",
    ".space",
    ".fill",
    ".align",
    ".balign",
    ".p2align",
    ".equ",
    ".set",
    ".ltorg",
    ".text",
    ".data",
    ".section",
    ".global",
    ".macro",
    ".macro name a",
    "\n.macro name a, b=1\n",
    "\n.endm\n",
    "\n.rept 2\n",
    ".rept",
    "\n.endr\n",
    "#include",
    "é",
    "\u{feff}",
    "\0",
];

/// Correct lines.
static LINES: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../../asm/tests/syntax.s").lines().collect());

/// Mnemonics: what the names of rows begin with, and some aliases.
static MNEMONICS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let stem = |name: &str| name.split('_').next().unwrap_or_default().to_lowercase();
    let aliases =
        ["mov", "cmp", "tst", "neg", "lsl", "cset", "ubfx", "bfi", "mul", "nop", "b.ne", "stadd"];
    table().iter().map(|row| stem(row.name)).chain(aliases.map(String::from)).collect()
});

/// Assembles a text that is made from `bytes`, or is `bytes`.
pub fn check(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let address = if source.one_in(4) { source.u64() } else { 0x10000 };
    let text = match source.one_in(8) {
        true => String::from_utf8_lossy(bytes).into_owned(),
        false => random_text(&mut source),
    };
    check_text(&text, address);
    // Most texts already fail in their first line, so each line is tried alone, too.
    text.lines().for_each(|line| check_text(line, address));
}

/// Assembles one text.
pub fn check_text(text: &str, address: u64) {
    let Ok(program) = kvrm_asm::assemble_program(text, address) else { return };
    for statement in &program.statements {
        let bytes = &program.bytes[statement.bytes.clone()];
        assert!(!bytes.is_empty(), "a statement without bytes: {text:?}");
        if statement.is_instruction {
            let word = u32::from_le_bytes(bytes.try_into().expect("an instruction has four bytes"));
            assert!(decode(word).is_some(), "{word:#010x} is no instruction: {text:?}");
        }
    }
}

/// Makes a text of correct lines, of lines in which one word is replaced, and of mnemonics with random operands.
fn random_text(source: &mut Source<'_>) -> String {
    let mut text = String::new();
    while !source.is_empty() {
        if !source.one_in(3) {
            text += &changed(LINES[source.below(LINES.len() as u64) as usize], source);
            text.push('\n');
            continue;
        }
        let parts = source.below(8);
        if !source.one_in(4) {
            text += &MNEMONICS[source.below(MNEMONICS.len() as u64) as usize];
            text.push(' ');
        }
        for number in 0..parts {
            let part = PARTS[source.below(PARTS.len() as u64) as usize];
            let separator = if number == 0 || source.one_in(4) { "" } else { ", " };
            text += separator;
            text += part;
        }
        text.push(if source.one_in(8) { ';' } else { '\n' });
    }
    text
}

/// Returns the line, half the time with one of its words replaced by another part.
fn changed(line: &str, source: &mut Source<'_>) -> String {
    let mut words: Vec<&str> = line.split_inclusive([' ', ',', '[', ']']).collect();
    let place = source.below(2 * words.len().max(1) as u64) as usize;
    if place < words.len() {
        let end = words[place].len() - usize::from(words[place].ends_with([' ', ',', '[', ']']));
        let part = PARTS[source.below(PARTS.len() as u64) as usize];
        let rest = &words[place][end..];
        words.splice(place..=place, [part, rest]);
    }
    words.concat()
}
