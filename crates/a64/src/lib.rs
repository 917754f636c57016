//! The A64 instruction set, defined once.
//!
//! The table ([`table`]) has one [`Row`] per encoding: its bits, in the notation of the Arm manual's
//! diagrams, and the function that builds what it does in the intermediate representation of
//! [`kvrm_ir`]. Everything else comes from the rows: the decoder ([`decode`]), the form for
//! interpreting kernels ([`kernel_form`], word unknown), the form for translators
//! ([`translated_form`], word and address known), test-case generation and the coverage page.
//!
//! Files are sections of the Arm manual, C4.1; functions have its names and read like its pseudocode.
//!
//! # Choices the architecture leaves open
//!
//! - Instruction fetch is coherent with the lane's own stores: changed code takes effect at once, and
//!   instruction-cache maintenance has nothing to do. Cache maintenance by address never faults.
//! - A store-exclusive succeeds if the monitor holds the same address and size and memory still
//!   has the value the load-exclusive saw. SVC, HLT, BRK and faults clear the monitor, as an
//!   exception return would; stops the host asks for (cycle limits, breakpoints) do not.
//! - Where Arm says CONSTRAINED UNPREDICTABLE because a register is named twice: a load pair writes
//!   its second register last, and write-back comes after the load.
//! - The stack pointer need not be aligned to be used as a base.
//! - The virtual counter counts the lane's completed instructions, at a nominal 1 GHz.
//! - PAC and BTI in the hint space are no-ops, as on a processor without them.

mod branches;
mod context;
mod data_immediate;
mod data_register;
mod exclusives;
mod loads_stores;
mod lse;
mod row;
pub mod state;
pub mod stop;
mod system;
mod table;

pub use context::Context;
pub use row::{Field, Pattern, Row};
pub use table::{Instruction, decode, table};

use kvrm_ir::{Builder, Routine, Type};

/// Operand size of the 32-bit forms.
const W: Type = Type::U32;
/// Operand size of the 64-bit forms.
const X: Type = Type::U64;

/// What the instruction does, for any word that matches it and any address.
pub fn kernel_form(instruction: &Instruction) -> Routine {
    build(instruction, None, None)
}

/// What the instruction does with this word at this address.
///
/// ```
/// let row = kvrm_a64::decode(0x9100_0420).unwrap(); // add x0, x1, #1
/// let routine = kvrm_a64::translated_form(row, 0x9100_0420, 0x1000);
/// assert_eq!(routine.to_string(), "\
/// v0: u64 = x[1_u32]
/// v1: u64 = add v0, 1_u64
/// x[0_u32] := v1
/// ");
/// ```
pub fn translated_form(instruction: &Instruction, word: u32, pc: u64) -> Routine {
    build(instruction, Some(word), Some(pc))
}

/// What the instruction does with all words that agree with this one in the bits of
/// [`shape_bits`]: the form for kernels that hold one handler for each shape a program uses.
pub fn shaped_form(instruction: &Instruction, word: u32) -> Routine {
    let shape = shape_bits(instruction);
    let builder = Builder::with_known_bits((shape, word & shape));
    (instruction.semantics)(&Context::new(&builder, &instruction.pattern, None));
    builder.finish()
}

/// The bits of a word that change what kind of work it is: the fixed ones, and fields of up to four
/// bits that do not name a register (conditions, shift and extension types, scaling).
pub fn shape_bits(instruction: &Instruction) -> u32 {
    let is_shape = |field: &&Field| field.len <= 4 && !field.name.starts_with('R');
    let fields = instruction.pattern.fields.iter().filter(is_shape);
    fields.fold(instruction.pattern.mask, |bits, field| field.set(bits, u32::MAX))
}

fn build(instruction: &Instruction, word: Option<u32>, pc: Option<u64>) -> Routine {
    let builder = Builder::new(word);
    (instruction.semantics)(&Context::new(&builder, &instruction.pattern, pc));
    builder.finish()
}
