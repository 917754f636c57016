//! Differences are found where they are, and nowhere else.

use std::ops::Range;

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::{
    Config, Engine, EngineError, EvalEngine, LaneStatus, RunControl, RunRequest, Stop,
};

use super::{Difference, Plan, RandomPrograms, RandomVerdict, Verdict, verify};
use crate::{EngineKind, Error, Machine, MachineBuilder, MemoryModel, Reg, Result};

/// `again: add x0, x0, #1 ; str x0, [x1] ; add x1, x1, #8 ; subs x2, x2, #1 ; b.ne again ; svc #3`
const CODE: [u32; 6] =
    [0x9100_0400, 0xf900_0020, 0x9100_2021, 0xf100_0442, 0x54ff_ff81, 0xd400_0061];
const START: u64 = 0x1000;
const DATA: u64 = 0x8000;
const TIMES: u64 = 1000;

/// What an engine does wrong once a lane has completed `after` instructions.
#[derive(Clone, Copy)]
struct Mistake {
    lane: usize,
    after: u64,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Register,
    Vector,
    Fpcr,
    Fpsr,
    Memory,
    Stop,
    Count,
}

/// The reference, with a mistake.
struct Wrong {
    inner: EvalEngine,
    mistake: Mistake,
    made: bool,
}

impl Wrong {
    fn is_due(&self, lane: usize) -> bool {
        let count = self.inner.status(lane).unwrap().count;
        lane == self.mistake.lane && count >= self.mistake.after
    }
}

impl Engine for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }
    fn config(&self) -> &Config {
        self.inner.config()
    }
    fn state(&self, lane: usize) -> Result<CpuState, EngineError> {
        self.inner.state(lane)
    }
    fn set_state(&mut self, lane: usize, state: &CpuState) -> Result<(), EngineError> {
        self.inner.set_state(lane, state)
    }

    fn vectors(&self, lane: usize) -> Result<VectorState, EngineError> {
        self.inner.vectors(lane)
    }

    fn set_vectors(&mut self, lane: usize, vectors: &VectorState) -> Result<(), EngineError> {
        self.inner.set_vectors(lane, vectors)
    }
    fn status(&self, lane: usize) -> Result<LaneStatus, EngineError> {
        let status = self.inner.status(lane)?;
        Ok(match self.mistake.what {
            What::Stop if self.is_due(lane) => {
                LaneStatus { stop: Some(Stop::Halt { imm: 1 }), ..status }
            }
            What::Count if self.is_due(lane) => LaneStatus { count: status.count + 1, ..status },
            _ => status,
        })
    }
    fn read_memory(&self, lane: usize, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        self.inner.read_memory(lane, addr, bytes)
    }
    fn private_pages(&self) -> Result<Vec<(usize, u64)>, EngineError> {
        self.inner.private_pages()
    }
    fn write_memory(&mut self, lane: usize, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.inner.write_memory(lane, addr, bytes)
    }
    fn write_image(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.inner.write_image(addr, bytes)
    }
    fn run(&mut self, request: &RunRequest<'_>) -> Result<(), EngineError> {
        self.inner.run(request)?;
        let Mistake { lane, what, .. } = self.mistake;
        if !self.made && self.is_due(lane) {
            self.made = true;
            match what {
                What::Register => {
                    let mut state = self.inner.state(lane)?;
                    state.x[5] ^= 1 << 40;
                    self.inner.set_state(lane, &state)?;
                }
                What::Vector => {
                    let mut vectors = self.inner.vectors(lane)?;
                    vectors.v[7][1] ^= 1 << 40;
                    self.inner.set_vectors(lane, &vectors)?;
                }
                What::Fpcr | What::Fpsr => {
                    let mut state = self.inner.state(lane)?;
                    match what {
                        What::Fpcr => state.fpcr ^= 1 << 24,
                        _ => state.fpsr ^= 1,
                    }
                    self.inner.set_state(lane, &state)?;
                }
                // Far from all that the program writes.
                What::Memory => self.inner.write_memory(lane, 0x1_f008, &[7])?,
                What::Stop | What::Count => {}
            }
        }
        Ok(())
    }
    fn reset(&mut self, lanes: Range<usize>) -> Result<(), EngineError> {
        self.made &= !lanes.contains(&self.mistake.lane);
        self.inner.reset(lanes)
    }
}

