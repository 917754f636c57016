//! Lanes that work together in one memory.

use kvrm::Machine;

use crate::support::{DATA, Subject, read_u64, run_to_halt, set_x, x};

for_every_engine! {
    everybody_sees_the_same, messages_arrive, a_ring_of_lanes, counters_come_out_exact,
    a_lock_protects_plain_memory, wide_counters_come_out_exact, every_atomic_operation,
}

for_llvmpipe! { messages_arrive, a_lock_protects_plain_memory }

/// Numbers of lanes and threads to try.
const CREWS: [(usize, usize); 4] = [(2, 1), (2, 2), (7, 2), (16, 4)];

fn everybody_sees_the_same(subject: Subject) {
    let mut machine = subject.shared(4, 2, &asm!(; lsl x0, x27, 3 ; str x27, [x28, x0] ; hlt 0));
    run_to_halt(&mut machine);
    for lane in 0..4 {
        for slot in 0..4 {
            assert_eq!(read_u64(&machine, lane, DATA + 8 * slot), slot);
        }
    }
}

/// Lane 0 is the last to start and writes; the others wait for it, with plain loads too.
fn messages_arrive(subject: Subject) {
    let ordered = asm!(
        ; cbnz x27, >wait ; mov x1, 42 ; str x1, [x28, 8] ; mov x0, 1 ; stlr x0, [x28] ; hlt 0
        ; wait: ; ldar x0, [x28] ; cbz x0, <wait ; ldr x1, [x28, 8] ; hlt 0);
    let plain = asm!(
        ; cbnz x27, >wait ; mov x1, 42 ; str x1, [x28, 8] ; dmb ish ; mov x0, 1 ; str x0, [x28] ; hlt 0
        ; wait: ; ldr x0, [x28] ; cbz x0, <wait ; dmb ish ; ldr x1, [x28, 8] ; hlt 0);
    for code in [ordered, plain] {
        for (lanes, threads) in CREWS {
            let mut machine = subject.shared(lanes, threads, &code);
            // The writer is the lane that is run last.
            for lane in 0..lanes {
                set_x(&mut machine, lane, 27, (lanes - 1 - lane) as u64);
            }
            run_to_halt(&mut machine);
            (0..lanes).for_each(|lane| assert_eq!(x(&machine, lane, 1), 42));
        }
    }
}

/// Each lane waits for its predecessor, a few times round.
fn a_ring_of_lanes(subject: Subject) {
    let code = asm!(
        ; mov x4, 5 ; again: ; ldar x0, [x28] ; cmp x0, x27 ; b.ne <again
        ; ldr x1, [x28, 8] ; add x1, x1, 1 ; str x1, [x28, 8]
        ; add x0, x0, 1 ; cmp x0, x26 ; csel x0, xzr, x0, eq ; stlr x0, [x28]
        ; subs x4, x4, 1 ; b.ne <again ; hlt 0);
    for (lanes, threads) in [(2, 1), (3, 2), (5, 2)] {
        let mut machine = subject.shared(lanes, threads, &code);
        machine.set_register(kvrm::Lanes::All, kvrm::Reg::X(26), lanes as u64).unwrap();
        run_to_halt(&mut machine);
        assert_eq!(read_u64(&machine, 0, DATA + 8), 5 * lanes as u64);
    }
}

fn rounds(subject: Subject) -> u64 {
    if subject.is_slow() { 500 } else { 10_000 }
}

/// Runs 16 lanes that each do X26 rounds; the counter must be exact.
fn count(subject: Subject, threads: usize, code: &[u8]) -> Machine {
    let mut machine = subject.shared(16, threads, code);
    machine.set_register(kvrm::Lanes::All, kvrm::Reg::X(26), rounds(subject)).unwrap();
    run_to_halt(&mut machine);
    machine
}

fn counters_come_out_exact(subject: Subject) {
    let ways = [
        (
            "ldadd",
            asm!(; mov x1, 1 ; again: ; ldadd x1, x2, [x28] ; subs x26, x26, 1 ; b.ne <again ; hlt 0),
        ),
        (
            "ldadd w",
            asm!(; mov x1, 1 ; again: ; ldadd w1, w2, [x28] ; subs x26, x26, 1 ; b.ne <again ; hlt 0),
        ),
        (
            "ldxr",
            asm!(
            ; again: ; ldxr x1, [x28] ; add x1, x1, 1 ; stxr w2, x1, [x28] ; cbnz w2, <again
            ; subs x26, x26, 1 ; b.ne <again ; hlt 0),
        ),
        (
            "cas",
            asm!(
            ; again: ; ldr x1, [x28] ; mov x3, x1 ; add x2, x1, 1 ; casal x1, x2, [x28] ; cmp x1, x3
            ; b.ne <again ; subs x26, x26, 1 ; b.ne <again ; hlt 0),
        ),
    ];
    for (way, code) in ways {
        for threads in [1, 4] {
            let machine = count(subject, threads, &code);
            let counter = read_u64(&machine, 0, DATA);
            assert_eq!(counter, 16 * rounds(subject), "{way}, {threads} threads");
        }
    }
}

