//! Machines to test, and looking at them.

use kvrm::{EngineKind, Lanes, Machine, MachineBuilder, MemoryModel, Reg, Stop};
use kvrm_fuzzing::program::Setup;

/// Where programs are.
pub(crate) const CODE: u64 = 0x1000;
/// Memory that programs may use; [`data`] points a register there.
pub(crate) const DATA: u64 = 0x8000;
/// Size of memory.
pub(crate) const MEMORY: u64 = 0x20000;

/// A system register as the assembler wants it.
const fn system_register(op1: u32, crn: u32, crm: u32, op2: u32) -> u32 {
    1 << 14 | op1 << 11 | crn << 7 | crm << 3 | op2
}

pub(crate) const NZCV: u32 = system_register(3, 4, 2, 0);
pub(crate) const FPCR: u32 = system_register(3, 4, 4, 0);
pub(crate) const FPSR: u32 = system_register(3, 4, 4, 1);
pub(crate) const TPIDR_EL0: u32 = system_register(3, 13, 0, 2);
pub(crate) const CNTVCT: u32 = system_register(3, 14, 0, 2);

/// What a test is about: an engine and its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) setup: Setup,
    /// Devices to split lanes over; none for engines that have no devices, or for the first.
    devices: &'static [usize],
    /// Bytes for translated code, if not as many as by default.
    pub(crate) code_memory: Option<u64>,
}

impl Subject {
    pub(crate) const TRANSLATING: Subject = Subject::new(Setup::TRANSLATING);
    pub(crate) const INTERPRETING: Subject =
        Subject::new(Setup { translate_after: u32::MAX, ..Setup::TRANSLATING });
    /// Where code is translated after it was interpreted a few times.
    pub(crate) const SWITCHING: Subject =
        Subject::new(Setup { translate_after: 3, ..Setup::TRANSLATING });
    /// As users have it.
    pub(crate) const CPU: Subject = Subject::new(Setup {
        translate_after: MachineBuilder::TRANSLATE_AFTER,
        ..Setup::TRANSLATING
    });
    pub(crate) const EVAL: Subject = Subject::new(Setup::REFERENCE);
    /// Where all code is translated before it runs.
    pub(crate) const CUDA: Subject =
        Subject::new(Setup { engine: EngineKind::Cuda, translate_after: 0 });
    pub(crate) const CUDA_INTERPRETING: Subject =
        Subject::new(Setup { engine: EngineKind::Cuda, translate_after: u32::MAX });
    /// Where code is translated after a lane has executed twelve instructions.
    pub(crate) const CUDA_SWITCHING: Subject =
        Subject::new(Setup { engine: EngineKind::Cuda, translate_after: 3 });
    /// The same three.
    pub(crate) const WGPU: Subject =
        Subject::new(Setup { engine: EngineKind::Wgpu, translate_after: 0 });
    pub(crate) const WGPU_INTERPRETING: Subject =
        Subject::new(Setup { engine: EngineKind::Wgpu, translate_after: u32::MAX });
    pub(crate) const WGPU_SWITCHING: Subject =
        Subject::new(Setup { engine: EngineKind::Wgpu, translate_after: 3 });
    /// Where a few translations are all that there is room for.
    pub(crate) const EVICTING: Subject =
        Subject { code_memory: Some(16 << 10), ..Subject::TRANSLATING };
    /// One GPU as two, since few computers have several.
    pub(crate) const CUDA_SPLIT: Subject = Subject { devices: &[0, 0], ..Subject::CUDA };

    const fn new(setup: Setup) -> Subject {
        Subject { setup, devices: &[], code_memory: None }
    }

    /// Starts building a machine with a small memory.
    pub(crate) fn builder(self) -> MachineBuilder {
        let Setup { engine, translate_after } = self.setup;
        let builder = Machine::builder().engine(engine).translate_after(translate_after);
        let builder = builder.devices(self.devices.iter().copied()).memory(MEMORY);
        match self.code_memory {
            Some(bytes) => builder.code_memory(bytes),
            None => builder,
        }
    }

