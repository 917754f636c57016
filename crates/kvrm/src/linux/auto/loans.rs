//! Rows that a GPU has beside the `cpu` engine. Each is its own until its result is handed over, or until a worker of `cpu` takes
//! the row; so no row is lost if the GPU is, and none has two results.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::super::rows::Row;

/// How often somebody who waits for a row looks again.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(in super::super) struct Loans {
    state: Mutex<State>,
    /// One has come back, or all have.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By their numbers, in the order in which they were lent.
    rows: BTreeMap<u64, Loan>,
    next: u64,
    /// Nothing is lent any more, and what was is for whoever takes it.
    is_closed: bool,
}

struct Loan {
    lane: u64,
    row: Row,
    since: Instant,
}

impl Loans {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends a row; the number of the loan. None, if nothing is lent any more.
    pub(in super::super) fn lend(&self, lane: u64, row: &Row) -> Option<u64> {
        let mut state = self.lock();
        if state.is_closed {
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.rows.insert(number, Loan { lane, row: row.clone(), since: Instant::now() });
        Some(number)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().rows.len()
    }

    /// True if the borrower still has it.
    pub(in super::super) fn has(&self, number: u64) -> bool {
        self.lock().rows.contains_key(&number)
    }

    /// Ends a loan, and gives the row; none, if somebody else has taken it.
    pub(in super::super) fn end(&self, number: u64) -> Option<(u64, Row)> {
        let loan = self.lock().rows.remove(&number)?;
        self.changed.notify_all();
        Some((loan.lane, loan.row))
    }

    /// Lends nothing any more. All rows can be taken now.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Takes a row after the borrower has ended.
    pub(super) fn take(&self) -> Option<(u64, Row)> {
        let (_, loan) = self.lock().rows.pop_last()?;
        self.changed.notify_all();
        Some((loan.lane, loan.row))
    }

    /// Takes the row that was lent last, when it should be taken after that time. None, if none are left or it is over.
    pub(super) fn take_when(
        &self,
        should: impl Fn(Duration) -> bool,
        is_over: impl Fn() -> bool,
    ) -> Option<(u64, Row)> {
        let mut state = self.lock();
        loop {
            if is_over() {
                return None;
            }
            let (_, last) = state.rows.last_key_value()?;
            if state.is_closed || should(last.since.elapsed()) {
                let (_, loan) = state.rows.pop_last().expect("it is there");
                self.changed.notify_all();
                return Some((loan.lane, loan.row));
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Forgets all rows; how many there were.
    pub(super) fn forget(&self) -> usize {
        std::mem::take(&mut self.lock().rows).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lend(loans: &Loans, lane: u64) -> Option<u64> {
        loans.lend(lane, &Row::new().arg(lane.to_string()))
    }

    #[test]
    fn a_row_is_somebodys() {
        let loans = Loans::default();
        let numbers = [7, 3, 7].map(|lane| lend(&loans, lane).unwrap());
        assert_eq!(loans.len(), 3);
        assert_eq!(loans.end(numbers[1]), Some((3, Row::new().arg("3"))));
        assert_eq!(loans.end(numbers[1]), None);
        assert!(!loans.has(numbers[1]) && loans.has(numbers[2]));
        let taken = loans.take_when(|_| true, || false).unwrap();
        assert_eq!(taken, (7, Row::new().arg("7")));
        assert_eq!((loans.end(numbers[2]), loans.has(numbers[0])), (None, true));
    }

    #[test]
    fn rows_are_taken_when_they_should_be() {
        let loans = Loans::default();
        assert_eq!(loans.take_when(|_| true, || false), None, "there are none");
        let number = lend(&loans, 1).unwrap();
        assert_eq!(loans.take_when(|_| false, || true), None, "it is over");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| loans.take_when(|_| false, || false));
            loans.end(number);
            assert_eq!(waits.join().unwrap(), None);
        });
        lend(&loans, 2);
        loans.close();
        assert_eq!(lend(&loans, 3), None);
        assert_eq!(loans.take_when(|_| false, || false).map(|(lane, _)| lane), Some(2));
        assert_eq!((loans.take(), loans.forget()), (None, 0));
    }
}
