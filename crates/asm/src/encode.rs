//! Encodes one instruction: finds the form of its operands, and the word.

use kvrm_a64::Field;

use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::expression::{Scope, evaluate, names_address};
use crate::lexer::{Kind, Token};
use crate::names::{self, Register, Width};
use crate::operand::{Count, Item};
use crate::template::{Form, field_of, forms, mnemonics};
use crate::vector::{self, Arrangement, Lane};

/// What encoding needs to know besides symbols.
pub(crate) trait Place: Scope {
    /// Returns the address of the constant that this `ldr x0, =constant` loads.
    fn literal(&self) -> Option<u64>;
}

/// Encodes an instruction (a mnemonic and what follows it); returns the word and its form.
pub(crate) fn instruction(tokens: &[Token], place: &dyn Place) -> Result<(u32, &'static Form)> {
    let mut cursor = Cursor::new(tokens);
    let mnemonic = cursor.next();
    let name = mnemonic.text.to_ascii_lowercase();
    let Some(forms) = forms(&name) else {
        let hint = crate::similar::similar(&name, mnemonics());
        return Err(mnemonic.error(ErrorKind::Instruction(mnemonic.text.clone(), hint)));
    };
    let mut failures = Vec::new();
    for form in forms {
        let mut encoder = Encoder { cursor, place, form, word: form.word };
        match encoder.encode(mnemonic) {
            Ok(()) => return Ok((encoder.word, form)),
            Err(error) => failures.push((encoder.cursor.at, error)),
        }
    }
    Err(most_telling(failures))
}

/// Returns the error of the form that matched furthest. If several did, combines what they would accept.
fn most_telling(failures: Vec<(usize, Error)>) -> Error {
    let furthest = failures.iter().map(|(at, _)| *at).max();
    let errors = failures.into_iter().filter(|(at, _)| Some(*at) == furthest).map(|(_, e)| e);
    // A wrong value says more than a wrong kind of operand.
    let (kinds, values): (Vec<Error>, Vec<Error>) =
        errors.partition(|error| matches!(error.kind, ErrorKind::Expected { .. }));
    let may_be_register = kinds.iter().any(|error| {
        matches!(&error.kind, ErrorKind::Expected { wanted, .. } if wanted.contains("register"))
    });
    let errors = if values.is_empty() { kinds } else { values };
    let mut alternatives: Vec<String> = Vec::new();
    for error in &errors {
        if let ErrorKind::Expected { wanted: text, .. }
        | ErrorKind::DoesNotFit { allowed: text, .. } = &error.kind
        {
            add_alternative(&mut alternatives, text);
        }
    }
    let mut best = errors.into_iter().next().expect("a mnemonic has forms, and all of them failed");
    if let ErrorKind::Expected { wanted, .. } = &mut best.kind {
        *wanted = list(&alternatives);
    } else if let ErrorKind::DoesNotFit { allowed, .. } = &mut best.kind {
        *allowed = alternatives.join(", or ");
    } else if let ErrorKind::Undefined(name) = &best.kind
        && may_be_register
    {
        best.kind = ErrorKind::UnknownName(name.clone());
    }
    best
}

/// Adds an alternative that is not there yet. If two differ only in parentheses, these are left out.
fn add_alternative(alternatives: &mut Vec<String>, text: &str) {
    let plain = |text: &str| text.split(" (").next().unwrap_or_default().to_string();
    match alternatives.iter_mut().find(|known| plain(known) == plain(text)) {
        Some(known) if known != text => *known = plain(text),
        Some(_) => {}
        None => alternatives.push(text.to_string()),
    }
}

/// Returns `a, b or c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        _ => items.concat(),
    }
}

/// Matches operands with a form and inserts them into the word.
pub(crate) struct Encoder<'a> {
    /// The current position; after an error, its position.
    pub(crate) cursor: Cursor<'a>,
    pub(crate) place: &'a dyn Place,
    form: &'a Form,
    word: u32,
}

