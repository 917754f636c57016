//! Code that changes: by its own stores, by the host, in one lane and not in others.

use kvrm::{Lanes, Machine, Reg, Stop};

use crate::support::{
    CODE, HALT, Snapshot, Subject, all_memory, load, read_u64, run, run_to_halt, set_up, set_x,
    word, x,
};

for_every_engine! {
    a_loop_that_patches_itself, patching_the_next_instruction, patching_ahead_and_behind,
    code_written_and_called, the_host_patches_between_runs, lanes_patch_differently,
    a_reset_brings_the_original_back, data_beside_code, a_pair_across_code_and_data,
    zeroing_code, patching_at_every_limit, code_that_moves_through_memory,
    a_lane_that_patched_before_others_ran, patched_code_and_new_breakpoints,
    patching_through_unaligned_stores, the_host_patches_a_lane_again_after_a_reset,
}

for_llvmpipe! { a_loop_that_patches_itself, lanes_patch_differently, the_host_patches_between_runs }

for_evicting_engines! {
    a_loop_that_patches_itself, patching_the_next_instruction, patching_ahead_and_behind,
    code_written_and_called, the_host_patches_between_runs, lanes_patch_differently,
    a_reset_brings_the_original_back, patching_at_every_limit, code_that_moves_through_memory,
    a_lane_that_patched_before_others_ran, patched_code_and_new_breakpoints,
}

for_split_engines! { lanes_patch_differently, a_lane_that_patched_before_others_ran }

/// `mov x0, #value`.
fn mov_x0(value: u32) -> u64 {
    (word(&asm!(; mov x0, 0)) | value << 5).into()
}

/// Both kinds of memory.
fn machines(subject: Subject, code: &[u8]) -> [Machine; 2] {
    [subject.machine(code), subject.shared(1, 1, code)]
}

