//! Flags are right at every way out of the code that set them, though engines compute them late.

use kvrm::{Machine, Reg};

use crate::support::{CODE, DATA, MEMORY, NZCV, Snapshot, Subject, random_numbers, set_x};

for_every_engine! {
    flags_leave_through_every_exit, every_condition_after_every_setter, chains_of_ccmp,
    flags_reach_code_that_others_reach_too, flags_from_both_sides_of_a_branch,
    returns_with_many_kinds_of_flags,
}

for_llvmpipe! { flags_from_both_sides_of_a_branch }

/// Flag-setting instructions on X1 and X2 (and into X1, which is an operand).
fn setters() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("subs x", asm!(; subs x1, x1, x2)),
        ("subs w", asm!(; subs w1, w1, w2)),
        ("subs x imm", asm!(; subs x1, x1, 1)),
        ("subs w imm", asm!(; subs w1, w1, 1)),
        ("cmp x", asm!(; cmp x1, x2)),
        ("cmp w", asm!(; cmp w1, w2)),
        ("cmp x 0", asm!(; cmp x1, 0)),
        ("cmp w big", asm!(; cmp w1, 4095, lsl 12)),
        ("negs x", asm!(; negs x1, x2)),
        ("adds x", asm!(; adds x1, x1, x2)),
        ("adds w", asm!(; adds w1, w1, w2)),
        ("adds x imm", asm!(; adds x1, x1, 1)),
        ("adds w imm", asm!(; adds w1, w1, 1)),
        ("adds x 0", asm!(; adds x1, x1, 0)),
        ("adds x self", asm!(; adds x1, x1, x1)),
        ("subs x self", asm!(; subs x1, x1, x1)),
        ("cmn x", asm!(; cmn x1, x2)),
        ("cmn w", asm!(; cmn w1, 4095)),
        ("ands x", asm!(; ands x1, x1, x2)),
        ("ands w", asm!(; ands w1, w1, w2)),
        ("tst x", asm!(; tst x1, x2)),
        ("tst w", asm!(; tst w1, 0x80000000)),
        ("bics x", asm!(; bics x1, x1, x2)),
        ("adcs x", asm!(; adcs x1, x1, x2)),
        ("sbcs w", asm!(; sbcs w1, w1, w2)),
        ("ccmp x", asm!(; ccmp x1, x2, 5, lt)),
        ("ccmp w", asm!(; ccmp w1, 7, 10, hi)),
        ("ccmn x", asm!(; ccmn x1, x2, 3, vc)),
        ("cmp ext", asm!(; cmp x1, w2, sxtb 2)),
        ("cmp shift", asm!(; cmp x1, x2, asr 3)),
        ("cmp sp", asm!(; cmp sp, 16)),
    ]
}

/// Ways to leave, of which each is the first thing after the flags are set.
fn exits() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("fault", asm!(; ldr x9, [x10])),
        ("store fault", asm!(; str x9, [x10])),
        ("svc", asm!(; svc 0)),
        ("brk", asm!(; brk 0)),
        ("undefined", asm!(; udf 1)),
        ("br", asm!(; br x11)),
        ("blr", asm!(; blr x11)),
        ("ret", asm!(; ret x11)),
        ("fetch", asm!(; br x10)),
        ("far branch", Vec::new()),
    ]
}

/// Beyond any region: code that reads all flags.
const FAR: u64 = 0x4000;

/// Interesting operands.
fn operands() -> Vec<(u64, u64)> {
    let edges = [0, 1, 0x7fff_ffff, 0x8000_0000, u64::MAX >> 1, 1 << 63, u64::MAX];
    let pairs = edges.into_iter().flat_map(|a| edges.into_iter().map(move |b| (a, b)));
    let random: Vec<u64> = random_numbers(1).take(8).collect();
    pairs.step_by(3).chain(random.chunks(2).map(|pair| (pair[0], pair[1]))).collect()
}

