//! Expressions: numbers, symbols and operators, with the precedence of GNU as.
//!
//! `*` `/` `%` `<<` `>>` bind strongest, then `|` `&` `^`, then `+` `-`. Numbers are exact; a result of
//! more than 64 bits, signed or not, is an error.

use crate::cursor::Cursor;
use crate::error::{ErrorKind, Result};
use crate::lexer::{Kind, Local, Token};
use crate::names;

const MAX_DEPTH: u32 = 100;

/// The meaning of names.
pub(crate) trait Scope {
    /// Returns the value of a symbol.
    fn symbol(&self, name: &str) -> Option<i128>;
    /// True if the name is that of a label, or may become one.
    fn is_label(&self, name: &str) -> bool;
    /// Returns the address of a numeric label.
    fn local(&self, label: Local) -> Option<i128>;
    /// Returns the address that `.` stands for.
    fn here(&self) -> u64;
    /// True while addresses are being assigned, so that symbols may be unknown.
    fn is_layout(&self) -> bool;
}

/// Takes an expression and evaluates it.
pub(crate) fn evaluate(cursor: &mut Cursor<'_>, scope: &dyn Scope) -> Result<i128> {
    sum(cursor, scope, 0)
}

/// True if tokens name an address, so that their value depends on where the program is.
pub(crate) fn names_address(tokens: &[Token], scope: &dyn Scope) -> bool {
    tokens.iter().any(|token| match token.kind {
        Kind::Local(_) => true,
        Kind::Name => token.text == "." || scope.is_label(&token.text),
        Kind::Number(_) | Kind::Float | Kind::String(_) | Kind::Punct | Kind::End => false,
    })
}

/// Evaluates a chain of operators of one precedence.
fn chain(
    cursor: &mut Cursor<'_>,
    operators: &[&str],
    mut operand: impl FnMut(&mut Cursor<'_>) -> Result<i128>,
) -> Result<i128> {
    let mut value = operand(cursor)?;
    while let Some(operator) = operators.iter().find(|o| cursor.peek().is(o)) {
        let place = *cursor;
        cursor.next();
        let right = operand(cursor)?;
        value = apply(operator, value, right).map_err(|kind| place.peek().error(kind))?;
    }
    Ok(value)
}

fn sum(cursor: &mut Cursor<'_>, scope: &dyn Scope, depth: u32) -> Result<i128> {
    if depth > MAX_DEPTH {
        return cursor.fail(ErrorKind::TooDeep(MAX_DEPTH));
    }
    chain(cursor, &["+", "-"], |cursor| {
        chain(cursor, &["|", "&", "^"], |cursor| {
            chain(cursor, &["*", "/", "%", "<<", ">>"], |cursor| unary(cursor, scope, depth))
        })
    })
}

fn apply(operator: &str, a: i128, b: i128) -> Result<i128, ErrorKind> {
    let shift = u32::try_from(b).ok().filter(|b| *b < 64);
    let result = match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a.checked_mul(b).ok_or(ErrorKind::Overflow)?,
        "/" => a.checked_div(b).ok_or(ErrorKind::DivisionByZero)?,
        "%" => a.checked_rem(b).ok_or(ErrorKind::DivisionByZero)?,
        "|" => a | b,
        "&" => a & b,
        "^" => a ^ b,
        "<<" => a << shift.ok_or(ErrorKind::Overflow)?,
        // As in GNU as, the sign is not kept.
        ">>" => shift.map_or(0, |b| i128::from(a as u64 >> b)),
        _ => unreachable!("an operator of the chains above"),
    };
    fits_64(result)
}

fn fits_64(value: i128) -> Result<i128, ErrorKind> {
    let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
    if range.contains(&value) { Ok(value) } else { Err(ErrorKind::Overflow) }
}

fn unary(cursor: &mut Cursor<'_>, scope: &dyn Scope, depth: u32) -> Result<i128> {
    if depth > MAX_DEPTH {
        return cursor.fail(ErrorKind::TooDeep(MAX_DEPTH));
    }
    let place = *cursor;
    let operand = |cursor: &mut Cursor<'_>| unary(cursor, scope, depth + 1);
    if cursor.eat("-") {
        return fits_64(-operand(cursor)?).map_err(|kind| place.peek().error(kind));
    }
    if cursor.eat("~") {
        let value = operand(cursor)?;
        // The complement of a number above the signed range still has 64 bits.
        return Ok(if value > i64::MAX.into() { value ^ i128::from(u64::MAX) } else { !value });
    }
    if cursor.eat("+") {
        return operand(cursor);
    }
    if cursor.eat("(") {
        let value = sum(cursor, scope, depth + 1)?;
        cursor.expect(")")?;
        return Ok(value);
    }
    if cursor.peek().is(":") {
        return relocation(cursor, |cursor| sum(cursor, scope, depth + 1));
    }
    atom(cursor, scope)
}

