//! Statements of a text, with macros and repetitions expanded.

use std::collections::HashMap;

use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::expression::{Scope, evaluate};
use crate::lexer::{Kind, Local, Token, tokens};

/// Macros in macros.
const MAX_DEPTH: u32 = 50;
/// Statements of all expansions together.
const MAX_STATEMENTS: usize = 10_000_000;

/// The statements of a text: their tokens, the last of which is an end.
pub(crate) fn statements(text: &str) -> Result<Vec<Vec<Token>>> {
    let mut expander = Expander::default();
    expander.expand(text, None, 0)?;
    Ok(expander.statements)
}

#[derive(Default)]
struct Expander {
    macros: HashMap<String, Macro>,
    /// How many macros have been used: what `\@` stands for.
    uses: u64,
    statements: Vec<Vec<Token>>,
}

#[derive(Clone)]
struct Macro {
    /// Names, and what they stand for where nothing is given.
    parameters: Vec<(String, String)>,
    body: String,
}

impl Expander {
    /// Adds the statements of a text. What macros expand to is taken to stand where the macro is used.
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
            let close = closing(&tokens[at + len..], &first.text, end).ok_or_else(|| {
                first.error(ErrorKind::Unclosed(if end == ".endm" { ".macro" } else { ".rept" }))
            })?;
            let close = at + len + close;
            let body = numbers[at] as usize..(numbers[close] as usize).saturating_sub(1);
            let body = lines.get(body).unwrap_or_default().join("\n");
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
        self.expand(text, Some(place), depth + 1)?;
        if self.statements.len() > MAX_STATEMENTS {
            let message = format!("macros expand to more than {MAX_STATEMENTS} statements");
            return Err(place.error(ErrorKind::Macro(message)));
        }
        Ok(())
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
        let arguments = arguments(&mut cursor);
        if arguments.len() > used.parameters.len() {
            let (given, wanted) = (arguments.len(), used.parameters.len());
            let message = format!("{} takes {wanted} arguments, not {given}", name.text);
            return Err(name.error(ErrorKind::Macro(message)));
        }
        let text = self.substitute(&used, &arguments);
        self.uses += 1;
        self.nested(&text, name, depth)
    }

    fn substitute(&self, used: &Macro, arguments: &[String]) -> String {
        let mut text = String::new();
        let mut rest = used.body.as_str();
        while let Some((before, after)) = rest.split_once('\\') {
            text.push_str(before);
            let len = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = &after[..len.unwrap_or(after.len())];
            let position = used.parameters.iter().position(|(known, _)| known == name);
            rest = match position {
                Some(position) => {
                    let default = &used.parameters[position].1;
                    let given = arguments.get(position).filter(|a| !a.is_empty());
                    text.push_str(given.unwrap_or(default));
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

/// How many tokens are labels.
pub(crate) fn skip_labels(statement: &[Token]) -> usize {
    let mut at = 0;
    while matches!(statement[at].kind, Kind::Name | Kind::Number(_)) && statement[at + 1].is(":") {
        at += 2;
    }
    at
}

/// Where the block that `open` begins is closed, blocks in it left out.
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

/// `a, b=1`, with commas or without.
fn parameters(cursor: &mut Cursor<'_>) -> Result<Vec<(String, String)>> {
    let mut parameters = Vec::new();
    while !cursor.is_end() {
        let Some(name) = cursor.name() else { return cursor.expected("a parameter's name") };
        cursor.next();
        let default = if cursor.eat("=") { cursor.next().text.clone() } else { String::new() };
        parameters.push((name.to_string(), default));
        cursor.eat(",");
    }
    Ok(parameters)
}

/// What stands between commas, but for those in brackets.
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

/// Where no symbol is known yet.
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
