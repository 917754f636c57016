//! Splits a text into statements, with macros and repetitions expanded.

use std::collections::HashMap;
use std::ops::Range;

use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::expression::{Scope, evaluate};
use crate::lexer::{Kind, Local, Token, tokens};

/// Limit of nested macros.
const MAX_DEPTH: u32 = 50;
/// Limit of expansions, and of statements.
const MAX_STATEMENTS: usize = 1_000_000;

/// Returns the statements of a text: their tokens, the last of which is an end.
pub(crate) fn statements(text: &str) -> Result<Vec<Vec<Token>>> {
    let mut expander = Expander::default();
    expander.expand(text, None, 0)?;
    Ok(expander.statements)
}

#[derive(Default)]
struct Expander {
    macros: HashMap<String, Macro>,
    /// Number of macro uses so far: the value of `\@`.
    uses: u64,
    /// Number of expansions so far.
    expansions: usize,
    statements: Vec<Vec<Token>>,
}

#[derive(Clone)]
struct Macro {
    parameters: Vec<Parameter>,
    body: String,
}

#[derive(Clone)]
struct Parameter {
    name: String,
    /// Its default value.
    default: String,
    is_required: bool,
}

impl Macro {
    fn position(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.name == name)
    }

    /// Returns the values of the parameters for arguments in order or as `name=value`.
    fn values(&self, place: &Token, arguments: Vec<String>) -> Result<Vec<String>> {
        let fail = |message| Err(place.error(ErrorKind::Macro(message)));
        let (given, wanted) = (arguments.len(), self.parameters.len());
        if given > wanted {
            return fail(format!("{} takes {wanted} arguments, not {given}", place.text));
        }
        let mut values: Vec<String> = self.parameters.iter().map(|p| p.default.clone()).collect();
        let mut is_given = vec![false; wanted];
        for (number, argument) in arguments.into_iter().enumerate() {
            let named = argument.split_once(" = ");
            let named = named.and_then(|(name, value)| Some((self.position(name)?, value)));
            let (position, value) = named.unwrap_or((number, &argument));
            if !value.is_empty() {
                (values[position], is_given[position]) = (value.to_string(), true);
            }
        }
        let missing =
            self.parameters.iter().zip(is_given).find(|(p, given)| p.is_required && !given);
        match missing {
            Some((parameter, _)) => fail(format!("{} needs its {}", place.text, parameter.name)),
            None => Ok(values),
        }
    }
}

impl Expander {
    /// Adds the statements of a text. Statements of a macro get the position where it is used.
    fn expand(&mut self, text: &str, place: Option<&Token>, depth: u32) -> Result<()> {
        let mut tokens = tokens(text, 1, 1).map_err(|error| at_place(error, place))?;
        let lines: Vec<&str> = text.lines().collect();
        let numbers: Vec<u32> = tokens.iter().map(|token| token.line).collect();
        if let Some(place) = place {
            for token in &mut tokens {
                (token.line, token.column) = (place.line, place.column);
            }
        }
        let mut at = 0;
        while at < tokens.len() {
            let len = tokens[at..].iter().position(|t| t.kind == Kind::End).expect("an end") + 1;
            let statement = &tokens[at..at + len];
            let first = &statement[skip_labels(statement)];
            let block = match first.text.as_str() {
                ".macro" => Some(".endm"),
                ".rept" => Some(".endr"),
                _ => None,
            };
            let Some(end) = block else {
                self.statement(statement, depth)?;
                at += len;
                continue;
            };
            let close = closing(&tokens[at + len..], &first.text, end)
                .map(|close| at + len + close)
                .ok_or_else(|| {
                    first.error(ErrorKind::Macro(format!("{} without {end}", first.text)))
                })?;
            let body = body_lines(&numbers, at + len..close).ok_or_else(|| {
                let message =
                    format!("{}, its body and {end} must be on lines of their own", first.text);
                first.error(ErrorKind::Macro(message))
            })?;
            let body = lines[body].join("\n");
            self.block(statement, body, depth)?;
            at = close + 1;
        }
        Ok(())
    }

    fn block(&mut self, statement: &[Token], body: String, depth: u32) -> Result<()> {
        let labels = skip_labels(statement);
        self.push_labels(&statement[..labels]);
        let mut cursor = Cursor::new(&statement[labels..]);
        let directive = cursor.next();
        if directive.text == ".macro" {
            let Some(name) = cursor.name() else { return cursor.expected("a name for the macro") };
            let name = name.to_string();
            cursor.next();
            let parameters = parameters(&mut cursor)?;
            self.macros.insert(name, Macro { parameters, body });
            return Ok(());
        }
        let count = evaluate(&mut cursor, &Nothing)?;
        cursor.expect_end()?;
        for _ in 0..count {
            self.nested(&body, directive, depth)?;
        }
        Ok(())
    }