    /// One lane with private memory, about to run `code`, with the address of [`DATA`] in X28.
    pub(crate) fn machine(self, code: &[u8]) -> Machine {
        load(self.builder(), code)
    }

    /// Lanes that share memory, about to run `code`; each has its number in X27.
    pub(crate) fn shared(self, lanes: usize, threads: usize, code: &[u8]) -> Machine {
        load(self.builder().lanes(lanes).threads(threads).model(MemoryModel::Shared), code)
    }

    /// Lanes with a memory each, about to run `code`; each has its number in X27.
    pub(crate) fn private(self, lanes: usize, threads: usize, code: &[u8]) -> Machine {
        load(self.builder().lanes(lanes).threads(threads), code)
    }

    /// True for engines that execute a few million instructions a second in one lane.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self.setup.engine, EngineKind::Eval | EngineKind::Cuda | EngineKind::Wgpu)
    }
}

/// Builds a machine about to run `code`.
pub(crate) fn load(builder: MachineBuilder, code: &[u8]) -> Machine {
    let mut machine = builder.build().unwrap();
    machine.load(CODE, code).unwrap();
    machine.set_entry(CODE).unwrap();
    set_up(&mut machine);
    machine
}

/// Sets the registers that programs rely on.
pub(crate) fn set_up(machine: &mut Machine) {
    machine.set_register(Lanes::All, Reg::X(28), DATA).unwrap();
    for lane in 0..machine.lanes() {
        machine.set_register(lane, Reg::X(27), lane as u64).unwrap();
    }
}

/// Everything the host can see of a lane's registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) stop: Option<Stop>,
    pub(crate) count: u64,
    pub(crate) registers: Vec<(Reg, u128)>,
}

impl Snapshot {
    pub(crate) fn of(machine: &Machine, lane: usize) -> Snapshot {
        let registers = machine.registers(lane).unwrap();
        Snapshot {
            stop: machine.stop(lane).unwrap(),
            count: machine.total_cycles(lane).unwrap(),
            registers: Reg::all().map(|reg| (reg, registers.get(reg))).collect(),
        }
    }
}

pub(crate) fn x(machine: &Machine, lane: usize, n: u8) -> u64 {
    machine.register(lane, Reg::X(n)).unwrap()
}

pub(crate) fn set_x(machine: &mut Machine, lane: usize, n: u8, value: u64) {
    machine.set_register(lane, Reg::X(n), value).unwrap();
}

pub(crate) fn read_u64(machine: &Machine, lane: usize, address: u64) -> u64 {
    let mut bytes = [0; 8];
    machine.read_memory(lane, address, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

pub(crate) fn all_memory(machine: &Machine, lane: usize) -> Vec<u8> {
    let mut bytes = vec![0; machine.memory_size() as usize];
    machine.read_memory(lane, 0, &mut bytes).unwrap();
    bytes
}

/// Runs until something other than the limit stops lane 0, which is returned.
pub(crate) fn run(machine: &mut Machine) -> Stop {
    machine.run(100_000_000).unwrap();
    machine.stop(0).unwrap().expect("the run was not cancelled")
}

pub(crate) const HALT: Stop = Stop::Halt { imm: 0 };

/// Runs all lanes until they halt.
pub(crate) fn run_to_halt(machine: &mut Machine) {
    machine.run(100_000_000).unwrap();
    for lane in 0..machine.lanes() {
        assert_eq!(machine.stop(lane).unwrap(), Some(HALT), "lane {lane}");
    }
}

/// The word of an instruction.
pub(crate) fn word(code: &[u8]) -> u32 {
    u32::from_le_bytes(code.try_into().expect("one instruction"))
}

/// Pseudorandom numbers.
pub(crate) fn random_numbers(seed: u64) -> impl Iterator<Item = u64> {
    let bytes = kvrm_fuzzing::random_bytes(seed, 1 << 16);
    (0..bytes.len() / 8)
        .map(move |i| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("8 bytes")))
        .cycle()
}
