//! Every way to stop, and that nothing is half done.

use kvrm::{FaultKind, Machine, Reg, Stop};

use crate::support::{CODE, DATA, HALT, MEMORY, Snapshot, Subject, all_memory, run, set_x};

for_every_engine! {
    halts, syscalls_resume_after_themselves, brk_stops_at_itself, undefined_words_are_reported,
    reads_outside_memory, writes_outside_memory, unaligned_atomics, fetches_outside_memory,
    fetches_at_odd_addresses, running_off_the_end_of_memory, faulting_instructions_do_nothing,
    faults_in_the_middle_of_a_block, a_stopped_lane_stops_again, jumps_to_any_small_address,
}

for_llvmpipe! { faults_in_the_middle_of_a_block, faulting_instructions_do_nothing }

/// Runs until the stop, which happens `count` instructions in and `offset` bytes after the start.
fn expect(machine: &mut Machine, stop: Stop, count: u64, offset: u64) {
    assert_eq!(run(machine), stop);
    assert_eq!(machine.cycles(0).unwrap(), count, "instructions before {stop}");
    assert_eq!(machine.pc(0).unwrap(), CODE + offset, "PC at {stop}");
}

fn fault(kind: FaultKind, address: u64) -> Stop {
    Stop::Fault { kind, address }
}

fn halts(subject: Subject) {
    for imm in [0, 1, 0xffff] {
        let mut machine = subject.machine(&asm!(; nop ; hlt imm));
        expect(&mut machine, Stop::Halt { imm: imm as u16 }, 1, 4);
    }
    let mut machine = subject.machine(&asm!(; nop ; nop ; .bytes [0, 0, 0, 0]));
    expect(&mut machine, Stop::ZeroWord, 2, 8);
    // Of memory that nothing was ever loaded into.
    let mut machine = subject.machine(&asm!(; br x28));
    expect(&mut machine, Stop::ZeroWord, 1, DATA - CODE);
}

fn syscalls_resume_after_themselves(subject: Subject) {
    let mut machine = subject.machine(&asm!(; svc 7 ; add x0, x0, 1 ; svc 0xffff ; hlt 0));
    expect(&mut machine, Stop::Syscall { imm: 7 }, 1, 4);
    expect(&mut machine, Stop::Syscall { imm: 0xffff }, 2, 12);
    expect(&mut machine, HALT, 0, 12);
    assert_eq!(machine.total_cycles(0).unwrap(), 3);
}

fn brk_stops_at_itself(subject: Subject) {
    let mut machine = subject.machine(&asm!(; nop ; brk 42));
    let stop = Stop::Breakpoint { imm: Some(42) };
    expect(&mut machine, stop, 1, 4);
    expect(&mut machine, stop, 0, 4);
}

fn undefined_words_are_reported(subject: Subject) {
    for word in [0xffff_ffffu32, 1, 0xffff, 0x0001_0000] {
        let mut code = asm!(; add x0, x0, 1);
        code.extend(word.to_le_bytes());
        let mut machine = subject.machine(&code);
        expect(&mut machine, Stop::Undefined { word }, 1, 4);
    }
}

fn reads_outside_memory(subject: Subject) {
    let read = |address| fault(FaultKind::Read, address);
    for (address, fault_at) in [
        (MEMORY, MEMORY),
        (MEMORY - 4, MEMORY),
        (MEMORY - 1, MEMORY),
        (1 << 63, 1 << 63),
        (u64::MAX, u64::MAX),
        (u64::MAX - 7, u64::MAX - 7),
    ] {
        let mut machine = subject.machine(&asm!(; nop ; ldr x0, [x1]));
        set_x(&mut machine, 0, 1, address);
        expect(&mut machine, read(fault_at), 1, 4);
    }
    let mut machine = subject.machine(&asm!(; ldrb w0, [x1] ; hlt 0));
    set_x(&mut machine, 0, 1, MEMORY - 1);
    expect(&mut machine, HALT, 1, 4);
}