impl<'a> Encoder<'a> {
    fn encode(&mut self, mnemonic: &Token) -> Result<()> {
        for item in &self.form.operands {
            self.item(item)?;
        }
        if !self.cursor.is_end() {
            return self.cursor.expected("the end of the instruction");
        }
        match self.form.row.matches(self.word) {
            true => Ok(()),
            false => Err(mnemonic.error(ErrorKind::Unallocated(mnemonic.text.clone()))),
        }
    }

    fn item(&mut self, item: &'a Item) -> Result<()> {
        match item {
            Item::Punct(punct) => self.cursor.expect(punct),
            Item::Word(word) => self.word(word),
            Item::Register { width, fields, sp } => {
                let register = self.register(*width, *sp)?;
                fields.iter().for_each(|field| self.put(*field, register.number));
                Ok(())
            }
            Item::NextRegister { width, field } => self.next_register(*width, *field),
            Item::Vector { arrangement, fields } => {
                let number = self.vector(*arrangement, 1 << fields[0].len)?;
                fields.iter().for_each(|field| self.put(*field, number));
                Ok(())
            }
            Item::Scalar { lane, fields } => {
                let number = self.scalar(*lane)?;
                fields.iter().for_each(|field| self.put(*field, number));
                Ok(())
            }
            Item::List { arrangement, first, count } => self.list(*arrangement, *first, *count),
            Item::Index { fields, fixed } => self.element_index(fields, *fixed),
            Item::Number { fields, signed, scale, offset } => {
                self.scaled(fields, *signed, (*scale).into(), (*offset).into())
            }
            Item::Distance { field } => self.distance(&[*field], 4),
            Item::Special(special) => self.special(*special),
            Item::Optional(items) => self.optional(items),
        }
    }

    fn optional(&mut self, items: &'a [Item]) -> Result<()> {
        let Some(Item::Punct(first)) = items.first() else { unreachable!("starts with a comma") };
        if !self.cursor.peek().is(first) {
            return Ok(());
        }
        items.iter().try_for_each(|item| self.item(item))
    }

    fn word(&mut self, word: &str) -> Result<()> {
        match self.cursor.name() {
            Some(name) if name.eq_ignore_ascii_case(word) => {
                self.cursor.next();
                Ok(())
            }
            _ => self.cursor.expected(word),
        }
    }

    /// Inserts a value into a field.
    pub(crate) fn put(&mut self, field: Field, value: u32) {
        self.word = field.set(self.word, value);
    }

    /// Inserts a value into the field of this name.
    pub(crate) fn put_named(&mut self, field: &str, value: u32) {
        self.put(self.field(field), value);
    }

    pub(crate) fn field(&self, name: &str) -> Field {
        field_of(self.form.row, name)
    }

    pub(crate) fn has_field(&self, name: &str) -> bool {
        self.form.row.pattern.field(name).is_some()
    }

    /// Sets the bits of `mask`, some of which are fixed in the row; false if that is another instruction.
    pub(crate) fn put_bits(&mut self, mask: u32, bits: u32) -> bool {
        self.word = self.word & !mask | bits;
        self.form.row.matches(self.word)
    }

    /// Returns the value of a field so far.
    pub(crate) fn get_named(&self, field: &str) -> u32 {
        self.field(field).get(self.word)
    }

    /// Returns the operand size of the row: `sf` for data processing.
    pub(crate) fn width(&self) -> Width {
        if self.form.word >> 31 == 1 { Width::X } else { Width::W }
    }

