//! Memory that lanes cannot write, and memory that keeps a run's changes only if it ends well.

use std::time::Duration;

use kvrm::{
    Batches, FaultKind, Lanes, Machine, MemoryModel, Reg, Registers, RunControl, RunReport, Stop,
};

use crate::support::{CODE, DATA, HALT, MEMORY, Subject, all_memory, load, read_u64, run, x};

for_every_engine! {
    stores_to_read_only_memory_fault, every_kind_of_write_faults, the_host_writes_read_only_memory,
    read_only_memory_ends_where_it_ends, a_store_at_a_breakpoint_faults,
    read_only_code_is_run_by_all_lanes, a_good_run_is_committed, a_fault_rolls_all_lanes_back,
    an_undefined_word_rolls_back, a_cancelled_run_is_rolled_back, limits_and_syscalls_commit,
    batches_are_committed_together, rolled_back_code, a_rolled_back_run_can_be_repeated,
}

for_llvmpipe! { stores_to_read_only_memory_fault, read_only_code_is_run_by_all_lanes }

fn machine(subject: Subject, model: MemoryModel, lanes: usize, code: &[u8]) -> Machine {
    load(subject.builder().lanes(lanes).threads(2).model(model), code)
}

fn read_only(subject: Subject, lanes: usize, code: &[u8]) -> Machine {
    machine(subject, MemoryModel::ReadOnly, lanes, code)
}

fn double_buffered(subject: Subject, lanes: usize, code: &[u8]) -> Machine {
    machine(subject, MemoryModel::DoubleBuffered, lanes, code)
}

fn write_fault(address: u64) -> Option<Stop> {
    Some(Stop::Fault { kind: FaultKind::Write, address })
}

fn stores_to_read_only_memory_fault(subject: Subject) {
    let code = asm!(
        ; ldr x1, [x28] ; add x0, x0, 1 ; cmp x27, 0 ; b.eq >store ; hlt 0
        ; store: ; stp x0, x1, [x28, 16]! ; hlt 1);
    let mut machine = read_only(subject, 3, &code);
    machine.write_memory(Lanes::All, DATA, &7u64.to_le_bytes()).unwrap();
    let before = all_memory(&machine, 0);
    let report = machine.run(100).unwrap();
    assert!(report.committed);
    assert_eq!(machine.stop(0).unwrap(), write_fault(DATA + 16));
    // Nothing of it was done: neither the store nor the address.
    assert_eq!((x(&machine, 0, 28), machine.pc(0).unwrap()), (DATA, CODE + 20));
    assert_eq!((machine.cycles(0).unwrap(), x(&machine, 0, 1)), (4, 7));
    for lane in 1..3 {
        assert_eq!(machine.stop(lane).unwrap(), Some(HALT));
    }
    assert!(all_memory(&machine, 0) == before);
    // It stays there, and faults again.
    machine.run(100).unwrap();
    assert_eq!((machine.stop(0).unwrap(), machine.cycles(0).unwrap()), (write_fault(DATA + 16), 0));
}

fn every_kind_of_write_faults(subject: Subject) {
    let writes: [(Vec<u8>, u64); 8] = [
        (asm!(; strb w0, [x28]), DATA),
        (asm!(; str w0, [x28, 2]!), DATA + 2),
        (asm!(; str x0, [x28, 61]!), DATA + 61),
        (asm!(; stlr x0, [x28]), DATA),
        (asm!(; ldadd x0, x1, [x28]), DATA),
        (asm!(; swpalb w0, w1, [x28]), DATA),
        (asm!(; cas x0, x1, [x28]), DATA),
        (asm!(; casp x0, x1, x2, x3, [x28]), DATA),
    ];
    for (code, address) in writes {
        let mut machine = read_only(subject, 1, &code);
        assert_eq!(Some(run(&mut machine)), write_fault(address), "{code:x?}");
        assert_eq!(machine.total_cycles(0).unwrap(), 0);
        assert!(all_memory(&machine, 0)[DATA as usize..].iter().all(|byte| *byte == 0));
    }
}

fn the_host_writes_read_only_memory(subject: Subject) {
    let mut machine = read_only(subject, 2, &asm!(; ldr x0, [x28] ; hlt 0));
    for value in [5u64, 6] {
        machine.write_memory(1, DATA, &value.to_le_bytes()).unwrap();
        machine.set_pc(Lanes::All, CODE).unwrap();
        machine.run(10).unwrap();
        assert_eq!((x(&machine, 0, 0), x(&machine, 1, 0)), (value, value));
    }
    // Code, too: what lanes do changes at once.
    machine.load(CODE, &asm!(; movz x0, 9 ; hlt 0)).unwrap();
    machine.reset(Lanes::All).unwrap();
    machine.run(10).unwrap();
    assert_eq!((x(&machine, 1, 0), read_u64(&machine, 0, DATA)), (9, 6));
}

