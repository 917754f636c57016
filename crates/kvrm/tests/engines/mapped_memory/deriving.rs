//! Random programs that are followed: what another run has is computed, and compared with what it has.

use kvrm_a64::state::{CpuState, SINK, SP, V, VARS, VectorState, X};
use kvrm_ir::derive::{Derivation, Holder};
use kvrm_random::Random;
use kvrm_random::program::{DATA, Programs, Start};

use super::*;

macro_rules! for_engines_that_derive {
    ($($test:ident),* $(,)?) => {
        for_every_engine! { @module cpu_translating, TRANSLATING, []: $($test)* }
        for_every_engine! { @module cpu_interpreting, INTERPRETING, []: $($test)* }
        for_every_engine! { @module cpu_switching, SWITCHING, []: $($test)* }
        for_every_engine! { @module cpu, CPU, []: $($test)* }
    };
}

for_engines_that_derive! { what_is_derived_is_what_others_have, native_code_keeps_off_derived_bytes }

const PROGRAMS: usize = 600;

/// Registers and what is in the first pages.
type Everything = (CpuState, VectorState, Vec<u8>);

/// Some bytes of memory, and what is in them in three runs.
struct Given {
    addrs: Vec<u64>,
    bytes: [Vec<u8>; 3],
}

impl Given {
    /// Near where the program looks.
    fn new(random: &mut Random, start: &Start, image: &[u8]) -> Given {
        let mut addrs: Vec<u64> = (0..16)
            .map(|_| start.x[20 + random.below(8) as usize] + random.below(48))
            .filter(|addr| *addr < DATA)
            .collect();
        addrs.sort_unstable();
        addrs.dedup();
        let own: Vec<u8> = addrs.iter().map(|addr| image[*addr as usize]).collect();
        // Those that differ in little go together for longer.
        let others = [random.below(3), random.below(3)].map(|way| {
            let other = |byte: &u8| match way {
                0 => byte ^ 1,
                1 if random.once_in(2) => *byte,
                _ => random.next() as u8,
            };
            own.iter().map(other).collect()
        });
        let [beside, third] = others;
        Given { addrs, bytes: [own, beside, third] }
    }
}

fn begin(guest: &mut Guest, start: &Start, image: &[u8], given: &Given, run: usize) {
    guest.engine.watch_memory(0, Vec::new()).unwrap();
    guest.engine.reset(0..1).unwrap();
    guest.write(0, &image[..DATA as usize]);
    for (addr, byte) in given.addrs.iter().zip(&given.bytes[run]) {
        guest.write(*addr, &[*byte]);
    }
    guest.change(|state| {
        state.x[..31].copy_from_slice(&start.x);
        state.pc = start.pc;
        state.x[SP as usize] = start.sp;
        state.set_nzcv(start.nzcv);
    });
    guest.engine.set_vectors(0, &VectorState::from(&start.v)).unwrap();
}

fn everything(guest: &Guest) -> Everything {
    let mut bytes = vec![0; DATA as usize];
    guest.engine.read_memory(0, 0, &mut bytes).unwrap();
    let mut state = guest.engine.state(0).unwrap();
    state.x[SINK as usize] = 0;
    (state, guest.engine.vectors(0).unwrap(), bytes)
}

/// Follows a run that has begun, for so many instructions.
fn follow(guest: &mut Guest, given: &Given, instructions: u64) -> Derivation {
    let mut derivation = Derivation::default();
    for (index, addr) in given.addrs.iter().enumerate() {
        derivation.give(*addr, given.bytes[0][index], given.bytes[1][index]);
    }
    let control = RunControl::default();
    let request = RunRequest {
        max_cycles: instructions,
        breakpoints: &[],
        single_launch: false,
        continues: false,
        control: &control,
    };
    guest.engine.run_deriving(0, &request, 0, &mut derivation).unwrap().expect("it can");
    derivation.finish(guest.status().count);
    derivation
}

/// Puts what was computed where it belongs.
fn put((state, vectors, memory): &mut Everything, holder: Holder, value: u64) {
    match holder {
        Holder::Memory(addr) => memory[addr as usize] = value as u8,
        Holder::Register(file, slot) if file == V.id => vectors.set_half(slot, value),
        Holder::Register(file, slot) => {
            assert_eq!(file, X.id);
            state.x[slot as usize] = value;
        }
        Holder::Variable(number) => state.set_var(VARS[usize::from(number)].0, value),
        Holder::Flags => state.flags = [0, 1, 2, 3].map(|bit| (value >> bit & 1) as u8),
    }
}

