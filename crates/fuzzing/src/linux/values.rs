//! Arguments that are hard to get right.

use kvrm_linux::calls::{Argument, Entry};

use super::program::{AT_FDCWD, BUFFER, BUFFER_LEN, HANDLER, LIST, Request, TEXT};
use crate::Source;

/// Where paths are in the buffer, one after the other.
const PATHS: u64 = BUFFER;
/// Bytes that a path has room for.
const PATH: u64 = 32;
/// Where structures are.
const STRUCTURES: u64 = BUFFER + 0x1000;
/// Where a string begins that only ends with the buffer, behind which is nothing.
const ENDLESS: u64 = BUFFER + 0x8000;

/// Words of structures that are different; then they are repeated.
const WORDS: usize = 128;

const NAMES: [&str; 24] = [
    "/tmp/a",
    "/tmp/b",
    "/tmp/d",
    "/tmp/d/e",
    "/tmp/fifo",
    "/tmp/loop",
    "/tmp/link",
    "/tmp",
    "/",
    "",
    ".",
    "..",
    "../../..",
    "a/",
    "/program",
    "/script",
    "/proc/self/maps",
    "/proc/self/fd/3",
    "/proc/self/exe",
    "/proc/self/cwd",
    "/proc/1000/task",
    "/dev/zero",
    "/dev/full",
    "/dev/urandom",
];

/// Numbers that are lengths, offsets, flags, addresses or whatever the call makes of them.
const NUMBERS: [u64; 32] = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    24,
    64,
    255,
    4095,
    4096,
    4097,
    1 << 16,
    1 << 20,
    (1 << 24) + 1,
    1 << 30,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    (1 << 32) + 1,
    0xffff_ffff_0000_0001,
    1 << 38,
    (1 << 39) - 4096,
    1 << 39,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 4095,
    u64::MAX - 7,
    u64::MAX,
];

const ADDRESSES: [u64; 20] = [
    0,
    1,
    TEXT,
    TEXT + 4,
    LIST,
    BUFFER,
    BUFFER + 1,
    STRUCTURES,
    STRUCTURES + 256,
    ENDLESS,
    BUFFER + BUFFER_LEN - 1,
    BUFFER + BUFFER_LEN - 8,
    BUFFER + BUFFER_LEN,
    0x2000_0000 - 64,
    0x2000_0000,
    0x3000_0000,
    (1 << 39) - 8,
    (1 << 39) - 4096,
    u64::MAX - 4095,
    u64::MAX - 8,
];

/// Picks one of several.
fn pick(source: &mut Source<'_>, values: &[u64]) -> u64 {
    values[source.u8() as usize % values.len()]
}

/// Returns what the buffer holds: paths, structures, and a string that does not end.
pub fn buffer(source: &mut Source<'_>) -> Vec<u8> {
    let mut bytes = vec![b'a'; BUFFER_LEN as usize];
    bytes[..0x8000].fill(0);
    for (slot, name) in bytes.chunks_mut(PATH as usize).zip(NAMES) {
        slot[..name.len()].copy_from_slice(name.as_bytes());
    }
    let structures = (STRUCTURES - BUFFER) as usize..(ENDLESS - BUFFER) as usize;
    let words = [0; WORDS].map(|_: u64| structure_word(source));
    for (at, word) in bytes[structures].chunks_mut(8).zip(words.iter().cycle()) {
        at.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Returns a word of a structure: often small or zero, so that others of the structure count.
fn structure_word(source: &mut Source<'_>) -> u64 {
    match source.u8() % 8 {
        0..3 => 0,
        3 => u64::from(source.u8() % 16),
        4 => u64::from(source.u32() % 2_000_000),
        5 => u64::from(source.u8() % 8) << 32 | u64::from(source.u8() % 64),
        6 => pick(source, &NUMBERS),
        _ => address(source),
    }
}

fn address(source: &mut Source<'_>) -> u64 {
    match source.u8() % 4 {
        0 => pick(source, &ADDRESSES),
        1 => HANDLER,
        _ => STRUCTURES + 8 * source.below(0xe00),
    }
}

fn number(source: &mut Source<'_>) -> u64 {
    match source.u8() % 6 {
        0 => source.u64(),
        1 => pick(source, &NUMBERS).wrapping_add(u64::from(source.u8() % 5)).wrapping_sub(2),
        2 => 1 << (source.u8() % 64),
        3 => u64::from(source.u8() % 70),
        _ => pick(source, &NUMBERS),
    }
}

fn descriptor(source: &mut Source<'_>) -> u64 {
    match source.u8() % 10 {
        0 => AT_FDCWD,
        1 => number(source),
        _ => u64::from(source.u8() % 20),
    }
}

fn path(source: &mut Source<'_>) -> u64 {
    match source.u8() % 12 {
        0 => ENDLESS,
        1 => BUFFER + BUFFER_LEN - 4,
        2 => address(source),
        _ => PATHS + PATH * u64::from(source.u8() % NAMES.len() as u8),
    }
}

fn argument(kind: Option<Argument>, source: &mut Source<'_>) -> u64 {
    let Some(kind) = kind.filter(|_| !source.one_in(16)) else { return number(source) };
    match kind {
        Argument::Fd => descriptor(source),
        Argument::Text => path(source),
        Argument::Pointer | Argument::Bytes => address(source),
        Argument::Signal => u64::from(source.u8() % 66),
        Argument::Mode => u64::from(source.u16()),
        Argument::Int if source.one_in(2) => u64::from(source.u8() % 40),
        Argument::Flags if source.one_in(2) => source.below(1 << 13),
        Argument::Int | Argument::Size | Argument::Offset | Argument::Flags => number(source),
    }
}

/// Returns a call with such arguments.
pub fn request(entry: &Entry, source: &mut Source<'_>) -> Request {
    let args = [0, 1, 2, 3, 4, 5];
    let args = args.map(|at: usize| argument(entry.arguments.get(at).copied(), source));
    Request { number: entry.number, args }
}