fn load(subject: Subject, code: &[u8]) -> Machine {
    let mut machine = subject.machine(code);
    machine
        .load(FAR, &asm!(; cset x20, mi ; cset x21, eq ; cset x22, cs ; cset x23, vs ; hlt 0))
        .unwrap();
    machine
}

fn prepare(machine: &mut Machine, (a, b): (u64, u64)) {
    machine.reset(0).unwrap();
    for (n, value) in [(1, a), (2, b), (10, MEMORY), (11, FAR), (28, DATA)] {
        set_x(machine, 0, n, value);
    }
    machine.set_register(0, Reg::Nzcv, 0x5000_0000).unwrap();
}

/// Runs both with the limit and compares.
fn compare(machines: &mut [Machine; 2], operands: (u64, u64), limit: u64, context: &str) {
    for machine in machines.iter_mut() {
        prepare(machine, operands);
        machine.run(limit).unwrap();
    }
    let [tested, reference] = [0, 1].map(|i| Snapshot::of(&machines[i], 0));
    assert_eq!(tested, reference, "{context} of {operands:x?}, limit {limit}");
}

fn flags_leave_through_every_exit(subject: Subject) {
    for (setter, set) in setters() {
        for (exit, leave) in exits() {
            // Both operands are overwritten before the exit.
            let spoil = asm!(; movz x1, 77 ; mov x2, x1);
            let mut code = [set.clone(), spoil].concat();
            let far = exit == "far branch";
            code.extend(if far { branch(CODE + code.len() as u64, FAR) } else { leave });
            code.extend(asm!(; hlt 0));
            let mut machines = [subject, Subject::EVAL].map(|subject| load(subject, &code));
            let context = format!("{setter}, {exit}");
            for operands in operands().into_iter().step_by(7) {
                compare(&mut machines, operands, 100, &context);
            }
            for limit in 1..4 {
                compare(&mut machines, (5, 9), limit, &context);
            }
        }
    }
}

/// `b to`, at `from`.
fn branch(from: u64, to: u64) -> Vec<u8> {
    let offset = (to.wrapping_sub(from) / 4) as u32 & 0x03ff_ffff;
    (0x1400_0000 | offset).to_le_bytes().to_vec()
}

fn every_condition_after_every_setter(subject: Subject) {
    for (setter, set) in setters() {
        let mut code = set.clone();
        for condition in 0..16u32 {
            // csinc x3, x3, x3, condition ; lsl x3, x3, 1 ; b.cond .+8 ; orr x4, x4, (1 << condition)
            code.extend((0x9a83_0463 | condition << 12).to_le_bytes());
            code.extend(asm!(; lsl x3, x3, 1));
            code.extend((0x5400_0040 | condition).to_le_bytes());
            code.extend(asm!(; orr x4, x4, 1u64 << condition));
        }
        code.extend(asm!(; mrs x5, NZCV ; hlt 0));
        let mut machines = [subject, Subject::EVAL].map(|subject| load(subject, &code));
        for operands in operands() {
            compare(&mut machines, operands, 100, setter);
        }
    }
}

fn chains_of_ccmp(subject: Subject) {
    let code = asm!(
        ; cmp x1, x2 ; ccmp x1, 4, 8, ne ; ccmn w2, w1, 2, hs ; ccmp w1, w2, 4, gt ; cset x3, le
        ; tst x1, x2 ; ccmp x2, x1, 1, eq ; ccmp x1, 31, 15, pl ; cset x4, lt ; csinv x5, x1, x2, hi
        ; adds w6, w1, w2 ; ccmn x1, 1, 0, vs ; csneg x7, x1, x2, ls
        ; mov x1, 3 ; ccmp x1, 3, 0, al ; b.ne >out ; mov x8, 1 ; out: ; hlt 0);
    let mut machines = [subject, Subject::EVAL].map(|subject| load(subject, &code));
    for operands in operands() {
        for limit in [3, 7, 12, 100] {
            compare(&mut machines, operands, limit, "ccmp chain");
        }
    }
}

