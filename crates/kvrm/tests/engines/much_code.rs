//! Programs with far more code than is executed at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use kvrm::{Machine, MemoryModel, Reg, RunControl, Stop};

use crate::support::{CODE, HALT, Subject, load, set_x, word, x};

for_every_engine! {
    a_long_slide, a_slide_that_is_cancelled, lanes_all_over_a_slide, lanes_that_patch_a_slide,
}

/// Bytes of no-operations.
const SLIDE: u64 = 1 << 20;

/// Instructions without any effect, and a halt.
fn slide(subject: Subject, lanes: usize, model: MemoryModel) -> Machine {
    let mut code = asm!(; nop).repeat(SLIDE as usize / 4);
    code.extend(asm!(; hlt 0));
    load(subject.builder().lanes(lanes).model(model).memory(2 * SLIDE), &code)
}

fn a_long_slide(subject: Subject) {
    for model in [MemoryModel::Private, MemoryModel::Shared] {
        let mut machine = slide(subject, 2, model);
        machine.set_pc(1, CODE + SLIDE / 2).unwrap();
        machine.run(u64::MAX).unwrap();
        for (lane, count) in [(0, SLIDE / 4), (1, SLIDE / 8)] {
            assert_eq!(machine.stop(lane).unwrap(), Some(HALT));
            assert_eq!(machine.cycles(lane).unwrap(), count);
        }
    }
}

/// A run may be cancelled whenever it asks, and goes on where it was.
fn a_slide_that_is_cancelled(subject: Subject) {
    let mut machine = slide(subject, 2, MemoryModel::Private);
    for most in [1, 2, 3, 5, 8] {
        let asked = AtomicU64::new(0);
        let control =
            RunControl::new().with_interrupt(move || asked.fetch_add(1, Ordering::Relaxed) >= most);
        let report = machine.run_with(u64::MAX, &control).unwrap();
        // Engines ask when they like to, but not only at the end.
        if !report.cancelled {
            break;
        }
    }
    let before = [0, 1].map(|lane| machine.total_cycles(lane).unwrap());
    assert!(before.iter().all(|count| *count <= SLIDE / 4));
    machine.run(u64::MAX).unwrap();
    for lane in 0..2 {
        assert_eq!(machine.stop(lane).unwrap(), Some(HALT));
        assert_eq!(machine.total_cycles(lane).unwrap(), SLIDE / 4);
        assert_eq!(machine.pc(lane).unwrap(), CODE + SLIDE);
    }
}

/// Lanes begin in different pages, and go on for a little.
fn lanes_all_over_a_slide(subject: Subject) {
    for model in [MemoryModel::Private, MemoryModel::Shared] {
        let mut machine = slide(subject, 40, model);
        for lane in 0..40 {
            machine.set_pc(lane, CODE + lane as u64 * 20_000).unwrap();
        }
        machine.run(100).unwrap();
        for lane in 0..40 {
            assert_eq!(machine.stop(lane).unwrap(), Some(Stop::MaxCycles));
            assert_eq!(machine.pc(lane).unwrap(), CODE + lane as u64 * 20_000 + 400);
        }
    }
}

/// Each lane puts another instruction at its place in the slide, after others have been there.
fn lanes_that_patch_a_slide(subject: Subject) {
    let mut machine = slide(subject, 20, MemoryModel::Private);
    machine.load(2 * SLIDE - 64, &asm!(; str w1, [x2] ; br x3)).unwrap();
    let add = word(&asm!(; add x0, x0, 1));
    for round in 1..=2 {
        for lane in 0..20 {
            let at = CODE + SLIDE - 4000 + 200 * lane as u64;
            set_x(&mut machine, lane, 1, add.into());
            set_x(&mut machine, lane, 2, at + 4 * round);
            machine.set_register(lane, Reg::X(3), CODE + SLIDE - 4000).unwrap();
            // One of them changes nothing.
            let pc = if lane == 7 { CODE + SLIDE - 4000 } else { 2 * SLIDE - 64 };
            machine.set_pc(lane, pc).unwrap();
        }
        machine.run(10_000).unwrap();
        for lane in 0..20 {
            let wanted = if lane == 7 { 0 } else { round * (round + 1) / 2 };
            assert_eq!((machine.stop(lane).unwrap(), x(&machine, lane, 0)), (Some(HALT), wanted));
        }
    }
}
