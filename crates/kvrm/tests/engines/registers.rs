//! Registers as the host sees them: every name, all lanes at once, and what resets and roll-backs do to them.

use kvrm::a64::state::{FPCR_MASK, FPSR_MASK};
use kvrm::{Error, Lanes, Machine, MemoryModel, Reg, Registers, Stop};

use crate::support::{
    CODE, DATA, FPCR, FPSR, HALT, Snapshot, Subject, load, run, run_to_halt, set_x, x,
};

for_every_engine! {
    halves_that_stay_as_they_are,
    every_register_keeps_its_value, narrow_names_of_vectors, vectors_of_all_lanes,
    bits_that_do_not_exist, guests_see_fpcr_and_fpsr, runs_leave_vectors_alone,
    resets_clear_vectors, lanes_are_copied, roll_backs_restore_them_all, v_is_too_wide_for_64_bits,
}

for_split_engines! {
    every_register_keeps_its_value, narrow_names_of_vectors, vectors_of_all_lanes,
    guests_see_fpcr_and_fpsr, runs_leave_vectors_alone, resets_clear_vectors, lanes_are_copied,
}

/// On two devices: 64 lanes and 36.
const LANES: usize = 100;

/// A value for a vector register, different in all lanes and registers.
fn pattern(lane: usize, n: u8) -> u128 {
    let low = 0x0123_4567_89ab_cdef ^ (lane as u64) << 8 ^ u64::from(n);
    u128::from(low) | u128::from(!low) << 64
}

fn set_patterns(machine: &mut Machine) {
    for lane in 0..machine.lanes() {
        (0..32).for_each(|n| machine.set_vector(lane, n, pattern(lane, n)).unwrap());
    }
}

fn assert_patterns(machine: &Machine) {
    for lane in 0..machine.lanes() {
        let expected = std::array::from_fn(|n| pattern(lane, n as u8));
        assert_eq!(machine.registers(lane).unwrap().v, expected, "lane {lane}");
    }
}

fn every_register_keeps_its_value(subject: Subject) {
    let mut machine = subject.private(LANES, 2, &[]);
    let value = |lane: usize, reg: Reg| match reg {
        Reg::V(n) => pattern(lane, n),
        Reg::Nzcv => (lane as u128 % 16) << 28,
        Reg::Fpcr => (lane as u128 % 4) << 22,
        Reg::Fpsr => lane as u128 % 16,
        _ => (lane as u128 + 1) << 40,
    };
    for lane in [0, 63, 64, LANES - 1] {
        for reg in Reg::all() {
            match reg {
                Reg::V(n) => machine.set_vector(lane, n, value(lane, reg)).unwrap(),
                _ => machine.set_register(lane, reg, value(lane, reg) as u64).unwrap(),
            }
        }
    }
    for lane in [0, 63, 64, LANES - 1] {
        let registers = machine.registers(lane).unwrap();
        for reg in Reg::all() {
            assert_eq!(registers.get(reg), value(lane, reg), "{reg} of lane {lane}");
            let read = match reg {
                Reg::V(n) => machine.vector(lane, n).unwrap(),
                _ => machine.register(lane, reg).unwrap().into(),
            };
            assert_eq!(read, value(lane, reg), "{reg} of lane {lane}");
        }
    }
    assert_eq!(machine.registers(1).unwrap().v, [0; 32]);
}

fn narrow_names_of_vectors(subject: Subject) {
    let mut machine = subject.private(3, 1, &[]);
    let (full, low) = (pattern(1, 31), pattern(1, 31) as u64);
    for (reg, mask) in [
        (Reg::D(31), u64::MAX),
        (Reg::S(31), 0xffff_ffff),
        (Reg::H(31), 0xffff),
        (Reg::B(31), 0xff),
    ] {
        machine.set_vector(Lanes::All, 31, full).unwrap();
        assert_eq!(machine.register(1, reg).unwrap(), low & mask, "{reg}");
        // Writing takes the low bits, and clears what is above them.
        machine.set_register(1, reg, !low).unwrap();
        assert_eq!(machine.vector(1, 31).unwrap(), (!low & mask).into(), "{reg}");
        assert_eq!(machine.vector(0, 31).unwrap(), full);
        assert_eq!(machine.registers(1).unwrap().get(reg), (!low & mask).into());
        assert_eq!(machine.vector(1, 30).unwrap(), 0);
        let mut values = [0; 3];
        machine.write_register(reg, &[low, 2, 3]).unwrap();
        machine.read_register(reg, &mut values).unwrap();
        assert_eq!(values, [low & mask, 2, 3]);
        assert_eq!(machine.vector(0, 31).unwrap(), (low & mask).into(), "{reg}");
    }
}

