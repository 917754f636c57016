//! Random programs in pages with random permissions, compared with the evaluator.

use kvrm_a64::state::{SINK, SP, VectorState};
use kvrm_random::Random;
use kvrm_random::program::{DATA, Programs, Start};

use super::*;

for_mapped_engines! { random_programs_agree }
for_evicting_engines! { random_programs_agree }

for_mapped_devices! { random_programs_agree }

const PROGRAMS: usize = 250;

fn random_programs_agree(subject: Subject) {
    // Kernels of all rows take a software driver minutes to compile.
    let rows = (subject.setup.engine == EngineKind::Wgpu).then_some(24);
    let programs = Programs::new(11, PROGRAMS, rows);
    let image = programs.image(0);
    let mut guests = [subject, Subject::EVAL].map(|subject| {
        let mut guest = Guest::with(subject, programs.memory(), 1);
        guest.write(0, &image);
        let data = image.len() as u64 - DATA;
        guest.protect(DATA, data.next_multiple_of(PAGE), EXECUTE);
        guest
    });
    let mut random = Random::new(12);
    let mut refused = 0;
    for lane in 1..PROGRAMS {
        let page = random.below(DATA / PAGE) * PAGE;
        let permissions = random.pick(&[NONE, READ, READ | WRITE, READ | WRITE, WRITE, READ]);
        let changes = random.once_in(4).then(|| random.below(DATA / PAGE) * PAGE);
        let start = tagged(programs.start(0, lane), &mut random);
        let outcomes = guests.each_mut().map(|guest| {
            guest.protect(0, DATA, READ | WRITE);
            guest.protect(page, PAGE, permissions);
            if let Some(page) = changes {
                guest.engine.discard(0, page, PAGE).unwrap();
            }
            run(guest, &start)
        });
        assert_eq!(outcomes[0], outcomes[1], "program {lane}, {permissions:?} at {page:#x}");
        let stop = outcomes[0].0.stop;
        refused += usize::from(matches!(stop, Some(Stop::Fault { address, .. }) if address < DATA));
    }
    assert!(refused > PROGRAMS / 16, "{refused} programs of {PROGRAMS}");
    let [memory, expected] = guests.map(|guest| {
        let mut bytes = vec![0; programs.memory() as usize];
        guest.engine.read_memory(0, 0, &mut bytes).unwrap();
        bytes
    });
    assert!(memory == expected);
}

/// Some pointers get tags.
fn tagged(mut start: Start, random: &mut Random) -> Start {
    for base in &mut start.x[20..28] {
        if random.once_in(8) {
            *base |= random.next() << 56;
        }
    }
    start
}

type Outcome = (LaneStatus, CpuState, VectorState);

fn run(guest: &mut Guest, start: &Start) -> Outcome {
    let vectors = VectorState::from(&start.v);
    guest.engine.reset(0..1).unwrap();
    guest.change(|state| {
        state.x[..31].copy_from_slice(&start.x);
        state.pc = start.pc;
        state.x[SP as usize] = start.sp;
        state.set_nzcv(start.nzcv);
    });
    guest.engine.set_vectors(0, &vectors).unwrap();
    guest.run_for(1000);
    let mut state = guest.engine.state(0).unwrap();
    // Nobody reads it, so that engines need not write it.
    state.x[SINK as usize] = 0;
    (guest.status(), state, guest.engine.vectors(0).unwrap())
}
