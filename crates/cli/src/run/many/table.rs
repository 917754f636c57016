//! The table of a run on disk: a line per lane, in the order in which they end.
//!
//! Lines are written whole and handed to the system within a second, so that a process that is killed loses what the last
//! second brought, and at the most leaves a torn line at the end, which [`Table::resume`] cuts off. Beside the table is a file
//! that says what it is the table of ([`Identity`]).

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::csv;
use super::identity::Identity;
use super::record::Record;
use crate::failure::{Failure, Result};

/// How long a line may wait in memory.
const SOON: Duration = Duration::from_millis(250);

/// How lines are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Jsonl,
    Csv,
}

impl Format {
    /// The format that a file's name asks for.
    pub(super) fn of(path: &Path) -> Result<Format> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("jsonl") => Ok(Format::Jsonl),
            Some("csv") => Ok(Format::Csv),
            _ => Err(Failure::Usage(format!(
                "--results {}: its name must end in .jsonl or .csv, which says what it is",
                path.display()
            ))),
        }
    }
}

/// A table that is being written.
pub(super) struct Table {
    path: PathBuf,
    format: Format,
    out: BufWriter<File>,
    /// Since when lines wait.
    waiting: Option<Instant>,
}

impl Table {
    /// Begins a table. There must be none.
    pub(super) fn create(path: &Path, identity: &Identity) -> Result<Table> {
        let format = Format::of(path)?;
        if path.metadata().is_ok_and(|there| there.len() > 0) {
            return Err(Failure::Usage(format!(
                "{} is there already: --resume goes on with it; or remove it, or name another",
                path.display()
            )));
        }
        let file = open(path)?;
        identity.write(path)?;
        let mut table =
            Table { path: path.into(), format, out: BufWriter::new(file), waiting: None };
        if format == Format::Csv {
            table.put(csv::header().as_bytes())?;
        }
        Ok(table)
    }

    /// Goes on with a table, if there is one, or begins it. Calls `each` with what is in it; the lanes that are.
    pub(super) fn resume(
        path: &Path,
        identity: &Identity,
        each: impl FnMut(&Record),
    ) -> Result<(Table, HashSet<u64>)> {
        if !path.metadata().is_ok_and(|there| there.len() > 0) {
            return Ok((Table::create(path, identity)?, HashSet::new()));
        }
        let format = Format::of(path)?;
        identity.check(path)?;
        let mut file = open(path)?;
        let (lanes, len) = read(&file, path, format, each)?;
        let failed = |error| Failure::file("write", path, &error);
        file.set_len(len).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut table =
            Table { path: path.into(), format, out: BufWriter::new(file), waiting: None };
        if len == 0 && format == Format::Csv {
            table.put(csv::header().as_bytes())?;
        }
        Ok((table, lanes))
    }

    /// Adds a line.
    pub(super) fn add(&mut self, record: &Record) -> Result<()> {
        match self.format {
            Format::Csv => self.put(csv::line(record).as_bytes()),
            Format::Jsonl => {
                let mut line = serde_json::to_vec(record)?;
                line.push(b'\n');
                self.put(&line)
            }
        }
    }

    fn put(&mut self, line: &[u8]) -> Result<()> {
        self.out.write_all(line).map_err(|error| self.failed(&error))?;
        self.waiting.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Hands over lines that have waited long enough.
    pub(super) fn flush_soon(&mut self) -> Result<()> {
        match self.waiting.is_some_and(|since| since.elapsed() >= SOON) {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Hands over all lines.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.waiting = None;
        self.out.flush().map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::file("write", &self.path, error)
    }
}

/// Opens a table for itself: two runs that went on with it would do lanes twice.
fn open(path: &Path) -> Result<File> {
    let failed = |error| Failure::file("write", path, &error);
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let file = options.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::Host(format!("another kvrm is writing {}", path.display())))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Reads the whole lines of a table: the lanes that are there, and how long these lines are.
fn read(
    file: &File,
    path: &Path,
    format: Format,
    mut each: impl FnMut(&Record),
) -> Result<(HashSet<u64>, u64)> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut lanes, mut length) = (HashSet::new(), 0);
    for number in 1_u64.. {
        let line =
            next_line(&mut reader, format).map_err(|error| Failure::file("read", path, &error))?;
        let Some(line) = line else { break };
        length += line.len() as u64;
        let parsed = parse(&line, format, number == 1);
        let parsed = parsed.map_err(|what| {
            let path = path.display();
            Failure::Host(format!("{path} is not a table of kvrm: line {number}: {what}"))
        })?;
        if let Some(record) = parsed
            && lanes.insert(record.lane)
        {
            each(&record);
        }
    }
    Ok((lanes, length))
}

/// The next whole line.
fn next_line(reader: &mut impl BufRead, format: Format) -> io::Result<Option<Vec<u8>>> {
    let (mut line, mut is_quoted) = (Vec::new(), false);
    loop {
        let start = line.len();
        if reader.read_until(b'\n', &mut line)? == 0 || line.last() != Some(&b'\n') {
            return Ok(None);
        }
        is_quoted ^= format == Format::Csv && csv::toggles_quotes(&line[start..]);
        if !is_quoted {
            return Ok(Some(line));
        }
    }
}

/// The record of a line; none of the line with the names of the columns.
fn parse(line: &[u8], format: Format, is_first: bool) -> Result<Option<Record>, String> {
    let line = std::str::from_utf8(line).map_err(|_| "it is not text (UTF-8)".to_string())?;
    match format {
        Format::Jsonl => serde_json::from_str(line).map(Some).map_err(|error| error.to_string()),
        Format::Csv if is_first && line == csv::header() => Ok(None),
        Format::Csv if is_first => Err("these are not the columns of this kvrm".to_string()),
        Format::Csv => csv::parse(line).map(Some),
    }
}