fn vectors_of_all_lanes(subject: Subject) {
    let mut machine = subject.private(LANES, 2, &[]);
    let mut values = vec![1; 32 * LANES];
    machine.read_vectors(&mut values).unwrap();
    assert_eq!(values, [0; 32 * LANES]);
    for (lane, row) in values.chunks_exact_mut(32).enumerate() {
        (0..32).for_each(|n| row[n] = pattern(lane, n as u8));
    }
    machine.write_vectors(&values).unwrap();
    assert_patterns(&machine);
    machine.set_vector(64, 5, 7).unwrap();
    values[64 * 32 + 5] = 7;
    let mut seen = vec![0; 32 * LANES];
    machine.read_vectors(&mut seen).unwrap();
    assert_eq!(seen, values);
    let ds: Vec<u64> = (0..LANES as u64).map(|lane| (lane as f64).to_bits()).collect();
    machine.write_register(Reg::D(6), &ds).unwrap();
    assert_eq!(machine.vector(63, 6).unwrap(), 63f64.to_bits().into());
    for result in [
        machine.read_vectors(&mut seen[1..]),
        machine.write_vectors(&seen[..31 * LANES]),
        machine.read_register(Reg::S(0), &mut [0; 3]),
    ] {
        assert!(matches!(result, Err(Error::WrongLength { .. })), "{result:?}");
    }
}

fn bits_that_do_not_exist(subject: Subject) {
    let mut machine = subject.private(2, 1, &[]);
    let read =
        |machine: &Machine| [Reg::Fpcr, Reg::Fpsr].map(|reg| machine.register(1, reg).unwrap());
    for reg in [Reg::Fpcr, Reg::Fpsr] {
        machine.set_register(Lanes::All, reg, u64::MAX).unwrap();
    }
    assert_eq!(read(&machine), [FPCR_MASK, FPSR_MASK]);
    machine.write_register(Reg::Fpcr, &[0, 1 << 63 | 1 << 22]).unwrap();
    assert_eq!(read(&machine), [1 << 22, FPSR_MASK]);
    let registers = Registers { fpcr: u64::MAX, fpsr: 0x100, ..Registers::default() };
    assert_eq!(registers.get(Reg::Fpcr), FPCR_MASK.into());
    machine.set_registers(1, &registers).unwrap();
    assert_eq!(read(&machine), [FPCR_MASK, 0]);
}

fn guests_see_fpcr_and_fpsr(subject: Subject) {
    let code = asm!(
        ; mrs x0, FPCR ; mrs x1, FPSR ; movn x2, 0 ; msr FPCR, x2 ; eor x1, x1, 1 ; msr FPSR, x1
        ; hlt 0);
    let mut machine = subject.private(LANES, 2, &code);
    for lane in 0..LANES {
        machine.set_register(lane, Reg::Fpcr, (lane as u64 % 4) << 22).unwrap();
        machine.set_register(lane, Reg::Fpsr, lane as u64 % 16).unwrap();
    }
    run_to_halt(&mut machine);
    for lane in 0..LANES {
        assert_eq!(x(&machine, lane, 0), (lane as u64 % 4) << 22, "lane {lane}");
        assert_eq!(machine.register(lane, Reg::Fpcr).unwrap(), FPCR_MASK, "lane {lane}");
        let fpsr = machine.register(lane, Reg::Fpsr).unwrap();
        assert_eq!(fpsr, (lane as u64 % 16) ^ 1, "lane {lane}");
    }
}

fn runs_leave_vectors_alone(subject: Subject) {
    let code = asm!(; add x0, x0, 1 ; nop ; str x0, [x28] ; svc 0 ; add x0, x0, 1 ; hlt 0);
    let mut machine = subject.private(LANES, 2, &code);
    set_patterns(&mut machine);
    // The host steps over it.
    machine.add_breakpoint(CODE + 4).unwrap();
    for stop in [Stop::Breakpoint { imm: None }, Stop::Syscall { imm: 0 }, Stop::Halt { imm: 0 }] {
        machine.run(1000).unwrap();
        assert_eq!(machine.stop(LANES - 1).unwrap(), Some(stop));
        assert_patterns(&machine);
    }
    // What is set between two runs stays, too.
    machine.set_vector(7, 3, 9).unwrap();
    machine.set_pc(Lanes::All, CODE).unwrap();
    machine.run(1000).unwrap();
    assert_eq!((machine.vector(7, 3).unwrap(), machine.vector(8, 3).unwrap()), (9, pattern(8, 3)));
}

