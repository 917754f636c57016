//! Code: where it may be executed, and what becomes of it when pages change.

use kvrm::{FaultKind, Stop};

use super::*;
use crate::support::HALT;

for_mapped_engines! {
    only_executable_pages_are_executed, hot_code_leaves_executable_pages, code_is_written_and_executed_in_turns,
    guests_write_code, discarded_code_is_gone, code_may_be_anywhere, hot_code_survives_other_changes,
    loops_cross_blocks_of_code,
}

for_mapped_devices! {
    only_executable_pages_are_executed, hot_code_leaves_executable_pages, code_is_written_and_executed_in_turns,
    guests_write_code, discarded_code_is_gone, code_may_be_anywhere, hot_code_survives_other_changes,
    loops_cross_blocks_of_code,
}

for_evicting_engines! {
    only_executable_pages_are_executed, hot_code_leaves_executable_pages, code_is_written_and_executed_in_turns,
    guests_write_code, discarded_code_is_gone, code_may_be_anywhere, hot_code_survives_other_changes,
    loops_cross_blocks_of_code,
}

const FETCH: FaultKind = FaultKind::Fetch;

/// The page behind that of the code.
const NEXT: u64 = CODE + PAGE;

fn only_executable_pages_are_executed(subject: Subject) {
    for (permissions, runs) in
        [(NONE, false), (READ | WRITE, false), (EXECUTE, true), (READ | EXECUTE, true)]
    {
        let mut guest = Guest::new(subject, &asm!(; hlt 0));
        guest.protect(CODE, PAGE, permissions);
        let fault = Stop::Fault { kind: FETCH, address: CODE };
        assert_eq!(guest.run(), if runs { HALT } else { fault }, "{permissions:?}");
        assert_eq!(guest.status().count, 0);
    }
}

