//! `kvrm asm`: assembles text.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use kvrm::asm::{self, Program, Statement};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::text::thousands;
use crate::{args, files};

/// Bytes of data on one line of a listing.
const LINE_BYTES: usize = 8;

/// Options of `kvrm asm`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm asm program.s                        writes program.bin
  kvrm asm program.s --list                 shows addresses and words, writes nothing
  kvrm asm program.s -o - | kvrm exec -     assembles and runs
  echo 'add x0, x0, #1; hlt #0' | kvrm asm - -o add.bin

The syntax is that of GNU as: labels (also 1: with 1b and 1f), expressions, ldr x0, =constant, .macro, \
.word, .asciz, .balign and so on. It knows every instruction that kvrm runs, and the usual aliases \
(mov, cmp, lsl, cset …); `kvrm isa` lists the encodings. There is one section, no linker, and no C preprocessor.")]
pub(crate) struct Asm {
    /// File of A64 assembly; - is standard input
    file: PathBuf,

    /// File to write the code to; - is standard output. Default, without --list and --json: FILE with the
    /// extension .bin
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Address of the first byte
    #[arg(long, value_name = "ADDR", default_value = "0x10000", value_parser = args::code_address)]
    base: u64,

    /// Show what each statement was assembled to
    #[arg(long)]
    list: bool,

    /// Print JSON
    #[arg(long, conflicts_with = "list")]
    json: bool,
}

#[derive(Serialize)]
struct Listing<'a> {
    base: String,
    bytes: usize,
    /// Where the code was written, if it was.
    file: Option<&'a Path>,
    labels: BTreeMap<&'a str, String>,
    statements: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    line: u32,
    address: String,
    /// In memory order.
    bytes: String,
    /// The line of the file.
    text: &'a str,
}

impl Asm {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let output = self.output_path()?;
        let to_stdout = output.as_deref().is_some_and(is_dash);
        if to_stdout && (self.list || self.json) {
            let message = "code and text cannot both go to standard output: name a file with -o";
            return Err(Failure::Usage(message.to_string()));
        }
        let name = if is_dash(&self.file) {
            "standard input".into()
        } else {
            self.file.display().to_string()
        };
        let text = files::read_text(&self.file)?;
        let program = asm::assemble_program(&text, self.base)
            .map_err(|_| Failure::Host(explain_all(&name, &text, self.base)))?;
        match &output {
            Some(_) if to_stdout => return Ok(out.write_all(&program.bytes)?),
            Some(path) => files::write(path, |out| out.write_all(&program.bytes))?,
            None => {}
        }
        if self.json {
            return crate::write_json(out, &self.listing(&text, &program, output.as_deref()));
        }
        if self.list {
            list(out, &text, &program)?;
        }
        if let Some(path) = output {
            let (bytes, base) = (thousands(program.bytes.len() as u64), self.base);
            writeln!(out, "{bytes} bytes for {base:#x}, written to {}", path.display())?;
        }
        Ok(())
    }

    /// Returns where to write the code; `None` if it is only shown.
    fn output_path(&self) -> Result<Option<PathBuf>> {
        if self.output.is_some() || self.list || self.json {
            return Ok(self.output.clone());
        }
        if is_dash(&self.file) {
            let message =
                "name a file for the code with -o (or - for standard output), or use --list";
            return Err(Failure::Usage(message.to_string()));
        }
        let path = self.file.with_extension("bin");
        if path == self.file {
            let message = format!("{} would be overwritten: name another with -o", path.display());
            return Err(Failure::Usage(message));
        }
        Ok(Some(path))
    }

    fn listing<'a>(
        &self,
        text: &'a str,
        program: &'a Program,
        file: Option<&'a Path>,
    ) -> Listing<'a> {
        let lines: Vec<&str> = text.lines().collect();
        let line = |statement: &Statement| Line {
            line: statement.line,
            address: format!("{:#x}", statement.address),
            bytes: hex(&program.bytes[statement.bytes.clone()]),
            text: source(&lines, statement),
        };
        let labels = program.labels.iter();
        Listing {
            base: format!("{:#x}", self.base),
            bytes: program.bytes.len(),
            file,
            labels: labels
                .map(|(name, address)| (name.as_str(), format!("{address:#x}")))
                .collect(),
            statements: program.statements.iter().map(line).collect(),
        }
    }
}

fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the line that a statement is on.
fn source<'a>(lines: &[&'a str], statement: &Statement) -> &'a str {
    lines.get(statement.line as usize - 1).map_or("", |line| line.trim())
}

/// Writes addresses, words of instructions, bytes of data, and the lines they come from.
fn list(out: &mut impl Write, text: &str, program: &Program) -> Result<()> {
    let lines: Vec<&str> = text.lines().collect();
    for statement in &program.statements {
        let bytes = &program.bytes[statement.bytes.clone()];
        let shown = match bytes.try_into().map(u32::from_le_bytes) {
            Ok(word) if statement.is_instruction => format!("{word:08x}"),
            _ => hex(&bytes[..bytes.len().min(LINE_BYTES)]),
        };
        let address = format!("{:#x}", statement.address);
        write!(out, "{address:>10}  {shown:16}  {}", source(&lines, statement))?;
        match bytes.len() {
            len if len > LINE_BYTES => writeln!(out, "  // {} bytes", thousands(len as u64))?,
            _ => writeln!(out)?,
        }
    }
    Ok(())
}

/// Describes all mistakes of a program.
fn explain_all(name: &str, text: &str, base: u64) -> String {
    let mistakes = asm::mistakes(text, base);
    let mut shown: Vec<String> = mistakes.iter().map(|error| explain(name, text, error)).collect();
    match shown.len() {
        0 | 1 => {}
        asm::MOST_MISTAKES.. => shown.push(format!("{} mistakes, and perhaps more", shown.len())),
        count => shown.push(format!("{count} mistakes")),
    }
    shown.join("\n")
}

/// Formats the message, and the line with a mark under the mistake.
fn explain(name: &str, text: &str, error: &asm::Error) -> String {
    let line = text.lines().nth(error.line as usize - 1).unwrap_or_default();
    // Tabs stay, so that the mark is where it belongs.
    let before = line.chars().take(error.column as usize - 1);
    let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    format!("{name}: {error}\n    {line}\n    {indent}^")
}