    fn nested(&mut self, text: &str, place: &Token, depth: u32) -> Result<()> {
        if depth >= MAX_DEPTH {
            let message = format!("macros use each other more than {MAX_DEPTH} deep");
            return Err(place.error(ErrorKind::Macro(message)));
        }
        self.expansions += 1;
        if self.expansions.max(self.statements.len()) > MAX_STATEMENTS {
            let message = format!("macros expand to more than {MAX_STATEMENTS} statements");
            return Err(place.error(ErrorKind::Macro(message)));
        }
        self.expand(text, Some(place), depth + 1)
    }

    fn push_labels(&mut self, labels: &[Token]) {
        if let Some(last) = labels.last() {
            let end = Token { kind: Kind::End, text: String::new(), ..last.clone() };
            self.statements.push([labels, &[end]].concat());
        }
    }

    fn statement(&mut self, statement: &[Token], depth: u32) -> Result<()> {
        let labels = skip_labels(statement);
        let name = &statement[labels];
        let Some(used) = self.macros.get(&name.text).filter(|_| name.kind == Kind::Name).cloned()
        else {
            if statement.len() > 1 {
                self.statements.push(statement.to_vec());
            }
            return Ok(());
        };
        self.push_labels(&statement[..labels]);
        let mut cursor = Cursor::new(&statement[labels + 1..]);
        let values = used.values(name, arguments(&mut cursor))?;
        let text = self.substitute(&used, &values);
        self.uses += 1;
        self.nested(&text, name, depth)
    }

    fn substitute(&self, used: &Macro, values: &[String]) -> String {
        let mut text = String::new();
        let mut rest = used.body.as_str();
        while let Some((before, after)) = rest.split_once('\\') {
            text.push_str(before);
            let len = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = &after[..len.unwrap_or(after.len())];
            rest = match used.position(name) {
                Some(position) => {
                    text.push_str(&values[position]);
                    &after[name.len()..]
                }
                None if after.starts_with('@') => {
                    text.push_str(&self.uses.to_string());
                    &after[1..]
                }
                None if after.starts_with("()") => &after[2..],
                None => {
                    text.push('\\');
                    after
                }
            };
        }
        text + rest
    }
}

fn at_place(error: Error, place: Option<&Token>) -> Error {
    match place {
        Some(place) => Error { line: place.line, column: place.column, ..error },
        None => error,
    }
}

/// Returns the lines between the first and the last line of a block, given the lines of all tokens and the
/// range of the body; `None` if the body shares a line with them.
fn body_lines(lines: &[u32], body: Range<usize>) -> Option<Range<usize>> {
    let (first, last) = (lines[body.start - 1], lines[body.end]);
    let apart = lines[body.start] > first && lines[body.end - 1] < last;
    apart.then_some(first as usize..last as usize - 1)
}

/// Returns how many tokens at the start are labels.
pub(crate) fn skip_labels(statement: &[Token]) -> usize {
    let mut at = 0;
    while matches!(statement[at].kind, Kind::Name | Kind::Number(_)) && statement[at + 1].is(":") {
        at += 2;
    }
    at
}

/// Returns where the block that `open` begins ends, skipping nested blocks.
fn closing(tokens: &[Token], open: &str, end: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().filter(|(_, t)| t.kind == Kind::Name) {
        if token.text == open {
            depth += 1;
        } else if token.text == end {
            if depth == 0 {
                return Some(at);
            }
            depth -= 1;
        }
    }
    None
}

/// Takes parameters: `a, b=1, c:req`, with or without commas.
fn parameters(cursor: &mut Cursor<'_>) -> Result<Vec<Parameter>> {
    let mut parameters = Vec::new();
    while !cursor.is_end() {
        let Some(name) = cursor.name() else { return cursor.expected("a parameter's name") };
        cursor.next();
        let is_required = cursor.eat(":");
        if is_required {
            match cursor.name() {
                Some("req") => cursor.next(),
                _ => return cursor.expected("req"),
            };
        }
        let default = if cursor.eat("=") { cursor.next().text.clone() } else { String::new() };
        parameters.push(Parameter { name: name.to_string(), default, is_required });
        cursor.eat(",");
    }
    Ok(parameters)
}

/// Takes arguments, separated by commas outside of brackets.
fn arguments(cursor: &mut Cursor<'_>) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut depth = 0;
    while !cursor.is_end() {
        if arguments.is_empty() {
            arguments.push(String::new());
        }
        let token = cursor.next();
        match token.text.as_str() {
            "," if depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            "[" | "(" => depth += 1,
            "]" | ")" => depth -= 1,
            _ => {}
        }
        let argument = arguments.last_mut().expect("one was pushed");
        if !argument.is_empty() {
            argument.push(' ');
        }
        argument.push_str(&token.text);
    }
    arguments
}

/// A scope in which no symbol is known.
struct Nothing;

impl Scope for Nothing {
    fn symbol(&self, _: &str) -> Option<i128> {
        None
    }
    fn is_label(&self, _: &str) -> bool {
        false
    }
    fn local(&self, _: Local) -> Option<i128> {
        None
    }
    fn here(&self) -> u64 {
        0
    }
    fn is_layout(&self) -> bool {
        false
    }
}