fn resets_clear_vectors(subject: Subject) {
    let mut machine = subject.private(LANES, 2, &asm!(; hlt 0));
    set_patterns(&mut machine);
    for reg in [Reg::Fpcr, Reg::Fpsr] {
        machine.set_register(Lanes::All, reg, u64::MAX).unwrap();
    }
    run_to_halt(&mut machine);
    for lane in [63, 64] {
        machine.reset(lane).unwrap();
        let clear = Registers { pc: CODE, ..Registers::default() };
        assert_eq!(machine.registers(lane).unwrap(), clear);
    }
    assert_eq!(machine.vector(62, 9).unwrap(), pattern(62, 9));
    assert_eq!(machine.register(65, Reg::Fpsr).unwrap(), FPSR_MASK);
    machine.reset(Lanes::All).unwrap();
    let mut values = vec![1; 32 * LANES];
    machine.read_vectors(&mut values).unwrap();
    assert_eq!(values, [0; 32 * LANES]);
}

fn lanes_are_copied(subject: Subject) {
    let mut machine = subject.private(LANES, 2, &[]);
    set_patterns(&mut machine);
    machine.set_register(0, Reg::Fpsr, 0x9f).unwrap();
    let first = machine.registers(0).unwrap();
    machine.set_registers(70, &first).unwrap();
    assert_eq!(Snapshot::of(&machine, 70), Snapshot::of(&machine, 0));
    assert_eq!(machine.vector(71, 1).unwrap(), pattern(71, 1));
    machine.set_registers(Lanes::All, &first).unwrap();
    assert!((0..LANES).all(|lane| machine.registers(lane).unwrap() == first));
}

fn roll_backs_restore_them_all(subject: Subject) {
    // Lane 0 changes FPCR and FPSR, and halts; lane 1 reads outside memory.
    let code = asm!(
        ; movn x0, 0 ; msr FPCR, x0 ; msr FPSR, x0 ; cbnz x27, >fault ; hlt 0
        ; fault: ; ldur x0, [x0, -8]);
    let builder = subject.builder().lanes(2).model(MemoryModel::DoubleBuffered);
    let mut machine = load(builder, &code);
    set_patterns(&mut machine);
    machine.set_register(Lanes::All, Reg::Fpcr, 1 << 24).unwrap();
    let before = [0, 1].map(|lane| machine.registers(lane).unwrap());
    assert!(!machine.run(100).unwrap().committed);
    assert_eq!([0, 1].map(|lane| machine.registers(lane).unwrap()), before);
    // Without the fault, it stays.
    machine.set_register(1, Reg::X(27), 0).unwrap();
    assert!(machine.run(100).unwrap().committed);
    assert_patterns(&machine);
    for lane in [0, 1] {
        assert_eq!(machine.register(lane, Reg::Fpcr).unwrap(), FPCR_MASK);
        assert_eq!(machine.register(lane, Reg::Fpsr).unwrap(), FPSR_MASK);
    }
}

fn v_is_too_wide_for_64_bits(subject: Subject) {
    let mut machine = subject.private(2, 1, &[]);
    for result in [
        machine.register(0, Reg::V(3)).map(drop),
        machine.set_register(0, Reg::V(3), 1),
        machine.read_register(Reg::V(3), &mut [0; 2]),
        machine.write_register(Reg::V(3), &[0; 2]),
    ] {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::WideRegister(3)), "{error:?}");
        assert!(error.to_string().contains("use vector, set_vector"), "{error}");
    }
}

/// The upper half of a register changes again and again, the lower one never: what a compiler may well mix up.
fn halves_that_stay_as_they_are(subject: Subject) {
    let code = asm!(
        ; mov x5, 3 ; again: ; ldr w2, [x28] ; movk x1, 0x1234, lsl 32 ; bfi x3, x2, 32, 32
        ; subs x5, x5, 1 ; b.ne <again ; hlt 0);
    let mut machine = subject.machine(&code);
    set_x(&mut machine, 0, 1, 0xdead_beef);
    set_x(&mut machine, 0, 3, 0x5566_7788);
    machine.write_memory(0, DATA, &7u32.to_le_bytes()).unwrap();
    assert_eq!(run(&mut machine), HALT);
    assert_eq!([1, 3].map(|n| x(&machine, 0, n)), [0x1234_dead_beef, 0x7_5566_7788]);
}
