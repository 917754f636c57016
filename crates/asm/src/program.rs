//! Assembles a whole program: labels, addresses, passes.
//!
//! There are three passes over the statements. The first assigns an address to every statement, the second
//! finds symbols that are computed from labels further down, and the third writes bytes. Everything that
//! addresses depend on (sizes of space, numbers of repetitions) must be known in the first pass.

use std::collections::HashMap;

use crate::cursor::Cursor;
use crate::directive::is_undefined;
use crate::encode::{self, Place};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::{Scope, evaluate, names_address};
use crate::immediate::register_bits;
use crate::lexer::{Kind, Local, Token};
use crate::names::{self, Width};
use crate::{MOST_MISTAKES, Program, Statement, macros, vector};

/// The largest program, in MiB.
const MAX_MIB: u64 = 256;
/// The same in bytes.
pub(crate) const MAX_BYTES: u64 = MAX_MIB << 20;

/// Returns the program, or its mistakes: at least one, at most [`MOST_MISTAKES`], in the order of the text.
pub(crate) fn assemble(text: &str, address: u64) -> Result<Program, Vec<Error>> {
    let statements = macros::statements(text).map_err(|error| vec![error])?;
    let mut assembler = Assembler::new(address);
    for pass in [Pass::Addresses, Pass::Symbols, Pass::Bytes] {
        assembler.pass(pass, &statements);
        if !assembler.mistakes.is_empty() {
            assembler.mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
            return Err(assembler.mistakes);
        }
    }
    let labels = assembler.symbols.into_iter().filter(|(_, symbol)| symbol.is_label);
    Ok(Program {
        bytes: assembler.bytes,
        statements: assembler.statements,
        labels: labels.map(|(name, symbol)| (name, symbol.value as u64)).collect(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Addresses,
    Symbols,
    Bytes,
}

struct Symbol {
    value: i128,
    line: u32,
    is_label: bool,
}

/// A constant that an instruction loads.
struct Literal {
    bytes: u32,
    expression: Vec<Token>,
    /// Equal for equal constants.
    key: String,
    pool: usize,
    address: u64,
}

pub(crate) struct Assembler {
    start: u64,
    pub(crate) pass: Pass,
    /// Number of bytes so far.
    pub(crate) offset: u64,
    bytes: Vec<u8>,
    statements: Vec<Statement>,
    symbols: HashMap<String, Symbol>,
    /// Numeric labels, with the statements that they precede.
    locals: HashMap<u64, Vec<(usize, u64)>>,
    statement: usize,
    /// The offsets after each statement.
    ends: Vec<u64>,
    mistakes: Vec<Error>,
    literals: Vec<Literal>,
    /// Which literal a statement loads.
    loads: HashMap<usize, usize>,
    pool: usize,
}

impl Assembler {
    fn new(start: u64) -> Assembler {
        Assembler {
            start,
            pass: Pass::Addresses,
            offset: 0,
            bytes: Vec::new(),
            statements: Vec::new(),
            symbols: HashMap::new(),
            locals: HashMap::new(),
            statement: 0,
            ends: Vec::new(),
            mistakes: Vec::new(),
            literals: Vec::new(),
            loads: HashMap::new(),
            pool: 0,
        }
    }

    /// Processes the statements; after a mistake, continues with the next one.
    fn pass(&mut self, pass: Pass, statements: &[Vec<Token>]) {
        (self.pass, self.offset, self.pool) = (pass, 0, 0);
        for (number, tokens) in statements.iter().enumerate() {
            self.statement = number;
            let result = self.statement(tokens);
            self.note(result);
            match pass {
                Pass::Addresses => self.ends.push(self.offset),
                // Continue where it would be without the mistake.
                _ => self.offset = self.ends[number],
            }
            if self.mistakes.len() >= MOST_MISTAKES || self.is_too_large() {
                return;
            }
        }
        self.statement = statements.len();
        self.write_literals();
    }

    /// True if the program is too large, so that the rest cannot be placed.
    fn is_too_large(&self) -> bool {
        matches!(self.mistakes.last(), Some(Error { kind: ErrorKind::TooLarge(_), .. }))
    }

    fn note(&mut self, result: Result<()>) {
        self.mistakes.extend(result.err());
    }

    fn statement(&mut self, tokens: &[Token]) -> Result<()> {
        let labels = macros::skip_labels(tokens);
        for label in tokens[..labels].iter().step_by(2) {
            self.label(label)?;
        }
        let rest = &tokens[labels..];
        let first = &rest[0];
        let before = self.offset;
        let mut is_instruction = false;
        match first.kind {
            Kind::End => {}
            Kind::Name if rest[1].is("=") => {
                let mut cursor = Cursor::new(&rest[2..]);
                self.set(first, &mut cursor)?;
            }
            Kind::Name if first.text.starts_with('.') => self.directive(rest)?,
            Kind::Name => {
                is_instruction = true;
                self.instruction(rest)?;
            }
            Kind::Number(_) | Kind::Float | Kind::Local(_) | Kind::String(_) | Kind::Punct => {
                return Cursor::new(rest).expected("an instruction, a directive or a label");
            }
        }
        self.list(first.line, before, is_instruction);
        Ok(())
    }

    /// Records what a statement was assembled to.
    fn list(&mut self, line: u32, before: u64, is_instruction: bool) {
        if self.pass == Pass::Bytes && self.offset > before {
            // Padding before an instruction is not part of it.
            let before = if is_instruction { self.offset - 4 } else { before };
            self.statements.push(Statement {
                line,
                address: self.start.wrapping_add(before),
                bytes: before as usize..self.offset as usize,
                is_instruction,
            });
        }
    }

    fn label(&mut self, label: &Token) -> Result<()> {
        let here = self.here();
        if let Kind::Number(number) = label.kind {
            if self.pass == Pass::Addresses {
                let known = self.locals.entry(number as u64).or_default();
                known.push((self.statement, here));
            }
            return Ok(());
        }
        if names::is_register(&label.text) {
            return Err(label.error(ErrorKind::Reserved(label.text.clone())));
        }
        if self.pass != Pass::Addresses {
            let known = self.symbols.get(&label.text).map(|known| known.value);
            assert_eq!(known, Some(here.into()), "{} has moved", label.text);
            return Ok(());
        }
        if let Some(known) = self.symbols.get(&label.text) {
            let (name, line) = (label.text.clone(), known.line);
            return Err(label.error(ErrorKind::Duplicate { name, line }));
        }
        let symbol = Symbol { value: here.into(), line: label.line, is_label: true };
        self.symbols.insert(label.text.clone(), symbol);
        Ok(())
    }

    /// Sets the value of a symbol: `.set name, value`.
    pub(crate) fn set(&mut self, name: &Token, cursor: &mut Cursor<'_>) -> Result<()> {
        if let Some(known) = self.symbols.get(&name.text).filter(|known| known.is_label) {
            let line = known.line;
            return Err(name.error(ErrorKind::Duplicate { name: name.text.clone(), line }));
        }
        if names::is_register(&name.text) {
            return Err(name.error(ErrorKind::Reserved(name.text.clone())));
        }
        let value = match evaluate(cursor, self) {
            Ok(value) => value,
            // It may depend on labels further down.
            Err(error) if self.pass != Pass::Bytes => {
                if !is_undefined(&error.kind) {
                    return Err(error);
                }
                // An old value would give statements addresses that change later.
                self.symbols.remove(&name.text);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        cursor.expect_end()?;
        let symbol = Symbol { value, line: name.line, is_label: false };
        self.symbols.insert(name.text.clone(), symbol);
        Ok(())
    }

    fn instruction(&mut self, tokens: &[Token]) -> Result<()> {
        self.align_instruction(&tokens[0])?;
        match self.pass {
            Pass::Addresses => self.note_literal(tokens),
            Pass::Symbols => {}
            Pass::Bytes => {
                let (word, _) = encode::instruction(tokens, self)?;
                self.bytes.extend(word.to_le_bytes());
            }
        }
        self.advance(4, &tokens[0])
    }

    /// Aligns an instruction after data to a multiple of 4.
    pub(crate) fn align_instruction(&mut self, place: &Token) -> Result<()> {
        let padding = self.here().wrapping_neg() % 4;
        self.zeros(padding, place)
    }

    /// Writes this many zeros.
    pub(crate) fn zeros(&mut self, count: u64, place: &Token) -> Result<()> {
        self.fill(count, &[0], place)
    }

    /// Writes the bytes this many times.
    pub(crate) fn fill(&mut self, count: u64, bytes: &[u8], place: &Token) -> Result<()> {
        let len = count.checked_mul(bytes.len() as u64);
        self.advance(len.unwrap_or(u64::MAX), place)?;
        if self.pass == Pass::Bytes {
            (0..count).for_each(|_| self.bytes.extend_from_slice(bytes));
        }
        Ok(())
    }

    fn advance(&mut self, len: u64, place: &Token) -> Result<()> {
        self.offset = self.offset.saturating_add(len);
        match self.offset > MAX_BYTES {
            true => Err(place.error(ErrorKind::TooLarge(MAX_MIB))),
            false => Ok(()),
        }
    }

    /// Records the constant of `ldr x0, =constant`.
    fn note_literal(&mut self, tokens: &[Token]) {
        let mnemonic = tokens[0].text.to_ascii_lowercase();
        let is_load = matches!(mnemonic.as_str(), "ldr" | "ldrsw");
        let [_, register, comma, equals, expression @ ..] = tokens else { return };
        let Some(bytes) = literal_bytes(&mnemonic, &register.text) else { return };
        if !is_load || !comma.is(",") || !equals.is("=") {
            return;
        }
        let key = self.literal_key(expression, bytes);
        let same = |l: &Literal| (l.bytes, l.pool, l.key.as_str()) == (bytes, self.pool, &key);
        let index = self.literals.iter().position(same).unwrap_or_else(|| {
            let expression = expression.to_vec();
            let literal = Literal { bytes, expression, key, pool: self.pool, address: 0 };
            self.literals.push(literal);
            self.literals.len() - 1
        });
        self.loads.insert(self.statement, index);
    }

    /// Returns the value of a constant if it is known and does not depend on addresses, else its text.
    fn literal_key(&self, expression: &[Token], bytes: u32) -> String {
        if !names_address(expression, self)
            && let Ok(value) = evaluate(&mut Cursor::new(expression), self)
            && let Some(bits) = literal_bits(value, bytes)
        {
            return bits.to_string();
        }
        let texts: Vec<&str> = expression.iter().map(|token| token.text.as_str()).collect();
        let position = expression.iter().any(|t| t.text == "." || matches!(t.kind, Kind::Local(_)));
        // `.` and numeric labels differ from statement to statement.
        format!("{} {}", texts.join(" "), if position { self.statement } else { 0 })
    }

    /// Writes the constants since the last time here: 4-byte ones, then 8-byte ones, then 16-byte ones.
    pub(crate) fn write_literals(&mut self) {
        for bytes in [4, 8, 16] {
            for index in 0..self.literals.len() {
                let literal = &self.literals[index];
                if (literal.pool, literal.bytes) == (self.pool, bytes) {
                    let result = self.write_literal(index);
                    self.note(result);
                }
            }
        }
        self.pool += 1;
    }

    fn write_literal(&mut self, index: usize) -> Result<()> {
        let expression = self.literals[index].expression.clone();
        let bytes = u64::from(self.literals[index].bytes);
        let place = &expression[0];
        self.zeros(self.here().wrapping_neg() % bytes, place)?;
        self.literals[index].address = self.here();
        let before = self.offset;
        self.advance(bytes, place)?;
        if self.pass != Pass::Bytes {
            return Ok(());
        }
        let mut cursor = Cursor::new(&expression);
        let value = evaluate(&mut cursor, self)?;
        cursor.expect_end()?;
        let Some(bits) = literal_bits(value, bytes as u32) else {
            let allowed = format!("at most {} bits", 8 * bytes);
            return Err(place.error(ErrorKind::DoesNotFit { value, allowed }));
        };
        self.bytes.extend_from_slice(&bits.to_le_bytes()[..bytes as usize]);
        self.list(place.line, before, false);
        Ok(())
    }
}

/// Returns the size of the constant that is loaded into a register, if there is such an instruction.
fn literal_bytes(mnemonic: &str, register: &str) -> Option<u32> {
    if let Some(register) = names::register(register) {
        let bits = if mnemonic == "ldr" { register.width.bits() } else { 32 };
        return Some(bits / 8);
    }
    let (_, lane) = vector::scalar(register)?;
    (mnemonic == "ldr" && lane.bits() >= 32).then_some(lane.bits() / 8)
}

/// Returns the bits of a constant, signed or unsigned.
fn literal_bits(value: i128, bytes: u32) -> Option<i128> {
    match bytes {
        4 => register_bits(value, Width::W).map(i128::from),
        8 => register_bits(value, Width::X).map(i128::from),
        _ => Some(value),
    }
}

impl Scope for Assembler {
    fn symbol(&self, name: &str) -> Option<i128> {
        self.symbols.get(name).map(|symbol| symbol.value)
    }

    fn is_label(&self, name: &str) -> bool {
        self.symbols.get(name).is_none_or(|symbol| symbol.is_label)
    }

    fn local(&self, label: Local) -> Option<i128> {
        let known = self.locals.get(&label.number)?;
        let split = known.partition_point(|(statement, _)| *statement <= self.statement);
        let found = if label.forward { known.get(split) } else { known[..split].last() };
        found.map(|(_, address)| (*address).into())
    }

    fn here(&self) -> u64 {
        self.start.wrapping_add(self.offset)
    }

    fn is_layout(&self) -> bool {
        self.pass == Pass::Addresses
    }
}

impl Place for Assembler {
    fn literal(&self) -> Option<u64> {
        self.loads.get(&self.statement).map(|index| self.literals[*index].address)
    }
}
