//! What `auto` decides, from measured numbers alone.
//!
//! Rows begin on the `cpu` engine. How long one takes there, how many instructions it executes and how many are left say
//! whether a GPU can be of use at all ([`Policy::chance`]). If so, it gets a first lot of rows, and what both then execute
//! together is compared with what `cpu` did before ([`Policy::is_worth_it`]): lanes of a GPU need threads of the host, so that
//! `cpu` gets slower. How many rows a GPU may take at a time follows from when `cpu` would be done with the others
//! ([`Policy::lot`]), and rows that `cpu` would end sooner are taken from it again ([`Policy::is_sooner_on_cpu`]).
//!
//! Times are in seconds.

use std::time::Duration;

/// What is assumed before it can be measured, and what is asked of a GPU.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How long rows run on `cpu` before anybody thinks of a GPU. Code is translated in the first moments, so that rows
    /// take longer then.
    pub watched: f64,
    /// The part of their time for which workers must have rows. With less, rows come, or results are taken, more slowly than
    /// `cpu` runs rows.
    pub busy: f64,
    /// How long a GPU takes until its lanes run: its driver starts in about a second, and kernels come from the cache or
    /// are compiled, which takes up to some seconds for each of several. `cpu` goes on meanwhile, so this is what makes it
    /// worth a try, and not what it costs.
    pub start: f64,
    /// Instructions a second of a lane: 3.7 million were measured on an H200 with 65,536 lanes that do the same, and more
    /// with fewer lanes.
    pub lane_speed: f64,
    /// Rows that a GPU gets first. So many lanes are fewer than any large GPU has room for, and many enough to measure.
    pub first_lot: usize,
    /// How long lanes must have run, apart from waits for kernels, for what they did to be judged.
    pub trial: f64,
    /// By how much both together must be faster than `cpu` was, once the GPU has as many lanes as it may have. Less is
    /// within what rows differ by.
    pub gain: f64,
    /// Rows of a GPU that have ended, for it to be judged by how many of them left it.
    pub judged: u64,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            watched: 1.0,
            busy: 0.5,
            start: 4.0,
            lane_speed: 4e6,
            first_lot: 4096,
            trial: 1.0,
            gain: 0.05,
            judged: 16,
        }
    }
}

/// What was measured of rows on the `cpu` engine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OnCpu {
    /// Threads that run rows.
    pub(super) workers: f64,
    /// Time since they began.
    pub(super) elapsed: f64,
    /// Rows that have ended.
    pub(super) ended: f64,
    /// Those among them with a second thread, process or program, which a lane of a GPU cannot have.
    pub(super) leavers: f64,
    /// Rows under way.
    pub(super) running: f64,
    /// Time that workers have spent on rows, those under way included.
    pub(super) busy: f64,
    /// Instructions executed.
    pub(super) instructions: f64,
}

impl OnCpu {
    /// Rows that were done, if those under way are half done on average.
    fn done(&self) -> f64 {
        self.ended + self.running / 2.0
    }

    /// What a row takes a worker.
    pub(super) fn row_seconds(&self) -> f64 {
        ratio(self.busy, self.done())
    }

    /// Instructions of a row. What rows have in common is executed once.
    fn row_instructions(&self) -> f64 {
        ratio(self.instructions, self.done())
    }

    /// Time for so many rows.
    pub(super) fn time_for(&self, rows: f64) -> f64 {
        ratio(rows * self.row_seconds(), self.workers)
    }
}

/// What a GPU did in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OnGpu {
    /// How long lanes have run, apart from waits for kernels.
    pub(super) ran: f64,
    /// Instructions of lanes.
    pub(super) instructions: f64,
    /// Rows that it has.
    pub(super) running: f64,
}

/// A division whose result is zero where there is nothing to divide by.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Whether a GPU can be of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chance {
    /// Not much has run yet, or not much is left.
    Short,
    /// Workers wait for rows, or for somebody to take their results.
    Idle,
    /// Rows need what a lane of a GPU has not.
    Leavers,
    /// There are too few rows for how long one takes a lane.
    Few,
    /// It should be tried.
    Good,
}

impl Policy {
    /// Whether a GPU can be of use for so many rows that are left.
    pub(super) fn chance(&self, cpu: &OnCpu, left: f64) -> Chance {
        let rest = cpu.time_for(left);
        if cpu.elapsed < self.watched || rest < self.start {
            Chance::Short
        } else if cpu.leavers * 2.0 > cpu.ended {
            Chance::Leavers
        } else if cpu.busy < cpu.elapsed * cpu.workers * self.busy {
            Chance::Idle
        } else if rest < self.start + self.lane_seconds(cpu, None) {
            Chance::Few
        } else {
            Chance::Good
        }
    }

    /// How many rows are left; if nobody knows, as many as were done, or as lanes were asked for.
    pub(super) fn left(total: Option<u64>, taken: u64, asked: u64) -> f64 {
        let left = total.map(|total| total.saturating_sub(taken));
        left.unwrap_or_else(|| taken.max(asked.saturating_sub(taken))) as f64
    }