fn a_lock_protects_plain_memory(subject: Subject) {
    let code = asm!(
        ; add x5, x28, 64
        ; again: ; mov w1, 1 ; swpa w1, w2, [x28] ; cbnz w2, <again
        ; ldr x3, [x5] ; add x3, x3, 1 ; str x3, [x5] ; ldr x4, [x5, 8] ; add x4, x4, x3 ; str x4, [x5, 8]
        ; stlr wzr, [x28] ; subs x26, x26, 1 ; b.ne <again ; hlt 0);
    for threads in [1, 3] {
        let machine = count(subject, threads, &code);
        let total = 16 * rounds(subject);
        assert_eq!(read_u64(&machine, 0, DATA + 64), total);
        assert_eq!(read_u64(&machine, 0, DATA + 72), total * (total + 1) / 2);
    }
}

/// 128 bits that change together: the halves always add up.
fn wide_counters_come_out_exact(subject: Subject) {
    let ways = [
        (
            "casp",
            asm!(
            ; again: ; ldp x0, x1, [x28] ; mov x4, x0 ; mov x5, x1 ; add x2, x0, 1 ; sub x3, x1, 1
            ; caspal x0, x1, x2, x3, [x28] ; cmp x0, x4 ; ccmp x1, x5, 0, eq ; b.ne <again
            ; subs x26, x26, 1 ; b.ne <again ; hlt 0),
        ),
        (
            "ldxp",
            asm!(
            ; again: ; ldxp x0, x1, [x28] ; add x0, x0, 1 ; sub x1, x1, 1 ; stxp w2, x0, x1, [x28]
            ; cbnz w2, <again ; subs x26, x26, 1 ; b.ne <again ; hlt 0),
        ),
        (
            "ldxp w",
            asm!(
            ; again: ; ldaxp w0, w1, [x28] ; add w0, w0, 1 ; sub w1, w1, 1 ; stlxp w2, w0, w1, [x28]
            ; cbnz w2, <again ; subs x26, x26, 1 ; b.ne <again ; hlt 0),
        ),
    ];
    for (way, code) in ways {
        for threads in [1, 4] {
            let machine = count(subject, threads, &code);
            let total = 16 * rounds(subject);
            let (low, high) = (read_u64(&machine, 0, DATA), read_u64(&machine, 0, DATA + 8));
            match way {
                "ldxp w" => assert_eq!(
                    (low as u32, low >> 32),
                    (total as u32, (total as u32).wrapping_neg().into())
                ),
                _ => assert_eq!((low, high), (total, total.wrapping_neg()), "{way}"),
            }
        }
    }
}

/// In private and in shared memory, which engines may implement differently.
fn every_atomic_operation(subject: Subject) {
    let code = asm!(
        ; ldadd x1, x10, [x28] ; ldclr w1, w11, [x28] ; ldeoral x2, x12, [x28] ; ldsetb w1, w13, [x28]
        ; ldsmaxh w2, w14, [x28] ; ldsmin x1, x15, [x28] ; ldumax w2, w16, [x28] ; lduminb w1, w17, [x28]
        ; swph w2, w18, [x28] ; casb w1, w2, [x28] ; cas w3, w4, [x28] ; casp w20, w21, w22, w23, [x28]
        ; casp x20, x21, x22, x23, [x28] ; ldsmax x2, x24, [x28] ; ldumin x1, x25, [x28] ; hlt 0);
    let mut results = Vec::new();
    for mut machine in [
        subject.machine(&code),
        subject.shared(1, 1, &code),
        Subject::EVAL.machine(&code),
        Subject::EVAL.shared(1, 1, &code),
    ] {
        for (n, value) in crate::support::random_numbers(3).take(24).enumerate() {
            set_x(&mut machine, 0, n as u8, value);
        }
        machine.write_memory(0, DATA, &[0x85; 16]).unwrap();
        run_to_halt(&mut machine);
        let memory = [read_u64(&machine, 0, DATA), read_u64(&machine, 0, DATA + 8)];
        results.push((crate::support::Snapshot::of(&machine, 0), memory));
    }
    results.iter().for_each(|result| assert_eq!(result, &results[3]));
}
