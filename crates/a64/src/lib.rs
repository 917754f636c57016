//! The A64 instruction set, defined once.
//!
//! The table ([`table`]) has one [`Instruction`] per encoding. They come from rows: the bits, in the notation
//! of the Arm manual's diagrams, and the function that builds what they do in the intermediate
//! representation of [`kvrm_ir`]. Everything else comes from the rows, too: the decoder ([`decode`]), the
//! form for interpreting kernels ([`shaped_form`], most of the word unknown), the form for translators
//! ([`translated_form`], word and address known), where control goes ([`flow()`]), test-case generation and
//! the coverage page.
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
//! - The virtual counter counts the lane's completed instructions, at a nominal 1 GHz, from where the host sets it.
//! - PAC and BTI in the hint space are no-ops, as on a processor without them.

mod branches;
mod context;
mod data_immediate;
mod data_register;
mod exclusives;
mod float;
mod flow;
mod fp;
pub mod hwcap;
mod loads_stores;
mod lse;
mod row;
mod simd;
pub mod state;
pub mod stop;
mod system;
mod table;

pub use context::Context;
pub use flow::{Flow, flow};
pub use row::{Field, Pattern};
pub use system::RETURN;
pub use table::{Instruction, decode, table};

use kvrm_ir::{Builder, Routine, Type};
use row::Choice;

/// Operand size of the 32-bit forms.
const W: Type = Type::U32;
/// Operand size of the 64-bit forms.
const X: Type = Type::U64;

/// The operand sizes, by the bit that Arm calls `sf`.
const SF: &[Choice<Type>] = &[("W", "0", W), ("X", "1", X)];
/// The sizes of a memory access, by the two bits that Arm calls `size`.
const SIZE: &[Choice<Type>] =
    &[("B", "00", Type::U8), ("H", "01", Type::U16), ("_W", "10", W), ("_X", "11", X)];
/// Unsigned and signed.
const SIGN: &[Choice<Sign>] = &[("U", "0", Sign::Unsigned), ("S", "1", Sign::Signed)];

/// How an operand is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Unsigned,
    Signed,
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
    let builder = Builder::new(Some(word));
    build(&builder, instruction, word, pc);
    builder.finish()
}

/// What the instruction does with all words that agree with this one in [`Instruction::shape_bits`]: the form
/// for kernels that hold one handler for each shape a program uses.
pub fn shaped_form(instruction: &Instruction, word: u32) -> Routine {
    let shape = instruction.shape_bits();
    let builder = Builder::with_known_bits((shape, word & shape));
    instruction.build(&Context::new(&builder, &instruction.pattern, None));
    builder.finish()
}

/// The same as [`shaped_form`], for lanes that may have a *supervisor*: code that serves system calls in the lane itself, so
/// that they need not stop it. SVC goes to it, if [`SUPERVISOR`](state::SUPERVISOR) says where it is, and it goes back with
/// SVC and the immediate [`RETURN`].
///
/// ```
/// let svc = kvrm_a64::decode(0xd400_0001).unwrap();
/// assert!(!kvrm_a64::shaped_form(svc, 0xd400_0001).to_string().contains("supervisor"));
/// assert!(kvrm_a64::supervised_form(svc, 0xd400_0001).to_string().contains("supervisor"));
/// ```
pub fn supervised_form(instruction: &Instruction, word: u32) -> Routine {
    if instruction.name != "SVC" {
        return shaped_form(instruction, word);
    }
    let builder = Builder::new(None);
    system::supervised_call(&Context::new(&builder, &instruction.pattern, None));
    builder.finish()
}

/// Builds what the instruction with this word at this address does, after what is there already.
pub fn build(builder: &Builder, instruction: &Instruction, word: u32, pc: u64) {
    builder.set_word(word);
    instruction.build(&Context::new(builder, &instruction.pattern, Some(pc)));
}
