//! Whole programs: where things are placed, and what GNU as does differently or does not have.

use kvrm_asm::{ErrorKind, assemble, assemble_program};

fn words(text: &str, address: u64) -> Vec<u32> {
    let bytes = assemble(text, address).unwrap_or_else(|error| panic!("{text}: {error}"));
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

#[test]
fn numbers_are_addresses_and_distances_have_a_hash() {
    assert_eq!(words("b 0x10008", 0x10000), [0x1400_0002]);
    assert_eq!(words("b #8", 0x10000), [0x1400_0002]);
    assert_eq!(words("target = 0x10008; b target", 0x10000), [0x1400_0002]);
    assert_eq!(words("ldr x0, 0x10008; ldr x0, #8", 0x10000), [0x5800_0040, 0x5800_0040]);
    assert_eq!(words("adr x0, 0x10001", 0x10000), [0x3000_0000]);
}

#[test]
fn addresses_wrap() {
    let top = u64::MAX - 3;
    assert_eq!(words("b 0; b 0xfffffffffffffffc", top), [0x1400_0001, 0x17ff_ffff]);
    assert_eq!(words("start: nop; b start; adr x0, start", top)[1..], [0x17ff_ffff, 0x10ff_ffc0]);
}

#[test]
fn instructions_are_aligned_wherever_the_program_starts() {
    assert_eq!(assemble("nop", 0x1002).unwrap(), [0, 0, 0x1f, 0x20, 0x03, 0xd5]);
    let program = assemble_program(".byte 1\nafter: nop", 0x1000).unwrap();
    assert_eq!(program.labels["after"], 0x1001);
    assert_eq!(
        (program.statements[1].address, program.statements[1].bytes.clone()),
        (0x1004, 4..8)
    );
}

#[test]
fn symbols_may_depend_on_what_follows() {
    assert_eq!(
        words("mov x0, #len; .equ len, end - start; start: nop; nop; end:", 0)[0],
        0xd280_0100
    );
    // The number of bytes must be known at once, and an old value is not used instead.
    let text = ".set n, 4; .set n, end - start; .space n; start: nop; end:";
    let kind = assemble(text, 0).unwrap_err().kind;
    assert!(matches!(kind, ErrorKind::UndefinedYet(name) if name == "n"));
}

#[test]
fn statements_of_macros_are_where_the_macro_is_used() {
    let text = ".macro two\nnop\nnop\n.endm\n two\n ldr x0, =5";
    let program = assemble_program(text, 0).unwrap();
    let lines: Vec<_> = program.statements.iter().map(|s| (s.line, s.address)).collect();
    assert_eq!(lines, [(5, 0), (5, 4), (6, 8), (6, 16)]);
    assert_eq!(program.statements[3].bytes, 16..24);
}

#[test]
fn newer_instructions() {
    assert_eq!(words("rprfm pldkeep, x1, [x2]", 0), [0xf8a1_4858]);
    assert_eq!(words("prfm pldslckeep, [x1]", 0), [0xf980_0026]);
    assert_eq!(
        words("chkfeat x16; gcsb dsync; clrbhb", 0),
        [0xd503_251f, 0xd503_227f, 0xd503_22df]
    );
}

#[test]
fn nothing_is_a_program() {
    assert_eq!(assemble("", 0).unwrap(), []);
    assert_eq!(assemble("// nothing\n\n label: ;;\n", 0).unwrap(), []);
}
