//! Directives: statements that begin with a dot.

use crate::cursor::Cursor;
use crate::error::{ErrorKind, Result};
use crate::expression::{Scope, decimal, evaluate};
use crate::lexer::{Kind, Token};
use crate::program::{Assembler, MAX_BYTES, Pass};

/// NOP, which fills the space before aligned instructions.
const NOP: u32 = 0xd503_201f;
/// The largest alignment, as a power of two.
const MAX_ALIGN: u32 = 16;

/// Directives for linkers and debuggers, which have no effect here.
const IGNORED: &[&str] = &[
    ".global",
    ".globl",
    ".local",
    ".weak",
    ".hidden",
    ".protected",
    ".extern",
    ".type",
    ".size",
    ".arch",
    ".arch_extension",
    ".cpu",
    ".file",
    ".ident",
    ".loc",
    ".text",
];

/// The other directives, for suggestions.
const KNOWN: &[&str] = &[
    ".byte", ".hword", ".short", ".half", ".word", ".long", ".int", ".quad", ".xword", ".dword",
    ".float", ".single", ".double", ".inst", ".ascii", ".asciz", ".string", ".space", ".skip",
    ".zero", ".fill", ".align", ".p2align", ".balign", ".equ", ".set", ".ltorg", ".pool",
    ".section", ".macro", ".endm", ".rept", ".endr",
];

impl Assembler {
    pub(crate) fn directive(&mut self, tokens: &[Token]) -> Result<()> {
        let mut cursor = Cursor::new(tokens);
        let directive = cursor.next();
        let cursor = &mut cursor;
        let name = directive.text.to_ascii_lowercase();
        match name.as_str() {
            ".byte" | ".1byte" => self.numbers(cursor, 1),
            ".hword" | ".short" | ".half" | ".2byte" => self.numbers(cursor, 2),
            ".word" | ".long" | ".int" | ".4byte" => self.numbers(cursor, 4),
            ".quad" | ".xword" | ".dword" | ".8byte" => self.numbers(cursor, 8),
            ".float" | ".single" => self.floats(cursor, 4),
            ".double" => self.floats(cursor, 8),
            ".inst" => {
                self.align_instruction(directive)?;
                self.numbers(cursor, 4)
            }
            ".ascii" => self.strings(cursor, false),
            ".asciz" | ".string" => self.strings(cursor, true),
            ".space" | ".skip" | ".zero" => self.space(cursor),
            ".fill" => self.fill_numbers(cursor),
            ".align" | ".p2align" => self.align(cursor, true),
            ".balign" => self.align(cursor, false),
            ".equ" | ".set" => {
                let name = cursor.peek();
                if name.kind != Kind::Name {
                    return cursor.expected("a name");
                }
                cursor.next();
                cursor.expect(",")?;
                self.set(name, cursor)
            }
            ".ltorg" | ".pool" => {
                cursor.expect_end()?;
                self.write_literals();
                Ok(())
            }
            ".section" if cursor.peek().text.starts_with(".text") => Ok(()),
            ".section" | ".data" | ".bss" | ".rodata" | ".pushsection" | ".popsection" => {
                let instead = "there is one section; put data after the code, under a label";
                let directive = directive.text.clone();
                Err(tokens[0].error(ErrorKind::NoSections { directive, instead }))
            }
            ".endm" | ".endr" => {
                let message = format!("{name} ends nothing");
                Err(directive.error(ErrorKind::Macro(message)))
            }
            _ if IGNORED.contains(&name.as_str()) || name.starts_with(".cfi_") => Ok(()),
            _ => {
                let known = KNOWN.iter().chain(IGNORED).copied();
                let hint = crate::similar::similar(&name, known);
                Err(directive.error(ErrorKind::Directive(directive.text.clone(), hint)))
            }
        }
    }

    /// Assembles numbers of this many bytes each.
    fn numbers(&mut self, cursor: &mut Cursor<'_>, bytes: u32) -> Result<()> {
        loop {
            let place = cursor.peek();
            let value = self.number(cursor, bytes)?;
            self.fill(1, &value.to_le_bytes()[..bytes as usize], place)?;
            if cursor.is_end() {
                return Ok(());
            }
            cursor.expect(",")?;
        }
    }

    /// Assembles floating-point numbers of this many bytes each.
    fn floats(&mut self, cursor: &mut Cursor<'_>, bytes: u32) -> Result<()> {
        loop {
            let place = cursor.peek();
            let text = decimal(cursor)?;
            let single: f32 = text.parse().expect("a decimal number");
            let double: f64 = text.parse().expect("a decimal number");
            let (bits, is_finite) = match bytes {
                4 => (single.to_bits().into(), single.is_finite()),
                _ => (double.to_bits(), double.is_finite()),
            };
            if !is_finite {
                return Err(place.error(ErrorKind::TooLargeFloat(text)));
            }
            self.fill(1, &bits.to_le_bytes()[..bytes as usize], place)?;
            if cursor.is_end() {
                return Ok(());
            }
            cursor.expect(",")?;
        }
    }

