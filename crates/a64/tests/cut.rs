//! Every row, in every shape, can be cut into what a record holds and what is left to run.

use kvrm_a64::state::PC;
use kvrm_a64::{shaped_form, table};
use kvrm_ir::cut::cut;
use kvrm_ir::verify::verify;

#[test]
fn every_row_fits_a_record() {
    let mut failed = Vec::new();
    for row in table() {
        let mut rng = 1u32;
        for _ in 0..200 {
            rng = rng.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let word = rng & !row.pattern.mask | row.pattern.value;
            if !row.matches(word) {
                continue;
            }
            match cut(&shaped_form(row, word), &[PC]) {
                None => failed.push(row.name),
                Some(cut) => {
                    for part in [&cut.before, &cut.after] {
                        verify(part).unwrap_or_else(|e| panic!("{}: {e}\n{part}", row.name));
                    }
                }
            }
        }
    }
    failed.dedup();
    assert!(failed.is_empty(), "these rows do not fit: {failed:?}");
}
