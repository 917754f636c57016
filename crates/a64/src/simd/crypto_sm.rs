//! Rounds and schedules of SM3 and SM4.

use std::sync::LazyLock;

use kvrm_ir::{Function, Type, Val};

use super::arrangement::Lane;
use super::crypto_sha::{Mix, choose, majority, parity, rotated_left, set_words, words};
use super::galois::{Affine, Field};
use super::substitution::SBox;
use crate::Sign;
use crate::context::Context;
use crate::row::{Choice, Row, rows};

/// By the last bit of the operation code.
const TT1: &[Choice<Mix>] = &[("A", "0", parity), ("B", "1", majority)];
const TT2: &[Choice<Mix>] = &[("A", "0", parity), ("B", "1", choose)];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Cryptographic four-register":
        "SM3SS1" "110011100 10 Rm:5 0 Ra:5 Rn:5 Rd:5" => sm3_sum();
    },
    rows! { "Cryptographic three-register, imm2" for (op in TT1):
        "SM3TT1{op}" "11001110010 Rm:5 10 imm2:2 0{op} Rn:5 Rd:5" => sm3_first(op);
    },
    rows! { "Cryptographic three-register, imm2" for (op in TT2):
        "SM3TT2{op}" "11001110010 Rm:5 10 imm2:2 1{op} Rn:5 Rd:5" => sm3_second(op);
    },
    rows! { "Cryptographic three-register SHA 512":
        "SM3PARTW1" "11001110011 Rm:5 1 1 00 00 Rn:5 Rd:5" => sm3_schedule_1();
        "SM3PARTW2" "11001110011 Rm:5 1 1 00 01 Rn:5 Rd:5" => sm3_schedule_2();
        "SM4EKEY"   "11001110011 Rm:5 1 1 00 10 Rn:5 Rd:5" => sm4_key();
    },
    rows! { "Cryptographic two-register SHA 512":
        "SM4E" "11001110110000001000 01 Rn:5 Rd:5" => sm4_encrypt();
    },
];

fn sm3_sum(cx: &Context<'_>) {
    let [n, m, a] = ["Rn", "Rm", "Ra"].map(|field| words(cx, field)[3]);
    let zero = cx.b.u32(0);
    set_words(cx, [zero, zero, zero, rotated_left(rotated_left(n, 12) + m + a, 7)]);
}

/// The word of the schedule that `imm2` says.
fn scheduled<'b>(cx: &Context<'b>) -> Val<'b> {
    cx.element_at("Rm", Lane::S, cx.field("imm2"), Sign::Unsigned)
}

/// SM3TT1A, SM3TT1B.
fn sm3_first(cx: &Context<'_>, mix: Mix) {
    let (d, n) = (words(cx, "Rd"), words(cx, "Rn"));
    let sum = n[3] ^ rotated_left(d[3], 12);
    let first = mix(d[3], d[2], d[1]) + d[0] + sum + scheduled(cx);
    set_words(cx, [d[1], rotated_left(d[2], 9), d[3], first]);
}

/// SM3TT2A, SM3TT2B.
fn sm3_second(cx: &Context<'_>, mix: Mix) {
    let (d, n) = (words(cx, "Rd"), words(cx, "Rn"));
    let second = mix(d[3], d[2], d[1]) + d[0] + n[3] + scheduled(cx);
    let permuted = second ^ rotated_left(second, 9) ^ rotated_left(second, 17);
    set_words(cx, [d[1], rotated_left(d[2], 19), d[3], permuted]);
}

/// The permutation of the schedule.
fn permuted(x: Val<'_>) -> Val<'_> {
    x ^ rotated_left(x, 15) ^ rotated_left(x, 23)
}

fn sm3_schedule_1(cx: &Context<'_>) {
    let [d, n, m] = ["Rd", "Rn", "Rm"].map(|field| words(cx, field));
    let word = |i: usize, later| permuted(d[i] ^ n[i] ^ rotated_left(later, 15));
    let [a, b, c] = [0, 1, 2].map(|i| word(i, m[i + 1]));
    set_words(cx, [a, b, c, word(3, a)]);
}

fn sm3_schedule_2(cx: &Context<'_>) {
    let [d, n, m] = ["Rd", "Rn", "Rm"].map(|field| words(cx, field));
    let sums: [Val<'_>; 4] = std::array::from_fn(|i| n[i] ^ rotated_left(m[i], 7));
    let [a, b, c, e] = std::array::from_fn(|i| d[i] ^ sums[i]);
    set_words(cx, [a, b, c, e ^ permuted(rotated_left(sums[0], 15))]);
}

/// Of the S-box of SM4.
pub(super) const SM4: Field = Field(0xf5);
/// Before and after the inverse.
const AFFINE: Affine = Affine { rotations: &[0, 1, 3, 6, 7], constant: 0xd3 };

/// The four bytes of a word.
static SUB_BYTES: Function = Function::new("SM4SubBytes", &[Type::U32], &[Type::U32], |_, args| {
    let first = AFFINE.of(args[0].zext(Type::U64));
    vec![AFFINE.of(SM4.inverse(first)).trunc(Type::U32)]
});
pub(super) static S_BOX: LazyLock<SBox> = LazyLock::new(|| SBox::new(SM4, AFFINE, AFFINE));

fn sub_bytes<'b>(cx: &Context<'b>, word: Val<'b>) -> Val<'b> {
    if !cx.b.has_wholes() {
        return cx.b.call(&SUB_BYTES, &[word])[0];
    }
    let whole = cx.b.pair([word.zext(Type::U64), cx.b.u64(0)]);
    cx.b.half(S_BOX.of(whole), 0).trunc(Type::U32)
}

/// The sum of a word and its rotations to the left.
fn with_rotations<'b>(x: Val<'b>, amounts: &[u32]) -> Val<'b> {
    amounts.iter().fold(x, |sum, amount| sum ^ rotated_left(x, *amount))
}

/// Four rounds with a key each, and the linear map of the cipher or of its keys.
fn sm4_rounds<'b>(cx: &Context<'b>, state: [Val<'b>; 4], keys: [Val<'b>; 4], amounts: &[u32]) {
    let last = keys.into_iter().fold(state, |[a, b, c, d], key| {
        let substituted = sub_bytes(cx, b ^ c ^ d ^ key);
        [b, c, d, a ^ with_rotations(substituted, amounts)]
    });
    set_words(cx, last);
}

fn sm4_encrypt(cx: &Context<'_>) {
    sm4_rounds(cx, words(cx, "Rd"), words(cx, "Rn"), &[2, 10, 18, 24]);
}

fn sm4_key(cx: &Context<'_>) {
    sm4_rounds(cx, words(cx, "Rn"), words(cx, "Rm"), &[13, 23]);
}
