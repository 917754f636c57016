//! Supervisors: code that serves the system calls of its lane, in memory that only it may access.

use kvrm::{FaultKind, Stop};
use kvrm_a64::RETURN;

use super::lanes::{LANES, Lanes, fault};
use super::*;
use crate::support::HALT;

for_mapped_devices! {
    calls_are_served_in_the_lane, nothing_of_a_call_is_counted, only_supervisors_reach_their_memory,
    what_supervisors_cannot_do_stops_the_lane,
}

/// Bytes behind the program's memory: the code is at the beginning, data in another block.
const BYTES: u64 = 2 << 20;
const SUPERVISOR: u64 = SIZE;
const DESK: u64 = SIZE + (1 << 20);

/// Adds up the numbers that it is called with, in memory that keeps the sum. Leaves calls to the host if X8 is 1, and reads
/// what X0 points to if it is 2.
fn supervisor() -> Vec<u8> {
    asm!(
        ; movz x16, (DESK >> 32) as u32, lsl 32
        ; movk x16, (DESK >> 16 & 0xffff) as u32, lsl 16
        ; str x1, [x16, 8]
        ; sub x17, x8, 1
        ; cbz x17, >host
        ; sub x17, x17, 1
        ; cbz x17, >peek
        ; ldr x1, [x16]
        ; add x0, x0, x1
        ; str x0, [x16]
        ; ldr x1, [x16, 8]
        ; svc RETURN as u32
        ; peek:
        ; ldr x0, [x0]
        ; svc RETURN as u32
        ; host:
        ; svc 0
    )
}

/// Lanes about to run some code; every third one has no supervisor.
fn lanes(subject: Subject, code: &[u8]) -> Lanes {
    let mut lanes = Lanes::with_supervisors(subject, BYTES, code);
    lanes.image(SUPERVISOR, &supervisor(), EXECUTE);
    lanes.image(DESK, &[0; 16], NONE);
    lanes.change(|state, lane| state.supervisor = if is_served(lane) { SUPERVISOR } else { 0 });
    lanes
}

fn is_served(lane: u64) -> bool {
    !lane.is_multiple_of(3)
}

fn calls_are_served_in_the_lane(subject: Subject) {
    // Ten times, each with another number.
    let code = asm!(
        ; movz x5, 10
        ; again:
        ; mov x0, x5
        ; subs x5, x5, 1
        ; svc 7
        ; b.ne <again
        ; hlt 0
    );
    let mut lanes = lanes(subject, &code);
    lanes.change(|state, lane| (state.x[1], state.x[16], state.x[17]) = (lane, 16, 17));
    lanes.run();
    for lane in 0..LANES {
        let state = lanes.engine.state(lane).unwrap();
        if !is_served(lane as u64) {
            assert_eq!((lanes.stop(lane), state.pc), (Stop::Syscall { imm: 7 }, CODE + 16));
            continue;
        }
        assert_eq!((lanes.stop(lane), state.x[0]), (HALT, 55), "lane {lane}");
        // It leaves no traces: not in registers, nor in flags.
        assert_eq!((state.x[1], state.x[16], state.x[17]), (lane as u64, 16, 17));
        assert_eq!((state.flags, state.caller), ([0, 1, 1, 0], 0));
        assert_eq!(lanes.read(lane, DESK), 55);
    }
}

fn nothing_of_a_call_is_counted(subject: Subject) {
    let code = asm!(
        ; svc 0 ; mrs x3, 0x5f02 ; svc 0 ; mrs x4, 0x5f02 ; nop ; mrs x5, 0x5f02 ; hlt 0
    );
    let mut lanes = lanes(subject, &code);
    lanes.change(|state, _| (state.supervisor, state.counter) = (SUPERVISOR, 1000));
    lanes.run();
    for lane in 0..LANES {
        let counters = [3, 4, 5].map(|number| lanes.x(lane, number));
        assert_eq!((lanes.stop(lane), counters), (HALT, [1001, 1003, 1005]), "lane {lane}");
        // What it has executed is told by that.
        let state = lanes.engine.state(lane).unwrap();
        let count = lanes.engine.status(lane).unwrap().count;
        assert_eq!(count.wrapping_add(state.counter), 1006);
        assert!(count > 6);
    }
}

fn only_supervisors_reach_their_memory(subject: Subject) {
    let code =
        asm!(; ldr x2, [x1] ; hlt 0 ; str x2, [x1] ; hlt 0 ; br x1 ; ldp x2, x3, [x1] ; hlt 0);
    let mut lanes = lanes(subject, &code);
    // Their pages are there, as some have used them.
    lanes.run_at(CODE);
    let cases = [
        (0, DESK, fault(FaultKind::Read, DESK)),
        (8, DESK, fault(FaultKind::Write, DESK)),
        (0, SUPERVISOR, fault(FaultKind::Read, SUPERVISOR)),
        (16, SUPERVISOR, fault(FaultKind::Fetch, SUPERVISOR)),
        (16, SUPERVISOR + 4, fault(FaultKind::Fetch, SUPERVISOR + 4)),
        (16, DESK, fault(FaultKind::Fetch, DESK)),
        (0, SIZE - 4, fault(FaultKind::Read, SIZE - 4)),
        (20, SIZE + BYTES - 8, fault(FaultKind::Read, SIZE + BYTES - 8)),
    ];
    for (at, addr, expected) in cases {
        lanes.change(|state, _| state.x[1] = addr);
        lanes.run_at(CODE + at);
        for lane in 0..LANES {
            assert_eq!(lanes.stop(lane), expected, "lane {lane}, {addr:#x} at {at}");
        }
    }
}

fn what_supervisors_cannot_do_stops_the_lane(subject: Subject) {
    let mut lanes = lanes(subject, &asm!(; svc 0 ; hlt 0));
    lanes.change(|state, lane| {
        state.supervisor = SUPERVISOR;
        (state.x[0], state.x[8]) = (0x50_0000, 1 + lane % 2);
    });
    lanes.run();
    for lane in 0..LANES {
        let expected = match lane % 2 {
            0 => Stop::Syscall { imm: 0 },
            _ => fault(FaultKind::Read, 0x50_0000),
        };
        assert_eq!(lanes.stop(lane), expected, "lane {lane}");
        assert_eq!(lanes.engine.state(lane).unwrap().caller, CODE + 4);
    }
}
