//! `kvrm disasm`: instruction words as text.

use std::io::Write;
use std::path::PathBuf;

use disarm64::InsnDisplay;
use kvrm::a64::Instruction;
use serde::Serialize;

use crate::args;
use crate::failure::Result;

/// Options of `kvrm disasm`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm disasm program.bin --base 0x10000
  kvrm disasm --word 91000420 --word d4400000 --rows

Words that kvrm does not run are shown as `.inst`. Bytes after the last whole word are left out.")]
pub(crate) struct Disasm {
    /// File of A64 code; - is standard input
    #[arg(required_unless_present = "words", conflicts_with = "words")]
    file: Option<PathBuf>,

    /// An instruction word in hexadecimal (repeatable)
    #[arg(long = "word", value_name = "HEX", num_args = 1.., value_parser = args::word)]
    words: Vec<u32>,

    /// Address of the first word
    #[arg(long, value_name = "ADDR", default_value = "0x10000", value_parser = args::address)]
    base: u64,

    /// Show which row of the instruction table (see `kvrm isa`) each word is
    #[arg(long)]
    rows: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    address: String,
    word: String,
    /// `None` if the word is not an instruction kvrm has.
    row: Option<&'static str>,
    text: String,
}

impl Disasm {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let words = match &self.file {
            Some(path) => {
                let bytes = crate::read_code(path)?;
                let (words, _) = bytes.as_chunks();
                words.iter().map(|word| u32::from_le_bytes(*word)).collect()
            }
            None => self.words.clone(),
        };
        let addresses = (0..).map(|index: u64| self.base.wrapping_add(4 * index));
        let lines = addresses.zip(words).map(|(address, word)| line(address, word));
        if self.json {
            return crate::write_json(out, &lines.collect::<Vec<_>>());
        }
        for line in lines {
            write!(out, "{:>10}  {}  ", line.address, line.word)?;
            match line.row {
                Some(row) if self.rows => writeln!(out, "{:40}  // {row}", line.text)?,
                _ => writeln!(out, "{}", line.text)?,
            }
        }
        Ok(())
    }
}

fn line(address: u64, word: u32) -> Line {
    let row = kvrm::a64::decode(word);
    Line {
        address: format!("{address:#x}"),
        word: format!("{word:08x}"),
        row: row.map(|row| row.name),
        text: assembly(address, word),
    }
}

/// A word in Arm's syntax.
pub(crate) fn assembly(address: u64, word: u32) -> String {
    match kvrm::a64::decode(word) {
        Some(row) => text(address, usual(row, word)),
        None => format!(".inst {word:#010x}  // undefined"),
    }
}

/// The word with the bits that should have a value at that value: disassemblers insist on them.
fn usual(row: &Instruction, word: u32) -> u32 {
    let pattern = &row.pattern;
    let fields = pattern.fields.iter();
    let fields = fields.fold(0, |mask, field| field.set(mask, u32::MAX));
    word & (pattern.mask | fields) | pattern.preferred
}

/// Assembly for a word of the table; the word itself if the disassembler does not know it.
fn text(address: u64, word: u32) -> String {
    let Some(instruction) = disarm64::decoder::decode(word) else {
        return format!(".inst {word:#010x}");
    };
    let text = instruction.display_at(address).to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_text_at_any_address() {
        // Random fields: xorshift.
        let mut random = 0x9e37_79b9_u32;
        for row in kvrm::a64::table() {
            for _ in 0..2_000 {
                random ^= random << 13;
                random ^= random >> 17;
                random ^= random << 5;
                let word = random & !row.pattern.mask | row.pattern.value;
                if row.matches(word) {
                    let address = u64::from(random) << 32 | 0xffff_fffc;
                    let line = line(address, word);
                    assert_eq!(line.row, Some(row.name));
                    assert!(!line.text.starts_with(".inst"), "{}: {word:08x}", row.name);
                }
            }
        }
    }
}
