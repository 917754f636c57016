//! Any sequence of calls to a machine does the same on two engines, and never panics.

use std::ops::ControlFlow;

use kvrm::{Batches, Lanes, Machine, MemoryModel, Reg, RunControl};

use crate::program::Setup;
use crate::{Habit, Source};

/// Guest memory: four pages.
const MEMORY: u64 = 0x4000;
/// Where most code goes: across a page boundary.
const CODE: u64 = 0x1fc0;
/// The most calls in a sequence.
const CALLS: usize = 48;

/// One call.
#[derive(Debug)]
enum Call {
    Load(u64, Vec<u8>),
    WriteMemory(Lanes, u64, Vec<u8>),
    ReadMemory(usize, u64, usize),
    SetRegister(Lanes, Reg, u64),
    SetVector(Lanes, u8, u128),
    SetPc(Lanes, u64),
    SetEntry(u64),
    AddBreakpoint(u64),
    RemoveBreakpoint(u64),
    Run(u64),
    RunBatches(Batches),
    RunCancelled,
    Reset(Lanes),
}

/// Makes the calls in `bytes` on two machines, and compares them.
pub fn check(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let lanes = 1 + source.below(3) as usize;
    let model = match source.below(6) {
        0 => MemoryModel::Shared,
        1 => MemoryModel::ReadOnly,
        2 => MemoryModel::DoubleBuffered,
        _ => MemoryModel::Private,
    };
    let setup = Setup { translate_after: u32::from(source.u8() % 3), ..Setup::TRANSLATING };
    let mut machines = [build(setup, lanes, model), build(Setup::REFERENCE, lanes, model)];
    // Lanes that write one memory take turns differently on every engine.
    let apart = matches!(model, MemoryModel::Private | MemoryModel::ReadOnly);
    let comparable = lanes == 1 || apart;
    let mut history = format!("{setup:?}, {lanes} lanes, {model:?} memory\n");
    for _ in 0..CALLS {
        if source.is_empty() {
            break;
        }
        let call = Call::from_source(&mut source, lanes);
        history.push_str(&format!("{call:x?}\n"));
        let [a, b] = machines.each_mut().map(|machine| {
            let result = call.make(machine).map_err(|e| e.to_string());
            (result, comparable.then(|| state(machine)))
        });
        assert!(!comparable || a == b, "{history}gives\n{a:x?}, not\n{b:x?}");
    }
}

fn build(setup: Setup, lanes: usize, model: MemoryModel) -> Machine {
    let builder = Machine::builder().engine(setup.engine).translate_after(setup.translate_after);
    let builder = builder.lanes(lanes).model(model).memory(MEMORY).threads(2);
    builder.build().expect("small machines can be built")
}

/// Returns everything that can be seen of a machine.
fn state(machine: &Machine) -> impl PartialEq + std::fmt::Debug + use<> {
    let lanes = (0..machine.lanes()).map(|lane| {
        let registers = machine.registers(lane).expect("the lane exists");
        let mut memory = vec![0; MEMORY as usize];
        machine.read_memory(lane, 0, &mut memory).expect("all of memory can be read");
        let counts = (machine.cycles(lane), machine.total_cycles(lane));
        let counts = (counts.0.expect("the lane exists"), counts.1.expect("the lane exists"));
        (machine.stop(lane).expect("the lane exists"), counts, registers, hash(&memory))
    });
    (lanes.collect::<Vec<_>>(), machine.breakpoints().to_vec())
}

/// Hashes bytes (FNV-1a), so that messages stay readable.
fn hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

impl Call {
    fn from_source(source: &mut Source<'_>, lanes: usize) -> Call {
        match source.u8() % 16 {
            0 | 1 => Call::Load(code_address(source), code(source)),
            2 => Call::WriteMemory(some_lanes(source, lanes), code_address(source), code(source)),
            3 => Call::WriteMemory(some_lanes(source, lanes), address(source), data(source)),
            4 => Call::ReadMemory(
                source.below(4) as usize,
                address(source),
                source.below(99) as usize,
            ),
            5 => Call::SetRegister(some_lanes(source, lanes), register(source), source.u64()),
            6 => Call::SetRegister(some_lanes(source, lanes), register(source), address(source)),
            7 => Call::SetPc(some_lanes(source, lanes), code_address(source)),
            8 => Call::SetEntry(code_address(source)),
            9 => Call::AddBreakpoint(code_address(source)),
            10 => Call::RemoveBreakpoint(code_address(source)),
            11 => Call::Reset(some_lanes(source, lanes)),
            12 if source.one_in(4) => Call::RunCancelled,
            12 => {
                let value = u128::from(source.u64()) << 64 | u128::from(source.u64());
                // Sometimes a register that does not exist.
                Call::SetVector(some_lanes(source, lanes), source.u8() % 33, value)
            }
            13 => Call::RunBatches(Batches {
                max: Some(source.below(8)),
                ..Batches::of(source.below(60))
            }),
            _ => Call::Run(source.below(200)),
        }
    }

