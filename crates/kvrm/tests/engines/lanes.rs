//! Many lanes, on any number of threads.

use kvrm::{Lanes, Machine, MemoryModel, Reg, Stop};

use crate::support::{DATA, HALT, NZCV, Snapshot, Subject, TPIDR_EL0, read_u64, set_x, x};

for_every_engine! {
    any_number_of_lanes, threads_make_no_difference, lanes_stop_in_different_ways,
    lanes_keep_their_registers_apart, one_lane_of_many_is_reset,
}

for_llvmpipe! { any_number_of_lanes, lanes_stop_in_different_ways }

for_split_engines! {
    any_number_of_lanes, threads_make_no_difference, lanes_keep_their_registers_apart,
    one_lane_of_many_is_reset,
}

/// The length of the Collatz sequence from X0 on, in X1.
fn collatz() -> Vec<u8> {
    asm!(
        ; again: ; cmp x0, 1 ; b.eq >done ; add x1, x1, 1 ; tbnz x0, 0, >odd ; lsr x0, x0, 1 ; b <again
        ; odd: ; add x0, x0, x0, lsl 1 ; add x0, x0, 1 ; b <again
        ; done: ; str x1, [x28] ; hlt 0)
}

fn collatz_length(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn run_collatz(mut machine: Machine) -> Machine {
    for lane in 0..machine.lanes() {
        set_x(&mut machine, lane, 0, lane as u64 + 1);
    }
    let report = machine.run(1_000_000).unwrap();
    let cycles: u64 = (0..machine.lanes()).map(|lane| machine.cycles(lane).unwrap()).sum();
    assert_eq!(report.cycles, cycles);
    machine
}

fn any_number_of_lanes(subject: Subject) {
    let counts = if subject.is_slow() { [1, 7, 64, 100] } else { [1, 7, 64, 1000] };
    for lanes in counts {
        let machine = run_collatz(subject.private(lanes, 0, &collatz()));
        for lane in 0..lanes {
            let length = collatz_length(lane as u64 + 1);
            assert_eq!(machine.stop(lane).unwrap(), Some(HALT));
            assert_eq!(x(&machine, lane, 1), length);
            assert_eq!(read_u64(&machine, lane, DATA), length);
        }
    }
}

fn threads_make_no_difference(subject: Subject) {
    let lanes = if subject.is_slow() { 20 } else { 200 };
    let snapshots = [1, 2, 3, 16].map(|threads| {
        let machine = run_collatz(subject.private(lanes, threads, &collatz()));
        (0..lanes).map(|lane| Snapshot::of(&machine, lane)).collect::<Vec<_>>()
    });
    for other in &snapshots[1..] {
        assert_eq!(&snapshots[0], other);
    }
}

fn lanes_stop_in_different_ways(subject: Subject) {
    let code = asm!(
        ; adr x0, >table ; add x0, x0, x27, lsl 2 ; br x0
        ; table: ; hlt 1 ; svc 2 ; brk 3 ; udf 4 ; b <table ; table_end: ; b <table_end);
    for model in [MemoryModel::Private, MemoryModel::Shared] {
        let builder = subject.builder().lanes(6).threads(2).model(model);
        let mut machine = crate::support::load(builder, &code);
        machine.run(1000).unwrap();
        let stops: Vec<Stop> = (0..6).map(|lane| machine.stop(lane).unwrap().unwrap()).collect();
        let expected = [
            Stop::Halt { imm: 1 },
            Stop::Syscall { imm: 2 },
            Stop::Breakpoint { imm: Some(3) },
            Stop::Undefined { word: 4 },
            Stop::Halt { imm: 1 },
            Stop::MaxCycles,
        ];
        assert_eq!(stops, expected);
        let counts: Vec<u64> = (0..6).map(|lane| machine.cycles(lane).unwrap()).collect();
        assert_eq!(counts, [3, 4, 3, 3, 4, 1000]);
    }
}

fn lanes_keep_their_registers_apart(subject: Subject) {
    let code =
        asm!(; cmp x1, x2 ; mrs x3, NZCV ; add sp, x1, 0 ; msr TPIDR_EL0, x2 ; svc 0 ; hlt 0);
    let mut machine = subject.private(50, 2, &code);
    for lane in 0..50 {
        set_x(&mut machine, lane, 1, lane as u64);
        set_x(&mut machine, lane, 2, 25);
    }
    machine.run(100).unwrap();
    for lane in 0..50u64 {
        let nzcv = if lane < 25 { 0x8000_0000 } else { 0x2000_0000 } | u64::from(lane == 25) << 30;
        let read = |reg| machine.register(lane as usize, reg).unwrap();
        let expected = (lane, 25, nzcv, nzcv);
        assert_eq!(
            (read(Reg::Sp), read(Reg::TpidrEl0), read(Reg::Nzcv), read(Reg::X(3))),
            expected
        );
    }
}

fn one_lane_of_many_is_reset(subject: Subject) {
    let code = asm!(; ldr x0, [x28] ; add x0, x0, 1 ; str x0, [x28] ; hlt 0);
    let mut machine = subject.private(9, 2, &code);
    for round in 1..6 {
        machine.set_pc(Lanes::All, crate::support::CODE).unwrap();
        machine.reset(4).unwrap();
        machine.set_register(4, Reg::X(28), DATA).unwrap();
        machine.run(100).unwrap();
        for lane in 0..9 {
            let (expected, count) = if lane == 4 { (1, 3) } else { (round, 3 * round) };
            assert_eq!(read_u64(&machine, lane, DATA), expected);
            assert_eq!(machine.total_cycles(lane).unwrap(), count);
        }
    }
}
