//! Runs a case in the forms that must agree.

use kvrm::{EngineKind, FaultKind, Machine, MemoryModel, Registers, Stop};
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
    /// The CPU engine, translating.
    Cpu,
    /// The CPU engine, interpreting.
    Interpreted,
}

/// All forms, in the order of the results of [`Ours::run`].
pub const FORMS: [Form; 4] = [Form::Kernel, Form::Translated, Form::Cpu, Form::Interpreted];

/// Our machines, which run all cases.
pub struct Ours {
    eval: Engine,
    flat: Flat,
    cpu: Engine,
    interpreting: Engine,
}

impl Ours {
    /// Builds the machines.
    pub fn new() -> kvrm::Result<Ours> {
        Ok(Ours {
            eval: Engine::new(EngineKind::Eval, 0)?,
            flat: Flat::default(),
            cpu: Engine::new(EngineKind::Cpu, 0)?,
            interpreting: Engine::new(EngineKind::Cpu, u32::MAX)?,
        })
    }

    /// Runs a case in every form.
    pub fn run(&mut self, case: &Case) -> kvrm::Result<[Ran; FORMS.len()]> {
        let [eval, cpu, interpreting] = [&mut self.eval, &mut self.cpu, &mut self.interpreting];
        Ok([eval.run(case)?, self.flat.run(case).0, cpu.run(case)?, interpreting.run(case)?])
    }

    /// Returns the reference engine and the CPU engine, for runs in pieces.
    pub fn engines(&mut self) -> kvrm::Result<[&mut Machine; 2]> {
        self.eval.remove_code()?;
        self.cpu.remove_code()?;
        Ok([&mut self.eval.machine, &mut self.cpu.machine])
    }
}

/// A machine whose image has the code of the last case. The next case may have the same: then it is not translated
/// again, which takes longer than anything else here.
struct Engine {
    machine: Machine,
    code: Vec<u32>,
    code_address: u64,
}

impl Engine {
    fn new(engine: EngineKind, translate_after: u32) -> kvrm::Result<Engine> {
        let machine = machine(engine, translate_after)?;
        Ok(Engine { machine, code: Vec::new(), code_address: 0 })
    }

    fn code_end(&self) -> u64 {
        self.code_address + 4 * self.code.len() as u64
    }

    fn remove_code(&mut self) -> kvrm::Result<()> {
        self.machine.remove_breakpoint(self.code_end());
        self.machine.load(self.code_address, &vec![0; 4 * self.code.len()])?;
        self.code.clear();
        Ok(())
    }

    /// Puts a case's code into the image. A breakpoint at its end makes translations end there too.
    fn place_code(&mut self, case: &Case) -> kvrm::Result<()> {
        if self.code == case.code && self.code_address == case.code_address {
            return Ok(());
        }
        self.remove_code()?;
        self.code.clone_from(&case.code);
        self.code_address = case.code_address;
        self.machine.load(case.code_address, &code_bytes(case))?;
        self.machine.add_breakpoint(end_of(case))
    }

    fn run(&mut self, case: &Case) -> kvrm::Result<Ran> {
        self.place_code(case)?;
        self.machine.reset(0)?;
        begin(&mut self.machine, case)?;
        self.machine.run(case.max_instructions.into())?;
        result(&self.machine, case)
    }
}

fn machine(engine: EngineKind, translate_after: u32) -> kvrm::Result<Machine> {
    Machine::builder()
        .engine(engine)
        .memory(MEMORY_END)
        .model(MemoryModel::Private)
        .threads(1)
        .translate_after(translate_after)
        .build()
}

fn code_bytes(case: &Case) -> Vec<u8> {
    case.code.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Puts a case, code and all, into a machine's first lane.
pub fn load(machine: &mut Machine, case: &Case) -> kvrm::Result<()> {
    machine.reset(0)?;
    machine.write_memory(0, case.code_address, &code_bytes(case))?;
    begin(machine, case)
}

/// Gives a machine's first lane a case's window and registers.
fn begin(machine: &mut Machine, case: &Case) -> kvrm::Result<()> {
    machine.write_memory(0, WINDOW_START, &case.window)?;
    machine.set_registers(0, &registers(&case.state, case.code_address))
}

/// Converts an oracle's registers to a machine's.
pub fn registers(state: &State, pc: u64) -> Registers {
    let State { x, sp, nzcv, tpidr_el0, v, fpcr, fpsr } = *state;
    Registers { x, sp, pc, nzcv, tpidr_el0, v, fpcr, fpsr }
}

/// Converts a machine's registers to an oracle's.
pub fn state(registers: &Registers) -> State {
    let Registers { x, sp, pc: _, nzcv, tpidr_el0, v, fpcr, fpsr } = *registers;
    State { x, sp, nzcv, tpidr_el0, v, fpcr, fpsr }
}

/// Returns the result of a machine's first lane. A case that has reached the end of its code, or is a single
/// instruction that has completed, has no stop.
pub fn result(machine: &Machine, case: &Case) -> kvrm::Result<Ran> {
    let registers = machine.registers(0)?;
    let count = machine.total_cycles(0)?;
    let at_end = registers.pc == end_of(case);
    let single_done = case.max_instructions == 1 && count == 1;
    let stop = machine.stop(0)?.filter(|stop| match stop {
        Stop::Breakpoint { imm: None } => !at_end,
        Stop::MaxCycles => !at_end && !single_done,
        _ => true,
    });
    let mut window = [0; WINDOW_LEN];
    machine.read_memory(0, WINDOW_START, &mut window)?;
    Ok(Ran::new(case, stop, &state(&registers), registers.pc, count, |w| {
        w.copy_from_slice(&window);
    }))
}

/// Returns the address after a case's code.
pub fn end_of(case: &Case) -> u64 {
    case.code_address + 4 * case.code.len() as u64
}
