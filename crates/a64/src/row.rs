//! A row of the instruction table, and the notation of its encoding.

use crate::context::Context;

/// One encoding, or several that differ in a few bits: the name, the bits and what they do.
///
/// The bits are written as the Arm manual draws them, most significant first, separated by spaces:
///
/// - `0101` – these bits have these values;
/// - `imm12:12` – a field of twelve bits;
/// - `cond#4` – a field of four bits that decides what kind of work it is: semantics see it as a number, and
///   interpreting kernels have a handler for each value that a program uses;
/// - `(11)` – should be these bits, but any value means the same instruction.
///
/// A row with *axes* is one row for each combination of their choices. In the name `{sf}` stands for the
/// choice's text, in the encoding for its bits; `imm6:5+sf` is a field of six bits where the bit of `sf`
/// is set, and otherwise one of five bits after a zero. Bits in two parts, as in `1|00`, are for two marks.
///
/// ```
/// let row = kvrm_a64::decode(0x9100_0420).unwrap(); // add x0, x1, #1
/// assert_eq!(row.name, "ADD_imm_X");
/// assert_eq!(row.encoding, "1 0 0 100010 sh:1 imm12:12 Rn:5 Rd:5");
/// ```
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) group: &'static str,
    pub(crate) encoding: &'static str,
    pub(crate) axes: &'static [Axis],
    pub(crate) allocated: Option<fn(u32) -> bool>,
    /// Builds what the instruction does, given the choice of each axis.
    pub(crate) semantics: fn(&Context<'_>, &[usize]),
}

/// What a row is repeated over: its name in the row, and the text and bits of each choice.
pub(crate) struct Axis {
    pub(crate) name: &'static str,
    pub(crate) choice: fn(usize) -> Option<(&'static str, &'static str)>,
}

/// A choice of an axis: its text in names, its bits in encodings, and what semantics are told.
pub(crate) type Choice<T> = (&'static str, &'static str, T);

impl Row {
    /// Calls `f` with every combination of choices: the name, the encoding and the choices' numbers.
    pub(crate) fn expand(&self, mut f: impl FnMut(String, String, &[usize])) {
        let choices = |axis: &Axis| (0..).map_while(axis.choice).collect::<Vec<_>>();
        let choices: Vec<_> = self.axes.iter().map(choices).collect();
        let [name, encoding] = [self.name, self.encoding].map(|text| Template::of(text, self.axes));
        let mut picks = vec![0; self.axes.len()];
        loop {
            let picked = |axis: usize| choices[axis][picks[axis]];
            let name = name.fill(|axis| picked(axis).0);
            let mut encoding = encoding.fill(|axis| picked(axis).1);
            if encoding.contains('+') {
                for (number, axis) in self.axes.iter().enumerate() {
                    encoding = longer_fields(&encoding, axis.name, picked(number).1);
                }
            }
            f(name, encoding, &picks);
            // The last axis counts first.
            let Some(axis) = (0..picks.len()).rfind(|axis| picks[*axis] + 1 < choices[*axis].len())
            else {
                return;
            };
            picks[axis] += 1;
            picks[axis + 1..].fill(0);
        }
    }
}

/// A text with marks, as in `ADD_{sf}`.
struct Template {
    /// A piece of text and the axis whose mark follows.
    marked: Vec<(&'static str, usize)>,
    rest: &'static str,
}

impl Template {
    fn of(text: &'static str, axes: &[Axis]) -> Template {
        let mut template = Template { marked: Vec::new(), rest: text };
        while let Some((before, after)) = template.rest.split_once('{') {
            let (name, rest) = after.split_once('}').expect("a mark ends");
            let axis = axes.iter().position(|axis| axis.name == name).expect("an axis of the row");
            template.marked.push((before, axis));
            template.rest = rest;
        }
        template
    }

    /// The text with what is there for each mark. Things of several parts are for as many marks.
    fn fill(&self, choice: impl Fn(usize) -> &'static str) -> String {
        let mut text = String::with_capacity(64);
        for (number, (before, axis)) in self.marked.iter().enumerate() {
            text.push_str(before);
            let chosen = choice(*axis);
            let part = || self.marked[..number].iter().filter(|(_, other)| other == axis).count();
            text.push_str(match chosen.contains('|') {
                false => chosen,
                true => chosen.split('|').nth(part()).expect("a part for each mark"),
            });
        }
        text.push_str(self.rest);
        text
    }
}

/// Replaces fields that are one bit longer where the bit of an axis is set, as in `imm6:5+sf`.
fn longer_fields(encoding: &str, axis: &str, bits: &str) -> String {
    let token = |token: &str| {
        let Some(short) = token.strip_suffix(axis).and_then(|t| t.strip_suffix('+')) else {
            return token.to_string();
        };
        let at = short.rfind([':', '#']).expect("a field has a length");
        let (name, len) = short.split_at(at + 1);
        let len: u32 = len.parse().expect("a length");
        match (bits, len) {
            ("1", len) => format!("{name}{}", len + 1),
            (_, 0) => "0".to_string(),
            (_, len) => format!("0 {name}{len}"),
        }
    };
    encoding.split_ascii_whitespace().map(token).collect::<Vec<_>>().join(" ")
}

/// A named field of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Arm's name for it.
    pub name: &'static str,
    /// Lowest bit.
    pub low: u32,
    /// Number of bits.
    pub len: u32,
    /// It decides what kind of work the instruction is.
    pub is_shape: bool,
}

