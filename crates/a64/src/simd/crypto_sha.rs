//! Rounds and schedules of SHA-1 and SHA-256.

use kvrm_ir::Val;

use super::arrangement::{Arrangement, Lane, Part};
use super::elements::rotated_right;
use super::vector::Vector;
use crate::Sign;
use crate::context::Context;
use crate::row::{Choice, Row, rows};

const WORDS: Arrangement = Arrangement { lane: Lane::S, part: Part::Whole };

const SHA1: &[Choice<Mix>] =
    &[("SHA1C", "000", choose), ("SHA1P", "001", parity), ("SHA1M", "010", majority)];

/// A function of three words.
pub(super) type Mix = for<'b> fn(Val<'b>, Val<'b>, Val<'b>) -> Val<'b>;

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Cryptographic three-register SHA" for (op in SHA1):
        "{op}" "01011110 00 0 Rm:5 0 {op} 00 Rn:5 Rd:5" => sha1_rounds(op);
    },
    rows! { "Cryptographic three-register SHA":
        "SHA1SU0"   "01011110 00 0 Rm:5 0 011 00 Rn:5 Rd:5" => sha1_schedule_0();
        "SHA256H"   "01011110 00 0 Rm:5 0 100 00 Rn:5 Rd:5" => sha256_rounds();
        "SHA256H2"  "01011110 00 0 Rm:5 0 101 00 Rn:5 Rd:5" => sha256_rounds_2();
        "SHA256SU1" "01011110 00 0 Rm:5 0 110 00 Rn:5 Rd:5" => sha256_schedule_1();
    },
    rows! { "Cryptographic two-register SHA":
        "SHA1H"     "01011110 00 10100 00000 10 Rn:5 Rd:5" => sha1_rotate();
        "SHA1SU1"   "01011110 00 10100 00001 10 Rn:5 Rd:5" => sha1_schedule_1();
        "SHA256SU0" "01011110 00 10100 00010 10 Rn:5 Rd:5" => sha256_schedule_0();
    },
];

/// The words of a register.
pub(super) fn words<'b>(cx: &Context<'b>, field: &str) -> [Val<'b>; 4] {
    let vector = cx.vector_of(field);
    std::array::from_fn(|i| vector.element(Lane::S, i, Sign::Unsigned))
}

/// Sets the register `Rd` to words.
pub(super) fn set_words<'b>(cx: &Context<'b>, words: [Val<'b>; 4]) {
    cx.set_elements(WORDS, &words);
}

pub(super) fn rotated_left(x: Val<'_>, amount: u32) -> Val<'_> {
    rotated_right(x, x.ty().bits() - amount)
}

pub(super) fn choose<'b>(x: Val<'b>, y: Val<'b>, z: Val<'b>) -> Val<'b> {
    ((y ^ z) & x) ^ z
}

pub(super) fn parity<'b>(x: Val<'b>, y: Val<'b>, z: Val<'b>) -> Val<'b> {
    x ^ y ^ z
}

pub(super) fn majority<'b>(x: Val<'b>, y: Val<'b>, z: Val<'b>) -> Val<'b> {
    (x & y) | ((x | y) & z)
}

/// The sum of three rotations to the right.
pub(super) fn rotations(x: Val<'_>, amounts: [u32; 3]) -> Val<'_> {
    let [a, b, c] = amounts.map(|amount| rotated_right(x, amount));
    a ^ b ^ c
}

/// The sum of two rotations and a shift to the right.
pub(super) fn rotations_and_shift(x: Val<'_>, [a, b, shift]: [u32; 3]) -> Val<'_> {
    rotated_right(x, a) ^ rotated_right(x, b) ^ (x >> shift)
}

/// SHA1C, SHA1P, SHA1M.
fn sha1_rounds(cx: &Context<'_>, mix: Mix) {
    let (mut x, mut y) = (words(cx, "Rd"), words(cx, "Rn")[0]);
    for w in words(cx, "Rm") {
        let [a, b, c, d] = x;
        let sum = y + rotated_left(a, 5) + mix(b, c, d) + w;
        y = d;
        x = [sum, a, rotated_left(b, 30), c];
    }
    set_words(cx, x);
}

fn sha1_rotate(cx: &Context<'_>) {
    let rotated = rotated_left(words(cx, "Rn")[0], 30);
    cx.set_elements(Arrangement { lane: Lane::S, part: Part::Element }, &[rotated]);
}

fn sha1_schedule_0(cx: &Context<'_>) {
    let [d, n, m] = ["Rd", "Rn", "Rm"].map(|field| cx.vector_of(field).0);
    cx.set_vector_of("Rd", Vector::of([d[1] ^ d[0] ^ m[0], n[0] ^ d[1] ^ m[1]]));
}

fn sha1_schedule_1(cx: &Context<'_>) {
    let (d, n) = (words(cx, "Rd"), words(cx, "Rn"));
    let t = [d[0] ^ n[1], d[1] ^ n[2], d[2] ^ n[3], d[3]];
    let [a, b, c, d] = t.map(|t| rotated_left(t, 1));
    set_words(cx, [a, b, c, d ^ rotated_left(t[0], 2)]);
}

/// `SHA256hash`: both halves of the state after four rounds.
fn sha256_hash<'b>(
    mut x: [Val<'b>; 4],
    mut y: [Val<'b>; 4],
    schedule: [Val<'b>; 4],
) -> [[Val<'b>; 4]; 2] {
    for w in schedule {
        let t = y[3] + rotations(y[0], [6, 11, 25]) + choose(y[0], y[1], y[2]) + w;
        let sum = t + rotations(x[0], [2, 13, 22]) + majority(x[0], x[1], x[2]);
        let carried = t + x[3];
        [x, y] = [[sum, x[0], x[1], x[2]], [carried, y[0], y[1], y[2]]];
    }
    [x, y]
}

fn sha256_rounds(cx: &Context<'_>) {
    let [d, n, m] = ["Rd", "Rn", "Rm"].map(|field| words(cx, field));
    let [x, _] = sha256_hash(d, n, m);
    set_words(cx, x);
}

fn sha256_rounds_2(cx: &Context<'_>) {
    let [d, n, m] = ["Rd", "Rn", "Rm"].map(|field| words(cx, field));
    let [_, y] = sha256_hash(n, d, m);
    set_words(cx, y);
}

fn sha256_schedule_0(cx: &Context<'_>) {
    let (d, n) = (words(cx, "Rd"), words(cx, "Rn"));
    let next = [d[1], d[2], d[3], n[0]];
    set_words(cx, std::array::from_fn(|i| d[i] + rotations_and_shift(next[i], [7, 18, 3])));
}

fn sha256_schedule_1(cx: &Context<'_>) {
    let [d, n, m] = ["Rd", "Rn", "Rm"].map(|field| words(cx, field));
    let next = [n[1], n[2], n[3], m[0]];
    let sum = |i: usize, t| d[i] + next[i] + rotations_and_shift(t, [17, 19, 10]);
    let (a, b) = (sum(0, m[2]), sum(1, m[3]));
    set_words(cx, [a, b, sum(2, a), sum(3, b)]);
}
