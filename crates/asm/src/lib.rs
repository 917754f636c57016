//! An assembler and a disassembler for the A64 instructions that kvrm runs.
//!
//! [`assemble`] takes text in the syntax of GNU as and returns the bytes for an address:
//!
//! ```
//! let code = kvrm_asm::assemble(
//!     "        mov   x0, #1
//!      loop:   subs  x0, x0, #1   // until it is zero
//!              b.ne  loop
//!              hlt   #0",
//!     0x10000,
//! )?;
//! assert_eq!(code.len(), 16);
//! # Ok::<(), kvrm_asm::Error>(())
//! ```
//!
//! # What it takes
//!
//! - **Instructions**: all of the table in [`kvrm_a64`], with the usual aliases (`mov`, `cmp`, `lsl`, `cset`, `ubfx`
//!   and so on). Upper and lower case are the same in mnemonics and registers, and `#` before numbers may be
//!   left out.
//! - **Labels**: `name:`, and numbers (`1:`) that are referred to as `1b`, the last one before, and `1f`, the next one.
//!   Where an address is wanted, a number is an address too, `b 0x10000`, as disassemblers write it; with `#` it is a
//!   distance from the instruction, `b #8`. (GNU as takes both for distances.)
//! - **Expressions** wherever a number can be: decimal, `0x`, `0b` and octal (`017`) numbers, characters (`'a'`),
//!   symbols, `.` for the address of the statement, `+ - * / % << >> & | ^ ~ ( )`. `:lo12:symbol` and
//!   `:abs_g0:symbol` to `:abs_g3_nc:symbol` are parts of addresses. Precedence is that of GNU as: `*`, `/`, `%` and
//!   shifts first, then `&`, `|` and `^`, then `+` and `-`.
//! - **Constants**: `ldr x0, =expression`, or into `s0`, `d0` and `q0`, puts the constant at the next `.ltorg`, or after the end of the program.
//! - **Comments**: `// …`, `/* … */`, and lines that begin with `#`. A `;` separates statements.
//! - **Macros**: `.macro name a, b=1, c:req` to `.endm`, with `\a`, `\b`, `\@` (a number that differs in each use) and `\()`
//!   (nothing); `.rept count` to `.endr`.
//!
//! | directive | |
//! |---|---|
//! | `.byte` `.hword` `.short` `.word` `.long` `.int` `.quad` `.xword` `.inst` | numbers |
//! | `.float` `.single` `.double` | floating-point numbers, in decimal |
//! | `.ascii` `.asciz` `.string` | strings; all but the first end with a zero |
//! | `.space` `.skip` `.zero` `.fill` | many bytes |
//! | `.align` `.p2align` `.balign` | to a multiple of a power of two, or of a number; with NOP, or the byte given |
//! | `.equ` `.set`, `name = value` | a symbol that is a number |
//! | `.ltorg` `.pool` | the constants of `ldr x0, =…` so far |
//! | `.text`, `.section .text…` | nothing: there is one section; others are refused |
//! | `.global` `.globl` `.type` `.size` `.arch` `.cpu` `.file` `.ident` `.cfi_…` and the like | nothing: there is no linker |
//!
//! Instructions that follow data are aligned to 4 bytes, as GNU as does.
//!
//! # How it works
//!
//! The rows of the instruction table define the bits; `crates/asm/src/syntax.rs` has a line for each way to
//! write them. A statement is matched with the forms of its mnemonic one after the other. If none matches, the
//! error is that of the form that matched furthest. [`disassemble`] uses the same lines in the other direction.

mod cursor;
mod directive;
mod encode;
mod error;
mod expression;
mod immediate;
mod lexer;
mod macros;
mod names;
mod operand;
mod print;
mod program;
mod similar;
mod special;
mod syntax;
mod template;
mod vector;

use std::collections::BTreeMap;
use std::ops::Range;

pub use error::{Error, ErrorKind};

/// Assembles a program that starts at `address`.
///
/// ```
/// assert_eq!(kvrm_asm::assemble("add x0, x1, #1", 0)?, 0x9100_0420_u32.to_le_bytes());
///
/// let error = kvrm_asm::assemble("addd x0, x1, #1", 0).unwrap_err();
/// assert_eq!(error.to_string(), "line 1, column 1: there is no instruction addd: did you mean add?");
/// # Ok::<(), kvrm_asm::Error>(())
/// ```
///
/// # Errors
/// A mistake in the text.
pub fn assemble(text: &str, address: u64) -> Result<Vec<u8>, Error> {
    Ok(assemble_program(text, address)?.bytes)
}

/// Like [`assemble`], but returns a listing of statements and labels, too.
///
/// ```
/// let program = kvrm_asm::assemble_program("start: nop\n.word 5", 0x1000)?;
/// assert_eq!(program.labels["start"], 0x1000);
/// assert_eq!((program.statements[1].line, program.statements[1].address), (2, 0x1004));
/// assert_eq!(program.bytes[program.statements[1].bytes.clone()], [5, 0, 0, 0]);
/// # Ok::<(), kvrm_asm::Error>(())
/// ```
///
/// # Errors
/// A mistake in the text.
pub fn assemble_program(text: &str, address: u64) -> Result<Program, Error> {
    let program = program::assemble(text, address);
    program.map_err(|mistakes| mistakes.into_iter().next().expect("there is one"))
}

/// After this many mistakes, the search ends.
pub const MOST_MISTAKES: usize = 20;

/// Returns the mistakes in a program, in the order of the text; none if it can be assembled. There may be more:
/// the search ends after [`MOST_MISTAKES`], and at a mistake that makes it impossible to understand the rest.
///
/// ```
/// let mistakes = kvrm_asm::mistakes("addd x0, x1, #1\nnop\nb nowhere", 0);
/// let lines: Vec<u32> = mistakes.iter().map(|mistake| mistake.line).collect();
/// assert_eq!(lines, [1, 3]);
/// assert!(kvrm_asm::mistakes("nop", 0).is_empty());
/// ```
pub fn mistakes(text: &str, address: u64) -> Vec<Error> {
    program::assemble(text, address).err().unwrap_or_default()
}

/// Disassembles an instruction word at an address, in the syntax of [`assemble`] and with the usual aliases;
/// returns `None` if the table does not have it.
///
/// ```
/// assert_eq!(kvrm_asm::disassemble(0x7100_083f, 0).unwrap(), "cmp w1, #2");
/// assert_eq!(kvrm_asm::disassemble(0x5400_0041, 0x1000).unwrap(), "b.ne 0x1008");
/// assert_eq!(kvrm_asm::disassemble(0xffff_ffff, 0), None);
/// ```
pub fn disassemble(word: u32, address: u64) -> Option<String> {
    print::word(word, address)
}

/// An assembled program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Program {
    /// What goes into memory.
    pub bytes: Vec<u8>,
    /// Where its statements are, in order; those without bytes are left out.
    pub statements: Vec<Statement>,
    /// The addresses of its labels, but for numeric ones.
    pub labels: BTreeMap<String, u64>,
}

/// A statement that gave bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statement {
    /// Its line in the text, from 1.
    pub line: u32,
    /// The address of its first byte.
    pub address: u64,
    /// Its bytes in [`Program::bytes`].
    pub bytes: Range<usize>,
    /// Whether it is an instruction, and not data.
    pub is_instruction: bool,
}