    /// How long a row takes a lane of a GPU, from what that did in its last trial, if there was one.
    pub(super) fn lane_seconds(&self, cpu: &OnCpu, gpu: Option<&OnGpu>) -> f64 {
        let measured = gpu.map(|gpu| ratio(ratio(gpu.instructions, gpu.ran), gpu.running));
        let speed = measured.filter(|speed| *speed > 0.0).unwrap_or(self.lane_speed);
        cpu.row_instructions() / speed
    }

    /// True if a GPU should go on, after a trial: `before` is what `cpu` executed in a second without it, `cpu` and `gpu`
    /// what they do together. One that could have more lanes may be judged by more later.
    pub(super) fn is_worth_it(&self, before: f64, cpu: f64, gpu: f64, may_grow: bool) -> bool {
        let least = if may_grow { 1.0 } else { 1.0 + self.gain };
        cpu + gpu >= before * least
    }

    /// True if most of a GPU's rows are not done in its lanes.
    pub(super) fn is_left(&self, ended: u64, left: u64) -> bool {
        ended.saturating_add(left) >= self.judged && left > ended
    }

    /// How many of the rows that are left a GPU may take now, up to `room`, so that it is not the last to be done: a row that
    /// it takes is done after `lane_seconds`, measured with so many `running`, and `cpu` must have others until then.
    pub(super) fn lot(
        &self,
        cpu: &OnCpu,
        left: f64,
        [running, room]: [usize; 2],
        lane_seconds: f64,
        timeout: Option<Duration>,
    ) -> usize {
        // At worst, more lanes do no more together.
        let crowd = (running + room) as f64 / running.max(self.first_lot).max(1) as f64;
        let seconds = lane_seconds * crowd.max(1.0);
        // A row whose time is over on the GPU is run again.
        if timeout.is_some_and(|timeout| seconds * 2.0 > timeout.as_secs_f64()) {
            return 0;
        }
        let meanwhile = ratio(seconds * cpu.workers, cpu.row_seconds());
        (left - meanwhile).max(0.0).min(room as f64) as usize
    }

