//! What `kvrm verify` prints.

use std::collections::BTreeMap;
use std::io::Write;

use kvrm::verify::{Agreement, Difference, Side};
use kvrm::{Disassembled, Stop};
use serde::Serialize;

use crate::exec_report::{Hex, RegisterHex, StopEntry, count_stops, stops_text};
use crate::failure::Result;
use crate::registers::hex;
use crate::text;

/// A finished comparison.
pub(crate) struct Report {
    /// Their names.
    pub(crate) engines: Vec<String>,
    pub(crate) lanes: usize,
    /// Of random programs.
    pub(crate) seed: Option<u64>,
    pub(crate) found: Found,
}

/// The outcome of a comparison.
pub(crate) enum Found {
    Agreement {
        agreement: Agreement,
        /// Number of random programs.
        programs: Option<u64>,
    },
    Difference {
        difference: Box<Difference>,
        /// Number of the random program.
        program: Option<u64>,
    },
    /// It was cancelled.
    Nothing {
        /// By --timeout.
        timed_out: bool,
    },
}

/// Width of a column of values.
const COLUMN: usize = 24;
/// The same, with vector registers among them.
const WIDE_COLUMN: usize = 36;

// For people.

impl Report {
    pub(crate) fn write_human(&self, out: &mut impl Write) -> Result<()> {
        match &self.found {
            Found::Agreement { agreement, programs } => {
                self.write_agreement(out, agreement, *programs)
            }
            Found::Difference { difference, program } => {
                if let (Some(program), Some(seed)) = (program, self.seed) {
                    writeln!(out, "random program {program} of seed {seed}:")?;
                }
                self.write_difference(out, difference)
            }
            Found::Nothing { .. } => Ok(()),
        }
    }

    fn write_agreement(
        &self,
        out: &mut impl Write,
        agreement: &Agreement,
        programs: Option<u64>,
    ) -> Result<()> {
        let Agreement { instructions, comparisons, pages, stops } = agreement;
        let what = match programs {
            Some(programs) => format!("{} random programs", text::thousands(programs)),
            None => format!(
                "{}: {}",
                text::lanes(self.lanes),
                stops_text(&count_stops(stops.iter().copied()))
            ),
        };
        writeln!(
            out,
            "{} agree; {what}; {} on each",
            self.engines.join(", "),
            text::instructions(*instructions)
        )?;
        writeln!(
            out,
            "compared {} times: stops, counts, registers and all of memory ({} pages read in the end)",
            text::thousands(*comparisons),
            text::thousands(*pages)
        )?;
        Ok(())
    }

    fn write_difference(&self, out: &mut impl Write, difference: &Difference) -> Result<()> {
        let Difference { lane, lanes, instruction, count, sides, memory, words, repeats } =
            difference;
        let [a, b] = sides.each_ref().map(|side| &self.engines[side.machine]);
        let others = match lanes {
            1 => String::new(),
            lanes => format!(" (the first of {} that do)", text::thousands(*lanes as u64)),
        };
        match (repeats, instruction) {
            (false, _) => writeln!(
                out,
                "{a} and {b} differed in lane {lane}{others}, and not when they were run again"
            )?,
            (true, instruction) => {
                let count = text::instructions(*count);
                write!(out, "{a} and {b} part in lane {lane}{others}, after {count}")?;
                match instruction {
                    Some((pc, word)) => {
                        writeln!(
                            out,
                            ", with\n  {pc:#x}  {word:08x}  {}",
                            Disassembled::new(*pc, *word).text
                        )?;
                    }
                    None => writeln!(out)?,
                }
            }
        }
        let registers = difference.registers();
        let wide = registers.iter().any(|(reg, _)| reg.bits() > 64);
        let column = if wide { WIDE_COLUMN } else { COLUMN };
        writeln!(out, "{:>12}  {a:column$}  {b}", "after it")?;
        let mut row =
            |name: String, [a, b]: [String; 2]| writeln!(out, "{name:>12}  {a:column$}  {b}");
        let both = |value: fn(&Side) -> String| sides.each_ref().map(value);
        if sides[0].stop != sides[1].stop {
            row("stop".into(), both(|side| stop_text(side.stop)))?;
        }
        if sides[0].count != sides[1].count {
            row("instructions".into(), both(|side| text::thousands(side.count)))?;
        }
        for (reg, values) in registers {
            row(reg.to_string(), values.map(|value| hex(reg, value)))?;
        }
        for (address, values) in memory {
            row(format!("[{address:#x}]"), values.map(|value| format!("{value:#018x}")))?;
        }
        if *words > memory.len() {
            let more = text::thousands((words - memory.len()) as u64);
            writeln!(out, "(and {more} more words of memory)")?;
        }
        Ok(())
    }
}

fn stop_text(stop: Option<Stop>) -> String {
    stop.map_or("none".to_string(), |stop| stop.to_string())
}

// For programs.

#[derive(Serialize)]
struct Document<'a> {
    engines: &'a [String],
    lanes: usize,
    /// Of random programs.
    seed: Option<u64>,
    /// `None` if it was cancelled.
    agree: Option<bool>,
    /// True if it was --timeout that cancelled it.
    timed_out: bool,
    agreement: Option<AgreementEntry>,
    difference: Option<DifferenceEntry>,
}

#[derive(Serialize)]
struct AgreementEntry {
    /// Random programs.
    programs: Option<u64>,
    instructions: u64,
    comparisons: u64,
    pages: u64,
    stops: BTreeMap<&'static str, usize>,
}

#[derive(Serialize)]
struct DifferenceEntry {
    /// Number of the random program.
    program: Option<u64>,
    lane: usize,
    lanes: usize,
    repeats: bool,
    instructions_before: u64,
    instruction: Option<InstructionEntry>,
    sides: Vec<SideEntry>,
    registers: BTreeMap<String, [RegisterHex; 2]>,
    memory: Vec<WordEntry>,
    words_of_memory: usize,
}

