//! What differs between the lanes of one program.

use std::error::Error as StdError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::plan::Plan;
use crate::{Error, Result};

/// What one lane has of its own. What it does not say is the [`Process`](super::Process)'s.
///
/// ```
/// use kvrm::linux::Row;
/// let row = Row::new().arg("--seed").arg("7").env("LANG", "C").stdin("1 2 3\n").file("/tmp/in", [0, 1]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub(super) lane: Option<u64>,
    pub(super) args: Vec<Vec<u8>>,
    pub(super) env: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) files: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Row {
    /// A lane that has nothing of its own.
    pub fn new() -> Row {
        Row::default()
    }

    /// The number that its result bears. By default, rows are numbered in their order from 0; those after a row with a
    /// number go on from there.
    pub fn lane(mut self, lane: u64) -> Row {
        self.lane = Some(lane);
        self
    }

    /// Adds an argument, after those of the process.
    pub fn arg(mut self, arg: impl AsRef<[u8]>) -> Row {
        self.args.push(arg.as_ref().to_vec());
        self
    }

    /// Adds arguments, after those of the process.
    pub fn args(self, args: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Row {
        args.into_iter().fold(self, Row::arg)
    }

    /// Sets a variable of the environment, in addition to those of the process, or instead of that one.
    pub fn env(mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Row {
        self.env.push((key.as_ref().to_vec(), value.as_ref().to_vec()));
        self
    }

    /// What it reads from standard input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Row {
        self.stdin = Some(bytes.into());
        self
    }

    /// A file with these contents, in addition to those of the process, or instead of that one.
    pub fn file(mut self, path: impl AsRef<[u8]>, contents: impl Into<Vec<u8>>) -> Row {
        self.files.push((path.as_ref().to_vec(), contents.into()));
        self
    }

    /// Changes what all lanes begin with to what this one does.
    pub(super) fn apply(self, plan: &mut Plan) {
        plan.args.extend(self.args);
        for (key, value) in self.env {
            plan.set_variable(key, value);
        }
        for (path, contents) in self.files {
            plan.give_file(path, contents);
        }
    }
}

/// Why there is no row where one was expected.
pub type RowError = Box<dyn StdError + Send + Sync>;

/// A [`Row`], or a reason why there is none.
pub trait IntoRow {
    /// Makes the row.
    fn into_row(self) -> std::result::Result<Row, RowError>;
}

impl IntoRow for Row {
    fn into_row(self) -> std::result::Result<Row, RowError> {
        Ok(self)
    }
}

impl<E: Into<RowError>> IntoRow for std::result::Result<Row, E> {
    fn into_row(self) -> std::result::Result<Row, RowError> {
        self.map_err(Into::into)
    }
}

type Iter = Box<dyn Iterator<Item = std::result::Result<Row, RowError>> + Send>;

/// The rows that no lane has begun with. Whoever has room for another takes it from here, so that rows are read as they
/// are needed, and none before.
pub(super) struct Rows {
    left: Mutex<Left>,
    most: usize,
    ended: AtomicBool,
}

struct Left {
    /// None after the end.
    iter: Option<Iter>,
    next: u64,
    /// Rows that were made for somebody who did not want them any more.
    returned: Vec<(u64, Row)>,
}

impl Rows {
    pub(super) fn new<R>(rows: R) -> Rows
    where
        R: IntoIterator<Item: IntoRow + 'static, IntoIter: Send + 'static>,
    {
        let iter: Iter = Box::new(rows.into_iter().map(IntoRow::into_row));
        let most = iter.size_hint().1.unwrap_or(usize::MAX);
        let left = Left { iter: Some(iter), next: 0, returned: Vec::new() };
        Rows { left: Mutex::new(left), most, ended: AtomicBool::new(false) }
    }

    /// The most rows that there are, as far as anybody knows.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// True if no more rows will be made.
    pub(super) fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) || self.left.is_poisoned()
    }

    /// The next row and its number. There is none after one that could not be made.
    pub(super) fn next(&self) -> Option<Result<(u64, Row)>> {
        let next = self.next_if(|_, _| Some(()))?;
        Some(next.map(|((), lane, row)| (lane, row)))
    }

    /// The next row, for somebody who may not want it any more when it has been made: then it is there for others.
    pub(super) fn next_if<T>(
        &self,
        take: impl FnOnce(u64, &Row) -> Option<T>,
    ) -> Option<Result<(T, u64, Row)>> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (lane, row) = match left.returned.pop() {
            Some(returned) => returned,
            None => match self.make(&mut left)? {
                Ok(made) => made,
                Err(error) => return Some(Err(error)),
            },
        };
        match take(lane, &row) {
            Some(taken) => Some(Ok((taken, lane, row))),
            None => {
                left.returned.push((lane, row));
                None
            }
        }
    }

    fn make(&self, left: &mut Left) -> Option<Result<(u64, Row)>> {
        // If making the row panics, there are no others.
        let mut iter = left.iter.take()?;
        let row = match iter.next() {
            Some(Ok(row)) => row,
            ended => {
                self.ended.store(true, Ordering::Release);
                return ended?.err().map(|error| Err(Error::Rows(error)));
            }
        };
        let lane = row.lane.unwrap_or(left.next);
        (left.iter, left.next) = (Some(iter), lane.saturating_add(1));
        Some(Ok((lane, row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_nobody_wanted_is_there_for_others() {
        let rows = Rows::new([Row::new().arg("a"), Row::new().arg("b")]);
        assert!(rows.next_if(|_, _| None::<()>).is_none());
        assert!(!rows.have_ended());
        let lanes: Vec<_> = std::iter::from_fn(|| rows.next()).map(|row| row.unwrap()).collect();
        assert_eq!(lanes, [(0, Row::new().arg("a")), (1, Row::new().arg("b"))]);
        assert!(rows.have_ended());
    }

    #[test]
    fn a_row_that_cannot_be_made_is_the_last() {
        let rows = Rows::new([Err("bad"), Ok(Row::new())]);
        assert!(rows.next().unwrap().is_err());
        assert!(rows.have_ended() && rows.next().is_none());
    }
}
