//! Translated code stays within its budget, whatever guests do, and results do not depend on it.

use kvrm::{Lanes, Machine, MemoryModel, Reg};

use crate::support::{CODE, HALT, Subject, load, run_to_halt, set_x, word, x};

/// Bytes for code: much less than what these programs would take.
const BUDGET: u64 = 64 << 10;

/// A few sheets of records may be made before they are counted.
const NEARLY: u64 = BUDGET + (16 << 10);

const MODELS: [MemoryModel; 2] = [MemoryModel::Private, MemoryModel::Shared];

fn machine(subject: Subject, model: MemoryModel, lanes: usize, code: &[u8]) -> Machine {
    let builder = subject.builder().lanes(lanes).threads(2).model(model);
    load(builder.memory(4 << 20).code_memory(BUDGET), code)
}

/// The budget was not exceeded.
#[track_caller]
fn assert_within_budget(machine: &Machine) {
    let code = machine.code_use();
    assert!(code.most <= NEARLY, "{code:?}");
    assert!(code.bytes <= code.most, "{code:?}");
}

/// Nor was it, but it was spent several times.
#[track_caller]
fn assert_evicted(machine: &Machine) {
    assert_within_budget(machine);
    let code = machine.code_use();
    assert!(code.evictions > 2, "{code:?}");
}

/// A program that copies itself a little further and goes on there, for ever.
#[test]
fn a_guest_that_makes_fresh_code() {
    let code = asm!(
        ; start: ; adr x1, <start ; add x2, x1, 52 ; mov x3, 13
        ; copy: ; ldr w4, [x1], 4 ; str w4, [x2], 4 ; subs x3, x3, 1 ; b.ne <copy
        ; add x0, x0, 1 ; cmp x0, x26 ; b.eq >end ; adr x1, >after ; br x1
        ; end: ; hlt 0 ; after: );
    for model in MODELS {
        let mut machine = machine(Subject::TRANSLATING, model, 1, &code);
        set_x(&mut machine, 0, 26, 300);
        run_to_halt(&mut machine);
        assert_eq!(x(&machine, 0, 0), 300);
        assert_evicted(&machine);
    }
}

/// A function that is written anew for every call, at one place: it is soon interpreted, and nothing piles up.
#[test]
fn a_guest_that_rewrites_its_code() {
    let code = asm!(
        ; mov x5, 1500 ; again: ; stp w6, w8, [x28] ; blr x28 ; add x9, x9, x0 ; add w6, w6, 32
        ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    for model in MODELS {
        let mut machine = machine(Subject::TRANSLATING, model, 1, &code);
        set_x(&mut machine, 0, 6, word(&asm!(; mov x0, 0)).into());
        set_x(&mut machine, 0, 8, word(&asm!(; ret)).into());
        run_to_halt(&mut machine);
        assert_eq!(x(&machine, 0, 9), (0..1500).sum());
        assert_within_budget(&machine);
    }
}

/// Lanes go through far more code than there is room for, on two threads.
#[test]
fn a_large_slide() {
    const LEN: u64 = 128 << 10;
    // The product of everything so far, so that nothing can be left out.
    let mut code = asm!(; add x0, x0, 1 ; mul x1, x1, x0).repeat(LEN as usize / 8);
    code.extend(asm!(; hlt 0));
    for model in MODELS {
        let mut machine = machine(Subject::TRANSLATING, model, 5, &code);
        for lane in 0..5 {
            machine.set_pc(lane, CODE + lane as u64 * 4096).unwrap();
        }
        run_to_halt(&mut machine);
        for lane in 0..5 {
            assert_eq!(x(&machine, lane, 0), (LEN - lane as u64 * 4096) / 8, "lane {lane}");
        }
        assert_evicted(&machine);
    }
}

/// What is known of code that is not worth translating counts, too.
#[test]
fn code_that_is_only_interpreted() {
    const LEN: u64 = 128 << 10;
    let mut code = asm!(; b >next ; nop ; next: ).repeat(LEN as usize / 8);
    code.extend(asm!(; hlt 0));
    for model in MODELS {
        let mut machine = machine(Subject::CPU, model, 1, &code);
        run_to_halt(&mut machine);
        assert_eq!(machine.cycles(0).unwrap(), LEN / 8);
        assert_evicted(&machine);
    }
}

/// Lanes that change their code, each in its own way, stop and are run again: what stopped lanes have is given back.
#[test]
fn lanes_with_code_of_their_own() {
    let code = asm!(
        ; str w6, [x7] ; mov x5, 20 ; again: ; mov x0, 1 ; add x1, x1, x0 ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    let mut machine = machine(Subject::TRANSLATING, MemoryModel::Private, 200, &code);
    for round in 1..=3 {
        machine.set_pc(Lanes::All, CODE).unwrap();
        machine.set_register(Lanes::All, Reg::X(7), CODE + 8).unwrap();
        for lane in 0..200 {
            let patch = word(&asm!(; mov x0, 0)) | (lane as u32) << 5;
            set_x(&mut machine, lane, 6, patch.into());
        }
        run_to_halt(&mut machine);
        for lane in 0..200 {
            assert_eq!(x(&machine, lane, 1), round * 20 * lane as u64, "lane {lane}");
        }
    }
    assert_evicted(&machine);
}

/// Nothing is forgotten as long as there is room, and a machine that is loaded anew begins with nothing.
#[test]
fn small_programs_stay_translated() {
    let code = asm!(; mov x5, 100 ; again: ; add x0, x0, 1 ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    let mut machine = Subject::TRANSLATING.machine(&code);
    assert_eq!(machine.code_use().bytes, 0);
    run_to_halt(&mut machine);
    let once = machine.code_use();
    assert!(once.bytes > 0 && once.evictions == 0, "{once:?}");
    for _ in 0..3 {
        machine.set_pc(0, CODE).unwrap();
        run_to_halt(&mut machine);
        assert_eq!(machine.code_use(), once);
    }
    machine.load(CODE, &code).unwrap();
    assert_eq!((machine.code_use().bytes, machine.code_use().evictions), (0, 0));
    let mut other = Subject::EVAL.machine(&code);
    assert_eq!((other.stop(0).unwrap(), other.code_use().most), (None, 0));
    run_to_halt(&mut other);
    assert_eq!((other.stop(0).unwrap(), other.code_use().most), (Some(HALT), 0));
}

/// Runs that end within a region need the region and its tail, which may not fit together.
#[test]
fn a_budget_for_hardly_anything() {
    // A region of one block, in which runs end everywhere.
    let mut code =
        asm!(; add x0, x0, 1 ; mul x1, x1, x0 ; ldr x2, [x28] ; str x1, [x28]).repeat(60);
    code.extend(asm!(; hlt 0));
    for model in MODELS {
        let builder = Subject::TRANSLATING.builder().model(model).code_memory(4 << 10);
        let mut machine = load(builder, &code);
        let mut reference = load(Subject::EVAL.builder().model(model), &code);
        for limit in [1, 3, 50, 7, 100, 20, 1000] {
            machine.run(limit).unwrap();
            reference.run(limit).unwrap();
            assert_eq!(machine.registers(0).unwrap(), reference.registers(0).unwrap());
        }
        assert_eq!(machine.stop(0).unwrap(), reference.stop(0).unwrap());
    }
}
