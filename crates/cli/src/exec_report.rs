//! What `kvrm exec` prints.

use std::collections::BTreeMap;
use std::io::Write;

use kvrm::{Machine, Reg, RunReport, Stop};
use serde::{Serialize, Serializer};

use crate::failure::Result;
use crate::registers::{hex, numbers};
use crate::text;
use crate::timing::Timing;

/// Which parts of the machine to print.
pub(crate) struct Shown<'a> {
    /// In ascending order.
    pub(crate) lanes: Vec<usize>,
    /// Address and length.
    pub(crate) dumps: &'a [(u64, u64)],
    pub(crate) all_registers: bool,
}

/// Registers per line.
const COLUMNS: usize = 3;

fn registers(machine: &Machine, lane: usize) -> Result<Vec<(Reg, u128)>> {
    let registers = machine.registers(lane)?;
    let all = Reg::all().filter(|reg| *reg != Reg::Pc);
    Ok(all.map(|reg| (reg, registers.get(reg))).collect())
}

fn memory(machine: &Machine, lane: usize, (address, len): (u64, u64)) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len as usize];
    machine.read_memory(lane, address, &mut bytes)?;
    Ok(bytes)
}

/// Number of lanes by stop.
fn stops(machine: &Machine) -> Result<BTreeMap<&'static str, usize>> {
    let stops = (0..machine.lanes()).map(|lane| machine.stop(lane));
    Ok(count_stops(stops.collect::<Result<Vec<_>, _>>()?))
}

/// Counts the stops of each kind.
pub(crate) fn count_stops(
    stops: impl IntoIterator<Item = Option<Stop>>,
) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for stop in stops {
        *counts.entry(stop.map_or("CANCELLED", |stop| stop.name())).or_default() += 1;
    }
    counts
}

/// Formats the counts: `3 HALT, 1 FAULT`.
pub(crate) fn stops_text(counts: &BTreeMap<&'static str, usize>) -> String {
    let stops: Vec<_> = counts.iter().map(|(name, n)| format!("{n} {name}")).collect();
    stops.join(", ")
}

// For people.

pub(crate) fn write_human(
    out: &mut impl Write,
    machine: &Machine,
    report: &RunReport,
    shown: &Shown<'_>,
    timing: Option<Timing>,
) -> Result<()> {
    for &lane in &shown.lanes {
        write_lane(out, machine, lane, shown)?;
    }
    let printed = shown.lanes.len();
    if printed < machine.lanes() {
        let hidden = text::lanes(machine.lanes() - printed);
        writeln!(out, "({hidden} not shown; choose with --lane, as in --lane 0..16)")?;
    }
    let stops = stops(machine)?;
    writeln!(
        out,
        "{} on {}: {}; {} in {}, {}/s",
        text::lanes(machine.lanes()),
        machine.engine(),
        stops_text(&stops),
        text::instructions(report.cycles),
        text::seconds(report.elapsed),
        text::short(report.ips()),
    )?;
    if !report.committed {
        writeln!(out, "rolled back: registers and memory are as they were before the run")?;
    }
    if let Some(timing) = timing {
        writeln!(out, "{}", timing.text("run"))?;
    }
    Ok(())
}

fn write_lane(
    out: &mut impl Write,
    machine: &Machine,
    lane: usize,
    shown: &Shown<'_>,
) -> Result<()> {
    let stop = machine.stop(lane)?;
    writeln!(
        out,
        "lane {lane}: {} at pc {:#x} after {}",
        stop.map_or("CANCELLED".to_string(), |stop| stop.to_string()),
        machine.stopped_at(lane)?,
        text::instructions(machine.cycles(lane)?),
    )?;
    let mut registers = registers(machine, lane)?;
    registers.retain(|(_, value)| *value != 0 || shown.all_registers);
    let cell = |(reg, value): &(Reg, u128)| format!("{:>4} {}", reg.to_string(), hex(*reg, *value));
    let is_vector = |(reg, _): &(Reg, u128)| matches!(reg, Reg::V(_));
    let (vectors, others): (Vec<_>, Vec<_>) = registers.into_iter().partition(is_vector);
    for line in others.chunks(COLUMNS) {
        writeln!(out, " {}", line.iter().map(cell).collect::<Vec<_>>().join(" "))?;
    }
    for vector in vectors {
        writeln!(out, "{}", format!(" {}  {}", cell(&vector), numbers(vector.1)).trim_end())?;
    }
    for &dump in shown.dumps {
        write_dump(out, dump.0, &memory(machine, lane, dump)?)?;
    }
    Ok(())
}

/// Prints sixteen bytes per line: address, bytes, characters.
fn write_dump(out: &mut impl Write, address: u64, bytes: &[u8]) -> Result<()> {
    for (start, line) in (address..).step_by(16).zip(bytes.chunks(16)) {
        let hex: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let printable = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        };
        let characters: String = line.iter().map(printable).collect();
        writeln!(out, "  {start:#010x}  {:47}  {characters}", hex.join(" "))?;
    }
    Ok(())
}

