//! The table of all rows, and the decoder made from it.

use std::sync::LazyLock;

use crate::row::{Pattern, Row};
use crate::{branches, data_immediate, data_register, exclusives, loads_stores, lse, system};

/// A row ready for use: with its number and its encoding taken apart.
pub struct Instruction {
    /// Position in [`table`].
    pub index: usize,
    row: Row,
    /// The encoding.
    pub pattern: Pattern,
}

impl std::ops::Deref for Instruction {
    type Target = Row;
    fn deref(&self) -> &Row {
        &self.row
    }
}

impl Instruction {
    /// True if the word is this instruction.
    pub fn matches(&self, word: u32) -> bool {
        word & self.pattern.mask == self.pattern.value
            && self.row.allocated.is_none_or(|allocated| allocated(word))
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
    let rows = sections.into_iter().flatten().flat_map(|rows| rows.iter());
    rows.enumerate()
        .map(|(index, row)| Instruction { index, row: *row, pattern: Pattern::parse(row.encoding) })
        .collect()
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
            for routine in [crate::kernel_form(row), crate::translated_form(row, word, 0x1000)] {
                verify(&routine).unwrap_or_else(|e| panic!("{}: {e}\n{routine}", row.name));
            }
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
