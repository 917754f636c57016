//! `kvrm disasm`: disassembles instruction words.

use std::io::Write;
use std::path::{Path, PathBuf};

use kvrm::Disassembled;
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::{args, files};

/// Bytes of code that are shown at most.
const MOST: u64 = 1 << 30;

/// Options of `kvrm disasm`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm disasm program.bin --base 0x10000
  kvrm disasm --word 91000420 --word d4400000 --rows

Words that kvrm does not support are shown as `.inst`. Bytes after the last whole word are ignored.")]
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

    /// Show the row of the instruction table (see `kvrm isa`) for each word
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
    /// `None` if kvrm does not have the instruction.
    row: Option<&'static str>,
    text: String,
}

impl Disasm {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let code = match &self.file {
            Some(path) => whole_words(path)?,
            None => self.words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        };
        let lines = kvrm::disassemble(&code, self.base).into_iter().map(Line::from);
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

/// Reads a file of at least one word.
fn whole_words(path: &Path) -> Result<Vec<u8>> {
    let code = files::read_code(path, MOST)?;
    if code.len() as u64 > MOST {
        let message = format!("{} has more than 1 GiB: cut it into pieces", path.display());
        return Err(Failure::Host(message));
    }
    match code.len() < 4 {
        true => {
            let message =
                format!("{} is shorter than an instruction, which has 4 bytes", path.display());
            Err(Failure::Host(message))
        }
        false => Ok(code),
    }
}

impl From<Disassembled> for Line {
    fn from(line: Disassembled) -> Line {
        Line {
            address: format!("{:#x}", line.address),
            word: format!("{:08x}", line.word),
            row: line.row,
            text: line.text,
        }
    }
}
