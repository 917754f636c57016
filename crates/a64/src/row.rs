//! A row of the instruction table, and the notation of its encoding.

use crate::context::Context;

/// One encoding: its name, its bits and what it does.
///
/// The bits are written as the Arm manual draws them, most significant first, separated by spaces:
///
/// - `0101` – these bits have these values;
/// - `imm12:12` – a field of twelve bits;
/// - `(11)` – should be these bits, but any value means the same instruction.
///
/// ```
/// let row = kvrm_a64::decode(0x9100_0420).unwrap(); // add x0, x1, #1
/// assert_eq!(row.name, "ADD_imm_X");
/// assert_eq!(row.encoding, "1 0 0 100010 sh:1 imm12:12 Rn:5 Rd:5");
/// ```
#[derive(Clone, Copy)]
pub struct Row {
    /// Arm's mnemonic, with what tells it from its siblings.
    pub name: &'static str,
    /// Which part of the instruction set it belongs to.
    pub group: &'static str,
    /// The bits.
    pub encoding: &'static str,
    /// A condition on the word, where the fields alone do not say which values are allocated.
    pub allocated: Option<fn(u32) -> bool>,
    /// Builds what the instruction does.
    pub semantics: fn(&Context<'_>),
}

/// A named field of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Arm's name for it.
    pub name: &'static str,
    /// Lowest bit.
    pub low: u32,
    /// Number of bits.
    pub len: u32,
}

impl Field {
    /// The field's value in a word.
    pub fn get(self, word: u32) -> u32 {
        word >> self.low & (u32::MAX >> (32 - self.len))
    }

    /// The word with the field set to the low bits of `value`.
    pub fn set(self, word: u32, value: u32) -> u32 {
        let mask = u32::MAX >> (32 - self.len);
        word & !(mask << self.low) | (value & mask) << self.low
    }
}

/// An encoding, taken apart.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Bits with a prescribed value.
    pub mask: u32,
    /// Those values.
    pub value: u32,
    /// Values of the bits that should, but need not, have one.
    pub preferred: u32,
    /// The fields, most significant first.
    pub fields: Vec<Field>,
}

impl Pattern {
    /// Takes an encoding apart.
    ///
    /// # Panics
    /// If it is not 32 bits of the notation [`Row`] describes: a mistake in the table.
    pub fn parse(encoding: &'static str) -> Pattern {
        let mut pattern = Pattern { mask: 0, value: 0, preferred: 0, fields: Vec::new() };
        let mut high = 32;
        for token in encoding.split_whitespace() {
            let len = pattern.token(token, high);
            high = high.checked_sub(len).unwrap_or_else(|| panic!("over 32 bits: {encoding}"));
        }
        assert_eq!(high, 0, "not 32 bits: {encoding}");
        pattern
    }

    /// Takes one token, whose top bit is just below `high`; its length in bits.
    fn token(&mut self, token: &'static str, high: u32) -> u32 {
        let bits = |text: &str| u32::from_str_radix(text, 2).expect("binary digits");
        if let Some((name, len)) = token.split_once(':') {
            let len = len.parse().expect("a length");
            self.fields.push(Field { name, low: high - len, len });
            return len;
        }
        if let Some(text) = token.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
            let len = text.len() as u32;
            self.preferred |= bits(text) << (high - len);
            return len;
        }
        let len = token.len() as u32;
        self.mask |= (u32::MAX >> (32 - len)) << (high - len);
        self.value |= bits(token) << (high - len);
        len
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|f| f.name == name).copied()
    }
}

/// Writes a list of rows of one group: `NAME "encoding" [if allocated] => semantics(parameters);`.
macro_rules! rows {
    ($group:literal: $($name:literal $encoding:expr $(, if $allocated:expr)? =>
        $semantics:ident($($parameter:expr),*);)*) => {
        &[$($crate::row::Row {
            name: $name,
            group: $group,
            encoding: $encoding,
            allocated: rows!(@allocated $($allocated)?),
            semantics: |cx| $semantics(cx, $($parameter),*),
        }),*]
    };
    (@allocated) => { None };
    (@allocated $allocated:expr) => { Some($allocated) };
}
pub(crate) use rows;
