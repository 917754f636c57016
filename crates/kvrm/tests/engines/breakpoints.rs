//! Breakpoints stop lanes before the instruction.

use kvrm::{Machine, Stop};

use crate::support::{CODE, DATA, HALT, Subject, run, set_x, x};

for_every_engine! {
    stops_before_executing, at_every_instruction, at_the_entry, in_a_loop, added_and_removed_later,
    lanes_stop_at_different_ones, at_a_jump_to_itself, at_branch_targets, together_with_limits,
    at_an_instruction_that_stops, the_list_is_sorted_and_unique, at_a_store_to_code,
    reached_through_code_just_written,
}

for_llvmpipe! { at_every_instruction, in_a_loop, added_and_removed_later }

for_split_engines! { lanes_stop_at_different_ones }

const BREAKPOINT: Stop = Stop::Breakpoint { imm: None };

fn expect_at(machine: &mut Machine, offset: u64, cycles: u64) {
    assert_eq!(run(machine), BREAKPOINT);
    assert_eq!(machine.pc(0).unwrap(), CODE + offset);
    assert_eq!(machine.cycles(0).unwrap(), cycles);
}

fn stops_before_executing(subject: Subject) {
    let mut machine = subject.machine(&asm!(; mov x0, 1 ; mov x0, 2 ; mov x0, 3 ; hlt 0));
    machine.add_breakpoint(CODE + 4).unwrap();
    expect_at(&mut machine, 4, 1);
    assert_eq!(x(&machine, 0, 0), 1);
    assert_eq!(run(&mut machine), HALT);
    assert_eq!((x(&machine, 0, 0), machine.cycles(0).unwrap()), (3, 2));
}

fn at_every_instruction(subject: Subject) {
    let code = asm!(; mov x0, 2 ; again: ; subs x0, x0, 1 ; b.ne <again ; svc 0 ; hlt 0);
    let mut machine = subject.machine(&code);
    (0..5).for_each(|i| machine.add_breakpoint(CODE + 4 * i).unwrap());
    for offset in [4, 8, 4, 8, 12] {
        expect_at(&mut machine, offset, 1);
    }
    assert_eq!(run(&mut machine), Stop::Syscall { imm: 0 });
    assert_eq!(run(&mut machine), HALT);
    assert_eq!(machine.total_cycles(0).unwrap(), 6);
}

fn at_the_entry(subject: Subject) {
    let mut machine = subject.machine(&asm!(; again: ; add x0, x0, 1 ; b <again));
    machine.add_breakpoint(CODE).unwrap();
    for round in 1..5 {
        expect_at(&mut machine, 0, 2);
        assert_eq!(x(&machine, 0, 0), round);
    }
}

fn in_a_loop(subject: Subject) {
    let code = asm!(
        ; mov x0, 50 ; again: ; add x1, x1, 1 ; add x2, x2, 1 ; subs x0, x0, 1 ; b.ne <again ; hlt 0);
    let mut machine = subject.machine(&code);
    machine.add_breakpoint(CODE + 8).unwrap();
    for round in 0..50 {
        expect_at(&mut machine, 8, if round == 0 { 2 } else { 4 });
        assert_eq!((x(&machine, 0, 1), x(&machine, 0, 2)), (round + 1, round));
    }
    assert_eq!(run(&mut machine), HALT);
}

fn added_and_removed_later(subject: Subject) {
    let code = asm!(; again: ; add x0, x0, 1 ; add x1, x1, 1 ; add x2, x2, 1 ; b <again);
    let mut machine = subject.machine(&code);
    machine.run(4001).unwrap();
    machine.add_breakpoint(CODE + 8).unwrap();
    expect_at(&mut machine, 8, 1);
    machine.add_breakpoint(CODE + 4).unwrap();
    expect_at(&mut machine, 4, 3);
    assert!(machine.remove_breakpoint(CODE + 8));
    expect_at(&mut machine, 4, 4);
    assert!(machine.remove_breakpoint(CODE + 4));
    assert!(!machine.remove_breakpoint(CODE + 4));
    machine.run(1000).unwrap();
    assert_eq!(machine.stop(0).unwrap(), Some(Stop::MaxCycles));
}

fn lanes_stop_at_different_ones(subject: Subject) {
    let code = asm!(; tbnz x27, 0, >odd ; mov x0, 1 ; hlt 0 ; odd: ; mov x0, 2 ; nop ; hlt 0);
    for threads in [1, 2] {
        let mut machine = subject.private(5, threads, &code);
        machine.add_breakpoint(CODE + 4).unwrap();
        machine.add_breakpoint(CODE + 16).unwrap();
        machine.run(1000).unwrap();
        for lane in 0..5 {
            let (pc, x0) = if lane % 2 == 0 { (CODE + 4, 0) } else { (CODE + 16, 2) };
            assert_eq!(machine.stop(lane).unwrap(), Some(BREAKPOINT));
            assert_eq!((machine.pc(lane).unwrap(), x(&machine, lane, 0)), (pc, x0));
        }
        crate::support::run_to_halt(&mut machine);
    }
}

