//! What a table is the table of, kept in a file beside it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::inputs::files_of;
use super::record::hex;
use crate::failure::{Failure, Result};
use crate::files;

/// How names of contents end.
const CONTENTS: &str = " contents";

/// Everything that decides what is in a table, by name.
pub(super) struct Identity(BTreeMap<String, Value>);

impl Identity {
    /// That of this version of kvrm.
    pub(super) fn new() -> Identity {
        let mut identity = Identity(BTreeMap::new());
        identity.add("kvrm", env!("CARGO_PKG_VERSION"));
        identity
    }

    /// Adds what has a name.
    pub(super) fn add(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.into(), value.into());
    }

    /// Adds what is in a file, or in the files of a folder; nothing of something else, such as a pipe.
    pub(super) fn add_contents(&mut self, name: &str, path: &Path) -> Result<()> {
        let digest = match (path.is_file(), path.is_dir()) {
            (true, _) => sha256(&[path.into()]),
            (_, true) => sha256(&files_of(path)?),
            _ => return Ok(()),
        };
        let digest = digest.map_err(|error| Failure::file("read", path, &error))?;
        self.add(&format!("{name}{CONTENTS}"), digest);
        Ok(())
    }

    /// Writes it beside a table.
    pub(super) fn write(&self, table: &Path) -> Result<()> {
        files::write(&beside(table), |out| {
            serde_json::to_writer_pretty(&mut *out, &self.0)?;
            writeln!(out)
        })
    }

    /// Compares it with that of a table.
    pub(super) fn check(&self, table: &Path) -> Result<()> {
        let path = beside(table);
        let text = fs::read_to_string(&path).map_err(|error| {
            let (table, path) = (table.display(), path.display());
            Failure::Host(format!(
                "cannot go on with {table}: {path} says what it is of, and {error}"
            ))
        })?;
        let there: BTreeMap<String, Value> = serde_json::from_str(&text)
            .map_err(|error| Failure::Host(format!("{}: {error}", path.display())))?;
        match differences(&there, &self.0) {
            text if text.is_empty() => Ok(()),
            text => Err(Failure::Usage(format!(
                "{} is the table of another command: {text}; give the same again, or begin another table",
                table.display()
            ))),
        }
    }
}

/// The file beside a table.
fn beside(table: &Path) -> PathBuf {
    let mut name = table.as_os_str().to_owned();
    name.push(".run.json");
    name.into()
}

fn differences(there: &BTreeMap<String, Value>, here: &BTreeMap<String, Value>) -> String {
    let mut names: Vec<_> = there.keys().chain(here.keys()).collect();
    names.sort();
    names.dedup();
    let text = |value: Option<&Value>| value.map_or("nothing".to_string(), Value::to_string);
    let differs = |name: &&&String| there.get(**name) != here.get(**name);
    let differences = names.iter().filter(differs).map(|name| match name.strip_suffix(CONTENTS) {
        Some(name) => format!("what is in {name} has changed"),
        None => format!("{name} was {}, and is {}", text(there.get(*name)), text(here.get(*name))),
    });
    differences.collect::<Vec<_>>().join("; ")
}

/// The SHA-256 of files one after the other; of several, with their names.
fn sha256(paths: &[PathBuf]) -> io::Result<String> {
    let mut hash = Sha256::new();
    for path in paths {
        if let (Some(name), true) = (path.file_name(), paths.len() > 1) {
            hash.update(name.as_encoded_bytes());
            hash.update([0]);
            hash.update(path.metadata()?.len().to_le_bytes());
        }
        let mut file = File::open(path)?;
        io::copy(&mut file, &mut HashWriter(&mut hash))?;
    }
    Ok(hex(&hash.finalize()))
}

struct HashWriter<'h>(&'h mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
