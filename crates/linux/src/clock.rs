//! Time, as guests see it.
//!
//! By default, time is virtual: an instruction takes a nanosecond, and where all threads wait, time goes on to the next
//! moment that one of them waits for. So the same run gives the same times.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::opening::timespec;
use crate::vfs::Timespec;

/// A moment: nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Time(pub u64);

/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// When virtual runs begin: 2025-01-01, in seconds since 1970.
const BEGINNING: u64 = 1_735_689_600;
/// How long the machine has been up when a run begins, so that nothing is near zero.
const UPTIME: u64 = 1000 * SECOND;

impl Time {
    /// So many nanoseconds later.
    pub fn after(self, nanoseconds: u64) -> Time {
        Time(self.0.saturating_add(nanoseconds))
    }
}

/// The clock of a run.
#[derive(Clone)]
pub struct Clock {
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// Instructions, and what was slept through.
    Virtual {
        executed: u64,
        slept: u64,
    },
    Host {
        began: Instant,
        since_1970: u64,
    },
}

impl Clock {
    /// A clock that counts instructions, or the host's.
    pub fn new(realtime: bool) -> Clock {
        let source = match realtime {
            false => Source::Virtual { executed: 0, slept: 0 },
            true => {
                let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Source::Host { began: Instant::now(), since_1970: since_1970.as_nanos() as u64 }
            }
        };
        Clock { source }
    }

    /// Instructions that were executed and nanoseconds that were slept, by which a virtual clock goes on elsewhere; `None`
    /// for the host's.
    pub(crate) fn virtual_time(&self) -> Option<[u64; 2]> {
        match self.source {
            Source::Virtual { executed, slept } => Some([executed, slept]),
            Source::Host { .. } => None,
        }
    }

    /// A clock that goes on from there.
    pub(crate) fn at([executed, slept]: [u64; 2]) -> Clock {
        Clock { source: Source::Virtual { executed, slept } }
    }

    /// Counts instructions.
    pub fn count(&mut self, instructions: u64) {
        if let Source::Virtual { executed, .. } = &mut self.source {
            *executed += instructions;
        }
    }

    /// The time now.
    pub fn now(&self) -> Time {
        match self.source {
            Source::Virtual { executed, slept } => Time(executed.saturating_add(slept)),
            Source::Host { began, .. } => Time(began.elapsed().as_nanos() as u64),
        }
    }

    /// Waits until then; virtually, at once.
    pub fn sleep_until(&mut self, time: Time) {
        let left = time.0.saturating_sub(self.now().0);
        match &mut self.source {
            Source::Virtual { slept, .. } => *slept = slept.saturating_add(left),
            Source::Host { .. } => std::thread::sleep(Duration::from_nanos(left)),
        }
    }

    /// True if time goes on by itself.
    pub fn is_real(&self) -> bool {
        matches!(self.source, Source::Host { .. })
    }

    /// Nanoseconds since 1970 at that moment.
    pub fn since_1970(&self, time: Time) -> u64 {
        self.beginning().saturating_add(time.0)
    }

    /// The moment of so many nanoseconds since 1970.
    pub fn from_1970(&self, nanoseconds: u64) -> Time {
        Time(nanoseconds.saturating_sub(self.beginning()))
    }

    fn beginning(&self) -> u64 {
        match self.source {
            Source::Virtual { .. } => BEGINNING * SECOND,
            Source::Host { since_1970, .. } => since_1970,
        }
    }

    /// When the run began, since 1970.
    pub fn start(&self) -> Timespec {
        timespec(self.beginning())
    }

    /// Nanoseconds since the machine was started at that moment.
    pub fn since_boot(&self, time: Time) -> u64 {
        UPTIME.saturating_add(time.0)
    }

    /// The moment of so many nanoseconds since the machine was started.
    pub fn from_boot(&self, nanoseconds: u64) -> Time {
        Time(nanoseconds.saturating_sub(UPTIME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_is_instructions_and_sleep() {
        let mut clock = Clock::new(false);
        clock.count(5);
        clock.sleep_until(Time(SECOND));
        clock.count(1);
        assert_eq!(clock.now(), Time(SECOND + 1));
        assert_eq!(clock.from_1970(clock.since_1970(Time(7))), Time(7));
        assert_eq!(clock.from_boot(clock.since_boot(Time(7))), Time(7));
        clock.sleep_until(Time(3));
        assert_eq!(clock.now(), Time(SECOND + 1), "time does not go back");
    }
}