// For programs.

#[derive(Serialize)]
struct Document {
    engine: &'static str,
    memory: MemoryEntry,
    lanes: Vec<LaneEntry>,
    totals: Totals,
    /// With --timing.
    #[serde(skip_serializing_if = "Option::is_none")]
    timing: Option<Timing>,
}

#[derive(Serialize)]
struct MemoryEntry {
    size: u64,
    model: &'static str,
}

#[derive(Serialize)]
struct LaneEntry {
    lane: usize,
    /// `None` if the run was cancelled before the lane stopped.
    stop: Option<StopEntry>,
    pc: Hex,
    cycles: u64,
    registers: Registers,
    dumps: Vec<DumpEntry>,
}

#[derive(Serialize)]
pub(crate) struct StopEntry {
    name: &'static str,
    detail: Detail,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Detail {
    Immediate { imm: Option<u16> },
    Word { word: Hex },
    Access { kind: &'static str, address: Hex },
    Room { kind: &'static str },
    Nothing,
}

#[derive(Serialize)]
struct DumpEntry {
    address: Hex,
    bytes: String,
}

#[derive(Serialize)]
struct Totals {
    lanes: usize,
    stops: BTreeMap<&'static str, usize>,
    cycles: u64,
    seconds: f64,
    instructions_per_second: f64,
    cancelled: bool,
    /// True if it was --timeout that cancelled it.
    timed_out: bool,
    /// False if double-buffered memory and registers were rolled back.
    committed: bool,
}

/// Writes a number as text, because many JSON readers have no 64-bit integers.
pub(crate) struct Hex(pub(crate) u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// Writes a register like other numbers; a vector register with all of its digits, so that its elements are seen.
pub(crate) struct RegisterHex(pub(crate) Reg, pub(crate) u128);

impl Serialize for RegisterHex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Reg::V(_) => serializer.collect_str(&hex(self.0, self.1)),
            _ => serializer.collect_str(&format_args!("{:#x}", self.1)),
        }
    }
}

/// Writes an object, in the order of the registers.
struct Registers(Vec<(Reg, u128)>);

impl Serialize for Registers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries =
            self.0.iter().map(|(reg, value)| (reg.to_string(), RegisterHex(*reg, *value)));
        serializer.collect_map(entries)
    }
}

impl From<Stop> for StopEntry {
    fn from(stop: Stop) -> StopEntry {
        let detail = match stop {
            Stop::Halt { imm } | Stop::Syscall { imm } => Detail::Immediate { imm: Some(imm) },
            Stop::Breakpoint { imm } => Detail::Immediate { imm },
            Stop::ZeroWord => Detail::Word { word: Hex(0) },
            Stop::MaxCycles => Detail::Nothing,
            Stop::Undefined { word } => Detail::Word { word: Hex(word.into()) },
            Stop::Fault { kind, address } => {
                Detail::Access { kind: kind.name(), address: Hex(address) }
            }
            Stop::OutOfMemory { lacking } => Detail::Room { kind: lacking.name() },
        };
        StopEntry { name: stop.name(), detail }
    }
}

fn lane_entry(machine: &Machine, lane: usize, shown: &Shown<'_>) -> Result<LaneEntry> {
    let dump = |dump: &(u64, u64)| {
        let hex = |byte| format!("{byte:02x}");
        Ok(DumpEntry {
            address: Hex(dump.0),
            bytes: memory(machine, lane, *dump)?.into_iter().map(hex).collect(),
        })
    };
    Ok(LaneEntry {
        lane,
        stop: machine.stop(lane)?.map(StopEntry::from),
        pc: Hex(machine.stopped_at(lane)?),
        cycles: machine.cycles(lane)?,
        registers: Registers(registers(machine, lane)?),
        dumps: shown.dumps.iter().map(dump).collect::<Result<_>>()?,
    })
}

pub(crate) fn write_json(
    out: &mut impl Write,
    machine: &Machine,
    report: &RunReport,
    shown: &Shown<'_>,
    timing: Option<Timing>,
) -> Result<()> {
    let lanes = shown.lanes.iter();
    let lanes = lanes.map(|&lane| lane_entry(machine, lane, shown));
    let document = Document {
        engine: machine.engine(),
        memory: MemoryEntry { size: machine.memory_size(), model: machine.memory_model().name() },
        lanes: lanes.collect::<Result<_>>()?,
        totals: Totals {
            lanes: machine.lanes(),
            stops: stops(machine)?,
            cycles: report.cycles,
            seconds: report.elapsed.as_secs_f64(),
            instructions_per_second: report.ips(),
            cancelled: report.cancelled,
            timed_out: report.timed_out,
            committed: report.committed,
        },
        timing,
    };
    crate::write_json(out, &document)
}
