//! Records as lines of CSV (RFC 4180): a cell with a comma, a quote or a line end is in quotes. Lists are JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::record::Record;

/// The columns: the fields of a record.
pub(super) const COLUMNS: [&str; 20] = [
    "lane",
    "ending",
    "exit_code",
    "signal",
    "fault_address",
    "pc",
    "function",
    "instructions",
    "system_calls",
    "stdout",
    "stdout_form",
    "stdout_bytes",
    "stderr",
    "stderr_form",
    "stderr_bytes",
    "files",
    "limits",
    "engine",
    "moved_after",
    "error",
];

/// Columns that are numbers; others are text, apart from lists.
const NUMBERS: [&str; 7] = [
    "lane",
    "exit_code",
    "instructions",
    "system_calls",
    "stdout_bytes",
    "stderr_bytes",
    "moved_after",
];
const LISTS: [&str; 2] = ["files", "limits"];
/// Text that is always there, if empty.
const TEXTS: [&str; 2] = ["stdout", "stderr"];

/// The first line, with its end.
pub(super) fn header() -> String {
    COLUMNS.join(",") + "\n"
}

/// A record as a line, with its end.
pub(super) fn line(record: &Record) -> String {
    let Value::Object(fields) = to_json(record) else { unreachable!("a record has fields") };
    let cells = COLUMNS.map(|column| match &fields[column] {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        // An empty list is an empty cell.
        Value::Array(list) if list.is_empty() => String::new(),
        value => quoted(&value.to_string()),
    });
    cells.join(",") + "\n"
}

fn to_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("it is numbers, text and lists")
}

fn quoted(cell: &str) -> String {
    match cell.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.into(),
    }
}

/// True if a piece of a line opens or closes quotes: a line end in quotes does not end the line.
pub(super) fn toggles_quotes(piece: &[u8]) -> bool {
    piece.iter().filter(|byte| **byte == b'"').count() % 2 == 1
}

/// The record of a line.
pub(super) fn parse(line: &str) -> Result<Record, String> {
    let cells = cells(line.strip_suffix('\n').unwrap_or(line));
    if cells.len() != COLUMNS.len() {
        return Err(format!("{} cells where there are {} columns", cells.len(), COLUMNS.len()));
    }
    let mut fields = Map::new();
    for (column, cell) in COLUMNS.iter().zip(cells) {
        fields.insert(
            (*column).into(),
            value(column, cell).map_err(|error| format!("{column}: {error}"))?,
        );
    }
    from_json(Value::Object(fields)).map_err(|error| error.to_string())
}

fn from_json<T: DeserializeOwned>(value: Value) -> serde_json::Result<T> {
    serde_json::from_value(value)
}

fn value(column: &str, cell: String) -> serde_json::Result<Value> {
    match cell.is_empty() {
        true if LISTS.contains(&column) => Ok(Value::Array(Vec::new())),
        true if TEXTS.contains(&column) => Ok(Value::String(cell)),
        true => Ok(Value::Null),
        false if NUMBERS.contains(&column) || LISTS.contains(&column) => {
            serde_json::from_str(&cell)
        }
        false => Ok(Value::String(cell)),
    }
}

fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        let cell = cells.last_mut().expect("there is one");
        match char {
            '"' if is_quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            char => cell.push(char),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(stdout: &str) -> Record {
        let json = format!(
            r#"{{"lane": 3, "ending": "killed", "exit_code": null, "signal": "SIGSEGV", "fault_address": "0x8",
            "pc": "0x4006d4", "function": "f(int, char)+0x4", "instructions": 1140, "system_calls": 2,
            "stdout": {}, "stdout_form": "text", "stdout_bytes": 9, "stderr": "00ff", "stderr_form": "hex",
            "stderr_bytes": 2, "files": [{{"path": "/a,\"b\"", "bytes": 1, "sha256": "00"}}],
            "limits": ["memory", "files"], "engine": "cpu", "moved_after": null, "error": null}}"#,
            Value::String(stdout.into())
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn lines_come_back_as_they_were() {
        for text in ["", "plain", "a,b\n\"c\"\r\n", "\"", ",", "\n", "null", "ü"] {
            let line = line(&record(text));
            assert_eq!(parse(&line), Ok(record(text)), "{line}");
            let ends = line.match_indices('\n').map(|(at, _)| at + 1);
            let whole: Vec<_> =
                ends.filter(|end| !toggles_quotes(&line.as_bytes()[..*end])).collect();
            assert_eq!(whole, [line.len()], "{line}");
        }
    }

    #[test]
    fn columns_are_the_fields() {
        let json = serde_json::to_string(&record("")).unwrap();
        let at = COLUMNS.map(|column| json.find(&format!("\"{column}\":")).expect(column));
        assert!(at.is_sorted(), "in another order: {json}");
        assert_eq!(to_json(&record("")).as_object().unwrap().len(), COLUMNS.len());
    }

    #[test]
    fn lines_of_something_else_are_refused() {
        assert!(parse("1,2,3\n").unwrap_err().contains("3 cells"));
        let line = line(&record("")).replacen('3', "three", 1);
        assert!(parse(&line).unwrap_err().starts_with("lane: "));
    }
}
