//! Lanes with a memory each, whose pages have permissions: all begin with one image, and go their own ways.

use kvrm::{FaultKind, Stop};
use kvrm_a64::state::{SINK, SP, VectorState};
use kvrm_random::Random;
use kvrm_random::program::{DATA as PROGRAM_DATA, Programs};

use super::*;
use crate::support::HALT;

for_mapped_lanes! {
    permissions_differ, accesses_reach_pages_of_some_lanes, pages_are_where_lanes_want_them, lanes_discard_pages,
    code_differs, lanes_write_code, lanes_begin_again, random_lanes_agree, lanes_stop_one_by_one,
}

pub(super) const LANES: usize = 70;
/// A page of data.
const DATA: u64 = 0x10_0000;
const BOTH: Permissions = READ.union(WRITE);

/// Lanes with mapped memory.
pub(super) struct Lanes {
    pub(super) engine: Box<dyn Engine>,
}

impl Lanes {
    /// Lanes about to run the image's code.
    fn new(subject: Subject, code: &[u8]) -> Lanes {
        Lanes::with_supervisors(subject, 0, code)
    }

    /// The same, with so many bytes behind the memory that are the supervisors'.
    pub(super) fn with_supervisors(subject: Subject, bytes: u64, code: &[u8]) -> Lanes {
        let sizes = [SIZE + bytes, bytes];
        let engine = Guest::with_supervisors(subject, sizes, LANES, MemoryModel::Private).engine;
        let mut lanes = Lanes { engine };
        lanes.image(CODE, code, READ | EXECUTE);
        lanes.change(|state, _| state.pc = CODE);
        lanes
    }

    /// Puts something into pages of the image.
    pub(super) fn image(&mut self, addr: u64, bytes: &[u8], permissions: Permissions) {
        self.engine.write_image(addr, bytes).unwrap();
        let len = (addr % PAGE + bytes.len() as u64).next_multiple_of(PAGE);
        self.engine.protect_image(addr / PAGE * PAGE, len, permissions).unwrap();
    }

    fn protect(&mut self, lane: usize, addr: u64, len: u64, permissions: Permissions) {
        self.engine.protect(lane, addr, len, permissions).unwrap();
    }

    fn write(&mut self, lane: usize, addr: u64, bytes: &[u8]) {
        self.engine.write_memory(lane, addr, bytes).unwrap();
    }

