//! What processes need: copies of memory, and several lanes in one.

use std::time::{Duration, Instant};

use kvrm::{FaultKind, Stop};

use super::*;
use crate::support::HALT;

for_mapped_engines! { copies_are_equal_and_separate, machines_cost_what_they_use, lanes_share_pages }

for_evicting_engines! { copies_are_equal_and_separate, machines_cost_what_they_use, lanes_share_pages }

const DATA: u64 = 0x40_0000_0000;

fn copies_are_equal_and_separate(subject: Subject) {
    let code = asm!(; ldr x2, [x1] ; add x2, x2, 1 ; str x2, [x1] ; hlt 0);
    let mut parent = Guest::new(subject, &code);
    parent.protect(DATA, 2 * PAGE, READ | WRITE);
    parent.set_x(1, DATA + 8);
    assert_eq!(parent.run(), HALT);
    // It has had other code.
    let mut child = Guest::new(subject, &asm!(; hlt 3 ; hlt 3 ; hlt 3));
    child.load(CODE + PAGE, &asm!(; hlt 4));
    assert_eq!(child.run(), Stop::Halt { imm: 3 });
    child.engine.copy_memory(0, parent.engine.mapped_memory(0).unwrap()).unwrap();
    child.set_x(1, DATA + 8);
    assert_eq!(child.run_at(CODE), HALT);
    assert_eq!((child.read(DATA + 8), parent.read(DATA + 8)), (2, 1));
    let address = CODE + PAGE;
    assert_eq!(child.run_at(address), Stop::Fault { kind: FaultKind::Fetch, address });
    child.set_x(1, DATA + 2 * PAGE - 4);
    let fault = Stop::Fault { kind: FaultKind::Read, address: DATA + 2 * PAGE };
    assert_eq!(child.run_at(CODE), fault);
    child.protect(DATA, PAGE, NONE);
    assert_eq!(parent.run_at(CODE), HALT);
    assert_eq!(parent.read(DATA + 8), 2);
}

fn machines_cost_what_they_use(subject: Subject) {
    let mut parent = Guest::new(subject, &asm!(; hlt 0));
    parent.write(SIZE - 8, &[1]);
    let start = Instant::now();
    for _ in 0..50 {
        let mut child = Guest::empty(subject);
        child.engine.copy_memory(0, parent.engine.mapped_memory(0).unwrap()).unwrap();
        assert_eq!((child.run_at(CODE), child.read(SIZE - 8)), (HALT, 1));
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

fn lanes_share_pages(subject: Subject) {
    let code = asm!(
        ; ->up: ; ldadd x2, x3, [x1] ; ldr x5, [x6] ; str x5, [x6] ; add x6, x6, 8
        ; subs x4, x4, 1 ; b.ne ->up ; ldr x5, [x7]);
    let mut guest = Guest::with(subject, SIZE, 4);
    guest.load(CODE, &code);
    guest.protect(DATA, 20 * PAGE, READ | WRITE);
    let mut lane = 0;
    let start = &mut |state: &mut CpuState| {
        (state.pc, state.x[1], state.x[2], state.x[4]) = (CODE, DATA, 1, 9000);
        (state.x[6], state.x[7]) = (DATA + PAGE, DATA - 8 * lane);
        lane += 1;
    };
    guest.engine.change_states(0..4, start).unwrap();
    guest.run();
    assert_eq!(guest.read(DATA), 4 * 9000);
    for lane in 0..4 {
        let LaneStatus { stop, count } = guest.engine.status(lane).unwrap();
        let fault = Stop::Fault { kind: FaultKind::Read, address: DATA - 8 * lane as u64 };
        let end = if lane == 0 { Stop::ZeroWord } else { fault };
        assert_eq!((stop, count), (Some(end), 54_000 + u64::from(lane == 0)), "{lane}");
    }
}
