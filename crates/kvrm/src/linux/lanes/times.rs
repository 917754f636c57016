//! What the time of lanes on a GPU is spent on.

use std::fmt::{Display, Formatter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the time of lanes on a GPU was spent on: seconds of the engines that the lanes are on, all together. There are two on a
/// GPU, of which one may serve lanes while those of the other run, so the sum can be twice the time of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LaneTimes {
    /// Lanes ran.
    pub running: f64,
    /// Lanes waited for a kernel to be compiled or loaded.
    pub compiling: f64,
    /// System calls were served and programs begun, on threads of the host.
    pub serving: f64,
    /// Registers and memory of lanes were moved.
    pub moving: f64,
    /// System calls that lanes have served themselves, without stopping.
    pub calls_in_lanes: u64,
    /// System calls that lanes have stopped for.
    pub calls_on_host: u64,
}

impl Display for LaneTimes {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let LaneTimes { running, compiling, serving, moving, .. } = self;
        write!(
            f,
            "{running:.1} s running, {compiling:.1} s compiling, {serving:.1} s serving, {moving:.1} s moving"
        )?;
        let calls = self.calls_in_lanes + self.calls_on_host;
        write!(f, "; {} of {calls} system calls served in lanes", self.calls_in_lanes)
    }
}

/// The same while it is counted, in nanoseconds.
#[derive(Default)]
pub(in super::super) struct Times {
    running: AtomicU64,
    compiling: AtomicU64,
    serving: AtomicU64,
    moving: AtomicU64,
    calls_in_lanes: AtomicU64,
    calls_on_host: AtomicU64,
}

impl Times {
    /// The times so far; none if there were no lanes on a GPU.
    pub(in super::super) fn so_far(&self) -> Option<LaneTimes> {
        let seconds = |time: &AtomicU64| time.load(Ordering::Relaxed) as f64 / 1e9;
        let Times { running, compiling, serving, moving, .. } = self;
        let [running, compiling, serving, moving] =
            [running, compiling, serving, moving].map(seconds);
        // Lanes wait for kernels while they would run.
        let running = (running - compiling).max(0.0);
        let calls = [&self.calls_in_lanes, &self.calls_on_host];
        let [calls_in_lanes, calls_on_host] = calls.map(|calls| calls.load(Ordering::Relaxed));
        let times =
            LaneTimes { running, compiling, serving, moving, calls_in_lanes, calls_on_host };
        (times != LaneTimes::default()).then_some(times)
    }

    /// Adds the time that lanes run for.
    pub(super) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        timed(&self.running, work)
    }

    /// Adds the time that lanes are served for.
    pub(super) fn serve<T>(&self, work: impl FnOnce() -> T) -> T {
        timed(&self.serving, work)
    }

    /// Adds the time that something is moved for.
    pub(super) fn move_state<T>(&self, work: impl FnOnce() -> T) -> T {
        timed(&self.moving, work)
    }

    /// Counts system calls that a lane has served.
    pub(super) fn called_in_lane(&self, calls: u64) {
        self.calls_in_lanes.fetch_add(calls, Ordering::Relaxed);
    }

    /// Counts a system call that a lane has stopped for.
    pub(super) fn called_host(&self) {
        self.calls_on_host.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the time that lanes waited for kernels.
    pub(super) fn compiled(&self, time: Duration) {
        self.compiling.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

fn timed<T>(time: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    time.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_wait_for_kernels_do_not_run() {
        let times = Times::default();
        assert_eq!(times.so_far(), None);
        times.running.store(5_000_000_000, Ordering::Relaxed);
        times.compiled(Duration::from_secs(2));
        let so_far = times.so_far().unwrap();
        assert_eq!((so_far.running, so_far.compiling), (3.0, 2.0));
        let text = "3.0 s running, 2.0 s compiling, 0.0 s serving, 0.0 s moving; 0 of 0 system calls served in lanes";
        assert_eq!(so_far.to_string(), text);
    }
}