/// Code whose first instruction is run in a loop, until X4 is zero, and then goes to the next page somehow.
fn ways_out() -> [(&'static str, Vec<u8>); 3] {
    [
        ("jump", asm!(; ->up: ; subs x4, x4, 1 ; b.ne ->up ; b 0xff8)),
        ("branch", asm!(; ->up: ; subs x4, x4, 1 ; b.eq 0xffc ; b ->up)),
        ("computed", asm!(; ->up: ; subs x4, x4, 1 ; b.ne ->up ; br x5)),
    ]
}

fn hot_code_leaves_executable_pages(subject: Subject) {
    for (name, code) in ways_out() {
        let mut guest = Guest::new(subject, &code);
        guest.set_x(5, NEXT);
        let last = if name == "branch" { 3 * 20_000 - 1 } else { 2 * 20_000 + 1 };
        for round in 1..=2 {
            guest.set_x(4, 20_000);
            let stop = guest.run_at(CODE);
            assert_eq!(stop, Stop::Fault { kind: FETCH, address: NEXT }, "{name}");
            assert_eq!((guest.pc(), guest.status().count), (NEXT, round * last), "{name}");
        }
        guest.load(NEXT, &asm!(; hlt 0));
        guest.set_x(4, 1);
        assert_eq!(guest.run_at(CODE), HALT, "{name}");
        guest.protect(NEXT, PAGE, READ);
        guest.set_x(4, 1);
        assert_eq!(guest.run_at(CODE), Stop::Fault { kind: FETCH, address: NEXT }, "{name}");
    }
    // What follows the last instruction of a page is in the next page.
    let mut guest = Guest::new(subject, &asm!(; nop));
    guest.write(NEXT - 4, &asm!(; nop));
    assert_eq!(guest.run_at(NEXT - 4), Stop::Fault { kind: FETCH, address: NEXT });
    assert_eq!((guest.pc(), guest.status().count), (NEXT, 1));
}

/// A function that adds a number to X0 so many times as X1 says.
fn adder(number: u32) -> Vec<u8> {
    asm!(; ->up: ; add x0, x0, number ; subs x1, x1, 1 ; b.ne ->up ; hlt 0)
}

fn code_is_written_and_executed_in_turns(subject: Subject) {
    let mut guest = Guest::empty(subject);
    for number in 1..6 {
        guest.protect(CODE, PAGE, READ | WRITE);
        guest.set_x(0, 0);
        let fault = Stop::Fault { kind: FETCH, address: CODE };
        assert_eq!(guest.run_at(CODE), fault);
        guest.write(CODE, &adder(number));
        guest.protect(CODE, PAGE, READ | EXECUTE);
        guest.set_x(1, 20_000);
        assert_eq!(guest.run_at(CODE), HALT);
        assert_eq!(guest.x(0), 20_000 * u64::from(number));
    }
}

fn guests_write_code(subject: Subject) {
    // Writes the words of X2 and X3 to X1, and runs them.
    let code = asm!(; ->up: ; stp w2, w3, [x1] ; blr x1 ; subs x4, x4, 1 ; b.ne ->up ; hlt 0);
    let words = asm!(; add x0, x0, 3 ; ret);
    let mut guest = Guest::new(subject, &code);
    let at = 0x7_f000;
    guest.protect(at, PAGE, READ | WRITE | EXECUTE);
    guest.set_x(1, at + 8);
    guest.set_x(4, 1000);
    for (n, word) in words.chunks_exact(4).enumerate() {
        guest.set_x(2 + n, u32::from_le_bytes(word.try_into().unwrap()).into());
    }
    assert_eq!(guest.run(), HALT);
    assert_eq!(guest.x(0), 3000);
    let sub = asm!(; sub x0, x0, 1);
    guest.set_x(2, u32::from_le_bytes(sub[..4].try_into().unwrap()).into());
    guest.set_x(4, 1000);
    assert_eq!(guest.run_at(CODE), HALT);
    assert_eq!(guest.x(0), 2000);
    guest.protect(at, PAGE, READ | EXECUTE);
    guest.set_x(4, 1);
    let fault = Stop::Fault { kind: FaultKind::Write, address: at + 8 };
    assert_eq!(guest.run_at(CODE), fault);
}

fn discarded_code_is_gone(subject: Subject) {
    let mut guest = Guest::new(subject, &adder(1));
    guest.set_x(1, 20_000);
    assert_eq!(guest.run(), HALT);
    guest.write(NEXT, &[1; 64]);
    guest.engine.discard(0, CODE, 2 * PAGE).unwrap();
    assert_eq!(guest.run_at(CODE), Stop::ZeroWord, "pages keep their permissions");
    assert_eq!((guest.read(CODE), guest.read(NEXT)), (0, 0));
    guest.write(CODE, &adder(2));
    guest.set_x(0, 0);
    guest.set_x(1, 20_000);
    assert_eq!(guest.run_at(CODE), HALT);
    assert_eq!(guest.x(0), 40_000);
}

/// Engines on devices have records of code in blocks.
fn loops_cross_blocks_of_code(subject: Subject) {
    let border = 3 * kvrm_engine::code::BLOCK_PAGES * PAGE;
    let code = asm!(
        ; ->up: ; add x0, x0, 3 ; bl ->add ; subs x1, x1, 1 ; b.ne ->up ; hlt 0
        ; ->add: ; cbz x2, ->end ; add x0, x0, 4 ; ->end: ; ret
    );
    let mut guest = Guest::empty(subject);
    for (round, before) in (1..).zip(0..8) {
        guest.load(border - 4 * before, &code);
        guest.change(|state| (state.x[0], state.x[1], state.x[2]) = (0, 2000, 1));
        assert_eq!(guest.run_at(border - 4 * before), HALT);
        assert_eq!((guest.x(0), guest.status().count), (14_000, round * 14_000), "{before}");
    }
}

fn code_may_be_anywhere(subject: Subject) {
    let mut guest = Guest::empty(subject);
    let (code, data) = (SIZE - 7 * PAGE, SIZE - PAGE);
    guest.protect(0, SIZE - PAGE, NONE);
    guest.load(code, &asm!(; ->up: ; ldr x2, [x1] ; add x2, x2, 1 ; str x2, [x1] ; subs x4, x4, 1 ; b.ne ->up ; br x5));
    guest.load(SIZE - 3 * PAGE, &asm!(; hlt 0));
    guest.protect(data, PAGE, READ | WRITE);
    guest.set_x(1, SIZE - 8);
    guest.set_x(4, 20_000);
    guest.set_x(5, SIZE - 3 * PAGE);
    assert_eq!(guest.run_at(code), HALT);
    assert_eq!((guest.read(SIZE - 8), guest.status().count), (20_000, 100_001));
    guest.set_x(1, SIZE - 4);
    let fault = Stop::Fault { kind: FaultKind::Read, address: SIZE };
    assert_eq!(guest.run_at(code), fault);
    guest.engine.discard(0, 0, SIZE).unwrap();
    guest.protect(0, SIZE, NONE);
    assert_eq!(guest.run_at(code), Stop::Fault { kind: FETCH, address: code });
}

fn hot_code_survives_other_changes(subject: Subject) {
    let mut guest = Guest::new(subject, &adder(1));
    for round in 1..=3 {
        guest.set_x(1, 20_000);
        assert_eq!(guest.run_at(CODE), HALT);
        assert_eq!(guest.x(0), round * 20_000);
        // It loses a permission that it does not need, or gets one.
        guest.protect(CODE, PAGE, [EXECUTE, READ | EXECUTE][round as usize % 2]);
        guest.protect(NEXT, PAGE, READ | EXECUTE);
    }
}