/// Evaluates `:lo12:EXPRESSION` and `:pg_hi21:EXPRESSION`, parts of an address as linkers compute them.
fn relocation(
    cursor: &mut Cursor<'_>,
    operand: impl FnOnce(&mut Cursor<'_>) -> Result<i128>,
) -> Result<i128> {
    cursor.next();
    let mask = match cursor.name() {
        Some("lo12") => 0xfff,
        // ADRP takes the page of an address anyway.
        Some("pg_hi21" | "pg_hi21_nc") => -1,
        _ => return cursor.expected("lo12 or pg_hi21"),
    };
    cursor.next();
    cursor.expect(":")?;
    Ok(operand(cursor)? & mask)
}

fn atom(cursor: &mut Cursor<'_>, scope: &dyn Scope) -> Result<i128> {
    let token = cursor.peek();
    let value = match &token.kind {
        Kind::Number(value) => Some(*value),
        Kind::Local(local) => scope.local(*local),
        Kind::Name if token.text == "." => Some(scope.here().into()),
        Kind::Name if names::is_register(&token.text) => return cursor.expected("a number"),
        Kind::Name => scope.symbol(&token.text),
        Kind::Float => return cursor.expected("a whole number"),
        Kind::String(_) | Kind::Punct | Kind::End => return cursor.expected("a number"),
    };
    let Some(value) = value else {
        // Symbols may have such names.
        if names::is_vector_register(&token.text) {
            return cursor.expected("a number");
        }
        let name = token.text.clone();
        return cursor.fail(match scope.is_layout() {
            true => ErrorKind::UndefinedYet(name),
            false => ErrorKind::Undefined(name),
        });
    };
    cursor.next();
    Ok(value)
}

/// Takes a decimal number with or without a point and returns its text, which [`str::parse`] understands.
pub(crate) fn decimal(cursor: &mut Cursor<'_>) -> Result<String> {
    let start = *cursor;
    let sign = if cursor.eat("-") { "-" } else { "" };
    if sign.is_empty() {
        cursor.eat("+");
    }
    let token = cursor.next();
    let is_whole = token.text.bytes().all(|byte| byte.is_ascii_digit());
    match token.kind {
        Kind::Float => Ok(format!("{sign}{}", token.text)),
        Kind::Number(_) if is_whole => Ok(format!("{sign}{}", token.text)),
        _ => {
            *cursor = start;
            cursor.expected("a decimal number")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    struct Plain;
    impl Scope for Plain {
        fn symbol(&self, name: &str) -> Option<i128> {
            (name == "five").then_some(5)
        }
        fn is_label(&self, _: &str) -> bool {
            false
        }
        fn local(&self, _: Local) -> Option<i128> {
            None
        }
        fn here(&self) -> u64 {
            0x1000
        }
        fn is_layout(&self) -> bool {
            false
        }
    }

    fn value(text: &str) -> Result<i128, ErrorKind> {
        let tokens = tokens(text, 1, 1).unwrap();
        let mut cursor = Cursor::new(&tokens);
        let value = evaluate(&mut cursor, &Plain).map_err(|error| error.kind)?;
        cursor.expect_end().map_err(|error| error.kind)?;
        Ok(value)
    }

    #[test]
    fn precedence_is_that_of_gnu_as() {
        assert_eq!(value("1+2<<3"), Ok(17));
        assert_eq!(value("(1+2)<<3"), Ok(24));
        assert_eq!(value("8-2|1"), Ok(5));
        assert_eq!(value("2*3+4*five"), Ok(26));
        assert_eq!(value("-five-1"), Ok(-6));
        assert_eq!(value("~0xff & 0xfff"), Ok(0xf00));
        assert_eq!(value("~0xffffffffffffff00"), Ok(0xff));
        assert_eq!(value(".+4"), Ok(0x1004));
        assert_eq!(value("7/2%2"), Ok(1));
        assert_eq!(value(":lo12:0x12345"), Ok(0x345));
    }

    #[test]
    fn mistakes() {
        assert_eq!(value("1/0"), Err(ErrorKind::DivisionByZero));
        assert_eq!(value("0xffffffffffffffff+1"), Err(ErrorKind::Overflow));
        assert_eq!(value("-0x8000000000000001"), Err(ErrorKind::Overflow));
        assert_eq!(value("1<<64"), Err(ErrorKind::Overflow));
        assert_eq!(value("six"), Err(ErrorKind::Undefined("six".into())));
        assert!(value("(1").is_err() && value("x0").is_err() && value("").is_err());
        assert_eq!(value(&"(".repeat(5000)), Err(ErrorKind::TooDeep(100)));
        assert_eq!(value(&"-".repeat(5000)), Err(ErrorKind::TooDeep(100)));
    }
}
