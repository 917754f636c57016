//! Rearranging elements: ZIP, UZP, TRN, EXT, TBL, TBX.

use kvrm_ir::Val;

use super::arrangement::{ALL, Arrangement, BYTES, Lane};
use super::vector::Vector;
use crate::Sign;
use crate::context::Context;
use crate::row::{Choice, Row, rows};

/// Which elements are taken, by the operation code: the first or the second of each two.
const ORDER: &[Choice<Order>] = &[
    ("UZP1", "001", Order::Unzip(0)),
    ("TRN1", "010", Order::Transpose(0)),
    ("ZIP1", "011", Order::Zip(0)),
    ("UZP2", "101", Order::Unzip(1)),
    ("TRN2", "110", Order::Transpose(1)),
    ("ZIP2", "111", Order::Zip(1)),
];

#[derive(Clone, Copy)]
enum Order {
    /// Every other element of both operands, one operand after the other.
    Unzip(usize),
    /// Every other element of both operands, in turn.
    Transpose(usize),
    /// Half of both operands, in turn.
    Zip(usize),
}

/// What becomes of bytes whose index is beyond the table.
#[derive(Clone, Copy)]
enum Beyond {
    Zero,
    Keep,
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD permute" for (order in ORDER, t in ALL):
        "{order}_{t}" "0 {t} 0 01110 {t} 0 Rm:5 0 {order} 10 Rn:5 Rd:5" => permute(t, order);
    },
    rows! { "Advanced SIMD extract":
        "EXT_8B"  "0 0 1 01110 00 0 Rm:5 0 0 imm4:3 0 Rn:5 Rd:5" => extract_half();
        "EXT_16B" "0 1 1 01110 00 0 Rm:5 0 imm4:4 0 Rn:5 Rd:5" => extract();
    },
    rows! { "Advanced SIMD table lookup" for (t in BYTES):
        "TBL_{t}" "0 {t} 0 01110 00 0 Rm:5 0 len#2 0 00 Rn:5 Rd:5" => look_up(t, Beyond::Zero);
        "TBX_{t}" "0 {t} 0 01110 00 0 Rm:5 0 len#2 1 00 Rn:5 Rd:5" => look_up(t, Beyond::Keep);
    },
];

fn permute(cx: &Context<'_>, t: Arrangement, order: Order) {
    let [n, m] = ["Rn", "Rm"].map(|field| cx.vector_of(field).elements(t, Sign::Unsigned));
    let count = t.count();
    let element = |i: usize| match order {
        Order::Unzip(first) => [&n[..], &m[..]].concat()[2 * i + first],
        Order::Transpose(first) => [&n, &m][i % 2][i / 2 * 2 + first],
        Order::Zip(half) => [&n, &m][i % 2][half * count / 2 + i / 2],
    };
    let elements: Vec<_> = (0..count).map(element).collect();
    cx.set_elements(t, &elements);
}

/// 64 bits from a byte on, of two words.
fn funnel<'b>(low: Val<'b>, high: Val<'b>, bytes: Val<'b>) -> Val<'b> {
    let bits = bytes << 3;
    // In two steps, because the upper word may have to go altogether.
    low.shr_by(bits) | (high << 1).shl_by(!bits & 63u64)
}

fn extract_half(cx: &Context<'_>) {
    let [n, m] = ["Rn", "Rm"].map(|field| cx.vector_of(field).0[0]);
    cx.set_vector_of("Rd", Vector([funnel(n, m, cx.field("imm4")), cx.b.u64(0)]));
}

fn extract(cx: &Context<'_>) {
    let ([n0, n1], [m0, m1]) = (cx.vector_of("Rn").0, cx.vector_of("Rm").0);
    let imm = cx.field("imm4");
    let (bytes, far) = (imm & 7u64, imm.bit(3));
    let [a, b, c] = [far.select(n1, n0), far.select(m0, n1), far.select(m1, m0)];
    cx.set_vector_of("Rd", Vector([funnel(a, b, bytes), funnel(b, c, bytes)]));
}

/// TBL, TBX: the table is in up to four registers, of which V0 follows V31.
fn look_up<'b>(cx: &Context<'b>, t: Arrangement, beyond: Beyond) {
    let first = cx.field("Rn");
    let registers = u64::from(cx.shape("len")) + 1;
    let table: Vec<_> = (0..registers).flat_map(|i| cx.vector((first + i) & 31u64).0).collect();
    let old = cx.vector_of("Rd").elements(t, Sign::Unsigned);
    let indices = cx.vector_of("Rm").elements(t, Sign::Unsigned);
    let entry = |(index, old): (Val<'b>, Val<'b>)| {
        let word = chosen(&table, index >> 3);
        let byte = word.shr_by((index & 7u64) << 3).trunc(Lane::B.value_type());
        let otherwise = match beyond {
            Beyond::Zero => index.like(0),
            Beyond::Keep => old,
        };
        index.ult(16 * registers).select(byte, otherwise)
    };
    let elements: Vec<_> = indices.into_iter().zip(old).map(entry).collect();
    cx.set_elements(t, &elements);
}

/// The word with that number, by the bits of the number.
fn chosen<'b>(words: &[Val<'b>], number: Val<'b>) -> Val<'b> {
    match words {
        [word] => *word,
        _ => {
            let half = words.len().next_power_of_two() / 2;
            let (low, high) = words.split_at(half);
            number.bit(half.ilog2()).select(chosen(high, number), chosen(low, number))
        }
    }
}
