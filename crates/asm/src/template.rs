//! Parses the lines of [`SYNTAX`]: the forms of every mnemonic.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

use kvrm_a64::{Field, Instruction, table};

use crate::names::{CONDITIONS, Width};
use crate::syntax::SYNTAX;

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

/// A part of what follows the mnemonic.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Punct(&'static str),
    Word(String),
    Register {
        width: Width,
        fields: Vec<Field>,
        sp: bool,
    },
    /// The register after the one in the field.
    NextRegister {
        width: Width,
        field: Field,
    },
    Number {
        fields: Vec<Field>,
        scale: u32,
        signed: bool,
    },
    /// The distance to an address, in words.
    Distance {
        field: Field,
    },
    Special(Special),
    /// May be left out.
    Optional(Vec<Item>),
}

/// Operands with special rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// An address near the instruction, for ADR.
    Near,
    /// An address in a page that ADRP reaches.
    Page,
    /// 12 bits, shifted by 12 or not: by itself or as `, lsl #12`.
    Arithmetic,
    /// The same, of the opposite sign.
    Negated,
    /// A run of ones, rotated and repeated.
    Bitmask,
    /// The complement of one.
    Inverted,
    /// 16 bits and a shift: `#1, lsl #16`, `#:abs_g1:symbol`.
    Wide,
    /// A number that MOVZ loads.
    MovZ,
    /// A number that MOVN loads.
    MovN,
    /// A number that ORR loads.
    MovMask,
    /// The distance of a left shift, as in UBFM.
    Lsl,
    /// Lowest bit and width of a field to extract, as in bitfield moves.
    Extract,
    /// Lowest bit and width of a field to write.
    Insert,
    /// `lsl #3`: how the last register is shifted.
    Shift,
    /// The same, with `ror`.
    Rotation,
    /// A register and how it is extended: `w1, uxtw #2`.
    Extended,
    /// A register as an offset, scaled by this many bytes or not: `x1, lsl #3`.
    Index(u32),
    /// A condition.
    Cond,
    /// The opposite of a condition, except `al` and `nv`.
    NotCond,
    /// The address of a constant, or `=` and a constant to be placed nearby.
    Literal,
    /// A prefetch operation, by name or number.
    Prefetch,
    /// The same for a range of memory.
    Range,
    /// The option of a barrier, by name or number.
    Barrier,
    /// The number 0, which may follow a base register that has no offset.
    Zero,
    /// A register that identifies features.
    Identification,
    /// A system register by its numbers: `s3_3_c4_c2_0`.
    Numbered,
    /// A system operation by its numbers: `#3, c7, c5, #1`.
    Operation,
}

impl Special {
    fn named(name: &str, width: Option<Width>) -> Option<Special> {
        if let Some(scale) = name.strip_prefix("index*") {
            return Some(Special::Index(scale_of(scale, width)));
        }
        Some(match name {
            "near" => Special::Near,
            "page" => Special::Page,
            "arithmetic" => Special::Arithmetic,
            "negated" => Special::Negated,
            "bitmask" => Special::Bitmask,
            "inverted" => Special::Inverted,
            "wide" => Special::Wide,
            "movz" => Special::MovZ,
            "movn" => Special::MovN,
            "movmask" => Special::MovMask,
            "lsl" => Special::Lsl,
            "extract" => Special::Extract,
            "insert" => Special::Insert,
            "shift" => Special::Shift,
            "rotation" => Special::Rotation,
            "extended" => Special::Extended,
            "cond" => Special::Cond,
            "notcond" => Special::NotCond,
            "literal" => Special::Literal,
            "prefetch" => Special::Prefetch,
            "range" => Special::Range,
            "barrier" => Special::Barrier,
            "zero" => Special::Zero,
            "identification" => Special::Identification,
            "numbered" => Special::Numbered,
            "operation" => Special::Operation,
            _ => return None,
        })
    }
}

