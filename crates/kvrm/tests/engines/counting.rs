//! Limits are exact, wherever they fall.

use kvrm::{Machine, Stop};

use crate::support::{CNTVCT, DATA, HALT, Snapshot, Subject, all_memory, run, set_x, x};

for_every_engine! {
    every_limit_stops_exactly_there, many_runs_are_one_run, the_counter_counts_instructions,
    a_limit_of_zero_does_nothing, the_largest_limit, limits_beyond_a_slice,
    limits_across_long_straight_code,
}

for_llvmpipe! { every_limit_stops_exactly_there, many_runs_are_one_run }

/// Programs with loops, calls, computed branches, system calls and faults.
fn programs() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (
            "a loop",
            asm!(; mov x0, 5 ; again: ; add x1, x1, x0 ; subs x0, x0, 1 ; b.ne <again ; hlt 0),
        ),
        (
            "calls",
            asm!(
            ; mov x0, 3 ; again: ; bl >double ; bl >double ; sub x0, x0, 1 ; cbnz x0, <again ; hlt 0
            ; double: ; add x1, x1, 1 ; add x1, x1, x1 ; ret),
        ),
        (
            "computed branches",
            asm!(
            ; adr x5, >here ; mov x0, 4 ; again: ; blr x5 ; tbz x0, 0, >even ; add x2, x2, 7
            ; even: ; subs w0, w0, 1 ; b.gt <again ; udf 3
            ; here: ; str x0, [x28] ; cmp x0, 2 ; csel x3, x0, x3, lo ; ret),
        ),
        (
            "system calls and a fault",
            asm!(
            ; mov x0, 2 ; again: ; svc 1 ; adds x1, x1, x0 ; svc 2 ; stp x0, x1, [x28], 16
            ; sub x0, x0, 1 ; cbnz x0, <again ; mov x1, xzr ; ldur x0, [x1, -1]),
        ),
        (
            "atomics",
            asm!(
            ; mov x0, 3 ; mov x1, 1 ; again: ; ldxr x2, [x28] ; add x2, x2, 1 ; stxr w3, x2, [x28]
            ; cbnz w3, <again ; ldadd x1, x4, [x28] ; subs x0, x0, 1 ; b.ne <again ; hlt 3),
        ),
    ]
}

fn same(a: &Machine, b: &Machine, context: &str) {
    assert_eq!(Snapshot::of(a, 0), Snapshot::of(b, 0), "{context}");
    assert!(all_memory(a, 0) == all_memory(b, 0), "memory differs: {context}");
}

/// Runs until a stop that is neither a limit nor a system call.
fn finish(machine: &mut Machine, limit: u64) -> Stop {
    for _ in 0..10_000 {
        machine.run(limit).unwrap();
        match machine.stop(0).unwrap() {
            Some(Stop::MaxCycles | Stop::Syscall { .. }) => {}
            stop => return stop.expect("the run was not cancelled"),
        }
    }
    panic!("the program does not end");
}

fn every_limit_stops_exactly_there(subject: Subject) {
    for (name, code) in programs() {
        // The same machine is reset and used again: translations of one limit meet those of another.
        let mut machine = subject.machine(&code);
        for limit in 0..60 {
            let mut reference = Subject::EVAL.machine(&code);
            machine.reset(0).unwrap();
            crate::support::set_up(&mut machine);
            for resumed in 0..3 {
                machine.run(limit).unwrap();
                reference.run(limit).unwrap();
                same(&machine, &reference, &format!("{name}, run {resumed} of {limit}"));
            }
        }
    }
}

fn many_runs_are_one_run(subject: Subject) {
    for (name, code) in programs() {
        let mut whole = subject.machine(&code);
        finish(&mut whole, u64::MAX);
        for step in [1, 2, 3, 5, 7, 11] {
            let mut pieces = subject.machine(&code);
            finish(&mut pieces, step);
            same(&whole, &pieces, &format!("{name} in steps of {step}"));
        }
    }
}

fn the_counter_counts_instructions(subject: Subject) {
    let code = asm!(
        ; mrs x0, CNTVCT ; mov x5, 3 ; again: ; mrs x1, CNTVCT ; nop ; svc 0 ; mrs x2, CNTVCT
        ; subs x5, x5, 1 ; b.ne <again ; mrs x3, CNTVCT ; hlt 0);
    let mut machine = subject.machine(&code);
    let mut seen = Vec::new();
    while run(&mut machine) != HALT {
        seen.push(x(&machine, 0, 1));
    }
    assert_eq!(seen, [2, 8, 14]);
    assert_eq!([0, 2, 3].map(|n| x(&machine, 0, n)), [0, 17, 20]);
    assert_eq!(machine.total_cycles(0).unwrap(), 21);
    machine.reset(0).unwrap();
    machine.run(1).unwrap();
    assert_eq!(x(&machine, 0, 0), 0, "a reset starts the counter again");
}

fn a_limit_of_zero_does_nothing(subject: Subject) {
    let mut machine = subject.machine(&asm!(; add x0, x0, 1 ; svc 0 ; hlt 0));
    for pass in 0..2 {
        let before = Snapshot { stop: Some(Stop::MaxCycles), ..Snapshot::of(&machine, 0) };
        assert_eq!(machine.run(0).unwrap().cycles, 0);
        assert_eq!(Snapshot::of(&machine, 0), before, "pass {pass}");
        run(&mut machine);
    }
}

fn the_largest_limit(subject: Subject) {
    let mut machine = subject.machine(&asm!(; svc 0 ; hlt 0));
    for stop in [Stop::Syscall { imm: 0 }, HALT] {
        machine.run(u64::MAX).unwrap();
        assert_eq!(machine.stop(0).unwrap(), Some(stop));
    }
}

/// Long runs are cut in slices inside the engines; limits are exact all the same.
fn limits_beyond_a_slice(subject: Subject) {
    let code = asm!(; again: ; add x0, x0, 1 ; add x1, x1, x0 ; eor x2, x2, x1 ; b <again);
    let long = if subject.is_slow() { 9_001 } else { (1 << 24) + 9_001 };
    for limit in [4_095, 4_096, 4_097, long] {
        for mut machine in [subject.machine(&code), subject.shared(1, 1, &code)] {
            let report = machine.run(limit).unwrap();
            assert_eq!((report.cycles, x(&machine, 0, 0)), (limit, limit.div_ceil(4)));
            assert_eq!(machine.stop(0).unwrap(), Some(Stop::MaxCycles));
        }
    }
}

/// More instructions in a row than one block or region holds.
fn limits_across_long_straight_code(subject: Subject) {
    let mut code = Vec::new();
    for _ in 0..1000 {
        code.extend(asm!(; adds x0, x0, 1));
    }
    code.extend(asm!(; hlt 0));
    let mut machine = subject.machine(&code);
    for limit in (0..1000).step_by(37).chain([127, 128, 129, 399, 400, 401, 999]) {
        machine.reset(0).unwrap();
        machine.run(limit).unwrap();
        assert_eq!(machine.stop(0).unwrap(), Some(Stop::MaxCycles));
        assert_eq!(x(&machine, 0, 0), limit);
        set_x(&mut machine, 0, 1, DATA);
        assert_eq!(run(&mut machine), HALT);
        assert_eq!((x(&machine, 0, 0), machine.total_cycles(0).unwrap()), (1000, 1000));
    }
}