    /// Makes the call; returns its result as bytes.
    fn make(&self, machine: &mut Machine) -> kvrm::Result<Vec<u8>> {
        match self {
            Call::Load(address, bytes) => machine.load(*address, bytes)?,
            Call::WriteMemory(lanes, address, bytes) => {
                machine.write_memory(*lanes, *address, bytes)?;
            }
            Call::ReadMemory(lane, address, len) => {
                let mut bytes = vec![0; *len];
                machine.read_memory(*lane, *address, &mut bytes)?;
                return Ok(bytes);
            }
            Call::SetRegister(lanes, reg, value) => machine.set_register(*lanes, *reg, *value)?,
            Call::SetVector(lanes, n, value) => machine.set_vector(*lanes, *n, *value)?,
            Call::SetPc(lanes, pc) => machine.set_pc(*lanes, *pc)?,
            Call::SetEntry(pc) => machine.set_entry(*pc)?,
            Call::AddBreakpoint(pc) => machine.add_breakpoint(*pc)?,
            Call::RemoveBreakpoint(pc) => return Ok(vec![machine.remove_breakpoint(*pc).into()]),
            Call::Run(limit) => return Ok(machine.run(*limit)?.cycles.to_le_bytes().to_vec()),
            Call::RunBatches(batches) => {
                let report = machine.run_batches(*batches, |_, _| ControlFlow::Continue(()))?;
                return Ok([report.cycles, report.batches, report.committed.into()]
                    .map(u64::to_le_bytes)
                    .concat());
            }
            Call::RunCancelled => {
                let control = RunControl::new();
                control.cancel();
                let report = machine.run_with(u64::MAX, &control)?;
                return Ok(vec![report.cancelled.into()]);
            }
            Call::Reset(lanes) => machine.reset(*lanes)?,
        }
        Ok(Vec::new())
    }
}

fn some_lanes(source: &mut Source<'_>, lanes: usize) -> Lanes {
    // Sometimes a lane that does not exist.
    match source.u8() % 8 {
        0..4 => Lanes::All,
        number => Lanes::One(usize::from(number) % (lanes + 1)),
    }
}

fn register(source: &mut Source<'_>) -> Reg {
    match source.u8() % 48 {
        n @ 0..32 => Reg::X(n),
        32 => Reg::W(4),
        33 => Reg::Pc,
        34 => Reg::Nzcv,
        35 => Reg::TpidrEl0,
        36 => Reg::Fpcr,
        37 => Reg::Fpsr,
        38 => Reg::D(31),
        39 => Reg::S(7),
        40 => Reg::H(8),
        41 => Reg::B(32),
        42 => Reg::V(1),
        _ => Reg::Sp,
    }
}

/// Picks an address, usually of one of a few words that other calls use too.
fn code_address(source: &mut Source<'_>) -> u64 {
    if source.one_in(16) { address(source) } else { CODE + 4 * source.below(32) }
}

fn address(source: &mut Source<'_>) -> u64 {
    match source.u8() % 8 {
        0 => source.u64(),
        1 => MEMORY - source.below(16),
        2..4 => CODE + source.below(160),
        _ => source.below(MEMORY),
    }
}

fn code(source: &mut Source<'_>) -> Vec<u8> {
    let habit = Habit::from_source(source);
    (0..source.below(20) as usize)
        .flat_map(|i| crate::word(source, habit, i).to_le_bytes())
        .collect()
}

fn data(source: &mut Source<'_>) -> Vec<u8> {
    (0..source.below(40)).map(|_| source.u8()).collect()
}