    /// Takes a register; `sp` says whether register 31 is the stack pointer.
    pub(crate) fn register(&mut self, width: Width, sp: bool) -> Result<Register> {
        let register = self.cursor.name().and_then(names::register);
        let right = |r: &Register| r.width == width && (r.number != 31 || r.is_sp == sp);
        match register.filter(right) {
            Some(register) => {
                self.cursor.next();
                Ok(register)
            }
            None => self.cursor.expected(match (width, sp) {
                (Width::W, false) => "a 32-bit register (w0 to w30, wzr)",
                (Width::X, false) => "a 64-bit register (x0 to x30, xzr)",
                (Width::W, true) => "a 32-bit register (w0 to w30, wsp)",
                (Width::X, true) => "a 64-bit register (x0 to x30, sp)",
            }),
        }
    }

    fn next_register(&mut self, width: Width, field: Field) -> Result<()> {
        let start = self.cursor;
        let first = field.get(self.word);
        let register = self.register(width, false)?;
        if first.is_multiple_of(2) && register.number == first + 1 {
            return Ok(());
        }
        self.cursor = start;
        self.cursor.expected("an even register and the one after it")
    }

    /// Takes a vector register below `limit`, or one of its elements.
    fn vector(&mut self, arrangement: Arrangement, limit: u32) -> Result<u32> {
        let last = limit - 1;
        if arrangement.count.is_some() {
            let what = format!("a vector register (v0.{arrangement} to v{last}.{arrangement})");
            return self.vector_where(&what, |n, other| n < limit && other == arrangement);
        }
        // The number of elements may be written, too: `v0.4s[1]`.
        let is_element = self.cursor.peek_by(1).is("[");
        let what = match limit {
            32 => format!("an element (v0.{arrangement}[0])"),
            _ => format!("an element (v0.{arrangement}[0] to v{last}.{arrangement}[0])"),
        };
        self.vector_where(&what, |n, other| {
            let is_register = other.count.is_none() || matches!(other.bytes(), 8 | 16);
            is_element && is_register && n < limit && other.lane == arrangement.lane
        })
    }

    fn vector_where(
        &mut self,
        what: &str,
        right: impl Fn(u32, Arrangement) -> bool,
    ) -> Result<u32> {
        let register = self.cursor.name().and_then(vector::vector);
        match register.filter(|(number, arrangement)| right(*number, *arrangement)) {
            Some((number, _)) => {
                self.cursor.next();
                Ok(number)
            }
            None => self.cursor.expected(what),
        }
    }

    fn scalar(&mut self, lane: Lane) -> Result<u32> {
        let register = self.cursor.name().and_then(vector::scalar);
        match register.filter(|(_, other)| *other == lane) {
            Some((number, _)) => {
                self.cursor.next();
                Ok(number)
            }
            None => {
                let letter = lane.letter();
                self.cursor.expected(&format!("a scalar register ({letter}0 to {letter}31)"))
            }
        }
    }

    /// Takes `{v0.4s, v1.4s, v2.4s}` or `{v0.4s-v2.4s}`; V0 follows V31.
    fn list(&mut self, arrangement: Arrangement, field: Field, count: Count) -> Result<()> {
        let what = format!("a vector register (v0.{arrangement} to v31.{arrangement})");
        let right = |_, other| other == arrangement;
        let start = self.cursor;
        self.cursor.expect("{")?;
        let first = self.vector_where(&what, right)?;
        let (mut last, mut found) = (first, 1);
        if self.cursor.eat("-") {
            let place = self.cursor;
            last = self.vector_where(&what, right)?;
            if last < first {
                self.cursor = place;
                return self.cursor.expected("a register after the first");
            }
            found = last - first + 1;
        }
        while self.cursor.eat(",") {
            let place = self.cursor;
            let next = self.vector_where(&what, right)?;
            if next != (last + 1) % 32 {
                self.cursor = place;
                return self.cursor.expected("the register after the one before");
            }
            (last, found) = (next, found + 1);
        }
        self.cursor.expect("}")?;
        let allowed = match count {
            Count::Fixed(count) => count..=count,
            Count::Field(field) => 1..=1 << field.len,
        };
        if !allowed.contains(&found) {
            let wanted = registers(*allowed.start(), *allowed.end());
            let kind = ErrorKind::Expected { wanted, found: found.to_string() };
            return Err(start.peek().error(kind));
        }
        self.put(field, first);
        if let Count::Field(field) = count {
            self.put(field, found - 1);
        }
        Ok(())
    }

