//! Rounds and schedules of SHA-512, and the operations of SHA-3.

use kvrm_ir::Val;

use super::crypto_sha::{choose, majority, rotated_left, rotations, rotations_and_shift};
use super::vector::Vector;
use crate::context::Context;
use crate::row::{Row, rows};

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Cryptographic three-register SHA 512":
        "SHA512H"   "11001110011 Rm:5 1 0 00 00 Rn:5 Rd:5" => sha512_rounds();
        "SHA512H2"  "11001110011 Rm:5 1 0 00 01 Rn:5 Rd:5" => sha512_rounds_2();
        "SHA512SU1" "11001110011 Rm:5 1 0 00 10 Rn:5 Rd:5" => sha512_schedule_1();
        "RAX1"      "11001110011 Rm:5 1 0 00 11 Rn:5 Rd:5" => rotate_xor();
    },
    rows! { "Cryptographic two-register SHA 512":
        "SHA512SU0" "11001110110000001000 00 Rn:5 Rd:5" => sha512_schedule_0();
    },
    rows! { "Cryptographic four-register":
        "EOR3" "110011100 00 Rm:5 0 Ra:5 Rn:5 Rd:5" => xor_three();
        "BCAX" "110011100 01 Rm:5 0 Ra:5 Rn:5 Rd:5" => clear_xor();
    },
    rows! { "Cryptographic three-register, imm6":
        "XAR" "11001110100 Rm:5 imm6:6 Rn:5 Rd:5" => xor_rotate();
    },
];

fn operands<'b>(cx: &Context<'b>) -> [[Val<'b>; 2]; 3] {
    ["Rd", "Rn", "Rm"].map(|field| cx.vector_of(field).0)
}

fn sha512_rounds(cx: &Context<'_>) {
    let [w, x, y] = operands(cx);
    let sigma = |v| rotations(v, [14, 18, 41]);
    let high = choose(y[1], x[0], x[1]) + sigma(y[1]) + w[1];
    let sum = high + y[0];
    let low = choose(sum, y[1], x[0]) + sigma(sum) + w[0];
    cx.set_vector_of("Rd", Vector::of([low, high]));
}

fn sha512_rounds_2(cx: &Context<'_>) {
    let [w, x, y] = operands(cx);
    let sigma = |v| rotations(v, [28, 34, 39]);
    let high = majority(x[0], y[1], y[0]) + sigma(y[0]) + w[1];
    let low = majority(high, y[0], y[1]) + sigma(high) + w[0];
    cx.set_vector_of("Rd", Vector::of([low, high]));
}

fn sha512_schedule_0(cx: &Context<'_>) {
    let (w, x) = (cx.vector_of("Rd").0, cx.vector_of("Rn").0);
    let sigma = |v| rotations_and_shift(v, [1, 8, 7]);
    cx.set_vector_of("Rd", Vector::of([w[0] + sigma(w[1]), w[1] + sigma(x[0])]));
}

fn sha512_schedule_1(cx: &Context<'_>) {
    let [w, x, y] = operands(cx);
    let sum = |i: usize| w[i] + rotations_and_shift(x[i], [19, 61, 6]) + y[i];
    cx.set_vector_of("Rd", Vector::of([sum(0), sum(1)]));
}

fn rotate_xor(cx: &Context<'_>) {
    let result = cx.vector_of("Rn").by_halves(cx.vector_of("Rm"), |n, m| n ^ rotated_left(m, 1));
    cx.set_vector_of("Rd", result);
}

fn xor_three(cx: &Context<'_>) {
    let [n, m, a] = ["Rn", "Rm", "Ra"].map(|field| cx.vector_of(field));
    let result = n.by_halves(m, |n, m| n ^ m).by_halves(a, |x, a| x ^ a);
    cx.set_vector_of("Rd", result);
}

fn clear_xor(cx: &Context<'_>) {
    let [n, m, a] = ["Rn", "Rm", "Ra"].map(|field| cx.vector_of(field));
    let result = n.by_halves(m.by_halves(a, |m, a| m & !a), |n, cleared| n ^ cleared);
    cx.set_vector_of("Rd", result);
}

fn xor_rotate(cx: &Context<'_>) {
    let right = cx.field("imm6");
    let left = (cx.b.u32(64) - right) & 63u64;
    let result = cx.vector_of("Rn").by_halves(cx.vector_of("Rm"), |n, m| {
        let sum = n ^ m;
        sum.shr_by(right) | sum.shl_by(left)
    });
    cx.set_vector_of("Rd", result);
}
