//! Any file as a program: it runs or is refused, on all engines in the same way.

use kvrm_linux::Failure;

use super::elf::{ANYWHERE, CODE, DATA, EXECUTABLE, HEADER, SEGMENT, Segment, file};
use super::program::{BUFFER, TEXT};
use super::run::{LIMITS, Outcome, Translating, executable, on_all_engines};
use crate::Source;

/// `mov x8, #94; svc #0`.
const EXIT: [u32; 2] = [0xd280_0bc8, 0xd400_0001];

/// Values that fields of headers should not have.
const EXTREME: [u64; 14] = [
    0,
    1,
    0xfff,
    0x1000,
    0x1_0000,
    0x1f80_0000,
    0x2000_0000,
    1 << 32,
    1 << 38,
    (1 << 39) - 0x1000,
    1 << 39,
    1 << 63,
    u64::MAX - 0xfff,
    u64::MAX,
];

/// Loads the program in `bytes`: either a file of a program, or what is wrong with a good one.
pub fn check(bytes: &[u8]) {
    let program = match bytes {
        [0x7f | b'#', ..] => bytes.to_vec(),
        _ => broken(&mut Source::new(bytes)),
    };
    match load(program) {
        Ok(_) | Err(Failure::Program { .. }) => {}
        Err(failure) => panic!("{failure}"),
    }
}

/// Loads a program, with an interpreter and a script at hand.
pub fn load(program: Vec<u8>) -> Result<Outcome, Failure> {
    let files = [
        executable("/program", program),
        executable("/interpreter", file(ANYWHERE, 0, &[text(0)])),
        executable("/script", b"#!/script a\n".to_vec()),
    ];
    on_all_engines(&files, &LIMITS, Translating::Late)
}

/// Code that exits.
pub fn code() -> Vec<u8> {
    EXIT.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A segment with code that exits.
pub fn text(addr: u64) -> Segment {
    Segment::load(CODE, addr, code())
}

/// A program that is broken somehow: fields of its headers are extreme, bits are flipped, the end is missing.
fn broken(source: &mut Source<'_>) -> Vec<u8> {
    let segments = [
        text(TEXT),
        Segment { memory: 0x3000, ..Segment::load(DATA, BUFFER, vec![7; 5000]) },
        Segment::interpreter(b"/interpreter"),
    ];
    let count = 2 + usize::from(source.one_in(2));
    let kind = if source.one_in(2) { EXECUTABLE } else { ANYWHERE };
    let (mut bytes, headers) = (file(kind, TEXT, &segments[..count]), HEADER + count * SEGMENT);
    for _ in 0..1 + source.u8() % 4 {
        match source.u8() % 8 {
            0 => flip(&mut bytes, source),
            1..4 => flip(&mut bytes[..headers], source),
            _ => {
                // Fields of eight bytes, and the last of the header, which are smaller.
                let at = 24 + 8 * source.below((headers as u64 - 24) / 8) as usize;
                let value = EXTREME[source.u8() as usize % EXTREME.len()];
                let value = value.wrapping_add(u64::from(source.u8() % 3)).wrapping_sub(1);
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    if source.one_in(16) {
        bytes.truncate(source.below(bytes.len() as u64) as usize);
    }
    bytes
}

fn flip(bytes: &mut [u8], source: &mut Source<'_>) {
    bytes[source.below(bytes.len() as u64) as usize] ^= 1 << (source.u8() % 8);
}
