//! Runs in a single launch.

use std::sync::atomic::{AtomicBool, Ordering};

use kvrm::{Machine, MemoryModel, RunControl, RunReport};

use crate::support::{HALT, Snapshot, Subject, all_memory, load, set_x};

for_every_engine! {
    a_single_launch_does_what_slices_do, a_single_launch_is_cancelled, machines_come_and_go_meanwhile,
    limits_are_exact, lanes_that_wait_for_each_other,
}

for_split_engines! {
    a_single_launch_does_what_slices_do, a_single_launch_is_cancelled, machines_come_and_go_meanwhile,
    limits_are_exact,
}

/// More than a warp for each of two devices.
const LANES: usize = 70;

/// Writes a page after the other, and calls code that is reached late.
fn work() -> Vec<u8> {
    asm!(
        ; mov x3, 3
        ; again: ; add x0, x0, x27 ; str x0, [x28] ; add x28, x28, 1, lsl 12 ; mov x4, x26
        ; inner: ; eor x0, x0, x4, ror 3 ; subs x4, x4, 1 ; b.ne <inner
        ; subs x3, x3, 1 ; b.ne <again ; adr x5, >late ; br x5
        ; nop
        ; late: ; mul x0, x0, x0 ; hlt 0)
}

fn a_single_launch_does_what_slices_do(subject: Subject) {
    let rounds = if subject.is_slow() { 2_000 } else { 200_000 };
    let [(sliced, a), (whole, b)] = [false, true].map(|mega| {
        let mut machine = subject.private(LANES, 2, &work());
        for lane in 0..LANES {
            set_x(&mut machine, lane, 26, rounds + lane as u64);
        }
        let run = if mega { Machine::run_mega } else { Machine::run };
        let RunReport { cycles, cancelled, .. } = run(&mut machine, u64::MAX).unwrap();
        (machine, (cycles, cancelled))
    });
    assert_eq!(a, b);
    for lane in 0..LANES {
        assert_eq!(sliced.stop(lane).unwrap(), Some(HALT));
        assert_eq!(Snapshot::of(&sliced, lane), Snapshot::of(&whole, lane), "lane {lane}");
        assert!(all_memory(&sliced, lane) == all_memory(&whole, lane), "lane {lane}");
    }
}

fn endless(subject: Subject) -> Machine {
    subject.private(LANES, 2, &asm!(; again: ; add x0, x0, 1 ; b <again))
}

/// Runs in a single launch that is cancelled after a while.
fn run_until_cancelled(machine: &mut Machine) {
    let (control, returned) = (RunControl::new(), AtomicBool::new(false));
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while control.executed() < 50_000 && !returned.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            control.cancel();
        });
        let report = machine.run_mega_with(u64::MAX, &control);
        returned.store(true, Ordering::Relaxed);
        report
    });
    let report = report.unwrap();
    assert!(report.cancelled && report.cycles >= 50_000);
    assert_eq!(report.cycles, control.executed());
}

fn a_single_launch_is_cancelled(subject: Subject) {
    let mut machine = endless(subject);
    run_until_cancelled(&mut machine);
    for lane in 0..LANES {
        assert_eq!(machine.stop(lane).unwrap(), None);
    }
    assert_eq!(machine.run_mega(10).unwrap().cycles, 10 * LANES as u64);
}

/// Where memory is freed, drivers wait for all launches, and may let nobody in before those have ended. Each thread
/// does what it does so many times: launches without a pause between them would keep the other waiting for ever.
fn machines_come_and_go_meanwhile(subject: Subject) {
    const TIMES: usize = 10;
    let mut machine = endless(subject);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..TIMES {
                assert_eq!(endless(subject).run(1).unwrap().cycles, LANES as u64);
            }
        });
        for _ in 0..TIMES {
            run_until_cancelled(&mut machine);
        }
    });
}

fn limits_are_exact(subject: Subject) {
    let mut machine = endless(subject);
    for limit in [0, 1, 2, 9_001] {
        assert_eq!(machine.run_mega(limit).unwrap().cycles, limit * LANES as u64);
    }
}

/// Lane 0 lets the others go from code that no lane has reached before.
fn lanes_that_wait_for_each_other(subject: Subject) {
    let code = asm!(
        ; cbnz x27, >wait ; adr x5, >late ; br x5
        ; wait: ; ldar x0, [x28] ; cbz x0, <wait ; hlt 0
        ; nop
        ; late: ; mov x1, 1 ; stlr x1, [x28] ; hlt 0);
    let builder = subject.builder().lanes(3).threads(2).model(MemoryModel::Shared);
    let mut machine = load(builder, &code);
    machine.run_mega(100_000_000).unwrap();
    for lane in 0..3 {
        assert_eq!(machine.stop(lane).unwrap(), Some(HALT));
    }
}