/// A write that would leave memory is refused where it begins; a read where memory ends.
fn read_only_memory_ends_where_it_ends(subject: Subject) {
    let fault = |kind, address| Stop::Fault { kind, address };
    let mut machine = read_only(subject, 1, &asm!(; ldr x0, [x1] ; hlt 0));
    machine.set_register(0, Reg::X(1), MEMORY - 4).unwrap();
    assert_eq!(run(&mut machine), fault(FaultKind::Read, MEMORY));
    let mut machine = read_only(subject, 1, &asm!(; str x0, [x1] ; hlt 0));
    for address in [MEMORY - 4, MEMORY, u64::MAX - 3] {
        machine.set_register(0, Reg::X(1), address).unwrap();
        assert_eq!(run(&mut machine), fault(FaultKind::Write, address));
    }
}

/// Instructions that lanes stand at when a run begins may be executed by other means.
fn a_store_at_a_breakpoint_faults(subject: Subject) {
    let mut machine = read_only(subject, 2, &asm!(; str x0, [x28] ; hlt 0));
    machine.add_breakpoint(CODE).unwrap();
    machine.run(10).unwrap();
    assert_eq!(machine.stop(1).unwrap(), write_fault(DATA));
    assert_eq!(machine.total_cycles(1).unwrap(), 0);
}

fn read_only_code_is_run_by_all_lanes(subject: Subject) {
    let code = asm!(
        ; add x3, x27, 50
        ; again: ; ldr x5, [x28] ; add x4, x4, x5 ; subs x3, x3, 1 ; b.ne <again ; hlt 0);
    let mut machine = read_only(subject, 40, &code);
    machine.write_memory(0, DATA, &3u64.to_le_bytes()).unwrap();
    machine.run(u64::MAX).unwrap();
    for lane in 0..40 {
        assert_eq!(machine.stop(lane).unwrap(), Some(HALT));
        assert_eq!(x(&machine, lane, 4), 3 * (50 + lane as u64));
    }
}

/// Stores the lane's number, and goes on as X20 says: 1 faults, 2 is undefined, 3 never ends, 4 calls the
/// system.
fn stores() -> Vec<u8> {
    asm!(
        ; add x0, x28, x27, lsl 3 ; add x1, x27, 100 ; str x1, [x0]
        ; cmp x20, 1 ; b.ne >next ; ldr x2, [x20, x21]
        ; next: ; cmp x20, 2 ; b.ne >next ; .u32 0xffff_ffff
        ; next: ; cmp x20, 3 ; b.eq <next ; cmp x20, 4 ; b.ne >end ; svc 0
        ; end: ; hlt 0)
}

/// What a run must leave alone if it is rolled back.
fn state(machine: &Machine) -> (Vec<Registers>, Vec<u8>) {
    let registers = (0..machine.lanes()).map(|lane| machine.registers(lane).unwrap());
    (registers.collect(), all_memory(machine, 0))
}

fn is_rolled_back(report: RunReport, machine: &Machine, before: &(Vec<Registers>, Vec<u8>)) {
    assert!(!report.committed && report.cycles > 0, "{report:?}");
    assert!(state(machine) == *before);
}

fn a_good_run_is_committed(subject: Subject) {
    let mut machine = double_buffered(subject, 4, &stores());
    let report = machine.run(1000).unwrap();
    assert!(report.committed && !report.cancelled);
    for lane in 0..4 {
        assert_eq!(machine.stop(lane).unwrap(), Some(HALT));
        assert_eq!(read_u64(&machine, 3 - lane, DATA + 8 * lane as u64), 100 + lane as u64);
        assert_eq!(machine.stopped_at(lane).unwrap(), machine.pc(lane).unwrap());
    }
}

fn a_fault_rolls_all_lanes_back(subject: Subject) {
    let mut machine = double_buffered(subject, 4, &stores());
    machine.set_register(2, Reg::X(20), 1).unwrap();
    machine.set_register(2, Reg::X(21), MEMORY).unwrap();
    let before = state(&machine);
    let report = machine.run(1000).unwrap();
    is_rolled_back(report, &machine, &before);
    // What happened can be told all the same.
    let fault = Stop::Fault { kind: FaultKind::Read, address: MEMORY + 1 };
    assert_eq!(machine.stop(2).unwrap(), Some(fault));
    assert_eq!((machine.stopped_at(2).unwrap(), machine.pc(2).unwrap()), (CODE + 20, CODE));
    assert_eq!((machine.stop(0).unwrap(), machine.cycles(2).unwrap()), (Some(HALT), 5));
}

