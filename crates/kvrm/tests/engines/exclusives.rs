//! When a store-exclusive succeeds.

use kvrm::{Machine, Stop};

use crate::support::{CODE, DATA, HALT, Subject, read_u64, run, x};

for_every_engine! {
    a_pair_succeeds, mismatches_fail, stops_of_the_host_keep_the_mark, exceptions_clear_the_mark,
    a_changed_value_fails, a_failed_store_needs_no_memory,
}

/// Both kinds of memory.
fn machines(subject: Subject, code: &[u8]) -> [Machine; 2] {
    [subject.machine(code), subject.shared(1, 1, code)]
}

fn a_pair_succeeds(subject: Subject) {
    let code = asm!(
        ; mov x1, 7 ; mov w2, 9 ; ldxr x3, [x28] ; stxr w2, x1, [x28] ; mov w4, 9
        ; stxr w4, x28, [x28] ; hlt 0);
    for mut machine in machines(subject, &code) {
        assert_eq!(run(&mut machine), HALT);
        assert_eq!([2, 4].map(|n| x(&machine, 0, n)), [0, 1], "the second store has no mark");
        assert_eq!(read_u64(&machine, 0, DATA), 7);
    }
}

fn mismatches_fail(subject: Subject) {
    for (name, code) in [
        ("address", asm!(; add x5, x28, 8 ; ldxr x3, [x28] ; stxr w2, x28, [x5] ; hlt 0)),
        ("size", asm!(; ldxr x3, [x28] ; stxr w2, w28, [x28] ; hlt 0)),
        ("smaller", asm!(; ldxrb w3, [x28] ; stxrh w2, w28, [x28] ; hlt 0)),
        ("pair", asm!(; ldxr x3, [x28] ; stxp w2, x28, x28, [x28] ; hlt 0)),
        ("clrex", asm!(; ldxr x3, [x28] ; clrex ; stxr w2, x28, [x28] ; hlt 0)),
        ("nothing", asm!(; nop ; stxr w2, x28, [x28] ; hlt 0)),
        (
            "other mark",
            asm!(; add x5, x28, 8 ; ldxr x3, [x28] ; ldxr x3, [x5] ; stxr w2, x28, [x28] ; hlt 0),
        ),
    ] {
        for mut machine in machines(subject, &code) {
            assert_eq!(run(&mut machine), HALT);
            assert_eq!(x(&machine, 0, 2), 1, "{name}");
            assert_eq!(read_u64(&machine, 0, DATA), 0, "{name}");
        }
    }
}

fn stops_of_the_host_keep_the_mark(subject: Subject) {
    let code = asm!(; mov w2, 9 ; ldxr x3, [x28] ; nop ; stxr w2, x28, [x28] ; hlt 0);
    for mut machine in machines(subject, &code) {
        machine.add_breakpoint(CODE + 8).unwrap();
        assert_eq!(run(&mut machine), Stop::Breakpoint { imm: None });
        machine.run(0).unwrap();
        machine.run(1).unwrap();
        assert_eq!(machine.stop(0).unwrap(), Some(Stop::MaxCycles));
        assert_eq!(run(&mut machine), HALT);
        assert_eq!(x(&machine, 0, 2), 0);
    }
}

fn exceptions_clear_the_mark(subject: Subject) {
    for (name, code) in [
        ("svc", asm!(; ldxr x3, [x28] ; svc 0 ; stxr w2, x28, [x28] ; hlt 0)),
        ("brk", asm!(; ldxr x3, [x28] ; brk 0 ; stxr w2, x28, [x28] ; hlt 0)),
        ("udf", asm!(; ldxr x3, [x28] ; udf 1 ; stxr w2, x28, [x28] ; hlt 0)),
        ("fault", asm!(; ldxr x3, [x28] ; ldur x4, [x26, -1] ; stxr w2, x28, [x28] ; hlt 0)),
    ] {
        for mut machine in machines(subject, &code) {
            assert_ne!(run(&mut machine), HALT);
            machine.set_pc(0, CODE + 8).unwrap();
            assert_eq!(run(&mut machine), HALT);
            assert_eq!(x(&machine, 0, 2), 1, "{name}");
        }
    }
}

fn a_changed_value_fails(subject: Subject) {
    let code = asm!(; mov x1, 5 ; ldxr x3, [x28] ; str x1, [x28] ; stxr w2, x28, [x28] ; hlt 0);
    for mut machine in machines(subject, &code) {
        assert_eq!(run(&mut machine), HALT);
        assert_eq!((x(&machine, 0, 2), read_u64(&machine, 0, DATA)), (1, 5));
    }
}

fn a_failed_store_needs_no_memory(subject: Subject) {
    let code = asm!(; movn x5, 7 ; stxr w2, x28, [x5] ; hlt 0);
    for mut machine in machines(subject, &code) {
        assert_eq!(run(&mut machine), HALT);
        assert_eq!(x(&machine, 0, 2), 1);
    }
}
