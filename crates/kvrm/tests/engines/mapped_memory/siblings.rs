//! Machines that begin with the same memory, and have translations in common.

use kvrm::{FaultKind, Stop};

use super::*;
use crate::support::HALT;

for_mapped_engines! {
    siblings_keep_their_changes_to_themselves, resets_go_back_to_what_is_frozen, siblings_may_have_other_code,
    siblings_may_lack_code, siblings_run_on_threads, watched_bytes_are_noted_when_first_accessed,
}

for_evicting_engines! {
    siblings_keep_their_changes_to_themselves, resets_go_back_to_what_is_frozen, siblings_may_have_other_code,
    siblings_may_lack_code, siblings_run_on_threads,
}

const DATA: u64 = 0x40_0000_0000;
/// Where other code is, apart from the first.
const FAR: u64 = CODE + 16 * PAGE;

impl Guest {
    fn freeze(&mut self) {
        self.engine.freeze_memory(0).unwrap();
    }

    fn sibling(&self) -> Guest {
        Guest { engine: self.engine.sibling(0).unwrap() }
    }

    /// Runs a function at `CODE` that returns x0.
    fn call(&mut self, x0: u64) -> u64 {
        self.set_x(0, x0);
        assert_eq!(self.run_at(CODE), HALT);
        self.x(0)
    }
}

/// Adds what is at `DATA` to x0 twenty thousand times, and counts there how often it was called.
fn counting(subject: Subject) -> Guest {
    let code = asm!(
        ; movz x1, 0x40, lsl 32 ; ldr x2, [x1] ; add x2, x2, 1 ; str x2, [x1] ; movz x3, 20000
        ; ->up: ; add x0, x0, x2 ; subs x3, x3, 1 ; b.ne ->up ; hlt 0);
    let mut guest = Guest::new(subject, &code);
    guest.protect(DATA, PAGE, READ | WRITE);
    guest
}

fn siblings_keep_their_changes_to_themselves(subject: Subject) {
    let mut first = counting(subject);
    assert_eq!(first.call(5), 20_005);
    first.freeze();
    let mut others = [first.sibling(), first.sibling()];
    assert_eq!(first.call(0), 40_000);
    assert_eq!(others[0].call(0), 40_000);
    assert_eq!(others[0].call(0), 60_000);
    assert_eq!(others[1].call(1), 40_001);
    let mut copy = first.sibling();
    copy.engine.copy_memory(0, others[0].engine.mapped_memory(0).unwrap()).unwrap();
    assert_eq!((copy.call(0), copy.read(DATA), others[0].read(DATA)), (80_000, 4, 3));
    others[0].freeze();
    assert_eq!((others[0].sibling().call(0), first.sibling().call(0)), (80_000, 40_000));
}

fn resets_go_back_to_what_is_frozen(subject: Subject) {
    let mut guest = counting(subject);
    guest.freeze();
    for _ in 0..3 {
        assert_eq!((guest.call(0), guest.call(0)), (20_000, 40_000));
        guest.load(CODE, &asm!(; movz x0, 9 ; hlt 0));
        assert_eq!(guest.call(0), 9);
        guest.protect(DATA, PAGE, NONE);
        guest.engine.reset(0..1).unwrap();
        assert_eq!(guest.x(1), 0);
    }
}

fn siblings_may_have_other_code(subject: Subject) {
    let mut first = counting(subject);
    first.call(0);
    first.freeze();
    let mut others: Vec<Guest> = (0..12).map(|_| first.sibling()).collect();
    for round in 0..3 {
        for (number, other) in (0..).zip(&mut others) {
            let own = number % 4 * 10 + round;
            other.protect(CODE, PAGE, READ | WRITE);
            let code = asm!(
                ; movz x3, 20000 ; ->up: ; add x0, x0, own as u32 ; subs x3, x3, 1 ; b.ne ->up
                ; hlt 0);
            other.load(CODE, &code);
            assert_eq!(other.call(7), 20_000 * own + 7, "{number} in round {round}");
        }
    }
    assert_eq!(first.call(0), 40_000);
}

fn siblings_may_lack_code(subject: Subject) {
    // Directly, and by a computed address.
    let direct = (0x1400_0000 + ((FAR - CODE) / 4) as u32).to_le_bytes().to_vec();
    let computed = asm!(; br x5);
    let there = asm!(; movz x3, 20000 ; ->up: ; subs x3, x3, 1 ; b.ne ->up ; hlt 0);
    for code in [direct, computed] {
        let mut first = Guest::new(subject, &code);
        first.load(FAR, &there);
        first.freeze();
        let mut lacking = first.sibling();
        first.set_x(5, FAR);
        assert_eq!((first.run_at(CODE), first.run_at(CODE)), (HALT, HALT));
        lacking.protect(FAR, PAGE, READ);
        lacking.set_x(5, FAR);
        let fault = Stop::Fault { kind: FaultKind::Fetch, address: FAR };
        assert_eq!(lacking.run_at(CODE), fault);
        let mut other = first.sibling();
        other.set_x(5, FAR);
        other.load(FAR, &asm!(; hlt 6));
        assert_eq!(other.run_at(CODE), Stop::Halt { imm: 6 });
        lacking.protect(FAR, PAGE, EXECUTE);
        assert_eq!((lacking.run_at(CODE), first.run_at(CODE)), (HALT, HALT));
    }
}

fn siblings_run_on_threads(subject: Subject) {
    let mut first = counting(subject);
    first.freeze();
    let siblings: Vec<Guest> = (0..8).map(|_| first.sibling()).collect();
    std::thread::scope(|scope| {
        for (number, mut sibling) in (0..).zip(siblings) {
            scope.spawn(move || {
                for call in 1..20 {
                    if number % 4 == 3 && call % 5 == 0 {
                        sibling.engine.reset(0..1).unwrap();
                    }
                    let before = sibling.read(DATA);
                    assert_eq!(sibling.call(number), number + (before + 1) * 20_000);
                }
            });
        }
    });
}

fn watched_bytes_are_noted_when_first_accessed(subject: Subject) {
    let code = asm!(
        ; ->up: ; ldr x3, [x1] ; ldr x4, [x1, 96] ; str w4, [x1, 108] ; ldrb w4, [x1, 200]
        ; subs x2, x2, 1 ; b.ne ->up ; ldp x4, x5, [x6] ; hlt 0);
    let mut guest = Guest::new(subject, &code);
    guest.protect(DATA, 2 * PAGE, READ | WRITE);
    guest.write(DATA + 96, &7u64.to_le_bytes());
    guest.set_x(1, DATA);
    guest.set_x(2, 20_000);
    guest.set_x(6, DATA + PAGE - 8);
    let ranges = [103..104, 104..108, 111..113, 199..200, 201..220, 4096..4097];
    let ranges = ranges.map(|range| DATA + range.start..DATA + range.end).to_vec();
    guest.engine.watch_memory(0, ranges).unwrap();
    assert_eq!(guest.run(), HALT);
    assert_eq!(guest.engine.take_touched(0), [(0, 1), (2, 2), (5, 6 * 20_000)]);
    assert_eq!(guest.status().count, 6 * 20_000 + 1);
    assert_eq!(guest.read(DATA + 108), 7);
}