fn an_undefined_word_rolls_back(subject: Subject) {
    let mut machine = double_buffered(subject, 2, &stores());
    machine.set_register(1, Reg::X(20), 2).unwrap();
    let before = state(&machine);
    let report = machine.run(1000).unwrap();
    is_rolled_back(report, &machine, &before);
    assert_eq!(machine.stop(1).unwrap(), Some(Stop::Undefined { word: 0xffff_ffff }));
}

fn a_cancelled_run_is_rolled_back(subject: Subject) {
    let mut machine = double_buffered(subject, 2, &stores());
    machine.set_register(1, Reg::X(20), 3).unwrap();
    let before = state(&machine);
    let control = RunControl::new();
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while control.executed() < 100 {
                std::thread::yield_now();
            }
            control.cancel();
        });
        machine.run_with(u64::MAX, &control).unwrap()
    });
    assert!(report.cancelled);
    is_rolled_back(report, &machine, &before);
    assert_eq!(machine.stop(1).unwrap(), None);
    machine.start(u64::MAX).unwrap();
    while machine.poll().cycles < 100 {
        std::thread::yield_now();
    }
    let report = machine.cancel().unwrap();
    is_rolled_back(report, &machine, &before);
}

fn limits_and_syscalls_commit(subject: Subject) {
    let mut machine = double_buffered(subject, 2, &stores());
    machine.set_register(0, Reg::X(20), 3).unwrap();
    machine.set_register(1, Reg::X(20), 4).unwrap();
    assert!(machine.run(100).unwrap().committed);
    assert_eq!(machine.stop(0).unwrap(), Some(Stop::MaxCycles));
    assert_eq!(machine.stop(1).unwrap(), Some(Stop::Syscall { imm: 0 }));
    assert_eq!(read_u64(&machine, 0, DATA + 8), 101);
}

fn batches_are_committed_together(subject: Subject) {
    let mut machine = double_buffered(subject, 1, &stores());
    machine.set_register(0, Reg::X(20), 1).unwrap();
    machine.set_register(0, Reg::X(21), MEMORY).unwrap();
    let before = state(&machine);
    let mut seen = Vec::new();
    let report = machine
        .run_batches(Batches::of(3), |machine, _| {
            seen.push(read_u64(machine, 0, DATA));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((seen, report.batches), (vec![100], 2));
    is_rolled_back(report, &machine, &before);
    machine.set_register(0, Reg::X(20), 3).unwrap();
    let before = state(&machine);
    let timeout = Some(Duration::from_millis(1));
    let batches = Batches { timeout, ..Batches::of(u64::MAX) };
    let report = machine.run_batches(batches, |_, _| std::ops::ControlFlow::Continue(())).unwrap();
    assert!(report.cancelled);
    is_rolled_back(report, &machine, &before);
}

/// Translations of code that a run has changed, and that is changed back, are forgotten.
fn rolled_back_code(subject: Subject) {
    let code = asm!(
        ; str w22, [x23] ; movz x0, 1 ; cmp x20, 0 ; b.ne >fault ; hlt 0
        ; fault: ; ldr x1, [x24] ; hlt 1);
    let mut machine = double_buffered(subject, 1, &code);
    let nine = u32::from_le_bytes(asm!(; movz x0, 9).try_into().unwrap());
    for (reg, value) in [(22, nine.into()), (23, CODE + 4), (24, MEMORY), (20, 1)] {
        machine.set_register(0, Reg::X(reg), value).unwrap();
    }
    assert!(!machine.run(100).unwrap().committed);
    // From behind the store.
    machine.set_register(0, Reg::X(20), 0).unwrap();
    machine.set_pc(0, CODE + 4).unwrap();
    assert!(machine.run(100).unwrap().committed);
    assert_eq!(x(&machine, 0, 0), 1);
    machine.set_pc(0, CODE).unwrap();
    assert!(machine.run(100).unwrap().committed);
    assert_eq!(x(&machine, 0, 0), 9);
}

fn a_rolled_back_run_can_be_repeated(subject: Subject) {
    let mut machine = double_buffered(subject, 2, &stores());
    machine.set_register(1, Reg::X(20), 2).unwrap();
    for round in 1..4 {
        let report = machine.run(1000).unwrap();
        assert!(!report.committed);
        assert_eq!(machine.total_cycles(1).unwrap(), round * machine.cycles(1).unwrap());
    }
    machine.set_register(1, Reg::X(20), 0).unwrap();
    assert!(machine.run(1000).unwrap().committed);
    assert_eq!((machine.stop(1).unwrap(), read_u64(&machine, 0, DATA + 8)), (Some(HALT), 101));
}
