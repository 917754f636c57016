//! What lanes are given: rows, read from files as they are needed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use kvrm::linux::{Row, RowError};

use super::{template, words};
use crate::failure::{Failure, Result};

/// Bytes of one row, at the most: no program can be given more, and a file without line ends is not rows.
const MOST: u64 = 256 << 20;

/// A place that gives a piece of each row.
pub(super) struct Source {
    option: &'static str,
    path: PathBuf,
    pieces: Pieces,
    /// Pieces that were read.
    read: u64,
}

enum Pieces {
    Lines(Box<dyn BufRead + Send>),
    Files(std::vec::IntoIter<PathBuf>),
}

impl Source {
    /// A file with a line per row; `-` is standard input.
    pub(super) fn lines(option: &'static str, path: &Path) -> Result<Source> {
        let reader: Box<dyn BufRead + Send> = match path.as_os_str() == "-" {
            true => Box::new(BufReader::new(io::stdin())),
            false => {
                let file = File::open(path).map_err(|error| Failure::file("read", path, &error))?;
                Box::new(BufReader::with_capacity(1 << 16, file))
            }
        };
        Ok(Source { option, path: path.into(), pieces: Pieces::Lines(reader), read: 0 })
    }

    /// A folder with a file per row, or a file with a line per row.
    pub(super) fn files_or_lines(option: &'static str, path: &Path) -> Result<Source> {
        if !path.is_dir() {
            return Source::lines(option, path);
        }
        let pieces = Pieces::Files(files_of(path)?.into_iter());
        Ok(Source { option, path: path.into(), pieces, read: 0 })
    }

    /// The next piece, or nothing at the end. A line comes with its end, also the last one.
    fn next(&mut self) -> Result<Option<Vec<u8>>, RowError> {
        let piece = match &mut self.pieces {
            Pieces::Files(files) => match files.next() {
                None => return Ok(None),
                Some(path) => fs::read(&path)
                    .map_err(|error| format!("cannot read {}: {error}", path.display()))?,
            },
            Pieces::Lines(reader) => {
                let mut line = Vec::new();
                let read = reader.by_ref().take(MOST).read_until(b'\n', &mut line);
                match read
                    .map_err(|error| format!("cannot read {}: {error}", self.path.display()))?
                {
                    0 => return Ok(None),
                    len if len as u64 == MOST => {
                        return Err(self.mistake("it is longer than 256 MiB"));
                    }
                    _ => {
                        if line.last() != Some(&b'\n') {
                            line.push(b'\n');
                        }
                        line
                    }
                }
            }
        };
        self.read += 1;
        Ok(Some(piece))
    }

    /// The words of the next line.
    fn words(&mut self) -> Result<Option<Vec<Vec<u8>>>, RowError> {
        let Some(line) = self.next()? else { return Ok(None) };
        let line = line.strip_suffix(b"\n").expect("lines come with their end");
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        words::split(line).map(Some).map_err(|what| self.mistake(what))
    }

    /// An error in the line that was read last.
    fn mistake(&self, what: &str) -> RowError {
        let (name, option) = (name_of(&self.path), self.option);
        format!("{option} {name}, line {} (lane {}): {what}", self.read, self.read - 1).into()
    }
}

fn name_of(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() }
}

/// The files of a folder, sorted by name.
pub(super) fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Failure::file("read", folder, &error);
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if !path.is_file() {
            let message = format!("{} is not a file: only files can be rows", path.display());
            return Err(Failure::Usage(message));
        }
        files.push(path);
    }
    files.sort();
    Ok(files)
}

/// The rows of a run.
pub(super) struct Inputs {
    /// Arguments from the first one that differs on.
    pub(super) args: Vec<Vec<u8>>,
    /// Variables that differ.
    pub(super) env: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) args_from: Option<Source>,
    pub(super) stdin_from: Option<Source>,
    pub(super) env_from: Option<Source>,
    /// How many rows there are if no source says so.
    pub(super) count: Option<u64>,
    /// How many rows are left, if that is known.
    pub(super) left: Option<u64>,
    /// Lanes that a table has already.
    pub(super) done: HashSet<u64>,
    pub(super) next: u64,
}

impl Inputs {
    /// The next row, whether or not it is done already.
    fn row(&mut self) -> Result<Option<Row>, RowError> {
        let lane = self.next;
        if self.count.is_some_and(|count| lane >= count) {
            return Ok(None);
        }
        let args = self.args_from.as_mut().map(Source::words).transpose()?;
        let stdin = self.stdin_from.as_mut().map(Source::next).transpose()?;
        let env = self.env_from.as_mut().map(Source::words).transpose()?;
        let ended = [args.as_ref().map(Option::is_none), stdin.as_ref().map(Option::is_none)];
        let ended = [ended[0], ended[1], env.as_ref().map(Option::is_none)];
        if ended.contains(&Some(true)) {
            return match ended.contains(&Some(false)) {
                true => Err(self.unequal(ended)),
                false => Ok(None),
            };
        }
        self.next += 1;
        let mut row =
            Row::new().lane(lane).args(self.args.iter().map(|arg| template::fill(arg, lane)));
        row = row.args(args.flatten().unwrap_or_default());
        for (name, value) in &self.env {
            row = row.env(name, template::fill(value, lane));
        }
        for word in env.flatten().unwrap_or_default() {
            let at = word.iter().position(|byte| *byte == b'=').filter(|at| *at > 0);
            let source = self.env_from.as_ref().expect("the words are from there");
            let at = at.ok_or_else(|| {
                source.mistake(&format!("{} is not NAME=VALUE", String::from_utf8_lossy(&word)))
            })?;
            row = row.env(&word[..at], &word[at + 1..]);
        }
        Ok(Some(match stdin.flatten() {
            Some(stdin) => row.stdin(stdin),
            None => row,
        }))
    }

    fn unequal(&self, ended: [Option<bool>; 3]) -> RowError {
        let sources = [&self.args_from, &self.stdin_from, &self.env_from];
        let of = |wanted| {
            let at = ended.iter().position(|ended| *ended == Some(wanted));
            let source = sources[at.expect("one of each")].as_ref().expect("it was asked");
            format!("{} {}", source.option, name_of(&source.path))
        };
        let (short, long) = (of(true), of(false));
        format!("{short} has {} rows, and {long} has more: give each as many", self.next).into()
    }
}

impl Iterator for Inputs {
    type Item = Result<Row, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let lane = self.next;
            match self.row().transpose()? {
                Ok(_) if self.done.contains(&lane) => {}
                row => {
                    self.left = self.left.map(|left| left.saturating_sub(1));
                    return Some(row);
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.left.and_then(|left| usize::try_from(left).ok()))
    }
}

/// How many rows a source has, if that can be known before it is read.
pub(super) fn count(path: &Path) -> Result<Option<u64>> {
    if path.is_dir() {
        return Ok(Some(files_of(path)?.len() as u64));
    }
    if !path.is_file() || path.as_os_str() == "-" {
        return Ok(None);
    }
    let failed = |error| Failure::file("read", path, &error);
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?);
    let (mut lines, mut last) = (0, b'\n');
    loop {
        let bytes = reader.fill_buf().map_err(failed)?;
        let Some(&end) = bytes.last() else { break };
        lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        last = end;
        let len = bytes.len();
        reader.consume(len);
    }
    Ok(Some(lines + u64::from(last != b'\n')))
}

/// Splits `NAME=VALUE`.
pub(super) fn variable(text: &OsStr) -> Option<(&[u8], &[u8])> {
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}
