//! Splits runs into launches of bounded length.

use std::time::Duration;

/// The number of instructions that each lane may execute in a launch, adapted to the time that launches take.
///
/// ```
/// use std::time::Duration;
/// use kvrm_engine::slice::Share;
///
/// let mut share = Share::new(1024, 1 << 30, Duration::from_millis(100));
/// assert_eq!(share.of(8), 1024);
/// share.adapt(Duration::from_millis(50), true);
/// assert_eq!(share.of(8), 2048);
/// // No lane used it up: a short launch does not mean that lanes are fast.
/// share.adapt(Duration::from_millis(1), false);
/// assert_eq!(share.of(8), 2048);
/// share.adapt(Duration::from_secs(10), false);
/// assert_eq!(share.of(8), 512);
///
/// // What few lanes can do in that time may take many lanes far longer.
/// for _ in 0..4 {
///     share.adapt(Duration::from_millis(25), true);
/// }
/// assert_eq!(share.of(1), 512 << 8);
/// assert_eq!(share.of(16), 512 << 4);
/// assert_eq!(share.of(1 << 20), 1024);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Share {
    first: u64,
    instructions: u64,
    most: u64,
    wanted: Duration,
    /// Number of lanes when this was learned.
    lanes: usize,
}

/// Launches of fewer instructions than this would be all overhead.
const LEAST: f64 = 64.0;

impl Share {
    /// Makes a share with its first and largest value, and the time that launches should take.
    pub fn new(first: u64, most: u64, wanted: Duration) -> Share {
        Share { first, instructions: first, most, wanted, lanes: 0 }
    }

    /// Returns the instructions of the first launch.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the instructions for each of this many lanes in the next launch. If there are more lanes than
    /// before, each gets fewer, as if the device had been fully busy before; but not fewer than in the first
    /// launch.
    pub fn of(&mut self, lanes: usize) -> u64 {
        if lanes > self.lanes {
            let least = self.first.min(self.instructions);
            let each = self.instructions as f64 * self.lanes as f64 / lanes as f64;
            self.instructions = least.max(each as u64);
        }
        self.lanes = lanes;
        self.instructions
    }

    /// Adapts to the time of a launch; `used_up` says whether a lane has executed all of its share.
    pub fn adapt(&mut self, time: Duration, used_up: bool) {
        let ratio = self.wanted.as_secs_f64() / time.as_secs_f64().max(1e-6);
        if used_up || ratio < 1.0 {
            let share = self.instructions as f64 * ratio.clamp(0.25, 4.0);
            self.instructions = share.clamp(LEAST, self.most as f64) as u64;
        }
    }
}
