//! The top byte of addresses.

use kvrm::{FaultKind, Stop};

use super::*;
use crate::support::HALT;

for_mapped_engines! { tags_of_data_are_ignored, faults_are_reported_without_tags, tags_of_branches_are_dropped }

for_mapped_devices! { tags_of_data_are_ignored, faults_are_reported_without_tags, tags_of_branches_are_dropped }

for_evicting_engines! { tags_of_data_are_ignored, faults_are_reported_without_tags, tags_of_branches_are_dropped }

const DATA: u64 = 0x10_0000;
const TAG: u64 = 0x5a00_0000_0000_0000;

fn tags_of_data_are_ignored(subject: Subject) {
    let code = asm!(
        ; ->up: ; ldr x3, [x1] ; add x3, x3, 1 ; str x3, [x2] ; ldp q0, q1, [x2, 32]
        ; ldxr x5, [x1] ; stxr w6, x5, [x1] ; subs x4, x4, 1 ; b.ne ->up ; hlt 0);
    let mut guest = Guest::new(subject, &code);
    guest.protect(DATA, PAGE, READ | WRITE);
    guest.set_x(1, DATA | TAG);
    guest.set_x(2, DATA | 0x0100_0000_0000_0000);
    guest.set_x(4, 100);
    assert_eq!(guest.run(), HALT);
    assert_eq!((guest.read(DATA), guest.status().count, guest.x(6)), (100, 800, 0));
    assert_eq!(guest.x(1), DATA | TAG, "registers keep tags");
}

fn faults_are_reported_without_tags(subject: Subject) {
    let code = asm!(; ldr x3, [x1] ; str x3, [x2] ; ldadd x3, x4, [x5] ; hlt 0);
    let outside = 0x5a80_0000_0000_1000;
    for (n, addr, kind, address) in [
        (1, (DATA - 4) | TAG, FaultKind::Read, DATA - 4),
        (1, (DATA + PAGE - 4) | TAG, FaultKind::Read, DATA + PAGE),
        (1, SIZE | TAG, FaultKind::Read, SIZE),
        (1, outside, FaultKind::Read, outside),
        (2, (DATA + PAGE) | TAG, FaultKind::Write, DATA + PAGE),
        (5, (DATA + 1) | TAG, FaultKind::Unaligned, DATA + 1),
    ] {
        let mut guest = Guest::new(subject, &code);
        guest.protect(DATA, PAGE, READ | WRITE);
        [1, 2, 5].iter().for_each(|number| guest.set_x(*number, DATA));
        guest.set_x(n, addr);
        assert_eq!(guest.run(), Stop::Fault { kind, address }, "{addr:#x}");
    }
}

fn tags_of_branches_are_dropped(subject: Subject) {
    // The second half calls itself with a tag, again and again.
    let code = asm!(; br x1 ; hlt 1 ; ->up: ; adr x3, ->up ; subs x4, x4, 1 ; b.eq ->end ; br x1 ; ->end: ; blr x5);
    let target = CODE + 8;
    let mut guest = Guest::new(subject, &code);
    guest.set_x(1, target | TAG);
    guest.set_x(4, 100);
    guest.set_x(5, 0x5a80_0000_0000_1000);
    assert_eq!((guest.run_for(1), guest.pc()), (Stop::MaxCycles, target));
    let outside = 0xff80_0000_0000_1000;
    assert_eq!(guest.run(), Stop::Fault { kind: FaultKind::Fetch, address: outside });
    assert_eq!((guest.x(3), guest.x(30), guest.pc()), (target, CODE + 28, outside));
    assert_eq!(guest.status().count, 1 + 4 * 100);
    guest.set_x(4, 1);
    assert_eq!(
        guest.run_at(target | TAG),
        Stop::Fault { kind: FaultKind::Fetch, address: outside }
    );
    assert_eq!(guest.x(3), target, "the host may set a tag, too");
}
