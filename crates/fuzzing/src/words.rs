//! Random instructions.

use std::sync::LazyLock;

use kvrm_a64::{Instruction, shaped_form, table};
use kvrm_ir::{Op, Terminator};

use crate::Source;

/// Branches and literal loads reach this many words in either direction, mostly.
const REACH: u32 = 24;
/// With [`Habit::Flags`], branches meet at every so manieth instruction.
const TARGETS: u32 = 8;

/// Which instructions to prefer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// All rows, all registers.
    Everything,
    /// All rows, but few registers: instructions have more to do with one another.
    FewRegisters,
    /// Branches and what sets or reads flags, with few registers.
    Flags,
}

impl Habit {
    /// One of them.
    pub fn from_source(source: &mut Source<'_>) -> Habit {
        [Habit::Everything, Habit::FewRegisters, Habit::Flags][source.below(3) as usize]
    }
}

/// Rows that set or read flags, and branches.
static FLAG_ROWS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let wanted = |row: &&Instruction| {
        let routine = shaped_form(row, row.pattern.value);
        let mut flags = false;
        routine.body.for_each_stmt(&mut |stmt| {
            flags |= matches!(stmt.op, Op::Test(_) | Op::SetFlags(_));
        });
        flags || !matches!(routine.end, Terminator::Next | Terminator::Stop { .. })
    };
    table().iter().filter(wanted).map(|row| row.index).collect()
});

/// An instruction, mostly of a row of the table, sometimes any word at all. It is the one of that number
/// in its program.
pub fn word(source: &mut Source<'_>, habit: Habit, number: usize) -> u32 {
    let (choice, bits) = (source.u16(), source.u32());
    if choice.is_multiple_of(64) && habit != Habit::Flags {
        return bits;
    }
    let choice = usize::from(choice);
    let row = match habit {
        Habit::Flags => &table()[FLAG_ROWS[choice % FLAG_ROWS.len()]],
        Habit::Everything | Habit::FewRegisters => &table()[choice % table().len()],
    };
    let bits = if habit == Habit::Everything { bits } else { few_registers(row, bits) };
    let word = row.pattern.value | bits & !row.pattern.mask;
    let word = if row.matches(word) { word } else { row.pattern.value | row.pattern.preferred };
    match habit {
        Habit::Flags => {
            let offset = near(bits);
            branch_by(row, word, offset - (number as u32 + offset - REACH % TARGETS) % TARGETS)
        }
        _ if bits >> 29 == 0 => word,
        Habit::Everything | Habit::FewRegisters => branch_by(row, word, near(bits)),
    }
}

/// Makes most registers one of four. Computed branches are returns, so that they lead somewhere.
fn few_registers(row: &Instruction, bits: u32) -> u32 {
    if matches!(row.name, "BR" | "BLR" | "RET") {
        return row.pattern.field("Rn").map_or(bits, |field| field.set(bits, 30));
    }
    let registers = row.pattern.fields.iter().filter(|field| field.name.starts_with('R'));
    registers.fold(bits, |bits, field| match field.get(bits) {
        31 => bits,
        number => field.set(bits, number % 4),
    })
}

/// An offset of a few words: at least [`TARGETS`] too many, so that rounding down cannot wrap.
fn near(bits: u32) -> u32 {
    TARGETS + (bits >> 5 ^ bits >> 17) % (2 * REACH)
}

/// Gives a relative branch or a literal load an offset from [`near`].
fn branch_by(row: &Instruction, word: u32, offset: u32) -> u32 {
    let offsets = ["imm26", "imm19", "imm14"];
    match offsets.into_iter().find_map(|name| row.pattern.field(name)) {
        Some(field) => field.set(word, offset.wrapping_sub(REACH + TARGETS)),
        None => word,
    }
}