/// Many ways into one block, each with flags of another operation.
fn flags_reach_code_that_others_reach_too(subject: Subject) {
    let code = asm!(
        ; mov x0, 8
        ; again: ; sub x0, x0, 1
        ; cmp x0, 7 ; b.eq >join ; cmn w0, w2 ; cbz x0, >join ; tst x0, 3 ; tbnz x0, 2, >join
        ; adds x3, x1, x2 ; tbnz x0, 1, >join ; subs w4, w1, w2 ; tbz x0, 0, >join ; ands x5, x1, 0xff
        ; join: ; mrs x6, NZCV ; eor x7, x6, x7, ror 3 ; cset x8, hi ; add x7, x7, x8
        ; mov x3, x7 ; cbnz x0, <again ; hlt 0);
    let mut machines = [subject, Subject::EVAL].map(|subject| load(subject, &code));
    for operands in operands() {
        compare(&mut machines, operands, 1000, "many ways in");
    }
    for limit in 1..60 {
        compare(&mut machines, (1 << 63, 3), limit, "many ways in");
    }
}

/// Both targets of a branch have been reached with other kinds of flags before, so that the
/// translator has something to do on the way to either.
fn flags_from_both_sides_of_a_branch(subject: Subject) {
    let code = asm!(
        ; cmp x1, x2 ; tbnz x0, 0, >left ; tbnz x0, 1, >right
        ; cmp w1, w2 ; tbnz x0, 2, >left ; tbnz x0, 3, >right
        ; cmp x1, 3 ; tbnz x0, 4, >left ; tbnz x0, 5, >right
        ; tst x1, x2 ; tbnz x0, 6, >left ; tbnz x0, 7, >right
        ; cmn w1, w2 ; tbnz x0, 8, >left
        ; right: ; mrs x7, NZCV ; hlt 3
        ; left: ; mrs x6, NZCV ; hlt 2);
    let mut machines = [subject, Subject::EVAL].map(|subject| load(subject, &code));
    for operands in operands().into_iter().step_by(3) {
        for x0 in (0..9).map(|bit| 1 << bit).chain([0]) {
            // More often than the engine steps through code before it translates it.
            for _ in 0..5 {
                for machine in &mut machines {
                    prepare(machine, operands);
                    set_x(machine, 0, 0, x0);
                    machine.run(100).unwrap();
                }
                let [tested, reference] = [0, 1].map(|i| Snapshot::of(&machines[i], 0));
                assert_eq!(tested, reference, "{operands:x?}, x0 = {x0}");
            }
        }
    }
}

/// A function sets flags in many ways before it returns to one of several callers.
fn returns_with_many_kinds_of_flags(subject: Subject) {
    let code = asm!(
        ; mov x9, 12 ; again: ; sub x9, x9, 1
        ; cmp x1, x2 ; bl >function ; mrs x3, NZCV ; eor x8, x8, x3, ror 1
        ; tst w1, w2 ; bl >function ; mrs x3, NZCV ; eor x8, x8, x3, ror 2
        ; cmn x1, 5 ; bl >function ; mrs x3, NZCV ; eor x8, x8, x3, ror 3
        ; subs w4, w2, w1 ; bl >function ; mrs x3, NZCV ; eor x8, x8, x3, ror 4
        ; adds x4, x1, x2 ; bl >function ; mrs x3, NZCV ; eor x8, x8, x3, ror 5
        ; cbnz x9, <again ; hlt 0
        ; function: ; tbnz x9, 0, >out ; tbz x9, 1, >other ; ands x5, x1, x9 ; ret
        ; other: ; cmp w9, 4 ; mov x9, x9 ; ret ; out: ; ret);
    let mut machines = [subject, Subject::EVAL].map(|subject| load(subject, &code));
    for operands in operands().into_iter().step_by(4) {
        compare(&mut machines, operands, 10_000, "returns");
    }
}