    fn element_index(&mut self, fields: &[Field], fixed: u32) -> Result<()> {
        self.cursor.expect("[")?;
        let bits: u32 = fields.iter().map(|field| field.len).sum();
        let index = self.number_in(fixed, fixed + (1 << bits) - 1)?;
        self.put_split(fields, index);
        self.cursor.expect("]")
    }

    /// Takes a number, with or without `#`.
    pub(crate) fn number(&mut self) -> Result<Number<'a>> {
        self.cursor.eat("#");
        let start = self.cursor;
        let value = evaluate(&mut self.cursor, self.place)?;
        Ok(Number { value, start })
    }

    /// Returns an error about a number that was taken.
    pub(crate) fn wrong<T>(&mut self, number: Number<'_>, kind: ErrorKind) -> Result<T> {
        let mut error = number.start.peek().error(kind);
        error.text = number.start.until(self.cursor).iter().map(|t| t.text.as_str()).collect();
        self.cursor.at = number.start.at;
        Err(error)
    }

    pub(crate) fn does_not_fit<T>(
        &mut self,
        number: Number<'_>,
        allowed: impl Into<String>,
    ) -> Result<T> {
        let value = number.value;
        self.wrong(number, ErrorKind::DoesNotFit { value, allowed: allowed.into() })
    }

    /// Takes a number from `min` to `max`.
    pub(crate) fn number_in(&mut self, min: u32, max: u32) -> Result<u32> {
        let number = self.number()?;
        match u32::try_from(number.value).ok().filter(|n| (min..=max).contains(n)) {
            Some(value) => Ok(value),
            None if min == max => self.does_not_fit(number, format!("only {min}")),
            None => self.does_not_fit(number, format!("{min} to {max}")),
        }
    }

    fn scaled(&mut self, fields: &[Field], signed: bool, scale: i128, offset: i128) -> Result<()> {
        let number = self.number()?;
        let range = limits(fields.iter().map(|field| field.len).sum(), signed);
        let distance = number.value - offset;
        if distance % scale == 0 && range.contains(&(distance / scale)) {
            self.put_split(fields, (distance / scale) as u32);
            return Ok(());
        }
        let ends = [range.start, range.end - 1].map(|end| end * scale + offset);
        let (min, max) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let steps = if scale.abs() > 1 { format!(" in steps of {scale}") } else { String::new() };
        match min == max {
            true => self.does_not_fit(number, format!("only {min}")),
            false => self.does_not_fit(number, format!("{min} to {max}{steps}")),
        }
    }

    /// Inserts a value into several fields; the first has its upper bits.
    pub(crate) fn put_split(&mut self, fields: &[Field], value: u32) {
        let mut rest = value;
        for field in fields.iter().rev() {
            self.put(*field, rest);
            rest = rest.checked_shr(field.len).unwrap_or(0);
        }
    }

    /// Takes an address and inserts its distance from here, in units of `scale`, into the fields.
    pub(crate) fn distance(&mut self, fields: &[Field], scale: i64) -> Result<()> {
        let target = self.target()?;
        self.distance_to(target, fields, scale)
    }

    /// Takes an address: a label, a number, or `#` and a distance from the instruction.
    pub(crate) fn target(&mut self) -> Result<Number<'a>> {
        let is_distance = self.cursor.peek().is("#");
        let mut number = self.number()?;
        if is_distance && !names_address(number.start.until(self.cursor), self.place) {
            number.value += i128::from(self.place.here());
        }
        Ok(number)
    }

    pub(crate) fn distance_to(
        &mut self,
        target: Number<'_>,
        fields: &[Field],
        scale: i64,
    ) -> Result<()> {
        let from = self.place.here();
        let bytes = (target.value as u64).wrapping_sub(from).cast_signed();
        let bits: u32 = fields.iter().map(|field| field.len).sum();
        let range = limits(bits, true);
        let steps = i128::from(bytes / scale);
        if bytes % scale == 0 && range.contains(&steps) {
            self.put_split(fields, steps as u32);
            return Ok(());
        }
        let (min, max) = (range.start * i128::from(scale), (range.end - 1) * i128::from(scale));
        let allowed = match bytes % scale {
            0 => format!("at most {} bytes back or {max} ahead", -min),
            _ => format!(
                "the distance must be a multiple of {scale} (is a .balign {scale} missing?)"
            ),
        };
        let target_value = target.value;
        self.wrong(target, ErrorKind::Unreachable { target: target_value, from, allowed })
    }

    /// Takes a name that stands for a number, or the number itself.
    pub(crate) fn named(
        &mut self,
        what: &str,
        names: fn(&str) -> Option<u32>,
        max: u32,
    ) -> Result<u32> {
        if let Some(number) = self.cursor.name().and_then(names) {
            self.cursor.next();
            return Ok(number);
        }
        let token = self.cursor.peek();
        match token.is("#") || matches!(token.kind, Kind::Number(_)) {
            true => self.number_in(0, max),
            false => self.cursor.expected(what),
        }
    }
}

