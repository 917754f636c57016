//! Slicing runs into launches of bounded length.

use std::time::Duration;

/// How many instructions each lane may execute in a launch, adapted to what launches take.
///
/// ```
/// use std::time::Duration;
/// use kvrm_engine::slice::Share;
///
/// let mut share = Share::new(1024, 1 << 30, Duration::from_millis(100));
/// share.adapt(Duration::from_millis(50), true);
/// assert_eq!(share.get(), 2048);
/// // No lane used it up: a short launch does not mean that lanes are fast.
/// share.adapt(Duration::from_millis(1), false);
/// assert_eq!(share.get(), 2048);
/// share.adapt(Duration::from_secs(10), false);
/// assert_eq!(share.get(), 512);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Share {
    instructions: u64,
    most: u64,
    wanted: Duration,
}

/// Launches of fewer instructions than this would be nothing but overhead.
const LEAST: f64 = 64.0;

impl Share {
    /// A first share, and what launches should take.
    pub fn new(first: u64, most: u64, wanted: Duration) -> Share {
        Share { instructions: first, most, wanted }
    }

    /// Instructions for each lane in the next launch.
    pub fn get(&self) -> u64 {
        self.instructions
    }

    /// Learns from a launch; `used_up` says whether some lane has executed all of its share.
    pub fn adapt(&mut self, time: Duration, used_up: bool) {
        let ratio = self.wanted.as_secs_f64() / time.as_secs_f64().max(1e-6);
        if used_up || ratio < 1.0 {
            let share = self.instructions as f64 * ratio.clamp(0.25, 4.0);
            self.instructions = share.clamp(LEAST, self.most as f64) as u64;
        }
    }
}
