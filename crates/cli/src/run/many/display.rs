//! The display of a run while it lasts, on standard error if that is a terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use kvrm::linux::Watch;

use super::summary::Summary;
use crate::progress::QUIET;
use crate::text;

/// How often it changes.
const TICK: Duration = Duration::from_millis(100);

/// What is shown.
pub(super) struct Display {
    watch: Watch,
    start: Instant,
    shown: Instant,
    /// Lanes in all, if that is known.
    total: Option<u64>,
    /// Lanes that were done before.
    before: u64,
    bar: Option<ProgressBar>,
}

impl Display {
    pub(super) fn new(watch: Watch, total: Option<u64>, before: u64) -> Display {
        let now = Instant::now();
        Display { watch, start: now, shown: now, total, before, bar: None }
    }

    /// Shows how far the run is, if it was a while ago that this was shown.
    pub(super) fn update(&mut self, summary: &Summary) {
        if self.shown.elapsed() < TICK || self.start.elapsed() < QUIET {
            return;
        }
        self.shown = Instant::now();
        let (message, total) = (self.message(summary), self.total);
        let bar = self.bar.get_or_insert_with(|| {
            // Where standard error is no terminal, nothing is shown.
            let shown = std::io::stderr().is_terminal();
            let bar =
                if shown { ProgressBar::new(total.unwrap_or(1)) } else { ProgressBar::hidden() };
            bar.with_style(style(total)).with_elapsed(self.start.elapsed())
        });
        bar.set_position(summary.lanes);
        bar.set_message(message);
    }

    /// Clears the display.
    pub(super) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn message(&self, summary: &Summary) -> String {
        let elapsed = self.start.elapsed();
        let done = match self.total {
            Some(_) => String::new(),
            None => format!("{} lanes, ", text::thousands(summary.lanes)),
        };
        let left = self.total.and_then(|total| {
            let left = total.saturating_sub(summary.lanes);
            time_left(elapsed, summary.lanes - self.before, left)
        });
        format!(
            "{done}{} running, {} failed, {}/s{}",
            text::thousands(self.watch.running()),
            text::thousands(summary.failed),
            text::short(self.watch.instructions() as f64 / elapsed.as_secs_f64()),
            left.map(|time| format!(", {} left", coarse(time))).unwrap_or_default()
        )
    }
}

/// The time for what is left, if it takes as long as what was done; nothing if nothing was.
fn time_left(elapsed: Duration, done: u64, left: u64) -> Option<Duration> {
    (done > 0)
        .then(|| Duration::try_from_secs_f64(elapsed.as_secs_f64() * left as f64 / done as f64))?
        .ok()
}

/// A time that is not known exactly: 3 s, 12 min, 5 h.
fn coarse(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

fn style(total: Option<u64>) -> ProgressStyle {
    let template = match total {
        None => "{spinner} {elapsed} {msg}",
        Some(_) => "{elapsed} [{bar:30}] {pos} of {len} lanes, {msg}",
    };
    ProgressStyle::with_template(template).expect("a sound template").progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_what_was_done() {
        let time = Duration::from_secs(10);
        assert_eq!(time_left(time, 0, 5), None);
        assert_eq!(time_left(time, 5, 15), Some(Duration::from_secs(30)));
        assert_eq!(time_left(time, 1, u64::MAX), None);
        assert_eq!(coarse(Duration::from_secs(119)), "119 s");
        assert_eq!(
            (coarse(Duration::from_secs(600)), coarse(Duration::from_secs(9000))),
            ("10 min".into(), "2 h".into())
        );
    }
}
