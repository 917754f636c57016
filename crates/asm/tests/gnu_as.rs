//! GNU as and our assembler give the same bytes for the same text.
//!
//! The bytes that GNU as gives for `syntax.s` are kept in `syntax.hex`; `KVRM_BLESS=1` rewrites it with
//! `aarch64-linux-gnu-as`. If that is installed (`cargo xtask test` installs it), it is run each time, too.

use std::path::{Path, PathBuf};
use std::process::Command;

use kvrm_asm::{Program, assemble_program};

const ADDRESS: u64 = 0x10000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn read(path: PathBuf) -> String {
    let text = std::fs::read_to_string(&path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display())).replace("\r\n", "\n")
}

fn run(tool: &str, arguments: &[&str]) -> bool {
    let output = Command::new(format!("aarch64-linux-gnu-{tool}")).args(arguments).output();
    let Ok(output) = output else { return false };
    assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    true
}

/// Returns what GNU as assembles a text to, or `None` if it is not installed.
fn gnu_as(text: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let [source, object, linked, bytes] = ["a.s", "a.o", "a.elf", "a.bin"].map(path);
    std::fs::write(&source, text).unwrap();
    let sections = format!("-Ttext={ADDRESS:#x}");
    let done = run("as", &["-o", &object, &source])
        && run("ld", &["-N", "-e", "0", &sections, "-o", &linked, &object])
        && run("objcopy", &["-O", "binary", &linked, &bytes]);
    done.then(|| std::fs::read(bytes).unwrap())
}

/// Fails at the first statement whose bytes differ.
fn compare(text: &str, program: &Program, expected: &[u8]) {
    let lines: Vec<&str> = text.lines().collect();
    for statement in &program.statements {
        let ours = &program.bytes[statement.bytes.clone()];
        let theirs = expected.get(statement.bytes.clone()).unwrap_or_default();
        let line = lines[statement.line as usize - 1].trim();
        let place = format!("line {}, {:#x}", statement.line, statement.address);
        assert!(ours == theirs, "{place}: {line}\nours {ours:02x?}\ntheirs {theirs:02x?}");
    }
    assert!(program.bytes == expected, "padding, or what follows the end, differs");
}

fn hex(bytes: &[u8]) -> String {
    let line = |chunk: &[u8]| chunk.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(16).map(|chunk| line(chunk) + "\n").collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn all_syntax_gives_the_bytes_that_are_kept() {
    let text = read(folder().join("syntax.s"));
    let path = folder().join("syntax.hex");
    if std::env::var_os("KVRM_BLESS").is_some() {
        let bytes = gnu_as(&text).expect("aarch64-linux-gnu-as is needed to write syntax.hex");
        std::fs::write(&path, hex(&bytes)).unwrap();
    }
    let program = assemble_program(&text, ADDRESS).unwrap();
    compare(&text, &program, &from_hex(&read(path)));
}

#[test]
fn all_syntax_gives_the_bytes_of_gnu_as() {
    let text = read(folder().join("syntax.s"));
    let program = assemble_program(&text, ADDRESS).unwrap();
    match gnu_as(&text) {
        Some(expected) => compare(&text, &program, &expected),
        None => eprintln!(
            "not compared: aarch64-linux-gnu-as is missing (`cargo xtask test` brings it)"
        ),
    }
}

/// Returns a guest's source for the bare machine, as the C preprocessor would.
fn guest(name: &str) -> String {
    let folder = folder().join("../../../guests/src");
    let shared = read(folder.join("guest.inc"));
    let (_, bare) = shared.split_once("#else").unwrap();
    let (bare, _) = bare.split_once("#endif").unwrap();
    let source = read(folder.join(format!("{name}.S")));
    assert!(source.contains("#include \"guest.inc\""));
    source.replace("#include \"guest.inc\"", bare)
}

#[test]
fn guests_give_the_programs_that_are_kept() {
    for name in ["collatz", "loop", "loop_store", "reset"] {
        let bytes =
            kvrm_asm::assemble(&guest(name), ADDRESS).unwrap_or_else(|e| panic!("{name}: {e}"));
        let kept = folder().join(format!("../../../guests/bin/{name}.bin"));
        assert!(bytes == std::fs::read(kept).unwrap(), "{name}");
    }
}

#[test]
fn the_start_of_guests_in_c_assembles() {
    let source = read(folder().join("../../../guests/start_bare.S"));
    let rest = "run: ret\n.set __stack_top, 0x123450\n";
    let bytes = kvrm_asm::assemble(&(source + rest), ADDRESS).unwrap();
    let words: Vec<u32> =
        bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    assert_eq!(
        words,
        [0xd2a0_0250, 0xf286_8a10, 0x9100_021f, 0x9400_0002, 0xd440_0000, 0xd65f_03c0]
    );
}
