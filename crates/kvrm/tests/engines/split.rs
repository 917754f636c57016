//! Enough lanes that a machine on several devices has seams between them: more than a warp for each.

use kvrm::{Lanes, Machine, RunControl};

use crate::support::{
    DATA, HALT, Snapshot, Subject, all_memory, read_u64, run_to_halt, set_up, set_x, x,
};

for_every_engine! {
    results_on_both_sides_of_a_seam, lanes_around_a_seam_are_reset, memory_of_all_lanes,
    all_parts_are_cancelled,
}

for_split_engines! {
    results_on_both_sides_of_a_seam, lanes_around_a_seam_are_reset, memory_of_all_lanes,
    all_parts_are_cancelled,
}

/// On two devices: 64 lanes and 36.
const LANES: usize = 100;

/// Adds up the numbers from X27 down, in memory.
fn sum() -> Vec<u8> {
    asm!(
        ; mov x0, x27
        ; again: ; ldr x1, [x28] ; add x1, x1, x0 ; str x1, [x28] ; cbz x0, >end ; sub x0, x0, 1
        ; b <again
        ; end: ; hlt 0)
}

fn sum_to(lane: usize) -> u64 {
    (0..=lane as u64).sum()
}

fn results_on_both_sides_of_a_seam(subject: Subject) {
    let machines = [subject, Subject::EVAL].map(|subject| {
        let mut machine = subject.private(LANES, 2, &sum());
        // In two runs, in the first of which some lanes reach the limit.
        machine.run(200).unwrap();
        machine.run(1000).unwrap();
        machine
    });
    for lane in 0..LANES {
        let [a, b] = [0, 1].map(|n| Snapshot::of(&machines[n], lane));
        assert_eq!(a, b, "lane {lane}");
        assert_eq!((a.stop, read_u64(&machines[0], lane, DATA)), (Some(HALT), sum_to(lane)));
    }
    for lane in [0, 63, 64, LANES - 1] {
        let [a, b] = [0, 1].map(|n| all_memory(&machines[n], lane));
        assert!(a == b, "memory of lane {lane} differs");
    }
}

fn lanes_around_a_seam_are_reset(subject: Subject) {
    let mut machine = subject.private(LANES, 2, &sum());
    run_to_halt(&mut machine);
    for lane in [62, 63, 64, 65] {
        machine.reset(lane).unwrap();
    }
    for lane in 0..LANES {
        let reset = (62..66).contains(&lane);
        assert_eq!(machine.stop(lane).unwrap().is_none(), reset, "lane {lane}");
        let expected = if reset { 0 } else { sum_to(lane) };
        assert_eq!(read_u64(&machine, lane, DATA), expected, "lane {lane}");
    }
    machine.reset(Lanes::All).unwrap();
    set_up(&mut machine);
    run_to_halt(&mut machine);
    for lane in 0..LANES {
        assert_eq!(read_u64(&machine, lane, DATA), sum_to(lane), "lane {lane}");
    }
}

fn memory_of_all_lanes(subject: Subject) {
    let mut machine = subject.private(LANES, 2, &asm!(; ldp x0, x1, [x28] ; hlt 0));
    machine.load(DATA, &7u64.to_le_bytes()).unwrap();
    machine.write_memory(Lanes::All, DATA + 8, &8u64.to_le_bytes()).unwrap();
    machine.write_memory(64, DATA + 8, &9u64.to_le_bytes()).unwrap();
    run_to_halt(&mut machine);
    for lane in 0..LANES {
        let second = if lane == 64 { 9 } else { 8 };
        assert_eq!((x(&machine, lane, 0), x(&machine, lane, 1)), (7, second), "lane {lane}");
    }
}

/// Runs for ever, and is cancelled once all lanes together have done `enough`.
fn run_and_cancel(machine: &mut Machine, enough: u64) -> u64 {
    let control = RunControl::new();
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while control.executed() < enough {
                std::thread::yield_now();
            }
            control.cancel();
        });
        machine.run_with(u64::MAX, &control)
    });
    assert!(report.unwrap().cancelled);
    control.executed()
}

fn all_parts_are_cancelled(subject: Subject) {
    let code = asm!(; again: ; add x0, x0, 1 ; cbz x1, <again ; hlt 0);
    let mut machine = subject.private(LANES, 2, &code);
    let executed = run_and_cancel(&mut machine, 100_000);
    let cycles = (0..LANES).map(|lane| machine.cycles(lane).unwrap());
    assert_eq!(cycles.sum::<u64>(), executed);
    for lane in 0..LANES {
        assert_eq!(machine.stop(lane).unwrap(), None);
        set_x(&mut machine, lane, 1, 1);
    }
    run_to_halt(&mut machine);
}