fn writes_outside_memory(subject: Subject) {
    let write = |address| fault(FaultKind::Write, address);
    for (address, fault_at) in
        [(MEMORY, MEMORY), (MEMORY - 4, MEMORY), (1 << 40, 1 << 40), (u64::MAX, u64::MAX)]
    {
        for code in [asm!(; nop ; str x1, [x1]), asm!(; nop ; stp w1, w1, [x1])] {
            let mut machine = subject.machine(&code);
            set_x(&mut machine, 0, 1, address);
            expect(&mut machine, write(fault_at), 1, 4);
        }
    }
    // An atomic operation that cannot write faults as a write, even where it would only read.
    let mut machine = subject.machine(&asm!(; nop ; ldadd x0, x2, [x1]));
    set_x(&mut machine, 0, 1, MEMORY);
    expect(&mut machine, write(MEMORY), 1, 4);
}

fn unaligned_atomics(subject: Subject) {
    for code in [
        asm!(; ldxr x0, [x1]),
        asm!(; stxr w0, x2, [x1]),
        asm!(; ldar x0, [x1]),
        asm!(; stlr x0, [x1]),
        asm!(; ldadd x0, x2, [x1]),
        asm!(; cas x0, x2, [x1]),
        asm!(; casp x2, x3, x4, x5, [x1]),
        asm!(; ldxp x2, x3, [x1]),
        asm!(; swp x2, x3, [x1]),
    ] {
        let mut machine = subject.machine(&code);
        set_x(&mut machine, 0, 1, 0x8004);
        expect(&mut machine, fault(FaultKind::Unaligned, 0x8004), 0, 0);
    }
    // Eight-byte alignment is not enough for sixteen bytes.
    let mut machine = subject.machine(&asm!(; casp x2, x3, x4, x5, [x1]));
    set_x(&mut machine, 0, 1, 0x8008);
    expect(&mut machine, fault(FaultKind::Unaligned, 0x8008), 0, 0);
}

fn fetches_outside_memory(subject: Subject) {
    for target in [MEMORY, MEMORY + 4, 1 << 40, u64::MAX - 3] {
        for code in [asm!(; nop ; br x1), asm!(; nop ; blr x1), asm!(; nop ; ret x1)] {
            let mut machine = subject.machine(&code);
            set_x(&mut machine, 0, 1, target);
            assert_eq!(run(&mut machine), fault(FaultKind::Fetch, target));
            assert_eq!((machine.cycles(0).unwrap(), machine.pc(0).unwrap()), (2, target));
        }
    }
}

fn fetches_at_odd_addresses(subject: Subject) {
    for target in [CODE + 1, CODE + 2, CODE + 7, 1, 2, 3, u64::MAX] {
        let mut machine = subject.machine(&asm!(; br x1));
        set_x(&mut machine, 0, 1, target);
        assert_eq!(run(&mut machine), fault(FaultKind::Unaligned, target));
        assert_eq!((machine.cycles(0).unwrap(), machine.pc(0).unwrap()), (1, target));
    }
}

/// Every address an engine might have given a special meaning.
fn jumps_to_any_small_address(subject: Subject) {
    let mut machine = subject.machine(&[]);
    machine.load(CODE + 36, &asm!(; br x1)).unwrap();
    for target in (0..0x40).rev().chain((0..64).map(|shift| (1u64 << shift).wrapping_sub(1))) {
        machine.set_pc(0, CODE + 36).unwrap();
        set_x(&mut machine, 0, 1, target);
        machine.run(2).unwrap();
        let expected = match target {
            _ if target % 4 != 0 => fault(FaultKind::Unaligned, target),
            _ => Stop::ZeroWord,
        };
        assert_eq!(machine.stop(0).unwrap(), Some(expected));
        assert_eq!(machine.pc(0).unwrap(), target);
    }
}

