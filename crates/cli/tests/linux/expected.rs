//! The files that say what programs print.
//!
//! ```text
//! [NAME] STATUS
//! out|a line
//! out~a last line without a line break
//! err|a line
//! ```

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use crate::case::Output;

/// Reads a file; a missing one is empty.
pub(crate) fn read(file: &Path) -> HashMap<String, Output> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut outputs = HashMap::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let header = line.strip_prefix('[').and_then(|line| line.split_once("] "));
        let Some((name, status)) = header else {
            panic!("{}: not a header: {line}", file.display());
        };
        let mut output =
            Output { status: status.parse().unwrap(), out: Vec::new(), err: Vec::new() };
        while let Some(line) = lines.next_if(|line| !line.starts_with('[')) {
            let (kind, text) = line.split_at(4);
            let to = if kind.starts_with("out") { &mut output.out } else { &mut output.err };
            to.extend(unescape(text));
            if kind.ends_with('|') {
                to.push(b'\n');
            }
        }
        outputs.insert(name.to_string(), output);
    }
    outputs
}

/// Writes a file, in the order of its cases.
pub(crate) fn write(file: &Path, outputs: &[(&str, &Output)]) {
    let mut text = String::new();
    for (name, output) in outputs {
        writeln!(text, "[{name}] {}\n{}", output.status, lines(output)).unwrap();
        // `lines` ends without a line break.
        if text.ends_with("\n\n") {
            text.pop();
        }
    }
    std::fs::write(file, text).unwrap();
}

/// Returns output as lines of text.
pub(crate) fn lines(output: &Output) -> String {
    let mut lines = Vec::new();
    for (kind, bytes) in [("out", &output.out), ("err", &output.err)] {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            lines.push(match line.strip_suffix(b"\n") {
                Some(line) => format!("{kind}|{}", escape(line)),
                None => format!("{kind}~{}", escape(line)),
            });
        }
    }
    lines.join("\n")
}

/// Text stays as it is, except for backslashes and what is not printable.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\t' => text.push('\t'),
                c if c.is_control() => c.to_string().bytes().for_each(|b| hex(&mut text, b)),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| hex(&mut text, *byte));
    }
    text
}

fn hex(text: &mut String, byte: u8) {
    write!(text, "\\x{byte:02x}").unwrap();
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend(before.bytes());
        let digits = after.strip_prefix('x').and_then(|after| after.get(..2));
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            bytes.push(b'\\');
            rest = &after[1..];
        }
    }
    bytes.extend(rest.bytes());
    bytes
}

#[test]
fn what_is_written_can_be_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = Output {
        status: 139,
        out: b"a\\x41\tb\r\n\xff\xc3\xa9\n\nlast".to_vec(),
        err: b"\n".to_vec(),
    };
    let silent = Output { status: 0, out: Vec::new(), err: Vec::new() };
    write(file.path(), &[("bytes", &bytes), ("silent", &silent)]);
    let read = read(file.path());
    assert!(read["bytes"] == bytes && read["silent"] == silent && read.len() == 2);
}
