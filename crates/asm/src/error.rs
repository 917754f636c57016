//! Mistakes in programs, and where they are.

/// A mistake in a program.
///
/// ```
/// let error = kvrm_asm::assemble("nop\nadd x0, x1, #5000", 0).unwrap_err();
/// assert_eq!((error.line, error.column, error.text.as_str()), (2, 14, "5000"));
/// assert_eq!(
///     error.to_string(),
///     "line 2, column 14: 5000 does not fit: 0 to 4095, or a multiple of 4096 up to 16773120"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct Error {
    /// Line, from 1.
    pub line: u32,
    /// Column of the first character that is wrong, from 1.
    pub column: u32,
    /// The text there; empty at the end of a line.
    pub text: String,
    /// The kind of mistake.
    pub kind: ErrorKind,
}

/// The kind of a mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A character that no statement may contain.
    #[error("{0:?} has no meaning here")]
    Character(char),
    /// A comment or string that never ends.
    #[error("{0} is not closed")]
    Unclosed(&'static str),
    /// An invalid number.
    #[error("{0} is not a number")]
    Number(String),
    /// An unknown escape in a string.
    #[error(
        "unknown escape \\{0}: there are \\n \\t \\r \\b \\f \\\\ \\\" \\' \\0 to \\377 and \\x00 to \\xff"
    )]
    Escape(char),
    /// A line for the C preprocessor.
    #[error(
        "#{0} is for the C preprocessor, which is not run here: assemble what `gcc -E` makes of the file"
    )]
    Preprocessor(String),
    /// A mnemonic that is not in the table.
    #[error("there is no instruction {0}{hint}", hint = similar(.1))]
    Instruction(String, Option<String>),
    /// An unknown directive.
    #[error("there is no directive {0}{hint}", hint = similar(.1))]
    Directive(String, Option<String>),
    /// A directive that makes no sense without a linker.
    #[error("{directive} has no meaning here: {instead}")]
    NoSections {
        /// The directive.
        directive: String,
        /// What to do.
        instead: &'static str,
    },
    /// Something else is expected there.
    #[error("expected {wanted}, found {found}")]
    Expected {
        /// What is expected.
        wanted: String,
        /// What is there.
        found: String,
    },
    /// A number out of range.
    #[error("{value} does not fit: {allowed}")]
    DoesNotFit {
        /// The number.
        value: i128,
        /// The numbers that fit.
        allowed: String,
    },
    /// A branch target or literal that is too far away, or not aligned.
    #[error("{target:#x} cannot be reached from {from:#x}: {allowed}")]
    Unreachable {
        /// The address.
        target: i128,
        /// The address of the instruction.
        from: u64,
        /// The addresses that can be reached.
        allowed: String,
    },
    /// A number that `mov` cannot load in one instruction.
    #[error(
        "mov cannot make {value:#x} in one instruction: use `ldr {register}, ={value:#x}`, or movz and movk"
    )]
    Move {
        /// The number.
        value: i128,
        /// The destination register.
        register: String,
    },
    /// A number that logical instructions cannot have.
    #[error(
        "{0:#x} is not a bitmask: logical immediates are a run of ones, rotated, and repeated to fill the register"
    )]
    Bitmask(i128),
    /// A number that floating-point instructions cannot have.
    #[error(
        "{0} has no short form: floating-point immediates are 16 to 31 sixteenths, times a power of two from 1/8 to 16"
    )]
    Float(String),
    /// A floating-point number that is too large for its size.
    #[error("{0} is too large")]
    TooLargeFloat(String),
    /// Operands that are valid separately, but not together.
    #[error("{0} does not exist with these operands")]
    Unallocated(String),
    /// A symbol that is not defined.
    #[error("{0} is not defined")]
    Undefined(String),
    /// A symbol that is defined too late.
    #[error("{0} is not defined yet: addresses depend on its value, so it must be defined before")]
    UndefinedYet(String),
    /// An unknown name where a register or a number could be.
    #[error("{0} is not a register, and no symbol of that name is defined")]
    UnknownName(String),
    /// A label that is defined twice.
    #[error("{name} is already defined, in line {line}")]
    Duplicate {
        /// The label.
        name: String,
        /// The line of its first definition.
        line: u32,
    },
    /// A name that means something else.
    #[error("{0} is the name of a register and cannot be a label")]
    Reserved(String),
    /// A division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A number of more than 64 bits.
    #[error("the result has more than 64 bits")]
    Overflow,
    /// Too many nested parentheses.
    #[error("too many parentheses in each other: at most {0}")]
    TooDeep(u32),
    /// A program that is too large.
    #[error("the program has more than {0} MiB")]
    TooLarge(u64),
    /// A macro that calls itself, or expands too much.
    #[error("{0}")]
    Macro(String),
}

fn similar(name: &Option<String>) -> String {
    name.as_ref().map_or_else(String::new, |name| format!(": did you mean {name}?"))
}

/// A result with [`Error`].
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
