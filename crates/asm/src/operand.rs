//! Operands of instructions, and how [`SYNTAX`](crate::syntax::SYNTAX) notes them.

use kvrm_a64::{Field, Instruction};

use crate::names::Width;
use crate::template::field_of;
use crate::vector::{Arrangement, Lane};

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
    /// A vector register, or if the arrangement has no number one of its elements, whose index follows.
    Vector {
        arrangement: Arrangement,
        fields: Vec<Field>,
    },
    /// The lower part of a vector register.
    Scalar {
        lane: Lane,
        fields: Vec<Field>,
    },
    /// Consecutive vector registers in braces.
    List {
        arrangement: Arrangement,
        first: Field,
        count: Count,
    },
    /// Which element of a register, in brackets; without fields, always this one.
    Index {
        fields: Vec<Field>,
        fixed: u32,
    },
    /// The fields, the first of which has the upper bits, times `scale` plus `offset`.
    Number {
        fields: Vec<Field>,
        signed: bool,
        scale: i32,
        offset: i32,
    },
    /// The distance to an address, in words.
    Distance {
        field: Field,
    },
    Special(Special),
    /// May be left out.
    Optional(Vec<Item>),
}

/// Number of registers in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    Fixed(u32),
    /// One more than what the field says.
    Field(Field),
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
    /// What is added to a base register after this many bytes: their number, or a register.
    Step(u32),
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
    /// The number 0, alone or as what may follow a base register that has no offset.
    Zero,
    /// The number 0.0.
    FloatZero,
    /// 8 bits, as a number with a sign or without, for modified immediates.
    Byte,
    /// 64 bits, of which each byte is all zeros or all ones.
    ByteMask,
    /// A floating-point number of 8 bits, for elements of this size.
    Float(Lane),
    /// A register that identifies features.
    Identification,
    /// A system register by its numbers: `s3_3_c4_c2_0`.
    Numbered,
    /// A system operation by its numbers: `#3, c7, c5, #1`.
    Operation,
}

impl Special {
    fn named(name: &str, marks: Marks) -> Option<Special> {
        if let Some(scale) = name.strip_prefix("index*") {
            return Some(Special::Index(marks.bytes(scale)));
        }
        if let Some(bytes) = name.strip_prefix("step*") {
            return Some(Special::Step(marks.bytes(bytes)));
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
            "0.0" => Special::FloatZero,
            "byte" => Special::Byte,
            "bytemask" => Special::ByteMask,
            "float" => Special::Float(marks.arrangement("E").lane),
            "identification" => Special::Identification,
            "numbered" => Special::Numbered,
            "operation" => Special::Operation,
            _ => return None,
        })
    }
}

/// What the marks in the name of a row stand for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// `?`.
    pub(crate) width: Option<Width>,
    /// `T`, or as one element `E`.
    pub(crate) arrangement: Option<Arrangement>,
}

impl Marks {
    /// Returns the width of `R` registers: that of `?`, or one that holds an element.
    fn width(self) -> Width {
        match (self.width, self.arrangement) {
            (Some(width), _) => width,
            (None, Some(Arrangement { lane: Lane::B | Lane::H | Lane::S, .. })) => Width::W,
            (None, Some(_)) => Width::X,
            (None, None) => panic!("R, but no ? in the name of the row"),
        }
    }

    /// Returns what follows the dot of a vector register.
    fn arrangement(self, text: &str) -> Arrangement {
        let own = || self.arrangement.expect("T or E in the name of the row");
        match text {
            "T" => own(),
            "E" => own().element(),
            "2E" => Arrangement { count: Some(2), ..own() },
            "long" => own().long(),
            "pairs" => own().pairs(),
            _ => Arrangement::named(text).unwrap_or_else(|| panic!("no arrangement {text}")),
        }
    }

    /// Returns a number of bytes: numbers and sizes, multiplied.
    fn bytes(self, text: &str) -> u32 {
        let factor = |text: &str| match text {
            "R" => self.width().bits() / 8,
            "T" | "E" => self.arrangement(text).bytes(),
            _ => text.parse().unwrap_or_else(|_| panic!("{text} is no size")),
        };
        text.split('*').map(factor).product()
    }

    /// Returns a number of bits.
    fn bits(self, text: &str) -> i32 {
        match text {
            "esize" => self.arrangement("E").lane.bits() as i32,
            "rsize" => self.width().bits() as i32,
            _ => text.parse().unwrap_or_else(|_| panic!("{text} is no number")),
        }
    }
}

