//! A position in the tokens of a statement.

use crate::error::{ErrorKind, Result};
use crate::lexer::{Kind, Token};

/// Reads the tokens of one statement, the last of which is an end.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    tokens: &'a [Token],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(tokens: &'a [Token]) -> Cursor<'a> {
        debug_assert!(tokens.last().is_some_and(|token| token.kind == Kind::End));
        Cursor { tokens, at: 0 }
    }

    /// Returns the next token; at the end, always the end token.
    pub(crate) fn peek(&self) -> &'a Token {
        self.peek_by(0)
    }

    /// Returns the token after the next `distance` tokens.
    pub(crate) fn peek_by(&self, distance: usize) -> &'a Token {
        &self.tokens[(self.at + distance).min(self.tokens.len() - 1)]
    }

    /// Returns the tokens from here to another position.
    pub(crate) fn until(&self, end: Cursor<'_>) -> &'a [Token] {
        &self.tokens[self.at..end.at]
    }

    pub(crate) fn next(&mut self) -> &'a Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    pub(crate) fn is_end(&self) -> bool {
        self.peek().kind == Kind::End
    }

    /// Takes the next token if it is this one.
    pub(crate) fn eat(&mut self, punct: &str) -> bool {
        let found = self.peek().is(punct);
        self.at += usize::from(found);
        found
    }

    /// Returns the next token if it is a name.
    pub(crate) fn name(&self) -> Option<&'a str> {
        (self.peek().kind == Kind::Name).then_some(self.peek().text.as_str())
    }

    pub(crate) fn expect(&mut self, punct: &str) -> Result<()> {
        if self.eat(punct) { Ok(()) } else { self.expected(&format!("`{punct}`")) }
    }

    pub(crate) fn expect_end(&self) -> Result<()> {
        if self.is_end() { Ok(()) } else { self.expected("the end of the line") }
    }

    /// Returns an error about the next token.
    pub(crate) fn fail<T>(&self, kind: ErrorKind) -> Result<T> {
        Err(self.peek().error(kind))
    }

    pub(crate) fn expected<T>(&self, wanted: &str) -> Result<T> {
        let found = match self.peek().text.as_str() {
            "" => "the end of the line".to_string(),
            text => text.to_string(),
        };
        self.fail(ErrorKind::Expected { wanted: wanted.to_string(), found })
    }
}
