//! Several accesses near each other at the end of flat memory, and near code: translations check them together.

use kvrm::{Lanes, Machine, Reg};

use crate::support::{CODE, DATA, HALT, MEMORY, Snapshot, Subject, all_memory, load, set_x};

for_every_engine! { @module cpu_translating, TRANSLATING, []: groups_at_the_end_of_memory groups_next_to_code }
for_every_engine! { @module cpu_interpreting, INTERPRETING, []: groups_at_the_end_of_memory groups_next_to_code }
for_every_engine! { @module cpu_switching, SWITCHING, []: groups_at_the_end_of_memory groups_next_to_code }
for_every_engine! { @module cpu, CPU, []: groups_at_the_end_of_memory groups_next_to_code }

for_evicting_engines! { groups_at_the_end_of_memory, groups_next_to_code }

/// Accesses around what X10 points to, X4 times.
fn group() -> Vec<u8> {
    asm!(; ->up: ; mov x1, x10 ; ldr x2, [x1, 8] ; add x9, x9, 1 ; str x9, [x1, 16] ; add x9, x9, 1
        ; ldp x5, x6, [x1, 32] ; add x9, x9, 1 ; stp x9, x9, [x1, 40] ; add x9, x9, 1 ; ldr x7, [x1, -24]!
        ; add x9, x9, 1 ; str w9, [x1, 20] ; subs x4, x4, 1 ; b.ne ->up ; hlt 0)
}

/// Lanes for each address, hot if the engine makes code hot at once or early.
fn machine(subject: Subject, shared: bool, bases: &[u64]) -> Machine {
    let builder = subject.builder();
    let builder = match shared {
        true => builder.lanes(1).model(kvrm::MemoryModel::Shared),
        false => builder.lanes(bases.len()),
    };
    let mut machine = load(builder, &group());
    machine.set_register(Lanes::All, Reg::X(10), DATA).unwrap();
    machine.set_register(Lanes::All, Reg::X(4), 40).unwrap();
    machine.run(100_000).unwrap();
    assert_eq!(machine.stop(0).unwrap(), Some(HALT));
    machine
}

/// Runs lanes from the beginning; what they have done.
fn outcome(machine: &mut Machine, bases: &[u64]) -> Vec<(Snapshot, Vec<u8>)> {
    for (lane, base) in bases.iter().enumerate() {
        set_x(machine, lane, 10, *base);
        set_x(machine, lane, 4, 3);
        set_x(machine, lane, 9, 0);
        machine.set_register(lane, Reg::Pc, CODE).unwrap();
    }
    machine.run(200).unwrap();
    (0..bases.len()).map(|lane| (Snapshot::of(machine, lane), all_memory(machine, lane))).collect()
}

fn compare(subject: Subject, bases: &[u64]) {
    let outcomes =
        [subject, Subject::EVAL].map(|subject| outcome(&mut machine(subject, false, bases), bases));
    for ((base, outcome), expected) in bases.iter().zip(&outcomes[0]).zip(&outcomes[1]) {
        assert_eq!(outcome.0, expected.0, "at {base:#x}");
        assert!(outcome.1 == expected.1, "memory is different, at {base:#x}");
    }
    for base in bases.iter().step_by(3) {
        let [outcome, expected] = [subject, Subject::EVAL]
            .map(|subject| outcome(&mut machine(subject, true, &[*base]), &[*base]));
        assert_eq!(outcome[0].0, expected[0].0, "shared, at {base:#x}");
        assert!(outcome[0].1 == expected[0].1, "shared memory is different, at {base:#x}");
    }
}

fn groups_at_the_end_of_memory(subject: Subject) {
    let end = (MEMORY - 72..MEMORY + 32).step_by(4);
    let others = [0, 8, 20, 24, 32, u64::MAX - 7, u64::MAX - 40, MEMORY - 61, MEMORY - 33];
    compare(subject, &end.chain(others).collect::<Vec<_>>());
}

fn groups_next_to_code(subject: Subject) {
    let end = CODE + group().len() as u64;
    compare(subject, &(CODE - 80..end + 100).step_by(4).collect::<Vec<_>>());
}