static FORMS: LazyLock<HashMap<String, Vec<Form>>> = LazyLock::new(|| {
    let rows: HashMap<&str, &'static Instruction> =
        table().iter().map(|row| (row.name, row)).collect();
    let mut forms: HashMap<String, Vec<Form>> = HashMap::new();
    for (line, (names, text)) in SYNTAX.iter().enumerate() {
        for name in expand(names) {
            let row = rows.get(name.text.as_str());
            let row = row.unwrap_or_else(|| panic!("{names}: there is no row {}", name.text));
            add_forms(&mut forms, row, &name, (line, text));
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

/// A row's name, and what the braces and `?` of its pattern stand for in it.
#[derive(Clone, Default)]
struct Name {
    text: String,
    choices: Vec<String>,
    width: Option<Width>,
}

/// Returns all names that a pattern stands for.
fn expand(pattern: &str) -> Vec<Name> {
    let mut names = vec![Name::default()];
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let braces = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (choices, after): (Vec<&str>, &str) = match (first, braces) {
            ('{', Some((inner, after))) => (inner.split(',').collect(), after),
            ('?', _) => (vec!["W", "X"], &rest[1..]),
            _ => (vec![&rest[..1]], &rest[1..]),
        };
        let extended = |name: &Name, choice: &&str| {
            let mut name = name.clone();
            name.text.push_str(choice);
            match first {
                '{' => name.choices.push(choice.to_ascii_lowercase()),
                '?' => name.width = Some(if *choice == "W" { Width::W } else { Width::X }),
                _ => {}
            }
            name
        };
        names = names.iter().flat_map(|n| choices.iter().map(|c| extended(n, c))).collect();
        rest = after;
    }
    names
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
    let mut word = row.pattern.value | row.pattern.preferred;
    for assignment in fixed.split_whitespace() {
        let (field, value) = assignment.split_once('=').expect("FIELD=VALUE");
        let value = if value == "max" { u32::MAX } else { value.parse().expect("a number") };
        word = field_of(row, field).set(word, value);
    }
    let mut rest = operands.trim();
    let operands = items(row, name.width, &mut rest);
    assert!(rest.is_empty(), "{text}: a brace too many");
    for (spelling, (mnemonic, word)) in spellings(row, mnemonic, word).into_iter().enumerate() {
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

/// Takes items up to the end, or the brace that closes an optional part.
fn items(row: &'static Instruction, width: Option<Width>, rest: &mut &str) -> Vec<Item> {
    let mut items = Vec::new();
    loop {
        *rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return items };
        let punct = [",", "[", "]", "!"].into_iter().find(|p| rest.starts_with(p));
        if let Some(punct) = punct {
            *rest = &rest[1..];
            items.push(Item::Punct(punct));
        } else if first == '{' {
            *rest = &rest[1..];
            items.push(Item::Optional(self::items(row, width, rest)));
        } else if first == '}' {
            *rest = &rest[1..];
            return items;
        } else {
            let len = rest.find([',', '[', ']', '!', '{', '}', ' ']).unwrap_or(rest.len());
            items.push(operand(row, width, &rest[..len]));
            *rest = &rest[len..];
        }
    }
}

fn operand(row: &'static Instruction, width: Option<Width>, text: &str) -> Item {
    if let Some(word) = text.strip_prefix('\'') {
        return Item::Word(word.to_string());
    }
    if let Some(field) = text.strip_prefix('@') {
        return Item::Distance { field: field_of(row, field) };
    }
    if let Some(special) = Special::named(text, width) {
        return Item::Special(special);
    }
    if let Some(item) = register(row, width, text) {
        return item;
    }
    let (signed, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (fields, scale) = text.split_once('*').unwrap_or((text, "1"));
    let fields = fields.split(':').map(|field| field_of(row, field)).collect();
    Item::Number { fields, scale: scale_of(scale, width), signed }
}

fn register(row: &'static Instruction, width: Option<Width>, text: &str) -> Option<Item> {
    let name_len = text.find(['/', '=', '+']).unwrap_or(text.len());
    let (name, suffix) = text.split_at(name_len);
    let width = match &name[..1] {
        "W" => Width::W,
        "X" => Width::X,
        "R" => width?,
        _ => return None,
    };
    let number = |name: &str| field_of(row, &format!("R{name}"));
    let field = number(&name[1..]);
    Some(match suffix.split_at_checked(1) {
        None => Item::Register { width, fields: vec![field], sp: false },
        Some(("/", _)) => Item::Register { width, fields: vec![field], sp: true },
        Some(("=", other)) => {
            Item::Register { width, fields: vec![field, number(other)], sp: false }
        }
        Some(_) => Item::NextRegister { width, field },
    })
}

fn scale_of(text: &str, width: Option<Width>) -> u32 {
    match (text, width) {
        ("R", Some(width)) => width.bits() / 8,
        _ => text.parse().expect("a scale"),
    }
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
        assert_eq!((field("b.lo", "cond"), field("bne", "cond")), (3, 1));
    }
}
