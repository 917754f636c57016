//! Parses the lines of [`SYNTAX`]: the forms of every mnemonic.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

use kvrm_a64::{Field, Instruction, table};

use crate::names::{CONDITIONS, Width};
use crate::operand::{Item, Marks, items};
use crate::syntax::SYNTAX;
use crate::vector::Arrangement;

/// One way to write the instructions of one row.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) row: &'static Instruction,
    /// Its line in [`SYNTAX`], and the spelling there.
    pub(crate) line: usize,
    spelling: usize,
    /// Whether words are printed like this.
    printed: bool,
    /// The word before operands are inserted.
    pub(crate) word: u32,
    pub(crate) operands: Vec<Item>,
}

static FORMS: LazyLock<HashMap<String, Vec<Form>>> = LazyLock::new(|| {
    let rows: HashMap<&str, &'static Instruction> =
        table().iter().map(|row| (row.name, row)).collect();
    let mut forms: HashMap<String, Vec<Form>> = HashMap::new();
    for (line, (pattern, text)) in SYNTAX.iter().enumerate() {
        let names = expand(pattern);
        let (known, unknown): (Vec<&Name>, Vec<&Name>) =
            names.iter().partition(|name| rows.contains_key(name.text.as_str()));
        for name in unknown {
            let exists = known.iter().any(|other| other.family == name.family);
            assert!(exists, "{pattern}: there is no row {}", name.text);
        }
        for name in known {
            add_forms(&mut forms, rows[name.text.as_str()], name, (line, text));
        }
    }
    forms
});

/// Returns the forms of a mnemonic in lower case.
pub(crate) fn forms(mnemonic: &str) -> Option<&'static [Form]> {
    FORMS.get(mnemonic).map(Vec::as_slice)
}

/// Returns all mnemonics.
pub(crate) fn mnemonics() -> impl Iterator<Item = &'static str> {
    FORMS.keys().map(String::as_str)
}

/// For each row, the mnemonics and forms that its words are printed with, the best first.
static PRINTED: LazyLock<Vec<Vec<(&str, &Form)>>> = LazyLock::new(|| {
    let mut rows = vec![Vec::new(); table().len()];
    for (mnemonic, forms) in FORMS.iter() {
        for form in forms.iter().filter(|form| form.printed) {
            rows[form.row.index].push((mnemonic.as_str(), form));
        }
    }
    for forms in &mut rows {
        forms.sort_by_key(|(_, form)| (Reverse(form.line), form.spelling));
    }
    rows
});

/// Returns the mnemonics and forms that words of a row are printed with, the best first.
pub(crate) fn printed(row: &Instruction) -> &'static [(&'static str, &'static Form)] {
    &PRINTED[row.index]
}

/// Arrangements that `T` may stand for, and elements that `E` may stand for.
const ARRANGEMENTS: [&str; 8] = ["8B", "16B", "4H", "8H", "2S", "4S", "1D", "2D"];
const ELEMENTS: [&str; 5] = ["B", "H", "S", "D", "Q"];

/// A row's name, and what the braces and marks of its pattern stand for in it.
#[derive(Clone, Default)]
struct Name {
    text: String,
    /// Equal for names that differ only in what `T` or `E` stands for; some of these may not exist.
    family: String,
    choices: Vec<String>,
    marks: Marks,
}

/// Returns all names that a pattern stands for.
fn expand(pattern: &str) -> Vec<Name> {
    let mut names = vec![Name::default()];
    let mut rest = pattern;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(part_len(rest));
        let choices: Vec<&str> = match part {
            "?" => vec!["W", "X"],
            "_T" => ARRANGEMENTS.to_vec(),
            "_E" => ELEMENTS.to_vec(),
            _ => part.trim_matches(['{', '}']).split(',').collect(),
        };
        names = names.iter().flat_map(|n| choices.iter().map(|c| extended(n, part, c))).collect();
        rest = after;
    }
    names
}

/// Returns the length of the first part of a pattern: braces, a mark with the underscore before it, or a character.
fn part_len(pattern: &str) -> usize {
    let is_mark = |mark| {
        let after = pattern.strip_prefix(mark);
        after.is_some_and(|after| after.is_empty() || after.starts_with('_'))
    };
    match pattern.find('}') {
        Some(end) if pattern.starts_with('{') => end + 1,
        _ if is_mark("_T") || is_mark("_E") => 2,
        _ => 1,
    }
}

/// Returns the name with a choice for the next part of the pattern.
fn extended(name: &Name, part: &str, choice: &str) -> Name {
    let mut name = name.clone();
    match part {
        "_T" | "_E" => {
            name.marks.arrangement = Arrangement::named(&choice.to_ascii_lowercase());
            name.text = format!("{}_{choice}", name.text);
            name.family += part;
            return name;
        }
        "?" => name.marks.width = Some(if choice == "W" { Width::W } else { Width::X }),
        _ if part.starts_with('{') => name.choices.push(choice.to_ascii_lowercase()),
        _ => {}
    }
    name.text += choice;
    name.family += choice;
    name
}

