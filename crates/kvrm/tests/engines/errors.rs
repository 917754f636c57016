//! Every failure of the host's side.

use kvrm::{EngineKind, Error, Lanes, Machine, MemoryModel, Reg, Registers};

use crate::support::{MEMORY, Subject};

for_every_engine! { lanes_that_do_not_exist, addresses_outside_memory, misaligned_counters, registers, sizes, rows, no_room }

for_split_engines! { lanes_that_do_not_exist, sizes, no_room }

fn lanes_that_do_not_exist(subject: Subject) {
    let mut machine = subject.private(3, 1, &[]);
    let fails = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::NoSuchLane { lane: 3, lanes: 3 })), "{result:?}");
    };
    fails(machine.register(3, Reg::Pc).map(drop));
    fails(machine.pc(3).map(drop));
    fails(machine.stop(3).map(drop));
    fails(machine.cycles(3).map(drop));
    fails(machine.total_cycles(3).map(drop));
    fails(machine.read_memory(3, 0, &mut [0]));
    fails(machine.write_memory(3, 0, &[0]));
    fails(machine.set_register(3, Reg::Sp, 0));
    fails(machine.set_register(3, Reg::D(0), 0));
    fails(machine.vector(3, 0).map(drop));
    fails(machine.set_vector(3, 0, 0));
    fails(machine.registers(3).map(drop));
    fails(machine.set_registers(3, &Registers::default()));
    fails(machine.set_pc(Lanes::One(3), 0));
    fails(machine.reset(3));
}

