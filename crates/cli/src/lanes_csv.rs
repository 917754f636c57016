//! Reads registers for each lane from a table.
//!
//! The first line names the registers and optionally a column `lane`. Each further line is a lane; without that
//! column, they are lanes 0, 1 and so on:
//!
//! ```csv
//! lane,x0,x1
//! 0,27,0x10
//! 5,-1,0x20
//! ```
//!
//! Blank lines and spaces around fields are ignored.

use std::collections::HashSet;

use kvrm::Reg;

use crate::registers;

/// The registers of the lanes that a table names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LaneTable {
    pub(crate) rows: Vec<LaneRow>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LaneRow {
    /// Line in the file, for messages.
    pub(crate) line: usize,
    pub(crate) lane: usize,
    pub(crate) values: Vec<(Reg, u128)>,
}

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Column {
    Lane,
    Register(Reg),
}

impl LaneTable {
    /// Parses a table; an error names line and column.
    pub(crate) fn parse(text: &str) -> Result<LaneTable, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let (number, header) = lines.next().ok_or("the table is empty")?;
        let columns = parse_header(number, header)?;
        let rows = (0..).zip(lines);
        let rows = rows.map(|(index, (line, text))| parse_row(&columns, index, line, text));
        let table = LaneTable { rows: rows.collect::<Result<_, _>>()? };
        table.check_lanes()?;
        Ok(table)
    }

    /// Returns how many lanes a machine needs for all rows.
    pub(crate) fn lanes(&self) -> usize {
        let last = self.rows.iter().map(|row| row.lane).max();
        last.map_or(0, |lane| lane.saturating_add(1))
    }

    fn check_lanes(&self) -> Result<(), String> {
        if self.rows.is_empty() {
            return Err("the table has a header but no lanes".to_string());
        }
        let mut seen = HashSet::new();
        match self.rows.iter().find(|row| !seen.insert(row.lane)) {
            Some(row) => Err(format!("line {}: lane {} is there twice", row.line, row.lane)),
            None => Ok(()),
        }
    }
}

fn parse_header(line: usize, text: &str) -> Result<Vec<Column>, String> {
    let mut columns = Vec::new();
    for name in text.split(',').map(str::trim) {
        let at = |message: String| format!("line {line}, column {}: {message}", columns.len() + 1);
        let column = match name.eq_ignore_ascii_case("lane") {
            true => Column::Lane,
            false => Column::Register(name.parse().map_err(|e: kvrm::Error| at(e.to_string()))?),
        };
        if columns.contains(&column) {
            return Err(at(format!("{name} is there twice")));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn parse_row(columns: &[Column], index: usize, line: usize, text: &str) -> Result<LaneRow, String> {
    let fields: Vec<_> = text.split(',').map(str::trim).collect();
    if fields.len() != columns.len() {
        let (found, wanted) = (fields.len(), columns.len());
        return Err(format!("line {line}: {found} fields where the header has {wanted}"));
    }
    let mut row = LaneRow { line, lane: index, values: Vec::new() };
    for (column, (number, field)) in columns.iter().zip((1..).zip(fields)) {
        let at = |message| format!("line {line}, column {number}: {message}");
        match *column {
            Column::Lane => {
                let lane = field.parse();
                row.lane = lane.map_err(|_| at(format!("\"{field}\" is not a lane number")))?;
            }
            Column::Register(reg) => {
                row.values.push((reg, registers::value(field, reg).map_err(at)?));
            }
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lanes() {
        let table = LaneTable::parse("x0, w1\r\n1,-1\r\n\r\n0x10,2\r\n").unwrap();
        assert_eq!(table.lanes(), 2);
        assert_eq!(table.rows[1].values, [(Reg::X(0), 16), (Reg::W(1), 2)]);
        assert_eq!((table.rows[1].lane, table.rows[1].line), (1, 4));
        let table = LaneTable::parse("d0,v1,s2\n-0.5,0x10,2\n").unwrap();
        let bits = [(-0.5f64).to_bits().into(), 16, 2f32.to_bits().into()];
        let expected: Vec<_> = [Reg::D(0), Reg::V(1), Reg::S(2)].into_iter().zip(bits).collect();
        assert_eq!(table.rows[0].values, expected);
    }

    #[test]
    fn a_lane_column_names_the_lane() {
        let table = LaneTable::parse("x0,lane\n7,5\n8,2").unwrap();
        assert_eq!(table.lanes(), 6);
        assert_eq!((table.rows[0].lane, table.rows[1].lane), (5, 2));
    }

    #[test]
    fn mistakes_are_located() {
        let message = |text| LaneTable::parse(text).unwrap_err();
        assert_eq!(message(""), "the table is empty");
        assert_eq!(message("x0\n"), "the table has a header but no lanes");
        assert!(message("x0,x99\n1,2").starts_with("line 1, column 2: there is no register"));
        assert_eq!(message("x0,x0\n1,2"), "line 1, column 2: x0 is there twice");
        assert_eq!(message("x0\n1,2"), "line 2: 2 fields where the header has 1");
        assert_eq!(
            message("lane,x0\n0,1\n1,one"),
            "line 3, column 2: \"one\" is not a 64-bit number"
        );
        assert_eq!(message("lane\n-1"), "line 2, column 1: \"-1\" is not a lane number");
        assert_eq!(message("lane,x0\n3,1\n3,2"), "line 3: lane 3 is there twice");
    }
}
