//! Arguments that are hard to get right.

use kvrm_linux::calls::{Argument, Entry};
use kvrm_random::Random;

use crate::program::{AT_FDCWD, BUFFER, BUFFER_LEN, HANDLER, LIST, Request, TEXT};

/// Where paths are in the buffer, one after the other.
const PATHS: u64 = BUFFER;
/// Bytes that a path has room for.
const PATH: u64 = 32;
/// Where structures are.
const STRUCTURES: u64 = BUFFER + 0x1000;
/// Where a string begins that only ends with the buffer, behind which is nothing.
const ENDLESS: u64 = BUFFER + 0x8000;

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

/// What the buffer holds.
pub(crate) fn buffer(random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![b'a'; BUFFER_LEN as usize];
    bytes[..0x8000].fill(0);
    for (slot, name) in bytes.chunks_mut(PATH as usize).zip(NAMES) {
        slot[..name.len()].copy_from_slice(name.as_bytes());
    }
    let structures = (STRUCTURES - BUFFER) as usize..(ENDLESS - BUFFER) as usize;
    for word in bytes[structures].chunks_mut(8) {
        word.copy_from_slice(&structure_word(random).to_le_bytes());
    }
    bytes
}

/// A word of a structure: often small or zero, so that others of the structure count.
fn structure_word(random: &mut Random) -> u64 {
    match random.below(8) {
        0..3 => 0,
        3 => random.below(16),
        4 => random.below(2_000_000),
        5 => random.below(8) << 32 | random.below(64),
        6 => random.pick(&NUMBERS),
        _ => address(random),
    }
}

fn address(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => random.pick(&ADDRESSES),
        1 => HANDLER,
        _ => STRUCTURES + 8 * random.below(0xe00),
    }
}

fn number(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => random.next(),
        1 => random.hard_value(),
        2 => 1 << random.below(64),
        3 => random.below(70),
        _ => random.pick(&NUMBERS),
    }
}

fn descriptor(random: &mut Random) -> u64 {
    match random.below(10) {
        0 => AT_FDCWD,
        1 => number(random),
        _ => random.below(20),
    }
}

fn path(random: &mut Random) -> u64 {
    match random.below(12) {
        0 => ENDLESS,
        1 => BUFFER + BUFFER_LEN - 4,
        2 => address(random),
        _ => PATHS + PATH * random.below(NAMES.len() as u64),
    }
}

fn argument(kind: Argument, random: &mut Random) -> u64 {
    if random.once_in(16) {
        return number(random);
    }
    match kind {
        Argument::Fd => descriptor(random),
        Argument::Text => path(random),
        Argument::Pointer | Argument::Bytes => address(random),
        Argument::Signal => random.below(66),
        Argument::Mode => random.below(1 << 16),
        Argument::Int if random.once_in(2) => random.below(40),
        Argument::Flags if random.once_in(2) => random.below(1 << 13),
        Argument::Int | Argument::Size | Argument::Offset | Argument::Flags => number(random),
    }
}

/// A call with such arguments.
pub(crate) fn request(entry: &Entry, random: &mut Random) -> Request {
    let mut args = [0; 6].map(|_: u64| number(random));
    for (arg, kind) in args.iter_mut().zip(entry.arguments) {
        *arg = argument(*kind, random);
    }
    Request { number: entry.number, args }
}
