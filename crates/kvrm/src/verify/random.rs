//! Compares engines on random programs, very many lanes at a time.

use kvrm_engine::{RunControl, Stop};
use kvrm_random::program::{Programs, Start};

use super::{Agreement, Verdict, Verifier};
use crate::{Machine, MachineBuilder, Registers, Result};

/// Instructions between comparisons. Stopped lanes continue after the instruction that stopped them.
const PIECES: [u64; 10] = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89];

/// Random programs, one per lane; the first lane of a machine executes a little of everything.
///
/// They run in rounds, as many at a time as the machines have lanes, for about 200 instructions each. All
/// consist of one kind of each instruction, with random registers and immediates. The seed chooses the kinds,
/// so a GPU compiles one kernel for all programs of a seed.
///
/// ```
/// use kvrm::verify::{RandomPrograms, RandomVerdict};
/// use kvrm::{EngineKind, Machine, RunControl};
///
/// let programs = RandomPrograms::new(1, 40, 21, None);
/// let mut machines = Vec::new();
/// for engine in [EngineKind::Cpu, EngineKind::Eval] {
///     machines.push(programs.shape(Machine::builder().engine(engine)).build()?);
/// }
/// let verdict = programs.verify(&mut machines, &RunControl::new(), &mut |_| {})?;
/// let RandomVerdict::Agree { programs, agreement } = verdict else { panic!("{verdict:?}") };
/// assert_eq!((programs, agreement.stops.len()), (40, 40));
/// # Ok::<(), kvrm::Error>(())
/// ```
pub struct RandomPrograms {
    programs: Programs,
    count: u64,
    lanes: usize,
}

/// The outcome of random programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RandomVerdict {
    /// All machines did the same.
    Agree {
        /// Programs compared.
        programs: u64,
        /// Instructions completed, comparisons, pages in the last of them, and why each program stopped last.
        agreement: Agreement,
    },
    /// A program differs on one of the machines.
    Differ {
        /// Its number, from 0.
        program: u64,
        /// How it differs. Lanes are those of the machine.
        difference: Box<super::Difference>,
    },
    /// It was cancelled.
    Cancelled {
        /// Programs compared until then, all equal.
        programs: u64,
    },
}

impl RandomPrograms {
    /// Returns this many programs of a seed, for machines of `lanes` lanes, at least two. They use all
    /// instructions, or this many `rows` of the table.
    pub fn new(seed: u64, count: u64, lanes: usize, rows: Option<usize>) -> RandomPrograms {
        let lanes = lanes.max(2);
        RandomPrograms { programs: Programs::new(seed, lanes, rows), count, lanes }
    }

    /// Sets the lanes and the memory that the programs need. Most of their instructions are executed once, so
    /// the CPU engine steps through them, unless [`translate_after`](MachineBuilder::translate_after) is zero;
    /// then each program takes about a tenth of a second.
    pub fn shape(&self, builder: MachineBuilder) -> MachineBuilder {
        builder.lanes(self.lanes).memory(self.programs.memory())
    }

    /// Compares machines of this [`shape`](Self::shape). It calls `progress` with the number of finished
    /// programs.
    pub fn verify(
        &self,
        machines: &mut [Machine],
        control: &RunControl,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RandomVerdict> {
        let per_round = self.lanes as u64 - 1;
        let mut sum = Agreement::default();
        for round in 0..self.count.div_ceil(per_round) {
            let done = round * per_round;
            match self.round(round, machines, control)? {
                Verdict::Agree(agreement) => {
                    sum.instructions += agreement.instructions;
                    sum.comparisons += agreement.comparisons;
                    sum.pages += agreement.pages;
                    // The first lane has no program; in the last round, others may have none.
                    let programs = per_round.min(self.count - done) as usize;
                    sum.stops.extend(agreement.stops.into_iter().skip(1).take(programs));
                }
                Verdict::Differ(difference) => {
                    // The first lane has no program; a difference in it is reported as that of the next lane.
                    let program = done + (difference.lane as u64).saturating_sub(1);
                    return Ok(RandomVerdict::Differ { program, difference });
                }
                Verdict::Cancelled => return Ok(RandomVerdict::Cancelled { programs: done }),
            }
            progress(self.count.min(done + per_round));
        }
        Ok(RandomVerdict::Agree { programs: self.count, agreement: sum })
    }

    fn round(&self, round: u64, machines: &mut [Machine], control: &RunControl) -> Result<Verdict> {
        let image = self.programs.image(round);
        machines.iter_mut().try_for_each(|machine| machine.load(0, &image))?;
        let starts: Vec<_> = (0..self.lanes).map(|lane| self.programs.start(round, lane)).collect();
        let inputs = |machine: &mut Machine| {
            for (lane, start) in starts.iter().enumerate() {
                let Start { x, sp, pc, nzcv, v, fpcr, fpsr, .. } = *start;
                let registers = Registers { x, sp, pc, nzcv, tpidr_el0: 0, v, fpcr, fpsr };
                machine.set_registers(lane, &registers)?;
            }
            Ok(())
        };
        let go_on = |machine: &mut Machine| {
            for (lane, start) in starts.iter().enumerate() {
                if matches!(machine.stop(lane)?, Some(Stop::MaxCycles | Stop::Syscall { .. })) {
                    continue;
                }
                let next = machine.pc(lane)?.wrapping_add(4) & !3;
                let inside = (start.pc..start.pc + start.len).contains(&next);
                let somewhere = start.pc + 4 * machine.total_cycles(lane)? % start.len;
                machine.set_pc(lane, if inside { next } else { somewhere })?;
            }
            Ok(true)
        };
        Verifier::new(machines, &inputs, &go_on, control)?.run(PIECES.into_iter())
    }
}
