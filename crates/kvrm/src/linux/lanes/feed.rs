//! Rows for lanes that are free, read on a thread of its own: making a row may take as long as it likes, and lanes that run do
//! not wait for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use super::super::rows::Row;
use super::side::{Side, Taken};
use crate::{Error, Result};

/// Rows on the way to somebody who asks for them.
pub(super) struct Feed {
    wanted: Sender<()>,
    rows: Receiver<(Taken, Row)>,
    /// Rows that were asked for and have not come.
    asked: usize,
    ended: bool,
}

impl Feed {
    /// Begins to read rows when they are wanted.
    pub(super) fn new(side: &Arc<Side>) -> Result<Feed> {
        let (wanted, asked) = channel::<()>();
        let (sender, rows) = channel();
        let side = side.clone();
        let read = move || {
            for () in asked {
                match catch_unwind(AssertUnwindSafe(|| side.next_row())) {
                    Ok(Some(Ok(row))) => drop(sender.send(row)),
                    // Lanes that have begun end as they would without it.
                    Ok(Some(Err(error))) => return side.shared.fail(error),
                    Ok(None) => return,
                    Err(panicked) => return side.shared.panic(panicked),
                }
            }
        };
        // Nobody waits for its end: it may never come, if the row does not.
        let thread = thread::Builder::new().name("kvrm rows".to_string()).spawn(read);
        thread.map_err(Error::NoThread)?;
        Ok(Feed { wanted, rows, asked: 0, ended: false })
    }

    /// True if no more rows come.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// True if rows were asked for that have not come.
    pub(super) fn is_waiting(&self) -> bool {
        self.asked > 0 && !self.ended
    }

    /// Takes up to `most` rows, those that are there, and asks for more, up to `wanted`; waits up to `patience` for the first.
    pub(super) fn take(
        &mut self,
        most: usize,
        wanted: usize,
        patience: Duration,
    ) -> Vec<(Taken, Row)> {
        while self.asked < wanted && !self.ended {
            self.asked += 1;
            // Who does not listen any more has sent all there are.
            let _ = self.wanted.send(());
        }
        let mut rows = Vec::new();
        if self.asked > 0 && most > 0 && !patience.is_zero() {
            match self.rows.recv_timeout(patience) {
                Ok(row) => rows.push(row),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
            }
        } else if !self.ended {
            thread::sleep(patience);
        }
        while rows.len() < most {
            match self.rows.try_recv() {
                Ok(row) => rows.push(row),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    break;
                }
            }
        }
        self.asked -= rows.len();
        rows
    }
}