#[derive(Serialize)]
struct InstructionEntry {
    pc: Hex,
    word: Hex,
    text: String,
}

#[derive(Serialize)]
struct SideEntry {
    engine: String,
    stop: Option<StopEntry>,
    instructions: u64,
}

#[derive(Serialize)]
struct WordEntry {
    address: Hex,
    values: [Hex; 2],
}

impl Report {
    pub(crate) fn write_json(&self, out: &mut impl Write) -> Result<()> {
        let mut document = Document {
            engines: &self.engines,
            lanes: self.lanes,
            seed: self.seed,
            agree: None,
            timed_out: false,
            agreement: None,
            difference: None,
        };
        match &self.found {
            Found::Agreement { agreement, programs } => {
                document.agree = Some(true);
                document.agreement = Some(AgreementEntry {
                    programs: *programs,
                    instructions: agreement.instructions,
                    comparisons: agreement.comparisons,
                    pages: agreement.pages,
                    stops: count_stops(agreement.stops.iter().copied()),
                });
            }
            Found::Difference { difference, program } => {
                document.agree = Some(false);
                document.difference = Some(self.difference_entry(difference, *program));
            }
            Found::Nothing { timed_out } => document.timed_out = *timed_out,
        }
        crate::write_json(out, &document)
    }

    fn difference_entry(&self, difference: &Difference, program: Option<u64>) -> DifferenceEntry {
        let instruction = difference.instruction.map(|(pc, word)| InstructionEntry {
            pc: Hex(pc),
            word: Hex(word.into()),
            text: Disassembled::new(pc, word).text,
        });
        let side = |side: &Side| SideEntry {
            engine: self.engines[side.machine].clone(),
            stop: side.stop.map(StopEntry::from),
            instructions: side.count,
        };
        let memory = difference.memory.iter();
        DifferenceEntry {
            program,
            lane: difference.lane,
            lanes: difference.lanes,
            repeats: difference.repeats,
            instructions_before: difference.count,
            instruction,
            sides: difference.sides.iter().map(side).collect(),
            registers: difference
                .registers()
                .into_iter()
                .map(|(reg, values)| (reg.to_string(), values.map(|value| RegisterHex(reg, value))))
                .collect(),
            memory: memory
                .map(|(address, values)| WordEntry {
                    address: Hex(*address),
                    values: values.map(Hex),
                })
                .collect(),
            words_of_memory: difference.words,
        }
    }
}

#[cfg(test)]
mod tests {
    use kvrm::Registers;

    use super::*;

    fn report() -> Report {
        let side = |machine, x5, count| {
            let mut registers = Registers { pc: 0x1004, ..Registers::default() };
            registers.x[5] = x5;
            Side { machine, stop: Some(Stop::MaxCycles), count, registers }
        };
        let difference = Box::new(Difference {
            lane: 2,
            lanes: 3,
            instruction: Some((0x1000, 0x9100_0400)),
            count: 1234,
            sides: [side(0, 1, 1235), side(2, 0x8001, 1236)],
            memory: vec![(0x8000, [7, 8])],
            words: 5,
            repeats: true,
        });
        let found = Found::Difference { difference, program: Some(9) };
        let engines = ["cpu", "cuda", "wgpu:1"].map(str::to_string).to_vec();
        Report { engines, lanes: 4, seed: Some(7), found }
    }

    #[test]
    fn a_difference_is_shown_side_by_side() {
        let mut text = Vec::new();
        report().write_human(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let expected = "\
random program 9 of seed 7:
cpu and wgpu:1 part in lane 2 (the first of 3 that do), after 1,234 instructions, with
  0x1000  91000400  add x0, x0, #1
    after it  cpu                       wgpu:1
instructions  1,235                     1,236
          x5  0x0000000000000001        0x0000000000008001
    [0x8000]  0x0000000000000007        0x0000000000000008
(and 4 more words of memory)
";
        assert_eq!(text, expected);
    }

    #[test]
    fn vector_registers_have_wider_columns() {
        let mut report = report();
        let Found::Difference { difference, .. } = &mut report.found else { unreachable!() };
        difference.sides[1].registers.v[31] = 1 << 127 | 5;
        difference.sides[0].registers.fpsr = 1;
        let mut text = Vec::new();
        report.write_human(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let expected = "
    after it  cpu                                   wgpu:1
instructions  1,235                                 1,236
          x5  0x0000000000000001                    0x0000000000008001
         v31  0x00000000000000000000000000000000    0x80000000000000000000000000000005
        fpsr  0x0000000000000001                    0x0000000000000000
    [0x8000]";
        assert!(text.contains(expected), "{text}");
        let mut json = Vec::new();
        report.write_json(&mut json).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let registers = &json["difference"]["registers"];
        assert_eq!(registers["v31"][1], "0x80000000000000000000000000000005");
        assert_eq!(registers["fpsr"], serde_json::json!(["0x1", "0x0"]));
    }

    #[test]
    fn programs_learn_the_same() {
        let mut json = Vec::new();
        report().write_json(&mut json).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!((&json["agree"], &json["seed"]), (&false.into(), &7.into()));
        let difference = &json["difference"];
        assert_eq!(difference["registers"]["x5"], serde_json::json!(["0x1", "0x8001"]));
        assert_eq!(difference["memory"][0]["values"], serde_json::json!(["0x7", "0x8"]));
        assert_eq!(difference["instruction"]["word"], "0x91000400");
        assert_eq!((&difference["program"], &difference["lane"]), (&9.into(), &2.into()));
    }
}
