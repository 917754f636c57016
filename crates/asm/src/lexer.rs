//! Splits text into tokens.

use crate::error::{Error, ErrorKind, Result};

/// The smallest part of a program, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// As it is written; empty at the end of a statement.
    pub(crate) text: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Kinds of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Mnemonics, registers, symbols, directives.
    Name,
    Number(i128),
    /// A number with a point or an exponent; the text is its value.
    Float,
    /// `1b`, `1f`.
    Local(Local),
    String(Vec<u8>),
    /// An operator or a separator: one character, `<<` or `>>`.
    Punct,
    /// End of a statement: a new line, a `;` or the end of the text.
    End,
}

/// A reference to a numeric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) number: u64,
    pub(crate) forward: bool,
}

impl Token {
    pub(crate) fn is(&self, punct: &str) -> bool {
        self.kind == Kind::Punct && self.text == punct
    }

    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error { line: self.line, column: self.column, text: self.text.clone(), kind }
    }
}

/// Returns the tokens of a text; the last one is an end. `line` and `column` are those of the first character.
pub(crate) fn tokens(text: &str, line: u32, column: u32) -> Result<Vec<Token>> {
    let mut lexer = Lexer { rest: text, line, column, tokens: Vec::new() };
    while !lexer.rest.is_empty() {
        lexer.step()?;
    }
    lexer.end();
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
    column: u32,
    tokens: Vec<Token>,
}

impl<'a> Lexer<'a> {
    /// Takes the next `len` bytes.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        match taken.rsplit_once('\n') {
            Some((before, last)) => {
                self.line += 1 + before.matches('\n').count() as u32;
                self.column = 1 + last.chars().count() as u32;
            }
            None => self.column += taken.chars().count() as u32,
        }
        taken
    }

    /// Takes the next `len` bytes as a token.
    fn push(&mut self, len: usize, kind: Kind) {
        let (line, column) = (self.line, self.column);
        let text = self.take(len).to_string();
        self.tokens.push(Token { kind, text, line, column });
    }

    fn end(&mut self) {
        self.push(0, Kind::End);
    }

    fn fail<T>(&self, text: &str, kind: ErrorKind) -> Result<T> {
        let text = text.chars().take(40).collect();
        Err(Error { line: self.line, column: self.column, text, kind })
    }

    fn at_line_start(&self) -> bool {
        self.tokens.last().is_none_or(|token| token.line < self.line)
    }

    fn step(&mut self) -> Result<()> {
        let first = self.rest.chars().next().expect("there is text left");
        match first {
            '\n' | ';' => {
                self.end();
                self.take(1);
            }
            _ if first.is_whitespace() => {
                self.take(first.len_utf8());
            }
            _ if self.rest.starts_with("//") => self.skip_line(),
            // Line markers of the C preprocessor, and comments of other assemblers.
            '#' if self.at_line_start() => self.hash_line()?,
            _ if self.rest.starts_with("/*") => match self.rest[2..].find("*/") {
                Some(len) => {
                    self.take(len + 4);
                }
                None => return self.fail("/*", ErrorKind::Unclosed("the comment")),
            },
            '"' => self.string()?,
            '\'' => self.character()?,
            _ if float_len(self.rest) > 0 => self.push(float_len(self.rest), Kind::Float),
            '0'..='9' => self.number()?,
            _ if is_name_start(first) => {
                let len = name_len(self.rest);
                self.push(len, Kind::Name);
            }
            _ if self.rest.starts_with("<<") || self.rest.starts_with(">>") => {
                self.push(2, Kind::Punct);
            }
            _ if "#,[](){}!:+-*/%&|^~=<>@\\".contains(first) => self.push(1, Kind::Punct),
            _ => return self.fail(&first.to_string(), ErrorKind::Character(first)),
        }
        Ok(())
    }

    /// Takes a comment; refuses lines that need the C preprocessor.
    fn hash_line(&mut self) -> Result<()> {
        let word = self.rest[1..].split_whitespace().next().unwrap_or_default();
        let c = ["include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif"];
        if c.contains(&word) {
            return self.fail(&format!("#{word}"), ErrorKind::Preprocessor(word.to_string()));
        }
        self.skip_line();
        Ok(())
    }

    fn skip_line(&mut self) {
        let len = self.rest.find('\n').unwrap_or(self.rest.len());
        self.take(len);
    }

    fn number(&mut self) -> Result<()> {
        let len = name_len(self.rest);
        let text = &self.rest[..len];
        let (digits, radix) = match text.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&text[2..], 16),
            [b'0', b'b' | b'B', _, ..] => (&text[2..], 2),
            [.., suffix @ (b'b' | b'f')] => {
                if let Ok(number) = text[..len - 1].parse() {
                    let forward = *suffix == b'f';
                    self.push(len, Kind::Local(Local { number, forward }));
                    return Ok(());
                }
                (text, 10)
            }
            [b'0', _, ..] => (&text[1..], 8),
            _ => (text, 10),
        };
        let digits_only = digits.replace('_', "");
        let plain = digits.starts_with(|c: char| c.is_ascii_hexdigit());
        match plain.then(|| u64::from_str_radix(&digits_only, radix).ok()).flatten() {
            Some(value) => {
                self.push(len, Kind::Number(value.into()));
                Ok(())
            }
            None => self.fail(text, ErrorKind::Number(text.to_string())),
        }
    }

    /// Takes `'a'`, `'\n'`, and, as GNU as does, `'a`.
    fn character(&mut self) -> Result<()> {
        let inner = &self.rest[1..];
        let (value, len) = match inner.strip_prefix('\\') {
            Some(escaped) => {
                let (value, len) = self.escape(escaped)?;
                (value.into(), 1 + len)
            }
            None => match inner.chars().next() {
                Some(c) if c != '\n' && c.is_ascii() => (c as i128, 1),
                _ => return self.fail("'", ErrorKind::Unclosed("the character")),
            },
        };
        let closed = inner[len..].starts_with('\'');
        self.push(1 + len + usize::from(closed), Kind::Number(value));
        Ok(())
    }

    fn string(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        let mut at = 1;
        loop {
            let rest = &self.rest[at..];
            match rest.chars().next() {
                None | Some('\n') => return self.fail("\"", ErrorKind::Unclosed("the string")),
                Some('"') => break,
                Some('\\') => {
                    let (byte, len) = self.escape(&rest[1..])?;
                    bytes.push(byte);
                    at += 1 + len;
                }
                Some(c) => {
                    bytes.extend_from_slice(&rest.as_bytes()[..c.len_utf8()]);
                    at += c.len_utf8();
                }
            }
        }
        self.push(at + 1, Kind::String(bytes));
        Ok(())
    }

    /// Returns the byte that an escape (without its backslash) stands for, and its length.
    fn escape(&self, text: &str) -> Result<(u8, usize)> {
        let digits = |max, radix| {
            let is_digit = |c: &char| c.is_digit(radix);
            text.chars().skip(usize::from(radix == 16)).take_while(is_digit).take(max).count()
        };
        let value = match text.chars().next() {
            Some('n') => b'\n',
            Some('t') => b'\t',
            Some('r') => b'\r',
            Some('b') => 8,
            Some('f') => 12,
            Some(c @ ('\\' | '"' | '\'')) => c as u8,
            Some('0'..='7') => {
                let len = digits(3, 8);
                let value = u32::from_str_radix(&text[..len], 8).expect("octal digits");
                return Ok((value as u8, len));
            }
            Some('x' | 'X') if digits(2, 16) > 0 => {
                let len = 1 + digits(2, 16);
                let value = u8::from_str_radix(&text[1..len], 16).expect("hexadecimal digits");
                return Ok((value, len));
            }
            Some('\n') | None => return self.fail("\\", ErrorKind::Unclosed("the string")),
            Some(c) => return self.fail(&format!("\\{c}"), ErrorKind::Escape(c)),
        };
        Ok((value, 1))
    }
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '$')
}

