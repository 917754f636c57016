//! Translated blocks: each of their instructions can be the one at which a lane leaves, at every limit, with lanes together
//! and apart. They do what the reference does, as all other code.

use kvrm::{Lanes, Machine};

use crate::support::{DATA, HALT, MEMORY, Snapshot, Subject, all_memory, read_u64, set_up, set_x};

for_every_engine! {
    lanes_leave_at_every_access, a_lane_leaves_at_every_access_of_shared_memory,
    lanes_apart_at_every_limit, lanes_wait_in_a_block, short_branches_at_every_limit,
    very_many_blocks,
}

for_llvmpipe! {
    lanes_leave_at_every_access, a_lane_leaves_at_every_access_of_shared_memory,
    lanes_apart_at_every_limit, lanes_wait_in_a_block, short_branches_at_every_limit,
    very_many_blocks,
}

/// Registers with an address each, of which one is bad in a lane.
const BASES: [u8; 6] = [1, 2, 5, 6, 8, 9];

/// Accesses through all of them, a few times.
fn accesses() -> Vec<u8> {
    asm!(
        ; mov x20, 3
        ; again: ; ldr x0, [x1] ; add x0, x0, x20 ; str x0, [x2] ; ldp x3, x4, [x5] ; add x3, x3, x4
        ; strb w3, [x6] ; adds x10, x10, x3 ; ldr w7, [x8] ; stp x0, x7, [x9] ; subs x20, x20, 1
        ; b.ne <again
        ; hlt 0)
}

/// Addresses that blocks leave to handlers, of all or of some of the accesses.
const BAD: [u64; 6] = [DATA + 3, DATA + 0xffc, DATA + 0xff8, MEMORY - 4, MEMORY, 1 << 40];

/// Sets the registers of a case: cases before the first have no bad address.
fn set_bases(machine: &mut Machine, lane: usize, case: usize) {
    for (index, register) in BASES.into_iter().enumerate() {
        set_x(machine, lane, register, DATA + 0x2000 * (index as u64 % 2) + 0x100 * index as u64);
    }
    if let Some(bad_case) = case.checked_sub(1) {
        set_x(machine, lane, BASES[bad_case / BAD.len()], BAD[bad_case % BAD.len()]);
    }
}

const CASES: usize = 1 + BASES.len() * BAD.len();

fn same(machine: &Machine, reference: &Machine, context: &str) {
    for lane in 0..machine.lanes() {
        let [ours, wanted] = [machine, reference].map(|machine| Snapshot::of(machine, lane));
        assert_eq!(ours, wanted, "lane {lane}, {context}");
        assert!(all_memory(machine, lane) == all_memory(reference, lane), "lane {lane}, {context}");
    }
}

fn lanes_leave_at_every_access(subject: Subject) {
    let mut machines = [subject, Subject::EVAL].map(|it| it.private(CASES, 1, &accesses()));
    for machine in &mut machines {
        (0..CASES).for_each(|case| set_bases(machine, case, case));
    }
    for limit in [9, 1, 5, 1000, 3] {
        let [machine, reference] = &mut machines;
        machine.run(limit).unwrap();
        reference.run(limit).unwrap();
        same(machine, reference, &format!("limit {limit}"));
    }
}

fn a_lane_leaves_at_every_access_of_shared_memory(subject: Subject) {
    let mut machines = [subject, Subject::EVAL].map(|it| it.shared(1, 1, &accesses()));
    for case in 0..CASES {
        for machine in &mut machines {
            machine.reset(0).unwrap();
            set_bases(machine, 0, case);
            machine.run(100).unwrap();
        }
        let [machine, reference] = &machines;
        same(machine, reference, &format!("case {case}"));
    }
}