    /// True if a worker would end a row sooner than the GPU that has had it for some time. A row that takes longer than
    /// others is expected to take as long again, and is longer on `cpu`, too.
    pub(super) fn is_sooner_on_cpu(&self, cpu: &OnCpu, age: f64, lane_seconds: f64) -> bool {
        let whole = if age < lane_seconds { lane_seconds } else { age * 2.0 };
        let on_cpu = cpu.row_seconds() * ratio(whole, lane_seconds).max(1.0);
        on_cpu < whole - age
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixteen workers after two seconds, with rows of this time at two billion instructions a second.
    fn cpu(row: f64) -> OnCpu {
        let busy = 32.0;
        OnCpu {
            workers: 16.0,
            elapsed: 2.0,
            ended: busy / row,
            leavers: 0.0,
            running: 0.0,
            busy,
            instructions: busy * 2e9,
        }
    }

    fn chance(cpu: &OnCpu, left: f64) -> Chance {
        Policy::default().chance(cpu, left)
    }

    #[test]
    fn a_gpu_is_thought_of_when_it_could_be_of_use() {
        // A thousand rows of 0.4 ms are done before a GPU has started.
        assert_eq!(chance(&cpu(0.0004), 1000.0), Chance::Short);
        // 65,536 rows of 34 million instructions take 70 s on 16 cores, and a lane 9 s.
        let hashes = cpu(0.017);
        assert_eq!(chance(&hashes, 65_536.0), Chance::Good);
        assert_eq!(chance(&hashes, 11_000.0), Chance::Few);
        assert_eq!(chance(&hashes, 3_000.0), Chance::Short);
        let soon = OnCpu { elapsed: 0.5, ..hashes };
        assert_eq!(chance(&soon, 65_536.0), Chance::Short, "it was not measured long enough");
    }

    #[test]
    fn few_rows_that_take_long_stay_on_cpu() {
        // A second each: 1,000 rows take a minute on 16 cores, and one of them 500 s in a lane.
        assert_eq!(chance(&cpu(1.0), 1000.0), Chance::Few);
        assert_eq!(chance(&cpu(1.0), 100_000.0), Chance::Good);
    }

    #[test]
    fn rows_that_have_not_ended_count_as_half_done() {
        let none = OnCpu { ended: 0.0, running: 16.0, ..cpu(1.0) };
        assert_eq!(none.row_seconds(), 4.0);
        assert_eq!(chance(&none, 1e6), Chance::Good);
        let nothing = OnCpu { workers: 16.0, elapsed: 10.0, ..OnCpu::default() };
        assert_eq!((nothing.row_seconds(), chance(&nothing, 1e6)), (0.0, Chance::Short));
    }

    #[test]
    fn a_gpu_does_not_make_rows_come_sooner() {
        let waiting = OnCpu { elapsed: 10.0, ..cpu(0.017) };
        assert_eq!(chance(&waiting, 1e6), Chance::Idle);
    }

    #[test]
    fn programs_with_threads_stay_on_cpu() {
        let hashes = cpu(0.017);
        let some = OnCpu { leavers: hashes.ended * 0.4, ..hashes };
        assert_eq!(chance(&some, 1e6), Chance::Good);
        let most = OnCpu { leavers: hashes.ended * 0.6, ..hashes };
        assert_eq!(chance(&most, 1e6), Chance::Leavers);
    }

    #[test]
    fn rows_without_a_known_number_last_as_long_again() {
        assert_eq!(Policy::left(Some(100), 30, 0), 70.0);
        assert_eq!(Policy::left(Some(100), 130, 0), 0.0);
        assert_eq!(Policy::left(None, 30, 0), 30.0);
        assert_eq!(Policy::left(None, 30, 65_536), 65_506.0, "so many lanes were asked for");
        assert_eq!(Policy::left(None, 65_530, 65_536), 65_530.0);
    }

    #[test]
    fn a_gpu_must_gain_more_than_its_threads_cost() {
        let policy = Policy::default();
        let is_worth_it = |cpu, gpu, may_grow| policy.is_worth_it(100.0, cpu, gpu, may_grow);
        assert!(is_worth_it(50.0, 200.0, false));
        assert!(!is_worth_it(50.0, 40.0, false) && !is_worth_it(50.0, 40.0, true));
        // A little more may become much more with more lanes.
        assert!(is_worth_it(90.0, 12.0, true) && !is_worth_it(90.0, 12.0, false));
    }

    #[test]
    fn a_gpu_that_rows_leave_is_of_no_use() {
        let policy = Policy::default();
        assert!(!policy.is_left(0, 15) && policy.is_left(0, 16) && policy.is_left(100, 101));
        assert!(!policy.is_left(100, 100));
    }

    #[test]
    fn how_long_a_lane_takes_is_measured() {
        let policy = Policy::default();
        let hashes = cpu(0.017);
        let assumed = policy.lane_seconds(&hashes, None);
        assert!((assumed - 8.5).abs() < 0.01, "{assumed}");
        // 4,096 lanes with ten million instructions a second each.
        let gpu = OnGpu { ran: 2.0, instructions: 2.0 * 4096.0 * 1e7, running: 4096.0 };
        let measured = policy.lane_seconds(&hashes, Some(&gpu));
        assert!((measured - 3.4).abs() < 0.01, "{measured}");
        let idle = OnGpu { running: 0.0, ..gpu };
        assert_eq!(policy.lane_seconds(&hashes, Some(&idle)), assumed);
    }

    #[test]
    fn both_are_done_at_about_the_same_time() {
        let policy = Policy::default();
        let hashes = cpu(0.017);
        let lot = |left, running, room| policy.lot(&hashes, left, [running, room], 8.5, None);
        // In 8.5 s, 16 workers do 8,000 rows.
        assert_eq!(lot(1e6, 0, 4096), 4096);
        assert_eq!(lot(10_000.0, 0, 4096), 2000);
        assert_eq!(lot(8_000.0, 0, 4096), 0);
        assert_eq!(lot(0.0, 0, 4096), 0);
        // Eight times as many lanes may take eight times as long each.
        assert_eq!(lot(65_536.0, 4096, 28_672), 1536);
        assert_eq!(lot(1e6, 4096, 28_672), 28_672);
    }

    #[test]
    fn lanes_of_a_gpu_have_the_time_of_their_rows() {
        let policy = Policy::default();
        let lot = |seconds| {
            policy.lot(&cpu(0.017), 1e6, [0, 100], 8.5, Some(Duration::from_secs(seconds)))
        };
        assert_eq!((lot(10), lot(17)), (0, 100));
    }

    #[test]
    fn rows_are_taken_from_a_gpu_that_would_be_later() {
        let (policy, row) = (Policy::default(), cpu(0.017));
        let is_sooner = |age| policy.is_sooner_on_cpu(&row, age, 8.5);
        assert!(is_sooner(0.0) && is_sooner(8.4));
        assert!(!is_sooner(8.49), "it is about to end");
        // It is late, and a long row on either.
        assert!(is_sooner(9.0) && is_sooner(1000.0));
        // A GPU whose lanes are nearly as fast as a core would be left alone then.
        assert!(!policy.is_sooner_on_cpu(&cpu(5.0), 9.0, 8.5));
    }

    #[test]
    fn nothing_measured_is_no_trouble() {
        let (policy, nothing) = (Policy::default(), OnCpu::default());
        assert_eq!(policy.lane_seconds(&nothing, None), 0.0);
        assert_eq!(policy.lot(&nothing, 10.0, [0, 4], 0.0, None), 4);
        assert!(!policy.is_sooner_on_cpu(&nothing, 0.0, 0.0));
        assert!(policy.is_sooner_on_cpu(&nothing, 1.0, 0.0));
    }
}
