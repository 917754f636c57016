//! What a few instructions look like in the IR, in both forms. After a deliberate change:
//! `KVRM_BLESS=1 cargo test -p kvrm-a64 --test golden`.

use std::fmt::Write;
use std::path::Path;

use kvrm_a64::{decode, shaped_form, translated_form};

/// Instructions that show what each form folds away: word, assembly.
const CASES: &[(u32, &str)] = &[
    (0x9100_0420, "add x0, x1, #1"),
    (0x7100_043f, "subs wzr, w1, #1"),
    (0x9240_1c20, "and x0, x1, #0xff"),
    (0xd340_1c20, "ubfx x0, x1, #0, #8"),
    (0x5400_0041, "b.ne +8"),
    (0xa9bf_7bfd, "stp x29, x30, [sp, #-16]!"),
    (0xb862_d820, "ldr w0, [x1, w2, sxtw #2]"),
    (0xc802_fc20, "stlxr w2, x0, [x1]"),
    (0xf8e2_0020, "ldaddal x2, x0, [x1]"),
    (0xd400_0001, "svc #0"),
];

#[test]
fn routines_are_as_recorded() {
    let mut text = String::new();
    for (word, assembly) in CASES {
        let row = decode(*word).unwrap();
        let translated = translated_form(row, *word, 0x1000);
        writeln!(text, "## {assembly}  ({} at 0x1000)\n{translated}", row.name).unwrap();
        writeln!(text, "## {}, any such word\n{}", row.name, shaped_form(row, *word)).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/routines.txt");
    if std::env::var_os("KVRM_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(recorded == text, "{} is out of date: see the top of this file", path.display());
}