fn loaded(mut machine: Machine) -> Machine {
    machine.load(START, &CODE.map(u32::to_le_bytes).concat()).unwrap();
    machine.set_entry(START).unwrap();
    machine
}

fn right(builder: &MachineBuilder, engine: EngineKind) -> Machine {
    loaded(builder.clone().engine(engine).build().unwrap())
}

fn wrong(like: &Machine, mistake: Mistake) -> Machine {
    let config = Config {
        lanes: like.lanes(),
        memory_size: like.memory_size(),
        model: like.memory_model().visibility(),
        read_only: false,
        mapped: false,
        supervisor_bytes: 0,
        threads: 1,
        translate_after: 0,
        code_memory: 1 << 20,
        profile: false,
    };
    let inner = EvalEngine::new(config).unwrap();
    loaded(Machine::new(Box::new(Wrong { inner, mistake, made: false }), like.memory_model()))
}

fn builder(lanes: usize) -> MachineBuilder {
    Machine::builder().lanes(lanes).memory(0x20000)
}

fn inputs(machine: &mut Machine) -> Result<()> {
    for lane in 0..machine.lanes() {
        machine.set_register(lane, Reg::X(1), DATA)?;
        machine.set_register(lane, Reg::X(2), TIMES + lane as u64)?;
        (0..32).try_for_each(|n| machine.set_vector(lane, n, 16 * u128::from(n)))?;
    }
    Ok(())
}

fn compare(machines: &mut [Machine], every: Option<u64>) -> Verdict {
    let plan = Plan { max_cycles: 1_000_000, every };
    verify(machines, &plan, &inputs, &RunControl::new()).unwrap()
}