fn running_off_the_end_of_memory(subject: Subject) {
    let mut machine = subject.machine(&asm!(; nop));
    machine.load(MEMORY - 8, &asm!(; nop ; nop)).unwrap();
    machine.set_pc(0, MEMORY - 8).unwrap();
    assert_eq!(run(&mut machine), fault(FaultKind::Fetch, MEMORY));
    assert_eq!((machine.cycles(0).unwrap(), machine.pc(0).unwrap()), (2, MEMORY));
}

/// Each straddles the end of memory; registers and memory stay as they were.
fn faulting_instructions_do_nothing(subject: Subject) {
    for (name, code, address) in [
        ("stp", asm!(; stp x2, x3, [x1]), MEMORY - 8),
        ("stp pre", asm!(; stp x2, x3, [x1, -16]!), MEMORY + 8),
        ("stp post", asm!(; stp w2, w3, [x1], 8), MEMORY - 4),
        ("ldp post", asm!(; ldp x2, x3, [x1], 16), MEMORY - 8),
        ("ldp base", asm!(; ldp x1, x3, [x1]), MEMORY - 8),
        ("ldr pre", asm!(; ldr x2, [x1, 8]!), MEMORY - 12),
        ("ldr base", asm!(; ldr x1, [x1]), MEMORY - 1),
        ("str post", asm!(; str x2, [x1], 8), MEMORY - 7),
        ("strh", asm!(; strh w2, [x1]), MEMORY - 1),
        ("stp wraps", asm!(; stp x2, x3, [x1]), u64::MAX - 7),
        ("ldp wraps", asm!(; ldp x2, x3, [x1]), u64::MAX - 7),
        ("dc zva", asm!(; dc zva, x1), MEMORY + 1),
    ] {
        let mut machine = subject.machine(&code);
        for n in 1..4 {
            set_x(&mut machine, 0, n, 0x1111_1111_1111_1111 * u64::from(n));
        }
        set_x(&mut machine, 0, 1, address);
        machine.set_register(0, Reg::Nzcv, 0xa000_0000).unwrap();
        let before = Snapshot { stop: None, ..Snapshot::of(&machine, 0) };
        let memory = all_memory(&machine, 0);
        assert!(matches!(run(&mut machine), Stop::Fault { .. }), "{name}");
        assert_eq!(Snapshot { stop: None, ..Snapshot::of(&machine, 0) }, before, "{name}");
        assert!(all_memory(&machine, 0) == memory, "{name} changed memory");
    }
}

fn faults_in_the_middle_of_a_block(subject: Subject) {
    let mut machine = subject.machine(&asm!(
        ; mov x0, 1 ; subs x2, x0, 2 ; mov x3, 5 ; str x0, [x28]
        ; ldr x4, [x1] ; mov x5, 6 ; mov x3, 7 ; hlt 0));
    set_x(&mut machine, 0, 1, MEMORY);
    expect(&mut machine, fault(FaultKind::Read, MEMORY), 4, 16);
    let registers = [0, 2, 3, 4, 5].map(|n| crate::support::x(&machine, 0, n));
    assert_eq!(registers, [1, u64::MAX, 5, 0, 0]);
    assert_eq!(machine.register(0, Reg::Nzcv).unwrap(), 0x8000_0000);
    // It is not too late to make the access possible.
    set_x(&mut machine, 0, 1, crate::support::DATA);
    expect(&mut machine, HALT, 3, 28);
    assert_eq!(crate::support::x(&machine, 0, 4), 1);
}

fn a_stopped_lane_stops_again(subject: Subject) {
    let mut machine = subject.machine(&asm!(; nop ; ldr x0, [x1]));
    set_x(&mut machine, 0, 1, MEMORY);
    expect(&mut machine, fault(FaultKind::Read, MEMORY), 1, 4);
    for _ in 0..5 {
        expect(&mut machine, fault(FaultKind::Read, MEMORY), 0, 4);
    }
    assert_eq!(machine.total_cycles(0).unwrap(), 1);
}