fn at_a_jump_to_itself(subject: Subject) {
    let mut machine = subject.machine(&asm!(; here: ; b <here));
    machine.add_breakpoint(CODE).unwrap();
    for _ in 0..3 {
        expect_at(&mut machine, 0, 1);
    }
}

fn at_branch_targets(subject: Subject) {
    let code = asm!(
        ; adr x5, >function ; again: ; blr x5 ; bl >function ; b <again
        ; function: ; add x0, x0, 1 ; ret);
    let mut machine = subject.machine(&code);
    machine.add_breakpoint(CODE + 16).unwrap();
    for round in 0..20 {
        let cycles = if round == 0 { 2 } else { 3 + u64::from(round % 2 == 0) };
        expect_at(&mut machine, 16, cycles);
        assert_eq!(x(&machine, 0, 0), round);
    }
    machine.remove_breakpoint(CODE + 16);
    machine.add_breakpoint(CODE + 8).unwrap(); // where the first call returns to
    expect_at(&mut machine, 8, 6);
    expect_at(&mut machine, 8, 7);
}

fn together_with_limits(subject: Subject) {
    let code = asm!(; nop ; nop ; nop ; nop ; hlt 0);
    for limit in 0..6 {
        let mut machine = subject.machine(&code);
        machine.add_breakpoint(CODE + 12).unwrap();
        machine.run(limit).unwrap();
        let stop = if limit <= 3 { Stop::MaxCycles } else { BREAKPOINT };
        assert_eq!(machine.stop(0).unwrap(), Some(stop), "limit {limit}");
        assert_eq!(machine.cycles(0).unwrap(), limit.min(3));
    }
}

fn at_an_instruction_that_stops(subject: Subject) {
    let mut machine = subject.machine(&asm!(; nop ; brk 1));
    machine.add_breakpoint(CODE + 4).unwrap();
    expect_at(&mut machine, 4, 1);
    assert_eq!(run(&mut machine), Stop::Breakpoint { imm: Some(1) });
    let mut machine = subject.machine(&asm!(; nop ; ldr x0, [x1] ; hlt 0));
    set_x(&mut machine, 0, 1, u64::MAX);
    machine.add_breakpoint(CODE + 4).unwrap();
    expect_at(&mut machine, 4, 1);
    assert!(matches!(run(&mut machine), Stop::Fault { .. }));
}

fn the_list_is_sorted_and_unique(subject: Subject) {
    let mut machine = subject.machine(&asm!(; hlt 0));
    for pc in [8, 4, 8, 0, 4] {
        machine.add_breakpoint(pc).unwrap();
    }
    assert_eq!(machine.breakpoints(), [0, 4, 8]);
}

/// The instruction passed when a run resumes patches code that was executed before.
fn at_a_store_to_code(subject: Subject) {
    let code = asm!(
        ; mov x5, 10 ; again: ; bl >patched ; str w6, [x7] ; subs x5, x5, 1 ; b.ne <again ; hlt 0
        ; patched: ; mov x0, 0 ; ret);
    for mut machine in [subject.machine(&code), subject.shared(1, 1, &code)] {
        machine.add_breakpoint(CODE + 8).unwrap();
        set_x(&mut machine, 0, 7, CODE + 24);
        expect_at(&mut machine, 8, 4);
        for round in 1..=9u32 {
            set_x(&mut machine, 0, 6, (0xd280_0000 | round << 5).into()); // mov x0, #round
            expect_at(&mut machine, 8, 6);
            assert_eq!(x(&machine, 0, 0), round.into());
        }
    }
}

/// The last instructions of a run turn the next into a branch to a breakpoint.
fn reached_through_code_just_written(subject: Subject) {
    let code = asm!(
        ; str w6, [x7] ; nop ; mov x0, 1 ; mov x0, 2 ; mov x0, 3 ; mov x0, 4 ; hlt 0
        ; target: ; mov x0, 9 ; mov x0, 10 ; hlt 0);
    let branch = 0x1400_0006; // b .+24
    for limit in 1..9 {
        let machines = [subject, Subject::EVAL].map(|subject| {
            let mut machine = subject.machine(&code);
            machine.add_breakpoint(CODE + 28).unwrap();
            set_x(&mut machine, 0, 6, branch);
            // Often enough for the code to be translated.
            for _ in 0..6 {
                set_x(&mut machine, 0, 7, DATA);
                assert_eq!(run(&mut machine), HALT);
                machine.set_pc(0, CODE).unwrap();
            }
            set_x(&mut machine, 0, 7, CODE + 4);
            machine.run(limit).unwrap();
            machine
        });
        let [tested, reference] = machines.map(|m| crate::support::Snapshot::of(&m, 0));
        assert_eq!(tested, reference, "limit {limit}");
    }
}