fn difference(machines: &mut [Machine], every: Option<u64>) -> Difference {
    match compare(machines, every) {
        Verdict::Differ(difference) => *difference,
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn engines_agree() {
    let all = [EngineKind::Cpu, EngineKind::Eval, EngineKind::Cpu];
    let mut machines = all.map(|engine| right(&builder(3), engine));
    let Verdict::Agree(agreement) = compare(&mut machines, None) else { panic!("they differ") };
    assert_eq!(agreement.instructions, 5 * (3 * TIMES + 3) + 3, "with the SVC of each lane");
    assert_eq!(agreement.stops, [Some(Stop::Syscall { imm: 3 }); 3]);
    // 8,000 bytes and a little more in each lane, for both of the others.
    assert_eq!(agreement.pages, 2 * 3 * 2);
    // Before the first instruction; after 1,000, 3,000 and 7,000.
    assert_eq!(agreement.comparisons, 4);
}

#[test]
fn a_wrong_register_is_found() {
    for (after, every) in [(1, None), (777, None), (3000, None), (4321, Some(100)), (5003, None)] {
        let first = right(&builder(4), EngineKind::Cpu);
        let second = wrong(&first, Mistake { lane: 2, after, what: What::Register });
        let difference = difference(&mut [first, second], every);
        assert_eq!((difference.lane, difference.lanes, difference.repeats), (2, 1, true));
        assert_eq!(difference.count, after - 1);
        let index = (after - 1) % 5;
        let instruction = (START + 4 * index, CODE[index as usize]);
        assert_eq!(difference.instruction, Some(instruction), "after {after}");
        assert_eq!(difference.registers(), [(Reg::X(5), [0, 1 << 40])]);
        assert_eq!(difference.sides.each_ref().map(|side| side.machine), [0, 1]);
        assert_eq!((difference.words, difference.memory.len()), (0, 0));
    }
}

#[test]
fn wrong_vectors_fpcr_and_fpsr_are_found() {
    for (what, expected) in [
        (What::Vector, (Reg::V(7), [0x70, 0x70 | 1 << (64 + 40)])),
        (What::Fpcr, (Reg::Fpcr, [0, 1 << 24])),
        (What::Fpsr, (Reg::Fpsr, [0, 1])),
    ] {
        let first = right(&builder(3), EngineKind::Cpu);
        let second = wrong(&first, Mistake { lane: 1, after: 321, what });
        let difference = difference(&mut [first, second], None);
        assert_eq!((difference.lane, difference.lanes, difference.count), (1, 1, 320));
        assert_eq!(difference.registers(), [expected]);
    }
}

#[test]
fn wrong_memory_is_found() {
    for model in [MemoryModel::Private, MemoryModel::Shared] {
        let first = right(&builder(1).model(model), EngineKind::Cpu);
        let second = wrong(&first, Mistake { lane: 0, after: 1234, what: What::Memory });
        let difference = difference(&mut [first, second], None);
        assert_eq!((difference.count, difference.words), (1233, 1));
        assert_eq!(difference.memory, [(0x1_f008, [0, 7])]);
        assert_eq!(difference.registers(), []);
    }
}

#[test]
fn wrong_stops_and_counts_are_found() {
    for what in [What::Stop, What::Count] {
        let first = right(&builder(2), EngineKind::Eval);
        let second = wrong(&first, Mistake { lane: 1, after: 2500, what });
        let difference = difference(&mut [first, second], None);
        assert_eq!((difference.lane, difference.count), (1, 2499));
        let [a, b] = &difference.sides;
        assert!(a.stop != b.stop || a.count != b.count);
    }
}

#[test]
fn only_the_machine_that_differs_is_named() {
    let first = right(&builder(2), EngineKind::Eval);
    let third = wrong(&first, Mistake { lane: 0, after: 40, what: What::Register });
    let second = right(&builder(2), EngineKind::Cpu);
    let difference = difference(&mut [first, second, third], None);
    assert_eq!(difference.sides.each_ref().map(|side| side.machine), [0, 2]);
    assert_eq!(difference.count, 39);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let machine = |builder: MachineBuilder| right(&builder, EngineKind::Cpu);
    let error = |machines: &mut [Machine]| {
        let plan = Plan { max_cycles: 10, every: None };
        verify(machines, &plan, &inputs, &RunControl::new()).unwrap_err()
    };
    assert!(matches!(error(&mut [machine(builder(1))]), Error::NothingToCompare));
    let unlike = [machine(builder(1)), machine(builder(2))];
    assert!(matches!(error(&mut { unlike }), Error::UnlikeMachines));
    let shared = [1, 2].map(|_| machine(builder(2).model(MemoryModel::Shared)));
    assert!(matches!(error(&mut { shared }), Error::RacingLanes));
}

#[test]
fn a_cancelled_comparison_says_so() {
    let mut machines = [EngineKind::Cpu, EngineKind::Eval].map(|e| right(&builder(1), e));
    let (control, plan) = (RunControl::new(), Plan { max_cycles: 10, every: None });
    control.cancel();
    let verdict = verify(&mut machines, &plan, &inputs, &control).unwrap();
    assert_eq!(verdict, Verdict::Cancelled);
}

#[test]
fn random_programs_agree_on_cpu_and_eval() {
    let programs = RandomPrograms::new(0x5eed, 60, 21, None);
    let mut machines = [EngineKind::Eval, EngineKind::Cpu]
        .map(|engine| programs.shape(Machine::builder().engine(engine)).build().unwrap());
    let mut heard = Vec::new();
    let verdict =
        programs.verify(&mut machines, &RunControl::new(), &mut |done| heard.push(done)).unwrap();
    let RandomVerdict::Agree { programs, agreement } = verdict else { panic!("{verdict:?}") };
    assert_eq!((programs, heard), (60, vec![20, 40, 60]));
    assert_eq!(agreement.comparisons, 33);
    assert!(agreement.instructions > 60 * 50, "{}", agreement.instructions);
    assert!(agreement.pages > 60, "{} pages", agreement.pages);
}

#[test]
fn a_mistake_in_a_random_program_is_found() {
    let programs = RandomPrograms::new(3, 100, 51, None);
    let first = programs.shape(builder(1).engine(EngineKind::Eval)).build().unwrap();
    let second = wrong(&first, Mistake { lane: 17, after: 60, what: What::Register });
    let verdict = programs.verify(&mut [first, second], &RunControl::new(), &mut |_| {}).unwrap();
    let RandomVerdict::Differ { program, difference } = verdict else { panic!("{verdict:?}") };
    assert_eq!((program, difference.lane, difference.count), (16, 17, 59));
}