/// Takes items up to the end, or the brace that closes an optional part.
pub(crate) fn items(row: &'static Instruction, marks: Marks, rest: &mut &str) -> Vec<Item> {
    let mut items = Vec::new();
    loop {
        let has_index = matches!(items.last(), Some(Item::Vector { .. } | Item::List { .. }));
        if has_index && rest.starts_with('[') {
            items.push(index(row, take_until(rest, ']')));
            continue;
        }
        *rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return items };
        let punct = [",", "[", "]", "!"].into_iter().find(|p| rest.starts_with(p));
        if let Some(punct) = punct {
            *rest = &rest[1..];
            items.push(Item::Punct(punct));
        } else if rest.starts_with("{,") {
            *rest = &rest[1..];
            items.push(Item::Optional(self::items(row, marks, rest)));
        } else if first == '{' {
            items.push(list(row, marks, take_until(rest, '}')));
        } else if first == '}' {
            *rest = &rest[1..];
            return items;
        } else {
            let len = rest.find([',', '[', ']', '!', '{', '}', ' ']).unwrap_or(rest.len());
            items.push(operand(row, marks, &rest[..len]));
            *rest = &rest[len..];
        }
    }
}

/// Takes what is between the bracket at the start and the one that closes it.
fn take_until<'a>(rest: &mut &'a str, close: char) -> &'a str {
    let (inner, after) = rest[1..].split_once(close).expect("a closed bracket");
    *rest = after;
    inner
}

/// The index of an element: a number, or fields, of which those that the row does not have are left out.
fn index(row: &'static Instruction, text: &str) -> Item {
    if let Ok(fixed) = text.parse() {
        return Item::Index { fields: Vec::new(), fixed };
    }
    let fields: Vec<Field> = text.split(':').filter_map(|field| row.pattern.field(field)).collect();
    assert!(!fields.is_empty(), "{} has no index", row.name);
    Item::Index { fields, fixed: 0 }
}

fn list(row: &'static Instruction, marks: Marks, text: &str) -> Item {
    let (register, count) = text.split_once('*').unwrap_or((text, "1"));
    let Some(Item::Vector { arrangement, fields }) = vector(row, marks, register) else {
        panic!("{text}: not a vector register")
    };
    let count = match count.parse() {
        Ok(count) => Count::Fixed(count),
        Err(_) => Count::Field(field_of(row, count)),
    };
    Item::List { arrangement, first: fields[0], count }
}

fn operand(row: &'static Instruction, marks: Marks, text: &str) -> Item {
    if let Some(word) = text.strip_prefix('\'') {
        return Item::Word(word.to_string());
    }
    if let Some(field) = text.strip_prefix('@') {
        return Item::Distance { field: field_of(row, field) };
    }
    if let Some(special) = Special::named(text, marks) {
        return Item::Special(special);
    }
    register(row, marks, text)
        .or_else(|| vector(row, marks, text))
        .or_else(|| scalar(row, marks, text))
        .unwrap_or_else(|| number(row, marks, text))
}

fn number(row: &'static Instruction, marks: Marks, text: &str) -> Item {
    let fields = |text: &str| text.split(':').map(|field| field_of(row, field)).collect();
    let (signed, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    if text == "esize" {
        return Item::Number { fields: Vec::new(), signed, scale: 1, offset: marks.bits(text) };
    }
    if let Some((from, field)) = text.split_once('-') {
        return Item::Number { fields: fields(field), signed, scale: -1, offset: marks.bits(from) };
    }
    let (text, offset) = text.split_once('+').unwrap_or((text, "0"));
    let (text, scale) = text.split_once('*').unwrap_or((text, "1"));
    let scale = marks.bytes(scale) as i32;
    Item::Number { fields: fields(text), signed, scale, offset: marks.bits(offset) }
}

/// Returns the fields of a register, `n` or for several `n=m`.
fn register_fields(row: &'static Instruction, names: &str) -> Vec<Field> {
    names.split('=').map(|name| field_of(row, &format!("R{name}"))).collect()
}

fn register(row: &'static Instruction, marks: Marks, text: &str) -> Option<Item> {
    let (letter, rest) = text.split_at(1);
    let width = match letter {
        "W" => Width::W,
        "X" => Width::X,
        "R" => marks.width(),
        _ => return None,
    };
    if let Some(name) = rest.strip_suffix("+1") {
        return Some(Item::NextRegister { width, field: field_of(row, &format!("R{name}")) });
    }
    let (names, sp) = rest.strip_suffix("/sp").map_or((rest, false), |names| (names, true));
    Some(Item::Register { width, fields: register_fields(row, names), sp })
}

fn vector(row: &'static Instruction, marks: Marks, text: &str) -> Option<Item> {
    let (names, arrangement) = text.strip_prefix('V')?.split_once('.')?;
    let arrangement = marks.arrangement(arrangement);
    Some(Item::Vector { arrangement, fields: register_fields(row, names) })
}

fn scalar(row: &'static Instruction, marks: Marks, text: &str) -> Option<Item> {
    let (names, size) = text.split_once('.').unwrap_or((text, "E"));
    let (letter, names) = names.split_at(1);
    let lane = match letter {
        "E" => marks.arrangement(size).lane,
        _ if letter == letter.to_ascii_uppercase() => Lane::named(&letter.to_ascii_lowercase())?,
        _ => return None,
    };
    Some(Item::Scalar { lane, fields: register_fields(row, names) })
}
