//! Code in shared memory that one lane changes and another executes.

use kvrm::{Lanes, Reg};

use crate::support::{CODE, DATA, Subject, read_u64, run_to_halt, set_x, word, x};

for_every_engine! {
    one_lane_patches_what_another_executes, lanes_take_turns_to_patch, everybody_writes_its_own_code,
    data_beside_shared_code,
}

for_evicting_engines! {
    one_lane_patches_what_another_executes, lanes_take_turns_to_patch, everybody_writes_its_own_code,
    data_beside_shared_code,
}

const CREWS: [(usize, usize); 3] = [(2, 1), (2, 2), (4, 2)];

/// Lane 0 patches a function and says so; the others wait, synchronise, and call it. They have called
/// it before.
fn one_lane_patches_what_another_executes(subject: Subject) {
    let code = asm!(
        ; mov x5, 8
        ; again: ; cbnz x27, >other
        // Lane 0: waits until all others have called, then patches.
        ; waits: ; ldar x1, [x28] ; cmp x1, x26 ; b.ne <waits
        ; stlr xzr, [x28] ; str w6, [x7] ; dc cvau, x7 ; dsb ish ; ic ivau, x7 ; dsb ish ; isb
        ; add w6, w6, 32 ; add x8, x28, 64 ; ldr x1, [x8] ; add x1, x1, 1 ; stlr x1, [x8] ; b >next
        // The others: call, say so, wait for the patch.
        ; other: ; bl >function ; add x9, x9, x0 ; mov x1, 1 ; ldaddal x1, x2, [x28]
        ; add x10, x10, 1 ; add x8, x28, 64
        ; waits: ; ldar x1, [x8] ; cmp x1, x10 ; b.lo <waits ; isb
        ; next: ; subs x5, x5, 1 ; b.ne <again ; hlt 0
        ; function: ; mov x0, 0 ; ret);
    let function = CODE + code.len() as u64 - 8;
    for (lanes, threads) in CREWS {
        let mut machine = subject.shared(lanes, threads, &code);
        machine.set_register(Lanes::All, Reg::X(26), lanes as u64 - 1).unwrap();
        set_x(&mut machine, 0, 6, (word(&asm!(; mov x0, 1))).into());
        set_x(&mut machine, 0, 7, function);
        run_to_halt(&mut machine);
        for lane in 1..lanes {
            assert_eq!(x(&machine, lane, 9), (0..8).sum(), "lane {lane}, {threads} threads");
        }
    }
}

/// A function that is its own baton: each lane waits until it returns the lane's number, and then
/// makes it return the next.
fn lanes_take_turns_to_patch(subject: Subject) {
    let code = asm!(
        ; again: ; bl >function ; cmp x0, x27 ; b.ne <again ; add w6, w6, w27, lsl 5 ; str w6, [x7]
        ; dc cvau, x7 ; dsb ish ; ic ivau, x7 ; dsb ish ; isb ; hlt 0 ; function: ; mov x0, 0 ; ret);
    for (lanes, threads) in CREWS {
        let mut machine = subject.shared(lanes, threads, &code);
        machine.set_register(Lanes::All, Reg::X(6), word(&asm!(; mov x0, 1)).into()).unwrap();
        machine.set_register(Lanes::All, Reg::X(7), CODE + code.len() as u64 - 8).unwrap();
        run_to_halt(&mut machine);
    }
}

/// Each lane writes functions to a place of its own, often, and calls them.
fn everybody_writes_its_own_code(subject: Subject) {
    let code = asm!(
        ; mov x5, 12 ; add x28, x28, x27, lsl 7
        ; again: ; stp w6, w8, [x28] ; blr x28 ; add x9, x9, x0 ; add w6, w6, 32
        ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    for (lanes, threads) in CREWS {
        let mut machine = subject.shared(lanes, threads, &code);
        machine.set_register(Lanes::All, Reg::X(6), word(&asm!(; mov x0, 5)).into()).unwrap();
        machine.set_register(Lanes::All, Reg::X(8), word(&asm!(; ret)).into()).unwrap();
        run_to_halt(&mut machine);
        (0..lanes).for_each(|lane| assert_eq!(x(&machine, lane, 9), (5..17).sum()));
    }
}

/// A counter in the same granule as the code that several lanes count with.
fn data_beside_shared_code(subject: Subject) {
    let code = asm!(
        ; adr x1, >counter ; mov x2, 1 ; mov x5, 1000
        ; again: ; ldadd x2, x3, [x1] ; subs x5, x5, 1 ; b.ne <again ; hlt 0 ; nop ; counter: ; .u64 0);
    for (lanes, threads) in CREWS {
        let mut machine = subject.shared(lanes, threads, &code);
        run_to_halt(&mut machine);
        let counter = CODE + code.len() as u64 - 8;
        assert_eq!(read_u64(&machine, 0, counter), 1000 * lanes as u64);
        assert_eq!(read_u64(&machine, 0, DATA), 0);
    }
}
