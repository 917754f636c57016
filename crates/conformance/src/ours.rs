//! Runs a case in the three forms that must agree.

use kvrm::{EngineKind, FaultKind, Machine, MemoryModel, Reg, Stop};
use kvrm_oracles::{Case, MEMORY_END, Outcome, OutcomeKind, State, WINDOW_LEN, WINDOW_START};

use crate::flat::Flat;

/// The result of a case on one of our machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Why it stopped; `None` if it ran to its end.
    pub stop: Option<Stop>,
    /// Instructions completed.
    pub count: u64,
    /// The same in an oracle's terms; a halt, which no oracle knows, is `Other`.
    pub outcome: Outcome,
}

impl Ran {
    /// Makes the result of a case; `window` fills in the data window.
    pub fn new(
        case: &Case,
        stop: Option<Stop>,
        state: &State,
        pc: u64,
        count: u64,
        window: impl FnOnce(&mut [u8]),
    ) -> Ran {
        let (kind, detail) = outcome_kind(stop);
        let mut outcome = Outcome { kind, detail, pc, state: *state, window: case.window };
        window(&mut outcome.window);
        Ran { stop, count, outcome }
    }
}

/// Returns a stop in an oracle's terms.
fn outcome_kind(stop: Option<Stop>) -> (OutcomeKind, u64) {
    match stop {
        None => (OutcomeKind::Done, 0),
        Some(Stop::Halt { .. } | Stop::ZeroWord) => (OutcomeKind::Other, 0),
        Some(Stop::Syscall { imm }) => (OutcomeKind::Svc, imm.into()),
        Some(Stop::Breakpoint { .. }) => (OutcomeKind::Brk, 0),
        Some(Stop::MaxCycles) => (OutcomeKind::Limit, 0),
        Some(Stop::Undefined { .. }) => (OutcomeKind::Undefined, 0),
        Some(Stop::OutOfMemory { .. }) => (OutcomeKind::Other, 0),
        Some(Stop::Fault { kind, address }) => match kind {
            FaultKind::Unaligned => (OutcomeKind::AlignmentFault, address),
            FaultKind::Read | FaultKind::Write | FaultKind::Fetch => {
                (OutcomeKind::MemoryFault, address)
            }
        },
    }
}

/// The forms an instruction comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The reference engine, which knows only the instruction's shape before it runs.
    Kernel,
    /// The translated form, evaluated: word and address known.
    Translated,
    /// The CPU engine.
    Cpu,
}

/// All forms, in the order of the results of [`Ours::run`].
pub const FORMS: [Form; 3] = [Form::Kernel, Form::Translated, Form::Cpu];

/// Our machines, which run all cases.
pub struct Ours {
    eval: Machine,
    flat: Flat,
    cpu: Machine,
}

impl Ours {
    /// Builds the machines.
    pub fn new() -> kvrm::Result<Ours> {
        Ok(Ours {
            eval: machine(EngineKind::Eval)?,
            flat: Flat::default(),
            cpu: machine(EngineKind::Cpu)?,
        })
    }

    /// Runs a case in every form.
    pub fn run(&mut self, case: &Case) -> kvrm::Result<[Ran; 3]> {
        Ok([run_on(&mut self.eval, case)?, self.flat.run(case).0, run_on(&mut self.cpu, case)?])
    }

    /// Returns the reference engine and the CPU engine, for runs in pieces.
    pub fn engines(&mut self) -> [&mut Machine; 2] {
        [&mut self.eval, &mut self.cpu]
    }
}

fn machine(engine: EngineKind) -> kvrm::Result<Machine> {
    Machine::builder()
        .engine(engine)
        .memory(MEMORY_END)
        .model(MemoryModel::Private)
        .threads(1)
        .translate_after(0)
        .build()
}

/// Puts a case into a machine's first lane.
pub fn load(machine: &mut Machine, case: &Case) -> kvrm::Result<()> {
    machine.reset(0)?;
    let code: Vec<u8> = case.code.iter().flat_map(|word| word.to_le_bytes()).collect();
    machine.write_memory(0, case.code_address, &code)?;
    machine.write_memory(0, WINDOW_START, &case.window)?;
    for (i, value) in case.state.x.iter().enumerate() {
        machine.set_register(0, Reg::X(i as u8), *value)?;
    }
    machine.set_register(0, Reg::Sp, case.state.sp)?;
    machine.set_register(0, Reg::Nzcv, case.state.nzcv)?;
    machine.set_register(0, Reg::TpidrEl0, case.state.tpidr_el0)?;
    machine.set_pc(0, case.code_address)
}

/// Returns the result of a machine's first lane. A case that has reached the end of its code, or is a single
/// instruction that has completed, has no stop.
pub fn result(machine: &Machine, case: &Case) -> kvrm::Result<Ran> {
    let register = |reg| machine.register(0, reg);
    let mut state = State::default();
    for (i, value) in state.x.iter_mut().enumerate() {
        *value = register(Reg::X(i as u8))?;
    }
    state.sp = register(Reg::Sp)?;
    state.nzcv = register(Reg::Nzcv)?;
    state.tpidr_el0 = register(Reg::TpidrEl0)?;
    let pc = machine.pc(0)?;
    let count = machine.total_cycles(0)?;
    let at_end = pc == end_of(case);
    let single_done = case.max_instructions == 1 && count == 1;
    let stop = machine.stop(0)?.filter(|stop| match stop {
        Stop::Breakpoint { imm: None } => !at_end,
        Stop::MaxCycles => !at_end && !single_done,
        _ => true,
    });
    let mut window = [0; WINDOW_LEN];
    machine.read_memory(0, WINDOW_START, &mut window)?;
    Ok(Ran::new(case, stop, &state, pc, count, |w| {
        w.copy_from_slice(&window);
    }))
}

/// Returns the address after a case's code.
pub fn end_of(case: &Case) -> u64 {
    case.code_address + 4 * case.code.len() as u64
}

fn run_on(machine: &mut Machine, case: &Case) -> kvrm::Result<Ran> {
    load(machine, case)?;
    if case.max_instructions == 1 {
        machine.run(1)?;
    } else {
        machine.add_breakpoint(end_of(case))?;
        machine.run(case.max_instructions.into())?;
        machine.remove_breakpoint(end_of(case));
    }
    result(machine, case)
}
