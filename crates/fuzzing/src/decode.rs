//! Any word can be decoded, and what it decodes to is sound.

use kvrm_a64::{decode, shaped_form, translated_form};
use kvrm_ir::verify::verify;

use crate::{Habit, Source};

/// Decodes the words in `bytes`, each at an address that comes from `bytes` too.
pub fn check(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    while !source.is_empty() {
        let shaped = source.one_in(2);
        let word =
            if shaped { crate::word(&mut source, Habit::Everything, 0) } else { source.u32() };
        let pc = source.u64() & !3;
        check_word(word, pc);
    }
}

/// Decodes one word.
pub fn check_word(word: u32, pc: u64) {
    let Some(row) = decode(word) else { return };
    assert!(row.matches(word), "{word:#010x} is not a {}", row.name);
    for routine in [shaped_form(row, word), translated_form(row, word, pc)] {
        if let Err(e) = verify(&routine) {
            panic!("{word:#010x} ({}) at {pc:#x}: {e}\n{routine}", row.name);
        }
    }
}