fn what_is_derived_is_what_others_have(subject: Subject) {
    let programs = Programs::new(17, PROGRAMS, None);
    let image = programs.image(0);
    let mut guests = [subject, Subject::EVAL].map(|subject| {
        let mut guest = Guest::with(subject, programs.memory(), 1);
        guest.write(0, &image);
        guest.protect(0, DATA, READ | WRITE);
        let code = image.len() as u64 - DATA;
        guest.protect(DATA, code.next_multiple_of(PAGE), EXECUTE);
        guest
    });
    let mut random = Random::new(18);
    let (mut computed, mut together) = (0, 0);
    for lane in 1..PROGRAMS {
        let start = programs.start(0, lane);
        let given = Given::new(&mut random, &start, &image);
        let [guest, reference] = &mut guests;
        begin(guest, &start, &image, &given, 0);
        let derivation = follow(guest, &given, 1 + random.below(400));
        for run in [1, 2] {
            let (values, parts) = derivation.values(&given.bytes[run]);
            // Whoever comes so far has come to any point before that, too.
            let point = if random.once_in(2) { parts } else { random.below(parts + 1) };
            if point == 0 {
                continue;
            }
            begin(guest, &start, &image, &given, 0);
            guest.run_for(point);
            begin(reference, &start, &image, &given, run);
            reference.run_for(point);
            assert_eq!(reference.status().count, point, "program {lane} of run {run}");
            let mut derived = everything(guest);
            // What was given is there even if nothing has touched it.
            derivation.placements(point).for_each(&values, |holder, value| {
                computed += usize::from(!matches!(holder, Holder::Memory(_)));
                put(&mut derived, holder, value);
            });
            let expected = everything(reference);
            assert_eq!(derived.0, expected.0, "program {lane} of run {run} after {point}");
            assert_eq!(derived.1, expected.1, "program {lane} of run {run} after {point}");
            let differs = (0..DATA as usize).find(|at| derived.2[*at] != expected.2[*at]);
            assert_eq!(differs, None, "program {lane} of run {run} after {point}");
            together += point;
        }
    }
    assert!(computed > PROGRAMS / 4, "{computed} registers");
    assert!(together > 10 * PROGRAMS as u64, "{together} instructions");
}

/// A loop beside derived bytes, and through them in the end.
fn native_code_keeps_off_derived_bytes(subject: Subject) {
    const BYTES: u64 = 0x40_0000_0000;
    let code = asm!(
        ; movz x1, 0x40, lsl 32 ; movz x3, 60000
        ; ->up: ; ldr x2, [x1, 16] ; add x2, x2, 3 ; str x2, [x1, 16] ; subs x3, x3, 1 ; b.ne ->up
        ; ldr x4, [x1] ; add x5, x4, 1 ; str x5, [x1, 8] ; movz x4, 0 ; movz x5, 0 ; cbnz x2, ->on
        ; ->on: ; ldrb w6, [x1, 8] ; cbz w6, ->up ; hlt 0);
    let mut guest = Guest::new(subject, &code);
    guest.protect(BYTES, PAGE, READ | WRITE);
    guest.write(BYTES, b"a");
    let given = Given { addrs: vec![BYTES], bytes: [b"a".into(), b"z".into(), vec![255]] };
    let derivation = follow(&mut guest, &given, 1 << 20);
    let before_branch = 2 + 5 * 60_000 + 7;
    assert_eq!(derivation.end(), Some(before_branch + 1), "to the end");
    assert_eq!(derivation.values(b"q").1, before_branch + 1);
    assert_eq!(derivation.values(&[255]).1, before_branch, "it would go up again");
    let (values, _) = derivation.values(b"q");
    let mut memory = [0; 16];
    derivation.placements(before_branch).for_each(&values, |holder, value| match holder {
        Holder::Memory(addr) => memory[(addr - BYTES) as usize] = value as u8,
        Holder::Register(..) => assert_eq!((holder, value), (Holder::Register(X.id, 6), 0x72)),
        other => panic!("{other:?}"),
    });
    assert_eq!(memory, *b"q\0\0\0\0\0\0\0r\0\0\0\0\0\0\0");
}
