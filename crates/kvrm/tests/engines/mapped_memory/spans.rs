//! Several accesses near each other, which translations check together: each faults where it is, after all before it.

use super::*;
use crate::support::HALT;

for_mapped_engines! { groups_at_the_ends_of_pages, groups_that_write_code, groups_near_code }

for_evicting_engines! { groups_at_the_ends_of_pages, groups_that_write_code, groups_near_code }

/// Two pages that accesses go to.
const FIRST: u64 = 0x10_0000;
const SECOND: u64 = FIRST + PAGE;
/// Where all accesses succeed.
const SAFE: u64 = 0x20_0000;
/// How often code is run to be hot.
const OFTEN: u64 = 17_000;

/// Loops that access memory around X1, which X10 holds, and count in X9 how far they got.
fn groups() -> [(&'static str, Vec<u8>); 6] {
    [
        (
            "fields",
            asm!(; ->up: ; mov x1, x10 ; ldr x2, [x1, 8] ; add x9, x9, 1 ; str x9, [x1, 16] ; add x9, x9, 1
                ; ldp x5, x6, [x1, 32] ; add x9, x9, 1 ; stp x9, x9, [x1, 48] ; add x9, x9, 1 ; ldur x7, [x1, -24]
                ; add x9, x9, 1 ; ldrb w8, [x1, 63] ; subs x4, x4, 1 ; b.ne ->up ; hlt 0),
        ),
        (
            "reads",
            asm!(; ->up: ; mov x1, x10 ; ldr w2, [x1] ; add x9, x9, 1 ; ldr x3, [x1, 56] ; add x9, x9, 1
                ; ldr q5, [x1, 32] ; add x9, x9, 1 ; ldur x7, [x1, -3] ; subs x4, x4, 1 ; b.ne ->up ; hlt 0),
        ),
        (
            "moving",
            asm!(; ->up: ; mov x1, x10 ; ldr x2, [x1], 8 ; add x9, x9, 1 ; str x9, [x1, 8]! ; add x9, x9, 1
                ; ldrb w3, [x1, -1]! ; stp x9, x9, [x1], 16 ; add x9, x9, 1 ; ldr x5, [x1, -32]! ; add x9, x9, 1
                ; sub x1, x1, 64 ; str w9, [x1] ; subs x4, x4, 1 ; b.ne ->up ; hlt 0),
        ),
        (
            "far",
            asm!(; ->up: ; mov x1, x10 ; ldr x2, [x1] ; add x9, x9, 1 ; str x9, [x1, 496] ; add x9, x9, 1
                ; ldr x3, [x1, 256] ; add x9, x9, 1 ; str q9, [x1, 320] ; add x9, x9, 1 ; ldr x5, [x1, 1024]
                ; subs x4, x4, 1 ; b.ne ->up ; hlt 0),
        ),
        (
            "written later",
            asm!(; ->up: ; mov x1, x10 ; ldr x2, [x1] ; add x9, x9, 1 ; ldr x3, [x1, 24] ; tbz x4, 0, ->even
                ; add x9, x9, 1 ; str x9, [x1, 8] ; ->even: ; add x9, x9, 1 ; str x9, [x1, 16] ; ldr x5, [x1, 8]
                ; subs x4, x4, 1 ; b.ne ->up ; hlt 0),
        ),
        (
            "blocks",
            asm!(; ->up: ; mov x1, x10 ; ldr x2, [x1] ; add x9, x9, 1 ; str x9, [x1, 24] ; tbz x4, 0, ->even
                ; add x9, x9, 1 ; str x9, [x1, 8] ; ldr x6, [x1, 40] ; ->even: ; add x9, x9, 1 ; ldr x3, [x1, 16]
                ; str x9, [x1, 32] ; subs x4, x4, 1 ; b.ne ->up ; hlt 0),
        ),
    ]
}

/// A machine and the evaluator, which must do the same.
struct Pair {
    guests: [Guest; 2],
}

impl Pair {
    fn new(subject: Subject, code: &[u8]) -> Pair {
        let guests = [subject, Subject::EVAL].map(|subject| Guest::new(subject, code));
        let mut pair = Pair { guests };
        pair.both(|guest| guest.protect(SAFE - PAGE, 3 * PAGE, READ | WRITE));
        pair
    }

    fn both(&mut self, f: impl Fn(&mut Guest)) {
        self.guests.iter_mut().for_each(f);
    }

    /// Makes the code hot, on the machine: the evaluator knows no difference.
    fn heat(&mut self, base: u64) {
        let [guest, _] = &mut self.guests;
        guest.set_x(10, base);
        guest.set_x(4, OFTEN);
        assert_eq!(guest.run_at(CODE), HALT);
    }

    /// Runs a few rounds, and compares everything, memory between two addresses included.
    fn compare(&mut self, rounds: u64, base: u64, memory: [u64; 2], text: &str) {
        let [guest, reference] = self.guests.each_mut().map(|guest| {
            (0..10).for_each(|number| guest.set_x(number, 0));
            guest.set_x(10, base);
            guest.set_x(4, rounds);
            let before = guest.status().count;
            guest.set_pc(CODE);
            let stop = guest.run_for(100);
            let mut bytes = vec![0; (memory[1] - memory[0]) as usize];
            guest.engine.read_memory(0, memory[0], &mut bytes).unwrap();
            let x: [u64; 10] = std::array::from_fn(|number| guest.x(number));
            (stop, guest.status().count - before, guest.pc(), x, bytes)
        });
        assert!(guest == reference, "{text}: {:x?}, not {:x?}", short(&guest), short(&reference));
    }
}

/// What is worth printing.
fn short<A: Copy, B>(
    (stop, count, pc, x, _): &(A, u64, u64, [u64; 10], B),
) -> (A, u64, u64, [u64; 10]) {
    (*stop, *count, *pc, *x)
}

fn groups_at_the_ends_of_pages(subject: Subject) {
    let both = READ | WRITE;
    let all = [[both, NONE], [both, READ], [READ, both], [NONE, both], [both, WRITE], [both, both]];
    for (name, code) in groups() {
        let mut pair = Pair::new(subject, &code);
        pair.heat(SAFE);
        for pages in all {
            pair.both(|guest| {
                guest.protect(FIRST, PAGE, pages[0]);
                guest.protect(SECOND, PAGE, pages[1]);
            });
            let near = (SECOND - 72..SECOND + 80).step_by(8);
            let others =
                [FIRST, FIRST + 24, SECOND - 513, SECOND - 504, SECOND - 320, SECOND + PAGE - 64];
            for base in near.chain(others).chain([SECOND - 20, SECOND - 63, SECOND + PAGE - 505]) {
                let text = format!("{name} at {base:#x}, {pages:?}");
                pair.compare(3, base, [FIRST, SECOND + PAGE], &text);
            }
        }
    }
}

/// Stores to data and, with the same check, to the words behind them.
fn groups_that_write_code(subject: Subject) {
    let code = asm!(; ->up: ; mov x1, x10 ; str w9, [x1] ; add x9, x9, 1 ; str w11, [x1, 32] ; add x9, x9, 1
        ; add x9, x9, 1 ; ldr w2, [x1, 32] ; add x9, x9, 1 ; str w9, [x1, 8] ; add x9, x9, 1 ; subs x4, x4, 1
        ; b.ne ->up ; hlt 0);
    let twice = asm!(; add x9, x9, 2);
    let len = code.len() as u64;
    for base in (CODE - 40..CODE + len).step_by(4) {
        let mut pair = Pair::new(subject, &code);
        let word = u32::from_le_bytes(twice[..].try_into().unwrap());
        pair.both(|guest| {
            guest.protect(CODE - PAGE, 2 * PAGE, READ | WRITE | EXECUTE);
            guest.set_x(11, word.into());
        });
        if base % 16 == 0 {
            pair.heat(SAFE);
        }
        for _ in 0..2 {
            pair.compare(3, base, [CODE - PAGE, CODE + PAGE], &format!("code at {base:#x}"));
        }
    }
}

/// Data between two pieces of code: what is checked together is in open granules and in closed ones.
fn groups_near_code(subject: Subject) {
    for (name, code) in groups() {
        let mut pair = Pair::new(subject, &code);
        // What is executed there is a granule of code.
        let target = FIRST + 1024;
        pair.both(|guest| {
            guest.write(target, &asm!(; hlt 0));
            guest.protect(FIRST, 2 * PAGE, READ | WRITE | EXECUTE);
            assert_eq!(guest.run_at(target), HALT);
        });
        pair.heat(SAFE);
        for base in (target - 600..target + 100).step_by(24) {
            // Anew, as the word may have been written.
            pair.both(|guest| {
                guest.write(target, &asm!(; hlt 0));
                assert_eq!(guest.run_at(target), HALT);
            });
            pair.compare(2, base, [FIRST, SECOND], &format!("{name} at {base:#x}"));
        }
    }
}