/// Returns the length of the name or number that the text starts with.
fn name_len(text: &str) -> usize {
    text.find(|c: char| !is_name_start(c) && !c.is_ascii_digit()).unwrap_or(text.len())
}

/// Returns the length of the floating-point number that the text starts with: with a point or an exponent, and not
/// part of a name such as `.2byte`.
fn float_len(text: &str) -> usize {
    let digits = |from: usize| {
        let rest = &text[from..];
        rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())
    };
    let whole = digits(0);
    let mut len = whole;
    if text[len..].starts_with('.') {
        let fraction = digits(len + 1);
        len += 1 + fraction;
        if whole + fraction == 0 {
            return 0;
        }
    }
    if whole + len > 0 && text[len..].starts_with(['e', 'E']) {
        let sign = usize::from(text[len + 1..].starts_with(['+', '-']));
        let exponent = digits(len + 1 + sign);
        len += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    let goes_on = text[len..].starts_with(|c: char| is_name_start(c) || c.is_ascii_digit());
    if len == whole || goes_on { 0 } else { len }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        tokens(text, 1, 1).unwrap().into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_ends() {
        assert_eq!(texts("a // b\n/* c\n d */ e; f"), ["a", "", "e", "", "f", ""]);
        assert_eq!(texts("# 1 \"x\"\n  # y\nmov #1"), ["", "", "mov", "#", "1", ""]);
        assert_eq!(texts("nop; #1"), ["nop", "", "#", "1", ""]);
    }

    #[test]
    fn positions() {
        let tokens = tokens("é\n".replace('é', "/* é */ a").as_str(), 1, 1).unwrap();
        assert_eq!((tokens[0].line, tokens[0].column), (1, 9));
        let two = super::tokens("a\n  /* \n */ b", 1, 1).unwrap();
        assert_eq!((two[2].line, two[2].column), (3, 5));
    }

    #[test]
    fn numbers() {
        let kinds = |text: &str| tokens(text, 1, 1).unwrap().remove(0).kind;
        assert_eq!(kinds("0x1f"), Kind::Number(31));
        assert_eq!(kinds("0b101"), Kind::Number(5));
        assert_eq!(kinds("017"), Kind::Number(15));
        assert_eq!(kinds("1_000"), Kind::Number(1000));
        assert_eq!(kinds("'a'"), Kind::Number(97));
        assert_eq!(kinds("'\\n'"), Kind::Number(10));
        assert_eq!(kinds("0b"), Kind::Local(Local { number: 0, forward: false }));
        for float in ["1.0", "0.5", "1.", ".125", "1e5", "1.25e+1", "1E-2", "00.5"] {
            assert_eq!((kinds(float), texts(float)[0].as_str()), (Kind::Float, float));
        }
        assert_eq!(kinds(".2byte"), Kind::Name);
        assert_eq!(kinds("12f"), Kind::Local(Local { number: 12, forward: true }));
        for bad in ["0x", "0b2", "08", "1x", "18446744073709551616", "0x_1"] {
            assert!(tokens(bad, 1, 1).is_err(), "{bad}");
        }
    }

    #[test]
    fn strings() {
        let kind = tokens(r#""a\n\0\x41\101é""#, 1, 1).unwrap().remove(0).kind;
        assert_eq!(kind, Kind::String(b"a\n\0AA\xc3\xa9".to_vec()));
        for bad in ["\"abc", "\"a\n\"", "\"\\q\"", "'", "\"\\", "/* x"] {
            assert!(tokens(bad, 1, 1).is_err(), "{bad}");
        }
    }
}
