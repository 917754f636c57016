//! Random instructions.

use std::sync::LazyLock;

use kvrm_a64::{Field, Instruction, decode, shaped_form, table};
use kvrm_ir::{Op, Terminator};

use crate::Source;

/// The base register of [`own_access`].
pub(crate) const PART_BASE: u8 = 28;

/// Most branches and literal loads reach this many words in either direction.
const REACH: u32 = 24;
/// With [`Habit::Flags`], branches go to instructions whose numbers are multiples of this.
const TARGETS: u32 = 8;

/// Which instructions to prefer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// All rows, all registers.
    Everything,
    /// All rows, but few registers, so that instructions depend on one another.
    FewRegisters,
    /// Branches and what sets or reads flags, with few registers.
    Flags,
}

impl Habit {
    /// Picks a habit.
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

/// Rows with an address relative to their own: branches, and loads of literals.
static RELATIVE_ROWS: LazyLock<Vec<&Instruction>> =
    LazyLock::new(|| table().iter().filter(|row| offset_field(row).is_some()).collect());

/// Returns a branch to, or a load of, what is `distance` words away.
pub(crate) fn far_branch(source: &mut Source<'_>, distance: i32) -> u32 {
    let (choice, bits) = (source.u8(), source.u32());
    let row = RELATIVE_ROWS[usize::from(choice) % RELATIVE_ROWS.len()];
    let word = row.pattern.value | few_registers(row, bits) & !row.pattern.mask;
    offset_field(row).map_or(word, |field| field.set(word, distance as u32))
}

/// Rows that do not touch memory.
static QUIET_ROWS: LazyLock<Vec<&Instruction>> =
    LazyLock::new(|| table().iter().filter(|row| !touches_memory(row)).collect());

/// Rows that change registers and flags, and nothing else.
static CALM_ROWS: LazyLock<Vec<&Instruction>> = LazyLock::new(|| {
    let mut rows = QUIET_ROWS.clone();
    rows.retain(|row| {
        let routine = shaped_form(row, row.pattern.value);
        let mut exits = false;
        routine.body.for_each_stmt(&mut |stmt| exits |= matches!(stmt.op, Op::Exit { .. }));
        !exits && matches!(routine.end, Terminator::Next)
    });
    rows
});

/// Rows that access memory at a base register, which they leave alone.
static ACCESS_ROWS: LazyLock<Vec<&Instruction>> = LazyLock::new(|| {
    let moves_base = |name: &str| name.contains("_pre") || name.contains("_post");
    let at_base = |row: &&Instruction| row.pattern.field("Rn").is_some() && !moves_base(row.name);
    table().iter().filter(|row| touches_memory(row)).filter(at_base).collect()
});

fn touches_memory(row: &Instruction) -> bool {
    let mut touches = false;
    shaped_form(row, row.pattern.value).body.for_each_stmt(&mut |stmt| {
        touches |= matches!(stmt.op, Op::Probe { .. });
    });
    touches
}

/// Returns an instruction that does not touch memory, and changes only X0 to X3 and the link register.
pub(crate) fn quiet(source: &mut Source<'_>, habit: Habit, number: usize) -> u32 {
    let (choice, bits) = (usize::from(source.u16()), source.u32());
    let row = match habit {
        Habit::Flags => &table()[FLAG_ROWS[choice % FLAG_ROWS.len()]],
        Habit::Everything | Habit::FewRegisters => QUIET_ROWS[choice % QUIET_ROWS.len()],
    };
    let word = allocated(row, few_registers(row, bits));
    branch_by(row, word, meeting(near(bits), number))
}

/// Returns an instruction that changes X0 to X3 and the flags, and nothing else.
pub(crate) fn calm(source: &mut Source<'_>) -> u32 {
    let (choice, bits) = (usize::from(source.u16()), source.u32());
    let row = CALM_ROWS[choice % CALM_ROWS.len()];
    allocated(row, few_registers(row, bits))
}

/// True for instructions that [`calm`] may return.
pub(crate) fn is_calm(word: &u32) -> bool {
    decode(*word).is_some_and(|row| CALM_ROWS.iter().any(|calm| calm.index == row.index))
}

/// Returns an access to the 192 bytes from [`PART_BASE`] on, with X0 to X3.
pub(crate) fn own_access(source: &mut Source<'_>) -> u32 {
    let (choice, bits) = (usize::from(source.u16()), source.u32());
    let row = ACCESS_ROWS[choice % ACCESS_ROWS.len()];
    let word = allocated(row, few_registers(row, bits));
    // Offsets are in units of up to sixteen bytes.
    let fields = [("Rn", PART_BASE.into()), ("Rm", 31), ("imm12", bits >> 10 & 7)];
    let offsets = [("imm9", bits >> 12 & 127), ("imm7", bits >> 15 & 7)];
    fields.into_iter().chain(offsets).fold(word, |word, (name, value)| {
        row.pattern.field(name).map_or(word, |field| field.set(word, value))
    })
}

/// Returns an instruction, mostly of a row of the table, sometimes any word at all. `number` is its position in the
/// program.
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
    let word = allocated(row, bits);
    match habit {
        Habit::Flags => branch_by(row, word, meeting(near(bits), number)),
        _ if bits >> 29 == 0 => word,
        Habit::Everything | Habit::FewRegisters => branch_by(row, word, near(bits)),
    }
}

/// Returns the instruction of a row with these bits in its fields; with zeros if there is no such instruction.
fn allocated(row: &Instruction, bits: u32) -> u32 {
    let word = row.pattern.value | bits & !row.pattern.mask;
    if row.matches(word) { word } else { row.pattern.value | row.pattern.preferred }
}

/// Replaces most registers with one of four. Branches to registers use X30, so that they often lead to code.
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

/// Returns an offset of a few words, with [`REACH`] and [`TARGETS`] added so that rounding down cannot wrap.
fn near(bits: u32) -> u32 {
    TARGETS + (bits >> 5 ^ bits >> 17) % (2 * REACH)
}

/// Rounds an offset down so that the branch at position `number` goes to a multiple of [`TARGETS`].
fn meeting(offset: u32, number: usize) -> u32 {
    offset - (number as u32 + offset - REACH % TARGETS) % TARGETS
}

/// Gives a relative branch or a literal load an offset from [`near`].
fn branch_by(row: &Instruction, word: u32, offset: u32) -> u32 {
    match offset_field(row) {
        Some(field) => field.set(word, offset.wrapping_sub(REACH + TARGETS)),
        None => word,
    }
}

/// Returns the field with the distance, in words, to what a row branches to or loads.
fn offset_field(row: &Instruction) -> Option<Field> {
    ["imm26", "imm19", "imm14"].into_iter().find_map(|name| row.pattern.field(name))
}