fn addresses_outside_memory(subject: Subject) {
    let mut machine = subject.machine(&[]);
    for (address, len) in
        [(MEMORY, 1), (MEMORY - 1, 2), (u64::MAX, 1), (u64::MAX - 1, 16), (1 << 63, 4)]
    {
        let mut bytes = vec![0; len as usize];
        for result in [
            machine.read_memory(0, address, &mut bytes),
            machine.write_memory(0, address, &bytes),
            machine.write_memory(Lanes::All, address, &bytes),
            machine.load(address, &bytes),
        ] {
            match result {
                Err(Error::OutsideMemory { address: at, len: n, size }) => {
                    assert_eq!((at, n, size), (address, len, MEMORY));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    machine.load(MEMORY - 1, &[1]).unwrap();
}

fn rows(subject: Subject) {
    let mut machine = subject.private(3, 1, &[]);
    for result in [machine.read_lanes(0, &mut [0; 8]), machine.write_lanes(0, &[0; 8])] {
        assert!(matches!(result, Err(Error::Uneven { len: 8, lanes: 3 })), "{result:?}");
    }
    for result in
        [machine.read_lanes(MEMORY - 2, &mut [0; 9]), machine.write_lanes(MEMORY - 2, &[0; 9])]
    {
        assert!(matches!(result, Err(Error::OutsideMemory { len: 3, .. })), "{result:?}");
    }
    machine.write_lanes(MEMORY, &[]).unwrap();
    machine.read_lanes(MEMORY, &mut []).unwrap();
    let mut machine = subject.shared(3, 1, &[]);
    assert!(matches!(machine.write_lanes(0, &[0; 3]), Err(Error::OneMemory)));
    machine.read_lanes(0, &mut [0; 3]).unwrap();
}

fn misaligned_counters(subject: Subject) {
    let mut machine = subject.machine(&[]);
    for pc in [1, 2, 3, 0x1002, u64::MAX] {
        let registers = Registers { pc, ..Registers::default() };
        for result in [
            machine.set_pc(0, pc),
            machine.set_registers(0, &registers),
            machine.set_entry(pc),
            machine.add_breakpoint(pc),
        ] {
            assert!(matches!(result, Err(Error::MisalignedPc(at)) if at == pc));
        }
    }
    machine.set_pc(0, MEMORY + 4).unwrap();
    machine.add_breakpoint(MEMORY + 4).unwrap();
}

fn registers(subject: Subject) {
    /// What every register can hold, but V, FPCR and FPSR.
    const V: u64 = 0xf000_0000;
    let mut machine = subject.machine(&[]);
    for reg in [Reg::X(31), Reg::W(31), Reg::X(255), Reg::V(32), Reg::D(32), Reg::B(255)] {
        assert!(matches!(machine.register(0, reg), Err(Error::UnknownRegister(_))));
        assert!(matches!(machine.set_register(0, reg, 0), Err(Error::UnknownRegister(_))));
    }
    assert!(matches!(machine.vector(0, 32), Err(Error::UnknownRegister(_))));
    assert!(matches!(machine.set_vector(0, 32, 0), Err(Error::UnknownRegister(_))));
    for name in [
        "", "x", "x31", "x-1", "w+1", "x1 ", "r0", "é", "xé", "pc1", "v32", "q32", "d-1", "s",
        "h+1", "b256", "fp0", "v0.s",
    ] {
        assert!(matches!(name.parse::<Reg>(), Err(Error::UnknownRegister(_))), "{name}");
    }
    for reg in Reg::all() {
        assert_eq!(reg.to_string().parse::<Reg>().unwrap(), reg);
        if matches!(reg, Reg::V(_) | Reg::Fpcr | Reg::Fpsr) {
            continue;
        }
        machine.set_register(0, reg, V).unwrap();
        assert_eq!(machine.register(0, reg).unwrap(), V);
    }
    for (name, reg) in
        [("d31", Reg::D(31)), ("S0", Reg::S(0)), ("h7", Reg::H(7)), ("b1", Reg::B(1))]
    {
        assert_eq!(name.parse::<Reg>().unwrap(), reg);
        assert_eq!(reg.to_string(), name.to_lowercase());
    }
    let registers = machine.registers(0).unwrap();
    assert_eq!((registers.x, registers.sp, registers.pc), ([V; 31], V, V));
    assert_eq!((registers.nzcv, registers.tpidr_el0), (V, V));
    machine.set_registers(0, &Registers { sp: 5, ..registers }).unwrap();
    assert_eq!(machine.register(0, Reg::Sp).unwrap(), 5);
    assert_eq!(machine.registers(0).unwrap(), Registers { sp: 5, ..registers });
    machine.set_register(0, Reg::W(3), u64::MAX).unwrap();
    assert_eq!(machine.register(0, Reg::X(3)).unwrap(), 0xffff_ffff);
}

fn sizes(subject: Subject) {
    let error = |builder: kvrm::MachineBuilder| builder.build().err().expect("it cannot be built");
    assert!(matches!(error(subject.builder().lanes(0)), Error::NoLanes));
    assert!(matches!(error(subject.builder().lanes(1 << 25)), Error::TooManyLanes(_)));
    for size in [0, 1, 4095, 4097, (1 << 40) + 4096, u64::MAX, u64::MAX - 4095] {
        assert!(
            matches!(error(subject.builder().memory(size)), Error::MemorySize(at) if at == size)
        );
    }
    assert!(subject.builder().memory(4096).build().is_ok());
    assert!(matches!("quantum".parse::<EngineKind>(), Err(Error::UnknownEngine(_))));
    for kind in EngineKind::ALL {
        assert_eq!(kind.name().parse::<EngineKind>().unwrap(), kind);
    }
}

/// More address space than there is.
fn no_room(subject: Subject) {
    let builder = subject.builder().lanes(4096).memory(1 << 40).model(MemoryModel::Private);
    let error = builder.build().err().expect("4 PiB cannot be mapped");
    assert!(matches!(error, Error::Engine(_)), "{error}");
    assert!(error.to_string().contains("use fewer lanes"), "{error}");
}

/// The names in `Machine`'s messages are those users type.
#[test]
fn messages_say_what_to_do() {
    let error = Machine::builder().memory(5).build().err().expect("it cannot be built");
    assert!(error.to_string().contains("multiple of 4096"));
    let error = "gpu9".parse::<EngineKind>().unwrap_err();
    assert!(error.to_string().contains("cpu"));
}
