//! Rounds of AES and SM4 do what the reference does: engines have S-boxes of different kinds.

use crate::support::{Snapshot, Subject, random_numbers, run_to_halt};

for_every_engine! { rounds_of_aes, rounds_of_sm4 }

/// Each round goes on with the results of the one before, so that the last has to do with all of them.
fn rounds_of_aes(subject: Subject) {
    check(
        subject,
        &asm! {
            ; mov x0, 64
            ; round:
            ; aese v0.b16, v1.b16
            ; aesmc v2.b16, v0.b16
            ; aesd v3.b16, v2.b16
            ; aesimc v1.b16, v3.b16
            ; subs x0, x0, 1
            ; b.ne <round
            ; hlt 0
        },
    );
}

fn rounds_of_sm4(subject: Subject) {
    check(
        subject,
        &asm! {
            ; mov x0, 16
            ; round:
            ; sm4e v0.s4, v1.s4
            ; sm4ekey v1.s4, v0.s4, v2.s4
            ; subs x0, x0, 1
            ; b.ne <round
            ; hlt 0
        },
    );
}

fn check(subject: Subject, code: &[u8]) {
    let after = |subject: Subject, vectors: [u128; 4]| {
        let mut machine = subject.machine(code);
        for (n, vector) in (0..).zip(vectors) {
            machine.set_vector(0, n, vector).unwrap();
        }
        run_to_halt(&mut machine);
        Snapshot::of(&machine, 0)
    };
    let random: Vec<_> = random_numbers(1).take(4).map(u128::from).collect();
    for vectors in [[0; 4], random.try_into().expect("four")] {
        assert_eq!(after(subject, vectors), after(Subject::EVAL, vectors));
    }
}
