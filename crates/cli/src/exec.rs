//! `kvrm exec`: runs a file of A64 code.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use kvrm::{Error, Lanes, Machine, Reg};

use crate::args::{self, EngineArgs, LaunchArgs, ModelArgs, Value};
use crate::exec_report::{Shown, write_human, write_json};
use crate::failure::{Failure, Result};
use crate::lanes_csv::LaneTable;
use crate::progress;
use crate::timing::Timing;

/// Options of `kvrm exec`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm exec program.bin --set x0=27 --set x1=1
      one machine, two arguments
  kvrm exec program.bin --lanes 1000 --set x0=lane --lane 0..4,999
      a thousand machines, each with its number in x0; five of them shown
  kvrm exec program.bin --set-lanes inputs.csv --json > results.json
      one machine per row of a table with a header like x0,x1
  kvrm exec program.bin --lanes 200K --engine cuda --device 0,1
      half of the machines on each of two GPUs
  printf '\\100\\5\\200\\322\\0\\0\\100\\324' | kvrm exec -
      mov x0, #42; hlt #0

Code is raw: no headers, little-endian words. A lane runs until HLT (HALT), SVC (SYSCALL), BRK or a \
--break address (BREAKPOINT), a word that is no instruction (UNDEFINED), an access outside memory \
(FAULT) or the limit (MAX_CYCLES).

Exit code: 0 if the run went through, however the lanes stopped; 1 if something failed on this side \
(a file, memory); 2 if the command line is wrong; 130 after Ctrl-C, with the results so far printed.")]
pub(crate) struct Exec {
    /// File of A64 code; - is standard input
    file: PathBuf,

    /// Where the code goes
    #[arg(long, value_name = "ADDR", default_value = "0x10000", value_parser = args::address)]
    base: u64,

    /// Where lanes start; at the base if not given
    #[arg(long, value_name = "ADDR", value_parser = args::address)]
    entry: Option<u64>,

    /// Bytes of memory, for each lane if it is private (K, M, G and T are powers of 1024)
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = args::size)]
    memory: u64,

    #[command(flatten)]
    model: ModelArgs,

    /// Number of machines; one, or as many as --set-lanes needs, if not given
    #[arg(long, value_name = "N", value_parser = args::lanes)]
    lanes: Option<usize>,

    /// Sets a register of all lanes (repeatable): decimal, hexadecimal, negative, or the word `lane` for
    /// the lane's number
    #[arg(long, value_name = "REG=VALUE", value_parser = args::assignment)]
    set: Vec<(Reg, Value)>,

    /// Sets registers of each lane from a CSV file: a header of register names, with or without a column
    /// `lane`, then one row per lane
    #[arg(long, value_name = "FILE")]
    set_lanes: Option<PathBuf>,

    /// Instructions each lane may run (K, M, G and T are powers of 1000)
    #[arg(long, value_name = "N", default_value = "1G", value_parser = args::count)]
    max_cycles: u64,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    launch: LaunchArgs,

    /// Stops lanes before the instruction at this address (repeatable)
    #[arg(long = "break", value_name = "ADDR", value_parser = args::address)]
    breakpoints: Vec<u64>,

    /// Shows memory after the run (repeatable)
    #[arg(long = "dump", value_name = "ADDR:LEN", value_parser = args::span)]
    dumps: Vec<(u64, u64)>,

    /// Lanes to print: 3, 0..4 (0 to 3) or 0..4,9; the first 8 if not given, all with --json
    #[arg(long = "lane", value_name = "LANES", value_delimiter = ',', value_parser = args::lane_range)]
    shown: Vec<Range<usize>>,

    /// Print what driver, machine, kernels and run took
    #[arg(long)]
    timing: bool,

    /// Print registers that are zero, too
    #[arg(long)]
    all_registers: bool,

    /// Print JSON: addresses and registers as hexadecimal strings, memory as hexadecimal digits
    #[arg(long)]
    json: bool,
}

impl Exec {
    /// Lanes that people see if they do not say which.
    const FEW: usize = 8;

    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let code = crate::read_code(&self.file)?;
        let table = self.set_lanes.as_deref().map(read_table).transpose()?;
        let start = Instant::now();
        let mut machine = self.build(table.as_ref())?;
        machine.load(self.base, &code)?;
        self.check_addresses(&machine)?;
        self.set_registers(&mut machine, table.as_ref())?;
        let shown = self.shown(machine.lanes())?;
        for &pc in &self.breakpoints {
            machine.add_breakpoint(pc)?;
        }

        let prepared = start.elapsed();
        let report =
            progress::run(&mut machine, self.max_cycles, self.launch.mega, progress::QUIET)?;
        let timing = self.timing.then(|| Timing::new(&machine, prepared, &report));
        match self.json {
            true => write_json(out, &machine, &report, &shown, timing)?,
            false => write_human(out, &machine, &report, &shown, timing)?,
        }
        match report.cancelled {
            true => Err(Failure::Interrupted),
            false => Ok(()),
        }
    }

    fn build(&self, table: Option<&LaneTable>) -> Result<Machine> {
        let lanes = self.lanes.or(table.map(LaneTable::lanes)).unwrap_or(1);
        let builder = self.engine.builder().lanes(lanes).memory(self.memory);
        progress::build(builder.model(self.model.model()))
    }

    /// Addresses that could never be reached are mistakes, better told before a long run than after.
    fn check_addresses(&self, machine: &Machine) -> Result<()> {
        let instructions = self.entry.iter().chain(&self.breakpoints).map(|&pc| (pc, 4));
        let size = machine.memory_size();
        for (address, len) in instructions.chain(self.dumps.iter().copied()) {
            if address.checked_add(len).is_none_or(|end| end > size) {
                return Err(Error::OutsideMemory { address, len, size }.into());
            }
        }
        Ok(())
    }

    fn set_registers(&self, machine: &mut Machine, table: Option<&LaneTable>) -> Result<()> {
        machine.set_entry(self.entry.unwrap_or(self.base))?;
        for &(reg, value) in &self.set {
            match value {
                Value::Same(value) => machine.set_register(Lanes::All, reg, value)?,
                Value::Lane => (0..machine.lanes())
                    .try_for_each(|lane| machine.set_register(lane, reg, lane as u64))?,
            }
        }
        for row in table.map_or(&[][..], |table| &table.rows) {
            for &(reg, value) in &row.values {
                machine.set_register(row.lane, reg, value).map_err(|error| {
                    let path = self.set_lanes.as_deref().unwrap_or(Path::new(""));
                    Failure::Host(format!("{}, line {}: {error}", path.display(), row.line))
                })?;
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

fn read_table(path: &Path) -> Result<LaneTable> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::file("read", path, &e))?;
    let located = |message| Failure::Host(format!("{}: {message}", path.display()));
    LaneTable::parse(&text).map_err(located)
}