impl Field {
    /// The field's value in a word.
    pub fn get(self, word: u32) -> u32 {
        word >> self.low & (u32::MAX >> (32 - self.len))
    }

    /// The word with the field set to the low bits of `value`.
    pub fn set(self, word: u32, value: u32) -> u32 {
        let mask = u32::MAX >> (32 - self.len);
        word & !(mask << self.low) | (value & mask) << self.low
    }
}

/// An encoding, taken apart.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Bits with a prescribed value.
    pub mask: u32,
    /// Those values.
    pub value: u32,
    /// Values of the bits that should, but need not, have one.
    pub preferred: u32,
    /// The fields, most significant first.
    pub fields: Vec<Field>,
}

impl Pattern {
    /// Takes an encoding apart.
    ///
    /// # Panics
    /// If it is not 32 bits of the notation described at the top of the table: a mistake there.
    pub fn parse(encoding: &'static str) -> Pattern {
        let mut pattern = Pattern { mask: 0, value: 0, preferred: 0, fields: Vec::new() };
        let mut high = 32;
        for token in encoding.split_ascii_whitespace() {
            let len = pattern.token(token, high);
            high = high.checked_sub(len).unwrap_or_else(|| panic!("over 32 bits: {encoding}"));
        }
        assert_eq!(high, 0, "not 32 bits: {encoding}");
        pattern
    }

    /// Takes one token, whose top bit is just below `high`; its length in bits.
    fn token(&mut self, token: &'static str, high: u32) -> u32 {
        let bits = |text: &str| u32::from_str_radix(text, 2).expect("binary digits");
        if let Some((name, len)) = token.split_once([':', '#']) {
            let len = len.parse().expect("a length");
            let is_shape = token.contains('#');
            self.fields.push(Field { name, low: high - len, len, is_shape });
            return len;
        }
        if let Some(text) = token.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
            let len = text.len() as u32;
            self.preferred |= bits(text) << (high - len);
            return len;
        }
        let len = token.len() as u32;
        self.mask |= (u32::MAX >> (32 - len)) << (high - len);
        self.value |= bits(token) << (high - len);
        len
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|f| f.name == name).copied()
    }

    /// The fields that decide what kind of work it is.
    pub fn shape_fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.is_shape)
    }
}

/// Writes a list of rows of one group: `NAME "encoding" [if allocated] => semantics(parameters);`. With
/// `for (axis in CHOICES, …)` after the group's name, each is a row for every combination, and the axes
/// can be used as parameters.
macro_rules! rows {
    ($group:literal: $($rows:tt)*) => { rows!{ $group for (): $($rows)* } };
    ($group:literal for $axes:tt: $($name:literal $encoding:literal $(, if $allocated:expr)? =>
        $semantics:ident($($parameter:expr),*);)*) => {
        &[$(rows!(@row $axes $group, $name, $encoding, [$($allocated)?], $semantics($($parameter),*))),*]
    };
    (@row ($($axis:ident in $choices:ident),*) $group:expr, $name:expr, $encoding:expr,
        [$($allocated:expr)?], $semantics:ident($($parameter:expr),*)) => {
        $crate::row::Row {
            name: $name,
            group: $group,
            encoding: $encoding,
            axes: &[$($crate::row::Axis {
                name: stringify!($axis),
                choice: |i| $choices.get(i).map(|(text, bits, _)| (*text, *bits)),
            }),*],
            allocated: rows!(@allocated $($allocated)?),
            semantics: |cx, picks| {
                let mut picks = picks.iter();
                $(let (_, _, $axis) = $choices[*picks.next().expect("a pick for each axis")];)*
                assert!(picks.next().is_none());
                $semantics(cx, $($parameter),*)
            },
        }
    };
    (@allocated) => { None };
    (@allocated $allocated:expr) => { Some($allocated) };
}
pub(crate) use rows;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_can_have_parts() {
        let axes = ["t", "u"].map(|name| Axis { name, choice: |_| None });
        let template = Template::of("{t} 0 {u}{t}", &axes);
        assert_eq!(template.fill(|axis| ["1|01", "11"][axis]), "1 0 1101");
        assert_eq!(template.fill(|axis| ["1", ""][axis]), "1 0 1");
    }

    #[test]
    fn fields_grow_with_a_bit() {
        assert_eq!(longer_fields("imm6:5+sf Rn:5", "sf", "1"), "imm6:6 Rn:5");
        assert_eq!(longer_fields("imm6:5+sf Rn:5", "sf", "0"), "0 imm6:5 Rn:5");
        assert_eq!(longer_fields("hw#1+sf N:0+sf", "sf", "0"), "0 hw#1 0");
        assert_eq!(longer_fields("N:0+sf", "sf", "1"), "N:1");
    }
}
