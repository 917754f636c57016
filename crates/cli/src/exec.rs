//! `kvrm exec`: runs a file of A64 code.

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use kvrm::{Error, Machine};

use crate::args::{self, EngineArgs, LaunchArgs, TimeoutArgs};
use crate::exec_report::{Shown, write_human, write_json};
use crate::failure::{Failure, Result};
use crate::program::ProgramArgs;
use crate::progress;
use crate::timing::Timing;

/// Options of `kvrm exec`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm exec program.bin --set x0=27 --set x1=1
      one machine, two arguments
  kvrm exec program.bin --lanes 1000 --set x0=lane --lane 0..4,999
      a thousand machines, each with its number in x0; prints five of them
  kvrm exec program.bin --set-lanes inputs.csv --json > results.json
      one machine per row of a table with a header like x0,x1
  kvrm exec program.bin --lanes 200K --engine cuda --device 0,1
      half of the machines on each of two GPUs
  kvrm exec program.bin --set d0=1.5 --set s1=-0.25 --set v2.s=1,2,3,4 --set fpcr=0x1000000
      floating-point numbers, a vector of four of them, and what to do with those too small (FZ)
  printf '\\100\\5\\200\\322\\0\\0\\100\\324' | kvrm exec -
      mov x0, #42; hlt #0

Code is raw: no headers, little-endian words. A lane runs until HLT or an all-zero word (both HALT), SVC (SYSCALL), BRK or a \
--break address (BREAKPOINT), a word that is not an instruction (UNDEFINED), an access outside memory \
(FAULT) or the limit (MAX_CYCLES). On a GPU, a lane also stops if there is no room for what it writes or \
executes (OUT_OF_MEMORY).

Registers are printed if they are not zero. A vector register is printed with the floating-point numbers that it may \
hold: one if it fits in 16 (h), 32 (s) or 64 bits (d), else its elements, the lowest first.

Exit code: 0 if the run completed, however the lanes stopped; 1 if the host failed (a file, memory); 2 if the command \
line is wrong; 124 if the time of --timeout was over and 130 after Ctrl-C, both with the results so far printed.")]
pub(crate) struct Exec {
    /// File of A64 code; - is standard input
    file: PathBuf,

    #[command(flatten)]
    program: ProgramArgs,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    launch: LaunchArgs,

    #[command(flatten)]
    timeout: TimeoutArgs,

    /// Stop lanes before the instruction at this address (repeatable)
    #[arg(long = "break", value_name = "ADDR", value_parser = args::address)]
    breakpoints: Vec<u64>,

    /// Print memory after the run (repeatable)
    #[arg(long = "dump", value_name = "ADDR:LEN", value_parser = args::span)]
    dumps: Vec<(u64, u64)>,

    /// Lanes to print: 3, 0..4 (0 to 3) or 0..4,9. Default: the first 8, or all with --json
    #[arg(long = "lane", value_name = "LANES", value_delimiter = ',', value_parser = args::lane_range)]
    shown: Vec<Range<usize>>,

    /// Print the times of driver, machine, kernels and run, and on the CPU what was interpreted and translated
    #[arg(long)]
    timing: bool,

    /// Also print registers that are zero
    #[arg(long)]
    all_registers: bool,

    /// Print JSON: addresses and registers as hexadecimal strings, memory as hexadecimal digits
    #[arg(long)]
    json: bool,
}

impl Exec {
    /// Number of lanes printed by default.
    const FEW: usize = 8;

    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let program = self.program.read(&self.file)?;
        let start = Instant::now();
        let builder = self.engine.builder().profile(self.timing);
        let mut machine = progress::build(program.shape(builder))?;
        program.load(&mut machine)?;
        self.check_addresses(&machine)?;
        program.set_registers(&mut machine)?;
        let shown = self.shown(machine.lanes())?;
        for &pc in &self.breakpoints {
            machine.add_breakpoint(pc)?;
        }

        let prepared = start.elapsed();
        let report = progress::run(
            &mut machine,
            self.program.max_cycles,
            self.launch.mega,
            progress::QUIET,
            self.timeout.deadline(),
        )?;
        let timing = self.timing.then(|| Timing::new(&machine, prepared, &report));
        match self.json {
            true => write_json(out, &machine, &report, &shown, timing)?,
            false => write_human(out, &machine, &report, &shown, timing)?,
        }
        if report.cancelled {
            let advice = "what is printed is how far the lanes came, and those that had not stopped are \
                          CANCELLED; allow more time, or fewer instructions with --max-cycles";
            return Err(Failure::ended_early(report.timed_out, advice));
        }
        Ok(())
    }

    /// Refuses breakpoints and dumps outside of memory before a run, not after it.
    fn check_addresses(&self, machine: &Machine) -> Result<()> {
        let instructions = self.breakpoints.iter().map(|&pc| (pc, 4));
        let size = machine.memory_size();
        for (address, len) in instructions.chain(self.dumps.iter().copied()) {
            if address.checked_add(len).is_none_or(|end| end > size) {
                return Err(Error::OutsideMemory { address, len, size }.into());
            }
        }
        Ok(())
    }

    fn shown(&self, lanes: usize) -> Result<Shown<'_>> {
        if let Some(range) = self.shown.iter().find(|range| range.end > lanes) {
            let lane = range.end - 1;
            return Err(Error::NoSuchLane { lane, lanes }.into());
        }
        let default = if self.json { lanes } else { lanes.min(Self::FEW) };
        let mut shown: Vec<usize> = match self.shown.is_empty() {
            true => (0..default).collect(),
            false => self.shown.iter().cloned().flatten().collect(),
        };
        shown.sort_unstable();
        shown.dedup();
        Ok(Shown { lanes: shown, dumps: &self.dumps, all_registers: self.all_registers })
    }
}