/// Runs lanes that part and come together again, with every limit.
fn at_every_limit(subject: Subject, lanes: usize, limits: u64, code: &[u8]) {
    for is_shared in [false, true] {
        let mut machines = [subject, Subject::EVAL].map(|it| match is_shared {
            false => it.private(lanes, 1, code),
            true => it.shared(lanes, 1, code),
        });
        for limit in 0..limits {
            for machine in &mut machines {
                machine.reset(Lanes::All).unwrap();
                set_up(machine);
                machine.run(limit).unwrap();
                machine.run(limit).unwrap();
            }
            let [machine, reference] = &machines;
            for lane in 0..lanes {
                let [ours, wanted] = [machine, reference].map(|it| Snapshot::of(it, lane));
                assert_eq!(ours, wanted, "lane {lane}, limit {limit}, shared: {is_shared}");
            }
        }
    }
}

fn lanes_apart_at_every_limit(subject: Subject) {
    let code = asm!(
        ; add x0, x27, 2 ; add x3, x28, x27, lsl 3
        ; again: ; cmp x0, 1 ; b.eq >done ; add x1, x1, 1 ; str x1, [x3] ; tbnz x0, 0, >odd
        ; lsr x0, x0, 1 ; b <again
        ; odd: ; add x0, x0, x0, lsl 1 ; add x0, x0, 1 ; bl >called ; b <again
        ; called: ; ldr x2, [x3] ; add x4, x4, x2 ; ret
        ; done: ; hlt 0);
    at_every_limit(subject, 11, 70, &code);
}

/// Where some instructions are skipped, or others executed instead.
fn short_branches_at_every_limit(subject: Subject) {
    let code = asm!(
        ; mov x5, 6
        ; again: ; tbz x27, 0, >even ; add x0, x0, 1 ; eor x0, x0, x5 ; even: ; tst x27, x5
        ; b.eq >other ; add x1, x1, 3 ; b >both ; other: ; adds x1, x1, x5 ; sub x1, x1, 1 ; both:
        ; adc x2, x2, x1 ; subs x5, x5, 1 ; b.ne <again
        ; hlt 0);
    at_every_limit(subject, 5, 60, &code);
}

/// All lanes but one wait for what that one writes, after it has done something else for a long time.
fn lanes_wait_in_a_block(subject: Subject) {
    let code = asm!(
        ; cbz x27, >works
        ; waits: ; ldr x0, [x28] ; add x2, x2, 1 ; cbz x0, <waits ; str x0, [x28, x27, lsl 3] ; hlt 0
        ; works: ; mov x1, 5000 ; again: ; add x3, x3, x1 ; subs x1, x1, 1 ; b.ne <again
        ; str x3, [x28] ; hlt 0);
    let lanes = 37;
    let mut machine = subject.shared(lanes, 2, &code);
    machine.run(u64::MAX).unwrap();
    for lane in 0..lanes {
        assert_eq!(machine.stop(lane).unwrap(), Some(HALT), "lane {lane}");
        assert_eq!(read_u64(&machine, 0, DATA + 8 * lane as u64), 5000 * 5001 / 2, "lane {lane}");
    }
}

/// More blocks than some compilers can nest conditions.
fn very_many_blocks(subject: Subject) {
    let mut code = asm!(; mov x5, 3 ; b >first ; hlt 0 ; first:);
    for _ in 0..40 {
        // Forwards over a block that writes memory, and backwards.
        code.extend(asm!(; ror x0, x0, 1 ; tbz x0, 7, >over ; str x0, [x28, x27, lsl 3] ; over: ; eor x1, x1, x0));
    }
    code.extend(asm!(; subs x5, x5, 1 ; b.eq >done ; b >on ; done: ; hlt 0 ; on: ; b <on));
    let mut machines = [subject, Subject::EVAL].map(|it| it.private(9, 1, &code));
    for machine in &mut machines {
        (0..9).for_each(|lane| set_x(machine, lane, 0, 0x0123_4567_89ab_cdef << (7 * lane)));
        machine.run(700).unwrap();
    }
    let [machine, reference] = &machines;
    same(machine, reference, "many blocks");
}
