//! Options that `kvrm exec` and `kvrm verify` share: a program, its memory, its lanes and their inputs.

use std::path::{Path, PathBuf};

use kvrm::{Error, Machine, MachineBuilder, Reg};

use crate::args::{self, ModelArgs};
use crate::failure::{Failure, Result};
use crate::files;
use crate::lanes_csv::LaneTable;
use crate::registers::{self, Value};

/// Options about a program and its inputs.
#[derive(clap::Args)]
pub(crate) struct ProgramArgs {
    /// Address to load the code at
    #[arg(long, value_name = "ADDR", default_value = "0x10000", value_parser = args::address)]
    base: u64,

    /// Address where lanes start. Default: the base
    #[arg(long, value_name = "ADDR", value_parser = args::address)]
    entry: Option<u64>,

    /// Size of memory, per lane if it is private. K, M, G and T, also written KiB and so on, are powers of 1024;
    /// KB, MB, GB and TB are powers of 1000, rounded up to whole pages
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = args::memory)]
    memory: u64,

    #[command(flatten)]
    model: ModelArgs,

    /// Number of lanes. Default: one, or as many as --set-lanes needs
    #[arg(long, value_name = "N", value_parser = args::lanes)]
    pub(crate) lanes: Option<usize>,

    /// Set a register of all lanes (repeatable): decimal, hexadecimal, negative, or the word `lane` for the
    /// lane's number. d0, s0 and h0 take floating-point numbers (1.5), or their bits in hexadecimal; v0 takes 128 bits,
    /// v0.s its four elements (1,2,3,4), and v0.d, v0.h and v0.b those of other sizes
    #[arg(long, value_name = "REG=VALUE", value_parser = registers::assignment)]
    set: Vec<(Reg, Value)>,

    /// Set registers of each lane from a CSV file: a header of register names, optionally with a column `lane`,
    /// then one row per lane
    #[arg(long, value_name = "FILE")]
    set_lanes: Option<PathBuf>,

    /// Limit of instructions per lane (K, M, G and T are powers of 1000)
    #[arg(long, value_name = "N", default_value = "1G", value_parser = args::count)]
    pub(crate) max_cycles: u64,
}

/// A program that has been read, with its inputs.
pub(crate) struct Program<'a> {
    args: &'a ProgramArgs,
    /// As much of the code as fits, and one byte more.
    code: Vec<u8>,
    /// Length of the whole code, if it is known.
    length: Option<u64>,
    table: Option<LaneTable>,
}

impl ProgramArgs {
    /// Reads the program, and the table of inputs if there is one.
    pub(crate) fn read(&self, file: &Path) -> Result<Program<'_>> {
        // More than fits need not be read, but enough to recognise what it is.
        let code = files::read_code(file, self.memory.max(1 << 16))?;
        let length = files::length(file);
        let table = self.set_lanes.as_deref().map(read_table).transpose()?;
        Ok(Program { args: self, code, length, table })
    }
}

impl Program<'_> {
    /// Gives a machine the lanes and the memory that were asked for.
    pub(crate) fn shape(&self, builder: MachineBuilder) -> MachineBuilder {
        let lanes = self.args.lanes.or(self.table.as_ref().map(LaneTable::lanes)).unwrap_or(1);
        builder.lanes(lanes).memory(self.args.memory).model(self.args.model.model())
    }

    /// Loads the code and sets where lanes start.
    pub(crate) fn load(&self, machine: &mut Machine) -> Result<()> {
        self.check_length(machine.memory_size())?;
        machine.load(self.args.base, &self.code)?;
        let (entry, size) = (self.args.entry.unwrap_or(self.args.base), machine.memory_size());
        // Better told before a long run than after.
        if entry.checked_add(4).is_none_or(|end| end > size) {
            return Err(Error::OutsideMemory { address: entry, len: 4, size }.into());
        }
        Ok(machine.set_entry(entry)?)
    }

    /// Refuses code that does not fit into memory.
    fn check_length(&self, size: u64) -> Result<()> {
        let (address, len) = (self.args.base, self.code.len() as u64);
        if address.checked_add(len).is_some_and(|end| end <= size) {
            return Ok(());
        }
        match self.length {
            Some(len) => Err(Error::OutsideMemory { address, len, size }.into()),
            None => Err(Failure::Host(format!(
                "the program does not fit between {address:#x} and the end of memory at {size:#x}, or has no end: use a larger --memory or a lower --base"
            ))),
        }
    }

    /// Sets the inputs of all lanes.
    pub(crate) fn set_registers(&self, machine: &mut Machine) -> Result<()> {
        for &(reg, value) in &self.args.set {
            value.set(machine, reg)?;
        }
        for row in self.table.as_ref().map_or(&[][..], |table| &table.rows) {
            for &(reg, value) in &row.values {
                registers::set(machine, row.lane.into(), reg, value).map_err(|error| {
                    let path = self.args.set_lanes.as_deref().unwrap_or(Path::new(""));
                    Failure::Host(format!("{}, line {}: {error}", path.display(), row.line))
                })?;
            }
        }
        Ok(())
    }
}

fn read_table(path: &Path) -> Result<LaneTable> {
    let text = files::read_text(path)?;
    let located = |message| Failure::Host(format!("{}: {message}", path.display()));
    LaneTable::parse(&text).map_err(located)
}