/// The immediate of an `add` grows with every round.
fn a_loop_that_patches_itself(subject: Subject) {
    let code = asm!(
        ; adr x7, >patched ; ldr w6, [x7] ; mov x5, 40
        ; again: ; patched: ; add x0, x0, 0 ; add w6, w6, 1, lsl 12 ; sub w6, w6, 3072 ; str w6, [x7]
        ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    for mut machine in machines(subject, &code) {
        // add x0, x0, #n is 0x91000000 + n << 10: each round adds 1024 to the word.
        assert_eq!(run(&mut machine), HALT);
        assert_eq!(x(&machine, 0, 0), (0..40).sum());
    }
}

/// One lane of three, between runs and right after resets.
fn the_host_patches_a_lane_again_after_a_reset(subject: Subject) {
    let mut machine = subject.private(3, 1, &asm!(; mov x0, 1 ; mov x1, 2 ; hlt 0));
    run_to_halt(&mut machine);
    for value in [7, 8, 9] {
        machine.reset(1).unwrap();
        machine.write_memory(1, CODE, &(mov_x0(value) as u32).to_le_bytes()).unwrap();
        machine.reset(0).unwrap();
        machine.run(100).unwrap();
        assert_eq!(machine.stop(1).unwrap(), Some(HALT));
        assert_eq!([0, 1].map(|lane| x(&machine, lane, 0)), [1, value.into()]);
    }
}

fn patching_the_next_instruction(subject: Subject) {
    let code = asm!(; mov x0, 1 ; str w6, [x7] ; mov x0, 2 ; hlt 0);
    for mut machine in machines(subject, &code) {
        set_x(&mut machine, 0, 6, mov_x0(99));
        set_x(&mut machine, 0, 7, CODE + 8);
        assert_eq!(run(&mut machine), HALT);
        assert_eq!((x(&machine, 0, 0), machine.cycles(0).unwrap()), (99, 3));
    }
}

/// Every instruction of a loop is patched by a store in its middle, in turn.
fn patching_ahead_and_behind(subject: Subject) {
    let code = asm!(
        ; mov x5, 3 ; again: ; add x1, x1, 1 ; add x2, x2, 1 ; str w6, [x7] ; add x3, x3, 1
        ; add x4, x4, 1 ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    let nop = u64::from(word(&asm!(; nop)));
    for (offset, expected) in
        [(4, [1, 3, 3, 3]), (8, [3, 1, 3, 3]), (16, [3, 3, 0, 3]), (20, [3, 3, 3, 0])]
    {
        for mut machine in machines(subject, &code) {
            set_x(&mut machine, 0, 6, nop);
            set_x(&mut machine, 0, 7, CODE + offset);
            assert_eq!(run(&mut machine), HALT);
            assert_eq!([1, 2, 3, 4].map(|n| x(&machine, 0, n)), expected, "offset {offset}");
        }
    }
}

fn patching_at_every_limit(subject: Subject) {
    let code = asm!(
        ; mov x5, 4 ; again: ; add x1, x1, 1 ; str w6, [x7] ; add x6, x6, 1024 ; add x0, x0, 1
        ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    for limit in 1..28 {
        let snapshots = [subject, Subject::EVAL].map(|subject| {
            let mut machine = subject.machine(&code);
            set_x(&mut machine, 0, 6, word(&asm!(; add x0, x0, 5)).into());
            set_x(&mut machine, 0, 7, CODE + 16);
            for _ in 0..3 {
                machine.run(limit).unwrap();
            }
            (Snapshot::of(&machine, 0), all_memory(&machine, 0))
        });
        assert!(snapshots[0] == snapshots[1], "limit {limit}: {:?}", snapshots[0].0);
    }
}

/// A function is written anew for every call, at one place.
fn code_written_and_called(subject: Subject) {
    let code = asm!(
        ; mov x5, 30 ; again: ; stp w6, w8, [x28] ; blr x28 ; add x9, x9, x0 ; add w6, w6, 32
        ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    for mut machine in machines(subject, &code) {
        set_x(&mut machine, 0, 6, mov_x0(0));
        set_x(&mut machine, 0, 8, word(&asm!(; ret)).into());
        assert_eq!(run(&mut machine), HALT);
        assert_eq!(x(&machine, 0, 9), (0..30).sum());
    }
}

/// The program copies itself a little further and goes on there.
fn code_that_moves_through_memory(subject: Subject) {
    let code = asm!(
        ; start: ; adr x1, <start ; add x2, x1, 52 ; mov x3, 13
        ; copy: ; ldr w4, [x1], 4 ; str w4, [x2], 4 ; subs x3, x3, 1 ; b.ne <copy
        ; add x0, x0, 1 ; cmp x0, 100 ; b.eq >end ; adr x1, >after ; br x1
        ; end: ; hlt 0 ; after: );
    assert_eq!(code.len(), 52);
    for mut machine in machines(subject, &code) {
        assert_eq!(run(&mut machine), HALT);
        assert_eq!(x(&machine, 0, 0), 100);
    }
}

fn the_host_patches_between_runs(subject: Subject) {
    let code = asm!(; again: ; mov x0, 1 ; add x1, x1, x0 ; b <again);
    for mut machine in machines(subject, &code) {
        machine.run(300).unwrap();
        machine.load(CODE, &(mov_x0(2) as u32).to_le_bytes()).unwrap();
        machine.run(300).unwrap();
        machine.write_memory(0, CODE, &(mov_x0(3) as u32).to_le_bytes()).unwrap();
        machine.run(300).unwrap();
        machine.load(CODE, &(mov_x0(4) as u32).to_le_bytes()).unwrap();
        machine.run(300).unwrap();
        assert_eq!(x(&machine, 0, 1), 100 * (1 + 2 + 3 + 4));
    }
}

/// Lanes whose number is a multiple of 3 patch their loop, each in its own way.
fn lanes_patch_differently(subject: Subject) {
    let code = asm!(
        ; cbz x6, >plain ; str w6, [x7]
        ; plain: ; mov x5, 20 ; again: ; mov x0, 1 ; add x1, x1, x0 ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    for threads in [1, 2] {
        let mut machine = subject.private(30, threads, &code);
        for lane in (0..30).step_by(3) {
            set_x(&mut machine, lane, 6, mov_x0(lane as u32 + 2));
            set_x(&mut machine, lane, 7, CODE + 12);
        }
        run_to_halt(&mut machine);
        for lane in 0..30 {
            let step = if lane % 3 == 0 { lane as u64 + 2 } else { 1 };
            assert_eq!(x(&machine, lane, 1), 20 * step, "lane {lane}");
        }
    }
}

fn a_reset_brings_the_original_back(subject: Subject) {
    let code = asm!(
        ; cbz x6, >plain ; str w6, [x7] ; plain: ; mov x0, 1 ; mov x5, 9 ; again: ; subs x5, x5, 1
        ; b.ne <again ; hlt 0);
    let mut machine = subject.machine(&code);
    for round in 0..20 {
        let patches = round % 3 != 0;
        set_x(&mut machine, 0, 6, if patches { mov_x0(round) } else { 0 });
        set_x(&mut machine, 0, 7, CODE + 8);
        assert_eq!(run(&mut machine), HALT);
        assert_eq!(x(&machine, 0, 0), if patches { round.into() } else { 1 });
        machine.reset(0).unwrap();
    }
}

/// A counter in the same granule, and one in the same page, as the loop that uses them.
fn data_beside_code(subject: Subject) {
    let code = asm!(
        ; adr x1, >near ; add x2, x1, 2048
        ; again: ; ldr x3, [x1] ; add x3, x3, 1 ; str x3, [x1] ; ldr x4, [x2] ; add x4, x4, 2
        ; str x4, [x2] ; subs x5, x5, 1 ; b.ne <again ; hlt 0 ; nop ; near: ; .u64 0);
    let rounds = if subject.is_slow() { 500 } else { 50_000 };
    for mut machine in machines(subject, &code) {
        set_x(&mut machine, 0, 5, rounds);
        assert_eq!(run(&mut machine), HALT);
        assert_eq!((x(&machine, 0, 3), x(&machine, 0, 4)), (rounds, 2 * rounds));
    }
}

/// The low half of the pair is data, the high half the next instruction.
fn a_pair_across_code_and_data(subject: Subject) {
    let code = asm!(
        ; mov x0, 1 ; b >over ; .u64 0 ; over: ; stur x6, [x7, -4] ; nop ; hlt 0);
    for mut machine in machines(subject, &code) {
        // over: is at 16; the store covers 16..24: itself, and the nop after it.
        set_x(&mut machine, 0, 6, mov_x0(3) << 32);
        set_x(&mut machine, 0, 7, CODE + 20);
        assert_eq!(run(&mut machine), HALT);
        assert_eq!((x(&machine, 0, 0), machine.cycles(0).unwrap()), (3, 4));
    }
    // Across two pages: data at the end of one, code at the start of the next.
    let function = asm!(; mov x0, 1 ; ret);
    let caller = asm!(
        ; mov x5, 5 ; again: ; blr x28 ; add x9, x9, x0 ; stp x1, x6, [x7] ; add x6, x6, 32
        ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    for mut machine in machines(subject, &caller) {
        machine.load(crate::support::DATA, &function).unwrap();
        let ret = u64::from(word(&asm!(; ret)));
        set_x(&mut machine, 0, 1, 0x1234);
        set_x(&mut machine, 0, 6, mov_x0(10) | ret << 32);
        set_x(&mut machine, 0, 7, crate::support::DATA - 8);
        assert_eq!(run(&mut machine), HALT);
        assert_eq!(x(&machine, 0, 9), 1 + 10 + 11 + 12 + 13);
        assert_eq!(read_u64(&machine, 0, crate::support::DATA - 8), 0x1234);
    }
}

fn patching_through_unaligned_stores(subject: Subject) {
    let code = asm!(
        ; mov x5, 5 ; again: ; bl >function ; add x9, x9, x0 ; strb w6, [x7] ; add w6, w6, 32
        ; subs x5, x5, 1 ; b.ne <again ; hlt 0 ; function: ; mov x0, 0 ; ret);
    for mut machine in machines(subject, &code) {
        // The low byte of `mov x0, #n` holds the low bits of n, in its upper three bits.
        set_x(&mut machine, 0, 7, CODE + 32);
        set_x(&mut machine, 0, 6, 32);
        assert_eq!(run(&mut machine), HALT);
        assert_eq!(x(&machine, 0, 9), 1 + 2 + 3 + 4);
    }
}

fn zeroing_code(subject: Subject) {
    let code = asm!(
        ; mov x0, 1 ; again: ; bl >function ; cbz x0, >over ; dc zva, x7 ; mov x0, 0 ; b <again
        ; over: ; hlt 1 ; .align 64 ; function: ; add x1, x1, 1 ; ret);
    for mut machine in machines(subject, &code) {
        set_x(&mut machine, 0, 7, CODE + 64 + 12);
        assert_eq!(run(&mut machine), Stop::ZeroWord);
        assert_eq!(machine.pc(0).unwrap(), CODE + 64);
        assert_eq!(x(&machine, 0, 1), 1);
    }
}

/// Lane 0 patches a function before any lane has called it; the others call the original.
fn a_lane_that_patched_before_others_ran(subject: Subject) {
    let code = asm!(
        ; cbnz x27, >call ; str w6, [x7] ; call: ; mov x5, 10 ; again: ; bl >function ; add x9, x9, x0
        ; subs x5, x5, 1 ; b.ne <again ; hlt 0 ; function: ; mov x0, 1 ; ret);
    let mut machine = subject.private(3, 1, &code);
    for round in 0..4 {
        set_x(&mut machine, 0, 6, mov_x0(7));
        set_x(&mut machine, 0, 7, CODE + 32);
        run_to_halt(&mut machine);
        assert_eq!([0, 1, 2].map(|lane| x(&machine, lane, 9)), [70, 10, 10], "round {round}");
        machine.reset(Lanes::All).unwrap();
        set_up(&mut machine);
    }
}

/// Lane 0 patches a function, which lane 1 then runs in its original form; new breakpoints make the
/// engine forget what it has translated, and lane 0 writes data where code was. Its patch must stay.
fn patched_code_and_new_breakpoints(subject: Subject) {
    let code = asm!(
        ; cbnz x27, >other
        ; str w6, [x28, 64] ; svc 1 ; str w6, [x7] ; svc 2 ; blr x8 ; hlt 0
        ; other: ; svc 3 ; blr x8 ; svc 4 ; hlt 0);
    // In one page: code to be translated first, data, and the function.
    let function = asm!(; mov x0, 1 ; ret);
    let mut machine = load(subject.builder().lanes(2).threads(1), &code);
    machine.load(crate::support::DATA + 64, &function).unwrap();
    machine.load(crate::support::DATA + 256, &asm!(; svc 5 ; hlt 0)).unwrap();
    machine.set_register(Lanes::All, Reg::X(8), crate::support::DATA + 64).unwrap();
    set_x(&mut machine, 0, 6, mov_x0(7));
    set_x(&mut machine, 0, 7, crate::support::DATA + 256);
    // Both lanes run code of that page, so that its granule counts as code.
    machine.set_pc(Lanes::All, crate::support::DATA + 256).unwrap();
    machine.run(100).unwrap();
    machine.set_pc(Lanes::All, CODE).unwrap();
    machine.run(100).unwrap(); // to svc 1 (the patch is written) and svc 3
    machine.add_breakpoint(0x40).unwrap();
    set_x(&mut machine, 1, 30, 0);
    let lane_0 = machine.pc(0).unwrap();
    machine.set_pc(0, 0).unwrap(); // a halt: only lane 1 goes on, and has the function translated
    machine.run(100).unwrap();
    assert_eq!(machine.stop(1).unwrap(), Some(Stop::Syscall { imm: 4 }));
    assert_eq!(x(&machine, 1, 0), 1);
    machine.set_pc(0, lane_0).unwrap();
    machine.run(100).unwrap(); // lane 0 writes where code was
    machine.run(100).unwrap();
    assert_eq!((machine.stop(0).unwrap(), x(&machine, 0, 0)), (Some(HALT), 7));
}