    pub(super) fn read(&self, lane: usize, addr: u64) -> u64 {
        let mut bytes = [0; 8];
        self.engine.read_memory(lane, addr, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    /// Changes the registers of all lanes.
    pub(super) fn change(&mut self, change: impl Fn(&mut CpuState, u64)) {
        let mut lane = 0;
        let change = &mut |state: &mut CpuState| {
            change(state, lane);
            lane += 1;
        };
        self.engine.change_states(0..LANES, change).unwrap();
    }

    pub(super) fn x(&self, lane: usize, number: usize) -> u64 {
        self.engine.state(lane).unwrap().x[number]
    }

    pub(super) fn run(&mut self) {
        let control = RunControl::default();
        let request = RunRequest {
            max_cycles: 1_000_000,
            breakpoints: &[],
            single_launch: false,
            continues: false,
            control: &control,
        };
        self.engine.run(&request).unwrap();
    }

    pub(super) fn run_at(&mut self, pc: u64) {
        self.change(|state, _| state.pc = pc);
        self.run();
    }

    pub(super) fn stop(&self, lane: usize) -> Stop {
        self.engine.status(lane).unwrap().stop.unwrap()
    }
}

pub(super) fn fault(kind: FaultKind, address: u64) -> Stop {
    Stop::Fault { kind, address }
}

fn permissions_differ(subject: Subject) {
    let all = [NONE, READ, BOTH, WRITE, EXECUTE, READ | EXECUTE];
    let mut lanes =
        Lanes::new(subject, &asm!(; ldr x2, [x1] ; str x3, [x1, 8] ; ldadd x3, x4, [x1] ; hlt 0));
    lanes.image(DATA, &[5; 16], READ);
    for round in 0..all.len() {
        let of = |lane: usize| all[(lane + round) % all.len()];
        // Those of the first are the image's.
        (1..LANES).for_each(|lane| lanes.protect(lane, DATA, PAGE, of(lane)));
        lanes.change(|state, lane| (state.x[1], state.x[3]) = (DATA, lane));
        lanes.run_at(CODE);
        for lane in 0..LANES {
            let permissions = if lane == 0 { READ } else { of(lane) };
            let expected = match permissions {
                it if !it.contains(READ) => fault(FaultKind::Read, DATA),
                it if !it.contains(WRITE) => fault(FaultKind::Write, DATA + 8),
                _ => HALT,
            };
            assert_eq!(lanes.stop(lane), expected, "lane {lane}, {permissions:?}");
            if expected == HALT {
                assert_eq!(lanes.read(lane, DATA + 8), lane as u64);
            }
        }
    }
    // All may do the same again.
    lanes.engine.protect_image(DATA, PAGE, BOTH).unwrap();
    lanes.run_at(CODE);
    assert!((0..LANES).all(|lane| lanes.stop(lane) == HALT));
}

fn accesses_reach_pages_of_some_lanes(subject: Subject) {
    let next = DATA + PAGE;
    let mut lanes = Lanes::new(subject, &asm!(; ldr x2, [x1] ; str x1, [x1] ; hlt 0));
    lanes.image(DATA, &[3; 8], BOTH);
    (0..LANES).step_by(3).for_each(|lane| lanes.protect(lane, next, PAGE, BOTH));
    (1..LANES).step_by(3).for_each(|lane| lanes.protect(lane, next, PAGE, READ));
    for addr in [next - 8, next - 4, next - 1, next, next - 8] {
        lanes.change(|state, _| state.x[1] = addr);
        lanes.run_at(CODE);
        for lane in 0..LANES {
            let refused = addr.max(next);
            let expected = match lane % 3 {
                _ if addr == next - 8 => HALT,
                0 => HALT,
                1 => fault(FaultKind::Write, refused),
                _ => fault(FaultKind::Read, refused),
            };
            assert_eq!(lanes.stop(lane), expected, "lane {lane} at {addr:#x}");
            assert_eq!(lanes.x(lane, 1), addr);
        }
    }
}

fn pages_are_where_lanes_want_them(subject: Subject) {
    let mut lanes = Lanes::new(
        subject,
        &asm!(; str x27, [x1] ; ldr x2, [x1] ; str x2, [x1, 4088] ; ldr x3, [x5] ; hlt 0),
    );
    // Neighbours have the same page, lanes farther apart others; nobody has what X5 of every fourth lane points to.
    let at = |lane: usize| (1 << 30) + (lane as u64 / 2) * 0x123_4000;
    for lane in 0..LANES {
        lanes.protect(lane, at(lane), PAGE, BOTH);
    }
    lanes.change(|state, lane| {
        let page = at(lane as usize);
        (state.x[1], state.x[27]) = (page, 100 + lane);
        state.x[5] = if lane % 4 == 3 { at(lane as usize - 2) } else { page };
    });
    lanes.run();
    for lane in 0..LANES {
        let expected = match lane % 4 {
            3 => fault(FaultKind::Read, at(lane - 2)),
            _ => HALT,
        };
        assert_eq!(lanes.stop(lane), expected, "lane {lane}");
        assert_eq!(lanes.read(lane, at(lane) + 4088), 100 + lane as u64);
        assert_eq!(lanes.read(lane, at(lane ^ 2)), 0);
    }
}

fn lanes_discard_pages(subject: Subject) {
    let mut lanes = Lanes::new(subject, &asm!(; ldr x2, [x1] ; str x27, [x1, 8] ; hlt 0));
    lanes.image(DATA, &[7; 3 * PAGE as usize], BOTH);
    lanes.change(|state, lane| (state.x[1], state.x[27]) = (DATA + PAGE, lane));
    for round in 0..3 {
        for lane in (round..LANES).step_by(2) {
            lanes.engine.discard(lane, DATA, 2 * PAGE).unwrap();
        }
        lanes.run_at(CODE);
        for lane in 0..LANES {
            // Each round discards those of every other lane.
            let expected = if round > 0 || lane % 2 == 0 { 0 } else { 0x0707_0707_0707_0707 };
            let seen =
                [lanes.x(lane, 2), lanes.read(lane, DATA), lanes.read(lane, DATA + 2 * PAGE)];
            assert_eq!(seen, [expected, expected, 0x0707_0707_0707_0707], "lane {lane}");
            assert_eq!(lanes.read(lane, DATA + PAGE + 8), lane as u64);
        }
    }
}

fn code_differs(subject: Subject) {
    // What is at X6 adds to X0.
    let at = 0x20_0000;
    let adder = |number: u32| asm!(; add x0, x0, number ; ret);
    let mut lanes = Lanes::new(subject, &asm!(; mov x0, 0 ; blr x6 ; blr x6 ; hlt 0));
    lanes.image(at, &adder(1), READ | EXECUTE);
    lanes.change(|state, _| state.x[6] = at);
    lanes.run();
    assert!((0..LANES).all(|lane| (lanes.stop(lane), lanes.x(lane, 0)) == (HALT, 2)));
    for lane in 0..LANES {
        match lane % 5 {
            1 => lanes.write(lane, at, &adder(2)),
            2 => lanes.protect(lane, at, PAGE, BOTH),
            3 => {
                lanes.protect(lane, at, PAGE, NONE);
                lanes.engine.discard(lane, at, PAGE).unwrap();
                lanes.write(lane, at, &adder(3 + lane as u32));
                lanes.protect(lane, at, PAGE, READ | EXECUTE);
            }
            4 => lanes.engine.discard(lane, at, PAGE).unwrap(),
            _ => {}
        }
    }
    for _ in 0..2 {
        lanes.run_at(CODE);
        for lane in 0..LANES {
            let (stop, sum) = match lane % 5 {
                0 => (HALT, 2),
                1 => (HALT, 4),
                2 => (fault(FaultKind::Fetch, at), 0),
                3 => (HALT, 2 * (3 + lane as u64)),
                _ => (Stop::ZeroWord, 0),
            };
            assert_eq!((lanes.stop(lane), lanes.x(lane, 0)), (stop, sum), "lane {lane}");
        }
    }
    // Code that one lane alone has, and code that lanes lose before anybody executes it.
    let (own, lost) = (at + (1 << 20), at + (2 << 20));
    lanes.write(9, own, &adder(9));
    lanes.protect(9, own, PAGE, EXECUTE);
    lanes.image(lost, &adder(7), EXECUTE);
    (0..LANES).step_by(2).for_each(|lane| lanes.protect(lane, lost, PAGE, READ));
    for (at, has) in [(own, (|lane| lane == 9) as fn(usize) -> bool), (lost, |lane| lane % 2 == 1)]
    {
        lanes.change(|state, _| state.x[6] = at);
        lanes.run_at(CODE);
        for lane in 0..LANES {
            let expected = if has(lane) { HALT } else { fault(FaultKind::Fetch, at) };
            assert_eq!(lanes.stop(lane), expected, "lane {lane} at {at:#x}");
        }
    }
    lanes.protect(0, lost, PAGE, READ | EXECUTE);
    lanes.run_at(CODE);
    assert_eq!([0, 1, 2].map(|lane| lanes.stop(lane)), [HALT, HALT, fault(FaultKind::Fetch, lost)]);
}

fn lanes_write_code(subject: Subject) {
    // Writes the word of X2 to X1, and runs it, again and again.
    let code = asm!(; ->up: ; str w2, [x1] ; blr x1 ; subs x4, x4, 1 ; b.ne ->up ; hlt 0);
    let at = 0x7_f000;
    let mut lanes = Lanes::new(subject, &code);
    lanes.image(at, &asm!(; add x0, x0, 1 ; ret), READ | WRITE | EXECUTE);
    let add = |number: u32| {
        let code = asm!(; add x0, x0, number);
        u64::from(u32::from_le_bytes(code[..4].try_into().unwrap()))
    };
    // The word that is there already, or another one, and then others than that.
    let of = |lane: u64, round: u64| if lane.is_multiple_of(3) { 1 } else { lane + round };
    for round in 0..3 {
        lanes.change(|state, lane| {
            let number = of(lane, round) as u32;
            (state.x[0], state.x[1], state.x[2], state.x[4]) = (0, at, add(number), 200);
        });
        lanes.run_at(CODE);
        for lane in 0..LANES {
            let sum = 200 * of(lane as u64, round);
            assert_eq!((lanes.stop(lane), lanes.x(lane, 0)), (HALT, sum), "lane {lane}");
        }
    }
}

fn lanes_begin_again(subject: Subject) {
    let code = asm!(; ldr x2, [x1] ; str x27, [x1] ; ldr x3, [x5] ; blr x6 ; hlt 0);
    let (own, function) = (DATA + 5 * PAGE, 0x20_0000);
    let mut lanes = Lanes::new(subject, &code);
    lanes.image(DATA, &[1; 8], BOTH);
    lanes.image(function, &asm!(; add x0, x0, 1 ; ret), READ | EXECUTE);
    for round in 0..3 {
        for lane in (0..LANES).filter(|lane| lane % 3 != round) {
            lanes.protect(lane, own, PAGE, READ);
            lanes.write(lane, own, &[2; 8]);
            lanes.write(lane, function, &asm!(; add x0, x0, 5));
        }
        lanes.change(|state, lane| {
            (state.x[0], state.x[1], state.x[5], state.x[6]) = (0, DATA, own, function);
            state.x[27] = lane;
        });
        lanes.run_at(CODE);
        for lane in 0..LANES {
            let (stop, sum) = match lane % 3 != round {
                true => (HALT, 5),
                false => (fault(FaultKind::Read, own), 0),
            };
            assert_eq!((lanes.stop(lane), lanes.x(lane, 0)), (stop, sum), "lane {lane}");
            assert_eq!(lanes.x(lane, 2), 0x0101_0101_0101_0101, "lane {lane}");
            assert_eq!(lanes.read(lane, DATA), lane as u64);
        }
        match round {
            1 => lanes.engine.reset(0..LANES).unwrap(),
            _ => (0..LANES).for_each(|lane| lanes.engine.reset(lane..lane + 1).unwrap()),
        }
        assert_eq!((lanes.read(5, own), lanes.read(5, DATA)), (0, 0x0101_0101_0101_0101));
        assert_eq!(lanes.engine.status(5).unwrap(), LaneStatus { stop: None, count: 0 });
    }
}

/// Random programs, each in a lane with permissions and pages of its own, compared with the evaluator.
fn random_lanes_agree(subject: Subject) {
    // Kernels of all rows take a software driver minutes to compile.
    let rows = (subject.setup.engine == EngineKind::Wgpu).then_some(24);
    let programs = Programs::new(13, LANES, rows);
    let image = programs.image(0);
    let mut machines = [subject, Subject::EVAL].map(|subject| {
        let mut lanes = Lanes {
            engine: Guest::of(subject, programs.memory(), LANES, MemoryModel::Private).engine,
        };
        lanes.image(0, &image, BOTH);
        let data = image.len() as u64 - PROGRAM_DATA;
        let len = data.next_multiple_of(PAGE);
        lanes.engine.protect_image(PROGRAM_DATA, len, EXECUTE).unwrap();
        lanes
    });
    let mut refused = 0;
    for round in 0..3 {
        for lanes in &mut machines {
            let mut random = Random::new(round);
            for lane in 0..LANES {
                if random.once_in(3) {
                    lanes.engine.reset(lane..lane + 1).unwrap();
                }
                let page = random.below(PROGRAM_DATA / PAGE) * PAGE;
                let permissions = random.pick(&[NONE, READ, BOTH, WRITE]);
                if random.once_in(2) {
                    lanes.protect(lane, page, PAGE, permissions);
                }
                if random.once_in(3) {
                    lanes.engine.discard(lane, page, PAGE).unwrap();
                }
                let start = programs.start(0, lane);
                lanes.engine.set_vectors(lane, &VectorState::from(&start.v)).unwrap();
                let mut state = lanes.engine.state(lane).unwrap();
                state.x[..31].copy_from_slice(&start.x);
                (state.pc, state.x[SP as usize]) = (start.pc, start.sp);
                state.set_nzcv(start.nzcv);
                lanes.engine.set_state(lane, &state).unwrap();
            }
            let control = RunControl::default();
            let request = RunRequest {
                max_cycles: 1000,
                breakpoints: &[],
                single_launch: false,
                continues: false,
                control: &control,
            };
            lanes.engine.run(&request).unwrap();
        }
        for lane in 0..LANES {
            let [seen, expected] = machines.each_ref().map(|lanes| {
                let mut state = lanes.engine.state(lane).unwrap();
                // Nobody reads it, so that engines need not write it.
                state.x[SINK as usize] = 0;
                let mut memory = vec![0; PROGRAM_DATA as usize];
                lanes.engine.read_memory(lane, 0, &mut memory).unwrap();
                (
                    lanes.engine.status(lane).unwrap(),
                    state,
                    lanes.engine.vectors(lane).unwrap(),
                    memory,
                )
            });
            assert_eq!(
                (seen.0, seen.1, seen.2),
                (expected.0, expected.1, expected.2),
                "lane {lane}"
            );
            assert!(seen.3 == expected.3, "lane {lane} in round {round}");
            refused += usize::from(matches!(seen.0.stop, Some(Stop::Fault { .. })));
        }
    }
    assert!(refused > LANES / 16, "{refused} programs");
}

/// Lanes get instructions and stop on their own; those that have stopped get more while others go on.
fn lanes_stop_one_by_one(subject: Subject) {
    // Makes X4 system calls, each after X3 rounds of a loop.
    let code = asm!(; ->call: ; mov x5, x3 ; ->up: ; subs x5, x5, 1 ; b.ne ->up ; svc 0 ; subs x4, x4, 1 ; b.ne ->call ; hlt 0);
    let mut lanes = Lanes::new(subject, &code);
    let of = |lane: usize| (1 + lane as u64 * 7 % 50, 1 + lane as u64 % 5);
    lanes.change(|state, lane| (state.x[3], state.x[4]) = of(lane as usize));
    let budget = 60;
    let given: Vec<_> = (1..LANES).map(|lane| (lane, budget)).collect();
    lanes.engine.give(&given).unwrap();
    let (control, mut left) = (RunControl::default(), LANES - 1);
    let (mut calls, mut limits) = ([0; LANES], 0);
    while left > 0 {
        let stopped = lanes.engine.advance(&control).unwrap();
        assert!(!stopped.is_empty());
        let mut again = Vec::new();
        for lane in stopped {
            match lanes.stop(lane) {
                Stop::Syscall { .. } => calls[lane] += 1,
                Stop::MaxCycles => limits += 1,
                stop => {
                    assert_eq!(stop, HALT);
                    left -= 1;
                    continue;
                }
            }
            again.push((lane, budget));
        }
        lanes.engine.give(&again).unwrap();
    }
    assert_eq!(lanes.engine.advance(&control).unwrap(), []);
    for (lane, calls) in calls.into_iter().enumerate().skip(1) {
        let (rounds, wanted) = of(lane);
        assert_eq!((calls, lanes.x(lane, 4)), (wanted, 0), "lane {lane}");
        let count = wanted * (2 * rounds + 4);
        assert_eq!(lanes.engine.status(lane).unwrap().count, count, "lane {lane}");
    }
    assert!(limits > 0);
    assert_eq!(lanes.engine.status(0).unwrap(), LaneStatus { stop: None, count: 0 });
    control.cancel();
    lanes.engine.give(&[(0, 5)]).unwrap();
    assert_eq!(lanes.engine.advance(&control).unwrap(), []);
}