fn add_forms(
    forms: &mut HashMap<String, Vec<Form>>,
    row: &'static Instruction,
    name: &Name,
    (line, text): (usize, &str),
) {
    let mut text = text.to_string();
    for (number, choice) in (1..).zip(&name.choices) {
        text = text.replace(&format!("${number}"), choice);
    }
    let (printed, text) = text.strip_prefix('~').map_or((true, &*text), |text| (false, text));
    let (syntax, fixed) = text.split_once(';').unwrap_or((text, ""));
    let (mnemonic, operands) = syntax.split_once(' ').unwrap_or((syntax, ""));
    let upper = name.marks.arrangement.is_some_and(Arrangement::is_whole);
    let mnemonic = mnemonic.replace("<2>", if upper { "2" } else { "" });
    let mut word = row.pattern.value | row.pattern.preferred;
    for assignment in fixed.split_whitespace() {
        let (field, value) = assignment.split_once('=').expect("FIELD=VALUE");
        let value = if value == "max" { u32::MAX } else { value.parse().expect("a number") };
        word = field_of(row, field).set(word, value);
    }
    let mut rest = operands.trim();
    let operands = items(row, name.marks, &mut rest);
    assert!(rest.is_empty(), "{text}: a brace too many");
    for (spelling, (mnemonic, word)) in spellings(row, &mnemonic, word).into_iter().enumerate() {
        let form = Form { row, line, spelling, printed, word, operands: operands.clone() };
        forms.entry(mnemonic).or_default().push(form);
    }
}

/// Returns the spellings of a mnemonic with `<…>`, and the word for each.
fn spellings(row: &'static Instruction, mnemonic: &str, word: u32) -> Vec<(String, u32)> {
    let Some((before, rest)) = mnemonic.split_once('<') else {
        return vec![(mnemonic.to_string(), word)];
    };
    let (choice, after) = rest.split_once('>').expect("a closed choice");
    let choices: Vec<(&str, u32)> = match choice.split_once(':') {
        Some((field, letters)) => {
            let (set, clear) = letters.split_once('|').unwrap_or((letters, ""));
            let field = field_of(row, field);
            vec![(clear, field.set(word, 0)), (set, field.set(word, 1))]
        }
        None => {
            let field = field_of(row, choice);
            let numbered = CONDITIONS.iter().zip(0..);
            let pairs = numbered.flat_map(|(names, n)| names.iter().map(move |name| (*name, n)));
            pairs.map(|(name, number)| (name, field.set(word, number))).collect()
        }
    };
    let spelled = |(letters, word)| spellings(row, &format!("{before}{letters}{after}"), word);
    choices.into_iter().flat_map(spelled).collect()
}

/// Returns the row's field of this name.
///
/// # Panics
/// If there is none: a mistake in [`SYNTAX`].
pub(crate) fn field_of(row: &Instruction, name: &str) -> Field {
    row.pattern.field(name).unwrap_or_else(|| panic!("{} has no field {name}", row.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_written() {
        let written: std::collections::HashSet<&str> =
            FORMS.values().flatten().map(|form| form.row.name).collect();
        let missing = table().iter().filter(|row| !written.contains(row.name));
        let missing: Vec<&str> = missing.map(|row| row.name).collect();
        assert!(missing.is_empty(), "no line in syntax.rs for {missing:?}");
    }

    #[test]
    fn patterns_stand_for_names() {
        let names = |pattern| expand(pattern).into_iter().map(|n| n.text).collect::<Vec<_>>();
        assert_eq!(names("A{B,}_?"), ["AB_W", "AB_X", "A_W", "A_X"]);
        assert_eq!(expand("A{B,C}D{E}")[1].choices, ["c", "e"]);
        assert_eq!(names("TST_E_T1")[..2], ["TST_B_T1", "TST_H_T1"]);
        let arrangement = expand("A_T").pop().and_then(|name| name.marks.arrangement);
        assert_eq!(arrangement, Arrangement::named("2d"));
    }

    #[test]
    fn mnemonics_set_fields() {
        let field = |mnemonic: &str, name| {
            let form = &forms(mnemonic).unwrap()[0];
            field_of(form.row, name).get(form.word)
        };
        assert_eq!((field("ldaddal", "A"), field("ldaddal", "R")), (1, 1));
        assert_eq!((field("ldaddl", "A"), field("ldaddl", "R")), (0, 1));
        assert_eq!((field("ldar", "o0"), field("ldlar", "o0")), (1, 0));
        let row = |mnemonic: &str| forms(mnemonic).unwrap()[0].row.name;
        assert_eq!((row("xtn"), row("xtn2")), ("XTN_8B", "XTN_16B"));
        assert_eq!((field("b.lo", "cond"), field("bne", "cond")), (3, 1));
    }
}
