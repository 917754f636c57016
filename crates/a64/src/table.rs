//! The table of all rows, and the decoder made from it.

use std::sync::LazyLock;

use crate::context::Context;
use crate::row::{Pattern, Row};
use crate::{
    branches, data_immediate, data_register, exclusives, fp, loads_stores, lse, simd, system,
};

/// An instruction: one encoding, ready for use.
pub struct Instruction {
    /// Position in [`table`].
    pub index: usize,
    /// Arm's mnemonic, with what tells it from its siblings.
    pub name: &'static str,
    /// Which part of the instruction set it belongs to.
    pub group: &'static str,
    /// The bits, as the Arm manual draws them: fixed ones, `name:length` for a field, `name#length` for one
    /// that decides what kind of work it is, and in parentheses those that should have a value.
    pub encoding: &'static str,
    /// The encoding, taken apart.
    pub pattern: Pattern,
    row: &'static Row,
    /// The choice for each axis of the row.
    picks: Vec<usize>,
}

impl Instruction {
    /// True if the word is this instruction.
    pub fn matches(&self, word: u32) -> bool {
        word & self.pattern.mask == self.pattern.value
            && self.row.allocated.is_none_or(|allocated| allocated(word))
    }

    /// True if some words that fit the encoding are unallocated all the same.
    pub fn has_condition(&self) -> bool {
        self.row.allocated.is_some()
    }

    /// The bits of a word that decide what kind of work it is: the fixed ones, and the fields that the row
    /// marks so (conditions, shift and extension types, scaling).
    pub fn shape_bits(&self) -> u32 {
        let fields = self.pattern.shape_fields();
        fields.fold(self.pattern.mask, |bits, field| field.set(bits, u32::MAX))
    }

    /// Which of its shapes a word has: a number below [`shapes`](Self::shapes).
    pub fn shape(&self, word: u32) -> usize {
        let fields = self.pattern.shape_fields();
        fields.fold(0, |shape, field| shape << field.len | field.get(word) as usize)
    }

    /// How many shapes there are.
    pub fn shapes(&self) -> usize {
        1 << self.pattern.shape_fields().map(|field| field.len).sum::<u32>()
    }

    /// The word with the fields that decide its shape set to those of a shape.
    pub fn with_shape(&self, word: u32, shape: usize) -> u32 {
        let mut rest = shape;
        let fields: Vec<_> = self.pattern.shape_fields().collect();
        fields.into_iter().rev().fold(word, |word, field| {
            let value = rest as u32;
            rest >>= field.len;
            field.set(word, value)
        })
    }

    /// Builds what it does.
    pub(crate) fn build(&self, cx: &Context<'_>) {
        (self.row.semantics)(cx, &self.picks);
    }
}

impl std::fmt::Debug for Instruction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

static TABLE: LazyLock<Vec<Instruction>> = LazyLock::new(|| {
    let sections = [
        data_immediate::ROWS,
        data_register::ROWS,
        branches::ROWS,
        loads_stores::ROWS,
        exclusives::ROWS,
        lse::ROWS,
        system::ROWS,
    ];
    let mut table = Vec::new();
    let vectors = fp::ROWS.iter().chain(simd::ROWS).copied();
    for row in sections.into_iter().chain(vectors).flatten().flat_map(|rows| rows.iter()) {
        row.expand(|name, encoding, picks| {
            // The table lives as long as the program.
            let encoding: &'static str = String::leak(encoding);
            table.push(Instruction {
                index: table.len(),
                name: String::leak(name),
                group: row.group,
                encoding,
                pattern: Pattern::parse(encoding),
                row,
                picks: picks.to_vec(),
            });
        });
    }
    table
});

/// Every instruction.
pub fn table() -> &'static [Instruction] {
    &TABLE
}

/// Rows by bits 31 to 21 of the word: few rows share them.
static INDEX: LazyLock<Vec<Vec<u16>>> = LazyLock::new(|| {
    const SHIFT: u32 = 21;
    let mut index = vec![Vec::new(); 1 << (32 - SHIFT)];
    for row in table() {
        let (mask, value) = (row.pattern.mask >> SHIFT, row.pattern.value >> SHIFT);
        // Every way to fill the bits the row leaves open.
        let open = !mask & (u32::MAX >> SHIFT);
        let mut fill = open;
        loop {
            index[(value | fill) as usize].push(row.index as u16);
            if fill == 0 {
                break;
            }
            fill = (fill - 1) & open;
        }
    }
    index
});

/// The instruction a word is, or `None` if it is unallocated (UNDEFINED).
///
/// ```
/// assert_eq!(kvrm_a64::decode(0xd65f_03c0).unwrap().name, "RET");
/// assert!(kvrm_a64::decode(0xffff_ffff).is_none());
/// ```
pub fn decode(word: u32) -> Option<&'static Instruction> {
    let candidates = &INDEX[(word >> 21) as usize];
    candidates.iter().map(|&i| &table()[usize::from(i)]).find(|row| row.matches(word))
}

#[cfg(test)]
mod tests {
    use kvrm_ir::verify::verify;

    use super::*;

    /// The words that fit both patterns, at most 65,536 of them.
    fn common_words<'a>(a: &'a Instruction, b: &'a Instruction) -> impl Iterator<Item = u32> + 'a {
        let apart = (a.pattern.value ^ b.pattern.value) & a.pattern.mask & b.pattern.mask != 0;
        let open = !(a.pattern.mask | b.pattern.mask);
        let fixed = a.pattern.value | b.pattern.value;
        let mut fill = (!apart).then_some(open);
        std::iter::from_fn(move || {
            let word = fixed | fill?;
            fill = fill.filter(|f| *f != 0).map(|f| (f - 1) & open);
            Some(word)
        })
        .take(1 << 16)
    }

    #[test]
    fn no_two_rows_share_a_word() {
        for a in table() {
            for b in &table()[a.index + 1..] {
                let shared = common_words(a, b).find(|w| a.matches(*w) && b.matches(*w));
                assert_eq!(shared, None, "{} and {} overlap", a.name, b.name);
            }
        }
    }

    #[test]
    fn every_row_builds_sound_routines_in_both_forms() {
        for row in table() {
            let word = row.pattern.value | row.pattern.preferred;
            for routine in
                [crate::shaped_form(row, word), crate::translated_form(row, word, 0x1000)]
            {
                verify(&routine).unwrap_or_else(|e| panic!("{}: {e}\n{routine}", row.name));
            }
        }
    }

    #[test]
    fn shapes_are_numbered() {
        let row = table().iter().find(|row| row.name == "LDR_X_reg").unwrap();
        assert_eq!(row.shapes(), 8);
        for shape in 0..row.shapes() {
            assert_eq!(row.shape(row.with_shape(row.pattern.value, shape)), shape);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = table().iter().map(|row| row.name).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }
}
