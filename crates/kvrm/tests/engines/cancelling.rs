//! Runs that another thread or a timeout ends.

use std::time::Duration;

use kvrm::{Lanes, Machine, Reg, RunControl, Stop};

use crate::support::{HALT, Snapshot, Subject, all_memory};

for_every_engine! {
    a_cancelled_run_can_go_on, lanes_that_wait_for_ever, a_control_that_is_cancelled_already,
    progress_is_reported, a_run_whose_time_is_over_can_go_on, lanes_that_never_stop_let_others_run,
}

for_split_engines! { progress_is_reported, a_run_whose_time_is_over_can_go_on }

/// Runs until `enough` instructions are done, and cancels.
fn run_and_cancel(machine: &mut Machine, enough: u64) -> bool {
    let control = RunControl::new();
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while control.executed() < enough && control.stopped() == 0 {
                std::thread::yield_now();
            }
            control.cancel();
        });
        machine.run_with(u64::MAX, &control)
    });
    report.unwrap().cancelled
}

fn work() -> Vec<u8> {
    asm!(
        ; add x3, x26, x27, lsl 4 ; add x28, x28, x27, lsl 6
        ; again: ; subs x3, x3, 1 ; adc x4, x4, x3 ; eor x5, x5, x4, ror 7 ; str x5, [x28] ; b.ne <again
        ; hlt 0)
}

fn a_cancelled_run_can_go_on(subject: Subject) {
    let rounds = if subject.is_slow() { 4_000 } else { 4_000_000 };
    let build = |shared| {
        let (code, lanes) = (work(), 3);
        let mut machine = match shared {
            true => subject.shared(lanes, 2, &code),
            false => subject.private(lanes, 2, &code),
        };
        machine.set_register(Lanes::All, Reg::X(26), rounds).unwrap();
        machine
    };
    for shared in [false, true] {
        let (mut cancelled, mut whole) = (build(shared), build(shared));
        run_and_cancel(&mut cancelled, rounds);
        run_and_cancel(&mut cancelled, 1);
        for machine in [&mut cancelled, &mut whole] {
            machine.run(u64::MAX).unwrap();
        }
        for lane in 0..3 {
            assert_eq!(whole.stop(lane).unwrap(), Some(HALT));
            assert_eq!(Snapshot::of(&cancelled, lane), Snapshot::of(&whole, lane));
            assert!(all_memory(&cancelled, lane) == all_memory(&whole, lane));
        }
    }
}

fn lanes_that_wait_for_ever(subject: Subject) {
    let code = asm!(; again: ; add x0, x0, 1 ; ldr x1, [x28] ; cbz x1, <again ; hlt 0);
    for mut machine in [subject.private(4, 2, &code), subject.shared(4, 2, &code)] {
        assert!(run_and_cancel(&mut machine, 10_000));
        for lane in 0..4 {
            assert_eq!(machine.stop(lane).unwrap(), None);
        }
        machine.write_memory(Lanes::All, crate::support::DATA, &[1]).unwrap();
        crate::support::run_to_halt(&mut machine);
    }
}

fn a_control_that_is_cancelled_already(subject: Subject) {
    let code = asm!(; again: ; b <again);
    for mut machine in [subject.private(2, 1, &code), subject.shared(2, 1, &code)] {
        machine.add_breakpoint(crate::support::CODE).unwrap();
        let control = RunControl::new();
        control.cancel();
        let report = machine.run_with(u64::MAX, &control).unwrap();
        assert_eq!((report.cancelled, report.cycles), (true, 0));
        assert_eq!(machine.stop(0).unwrap(), None);
        machine.remove_breakpoint(crate::support::CODE);
        machine.run(5).unwrap();
        assert_eq!(machine.stop(0).unwrap(), Some(Stop::MaxCycles));
    }
}

fn progress_is_reported(subject: Subject) {
    let mut machine = subject.private(5, 2, &asm!(; nop ; nop ; svc 0 ; nop ; hlt 0));
    machine.add_breakpoint(crate::support::CODE + 4).unwrap();
    for (executed, stopped) in [(1, 5), (2, 5), (1, 5)] {
        let control = RunControl::new();
        let report = machine.run_with(100, &control).unwrap();
        assert_eq!((control.executed(), control.stopped()), (5 * executed, stopped));
        assert_eq!((report.cycles, report.cancelled), (5 * executed, false));
    }
    // Lanes that stop before anything is launched: at the instruction of a breakpoint, and without any.
    machine.add_breakpoint(crate::support::CODE + 16).unwrap();
    for max_cycles in [100, 0] {
        let control = RunControl::new();
        machine.run_with(max_cycles, &control).unwrap();
        assert_eq!((control.executed(), control.stopped()), (0, 5));
    }
}

fn a_run_whose_time_is_over_can_go_on(subject: Subject) {
    let mut machine = subject.private(40, 2, &asm!(; again: ; add x0, x0, 1 ; b <again));
    let control = RunControl::new().with_timeout(Duration::from_millis(300));
    let report = machine.run_with(u64::MAX, &control).unwrap();
    assert!(report.cancelled && report.timed_out && control.timed_out());
    assert_eq!(machine.stop(0).unwrap(), None);
    let counts = (0..40).map(|lane| machine.cycles(lane).unwrap());
    assert_eq!(counts.sum::<u64>(), report.cycles);
    // In time, and cancelled by somebody: no timeout.
    let control = RunControl::new().with_timeout(Duration::from_secs(1000));
    let report = machine.run_with(5, &control).unwrap();
    assert_eq!((report.cancelled, report.timed_out), (false, false));
    control.cancel();
    let report = machine.run_with(u64::MAX, &control).unwrap();
    assert_eq!((report.cancelled, report.timed_out), (true, false));
}

/// Seven lanes run for ever, fast and slowly; the last one, for which no thread is left, still comes to its end.
fn lanes_that_never_stop_let_others_run(subject: Subject) {
    let (count, last) = (8, 7);
    let fast = asm!(; cmp x27, last ; b.eq >end ; again: ; add x0, x0, 1 ; b <again ; end: ; hlt 0);
    // Rewrites an instruction that it then executes.
    let slow = asm!(
        ; cmp x27, last ; b.eq >end ; adr x1, >changed ; ldr w2, [x1]
        ; again: ; add x0, x0, 1 ; str w2, [x1] ; changed: ; nop ; b <again ; end: ; hlt 0);
    for code in [fast, slow] {
        let mut machine = subject.private(count, 2, &code);
        // Far more than it takes, so that a failure is one and does not hang.
        let control = RunControl::new().with_timeout(Duration::from_secs(60));
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                while control.stopped() == 0 && !control.was_cancelled() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                control.cancel();
            });
            machine.run_with(u64::MAX, &control).unwrap()
        });
        assert!(report.cancelled && !report.timed_out);
        assert_eq!(machine.stop(last as usize).unwrap(), Some(HALT));
        for lane in 0..count {
            assert!(machine.cycles(lane).unwrap() > 0, "lane {lane} had no turn");
        }
    }
}