/// A number that was taken, and where it starts.
#[derive(Clone, Copy)]
pub(crate) struct Number<'a> {
    pub(crate) value: i128,
    pub(crate) start: Cursor<'a>,
}

/// Returns what a list of this many registers is called.
fn registers(min: u32, max: u32) -> String {
    match (min, max) {
        (1, 1) => "1 register in the list".to_string(),
        (min, max) if min == max => format!("{min} registers in the list"),
        (min, max) => format!("{min} to {max} registers in the list"),
    }
}

/// Returns the range of numbers of this many bits.
fn limits(bits: u32, signed: bool) -> std::ops::Range<i128> {
    match signed {
        true => -(1 << (bits - 1))..1 << (bits - 1),
        false => 0..1 << bits,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::lexer::Local;
    use crate::macros;
    use crate::syntax::SYNTAX;

    /// Knows every symbol, as an address nearby.
    struct Anywhere;

    impl Scope for Anywhere {
        fn symbol(&self, _: &str) -> Option<i128> {
            Some(0x10000)
        }
        fn is_label(&self, _: &str) -> bool {
            true
        }
        fn local(&self, _: Local) -> Option<i128> {
            Some(0x10000)
        }
        fn here(&self) -> u64 {
            0x10000
        }
        fn is_layout(&self) -> bool {
            false
        }
    }

    impl Place for Anywhere {
        fn literal(&self) -> Option<u64> {
            Some(0x10000)
        }
    }

    /// Lines that GNU as 2.40 does not know, so `syntax.s` cannot contain them.
    const NEWER: &str = "
        rprfm pldkeep, x1, [x2]
        chkfeat x16
        gcsb dsync
        clrbhb";

    /// Every line of [`SYNTAX`] is compared with GNU as, because `tests/syntax.s` has it.
    #[test]
    fn every_syntax_is_tested() {
        let mut used = HashSet::new();
        for text in [include_str!("../tests/syntax.s"), NEWER] {
            for statement in macros::statements(text).unwrap() {
                let tokens = &statement[macros::skip_labels(&statement)..];
                if forms(&tokens[0].text.to_ascii_lowercase()).is_some() {
                    let encoded = instruction(tokens, &Anywhere);
                    used.extend(encoded.map(|(_, form)| form.line));
                }
            }
        }
        let unused = SYNTAX.iter().enumerate().filter(|(line, _)| !used.contains(line));
        let unused: Vec<_> = unused.map(|(_, syntax)| syntax).collect();
        assert!(unused.is_empty(), "not in tests/syntax.s: {unused:#?}");
    }
}
