//! Messages about mistakes.
//!
//! `errors.txt` has programs, each with the message below it; `KVRM_BLESS=1` rewrites the messages.

use std::path::Path;

#[test]
fn messages() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors.txt");
    let kept = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    let mut current = String::new();
    for case in kept.split_inclusive("\n\n") {
        let program: Vec<&str> =
            case.trim_end().lines().filter(|line| !line.starts_with("=> ")).collect();
        let program = program.join("\n");
        let error = kvrm_asm::assemble(&program, 0x10000)
            .err()
            .unwrap_or_else(|| panic!("nothing wrong with {program:?}"));
        current += &format!("{program}\n=> {error}\n\n");
    }
    let current = format!("{}\n", current.trim_end());
    if std::env::var_os("KVRM_BLESS").is_some() {
        std::fs::write(&path, &current).unwrap();
        return;
    }
    for (ours, kept) in current.lines().zip(kept.lines()) {
        assert_eq!(ours, kept);
    }
    assert_eq!(current, kept);
}

#[test]
fn errors_have_a_place() {
    let error = kvrm_asm::assemble("nop\n  add x0, x1, #(2 + 4999)", 0).unwrap_err();
    assert_eq!((error.line, error.column, error.text.as_str()), (2, 16, "(2+4999)"));
}

#[test]
fn mistakes_do_not_hide_each_other() {
    let lines = |text: &str| -> Vec<u32> {
        kvrm_asm::mistakes(text, 0).iter().map(|mistake| mistake.line).collect()
    };
    // Labels keep their places, so that nothing else is wrong.
    assert_eq!(
        lines("a: addd x0, x1\n nop\nb: b.ne a\n mov x0, #-70000\n cbz x1, b\n b c"),
        [1, 4, 6]
    );
    assert_eq!(lines("ldr x0, =nowhere\n nop\n .word nowhere"), [1, 3]);
    assert_eq!(lines("ldr x0, =a\n ldr w1, =b\n .ltorg\n ldr x2, =c\n .ltorg"), [1, 2, 4]);
    // Mistakes that affect addresses hide those in instructions.
    assert_eq!(lines("addd x0, x1\nx0: nop\n.space later\n.set later, 4"), [2, 3]);
    assert_eq!(lines(&"wrong\n".repeat(100)).len(), kvrm_asm::MOST_MISTAKES);
    assert_eq!(lines(".space 1 << 40\nnop\nnop"), [1]);
    assert_eq!(lines("\"never closed\naddd"), [1]);
    assert_eq!(lines("nop"), [0; 0]);
}