    /// Assembles a number of this many bytes. Its value is needed only in the pass that writes bytes.
    fn number(&mut self, cursor: &mut Cursor<'_>, bytes: u32) -> Result<u64> {
        let start = *cursor;
        let value = match evaluate(cursor, self) {
            Err(error) if self.pass != Pass::Bytes && is_undefined(&error.kind) => {
                skip_expression(cursor);
                return Ok(0);
            }
            value => value?,
        };
        let bits = 8 * bytes;
        if !(-(1i128 << (bits - 1))..1i128 << bits).contains(&value) {
            let allowed = format!("{} to {}", -(1i128 << (bits - 1)), (1i128 << bits) - 1);
            return start.fail(ErrorKind::DoesNotFit { value, allowed });
        }
        Ok(value as u64)
    }

    /// Evaluates a number that must be known at once, because addresses depend on it.
    fn count(&mut self, cursor: &mut Cursor<'_>, max: u64) -> Result<u64> {
        let start = *cursor;
        let value = evaluate(cursor, self)?;
        let count = u64::try_from(value).ok().filter(|count| *count <= max);
        match count {
            Some(count) => Ok(count),
            None => {
                let allowed = format!("0 to {max}");
                start.fail(ErrorKind::DoesNotFit { value, allowed })
            }
        }
    }

    fn strings(&mut self, cursor: &mut Cursor<'_>, zero: bool) -> Result<()> {
        loop {
            let place = cursor.peek();
            let Kind::String(bytes) = &place.kind else { return cursor.expected("a string") };
            cursor.next();
            self.fill(1, bytes, place)?;
            self.zeros(zero.into(), place)?;
            if cursor.is_end() {
                return Ok(());
            }
            cursor.expect(",")?;
        }
    }

    /// `.space count, byte`.
    fn space(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let place = cursor.peek();
        let count = self.count(cursor, MAX_BYTES)?;
        let byte = if cursor.eat(",") { self.number(cursor, 1)? } else { 0 };
        cursor.expect_end()?;
        self.fill(count, &[byte as u8], place)
    }

    /// `.fill count, bytes, value`.
    fn fill_numbers(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let place = cursor.peek();
        let count = self.count(cursor, MAX_BYTES)?;
        let bytes = if cursor.eat(",") { self.count(cursor, 8)? as u32 } else { 1 };
        let value = match cursor.eat(",") {
            true if bytes > 0 => self.number(cursor, bytes)?,
            true => self.number(cursor, 8)?,
            false => 0,
        };
        cursor.expect_end()?;
        self.fill(count, &value.to_le_bytes()[..bytes as usize], place)
    }

    /// `.align power, byte, most`: pads with at most this many bytes, or none at all.
    fn align(&mut self, cursor: &mut Cursor<'_>, is_power: bool) -> Result<()> {
        let place = cursor.peek();
        let start = *cursor;
        let max = if is_power { MAX_ALIGN.into() } else { 1 << MAX_ALIGN };
        let number = self.count(cursor, max)?;
        let multiple = if is_power { 1 << number } else { number.max(1) };
        if !multiple.is_power_of_two() {
            let allowed = format!("a power of two up to {}", 1 << MAX_ALIGN);
            return start.fail(ErrorKind::DoesNotFit { value: number.into(), allowed });
        }
        let (mut byte, mut most) = (None, u64::MAX);
        if cursor.eat(",") {
            let given = !cursor.peek().is(",") && !cursor.is_end();
            byte = if given { Some(self.number(cursor, 1)? as u8) } else { None };
            most = if cursor.eat(",") { self.count(cursor, MAX_BYTES)? } else { most };
        }
        cursor.expect_end()?;
        let padding = self.here().wrapping_neg() % multiple;
        match byte {
            _ if padding > most => Ok(()),
            Some(byte) => self.fill(padding, &[byte], place),
            None => {
                self.zeros(padding % 4, place)?;
                self.fill(padding / 4, &NOP.to_le_bytes(), place)
            }
        }
    }
}

pub(crate) fn is_undefined(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Undefined(_) | ErrorKind::UndefinedYet(_))
}

/// Skips to the comma after an expression, or the end.
fn skip_expression(cursor: &mut Cursor<'_>) {
    while !cursor.is_end() && !cursor.peek().is(",") {
        cursor.next();
    }
}
